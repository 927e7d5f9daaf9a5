//! The edge's carriers to its gateway: when one is dialled, which takes new exchanges, and what
//! those hear that wait while the gateway cannot be reached.
//!
//! One carrier takes new exchanges. Where it has stalled, or there is none, another is dialled;
//! when that one says HELLO it takes over, and what can be sent again moves to it: the gateway is
//! asked what became of each request first. The rest stays on the old one until it is over. What
//! goes ahead of its HELLO: [`early`].
//!
//! Who waits, waits for [`crate::Config::connect_timeout`] at most. A gateway that refuses, or
//! where nobody listens, is known to be unreachable from then on: requests fail at once, and only a
//! dial that succeeds changes that. Right after the start, and after a carrier broke by itself, it
//! may just be starting again, so that a little patience is right, and more after it said goodbye,
//! for those who have no other way. One that is silent may be behind a link that is down for a
//! while: requests wait, but no longer in all than `connect_timeout` since it fell silent, or a few
//! round trips, in which a link that is up again brings a carrier.

mod early;

use std::time::Duration;

use coding::ExchangeId;
use proto::carrier::Peer;
use proto::exchange::Part;
use record::event::Fact;

use crate::Relay;
use crate::api::{CarrierId, Cause, CauseKind, DialFailure, Output};
use crate::carrier::Carrier;
use crate::config::{IDLE_DIAL_PAUSE, MAX_CARRIERS_LEFT, MAX_DIAL_PAUSE, MIN_DIAL_PAUSE};
use crate::exchange::{Exchange, Stage, is_or_may_be};
use crate::timers::Key;

/// A gateway that starts again, as service managers do it, is back within this.
const GRACE: Duration = Duration::from_secs(2);
/// One that said goodbye is back within this: a service manager waits for its end, for which its
/// tunnels and event streams get some seconds, before it starts the next.
const GOODBYE_GRACE: Duration = Duration::from_secs(10);
/// A carrier is made within so many round trips of a link that is up: for the packet that went into
/// the outage, three of the carrier, and one that may be lost.
const PROBE_ROUND_TRIPS: u32 = 5;
/// And within this on short paths, where a processor may be late.
const MIN_PROBE: Duration = Duration::from_secs(1);
/// Bounds of how long a dial waits before it tries again beside itself: TCP's own first pause is a
/// second, and it doubles.
const PACE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));
/// The same where the gateway is silent and somebody waits: a link may be up again at any time.
const MIN_HURRY: Duration = Duration::from_millis(250);
/// A path of which nothing is known.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    next_carrier: u64,
    /// The carrier for new exchanges; its gateway has said HELLO.
    current: Option<CarrierId>,
    /// One that is being dialled, or has not said HELLO.
    fresh: Option<CarrierId>,
    /// Carriers that take nothing new, the oldest first.
    left: Vec<CarrierId>,
    dialled_at: Option<Duration>,
    /// Nobody waited when it was.
    in_no_hurry: bool,
    failures: u32,
    /// Until then a gateway that is not there says little; set with the first dial.
    grace_until: Option<Duration>,
    /// Until then one that said goodbye is waited for, by those who have no other way.
    back_until: Option<Duration>,
    down: Option<Down>,
    /// What the last dial came to since a carrier was up.
    last_failure: Option<(DialFailure, String)>,
    round_trip: Option<Duration>,
    /// What the gateway of this name said last, until something is sent because of it.
    pub(crate) known: Option<(String, Peer)>,
}

/// A gateway that is known to be unreachable.
#[derive(Clone, Debug)]
struct Down {
    since: Duration,
    how: DialFailure,
    reason: String,
}

impl Dialer {
    /// What a round trip to the gateway takes, as seen last.
    pub(crate) fn note_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = Some(round_trip);
    }

    /// The gateway takes no new exchanges, and another will.
    pub(crate) fn says_goodbye(&mut self, now: Duration) {
        self.back_until = Some(now + GOODBYE_GRACE);
    }

    fn expected_round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(FIRST_ROUND_TRIP)
    }
}

impl Relay {
    /// Edge: how long an attempt to connect waits before another begins beside it.
    #[must_use]
    pub fn dial_pace(&self) -> Duration {
        let round_trip = self.dialer.expected_round_trip();
        let silent = |down: &Down| down.how == DialFailure::Silent;
        match self.dialer.down.as_ref().is_some_and(silent) {
            true if self.exchanges.is_empty() => PACE.1,
            true => round_trip.mul_f64(0.25).clamp(MIN_HURRY, PACE.1),
            false => round_trip.mul_f64(1.25).clamp(PACE.0, PACE.1),
        }
    }

    /// The carrier that is being dialled.
    #[cfg(test)]
    pub(crate) fn next_dialled(&self) -> CarrierId {
        self.dialer.fresh.unwrap_or(CarrierId(u64::MAX))
    }

    /// Exchanges that wait for a carrier, oldest first.
    pub(crate) fn waiting_exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        waits.filter(|one| one.stage == Stage::Waiting).map(|one| one.id)
    }

    /// The carrier for new exchanges, unless it has stalled.
    pub(crate) fn usable(&self) -> Option<CarrierId> {
        let is_well = |id: &CarrierId| {
            self.carriers.get(id).is_some_and(|carrier| carrier.pulse.stalled.is_none())
        };
        self.dialer.current.filter(is_well)
    }

    /// The gateway's instance, where a carrier is up.
    pub(crate) fn gateway_here(&self) -> Option<u64> {
        self.dialer.current.and_then(|id| self.carriers.get(&id)?.peer_instance())
    }

    /// Puts exchanges that wait for the carrier on it, or the question about them, as many as it
    /// takes.
    pub(crate) fn attach_waiting(&mut self, now: Duration) {
        self.room_freed = false;
        let Some(id) = self.usable() else { return };
        let here = self.carriers.get(&id).and_then(Carrier::peer_instance);
        let waits = |stage| match stage {
            Stage::Waiting => true,
            Stage::Ambiguous { gateway, asked: None } => {
                here.is_some_and(|here| is_or_may_be(gateway, here))
            }
            _ => false,
        };
        let all = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let waiting = all.filter(|one| waits(one.stage)).map(|one| one.id);
        for id_waiting in waiting.collect::<Vec<_>>() {
            let Some(carrier) = self.carriers.get_mut(&id).filter(|c| c.has_room()) else { return };
            let Some(exchange) = self.exchanges.get_mut(&id_waiting) else { continue };
            carrier.exchanges.insert(id_waiting.number);
            if let Stage::Ambiguous { gateway, .. } = exchange.stage {
                exchange.incoming.opened();
                self.set_stage(now, id_waiting, Stage::Ambiguous { gateway, asked: Some(id) });
                self.send(now, id, Part::Query(id_waiting.number));
                continue;
            }
            self.timers.set(Key::Exchange(id_waiting), None);
            self.measure(now, id, false);
            self.set_stage(now, id_waiting, Stage::Open(id));
        }
    }

    /// A request waits for a carrier from here on: for how long, if at all.
    pub(crate) fn wait_for_carrier(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (other_way, most) = (exchange.other_way, self.config.connect_timeout);
        if self.usable().is_some() {
            // It has no room.
            return self.timers.set(Key::Exchange(id), Some(now + most));
        }
        let Some(down) = self.dialer.down.clone() else {
            return self.timers.set(Key::Exchange(id), Some(now + most));
        };
        if down.how != DialFailure::Silent || other_way {
            return self.fail_unreachable(now, id, &down.reason);
        }
        let probe = self.probe_time().min(most);
        self.timers.set(Key::Exchange(id), Some((down.since + most).max(now + probe)));
    }

    /// In which a dial succeeds, if the gateway can be reached.
    fn probe_time(&self) -> Duration {
        (self.dialer.expected_round_trip() * PROBE_ROUND_TRIPS).max(MIN_PROBE)
    }

    fn fail_unreachable(&mut self, now: Duration, id: ExchangeId, reason: &str) {
        let cause = Cause { kind: CauseKind::GatewayUnreachable, reason: reason.to_owned() };
        self.fail_local(now, id, cause);
    }

    /// Somebody waits now: the pause between dials is over, but for the least.
    pub(crate) fn dial_soon(&mut self, now: Duration) {
        if self.usable().is_some() {
            return;
        }
        if let Some(fresh) = self.dialer.fresh.filter(|fresh| !self.carriers.contains_key(fresh)) {
            if !std::mem::take(&mut self.dialer.in_no_hurry) {
                return;
            }
            // Its attempts are far apart: another begins now.
            let reason = "somebody waits for another".to_owned();
            self.outputs.push_back(Output::Close { carrier: fresh, reason });
            self.dialer.fresh = None;
        } else if self.dialer.fresh.is_some() {
            return;
        }
        let refused = |down: &Down| down.how == DialFailure::Refused;
        // What somebody has to mend is not mended sooner by asking.
        let least = match self.dialer.down.as_ref().is_some_and(refused) {
            true => MAX_DIAL_PAUSE,
            false => MIN_DIAL_PAUSE,
        };
        let at = self.dialer.dialled_at.map_or(now, |at| now.max(at + least));
        self.timers.set_by(Key::Dial, at);
    }

    pub(crate) fn dial(&mut self, now: Duration) {
        // Also while shutting down, for those who wait for the outcome of their request.
        let wanted = !self.shutting_down || !self.exchanges.is_empty();
        if self.dialer.fresh.is_some() || self.usable().is_some() || !wanted {
            return;
        }
        let carrier = CarrierId(self.dialer.next_carrier);
        self.dialer.next_carrier += 1;
        self.dialer.fresh = Some(carrier);
        self.dialer.dialled_at = Some(now);
        // Else its attempts are as close as they are where somebody waits.
        let silent = self.dialer.down.as_ref().is_some_and(|down| down.how == DialFailure::Silent);
        self.dialer.in_no_hurry = silent && self.exchanges.is_empty();
        self.dialer.grace_until.get_or_insert(now + GRACE);
        self.outputs.push_back(Output::Dial { carrier });
    }

    /// Whether a carrier that is connected now is the one that was dialled, and still wanted.
    pub(crate) fn is_wanted(&self, carrier: CarrierId) -> bool {
        self.dialer.fresh == Some(carrier)
    }

    /// A dial failed.
    pub(crate) fn dial_failed(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        failure: DialFailure,
        reason: &str,
    ) {
        if self.dialer.fresh != Some(carrier) {
            return;
        }
        self.dialer.fresh = None;
        self.dialer.last_failure = Some((failure, reason.to_owned()));
        self.early_lost(now, carrier);
        let is_before = |until: Option<Duration>| until.is_some_and(|until| now < until);
        match failure {
            DialFailure::Unreachable if is_before(self.dialer.grace_until) => {}
            DialFailure::Unreachable if is_before(self.dialer.back_until) => {
                self.gateway_is_down(now, DialFailure::Silent, reason);
            }
            _ => self.gateway_is_down(now, failure, reason),
        }
        self.pause_dialling(now);
    }

    /// A carrier ended, or takes nothing new: if it was in use, the next dial is due.
    pub(crate) fn dialer_lost(&mut self, now: Duration, carrier: CarrierId, reason: &str) {
        self.dialer.left.retain(|left| *left != carrier);
        if self.dialer.fresh == Some(carrier) {
            return self.dial_failed(now, carrier, DialFailure::Unreachable, reason);
        }
        if self.dialer.current != Some(carrier) {
            return;
        }
        self.dialer.current = None;
        self.dialer.grace_until = Some(now + GRACE.max(2 * self.dialer.expected_round_trip()));
        self.dialer.failures = 0;
        if self.dialer.fresh.is_none() {
            self.pause_dialling(now);
        }
    }

    /// The next dial is due after a pause that grows, as seen from when the last began: one that
    /// took long was pause enough.
    fn pause_dialling(&mut self, now: Duration) {
        let doublings = self.dialer.failures.min(16);
        self.dialer.failures += 1;
        let refused = matches!(self.dialer.down, Some(Down { how: DialFailure::Refused, .. }));
        let most = match self.exchanges.is_empty() || refused {
            true => IDLE_DIAL_PAUSE,
            false => MAX_DIAL_PAUSE,
        };
        let pause = MIN_DIAL_PAUSE.saturating_mul(1 << doublings).min(most);
        // Edges that lost one gateway together come back apart.
        let spread = (self.config.instance >> (doublings % 48)) % 256;
        let jitter = pause.mul_f64(f64::from(u8::try_from(spread).unwrap_or(0)) / 1024.0);
        let began = self.dialer.dialled_at.filter(|_| self.dialer.last_failure.is_some());
        let at = began.unwrap_or(now) + pause + jitter;
        self.timers.set(Key::Dial, Some(at.max(now)));
    }

    /// From now on the gateway is known to be unreachable: who waits for it hears so, unless it is
    /// worth while to wait.
    fn gateway_is_down(&mut self, now: Duration, how: DialFailure, reason: &str) {
        let since = self.dialer.down.take().map_or(now, |down| down.since);
        self.dialer.down = Some(Down { since, how, reason: reason.to_owned() });
        for id in self.waiting_exchanges().collect::<Vec<_>>() {
            let other_way = self.exchanges.get(&id).is_some_and(|exchange| exchange.other_way);
            if how != DialFailure::Silent || other_way {
                self.fail_unreachable(now, id, reason);
            }
        }
        // What may be repeated is, where there is another way, rather than asked about; and nobody
        // waits for word of what may have reached nobody.
        let elsewhere = |one: &&Exchange| {
            let Stage::Ambiguous { gateway, asked: None } = one.stage else { return false };
            let leaves = one.other_way || (gateway.is_none() && how != DialFailure::Silent);
            leaves && one.is_repeatable() && one.outgoing.is_untouched()
        };
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let elsewhere = waits.filter(elsewhere).map(|one| one.id);
        for id in elsewhere.collect::<Vec<_>>() {
            self.set_stage(now, id, Stage::Waiting);
            self.fail_unreachable(now, id, reason);
        }
    }

    /// Nothing has come over a carrier though it should have, since then.
    pub(crate) fn carrier_stalls(&mut self, now: Duration, id: CarrierId, since: Duration) {
        let Some(carrier) = self.carriers.get_mut(&id) else { return };
        carrier.pulse.stalled = Some(since);
        let peer = carrier.peer.clone();
        let silent_s = now.saturating_sub(since).as_secs_f64();
        let reason =
            format!("the gateway {peer} is silent: no answer to a PING for {silent_s:.1} s");
        self.event(now, Fact::CarrierStalled { peer, silent_s });
        if self.dialer.current == Some(id) {
            self.gateway_is_down(now, DialFailure::Silent, &reason);
            self.timers.set(Key::Dial, Some(now));
        }
        let patience = (since + self.config.connect_timeout).max(now + self.probe_time());
        for exchange in self.unanswered(id).map(|exchange| exchange.id).collect::<Vec<_>>() {
            let Some(exchange) = self.exchanges.get(&exchange) else { continue };
            let untouched = exchange.outgoing.is_untouched();
            let (number, is_repeatable) = (exchange.id, exchange.is_repeatable() && untouched);
            if !exchange.outgoing.is_head_sent() {
                self.wait_again(now, number);
            } else if exchange.other_way && is_repeatable {
                self.withdraw(now, number, id);
                self.fail_unreachable(now, number, &reason);
            } else {
                self.timers.set(Key::Exchange(number), Some(patience));
            }
        }
    }

    /// What was sent on a carrier is taken back: it may be carried out all the same.
    fn withdraw(&mut self, now: Duration, id: ExchangeId, carrier: CarrierId) {
        let reason = "it went another way".to_owned();
        self.fail_peer(now, id, &Cause { kind: CauseKind::ClientGone, reason });
        self.leave(now, id, carrier);
        self.set_stage(now, id, Stage::Waiting);
    }

    /// Something came over a carrier that had stalled.
    pub(crate) fn carrier_recovers(&mut self, now: Duration, id: CarrierId) {
        for exchange in self.unanswered(id).map(|exchange| exchange.id).collect::<Vec<_>>() {
            self.timers.set(Key::Exchange(exchange), None);
        }
        if self.dialer.current != Some(id) {
            return;
        }
        self.dialer.down = None;
        // One that has said HELLO already has taken over at the gateway.
        if let Some(fresh) = self.dialer.fresh.filter(|fresh| !self.carriers.contains_key(fresh)) {
            let reason = "the one before goes on".to_owned();
            self.outputs.push_back(Output::Close { carrier: fresh, reason });
            self.dialer.fresh = None;
        }
        self.attach_waiting(now);
    }

    /// The gateway said HELLO on a carrier, which takes over from the one before.
    pub(crate) fn edge_connected(&mut self, now: Duration, id: CarrierId, gateway: u64) {
        let before = self.dialer.current.replace(id);
        self.dialer.fresh = None;
        self.early_arrived(now, id);
        (self.dialer.failures, self.dialer.down, self.dialer.last_failure) = (0, None, None);
        (self.dialer.dialled_at, self.dialer.back_until) = (None, None);
        if let Some(before) = before {
            self.take_over(now, before, gateway);
        }
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let of_others = waits.filter_map(|exchange| match exchange.stage {
            Stage::Ambiguous { gateway: before, asked: None } if !is_or_may_be(before, gateway) => {
                Some(exchange.id)
            }
            _ => None,
        });
        for id in of_others.collect::<Vec<_>>() {
            self.gateway_restarted(now, id);
        }
        self.attach_waiting(now);
    }

    /// What is on a carrier moves, where it can be sent again; the rest stays on it to its end.
    fn take_over(&mut self, now: Duration, before: CarrierId, gateway: u64) {
        let same = self.carriers.get(&before).and_then(Carrier::peer_instance) == Some(gateway);
        let moves = self.unanswered(before).filter(|exchange| match same {
            true => exchange.outgoing.can_go_again(),
            false => exchange.is_repeatable(),
        });
        for id in moves.map(|exchange| exchange.id).collect::<Vec<_>>() {
            if !same {
                // The gateway before may still be there, and is to stop. What cannot be repeated
                // goes on with it, until its carrier breaks too.
                self.withdraw(now, id, before);
                self.gateway_restarted(now, id);
                continue;
            }
            let Some(exchange) = self.exchanges.get_mut(&id) else { continue };
            exchange.moved_from = Some(before);
            let gateway = Some(gateway);
            self.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            let patience = now + self.config.outcome_timeout;
            self.timers.set(Key::Exchange(id), Some(patience));
            self.leave(now, id, before);
        }
        let asked = self
            .exchanges
            .values()
            .filter(|exchange| {
                exchange.on_carrier() == Some(before) && exchange.carrier().is_none()
            })
            // Another gateway knows nothing of what this one was asked.
            .filter(|_| same);
        for id in asked.map(|exchange| exchange.id).collect::<Vec<_>>() {
            if let Some(Stage::Ambiguous { gateway, .. }) = self.stage_of(id) {
                self.set_stage(now, id, Stage::Ambiguous { gateway, asked: None });
            }
            self.leave(now, id, before);
        }
        if let Some(carrier) = self.carriers.get_mut(&before) {
            carrier.going_away = true;
            self.dirty.insert(before);
            self.dialer.left.push(before);
        }
        if self.dialer.left.len() > MAX_CARRIERS_LEFT {
            let oldest = self.dialer.left.remove(0);
            self.close_carrier(now, oldest, "others have taken its place");
        }
    }

    /// Where the exchange was before it was asked about: it does not go on there.
    pub(crate) fn moved_for_good(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.held_back.clear();
        if let Some(before) = exchange.moved_from.take() {
            exchange.sent_as = None;
            self.dirty.insert(before);
        }
    }

    /// The gateway still gets the request over the carrier before: it goes on there.
    pub(crate) fn moves_back(&mut self, now: Duration, carrier: CarrierId, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return false };
        let Some(before) = exchange.moved_from.take() else { return false };
        let held_back = std::mem::take(&mut exchange.held_back);
        let Some(state) = self.carriers.get_mut(&before) else { return false };
        state.exchanges.insert(id.number);
        let stalled = state.pulse.stalled.is_some();
        let patience = stalled.then_some(now + self.config.connect_timeout);
        self.timers.set(Key::Exchange(id), patience);
        self.leave(now, id, carrier);
        self.set_stage(now, id, Stage::Open(before));
        held_back.into_iter().for_each(|part| self.received(now, before, part));
        true
    }

    /// What comes of an answer over the carrier before, while it is being asked about, may be all
    /// that does: it waits for the gateway's word.
    pub(crate) fn hold_back(&mut self, carrier: CarrierId, part: Part) -> Option<Part> {
        let number = match &part {
            Part::Head(head) => head.exchange,
            Part::Data(data) => data.exchange,
            Part::Abort(abort) => abort.exchange,
            Part::Interim(number, _) | Part::Trailers(number, _) => *number,
            _ => return Some(part),
        };
        let id = ExchangeId { instance: self.config.instance, number };
        match self.exchanges.get_mut(&id).filter(|one| one.moved_from == Some(carrier)) {
            Some(exchange) => {
                exchange.held_back.push(part);
                None
            }
            None => Some(part),
        }
    }

    /// An exchange waited for as long as it may.
    pub(crate) fn edge_patience_ended(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let withdrawn = Cause { kind: CauseKind::ClientGone, reason: "out of patience".to_owned() };
        let is_early = matches!(exchange.stage, Stage::Open(on) if !self.is_greeted(on));
        let is_waiting = is_early || exchange.stage == Stage::Waiting;
        let (kind, reason) = match exchange.stage {
            _ if is_waiting => self.why_not_reached(now),
            Stage::Ambiguous { .. } => {
                let waited = self.config.outcome_timeout.as_secs_f64();
                let reason = format!(
                    "the carrier broke and the gateway could not be asked within {waited} s \
                     (outcome_timeout); the request may have been carried out"
                );
                (CauseKind::OutcomeUnknown, reason)
            }
            Stage::Open(carrier) if self.is_stalled(carrier) => {
                let waited = self.config.connect_timeout.as_secs_f64();
                let reason = format!(
                    "the gateway was silent for {waited} s (connect_timeout) after it was sent the \
                     request, which may have been carried out"
                );
                (CauseKind::OutcomeUnknown, reason)
            }
            Stage::Waiting | Stage::Open(_) | Stage::Detached => return,
        };
        self.fail_peer(now, id, &withdrawn);
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.repeated |= is_early && exchange.outgoing.is_head_sent();
        }
        self.fail_local(now, id, Cause { kind, reason });
        if is_waiting && kind == CauseKind::GatewayUnreachable && self.dialer.down.is_none() {
            let (how, why) = self.last_failure();
            self.gateway_is_down(now, how, &why);
        }
    }

    /// What the last dial came to.
    fn last_failure(&self) -> (DialFailure, String) {
        let none = || (DialFailure::Silent, "no connection came about yet".to_owned());
        let down = self.dialer.down.as_ref().map(|down| (down.how, down.reason.clone()));
        self.dialer.last_failure.clone().or(down).unwrap_or_else(none)
    }

    fn is_stalled(&self, carrier: CarrierId) -> bool {
        self.carriers.get(&carrier).is_some_and(|carrier| carrier.pulse.stalled.is_some())
    }

    /// Why a request found no carrier in all the time that it may wait.
    fn why_not_reached(&mut self, now: Duration) -> (CauseKind, String) {
        let waited = self.config.connect_timeout.as_secs_f64();
        if self.usable().is_some() {
            let reason = format!(
                "the gateway had no room for another exchange for {waited} s (connect_timeout); \
                 try later"
            );
            return (CauseKind::Limit, reason);
        }
        let (_, why) = self.last_failure();
        self.dialer.grace_until = Some(now);
        let silent = self
            .dialer
            .down
            .as_ref()
            .map_or(0.0, |down| now.saturating_sub(down.since).as_secs_f64());
        let within = match silent > waited {
            true => format!("the gateway could not be reached for {silent:.1} s"),
            false => {
                format!("the gateway could not be reached within {waited} s (connect_timeout)")
            }
        };
        (CauseKind::GatewayUnreachable, format!("{within}: {why}"))
    }

    /// Whether a request would get through now, as far as is known; why not.
    ///
    /// # Errors
    /// One line for a person.
    pub fn standing(&self) -> Result<(), String> {
        if self.shutting_down {
            return Err("it is shutting down".to_owned());
        }
        if self.config.role == proto::exchange::Role::Gateway || self.usable().is_some() {
            return Ok(());
        }
        Err(match (&self.dialer.down, &self.dialer.last_failure) {
            (Some(down), _) => down.reason.clone(),
            (None, Some((_, reason))) => reason.clone(),
            (None, None) => "the gateway has not answered yet".to_owned(),
        })
    }
}

impl Exchange {
    /// Repeating the request does no harm, and all of it is still here.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.traits.idempotent && self.outgoing.can_go_again() && !self.incoming.headed
    }
}
