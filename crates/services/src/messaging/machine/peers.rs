//! The nodes that this one sends to: what waits for each, by precedence; when it is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::messaging::message::Precedence;
use crate::random::Random;

/// Parts of a pause by which it is drawn.
const JITTER_PARTS: u32 = 1000;

/// How a node is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Pause after the first failure; doubled with each that follows.
    pub first: Duration,
    /// Longest pause.
    pub longest: Duration,
    /// Most requests at once.
    pub window: usize,
}

/// After how many items in a row that a node did not take it is left alone for a while: no more
/// requests are of use to one that has no room at all.
const MAX_MISSES: u32 = 32;

/// Something that goes to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) precedence: Precedence,
    /// Its number at this node.
    pub(super) number: u64,
    /// Whether it is tried once and no more. Over datagrams nobody says that such a one is lost, so
    /// that it waits for its answer all its time: what is tried again does not wait for it.
    pub(super) is_once: bool,
}

/// What waits for a node, and how much of it the node has not answered.
#[derive(Debug, Default)]
struct Lane {
    /// What can be sent: the more urgent first, of these what failed less often.
    queue: BTreeSet<(Precedence, u32, u64)>,
    /// Requests that have not ended, by precedence.
    in_flight: BTreeMap<Precedence, usize>,
}

impl Lane {
    /// What goes next, where a window has room for it. What is more urgent than all that is under
    /// way does not wait for that: long messages may take minutes. Beyond the window there are so
    /// three at most, one of each precedence above routine.
    fn next(&self, window: usize) -> Option<(Precedence, u32, u64)> {
        let next = self.queue.first().copied()?;
        let most_urgent = self.in_flight.keys().next();
        let has_room = self.in_flight.values().sum::<usize>() < window;
        let goes_ahead = most_urgent.is_some_and(|most_urgent| next.0 < *most_urgent);
        (has_room || goes_ahead).then_some(next)
    }

    fn begin(&mut self, (precedence, round, number): (Precedence, u32, u64)) {
        self.queue.remove(&(precedence, round, number));
        *self.in_flight.entry(precedence).or_default() += 1;
    }

    fn end(&mut self, precedence: Precedence) {
        match self.in_flight.get_mut(&precedence) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.in_flight.remove(&precedence)),
        }
    }
}

/// One node.
#[derive(Debug, Default)]
struct Peer {
    /// What is tried again, and what is tried once.
    lanes: [Lane; 2],
    /// What failed while the node answered, and when it comes back into the queue. The others go
    /// in the meantime.
    later: BTreeSet<(Duration, Item)>,
    /// How often something failed, and until when it was left alone.
    rounds: BTreeMap<u64, (u32, Duration)>,
    /// Items in a row that it did not take.
    misses: u32,
    /// The last pause; zero while the node answers.
    pause: Duration,
    blocked_until: Duration,
}

impl Peer {
    fn lane(&mut self, is_once: bool) -> &mut Lane {
        let [again, once] = &mut self.lanes;
        if is_once { once } else { again }
    }

    fn round(&self, number: u64) -> u32 {
        self.rounds.get(&number).map_or(0, |(round, _)| *round)
    }

    fn has_queued(&self) -> bool {
        self.lanes.iter().any(|lane| !lane.queue.is_empty())
    }

    /// A request has ended.
    fn end(&mut self, item: &Item) {
        self.lane(item.is_once).end(item.precedence);
    }

    /// Puts what was left alone long enough back into the queue.
    fn resume(&mut self, now: Duration) {
        while let Some((at, item)) = self.later.first().copied()
            && at <= now
        {
            self.later.pop_first();
            let round = self.round(item.number);
            self.lane(item.is_once).queue.insert((item.precedence, round, item.number));
        }
    }

    /// Leaves the node alone for a while, between one half and all of a pause that doubles.
    fn block(&mut self, now: Duration, retry: &Retry, random: &mut Random) {
        if now < self.blocked_until {
            // Several requests at once failed for one reason.
            return;
        }
        let pause = self.pause.saturating_mul(2);
        self.pause = pause.clamp(retry.first, retry.longest);
        self.blocked_until = now + drawn(self.pause, random);
    }
}

/// Between one half and all of a pause.
fn drawn(pause: Duration, random: &mut Random) -> Duration {
    let part = JITTER_PARTS / 2 + random.below(JITTER_PARTS / 2 + 1);
    pause * part / JITTER_PARTS
}

/// See the module.
#[derive(Debug)]
pub(super) struct Peers {
    peers: BTreeMap<Arc<str>, Peer>,
    retry: Retry,
    random: Random,
}

impl Peers {
    pub(super) fn new(retry: Retry, seed: u64) -> Self {
        Self { peers: BTreeMap::new(), retry, random: Random::new(seed, 0) }
    }

    /// Puts something into a node's queue.
    pub(super) fn push(&mut self, peer: &Arc<str>, item: Item) {
        let Item { precedence, number, is_once } = item;
        // bound: nodes are those of the configuration, numbers those of the outbox and of receipts.
        let peer = self.peers.entry(peer.clone()).or_default();
        let known = peer.rounds.get(&number).copied();
        let queue = &mut peer.lane(is_once).queue;
        match known {
            Some((round, _)) if queue.contains(&(precedence, round, number)) => {}
            Some((_, at)) => drop(peer.later.insert((at, item))),
            None => drop(queue.insert((precedence, 0, number))),
        }
    }

    /// Takes something out of all queues.
    pub(super) fn drop_item(&mut self, item: Item) {
        for peer in self.peers.values_mut() {
            let (round, at) = peer.rounds.remove(&item.number).unwrap_or_default();
            peer.lane(item.is_once).queue.remove(&(item.precedence, round, item.number));
            peer.later.remove(&(at, item));
        }
    }

    /// What a node gets next, if it may get something now.
    pub(super) fn next(&mut self, now: Duration, name: &str) -> Option<Item> {
        let peer = self.peers.get_mut(name)?;
        peer.resume(now);
        // Whether a node that did not answer does again is found with one request; and what took
        // too long beside others has the link to itself.
        let is_good = peer.pause.is_zero() && peer.misses == 0;
        let window = if is_good { self.retry.window } else { 1 };
        if now < peer.blocked_until {
            return None;
        }
        let [again, once] = &peer.lanes;
        let again = again.next(window).map(|next| (next, false));
        let once = once.next(window).map(|next| (next, true));
        let ((precedence, round, number), is_once) = again.into_iter().chain(once).min()?;
        peer.lane(is_once).begin((precedence, round, number));
        Some(Item { precedence, number, is_once })
    }

    /// How often a node did not take something.
    pub(super) fn round(&self, name: &str, number: u64) -> u32 {
        self.peers.get(name).map_or(0, |peer| peer.round(number))
    }

    /// A request was not made after all, or nobody wants to know any more what came of it.
    pub(super) fn release(&mut self, name: &str, item: &Item) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.end(item);
            peer.rounds.remove(&item.number);
        }
    }

    /// A request was answered for good.
    pub(super) fn answered(&mut self, name: &str, item: &Item) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.end(item);
            peer.rounds.remove(&item.number);
            peer.misses = 0;
            (peer.pause, peer.blocked_until) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// A node was not reached: it is left alone for a while.
    pub(super) fn failed(&mut self, now: Duration, name: &str, item: &Item) {
        let Some(peer) = self.peers.get_mut(name) else { return };
        peer.end(item);
        peer.block(now, &self.retry, &mut self.random);
    }

    /// A node was reached and did not take this, or that cannot be told: this is left alone for a
    /// while that doubles each time, and what else waits goes on. What is tried once says nothing
    /// of what else goes there.
    pub(super) fn missed(&mut self, now: Duration, name: &str, item: &Item) {
        if item.is_once {
            return self.release(name, item);
        }
        let Some(peer) = self.peers.get_mut(name) else { return };
        peer.end(item);
        let round = peer.round(item.number).saturating_add(1);
        let doubled = self.retry.first.saturating_mul(1 << (round - 1).min(16));
        let pause = drawn(doubled.min(self.retry.longest), &mut self.random);
        // bound: numbers that wait for this node.
        peer.rounds.insert(item.number, (round, now + pause));
        peer.misses = peer.misses.saturating_add(1);
        if peer.misses.is_multiple_of(MAX_MISSES) {
            peer.block(now, &self.retry, &mut self.random);
        }
    }

    /// Nodes for which something waits that can be sent now.
    pub(super) fn ready(&self, now: Duration) -> Vec<Arc<str>> {
        let is_ready = |(_, peer): &(&Arc<str>, &Peer)| {
            let is_due = peer.later.first().is_some_and(|(at, _)| *at <= now);
            (is_due || peer.has_queued()) && peer.blocked_until <= now
        };
        self.peers.iter().filter(is_ready).map(|(name, _)| name.clone()).collect()
    }

    /// When the next node may be tried again.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        let times = self.peers.values().flat_map(|peer| {
            let queued = peer.has_queued().then_some(peer.blocked_until);
            let later = peer.later.first().map(|(at, _)| (*at).max(peer.blocked_until));
            [queued, later]
        });
        times.flatten().filter(|at| *at > now).min()
    }

    /// How many things are remembered to have failed.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.peers.values().map(|peer| peer.rounds.len()).sum()
    }

    /// How many things wait for all nodes.
    pub(super) fn waiting(&self) -> usize {
        let of_peer = |peer: &Peer| {
            peer.lanes.iter().map(|lane| lane.queue.len()).sum::<usize>() + peer.later.len()
        };
        self.peers.values().map(of_peer).sum()
    }
}
