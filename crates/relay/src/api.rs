//! What goes into a relay and what comes out: the contract with the shell.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coding::job::{Done, Job};
use coding::{ExchangeId, Speeds};
use proto::carrier::Piece;
use proto::control::Allowed;
use proto::urgency::Urgency;
use proto::{bhttp, message};
use record::event::Event;

use crate::http::privacy::Client;
use crate::ids::{CarrierId, CarrierKind};
use coding::api as code;

/// What comes before the body of what opens an exchange (towards the origin), or of what answers it
/// (towards the client).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// Enters at the edge, leaves at the gateway.
    Request(bhttp::Request),
    /// Enters at the gateway, leaves at the edge.
    Response(bhttp::Response),
    /// What is no HTTP; enters at the edge, leaves at the gateway.
    Opening(message::Opening),
    /// What answers it; enters at the gateway, leaves at the edge.
    Message(message::Message),
}

/// Why an exchange ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Which of the few kinds.
    pub kind: CauseKind,
    /// One line for a person.
    pub reason: String,
}

/// The kinds of [`Cause`]; the number crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CauseKind {
    /// The client went away.
    ClientGone,
    /// The origin could not be reached (502).
    OriginUnreachable,
    /// The origin broke off, or broke HTTP (502, or truncation once a head was sent).
    OriginFailed,
    /// The origin did not answer in time (504).
    OriginTimeout,
    /// The target is outside the gateway's allow list (403).
    Forbidden,
    /// The gateway could not be reached within the connect timeout (504, or direct).
    GatewayUnreachable,
    /// The carrier broke, or the gateway is shutting down, before anything was forwarded: safe to
    /// repeat (502).
    NotForwarded,
    /// The request may have been carried out or not; neither side knows (502).
    OutcomeUnknown,
    /// The request was carried out but its answer is lost (502).
    AnswerLost,
    /// The carrier broke after the response's head (truncation).
    CarrierLost,
    /// The other relay sent what cannot be decoded (502 or truncation).
    Corrupt,
    /// A bound of ours was reached (503).
    Limit,
    /// This side is shutting down (503).
    ShuttingDown,
    /// The request itself cannot be served (400).
    BadRequest,
    /// The answer is whole; the rest of the request is not wanted (no failure).
    AnsweredEarly,
    /// The answer is of no use any more (504).
    Expired,
    /// A newer request has taken its place before anything of it left (503).
    Superseded,
}

impl CauseKind {
    /// Every kind; the place in the list is the number on the wire.
    pub const ALL: [Self; 17] = [
        Self::ClientGone,
        Self::OriginUnreachable,
        Self::OriginFailed,
        Self::OriginTimeout,
        Self::Forbidden,
        Self::GatewayUnreachable,
        Self::NotForwarded,
        Self::OutcomeUnknown,
        Self::AnswerLost,
        Self::CarrierLost,
        Self::Corrupt,
        Self::Limit,
        Self::ShuttingDown,
        Self::BadRequest,
        Self::AnsweredEarly,
        Self::Expired,
        Self::Superseded,
    ];

    /// As events, logs and metrics name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientGone => "client_gone",
            Self::OriginUnreachable => "origin_unreachable",
            Self::OriginFailed => "origin_failed",
            Self::OriginTimeout => "origin_timeout",
            Self::Forbidden => "forbidden",
            Self::GatewayUnreachable => "gateway_unreachable",
            Self::NotForwarded => "not_forwarded",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::AnswerLost => "answer_lost",
            Self::CarrierLost => "carrier_lost",
            Self::Corrupt => "corrupt",
            Self::Limit => "limit",
            Self::ShuttingDown => "shutting_down",
            Self::BadRequest => "bad_request",
            Self::AnsweredEarly => "answered_early",
            Self::Expired => "expired",
            Self::Superseded => "superseded",
        }
    }

    pub(crate) fn to_wire(self) -> u64 {
        self as u64
    }

    /// A later version's kind reads as a failure of the origin: the other side gave up.
    pub(crate) fn from_wire(code: u64) -> Self {
        let at = usize::try_from(code).unwrap_or(usize::MAX);
        Self::ALL.get(at).copied().unwrap_or(Self::OriginFailed)
    }
}

/// What the shell knows of a request besides its head.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The client, as far as it is known (an address). Messages of two clients are never encoded
    /// against each other, and those of an unknown client against none.
    pub client: Option<Client>,
    /// What is set for its service: index in [`crate::Config::services`].
    pub service: Option<usize>,
    /// It may go another way where the gateway cannot be reached, and so does not wait for one that
    /// is known to be gone.
    pub other_way: bool,
}

/// What happens to a relay.
#[derive(Debug)]
pub enum Input {
    /// Edge: a client has a request, which opens the exchange.
    Request {
        /// The exchange, from [`crate::Relay::next_exchange`].
        exchange: ExchangeId,
        /// Its head.
        request: bhttp::Request,
        /// No body, no trailers follow.
        end: bool,
        /// What the shell knows besides.
        known: Box<Known>,
    },
    /// Edge: a client has a message that is no HTTP, which opens the exchange.
    Opening {
        /// The exchange, from [`crate::Relay::next_exchange`].
        exchange: ExchangeId,
        /// Its envelope, with how it is delivered.
        opening: message::Opening,
        /// No body follows.
        end: bool,
        /// What the shell knows besides.
        known: Box<Known>,
    },
    /// Gateway: what answers such a message, which is of the same kind; or, where only the outcome
    /// is awaited, that it was taken: without a body.
    Answer {
        /// The exchange.
        exchange: ExchangeId,
        /// Its envelope.
        message: message::Message,
        /// No body follows.
        end: bool,
    },
    /// Gateway: the origin has a final response.
    Response {
        /// The exchange.
        exchange: ExchangeId,
        /// Its head.
        response: bhttp::Response,
        /// No body, no trailers follow.
        end: bool,
    },
    /// At the gateway, an informational response: 100 lets the body of `Expect: 100-continue` flow.
    /// At the edge, 100 says that the client sends its body though no response has come.
    Interim {
        /// The exchange.
        exchange: ExchangeId,
        /// 100 to 199.
        status: u16,
        /// Header fields.
        fields: bhttp::Fields,
    },
    /// A piece of body from the local side, within the credit it was given.
    Data {
        /// The exchange.
        exchange: ExchangeId,
        /// The piece.
        bytes: Bytes,
    },
    /// The local body ended.
    End {
        /// The exchange.
        exchange: ExchangeId,
        /// Trailer fields, usually none.
        trailers: bhttp::Fields,
    },
    /// The local side gave up: client gone, origin failed. Ends both directions.
    Abort {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        cause: Cause,
    },
    /// The local side will take that many more bytes of body. Starts at 0 for each exchange.
    Credit {
        /// The exchange.
        exchange: ExchangeId,
        /// Further bytes.
        bytes: u64,
    },
    /// A carrier is connected (and its peer authenticated).
    CarrierUp {
        /// The carrier.
        carrier: CarrierId,
        /// Its kind; at an edge the one that was dialled.
        kind: CarrierKind,
        /// Name of the peer's key, or of its address where there are no keys.
        peer: String,
    },
    /// A carrier is gone, or (edge) a dial failed.
    CarrierDown {
        /// The carrier.
        carrier: CarrierId,
        /// One line for a person.
        reason: String,
    },
    /// Edge: a dial came to nothing, or the gateway refused the carrier before its HELLO.
    DialFailed {
        /// The carrier that was to be.
        carrier: CarrierId,
        /// In which way.
        failure: DialFailure,
        /// One line for a person.
        reason: String,
    },
    /// Gateway: what is set for the exchange's service counts from here on; before the response's
    /// body.
    Service {
        /// The exchange.
        exchange: ExchangeId,
        /// Index in [`crate::Config::services`].
        service: usize,
    },
    /// Edge: a client's connection has ended for which the gateway may keep something.
    ClientEnded {
        /// The shell's number of the connection.
        connection: u64,
    },
    /// Gateway: what edges may reach is this from now on.
    Allowed(Allowed),
    /// How fast the encodings were in a trial on this processor. The peer's is believed to be
    /// the same until the peer has reported its own, or decoded something.
    Speeds(Vec<Speeds>),
    /// Counters of a carrier's transport, asked for with [`Output::Measure`].
    Transport {
        /// The carrier.
        carrier: CarrierId,
        /// As they are now.
        transport: decide::estimate::Transport,
    },
    /// Bytes came from a carrier.
    Received {
        /// The carrier.
        carrier: CarrierId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A datagram came over a carrier.
    Datagram {
        /// The carrier.
        carrier: CarrierId,
        /// The datagram.
        bytes: Bytes,
    },
    /// Bytes came on a stream of a carrier's transport.
    Stream {
        /// The carrier.
        carrier: CarrierId,
        /// As [`Piece::stream`].
        stream: u64,
        /// The bytes.
        bytes: Bytes,
        /// Nothing more comes on the stream.
        fin: bool,
    },
    /// A carrier's transport took that many bytes of what was given to `Stream`, of this urgency.
    StreamSent {
        /// The carrier.
        carrier: CarrierId,
        /// As [`Piece::urgency`].
        urgency: Urgency,
        /// Bytes.
        bytes: usize,
    },
    /// The kernel took that many bytes of what was given to `Transmit`.
    Sent {
        /// The carrier.
        carrier: CarrierId,
        /// Bytes.
        bytes: usize,
    },
    /// A job is done.
    Done(Done),
    /// For the coding, of an exchange that is not the relay's: of a client without an edge
    /// ([`code::Message::recipient`]). Its number is of an instance that no edge has.
    Client(Box<code::Input>),
    /// The instant of the last [`Output::WakeAt`] has come.
    Wake,
    /// Take no new exchanges, finish the open ones.
    Shutdown,
}

/// What a dial that failed says of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialFailure {
    /// It does not want us, or we do not want it: somebody has to change something.
    Refused,
    /// Nobody listens there, or there is no way to it.
    Unreachable,
    /// No answer came in time: the link may be down for a while.
    Silent,
}

/// What a relay wants done, drained by [`crate::Relay::poll_output`].
#[derive(Debug)]
pub enum Output {
    /// Edge: connect to the gateway; answer with `CarrierUp` or `DialFailed` for this id.
    Dial {
        /// Name of the carrier to be.
        carrier: CarrierId,
        /// Its kind.
        kind: CarrierKind,
    },
    /// Bytes for a carrier, to be acknowledged with `Sent`.
    Transmit {
        /// The carrier.
        carrier: CarrierId,
        /// The bytes.
        bytes: Bytes,
    },
    /// A datagram for a carrier. Nothing is said of it: one that cannot be sent is as good as lost.
    Datagram {
        /// The carrier.
        carrier: CarrierId,
        /// The datagram.
        bytes: Bytes,
    },
    /// Bytes for a stream of a carrier's transport, to be acknowledged with `StreamSent`. What is
    /// more urgent goes first; the bytes of a stream keep their order.
    Stream {
        /// The carrier.
        carrier: CarrierId,
        /// The bytes, and which stream's they are.
        piece: Piece,
    },
    /// Read the counters of a carrier's transport; answer with [`Input::Transport`], or not at all
    /// where there are none.
    Measure {
        /// The carrier.
        carrier: CarrierId,
    },
    /// Close a carrier; the relay has forgotten it.
    Close {
        /// The carrier.
        carrier: CarrierId,
        /// One line for a person.
        reason: String,
    },
    /// A job for a thread of a pool.
    Job(Job),
    /// Drop the codec contexts of an exchange.
    Release {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// A head for the local side. At the gateway this opens the exchange.
    Head {
        /// The exchange.
        exchange: ExchangeId,
        /// Request at the gateway, response at the edge.
        head: Head,
        /// Nothing follows.
        end: bool,
    },
    /// Gateway: a client's connection at an edge has ended, and with it what was kept for it alone.
    ClientEnded {
        /// Instance of the edge.
        instance: u64,
        /// The edge's number of the connection.
        connection: u64,
    },
    /// Edge: what the gateway lets it reach, in the place of what was announced before; none where
    /// that is not known. What none of it can mean would be refused there.
    Allowed(Option<Arc<Allowed>>),
    /// An informational response for the client (edge only).
    Interim {
        /// The exchange.
        exchange: ExchangeId,
        /// 100 to 199.
        status: u16,
        /// Header fields.
        fields: bhttp::Fields,
    },
    /// A piece of body for the local side, within its credit.
    Data {
        /// The exchange.
        exchange: ExchangeId,
        /// The piece.
        bytes: Bytes,
    },
    /// The body for the local side is whole.
    End {
        /// The exchange.
        exchange: ExchangeId,
        /// Trailer fields.
        trailers: bhttp::Fields,
    },
    /// The exchange is over for the local side: before the response's head the client gets the
    /// status of the cause, after it a truncation. Nothing follows for this exchange.
    Abort {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        cause: Cause,
        /// Edge: no byte of the request's body was taken, so it may go another way (`fallback`).
        untouched: bool,
    },
    /// The local side may hand over that many more bytes of body.
    Credit {
        /// The exchange.
        exchange: ExchangeId,
        /// Further bytes.
        bytes: u64,
    },
    /// Keep a dictionary, in place of what has its name, for [`crate::Relay::restore_dictionary`]
    /// of the next relay; so that only its owner can read it. A shell that keeps nothing need not.
    Store {
        /// What it is kept by.
        name: [u8; 32],
        /// What is kept.
        bytes: Bytes,
    },
    /// The dictionary of this name is in use: where not all can be kept, others go first.
    Used {
        /// As in `Store`.
        name: [u8; 32],
    },
    /// The dictionary of this name went for another.
    Forget {
        /// As in `Store`.
        name: [u8; 32],
    },
    /// What the coding says of an exchange that is not the relay's: `Settled`, `Block`, `Trailers`,
    /// `Fault` or `Screened`.
    Client(code::Output),
    /// Call with `Input::Wake` at this instant (or later, not earlier). Replaces the one before.
    WakeAt(Duration),
    /// A fact for logs, metrics and learning.
    Event(Event),
}
