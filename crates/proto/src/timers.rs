//! One deadline per key, the earliest first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// See the module; bounded by the keys that there are.
#[derive(Debug)]
pub struct Timers<K> {
    queue: BTreeSet<(Duration, K)>,
    at: BTreeMap<K, Duration>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { queue: BTreeSet::new(), at: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Timers<K> {
    /// Sets, moves or (`None`) clears a deadline.
    pub fn set(&mut self, key: K, at: Option<Duration>) {
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
    pub fn set_by(&mut self, key: K, at: Duration) {
        if self.at.get(&key).is_none_or(|before| at < *before) {
            self.set(key, Some(at));
        }
    }

    /// Whether a deadline is set.
    pub fn is_set(&self, key: K) -> bool {
        self.at.contains_key(&key)
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Duration> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes one deadline that has passed.
    pub fn pop(&mut self, now: Duration) -> Option<K> {
        let (at, key) = *self.queue.first()?;
        if at > now {
            return None;
        }
        self.set(key, None);
        Some(key)
    }
}
