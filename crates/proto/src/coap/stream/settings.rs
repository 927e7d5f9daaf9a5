//! What a connection is given, takes and says; its bounds and times.

use std::time::Duration;

use bytes::Bytes;

use crate::Error;
use crate::coap::machine::{Flow, Reason};
use crate::coap::{Code, Content};

/// Longest message that is taken, which is announced, and longest part of a body that is sent: 64
/// blocks of BERT (RFC 8323 §6) with what goes with them, in bytes.
pub const MAX_MESSAGE_BYTES: u32 = 65 << 10;
/// Shortest bound of its messages that a peer may announce: in less there is no room for a block
/// beside what a request has to say.
pub const MIN_MESSAGE_BYTES: u32 = 64;
/// Requests of this side that have no answer yet, and observations of it.
pub const MAX_REQUESTS: usize = 256;
/// Requests of the peer that the application has not answered.
pub const MAX_EXCHANGES: usize = 32;
/// Observations by the peer.
pub const MAX_OBSERVATIONS: usize = 16;
/// Pings of the peer that wait until what came before them is answered (RFC 8323 §5.4.1). Further
/// ones are answered at once, without a word on that.
pub const MAX_PINGS: usize = 8;
/// Alternative addresses of a Release that are told (RFC 8323 §5.5); further ones are left out.
pub const MAX_ALTERNATIVES: usize = 8;
/// Bytes that are told of a diagnostic payload.
pub const MAX_DIAGNOSTIC_BYTES: usize = 256;
/// Times that a request is repeated because of an Echo in the answer (RFC 9175 §2.3).
pub const MAX_ECHOES: u8 = 2;
/// Bodies of requests that are being put together, and their bytes.
pub const MAX_UPLOADS: usize = 4;
/// See [`MAX_UPLOADS`].
pub const MAX_UPLOAD_BYTES: usize = 2 << 20;
/// Responses of which blocks are still to be asked for, and their bytes.
pub const MAX_SERVED: usize = 8;
/// See [`MAX_SERVED`].
pub const MAX_SERVED_BYTES: usize = 4 << 20;

/// The peer's first message, its CSM (RFC 8323 §5.3), is waited for so long.
pub const CSM_TIMEOUT: Duration = Duration::from_secs(30);
/// So long nothing may come of a message that has begun.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// While something is waited for and nothing came for so long, a Ping asks (RFC 8323 §5.4).
pub const PING_AFTER: Duration = Duration::from_secs(60);
/// After a Ping the peer may be silent for so long: a message of the longest kind before it takes
/// a minute on a link of 9.6 kbit/s.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(100);
/// For so long an answer is waited for.
pub const MAX_ANSWER_WAIT: Duration = Duration::from_secs(300);
/// And for so long the application may take to give one.
pub const MAX_EXCHANGE_TIME: Duration = Duration::from_secs(240);
/// After a Release with nothing open the peer has so long to close (RFC 8323 §5.5).
pub const RELEASE_WAIT: Duration = Duration::from_secs(10);
/// For so long a peer that is refused should wait.
pub const RETRY_AFTER_S: u32 = 5;

/// How messages lie on the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One behind the other, each with its length: TCP and TLS (RFC 8323 §3.2).
    Stream,
    /// One in each binary message of a WebSocket (RFC 8323 §4.2).
    WebSocket,
}

/// What a connection is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Unforeseeable, and another one for each connection: ETags and Request-Tags come from it.
    pub seed: [u64; 2],
    /// How messages lie on the transport.
    pub framing: Framing,
    /// How long a connection is kept on which nothing is open; `None`: until the peer ends it.
    pub idle: Option<Duration>,
}

/// What goes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// Bytes of the stream, cut anywhere; of a WebSocket the whole of a binary message.
    Bytes(Bytes),
    /// Nothing follows from the peer: what it has asked is still answered.
    Eof,
    /// A request is to be sent, with a body of any size. It ends with an [`Output::Response`] that
    /// is the last, an [`Output::Suppressed`] or an [`Output::Failed`], unless it is cancelled or
    /// the connection ends. With Observe 0 there may be responses before. A number that is in use
    /// already is ignored and counted.
    Request {
        /// The caller's number for it.
        request: u64,
        /// The request.
        content: Content,
    },
    /// A request whose answer is given out as it comes; see [`machine::Input::Open`].
    ///
    /// [`machine::Input::Open`]: crate::coap::machine::Input::Open
    Open {
        /// The caller's number for it.
        request: u64,
        /// The request, with the beginning of its body.
        content: Content,
        /// Whether its body goes on.
        has_more: bool,
        /// So many bytes of the answer's body there is room for; one message may go beyond it.
        room_bytes: usize,
    },
    /// The answer to an [`Output::Request`], with the beginning of its body; see
    /// [`machine::Input::Begin`].
    ///
    /// [`machine::Input::Begin`]: crate::coap::machine::Input::Begin
    Begin {
        /// The number of the request.
        exchange: u64,
        /// The response.
        content: Content,
    },
    /// A step of a body.
    Flow(Flow),
    /// Whether the peer is there and has processed what came before (RFC 8323 §5.4, Custody): ends
    /// with [`Output::Alive`] or a failure.
    Ping {
        /// The caller's number for it.
        request: u64,
    },
    /// A request, or an observation, is of no use any more.
    Cancel {
        /// The caller's number for it.
        request: u64,
    },
    /// The answer to an [`Output::Request`]. With Observe (of any value) it agrees to what the
    /// request asked for: from then on there may be [`Input::Notify`], until [`Output::Ended`].
    Respond {
        /// The number of the request.
        exchange: u64,
        /// The response.
        content: Content,
    },
    /// What the peer observes is now this. A code that is no success ends the observation
    /// (RFC 7641 §4.2).
    Notify {
        /// The number of the request that began it.
        exchange: u64,
        /// The notification.
        content: Content,
    },
    /// The peer is asked to close, after what is open is answered (RFC 8323 §5.5). Further
    /// requests of it are answered with 5.03.
    Release {
        /// Seconds until it is welcome again, where that is known.
        hold_off_s: Option<u32>,
    },
    /// This side gives the connection up, for a reason of which the peer hears (RFC 8323 §5.6).
    Abort {
        /// Why, for people.
        why: &'static str,
    },
    /// Time has passed.
    Wake,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A message is to be sent: bytes of the stream, or a binary message of a WebSocket.
    Transmit(Bytes),
    /// A request of the peer with its whole body, to be answered within [`MAX_EXCHANGE_TIME`]; a
    /// later answer is dropped.
    Request {
        /// The connection's number for it.
        exchange: u64,
        /// The request.
        content: Content,
    },
    /// The same, whose body goes on; see [`machine::Output::Opened`].
    ///
    /// [`machine::Output::Opened`]: crate::coap::machine::Output::Opened
    Opened {
        /// The connection's number for it.
        exchange: u64,
        /// The request, with the beginning of its body.
        content: Content,
    },
    /// A response came.
    Response {
        /// The caller's number for the request.
        request: u64,
        /// The response.
        content: Content,
        /// Whether none follows: false while an observation goes on, and where the body does
        /// ([`Input::Open`]).
        is_last: bool,
    },
    /// A step of a body.
    Flow(Flow),
    /// A request whose No-Response asks for no answer at all (RFC 7967) has been sent.
    Suppressed {
        /// The caller's number for the request.
        request: u64,
    },
    /// A ping was answered.
    Alive {
        /// The caller's number for it.
        request: u64,
    },
    /// A request has no answer, or no further one.
    Failed {
        /// The caller's number for it.
        request: u64,
        /// Why.
        reason: Reason,
    },
    /// The peer observes no more.
    Ended {
        /// The number of the request that began it.
        exchange: u64,
    },
    /// The peer wants this side to close after what is open, and takes no further request. Said
    /// once.
    Released {
        /// Where to connect next, in the peer's order; this same server where there is none
        /// (RFC 8323 §5.5). At most [`MAX_ALTERNATIVES`], of text.
        alternatives: Vec<String>,
        /// Not before so many seconds.
        hold_off_s: Option<u32>,
    },
    /// The connection is to be closed behind what was sent. Whatever was open has ended with it,
    /// and nothing follows.
    Closed(End),
    /// When to call with [`Input::Wake`], unless a later one says otherwise.
    WakeAt(Duration),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it.
    Eof,
    /// One side released it, and nothing was open any more (RFC 8323 §5.5).
    Released,
    /// The peer gave it up (RFC 8323 §5.6).
    Aborted {
        /// The option of this side's CSM that it did not understand.
        bad_csm_option: Option<u32>,
        /// What it says for people, at most [`MAX_DIAGNOSTIC_BYTES`].
        diagnostic: String,
    },
    /// This side gave it up with [`Input::Abort`].
    GivenUp(&'static str),
    /// The peer broke the protocol: it has been sent an Abort that says so.
    Broken(Fault),
    /// For so long the peer said nothing though it should have.
    Silent(Duration),
}

/// How a peer broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its first message was not a CSM but had this code (RFC 8323 §5.3).
    NoCsm(Code),
    /// Its CSM has an option that is critical and unknown, or a value of one that cannot be met
    /// (RFC 8323 §5.3).
    BadCsm(u16),
    /// Another signal of it has a critical option that is unknown (RFC 8323 §5.2).
    BadOption(Code, u16),
    /// A message was malformed, or longer than this side takes.
    Format(Error),
}

/// What went wrong so far, each a number of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that broke the format; at most one, as it ends the connection, and requests with
    /// too many options.
    pub malformed: u64,
    /// Responses and Pongs to nothing.
    pub unmatched: u64,
    /// Requests that were refused for a critical option or an unknown method, signals with an
    /// unknown code.
    pub unsupported: u64,
    /// Requests that found no room.
    pub refused: u64,
    /// Inputs that name nothing, or a number in use.
    pub misused: u64,
}
