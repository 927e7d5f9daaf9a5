//! Messages on their way: cut into fragments, sent again until all are acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::packet::{MAX_FRAGMENT_BYTES, Packet};

/// Fragments that may be under way at once, at first, at least and at most.
const FIRST_WINDOW: usize = 4;
const MAX_WINDOW: usize = 64;
/// How long a fragment waits for its acknowledgement before it is sent again, where no round trip
/// was seen; at least; and at most.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_TIMEOUT: Duration = Duration::from_secs(8);

/// A fragment that is not acknowledged.
#[derive(Debug)]
struct Fragment {
    after: u64,
    count: u64,
    bytes: Bytes,
    /// When it left last; not yet.
    left_at: Option<Duration>,
    /// How often it left.
    times: u32,
}

/// Messages of one exchange, or of none, that are not all acknowledged.
#[derive(Debug, Default)]
struct Chain {
    last: u64,
    open: BTreeSet<u64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Sending {
    next: u64,
    fragments: BTreeMap<(u64, u64), Fragment>,
    chains: BTreeMap<Option<u64>, Chain>,
    window: usize,
    /// Fragments acknowledged since the window grew.
    acknowledged: usize,
    round_trip: Option<Duration>,
    pub(super) min_round_trip: Duration,
    /// Fragments that left, and that left again.
    pub(super) left: u32,
    pub(super) left_again: u32,
    /// Timeouts in a row.
    pub(super) timeouts: u32,
}

impl Sending {
    pub(super) fn new() -> Self {
        Self {
            next: 1,
            fragments: BTreeMap::new(),
            chains: BTreeMap::new(),
            window: FIRST_WINDOW,
            acknowledged: 0,
            round_trip: None,
            min_round_trip: Duration::MAX,
            left: 0,
            left_again: 0,
            timeouts: 0,
        }
    }

    /// A message is to go, behind those of the same key.
    pub(super) fn push(&mut self, key: Option<u64>, message: &Bytes) {
        let number = self.next;
        self.next += 1;
        let chain = self.chains.entry(key).or_default();
        let after = std::mem::replace(&mut chain.last, number);
        chain.open.insert(number);
        let starts = (0..message.len()).step_by(MAX_FRAGMENT_BYTES);
        let count = starts.len() as u64;
        for (place, from) in (0..count).zip(starts) {
            let to = message.len().min(from + MAX_FRAGMENT_BYTES);
            let (bytes, left_at, times) = (message.slice(from..to), None, 0);
            let fragment = Fragment { after, count, bytes, left_at, times };
            self.fragments.insert((number, place), fragment);
        }
    }

    /// The peer has these fragments.
    pub(super) fn acknowledged(&mut self, now: Duration, acks: &[(u64, u64)]) {
        for ack in acks {
            let Some(fragment) = self.fragments.remove(ack) else { continue };
            self.timeouts = 0;
            if let Some(left_at) = fragment.left_at.filter(|_| fragment.times == 1) {
                let took = now.saturating_sub(left_at);
                self.min_round_trip = self.min_round_trip.min(took);
                let smoothed = self.round_trip.map_or(took, |before| (before * 7 + took) / 8);
                self.round_trip = Some(smoothed);
            }
            self.acknowledged += 1;
            if self.acknowledged >= self.window {
                self.acknowledged = 0;
                self.window = (self.window + 1).min(MAX_WINDOW);
            }
            self.settle(ack.0);
        }
    }

    /// A message of which nothing is left is done with, once those before it are.
    fn settle(&mut self, message: u64) {
        if self.fragments.range((message, 0)..=(message, u64::MAX)).next().is_some() {
            return;
        }
        self.chains.retain(|_, chain| {
            chain.open.remove(&message);
            !chain.open.is_empty()
        });
    }

    fn timeout(&self, times: u32) -> Duration {
        let first = self.round_trip.map_or(FIRST_TIMEOUT, |seen| seen * 2).max(MIN_TIMEOUT);
        (first * (1 << times.saturating_sub(1).min(6))).min(MAX_TIMEOUT)
    }

    /// The next fragment that leaves now, if one does.
    pub(super) fn next(&mut self, now: Duration) -> Option<Packet> {
        let under_way = self.fragments.values().filter(|one| one.left_at.is_some()).count();
        let is_due = |one: &Fragment| match one.left_at {
            Some(at) => now >= at + self.timeout(one.times),
            None => under_way < self.window,
        };
        let (key, _) = self.fragments.iter().find(|(_, one)| is_due(one))?;
        let key @ (message, place) = *key;
        let fragment = self.fragments.get_mut(&key)?;
        self.left += 1;
        if fragment.left_at.replace(now).is_some() {
            self.left_again += 1;
            self.timeouts += 1;
            self.window = (self.window / 2).max(1);
        }
        fragment.times += 1;
        let Fragment { after, count, bytes, .. } = fragment;
        let (after, count, bytes) = (*after, *count, bytes.clone());
        Some(Packet::Fragment { message, after, place, count, bytes })
    }

    /// When a fragment is sent again.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        let due = |one: &Fragment| one.left_at.map(|at| at + self.timeout(one.times));
        self.fragments.values().filter_map(due).min()
    }

    /// Bytes that are not acknowledged.
    pub(super) fn held_bytes(&self) -> usize {
        self.fragments.values().map(|one| one.bytes.len()).sum()
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
    }
}
