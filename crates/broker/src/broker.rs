//! The core and the adapters, behind one input and one output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;

use crate::change::Change;
use crate::core::Core;
use crate::event::Event;
use crate::http::{Asked, Posted};
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::mqtt::{self, Mqtt};
use crate::outputs::{Context, Output, Outputs};
use crate::settings::Settings;
use crate::wsn::{self, Wsn};

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
    /// A request of HTTP came; its answer is an [`Output::Answer`].
    Asked(Asked),
    /// What came of an [`Output::Post`].
    Posted(Posted),
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
    wsn: Option<Wsn>,
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
            wsn: None,
            woken_for: None,
        }
    }

    /// Takes what a store has kept, before any input. Returns how many changes named what it does
    /// not have.
    pub fn restore(&mut self, now: Duration, changes: impl IntoIterator<Item = Change>) -> usize {
        self.core.restore(now, changes)
    }

    /// Speaks WS-Notification from now on; to be called behind [`Self::restore`].
    pub fn serve_wsn(&mut self, now: Duration, settings: wsn::Settings) {
        self.wsn = Some(Wsn::new(settings));
        self.with_wsn(now, |wsn, context| wsn.restore(context));
        self.settle(now);
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
        let of_wsn = self.wsn.as_ref().and_then(Wsn::wake_at);
        let wake_at = [self.core.wake_at(), self.mqtt.wake_at(), of_wsn];
        let wake_at = wake_at.into_iter().flatten().min();
        if self.woken_for != Some(wake_at) {
            self.woken_for = Some(wake_at);
            return Some(Output::WakeAt(wake_at));
        }
        None
    }

    fn dispatch(&mut self, now: Duration, input: Input) {
        match input {
            Input::Connected { connection, protocol, certified } => {
                self.connections.insert(connection, protocol);
                self.outputs.open(connection);
                let (adapter, _) = self.split(now);
                adapter.connected(now, connection, certified);
            }
            Input::Received { connection, bytes } => {
                if self.connections.contains_key(&connection) {
                    let (adapter, mut context) = self.split(now);
                    adapter.received(&mut context, connection, bytes);
                }
            }
            Input::Sent { connection, bytes } => {
                self.outputs.sent(connection, bytes);
                if self.outputs.room(connection) {
                    let (adapter, mut context) = self.split(now);
                    adapter.writable(&mut context, connection);
                }
            }
            Input::Lost { connection } => {
                self.connections.remove(&connection);
                self.outputs.forget(connection);
                let (adapter, mut context) = self.split(now);
                adapter.lost(&mut context, connection);
            }
            Input::Known { connection, user } => {
                let (adapter, mut context) = self.split(now);
                adapter.known(&mut context, connection, user);
            }
            Input::Asked(asked) => self.with_wsn(now, |wsn, context| wsn.ask(context, &asked)),
            Input::Posted(posted) => {
                self.with_wsn(now, |wsn, context| wsn.posted(context, &posted));
            }
            Input::Persisted { ticket } => {
                self.core.persisted(ticket);
                let (adapter, mut context) = self.split(now);
                adapter.committed(&mut context);
                self.with_wsn(now, |wsn, context| wsn.committed(context));
            }
            Input::Wake => {
                self.woken_for = None;
                self.core.wake(now);
                let (adapter, mut context) = self.split(now);
                adapter.wake(&mut context);
                self.with_wsn(now, |wsn, context| wsn.wake(context));
            }
            Input::Close => {
                self.core.set_closing();
                let (adapter, mut context) = self.split(now);
                adapter.close(&mut context);
            }
        }
    }

    /// Gives those who have something what they have room for.
    fn settle(&mut self, now: Duration) {
        while let Some((session, connection)) = self.core.next_ready() {
            if self.connections.contains_key(&connection) {
                let (adapter, mut context) = self.split(now);
                adapter.deliver(&mut context, session, connection);
            } else if self.speaks(session) == Some(Protocol::Wsn) {
                self.with_wsn(now, |wsn, context| wsn.deliver(context, connection));
            }
        }
    }

    fn with_wsn(&mut self, now: Duration, does: impl FnOnce(&mut Wsn, &mut Context<'_>)) {
        if let Some(wsn) = &mut self.wsn {
            let core = &mut self.core;
            does(wsn, &mut Context { now, core, outputs: &mut self.outputs });
        }
    }

    fn split(&mut self, now: Duration) -> (&mut Mqtt, Context<'_>) {
        let context = Context { now, core: &mut self.core, outputs: &mut self.outputs };
        (&mut self.mqtt, context)
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
