//! One deadline per key, the earliest first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::{CarrierId, ExchangeId};

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// An open block or a waiting head.
    Block(ExchangeId),
    /// An exchange that waits for a carrier, an outcome or a query.
    Exchange(ExchangeId),
    /// An exchange through which nothing may pass any more.
    Still(ExchangeId),
    /// An exchange that waits for a decoder's memory.
    Decoder(ExchangeId),
    /// A carrier that has not said HELLO.
    Carrier(CarrierId),
    /// A look at whether a carrier's peer still answers.
    Pulse(CarrierId),
    /// Words that wait for a frame to leave with.
    Words(CarrierId),
    /// A carrier that a dictionary may go over.
    Shelf(CarrierId),
    /// The next dial.
    Dial,
    /// Gateway: after a shutdown, edges had time to hear of it.
    Linger,
}

/// See the module; bounded by four keys per exchange, four per carrier, and two.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeSet<(Duration, Key)>,
    at: BTreeMap<Key, Duration>,
}

impl Timers {
    /// Sets, moves or (`None`) clears a deadline.
    pub(crate) fn set(&mut self, key: Key, at: Option<Duration>) {
        let before = match at {
            Some(at) => self.at.insert(key, at),
            None => self.at.remove(&key),
        };
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.queue.remove(&(before, key));
        }
        if let Some(at) = at {
            self.queue.insert((at, key));
        }
    }

    /// Sets a deadline, unless an earlier one is set.
    pub(crate) fn set_by(&mut self, key: Key, at: Duration) {
        if self.at.get(&key).is_none_or(|before| at < *before) {
            self.set(key, Some(at));
        }
    }

    /// Whether a deadline is set.
    pub(crate) fn is_set(&self, key: Key) -> bool {
        self.at.contains_key(&key)
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes one deadline that has passed.
    pub(crate) fn pop(&mut self, now: Duration) -> Option<Key> {
        let (at, key) = *self.queue.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }
}
