//! From one carrier to another, and back.

use std::time::Duration;

use coding::ExchangeId;
use proto::exchange::{BLOCK_CREDIT_BYTES, Part};
use record::event::Fact;

use super::Edge;
use crate::api::{Cause, CauseKind, DialFailure, Output};
use crate::config::{MAX_CARRIERS_LEFT, MAX_CREDIT_BYTES, PIECE_BYTES};
use crate::exchanges::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::timers::Key;

/// Most parts of an answer that are held back. As many as its credit may come in: each block takes
/// [`BLOCK_CREDIT_BYTES`] of it beside its bytes, and is cut into pieces of [`PIECE_BYTES`]; with
/// some to spare for pieces that ended with the credit there was.
const MAX_HELD_BACK: u64 =
    MAX_CREDIT_BYTES / BLOCK_CREDIT_BYTES + MAX_CREDIT_BYTES / PIECE_BYTES as u64 + 1024;

impl Edge<'_> {
    /// Nothing has come over a carrier though it should have, since then.
    pub(crate) fn carrier_stalls(&mut self, now: Duration, id: CarrierId, since: Duration) {
        let Some(carrier) = self.transfer.carriers.get(&id) else { return };
        let (peer, kind) = (carrier.peer.clone(), carrier.kind);
        let silent_s = now.saturating_sub(since).as_secs_f64();
        let reason =
            format!("the gateway {peer} is silent: no answer to a PING for {silent_s:.1} s");
        self.transfer.core.event(now, Fact::CarrierStalled { peer, silent_s });
        let is_current = self.dialer.line(kind).is_some_and(|line| line.current == Some(id));
        if is_current {
            self.gateway_is_down(now, kind, DialFailure::Silent, &reason);
            self.transfer.core.timers.set(Key::Dial(kind), Some(now));
            self.move_aside(now, id);
        }
        let patience =
            (since + self.transfer.core.config.connect_timeout).max(now + self.dialer.probe_time());
        for exchange in self.unanswered(id) {
            let Some(exchange) = self.transfer.exchanges.get(&exchange) else { continue };
            let untouched = exchange.outgoing.is_untouched();
            let (number, is_repeatable) = (exchange.id, exchange.is_repeatable() && untouched);
            if !exchange.outgoing.is_head_sent() {
                self.wait_again(now, number);
            } else if exchange.attempts.other_way && is_repeatable {
                self.withdraw(now, number, id);
                self.fail_unreachable(now, number, &reason);
            } else {
                self.transfer.set_deadline(number, Some(patience));
            }
        }
    }

    /// What was sent on a carrier is taken back: it may be carried out all the same.
    fn withdraw(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        let reason = "it went another way".to_owned();
        self.transfer.fail_peer(now, id, &Cause { kind: CauseKind::ClientGone, reason });
        self.transfer.leave(now, id, carrier);
        self.transfer.set_stage(now, id, Stage::Waiting);
    }

    /// Something came over a carrier that had stalled.
    pub(crate) fn carrier_recovers(&mut self, now: Duration, id: CarrierId) {
        for exchange in self.unanswered(id) {
            self.transfer.set_deadline(exchange, None);
        }
        let Some(line) = self.dialer.line_of(id).filter(|line| line.current == Some(id)) else {
            return;
        };
        line.down = None;
        // One that has said HELLO already has taken over at the gateway.
        if let Some(fresh) = line.fresh.filter(|fresh| !self.transfer.carriers.contains_key(fresh))
        {
            let reason = "the one before goes on".to_owned();
            self.transfer.core.outputs.push_back(Output::Close { carrier: fresh, reason });
            line.fresh = None;
        }
        self.attach_waiting(now);
    }

    /// A carrier has stalled: what is on it moves to one of another kind, to the same gateway where
    /// one leads there.
    fn move_aside(&mut self, now: Duration, stalled: CarrierId) {
        let carriers = &self.transfer.carriers;
        let before = carriers.peer_instance(stalled);
        let others = self.dialer.usable(carriers).filter(|id| *id != stalled);
        let led_to = others.filter_map(|id| carriers.peer_instance(id));
        let gateway = led_to.max_by_key(|gateway| Some(*gateway) == before);
        if let Some(gateway) = gateway {
            self.move_off(now, stalled, gateway);
            self.attach_waiting(now);
        }
    }

    /// Another of its kind takes over from a carrier. One to close is returned, where too many
    /// stay.
    pub(super) fn take_over(
        &mut self,
        now: Duration,
        before: CarrierId,
        gateway: u64,
    ) -> Option<CarrierId> {
        self.move_off(now, before, gateway);
        let carrier = self.transfer.carriers.get_mut(&before)?;
        carrier.going_away = true;
        let kind = carrier.kind;
        self.transfer.carriers.dirty.insert(before);
        let line = self.dialer.line(kind)?;
        line.left.push(before);
        (line.left.len() > MAX_CARRIERS_LEFT).then(|| line.left.remove(0))
    }

    /// What is on a carrier moves to another, which leads to a gateway of this instance, where it
    /// can be sent again; the rest stays on it to its end.
    fn move_off(&mut self, now: Duration, before: CarrierId, gateway: u64) {
        let same = self.transfer.carriers.peer_instance(before) == Some(gateway);
        let moves = self.transfer.exchanges.unanswered(before).filter(|exchange| match same {
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
            let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { continue };
            exchange.attempts.moved_from = Some(before);
            let gateway = Some(gateway);
            self.transfer.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            let patience = now + self.transfer.core.config.outcome_timeout;
            self.transfer.set_deadline(id, Some(patience));
            self.transfer.leave(now, id, before);
        }
        let is_asked_there = |exchange: &&Exchange| exchange.stage.on_question() == Some(before);
        // Another gateway knows nothing of what this one was asked.
        let asked = self.transfer.exchanges.values().filter(|_| same).filter(is_asked_there);
        for id in asked.map(|exchange| exchange.id).collect::<Vec<_>>() {
            if let Some(Stage::Ambiguous { gateway, .. }) = self.transfer.exchanges.stage_of(id) {
                self.transfer.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            }
            self.transfer.leave(now, id, before);
        }
    }

    /// Where the exchange was before it was asked about: it does not go on there.
    pub(crate) fn moved_for_good(&mut self, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        exchange.attempts.held_back.clear();
        if let Some(before) = exchange.attempts.moved_from.take() {
            exchange.attempts.sent_as = None;
            self.transfer.carriers.dirty.insert(before);
        }
    }

    /// The exchange goes on over the carrier before: the gateway still gets the request there, or
    /// all of the answer has come. What was held back of it, if that can be.
    pub(crate) fn moves_back(&mut self, now: Duration, id: ExchangeId) -> Option<HeldBack> {
        let exchange = self.transfer.exchanges.get_mut(&id)?;
        let carrier = exchange.attempts.moved_from.take()?;
        let parts = std::mem::take(&mut exchange.attempts.held_back);
        let asked = exchange.on_carrier();
        let state = self.transfer.carriers.get_mut(&carrier)?;
        state.exchanges.insert(id.number);
        let stalled = state.pulse.stalled.is_some();
        let patience = stalled.then_some(now + self.transfer.core.config.connect_timeout);
        self.transfer.set_deadline(id, patience);
        if let Some(asked) = asked {
            self.transfer.leave(now, id, asked);
        }
        self.transfer.set_stage(now, id, Stage::Open(carrier));
        Some(HeldBack { carrier, parts })
    }

    /// What comes of an answer over the carrier before, while it is being asked about, may be all
    /// that does: it waits for the gateway's word, or until it is whole.
    pub(crate) fn hold_back(&mut self, now: Duration, carrier: CarrierId, part: Part) -> Held {
        let (number, is_end) = match &part {
            Part::Head(head) => (head.exchange, head.end),
            Part::Data(data) => (data.exchange, data.end),
            Part::Trailers(number, _) => (*number, true),
            Part::Abort(abort) => (abort.exchange, false),
            _ => return Held::Not(part),
        };
        let id = ExchangeId { instance: self.transfer.core.config.instance, number };
        let before = |one: &&mut Exchange| one.attempts.moved_from == Some(carrier);
        let Some(exchange) = self.transfer.exchanges.get_mut(&id).filter(before) else {
            return Held::Not(part);
        };
        exchange.attempts.held_back.push(part);
        if exchange.attempts.held_back.len() as u64 > MAX_HELD_BACK {
            let reason = format!("the answer comes in more than {MAX_HELD_BACK} pieces");
            self.transfer.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
            return Held::Back;
        }
        if !is_end {
            return Held::Back;
        }
        // Nobody need be asked any more, and the answer to a question is of no use.
        let reason = "its answer has come elsewhere".to_owned();
        self.transfer.fail_peer(now, id, &Cause { kind: CauseKind::ClientGone, reason });
        self.moves_back(now, id).map_or(Held::Back, Held::Whole)
    }

    /// What is on a carrier without an answer.
    fn unanswered(&self, carrier: CarrierId) -> Vec<ExchangeId> {
        self.transfer.exchanges.unanswered(carrier).map(|exchange| exchange.id).collect()
    }
}

/// Parts that came over a carrier while their exchange was asked about on another.
#[derive(Debug)]
pub(crate) struct HeldBack {
    pub(crate) carrier: CarrierId,
    pub(crate) parts: Vec<Part>,
}

/// Whether a part is held back.
#[derive(Debug)]
pub(crate) enum Held {
    /// It is of no exchange that is asked about elsewhere.
    Not(Part),
    /// It waits.
    Back,
    /// With it the answer is whole, and the exchange is where it came: nothing waits any more.
    Whole(HeldBack),
}
