//! What a client gets, and how often it is sent (MQTT-SN 1.2 §6.10, §6.13).

use std::fmt;
use std::time::Duration;

use proto::mqttsn::{Packet, Publish};

use super::client::{Flight, Habit, Phase, Step};
use super::clients::{Clients, Due};
use super::source::encode;
use super::will::qos;
use crate::core::{Delivery, Next, tell_dropped_for, tell_sent};
use crate::event::Drop;
use crate::explain::Sent;
use crate::ids::{ConnectionId, Ticket};
use crate::outputs::Context;
use crate::publication::Grade;

/// Publications of level 0 that leave for a client at once, and how long it then has to take them:
/// more would find no room in buffers on the way.
const MAX_BURST: usize = 64;
const BURST_PAUSE: Duration = Duration::from_millis(10);
/// How often all tries are used up for a client that is there and has answered before.
const MAX_SERIES: u32 = 3;
/// And for one that has never: some take publications of level 1 and do not answer at all, and are
/// not to be kept waiting for ever. Where a fifth of all datagrams is lost, one in 25,000 that
/// would answer is taken for one of them.
const MAX_FIRST_SERIES: u32 = 2;

impl Clients {
    /// Gives a client what waits until something has to be answered.
    pub(super) fn pump(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if self.timers.is_set(Due::Pause(id)) {
            return;
        }
        for _ in 0..MAX_BURST {
            let Some(client) = self.get_mut(id) else { return };
            if client.flight.is_some() || client.phase == Phase::Asleep {
                return;
            }
            if client.phase == (Phase::Awake { left: 0 }) {
                return self.fall_asleep(context, id, true);
            }
            let session = client.session;
            let Some(next) = context.core.take(context.now, session) else {
                if context.core.has_more(session) {
                    context.core.poke(session);
                } else if context.core.waits(session) {
                    // What waits for the store comes when that has it.
                } else if client.phase != Phase::Active {
                    self.fall_asleep(context, id, true);
                }
                return;
            };
            if let Phase::Awake { left } = &mut client.phase {
                *left = left.saturating_sub(1);
            }
            match next {
                Next::Publish(delivery) => self.give(context, id, delivery, 0),
                Next::Release(handle) => self.say_released(context, id, handle.get(), Ticket(0)),
            }
        }
        let at = context.now.saturating_add(BURST_PAUSE);
        self.timers.set(Due::Pause(id), Some(at));
    }

    /// Sends a publication, or first the id of its topic. `refusals` says how often the client has
    /// not known what it is about.
    pub(super) fn give(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        delivery: Delivery,
        refusals: u32,
    ) {
        let Some(client) = self.table.get_mut(&id) else { return };
        let predefined = &self.settings.predefined;
        let name = delivery.publication.topic.clone();
        let Some(topic) = client.topic(predefined, &name, refusals > 0) else {
            return self.say_topic(context, id, delivery, refusals);
        };
        let msg_id = delivery.handle.map_or(0, std::num::NonZeroU16::get);
        let packet = Packet::Publish(Publish {
            topic,
            msg_id,
            data: &delivery.publication.payload,
            qos: qos(delivery.grade),
            retain: delivery.retain,
            dup: delivery.repeated,
        });
        let len = packet.encoded_len() + client.source.head_bytes();
        let max = self.settings.max_datagram_bytes;
        let Some(message) = encode(&packet).filter(|_| len <= max) else {
            let detail = format_args!("{len} bytes, a datagram takes {max}");
            return self.not_given(context, id, &delivery, Drop::TooLarge, detail);
        };
        let session = client.session;
        let sent = Sent { protocol: "MQTT-SN 1.2", message_bytes: Some(len), ..Sent::default() };
        if delivery.grade > Grade::AtMostOnce && client.habit != Habit::Silent {
            tell_sent(context.core, &delivery.publication, session, sent);
            let flight = Flight::new(Step::Publish { topic, delivery }, msg_id, message);
            return self.launch(context, id, Flight { refusals, ..flight });
        }
        client.source.transmit(context.outputs, &message);
        if delivery.grade > Grade::AtMostOnce {
            context.core.finish(session, msg_id, false);
        }
        tell_sent(context.core, &delivery.publication, session, sent);
    }

    /// A topic gets an id that the client knows (MQTT-SN 1.2 §6.5).
    fn say_topic(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        delivery: Delivery,
        refusals: u32,
    ) {
        let max = self.settings.max_topics;
        let Some(client) = self.get_mut(id) else { return };
        let name = delivery.publication.topic.clone();
        let Some(assigned) = client.topics.assign(&name, false, max) else {
            let detail = format_args!("all {max} topic ids of the client are in use");
            return self.not_given(context, id, &delivery, Drop::Unmappable, detail);
        };
        let (topic_id, msg_id) = (assigned.id, client.next_msg_id());
        let packet = Packet::Register { topic_id, msg_id, name: &name };
        let len = packet.encoded_len() + client.source.head_bytes();
        let max = self.settings.max_datagram_bytes;
        let Some(message) = encode(&packet).filter(|_| len <= max) else {
            let detail = format_args!("a REGISTER of {len} bytes, a datagram takes {max}");
            return self.not_given(context, id, &delivery, Drop::TooLarge, detail);
        };
        if assigned.is_changed {
            self.keep_topic(context, id, topic_id);
        }
        let flight = Flight::new(Step::Register { topic_id, delivery }, msg_id, message);
        self.launch(context, id, Flight { refusals, ..flight });
    }

    /// The msg id of a publication of level 2 is free, as soon as the store knows that the client
    /// has it.
    pub(super) fn say_released(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        msg_id: u16,
        after: Ticket,
    ) {
        if let Some(message) = encode(&Packet::PubRel { msg_id }) {
            let flight = Flight::new(Step::Release, msg_id, message);
            self.launch(context, id, Flight { after, ..flight });
        }
    }

    /// Something is sent until it is answered.
    fn launch(&mut self, context: &mut Context<'_>, id: ConnectionId, flight: Flight) {
        let (tries_left, now) = (self.settings.max_retries, context.now);
        let Some(client) = self.get_mut(id) else { return };
        let waits = flight.after > context.core.journal.done();
        let after = if waits { flight.after } else { Ticket(0) };
        client.flight = Some(Flight { after, tries_left, first: now, since: now, ..flight });
        if waits {
            self.holding.insert(id);
        } else {
            self.transmit(context, id);
        }
    }

    /// Sends what is under way, and waits for the answer.
    fn transmit(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(client) = self.get(id) else { return };
        let Some(flight) = &client.flight else { return };
        client.source.transmit(context.outputs, &flight.message);
        let at = context.now.saturating_add(self.settings.retry_after);
        self.timers.set(Due::Flight(id), Some(at));
    }

    /// Something came of a client: what it has not answered, and is not being sent, is sent again.
    pub(super) fn rouse(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let is_waiting = self.timers.is_set(Due::Flight(id));
        if !is_waiting && self.get(id).is_some_and(|client| client.phase == Phase::Active) {
            self.send_again(context, id);
        }
    }

    /// A client has woken up: what it has not answered is sent again, and what it said before tells
    /// nothing of whether it is there now.
    pub(super) fn resume(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        if let Some(flight) = self.get_mut(id).and_then(|client| client.flight.as_mut()) {
            flight.first = context.now;
        }
        self.send_again(context, id);
    }

    /// What a client has not answered is sent again, as often as at first.
    fn send_again(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let tries_left = self.settings.max_retries;
        let Some(client) = self.get_mut(id) else { return };
        let Some(flight) = client.flight.as_mut().filter(|flight| flight.after == Ticket(0)) else {
            return;
        };
        (flight.tries_left, flight.since) = (tries_left, context.now);
        flight.mark_dup();
        self.transmit(context, id);
    }

    /// What waited for the store goes out.
    pub(super) fn flush(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let done = context.core.journal.done();
        let Some(client) = self.get_mut(id) else { return };
        while client.held.front().is_some_and(|(ticket, _)| *ticket <= done) {
            if let Some((_, message)) = client.held.pop_front() {
                client.source.transmit(context.outputs, &message);
            }
        }
        let mut is_waiting = !client.held.is_empty();
        let is_asleep = client.phase == Phase::Asleep;
        if let Some(flight) = client.flight.as_mut().filter(|flight| flight.after > Ticket(0)) {
            let leaves = flight.after <= done;
            is_waiting |= !leaves;
            if leaves {
                (flight.after, flight.since) = (Ticket(0), context.now);
            }
            if leaves && !is_asleep {
                self.transmit(context, id);
            }
        }
        if is_waiting {
            self.holding.insert(id);
        }
    }

    /// A client has not answered (MQTT-SN 1.2 §6.13).
    pub(super) fn overdue(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let max_retries = self.settings.max_retries;
        let Some(client) = self.get_mut(id) else { return };
        let Some(flight) = client.flight.as_mut() else { return };
        if client.phase == Phase::Asleep {
            return;
        }
        if let Some(left) = flight.tries_left.checked_sub(1) {
            flight.tries_left = left;
            flight.mark_dup();
            return self.transmit(context, id);
        }
        let is_there = client.heard > flight.since;
        if client.phase != Phase::Active && !is_there {
            // It is sent again when the client asks again.
            return self.fall_asleep(context, id, false);
        }
        let max_series = match client.habit {
            Habit::Answers if is_there => MAX_SERIES,
            // One that answers and does not, and was not heard otherwise, is not there.
            Habit::Answers => 0,
            Habit::Unknown | Habit::Silent => MAX_FIRST_SERIES,
        };
        if flight.series + 1 < max_series {
            (flight.tries_left, flight.since) = (max_retries, context.now);
            flight.series += 1;
            return self.transmit(context, id);
        }
        match (client.habit, client.phase) {
            (Habit::Unknown | Habit::Silent, _) if client.heard > flight.first => {
                client.habit = Habit::Silent;
                self.give_up(context, id);
            }
            (_, Phase::Asleep | Phase::Awake { .. }) => self.fall_asleep(context, id, false),
            (Habit::Answers, Phase::Active) => {
                // One that is there connects again, and gets again what it has not answered.
                self.answer(context, id, &Packet::Disconnect { duration_s: None });
                self.lose(context, id, "it does not answer");
            }
            // Within its keep-alive it may say nothing: it is sent again when it says something.
            (Habit::Unknown | Habit::Silent, Phase::Active) => {}
        }
    }

    /// A sleeping client has got what waited (MQTT-SN 1.2 §6.14).
    pub(super) fn fall_asleep(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        is_answered: bool,
    ) {
        let Some(client) = self.get_mut(id) else { return };
        client.phase = Phase::Asleep;
        context.core.set_asleep(client.session, true);
        if is_answered {
            client.source.send(context.outputs, &Packet::PingResp);
        }
        self.timers.set(Due::Flight(id), None);
        self.timers.set(Due::Pause(id), None);
    }

    /// Nothing waits for an answer any more.
    fn give_up(&mut self, context: &mut Context<'_>, id: ConnectionId) {
        let Some(flight) = self.land(id) else { return };
        match &flight.step {
            Step::Register { delivery, .. } | Step::Publish { delivery, .. } => {
                let detail = format_args!("the client does not answer");
                self.not_given(context, id, delivery, Drop::Refused, detail);
            }
            Step::Release => {
                if let Some(client) = self.get(id) {
                    context.core.finish(client.session, flight.msg_id, false);
                }
            }
        }
        self.pump(context, id);
    }

    /// Takes out what was under way.
    pub(super) fn land(&mut self, id: ConnectionId) -> Option<Flight> {
        self.timers.set(Due::Flight(id), None);
        self.get_mut(id)?.flight.take()
    }

    /// A publication does not get to a client.
    pub(super) fn not_given(
        &mut self,
        context: &mut Context<'_>,
        id: ConnectionId,
        delivery: &Delivery,
        why: Drop,
        detail: fmt::Arguments<'_>,
    ) {
        let Some(client) = self.get(id) else { return };
        let session = Some(client.session);
        tell_dropped_for(context.core, &delivery.publication, session, why, detail);
        if let Some(handle) = delivery.handle {
            context.core.finish(client.session, handle.get(), false);
        }
    }
}
