//! The two ends of one exchange: a client with a request, an origin with an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proto::bhttp;
use relay::{Cause, ExchangeId};

use crate::Random;

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

    /// Text-like for even seeds, noise for odd ones.
    fn byte(&self, at: u64) -> u8 {
        let mixed = (at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let mixed = u8::try_from(mixed).unwrap_or(0);
        if self.seed.is_multiple_of(2) {
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
    /// When what was sent last goes: portions keep their order.
    pub(crate) busy_until: Duration,
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
    pub(crate) method: &'static str,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) expects_continue: bool,
    pub(crate) fate: Option<Fate>,
}

impl Client {
    pub(crate) fn is_idempotent(&self) -> bool {
        self.method == "GET"
    }
}

/// An origin that is working on a request.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    pub(crate) responded: bool,
    /// Breaks off after this many bytes of its answer.
    pub(crate) breaks_at: Option<u64>,
    /// Time between having the request and answering.
    pub(crate) thinks: Duration,
}

/// Everybody in the world, by exchange.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    pub(crate) clients: BTreeMap<ExchangeId, Client>,
    pub(crate) origins: BTreeMap<ExchangeId, Origin>,
    /// How often each exchange's request reached an origin.
    pub(crate) forwarded: BTreeMap<ExchangeId, u32>,
}
