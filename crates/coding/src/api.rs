//! What goes into [`super::Coding`] and what comes out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use codec::dictionary;
use decide::estimate::Transport;
use record::event::Fact;

use super::ids::{ExchangeId, PathId};
use super::job::{Done, Job};
use super::recipient::{Framing, Recipient};
use super::speeds::Speeds;

/// What is known of an exchange when it is opened: of both its messages.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Scheme and authority, or whatever names the service where no settings are given for it.
    pub target: String,
    /// The operation, without what differs from one message to the next.
    pub operation: String,
    /// What is set for the service: index in [`super::config::Config::services`].
    pub service: Option<usize>,
    /// Bytes both ways without messages: they are never encoded.
    pub tunnel: bool,
    /// Who asks, as far as this side can tell (a hash); messages of two requesters are never
    /// encoded against each other, and those of nobody against none.
    pub requester: Option<dictionary::Id>,
    /// Another site asks by somebody's browser: nothing of it is encoded or kept.
    pub cross_site: bool,
    /// Nobody may keep any of it.
    pub private: bool,
}

/// The message that this side sends in an exchange.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Media type, with parameters.
    pub media: Option<String>,
    /// The body has a content coding of its sender's.
    pub coded: bool,
    /// Length of the body in bytes, where it is known beforehand.
    pub length: Option<u64>,
    /// Why every byte of the body has to come back, where its infoset would not do.
    pub exact: Option<&'static str>,
    /// Bytes that precede the body on the path.
    pub head_bytes: usize,
    /// The head does not wait for the first block of the body.
    pub urgent: bool,
    /// There is no body.
    pub end: bool,
    /// Who gets it, where that is no peer: such an exchange has no path, and its message begins
    /// with the first bytes of the body, or its end.
    pub recipient: Option<Arc<Recipient>>,
}

/// What a peer can do, as it says when it connects.
#[derive(Clone, Debug, Default)]
pub struct Abilities {
    /// Codecs that it decodes, by number.
    pub codecs: Vec<u64>,
    /// Greatest window that it decodes with, as a power of two.
    pub max_window_log: u8,
    /// A later block of a message may begin a new context.
    pub renews: bool,
    /// Credit that the body of a message starts with, in bytes.
    pub initial_credit: u64,
    /// It is what the peer said on a path before: nothing that it holds counts, for it may have
    /// started again.
    pub early: bool,
}

/// What a path has carried and what waits, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wire {
    /// Given to the transport.
    pub transmitted: u64,
    /// Given to the transport and not yet taken by it.
    pub in_flight: usize,
    /// Ready for the transport.
    pub queued: usize,
    /// Nothing waits and nothing is in flight.
    pub idle: bool,
}

/// A piece of a body as it came: blocks end with the piece that says their decoded length.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Decoded length of the block that ends with this piece.
    pub block_end: Option<u64>,
    /// The block did not go through the message's codec.
    pub uncoded: bool,
    /// The block begins a new context.
    pub anew: bool,
    /// The body ends with it.
    pub end: bool,
    /// The bytes.
    pub bytes: Bytes,
}

/// A part of a body was given to the path.
#[derive(Clone, Copy, Debug)]
pub struct Departed {
    /// It is some of the body, and not only the end.
    pub body: bool,
    /// A block is gone with it.
    pub block: bool,
    /// More of the message is ready.
    pub more: bool,
    /// Nothing of the message is left.
    pub end: bool,
}

/// Why an exchange cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whose fault it is.
    pub kind: FaultKind,
    /// One line for a person.
    pub reason: String,
}

/// The kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The peer sent what cannot be decoded.
    Corrupt,
    /// A bound of this side was reached.
    Limit,
}

impl Fault {
    pub(super) fn corrupt(reason: impl Into<String>) -> Self {
        Self { kind: FaultKind::Corrupt, reason: reason.into() }
    }
}

/// What happens.
#[derive(Debug)]
pub enum Input {
    /// An exchange is opened; it waits for [`Input::Attach`].
    Open {
        /// The exchange.
        exchange: ExchangeId,
        /// What is known of it.
        about: About,
    },
    /// This side's message begins.
    Message {
        /// The exchange.
        exchange: ExchangeId,
        /// What is known of it.
        message: Message,
    },
    /// What is set for this service counts from here on, where it was not known before.
    Service {
        /// The exchange.
        exchange: ExchangeId,
        /// Index in [`super::config::Config::services`].
        service: usize,
    },
    /// Bytes of the body of this side's message.
    Body {
        /// The exchange.
        exchange: ExchangeId,
        /// The bytes.
        bytes: Bytes,
    },
    /// The body of this side's message is whole.
    End {
        /// The exchange.
        exchange: ExchangeId,
        /// Trailer fields follow it.
        trailers: bool,
    },
    /// The exchange goes over this path.
    Attach {
        /// The exchange.
        exchange: ExchangeId,
        /// The path.
        path: PathId,
    },
    /// The exchange has no path.
    Detach {
        /// The exchange.
        exchange: ExchangeId,
        /// Nothing is decided before it has one again.
        waits: bool,
    },
    /// Bytes of body that the peer takes now.
    Credit {
        /// The exchange.
        exchange: ExchangeId,
        /// Bytes.
        bytes: u64,
    },
    /// The head of this side's message was given to the path.
    Led {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// Some of the body of this side's message was given to the path.
    Departed {
        /// The exchange.
        exchange: ExchangeId,
        /// What of it.
        departed: Departed,
    },
    /// The body could go on, but for the peer's credit.
    Starved {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// This side's message goes again from its beginning.
    Rewind {
        /// The exchange.
        exchange: ExchangeId,
        /// All of its body.
        body: Bytes,
    },
    /// This side's message goes anew, as it is, where it has gone by what its path's ends hold.
    Anew {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// Nothing more of this side's message is wanted.
    Stop {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// The head of the exchange's answer is known.
    Answered {
        /// The exchange.
        exchange: ExchangeId,
        /// Nobody may keep any of the exchange.
        private: bool,
    },
    /// The head of the peer's message came.
    Expect {
        /// The exchange.
        exchange: ExchangeId,
        /// What its body goes in.
        options: Options,
        /// There is no body.
        end: bool,
    },
    /// A piece of the body of the peer's message came.
    Piece {
        /// The exchange.
        exchange: ExchangeId,
        /// The piece.
        piece: Piece,
        /// Bytes that the path has brought in all, with it.
        received: u64,
    },
    /// The body of the peer's message ended, by itself.
    PeerEnd {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// What was last decoded has been delivered, all of it or not.
    Delivered {
        /// The exchange.
        exchange: ExchangeId,
        /// All of it.
        all: bool,
    },
    /// Of this side's message nothing more comes over the path.
    Leave {
        /// The exchange.
        exchange: ExchangeId,
        /// The path.
        path: PathId,
    },
    /// A recipient that is no peer has all of this side's message.
    Arrived {
        /// The exchange.
        exchange: ExchangeId,
        /// Bytes of the body as they went.
        bytes: u64,
        /// How long the network took for them.
        network: Duration,
    },
    /// Is there a secret in this content? Answered by [`Output::Screened`], of whatever exchange.
    Screen {
        /// The exchange.
        exchange: ExchangeId,
        /// The content, at most a block.
        bytes: Bytes,
    },
    /// The exchange is over.
    Forget {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// A job is done.
    Done(Done),
    /// A peer is connected.
    Up {
        /// The path.
        path: PathId,
        /// Name of the peer.
        peer: String,
        /// What kind of carrier it is: what is learned of one says little of another.
        kind: &'static str,
        /// Instance of the peer's process.
        instance: u64,
        /// What it can do.
        abilities: Abilities,
    },
    /// A path is gone.
    Down {
        /// The path.
        path: PathId,
    },
    /// What a path has carried.
    Wire {
        /// The path.
        path: PathId,
        /// As it is now.
        wire: Wire,
    },
    /// Counters of a path's transport.
    Transport {
        /// The path.
        path: PathId,
        /// As they are now.
        transport: Transport,
    },
    /// A control message of the peer's came.
    Control {
        /// The path.
        path: PathId,
        /// Its kind.
        kind: u64,
        /// Its content.
        content: Bytes,
    },
    /// Something leaves on the path: what waits to be piggybacked goes with it.
    Leaves {
        /// The path.
        path: PathId,
    },
    /// Nothing waits to be piggybacked on the path any more.
    Flush {
        /// The path.
        path: PathId,
    },
    /// This processor was measured.
    Speeds(Vec<Speeds>),
    /// The instant of [`super::Coding::wake_at`] has come.
    Wake,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub enum Output {
    /// The head of this side's message may go; it names this encoding.
    Settled {
        /// The exchange.
        exchange: ExchangeId,
        /// Codec and window.
        options: Options,
        /// How its blocks are framed.
        framing: Framing,
        /// What comes of it was expected, so that [`Input::Arrived`] teaches something.
        awaited: bool,
        /// The body that comes out at the peer has this length, where that is another.
        length: Option<usize>,
    },
    /// A block of the body of this side's message is ready.
    Block {
        /// The exchange.
        exchange: ExchangeId,
        /// The block.
        bytes: Bytes,
        /// Its length when decoded.
        decoded_len: usize,
        /// It went through the codec.
        coded: bool,
        /// It begins a new context.
        anew: bool,
        /// The message ends with it.
        end: bool,
    },
    /// Behind the blocks the trailer fields of this side's message may go.
    Trailers {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// This side's message goes anew, as it is: nothing of what was given before may go.
    Anew {
        /// The exchange.
        exchange: ExchangeId,
        /// Its body.
        body: Bytes,
    },
    /// Some of the body of the peer's message is decoded.
    Body {
        /// The exchange.
        exchange: ExchangeId,
        /// The bytes.
        bytes: Bytes,
    },
    /// So much of the peer's credit was used up, of what has come.
    Consumed {
        /// The exchange.
        exchange: ExchangeId,
        /// Bytes.
        bytes: u64,
    },
    /// All of the body of the peer's message was decoded.
    Received {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// The exchange cannot go on.
    Fault {
        /// The exchange.
        exchange: ExchangeId,
        /// Why.
        fault: Fault,
    },
    /// Content was read for secrets.
    Screened {
        /// The exchange.
        exchange: ExchangeId,
        /// The content with its hash, where it can be read and there is none in it.
        kept: Option<Arc<dictionary::Kept>>,
    },
    /// A control message for the peer.
    Control {
        /// The path.
        path: PathId,
        /// Its kind.
        kind: u64,
        /// Its content.
        content: Bytes,
    },
    /// Read the counters of a path's transport; answer with [`Input::Transport`].
    Measure {
        /// The path.
        path: PathId,
        /// However lately they were read.
        anyway: bool,
    },
    /// A job for a worker.
    Job(Job),
    /// Drop the codec contexts of an exchange.
    Release {
        /// The exchange.
        exchange: ExchangeId,
    },
    /// What the peer said was not used.
    Ignored {
        /// The path.
        path: PathId,
        /// What it is about.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Keep these bytes under this name.
    Store {
        /// The name.
        name: [u8; 32],
        /// The bytes.
        bytes: Bytes,
    },
    /// What is kept under this name is in use.
    Used {
        /// The name.
        name: [u8; 32],
    },
    /// What is kept under this name went for something else.
    Dropped {
        /// The name.
        name: [u8; 32],
    },
    /// A fact for logs, metrics and learning.
    Event(Fact),
}

impl Output {
    /// The exchange that it is of, where there can be a recipient that is no peer in it.
    #[must_use]
    pub fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Self::Settled { exchange, .. }
            | Self::Block { exchange, .. }
            | Self::Trailers { exchange }
            | Self::Screened { exchange, .. }
            | Self::Fault { exchange, .. } => Some(*exchange),
            _ => None,
        }
    }
}
