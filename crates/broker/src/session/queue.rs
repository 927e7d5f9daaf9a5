//! What waits for a session: the most urgent first, within one urgency in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proto::urgency::Urgency;

use crate::publication::{Grade, Publication};

/// Number of a lane's first entry: what is put back gets numbers below.
const FIRST: u64 = 1 << 32;

/// A publication for one session.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its number in the session's part of the store, from 1.
    pub(crate) number: u64,
    /// What is published.
    pub(crate) publication: Arc<Publication>,
    /// How often it may arrive here.
    pub(crate) grade: Grade,
    /// Whether the session learns of it as a retained message.
    pub(crate) retain: bool,
    /// It is in the store.
    pub(crate) stored: bool,
    /// What the client calls the subscriptions by which it comes; most clients call them nothing.
    pub(crate) identifiers: Option<Box<[u32]>>,
    /// The shared subscription by which it comes.
    pub(crate) shared: Option<Arc<str>>,
    /// A newer one of its topic may take its place.
    pub(crate) conflate: bool,
}

/// Of one urgency.
#[derive(Debug)]
struct Lane {
    urgency: Urgency,
    /// Number of the first entry.
    first: u64,
    /// `None` where an entry has been taken out of the middle.
    entries: VecDeque<Option<Entry>>,
}

/// By topic, the urgency and the number of an entry. Few queues have any.
#[derive(Debug, Default)]
struct Newest {
    of: BTreeMap<Arc<str>, (Urgency, u64)>,
}

/// See the module; its owner bounds it by [`Queue::len`] and [`Queue::bytes`].
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lanes: Vec<Lane>,
    len: usize,
    bytes: usize,
    /// Where the newest of a topic is that a newer one may replace.
    newest: Option<Box<Newest>>,
}

impl Queue {
    /// Messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next to leave.
    pub(crate) fn front(&self) -> Option<&Entry> {
        self.lanes.first()?.entries.front()?.as_ref()
    }

    /// Takes the next to leave.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let lane = self.lanes.first_mut()?;
        let entry = lane.entries.pop_front()??;
        lane.first += 1;
        self.forget(&entry);
        self.skip();
        Some(entry)
    }

    /// Takes what has waited longest among the least urgent.
    pub(crate) fn pop_least(&mut self) -> Option<Entry> {
        loop {
            let lane = self.lanes.last_mut()?;
            match lane.entries.pop_front() {
                Some(entry) => {
                    lane.first += 1;
                    if let Some(entry) = entry {
                        self.forget(&entry);
                        self.skip();
                        return Some(entry);
                    }
                }
                None => {
                    self.lanes.pop();
                }
            }
        }
    }

    /// Adds one at its end, or, where it may, in the place of an older one of its topic, which
    /// comes back.
    pub(crate) fn push(&mut self, entry: Entry) -> Option<Entry> {
        self.bytes += entry.size_bytes();
        let urgency = entry.publication.urgency;
        let topic = entry.conflate.then(|| entry.publication.topic.clone());
        if let Some(topic) = &topic
            && let Some((urgency, number)) = self.newest_of(topic)
            && let Some(waiting) = self.at(urgency, number)
        {
            let old = waiting.replace(entry);
            if let Some(old) = &old {
                self.bytes = self.bytes.saturating_sub(old.size_bytes());
            }
            return old;
        }
        let at = match self.lanes.binary_search_by_key(&urgency, |lane| lane.urgency) {
            Ok(at) => at,
            Err(at) => {
                self.lanes.insert(at, Lane { urgency, first: FIRST, entries: VecDeque::new() });
                at
            }
        };
        self.len += 1;
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.entries.push_back(Some(entry));
            if let Some(topic) = topic {
                let number = lane.first + lane.entries.len() as u64 - 1;
                self.newest.get_or_insert_default().of.insert(topic, (urgency, number));
            }
        }
        self.skip();
        None
    }

    /// Puts one back that has been taken, before all others of its urgency.
    pub(crate) fn push_front(&mut self, entry: Entry) {
        let urgency = entry.publication.urgency;
        let at = self.lanes.binary_search_by_key(&urgency, |lane| lane.urgency);
        let lane = at.ok().and_then(|at| self.lanes.get_mut(at));
        match lane {
            Some(lane) if lane.first > 0 => {
                lane.first -= 1;
                self.len += 1;
                self.bytes += entry.size_bytes();
                lane.entries.push_front(Some(entry));
            }
            _ => {
                self.push(Entry { conflate: false, ..entry });
            }
        }
    }

    /// Takes out all that are of no use any more.
    pub(crate) fn take_expired(&mut self, now: Duration) -> Vec<Entry> {
        let mut expired = Vec::new();
        for lane in &mut self.lanes {
            for place in &mut lane.entries {
                if place.as_ref().is_some_and(|entry| entry.publication.is_expired(now)) {
                    expired.extend(place.take());
                }
            }
        }
        for entry in &expired {
            self.forget(entry);
        }
        self.skip();
        expired
    }

    /// All, in the order in which they would leave.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> + '_ {
        std::iter::from_fn(|| self.pop())
    }

    /// Takes the one of a topic that a newer one may replace.
    pub(crate) fn take_newest(&mut self, topic: &str) -> Option<Entry> {
        let (urgency, number) = self.newest_of(topic)?;
        let entry = self.at(urgency, number)?.take()?;
        self.forget(&entry);
        self.skip();
        Some(entry)
    }

    fn newest_of(&self, topic: &str) -> Option<(Urgency, u64)> {
        self.newest.as_ref()?.of.get(topic).copied()
    }

    fn at(&mut self, urgency: Urgency, number: u64) -> Option<&mut Option<Entry>> {
        let at = self.lanes.binary_search_by_key(&urgency, |lane| lane.urgency).ok()?;
        let lane = self.lanes.get_mut(at)?;
        let at = usize::try_from(number.checked_sub(lane.first)?).ok()?;
        lane.entries.get_mut(at).filter(|entry| entry.is_some())
    }

    /// An entry has left.
    fn forget(&mut self, entry: &Entry) {
        self.len = self.len.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(entry.size_bytes());
        if let Some((urgency, number)) = self.newest_of(&entry.publication.topic)
            && self.at(urgency, number).is_none()
            && let Some(newest) = &mut self.newest
        {
            newest.of.remove(&entry.publication.topic);
            if newest.of.is_empty() {
                self.newest = None;
            }
        }
    }

    /// Takes out what is empty before the next to leave, so that it is in front.
    fn skip(&mut self) {
        let mut lanes = self.lanes.len();
        while let Some(lane) = self.lanes.first_mut() {
            match lane.entries.front() {
                Some(Some(_)) => return,
                Some(None) => {
                    lane.entries.pop_front();
                    lane.first += 1;
                }
                None => {
                    // Lanes of the usual urgency keep their memory, others are rare.
                    if lanes == 1 && lane.entries.capacity() <= 64 {
                        return;
                    }
                    lanes -= 1;
                    self.lanes.remove(0);
                }
            }
        }
    }
}

impl Entry {
    /// Bytes that it is counted with.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.publication.size_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Protocol;

    fn push(queue: &mut Queue, mut entry: Entry, conflate: bool) -> Option<Entry> {
        entry.conflate = conflate;
        queue.push(entry)
    }

    fn entry(topic: &str, payload: &'static str, urgency: u64) -> Entry {
        let mut publication = Publication::new(Protocol::Mqtt, topic, payload);
        publication.urgency = Urgency::new(urgency).unwrap();
        Entry {
            number: 0,
            publication: Arc::new(publication),
            grade: Grade::AtMostOnce,
            retain: false,
            stored: false,
            identifiers: None,
            shared: None,
            conflate: false,
        }
    }

    fn payloads(queue: &mut Queue) -> Vec<String> {
        queue
            .drain()
            .map(|entry| String::from_utf8(entry.publication.payload.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn the_most_urgent_leave_first_and_the_least_make_room() {
        let mut queue = Queue::default();
        for (payload, urgency) in [("a", 3), ("b", 7), ("c", 0), ("d", 3), ("e", 7)] {
            push(&mut queue, entry("t", payload, urgency), false);
        }
        assert_eq!(queue.pop_least().unwrap().publication.payload, "b");
        assert_eq!(queue.len(), 4);
        assert_eq!(payloads(&mut queue), ["c", "a", "d", "e"]);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn an_urgency_that_nothing_waits_of_hides_no_other() {
        let mut queue = Queue::default();
        for urgency in [3, 7, 1, 3] {
            queue.push(entry("t", "x", urgency));
            assert!(queue.front().is_some());
            assert!(queue.pop().is_some() && queue.front().is_none());
        }
        queue.push(entry("t", "x", 5));
        queue.pop_least();
        queue.push(entry("t", "y", 6));
        assert_eq!(queue.front().unwrap().publication.payload, "y");
    }

    #[test]
    fn a_newer_message_takes_the_place_of_the_older_one() {
        let mut queue = Queue::default();
        push(&mut queue, entry("a", "a1", 3), true);
        push(&mut queue, entry("b", "b1", 3), true);
        assert_eq!(push(&mut queue, entry("a", "a2", 3), true).unwrap().publication.payload, "a1");
        push(&mut queue, entry("a", "event", 3), false);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.pop().unwrap().publication.payload, "a2");
        assert!(push(&mut queue, entry("a", "a3", 3), true).is_none(), "the one before has left");
        assert_eq!(payloads(&mut queue), ["b1", "event", "a3"]);
        assert!(queue.newest.is_none() && queue.bytes() == 0);
    }

    #[test]
    fn what_is_expired_goes_from_the_middle() {
        let mut queue = Queue::default();
        for at in 0..10_u64 {
            let mut one = entry("t", "x", 3);
            let deadline = (at % 2 == 0).then(|| Duration::from_secs(at));
            Arc::get_mut(&mut one.publication).unwrap().deadline = deadline;
            queue.push(one);
        }
        assert_eq!(queue.take_expired(Duration::from_secs(4)).len(), 3);
        assert_eq!(queue.len(), 7);
        assert_eq!(payloads(&mut queue).len(), 7);
        assert_eq!(queue.bytes(), 0);
    }
}
