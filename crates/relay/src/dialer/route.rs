//! Which carrier takes an exchange: of those that are up, have room and are able, the one by which
//! it is expected to arrive first.
//!
//! An exchange goes by no carrier on which it was before while something of it may come there; the
//! gateway ends it. Once it was asked about, the gateway takes its request only where that was:
//! before it goes elsewhere, it is asked about there.

use std::time::Duration;

use coding::ExchangeId;
use proto::carrier::Abilities;
use proto::exchange::Part;
use record::decision::{Route, RouteCandidate};

use crate::Relay;
use crate::carrier::{Carrier, path_of};
use crate::exchange::{Asked, Exchange, Stage, is_or_may_be};
use crate::ids::CarrierId;
use crate::timers::Key;

impl Relay {
    /// Puts exchanges that wait for a carrier on one, or the question about them, as many as they
    /// take.
    pub(crate) fn attach_waiting(&mut self, now: Duration) {
        self.room_freed = false;
        let usable: Vec<CarrierId> = self.usable().collect();
        for id in self.waiting.iter().copied().collect::<Vec<_>>() {
            let has_room = |id: &&CarrierId| self.carriers.get(id).is_some_and(Carrier::has_room);
            let open: Vec<CarrierId> = usable.iter().filter(has_room).copied().collect();
            if open.is_empty() {
                return;
            }
            self.attach(now, id, &open);
        }
    }

    /// Puts an exchange on one of these carriers.
    fn attach(&mut self, now: Duration, id: ExchangeId, open: &[CarrierId]) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let takes = |on: &&CarrierId| {
            self.carriers.get(on).is_some_and(|carrier| may_take(carrier, exchange))
        };
        let able: Vec<CarrierId> = open.iter().filter(takes).copied().collect();
        let (stage, asked) = (exchange.stage, exchange.asked.on);
        let is_there = |(on, _): &(CarrierId, _)| stage == Stage::Waiting && able.contains(on);
        let soonest = match asked.filter(is_there) {
            Some((on, _)) => Some((on, None)),
            None => self.soonest(id, &able),
        };
        let Some((carrier, route)) = soonest else { return };
        let Some(state) = self.carriers.get_mut(&carrier) else { return };
        state.exchanges.insert(id.number);
        let (counts, gateway) = (state.counts(), state.peer_instance());
        match stage {
            Stage::Ambiguous { gateway, .. } => self.ask(now, id, carrier, gateway),
            // The same gateway takes it only where it was asked about last.
            _ if counts && asked.is_some_and(|(on, at)| on != carrier && at == gateway) => {
                self.timers.set(Key::Exchange(id), Some(now + self.config.outcome_timeout));
                self.ask(now, id, carrier, gateway);
            }
            _ => {
                self.timers.set(Key::Exchange(id), None);
                self.measure(now, carrier, false);
                self.coding.note_route(id, route);
                self.set_stage(now, id, Stage::Open(carrier));
            }
        }
    }

    /// Asks the gateway of this instance, or whichever it is, what became of an exchange.
    fn ask(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId, gateway: Option<u64>) {
        let Some(state) = self.carriers.get(&carrier) else { return };
        let (counts, here) = (state.counts(), state.peer_instance());
        let moved_from = self.exchanges.get(&id).and_then(|exchange| exchange.moved_from);
        if moved_from == Some(carrier) {
            // It is over there, else nobody would ask there.
            self.moved_for_good(id);
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.opened();
        exchange.asked = Asked { times: exchange.asked.times + 1, on: Some((carrier, here)) };
        let at = if counts { exchange.asked.times } else { 0 };
        self.set_stage(now, id, Stage::Ambiguous { gateway, asked: Some(carrier) });
        self.send(now, carrier, Part::Query(id.number, at));
    }

    /// The carrier by which an exchange is expected to arrive first, and why where there were
    /// several.
    fn soonest(&self, id: ExchangeId, able: &[CarrierId]) -> Option<(CarrierId, Option<Route>)> {
        let (&only, others) = able.split_first()?;
        if others.is_empty() {
            return Some((only, None));
        }
        let expected = able.iter().map(|carrier| (self.expected_s(id, *carrier), *carrier));
        let (_, soonest) = expected.clone().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let name = |id: CarrierId| {
            let kind = self.carriers.get(&id).and_then(|one| self.config.kinds.get(one.kind.0));
            kind.map_or("", |kind| kind.name).to_owned()
        };
        let candidates = expected
            .map(|(expected_s, carrier)| RouteCandidate { carrier: name(carrier), expected_s });
        let reason = "expected to arrive first".to_owned();
        let route = Route { carrier: name(soonest), reason, candidates: candidates.collect() };
        Some((soonest, Some(route)))
    }

    /// How long an exchange's request takes by a carrier, in seconds.
    fn expected_s(&self, id: ExchangeId, carrier: CarrierId) -> f64 {
        self.coding.expected_s(id, path_of(carrier)).unwrap_or(f64::MAX)
    }
}

/// Whether a carrier may take an exchange that waits for one, or the question about it.
fn may_take(carrier: &Carrier, exchange: &Exchange) -> bool {
    if carrier.machine.is_open(exchange.id.number) {
        return false;
    }
    match exchange.stage {
        Stage::Waiting => exchange.may_go_by(&carrier.abilities),
        Stage::Ambiguous { gateway, asked: None } => {
            carrier.peer_instance().is_some_and(|here| is_or_may_be(gateway, here))
        }
        _ => false,
    }
}

impl Exchange {
    /// Whether carriers that can do no more than this may take it.
    pub(crate) fn may_go_by(&self, abilities: &Abilities) -> bool {
        let waits = self.traits.tunnel || self.traits.expects_continue;
        let length = self.outgoing.length();
        let fits =
            abilities.max_message_bytes.is_none_or(|most| length.is_some_and(|len| len <= most));
        fits && (abilities.streams || !waits)
    }
}
