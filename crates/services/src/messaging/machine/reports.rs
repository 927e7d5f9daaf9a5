//! Receipts that go from this node: its own and those that it passes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::message::MAX_VALIDITY_S;
use crate::messaging::receipt::{Outcome, Receipt, Returning};
use crate::messaging::refusal::{Reason, Refusal, shown};

/// How long a receipt is worth to be sent, from when it was made: a day. The originator asks for it
/// again by sending its message again.
const RECEIPT_LIFE: Duration = Duration::from_secs(86_400);
/// One that says that a message was read, for which nobody asks again: as long as any is valid.
const READ_LIFE: Duration = Duration::from_secs(MAX_VALIDITY_S);

/// Most receipts that wait to be sent, of all messages and of those of one originator. Beyond it
/// this node makes none, as the originator sends its message again and asks so once more; and one
/// of another node is refused, which comes again with it.
const MAX_REPORTS: usize = 200_000;
const MAX_REPORTS_OF_ONE: usize = 20_000;

/// When a receipt is worth nothing any more.
pub(super) fn end(receipt: &Receipt) -> Duration {
    let life = match receipt.outcome {
        Outcome::Read => READ_LIFE,
        Outcome::Delivered | Outcome::Failed => RECEIPT_LIFE,
    };
    receipt.time.saturating_add(life)
}

/// What makes two receipts the same.
type Key = (Arc<str>, Arc<str>, Arc<str>, u8);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// With when they are over.
    entries: BTreeMap<u64, (Returning, Duration)>,
    by_key: BTreeMap<Key, u64>,
    ends: BTreeSet<(Duration, u64)>,
    /// How many there are for each originator.
    counts: BTreeMap<Arc<str>, usize>,
}

impl Reports {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Refuses one more to an originator where there are as many as may be.
    pub(super) fn check_room(&self, node: &str, originator: &str) -> Result<(), Refusal> {
        let count = self.counts.get(originator).copied().unwrap_or(0);
        if self.entries.len() < MAX_REPORTS && count < MAX_REPORTS_OF_ONE {
            return Ok(());
        }
        let line = format!(
            "node '{node}' has {count} receipts for '{}' that wait, up to the limit; try later",
            shown(originator)
        );
        Err(Refusal::new(Reason::Full, line))
    }

    pub(super) fn get(&self, number: u64) -> Option<&Returning> {
        self.entries.get(&number).map(|(returning, _)| returning)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.entries.keys().copied()
    }

    pub(super) fn has(&self, receipt: &Receipt) -> bool {
        self.by_key.contains_key(&key(receipt))
    }

    /// Keeps a receipt until `end`.
    pub(super) fn insert(&mut self, number: u64, returning: Returning, end: Duration) {
        self.by_key.insert(key(&returning.receipt), number);
        *self.counts.entry(returning.receipt.originator.clone()).or_default() += 1;
        self.ends.insert((end, number));
        self.entries.insert(number, (returning, end));
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Returning> {
        let (returning, end) = self.entries.remove(&number)?;
        self.by_key.remove(&key(&returning.receipt));
        let originator = &returning.receipt.originator;
        match self.counts.get_mut(originator) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(originator)),
        }
        self.ends.remove(&(end, number));
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
