//! In what order parts leave: control first, answers sent again next, then a piece of each exchange
//! as the schedule has it.

use std::time::Duration;

use coding::ExchangeId;
use coding::api::{Departed, Input as Code};
use proto::control::{Expires, Urgent};
use proto::exchange::Part;

use super::Transfer;
use crate::carriers::carrier::{self, Carrier, path_of};
use crate::carriers::schedule::SHORT_BYTES;
use crate::config::INITIAL_CREDIT_BYTES;
use crate::exchanges::{Exchange, Stage, unshared};
use crate::ids::CarrierId;
use crate::timers::Key;

impl Transfer {
    /// Gives the machine parts while the carrier has room.
    pub(crate) fn fill(&mut self, now: Duration, id: CarrierId) {
        let Some(instance) = self.edge_instance(id) else { return };
        while let Some(carrier) = self.carriers.get_mut(&id) {
            let Some(urgency) = carrier.schedule.urgency() else { return };
            if carrier.room_bytes(urgency) == 0 {
                return;
            }
            let Some(number) = carrier.schedule.next() else { return };
            let (most, replays) = (carrier.piece_bytes(), carrier.replays.contains_key(&number));
            self.carriers.stale.insert(id);
            let exchange = ExchangeId { instance, number };
            if replays {
                self.send_replay(now, id, exchange, most);
            } else {
                self.send_next(now, id, exchange, most);
            }
        }
    }

    /// Sends one part of an answer again; the exchange goes on behind the last.
    fn send_replay(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, most: usize) {
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let credit = state.machine.credit(id.number);
        let Some(replay) = state.replays.get_mut(&id.number) else { return };
        let part = carrier::next_part(replay, credit, most);
        if replay.is_empty() {
            state.replays.remove(&id.number);
            self.offer(id);
        } else if part.is_some() {
            self.offer_replay(carrier, id);
        }
        if let Some(part) = part {
            let exchange = self.exchanges.get(&id);
            let sharing = exchange.map_or_else(unshared, Exchange::sharing);
            let Some(state) = self.carriers.get_mut(&carrier) else { return };
            let packed = state.pack(part, &sharing);
            self.send(now, carrier, packed);
        }
    }

    /// Sends one part of an exchange and puts it back in the queue if it has more.
    fn send_next(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, most: usize) {
        let Some(machine) = self.carriers.get(&carrier).map(|carrier| &carrier.machine) else {
            return;
        };
        let (credit, is_greeted) = (machine.credit(id.number), machine.peer().is_some());
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.stage != Stage::Open(carrier) {
            return;
        }
        let is_new = self.core.is_edge() && !exchange.outgoing.is_head_sent();
        let way = self.carriers.get(&carrier).map_or(Duration::ZERO, Carrier::least_round_trip);
        if is_new && exchange.wait.deadline.is_some_and(|deadline| deadline <= now + way) {
            // Its answer would come too late.
            return self.core.timers.set(Key::Expiry(id), Some(now));
        }
        let Some(mut part) = exchange.outgoing.next_part(id.number, credit, most) else {
            return self.code(now, Code::Starved { exchange: id });
        };
        exchange.pad(self.core.config.instance, &mut part);
        let sharing = exchange.sharing();
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        // What was refused before goes as it is: perhaps it could not be read.
        let packed = match exchange.attempts.resends {
            0 => state.pack(part.clone(), &sharing),
            _ => part.clone(),
        };
        let bytes = state.machine.wire_len(&packed);
        exchange.meter.sent_wire_bytes += bytes as u64;
        exchange.moved = now;
        let departed = Departed {
            body: matches!(part, Part::Data(_)),
            block: matches!(&part, Part::Data(data) if data.block_end.is_some()),
            more: exchange.outgoing.is_ready(),
            end: exchange.outgoing.finished,
        };
        if !self.core.is_edge() && !exchange.outgoing.is_bound() {
            exchange.log.push(&part, bytes);
        }
        let has_head = matches!(part, Part::Head(_));
        if has_head && self.core.is_edge() {
            // From here on the request may have been forwarded.
            if is_greeted {
                self.core.timers.set(Key::Exchange(id), None);
            }
            if let Some(state) = self.carriers.get_mut(&carrier) {
                state.requests += 1;
                exchange.attempts.sent_as = Some((carrier, state.requests));
            }
        }
        self.send(now, carrier, packed);
        if has_head {
            self.tell_urgency(now, carrier, id);
            self.tell_expiry(now, carrier, id);
            self.credit_ahead(now, carrier, id);
            self.code(now, Code::Led { exchange: id });
        }
        if departed.body || departed.end {
            self.code(now, Code::Departed { exchange: id, departed });
        }
        self.grant_local(id);
        self.settle_if_done(now, id);
        self.offer(id);
    }

    /// The gateway hears how urgent the answer is.
    fn tell_urgency(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let part = Urgent { exchange: id.number, urgency: exchange.traits.urgency }.part();
        let may = self.carriers.get(&carrier).is_some_and(|one| one.machine.may_send(&part));
        if may && exchange.attempts.tells_urgency {
            self.send(now, carrier, part);
        }
    }

    /// The gateway hears how long the answer is of use.
    fn tell_expiry(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let (Some(exchange), Some(state)) = (self.exchanges.get(&id), self.carriers.get(&carrier))
        else {
            return;
        };
        let Some(deadline) = exchange.wait.deadline.filter(|_| self.core.is_edge()) else { return };
        // It takes the one way, and the answer the other.
        let way = state.least_round_trip();
        let within = deadline.saturating_sub(now).saturating_sub(way);
        let part = Expires { exchange: id.number, within }.part();
        if state.machine.may_send(&part) {
            self.send(now, carrier, part);
        }
    }

    /// Where answers of late were longer than the credit that each begins with, the next one gets
    /// more with its request: over a long path it would wait a round trip for it.
    fn credit_ahead(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        if !self.core.is_edge() {
            return;
        }
        let longest = self.coding.longest(path_of(carrier));
        let long = longest > INITIAL_CREDIT_BYTES;
        let target = if long { self.credit_target(id) } else { INITIAL_CREDIT_BYTES };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.opened();
        if let Some(bytes) = exchange.incoming.credit_due(target) {
            self.send(now, carrier, Part::Credit(id.number, bytes));
        }
    }

    /// Queues an exchange at its carrier if it has a part to send and is not queued.
    pub(crate) fn offer(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(carrier_id) = exchange.carrier() else { return };
        let Some(carrier) = self.carriers.get_mut(&carrier_id) else { return };
        if exchange.outgoing.is_ready() {
            let urgency = exchange.traits.urgency;
            // What has begun takes its turns as others do: it holds up nobody for long.
            let begins = exchange.meter.sent_wire_bytes <= SHORT_BYTES && !exchange.traits.tunnel;
            let deadline = exchange.wait.deadline.filter(|_| begins);
            carrier.schedule.offer(id.number, urgency, exchange.meter.sent_wire_bytes, deadline);
            self.carriers.touch(carrier_id);
        }
    }

    /// Queues an answer that is sent again, as urgent as its exchange.
    pub(crate) fn offer_replay(&mut self, carrier: CarrierId, id: ExchangeId) {
        let urgency = self.exchanges.get(&id).map(|exchange| exchange.traits.urgency);
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        let urgency = urgency.unwrap_or_default();
        state.schedule.offer(id.number, urgency, u64::MAX, None);
        self.carriers.touch(carrier);
    }

    /// The peer gave credit: what waited for it is scheduled.
    pub(crate) fn credited(&mut self, now: Duration, id: CarrierId, exchange: ExchangeId) {
        let bytes = self.carriers.get(&id).map_or(0, |one| one.machine.credit(exchange.number));
        self.code(now, Code::Credit { exchange, bytes });
        match self.carriers.get_mut(&id) {
            Some(carrier) if carrier.replays.contains_key(&exchange.number) => {
                self.offer_replay(id, exchange);
            }
            _ => self.offer(exchange),
        }
    }
}
