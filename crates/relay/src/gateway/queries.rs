//! What became of an exchange, as the edge hears it that asks, and answers that are sent again.

use std::time::Duration;

use coding::ExchangeId;
use coding::api::Input as Code;
use proto::exchange::{Abort, OutcomeState, Part};

use super::Gateway;
use crate::api::{Cause, CauseKind};
use crate::carriers::carrier::{Carrier, Replay};
use crate::config::MAX_OUTCOMES;
use crate::exchanges::Stage;
use crate::ids::CarrierId;
use crate::outcomes::Outcome;

/// Why an exchange does not go on over a carrier, as an edge hears it there.
const MOVED: &str = "it goes on over the carrier on which it was asked about last";

impl Gateway<'_> {
    /// The edge asks what became of an exchange, and numbers its questions. One that comes behind a
    /// later one changes nothing of what was agreed there.
    pub(crate) fn query(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, at: u64) {
        if !self.transfer.outcomes.ask(id, carrier, at) {
            let reason = "it was asked about on another carrier since".to_owned();
            return self.end_flow(now, carrier, id, reason);
        }
        let parallel = self.transfer.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        let takes_anew = self.transfer.takes_anew(carrier);
        let state = match self.transfer.outcomes.get(id) {
            None if self.transfer.outcomes.may_be_forgotten(id) => OutcomeState::Forgotten,
            None => OutcomeState::NotSeen,
            Some(Outcome::Aborted) => OutcomeState::Aborted,
            Some(Outcome::Answered { status, log, idempotent, on }) => {
                let is_there =
                    |on: CarrierId| on != carrier && self.transfer.carriers.contains_key(&on);
                let here = self.transfer.carriers.get(&carrier);
                let fits = here.is_some_and(|here| here.takes(false, log.body_bytes()));
                match log.parts_for(takes_anew).filter(|_| fits) {
                    // All of it was given to the carrier before, which may only have stalled.
                    None if parallel && !(*idempotent && fits) && on.is_some_and(is_there) => {
                        OutcomeState::Unfinished
                    }
                    None => OutcomeState::Lost(*status),
                    Some(parts) => {
                        let parts = parts.iter().cloned().collect();
                        self.replay(carrier, id, parts);
                        OutcomeState::Answer
                    }
                }
            }
            Some(Outcome::Running) => return self.query_running(now, carrier, id),
        };
        self.send_outcome(now, carrier, id, state);
    }

    fn query_running(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let takes_anew = self.transfer.takes_anew(carrier);
        let (has_all, is_bound) =
            (self.transfer.has_all(id), self.transfer.coding.delta(id).is_some());
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let before = exchange.on_carrier();
        let parallel = self.transfer.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        let goes_on =
            |before: CarrierId| before != carrier && self.transfer.carriers.contains_key(&before);
        let fits = self.transfer.carriers.get(&carrier).is_some_and(|here| {
            let endless = exchange.endless || exchange.traits.tunnel;
            here.takes(endless, exchange.meter.sent_body_bytes)
        });
        let can_resend = is_bound || exchange.log.parts_for(takes_anew).is_some();
        // Where repeating it does no harm, that is sooner than what hangs.
        let stays = !has_all || !fits || (!can_resend && !exchange.traits.idempotent);
        if stays && parallel && before.is_some_and(goes_on) {
            return self.send_outcome(now, carrier, id, OutcomeState::Unfinished);
        }
        if !has_all {
            // The rest of the request went down with the other carrier.
            let reason = "the edge asks about a request that is not whole".to_owned();
            self.transfer.note_abort(id);
            self.transfer.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
            return self.send_outcome(now, carrier, id, OutcomeState::Aborted);
        }
        // The other carrier's bases went with it.
        self.transfer.code(now, Code::Anew { exchange: id });
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let begins_anew = exchange.outgoing.begins_anew() || self.transfer.coding.begins_anew(id);
        let may_go_on = fits && (takes_anew || !begins_anew);
        let parts = exchange.log.parts_for(takes_anew).filter(|_| may_go_on);
        let Some(parts) = parts.map(|parts| parts.iter().cloned().collect()) else {
            let status = exchange.status;
            let reason = "too much of the answer is lost to send it again".to_owned();
            if let Some(before) = before.filter(|before| *before != carrier) {
                self.end_flow(now, before, id, reason.clone());
            }
            self.transfer.note_abort(id);
            self.transfer.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
            let state = match status {
                0 => OutcomeState::Aborted,
                status => OutcomeState::Lost(status),
            };
            return self.send_outcome(now, carrier, id, state);
        };
        self.transfer.set_deadline(id, None);
        if let Some(before) = before.filter(|before| *before != carrier) {
            self.end_flow(now, before, id, MOVED.to_owned());
            self.transfer.leave(now, id, before);
        }
        if let Some(carrier) = self.transfer.carriers.get_mut(&carrier) {
            carrier.exchanges.insert(id.number);
        }
        self.send_outcome(now, carrier, id, OutcomeState::Answer);
        self.replay(carrier, id, parts);
        self.transfer.set_stage(now, id, Stage::Open(carrier));
    }

    /// Nothing more comes of an exchange on a carrier, which its edge has left.
    fn end_flow(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, reason: String) {
        let (exchange, code) = (id.number, CauseKind::OutcomeUnknown.to_wire());
        self.transfer.send(now, carrier, Part::Abort(Abort { exchange, code, reason }));
    }

    fn send_outcome(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        state: OutcomeState,
    ) {
        if matches!(state, OutcomeState::Lost(_) | OutcomeState::Aborted)
            && let Some(carrier) = self.transfer.carriers.get_mut(&carrier)
        {
            carrier.released.insert(id.number);
            if carrier.released.len() > MAX_OUTCOMES {
                carrier.released.pop_first();
            }
        }
        self.transfer.send(now, carrier, Part::Outcome(id.number, state));
    }

    fn replay(&mut self, carrier: CarrierId, id: ExchangeId, replay: Replay) {
        if let Some(state) = self.transfer.carriers.get_mut(&carrier) {
            state.replays.insert(id.number, replay);
        }
        self.transfer.offer_replay(carrier, id);
    }
}
