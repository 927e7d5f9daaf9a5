//! Places for requests that are being answered, shared by source: a source gets another place while
//! it has fewer than seven times what is free, so that alone it has seven of eight, and others
//! always find some.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::seats::Source;

/// How many times what is free one source may have.
const TIMES_FREE: usize = 7;

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// At most as many as there are places.
    by_source: BTreeMap<Source, usize>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    open: Mutex<Open>,
    released: Notify,
}

/// A place; dropped, it is free.
#[derive(Debug)]
pub(crate) struct SharePlace {
    shares: Arc<Shares>,
    source: Source,
}

impl Shares {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default(), released: Notify::new() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for who is at this address, if it may have one more.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<SharePlace> {
        let source = Source::of(address);
        let mut open = self.open();
        let free = self.most.saturating_sub(open.all);
        let has = open.by_source.get(&source).copied().unwrap_or(0);
        if has >= free.saturating_mul(TIMES_FREE) {
            return None;
        }
        open.all += 1;
        *open.by_source.entry(source).or_default() += 1;
        Some(SharePlace { shares: Arc::clone(self), source })
    }

    /// Resolves when no place is taken.
    pub(crate) async fn idle(&self) {
        loop {
            let released = self.released.notified();
            if self.open().all == 0 {
                return;
            }
            released.await;
        }
    }
}

impl Drop for SharePlace {
    fn drop(&mut self) {
        let mut open = self.shares.open();
        open.all = open.all.saturating_sub(1);
        if let Some(has) = open.by_source.get_mut(&self.source) {
            *has = has.saturating_sub(1);
            if *has == 0 {
                open.by_source.remove(&self.source);
            }
        }
        drop(open);
        self.shares.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_source_leaves_places_to_others() {
        let shares = Shares::new(16);
        let at = |last| IpAddr::from([192, 0, 2, last]);
        let first: Vec<_> = (0..99).map_while(|_| shares.take(at(1))).collect();
        assert_eq!(first.len(), 14);
        let others: Vec<_> = (2..9).map_while(|last| shares.take(at(last))).collect();
        assert_eq!(others.len(), 2);
        drop(others);
        assert!(shares.take(at(9)).is_some());
        drop(first);
        shares.idle().await;
        assert!(shares.open().by_source.is_empty());
    }
}
