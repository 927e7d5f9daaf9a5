//! Transaction ids towards one peer: an octet each, and none again while its old answer may come.

use std::collections::VecDeque;
use std::time::Duration;

use super::settings::{KEEP, MAX_LATE_ANSWER, MAX_LATENCY};

/// A transaction id that no request has.
#[derive(Clone, Copy, Debug)]
struct Resting {
    tid: u8,
    /// When no answer to its last request can come any more.
    free_at: Duration,
    /// Its last request, and until when the server may take the same one for a copy.
    last: Option<(u128, Duration)>,
}

/// All 256 of a peer; those in use are with their requests.
#[derive(Debug)]
pub(super) struct Tids {
    /// In the order in which they were given back.
    resting: VecDeque<Resting>,
}

impl Tids {
    /// None in use; the first one given out is `first`.
    pub(super) fn new(first: u8) -> Self {
        let fresh =
            |step| Resting { tid: first.wrapping_add(step), free_at: Duration::ZERO, last: None };
        Self { resting: (0..=u8::MAX).map(fresh).collect() }
    }

    /// Takes the one that has rested longest among those that may be used for this request.
    pub(super) fn take(&mut self, now: Duration, digest: u128) -> Option<u8> {
        let may_be_used = |one: &Resting| {
            let is_copy = |(last, until): (u128, Duration)| last == digest && now < until;
            one.free_at <= now && !one.last.is_some_and(is_copy)
        };
        let at = self.resting.iter().position(may_be_used)?;
        self.resting.remove(at).map(|one| one.tid)
    }

    /// Gives one back whose request was answered or given up at `now`.
    pub(super) fn give_back(&mut self, now: Duration, tid: u8, digest: u128, answered: bool) {
        let free_at = now + if answered { MAX_LATENCY } else { MAX_LATE_ANSWER };
        self.resting.push_back(Resting { tid, free_at, last: Some((digest, free_at + KEEP)) });
    }

    /// When the next one may be used for this request; `None` while all are in use.
    pub(super) fn next_at(&self, digest: u128) -> Option<Duration> {
        let usable_at = |one: &Resting| match one.last {
            Some((last, until)) if last == digest => until.max(one.free_at),
            _ => one.free_at,
        };
        self.resting.iter().map(usable_at).min()
    }

    /// Whether all of them may be forgotten.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        let rests =
            |one: &Resting| one.free_at > now || one.last.is_some_and(|(_, until)| until > now);
        self.resting.len() == 256 && !self.resting.iter().any(rests)
    }
}
