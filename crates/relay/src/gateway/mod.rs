//! The gateway's part: requests leave here towards the origin, at most once each; answers whose
//! carrier broke are kept for the edge that comes back for them ([`queries`]).

mod beside;
mod queries;

use std::collections::BTreeMap;
use std::time::Duration;

use coding::ExchangeId;
use coding::api::{Input as Code, Message};
use proto::exchange::{Abort, Head as HeadPart, Part};
use proto::{bhttp, heads, message};
use record::event::Fact;

use crate::api::{Cause, CauseKind, Output};
use crate::carriers::carrier::Carrier;
use crate::config::MAX_CARRIERS_LEFT;
use crate::exchanges::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::opening::{Answer, Opened, codec_of};
use crate::places::Places;
use crate::shares::ExchangePlace;
use crate::transfer::Transfer;

/// See the module.
pub(crate) struct Gateway<'a> {
    pub(crate) transfer: &'a mut Transfer,
}

impl Gateway<'_> {
    /// A request comes: it is forwarded, or refused.
    pub(crate) fn request_head(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        head: &HeadPart,
    ) {
        let Transfer { core, carriers, .. } = &mut *self.transfer;
        if let Some(carrier) = carriers.get_mut(&carrier).filter(|_| !core.shutting_down) {
            carrier.requests += 1;
        }
        let (opened, reply) = match Opened::read(&head.head) {
            Ok(read) => read,
            Err(error) => {
                let reason = format!("the request's head cannot be read: {error}");
                // Its base may be gone where it was on its way for long.
                let kind = match heads::is_packed(&head.head) {
                    true => CauseKind::NotForwarded,
                    false => CauseKind::BadRequest,
                };
                return self.refuse_request(now, carrier, id, kind, reason);
            }
        };
        let traits = opened.traits;
        let is_open = self.transfer.exchanges.contains_key(&id);
        let state = self.transfer.carriers.get_mut(&carrier);
        let released = state.is_some_and(|carrier| carrier.released.remove(&id.number));
        // Whatever an edge says, what must not be repeated is not forwarded a second time.
        let is_repeated = released && !is_open && traits.idempotent;
        if !is_repeated && (is_open || self.transfer.outcomes.was_here(id)) {
            let reason = "a request with this number was here before".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::OutcomeUnknown, reason);
        }
        if self.transfer.outcomes.is_asked_elsewhere(id, carrier) {
            let reason = "the edge asked about it elsewhere before it came".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::NotForwarded, reason);
        }
        if self.transfer.core.shutting_down {
            let reason = "the gateway is shutting down; it is safe to repeat".to_owned();
            return self.refuse_request(now, carrier, id, CauseKind::NotForwarded, reason);
        }
        let peer = self.transfer.carriers.get(&carrier).map(|carrier| carrier.peer.clone());
        let place = ExchangePlace::of_edge(peer.unwrap_or_default(), id.instance, traits);
        if let Err(reason) = Places::new(self.transfer).find_room(now, &place) {
            return self.refuse_request(now, carrier, id, CauseKind::Limit, reason);
        }
        let options = match codec_of(&self.transfer.core.config.codecs, head) {
            Ok(options) => options,
            Err(Cause { kind, reason }) => {
                return self.refuse_request(now, carrier, id, kind, reason);
            }
        };
        let (method, target) = (opened.method, opened.about.target.clone());
        self.transfer.core.event(now, Fact::Started { exchange: id.to_string(), method, target });
        let mut exchange = Exchange::new(id, now, Stage::Open(carrier), traits);
        exchange.guard = opened.guard;
        let state = self.transfer.carriers.get(&carrier);
        let crossed = state.map(|one| one.heads.crossed_bytes(id.number, &head.head));
        exchange.meter.received_wire_bytes = crossed.unwrap_or_default() as u64 + 6;
        exchange.incoming.set_head(options, head.end);
        self.transfer.exchanges.insert(exchange);
        self.transfer.code(now, Code::Open { exchange: id, about: opened.about });
        Places::new(self.transfer).take(now, id, place);
        if is_repeated {
            self.transfer.outcomes.revive(id);
        }
        self.transfer.outcomes.begin(id);
        if let Some(carrier) = self.transfer.carriers.get_mut(&carrier) {
            carrier.exchanges.insert(id.number);
        }
        let end = head.end;
        self.transfer.core.outputs.push_back(Output::Head { exchange: id, head: reply, end });
        self.transfer.set_stage(now, id, Stage::Open(carrier));
        self.transfer.code(now, Code::Expect { exchange: id, options, end });
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
        self.transfer.refused(now, id, &cause);
        let (code, reason) = (cause.kind.to_wire(), cause.reason);
        self.transfer.send(now, carrier, Part::Abort(Abort { exchange: id.number, code, reason }));
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
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
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
            self.transfer.refuse(now, id, &Cause { kind: CauseKind::OriginFailed, reason });
            return;
        }
        let carrier = exchange.carrier().and_then(|id| self.transfer.carriers.get(&id));
        if carrier.is_some_and(|carrier| !carrier.takes(exchange.endless, 0)) {
            let reason = "the answer has no end, and its carrier takes none such".to_owned();
            return self.transfer.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
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
        self.transfer.code(now, Code::Answered { exchange: id, private });
        if let Some(carrier) = carrier.filter(|_| !end) {
            self.transfer.measure(now, carrier, false);
        }
        Places::new(self.transfer).note_answer(now, id);
        self.transfer.code(now, Code::Message { exchange: id, message });
        self.transfer.grant_local(id);
    }

    /// The carrier of an exchange broke: an answer to a whole request is kept for a while.
    pub(crate) fn lost_carrier(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        // A tunnel cannot be taken up again, but what came of it whole is passed on.
        let resumes = !exchange.traits.tunnel || exchange.outgoing.finished;
        if resumes && self.transfer.has_all(id) {
            self.transfer.set_deadline(id, Some(now + self.transfer.core.config.retain));
            return self.transfer.set_stage(now, id, Stage::Detached);
        }
        self.transfer.note_abort(id);
        let reason = "the carrier broke before the request was whole".to_owned();
        self.transfer.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
    }

    /// The edge wants no more of an exchange. Whether it goes on all the same: all of the request
    /// has come and all of the answer was sent, and its origin may take the rest of the request.
    pub(crate) fn peer_is_done(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return false };
        let goes_on = exchange.outgoing.finished && !exchange.traits.tunnel;
        let carrier = exchange.on_carrier();
        if !goes_on || !self.transfer.has_all(id) {
            return false;
        }
        if let Some(carrier) = carrier {
            self.transfer.leave(now, id, carrier);
        }
        self.lost_carrier(now, id);
        true
    }

    /// Nobody came back for the answer.
    pub(crate) fn retention_ended(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        if exchange.stage == Stage::Detached {
            self.transfer.note_abort(id);
            let reason = "the edge did not come back for the answer".to_owned();
            self.transfer.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
        }
    }

    /// What an edge's carrier before, of the same kind, still holds must not be forwarded after the
    /// edge was told that it never came. An edge that supports parallel carriers learns that by the
    /// number of its question; of others the carrier before is closed: those to close are returned.
    pub(crate) fn supersede(&mut self, carrier: CarrierId, instance: u64) -> Vec<CarrierId> {
        if self.transfer.core.shutting_down {
            // Nothing new is forwarded, and the edge comes back for what it lost, not for good.
            return Vec::new();
        }
        let Some(new) = self.transfer.carriers.get(&carrier) else { return Vec::new() };
        let stay = if new.allows_parallel() { MAX_CARRIERS_LEFT + 1 } else { 0 };
        let carriers = &self.transfer.carriers;
        let is_like = |id: &CarrierId| carriers.get(id).is_some_and(|one| one.kind == new.kind);
        let others: Vec<_> = carriers.others_of(carrier, instance).filter(is_like).collect();
        let too_many = others.len().saturating_sub(stay);
        let goes = others.into_iter().take(too_many).collect::<Vec<_>>();
        for id in &goes {
            if let Some(carrier) = self.transfer.carriers.get_mut(id) {
                carrier.going_away = true;
            }
        }
        goes
    }

    /// `new` has said HELLO. Where that makes more carriers than there may be, the peer with most
    /// of them gives one up, which is returned with the reason: the oldest that carries nothing,
    /// else the newest.
    pub(crate) fn share_carriers(
        &mut self,
        now: Duration,
        new: CarrierId,
    ) -> Option<(CarrierId, String)> {
        let Transfer { core, carriers, .. } = &mut *self.transfer;
        let most = core.config.max_carriers;
        let ours = carriers.get(&new).filter(|_| carriers.len() > most)?;
        let mut of: BTreeMap<&str, usize> = BTreeMap::new();
        for carrier in carriers.values() {
            *of.entry(&carrier.peer).or_default() += 1;
        }
        let own = ours.peer.as_str();
        let (peer, _) = of.iter().max_by_key(|(peer, count)| (**count, **peer == own))?;
        let theirs = || carriers.iter().filter(|(_, carrier)| carrier.peer == *peer);
        let carries =
            |carrier: &Carrier| !carrier.exchanges.is_empty() || !carrier.replays.is_empty();
        let idle = theirs().find(|(id, carrier)| **id != new && !carries(carrier));
        let (goes, _) = idle.or_else(|| theirs().next_back())?;
        core.limit_reached(now, "max_carriers", "a carrier of the peer that has most was closed");
        let reason =
            format!("{most} carriers are open (max_carriers), and '{peer}' has most of them");
        Some((*goes, reason))
    }
}
