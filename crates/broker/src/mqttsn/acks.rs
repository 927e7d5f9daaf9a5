//! What a client answers (MQTT-SN 1.2 §6.10).

use bytes::Bytes;
use proto::mqttsn::{Code, Packet, Topic};

use super::client::{Flight, Habit, Step};
use super::clients::{Clients, Due};
use super::connecting::ANSWERS_NOTE;
use crate::event::Drop;
use crate::ids::{ConnectionId, Ticket};
use crate::outputs::Context;
use crate::publication::Grade;

/// How often a client may say of one publication that it does not know the topic's id, which is
/// said again each time.
const MAX_REFUSALS: u32 = 3;

impl Clients {
    /// An answer came, if it is one.
    pub(super) fn answered(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        packet: &Packet<'_>,
    ) {
        match *packet {
            Packet::RegAck { msg_id, code, .. } => self.registered(context, id, msg_id, code),
            Packet::PubAck { topic_id, msg_id, code } => {
                self.acknowledged(context, id, topic_id, msg_id, code);
            }
            Packet::PubRec { msg_id } => self.taken(context, id, msg_id),
            Packet::PubComp { msg_id } => self.completed(context, id, msg_id),
            // A PINGRESP that nobody asked for, and what only gateways send.
            _ => {}
        }
    }

    /// The client is one that answers publications, which is kept with its session.
    fn answers(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(client) = self.get_mut(id) else { return };
        if std::mem::replace(&mut client.habit, Habit::Answers) != Habit::Answers {
            context.core.note(client.session, ANSWERS_NOTE, Some(Bytes::new()));
        }
    }

    /// The client knows an id.
    fn registered(&mut self, context: &mut Context<'_>, id: ConnectionId, of: u16, code: Code) {
        let Some(client) = self.get_mut(id) else { return };
        let Some(flight) = &client.flight else { return };
        let Step::Register { topic_id, .. } = flight.step else { return };
        if flight.msg_id != of {
            return;
        }
        client.topics.set_known(topic_id);
        match code {
            Code::CONGESTION => {
                client.topics.forget_known(topic_id);
                return self.wait(context, id);
            }
            Code::ACCEPTED => {}
            _ => client.topics.forget_known(topic_id),
        }
        let Some(flight) = self.land(id) else { return };
        let Step::Register { delivery, .. } = flight.step else { return };
        if code.is_accepted() {
            self.give(context, id, delivery, flight.refusals);
        } else {
            let detail = format_args!("the client refuses an id for its topic");
            self.not_given(context, id, &delivery, Drop::Refused, detail);
        }
        self.pump(context, id);
    }

    /// A publication of level 1 has arrived, or one of any level is refused.
    fn acknowledged(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        topic_id: u16,
        of: u16,
        code: Code,
    ) {
        self.answers(context, id);
        let Some(client) = self.get_mut(id) else { return };
        let flight = client.flight.as_ref().filter(|flight| flight.msg_id == of);
        let Some(Step::Publish { topic, delivery }) = flight.map(|flight| &flight.step) else {
            if code == Code::INVALID_TOPIC_ID {
                // What was published at level 0 is lost, the next is registered.
                client.topics.forget_known(topic_id);
            }
            return;
        };
        let is_of_level_1 = delivery.grade == Grade::AtLeastOnce;
        match (code, *topic) {
            (Code::ACCEPTED, _) if is_of_level_1 => {
                let session = client.session;
                self.land(id);
                context.core.finish(session, of, false);
                self.pump(context, id);
            }
            (Code::ACCEPTED, _) => {}
            (Code::CONGESTION, _) => self.wait(context, id),
            (Code::INVALID_TOPIC_ID, topic) => {
                if let Topic::Id(topic_id) = topic {
                    client.topics.forget_known(topic_id);
                }
                self.give_again(context, id);
            }
            _ => self.refused(context, id),
        }
    }

    /// The client does not know what a publication was about: its topic is registered.
    fn give_again(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(flight) = self.land(id) else { return };
        let Step::Publish { delivery, .. } = flight.step else { return };
        match flight.refusals {
            ..MAX_REFUSALS => self.give(context, id, delivery, flight.refusals + 1),
            _ => {
                let detail = format_args!("the client does not know its topic again and again");
                self.not_given(context, id, &delivery, Drop::Refused, detail);
            }
        }
        self.pump(context, id);
    }

    fn refused(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if let Some(Step::Publish { delivery, .. }) = self.land(id).map(|flight| flight.step) {
            self.not_given(context, id, &delivery, Drop::Refused, format_args!(""));
        }
        self.pump(context, id);
    }

    /// The client has no room now (MQTT-SN 1.2 §6.10).
    fn wait(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let tries_left = self.settings.max_retries;
        let Some(client) = self.table.get_mut(&id) else { return };
        let Some(flight) = &mut client.flight else { return };
        let at = context.now.saturating_add(self.settings.wait_after_congestion);
        (flight.tries_left, flight.since) = (tries_left, at);
        self.timers.set(Due::Flight(id), Some(at));
    }

    /// A publication of level 2 has arrived.
    fn taken(&mut self, context: &mut Context<'_>, id: ConnectionId, msg_id: u16) {
        self.answers(context, id);
        let Some(client) = self.get(id) else { return };
        match client.flight.as_ref().filter(|flight| flight.msg_id == msg_id) {
            Some(Flight { step: Step::Publish { delivery, .. }, .. })
                if delivery.grade == Grade::ExactlyOnce =>
            {
                context.core.received(client.session, msg_id);
                let after = context.core.journal.ticket();
                self.land(id);
                self.say_released(context, id, msg_id, after);
            }
            // A copy: what answers it is under way.
            Some(Flight { step: Step::Release, .. }) => {}
            // Of a publication that nothing is known of any more.
            _ => self.answer(context, id, &Packet::PubRel { msg_id }),
        }
    }

    /// The client has freed the msg id of one.
    fn completed(&mut self, context: &mut Context<'_>, id: ConnectionId, msg_id: u16) {
        let Some(client) = self.get(id) else { return };
        let flight = client.flight.as_ref().filter(|flight| flight.msg_id == msg_id);
        let is_awaited = flight.is_some_and(|flight| {
            matches!(flight.step, Step::Release) && flight.after == Ticket(0)
        });
        if is_awaited {
            context.core.finish(client.session, msg_id, false);
            self.land(id);
            self.pump(context, id);
        }
    }
}
