//! Clients subscribe (MQTT-SN 1.2 §6.9).

use std::borrow::Cow;
use std::sync::Arc;

use proto::mqttsn::{Code, Filter, Packet, Qos};

use super::connecting::code;
use super::will::{grade, qos};
use super::{MqttSn, refuse};
use crate::filter::shared;
use crate::ids::ConnectionId;
use crate::outputs::Context;
use crate::session::{RetainHandling, Subscription};

impl MqttSn {
    /// A SUBSCRIBE came. A copy of one brings no retained messages again.
    pub(super) fn subscribe(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        (dup, wanted): (bool, Qos),
        msg_id: u16,
        filter: Filter<'_>,
    ) {
        let result = self.try_subscribe(context, id, dup, wanted, filter);
        let (qos, topic_id, code) = match result {
            Ok((granted, topic_id)) => (granted, topic_id, Code::ACCEPTED),
            Err(code) => (Qos::Zero, 0, code),
        };
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &Packet::SubAck { qos, topic_id, msg_id, code });
    }

    fn try_subscribe(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        dup: bool,
        wanted: Qos,
        filter: Filter<'_>,
    ) -> Result<(Qos, u16), Code> {
        if wanted == Qos::MinusOne {
            return Err(Code::NOT_SUPPORTED);
        }
        let name = self.filter_name(id, filter)?;
        // For what has no wildcards the client learns the id under which it comes.
        let topic_id = match filter {
            Filter::Name(_) => self.topic_id(context, id, &name)?,
            Filter::Predefined(topic_id) => topic_id,
            Filter::Short(_) => 0,
        };
        let Some(client) = self.clients.get(id) else { return Err(Code::CONGESTION) };
        let handling = if dup { RetainHandling::IfNew } else { RetainHandling::Always };
        let subscription = Subscription { handling, ..Subscription::new(name, grade(wanted)) };
        match context.core.subscribe(context.now, client.session, subscription) {
            Ok(granted) => Ok((qos(granted), topic_id)),
            Err(refusal) => {
                refuse(context, Some(id), format!("a subscription was refused: {refusal}"));
                Err(code(&refusal))
            }
        }
    }

    /// An UNSUBSCRIBE came. There is one answer, whether there was a subscription or not.
    pub(super) fn unsubscribe(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        msg_id: u16,
        filter: Filter<'_>,
    ) {
        let name = self.filter_name(id, filter);
        if let (Ok(name), Some(client)) = (name, self.clients.get(id)) {
            context.core.unsubscribe(client.session, &name);
        }
        let ticket = context.core.journal.ticket();
        self.clients.hold(context, id, ticket, &Packet::UnsubAck { msg_id });
    }

    fn filter_name<'a>(&self, id: ConnectionId, filter: Filter<'a>) -> Result<Cow<'a, str>, Code> {
        let Some(client) = self.clients.get(id) else { return Err(Code::CONGESTION) };
        match filter {
            Filter::Name(name) => Ok(Cow::Borrowed(name)),
            Filter::Predefined(topic_id) => {
                let name =
                    self.clients.settings.predefined.name(Some(&client.connect.name), topic_id);
                name.map(|name| Cow::Owned(name.to_string())).ok_or(Code::INVALID_TOPIC_ID)
            }
            Filter::Short(name) => {
                let name = std::str::from_utf8(&name).map_err(|_| Code::NOT_SUPPORTED)?;
                Ok(Cow::Owned(name.to_owned()))
            }
        }
    }

    /// The id of a filter that is a topic; 0 for one with wildcards (MQTT-SN 1.2 §6.10: its topics
    /// are registered as they come).
    fn topic_id(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        filter: &str,
    ) -> Result<u16, Code> {
        let max = self.clients.settings.max_topics;
        let name = match shared(filter) {
            Ok(Some((_, name))) => name,
            Ok(None) => filter,
            Err(_) => return Err(Code::NOT_SUPPORTED),
        };
        if name.contains(['+', '#']) || crate::filter::check_name(name).is_err() {
            return Ok(0);
        }
        let Some(client) = self.clients.get_mut(id) else { return Err(Code::CONGESTION) };
        let name: Arc<str> = name.into();
        let assigned = client.topics.assign(&name, true, max).ok_or(Code::CONGESTION)?;
        client.topics.set_known(assigned.id);
        if assigned.is_changed {
            self.clients.keep_topic(context, id, assigned.id);
        }
        Ok(assigned.id)
    }
}
