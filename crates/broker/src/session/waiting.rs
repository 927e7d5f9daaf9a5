//! What waits for a session: what is published now, and behind it what waited while its client was
//! away, where the operator wants that to leave slowly.

use std::time::Duration;

use proto::urgency::Urgency;

use super::queue::{Entry, Queue};

/// How much sooner than its turn something of the backlog may leave, so that a shell whose timers
/// are coarse keeps the rate.
const SLACK: Duration = Duration::from_millis(100);

/// See the module; its owner bounds it by [`Waiting::len`] and [`Waiting::bytes`].
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    live: Queue,
    /// Few sessions have one.
    backlog: Option<Box<Backlog>>,
}

#[derive(Debug)]
struct Backlog {
    queue: Queue,
    /// Time from one of its messages to the next.
    interval: Duration,
    /// When the next may leave.
    next_at: Duration,
}

/// What may leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The next of what is published now.
    Live,
    /// The next of the backlog.
    Backlog,
    /// Nothing before then.
    NotBefore(Duration),
    /// Nothing waits.
    Nothing,
}

impl Waiting {
    /// Messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.live.len() + self.backlog.as_ref().map_or(0, |backlog| backlog.queue.len())
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> usize {
        self.live.bytes() + self.backlog.as_ref().map_or(0, |backlog| backlog.queue.bytes())
    }

    /// Whether something waits that did not wait while the client was away.
    pub(crate) fn has_live(&self) -> bool {
        self.live.len() > 0
    }

    /// The client is back: what waits leaves with at least `interval` from one to the next from now
    /// on, behind what is published meanwhile; but for what is more urgent than usual. Comes back:
    /// what newer states have taken the place of.
    pub(crate) fn set_aside(&mut self, now: Duration, interval: Duration) -> Vec<Entry> {
        let mut live = std::mem::take(&mut self.live);
        let fresh = || Box::new(Backlog { queue: Queue::default(), interval, next_at: now });
        let backlog = self.backlog.get_or_insert_with(fresh);
        backlog.interval = interval;
        let mut superseded = Vec::new();
        for mut entry in live.drain() {
            let is_urgent = entry.publication.urgency < Urgency::DEFAULT;
            entry.conflate |= entry.publication.retain;
            let queue = if is_urgent { &mut self.live } else { &mut backlog.queue };
            superseded.extend(queue.push(entry));
        }
        self.settle();
        superseded
    }

    /// Whether something of what waited while the client was away waits still.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog.is_some()
    }

    /// The backlog leaves at another rate, or, with `None`, at once and first. Comes back: what
    /// newer states have taken the place of.
    pub(crate) fn hasten(&mut self, interval: Option<Duration>) -> Vec<Entry> {
        let (Some(backlog), interval) = (&mut self.backlog, interval) else { return Vec::new() };
        if let Some(interval) = interval {
            backlog.interval = interval;
            return Vec::new();
        }
        let mut all = Queue::default();
        let superseded = self.drain().filter_map(|entry| all.push(entry)).collect();
        self.live = all;
        superseded
    }

    /// What may leave now.
    pub(crate) fn turn(&self, now: Duration) -> Turn {
        match &self.backlog {
            _ if self.live.len() > 0 => Turn::Live,
            Some(backlog) if backlog.next_at <= now => Turn::Backlog,
            Some(backlog) => Turn::NotBefore(backlog.next_at),
            None => Turn::Nothing,
        }
    }

    /// The next to leave, by its turn.
    pub(crate) fn front(&self, turn: Turn) -> Option<&Entry> {
        match turn {
            Turn::Live => self.live.front(),
            Turn::Backlog => self.backlog.as_ref()?.queue.front(),
            Turn::NotBefore(_) | Turn::Nothing => None,
        }
    }

    /// Takes it.
    pub(crate) fn pop(&mut self, turn: Turn) -> Option<Entry> {
        match turn {
            Turn::Live => self.live.pop(),
            Turn::Backlog => {
                let backlog = self.backlog.as_mut()?;
                let entry = backlog.queue.pop();
                self.settle();
                entry
            }
            Turn::NotBefore(_) | Turn::Nothing => None,
        }
    }

    /// What was taken by its turn leaves: the next of the backlog waits.
    pub(crate) fn left(&mut self, turn: Turn, now: Duration) {
        if let (Turn::Backlog, Some(backlog)) = (turn, &mut self.backlog) {
            let begins = backlog.next_at.max(now.saturating_sub(SLACK));
            backlog.next_at = begins.saturating_add(backlog.interval);
        }
    }

    /// Takes what has waited longest among the least urgent, of the backlog first.
    pub(crate) fn pop_least(&mut self) -> Option<Entry> {
        let oldest = self.backlog.as_mut().and_then(|backlog| backlog.queue.pop_least());
        self.settle();
        oldest.or_else(|| self.live.pop_least())
    }

    /// Adds one at the end, or, where it may, instead of older ones of its topic, which come back.
    pub(crate) fn push(&mut self, entry: Entry) -> Vec<Entry> {
        let mut superseded = Vec::new();
        if let Some(backlog) = &mut self.backlog
            && entry.conflate
        {
            superseded.extend(backlog.queue.take_newest(&entry.publication.topic));
            self.settle();
        }
        superseded.extend(self.live.push(entry));
        superseded
    }

    /// Puts one back that has been taken, before all others of its urgency.
    pub(crate) fn push_front(&mut self, entry: Entry) {
        self.live.push_front(entry);
    }

    /// Takes out all that are of no use any more.
    pub(crate) fn take_expired(&mut self, now: Duration) -> Vec<Entry> {
        let mut expired = self.live.take_expired(now);
        if let Some(backlog) = &mut self.backlog {
            expired.extend(backlog.queue.take_expired(now));
        }
        self.settle();
        expired
    }

    /// All, what waited longer first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> + '_ {
        let backlog = self.backlog.take();
        let mut backlog = backlog.map(|backlog| backlog.queue);
        let older = std::iter::from_fn(move || backlog.as_mut()?.pop());
        older.chain(self.live.drain())
    }

    fn settle(&mut self) {
        if self.backlog.as_ref().is_some_and(|backlog| backlog.queue.len() == 0) {
            self.backlog = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::urgency::Urgency;

    use super::*;
    use crate::ids::Protocol;
    use crate::publication::{Grade, Publication};

    fn entry(topic: &str, payload: &'static str, urgency: u64, conflate: bool) -> Entry {
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
            conflate,
        }
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// What leaves at a time.
    fn leaves(waiting: &mut Waiting, now: Duration) -> Vec<String> {
        std::iter::from_fn(|| {
            let turn = waiting.turn(now);
            waiting.left(turn, now);
            waiting.pop(turn)
        })
        .map(|entry| String::from_utf8_lossy(&entry.publication.payload).into_owned())
        .collect()
    }

    #[test]
    fn what_waited_leaves_behind_what_comes_at_its_rate() {
        let mut waiting = Waiting::default();
        for payload in ["a", "b", "c", "d"] {
            waiting.push(entry("t", payload, 3, false));
        }
        waiting.push(entry("t", "urgent", 0, false));
        assert!(waiting.set_aside(at(1000), at(500)).is_empty());
        assert_eq!(waiting.len(), 5);
        waiting.push(entry("u", "now", 3, false));
        assert_eq!(leaves(&mut waiting, at(1000)), ["urgent", "now", "a"]);
        assert_eq!(waiting.turn(at(1001)), Turn::NotBefore(at(1500)));
        waiting.push(entry("u", "then", 3, false));
        assert_eq!(leaves(&mut waiting, at(2000)), ["then", "b"]);
        assert_eq!(leaves(&mut waiting, at(10_000)), ["c"], "no hoard of turns");
        assert_eq!(leaves(&mut waiting, at(10_499)), ["d"]);
        assert_eq!((waiting.turn(at(20_000)), waiting.bytes()), (Turn::Nothing, 0));
    }

    #[test]
    fn a_state_that_comes_takes_the_place_of_one_that_waited() {
        let mut waiting = Waiting::default();
        waiting.push(entry("a", "a1", 3, true));
        waiting.push(entry("b", "b1", 3, true));
        waiting.set_aside(at(0), at(1000));
        let old = waiting.push(entry("a", "a2", 3, true));
        assert_eq!((old.len(), &old[0].publication.payload[..]), (1, &b"a1"[..]));
        assert_eq!(waiting.len(), 2);
        // It is away again before all of that has left.
        waiting.push(entry("b", "b2", 3, false));
        assert!(waiting.set_aside(at(100), at(1000)).is_empty());
        assert_eq!(waiting.len(), 3);
        let all: Vec<_> = waiting.drain().map(|entry| entry.publication.payload.clone()).collect();
        assert_eq!(all, ["b1", "a2", "b2"]);
        assert_eq!((waiting.len(), waiting.bytes()), (0, 0));
    }

    #[test]
    fn a_rate_that_is_taken_back_holds_no_longer() {
        let mut waiting = Waiting::default();
        for payload in ["a", "b", "c"] {
            waiting.push(entry("t", payload, 3, false));
        }
        waiting.set_aside(at(0), at(1000));
        assert_eq!(leaves(&mut waiting, at(0)), ["a"]);
        assert!(waiting.hasten(Some(at(10))).is_empty());
        waiting.push(entry("t", "d", 3, false));
        assert!(waiting.hasten(None).is_empty() && !waiting.has_backlog());
        assert_eq!(leaves(&mut waiting, at(1)), ["b", "c", "d"]);
    }
}
