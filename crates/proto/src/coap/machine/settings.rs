//! What an endpoint is given, takes and says; its bounds and times.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use bytes::Bytes;

use super::super::{Code, Content, option};

/// Peers that have shown that they have their address, or to which this side sent first. Of more
/// that which was longest unused is forgotten with the messages that it sent; while something is
/// open with all of them, the newest finds no place.
pub const MAX_PEERS: usize = 1024;
/// Peers of which nothing is known; of more the oldest are forgotten.
pub const MAX_NEW_PEERS: usize = 256;
/// Requests of this side that have no answer yet, and observations of it.
pub const MAX_REQUESTS: usize = 4096;
/// Those to one peer, so that one that is silent leaves room for others.
pub const MAX_REQUESTS_PER_PEER: usize = 256;
/// Requests of peers that the application has not answered, or whose answer is under way.
pub const MAX_EXCHANGES: usize = 2048;
/// Those of one peer.
pub const MAX_EXCHANGES_PER_PEER: usize = 32;
/// Those of one of which nothing is known.
pub const MAX_EXCHANGES_PER_NEW_PEER: usize = 4;
/// Observations by peers.
pub const MAX_OBSERVATIONS: usize = 1024;
/// Those of one peer.
pub const MAX_OBSERVATIONS_PER_PEER: usize = 16;
/// Notifications without acknowledgement between two with one (RFC 7641 §4.5).
pub const MAX_UNCONFIRMED: u32 = 7;
/// At least so often a notification is confirmable (RFC 7641 §4.5).
pub const MAX_UNCONFIRMED_TIME: Duration = Duration::from_secs(24 * 3600);
/// Message ids of notifications that a reset may name.
pub const MAX_NAMED_NOTIFICATIONS: usize = 4;
/// Parts of an answer that a reset may name: those of a set (RFC 9177 §7.2) and of one before.
pub const MAX_NAMED_PARTS: usize = 20;
/// Times that a request is repeated because of an Echo in the answer (RFC 9175 §2.3).
pub const MAX_ECHOES: u8 = 2;

/// Retransmissions of a message (RFC 7252 §4.8).
pub const MAX_RETRANSMIT: u32 = 4;
/// The last of them leaves no later after the first. Who got the first remembers it for 247 s, of
/// which the last may be under way for MAX_LATENCY, 100 s (RFC 7252 §4.8.2).
pub const MAX_TRANSMIT_SPAN: Duration = Duration::from_secs(145);
/// For so long a confirmable message is remembered (RFC 7252 §4.8.2).
pub const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);
/// And a non-confirmable one.
pub const NON_LIFETIME: Duration = Duration::from_secs(145);
/// A message id is used again no sooner: the span, and twice MAX_LATENCY and PROCESSING_DELAY.
pub const MIN_MID_PAUSE: Duration = Duration::from_secs(145 + 202);
/// For so long an answer is waited for after the acknowledgement.
pub const MAX_ANSWER_WAIT: Duration = Duration::from_secs(300);
/// And for so long the application may take to give one.
pub const MAX_EXCHANGE_TIME: Duration = Duration::from_secs(240);
/// An answer that comes within this goes with the acknowledgement (RFC 7252 §5.2.1).
pub const PIGGYBACK_WAIT: Duration = Duration::from_millis(500);
/// Answers to a group's request are spread over this (RFC 7252 §8.2).
pub const LEISURE: Duration = Duration::from_secs(5);
/// Bytes a second to who does not answer (RFC 7252 §4.8).
pub const PROBING_RATE: f64 = 1.0;
/// Between non-confirmable notifications where no round trip is known (RFC 7641 §4.5.1).
pub const NOTIFICATION_PAUSE: Duration = Duration::from_secs(3);
/// A value of Echo is good for so long.
pub const ECHO_LIFETIME: Duration = Duration::from_secs(64);
/// An observation is renewed so long after its age (RFC 7641 §3.3.1: 5 to 15 s).
pub const RENEW_AFTER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));
/// For so long a peer that is refused should wait.
pub const RETRY_AFTER_S: u32 = 5;
/// To an address that is not validated no more than so many times what it sent (RFC 9175 §2.4).
pub const MAX_AMPLIFICATION: usize = 3;
/// Longest datagram with a request that is taken: well over what RFC 7252 §4.6 asks to assume, so
/// that what is kept of many requests is bounded.
pub const MAX_REQUEST_BYTES: usize = 4096;
/// What was given to a link is believed to have left after this: no queue of a link is longer.
pub const MAX_BACKLOG: Duration = Duration::from_secs(60);
/// What IP and UDP add to a datagram, at most, without extension headers.
pub const AROUND_DATAGRAM_BYTES: usize = 48;
/// An answer that is expected may have so many bytes (RFC 7252 §4.6).
pub const MAX_ANSWER_BYTES: usize = 1152;

/// Critical options that this endpoint and what is above it understand.
pub const UNDERSTOOD: [option::Number; 11] = [
    option::IF_MATCH,
    option::URI_HOST,
    option::IF_NONE_MATCH,
    option::URI_PORT,
    option::URI_PATH,
    option::URI_QUERY,
    option::ACCEPT,
    option::BLOCK2,
    option::BLOCK1,
    option::PROXY_URI,
    option::PROXY_SCHEME,
];

/// The same with OSCORE, where a message may be protected.
pub(super) const WITH_OSCORE: [option::Number; 12] = with([option::OSCORE; 12]);

/// The same with the options of RFC 9177, where they are used.
pub(super) const WITH_Q_BLOCK: [option::Number; 13] = {
    let mut all = with([option::Q_BLOCK1; 13]);
    all[UNDERSTOOD.len()] = option::Q_BLOCK2;
    all
};

/// These behind those that are understood.
const fn with<const N: usize>(mut all: [option::Number; N]) -> [option::Number; N] {
    let (known, _) = all.split_at_mut(UNDERSTOOD.len());
    known.copy_from_slice(&UNDERSTOOD);
    all
}

/// What stands for a peer: its address, or whatever the shell finds it by.
pub trait Address: Copy + Ord + Hash + Debug {}

impl<T: Copy + Ord + Hash + Debug> Address for T {}

/// What an endpoint is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Unforeseeable, and another one for each run: tokens, message ids and Echo come from it.
    pub seed: [u64; 2],
    /// Whether who has not shown that it has its address must do so before it gets an answer of
    /// more than [`MAX_AMPLIFICATION`] times its request, observes or changes anything. Without,
    /// everyone counts as if he had: only where the network or a lower layer sees to that.
    pub is_challenging: bool,
    /// The rate of the link in bit/s, where it is known.
    pub rate_bps: Option<u64>,
}

/// Whose body it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// That of a request of this side, or of its answer, by the caller's number.
    Request(u64),
    /// That of a request of a peer, or of its answer, by this side's number.
    Exchange(u64),
}

/// A step of a body that is never here as a whole: it goes by credit, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next bytes of it. What goes in was asked for by a `Room` that came out; what comes out
    /// is to be given back by a `Room` when whoever it is for has taken it.
    Part {
        /// Whose.
        of: Of,
        /// The bytes; the last part may have none.
        bytes: Bytes,
        /// Whether the body ends behind them.
        is_last: bool,
    },
    /// There is room for so many bytes more, beside what there was.
    Room {
        /// Whose.
        of: Of,
        /// How many.
        bytes: usize,
    },
    /// It ends here and is not whole: who gives it has no more, or nobody takes more of it.
    Broken {
        /// Whose.
        of: Of,
    },
}

/// What goes in.
#[derive(Clone, Debug)]
pub enum Input<P> {
    /// A datagram came.
    Datagram {
        /// From whom.
        peer: P,
        /// Its bytes.
        bytes: Bytes,
        /// Whether it was sent to a group (RFC 7252 §8).
        is_group: bool,
    },
    /// A request is to be sent. It ends with an [`Output::Response`] that is the last, an
    /// [`Output::Suppressed`] or an [`Output::Failed`], unless it is cancelled. With Observe 0
    /// there may be responses before. A number that is in use already is ignored and counted.
    Request {
        /// The caller's number for it.
        request: u64,
        /// To whom.
        peer: P,
        /// The request, at most a datagram.
        content: Content,
        /// Whether it is repeated until the peer has it.
        is_confirmable: bool,
    },
    /// A request whose answer is given out as it comes: an [`Output::Response`] has the first part
    /// of it and, where that is not the last, an [`Output::Flow`] each of the others, until one is
    /// the last or an [`Output::Failed`] says that it broke off. It does not observe. Only
    /// [`super::super::transfer`] takes these; time that the caller takes has no bound there.
    Open {
        /// The caller's number for it.
        request: u64,
        /// To whom.
        peer: P,
        /// The request, with the beginning of its body.
        content: Content,
        /// Whether it is repeated until the peer has it.
        is_confirmable: bool,
        /// Whether its body goes on: an [`Output::Flow`] says for how many bytes there is room.
        has_more: bool,
        /// So many bytes of the answer's body there is room for. One part may go beyond it. The
        /// first has so many too, or [`MAX_FIRST_BYTES`], where the body is not shorter: what
        /// becomes another until then is asked for anew, [`MAX_RESTARTS`] times at most.
        ///
        /// [`MAX_FIRST_BYTES`]: crate::coap::transfer::MAX_FIRST_BYTES
        /// [`MAX_RESTARTS`]: crate::coap::transfer::MAX_RESTARTS
        room_bytes: usize,
    },
    /// The answer to an [`Output::Request`], with the beginning of its body, which goes on as the
    /// peer asks for its blocks: an [`Output::Flow`] says for how many bytes there is room, or that
    /// nobody asks for more. It is not observed. As it lasts beyond the request, it is only for who
    /// has shown that it has its address: others get [`Input::Challenge`].
    Begin {
        /// The number of the request.
        exchange: u64,
        /// The response.
        content: Content,
    },
    /// A step of a body.
    Flow(Flow),
    /// A request that is not confirmable and leaves at once, without waiting for others to the same
    /// peer: who sends it sees to what the path bears (RFC 9177 §7.2). It ends as
    /// [`Input::Request`] does.
    Unpaced {
        /// The caller's number for it.
        request: u64,
        /// To whom.
        peer: P,
        /// The request, at most a datagram.
        content: Content,
    },
    /// A part of the answer to an [`Output::Request`], behind which others come: it leaves at once
    /// and is not confirmable. To who has not shown that it has its address nothing is sent. An
    /// exchange lasts for [`MAX_EXCHANGE_TIME`] behind its newest part.
    Further {
        /// The number of the request.
        exchange: u64,
        /// The part, at most a datagram.
        content: Content,
    },
    /// A peer's request gets no answer, or no further part of one.
    Drop {
        /// The number of the request.
        exchange: u64,
    },
    /// The answer to an [`Output::Request`]. With Observe (of any value) it agrees to what the
    /// request asked for: from then on there may be [`Input::Notify`], until [`Output::Ended`].
    Respond {
        /// The number of the request.
        exchange: u64,
        /// The response, at most a datagram.
        content: Content,
    },
    /// In place of the answer to an [`Output::Request`]: who asks is to show first that it has its
    /// address (RFC 9175 §2.4). It then asks again.
    Challenge {
        /// The number of the request.
        exchange: u64,
    },
    /// What a peer observes is now this. Of several that wait only the newest is sent. A code that
    /// is no success ends the observation (RFC 7641 §4.2).
    Notify {
        /// The number of the request that began it.
        exchange: u64,
        /// The notification.
        content: Content,
    },
    /// A request, or an observation, is of no use any more.
    Cancel {
        /// The caller's number for it.
        request: u64,
    },
    /// Whether the peer is there (RFC 7252 §4.3): ends with [`Output::Alive`] or a failure.
    Ping {
        /// The caller's number for it.
        request: u64,
        /// Who.
        peer: P,
    },
    /// The link has another rate in bit/s, or an unknown one.
    Rate(Option<u64>),
    /// Time has passed.
    Wake,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A datagram is to be sent.
    Datagram {
        /// To whom.
        peer: P,
        /// Its bytes.
        bytes: Bytes,
    },
    /// A peer's request, to be answered within [`MAX_EXCHANGE_TIME`]; a later answer is dropped.
    Request {
        /// The endpoint's number for it.
        exchange: u64,
        /// From whom.
        peer: P,
        /// The request.
        content: Content,
    },
    /// The same, whose body goes on: `content` has the beginning of it, and an [`Output::Flow`]
    /// each of the others, when there was room for it ([`Input::Flow`]): at first there is none. It
    /// may be answered before its end, which it then has none of.
    Opened {
        /// The number for it.
        exchange: u64,
        /// From whom.
        peer: P,
        /// The request.
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
    /// The peer has a request whose No-Response asked for none (RFC 7967); of one that is not
    /// confirmable only that none came.
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
    /// A peer observes no more.
    Ended {
        /// The number of the request that began it.
        exchange: u64,
    },
    /// When to call with [`Input::Wake`], unless a later one says otherwise.
    WakeAt(Duration),
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A bound of this endpoint is reached.
    Full,
    /// The peer acknowledged none of the transmissions.
    TimedOut,
    /// The peer acknowledged it, or it needs none, and no answer came.
    NoAnswer,
    /// The peer has no use for the message (RFC 7252 §4.2).
    Reset,
    /// The answer has a critical option that is unknown or breaks its bounds (RFC 7252 §5.4.1).
    BadAnswer,
    /// The answer's body is over [`super::super::MAX_BODY_BYTES`]; where it is given out as it
    /// comes, or where the request's is taken so, it has more blocks than there are numbers.
    TooLarge,
    /// The answer's body became another one, each time that its blocks were asked for; where it is
    /// given out as it comes, once.
    Changed,
    /// No message can be made of it.
    Misuse,
    /// The connection takes no further request (RFC 8323 §5.5).
    Closed,
    /// An observation that is protected by OSCORE is over its age: only who protected its request
    /// can make another one.
    Aged,
    /// The answer to a protected request is an error without protection, which anybody can say.
    Unprotected(Code),
    /// The answer to a protected request does not verify.
    Unverified,
}

/// What went wrong so far, each a number of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that were no message.
    pub malformed: u64,
    /// Messages that had come before.
    pub duplicates: u64,
    /// Responses and acknowledgements to nothing.
    pub unmatched: u64,
    /// Requests that were refused for a critical option or an unknown method.
    pub unsupported: u64,
    /// Requests that found no room.
    pub refused: u64,
    /// Requests that were answered with an Echo.
    pub challenged: u64,
    /// Transmissions after the first.
    pub retransmitted: u64,
    /// Notifications that came later than a newer one.
    pub stale: u64,
    /// Inputs that name nothing, or a number in use.
    pub misused: u64,
}
