//! The edge's part: requests come in here; after a carrier broke, the gateway is asked what became
//! of each request, and none is sent twice without its word.
//!
//! Which carrier takes an exchange: [`route`]. Where one has stalled, and another is there, what
//! can be sent again moves to it ([`moves`]): the gateway is asked what became of each request
//! first. The rest stays on the old one until it is over. What goes ahead of a carrier's HELLO:
//! [`early`]. How long a request waits for a carrier: [`waits`].

mod beside;
mod early;
mod moves;
mod route;
mod waits;

use std::time::Duration;

use codec::dictionary::Id;
use coding::ExchangeId;
use coding::api::{About, Input as Code, Message};
use proto::exchange::{Head as HeadPart, OutcomeState};
use proto::{bhttp, message};
use record::event::Fact;

use crate::api::{Cause, CauseKind, DialFailure, Known, Output};
use crate::carriers::carrier::Carrier;
use crate::config::MAX_RESENDS;
use crate::dialer::Dialer;
use crate::exchanges::{Exchange, Stage};
use crate::handling::Wait;
use crate::ids::{CarrierId, CarrierKind};
use crate::opening::{Answer, Opened, codec_of};
use crate::places::Places;
use crate::queues::{Goes, Queues};
use crate::shares::ExchangePlace;
use crate::timers::Key;
use crate::transfer::Transfer;

pub(crate) use moves::{Held, HeldBack};

/// See the module.
pub(crate) struct Edge<'a> {
    pub(crate) transfer: &'a mut Transfer,
    pub(crate) dialer: &'a mut Dialer,
}

impl Edge<'_> {
    /// A client has a request of HTTP.
    pub(crate) fn local_request(
        &mut self,
        now: Duration,
        id: ExchangeId,
        request: &bhttp::Request,
        end: bool,
        known: Known,
    ) {
        self.open(now, id, Opened::of_request(request, known.client.as_ref()), end, known);
    }

    /// A client has a message that is no HTTP.
    pub(crate) fn local_opening(
        &mut self,
        now: Duration,
        id: ExchangeId,
        opening: &message::Opening,
        end: bool,
        known: Known,
    ) {
        self.open(now, id, Opened::of_message(opening, known.client.as_ref()), end, known);
    }

    fn open(&mut self, now: Duration, id: ExchangeId, opened: Opened, end: bool, known: Known) {
        let Known { client, service, other_way } = known;
        let Opened { head, method, mut traits, guard, about, message, .. } = opened;
        let handling = self.transfer.core.config.handling(service);
        let urgency = self.transfer.core.config.urgency(handling, opened.priority);
        let wait = Wait::new(now, handling, opened.patience, opened.subject);
        let derived = std::mem::replace(&mut traits.urgency, urgency);
        let (target, exchange) = (about.target.clone(), id.to_string());
        self.transfer.core.event(now, Fact::Started { exchange, method, target });
        let mut place = ExchangePlace::default();
        let refusal = if head.len() > bhttp::MAX_HEAD_BYTES {
            // The gateway would close the carrier over it.
            let (len, most) = (head.len(), bhttp::MAX_HEAD_BYTES);
            let reason = format!("the head is {len} bytes, over the limit of {most}");
            Some((CauseKind::BadRequest, reason))
        } else if self.transfer.core.shutting_down {
            Some((CauseKind::ShuttingDown, "the edge is shutting down".to_owned()))
        } else {
            place = ExchangePlace::of_client(client.as_ref(), traits);
            let goes = match traits.tunnel {
                true => Ok(Goes::default()),
                false => Queues::new(self.transfer).choose(now, urgency, &wait, &place),
            };
            // Nothing goes for one that has no place.
            let fits = goes.and_then(|goes| match goes.leaves_place {
                true => Ok(goes),
                false => Places::new(self.transfer).find_room(now, &place).map(|()| goes),
            });
            fits.map(|goes| Queues::new(self.transfer).give_up(now, goes))
                .err()
                .map(|reason| (CauseKind::Limit, reason))
        };
        if let Some((kind, reason)) = refusal {
            let cause = Cause { kind, reason };
            self.transfer.refused(now, id, &cause);
            self.transfer.core.outputs.push_back(Output::Abort {
                exchange: id,
                cause,
                untouched: true,
            });
            return;
        }
        let mut exchange = Exchange::new(id, now, Stage::Waiting, traits);
        let message = Message { end, ..message };
        exchange.coded = message.coded;
        exchange.outgoing.set_head(head, end);
        exchange.outgoing.say_length(message.length);
        if !traits.tunnel {
            exchange.outgoing.keep();
        }
        exchange.guard = guard;
        exchange.wait = wait;
        if let Some(leaves_by) = wait.leaves_by.filter(|_| !traits.tunnel) {
            self.transfer.core.timers.set(Key::Expiry(id), Some(leaves_by));
        }
        exchange.owner = about.requester.filter(|_| !about.cross_site).map(|requester| {
            let owner = [&requester.0[..], about.target.as_bytes()].concat();
            Id::of(&owner)
        });
        exchange.attempts.other_way = other_way;
        exchange.attempts.tells_urgency = traits.urgency != derived;
        let about = About { service, ..about };
        self.transfer.exchanges.insert(exchange);
        self.transfer.code(now, Code::Open { exchange: id, about });
        self.transfer.code(now, Code::Message { exchange: id, message });
        Places::new(self.transfer).take(now, id, place);
        let Transfer { core, carriers, .. } = &mut *self.transfer;
        self.dialer.dial_soon(core, carriers, now);
        self.attach_waiting(now);
        self.wait_if_waiting(now, id);
    }

    fn wait_if_waiting(&mut self, now: Duration, id: ExchangeId) {
        if self.transfer.exchanges.stage_of(id) == Some(Stage::Waiting) {
            self.wait_for_carrier(now, id);
        }
    }

    /// An answer begins.
    pub(crate) fn response_head(&mut self, now: Duration, id: ExchangeId, head: &HeadPart) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        let state = exchange.carrier().and_then(|on| self.transfer.carriers.get(&on));
        let crossed = state.map(|one| one.heads.crossed_bytes(id.number, &head.head));
        exchange.meter.received_wire_bytes += crossed.unwrap_or_default() as u64 + 6;
        let kind = exchange.traits.kind;
        let read = Answer::read(kind, &head.head).map_err(|error| error.to_string());
        let read = read.and_then(|(answer, reply)| match kind.refuses(answer.kind, head.end) {
            Some(why) => Err(why.to_owned()),
            None => Ok((answer, reply)),
        });
        let (answer, reply) = match read {
            Ok(read) => read,
            Err(error) => {
                let reason = format!("the gateway's head cannot be read: {error}");
                self.transfer.refuse(now, id, &Cause { kind: CauseKind::Corrupt, reason });
                return;
            }
        };
        exchange.status = answer.status;
        exchange.endless = answer.endless;
        exchange.moved = now;
        exchange.outgoing.drop_kept();
        exchange.guard.marked |= answer.private;
        let private = exchange.guard.marked;
        let options = match codec_of(&self.transfer.core.config.codecs, head) {
            Ok(options) => options,
            Err(cause) => return self.transfer.refuse(now, id, &cause),
        };
        exchange.incoming.set_head(options, head.end);
        self.transfer.code(now, Code::Answered { exchange: id, private });
        Places::new(self.transfer).note_answer(now, id);
        // A final answer instead of 100: the body is not wanted (RFC 9110 §10.1.1).
        self.transfer.core.outputs.push_back(Output::Head {
            exchange: id,
            head: reply,
            end: head.end,
        });
        self.transfer.code(now, Code::Expect { exchange: id, options, end: head.end });
    }

    /// Another gateway answers now, which knows nothing of the exchange.
    pub(crate) fn gateway_restarted(&mut self, now: Duration, id: ExchangeId) {
        self.moved_for_good(id);
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        if exchange.is_repeatable() {
            exchange.attempts.repeated = true;
            exchange.attempts.asked.on = None;
            self.send_again(now, id);
            return;
        }
        let reason = "the gateway restarted; the request may have been carried out".to_owned();
        self.transfer.fail_local(now, id, Cause { kind: CauseKind::OutcomeUnknown, reason });
    }

    /// Only for a request that was never forwarded, or whose repetition is harmless.
    fn send_again(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        let body = exchange.outgoing.rewind();
        self.transfer.code(now, Code::Detach { exchange: id, waits: true });
        self.transfer.code(now, Code::Rewind { exchange: id, body });
        self.wait_again(now, id);
    }

    /// Back to where no carrier was found yet.
    pub(crate) fn wait_again(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        let place = exchange.on_carrier();
        exchange.attempts.resends += 1;
        exchange.attempts.sent_as = None;
        let is_hopeless = exchange.attempts.resends > MAX_RESENDS;
        self.transfer.set_stage(now, id, Stage::Waiting);
        if is_hopeless {
            let reason = format!("the carrier broke or was refused {MAX_RESENDS} times; try later");
            let cause = Cause { kind: CauseKind::GatewayUnreachable, reason };
            self.transfer.fail_local(now, id, cause);
        }
        if let Some(carrier) = place {
            self.transfer.leave(now, id, carrier);
        }
        self.attach_waiting(now);
        self.wait_if_waiting(now, id);
    }

    /// The gateway did not forward the request: perhaps another does. `false` where that cannot be.
    pub(crate) fn try_again(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return false };
        let may = exchange.carrier().is_some()
            && exchange.outgoing.can_go_again()
            && !exchange.incoming.headed;
        if may {
            self.send_again(now, id);
        }
        may
    }

    /// The gateway ended an exchange. Whether that is dealt with: else it failed.
    pub(crate) fn peer_abort(&mut self, now: Duration, id: ExchangeId, cause: &Cause) -> bool {
        match cause.kind {
            CauseKind::AnsweredEarly if self.transfer.has_all(id) => {
                self.transfer.stop(now, id);
                self.transfer.settle_if_done(now, id);
                true
            }
            CauseKind::AnsweredEarly => {
                // No failure by its name, so the client must not hear of it by that.
                let reason = "the gateway says that an answer is whole which is not".to_owned();
                self.transfer.fail_local(now, id, Cause { kind: CauseKind::Corrupt, reason });
                true
            }
            CauseKind::NotForwarded => self.try_again(now, id),
            CauseKind::OutcomeUnknown => self.ask_again(now, id),
            _ => false,
        }
    }

    /// The carrier of an exchange broke.
    pub(crate) fn lost_carrier(&mut self, now: Duration, id: ExchangeId, carrier: &Carrier) {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        if exchange.incoming.headed {
            // What came is passed on; if that is all of it, nothing was lost.
            let needs_no_more = exchange.outgoing.finished || exchange.status >= 300;
            if needs_no_more && self.transfer.has_all(id) {
                self.transfer.stop(now, id);
                self.transfer.settle_if_done(now, id);
                return;
            }
            let reason = "the carrier broke amid the answer".to_owned();
            self.transfer.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
            return;
        }
        let gateway = match exchange.stage {
            Stage::Ambiguous { gateway, .. } => gateway,
            _ => carrier.peer_instance(),
        };
        if !exchange.outgoing.is_head_sent() {
            // Nothing of it has left: all is still here.
            self.wait_again(now, id);
            return;
        }
        // What was not sent is let go, so that it cannot go on where it came from.
        self.transfer.stop(now, id);
        self.moved_for_good(id);
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        exchange.attempts.sent_as = None;
        if !matches!(exchange.stage, Stage::Ambiguous { .. }) {
            let patience = now + self.transfer.core.config.outcome_timeout;
            self.transfer.set_deadline(id, Some(patience));
        }
        self.transfer.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
        // Another carrier may be up already, beside one that was going away.
        match self.dialer.is_here(&self.transfer.carriers, gateway) {
            Some(true) => self.transfer.room_freed = true,
            Some(false) => self.gateway_restarted(now, id),
            None => {}
        }
    }

    /// The gateway's word on an exchange that it was asked about on a carrier. Parts that came over
    /// another and were held back until now are returned, where it goes on there.
    pub(crate) fn outcome(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        state: OutcomeState,
    ) -> Option<HeldBack> {
        let asked = self.transfer.exchanges.stage_of(id)?.on_question()?;
        if asked != carrier {
            return None;
        }
        if state == OutcomeState::Unfinished
            && let held_back @ Some(_) = self.moves_back(now, id)
        {
            return held_back;
        }
        self.decided(now, carrier, id, state);
        None
    }

    /// The gateway's word counts: the exchange is here from now on, or nowhere.
    fn decided(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId, state: OutcomeState) {
        self.moved_for_good(id);
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        if state == OutcomeState::Answer {
            self.transfer.set_deadline(id, None);
            self.transfer.stop(now, id);
            return self.transfer.set_stage(now, id, Stage::Open(carrier));
        }
        let again = exchange.outgoing.can_go_again();
        let parallel = self.transfer.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        if matches!(state, OutcomeState::Lost(_) | OutcomeState::Aborted)
            && exchange.is_repeatable()
            && parallel
        {
            exchange.attempts.repeated = true;
            return self.send_again(now, id);
        }
        let (kind, reason) = match state {
            OutcomeState::NotSeen if again => return self.send_again(now, id),
            OutcomeState::Answer => return,
            OutcomeState::NotSeen => (
                CauseKind::NotForwarded,
                "the carrier broke before the request was whole; it is safe to repeat".to_owned(),
            ),
            OutcomeState::Lost(status) => (
                CauseKind::AnswerLost,
                format!("the request was carried out with status {status}; its answer is lost"),
            ),
            OutcomeState::Aborted | OutcomeState::Unfinished => (
                CauseKind::OutcomeUnknown,
                "the carrier broke; the origin may have acted on part of the request".to_owned(),
            ),
            OutcomeState::Forgotten => (
                CauseKind::OutcomeUnknown,
                "the gateway no longer knows; the request may have been carried out".to_owned(),
            ),
        };
        self.transfer.fail_local(now, id, Cause { kind, reason });
    }

    /// A dial failed.
    pub(crate) fn dial_failed(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        failure: DialFailure,
        reason: &str,
    ) {
        let Some(kind) = self.dialer.wanted(carrier) else { return };
        let is_down = self.dialer.fail(now, kind, failure, reason);
        self.early_lost(now, carrier);
        if let Some(how) = is_down {
            self.gateway_is_down(now, kind, how, reason);
        }
        let idle = self.transfer.exchanges.is_empty();
        self.dialer.pause(&mut self.transfer.core, now, kind, idle);
    }

    /// A carrier ended, or takes nothing new: if it was in use, the next dial is due.
    pub(crate) fn dialer_lost(&mut self, now: Duration, carrier: CarrierId, reason: &str) {
        let Some(kind) = self.dialer.kind_of(carrier) else { return };
        let Some(line) = self.dialer.line(kind) else { return };
        line.left.retain(|left| *left != carrier);
        if line.fresh == Some(carrier) {
            return self.dial_failed(now, carrier, DialFailure::Unreachable, reason);
        }
        if line.current == Some(carrier) {
            let idle = self.transfer.exchanges.is_empty();
            self.dialer.lose(&mut self.transfer.core, now, kind, idle);
        }
    }

    /// The gateway of this instance said HELLO on a carrier, which takes over from the one before
    /// of its kind. A carrier to close is returned: others have taken its place.
    pub(crate) fn connected(
        &mut self,
        now: Duration,
        id: CarrierId,
        gateway: u64,
    ) -> Option<CarrierId> {
        let before = self.dialer.line_of(id)?.connected(id);
        self.early_arrived(now, id);
        let closes = before.and_then(|before| self.take_over(now, before, gateway));
        let carriers = &self.transfer.carriers;
        let is_of_another = |stage| match stage {
            Stage::Ambiguous { gateway, asked: None } => {
                self.dialer.is_here(carriers, gateway) == Some(false)
            }
            _ => false,
        };
        let waits = self.transfer.exchanges.waiting();
        let of_others = waits.filter(|exchange| is_of_another(exchange.stage)).map(|one| one.id);
        for id in of_others.collect::<Vec<_>>() {
            self.gateway_restarted(now, id);
        }
        self.attach_waiting(now);
        closes
    }

    /// It is time to dial a carrier of a kind.
    pub(crate) fn dial(&mut self, now: Duration, kind: CarrierKind) {
        let Transfer { core, carriers, exchanges, .. } = &mut *self.transfer;
        self.dialer.dial(core, carriers, now, kind, exchanges.is_empty());
    }
}
