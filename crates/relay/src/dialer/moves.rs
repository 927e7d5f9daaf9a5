//! From one carrier to another, and back.

use std::time::Duration;

use coding::ExchangeId;
use proto::exchange::Part;
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, DialFailure, Output};
use crate::carrier::Carrier;
use crate::config::MAX_CARRIERS_LEFT;
use crate::exchange::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::timers::Key;

impl Relay {
    /// Nothing has come over a carrier though it should have, since then.
    pub(crate) fn carrier_stalls(&mut self, now: Duration, id: CarrierId, since: Duration) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.pulse.stalled = Some(since);
        let (peer, kind) = (carrier.peer.clone(), carrier.kind);
        let silent_s = now.saturating_sub(since).as_secs_f64();
        let reason =
            format!("the gateway {peer} is silent: no answer to a PING for {silent_s:.1} s");
        self.event(now, Fact::CarrierStalled { peer, silent_s });
        let is_current = self.dialer.line(kind).is_some_and(|line| line.current == Some(id));
        if is_current {
            self.gateway_is_down(now, kind, DialFailure::Silent, &reason);
            self.timers.set(Key::Dial(kind), Some(now));
            self.move_aside(now, id);
        }
        let patience = (since + self.config.connect_timeout).max(now + self.probe_time());
        for exchange in self.unanswered(id).map(|exchange| exchange.id).collect::<Vec<_>>() {
            let Some(exchange) = self.exchanges.get(&exchange) else { continue };
            let untouched = exchange.outgoing.is_untouched();
            let (number, is_repeatable) = (exchange.id, exchange.is_repeatable() && untouched);
            if !exchange.outgoing.is_head_sent() {
                self.wait_again(now, number);
            } else if exchange.other_way && is_repeatable {
                self.withdraw(now, number, id);
                self.fail_unreachable(now, number, &reason);
            } else {
                self.timers.set(Key::Exchange(number), Some(patience));
            }
        }
    }

    /// What was sent on a carrier is taken back: it may be carried out all the same.
    fn withdraw(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        let reason = "it went another way".to_owned();
        self.fail_peer(now, id, &Cause { kind: CauseKind::ClientGone, reason });
        self.leave(now, id, carrier);
        self.set_stage(now, id, Stage::Waiting);
    }

    /// Something came over a carrier that had stalled.
    pub(crate) fn carrier_recovers(&mut self, now: Duration, id: CarrierId) {
        for exchange in self.unanswered(id).map(|exchange| exchange.id).collect::<Vec<_>>() {
            self.timers.set(Key::Exchange(exchange), None);
        }
        let Some(line) = self.dialer.line_of(id).filter(|line| line.current == Some(id)) else {
            return;
        };
        line.down = None;
        // One that has said HELLO already has taken over at the gateway.
        if let Some(fresh) = line.fresh.filter(|fresh| !self.carriers.contains_key(fresh)) {
            let reason = "the one before goes on".to_owned();
            self.outputs.push_back(Output::Close { carrier: fresh, reason });
            line.fresh = None;
        }
        self.attach_waiting(now);
    }

    /// A carrier has stalled: what is on it moves to one of another kind that leads to the same
    /// gateway, where there is one.
    fn move_aside(&mut self, now: Duration, stalled: CarrierId) {
        let gateway = self.carriers.get(&stalled).and_then(Carrier::peer_instance);
        let leads = |id: &CarrierId| {
            *id != stalled && self.carriers.get(id).and_then(Carrier::peer_instance) == gateway
        };
        if let Some(gateway) = gateway.filter(|_| self.usable().any(|id| leads(&id))) {
            self.move_off(now, stalled, gateway);
            self.attach_waiting(now);
        }
    }

    /// Another of its kind takes over from a carrier.
    pub(super) fn take_over(&mut self, now: Duration, before: CarrierId, gateway: u64) {
        self.move_off(now, before, gateway);
        let Some(carrier) = self.carriers.get_mut(&before) else { return };
        carrier.going_away = true;
        let kind = carrier.kind;
        self.dirty.insert(before);
        let Some(line) = self.dialer.line(kind) else { return };
        line.left.push(before);
        if line.left.len() > MAX_CARRIERS_LEFT {
            let oldest = line.left.remove(0);
            self.close_carrier(now, oldest, "others have taken its place");
        }
    }

    /// What is on a carrier moves to another, which leads to a gateway of this instance, where it
    /// can be sent again; the rest stays on it to its end.
    fn move_off(&mut self, now: Duration, before: CarrierId, gateway: u64) {
        let same = self.carriers.get(&before).and_then(Carrier::peer_instance) == Some(gateway);
        let moves = self.unanswered(before).filter(|exchange| match same {
            true => exchange.outgoing.can_go_again(),
            false => exchange.is_repeatable(),
        });
        for id in moves.map(|exchange| exchange.id).collect::<Vec<_>>() {
            if !same {
                // The gateway before may still be there, and is to stop. What cannot be repeated
                // goes on with it, until its carrier breaks too.
                self.withdraw(now, id, before);
                self.gateway_restarted(now, id);
                continue;
            }
            let Some(exchange) = self.exchanges.get_mut(&id) else { continue };
            exchange.moved_from = Some(before);
            let gateway = Some(gateway);
            self.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            let patience = now + self.config.outcome_timeout;
            self.timers.set(Key::Exchange(id), Some(patience));
            self.leave(now, id, before);
        }
        let asked = self
            .exchanges
            .values()
            .filter(|exchange| {
                exchange.on_carrier() == Some(before) && exchange.carrier().is_none()
            })
            // Another gateway knows nothing of what this one was asked.
            .filter(|_| same);
        for id in asked.map(|exchange| exchange.id).collect::<Vec<_>>() {
            if let Some(Stage::Ambiguous { gateway, .. }) = self.stage_of(id) {
                self.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            }
            self.leave(now, id, before);
        }
    }

    /// Where the exchange was before it was asked about: it does not go on there.
    pub(crate) fn moved_for_good(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.held_back.clear();
        if let Some(before) = exchange.moved_from.take() {
            exchange.sent_as = None;
            self.dirty.insert(before);
        }
    }

    /// The exchange goes on over the carrier before: the gateway still gets the request there, or
    /// all of the answer has come. `false` where it cannot.
    pub(crate) fn moves_back(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let Some(before) = exchange.moved_from.take() else { return false };
        let held_back = std::mem::take(&mut exchange.held_back);
        let asked = exchange.on_carrier();
        let Some(state) = self.carriers.get_mut(&before) else { return false };
        state.exchanges.insert(id.number);
        let stalled = state.pulse.stalled.is_some();
        let patience = stalled.then_some(now + self.config.connect_timeout);
        self.timers.set(Key::Exchange(id), patience);
        if let Some(asked) = asked {
            self.leave(now, id, asked);
        }
        self.set_stage(now, id, Stage::Open(before));
        held_back.into_iter().for_each(|part| self.received(now, before, part));
        true
    }

    /// What comes of an answer over the carrier before, while it is being asked about, may be all
    /// that does: it waits for the gateway's word, or until it is whole.
    pub(crate) fn hold_back(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        part: Part,
    ) -> Option<Part> {
        let (number, is_end) = match &part {
            Part::Head(head) => (head.exchange, head.end),
            Part::Data(data) => (data.exchange, data.end),
            Part::Trailers(number, _) => (*number, true),
            Part::Abort(abort) => (abort.exchange, false),
            Part::Interim(number, _) => (*number, false),
            _ => return Some(part),
        };
        let id = ExchangeId { instance: self.config.instance, number };
        let before = |one: &&mut Exchange| one.moved_from == Some(carrier);
        let Some(exchange) = self.exchanges.get_mut(&id).filter(before) else { return Some(part) };
        exchange.held_back.push(part);
        if is_end {
            // Nobody need be asked any more, and the answer to a question is of no use.
            let reason = "its answer has come elsewhere".to_owned();
            self.fail_peer(now, id, &Cause { kind: CauseKind::ClientGone, reason });
            self.moves_back(now, id);
        }
        None
    }
}
