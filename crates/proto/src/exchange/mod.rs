//! What crosses between two relays, whatever carries it: the parts of exchanges, and what the
//! relays send each other besides.
//!
//! A relay sends, keeps, holds back and sends again [`Part`]s. How a part looks on the way, and
//! what a carrier needs besides (a greeting, signs of life, padding), is the carrier's own.
//!
//! The parts of one exchange keep their order on every carrier. In each direction there is one head
//! ([`Head`]), then [`Data`] within the receiver's credit, and an end: that of the head, of a
//! piece, or [`Part::Trailers`]. Interim responses come before the response's head. [`Part::Abort`]
//! ends both directions at once. Where a carrier broke, an edge asks on another one what became of
//! an exchange ([`Part::Query`]); [`Part::Outcome`] is the answer, and comes before anything else.

mod padding;

use bytes::Bytes;

use crate::bhttp;

pub use padding::Padding;

/// Greatest decoded block, in bytes; an encoded one may be larger by 1 KiB.
pub const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// Credit that the end of a block takes beside its bytes: about what a receiver spends on keeping
/// it. Without it a window of one-byte blocks would take a hundred times its size.
pub const BLOCK_CREDIT_BYTES: u64 = 128;

/// Which end of a carrier this is: the edge opens exchanges, the gateway answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends requests.
    Edge,
    /// Sends responses.
    Gateway,
}

/// The head of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the exchange, unique for the edge's instance.
    pub exchange: u64,
    /// Number of the codec of the blocks that follow; 0 is identity.
    pub codec: u64,
    /// Window of the codec as a power of two; 0 for identity.
    pub window_log: u8,
    /// No body follows.
    pub end: bool,
    /// [`bhttp`] request or response, or what is none ([`crate::message`]).
    pub head: Bytes,
}

/// A piece of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of the exchange.
    pub exchange: u64,
    /// With the last piece of a block: the block's decoded length in bytes.
    pub block_end: Option<u64>,
    /// The block was not put through the exchange's codec.
    pub uncoded: bool,
    /// The codec begins anew with the block: it knows nothing of those before. Only for peers that
    /// take such.
    pub anew: bool,
    /// Last piece of the message; only with `block_end`.
    pub end: bool,
    /// With the last piece of a block whose length must not reveal what is in it: how the carrier
    /// rounds it up. It does not cross.
    pub padding: Option<Padding>,
    /// The piece.
    pub bytes: Bytes,
}

impl Data {
    /// What the piece takes of its receiver's credit: its bytes, and [`BLOCK_CREDIT_BYTES`] more
    /// if it ends a block, since each whole block has to be kept apart. An empty end is free.
    #[must_use]
    pub fn credit(&self) -> u64 {
        let block = self.block_end.is_some() && !self.bytes.is_empty();
        self.bytes.len() as u64 + if block { BLOCK_CREDIT_BYTES } else { 0 }
    }

    /// Splits off the greatest piece within `credit` and `most` bytes; `None` where the credit is
    /// too little. The last piece leaves no bytes behind and ends what the whole was to end.
    pub fn split_piece(&mut self, credit: u64, most: usize) -> Option<Self> {
        if self.bytes.len() <= most && self.credit() <= credit {
            let bytes = std::mem::take(&mut self.bytes);
            return Some(Self { bytes, ..*self });
        }
        // A byte stays for the piece that ends the block.
        let spare = usize::from(self.block_end.is_some());
        let credit = usize::try_from(credit).unwrap_or(usize::MAX);
        let len = self.bytes.len().saturating_sub(spare).min(most).min(credit);
        let bytes = self.bytes.split_to(len);
        (len > 0).then_some(Self { block_end: None, end: false, padding: None, bytes, ..*self })
    }
}

/// An exchange ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Number of the exchange.
    pub exchange: u64,
    /// Machine-readable cause; the relay names them.
    pub code: u64,
    /// One line for a person.
    pub reason: String,
}

/// What became of an exchange that the edge asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeState {
    /// It never came: nothing was forwarded.
    NotSeen,
    /// It was forwarded; its answer follows from the start.
    Answer,
    /// It was forwarded and answered with the status, but the answer is no longer held.
    Lost(u16),
    /// It was begun and given up before the request was whole.
    Aborted,
    /// Too long ago for the gateway to remember.
    Forgotten,
    /// Its request is not whole yet, or its answer cannot be sent again: it goes on over the
    /// carrier that it came on. Only for an edge that supports parallel carriers.
    Unfinished,
}

/// What one relay gives a carrier for the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Head of a message.
    Head(Head),
    /// Piece of a message's body.
    Data(Data),
    /// Exchange and trailer fields; ends the message.
    Trailers(u64, bhttp::Fields),
    /// End before time.
    Abort(Abort),
    /// Exchange and further bytes of body that its sender may send ([`Data::credit`]).
    Credit(u64, u64),
    /// Exchange and informational status, 100 to 199.
    Interim(u64, u16),
    /// Exchange asked about, and the how manieth question about it this is over whichever carrier,
    /// from 1: of two questions the one with the lower number came late. 0 where the gateway does
    /// not know such numbers ([`crate::carrier::Peer::counts`]).
    Query(u64, u64),
    /// Exchange and what became of it.
    Outcome(u64, OutcomeState),
    /// No new exchanges.
    GoAway,
    /// Between the relays: kind and content ([`crate::control`]).
    Control(u64, Bytes),
}

impl Part {
    /// Number of the exchange that it is a part of; `None` where it is of none.
    #[must_use]
    pub fn exchange(&self) -> Option<u64> {
        match self {
            Self::Head(head) => Some(head.exchange),
            Self::Data(data) => Some(data.exchange),
            Self::Abort(abort) => Some(abort.exchange),
            Self::Trailers(exchange, _)
            | Self::Credit(exchange, _)
            | Self::Interim(exchange, _)
            | Self::Query(exchange, _)
            | Self::Outcome(exchange, _) => Some(*exchange),
            Self::GoAway | Self::Control(..) => None,
        }
    }

    /// Bytes of what it brings, without what a carrier puts around it.
    #[must_use]
    pub fn content_len(&self) -> usize {
        match self {
            Self::Head(head) => head.head.len(),
            Self::Data(data) => data.bytes.len(),
            Self::Trailers(_, fields) => {
                fields.iter().map(|(name, value)| name.len() + value.len() + 2).sum()
            }
            _ => 0,
        }
    }
}
