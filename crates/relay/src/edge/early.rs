//! Requests that follow the edge's HELLO without waiting for the gateway's.
//!
//! Over a carrier that is new they arrive a round trip sooner. Where the gateway has said HELLO
//! before, by the same key, it is known to speak the same version and how many exchanges it takes.
//! All else may be another's by now, so that such a request depends on nothing that a gateway
//! holds; and since it cannot be told whom it reached if no HELLO comes, repeating it must do no
//! harm. The next gateway is asked about it, whichever that is: one that has it does not take it a
//! second time. It goes so only once.

use std::time::Duration;

use coding::ExchangeId;
use proto::carrier::MAX_EARLY_EXCHANGES;

use super::Edge;
use crate::config::MAX_RESENDS;
use crate::exchanges::{Exchange, Stage};
use crate::ids::CarrierId;

impl Edge<'_> {
    /// A carrier is connected: what may goes ahead of the gateway's HELLO, the oldest first. Until
    /// there is one, nothing does so again.
    pub(crate) fn attach_early(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.transfer.carriers.get(&id) else { return };
        if self.transfer.core.config.without_keys || !carrier.abilities.early {
            return;
        }
        let line = self.dialer.line_at(carrier.kind);
        let is_known = |(peer, _): &&(String, _)| *peer == carrier.peer;
        let known = line.and_then(|line| line.known.as_ref()).filter(is_known);
        let Some((_, gateway)) = known else { return };
        let most = usize::try_from(gateway.max_exchanges.min(MAX_EARLY_EXCHANGES)).unwrap_or(0);
        let waits = self.transfer.exchanges.waiting();
        let abilities = &carrier.abilities;
        let may = |one: &&Exchange| one.may_go_early() && one.may_go_by(abilities);
        let may = waits.filter(may);
        let early: Vec<ExchangeId> = may.take(most).map(|exchange| exchange.id).collect();
        if early.is_empty() {
            return;
        }
        let gateway = self.dialer.line_of(id).and_then(|line| line.known.take());
        if let Some(carrier) = self.transfer.carriers.get_mut(&id) {
            carrier.exchanges.extend(early.iter().map(|exchange| exchange.number));
        }
        if let Some((_, gateway)) = gateway {
            self.transfer.path_up(now, id, &gateway, true);
        }
        for exchange in early {
            self.transfer.set_stage(now, exchange, Stage::Open(id));
        }
    }

    /// What is on a carrier whose gateway has not said HELLO, and whether it has left.
    fn early(&self, id: CarrierId) -> Vec<(ExchangeId, bool)> {
        let on_it =
            self.transfer.exchanges.values().filter(|exchange| exchange.carrier() == Some(id));
        on_it.map(|exchange| (exchange.id, exchange.outgoing.is_head_sent())).collect()
    }

    /// The gateway has said HELLO, which is remembered: what went ahead of it is where all others
    /// are. What did not leave yet waits for a place as they do; there may be fewer now.
    pub(crate) fn early_arrived(&mut self, now: Duration, id: CarrierId) {
        for (exchange, has_left) in self.early(id) {
            match has_left {
                true => self.transfer.set_deadline(exchange, None),
                false => self.take_back(now, exchange, id),
            }
        }
        let carrier = self.transfer.carriers.get(&id);
        let known = carrier.and_then(|one| Some((one.peer.clone(), one.machine.peer()?.clone())));
        self.dialer.line_of(id).into_iter().for_each(|line| line.known.clone_from(&known));
    }

    /// A carrier is given up before its gateway has said HELLO.
    pub(crate) fn early_lost(&mut self, now: Duration, id: CarrierId) {
        for (exchange_id, has_left) in self.early(id) {
            if !has_left {
                self.take_back(now, exchange_id, id);
                continue;
            }
            if let Some(exchange) = self.transfer.exchanges.get_mut(&exchange_id) {
                exchange.attempts.repeated = true;
            }
            self.ask_whoever_is_next(now, exchange_id, id);
        }
    }

    /// The gateway says that it has had a request before. One that went early may come there over
    /// its first carrier after the gateway was asked about it: it is asked again.
    pub(crate) fn ask_again(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return false };
        let may = exchange.attempts.repeated
            && exchange.traits.safe
            && exchange.is_repeatable()
            && exchange.attempts.resends < MAX_RESENDS;
        let Some(carrier) = exchange.carrier().filter(|_| may) else { return false };
        exchange.attempts.resends += 1;
        self.ask_whoever_is_next(now, id, carrier);
        true
    }

    fn ask_whoever_is_next(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        self.transfer.stop(now, id);
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        exchange.attempts.sent_as = None;
        self.transfer.set_stage(now, id, Stage::Ambiguous { gateway: None, asked: None });
        self.transfer.set_deadline(id, Some(now + self.transfer.core.config.outcome_timeout));
        self.transfer.leave(now, id, carrier);
        // One that had stalled may have recovered.
        self.transfer.room_freed = true;
    }

    /// Nothing of it has left: it waits for a carrier as before, for no longer than it would have.
    fn take_back(&mut self, now: Duration, exchange: ExchangeId, carrier: CarrierId) {
        self.transfer.set_stage(now, exchange, Stage::Waiting);
        self.transfer.leave(now, exchange, carrier);
    }
}
