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

/// One node.
#[derive(Debug, Default)]
struct Peer {
    queue: BTreeSet<(Precedence, u64)>,
    in_flight: usize,
    /// The last pause; zero while the node answers.
    pause: Duration,
    blocked_until: Duration,
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
    pub(super) fn push(&mut self, peer: &Arc<str>, precedence: Precedence, number: u64) {
        // bound: nodes are those of the configuration, numbers those of the outbox and of receipts.
        self.peers.entry(peer.clone()).or_default().queue.insert((precedence, number));
    }

    /// Takes something out of all queues.
    pub(super) fn drop_item(&mut self, precedence: Precedence, number: u64) {
        for peer in self.peers.values_mut() {
            peer.queue.remove(&(precedence, number));
        }
    }

    /// What a node gets next, if it may get something now.
    pub(super) fn next(&mut self, now: Duration, name: &str) -> Option<u64> {
        let peer = self.peers.get_mut(name)?;
        // Whether a node that did not answer does again is found with one request.
        let window = if peer.pause.is_zero() { self.retry.window } else { 1 };
        if peer.in_flight >= window || now < peer.blocked_until {
            return None;
        }
        let (_, number) = peer.queue.pop_first()?;
        peer.in_flight += 1;
        Some(number)
    }

    /// A request was not made after all.
    pub(super) fn release(&mut self, name: &str) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.in_flight = peer.in_flight.saturating_sub(1);
        }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self, name: &str) {
        if let Some(peer) = self.peers.get_mut(name) {
            peer.in_flight = peer.in_flight.saturating_sub(1);
            (peer.pause, peer.blocked_until) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// A request was not answered, or the node has no room: it is left alone for a while, between
    /// one half and all of a pause that doubles.
    pub(super) fn failed(&mut self, now: Duration, name: &str) {
        let Some(peer) = self.peers.get_mut(name) else { return };
        peer.in_flight = peer.in_flight.saturating_sub(1);
        if now < peer.blocked_until {
            // Several requests at once failed for one reason.
            return;
        }
        let pause = peer.pause.saturating_mul(2);
        peer.pause = pause.clamp(self.retry.first, self.retry.longest);
        let part = JITTER_PARTS / 2 + self.random.below(JITTER_PARTS / 2 + 1);
        peer.blocked_until = now + peer.pause * part / JITTER_PARTS;
    }

    /// Nodes for which something waits that can be sent now.
    pub(super) fn ready(&self, now: Duration) -> Vec<Arc<str>> {
        let is_ready =
            |(_, peer): &(&Arc<str>, &Peer)| !peer.queue.is_empty() && peer.blocked_until <= now;
        self.peers.iter().filter(is_ready).map(|(name, _)| name.clone()).collect()
    }

    /// When the next node may be tried again.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        let waiting = self.peers.values().filter(|peer| !peer.queue.is_empty());
        waiting.map(|peer| peer.blocked_until).filter(|at| *at > now).min()
    }

    /// How many things wait for all nodes.
    pub(super) fn waiting(&self) -> usize {
        self.peers.values().map(|peer| peer.queue.len()).sum()
    }
}
