//! MQTT 3.1, 3.1.1 and 5 over an ordered byte pipe.

mod bridge;
mod connecting;
mod connection;
mod deliver;
mod packets;
#[cfg(test)]
mod tests;
mod translate;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use proto::mqtt::{Disconnect, Packet, Reason, Refused, Version, take};
use proto::timers::Timers;

use crate::adapter::Adapter;
use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use bridge::{Link, Seen};
use connection::{Connection, Open, Phase};
use written::Written;

pub use bridge::{Bridge, BridgeStatus, Route, is_node};

/// How long a connection may take until it has said who it is (MQTT 5 §3.1.4: "a reasonable amount
/// of time").
const MAX_CONNECT_WAIT: Duration = Duration::from_secs(10);

/// What an operator sets for MQTT.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest packet that is taken, in bytes.
    pub max_packet_bytes: usize,
    /// Messages of QoS 1 and 2 that a client may have sent without an acknowledgement.
    pub receive_maximum: u16,
    /// Topics of a connection that a client may send as a number, and that it is sent as one if it
    /// takes so many.
    pub topic_alias_maximum: u16,
    /// Identifiers that are assigned begin with this.
    pub assigned_prefix: String,
    /// By what other brokers know this one, so that loops are cut.
    pub node: Arc<str>,
    /// What its numbers of publications stand behind for other brokers: of no other start of any
    /// node. 0: the second in which it begins.
    pub birth: u64,
    /// Other brokers that this one connects to.
    pub bridges: Vec<Bridge>,
    /// Users who may be bridges of other nodes: these are believed where a publication came in.
    /// `None`: every client may.
    pub bridge_users: Option<BTreeSet<String>>,
}

impl Settings {
    /// Whether a client may be a bridge of another node.
    fn may_bridge(&self, user: Option<&str>) -> bool {
        let Some(users) = &self.bridge_users else { return true };
        user.is_some_and(|user| users.contains(user))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_packet_bytes: 16 << 20,
            receive_maximum: 1000,
            topic_alias_maximum: 64,
            assigned_prefix: "lw-".to_owned(),
            node: "node".into(),
            birth: 0,
            bridges: Vec::new(),
            bridge_users: None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Mqtt {
    settings: Settings,
    connections: BTreeMap<ConnectionId, Box<Connection>>,
    timers: Timers<ConnectionId>,
    /// Connections with an acknowledgement that waits for the store.
    holding: BTreeSet<ConnectionId>,
    written: Written,
    /// By the numbers of the settings.
    links: Vec<Link>,
    /// What came over bridges lately.
    seen: Seen,
    /// When this broker began.
    born: Option<Duration>,
}

impl Mqtt {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            links: settings.bridges.iter().cloned().map(Link::new).collect(),
            seen: Seen::default(),
            born: None,
            settings,
            connections: BTreeMap::new(),
            timers: Timers::default(),
            holding: BTreeSet::new(),
            written: Written::default(),
        }
    }

    /// Takes the packets that are there, until one has to wait.
    fn read(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            if matches!(connection.phase, Phase::Login(_)) {
                return;
            }
            let version = connection.version();
            let max = self.settings.max_packet_bytes;
            match take(version, &mut connection.input, max) {
                Ok(None) => {
                    let Some(coded) = &mut connection.coded else { return };
                    match coded.next(&mut context.core.principals, &mut connection.input) {
                        Ok(true) => {}
                        Ok(false) => return,
                        Err(refused) => return self.refuse(context, id, refused),
                    }
                }
                Ok(Some(packet)) => {
                    let result = self.packet(context, id, packet);
                    if let Err(refused) = result {
                        return self.refuse(context, id, refused);
                    }
                }
                Err(refused) => return self.refuse(context, id, refused),
            }
        }
    }

    /// A packet that must not be: the connection ends, with the reason where the version has one
    /// (MQTT 5 §4.13, MQTT 3.1.1 §4.8).
    fn refuse(&mut self, context: &mut Context<'_>, id: ConnectionId, refused: Refused) {
        let client = self.connections.get(&id).and_then(|connection| match &connection.phase {
            Phase::Open(open) => context.core.client(open.session).map(ToString::to_string),
            Phase::Greeting(number) => {
                let link = self.links.get(usize::from(*number));
                link.map(|link| format!("the bridge {}", link.bridge.name))
            }
            _ => None,
        });
        let who = client.unwrap_or_else(|| "a connection".to_owned());
        context.core.tell(Event::Refused {
            protocol: Protocol::Mqtt,
            connection: Some(id),
            why: format!("{who}: {refused}"),
        });
        let is_open =
            self.connections.get(&id).is_some_and(|it| matches!(it.phase, Phase::Open(_)));
        // Not every reason is one that a DISCONNECT can have.
        let reason = if is_open { refused.disconnect_reason() } else { refused.reason };
        self.disconnect(context, id, reason, Some(refused.what));
    }

    /// Ends a connection from this side; the client's will stands (MQTT 5 §3.14.4).
    fn disconnect(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        reason: Reason,
        what: Option<&str>,
    ) {
        let Some(connection) = self.forget(id) else { return };
        self.unlinked(context.now, id);
        match connection.phase {
            Phase::Open(open) => {
                // MQTT 5 §3.2, MQTT-3.2.0-1: nothing comes before the CONNACK.
                if open.version == Version::V5 && !open.is_greeting() {
                    let mut goes = Disconnect::new(open.may_say(reason));
                    translate::explain(&mut goes.properties, what);
                    open.send(context, id, Packet::Disconnect(goes));
                }
                context.core.close(context.now, open.session, id, false, None);
            }
            Phase::Login(connect) => {
                connecting::answer(context, id, connect.version, reason, what);
            }
            Phase::Waiting | Phase::Greeting(_) => {}
        }
        context.outputs.close(id);
    }

    fn forget(&mut self, id: ConnectionId) -> Option<Connection> {
        self.timers.set(id, None);
        self.holding.remove(&id);
        self.connections.remove(&id).map(|connection| *connection)
    }

    fn open_mut(&mut self, id: ConnectionId) -> Option<&mut Open> {
        match &mut self.connections.get_mut(&id)?.phase {
            Phase::Open(open) => Some(open),
            _ => None,
        }
    }
}

impl Adapter for Mqtt {
    fn connected(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        certified: Option<Arc<str>>,
    ) {
        let now = context.now;
        self.connections.insert(id, Box::new(Connection::new(certified)));
        self.timers.set(id, Some(now.saturating_add(MAX_CONNECT_WAIT)));
    }

    fn received(&mut self, context: &mut Context<'_>, id: ConnectionId, bytes: BytesMut) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard = context.now;
        if let Phase::Open(open) = &mut connection.phase
            && let Some(end) = &mut open.end
        {
            end.pinged = false;
        }
        connection.feed(bytes);
        self.read(context, id);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.settle_input();
        }
    }

    fn known(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        user: Result<Option<Arc<str>>, ()>,
    ) {
        self.enter(context, id, user);
        self.read(context, id);
    }

    fn deliver(&mut self, context: &mut Context<'_>, session: SessionId, id: ConnectionId) {
        let max = self.settings.topic_alias_maximum;
        if let Some(Connection { phase: Phase::Open(open), .. }) =
            self.connections.get_mut(&id).map(Box::as_mut)
            && open.session == session
        {
            deliver::deliver(context, id, open, max, &mut self.written);
        }
    }

    fn writable(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let max = self.settings.topic_alias_maximum;
        if let Some(Connection { phase: Phase::Open(open), .. }) =
            self.connections.get_mut(&id).map(Box::as_mut)
        {
            deliver::deliver(context, id, open, max, &mut self.written);
        }
    }

    fn lost(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(connection) = self.forget(id) else { return };
        self.unlinked(context.now, id);
        if let Phase::Open(open) = connection.phase {
            context.core.close(context.now, open.session, id, false, None);
        }
    }

    fn committed(&mut self, context: &mut Context<'_>) {
        let done = context.core.journal.done();
        let connections = &mut self.connections;
        self.holding.retain(|id| {
            let connection = connections.get_mut(id).map(Box::as_mut);
            let Some(Connection { phase: Phase::Open(open), coded, .. }) = connection else {
                return false;
            };
            open.flush(context, *id, done, coded.is_some());
            open.is_holding()
        });
    }

    fn wake(&mut self, context: &mut Context<'_>) {
        self.born_s(context.now);
        while let Some(id) = self.timers.pop(context.now) {
            let Some(connection) = self.connections.get(&id) else { continue };
            let due = connection.heard.saturating_add(connection.patience());
            match &connection.phase {
                Phase::Open(open) if open.is_bridge() => self.keep(context, id),
                Phase::Open(_) if due > context.now => self.timers.set(id, Some(due)),
                Phase::Open(_) => {
                    let what = "nothing came for one and a half times the keep alive";
                    self.refuse(context, id, Refused::with(Reason::KEEP_ALIVE_TIMEOUT, what));
                }
                Phase::Greeting(_) => {
                    let what = "no CONNACK came within 10 seconds";
                    self.refuse(context, id, Refused::protocol(what));
                }
                _ => {
                    let what = "no CONNECT came within 10 seconds";
                    self.refuse(context, id, Refused::protocol(what));
                }
            }
        }
        self.dial(context);
    }

    fn wake_at(&self) -> Option<Duration> {
        let dials = self.links.iter().filter_map(Link::dial_at);
        self.timers.next().into_iter().chain(dials).min()
    }

    fn close(&mut self, context: &mut Context<'_>) {
        let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in all {
            self.disconnect(context, id, Reason::SERVER_SHUTTING_DOWN, None);
        }
    }
}
