//! AMQP 0.9.1 over an ordered byte pipe: exchanges, queues, bindings, confirms.
//!
//! Exchanges and queues are of this protocol alone; the exchange `amq.topic` is the bridge to the
//! topics of all protocols ([`bridge`]). What an operator's rules allow is asked for
//! `amqp091/exchange/NAME` (declare, delete, publish; bind as subscribe) and `amqp091/queue/NAME`
//! (declare, consume, get as subscribe; publish by the default exchange), and at the bridge for the
//! topics themselves.
//!
//! - `host/`: exchanges, queues and their messages, with `routing/`, `queue`, `arguments` and
//!   `deaths`;
//! - `connection`, `channel`, `methods`: one client, and what its methods do;
//! - `translate`, `names`: properties and routing keys as fields and topics, and back;
//! - `storing`: what the store has of it.

mod arguments;
mod bridge;
mod channel;
mod connection;
mod deaths;
mod fault;
mod host;
mod methods;
mod modern;
mod names;
mod queue;
mod routing;
mod storing;
#[cfg(test)]
mod tests;
mod translate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::amqp091::ReplyCode;
use proto::amqp091::machine::{self, Closed, Credentials, Output, Server};
use proto::timers::Timers;

use crate::adapter::Adapter;
use crate::core::Opening;
use crate::event::Event;
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::outputs::{Context, Login};
use crate::refusal::Refusal;
pub(crate) use bridge::BRIDGE_CONNECTION;
use connection::{Connection, method_of};
use host::{Host, QueueId};
use methods::Call;
pub use names::{key_of, pattern_of, topic_of};
use queue::ConsumerId;
pub use translate::{pairs, reply_to, reply_topic};

/// What an operator sets for AMQP 0.9.1.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The virtual host; there is one. Clients as a rule ask for `/`.
    pub virtual_host: String,
    /// Channels of a connection.
    pub channel_max: u16,
    /// Longest frame, in bytes.
    pub frame_max_bytes: u32,
    /// Longest body of a message, in bytes.
    pub max_message_bytes: u64,
    /// Seconds between signs of life that clients are asked for.
    pub heartbeat_s: u16,
    /// The version of the program, which clients are told.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            virtual_host: "/".to_owned(),
            channel_max: 2047,
            frame_max_bytes: 128 << 10,
            max_message_bytes: 16 << 20,
            heartbeat_s: 60,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Amqp091 {
    settings: Settings,
    host: Host,
    connections: BTreeMap<ConnectionId, Connection>,
    timers: Timers<ConnectionId>,
    /// Connections with a confirm that waits for the store.
    holding: BTreeSet<ConnectionId>,
    /// Connections whose consumers wait for room.
    full: BTreeSet<ConnectionId>,
}

impl Amqp091 {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            host: Host::default(),
            connections: BTreeMap::new(),
            timers: Timers::default(),
            holding: BTreeSet::new(),
            full: BTreeSet::new(),
        }
    }

    /// Takes the records that the store had; how many were none.
    pub(crate) fn restore(&mut self, context: &mut Context<'_>) -> usize {
        let records = context.core.journal.take_kept(Protocol::Amqp091);
        self.host.restore(context, records)
    }

    /// Does what a connection's machine says, until there is nothing left.
    fn poll(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(mut connection) = self.connections.remove(&id) else { return };
        let mut is_over = false;
        while let Some(output) = connection.server.poll_output() {
            match output {
                Output::Transmit(bytes) => context.outputs.append(id, &bytes),
                Output::Authenticate(credentials) => {
                    login(context, &mut connection, credentials);
                }
                Output::Open { virtual_host } => {
                    self.open(context, &mut connection, &virtual_host);
                }
                Output::ChannelOpened(number) => {
                    connection.channels.insert(number, channel::Channel::default());
                }
                Output::ChannelClosed(number) => {
                    connection.close_channel(context, &mut self.host, number);
                }
                Output::Method { channel, payload } => {
                    let Some(method) = method_of(&payload) else { continue };
                    let (host, connection) = (&mut self.host, &mut connection);
                    Call { context, host, connection, channel }.run(&method);
                }
                Output::Publish(publish) => {
                    connection.published(context, &mut self.host, publish);
                }
                Output::WakeAt(at) => self.timers.set(id, Some(at)),
                Output::Closed(closed) => {
                    self.ended(context, &mut connection, Some(&closed));
                    is_over = true;
                }
            }
        }
        if is_over {
            context.outputs.close(id);
        } else {
            if connection.server.is_ending() {
                // What it has goes to others at once.
                connection.close(context, &mut self.host);
            }
            if connection.confirm(context.core.journal.done()) {
                self.holding.insert(id);
            }
            connection.flush(context);
            self.connections.insert(id, connection);
        }
        self.pump(context);
    }

    fn open(&mut self, context: &mut Context<'_>, connection: &mut Connection, virtual_host: &str) {
        if virtual_host != self.settings.virtual_host {
            let text = format!("no virtual host '{virtual_host}'");
            return connection.server.close(ReplyCode::NotAllowed, &text, (10, 40));
        }
        let id = connection.client.connection;
        let user = connection.client.user.clone();
        let name: Arc<str> = format!("{}@{}", user.as_deref().unwrap_or(""), id.0).into();
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Amqp091, name: name.clone() },
            connection: id,
            user,
            clean: true,
            expiry: Duration::ZERO,
            window: 1,
            will: None,
        };
        match context.core.open(context.now, opening) {
            Ok(opened) => {
                connection.client.name = name;
                connection.session = Some(opened.session);
                connection.server.opened();
            }
            Err(refusal) => {
                let code = match refusal {
                    Refusal::Closing => ReplyCode::ConnectionForced,
                    _ => ReplyCode::ResourceError,
                };
                connection.server.close(code, &refusal.to_string(), (10, 40));
            }
        }
    }

    /// A connection has ended, in good order or not.
    fn ended(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection,
        closed: Option<&Closed>,
    ) {
        let id = connection.client.connection;
        connection.close(context, &mut self.host);
        self.timers.set(id, None);
        self.holding.remove(&id);
        self.full.remove(&id);
        let why = match closed {
            None | Some(Closed::Client) => None,
            Some(Closed::Server(_, text)) => Some(text.clone()),
            Some(Closed::Protocol) => Some("it does not begin with AMQP 0.9.1".to_owned()),
            Some(Closed::Silent) => Some("it has given no sign of life".to_owned()),
        };
        if let Some(why) = why {
            let who = connection.client.name.clone();
            let why = if who.is_empty() { why } else { format!("{who}: {why}") };
            let (protocol, connection) = (Protocol::Amqp091, Some(id));
            context.core.tell(Event::Refused { protocol, connection, why });
        }
        if let Some(session) = connection.session.take() {
            let orderly = closed == Some(&Closed::Client);
            context.core.close(context.now, session, id, orderly, None);
        }
    }

    /// Gives consumers what their queues have, and tells those whose queue has gone.
    fn pump(&mut self, context: &mut Context<'_>) {
        loop {
            while let Some(consumer) = self.host.next_cancelled() {
                if let Some(connection) = self.connections.get_mut(&consumer.connection) {
                    connection.cancelled(&consumer);
                    connection.flush(context);
                }
            }
            let Some(id) = self.host.next_ready() else { return };
            while let Some((at, consumer)) = self.candidate(context, &id) {
                let Some(entry) = self.host.take(context, &id) else { break };
                if let Some(queue) = self.host.queue_mut(&id) {
                    queue.rotate_behind(at);
                }
                if let Some(connection) = self.connections.get_mut(&consumer.connection) {
                    connection.deliver(context, &mut self.host, &consumer, &id, entry);
                }
            }
            self.host.bury(context);
        }
    }

    /// The next consumer of a queue that takes something now.
    fn candidate(&mut self, context: &Context<'_>, id: &QueueId) -> Option<(usize, ConsumerId)> {
        let queue = self.host.queue_mut(id).filter(|queue| queue.len() > 0)?;
        for (at, consumer) in queue.candidates().enumerate() {
            let Some(connection) = self.connections.get(&consumer.connection) else { continue };
            if !connection.server.is_open(consumer.channel) {
                continue;
            }
            let channel = connection.channels.get(&consumer.channel);
            if !channel.is_some_and(|channel| channel.has_room(&consumer.tag)) {
                continue;
            }
            if context.outputs.room(consumer.connection) {
                return Some((at, consumer.clone()));
            }
            self.full.insert(consumer.connection);
        }
        None
    }
}

/// Asks who a client is.
fn login(context: &mut Context<'_>, connection: &mut Connection, credentials: Credentials) {
    let id = connection.client.connection;
    let (user, password) = match credentials {
        Credentials::Password { user, password } => (user, Some(Bytes::from(password))),
        // The certificate has shown it.
        Credentials::External => {
            connection.client.user = connection.certified.clone();
            return connection.server.authenticated(connection.certified.is_some());
        }
    };
    context.outputs.login(Login { connection: id, user: Some(user), password });
}

impl Adapter for Amqp091 {
    fn connected(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        certified: Option<Arc<str>>,
    ) {
        let now = context.now;
        let settings = machine::Settings {
            product: "longwire".to_owned(),
            version: self.settings.version.clone(),
            has_external: certified.is_some(),
            channel_max: self.settings.channel_max,
            frame_max_bytes: self.settings.frame_max_bytes,
            heartbeat_s: self.settings.heartbeat_s,
            max_message_bytes: self.settings.max_message_bytes,
        };
        let mut connection = Connection::new(id, Server::new(now, settings), certified);
        // Before anything has come there is only a time to wait for.
        if let Some(Output::WakeAt(at)) = connection.server.poll_output() {
            self.timers.set(id, Some(at));
        }
        self.connections.insert(id, connection);
    }

    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.server.handle_input(context.now, machine::Input::Bytes(&bytes));
            self.poll(context, id);
        }
    }

    fn known(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.server.authenticated(user.is_ok());
        connection.client.user = user.ok().flatten();
        self.poll(context, id);
    }

    fn deliver(&mut self, context: &mut Context<'_>, _session: SessionId, id: ConnectionId) {
        if id == BRIDGE_CONNECTION {
            self.host.receive(context);
            self.pump(context);
        }
    }

    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if !self.full.remove(&id) {
            return;
        }
        let Some(connection) = self.connections.get(&id) else { return };
        for channel in connection.channels.values() {
            for (_, consumer) in channel.consumers() {
                self.host.set_ready(&consumer.queue);
            }
        }
        self.pump(context);
    }

    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if let Some(mut connection) = self.connections.remove(&id) {
            self.ended(context, &mut connection, None);
            self.pump(context);
        }
    }

    fn committed(&mut self, context: &mut Context<'_>) {
        let committed = context.core.journal.done();
        let connections = &mut self.connections;
        self.holding.retain(|id| {
            let Some(connection) = connections.get_mut(id) else { return false };
            let is_holding = connection.confirm(committed);
            connection.flush(context);
            is_holding
        });
    }

    fn wake(&mut self, context: &mut Context<'_>) {
        while let Some(id) = self.timers.pop(context.now) {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.server.handle_input(context.now, machine::Input::Wake);
                self.poll(context, id);
            }
        }
        self.host.wake(context);
        self.pump(context);
    }

    fn wake_at(&self) -> Option<Duration> {
        [self.timers.next(), self.host.wake_at()].into_iter().flatten().min()
    }

    fn close(&mut self, context: &mut Context<'_>) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in all {
            if let Some(connection) = self.connections.get_mut(&id) {
                let text = "the broker ends";
                connection.server.close(ReplyCode::ConnectionForced, text, (0, 0));
                self.poll(context, id);
            }
        }
    }
}
