//! The state of each topic: the last one written wins. A state has its place in its writer's log
//! and a stamp; what is known of each log is a number, up to which all of it that still counts has
//! come.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::wire::{Dot, Writer};
use crate::publication::Publication;

/// Topics without a state that are remembered, so that an older state from somewhere does not come
/// back, and bytes of their names: beyond them the oldest goes.
const MAX_ENDED: usize = 100_000;
const MAX_ENDED_BYTES: usize = 16 << 20;
/// Of how many it is looked at once whether all members know of them.
const MAX_LOOKED_AT: usize = 1000;
/// What no states come to.
const NO_STATES: u64 = 0x6c6f_6e67_7769_7265;
/// How long one is remembered when all members know of it.
const ENDED_LIFE: Duration = Duration::from_secs(60);

/// The state of a topic.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) dot: Dot,
    /// When it was written, by the clock of [`super::clock`].
    pub(super) stamp: u64,
    /// `None`: it was ended.
    pub(super) value: Option<Arc<Publication>>,
}

impl Held {
    /// Of two states of a topic the greater one counts.
    fn rank(&self) -> (u64, &Writer, u64) {
        (self.stamp, &self.dot.writer, self.dot.seq)
    }
}

/// What is known of a writer's log.
#[derive(Debug, Default)]
struct Log {
    /// Up to where.
    seq: u64,
    /// The states of it that count, by their place.
    topics: BTreeMap<u64, Arc<str>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct States {
    topics: BTreeMap<Arc<str>, Held>,
    logs: BTreeMap<Writer, Log>,
    /// Topics whose state was ended, by the stamp of that, and since when all members know of it.
    ended: BTreeMap<(u64, Arc<str>), Option<Duration>>,
    ended_bytes: usize,
    /// The last of them that was looked at.
    looked_at: Option<(u64, Arc<str>)>,
    deadlines: BTreeSet<(Duration, Arc<str>)>,
    /// Topics that are taken for ended since their value is not here any more.
    lost: BTreeSet<Arc<str>>,
    digest: u64,
}

impl States {
    /// The state of a topic, ended or not.
    pub(super) fn get(&self, topic: &str) -> Option<&Held> {
        self.topics.get(topic)
    }

    /// Topics that have a state.
    pub(super) fn topics(&self) -> impl Iterator<Item = (&Arc<str>, &Held)> {
        self.topics.iter().filter(|(_, held)| held.value.is_some())
    }

    /// How many topics have a state, and how many had one.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.topics.len() - self.ended.len(), self.ended.len())
    }

    /// What all states come to, but those that end by themselves.
    /// None at all are not 0 either, which is what is said before it is known.
    pub(super) fn digest(&self) -> u64 {
        self.digest ^ NO_STATES
    }

    /// Up to where a log is known.
    pub(super) fn seq(&self, writer: &Writer) -> u64 {
        self.logs.get(writer).map_or(0, |log| log.seq)
    }

    /// All logs that something is known of.
    pub(super) fn logs(&self) -> impl Iterator<Item = (&Writer, u64)> {
        self.logs.iter().map(|(writer, log)| (writer, log.seq))
    }

    /// Whether states of a log still count.
    pub(super) fn counts(&self, writer: &Writer) -> bool {
        self.logs.get(writer).is_some_and(|log| !log.topics.is_empty())
    }

    /// A log is known up to here; whether it was not.
    pub(super) fn reach(&mut self, dot: &Dot) -> bool {
        let log = self.logs.entry(dot.writer.clone()).or_default();
        let is_news = log.seq < dot.seq;
        log.seq = log.seq.max(dot.seq);
        is_news
    }

    /// Nothing is known of a log any more, none of whose states counts.
    pub(super) fn forget_log(&mut self, writer: &Writer) {
        self.logs.remove(writer);
    }

    /// The first state of a log that counts behind a place.
    pub(super) fn after(&self, writer: &Writer, seq: u64) -> Option<(u64, &Arc<str>, &Held)> {
        let log = self.logs.get(writer)?;
        let behind = log.topics.range(seq.saturating_add(1)..);
        // Nobody is told of the end of what has not ended.
        let (at, topic) = behind.into_iter().find(|(_, topic)| !self.lost.contains(*topic))?;
        self.topics.get(topic).map(|held| (*at, topic, held))
    }

    /// Whether a state would count.
    pub(super) fn is_newer(&self, topic: &str, held: &Held) -> bool {
        self.topics.get(topic).is_none_or(|known| {
            let is_back = held.value.is_some() && self.lost.contains(topic);
            known.rank() < held.rank() || is_back && known.rank() == held.rank()
        })
    }

    /// Takes a state whose value is not here any more: this member has lost it, or it was of no use
    /// any more. It comes back with the same rank, and is not given to others as ended.
    pub(super) fn lose(&mut self, topic: Arc<str>, held: Held) -> Vec<Arc<str>> {
        let gone = self.put(topic.clone(), Held { value: None, ..held });
        if self.topics.contains_key(&topic) {
            self.lost.insert(topic);
        }
        gone
    }

    /// Takes a state that counts ([`Self::is_newer`]). Returns topics of which nothing is
    /// remembered any more, for want of room.
    pub(super) fn put(&mut self, topic: Arc<str>, held: Held) -> Vec<Arc<str>> {
        self.remove(&topic);
        let log = self.logs.entry(held.dot.writer.clone()).or_default();
        log.topics.insert(held.dot.seq, topic.clone());
        match held.value.as_ref().map(|value| value.deadline) {
            None => {
                self.ended.insert((held.stamp, topic.clone()), None);
                self.ended_bytes += topic.len();
            }
            Some(Some(deadline)) => {
                self.deadlines.insert((deadline, topic.clone()));
            }
            Some(None) => self.digest ^= hash(&topic, &held),
        }
        self.topics.insert(topic, held);
        let mut gone = Vec::new();
        while self.ended.len() > MAX_ENDED || self.ended_bytes > MAX_ENDED_BYTES {
            let Some((_, oldest)) = self.ended.keys().next().cloned() else { break };
            self.remove(&oldest);
            gone.push(oldest);
        }
        gone
    }

    /// A topic is as if it never had a state.
    pub(super) fn remove(&mut self, topic: &Arc<str>) {
        let Some(old) = self.topics.remove(topic) else { return };
        if let Some(log) = self.logs.get_mut(&old.dot.writer) {
            log.topics.remove(&old.dot.seq);
        }
        match old.value.as_ref().map(|value| value.deadline) {
            None => {
                self.lost.remove(topic);
                self.ended.remove(&(old.stamp, topic.clone()));
                self.ended_bytes = self.ended_bytes.saturating_sub(topic.len());
            }
            Some(Some(deadline)) => {
                self.deadlines.remove(&(deadline, topic.clone()));
            }
            Some(None) => self.digest ^= hash(topic, &old),
        }
    }

    /// States that are of no use any more end, each at its member without a word.
    pub(super) fn expire(&mut self, now: Duration) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        while let Some((deadline, topic)) = self.deadlines.first().cloned() {
            if deadline > now {
                break;
            }
            let Some(held) = self.topics.get(&topic).cloned() else { break };
            let forgotten = self.put(topic.clone(), Held { value: None, ..held });
            gone.push(topic);
            gone.extend(forgotten);
        }
        gone
    }

    /// Forgets ended topics that every member has known of long enough; `knows` says whether all
    /// do by now. Not all are looked at, but those behind the ones of the last time.
    pub(super) fn forget_ended(
        &mut self,
        now: Duration,
        knows: impl Fn(&Dot) -> bool,
    ) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        let after = self.looked_at.take().map_or(Bound::Unbounded, Bound::Excluded);
        for (at, since) in self.ended.range_mut((after, Bound::Unbounded)).take(MAX_LOOKED_AT) {
            let topic = &at.1;
            self.looked_at = Some(at.clone());
            let is_known = self.topics.get(topic).is_some_and(|held| knows(&held.dot));
            match since {
                _ if !is_known => *since = None,
                None => *since = Some(now),
                Some(since) if now.saturating_sub(*since) >= ENDED_LIFE => {
                    gone.push(topic.clone());
                }
                Some(_) => {}
            }
        }
        gone.iter().for_each(|topic| self.remove(topic));
        gone
    }
}

/// FNV-1a, its bits spread, of what tells a state from others of its topic.
fn hash(topic: &str, held: &Held) -> u64 {
    let Dot { writer, seq } = &held.dot;
    let numbers = [held.stamp, writer.life, *seq].map(u64::to_be_bytes);
    let pieces = [topic.as_bytes(), &[0], writer.member.as_bytes(), numbers.as_flattened()];
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for byte in pieces.into_iter().flatten() {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    sum ^= sum >> 32;
    sum.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
