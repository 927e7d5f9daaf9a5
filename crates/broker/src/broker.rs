//! The core and the adapters, behind one input and one output.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use record::publication::Publication as Facts;

use crate::adapter::Adapter;
use crate::amqp::{self, Amqp};
use crate::amqp091::{self, Amqp091, BRIDGE_CONNECTION};
use crate::change::Change;
use crate::core::{self, Core};
use crate::event::Event;
use crate::explain::Query;
use crate::federation::Refused;
use crate::http::{Answer, Asked, Posted};
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::mesh::{self, Adapted};
use crate::mqtt::{self, Mqtt};
use crate::mqttsn::{self, MqttSn};
use crate::mqttudp::{self, MqttUdp};
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
    /// A connection of a bridge was made, or not: the answer to [`Output::Dial`].
    Dialled {
        /// Which bridge.
        bridge: u16,
        /// The number that the shell gives the connection, never given again; or why there is none.
        result: Result<ConnectionId, String>,
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
    amqp: Amqp,
    amqp091: Amqp091,
    mqtt_sn: MqttSn,
    mqtt_udp: MqttUdp,
    wsn: Option<Wsn>,
    mesh: Option<Adapted>,
    woken_for: Option<Option<Duration>>,
}

impl Broker {
    /// A broker that holds nothing.
    #[must_use]
    pub fn new(settings: Settings, mqtt: mqtt::Settings) -> Self {
        Self {
            core: Core::new(settings),
            outputs: Outputs::default(),
            // What stands for a connection of an adapter's own session.
            connections: BTreeMap::from([(BRIDGE_CONNECTION, Protocol::Amqp091)]),
            mqtt: Mqtt::new(mqtt),
            amqp: Amqp::new(amqp::Settings::default()),
            amqp091: Amqp091::new(amqp091::Settings::default()),
            mqtt_sn: MqttSn::new(mqttsn::Settings::default()),
            mqtt_udp: MqttUdp::new(mqttudp::Settings::default()),
            wsn: None,
            mesh: None,
            woken_for: None,
        }
    }

    /// The same broker with other settings for AMQP 1.0, before any input.
    #[must_use]
    pub fn with_amqp(mut self, settings: amqp::Settings) -> Self {
        self.amqp = Amqp::new(settings);
        self
    }

    /// The same broker that listens to MQTT-SN too, before any input.
    #[must_use]
    pub fn with_mqtt_sn(mut self, settings: mqttsn::Settings) -> Self {
        self.mqtt_sn = MqttSn::new(settings);
        self
    }

    /// The same broker that listens to MQTT/UDP too, before any input.
    #[must_use]
    pub fn with_mqtt_udp(mut self, settings: mqttudp::Settings) -> Self {
        self.mqtt_udp = MqttUdp::new(settings);
        self
    }

    /// The same broker as a member of a mesh, before any input. The others are dialled by numbers
    /// behind those of the bridges ([`Output::Dial`]).
    #[must_use]
    pub fn with_mesh(mut self, settings: mesh::Settings) -> Self {
        core::watch(&mut self.core);
        let first = u16::try_from(self.bridges().len()).unwrap_or(u16::MAX);
        self.mesh = Some(Adapted::new(settings, first));
        self
    }

    /// The core, to be changed as an adapter would.
    #[cfg(test)]
    pub(crate) fn core_mut(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Takes what a store has kept, before any input. Returns how many changes named what it does
    /// not have.
    pub fn restore(&mut self, now: Duration, changes: impl IntoIterator<Item = Change>) -> usize {
        let unknown = self.core.restore(now, changes);
        let (core, outputs) = (&mut self.core, &mut self.outputs);
        let mut context = Context { now, core, outputs };
        self.mqtt.forget_bridges(&mut context);
        let unknown = unknown + self.mesh.as_mut().map_or(0, |mesh| mesh.restore(&mut context));
        unknown + self.amqp091.restore(&mut context) + self.mqtt_sn.restore(&mut context)
    }

    /// The same broker with other settings for AMQP 0.9.1, before any input.
    #[must_use]
    pub fn with_amqp091(mut self, settings: amqp091::Settings) -> Self {
        self.amqp091 = Amqp091::new(settings);
        self
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

    /// What became of publications that somebody asks for, as far as that is remembered
    /// ([`Settings::explain`]), in the order in which they came.
    #[must_use]
    pub fn explain(&self, query: &Query) -> Vec<Facts> {
        core::explain(&self.core, query)
    }

    /// What the profile of the federation has refused since the start.
    #[must_use]
    pub fn federation_refused(&self) -> Vec<Refused> {
        core::federation_refused(&self.core)
    }

    /// How its bridges are.
    #[must_use]
    pub fn bridges(&self) -> Vec<mqtt::BridgeStatus> {
        self.mqtt.bridges(&self.core)
    }

    /// How it is with the other members of its mesh.
    #[must_use]
    pub fn members(&self) -> Vec<mesh::MemberStatus> {
        self.mesh.as_ref().map(Adapted::members).unwrap_or_default()
    }

    /// Takes settings that changed.
    pub fn set_settings(&mut self, settings: Settings) {
        self.core.set_settings(settings);
    }

    /// Takes an input at a time that never goes back.
    pub fn handle_input(&mut self, now: Duration, input: Input) {
        self.outputs.set_now(now);
        core::set_now(&mut self.core, now);
        if let Some(input) = self.screen(input) {
            self.dispatch(now, input);
        }
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
        if let Some((ticket, changes)) = self.core.journal.next_batch() {
            return Some(Output::Persist { ticket, changes });
        }
        let wake_at = self.wake_at();
        if self.woken_for != Some(wake_at) {
            self.woken_for = Some(wake_at);
            return Some(Output::WakeAt(wake_at));
        }
        None
    }

    fn wake_at(&self) -> Option<Duration> {
        let all = [
            self.core.wake_at(),
            self.outputs.wake_at(),
            self.mqtt.wake_at(),
            self.amqp.wake_at(),
            self.amqp091.wake_at(),
            self.mqtt_sn.wake_at(),
            self.mqtt_udp.wake_at(),
            self.wsn.as_ref().and_then(Wsn::wake_at),
            self.mesh.as_ref().and_then(Adapter::wake_at),
        ];
        all.into_iter().flatten().min()
    }

    fn dispatch(&mut self, now: Duration, input: Input) {
        match input {
            Input::Connected { connection, protocol, certified } => {
                self.connections.insert(connection, protocol);
                self.outputs.open(connection);
                if let Some((adapter, mut context)) = self.adapter_of(now, connection) {
                    adapter.connected(&mut context, connection, certified);
                }
            }
            Input::Dialled { bridge, result } => self.dialled(now, bridge, result),
            Input::Received { connection, bytes } => {
                if let Some((adapter, mut context)) = self.adapter_of(now, connection) {
                    adapter.received(&mut context, connection, bytes);
                }
            }
            Input::Datagram { listener, from, bytes } => {
                let (mqtt_sn, mqtt_udp, mut context) = self.datagrams(now);
                if mqtt_sn.listens(listener) {
                    mqtt_sn.received(&mut context, listener, from, &bytes);
                } else {
                    mqtt_udp.received(&mut context, listener, from, &bytes);
                }
            }
            Input::Sent { connection, bytes } => {
                self.outputs.sent(connection, bytes);
                if self.outputs.room(connection)
                    && let Some((adapter, mut context)) = self.adapter_of(now, connection)
                {
                    adapter.writable(&mut context, connection);
                }
            }
            Input::Lost { connection } => {
                self.outputs.forget(connection);
                if let Some((adapter, mut context)) = self.adapter_of(now, connection) {
                    adapter.lost(&mut context, connection);
                }
                self.connections.remove(&connection);
            }
            Input::Known { connection, user } => {
                if let Some((adapter, mut context)) = self.adapter_of(now, connection) {
                    adapter.known(&mut context, connection, user);
                }
            }
            Input::Asked(asked) => self.with_wsn(now, |wsn, context| wsn.ask(context, &asked)),
            Input::Posted(posted) => {
                self.with_wsn(now, |wsn, context| wsn.posted(context, &posted));
            }
            Input::Persisted { ticket } => {
                self.core.persisted(ticket);
                self.for_all(now, |adapter, context| adapter.committed(context));
                let (mqtt_sn, mqtt_udp, mut context) = self.datagrams(now);
                mqtt_sn.committed(&mut context);
                mqtt_udp.committed(&mut context);
                self.with_wsn(now, |wsn, context| wsn.committed(context));
            }
            Input::Wake => {
                self.woken_for = None;
                self.core.wake(now);
                self.for_all(now, |adapter, context| adapter.wake(context));
                let (mqtt_sn, mqtt_udp, mut context) = self.datagrams(now);
                mqtt_sn.wake(&mut context);
                mqtt_udp.wake(&mut context);
                self.with_wsn(now, |wsn, context| wsn.wake(context));
            }
            Input::Close => {
                self.core.set_closing();
                self.for_all(now, |adapter, context| adapter.close(context));
                let (mqtt_sn, _, mut context) = self.datagrams(now);
                mqtt_sn.close(&mut context);
            }
        }
    }

    /// What is left of an input once partners' brokers are not let in by other protocols than MQTT,
    /// whose sessions have their names to the end; clients of the others share some.
    fn screen(&mut self, input: Input) -> Option<Input> {
        match input {
            Input::Connected { connection, protocol, certified }
                if self.bars(protocol, certified.as_ref()) =>
            {
                self.outputs.open(connection);
                self.outputs.close(connection);
                None
            }
            Input::Known { connection, user: Ok(user) } => {
                let protocol = self.connections.get(&connection).copied();
                let is_barred = protocol.is_some_and(|it| self.bars(it, user.as_ref()));
                let user = if is_barred { Err(()) } else { Ok(user) };
                Some(Input::Known { connection, user })
            }
            Input::Asked(asked) if self.bars(Protocol::Wsn, asked.user.as_ref()) => {
                let body = Bytes::from_static(b"a partner's broker comes by MQTT\n");
                let (id, content_type) = (asked.id, Some("text/plain".to_owned()));
                self.outputs.answer(Answer { id, status: 403, content_type, body });
                None
            }
            other => Some(other),
        }
    }

    /// Whether somebody is not let in by a protocol.
    fn bars(&mut self, protocol: Protocol, user: Option<&Arc<str>>) -> bool {
        let federation = self.core.settings().federation.as_deref();
        let is_barred = protocol != Protocol::Mqtt
            && user.is_some_and(|user| federation.is_some_and(|it| it.is_partner(user)));
        if let Some(user) = user.filter(|_| is_barred) {
            let why = format!("the broker of partner {user} comes by {protocol}: only by mqtt");
            self.core.tell(Event::Refused { protocol, connection: None, why });
        }
        is_barred
    }

    fn dialled(&mut self, now: Duration, number: u16, result: Result<ConnectionId, String>) {
        let is_bridge = usize::from(number) < self.mqtt.bridges(&self.core).len();
        if let Ok(connection) = result {
            let protocol = if is_bridge { Protocol::Mqtt } else { Protocol::Mesh };
            self.connections.insert(connection, protocol);
            self.outputs.open(connection);
        }
        let (core, outputs) = (&mut self.core, &mut self.outputs);
        let mut context = Context { now, core, outputs };
        match &mut self.mesh {
            Some(mesh) if !is_bridge => mesh.dialled(&mut context, number, result),
            _ => self.mqtt.dialled(&mut context, number, result),
        }
    }

    /// Tells the mesh what clients have done; whether there was anything.
    fn step_mesh(&mut self, now: Duration) -> bool {
        let (core, outputs) = (&mut self.core, &mut self.outputs);
        let mut context = Context { now, core, outputs };
        self.mesh.as_mut().is_some_and(|mesh| mesh.step(&mut context))
    }

    /// Gives those who have something what they have room for, until nothing comes of it.
    fn settle(&mut self, now: Duration) {
        loop {
            self.deliver(now);
            if !self.step_mesh(now) {
                return;
            }
        }
    }

    /// Gives those who have something what they have room for.
    fn deliver(&mut self, now: Duration) {
        while let Some((session, connection)) = self.core.next_ready() {
            let protocol = self.speaks(session);
            let (mqtt_sn, mqtt_udp, mut context) = self.datagrams(now);
            match protocol {
                Some(Protocol::MqttSn) => mqtt_sn.deliver(&mut context, session, connection),
                Some(Protocol::MqttUdp) => mqtt_udp.deliver(&mut context, session, connection),
                Some(Protocol::Wsn) => {
                    self.with_wsn(now, |wsn, context| wsn.deliver(context, connection));
                }
                _ => {
                    if let Some((adapter, mut context)) = self.adapter_of(now, connection) {
                        adapter.deliver(&mut context, session, connection);
                    }
                }
            }
        }
    }

    /// The adapters of protocols over datagrams.
    fn datagrams(&mut self, now: Duration) -> (&mut MqttSn, &mut MqttUdp, Context<'_>) {
        let Self { core, outputs, mqtt_sn, mqtt_udp, .. } = self;
        (mqtt_sn, mqtt_udp, Context { now, core, outputs })
    }

    fn with_wsn(&mut self, now: Duration, does: impl FnOnce(&mut Wsn, &mut Context<'_>)) {
        if let Some(wsn) = &mut self.wsn {
            let core = &mut self.core;
            does(wsn, &mut Context { now, core, outputs: &mut self.outputs });
        }
    }

    fn for_all(&mut self, now: Duration, mut call: impl FnMut(&mut dyn Adapter, &mut Context<'_>)) {
        let (core, outputs) = (&mut self.core, &mut self.outputs);
        let mut context = Context { now, core, outputs };
        call(&mut self.mqtt, &mut context);
        call(&mut self.amqp, &mut context);
        call(&mut self.amqp091, &mut context);
        if let Some(mesh) = &mut self.mesh {
            call(mesh, &mut context);
        }
    }

    /// The adapter of a connection's protocol.
    fn adapter_of(
        &mut self,
        now: Duration,
        connection: ConnectionId,
    ) -> Option<(&mut dyn Adapter, Context<'_>)> {
        let adapter: &mut dyn Adapter = match self.connections.get(&connection)? {
            Protocol::Mesh => self.mesh.as_mut()?,
            Protocol::Amqp => &mut self.amqp,
            Protocol::Amqp091 => &mut self.amqp091,
            _ => &mut self.mqtt,
        };
        let context = Context { now, core: &mut self.core, outputs: &mut self.outputs };
        Some((adapter, context))
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
