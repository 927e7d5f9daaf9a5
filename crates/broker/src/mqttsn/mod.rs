//! A gateway of MQTT-SN 1.2 for clients over datagrams, and for those behind forwarders.
//!
//! A client is known by where it sends from: the listener, the address, and the node behind a
//! forwarder. Whoever has not connected gets no more than one short answer and leaves no trace.

mod acks;
mod client;
mod clients;
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

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::{Packet, Publish, Qos, Topic};

use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, SessionId};
use crate::outputs::Context;
use crate::publication::Publication;
use clients::{Clients, Due};
use dialogue::Dialogues;
use source::Source;

pub use settings::{Listener, Predefined, Settings};

/// Clients that have just disconnected: their copies of a DISCONNECT are answered. Others' are not,
/// so that two gateways do not answer each other for ever.
const MAX_GONE: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct MqttSn {
    clients: Clients,
    dialogues: Dialogues,
    gone: VecDeque<Source>,
    last_connection: u64,
    is_started: bool,
}

impl MqttSn {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            clients: Clients::new(settings),
            dialogues: Dialogues::default(),
            gone: VecDeque::new(),
            last_connection: 0,
            is_started: false,
        }
    }

    /// Whether one of the shell's sockets is of this protocol.
    pub(crate) fn listens(&self, listener: u16) -> bool {
        self.clients.settings.listeners.contains_key(&listener)
    }

    /// A datagram came.
    pub(crate) fn received(
        &mut self,
        context: &mut Context<'_>,
        listener: u16,
        from: SocketAddr,
        datagram: &Bytes,
    ) {
        let Some(of) = self.clients.settings.listeners.get(&listener) else { return };
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
            _ => match self.clients.at(&source) {
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
            self.clients.settings.listeners.get(&source.listener).is_some_and(|of| of.unconnected);
        if !is_taken {
            return;
        }
        let client = self.clients.client_at(source);
        let topic = match publish.topic {
            Topic::Predefined(id) => {
                let name = client.map(|client| &*client.connect.name);
                self.clients.settings.predefined.name(name, id).cloned()
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
            for (listener, of) in &self.clients.settings.listeners {
                if !of.one_way && !of.advertise_to.is_empty() {
                    self.clients.timers.set(Due::Advertise(*listener), Some(context.now));
                }
            }
        }
        while let Some(due) = self.clients.timers.pop(context.now) {
            match due {
                Due::Patience(id) => self.clients.is_quiet(context, id),
                Due::Flight(id) => self.clients.overdue(context, id),
                Due::Pause(id) => self.clients.pump(context, id),
                Due::Advertise(listener) => self.advertise(context, listener),
            }
        }
    }

    /// When something is due: at once where nothing has begun.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let advertises =
            self.clients.settings.listeners.values().any(|of| !of.advertise_to.is_empty());
        match self.is_started || !advertises {
            true => self.clients.timers.next(),
            false => Some(Duration::ZERO),
        }
    }

    /// MQTT-SN 1.2 §6.1.
    fn advertise(&mut self, context: &mut Context<'_>, listener: u16) {
        let Some(of) = self.clients.settings.listeners.get(&listener) else { return };
        let interval = of.advertise_interval.max(Duration::from_secs(1));
        let duration_s = u16::try_from(interval.as_secs()).unwrap_or(u16::MAX);
        let packet = Packet::Advertise { gateway_id: of.gateway_id, duration_s };
        if let Some(message) = source::encode(&packet) {
            for to in &of.advertise_to {
                context.outputs.datagram(listener, *to, message.clone());
            }
        }
        let next = context.now.saturating_add(Duration::from_secs(duration_s.into()));
        self.clients.timers.set(Due::Advertise(listener), Some(next));
    }

    /// A session's client is given what waits, while it may be.
    pub(crate) fn deliver(
        &mut self,
        context: &mut Context<'_>,
        session: SessionId,
        id: ConnectionId,
    ) {
        if self.clients.get(id).is_some_and(|client| client.session == session) {
            self.clients.pump(context, id);
        }
    }

    /// What waited for the store goes out.
    pub(crate) fn committed(&mut self, context: &mut Context<'_>) {
        for id in std::mem::take(&mut self.clients.holding) {
            self.clients.flush(context, id);
        }
    }

    /// The broker ends.
    pub(crate) fn close(&mut self, context: &mut Context<'_>) {
        for id in self.clients.ids() {
            let Some(client) = self.clients.forget(id) else { continue };
            client.source.send(context.outputs, &Packet::Disconnect { duration_s: None });
            context.core.close(context.now, client.session, id, false, client.expiry());
        }
    }
}

/// Tells that something was refused.
fn refuse(context: &mut Context<'_>, connection: Option<ConnectionId>, why: String) {
    context.core.tell(Event::Refused { protocol: Protocol::MqttSn, connection, why });
}
