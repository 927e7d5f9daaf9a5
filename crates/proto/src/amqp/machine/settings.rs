//! What a connection is given, takes and says; its bounds and times.

use std::time::Duration;

use bytes::Bytes;

use crate::amqp::performative::{
    Attach, DeliveryState, ErrorInfo, ExpiryPolicy, Open, Source, TargetKind,
};
use crate::amqp::sasl::{Code, Credentials, Mechanism};
use crate::amqp::types::{Map, Symbol};

/// Longest frame that is taken, which is announced, and longest one that is sent, in bytes: so
/// others wait for no more than that.
pub const MAX_FRAME_BYTES: u32 = 64 << 10;
/// The greatest channel that is taken: a client has a session for each thread or so.
pub const MAX_CHANNEL: u16 = 255;
/// The greatest handle that is taken in a session.
pub const MAX_HANDLE: u32 = 1023;
/// Links of all sessions.
pub const MAX_LINKS: usize = 1024;
/// Transfers that a session takes before it says more.
pub const MAX_SESSION_WINDOW: u32 = 2048;
/// Deliveries of a link that were sent and are not settled.
pub const MAX_UNSETTLED: usize = 1 << 16;
/// Bytes that may come while the application has not said whether the peer is welcome.
pub const MAX_EARLY_BYTES: usize = 64 << 10;
/// Bytes of all messages of a connection of which the end is not there yet.
pub const MAX_PARTIAL_BYTES: usize = 64 << 20;
/// Bytes of a link's name.
pub const MAX_NAME_BYTES: usize = 4 << 10;
/// Bytes of words that go out with an error.
pub const MAX_DESCRIPTION_BYTES: usize = 256;
/// Shortest time that a peer may ask to hear something in, in milliseconds: the line would have
/// nothing else to carry.
pub const MIN_IDLE_TIME_OUT_MS: u32 = 100;

/// So long a peer may take from the first byte to its open, and to answer a close.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a connection is to be like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this container.
    pub container_id: String,
    /// Mechanisms of SASL; without any there is no SASL layer.
    pub mechanisms: Vec<Mechanism>,
    /// Whether a peer may leave the SASL layer out.
    pub allows_no_sasl: bool,
    /// A peer that sends nothing for so long is given up; it is told a shorter time
    /// (AMQP 1.0 Part 2 §2.4.5). `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Longest message in bytes; at most [`MAX_PARTIAL_BYTES`].
    pub max_message_bytes: usize,
    /// Extensions that are offered.
    pub offered_capabilities: Vec<Symbol>,
    /// What is said of this container.
    pub properties: Map,
}

/// A link, by a number that is given once in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u64);

/// How the application takes a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The link.
    pub link: LinkId,
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go.
    pub target: Option<TargetKind>,
    /// Deliveries that the link may have under way to this side, unsettled ones and those that the
    /// peer may send. It means nothing where this side sends.
    pub window: u32,
    /// Extensions of the link that are offered.
    pub offered_capabilities: Vec<Symbol>,
    /// More about it.
    pub properties: Map,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// Bytes of the peer.
    Bytes(Bytes),
    /// The peer sends no more.
    Eof,
    /// What became of [`Output::Authenticate`].
    Authenticated(Code),
    /// The peer of [`Output::Opened`] is welcome. One that is not gets [`Input::Close`].
    Open,
    /// A link of [`Output::Attached`] is taken.
    Accept(Box<Accepted>),
    /// A link of [`Output::Attached`] is not taken.
    Refuse {
        /// The link.
        link: LinkId,
        /// Why.
        error: ErrorInfo,
    },
    /// A link is detached.
    Detach {
        /// The link.
        link: LinkId,
        /// Whether it is over.
        closed: bool,
        /// Why.
        error: Option<ErrorInfo>,
    },
    /// A message goes to the peer. The link has to have credit ([`Output::Flow`]); where it has
    /// not, the delivery comes back as released.
    Deliver {
        /// The link.
        link: LinkId,
        /// What the application calls it; no other of this link that is not settled has the same.
        delivery: u64,
        /// Whether nothing is to come back.
        settled: bool,
        /// The message.
        message: Bytes,
    },
    /// What became of a delivery of the peer.
    Outcome {
        /// The link.
        link: LinkId,
        /// Its id.
        delivery: u32,
        /// The outcome.
        state: DeliveryState,
    },
    /// A delivery to the peer, whose outcome it has said, is forgotten here.
    Settle {
        /// The link.
        link: LinkId,
        /// What the application calls it.
        delivery: u64,
    },
    /// A link to this side may have so many deliveries under way ([`Accepted::window`]).
    Window {
        /// The link.
        link: LinkId,
        /// Deliveries.
        window: u32,
    },
    /// All that there is for a link that is drained was handed in ([`Output::Flow`]).
    Drained {
        /// The link.
        link: LinkId,
    },
    /// The connection ends.
    Close {
        /// Why.
        error: Option<ErrorInfo>,
    },
    /// The time of [`Output::WakeAt`] is there.
    Wake,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Bytes for the peer.
    Transmit(Bytes),
    /// [`Input::Wake`] at this time, unless another of these comes.
    WakeAt(Duration),
    /// Is the peer who it says? [`Input::Authenticated`] answers, and nothing goes on before.
    Authenticate {
        /// What it says.
        credentials: Credentials,
        /// The host that it wants to speak to.
        hostname: Option<String>,
    },
    /// The peer opened: [`Input::Open`] or [`Input::Close`] answers, and nothing goes on before.
    Opened(Box<Open>),
    /// The peer attached a link: [`Input::Accept`] or [`Input::Refuse`] answers. Its role is the
    /// peer's.
    Attached {
        /// The link.
        link: LinkId,
        /// What the peer says of it.
        attach: Box<Attach>,
    },
    /// A message came.
    Delivery(Delivery),
    /// The peer has settled a delivery of its own: it will not send it again.
    Settled {
        /// The link.
        link: LinkId,
        /// Its id.
        delivery: u32,
    },
    /// What became of a delivery to the peer.
    Disposition {
        /// The link.
        link: LinkId,
        /// What the application calls it.
        delivery: u64,
        /// What the peer says.
        state: Option<DeliveryState>,
        /// Whether the peer has settled it. If it has not, [`Input::Settle`] is to follow an
        /// outcome.
        settled: bool,
    },
    /// Deliveries that a link takes now.
    Flow {
        /// The link.
        link: LinkId,
        /// So many.
        credit: u32,
        /// Whether [`Input::Drained`] is awaited.
        drain: bool,
    },
    /// A link is no more, or its peer has let go of it. Deliveries that were under way have no
    /// outcome.
    Detached {
        /// The link.
        link: LinkId,
        /// When what it kept expires, as far as the peer has said it now: with its session or its
        /// connection. `None`: the link is over.
        by: Option<ExpiryPolicy>,
        /// Why.
        error: Option<ErrorInfo>,
    },
    /// The connection is over, and all its links: the last that the application hears.
    Closed {
        /// Why.
        error: Option<ErrorInfo>,
        /// Whether the peer ended it, in good order or not.
        by_peer: bool,
    },
    /// What carries the connection is to be closed, behind all that was to be transmitted.
    HangUp,
}

/// A message of the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The link.
    pub link: LinkId,
    /// Its id, until it is settled.
    pub delivery: u32,
    /// Its tag.
    pub tag: Bytes,
    /// The format of the message: 0 is that of Part 3.
    pub format: u32,
    /// Whether the peer has settled it; if not, [`Input::Outcome`] is awaited.
    pub settled: bool,
    /// Whether the peer settles behind [`Input::Outcome`] ([`Output::Settled`]).
    pub is_second: bool,
    /// The message.
    pub message: Bytes,
}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Inputs of the application that made no sense at their time.
    pub misused: u64,
    /// Deliveries of which the peer said that they are resumed, which nobody here knows of
    /// (AMQP 1.0 Part 2 §2.6.13).
    pub resumed: u64,
    /// Deliveries that the peer aborted.
    pub aborted: u64,
}
