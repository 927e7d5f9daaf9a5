//! Receipts that go from this node: its own and those that it passes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::receipt::{Receipt, Returning};

/// How long a receipt is worth to be sent, from when it was made: a day.
pub(super) const RECEIPT_LIFE: Duration = Duration::from_secs(86_400);

/// What makes two receipts the same.
type Key = (Arc<str>, Arc<str>, Arc<str>, u8);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reports {
    entries: BTreeMap<u64, Returning>,
    by_key: BTreeMap<Key, u64>,
    ends: BTreeSet<(Duration, u64)>,
    /// How many there are for each originator.
    counts: BTreeMap<Arc<str>, usize>,
}

impl Reports {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many go to an originator.
    pub(super) fn count_of(&self, originator: &str) -> usize {
        self.counts.get(originator).copied().unwrap_or(0)
    }

    pub(super) fn get(&self, number: u64) -> Option<&Returning> {
        self.entries.get(&number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.entries.keys().copied()
    }

    pub(super) fn has(&self, receipt: &Receipt) -> bool {
        self.by_key.contains_key(&key(receipt))
    }

    pub(super) fn insert(&mut self, number: u64, returning: Returning) {
        self.by_key.insert(key(&returning.receipt), number);
        *self.counts.entry(returning.receipt.originator.clone()).or_default() += 1;
        self.ends.insert((end(&returning), number));
        self.entries.insert(number, returning);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Returning> {
        let returning = self.entries.remove(&number)?;
        self.by_key.remove(&key(&returning.receipt));
        let originator = &returning.receipt.originator;
        match self.counts.get_mut(originator) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(originator)),
        }
        self.ends.remove(&(end(&returning), number));
        Some(returning)
    }

    /// The next that is over at `now`.
    pub(super) fn next_over(&self, now: Duration) -> Option<u64> {
        self.ends.first().filter(|(end, _)| *end <= now).map(|(_, number)| *number)
    }

    /// When the next is over.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.ends.first().map(|(end, _)| *end)
    }
}

fn key(receipt: &Receipt) -> Key {
    let (message, originator) = (receipt.message.clone(), receipt.originator.clone());
    (originator, message, receipt.addressee.clone(), receipt.outcome as u8)
}

fn end(returning: &Returning) -> Duration {
    returning.receipt.time.saturating_add(RECEIPT_LIFE)
}
