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

use crate::Relay;
use crate::config::MAX_RESENDS;
use crate::exchange::{Exchange, Stage};
use crate::ids::CarrierId;
use crate::timers::Key;

impl Relay {
    /// A carrier is connected: what may goes ahead of the gateway's HELLO, the oldest first. Until
    /// there is one, nothing does so again.
    pub(crate) fn attach_early(&mut self, now: Duration, id: CarrierId) {
        let Some(carrier) = self.carriers.get(&id) else { return };
        if self.config.without_keys || !carrier.abilities.early {
            return;
        }
        let line = self.dialer.lines.get(carrier.kind.0);
        let is_known = |(peer, _): &&(String, _)| *peer == carrier.peer;
        let known = line.and_then(|line| line.known.as_ref()).filter(is_known);
        let Some((_, gateway)) = known else { return };
        let most = usize::try_from(gateway.max_exchanges.min(MAX_EARLY_EXCHANGES)).unwrap_or(0);
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let abilities = &carrier.abilities;
        let may = |one: &&Exchange| one.may_go_early() && one.may_go_by(abilities);
        let may = waits.filter(may);
        let early: Vec<ExchangeId> = may.take(most).map(|exchange| exchange.id).collect();
        if early.is_empty() {
            return;
        }
        let gateway = self.dialer.line_of(id).and_then(|line| line.known.take());
        if let Some(carrier) = self.carriers.get_mut(&id) {
            carrier.exchanges.extend(early.iter().map(|exchange| exchange.number));
        }
        if let Some((_, gateway)) = gateway {
            self.path_up(now, id, &gateway, true);
        }
        for exchange in early {
            self.set_stage(now, exchange, Stage::Open(id));
        }
    }

    /// Whether the peer has said HELLO on a carrier.
    pub(crate) fn is_greeted(&self, id: CarrierId) -> bool {
        self.carriers.get(&id).is_some_and(|carrier| carrier.machine.peer().is_some())
    }

    /// What is on a carrier whose gateway has not said HELLO, and whether it has left.
    fn early(&self, id: CarrierId) -> Vec<(ExchangeId, bool)> {
        let on_it = self.exchanges.values().filter(|exchange| exchange.carrier() == Some(id));
        on_it.map(|exchange| (exchange.id, exchange.outgoing.is_head_sent())).collect()
    }

    /// The gateway has said HELLO, which is remembered: what went ahead of it is where all others
    /// are. What did not leave yet waits for a place as they do; there may be fewer now.
    pub(crate) fn early_arrived(&mut self, now: Duration, id: CarrierId) {
        for (exchange, has_left) in self.early(id) {
            match has_left {
                true => self.timers.set(Key::Exchange(exchange), None),
                false => self.take_back(now, exchange, id),
            }
        }
        let carrier = self.carriers.get(&id);
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
            if let Some(exchange) = self.exchanges.get_mut(&exchange_id) {
                exchange.repeated = true;
            }
            self.ask_whoever_is_next(now, exchange_id, id);
        }
    }

    /// The gateway says that it has had a request before. One that went early may come there over
    /// its first carrier after the gateway was asked about it: it is asked again.
    pub(crate) fn ask_again(&mut self, now: Duration, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let may = exchange.repeated
            && exchange.traits.safe
            && exchange.is_repeatable()
            && exchange.resends < MAX_RESENDS;
        let Some(carrier) = exchange.carrier().filter(|_| may) else { return false };
        exchange.resends += 1;
        self.ask_whoever_is_next(now, id, carrier);
        true
    }

    fn ask_whoever_is_next(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        self.stop(now, id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.sent_as = None;
        self.set_stage(now, id, Stage::Ambiguous { gateway: None, asked: None });
        self.timers.set(Key::Exchange(id), Some(now + self.config.outcome_timeout));
        self.leave(now, id, carrier);
        // One that had stalled may have recovered.
        self.room_freed = true;
    }

    /// Nothing of it has left: it waits for a carrier as before, for no longer than it would have.
    fn take_back(&mut self, now: Duration, exchange: ExchangeId, carrier: CarrierId) {
        self.set_stage(now, exchange, Stage::Waiting);
        self.leave(now, exchange, carrier);
    }
}

impl Exchange {
    /// It waits for a carrier, was never sent, is whole without a body, and asks for no change. Who
    /// has another way takes that rather than have it done twice.
    fn may_go_early(&self) -> bool {
        let Self { traits, outgoing, .. } = self;
        self.stage == Stage::Waiting
            && self.resends == 0
            && !self.repeated
            && !self.other_way
            && traits.safe
            && !traits.tunnel
            && !traits.expects_continue
            && outgoing.is_bodyless()
    }
}
