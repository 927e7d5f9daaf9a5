//! The edge's part: requests come in here; carriers are dialled here; after a carrier broke, the
//! gateway is asked what became of each request, and none is sent twice without its word.

use std::time::Duration;

use codec::Table;
use coding::ExchangeId;
use coding::api::{About, Input as Code, Message};
use proto::exchange::{Head as HeadPart, OutcomeState};
use proto::{bhttp, message};
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, Known, Output};
use crate::carrier::Carrier;
use crate::config::MAX_RESENDS;
use crate::exchange::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::opening::{Answer, Opened};
use crate::shares::ExchangePlace;
use crate::timers::Key;

impl Relay {
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
        let Opened { head, method, traits, guard, about, message } = opened;
        let (target, exchange) = (about.target.clone(), id.to_string());
        self.event(now, Fact::Started { exchange, method, target });
        let mut place = ExchangePlace::default();
        let refusal = if head.len() > bhttp::MAX_HEAD_BYTES {
            // The gateway would close the carrier over it.
            let (len, most) = (head.len(), bhttp::MAX_HEAD_BYTES);
            let reason = format!("the head is {len} bytes, over the limit of {most}");
            Some((CauseKind::BadRequest, reason))
        } else if self.shutting_down {
            Some((CauseKind::ShuttingDown, "the edge is shutting down".to_owned()))
        } else {
            place = ExchangePlace::of_client(client.as_ref(), traits);
            self.find_room(now, &place).err().map(|reason| (CauseKind::Limit, reason))
        };
        if let Some((kind, reason)) = refusal {
            let cause = Cause { kind, reason };
            self.refused(now, id, &cause);
            self.outputs.push_back(Output::Abort { exchange: id, cause, untouched: true });
            return;
        }
        let mut exchange = Exchange::new(id, now, Stage::Waiting, traits);
        let message = Message { end, ..message };
        exchange.coded = message.coded;
        exchange.outgoing.set_head(head, end);
        if !traits.tunnel {
            exchange.outgoing.keep();
        }
        exchange.guard = guard;
        exchange.other_way = other_way;
        let about = About { service, ..about };
        self.exchanges.insert(id, exchange);
        self.waiting.insert(id);
        self.code(now, Code::Open { exchange: id, about });
        self.code(now, Code::Message { exchange: id, message });
        self.take_place(now, id, place);
        self.dial_soon(now);
        self.attach_waiting(now);
        self.wait_if_waiting(now, id);
    }

    fn wait_if_waiting(&mut self, now: Duration, id: ExchangeId) {
        if self.exchanges.get(&id).is_some_and(|exchange| exchange.stage == Stage::Waiting) {
            self.wait_for_carrier(now, id);
        }
    }

    /// Another gateway answers now, which knows nothing of the exchange.
    pub(crate) fn gateway_restarted(&mut self, now: Duration, id: ExchangeId) {
        self.moved_for_good(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.is_repeatable() {
            exchange.repeated = true;
            exchange.asked.on = None;
            self.send_again(now, id);
            return;
        }
        let reason = "the gateway restarted; the request may have been carried out".to_owned();
        self.fail_local(now, id, Cause { kind: CauseKind::OutcomeUnknown, reason });
    }

    /// Only for a request that was never forwarded, or whose repetition is harmless.
    fn send_again(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let body = exchange.outgoing.rewind();
        self.code(now, Code::Detach { exchange: id, waits: true });
        self.code(now, Code::Rewind { exchange: id, body });
        self.wait_again(now, id);
    }

    /// Back to where no carrier was found yet.
    pub(crate) fn wait_again(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let place = exchange.on_carrier();
        exchange.resends += 1;
        exchange.sent_as = None;
        let is_hopeless = exchange.resends > MAX_RESENDS;
        self.set_stage(now, id, Stage::Waiting);
        if is_hopeless {
            let reason = format!("the carrier broke or was refused {MAX_RESENDS} times; try later");
            let cause = Cause { kind: CauseKind::GatewayUnreachable, reason };
            self.fail_local(now, id, cause);
        }
        if let Some(carrier) = place {
            self.leave(now, id, carrier);
        }
        self.attach_waiting(now);
        self.wait_if_waiting(now, id);
    }

    /// The gateway did not forward the request: perhaps another does. `false` where that cannot be.
    pub(crate) fn try_again(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let may = exchange.carrier().is_some()
            && exchange.outgoing.can_go_again()
            && !exchange.incoming.headed;
        if may {
            self.send_again(now, id);
        }
        may
    }

    /// The carrier of an exchange broke.
    pub(crate) fn edge_lost_carrier(&mut self, now: Duration, id: ExchangeId, carrier: &Carrier) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.incoming.headed {
            // What came is passed on; if that is all of it, nothing was lost.
            let needs_no_more = exchange.outgoing.finished || exchange.status >= 300;
            if needs_no_more && self.has_all(id) {
                self.stop(now, id);
                self.settle_if_done(now, id);
                return;
            }
            let reason = "the carrier broke amid the answer".to_owned();
            self.fail_local(now, id, Cause { kind: CauseKind::CarrierLost, reason });
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
        self.stop(now, id);
        self.moved_for_good(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if !matches!(exchange.stage, Stage::Ambiguous { .. }) {
            self.timers.set(Key::Exchange(id), Some(now + self.config.outcome_timeout));
        }
        exchange.sent_as = None;
        self.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
        // Another carrier may be up already, beside one that was going away.
        match self.is_here(gateway) {
            Some(true) => self.room_freed = true,
            Some(false) => self.gateway_restarted(now, id),
            None => {}
        }
    }

    pub(crate) fn outcome(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        state: OutcomeState,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Stage::Ambiguous { asked: Some(asked), .. } = exchange.stage else { return };
        if asked != carrier {
            return;
        }
        if state == OutcomeState::Unfinished && self.moves_back(now, id) {
            return;
        }
        self.moved_for_good(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if state == OutcomeState::Answer {
            self.timers.set(Key::Exchange(id), None);
            self.stop(now, id);
            return self.set_stage(now, id, Stage::Open(carrier));
        }
        let again = exchange.outgoing.can_go_again();
        let parallel = self.carriers.get(&carrier).is_some_and(Carrier::allows_parallel);
        if matches!(state, OutcomeState::Lost(_) | OutcomeState::Aborted)
            && exchange.is_repeatable()
            && parallel
        {
            exchange.repeated = true;
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
        self.fail_local(now, id, Cause { kind, reason });
    }

    pub(crate) fn response_head(&mut self, now: Duration, id: ExchangeId, head: &HeadPart) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.received_wire_bytes += head.head.len() as u64 + 6;
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
                self.refuse(now, id, &Cause { kind: CauseKind::Corrupt, reason });
                return;
            }
        };
        exchange.status = answer.status;
        exchange.endless = answer.endless;
        exchange.moved = now;
        exchange.outgoing.drop_kept();
        exchange.guard.marked |= answer.private;
        let private = exchange.guard.marked;
        let options = match codec_of(&self.config.codecs, head) {
            Ok(options) => options,
            Err(cause) => return self.refuse(now, id, &cause),
        };
        exchange.incoming.set_head(options, head.end);
        self.code(now, Code::Answered { exchange: id, private });
        self.note_answer_to_shares(now, id);
        // A final answer instead of 100: the body is not wanted (RFC 9110 §10.1.1).
        self.outputs.push_back(Output::Head { exchange: id, head: reply, end: head.end });
        self.code(now, Code::Expect { exchange: id, options, end: head.end });
    }

    /// Nothing more of the request is sent.
    pub(crate) fn stop(&mut self, now: Duration, id: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.outgoing.stop();
            self.code(now, Code::Stop { exchange: id });
        }
    }
}

/// The codec of the body that a head announces; one that is not ours is the peer's fault.
pub(crate) fn codec_of(codecs: &Table, head: &HeadPart) -> Result<codec::Options, Cause> {
    let corrupt =
        |error: codec::Error| Cause { kind: CauseKind::Corrupt, reason: error.to_string() };
    codecs.options(head.codec, head.window_log).map_err(corrupt)
}
