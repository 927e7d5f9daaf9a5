//! The receiving side: what arrived, and when to say so.

use std::collections::VecDeque;

/// Segments of a message that are acknowledged each (Linux: `TCP_MAX_QUICKACKS`).
const QUICK: u64 = 16;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Number of the first that has not arrived.
    expected: u64,
    /// From `expected` on.
    arrived: VecDeque<bool>,
    /// Numbers and transmissions in the order of arrival, since `told`.
    log: VecDeque<(u64, u64)>,
    /// Arrivals that the sender knows of and that were dropped from the log.
    acknowledged: u64,
    unacknowledged: u32,
    first: u64,
    end: u64,
    missing: u64,
    /// Times of the message's first and last arrivals.
    pub(super) spread_s: (f64, f64),
}

impl Receiver {
    /// A message's segments are those from `first` on below `end`.
    pub(super) fn expect(&mut self, (first, end): (u64, u64)) {
        (self.first, self.end, self.missing) = (first, end, end - first);
    }

    /// Whether all of the message is there.
    pub(super) fn complete(&self) -> bool {
        self.missing == 0
    }

    /// Takes a segment; gives what an acknowledgement tells, if one is due.
    pub(super) fn receive(&mut self, now_s: f64, number: u64, transmission: u64) -> Option<u64> {
        self.log.push_back((number, transmission));
        let fresh = self.note(number);
        if fresh && (self.first..self.end).contains(&number) {
            if self.missing == self.end - self.first {
                self.spread_s.0 = now_s;
            }
            self.spread_s.1 = now_s;
            self.missing -= 1;
        }
        self.unacknowledged += 1;
        let in_order = fresh && self.arrived.is_empty();
        let quick = number < self.first + QUICK || self.missing == 0;
        if !in_order || quick || self.unacknowledged >= 2 {
            self.unacknowledged = 0;
            return Some(self.acknowledged + self.log.len() as u64);
        }
        None
    }

    fn note(&mut self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.expected) else { return false };
        let at = crate::decision::index(at);
        if self.arrived.len() <= at {
            self.arrived.resize(at + 1, false);
        }
        let fresh = !std::mem::replace(&mut self.arrived[at], true);
        while self.arrived.front() == Some(&true) {
            self.arrived.pop_front();
            self.expected += 1;
        }
        fresh
    }

    /// What an acknowledgement tells beyond those before it.
    pub(super) fn tell(&mut self, received: u64) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        let news = received.saturating_sub(self.acknowledged);
        self.acknowledged += news;
        self.log.drain(..crate::decision::index(news))
    }
}
