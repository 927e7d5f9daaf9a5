//! The local side's body on its way to the carrier, and the peer's on its way to the local side.

use std::time::Duration;

use bytes::Bytes;
use coding::ExchangeId;
use coding::api::{Input as Code, Piece};
use proto::bhttp;
use proto::exchange::{Data, Part, Role};
use record::event::Fact;

use super::Transfer;
use crate::api::{Cause, CauseKind, Output};
use crate::config::{INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES};
use crate::exchanges::Stage;
use crate::ids::CarrierId;

impl Transfer {
    pub(crate) fn local_data(&mut self, now: Duration, id: ExchangeId, bytes: Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.sent_body_bytes += bytes.len() as u64;
        (exchange.moved, exchange.took) = (now, now);
        exchange.outgoing.note(&bytes);
        let (carrier, sent) = (exchange.carrier(), exchange.meter.sent_body_bytes);
        let carrier = carrier.and_then(|id| self.carriers.get(&id));
        let most = carrier.and_then(|carrier| match self.core.config.role {
            Role::Edge => carrier.abilities.max_request_bytes,
            Role::Gateway => carrier.abilities.max_answer_bytes,
        });
        if let Some(most) = most.filter(|most| sent > *most) {
            let reason = format!("the body has more than the {most} bytes that its carrier takes");
            return self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
        }
        self.code(now, Code::Body { exchange: id, bytes });
        self.grant_local(id);
    }

    pub(crate) fn local_end(&mut self, now: Duration, id: ExchangeId, trailers: bhttp::Fields) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if let Err(error) = check_trailers(&trailers) {
            let kind = match self.core.config.role {
                Role::Edge => CauseKind::BadRequest,
                Role::Gateway => CauseKind::OriginFailed,
            };
            let reason = format!("trailers that cannot cross the link: {error}");
            self.refuse(now, id, &Cause { kind, reason });
            return;
        }
        let has_some = !trailers.is_empty();
        exchange.outgoing.end(trailers);
        self.code(now, Code::End { exchange: id, trailers: has_some });
    }

    pub(crate) fn local_abort(&mut self, now: Duration, id: ExchangeId, cause: &Cause) {
        if !self.exchanges.contains_key(&id) {
            return;
        }
        self.failed(now, id, cause);
        self.fail_peer(now, id, cause);
        if !self.core.is_edge() {
            self.note_abort(id);
        }
        self.forget(now, id);
    }

    pub(crate) fn local_credit(&mut self, now: Duration, id: ExchangeId, bytes: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.add_local_credit(bytes);
        exchange.took = now;
        if exchange.stage == Stage::Detached && exchange.traits.tunnel {
            // It is not kept for an edge that comes back: its reader has all the time it reads in.
            self.set_deadline(id, Some(now + self.core.config.retain));
        }
        self.deliver(now, id);
    }

    /// Tells the local side how much more body it may hand over, unless the body has to wait.
    pub(crate) fn grant_local(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let attached = exchange.carrier().is_some() || !self.core.is_edge();
        if !attached || exchange.traits.expects_continue && self.core.is_edge() {
            return;
        }
        if let Some(bytes) = exchange.outgoing.grant() {
            self.core.outputs.push_back(Output::Credit { exchange: id, bytes });
        }
    }

    /// The request's body flows (RFC 9110 §10.1.1).
    pub(crate) fn stop_expecting(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if std::mem::take(&mut exchange.traits.expects_continue) {
            self.grant_local(id);
        }
    }

    pub(crate) fn peer_data(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        id: ExchangeId,
        data: Data,
    ) {
        let received = self.carriers.get(&carrier).map_or(0, |carrier| carrier.received);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.moved = now;
        exchange.meter.received_wire_bytes += data.bytes.len() as u64 + 6;
        if data.end {
            exchange.incoming.end(Vec::new());
        }
        let Data { block_end, uncoded, anew, end, bytes, .. } = data;
        let piece = Piece { block_end, uncoded, anew, end, bytes };
        self.code(now, Code::Piece { exchange: id, piece, received });
    }

    pub(crate) fn peer_end(&mut self, now: Duration, id: ExchangeId, trailers: bhttp::Fields) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.end(trailers);
        self.code(now, Code::PeerEnd { exchange: id });
    }

    /// Gives the local side what is decoded, within its credit, and the end behind it.
    pub(super) fn deliver(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        while let Some(bytes) = exchange.incoming.deliver() {
            exchange.meter.received_body_bytes += bytes.len() as u64;
            self.core.outputs.push_back(Output::Data { exchange: id, bytes });
        }
        if let Some(all) = exchange.incoming.delivered() {
            self.code(now, Code::Delivered { exchange: id, all });
        }
        self.end_incoming(now, id);
    }

    /// Ends the peer's message when all of it is delivered.
    pub(super) fn end_incoming(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let reported = exchange.incoming.ended_with_head;
        if let Some(trailers) = exchange.incoming.take_end() {
            if !reported {
                self.core.outputs.push_back(Output::End { exchange: id, trailers });
            }
            self.settle_if_done(now, id);
        }
    }

    /// Of what came, so much was read: the peer gets credit for it.
    pub(super) fn consumed(&mut self, now: Duration, id: ExchangeId, bytes: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.consume(bytes);
        if !exchange.incoming.wants_credit() {
            return;
        }
        let target = self.credit_target(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let credit = exchange.incoming.credit_due(target);
        if let Some((carrier, bytes)) = exchange.carrier().zip(credit) {
            self.send(now, carrier, Part::Credit(id.number, bytes));
        }
    }

    /// An exchange's share of the memory for bodies from the peer, of what the others left of it.
    pub(crate) fn credit_target(&self, id: ExchangeId) -> u64 {
        // Beyond what each has from its beginning; tunnels and event streams seldom want more.
        let sharing = self.shares.passing().max(1) as u64;
        let share = self.core.config.receive_bytes / sharing;
        let others = self.exchanges.values().filter(|exchange| exchange.id != id);
        let beyond = |window: u64| window.saturating_sub(INITIAL_CREDIT_BYTES);
        let taken = others.map(|exchange| beyond(exchange.incoming.window())).sum();
        let left = self.core.config.receive_bytes.saturating_sub(taken);
        share.min(left).clamp(INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES)
    }

    /// Whether all of the peer's message has come, and can be read.
    pub(crate) fn has_all(&self, id: ExchangeId) -> bool {
        let ended = self.exchanges.get(&id).is_some_and(|one| one.incoming.has_ended());
        ended && !self.coding.awaits_identity(id)
    }

    /// Ends an exchange when both its messages are through.
    pub(crate) fn settle_if_done(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (sent, got) = (exchange.outgoing.finished, exchange.incoming.finished);
        let early = match self.core.config.role {
            // An origin that has answered with success may take the rest of the request still.
            Role::Gateway => {
                sent && !exchange.traits.tunnel && exchange.status >= 300 && !self.has_all(id)
            }
            Role::Edge => false,
        };
        if early {
            let reason = "the answer is whole".to_owned();
            let cause = Cause { kind: CauseKind::AnsweredEarly, reason };
            self.fail_peer(now, id, &cause);
            self.core.outputs.push_back(Output::Abort { exchange: id, cause, untouched: false });
        } else if !(sent && got) {
            return;
        }
        self.finish(now, id);
    }

    fn finish(&mut self, now: Duration, id: ExchangeId) {
        let delta = self.coding.delta(id);
        let carried = self.carried(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (status, started) = (exchange.status, exchange.started);
        if !self.core.is_edge() {
            let mut log = std::mem::take(&mut exchange.log);
            if let Some(body) = delta {
                // Should it have to be sent again, then by another carrier, without the base.
                exchange.outgoing.anew(body);
                log = exchange.outgoing.as_log(id.number);
            }
            self.note_answer(id, status, log);
        }
        let elapsed_s = now.saturating_sub(started).as_secs_f64();
        let exchange = id.to_string();
        self.core.event(now, Fact::Finished { exchange, status, elapsed_s, carried });
        self.forget(now, id);
    }
}

/// The peer reads trailers with the part: what it cannot read would cost everybody the carrier.
fn check_trailers(trailers: &bhttp::Fields) -> Result<(), proto::Error> {
    if trailers.is_empty() {
        return Ok(());
    }
    let mut encoded = Vec::new();
    bhttp::encode_fields(trailers, &mut encoded);
    bhttp::decode_fields(&encoded).map(drop)
}
