//! The interface of a relay and a carrier's machine, whatever the carrier is made of.
//!
//! A machine turns [`Part`]s into what its transport takes, and back. It greets the peer by itself
//! and keeps both sides to its protocol; what is sent when, and on which exchange, is the relay's.

mod flows;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

pub use flows::Flows;

use crate::Error;
use crate::exchange::{Part, Role};
use crate::urgency::Urgency;

/// Most exchanges that an edge has open before it has heard the gateway: what waits for a carrier
/// is mostly less, and all of it may have to be asked about.
pub const MAX_EARLY_EXCHANGES: u64 = 16;

/// What this side announces of itself on each carrier.
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
    /// Bytes a second that the path carries, where nobody else's traffic shares it.
    pub own_bytes_per_s: Option<u64>,
}

/// What the other side has announced of itself.
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
    /// It supports parallel carriers of one edge.
    pub parallel: bool,
    /// It knows that questions are numbered ([`Part::Query`]).
    pub counts: bool,
    /// It reads packed heads ([`crate::heads`]).
    pub packs: bool,
}

/// What a kind of carrier can do. The relay asks this, and never which kind it is.
///
/// Every carrier is reliable: what it was given arrives once, or the carrier breaks. Parts of one
/// exchange arrive in the order in which they were given, among them the control parts that are
/// about it ([`crate::control::order_of`]); so do all the rest among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// All parts arrive in the order in which they were given, whatever exchange they are of.
    pub ordered: bool,
    /// A request's body goes as it comes. Else a request goes when it is whole, and none does that
    /// is without end: no tunnel, no body that waits for `100 (Continue)`.
    pub streams: bool,
    /// A gateway may send what answers no request.
    pub gateway_first: bool,
    /// What is of no exchange crosses: control parts, and that no new exchanges are taken.
    pub control: bool,
    /// Requests may go ahead of the gateway's greeting, behind the edge's.
    pub early: bool,
    /// What is lost is made good by repair that was sent with it, or without a timeout: it neither
    /// shrinks a window nor holds back what is of another exchange.
    pub repairs: bool,
    /// Most bytes of a datagram that its transport brings or takes; `None` where it has none.
    pub max_datagram_bytes: Option<usize>,
    /// Most bytes of a request's body; `None` where there is no bound.
    pub max_request_bytes: Option<u64>,
    /// Most bytes of an answer's body; `None` where there is no bound, and it may have no end.
    pub max_answer_bytes: Option<u64>,
    /// Bytes of a message that leave before the peer has answered those before; `None` where as
    /// many do as the path takes.
    pub block_bytes: Option<usize>,
}

impl Abilities {
    /// Those of an ordered, reliable byte pipe: all there are.
    pub const STREAM: Self = Self {
        ordered: true,
        streams: true,
        gateway_first: true,
        control: true,
        early: true,
        repairs: false,
        max_datagram_bytes: None,
        max_request_bytes: None,
        max_answer_bytes: None,
        block_bytes: None,
    };
}

/// Bytes of one stream of a transport that has many, each of which is ordered and reliable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The how manieth it is, from 0, of the bidirectional streams that the edge opens.
    pub stream: u64,
    /// How urgent the bytes are.
    pub urgency: Urgency,
    /// Nothing more follows on the stream from this side.
    pub fin: bool,
    /// The bytes; those that end a stream may be none.
    pub bytes: Bytes,
}

/// What happens to a machine.
#[derive(Debug)]
pub enum Input {
    /// Bytes came over the transport, in order and whole.
    Bytes(Bytes),
    /// A datagram came over the transport: perhaps late, perhaps not for the first time.
    Datagram(Bytes),
    /// Bytes came on a stream of a transport that has many.
    Stream {
        /// As [`Piece::stream`].
        stream: u64,
        /// The bytes, in order and whole.
        bytes: Bytes,
        /// Nothing more comes on the stream.
        fin: bool,
    },
    /// The relay sends a part, as urgent as this. One that the peer's credit or the order of its
    /// exchange forbids is a caller's fault.
    Send(Part, Urgency),
    /// The peer is asked for a sign of life: [`Output::Answered`] comes with the number.
    Probe(u64),
    /// The instant of the last [`Output::WakeAt`] has come, or any other.
    Wake,
}

/// What a machine wants done, in this order.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// The peer has announced itself: once, before all else that comes from it.
    Greeted,
    /// A part came that the relay has to act on. Those of exchanges that are over are left out.
    Received(Part),
    /// The peer has answered the probe with this number.
    Answered(u64),
    /// Bytes for the transport.
    Bytes(Bytes),
    /// A datagram for the transport.
    Datagram(Bytes),
    /// Bytes for a stream of a transport that has many.
    Stream(Piece),
    /// Hand in [`Input::Wake`] at this instant. Replaces the one before.
    WakeAt(Duration),
    /// The peer broke the protocol, or our side misused the machine: close the carrier. Nothing
    /// comes out after this.
    Fault(Error),
    /// The peer does not answer the transport any more, or knows nothing of the carrier: close it.
    /// Nothing comes out after this.
    Lost(Error),
}

/// What a machine has measured of its path, where no transport below it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Round trip as it is now, smoothed; zero where none was seen.
    pub round_trip: Duration,
    /// The least one.
    pub min_round_trip: Duration,
    /// Bytes a second that the path takes; 0 where that was not seen.
    pub bytes_per_s: u64,
    /// Datagrams with data sent, counted up.
    pub sent: u32,
    /// Datagrams sent again, counted up.
    pub sent_again: u32,
    /// Timeouts in a row since something was acknowledged.
    pub timeouts: u32,
    /// Datagrams of a million that the peer sends which do not arrive, as far as the gaps in their
    /// numbers tell; `None` where nothing tells.
    pub incoming_loss_ppm: Option<u32>,
}

/// One end of a carrier. After each input the caller drains [`Machine::poll_output`].
pub trait Machine: fmt::Debug + Send {
    /// Takes one input. `now` never goes back.
    fn handle_input(&mut self, now: Duration, input: Input);

    /// What there is to do, one thing at a time; `None` until the next input.
    fn poll_output(&mut self) -> Option<Output>;

    /// What both sides have announced, and the exchanges.
    fn flows(&self) -> &Flows;

    /// What the peer has announced of itself, once it has.
    fn peer(&self) -> Option<&Peer> {
        self.flows().peer()
    }

    /// Credit left to send a body on an exchange, in bytes; 0 for one that is not open.
    fn credit(&self, exchange: u64) -> u64 {
        self.flows().credit(exchange)
    }

    /// Exchanges that are open.
    fn open_exchanges(&self) -> usize {
        self.flows().len()
    }

    /// Whether an exchange is: until it is over in both directions, or one side has ended it. Where
    /// this side has not, nothing more of it comes once it is not.
    fn is_open(&self, exchange: u64) -> bool {
        self.flows().is_open(exchange)
    }

    /// Whether a part may be sent already: before the peer has announced itself, few may.
    fn may_send(&self, part: &Part) -> bool {
        self.flows().may_send_early(part)
    }

    /// Bytes that a part would take now, within a few.
    fn wire_len(&self, part: &Part) -> usize;

    /// Bytes that came, once all outputs are taken, of a frame whose end has not; 0 where what
    /// comes is always whole.
    fn partial_bytes(&self) -> usize {
        0
    }

    /// Bytes that it holds until the peer has them; 0 where the transport holds them.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Of these, bytes that have not left yet, and do so before a part as urgent as this.
    fn unsent_bytes(&self, urgency: Urgency) -> usize {
        let _ = urgency;
        self.held_bytes()
    }

    /// What it has measured of its path; `None` where the transport does so.
    fn measured(&self) -> Option<Measured> {
        None
    }
}
