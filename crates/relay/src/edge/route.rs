//! Which carrier takes an exchange: of those that are up, have room and are able, the one by which
//! its answer is expected first. Now and then another one takes it, so that what that takes is
//! known; this costs less than a hundredth of the time of all exchanges, by what is expected. On a
//! slow link one that keeps a queue there is in the way of what is urgent on all others: it takes
//! an exchange where it is faster by far, and is not tried.
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
use crate::ids::{CarrierId, CarrierKind};
use crate::transfer::Transfer;

/// Exchanges that go elsewhere before a carrier is tried again, at least.
const MIN_PASSED_OVER: f64 = 64.0;
/// Share of the time of all exchanges that trying other carriers costs at most, as is expected.
const MAX_COST_SHARE: f64 = 0.01;
/// On a slow link a carrier with a queue there counts as taking so many times as long.
const QUEUE_COUNTS: f64 = 1.5;
/// Reasons, as they are told.
const SOONEST: &str = "its answer is expected first";
const PASSES: &str = "the link is slow, and what is urgent passes on it";
const PREFERRED: &str = "the configuration prefers it (carrier)";
const EXPLORES: &str = "to learn what it takes: others were taken for long";

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
            None => self.soonest(now, id, &able),
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

    /// The carrier by which an exchange's answer is expected first, or one that is to be known
    /// better, and why where there were several.
    fn soonest(
        &mut self,
        now: Duration,
        id: ExchangeId,
        able: &[CarrierId],
    ) -> Option<(CarrierId, Option<Route>)> {
        let (&only, others) = able.split_first()?;
        if others.is_empty() {
            return Some((only, None));
        }
        // What one has seen of the link counts for all.
        able.iter().for_each(|carrier| self.transfer.measure(now, *carrier, false));
        let Transfer { core, carriers, coding, exchanges, .. } = &*self.transfer;
        let expected_s = |on: CarrierId| coding.expected_s(id, path_of(on)).unwrap_or(f64::MAX);
        let expected: Vec<(CarrierId, f64)> =
            able.iter().map(|carrier| (*carrier, expected_s(*carrier))).collect();
        let of = |on: CarrierId| carriers.get(&on);
        let is_slow = able.iter().any(|on| of(*on).is_some_and(Carrier::is_slow));
        let queues = |on: CarrierId| {
            is_slow && of(on).is_some_and(|carrier| !carrier.has_no_queue(&core.config))
        };
        let first = least(&expected, |_| false)?.0;
        let (soonest, soonest_s) = least(&expected, queues)?;
        let preferred = core.config.prefers_first.then(|| {
            let first = |carrier: &CarrierId| {
                carriers.get(carrier).is_some_and(|one| one.kind == CarrierKind::FIRST)
            };
            able.iter().copied().find(first)
        });
        let tunnel = exchanges.get(&id).is_some_and(|one| one.traits.tunnel);
        let unknown = expected.iter().find(|(carrier, seconds)| {
            let passed_over = self.dialer.line_with(*carrier).map_or(0, |line| line.passed_over);
            let may_be = *carrier != soonest && !tunnel && !queues(*carrier);
            may_be && is_worth_a_try(passed_over, *seconds / soonest_s)
        });
        let (chosen, reason) = match (preferred.flatten(), unknown) {
            (Some(preferred), _) => (preferred, PREFERRED),
            (None, Some((unknown, _))) => (*unknown, EXPLORES),
            (None, None) if soonest == first => (soonest, SOONEST),
            (None, None) => (soonest, PASSES),
        };
        let name = |id: CarrierId| {
            let kind = carriers.get(&id).and_then(|one| core.config.kinds.get(one.kind.0));
            kind.map_or("", |kind| kind.name).to_owned()
        };
        let candidates = expected.iter().map(|(carrier, expected_s)| RouteCandidate {
            carrier: name(*carrier),
            expected_s: *expected_s,
        });
        let route = Route {
            carrier: name(chosen),
            reason: reason.to_owned(),
            candidates: candidates.collect(),
        };
        for (carrier, _) in &expected {
            if let Some(line) = self.dialer.line_of(*carrier) {
                line.passed_over = match *carrier == chosen {
                    true => 0,
                    false => line.passed_over.saturating_add(1),
                };
            }
        }
        Some((chosen, Some(route)))
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

/// The carrier by which something takes least, and how long; where one `queues` on a slow link,
/// that counts for more.
fn least(
    expected: &[(CarrierId, f64)],
    queues: impl Fn(CarrierId) -> bool,
) -> Option<(CarrierId, f64)> {
    let counted = |(on, seconds): &(CarrierId, f64)| match queues(*on) {
        true => seconds * QUEUE_COUNTS,
        false => *seconds,
    };
    expected.iter().min_by(|a, b| counted(a).total_cmp(&counted(b))).copied()
}

/// Whether a carrier that so many exchanges have not gone by, and by which this one takes so many
/// times as long, is to be known better.
fn is_worth_a_try(passed_over: u32, times_as_long: f64) -> bool {
    let cost = (times_as_long - 1.0).max(0.0);
    times_as_long.is_finite()
        && f64::from(passed_over) >= MIN_PASSED_OVER.max(cost / MAX_COST_SHARE)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is urgent waits on all carriers behind what one has put in front of a slow link.
    #[test]
    fn a_carrier_with_a_queue_on_a_slow_link_has_to_be_faster_by_far() {
        let (stream, burst) = (CarrierId(0), CarrierId(1));
        let of = |stream_s, queues: bool| {
            let expected = [(stream, stream_s), (burst, 1.4)];
            least(&expected, |on| queues && on == stream).map(|(on, _)| on)
        };
        assert_eq!((of(1.0, false), of(1.4, false)), (Some(stream), Some(stream)));
        assert_eq!((of(1.0, true), of(0.9, true)), (Some(burst), Some(stream)));
        assert_eq!(least(&[], |_| true), None);
    }

    #[test]
    fn what_takes_longer_is_tried_the_more_seldom() {
        let due = |times| (0..).find(|passed_over| is_worth_a_try(*passed_over, times)).unwrap();
        assert_eq!((due(1.0), due(1.5), due(2.0), due(9.0)), (64, 64, 100, 800));
        assert!(!is_worth_a_try(u32::MAX, f64::INFINITY) && !is_worth_a_try(u32::MAX, f64::NAN));
    }
}
