//! What happened, for logs, metrics and explanations.

use std::sync::Arc;

use crate::ids::{ClientKey, ConnectionId, Protocol};

/// Why a publication did not go on, or not to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drop {
    /// It was of no use any more.
    Expired,
    /// The session's queue, or all queues together, were at their bound.
    QueueFull,
    /// A newer one of its topic took its place.
    Superseded,
    /// A rule blocks its topic.
    Blocked,
    /// A rule lets one pass in an interval, and one had.
    Thinned,
    /// The session ended.
    SessionEnded,
    /// It is longer than the client takes.
    TooLarge,
    /// The client refused it.
    Refused,
    /// The protocol cannot say the topic or the message.
    Unmappable,
    /// It has passed this node, or too many.
    Loop,
}

impl Drop {
    /// Every one, with its name in events and metrics.
    pub const NAMES: [(Self, &'static str); 10] = [
        (Self::Expired, "expired"),
        (Self::QueueFull, "queue-full"),
        (Self::Superseded, "superseded"),
        (Self::Blocked, "blocked"),
        (Self::Thinned, "thinned"),
        (Self::SessionEnded, "session-ended"),
        (Self::TooLarge, "too-large"),
        (Self::Refused, "refused"),
        (Self::Unmappable, "unmappable"),
        (Self::Loop, "loop"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(drop, _)| *drop == self).map_or("", |(_, name)| name)
    }

    /// Where it is in [`Drop::NAMES`].
    pub(crate) fn index(self) -> usize {
        Self::NAMES.iter().position(|(drop, _)| *drop == self).unwrap_or_default()
    }
}

/// Something that an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client has a session.
    Opened {
        /// Who.
        client: ClientKey,
        /// By which connection.
        connection: ConnectionId,
        /// Whether it found what it left.
        resumed: bool,
    },
    /// A client's connection has ended.
    Closed {
        /// Who.
        client: ClientKey,
        /// Whether it said so.
        orderly: bool,
    },
    /// A session is gone with all that it held.
    Ended {
        /// Whose.
        client: ClientKey,
    },
    /// A connection or a request of one was refused.
    Refused {
        /// By which protocol.
        protocol: Protocol,
        /// By which connection, if any.
        connection: Option<ConnectionId>,
        /// Why, with what was met and what is allowed.
        why: String,
    },
    /// A publication was taken.
    Published {
        /// Its number.
        id: u64,
        /// Its topic.
        topic: Arc<str>,
        /// By which protocol.
        protocol: Protocol,
        /// Bytes of its payload.
        bytes: usize,
        /// Sessions that it was queued for.
        receivers: usize,
    },
    /// A publication, or its way to one client, has ended without delivery.
    Dropped {
        /// Its number.
        id: u64,
        /// Its topic.
        topic: Arc<str>,
        /// To whom it would have gone; `None`: to nobody.
        client: Option<ClientKey>,
        /// Why.
        why: Drop,
    },
}

/// What has been counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions with a connection.
    pub connected: u64,
    /// Connections that got a session.
    pub opened: u64,
    /// Publications taken.
    pub published: u64,
    /// Bytes of their payloads.
    pub published_bytes: u64,
    /// Publications given to clients.
    pub delivered: u64,
    /// Bytes of their payloads.
    pub delivered_bytes: u64,
    /// Publications that ended without delivery, in the order of [`Drop::NAMES`].
    pub dropped: [u64; 10],
    /// Requests refused.
    pub refused: u64,
}
