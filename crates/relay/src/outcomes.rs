//! What the gateway remembers of exchanges, so that none is forwarded twice and an edge that lost
//! its carrier can learn what became of its request. Bounded in number and in bytes.

use std::collections::{BTreeMap, VecDeque};

use proto::stream::Frame;

use crate::api::ExchangeId;
use crate::config::{MAX_OUTCOMES, RETAINED_EXCHANGE_BYTES};

/// The frames of an answer as they were sent, for as long as they are few enough to keep.
#[derive(Debug, Default)]
pub(crate) struct Log {
    frames: Vec<Frame>,
    bytes: usize,
    overflowed: bool,
}

impl Log {
    /// Keeps a frame of `bytes` encoded bytes, or gives up when the answer grows too large.
    pub(crate) fn push(&mut self, frame: &Frame, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > RETAINED_EXCHANGE_BYTES {
            self.give_up();
        }
        if !self.overflowed {
            self.frames.push(frame.clone());
        }
    }

    /// Keeps no frames.
    pub(crate) fn give_up(&mut self) {
        self.overflowed = true;
        self.frames = Vec::new();
    }

    /// The frames so far, unless some were given up.
    pub(crate) fn frames(&self) -> Option<&[Frame]> {
        (!self.overflowed).then_some(&self.frames)
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
    },
    /// Given up before the request was whole.
    Aborted,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outcomes {
    known: BTreeMap<ExchangeId, Outcome>,
    order: VecDeque<ExchangeId>,
    /// Per instance: numbers up to this may have been known once.
    forgotten: BTreeMap<u64, u64>,
    retained_bytes: usize,
    limit_bytes: usize,
}

impl Outcomes {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            order: VecDeque::new(),
            forgotten: BTreeMap::new(),
            retained_bytes: 0,
            limit_bytes,
        }
    }

    pub(crate) fn get(&self, exchange: ExchangeId) -> Option<&Outcome> {
        self.known.get(&exchange)
    }

    /// Whether the exchange may have been here though nothing is known of it any more.
    pub(crate) fn may_be_forgotten(&self, exchange: ExchangeId) -> bool {
        self.forgotten.get(&exchange.instance).is_some_and(|most| exchange.number <= *most)
    }

    /// Notes that an exchange began.
    pub(crate) fn begin(&mut self, exchange: ExchangeId) {
        self.known.insert(exchange, Outcome::Running);
        self.order.push_back(exchange);
        while self.order.len() > MAX_OUTCOMES {
            let Some(oldest) = self.order.pop_front() else { return };
            self.drop_log(oldest);
            self.known.remove(&oldest);
            let most = self.forgotten.entry(oldest.instance).or_default();
            *most = oldest.number.max(*most);
            if self.forgotten.len() > MAX_OUTCOMES {
                self.forgotten.pop_first();
            }
        }
    }

    /// Notes how an exchange ended; the oldest answers are let go when they are too many bytes.
    pub(crate) fn end(&mut self, exchange: ExchangeId, outcome: Outcome) {
        let Some(known) = self.known.get_mut(&exchange) else { return };
        if let Outcome::Answered { log, .. } = &outcome {
            self.retained_bytes += log.held_bytes();
        }
        *known = outcome;
        let oldest: Vec<_> = if self.retained_bytes > self.limit_bytes {
            self.order.iter().copied().collect()
        } else {
            Vec::new()
        };
        for old in oldest {
            if self.retained_bytes <= self.limit_bytes {
                break;
            }
            self.drop_log(old);
        }
    }

    fn drop_log(&mut self, exchange: ExchangeId) {
        if let Some(Outcome::Answered { log, .. }) = self.known.get_mut(&exchange) {
            self.retained_bytes -= log.held_bytes();
            log.give_up();
        }
    }
}
