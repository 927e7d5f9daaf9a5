//! MQTT/UDP: publications in datagrams from and to everybody, without connections.
//!
//! What comes in is taken by filters, if its number is new and its signature is right. What goes
//! out is what the operator says; each listener has one session for that, to which what came over
//! it is its own and does not go back.

mod exit;
mod senders;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttudp::{Datagram, MAX_QOS, Packet, Publish, Signature};
use proto::timers::Timers;

use crate::core;
use crate::event::Event;
use crate::filter::matches;
use crate::ids::{ConnectionId, Protocol, SessionId, Ticket};
use crate::outputs::Context;
use crate::publication::{Grade, Publication};
use exit::{Repeats, Sending};
use senders::{Judgement, Senders};

pub use settings::{Exit, Listener, Settings, Verification};

/// Answers that wait for the store; beyond them a sender gets none.
const MAX_HELD: usize = 1024;
/// Topics whose value was asked for lately; beyond them nobody is answered.
const MAX_ASKED: usize = 256;
/// The value of a topic is sent no sooner again on request, and a PINGREQ is answered no sooner.
const MIN_ANSWER_INTERVAL: Duration = Duration::from_secs(1);

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// More may leave over a listener.
    Pause(u16),
    /// Something leaves again.
    Repeat,
}

/// An answer that waits for the store.
#[derive(Debug)]
struct Held {
    ticket: Ticket,
    listener: u16,
    number: u32,
    qos: u8,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MqttUdp {
    settings: Settings,
    senders: Senders,
    /// By listener.
    sending: BTreeMap<u16, Sending>,
    repeats: Repeats,
    held: VecDeque<Held>,
    /// When something was asked for and answered; no topic stands for a PINGREQ.
    asked: BTreeMap<(u16, Option<Arc<str>>), Duration>,
    timers: Timers<Due>,
    is_started: bool,
}

impl MqttUdp {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            senders: Senders::default(),
            sending: BTreeMap::new(),
            repeats: Repeats::default(),
            held: VecDeque::new(),
            asked: BTreeMap::new(),
            timers: Timers::default(),
            is_started: false,
        }
    }

    /// A datagram came.
    pub(crate) fn received(
        &mut self,
        context: &mut Context<'_>,
        listener: u16,
        from: SocketAddr,
        bytes: &Bytes,
    ) {
        let Some(of) = self.settings.listeners.get(&listener) else { return };
        // What cannot be read has no answer in this protocol.
        let Ok(datagram) = Datagram::decode(bytes) else { return };
        let signature = of.key.as_ref().map_or(Signature::Missing, |key| datagram.verify(key));
        if !of.believes(signature) {
            return;
        }
        let about = match &datagram.packet {
            Packet::Publish(Publish { topic, .. }) => *topic,
            _ => "",
        };
        let judgement = Judgement {
            now: context.now,
            forget_after: self.settings.forget_after,
            is_strict: of.is_strict(),
        };
        match datagram.records.number {
            // A network that hears everybody also hears ourselves.
            Some(number) if self.is_own(listener, number) => return,
            Some(number) if !self.senders.take(judgement, (listener, from), number, about) => {
                return;
            }
            Some(_) => {}
            // Anybody could send it again.
            None if of.is_strict() => return,
            None => {}
        }
        let is_known = signature > Signature::Wrong;
        match datagram.packet {
            Packet::Publish(publish) => {
                self.publish(context, (listener, from), &datagram, &publish, is_known);
            }
            Packet::Subscribe { topic } => self.asked(context, listener, topic),
            Packet::PingReq => self.pinged(context, listener),
            // What is sent is sent as often as the operator says, heard or not.
            Packet::PubAck { .. } | Packet::PingResp => {}
        }
    }

    fn is_own(&self, listener: u16, number: u32) -> bool {
        self.sending.get(&listener).is_some_and(|sending| sending.has_sent(number))
    }

    fn publish(
        &mut self,
        context: &mut Context<'_>,
        (listener, from): (u16, SocketAddr),
        datagram: &Datagram<'_>,
        publish: &Publish<'_>,
        is_known: bool,
    ) {
        let Some(of) = self.settings.listeners.get(&listener) else { return };
        let &Publish { topic, payload, qos, retain, .. } = publish;
        if !of.entry.iter().any(|filter| matches(filter, topic)) {
            return;
        }
        let wants_answer = qos > 0 && of.acknowledges && !of.one_way;
        let payload = Bytes::copy_from_slice(payload);
        let mut publication = Publication::new(Protocol::MqttUdp, topic, payload);
        publication.retain = retain;
        if wants_answer {
            publication.grade = Grade::AtLeastOnce;
        }
        publication.publisher = self.sending.get(&listener).map(|sending| sending.session);
        let records = datagram.records;
        if let Some(created_ms) = records.measured_at_ms.or(records.sent_at_ms) {
            publication.details_mut().created_ms = Some(created_ms);
        }
        if is_known || of.tells_source {
            let source = ("source".to_owned(), from.to_string());
            publication.details_mut().properties.push(source);
        }
        match context.core.publish(context.now, publication) {
            Ok(accepted) => {
                if let (true, Some(number)) = (wants_answer, records.number) {
                    self.hold(context, Held { ticket: accepted.ticket, listener, number, qos });
                }
            }
            Err(refusal) => refuse(context, format!("a publication of {from}: {refusal}")),
        }
    }

    /// Answers once the store has what was sent.
    fn hold(&mut self, context: &mut Context<'_>, held: Held) {
        if self.held.len() < MAX_HELD {
            self.held.push_back(held);
        }
        self.committed(context);
    }

    /// What waited for the store goes out.
    pub(crate) fn committed(&mut self, context: &mut Context<'_>) {
        let done = context.core.journal.done();
        while self.held.front().is_some_and(|held| held.ticket <= done) {
            let Some(Held { listener, number, qos, .. }) = self.held.pop_front() else { return };
            let packet = Packet::PubAck { qos: qos.min(1).min(MAX_QOS) };
            self.send(context, listener, &packet, Some(number), None);
        }
    }

    /// Who listens wants to know the value of a topic: it is sent to all, if that may leave.
    fn asked(&mut self, context: &mut Context<'_>, listener: u16, topic: &str) {
        let sending = self.sending.get(&listener).filter(|sending| sending.sends(topic));
        let Some(session) = sending.map(|sending| sending.session) else { return };
        let value = context.core.retained_at(context.now, topic).cloned();
        let Some(value) = value else { return };
        if self.is_asked_again(context.now, (listener, Some(value.topic.clone()))) {
            return;
        }
        let value = core::convert_for(context.core, session, &value);
        self.send_value(context, listener, &value);
    }

    fn pinged(&mut self, context: &mut Context<'_>, listener: u16) {
        if !self.is_asked_again(context.now, (listener, None)) {
            self.send(context, listener, &Packet::PingResp, None, None);
        }
    }

    /// Whether this was answered lately, so that nobody has much sent in others' names.
    fn is_asked_again(&mut self, now: Duration, what: (u16, Option<Arc<str>>)) -> bool {
        if self.asked.len() >= MAX_ASKED {
            self.asked.retain(|_, at| now < at.saturating_add(MIN_ANSWER_INTERVAL));
        }
        let was_lately =
            self.asked.get(&what).is_some_and(|at| now < at.saturating_add(MIN_ANSWER_INTERVAL));
        if was_lately || self.asked.len() >= MAX_ASKED {
            return true;
        }
        self.asked.insert(what, now);
        false
    }

    /// What is due.
    pub(crate) fn wake(&mut self, context: &mut Context<'_>) {
        if !self.is_started {
            self.is_started = true;
            self.start(context);
        }
        while let Some(due) = self.timers.pop(context.now) {
            match due {
                Due::Pause(listener) => self.pump(context, listener),
                Due::Repeat => self.repeat(context),
            }
        }
    }

    /// When something is due: at once where nothing has begun.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let has_exit = self.settings.listeners.values().any(|of| !of.exit.is_empty());
        match self.is_started || !has_exit {
            true => self.timers.next(),
            false => Some(Duration::ZERO),
        }
    }

    /// A listener is given what waits.
    pub(crate) fn deliver(
        &mut self,
        context: &mut Context<'_>,
        session: SessionId,
        connection: ConnectionId,
    ) {
        let of = self.sending.iter().find(|(_, sending)| sending.connection == connection);
        if let Some((listener, _)) = of.filter(|(_, sending)| sending.session == session) {
            self.pump(context, *listener);
        }
    }
}

/// Tells that something was refused.
fn refuse(context: &mut Context<'_>, why: String) {
    context.core.tell(Event::Refused { protocol: Protocol::MqttUdp, connection: None, why });
}
