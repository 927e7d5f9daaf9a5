//! Room that clients share: places, or bytes. A client gets more of it while it has fewer than
//! seven times what is free, so that alone it has seven of eight, and others always find some.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::seats::Source;

/// How many times what is free one client may have.
const TIMES_FREE: usize = 7;

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only of who has some.
    by_source: BTreeMap<Source, usize>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    taken: Mutex<Taken>,
}

/// Some of a room; dropped, it is free.
#[derive(Debug)]
pub(super) struct Share {
    room: Arc<Room>,
    source: Source,
    has: usize,
}

impl Room {
    /// So much for all.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// How much it is.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So much for this client, if it may have it.
    pub(super) fn take(self: &Arc<Self>, source: Source, count: usize) -> Option<Share> {
        let mut share = Share { room: Arc::clone(self), source, has: 0 };
        share.grow(count).then_some(share)
    }
}

impl Share {
    /// Takes so much more; false, and nothing has changed, where the client may not have it.
    pub(super) fn grow(&mut self, count: usize) -> bool {
        let mut taken = self.room.taken();
        let free = self.room.most.saturating_sub(taken.all);
        let has = taken.by_source.get(&self.source).copied().unwrap_or(0);
        if count > free || has >= free.saturating_mul(TIMES_FREE) {
            return false;
        }
        taken.all += count;
        if count > 0 {
            *taken.by_source.entry(self.source).or_default() += count;
        }
        drop(taken);
        self.has += count;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.all = taken.all.saturating_sub(self.has);
        if let Some(has) = taken.by_source.get_mut(&self.source) {
            *has = has.saturating_sub(self.has);
            if *has == 0 {
                taken.by_source.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_room_to_others() {
        let at = |last: u8| Source::of([192, 0, 2, last].into());
        let room = Room::new(16);
        let first: Vec<_> = (0..99).map_while(|_| room.take(at(1), 1)).collect();
        assert_eq!(first.len(), 14);
        let other = room.take(at(2), 1).unwrap();
        assert!(room.take(at(1), 1).is_none());
        drop(first);
        let mut large = room.take(at(1), 8).unwrap();
        assert!(!large.grow(8) && large.grow(4));
        drop((other, large));
        let taken = room.taken();
        assert!(taken.all == 0 && taken.by_source.is_empty());
    }

    #[test]
    fn the_only_place_is_somebodys() {
        let room = Room::new(1);
        let place = room.take(Source::of_text("192.0.2.1"), 1).unwrap();
        assert!(room.take(Source::of_text("192.0.2.2"), 1).is_none());
        drop(place);
        assert!(room.take(Source::of_text("192.0.2.2"), 1).is_some());
    }
}
