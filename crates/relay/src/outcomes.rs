//! What the gateway remembers of exchanges, so that none is forwarded twice and an edge that lost
//! its carrier can learn what became of its request. Bounded in number and in bytes: where there is
//! too much, the oldest goes of the peer that has most, so that none takes another's.

mod ranking;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use coding::ExchangeId;
use proto::exchange::{Data, Part};

use crate::config::{MAX_OUTCOMES, RETAINED_EXCHANGE_BYTES};
use crate::ids::CarrierId;
use ranking::Ranking;

/// The parts of an answer as they were sent, for as long as they are few enough to keep.
#[derive(Debug, Default)]
pub(crate) struct Log {
    parts: Vec<Part>,
    bytes: usize,
    /// Of the body, also of what is not kept.
    body_bytes: u64,
    overflowed: bool,
}

impl Log {
    /// Keeps a part of `bytes` encoded bytes, or gives up when the answer grows too large.
    pub(crate) fn push(&mut self, part: &Part, bytes: usize) {
        self.bytes += bytes + size_of::<Part>();
        if let Part::Data(Data { block_end: Some(decoded_bytes), .. }) = part {
            self.body_bytes += decoded_bytes;
        }
        if self.bytes > RETAINED_EXCHANGE_BYTES {
            self.give_up();
        }
        if !self.overflowed {
            self.parts.push(match part {
                // A copy of its own size: the piece shares the buffer that its block came in.
                Part::Data(data) => {
                    let bytes = Bytes::copy_from_slice(&data.bytes);
                    Part::Data(Data { bytes, ..data.clone() })
                }
                other => other.clone(),
            });
        }
    }

    /// Keeps no parts.
    pub(crate) fn give_up(&mut self) {
        self.overflowed = true;
        self.parts = Vec::new();
    }

    /// The parts so far, unless some were given up.
    pub(crate) fn parts(&self) -> Option<&[Part]> {
        (!self.overflowed).then_some(&self.parts)
    }

    /// The same for a peer, which may not take blocks that begin a context anew.
    pub(crate) fn parts_for(&self, takes_anew: bool) -> Option<&[Part]> {
        let is_anew = |part: &Part| matches!(part, Part::Data(data) if data.anew);
        self.parts().filter(|parts| takes_anew || !parts.iter().any(is_anew))
    }

    /// Bytes of body in all parts so far, kept or not.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn held_bytes(&self) -> usize {
        if self.overflowed { 0 } else { self.bytes }
    }
}

/// What became of an exchange.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is open here.
    Running,
    /// It was answered.
    Answered {
        /// Status of the answer.
        status: u16,
        /// The answer, while it is kept.
        log: Log,
        /// The request may be repeated.
        idempotent: bool,
        /// The carrier that all of it was given to.
        on: Option<CarrierId>,
    },
    /// Given up before the request was whole.
    Aborted,
}

impl Outcome {
    /// Bytes of the answer that are kept.
    fn held_bytes(&self) -> usize {
        match self {
            Self::Answered { log, .. } => log.held_bytes(),
            Self::Running | Self::Aborted => 0,
        }
    }
}

/// An edge that said HELLO.
#[derive(Debug)]
struct Edge {
    /// Whose instance it is.
    peer: Arc<str>,
    /// Numbers up to this may have been known once.
    forgotten: u64,
    /// Nothing of it was forgotten before it said HELLO first.
    whole: bool,
    greeted: u64,
    /// The last question about each of its exchanges that were asked about.
    asked: BTreeMap<u64, Question>,
}

/// A peer with edges that are known.
#[derive(Debug, Default)]
struct Peer {
    /// Its exchanges that are over, the oldest first.
    over: VecDeque<ExchangeId>,
    /// Those of them whose answer is kept, the oldest first.
    kept: VecDeque<ExchangeId>,
    /// An edge of it had to be forgotten: one that seems new may not be.
    forgot_edges: bool,
}

/// A question about an exchange.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// Its number, or where the edge has none that of its carrier, which are in order, too.
    at: u64,
    numbered: bool,
    carrier: CarrierId,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outcomes {
    /// Open ones are bounded by the relay's table of exchanges, the others by `over`.
    known: BTreeMap<ExchangeId, Outcome>,
    edges: BTreeMap<u64, Edge>,
    /// By name, those that have edges.
    peers: BTreeMap<Arc<str>, Peer>,
    /// How many edges, exchanges that are over, and bytes of answers each peer has here.
    edges_of: Ranking,
    over: Ranking,
    retained: Ranking,
    greetings: u64,
    /// An edge had to be forgotten: one of a peer that seems new may not be new.
    forgot_any: bool,
    /// Names of peers change hands: an edge may come back under any.
    without_keys: bool,
    limit_bytes: usize,
}

impl Outcomes {
    pub(crate) fn new(limit_bytes: usize, without_keys: bool) -> Self {
        Self {
            known: BTreeMap::new(),
            edges: BTreeMap::new(),
            peers: BTreeMap::new(),
            edges_of: Ranking::default(),
            over: Ranking::default(),
            retained: Ranking::default(),
            greetings: 0,
            forgot_any: false,
            without_keys,
            limit_bytes,
        }
    }

    /// Notes an edge's HELLO; `false` when the instance is another peer's, and may not become this
    /// one's. Of too many edges one goes: of those that `is_here` tells to have no carrier, if
    /// there are any, and of those of the peer that has most, the one that said HELLO first.
    pub(crate) fn greet(
        &mut self,
        instance: u64,
        peer: &str,
        may_move: bool,
        is_here: impl Fn(u64) -> bool,
    ) -> bool {
        self.greetings += 1;
        let greeted = self.greetings;
        if let Some(edge) = self.edges.get_mut(&instance) {
            edge.greeted = greeted;
            if may_move && *edge.peer != *peer {
                self.move_edge(instance, peer);
                return true;
            }
            return *edge.peer == *peer;
        }
        if self.edges.len() >= MAX_OUTCOMES {
            self.forget_an_edge(is_here);
        }
        let peer: Arc<str> = peer.into();
        self.edges_of.add(&peer, 1);
        let forgot_edges = self.forgot_any;
        let new = || Peer { forgot_edges, ..Peer::default() };
        let known = self.peers.entry(peer.clone()).or_insert_with(new);
        let whole = !(known.forgot_edges || self.without_keys && self.forgot_any);
        let edge = Edge { peer, forgotten: 0, whole, greeted, asked: BTreeMap::new() };
        self.edges.insert(instance, edge);
        true
    }

    /// One edge less, of the peer with most of those that have one to spare.
    fn forget_an_edge(&mut self, is_here: impl Fn(u64) -> bool) {
        let has = |edge: &Edge| self.edges_of.of(&edge.peer);
        let goes = self
            .edges
            .iter()
            .min_by_key(|(id, edge)| (is_here(**id), std::cmp::Reverse(has(edge)), edge.greeted));
        let Some(goes) = goes.map(|(id, _)| *id) else { return };
        self.forget_all_of(goes);
        let Some(edge) = self.edges.remove(&goes) else { return };
        let peer = self.peers.get_mut(&edge.peer);
        peer.into_iter().for_each(|peer| peer.forgot_edges = true);
        self.forgot_any = true;
        self.has_one_edge_less(&edge.peer);
    }

    /// A peer is forgotten with its last edge.
    fn has_one_edge_less(&mut self, name: &Arc<str>) {
        self.edges_of.take(name, 1);
        if self.edges_of.of(name) == 0 {
            self.peers.remove(name);
        }
    }

    /// The edge is of a peer of this name from now on, with all that is known of it.
    fn move_edge(&mut self, instance: u64, name: &str) {
        let name: Arc<str> = name.into();
        let Some(edge) = self.edges.get_mut(&instance) else { return };
        let before = std::mem::replace(&mut edge.peer, name.clone());
        let bytes = |id: &ExchangeId| self.known.get(id).map_or(0, Outcome::held_bytes);
        let mut old = self.peers.remove(&before).unwrap_or_default();
        let mut new = self.peers.remove(&name).unwrap_or_default();
        let is_its = |id: &ExchangeId| id.instance == instance;
        let (over, stay) = old.over.into_iter().partition::<VecDeque<_>, _>(is_its);
        old.over = stay;
        let (kept, stay) = old.kept.into_iter().partition::<VecDeque<_>, _>(is_its);
        old.kept = stay;
        let retained = kept.iter().map(bytes).sum();
        for (ranking, amount) in
            [(&mut self.over, over.len()), (&mut self.retained, retained), (&mut self.edges_of, 1)]
        {
            ranking.add(&name, amount);
        }
        self.over.take(&before, over.len());
        self.retained.take(&before, retained);
        // Under its new name it is the newest.
        new.over.extend(over);
        new.kept.extend(kept);
        self.peers.insert(before.clone(), old);
        self.peers.insert(name, new);
        self.has_one_edge_less(&before);
    }

    /// Notes that an edge asks about an exchange; `false` where it has asked later on another
    /// carrier. Of too many the oldest exchange is forgotten.
    pub(crate) fn ask(&mut self, exchange: ExchangeId, carrier: CarrierId, at: u64) -> bool {
        let Some(edge) = self.edges.get_mut(&exchange.instance) else { return true };
        let numbered = at > 0;
        let at = if numbered { at } else { carrier.0 };
        if let Some(last) = edge.asked.get(&exchange.number)
            && last.numbered == numbered
            && last.carrier != carrier
            && at <= last.at
        {
            return false;
        }
        edge.asked.insert(exchange.number, Question { at, numbered, carrier });
        let mut others = edge.asked.keys().copied().filter(|number| *number != exchange.number);
        let oldest = others.next().filter(|_| edge.asked.len() > MAX_OUTCOMES);
        if let Some(oldest) = oldest {
            edge.asked.remove(&oldest);
            edge.forgotten = edge.forgotten.max(oldest);
        }
        true
    }

    /// The last carrier of an edge is gone: nothing comes late any more.
    pub(crate) fn forget_questions(&mut self, instance: u64) {
        self.edges.get_mut(&instance).into_iter().for_each(|edge| edge.asked.clear());
    }

    /// Whether an exchange was asked about on a carrier on which it alone may come from then on: a
    /// request that comes over this one comes late.
    pub(crate) fn is_asked_elsewhere(&self, exchange: ExchangeId, carrier: CarrierId) -> bool {
        let asked = self.edges.get(&exchange.instance).map(|edge| &edge.asked);
        asked.and_then(|asked| asked.get(&exchange.number)).is_some_and(|last| {
            // Without numbers an edge asks once, and goes on by whichever carrier is new.
            last.carrier != carrier && (last.numbered || carrier < last.carrier)
        })
    }

    pub(crate) fn get(&self, exchange: ExchangeId) -> Option<&Outcome> {
        self.known.get(&exchange)
    }

    /// Whether the exchange may have been here though nothing is known of it any more.
    pub(crate) fn may_be_forgotten(&self, exchange: ExchangeId) -> bool {
        let edge = self.edges.get(&exchange.instance);
        edge.is_none_or(|edge| !edge.whole || exchange.number <= edge.forgotten)
    }

    /// Whether a request with this id must not be forwarded: it was, or its number is spent.
    pub(crate) fn was_here(&self, exchange: ExchangeId) -> bool {
        let edge = self.edges.get(&exchange.instance);
        self.known.contains_key(&exchange)
            || edge.is_some_and(|edge| exchange.number <= edge.forgotten)
    }

    /// The edge may send the request of an exchange that is over again.
    pub(crate) fn revive(&mut self, exchange: ExchangeId) {
        self.drop_log(exchange);
        if let Some((name, peer)) = self.peer_of(exchange) {
            let before = peer.over.len();
            peer.over.retain(|over| *over != exchange);
            peer.kept.retain(|kept| *kept != exchange);
            let less = before - peer.over.len();
            self.over.take(&name, less);
        }
        self.known.remove(&exchange);
    }

    /// Notes that an exchange began.
    pub(crate) fn begin(&mut self, exchange: ExchangeId) {
        self.known.insert(exchange, Outcome::Running);
    }

    /// Notes how an open exchange ended; what is over makes room. Of an edge that was forgotten
    /// meanwhile nothing is kept.
    pub(crate) fn end(&mut self, exchange: ExchangeId, outcome: Outcome) {
        let Some(known @ Outcome::Running) = self.known.get_mut(&exchange) else { return };
        let kept = outcome.held_bytes();
        *known = outcome;
        let Some((name, peer)) = self.peer_of(exchange) else {
            self.known.remove(&exchange);
            return;
        };
        peer.over.push_back(exchange);
        if kept > 0 {
            peer.kept.push_back(exchange);
        }
        self.over.add(&name, 1);
        self.retained.add(&name, kept);
        while self.retained.total() > self.limit_bytes {
            let most = self.retained.most().and_then(|most| self.peers.get_mut(&most));
            let Some(oldest) = most.and_then(|peer| peer.kept.pop_front()) else { break };
            self.drop_log(oldest);
        }
        while self.over.total() > MAX_OUTCOMES {
            let most = self.over.most().and_then(|most| self.peers.get(&most));
            let Some(oldest) = most.and_then(|peer| peer.over.front().copied()) else { break };
            self.forget(oldest);
        }
    }

    /// The oldest of its peer that is over is known no more, but for its number.
    fn forget(&mut self, exchange: ExchangeId) {
        self.drop_log(exchange);
        self.known.remove(&exchange);
        if let Some(edge) = self.edges.get_mut(&exchange.instance) {
            edge.asked.remove(&exchange.number);
            edge.forgotten = edge.forgotten.max(exchange.number);
        }
        let Some((name, peer)) = self.peer_of(exchange) else { return };
        for queue in [&mut peer.over, &mut peer.kept] {
            queue.pop_front_if(|front| *front == exchange);
        }
        self.over.take(&name, 1);
    }

    /// Nothing that is over is known of an edge any more.
    fn forget_all_of(&mut self, instance: u64) {
        let of_it = ExchangeId { instance, number: 0 };
        let Some((name, peer)) = self.peer_of(of_it) else { return };
        let is_its = |exchange: &ExchangeId| exchange.instance == instance;
        let over = std::mem::take(&mut peer.over).into_iter();
        let (theirs, stay): (VecDeque<_>, _) = over.partition(is_its);
        peer.over = stay;
        peer.kept.retain(|exchange| !is_its(exchange));
        for exchange in &theirs {
            self.drop_log(*exchange);
            self.known.remove(exchange);
        }
        self.over.take(&name, theirs.len());
    }

    fn peer_of(&mut self, exchange: ExchangeId) -> Option<(Arc<str>, &mut Peer)> {
        let name = self.edges.get(&exchange.instance)?.peer.clone();
        let peer = self.peers.get_mut(&name)?;
        Some((name, peer))
    }

    fn drop_log(&mut self, exchange: ExchangeId) {
        let Some(name) = self.edges.get(&exchange.instance).map(|edge| edge.peer.clone()) else {
            return;
        };
        if let Some(Outcome::Answered { log, .. }) = self.known.get_mut(&exchange) {
            self.retained.take(&name, log.held_bytes());
            log.give_up();
        }
    }
}
