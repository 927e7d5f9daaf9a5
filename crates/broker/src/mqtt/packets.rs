//! What a packet of a client does.

use proto::mqtt::{
    Ack, Disconnect, Filter, Id, Packet, Publish, Qos, Reason, Refused, RetainHandling, SubAck,
    Subscribe, UnsubAck, Unsubscribe, Version,
};

use super::connection::Phase;
use super::{Mqtt, bridge, connecting, translate};
use crate::adapter::Adapter as _;
use crate::core::Outstanding;
use crate::event::Event;
use crate::ids::{ConnectionId, Principal, Protocol, Ticket};
use crate::outputs::Context;
use crate::publication::Grade;
use crate::refusal::Refusal;
use crate::session;

impl Mqtt {
    /// A packet came.
    pub(super) fn packet(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        packet: Packet,
    ) -> Result<(), Refused> {
        let Some(connection) = self.connections.get(&id) else { return Ok(()) };
        match (&connection.phase, packet) {
            (Phase::Waiting, Packet::Connect(connect)) => self.connect(context, id, *connect),
            (Phase::Waiting | Phase::Login(_), _) => {
                // MQTT 5 §3.1, MQTT-3.1.0-1.
                Err(Refused::protocol("the first packet of a client is a CONNECT"))
            }
            (Phase::Greeting(number), Packet::ConnAck(answer)) => {
                let number = *number;
                self.greeted(context, id, number, &answer)
            }
            (Phase::Greeting(_), _) => {
                // MQTT 5 §3.2, MQTT-3.2.0-1.
                Err(Refused::protocol("the first packet of a server is a CONNACK"))
            }
            (Phase::Open(open), packet) if open.is_bridge() => {
                self.packet_of_server(context, id, packet)
            }
            (Phase::Open(_), Packet::Connect(_)) => {
                // MQTT 5 §3.1, MQTT-3.1.0-2.
                Err(Refused::protocol("a second CONNECT"))
            }
            (Phase::Open(_), Packet::Publish(publish)) => self.publish(context, id, publish),
            (Phase::Open(_), Packet::Subscribe(subscribe)) => {
                self.subscribe(context, id, &subscribe);
                Ok(())
            }
            (Phase::Open(_), Packet::Unsubscribe(unsubscribe)) => {
                self.unsubscribe(context, id, &unsubscribe);
                Ok(())
            }
            (Phase::Open(open), Packet::PingReq) => {
                let is_held = matches!(open.held.back(), Some((_, Packet::PingResp)));
                match open.is_greeting() {
                    // Nothing comes before the CONNACK, and of this nothing twice.
                    true if is_held => {}
                    true => self.hold(context, id, Ticket(0), Packet::PingResp),
                    false => open.send(context, id, Packet::PingResp),
                }
                Ok(())
            }
            (Phase::Open(_), Packet::Disconnect(disconnect)) => {
                self.leave(context, id, &disconnect)
            }
            (Phase::Open(_), Packet::PubAck(ack)) => self.puback(context, id, &ack),
            (Phase::Open(_), Packet::PubRec(ack)) => self.pubrec(context, id, &ack),
            (Phase::Open(_), Packet::PubComp(ack)) => self.pubcomp(context, id, &ack),
            (Phase::Open(_), Packet::PubRel(ack)) => {
                self.pubrel(context, id, &ack);
                Ok(())
            }
            (Phase::Open(_), _) => Err(Refused::protocol("a packet that only a server sends")),
        }
    }

    /// A packet of another broker came, whose client this side is.
    fn packet_of_server(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        packet: Packet,
    ) -> Result<(), Refused> {
        match packet {
            Packet::Publish(publish) => return self.publish(context, id, publish),
            Packet::PubAck(ack) => return self.puback(context, id, &ack),
            Packet::PubRec(ack) => return self.pubrec(context, id, &ack),
            Packet::PubComp(ack) => return self.pubcomp(context, id, &ack),
            Packet::PubRel(ack) => self.pubrel(context, id, &ack),
            Packet::SubAck(answer) => self.subscribed(context, id, &answer),
            Packet::PingResp => {
                context.outputs.answered(id);
                self.writable(context, id);
            }
            Packet::Disconnect(disconnect) => {
                let what = "the other broker ends the connection";
                return Err(Refused::with(disconnect.reason, what));
            }
            _ => return Err(Refused::protocol("a packet that only a client sends")),
        }
        Ok(())
    }

    /// Whose words come over a connection: its user's, unless it is a bridge of several.
    fn principal(&self, id: ConnectionId) -> Principal {
        let Some(connection) = self.connections.get(&id) else { return Principal::UNKNOWN };
        match (&connection.coded, &connection.phase) {
            (Some(coded), _) => coded.principal(),
            (None, Phase::Open(open)) if open.end.is_some() || open.is_bridge => Principal::UNKNOWN,
            _ => Principal::UNSAID,
        }
    }

    fn publish(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        mut publish: Publish,
    ) -> Result<(), Refused> {
        let max = self.settings.topic_alias_maximum;
        let receive_maximum = usize::from(self.settings.receive_maximum);
        let Some(open) = self.open_mut(id) else { return Ok(()) };
        let topic = translate::topic(&publish, max, &mut open.aliases)?;
        let (session, version, end) = (open.session, open.version, open.end.clone());
        let via = match &end {
            Some(end) => bridge::take_via(&mut publish.properties, Some(end)),
            None => {
                // Of a client it means nothing.
                bridge::take_via(&mut publish.properties, None);
                Vec::new()
            }
        };
        let packet_id = publish.packet_id.unwrap_or(0);
        if publish.qos == Qos::ExactlyOnce && context.core.has_inbound(session, packet_id) {
            // It was taken already, and its sender does not know (MQTT 5 §4.3.3, MQTT-4.3.3-10).
            let ticket = context.core.journal.ticket();
            let ack = Packet::PubRec(Ack::new(packet_id, Reason::SUCCESS));
            self.hold(context, id, ticket, ack);
            return Ok(());
        }
        let unanswered = open.unanswered() + context.core.inbound_len(session);
        if publish.qos != Qos::AtMostOnce && unanswered >= receive_maximum {
            // MQTT 5 §3.3.4, MQTT-3.3.4-9; before MQTT 5 the client could not know.
            let limit =
                if version == Version::V5 { receive_maximum } else { usize::from(u16::MAX) };
            if unanswered >= limit {
                let what = "more messages without an acknowledgement than the Receive Maximum";
                return Err(Refused::with(Reason::RECEIVE_MAXIMUM_EXCEEDED, what));
            }
        }
        let parts = translate::Parts {
            topic,
            payload: &publish.payload,
            qos: publish.qos,
            retain: publish.retain,
            properties: &publish.properties,
        };
        let (reason, ticket) = match translate::publication(parts) {
            Ok(mut publication) => {
                let is_broker = end.as_ref().is_some_and(|end| end.is_broker());
                let has_come = is_broker && self.seen.has(&via);
                if let Some(end) = &end
                    && let Err(why) = end.arrives(&mut publication, &via, has_come)
                {
                    context.core.tell_dropped(&publication, Some(session), why);
                    self.answer_publish(context, id, &publish, Reason::SUCCESS, Ticket(0));
                    return Ok(());
                }
                let expiry = publish.properties.number(Id::MESSAGE_EXPIRY_INTERVAL);
                publication.deadline = expiry.map(|seconds| {
                    context.now.saturating_add(std::time::Duration::from_secs(seconds.into()))
                });
                publication.publisher = Some(session);
                publication.principal = self.principal(id);
                let accepted = context.core.publish(context.now, publication);
                if accepted.is_ok() && is_broker {
                    self.seen.add(&via);
                }
                match accepted {
                    Ok(accepted) if accepted.receivers == 0 => {
                        (Reason::NO_MATCHING_SUBSCRIBERS, accepted.ticket)
                    }
                    Ok(accepted) => (Reason::SUCCESS, accepted.ticket),
                    Err(refusal) => self.refused(context, id, version, refusal)?,
                }
            }
            Err(refused) => self.not_taken(context, id, version, refused)?,
        };
        self.answer_publish(context, id, &publish, reason, ticket);
        Ok(())
    }

    /// The core refuses a publication. What a federation's profile does not have is reported there,
    /// once in a while, and costs nobody a connection.
    fn refused(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        version: Version,
        refusal: Refusal,
    ) -> Result<(Reason, Ticket), Refused> {
        let is_reported = matches!(refusal, Refusal::Federation(_));
        let refused = translate::refused(refusal);
        if is_reported {
            return Ok((refused.reason, Ticket(0)));
        }
        self.not_taken(context, id, version, refused)
    }

    /// A publication was refused: in MQTT 5 the acknowledgement says so. Before it nothing can; the
    /// connection ends (MQTT 3.1.1 §3.3.5), but for what the client may not do, of which it would
    /// learn nothing by that and try again for ever.
    fn not_taken(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        version: Version,
        refused: Refused,
    ) -> Result<(Reason, Ticket), Refused> {
        let is_bridge = self.open_mut(id).is_some_and(|open| open.is_bridge());
        if version != Version::V5 && refused.reason != Reason::NOT_AUTHORIZED && !is_bridge {
            return Err(refused);
        }
        let why = format!("a publication was refused: {refused}");
        let protocol = Protocol::Mqtt;
        context.core.tell(Event::Refused { protocol, connection: Some(id), why });
        Ok((refused.reason, Ticket(0)))
    }

    fn answer_publish(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        publish: &Publish,
        reason: Reason,
        ticket: Ticket,
    ) {
        let packet_id = publish.packet_id.unwrap_or(0);
        match publish.qos {
            Qos::AtMostOnce => {}
            Qos::AtLeastOnce => {
                self.hold(context, id, ticket, Packet::PubAck(Ack::new(packet_id, reason)));
            }
            Qos::ExactlyOnce => {
                let Some(open) = self.open_mut(id) else { return };
                let session = open.session;
                let mut ticket = ticket;
                if !reason.is_failure()
                    && let Some((_, written)) = context.core.inbound(session, packet_id)
                {
                    ticket = ticket.max(written);
                }
                self.hold(context, id, ticket, Packet::PubRec(Ack::new(packet_id, reason)));
            }
        }
    }

    /// Sends an acknowledgement, at once or when the store has what it is for.
    fn hold(&mut self, context: &mut Context<'_>, id: ConnectionId, ticket: Ticket, ack: Packet) {
        let Some(open) = self.open_mut(id) else { return };
        open.acknowledge(context, id, ticket, ack);
        if open.is_holding() {
            self.holding.insert(id);
        }
    }

    fn subscribe(&mut self, context: &mut Context<'_>, id: ConnectionId, subscribe: &Subscribe) {
        let born_s = self.born_s(context.now);
        let node = self.settings.node.clone();
        let Some(open) = self.open_mut(id) else { return };
        let (session, is_bridge) = (open.session, open.is_bridge);
        let user = context.core.user(session).map(|user| &**user);
        let is_believed = self.settings.may_bridge(user);
        let Some(open) = self.open_mut(id) else { return };
        if open.version == Version::V5 && open.end.is_none() {
            let is_like_bridge =
                |filter: &Filter| filter.options.no_local && filter.options.retain_as_published;
            // What has passed this node is to be known when it comes back by another way.
            open.end = subscribe.filters.iter().any(is_like_bridge).then(|| {
                let (peer, bridge, pinged) = (None, None, false);
                Box::new(bridge::End { node, peer, bridge, pinged, is_believed, born_s })
            });
        }
        let identifier = subscribe.properties.number(Id::SUBSCRIPTION_IDENTIFIER).unwrap_or(0);
        let mut reasons = Vec::with_capacity(subscribe.filters.len());
        for Filter { filter, options } in &subscribe.filters {
            let wanted = session::Subscription {
                filter: filter.as_str().to_owned(),
                grade: translate::grade(options.qos),
                no_local: options.no_local || is_bridge,
                as_published: options.retain_as_published || is_bridge,
                handling: match options.retain_handling {
                    RetainHandling::Send => session::RetainHandling::Always,
                    RetainHandling::SendIfNew => session::RetainHandling::IfNew,
                    RetainHandling::DoNotSend => session::RetainHandling::Never,
                },
                identifier,
            };
            let reason = match context.core.subscribe(context.now, session, wanted) {
                Ok(grade) => Reason(grade.get()),
                Err(refusal) => {
                    let is_reported = matches!(refusal, Refusal::Federation(_));
                    let refused = translate::refused(refusal);
                    if !is_reported {
                        let why = format!("a subscription was refused: {refused}");
                        let protocol = Protocol::Mqtt;
                        context.core.tell(Event::Refused { protocol, connection: Some(id), why });
                    }
                    refused.reason
                }
            };
            reasons.push(reason);
        }
        let ticket = context.core.journal.ticket();
        let answer = SubAck { id: subscribe.id, reasons, ..SubAck::default() };
        self.hold(context, id, ticket, Packet::SubAck(answer));
    }

    fn unsubscribe(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        unsubscribe: &Unsubscribe,
    ) {
        let Some(open) = self.open_mut(id) else { return };
        let session = open.session;
        let mut reasons = Vec::with_capacity(unsubscribe.filters.len());
        for filter in &unsubscribe.filters {
            let was = context.core.unsubscribe(session, filter.as_str());
            reasons.push(if was { Reason::SUCCESS } else { Reason::NO_SUBSCRIPTION_EXISTED });
        }
        let ticket = context.core.journal.ticket();
        let answer = UnsubAck { id: unsubscribe.id, reasons, ..UnsubAck::default() };
        self.hold(context, id, ticket, Packet::UnsubAck(answer));
    }

    /// The client goes (MQTT 5 §3.14).
    fn leave(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        disconnect: &Disconnect,
    ) -> Result<(), Refused> {
        let Some(open) = self.open_mut(id) else { return Ok(()) };
        let expiry = disconnect.properties.number(Id::SESSION_EXPIRY_INTERVAL);
        if open.expiry.is_zero() && expiry.is_some_and(|seconds| seconds > 0) {
            // MQTT 5 §3.14.2.2.2.
            return Err(Refused::protocol("a session that was to end with its connection"));
        }
        let session = open.session;
        let orderly = disconnect.reason == Reason::NORMAL_DISCONNECTION;
        let expiry = expiry.map(connecting::duration);
        self.forget(id);
        context.core.close(context.now, session, id, orderly, expiry);
        context.outputs.close(id);
        Ok(())
    }

    fn puback(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        ack: &Ack,
    ) -> Result<(), Refused> {
        let Some(open) = self.open_mut(id) else { return Ok(()) };
        match context.core.outstanding(open.session, ack.id) {
            Some(Outstanding::Sent(Grade::AtLeastOnce)) => {
                context.core.finish(open.session, ack.id, ack.reason.is_failure());
                Ok(())
            }
            // It may be of a session that the client remembers and the broker does not.
            None => Ok(()),
            Some(_) => Err(Refused::protocol("a PUBACK for a message of QoS 2")),
        }
    }

    fn pubrec(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        ack: &Ack,
    ) -> Result<(), Refused> {
        let Some(open) = self.open_mut(id) else { return Ok(()) };
        let session = open.session;
        let answer = match context.core.outstanding(session, ack.id) {
            Some(Outstanding::Sent(Grade::ExactlyOnce)) if ack.reason.is_failure() => {
                // MQTT 5 §4.3.3: the message is done with, and no PUBREL follows.
                context.core.finish(session, ack.id, true);
                return Ok(());
            }
            Some(Outstanding::Sent(Grade::ExactlyOnce) | Outstanding::Received) => {
                context.core.received(session, ack.id);
                Ack::new(ack.id, Reason::SUCCESS)
            }
            Some(Outstanding::Sent(_)) => {
                return Err(Refused::protocol("a PUBREC for a message of QoS 1"));
            }
            None => Ack::new(ack.id, Reason::PACKET_IDENTIFIER_NOT_FOUND),
        };
        let ticket = context.core.journal.ticket();
        self.hold(context, id, ticket, Packet::PubRel(answer));
        Ok(())
    }

    fn pubcomp(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        ack: &Ack,
    ) -> Result<(), Refused> {
        let Some(open) = self.open_mut(id) else { return Ok(()) };
        match context.core.outstanding(open.session, ack.id) {
            Some(Outstanding::Received) => {
                context.core.finish(open.session, ack.id, false);
                Ok(())
            }
            None => Ok(()),
            Some(_) => Err(Refused::protocol("a PUBCOMP for a message without PUBREC")),
        }
    }

    fn pubrel(&mut self, context: &mut Context<'_>, id: ConnectionId, ack: &Ack) {
        let Some(open) = self.open_mut(id) else { return };
        let was = context.core.release(open.session, ack.id);
        let reason = if was { Reason::SUCCESS } else { Reason::PACKET_IDENTIFIER_NOT_FOUND };
        let ticket = context.core.journal.ticket();
        self.hold(context, id, ticket, Packet::PubComp(Ack::new(ack.id, reason)));
    }
}
