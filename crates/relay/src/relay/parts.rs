//! What parts that come mean, and who hears of them.

use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use coding::api::Input as Code;
use proto::carrier::Output as FromMachine;
use proto::control::{
    Allowed, ClientEnded, Drained, Expires, Hints, Keeping, Processor, Receipt, Urgent,
};
use proto::exchange::Part;

use super::Relay;
use crate::api::{Cause, CauseKind};
use crate::carriers::carrier::path_of;
use crate::edge::{Held, HeldBack};
use crate::exchanges::Exchange;
use crate::ids::CarrierId;
use crate::timers::Key;
use crate::transfer::Transfer;

/// Why what only a gateway has is not taken.
const OF_EDGE: &str = "an edge has none";

impl Relay {
    /// Lets every carrier that has something to do receive and send until nothing moves.
    pub(super) fn pump(&mut self, now: Duration) {
        loop {
            while let Some(carrier) = self.transfer.carriers.dirty.pop_first() {
                self.transfer.fill(now, carrier);
                self.drain(now, carrier);
                self.close_if_left(now, carrier);
            }
            if !self.transfer.room_freed {
                return;
            }
            self.edge().attach_waiting(now);
        }
    }

    /// Takes what a carrier's machine has: parts to act on, bytes to transmit, a fault.
    fn drain(&mut self, now: Duration, id: CarrierId) {
        loop {
            let Transfer { core, carriers, coding, .. } = &mut self.transfer;
            let Some(carrier) = carriers.get_mut(&id) else { return };
            if carrier.queued > 0 && coding.has_waiting(path_of(id)) {
                self.transfer.code(now, Code::Leaves { path: path_of(id) });
                continue;
            }
            match carrier.machine.poll_output() {
                Some(FromMachine::Greeted) => self.greeted(now, id),
                Some(FromMachine::Received(mut part)) => {
                    if let Err(error) = carrier.heads.unpack(&mut part) {
                        carriers.ignore(core, now, id, "head", &error.to_string());
                    }
                    self.received(now, id, part);
                }
                Some(FromMachine::Answered(number)) => {
                    if let Some(round_trip) = carriers.pong(core, now, id, number) {
                        self.dialer.note_round_trip(id, round_trip);
                    }
                }
                Some(FromMachine::Bytes(bytes)) => {
                    carriers.transmit(core, now, id, bytes);
                    self.bound_backlog(now, id);
                }
                Some(FromMachine::Datagram(bytes)) => {
                    carriers.transmit_datagram(core, now, id, bytes);
                    self.bound_backlog(now, id);
                }
                Some(FromMachine::Stream(piece)) => {
                    carriers.transmit_piece(core, now, id, piece);
                    self.bound_backlog(now, id);
                }
                Some(FromMachine::WakeAt(at)) => core.timers.set(Key::Machine(id), Some(at)),
                Some(FromMachine::Fault(error)) => self.faulty(now, id, &error),
                Some(FromMachine::Lost(error)) => self.close_carrier(now, id, &error.to_string()),
                None => {
                    // Parts of exchanges that are over were not sent. What waits to be whole leaves
                    // room for its rest.
                    let has_room = carrier.queued > 0 && !carrier.abilities.streams;
                    carrier.queued = 0;
                    if has_room {
                        carriers.dirty.insert(id);
                    }
                    carriers.stale.insert(id);
                    if carriers.read(core, now, id) {
                        self.heard(now, id);
                    }
                    return;
                }
            }
        }
    }

    /// A part came over a carrier.
    pub(super) fn received(&mut self, now: Duration, carrier: CarrierId, part: Part) {
        let Some(instance) = self.transfer.edge_instance(carrier) else { return };
        let id = |number| ExchangeId { instance, number };
        let part = match self.transfer.core.is_edge() {
            true => {
                if part.exchange().is_some_and(|number| !self.is_on(id(number), carrier)) {
                    // It may be over here, so that it may go by this carrier again.
                    self.transfer.room_freed = true;
                }
                match self.edge().hold_back(now, carrier, part) {
                    Held::Not(part) => part,
                    Held::Back => return,
                    Held::Whole(held_back) => return self.goes_on(now, held_back),
                }
            }
            false => part,
        };
        let here = |number| self.is_on(id(number), carrier);
        match part {
            Part::Head(head) if !self.transfer.core.is_edge() => {
                self.gateway().request_head(now, carrier, id(head.exchange), &head);
            }
            Part::Head(head) if here(head.exchange) => {
                self.edge().response_head(now, id(head.exchange), &head);
            }
            Part::Data(data) if here(data.exchange) => {
                self.transfer.peer_data(now, carrier, id(data.exchange), data);
            }
            Part::Trailers(number, trailers) if here(number) => {
                self.transfer.peer_end(now, id(number), trailers);
            }
            Part::Credit(number, _) => self.transfer.credited(now, carrier, id(number)),
            Part::Abort(abort) if here(abort.exchange) => {
                let kind = CauseKind::from_wire(abort.code);
                self.peer_abort(now, id(abort.exchange), Cause { kind, reason: abort.reason });
            }
            // Of an answer that is sent again nothing else is left.
            Part::Abort(abort) => self.transfer.leave(now, id(abort.exchange), carrier),
            Part::Interim(number, status) if here(number) => {
                self.edge().peer_interim(id(number), status);
            }
            Part::Query(number, at) => self.gateway().query(now, carrier, id(number), at),
            Part::Outcome(number, state) => {
                if let Some(held_back) = self.edge().outcome(now, carrier, id(number), state) {
                    self.goes_on(now, held_back);
                }
            }
            Part::GoAway => self.going_away(now, carrier),
            Part::Control(kind, content) => self.control(now, carrier, kind, content),
            // Parts of exchanges that are over.
            _ => {}
        }
    }

    /// Whether an exchange, or the question about it, is on a carrier.
    fn is_on(&self, id: ExchangeId, carrier: CarrierId) -> bool {
        self.transfer.exchanges.get(&id).and_then(Exchange::on_carrier) == Some(carrier)
    }

    /// An exchange goes on where these parts of it came.
    fn goes_on(&mut self, now: Duration, held_back: HeldBack) {
        let HeldBack { carrier, parts } = held_back;
        parts.into_iter().for_each(|part| self.received(now, carrier, part));
    }

    /// The peer ended an exchange.
    fn peer_abort(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        if !self.transfer.core.is_edge() {
            if self.gateway().peer_is_done(now, id) {
                return;
            }
            self.transfer.note_abort(id);
        } else if self.edge().peer_abort(now, id, &cause) {
            return;
        }
        self.transfer.fail_local(now, id, cause);
    }

    /// The peer takes no new exchanges on a carrier.
    fn going_away(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.transfer.carriers.get_mut(&id) else { return };
        carrier.going_away = true;
        self.transfer.carriers.dirty.insert(id);
        self.transfer.code(now, Code::Flush { path: path_of(id) });
        if self.transfer.core.is_edge() {
            self.edge().gateway_drains(now, id);
        }
    }

    /// What is of no exchange, or beside it.
    fn control(&mut self, now: Duration, carrier: CarrierId, kind: u64, content: Bytes) {
        match (kind, self.transfer.core.is_edge()) {
            (Receipt::KIND | Keeping::KIND | Processor::KIND, _) => {
                let path = path_of(carrier);
                self.transfer.code(now, Code::Control { path, kind, content });
                self.transfer.note_estimate(carrier);
            }
            (Drained::KIND, true) => self.edge().drained(now, carrier, &content),
            (Hints::KIND, true) => self.edge().hints(now, carrier, &content),
            (Allowed::KIND, true) => self.edge().heed_allowed(now, carrier, &content),
            (ClientEnded::KIND, false) => {
                self.gateway().peer_client_ended(now, carrier, &content);
            }
            (Expires::KIND, false) => self.gateway().peer_expiry(now, carrier, &content),
            (Urgent::KIND, false) => self.gateway().peer_urgency(now, carrier, &content),
            (Urgent::KIND, _) => {
                self.transfer.ignore(now, carrier, "urgency", "a gateway has none");
            }
            (Drained::KIND, _) => self.transfer.ignore(now, carrier, "drained", OF_EDGE),
            (Hints::KIND, _) => self.transfer.ignore(now, carrier, "hints", OF_EDGE),
            (Allowed::KIND, _) => self.transfer.ignore(now, carrier, "allow list", OF_EDGE),
            (ClientEnded::KIND, _) => {
                self.transfer.ignore(now, carrier, "client's end", "a gateway has none");
            }
            _ => {
                let why = "it is of a kind of a later version";
                self.transfer.ignore(now, carrier, "control", why);
            }
        }
    }
}
