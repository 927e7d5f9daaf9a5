//! Messages that came to this node, and the ids of those that were here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::message::Message;

/// Most ids of messages that are in the inbox no more; about 100 bytes each. The id whose validity
/// ends first makes room.
const MAX_SEEN: usize = 1_000_000;

/// A message of the inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number at this node: later messages have greater ones.
    pub number: u64,
    /// The message.
    pub message: Arc<Message>,
    /// When it came, since 1970.
    pub at: Duration,
    /// When it was read.
    pub read: Option<Duration>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    entries: BTreeMap<u64, Arrived>,
    by_id: BTreeMap<Arc<str>, u64>,
    seen: BTreeMap<Arc<str>, Duration>,
    seen_until: std::collections::BTreeSet<(Duration, Arc<str>)>,
}

/// Whether a message was here.
pub(super) enum Known<'a> {
    /// It is in the inbox.
    Here(&'a Arrived),
    /// It was.
    Gone,
}

impl Inbox {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn find(&self, id: &str) -> Option<&Arrived> {
        self.entries.get(self.by_id.get(id)?)
    }

    pub(super) fn known(&self, id: &str) -> Option<Known<'_>> {
        let here = self.find(id).map(Known::Here);
        here.or_else(|| self.seen.contains_key(id).then_some(Known::Gone))
    }

    /// Those whose numbers are above `after`.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        self.entries.range(after.saturating_add(1)..).map(|(_, entry)| entry)
    }

    pub(super) fn insert(&mut self, entry: Arrived) {
        self.by_id.insert(entry.message.id.clone(), entry.number);
        self.entries.insert(entry.number, entry);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Arrived> {
        let entry = self.entries.remove(&number)?;
        self.by_id.remove(&entry.message.id);
        Some(entry)
    }

    /// The oldest that was read, or whose validity is over: what makes room.
    pub(super) fn oldest_done(&self, now: Duration) -> Option<u64> {
        let is_done = |entry: &&Arrived| entry.read.is_some() || entry.message.deadline() <= now;
        self.entries.values().find(is_done).map(|entry| entry.number)
    }

    /// Remembers an id; those that had to make room for it.
    pub(super) fn remember(&mut self, id: Arc<str>, until: Duration) -> Option<Arc<str>> {
        self.seen.insert(id.clone(), until);
        self.seen_until.insert((until, id));
        if self.seen.len() <= MAX_SEEN {
            return None;
        }
        let (_, oldest) = self.seen_until.pop_first()?;
        self.seen.remove(&oldest);
        Some(oldest)
    }

    pub(super) fn forget(&mut self, id: &str) {
        if let Some((id, until)) = self.seen.remove_entry(id) {
            self.seen_until.remove(&(until, id));
        }
    }

    /// The next id that cannot come again at `now`.
    pub(super) fn next_over(&mut self, now: Duration) -> Option<Arc<str>> {
        self.seen_until.first().filter(|(until, _)| *until <= now)?;
        let (_, id) = self.seen_until.pop_first()?;
        self.seen.remove(&id);
        Some(id)
    }

    /// When the next id cannot come again.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.seen_until.first().map(|(until, _)| *until)
    }
}
