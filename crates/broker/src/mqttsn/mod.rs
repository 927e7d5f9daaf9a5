//! A gateway of MQTT-SN 1.2 for clients over datagrams, and for those behind forwarders.
//!
//! A client is known by where it sends from: the listener, the address, and the node behind a
//! forwarder. Whoever has not connected gets no more than one short answer and leaves no trace.

mod acks;
mod client;
mod connecting;
mod deliver;
mod dialogue;
mod packets;
mod settings;
mod sleeping;
mod source;
mod subscribing;
#[cfg(test)]
mod tests;
mod topics;
mod will;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::{Packet, Publish, Qos, Topic};
use proto::timers::Timers;

use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::Publication;
use client::Client;
use dialogue::Dialogues;
use source::Source;

pub use settings::{Listener, Predefined, Settings};

/// Clients that have just disconnected: their copies of a DISCONNECT are answered. Others' are not,
/// so that two gateways do not answer each other for ever.
const MAX_GONE: usize = 256;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Something should have come of a client.
    Patience(ConnectionId),
    /// A client has not answered.
    Flight(ConnectionId),
    /// More may leave for a client.
    Pause(ConnectionId),
    /// A listener says that it is there.
    Advertise(u16),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MqttSn {
    settings: Settings,
    clients: BTreeMap<ConnectionId, Client>,
    by_source: BTreeMap<Source, ConnectionId>,
    /// How many of them each address has.
    by_address: BTreeMap<IpAddr, usize>,
    /// Those that have said no more than CONNECT, and since when.
    unconfirmed: BTreeSet<(Duration, ConnectionId)>,
    dialogues: Dialogues,
    gone: VecDeque<Source>,
    timers: Timers<Due>,
    /// Clients with an answer that waits for the store.
    holding: BTreeSet<ConnectionId>,
    last_connection: u64,
    is_started: bool,
}

impl MqttSn {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            clients: BTreeMap::new(),
            by_source: BTreeMap::new(),
            by_address: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
            dialogues: Dialogues::default(),
            gone: VecDeque::new(),
            timers: Timers::default(),
            holding: BTreeSet::new(),
            last_connection: 0,
            is_started: false,
        }
    }

    /// Whether one of the shell's sockets is of this protocol.
    pub(crate) fn listens(&self, listener: u16) -> bool {
        self.settings.listeners.contains_key(&listener)
    }

    /// A datagram came.
    pub(crate) fn received(
        &mut self,
        context: &mut Context<'_>,
        listener: u16,
        from: SocketAddr,
        datagram: &Bytes,
    ) {
        let Some(of) = self.settings.listeners.get(&listener) else { return };
        // What cannot be read has no answer in this protocol.
        let Ok((source, message)) = Source::read(listener, from, datagram) else { return };
        let Ok(packet) = Packet::decode(&message) else { return };
        if let Packet::Publish(publish @ Publish { qos: Qos::MinusOne, .. }) = &packet {
            return self.unconnected(context, &source, publish);
        }
        if of.one_way {
            return;
        }
        let gateway_id = of.gateway_id;
        match packet {
            Packet::SearchGw { .. } => {
                // MQTT-SN 1.2 §6.1. Where it came from says where the gateway is.
                source.send(context.outputs, &Packet::GwInfo { gateway_id, address: &[] });
            }
            Packet::Connect { .. } => self.connect(context, source, &packet),
            Packet::WillTopic(topic) => self.will_topic(context, &source, topic.as_ref()),
            Packet::WillMsg { message } => self.will_message(context, source, message),
            // Of other gateways.
            Packet::Advertise { .. } | Packet::GwInfo { .. } => {}
            _ => match self.by_source.get(&source).copied() {
                Some(id) => self.packet(context, id, &packet),
                None => self.stranger(context, &source, &packet),
            },
        }
    }

    /// Somebody who is not connected is told so (MQTT-SN 1.2 §6.12), and leaves no trace.
    fn stranger(&self, context: &mut Context<'_>, source: &Source, packet: &Packet<'_>) {
        let is_answered = match packet {
            Packet::Disconnect { .. } => self.gone.contains(source),
            Packet::Register { .. }
            | Packet::Publish(_)
            | Packet::PubAck { .. }
            | Packet::PubRec { .. }
            | Packet::PubRel { .. }
            | Packet::PubComp { .. }
            | Packet::Subscribe { .. }
            | Packet::Unsubscribe { .. }
            | Packet::PingReq { .. }
            | Packet::WillTopic(_)
            | Packet::WillMsg { .. }
            | Packet::WillTopicUpd(_)
            | Packet::WillMsgUpd { .. } => true,
            _ => false,
        };
        if is_answered {
            source.send(context.outputs, &Packet::Disconnect { duration_s: None });
        }
    }

    /// A publication of level −1 (MQTT-SN 1.2 §6.8): no connection, no answer.
    fn unconnected(&self, context: &mut Context<'_>, source: &Source, publish: &Publish<'_>) {
        let is_taken =
            self.settings.listeners.get(&source.listener).is_some_and(|of| of.unconnected);
        if !is_taken {
            return;
        }
        let client = self.by_source.get(source).and_then(|id| self.clients.get(id));
        let topic = match publish.topic {
            Topic::Predefined(id) => {
                let name = client.map(|client| &*client.connect.name);
                self.settings.predefined.name(name, id).cloned()
            }
            Topic::Short(name) => std::str::from_utf8(&name).ok().map(Into::into),
            // Such an id is of a connection.
            Topic::Id(_) => None,
        };
        let Some(topic) = topic else { return };
        let payload = Bytes::copy_from_slice(publish.data);
        let mut publication = Publication::new(Protocol::MqttSn, topic, payload);
        publication.retain = publish.retain;
        publication.publisher = client.map(|client| client.session);
        if let Err(refusal) = context.core.publish(context.now, publication) {
            refuse(context, None, format!("a publication of {}: {refusal}", source.address));
        }
    }

    /// What the store has kept with sessions is known again; how much was of none.
    pub(crate) fn restore(&mut self, context: &mut Context<'_>) -> usize {
        context.core.restore_notes(Protocol::MqttSn)
    }

    /// What is due.
    pub(crate) fn wake(&mut self, context: &mut Context<'_>) {
        if !self.is_started {
            self.is_started = true;
            for (listener, of) in &self.settings.listeners {
                if !of.one_way && !of.advertise_to.is_empty() {
                    self.timers.set(Due::Advertise(*listener), Some(context.now));
                }
            }
        }
        while let Some(due) = self.timers.pop(context.now) {
            match due {
                Due::Patience(id) => self.is_quiet(context, id),
                Due::Flight(id) => self.overdue(context, id),
                Due::Pause(id) => self.pump(context, id),
                Due::Advertise(listener) => self.advertise(context, listener),
            }
        }
    }

    /// When something is due: at once where nothing has begun.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let advertises = self.settings.listeners.values().any(|of| !of.advertise_to.is_empty());
        match self.is_started || !advertises {
            true => self.timers.next(),
            false => Some(Duration::ZERO),
        }
    }

    /// MQTT-SN 1.2 §6.1.
    fn advertise(&mut self, context: &mut Context<'_>, listener: u16) {
        let Some(of) = self.settings.listeners.get(&listener) else { return };
        let interval = of.advertise_interval.max(Duration::from_secs(1));
        let duration_s = u16::try_from(interval.as_secs()).unwrap_or(u16::MAX);
        let packet = Packet::Advertise { gateway_id: of.gateway_id, duration_s };
        if let Some(message) = source::encode(&packet) {
            for to in &of.advertise_to {
                context.outputs.datagram(listener, *to, message.clone());
            }
        }
        let next = context.now.saturating_add(Duration::from_secs(duration_s.into()));
        self.timers.set(Due::Advertise(listener), Some(next));
    }

    /// Nothing has come of a client for longer than it said.
    fn is_quiet(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let longest = context.core.settings().max_keep_alive;
        let Some(client) = self.clients.get(&id) else { return };
        let due = client.heard.saturating_add(client.patience(longest));
        if due > context.now {
            self.timers.set(Due::Patience(id), Some(due));
        } else {
            self.lose(context, id, "nothing came for one and a half times what it had said");
        }
    }

    /// A client is lost, and its will stands (MQTT-SN 1.2 §6.14).
    fn lose(&mut self, context: &mut Context<'_>, id: ConnectionId, why: &str) {
        let Some(client) = self.forget(id) else { return };
        refuse(context, Some(id), format!("{} is lost: {why}", client.connect.name));
        context.core.close(context.now, client.session, id, false, client.expiry());
    }

    /// A client is none any more; what the core knows of it stays.
    fn forget(&mut self, id: ConnectionId) -> Option<Client> {
        let client = self.clients.remove(&id)?;
        if self.by_source.get(&client.source) == Some(&id) {
            self.by_source.remove(&client.source);
        }
        let ip = client.source.address.ip();
        if let Some(count) = self.by_address.get_mut(&ip) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_address.remove(&ip);
            }
        }
        self.unconfirmed.remove(&(client.since, id));
        for due in [Due::Patience(id), Due::Flight(id), Due::Pause(id)] {
            self.timers.set(due, None);
        }
        self.holding.remove(&id);
        Some(client)
    }

    /// A session's client is given what waits, while it may be.
    pub(crate) fn deliver(
        &mut self,
        context: &mut Context<'_>,
        session: SessionId,
        id: ConnectionId,
    ) {
        if self.clients.get(&id).is_some_and(|client| client.session == session) {
            self.pump(context, id);
        }
    }

    /// What waited for the store goes out.
    pub(crate) fn committed(&mut self, context: &mut Context<'_>) {
        for id in std::mem::take(&mut self.holding) {
            self.flush(context, id);
        }
    }

    /// The broker ends.
    pub(crate) fn close(&mut self, context: &mut Context<'_>) {
        let all: Vec<ConnectionId> = self.clients.keys().copied().collect();
        for id in all {
            let Some(client) = self.forget(id) else { continue };
            client.source.send(context.outputs, &Packet::Disconnect { duration_s: None });
            context.core.close(context.now, client.session, id, false, client.expiry());
        }
    }
}

/// Tells that something was refused.
fn refuse(context: &mut Context<'_>, connection: Option<ConnectionId>, why: String) {
    context.core.tell(Event::Refused { protocol: Protocol::MqttSn, connection, why });
}
