//! The two ends of one exchange: a client with a request, an origin with an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use proto::bhttp;
use relay::{Cause, Input};

use crate::Random;
use crate::world::NodeId;

/// Bytes after which a body that changes is of the other sort.
const CHANGE_BYTES: u64 = 70_000;

/// A body whose every byte follows from its seed, so that none has to be kept for comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) len: u64,
    seed: u64,
}

impl Body {
    pub(crate) fn new(random: &mut Random) -> Self {
        let len = if random.once_in(4) { 0 } else { random.magnitude(18) };
        Self { len, seed: random.bits() }
    }

    /// Text-like for even seeds, such that it can be read for secrets; noise for odd ones. Some
    /// change on their way.
    fn byte(&self, at: u64) -> u8 {
        if at == 0 && self.seed.is_multiple_of(2) {
            return b'[';
        }
        let mixed = (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let mixed = u8::try_from(mixed).unwrap_or(0);
        let changed = self.seed % 8 >= 6 && at / CHANGE_BYTES % 2 == 1;
        if self.seed.is_multiple_of(2) != changed {
            b"<track id='00'/>"[(at % 16) as usize] ^ (mixed & 1)
        } else {
            mixed
        }
    }

    pub(crate) fn slice(&self, from: u64, len: u64) -> Bytes {
        (from..from + len).map(|at| self.byte(at)).collect::<Vec<_>>().into()
    }
}

/// Sends a body within the credit it was given.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) body: Body,
    pub(crate) credit: u64,
    pub(crate) at: u64,
    pub(crate) ended: bool,
    pub(crate) trailers: bool,
    /// When what was sent last goes, at first when it begins: portions keep their order.
    pub(crate) busy_until: Duration,
}

impl Sender {
    /// When the first portion may go.
    pub(crate) fn begins(&self) -> Duration {
        if self.at == 0 { self.busy_until } else { Duration::ZERO }
    }
}

/// As much of a body as its sender may hand over, in portions, and its end.
pub(crate) fn portions(
    sender: &mut Sender,
    exchange: ExchangeId,
    most: u64,
    now: Duration,
    random: &mut Random,
) -> Vec<(Duration, Input)> {
    let mut inputs = Vec::new();
    sender.busy_until = sender.busy_until.max(now);
    let last = sender.body.len.min(most);
    while sender.credit > 0 && sender.at < last {
        let len = (1 + random.below(40_000)).min(sender.credit).min(last - sender.at);
        sender.busy_until += Duration::from_millis(random.magnitude(6));
        let bytes = sender.body.slice(sender.at, len);
        inputs.push((sender.busy_until, Input::Data { exchange, bytes }));
        sender.at += len;
        sender.credit -= len;
    }
    if sender.at == sender.body.len && sender.at == last && most == u64::MAX && !sender.ended {
        sender.ended = true;
        let trailer = ("checksum".into(), "1".into());
        let trailers = if sender.trailers { vec![trailer] } else { Vec::new() };
        if random.once_in(3) {
            sender.busy_until += Duration::from_millis(random.below(100));
        }
        inputs.push((sender.busy_until, Input::End { exchange, trailers }));
    }
    inputs
}

/// Receives a body and compares it as it comes.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) body: Body,
    pub(crate) at: u64,
    pub(crate) credit: u64,
    pub(crate) ended: bool,
    pub(crate) headed: bool,
    /// Bytes taken at a time, and the pause after each.
    pub(crate) sip: u64,
    pub(crate) pause: Duration,
}

impl Receiver {
    pub(crate) fn new(body: Body, slow: bool, random: &mut Random) -> Self {
        let (sip, pause) = if slow {
            (1 + random.below(5000), Duration::from_millis(random.below(300)))
        } else {
            (65_536, Duration::ZERO)
        };
        Self { body, at: 0, credit: 0, ended: false, headed: false, sip, pause }
    }

    pub(crate) fn take(&mut self, bytes: &Bytes) {
        let len = bytes.len() as u64;
        assert!(len <= self.credit, "{len} bytes beyond the credit of {}", self.credit);
        assert!(!self.ended && self.headed, "data outside head and end");
        self.credit -= len;
        assert!(self.at + len <= self.body.len, "more body than was sent");
        assert_eq!(*bytes, self.body.slice(self.at, len), "the body changed on its way");
        self.at += len;
    }

    pub(crate) fn end(&mut self, trailers: &bhttp::Fields, expected: bool) {
        assert!(!self.ended, "a second end");
        assert_eq!(self.at, self.body.len, "a clean end of a body that is not whole");
        assert_eq!(!trailers.is_empty(), expected, "trailers lost or made up");
        self.ended = true;
    }
}

/// What a request came to, as its client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The whole answer.
    Answered,
    /// Aborted with this cause; `headed`: seen as truncation.
    Failed {
        /// Why.
        cause: Cause,
        /// The response's head had come.
        headed: bool,
    },
    /// The client itself gave up.
    LeftByClient,
}

/// A client with its request.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) edge: NodeId,
    pub(crate) method: &'static str,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) expects_continue: bool,
    pub(crate) fate: Option<Fate>,
    /// The answer was whole before the request was.
    pub(crate) early: bool,
}

impl Client {
    /// Its request may be carried out twice without harm.
    pub(crate) fn is_repeatable(&self) -> bool {
        matches!(self.method, "GET" | "PUT")
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        self.method == "CONNECT"
    }

    pub(crate) fn answered(&mut self) {
        self.fate = Some(Fate::Answered);
        self.early = !self.sender.ended;
    }
}

/// An origin that is working on a request.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) responded: bool,
    /// The gateway told it that nothing follows.
    pub(crate) aborted: bool,
    /// Breaks off after this many bytes of its answer.
    pub(crate) breaks_at: Option<u64>,
    /// Time between having the request and answering.
    pub(crate) thinks: Duration,
}

/// Everybody in the world, by exchange.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    pub(crate) clients: BTreeMap<ExchangeId, Client>,
    /// By gateway too: one that died may have had the same request.
    pub(crate) origins: BTreeMap<(NodeId, ExchangeId), Origin>,
    pub(crate) answers_with_trailers: BTreeSet<ExchangeId>,
    /// How often each exchange's request reached an origin.
    pub(crate) forwarded: BTreeMap<ExchangeId, u32>,
}

impl Parties {
    pub(crate) fn origin(&mut self, gateway: NodeId, exchange: ExchangeId) -> &mut Origin {
        self.origins.get_mut(&(gateway, exchange)).expect("an origin that was asked")
    }
}
