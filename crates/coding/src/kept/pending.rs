//! Messages that are being made into bases.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::exchange::MAX_BLOCK_BYTES;

use super::bases::Context;
use crate::bounds::MAX_KEEPS;
use crate::ids::{ExchangeId, PathId};
use crate::job::{Job, Prepare};
use crate::times::Arrival;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Keeps {
    open: BTreeMap<u64, Keep>,
    next: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Keep {
    pub(crate) path: PathId,
    pub(crate) exchange: ExchangeId,
    pub(crate) whose: Whose,
    /// Nobody may keep it, as was heard meanwhile.
    pub(crate) barred: bool,
}

/// Whose message it is.
#[derive(Debug)]
pub(crate) enum Whose {
    /// This side's, of whose dictionary it may become a part.
    Sent(Option<Context>),
    /// The peer's, for this slot; its receipt waits, so that both go together.
    Received(u64, Box<Arrival>),
    /// Of neither: content of so many bytes, of which it is asked whether there is a secret in it.
    Screened(usize),
}

impl Keeps {
    /// What is being made of an exchange's messages is not kept.
    pub(crate) fn bar(&mut self, path: PathId, exchange: u64) {
        let open = self.open.values_mut();
        let of_exchange = open.filter(|keep| (keep.path, keep.exchange.number) == (path, exchange));
        of_exchange.for_each(|keep| keep.barred = true);
    }

    /// The job that makes a message into a base; none where there are too many.
    pub(crate) fn order(&mut self, bytes: Bytes, keep: Keep) -> Option<Job> {
        if self.open.len() >= MAX_KEEPS || bytes.len() > MAX_BLOCK_BYTES {
            return None;
        }
        self.next += 1;
        self.open.insert(self.next, keep);
        Some(Job::Prepare(Prepare::Base { number: self.next, bytes }))
    }

    /// The job is done.
    pub(crate) fn take(&mut self, number: u64) -> Option<Keep> {
        self.open.remove(&number)
    }
}
