//! AMQP 1.0 over an ordered byte pipe (the map is in the table of mediation).
//!
//! Nodes are topics: a link to one publishes to it, a link from one subscribes to its address as a
//! filter. Each subscription is a session of the core, named by container and link, which outlives
//! its link where its terminus does (AMQP 1.0 Part 3 §3.5.5, §3.5.6). What a container publishes,
//! it does in one more session, which has the name of the container.

mod address;
mod cbor;
mod classic;
mod connection;
mod correlation;
mod deliver;
mod linking;
mod receive;
mod selector;
#[cfg(test)]
mod tests;
mod translate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use proto::amqp::machine::Input;
use proto::amqp::performative::{ErrorInfo, condition};
use proto::timers::Timers;

use crate::adapter::Adapter;
use crate::ids::{ConnectionId, SessionId};
use crate::outputs::Context;
use connection::Connection;

pub(crate) use correlation::text_of as correlation_text;
pub use correlation::to_text as name;
pub use translate::{payload, text};

/// What an operator sets for AMQP 1.0.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the broker's container.
    pub container_id: String,
    /// Longest message in bytes.
    pub max_message_bytes: usize,
    /// A peer that sends nothing for so long is given up; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Whether a peer may leave out the SASL layer, as one that gives no name.
    pub allows_no_sasl: bool,
    /// Deliveries of a link that may be under way to the broker.
    pub link_window: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            container_id: "longwire".to_owned(),
            max_message_bytes: 16 << 20,
            idle_timeout: Some(Duration::from_secs(120)),
            allows_no_sasl: true,
            link_window: 256,
        }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(super) struct Shared {
    settings: Settings,
    timers: Timers<ConnectionId>,
    /// Connections with something that waits for the store.
    holding: BTreeSet<ConnectionId>,
    /// Names of publishing sessions in use.
    names: BTreeMap<Arc<str>, ConnectionId>,
    /// Sessions that another connection has taken, and the connection that had them.
    displaced: Vec<(ConnectionId, SessionId)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Amqp {
    shared: Shared,
    connections: BTreeMap<ConnectionId, Connection>,
}

impl Amqp {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            shared: Shared {
                settings,
                timers: Timers::default(),
                holding: BTreeSet::new(),
                names: BTreeMap::new(),
                displaced: Vec::new(),
            },
            connections: BTreeMap::new(),
        }
    }

    fn feed(&mut self, context: &mut Context<'_>, id: ConnectionId, input: Input) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.feed(context, &mut self.shared, input);
        }
        self.settle(context, id);
    }

    /// Sees to what a connection has done to others, and to its end.
    fn settle(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        while let Some((other, session)) = self.shared.displaced.pop() {
            if let Some(connection) = self.connections.get_mut(&other) {
                connection.lose(context, &mut self.shared, session);
            }
        }
        if self.connections.get(&id).is_some_and(Connection::is_over) {
            self.forget(id);
            context.outputs.close(id);
        }
    }

    fn forget(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.shared.timers.set(id, None);
        self.shared.holding.remove(&id);
        self.shared.names.retain(|_, of| *of != id);
    }
}

impl Adapter for Amqp {
    fn connected(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        certified: Option<Arc<str>>,
    ) {
        let connection = Connection::new(context.now, id, &self.shared.settings, certified);
        self.connections.insert(id, connection);
        self.feed(context, id, Input::Wake);
    }

    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut) {
        self.feed(context, id, Input::Bytes(bytes.freeze()));
    }

    fn known(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.known(context, &mut self.shared, user);
        }
        self.settle(context, id);
    }

    fn deliver(&mut self, context: &mut Context<'_>, session: SessionId, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.deliver_to(context, &mut self.shared, session);
        }
        self.settle(context, id);
    }

    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.deliver_all(context, &mut self.shared);
        }
        self.settle(context, id);
    }

    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        self.feed(context, id, Input::Eof);
        self.forget(id);
    }

    fn committed(&mut self, context: &mut Context<'_>) {
        for id in std::mem::take(&mut self.shared.holding) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.committed(context, &mut self.shared);
            }
            self.settle(context, id);
        }
    }

    fn wake(&mut self, context: &mut Context<'_>) {
        while let Some(id) = self.shared.timers.pop(context.now) {
            self.feed(context, id, Input::Wake);
        }
    }

    fn wake_at(&self) -> Option<Duration> {
        self.shared.timers.next()
    }

    fn close(&mut self, context: &mut Context<'_>) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        let error = ErrorInfo::new(condition::CONNECTION_FORCED, "the broker is ending");
        for id in all {
            self.feed(context, id, Input::Close { error: Some(error.clone()) });
        }
    }
}
