//! The gateway's part: requests leave here towards the origin, at most once each; answers whose
//! carrier broke are kept for the edge that comes back for them.

use std::time::Duration;

use coding::ExchangeId;
use coding::api::{Input as Code, Message};
use proto::exchange::{Abort, Head as HeadPart, OutcomeState, Part};
use proto::{bhttp, message};
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, Output};
use crate::carrier::{Carrier, Replay};
use crate::config::{MAX_CARRIERS_LEFT, MAX_OUTCOMES};
use crate::edge::codec_of;
use crate::exchange::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::opening::{Answer, Opened};
use crate::outcomes::{Log, Outcome};
use crate::timers::Key;

/// Why an exchange does not go on over a carrier, as an edge hears it there.
const MOVED: &str = "it goes on over the carrier on which it was asked about last";

impl Relay {
    pub(crate) fn request_head(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        head: &HeadPart,
    ) {
        if let Some(carrier) = self.carriers.get_mut(&carrier).filter(|_| !self.shutting_down) {
            carrier.requests += 1;
        }
        let (opened, reply) = match Opened::read(&head.head) {
            Ok(read) => read,
            Err(error) => {
                let reason = format!("the request's head cannot be read: {error}");
                return self.refuse_request(now, carrier, id, CauseKind::BadRequest, reason);
            }
        };
        let traits = opened.traits;
        let is_open = self.exchanges.contains_key(&id);
        let state = self.carriers.get_mut(&carrier);
        let released = state.is_some_and(|carrier| carrier.released.remove(&id.number));
        // Whatever an edge says, what must not be repeated is not forwarded a second time.
        let is_repeated = released && !is_open && traits.idempotent;
        if !is_repeated && (is_open || self.outcomes.was_here(id)) {
            let reason = "a request with this number was here before".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::OutcomeUnknown, reason);
        }
        if self.outcomes.is_asked_elsewhere(id, carrier) {
            let reason = "the edge asked about it elsewhere before it came".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::NotForwarded, reason);
        }
        if self.shutting_down {
            let reason = "the gateway is shutting down; it is safe to repeat".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::NotForwarded, reason);
        }
        let place = self.place_of_edge(carrier, id, traits);
        if let Err(reason) = self.find_room(now, &place) {
            return self.refuse_request(now, carrier, id, CauseKind::Limit, reason);
        }
        let options = match codec_of(&self.config.codecs, head) {
            Ok(options) => options,
            Err(Cause { kind, reason }) => {
                return self.refuse_request(now, carrier, id, kind, reason);
            }
        };
        let (method, target) = (opened.method, opened.about.target.clone());
        self.event(now, Fact::Started { exchange: id.to_string(), method, target });
        let mut exchange = Exchange::new(id, now, Stage::Open(carrier), traits);
        exchange.guard = opened.guard;
        exchange.meter.received_wire_bytes = head.head.len() as u64 + 6;
        exchange.incoming.set_head(options, head.end);
        self.exchanges.insert(id, exchange);
        self.code(now, Code::Open { exchange: id, about: opened.about });
        self.take_place(now, id, place);
        if is_repeated {
            self.outcomes.revive(id);
        }
        self.outcomes.begin(id);
        if let Some(carrier) = self.carriers.get_mut(&carrier) {
            carrier.exchanges.insert(id.number);
        }
        let end = head.end;
        self.outputs.push_back(Output::Head { exchange: id, head: reply, end });
        self.set_stage(now, id, Stage::Open(carrier));
        self.code(now, Code::Expect { exchange: id, options, end });
    }

    /// Refuses what never became an exchange here.
    fn refuse_request(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        kind: CauseKind,
        reason: String,
    ) {
        let cause = Cause { kind, reason };
        self.refused(now, id, &cause);
        let (code, reason) = (cause.kind.to_wire(), cause.reason);
        self.send(now, carrier, Part::Abort(Abort { exchange: id.number, code, reason }));
    }

    /// The origin has a final response of HTTP.
    pub(crate) fn local_response(
        &mut self,
        now: Duration,
        id: ExchangeId,
        response: &bhttp::Response,
        end: bool,
    ) {
        self.answer(now, id, Answer::of_response(response), end);
    }

    /// What is no HTTP is answered, or was taken.
    pub(crate) fn local_answer(
        &mut self,
        now: Duration,
        id: ExchangeId,
        message: &message::Message,
        end: bool,
    ) {
        self.answer(now, id, Answer::of_message(message), end);
    }

    fn answer(&mut self, now: Duration, id: ExchangeId, answer: Answer, end: bool) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.status = answer.status;
        exchange.endless = answer.endless;
        let (len, most) = (answer.head.len(), bhttp::MAX_HEAD_BYTES);
        // The edge would close the carrier over a longer one.
        let reason = match exchange.traits.kind.refuses(answer.kind, end) {
            None if len <= most => None,
            None => Some(format!("the answer's head is {len} bytes, over the limit of {most}")),
            Some(why) => Some(why.to_owned()),
        };
        if let Some(reason) = reason {
            self.refuse(now, id, &Cause { kind: CauseKind::OriginFailed, reason });
            return;
        }
        let carrier = exchange.carrier().and_then(|id| self.carriers.get(&id));
        if carrier.is_some_and(|carrier| !carrier.takes(exchange.endless, 0)) {
            let reason = "the answer has no end, and its carrier takes none such".to_owned();
            return self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
        }
        let urgent = exchange.traits.tunnel;
        let message = Message { urgent, end, ..answer.message };
        exchange.coded = message.coded;
        exchange.outgoing.set_head(answer.head, end);
        exchange.guard.marked |= answer.private;
        let private = exchange.guard.marked;
        exchange.moved = now;
        exchange.traits.expects_continue = false;
        let carrier = exchange.carrier();
        self.code(now, Code::Answered { exchange: id, private });
        if let Some(carrier) = carrier.filter(|_| !end) {
            self.measure(now, carrier, false);
        }
        self.note_answer_to_shares(now, id);
        self.code(now, Code::Message { exchange: id, message });
        self.grant_local(id);
    }

    /// The carrier of an exchange broke: an answer to a whole request is kept for a while.
    pub(crate) fn gateway_lost_carrier(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        // A tunnel cannot be taken up again, but what came of it whole is passed on.
        let resumes = !exchange.traits.tunnel || exchange.outgoing.finished;
        if resumes && self.has_all(id) {
            self.timers.set(Key::Exchange(id), Some(now + self.config.retain));
            return self.set_stage(now, id, Stage::Detached);
        }
        self.note_abort(id);
        let reason = "the carrier broke before the request was whole".to_owned();
        self.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
    }

    /// Nobody came back for the answer.
    pub(crate) fn gateway_retention_ended(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        if exchange.stage == Stage::Detached {
            self.note_abort(id);
            let reason = "the edge did not come back for the answer".to_owned();
            self.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
        }
    }

    /// What an edge's carrier before, of the same kind, still holds must not be forwarded after the
    /// edge was told that it never came. An edge that supports parallel carriers learns that by the
    /// number of its question; of others the carrier before is closed.
    pub(crate) fn supersede(&mut self, now: Duration, carrier: CarrierId, instance: u64) {
        if self.shutting_down {
            // Nothing new is forwarded, and the edge comes back for what it lost, not for good.
            return;
        }
        let Some(new) = self.carriers.get(&carrier) else { return };
        let stay = if new.allows_parallel() { MAX_CARRIERS_LEFT + 1 } else { 0 };
        let is_like =
            |id: &CarrierId| self.carriers.get(id).is_some_and(|one| one.kind == new.kind);
        let others: Vec<_> = self.others_of(carrier, instance).filter(is_like).collect();
        for id in others.iter().take(others.len().saturating_sub(stay)) {
            if let Some(carrier) = self.carriers.get_mut(id) {
                carrier.going_away = true;
            }
            self.close_carrier(now, *id, "the edge opened another carrier");
        }
    }

    /// The edge asks what became of an exchange, and numbers its questions. One that comes behind a
    /// later one changes nothing of what was agreed there.
    pub(crate) fn query(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, at: u64) {
        if !self.outcomes.ask(id, carrier, at) {
            let reason = "it was asked about on another carrier since".to_owned();
            return self.end_flow(now, carrier, id, reason);
        }
        let parallel = self.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        let takes_anew = self.takes_anew(carrier);
        let state = match self.outcomes.get(id) {
            None if self.outcomes.may_be_forgotten(id) => OutcomeState::Forgotten,
            None => OutcomeState::NotSeen,
            Some(Outcome::Aborted) => OutcomeState::Aborted,
            Some(Outcome::Answered { status, log, idempotent, on }) => {
                let is_there = |on: CarrierId| on != carrier && self.carriers.contains_key(&on);
                let here = self.carriers.get(&carrier);
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

    /// Nothing more comes of an exchange on a carrier, which its edge has left.
    fn end_flow(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, reason: String) {
        let (exchange, code) = (id.number, CauseKind::OutcomeUnknown.to_wire());
        self.send(now, carrier, Part::Abort(Abort { exchange, code, reason }));
    }

    fn query_running(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) {
        let takes_anew = self.takes_anew(carrier);
        let (has_all, is_bound) = (self.has_all(id), self.coding.delta(id).is_some());
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let before = exchange.on_carrier();
        let parallel = self.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        let goes_on = |before: CarrierId| before != carrier && self.carriers.contains_key(&before);
        let fits = self.carriers.get(&carrier).is_some_and(|here| {
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
            self.note_abort(id);
            self.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
            return self.send_outcome(now, carrier, id, OutcomeState::Aborted);
        }
        // The other carrier's bases went with it.
        self.code(now, Code::Anew { exchange: id });
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let begins_anew = exchange.outgoing.begins_anew() || self.coding.begins_anew(id);
        let may_go_on = fits && (takes_anew || !begins_anew);
        let parts = exchange.log.parts_for(takes_anew).filter(|_| may_go_on);
        let Some(parts) = parts.map(|parts| parts.iter().cloned().collect()) else {
            let status = exchange.status;
            let reason = "too much of the answer is lost to send it again".to_owned();
            if let Some(before) = before.filter(|before| *before != carrier) {
                self.end_flow(now, before, id, reason.clone());
            }
            self.note_abort(id);
            self.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
            return self.send_outcome(now, carrier, id, OutcomeState::Lost(status));
        };
        self.timers.set(Key::Exchange(id), None);
        if let Some(before) = before.filter(|before| *before != carrier) {
            self.end_flow(now, before, id, MOVED.to_owned());
            self.leave(now, id, before);
        }
        if let Some(carrier) = self.carriers.get_mut(&carrier) {
            carrier.exchanges.insert(id.number);
        }
        self.send_outcome(now, carrier, id, OutcomeState::Answer);
        self.replay(carrier, id, parts);
        self.set_stage(now, id, Stage::Open(carrier));
    }

    fn send_outcome(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        state: OutcomeState,
    ) {
        if matches!(state, OutcomeState::Lost(_) | OutcomeState::Aborted)
            && let Some(carrier) = self.carriers.get_mut(&carrier)
        {
            carrier.released.insert(id.number);
            if carrier.released.len() > MAX_OUTCOMES {
                carrier.released.pop_first();
            }
        }
        self.send(now, carrier, Part::Outcome(id.number, state));
    }

    fn replay(&mut self, carrier: CarrierId, id: ExchangeId, replay: Replay) {
        if let Some(state) = self.carriers.get_mut(&carrier) {
            state.replays.insert(id.number, replay);
            state.schedule.offer(id.number, 0);
            self.touch(carrier);
        }
    }

    /// Remembers that an exchange was given up: carried out with its status if it had one.
    pub(crate) fn note_abort(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let whole = self.has_all(id);
        let status = exchange.status;
        let outcome = if whole && status != 0 {
            let mut log = Log::default();
            log.give_up();
            Outcome::Answered { status, log, idempotent: exchange.traits.idempotent, on: None }
        } else {
            Outcome::Aborted
        };
        self.outcomes.end(id, outcome);
    }

    pub(crate) fn note_answer(&mut self, id: ExchangeId, status: u16, log: Log) {
        let exchange = self.exchanges.get(&id);
        let idempotent = exchange.is_some_and(|one| one.traits.idempotent);
        let on = exchange.and_then(Exchange::on_carrier);
        self.outcomes.end(id, Outcome::Answered { status, log, idempotent, on });
    }
}
