//! What a relay and a carrier's machine say to each other, whatever the carrier is made of.
//!
//! A machine turns [`Part`]s into what its transport takes, and back. It greets the peer by itself
//! and keeps both sides to its protocol; what is sent when, and on which exchange, is the relay's.

use bytes::Bytes;

use crate::Error;
use crate::exchange::{Part, Role};

/// Most exchanges that an edge has open before it has heard the gateway: what waits for a carrier
/// is mostly less, and all of it may have to be asked about.
pub const MAX_EARLY_EXCHANGES: u64 = 16;

/// What this side says of itself on each carrier.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which end.
    pub role: Role,
    /// See [`Peer::instance`].
    pub instance: u64,
    /// See [`Peer::initial_credit`].
    pub initial_credit: u64,
    /// See [`Peer::max_exchanges`].
    pub max_exchanges: u64,
    /// See [`Peer::codecs`].
    pub codecs: Vec<u64>,
    /// See [`Peer::max_window_log`].
    pub max_window_log: u8,
}

/// What the other side has said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Version of the carrier's protocol that both sides speak.
    pub version: u64,
    /// Drawn at random at every start: half of each exchange's 128-bit id, and how the other side
    /// notices a restart.
    pub instance: u64,
    /// Credit that each exchange starts with, in bytes of body.
    pub initial_credit: u64,
    /// Most exchanges open at once.
    pub max_exchanges: u64,
    /// Codecs that it decodes, by their number in the codec table.
    pub codecs: Vec<u64>,
    /// Greatest window that it decodes with, as a power of two.
    pub max_window_log: u8,
    /// It takes blocks that begin a context anew ([`crate::exchange::Data::anew`]).
    pub anew: bool,
    /// It knows of carriers of one edge beside each other.
    pub beside: bool,
}

/// What happens to a machine.
#[derive(Debug)]
pub enum Input {
    /// Bytes came over the transport, in order and whole.
    Bytes(Bytes),
    /// The relay sends a part. One that the peer's credit or the order of its exchange forbids is a
    /// caller's fault.
    Send(Part),
    /// The peer is asked for a sign of life: [`Output::Answered`] comes with the number.
    Probe(u64),
}

/// What a machine wants done, in this order.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// The peer has said what it is: once, before all else that comes of it.
    Greeted,
    /// A part came that the relay has to act on. Those of exchanges that are over are left out.
    Received(Part),
    /// The peer has answered the probe with this number.
    Answered(u64),
    /// Bytes for the transport.
    Bytes(Bytes),
    /// The peer broke the protocol, or our side misused the machine: close the carrier. Nothing
    /// comes out after this.
    Fault(Error),
}
