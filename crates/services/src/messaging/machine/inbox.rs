//! Messages that came to this node, and what is remembered of those that were here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::message::Message;
use crate::messaging::signing::Digest;

/// Most messages that are in the inbox no more and are remembered; about 200 bytes each. The one
/// whose validity ends first makes room.
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
    /// Up to which number the disk has them: clients are told of no others.
    announced: u64,
    by_key: BTreeMap<Key, u64>,
    seen: BTreeMap<Key, (Digest, Duration)>,
    seen_until: BTreeSet<(Duration, Key)>,
}

/// What names a message: ids are of their originators.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its id.
    pub id: Arc<str>,
    /// Who wrote it.
    pub originator: Arc<str>,
}

impl Key {
    pub(super) fn new(originator: &str, id: &str) -> Self {
        Self { id: id.into(), originator: originator.into() }
    }
}

impl From<&Message> for Key {
    fn from(message: &Message) -> Self {
        Self { id: message.id.clone(), originator: message.originator.clone() }
    }
}

/// Whether a message was here.
pub(super) enum Known<'a> {
    /// It is in the inbox.
    Here(&'a Arrived),
    /// It was, and had this digest.
    Gone(&'a Digest),
}

impl Inbox {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// By its id, as clients have it. Where several originators gave it, one that was not read is
    /// before those that were.
    pub(super) fn find(&self, id: &str) -> Option<&Arrived> {
        let all = self.by_key.range(Key::new("", id)..);
        let all = all.take_while(|(key, _)| *key.id == *id);
        let entries = all.filter_map(|(_, number)| self.entries.get(number));
        entries.min_by_key(|entry| (entry.read.is_some(), entry.number))
    }

    pub(super) fn known(&self, key: &Key) -> Option<Known<'_>> {
        let here = self.by_key.get(key).and_then(|number| self.entries.get(number));
        let gone = || self.seen.get(key).map(|(digest, _)| Known::Gone(digest));
        here.map(Known::Here).or_else(gone)
    }

    /// Those that the disk has, with numbers above `after`.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        let announced = self.announced;
        let entries = self.entries.range(after.saturating_add(1)..).map(|(_, entry)| entry);
        entries.take_while(move |entry| entry.number <= announced)
    }

    /// The greatest number that clients are told of.
    pub(super) fn announced(&self) -> u64 {
        self.announced
    }

    /// The disk has those up to a number.
    pub(super) fn tell(&mut self, number: u64) {
        self.announced = self.announced.max(number);
    }

    pub(super) fn insert(&mut self, entry: Arrived) {
        self.by_key.insert(Key::from(&*entry.message), entry.number);
        self.entries.insert(entry.number, entry);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Arrived> {
        let entry = self.entries.remove(&number)?;
        self.by_key.remove(&Key::from(&*entry.message));
        Some(entry)
    }

    /// The oldest that was read, or whose validity is over: what makes room.
    pub(super) fn oldest_done(&self, now: Duration) -> Option<u64> {
        let is_done = |entry: &&Arrived| entry.read.is_some() || entry.message.deadline() <= now;
        self.entries.values().find(is_done).map(|entry| entry.number)
    }

    /// Remembers a message; the one that had to make room for it.
    pub(super) fn remember(&mut self, key: Key, digest: Digest, until: Duration) -> Option<Key> {
        self.seen.insert(key.clone(), (digest, until));
        self.seen_until.insert((until, key));
        if self.seen.len() <= MAX_SEEN {
            return None;
        }
        let (_, oldest) = self.seen_until.pop_first()?;
        self.seen.remove(&oldest);
        Some(oldest)
    }

    pub(super) fn forget(&mut self, key: &Key) {
        if let Some((key, (_, until))) = self.seen.remove_entry(key) {
            self.seen_until.remove(&(until, key));
        }
    }

    /// The next that cannot come again at `now`.
    pub(super) fn next_over(&mut self, now: Duration) -> Option<Key> {
        self.seen_until.first().filter(|(until, _)| *until <= now)?;
        let (_, key) = self.seen_until.pop_first()?;
        self.seen.remove(&key);
        Some(key)
    }

    /// When the next cannot come again.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.seen_until.first().map(|(until, _)| *until)
    }
}
