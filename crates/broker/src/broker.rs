//! The core and the adapters, behind one input and one output.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::change::Change;
use crate::core::Core;
use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::mqtt::{self, Mqtt};
use crate::mqttsn::{self, MqttSn};
use crate::mqttudp::{self, MqttUdp};
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
    /// A datagram came.
    Datagram {
        /// By which of the shell's sockets; whose settings have its number decides the protocol.
        listener: u16,
        /// From where.
        from: SocketAddr,
        /// The datagram.
        bytes: Bytes,
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

/// One of each protocol.
#[derive(Debug)]
struct Adapters {
    mqtt: Mqtt,
    mqtt_sn: MqttSn,
    mqtt_udp: MqttUdp,
}

/// See the module.
#[derive(Debug)]
pub struct Broker {
    core: Core,
    outputs: Outputs,
    connections: BTreeMap<ConnectionId, Protocol>,
    adapters: Adapters,
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
            adapters: Adapters {
                mqtt: Mqtt::new(mqtt),
                mqtt_sn: MqttSn::new(mqttsn::Settings::default()),
                mqtt_udp: MqttUdp::new(mqttudp::Settings::default()),
            },
            woken_for: None,
        }
    }

    /// Listens to MQTT-SN too; to be called before any input.
    #[must_use]
    pub fn with_mqtt_sn(mut self, settings: mqttsn::Settings) -> Self {
        self.adapters.mqtt_sn = MqttSn::new(settings);
        self
    }

    /// Listens to MQTT/UDP too; to be called before any input.
    #[must_use]
    pub fn with_mqtt_udp(mut self, settings: mqttudp::Settings) -> Self {
        self.adapters.mqtt_udp = MqttUdp::new(settings);
        self
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

    /// The same, to be changed as an adapter would.
    #[cfg(test)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
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
        let Adapters { mqtt, mqtt_sn, mqtt_udp } = &self.adapters;
        let all = [mqtt.wake_at(), mqtt_sn.wake_at(), mqtt_udp.wake_at(), self.core.wake_at()];
        let wake_at = all.into_iter().flatten().min();
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
                let (adapters, _) = self.split(now);
                adapters.mqtt.connected(now, connection, certified);
            }
            Input::Received { connection, bytes } => {
                if self.connections.contains_key(&connection) {
                    let (adapters, mut context) = self.split(now);
                    adapters.mqtt.received(&mut context, connection, bytes);
                }
            }
            Input::Datagram { listener, from, bytes } => {
                let (Adapters { mqtt_sn, mqtt_udp, .. }, mut context) = self.split(now);
                if mqtt_sn.listens(listener) {
                    mqtt_sn.received(&mut context, listener, from, &bytes);
                } else {
                    mqtt_udp.received(&mut context, listener, from, &bytes);
                }
            }
            Input::Sent { connection, bytes } => {
                self.outputs.sent(connection, bytes);
                if self.outputs.room(connection) {
                    let (adapters, mut context) = self.split(now);
                    adapters.mqtt.writable(&mut context, connection);
                }
            }
            Input::Lost { connection } => {
                self.connections.remove(&connection);
                self.outputs.forget(connection);
                let (adapters, mut context) = self.split(now);
                adapters.mqtt.lost(&mut context, connection);
            }
            Input::Known { connection, user } => {
                let (adapters, mut context) = self.split(now);
                adapters.mqtt.known(&mut context, connection, user);
            }
            Input::Persisted { ticket } => {
                self.core.persisted(ticket);
                let (adapters, mut context) = self.split(now);
                adapters.mqtt.committed(&mut context);
                adapters.mqtt_sn.committed(&mut context);
                adapters.mqtt_udp.committed(&mut context);
            }
            Input::Wake => {
                self.woken_for = None;
                self.core.wake(now);
                let (adapters, mut context) = self.split(now);
                adapters.mqtt.wake(&mut context);
                adapters.mqtt_sn.wake(&mut context);
                adapters.mqtt_udp.wake(&mut context);
            }
            Input::Close => {
                self.core.set_closing();
                let (adapters, mut context) = self.split(now);
                adapters.mqtt.close(&mut context);
                adapters.mqtt_sn.close(&mut context);
            }
        }
    }

    /// Gives those who have something what they have room for.
    fn settle(&mut self, now: Duration) {
        while let Some((session, connection)) = self.core.next_ready() {
            let protocol = self.speaks(session);
            let (Adapters { mqtt, mqtt_sn, mqtt_udp }, mut context) = self.split(now);
            match protocol {
                Some(Protocol::MqttSn) => mqtt_sn.deliver(&mut context, session, connection),
                Some(Protocol::MqttUdp) => mqtt_udp.deliver(&mut context, session, connection),
                // A connection that ends gets nothing more.
                _ => mqtt.deliver(&mut context, session, connection),
            }
        }
    }

    fn split(&mut self, now: Duration) -> (&mut Adapters, Context<'_>) {
        let context = Context { now, core: &mut self.core, outputs: &mut self.outputs };
        (&mut self.adapters, context)
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
