//! Which carrier takes an exchange: of those that are up, have room and are able, the one by which
//! it is expected to arrive first.
//!
//! An exchange goes by no carrier on which it was before while something of it may come there; the
//! gateway ends it. Once it was asked about, the gateway takes its request only where that was:
//! before it goes elsewhere, it is asked about there.

use std::time::Duration;

use coding::ExchangeId;
use proto::exchange::Part;
use record::decision::{Route, RouteCandidate};

use super::Edge;
use crate::carriers::carrier::{Carrier, path_of};
use crate::exchanges::{Asked, Exchange, Stage, is_or_may_be};
use crate::ids::CarrierId;
use crate::transfer::Transfer;

impl Edge<'_> {
    /// Puts exchanges that wait for a carrier on one, or the question about them, as many as they
    /// take.
    pub(crate) fn attach_waiting(&mut self, now: Duration) {
        self.transfer.room_freed = false;
        let usable: Vec<CarrierId> = self.dialer.usable(&self.transfer.carriers).collect();
        let waiting = self.transfer.exchanges.waiting().map(|exchange| exchange.id);
        for id in waiting.collect::<Vec<_>>() {
            let has_room =
                |id: &&CarrierId| self.transfer.carriers.get(id).is_some_and(Carrier::has_room);
            let open: Vec<CarrierId> = usable.iter().filter(has_room).copied().collect();
            if open.is_empty() {
                return;
            }
            self.attach(now, id, &open);
        }
    }

    /// Puts an exchange on one of these carriers.
    fn attach(&mut self, now: Duration, id: ExchangeId, open: &[CarrierId]) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let takes = |on: &&CarrierId| {
            self.transfer.carriers.get(on).is_some_and(|carrier| may_take(carrier, exchange))
        };
        let able: Vec<CarrierId> = open.iter().filter(takes).copied().collect();
        let (stage, asked) = (exchange.stage, exchange.attempts.asked.on);
        let is_there = |(on, _): &(CarrierId, _)| stage == Stage::Waiting && able.contains(on);
        let soonest = match asked.filter(is_there) {
            Some((on, _)) => Some((on, None)),
            None => soonest(self.transfer, id, &able),
        };
        let Some((carrier, route)) = soonest else { return };
        let Some(state) = self.transfer.carriers.get_mut(&carrier) else { return };
        state.exchanges.insert(id.number);
        let (counts, gateway) = (state.counts(), state.peer_instance());
        match stage {
            Stage::Ambiguous { gateway, .. } => self.ask(now, id, carrier, gateway),
            // The same gateway takes it only where it was asked about last.
            _ if counts && asked.is_some_and(|(on, at)| on != carrier && at == gateway) => {
                self.transfer
                    .set_deadline(id, Some(now + self.transfer.core.config.outcome_timeout));
                self.ask(now, id, carrier, gateway);
            }
            _ => {
                self.transfer.set_deadline(id, None);
                self.transfer.measure(now, carrier, false);
                self.transfer.coding.note_route(id, route);
                self.transfer.set_stage(now, id, Stage::Open(carrier));
            }
        }
    }

    /// Asks the gateway of this instance, or whichever it is, what became of an exchange.
    fn ask(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId, gateway: Option<u64>) {
        let Some(state) = self.transfer.carriers.get(&carrier) else { return };
        let (counts, here) = (state.counts(), state.peer_instance());
        let moved_from =
            self.transfer.exchanges.get(&id).and_then(|exchange| exchange.attempts.moved_from);
        if moved_from == Some(carrier) {
            // It is over there, else nobody would ask there.
            self.moved_for_good(id);
        }
        let Some(exchange) = self.transfer.exchanges.get_mut(&id) else { return };
        exchange.incoming.opened();
        exchange.attempts.asked =
            Asked { times: exchange.attempts.asked.times + 1, on: Some((carrier, here)) };
        let at = if counts { exchange.attempts.asked.times } else { 0 };
        self.transfer.set_stage(now, id, Stage::Ambiguous { gateway, asked: Some(carrier) });
        self.transfer.send(now, carrier, Part::Query(id.number, at));
    }
}

/// The carrier by which an exchange is expected to arrive first, and why where there were several.
fn soonest(
    transfer: &Transfer,
    id: ExchangeId,
    able: &[CarrierId],
) -> Option<(CarrierId, Option<Route>)> {
    let (&only, others) = able.split_first()?;
    if others.is_empty() {
        return Some((only, None));
    }
    let Transfer { core, carriers, coding, .. } = transfer;
    let expected_s = |on: CarrierId| coding.expected_s(id, path_of(on)).unwrap_or(f64::MAX);
    let expected = able.iter().map(|carrier| (expected_s(*carrier), *carrier));
    let (_, soonest) = expected.clone().min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let name = |id: CarrierId| {
        let kind = carriers.get(&id).and_then(|one| core.config.kinds.get(one.kind.0));
        kind.map_or("", |kind| kind.name).to_owned()
    };
    let candidates =
        expected.map(|(expected_s, carrier)| RouteCandidate { carrier: name(carrier), expected_s });
    let reason = "expected to arrive first".to_owned();
    let route = Route { carrier: name(soonest), reason, candidates: candidates.collect() };
    Some((soonest, Some(route)))
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
