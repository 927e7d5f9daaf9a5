//! What a message of a client that is connected does.

use std::sync::Arc;

use bytes::Bytes;
use proto::mqttsn::{Code, Packet, Publish, Qos, Topic, WillTopic};

use super::connecting::{WILL_NOTE, code, keep_will};
use super::will::{Will, grade};
use super::{MqttSn, refuse};
use crate::filter::check_name;
use crate::ids::{ConnectionId, Protocol, Ticket};
use crate::outputs::Context;
use crate::publication::Publication;

/// Answers of one client that wait for the store. Whoever sends more is told of congestion.
const MAX_HELD: usize = 64;
/// Publications of level 2 that one client has not released; of more the oldest are taken for
/// released. A client has one outstanding (MQTT-SN 1.2 §6.6).
const MAX_UNRELEASED: usize = 64;
/// Those of one client that are released last: a copy of one that was overtaken by its PUBREL is
/// known as such.
const MAX_RELEASED: usize = 16;

impl MqttSn {
    /// A message of a client.
    pub(super) fn packet(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        packet: &Packet<'_>,
    ) {
        self.clients.heard(context.now, id);
        match *packet {
            Packet::Register { msg_id, name, .. } => self.register(context, id, msg_id, name),
            Packet::Publish(publish) => self.publish(context, id, &publish),
            Packet::PubRel { msg_id } => self.release(context, id, msg_id),
            Packet::Subscribe { dup, qos, msg_id, filter } => {
                self.subscribe(context, id, (dup, qos), msg_id, filter);
            }
            Packet::Unsubscribe { msg_id, filter } => {
                self.unsubscribe(context, id, msg_id, filter);
            }
            Packet::PingReq { client_id } => self.ping(context, id, client_id),
            Packet::Disconnect { duration_s } => self.disconnect(context, id, duration_s),
            Packet::WillTopicUpd(topic) => self.update_topic(context, id, topic.as_ref()),
            Packet::WillMsgUpd { message } => self.update_message(context, id, message),
            _ => self.clients.answered(context, id, packet),
        }
        self.clients.rouse(context, id);
    }

    /// MQTT-SN 1.2 §6.5.
    fn register(&mut self, context: &mut Context<'_>, id: ConnectionId, msg_id: u16, name: &str) {
        let max = self.clients.settings.max_topics;
        let Some(client) = self.clients.get_mut(id) else { return };
        let refused = |code| Packet::RegAck { topic_id: 0, msg_id, code };
        if check_name(name).is_err() {
            return self.clients.answer(context, id, &refused(Code::NOT_SUPPORTED));
        }
        if client.held.len() >= MAX_HELD {
            return self.clients.answer(context, id, &refused(Code::CONGESTION));
        }
        let Some(assigned) = client.topics.assign(&name.into(), true, max) else {
            return self.clients.answer(context, id, &refused(Code::CONGESTION));
        };
        client.topics.set_known(assigned.id);
        if assigned.is_changed {
            self.clients.keep_topic(context, id, assigned.id);
        }
        let answer = Packet::RegAck { topic_id: assigned.id, msg_id, code: Code::ACCEPTED };
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &answer);
    }

    /// What a client's publication is about.
    fn name(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        topic: Topic,
    ) -> Result<Arc<str>, Code> {
        let Some(client) = self.clients.table.get_mut(&id) else { return Err(Code::CONGESTION) };
        match topic {
            Topic::Id(topic_id) => {
                let (name, is_changed) =
                    client.topics.published(topic_id).ok_or(Code::INVALID_TOPIC_ID)?;
                if is_changed {
                    self.clients.keep_topic(context, id, topic_id);
                }
                Ok(name)
            }
            Topic::Predefined(topic_id) => {
                let name =
                    self.clients.settings.predefined.name(Some(&client.connect.name), topic_id);
                name.cloned().ok_or(Code::INVALID_TOPIC_ID)
            }
            Topic::Short(name) => {
                std::str::from_utf8(&name).map(Arc::from).map_err(|_| Code::NOT_SUPPORTED)
            }
        }
    }

    /// MQTT-SN 1.2 §6.6.
    fn publish(&mut self, context: &mut Context<'_>, id: ConnectionId, publish: &Publish<'_>) {
        let &Publish { topic, msg_id, data, qos, retain, dup } = publish;
        let puback = |code| Packet::PubAck { topic_id: topic.value(), msg_id, code };
        let Some(client) = self.clients.get(id) else { return };
        let (session, held) = (client.session, client.held.len());
        let was_released = dup && client.released.contains(&msg_id);
        if qos == Qos::Two && (was_released || context.core.has_inbound(session, msg_id)) {
            // A copy of what was taken already.
            let ticket = context.core.journal.ticket();
            return self.clients.hold(context, id, ticket, &Packet::PubRec { msg_id });
        }
        if qos != Qos::Zero && held >= MAX_HELD {
            return self.clients.answer(context, id, &puback(Code::CONGESTION));
        }
        let name = match self.name(context, id, topic) {
            Ok(name) => name,
            // MQTT-SN 1.2 §5.4.13: also where the level asks for no answer.
            Err(code) => return self.clients.answer(context, id, &puback(code)),
        };
        let mut publication =
            Publication::new(Protocol::MqttSn, name, Bytes::copy_from_slice(data));
        (publication.grade, publication.retain) = (grade(qos), retain);
        publication.publisher = Some(session);
        let ticket = match context.core.publish(context.now, publication) {
            Ok(accepted) => accepted.ticket,
            Err(refusal) => {
                refuse(context, Some(id), format!("a publication was refused: {refusal}"));
                return self.clients.answer(context, id, &puback(code(&refusal)));
            }
        };
        match qos {
            Qos::MinusOne | Qos::Zero => {}
            Qos::One => self.clients.hold(context, id, ticket, &puback(Code::ACCEPTED)),
            Qos::Two => {
                let ticket = ticket.max(self.inbound(context, id, msg_id));
                self.clients.hold(context, id, ticket, &Packet::PubRec { msg_id });
            }
        }
    }

    /// A publication of level 2 has come.
    fn inbound(&mut self, context: &mut Context<'_>, id: ConnectionId, msg_id: u16) -> Ticket {
        let Some(client) = self.clients.get_mut(id) else { return Ticket(0) };
        if client.unreleased.len() >= MAX_UNRELEASED
            && let Some(oldest) = client.unreleased.pop_front()
        {
            context.core.release(client.session, oldest);
        }
        client.unreleased.push_back(msg_id);
        context.core.inbound(client.session, msg_id).map_or(Ticket(0), |(_, ticket)| ticket)
    }

    /// The client frees the msg id of one.
    fn release(&mut self, context: &mut Context<'_>, id: ConnectionId, msg_id: u16) {
        let Some(client) = self.clients.get_mut(id) else { return };
        client.unreleased.retain(|other| *other != msg_id);
        if context.core.release(client.session, msg_id) {
            if client.released.len() >= MAX_RELEASED {
                client.released.pop_front();
            }
            client.released.push_back(msg_id);
        }
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &Packet::PubComp { msg_id });
    }

    /// The will that is kept with a client's session.
    fn kept_will(&self, context: &Context<'_>, id: ConnectionId) -> Option<Will> {
        let client = self.clients.get(id)?;
        let mut notes = context.core.notes(client.session);
        notes.find(|(number, _)| *number == WILL_NOTE).and_then(|(_, kept)| Will::decode(kept))
    }

    /// MQTT-SN 1.2 §6.4.
    fn update_topic(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        topic: Option<&WillTopic<'_>>,
    ) {
        let message = self.kept_will(context, id).map(|will| will.message).unwrap_or_default();
        let will = topic.map(|topic| Will { message, ..Will::new(topic) });
        let code = self.update_will(context, id, will.as_ref());
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &Packet::WillTopicResp { code });
    }

    /// MQTT-SN 1.2 §6.4.
    fn update_message(&mut self, context: &mut Context<'_>, id: ConnectionId, message: &[u8]) {
        let code = match self.kept_will(context, id) {
            Some(will) => {
                let will = Will { message: Bytes::copy_from_slice(message), ..will };
                self.update_will(context, id, Some(&will))
            }
            // There is no topic that it could be published at.
            None => Code::NOT_SUPPORTED,
        };
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &Packet::WillMsgResp { code });
    }

    fn update_will(
        &self,
        context: &mut Context<'_>,
        id: ConnectionId,
        will: Option<&Will>,
    ) -> Code {
        let Some(client) = self.clients.get(id) else { return Code::CONGESTION };
        match context.core.set_will(client.session, will.map(Will::of_session)) {
            Ok(()) => {
                keep_will(context, client.session, will);
                Code::ACCEPTED
            }
            Err(refusal) => {
                refuse(context, Some(id), format!("a will was refused: {refusal}"));
                code(&refusal)
            }
        }
    }
}
