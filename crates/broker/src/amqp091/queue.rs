//! Queues: what waits for consumers, and who they are (AMQP 0.9.1 §3.1.2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::arguments::{Arguments, Overflow};
use crate::ids::ConnectionId;

/// A message. All queues that have it share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The exchange that it was published to.
    pub(super) exchange: Arc<str>,
    pub(super) key: Arc<str>,
    /// Flags and properties, as they are on the wire.
    pub(super) properties: Bytes,
    pub(super) body: Bytes,
    /// Durable queues keep it over a restart.
    pub(super) persistent: bool,
    pub(super) priority: u8,
    /// How long it is of use from when a queue gets it.
    pub(super) ttl: Option<Duration>,
}

impl Message {
    /// Memory that it takes, as bounds count it.
    pub(super) fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.properties.len() + self.body.len()
    }
}

/// Where a message is in its queue: those of higher priority first, then in order. It keeps its
/// position while a consumer has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// 255 less the priority.
    rank: u8,
    /// Its number in the queue, from 1.
    pub(super) number: u64,
}

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) position: Position,
    pub(super) message: Arc<Message>,
    /// When it is of no use any more.
    pub(super) deadline: Option<Duration>,
    /// It was given to a consumer before.
    pub(super) redelivered: bool,
    /// It is in the store.
    pub(super) is_stored: bool,
}

impl Entry {
    /// Of a message that was in no queue.
    pub(super) fn unqueued(message: Arc<Message>) -> Self {
        let position = Position { rank: u8::MAX, number: 0 };
        Self { position, message, deadline: None, redelivered: false, is_stored: false }
    }
}

/// A consumer: its connection, channel and tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConsumerId {
    pub(super) connection: ConnectionId,
    pub(super) channel: u16,
    pub(super) tag: Arc<str>,
}

/// How long, and how much, queues hold that do not say it themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) max_length: usize,
    pub(super) max_bytes: usize,
    pub(super) overflow: Overflow,
}

/// Whether a queue took a message, and what had to go for it.
#[derive(Debug)]
pub(super) enum Pushed {
    /// It did; these made room.
    Taken { entry: Entry, dropped: Vec<Entry> },
    /// It did not.
    Refused { to_dead_letters: bool },
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) durable: bool,
    /// Only this connection may use it, and it goes with that.
    pub(super) exclusive: Option<ConnectionId>,
    /// It goes with its last consumer.
    pub(super) auto_delete: bool,
    pub(super) arguments: Arguments,
    entries: BTreeMap<Position, Entry>,
    /// Of what waits.
    body_bytes: usize,
    /// Of what waits and what consumers have.
    held_bytes: usize,
    held: usize,
    /// Numbers of what the store has and consumers have.
    stored: BTreeSet<u64>,
    last_number: u64,
    /// The next to get something first.
    pub(super) consumers: VecDeque<ConsumerId>,
    /// The one consumer that there may be.
    pub(super) is_alone: bool,
    /// When it was of use last, for `x-expires`.
    pub(super) used: Duration,
}

impl Queue {
    pub(super) fn new(
        now: Duration,
        durable: bool,
        exclusive: Option<ConnectionId>,
        auto_delete: bool,
        arguments: Arguments,
    ) -> Self {
        Self {
            durable,
            exclusive,
            auto_delete,
            arguments,
            entries: BTreeMap::new(),
            body_bytes: 0,
            held_bytes: 0,
            held: 0,
            stored: BTreeSet::new(),
            last_number: 0,
            consumers: VecDeque::new(),
            is_alone: false,
            used: now,
        }
    }

    /// Messages that wait.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Memory of what waits and what consumers have.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a message, if its bounds allow.
    pub(super) fn push(
        &mut self,
        now: Duration,
        message: &Arc<Message>,
        bounds: &Bounds,
        is_stored: bool,
    ) -> Pushed {
        let max_length = self.arguments.max_length.unwrap_or(usize::MAX);
        let max_bytes = self.arguments.max_bytes.unwrap_or(usize::MAX);
        let overflow = self.arguments.overflow.unwrap_or(bounds.overflow);
        let (body, size) = (message.body.len(), message.size_bytes());
        let mut dropped = Vec::new();
        // What consumers have counts for the server's bounds, not for those of the queue.
        while self.entries.len() >= max_length
            || self.body_bytes + body > max_bytes
            || self.held >= bounds.max_length
            || self.held_bytes + size > bounds.max_bytes
        {
            let oldest = match overflow {
                Overflow::DropHead => self.pop(),
                Overflow::Reject | Overflow::RejectDeadLetter => None,
            };
            match oldest {
                Some(oldest) => {
                    self.release(&oldest);
                    dropped.push(oldest);
                }
                // With drop-head and nothing to drop, the new one is the oldest itself.
                None => {
                    self.restore_all(dropped);
                    let to_dead_letters = overflow != Overflow::Reject;
                    return Pushed::Refused { to_dead_letters };
                }
            }
        }
        let ttl = [self.arguments.message_ttl, message.ttl].into_iter().flatten().min();
        let number = self.last_number + 1;
        let deadline = ttl.map(|ttl| now.saturating_add(ttl));
        let entry = self.restore(number, message.clone(), deadline, is_stored);
        Pushed::Taken { entry, dropped }
    }

    fn restore_all(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.held += 1;
            self.held_bytes += entry.message.size_bytes();
            self.give_back(entry);
        }
    }

    /// Puts a message where its number says.
    pub(super) fn restore(
        &mut self,
        number: u64,
        message: Arc<Message>,
        deadline: Option<Duration>,
        is_stored: bool,
    ) -> Entry {
        let priority = message.priority.min(self.arguments.max_priority.unwrap_or(0));
        self.last_number = self.last_number.max(number);
        self.held += 1;
        self.held_bytes += message.size_bytes();
        let position = Position { rank: u8::MAX - priority, number };
        let entry = Entry { position, message, deadline, redelivered: false, is_stored };
        self.give_back(entry.clone());
        entry
    }

    /// The next that leaves.
    pub(super) fn front(&self) -> Option<&Entry> {
        self.entries.values().next()
    }

    /// Takes the next that leaves. It still counts, until it is [`Queue::release`]d or comes back.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let (_, entry) = self.entries.pop_first()?;
        self.body_bytes = self.body_bytes.saturating_sub(entry.message.body.len());
        if entry.is_stored {
            self.stored.insert(entry.position.number);
        }
        Some(entry)
    }

    /// Numbers of what the store has and consumers have.
    pub(super) fn stored(&self) -> &BTreeSet<u64> {
        &self.stored
    }

    /// What was taken comes back to its place.
    pub(super) fn give_back(&mut self, entry: Entry) {
        self.stored.remove(&entry.position.number);
        self.body_bytes += entry.message.body.len();
        self.entries.insert(entry.position, entry);
    }

    /// What was taken is done with.
    pub(super) fn release(&mut self, entry: &Entry) {
        self.stored.remove(&entry.position.number);
        self.held = self.held.saturating_sub(1);
        self.held_bytes = self.held_bytes.saturating_sub(entry.message.size_bytes());
    }

    /// Takes the next if it is of no use any more.
    pub(super) fn pop_expired(&mut self, now: Duration) -> Option<Entry> {
        let is_due = |entry: &Entry| entry.deadline.is_some_and(|deadline| deadline <= now);
        let entry = self.front().is_some_and(is_due).then(|| self.pop()).flatten()?;
        self.release(&entry);
        Some(entry)
    }

    /// Takes all that waits.
    pub(super) fn purge(&mut self) -> Vec<Entry> {
        let all: Vec<Entry> = std::mem::take(&mut self.entries).into_values().collect();
        all.iter().for_each(|entry| self.release(entry));
        self.body_bytes = 0;
        all
    }

    /// When something of it is due: its first message, or itself.
    pub(super) fn due(&self) -> Option<Duration> {
        let first = self.front().and_then(|entry| entry.deadline);
        [first, self.expires_at()].into_iter().flatten().min()
    }

    /// When it goes for want of use.
    pub(super) fn expires_at(&self) -> Option<Duration> {
        let expires = self.arguments.expires.filter(|_| self.consumers.is_empty())?;
        Some(self.used.saturating_add(expires))
    }

    /// Those who may get something now, the next first.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &ConsumerId> {
        let count = if self.arguments.is_single { 1 } else { usize::MAX };
        self.consumers.iter().take(count)
    }

    /// A consumer has got something: others are next.
    pub(super) fn rotate_behind(&mut self, at: usize) {
        if !self.arguments.is_single && at < self.consumers.len() {
            self.consumers.rotate_left(at + 1);
        }
    }

    /// A consumer goes; whether it was one.
    pub(super) fn remove_consumer(&mut self, now: Duration, consumer: &ConsumerId) -> bool {
        let before = self.consumers.len();
        self.consumers.retain(|other| other != consumer);
        let was = self.consumers.len() < before;
        if was && self.consumers.is_empty() {
            self.is_alone = false;
            self.used = now;
        }
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds =
        Bounds { max_length: 5, max_bytes: 1 << 20, overflow: Overflow::DropHead };

    fn message(body: &'static str, priority: u8) -> Arc<Message> {
        Arc::new(Message {
            exchange: "".into(),
            key: "k".into(),
            properties: Bytes::from_static(&[0, 0]),
            body: body.into(),
            persistent: false,
            priority,
            ttl: (body == "brief").then(|| Duration::from_secs(1)),
        })
    }

    fn queue(arguments: Arguments) -> Queue {
        Queue::new(Duration::ZERO, false, None, false, arguments)
    }

    fn push(queue: &mut Queue, body: &'static str, priority: u8) -> Pushed {
        queue.push(Duration::ZERO, &message(body, priority), &BOUNDS, false)
    }

    fn bodies(queue: &mut Queue) -> Vec<Bytes> {
        std::iter::from_fn(|| queue.pop()).map(|entry| entry.message.body.clone()).collect()
    }

    #[test]
    fn what_comes_back_stands_where_it_stood() {
        let mut queue = queue(Arguments::default());
        for body in ["a", "b", "c"] {
            push(&mut queue, body, 9);
        }
        let (first, second) = (queue.pop().unwrap(), queue.pop().unwrap());
        queue.give_back(second);
        queue.give_back(first);
        assert_eq!(bodies(&mut queue), ["a", "b", "c"]);
    }

    #[test]
    fn priorities_differ_where_it_was_asked() {
        let mut queue = queue(Arguments { max_priority: Some(5), ..Arguments::default() });
        for (body, priority) in [("a", 0), ("b", 7), ("c", 5), ("d", 1)] {
            push(&mut queue, body, priority);
        }
        assert_eq!(bodies(&mut queue), ["b", "c", "d", "a"]);
    }

    #[test]
    fn bounds_drop_the_oldest_or_refuse() {
        let mut one = queue(Arguments { max_length: Some(2), ..Arguments::default() });
        push(&mut one, "a", 0);
        push(&mut one, "b", 0);
        let Pushed::Taken { dropped, .. } = push(&mut one, "c", 0) else { panic!("refused") };
        assert_eq!(dropped.len(), 1);
        assert_eq!(bodies(&mut one), ["b", "c"]);
        let overflow = Some(Overflow::Reject);
        let mut one = queue(Arguments { max_bytes: Some(3), overflow, ..Arguments::default() });
        push(&mut one, "abc", 0);
        let refused = push(&mut one, "d", 0);
        assert!(matches!(refused, Pushed::Refused { to_dead_letters: false }));
        let mut none = queue(Arguments { max_length: Some(0), ..Arguments::default() });
        let refused = push(&mut none, "d", 0);
        assert!(matches!(refused, Pushed::Refused { to_dead_letters: true }));
    }

    #[test]
    fn what_consumers_have_counts_for_the_servers_bounds() {
        let mut queue = queue(Arguments::default());
        for _ in 0..5 {
            push(&mut queue, "x", 0);
        }
        let taken: Vec<Entry> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(matches!(push(&mut queue, "y", 0), Pushed::Refused { .. }));
        taken.iter().for_each(|entry| queue.release(entry));
        assert_eq!(queue.held_bytes, 0);
        assert!(matches!(push(&mut queue, "y", 0), Pushed::Taken { .. }));
    }

    #[test]
    fn the_first_expires_by_the_shorter_time() {
        let ttl = Some(Duration::from_secs(5));
        let mut queue = queue(Arguments { message_ttl: ttl, ..Arguments::default() });
        push(&mut queue, "brief", 0);
        push(&mut queue, "long", 0);
        assert_eq!(queue.due(), Some(Duration::from_secs(1)));
        assert!(queue.pop_expired(Duration::from_millis(999)).is_none());
        assert!(queue.pop_expired(Duration::from_secs(1)).is_some());
        assert_eq!(queue.due(), Some(Duration::from_secs(5)));
        assert_eq!(queue.purge().len(), 1);
    }
}
