//! Messages that came to this node, and what is remembered of those that were here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::message::Message;
use crate::messaging::signing::Digest;

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
    /// Numbers of those that were read, and of those that were not.
    read: BTreeSet<u64>,
    unread: BTreeSet<u64>,
    /// When the validity of each is over.
    valid_until: BTreeSet<(Duration, u64)>,
    /// Those that are there no more and may come again; about 200 bytes each. None is forgotten
    /// before it cannot: where there are too many, others are not taken.
    seen: BTreeMap<Key, (Digest, Duration)>,
    seen_until: BTreeSet<(Duration, Key)>,
    /// How many of each originator are there or may come again.
    counts: BTreeMap<Arc<str>, usize>,
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

    /// How many are there or may come again.
    pub(super) fn known_count(&self) -> usize {
        self.entries.len() + self.seen.len()
    }

    /// Those of an originator.
    pub(super) fn known_count_of(&self, originator: &str) -> usize {
        self.counts.get(originator).copied().unwrap_or(0)
    }

    /// Those with an id, by their originators: each gives its own ids. So many at most.
    pub(super) fn all(&self, id: &str, most: usize) -> Vec<&Arrived> {
        let all = self.by_key.range(Key::new("", id)..);
        let all = all.take_while(|(key, _)| *key.id == *id).take(most);
        all.filter_map(|(_, number)| self.entries.get(number)).collect()
    }

    pub(super) fn known(&self, key: &Key) -> Option<Known<'_>> {
        let gone = || self.seen.get(key).map(|(digest, _)| Known::Gone(digest));
        self.here(key).map(Known::Here).or_else(gone)
    }

    /// A message that is there.
    pub(super) fn here(&self, key: &Key) -> Option<&Arrived> {
        self.by_key.get(key).and_then(|number| self.entries.get(number))
    }

    /// Those that the disk has, with numbers above `after`.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        let announced = self.announced;
        let entries = self.entries.range(after.saturating_add(1)..).map(|(_, entry)| entry);
        entries.take_while(move |entry| entry.number <= announced)
    }

    /// Of these the ones that nobody has read.
    pub(super) fn unread_after(&self, after: u64) -> impl Iterator<Item = &Arrived> {
        let announced = self.announced;
        let numbers = self.unread.range(after.saturating_add(1)..);
        let numbers = numbers.take_while(move |number| **number <= announced);
        numbers.filter_map(|number| self.entries.get(number))
    }

    /// How many of those that the disk has nobody has read.
    pub(super) fn unread_count(&self) -> usize {
        let on_the_way = self.unread.range(self.announced.saturating_add(1)..).count();
        self.unread.len() - on_the_way
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
        let number = entry.number;
        self.remove(number);
        let key = Key::from(&*entry.message);
        self.count(&key.originator);
        self.by_key.insert(key, number);
        let read = if entry.read.is_some() { &mut self.read } else { &mut self.unread };
        read.insert(number);
        self.valid_until.insert((entry.message.deadline(), number));
        self.entries.insert(number, entry);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Arrived> {
        let entry = self.entries.remove(&number)?;
        let key = Key::from(&*entry.message);
        self.by_key.remove(&key);
        self.count_less(&key.originator);
        self.read.remove(&number);
        self.unread.remove(&number);
        self.valid_until.remove(&(entry.message.deadline(), number));
        Some(entry)
    }

    /// What makes room: the oldest that was read, or else one whose validity is over.
    pub(super) fn oldest_done(&self, now: Duration) -> Option<u64> {
        let over = self.valid_until.first().filter(|(until, _)| *until <= now);
        self.read.first().copied().or(over.map(|(_, number)| *number))
    }

    /// Remembers a message.
    pub(super) fn remember(&mut self, key: Key, digest: Digest, until: Duration) {
        self.forget(&key);
        self.count(&key.originator);
        self.seen.insert(key.clone(), (digest, until));
        self.seen_until.insert((until, key));
    }

    pub(super) fn forget(&mut self, key: &Key) {
        if let Some((key, (_, until))) = self.seen.remove_entry(key) {
            self.count_less(&key.originator);
            self.seen_until.remove(&(until, key));
        }
    }

    fn count(&mut self, originator: &Arc<str>) {
        // bound: as many as there are messages.
        *self.counts.entry(originator.clone()).or_default() += 1;
    }

    fn count_less(&mut self, originator: &str) {
        match self.counts.get_mut(originator) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(originator)),
        }
    }

    /// The next that cannot come again at `now`.
    pub(super) fn next_over(&mut self, now: Duration) -> Option<Key> {
        let (_, key) = self.seen_until.first().filter(|(until, _)| *until <= now)?;
        let key = key.clone();
        self.forget(&key);
        Some(key)
    }

    /// When the next cannot come again.
    pub(super) fn wake_at(&self) -> Option<Duration> {
        self.seen_until.first().map(|(until, _)| *until)
    }
}
