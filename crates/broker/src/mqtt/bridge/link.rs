//! How far a bridge is.

use std::sync::Arc;
use std::time::Duration;

use proto::mqtt::Version;

use super::{Bridge, has_passed, to_local};
use crate::event::Drop;
use crate::ids::{ConnectionId, SessionId};
use crate::publication::{MAX_HOPS, Publication};

/// Pause before the first connection is made again, and the longest.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// A bridge's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mqtt) enum DialState {
    /// Nothing has begun.
    New,
    /// A connection is to be made then.
    Waiting(Duration),
    /// It is being made.
    Dialling,
    /// It is there.
    Connected(ConnectionId),
}

/// A bridge with its state.
#[derive(Debug)]
pub(in crate::mqtt) struct Link {
    pub(in crate::mqtt) bridge: Arc<Bridge>,
    pub(in crate::mqtt) state: DialState,
    /// Its session here, once there is one.
    pub(in crate::mqtt) session: Option<SessionId>,
    /// It has been subscribed there since this process began.
    pub(in crate::mqtt) has_subscribed: bool,
    /// It says that it is a bridge, as long as the other broker takes that: only before MQTT 5.
    pub(in crate::mqtt) is_marked: bool,
    /// The other broker has answered the CONNECT of this connection.
    pub(in crate::mqtt) has_answered: bool,
    /// Connections that failed, since the last that did not.
    failures: u32,
}

/// A node at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mqtt) struct Peer {
    /// Its name.
    pub(in crate::mqtt) node: Arc<str>,
    /// Its name, and when it began: what its numbers of publications stand behind.
    pub(in crate::mqtt) mark: Arc<str>,
}

/// What a connection has that is a bridge's, or of another broker's bridge.
#[derive(Clone, Debug)]
pub(in crate::mqtt) struct End {
    /// This broker's name.
    pub(in crate::mqtt) node: Arc<str>,
    /// The other's, where it has said one.
    pub(in crate::mqtt) peer: Option<Peer>,
    /// The bridge with its number, where it is one of this broker.
    pub(in crate::mqtt) bridge: Option<(u16, Arc<Bridge>)>,
    /// A sign of life was asked for, and nothing has come since.
    pub(in crate::mqtt) pinged: bool,
    /// What it says of the nodes that a publication has passed is believed. Of others it is looked
    /// at for this node alone, which harms nobody but who says it.
    pub(in crate::mqtt) is_believed: bool,
    /// When this broker began, in seconds: its numbers of publications begin anew.
    pub(in crate::mqtt) born_s: u64,
}

impl Link {
    pub(in crate::mqtt) fn new(bridge: Bridge) -> Self {
        Self {
            is_marked: bridge.version != Version::V5,
            has_answered: false,
            bridge: Arc::new(bridge),
            state: DialState::New,
            session: None,
            has_subscribed: false,
            failures: 0,
        }
    }

    /// When a connection is to be made.
    pub(in crate::mqtt) fn dial_at(&self) -> Option<Duration> {
        match self.state {
            DialState::New => Some(Duration::ZERO),
            DialState::Waiting(at) => Some(at),
            DialState::Dialling | DialState::Connected(_) => None,
        }
    }

    /// The other broker lets the bridge in.
    pub(in crate::mqtt) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The connection is gone, or could not be made: the next is made after a pause that doubles
    /// with each failure.
    pub(in crate::mqtt) fn failed(&mut self, now: Duration) {
        let pause = MIN_PAUSE.saturating_mul(1 << self.failures.min(5)).min(MAX_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.state = DialState::Waiting(now.saturating_add(pause));
    }
}

impl End {
    /// Whether the other side is a broker that this one knows as such: it numbers what comes in
    /// there. Others only behave as bridges do.
    pub(in crate::mqtt) fn is_broker(&self) -> bool {
        self.peer.is_some() || self.bridge.is_some()
    }

    /// Gives what has come over a bridge its topic here and the nodes that it has passed.
    ///
    /// # Errors
    /// Why it goes no further: it has been here, or no route has its topic.
    pub(in crate::mqtt) fn arrives(
        &self,
        publication: &mut Publication,
        via: &[String],
        has_come: bool,
    ) -> Result<(), Drop> {
        if has_come || via.len() > MAX_HOPS || has_passed(via, &self.node) {
            return Err(Drop::Loop);
        }
        if let Some((_, bridge)) = &self.bridge {
            publication.topic =
                to_local(&bridge.routes, &publication.topic).ok_or(Drop::Unmappable)?;
        }
        if !via.is_empty() && self.is_believed {
            publication.details_mut().via = via.to_vec();
        }
        Ok(())
    }
}
