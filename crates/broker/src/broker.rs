//! The core and the adapters, behind one input and one output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use crate::amqp::{self, Amqp};
use crate::change::Change;
use crate::core::Core;
use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::mqtt::{self, Mqtt};
use crate::outputs::{Context, Output, Outputs};
use crate::settings::Settings;

/// What comes in.
#[derive(Clone, Debug)]
pub enum Input {
    /// A connection was accepted, which speaks a protocol.
    Connected {
        /// The number that the shell gives it, never given again.
        connection: ConnectionId,
        /// By its listener.
        protocol: Protocol,
        /// Who its certificate says the client is, if it has one.
        certified: Option<Arc<str>>,
    },
    /// Bytes came.
    Received {
        /// Over which connection.
        connection: ConnectionId,
        /// The bytes, whose memory the broker may keep.
        bytes: BytesMut,
    },
    /// Bytes have left.
    Sent {
        /// Over which connection.
        connection: ConnectionId,
        /// How many.
        bytes: usize,
    },
    /// A connection has ended, or nothing more comes over it.
    Lost {
        /// Which.
        connection: ConnectionId,
    },
    /// Somebody is known, or not: the answer to [`Output::Login`].
    Known {
        /// By which connection.
        connection: ConnectionId,
        /// The user, `None` for those who need no name; an error for those who are not let in.
        user: Result<Option<Arc<str>>, ()>,
    },
    /// Changes have been written.
    Persisted {
        /// Which.
        ticket: Ticket,
    },
    /// The time of [`Output::WakeAt`] has come.
    Wake,
    /// The broker ends: clients are told, and nothing more is taken.
    Close,
}

/// See the module.
#[derive(Debug)]
pub struct Broker {
    core: Core,
    outputs: Outputs,
    connections: BTreeMap<ConnectionId, Protocol>,
    mqtt: Mqtt,
    amqp: Amqp,
    woken_for: Option<Option<Duration>>,
}

impl Broker {
    /// A broker that holds nothing.
    #[must_use]
    pub fn new(settings: Settings, mqtt: mqtt::Settings) -> Self {
        Self {
            core: Core::new(settings),
            outputs: Outputs::default(),
            connections: BTreeMap::new(),
            mqtt: Mqtt::new(mqtt),
            amqp: Amqp::new(amqp::Settings::default()),
            woken_for: None,
        }
    }

    /// Takes what an operator sets for AMQP 1.0, for connections that come.
    pub fn set_amqp(&mut self, settings: amqp::Settings) {
        self.amqp.set(settings);
    }

    /// Takes what a store has kept, before any input. Returns how many changes named what it does
    /// not have.
    pub fn restore(&mut self, now: Duration, changes: impl IntoIterator<Item = Change>) -> usize {
        self.core.restore(now, changes)
    }

    /// What all protocols share.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Takes settings that changed.
    pub fn set_settings(&mut self, settings: Settings) {
        self.core.set_settings(settings);
    }

    /// Takes an input at a time that never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.dispatch(now, input);
        self.settle(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.outputs.poll() {
            if let Output::Close { connection } = &output {
                self.connections.remove(connection);
            }
            return Some(output);
        }
        if let Some(event) = self.core.next_event() {
            return Some(Output::Event(event));
        }
        if let Some((ticket, changes)) = self.core.next_batch() {
            return Some(Output::Persist { ticket, changes });
        }
        let wake_at = [self.core.wake_at(), self.mqtt.wake_at(), self.amqp.wake_at()]
            .into_iter()
            .flatten()
            .min();
        if self.woken_for != Some(wake_at) {
            self.woken_for = Some(wake_at);
            return Some(Output::WakeAt(wake_at));
        }
        None
    }

    fn dispatch(&mut self, now: Duration, input: Input) {
        let Self { core, outputs, connections, mqtt, amqp, .. } = self;
        let mut context = Context { now, core, outputs };
        match input {
            Input::Connected { connection, protocol, certified } => {
                connections.insert(connection, protocol);
                context.outputs.open(connection);
                match protocol {
                    Protocol::Amqp => amqp.connected(&mut context, connection, certified),
                    _ => mqtt.connected(now, connection, certified),
                }
            }
            Input::Received { connection, bytes } => match connections.get(&connection) {
                Some(Protocol::Amqp) => amqp.received(&mut context, connection, bytes),
                Some(_) => mqtt.received(&mut context, connection, bytes),
                None => {}
            },
            Input::Sent { connection, bytes } => {
                context.outputs.sent(connection, bytes);
                if context.outputs.room(connection) {
                    match connections.get(&connection) {
                        Some(Protocol::Amqp) => amqp.writable(&mut context, connection),
                        _ => mqtt.writable(&mut context, connection),
                    }
                }
            }
            Input::Lost { connection } => {
                context.outputs.forget(connection);
                match connections.remove(&connection) {
                    Some(Protocol::Amqp) => amqp.lost(&mut context, connection),
                    _ => mqtt.lost(&mut context, connection),
                }
            }
            Input::Known { connection, user } => match connections.get(&connection) {
                Some(Protocol::Amqp) => amqp.known(&mut context, connection, user),
                _ => mqtt.known(&mut context, connection, user),
            },
            Input::Persisted { ticket } => {
                context.core.persisted(ticket);
                mqtt.committed(&mut context);
                amqp.committed(&mut context);
            }
            Input::Wake => {
                self.woken_for = None;
                context.core.wake(now);
                mqtt.wake(&mut context);
                amqp.wake(&mut context);
            }
            Input::Close => {
                context.core.set_closing();
                mqtt.close(&mut context);
                amqp.close(&mut context);
            }
        }
    }

    /// Gives those who have something what they have room for.
    fn settle(&mut self, now: Duration) {
        let Self { core, outputs, connections, mqtt, amqp, .. } = self;
        while let Some((session, connection)) = core.next_ready() {
            let context = &mut Context { now, core, outputs };
            match connections.get(&connection) {
                Some(Protocol::Amqp) => amqp.deliver(context, session, connection),
                Some(_) => mqtt.deliver(context, session, connection),
                None => {}
            }
        }
    }

    /// Whether a session has a connection that speaks a protocol.
    #[must_use]
    pub fn speaks(&self, session: SessionId) -> Option<Protocol> {
        self.core.client(session).map(|client| client.protocol)
    }

    /// Tells of something that happened in the shell.
    pub fn tell(&mut self, event: Event) {
        self.core.tell(event);
    }
}
