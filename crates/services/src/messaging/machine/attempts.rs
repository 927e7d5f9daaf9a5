//! Requests to nodes that have not ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::peers::Item;

/// A request to a node.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) peer: Arc<str>,
    pub(super) item: Item,
    /// The recipients of a message that it is for.
    pub(super) recipients: Vec<Arc<str>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    // bound: the window of each node, and what is more urgent than all in it.
    attempts: BTreeMap<u64, Attempt>,
    /// Which thing is on its way to which node.
    under_way: BTreeSet<(u64, Arc<str>)>,
    last: u64,
}

impl Attempts {
    /// Keeps a request; its number.
    pub(super) fn insert(&mut self, attempt: Attempt) -> u64 {
        self.last += 1;
        self.under_way.insert((attempt.item.number, attempt.peer.clone()));
        self.attempts.insert(self.last, attempt);
        self.last
    }

    /// Takes out a request that has ended.
    pub(super) fn remove(&mut self, attempt: u64) -> Option<Attempt> {
        let attempt = self.attempts.remove(&attempt)?;
        self.under_way.remove(&(attempt.item.number, attempt.peer.clone()));
        Some(attempt)
    }

    /// Whether something is on its way to a node.
    pub(super) fn is_under_way(&self, number: u64, peer: &Arc<str>) -> bool {
        self.under_way.contains(&(number, peer.clone()))
    }

    /// Whether something is on its way to any node.
    pub(super) fn is_any_under_way(&self, number: u64) -> bool {
        let least: (u64, Arc<str>) = (number, "".into());
        self.under_way.range(least..).next().is_some_and(|(first, _)| *first == number)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.under_way.is_empty()
    }
}
