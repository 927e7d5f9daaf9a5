//! What the gateway remembers of exchanges, so that none is forwarded twice and an edge that lost
//! its carrier can learn what became of its request. Bounded in number and in bytes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use coding::ExchangeId;
use proto::exchange::{Data, Part};

use crate::config::{MAX_OUTCOMES, RETAINED_EXCHANGE_BYTES};
use crate::ids::CarrierId;

/// The parts of an answer as they were sent, for as long as they are few enough to keep.
#[derive(Debug, Default)]
pub(crate) struct Log {
    parts: Vec<Part>,
    bytes: usize,
    overflowed: bool,
}

impl Log {
    /// Keeps a part of `bytes` encoded bytes, or gives up when the answer grows too large.
    pub(crate) fn push(&mut self, part: &Part, bytes: usize) {
        self.bytes += bytes + size_of::<Part>();
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

/// An edge that said HELLO.
#[derive(Debug)]
struct Edge {
    /// Whose instance it is.
    peer: String,
    /// Numbers up to this may have been known once.
    forgotten: u64,
    /// Nothing of it was forgotten before it said HELLO first.
    whole: bool,
    greeted: u64,
    /// The last question about each of its exchanges that were asked about.
    asked: BTreeMap<u64, Question>,
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
    /// Those that are over, the oldest first.
    over: VecDeque<ExchangeId>,
    /// Those of `over` whose answer is kept, the oldest first.
    kept: VecDeque<ExchangeId>,
    edges: BTreeMap<u64, Edge>,
    greetings: u64,
    /// An edge had to be forgotten: one that seems new may not be.
    forgot_edges: bool,
    retained_bytes: usize,
    limit_bytes: usize,
}

impl Outcomes {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            over: VecDeque::new(),
            kept: VecDeque::new(),
            edges: BTreeMap::new(),
            greetings: 0,
            forgot_edges: false,
            retained_bytes: 0,
            limit_bytes,
        }
    }

    /// Notes an edge's HELLO; `false` when the instance is another peer's, and may not become this
    /// one's. Of too many edges the one is forgotten that said HELLO first of those that `is_here`
    /// tells to have no carrier, if there are any.
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
            if may_move {
                peer.clone_into(&mut edge.peer);
            }
            return edge.peer == peer;
        }
        let full = self.edges.len() >= MAX_OUTCOMES;
        let all = self.edges.iter().filter(|_| full);
        let least = all.min_by_key(|(id, edge)| (is_here(**id), edge.greeted));
        if let Some(least) = least.map(|(id, _)| *id) {
            self.edges.remove(&least);
            self.forgot_edges = true;
            self.forget_all_of(least);
        }
        let (peer, whole) = (peer.to_owned(), !self.forgot_edges);
        let edge = Edge { peer, forgotten: 0, whole, greeted, asked: BTreeMap::new() };
        self.edges.insert(instance, edge);
        true
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
        self.over.retain(|over| *over != exchange);
        self.kept.retain(|kept| *kept != exchange);
        self.known.remove(&exchange);
    }

    /// Notes that an exchange began.
    pub(crate) fn begin(&mut self, exchange: ExchangeId) {
        self.known.insert(exchange, Outcome::Running);
    }

    /// Notes how an open exchange ended; the oldest that are over make room.
    pub(crate) fn end(&mut self, exchange: ExchangeId, outcome: Outcome) {
        let Some(known @ Outcome::Running) = self.known.get_mut(&exchange) else { return };
        let kept = match &outcome {
            Outcome::Answered { log, .. } => log.held_bytes(),
            _ => 0,
        };
        *known = outcome;
        self.over.push_back(exchange);
        if kept > 0 {
            self.retained_bytes += kept;
            self.kept.push_back(exchange);
        }
        while self.retained_bytes > self.limit_bytes {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.drop_log(oldest);
        }
        while self.over.len() > MAX_OUTCOMES {
            let Some(oldest) = self.over.pop_front() else { break };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, exchange: ExchangeId) {
        if self.kept.front() == Some(&exchange) {
            self.kept.pop_front();
        }
        self.drop_log(exchange);
        self.known.remove(&exchange);
        if let Some(edge) = self.edges.get_mut(&exchange.instance) {
            edge.asked.remove(&exchange.number);
            edge.forgotten = edge.forgotten.max(exchange.number);
        }
    }

    fn forget_all_of(&mut self, instance: u64) {
        let is_theirs = |exchange: &ExchangeId| exchange.instance == instance;
        let theirs: Vec<_> = self.over.iter().copied().filter(is_theirs).collect();
        self.over.retain(|exchange| !is_theirs(exchange));
        self.kept.retain(|exchange| !is_theirs(exchange));
        theirs.into_iter().for_each(|exchange| self.forget(exchange));
    }

    fn drop_log(&mut self, exchange: ExchangeId) {
        if let Some(Outcome::Answered { log, .. }) = self.known.get_mut(&exchange) {
            self.retained_bytes -= log.held_bytes();
            log.give_up();
        }
    }
}
