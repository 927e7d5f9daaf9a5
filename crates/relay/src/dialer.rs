//! The edge's carriers to its gateway: when one is dialled, which takes new exchanges, and what
//! those hear that wait while the gateway cannot be reached.
//!
//! Of each kind of carrier one takes new exchanges; which of those takes an exchange: [`route`].
//! Where one has stalled, or there is none, another of its kind is dialled; when that one says
//! HELLO it takes over, and what can be sent again moves to it ([`moves`]): the gateway is asked
//! what became of each request first. The rest stays on the old one until it is over. What goes
//! ahead of its HELLO: [`early`].
//!
//! Who waits, waits for [`crate::Config::connect_timeout`] at most. A gateway that refuses, or
//! where nobody listens, is known to be unreachable from then on: requests fail at once, and only a
//! dial that succeeds changes that. Right after the start, and after a carrier broke by itself, it
//! may just be starting again, so that a little patience is right, and more after it has drained,
//! for those who have no other way. One that is silent may be behind a link that is down for a
//! while: requests wait, but no longer in all than `connect_timeout` since it fell silent, or a few
//! round trips, in which a link that is up again brings a carrier.

mod early;
mod moves;
mod route;
mod waits;

use std::time::Duration;

use coding::ExchangeId;
use proto::carrier::Peer;

use crate::Relay;
use crate::api::{DialFailure, Output};
use crate::config::{IDLE_DIAL_PAUSE, MAX_DIAL_PAUSE, MIN_DIAL_PAUSE};
use crate::exchange::{Exchange, Stage, is_or_may_be};
use crate::ids::{CarrierId, CarrierKind};
use crate::timers::Key;

/// A gateway that starts again, as service managers do it, is back within this.
const GRACE: Duration = Duration::from_secs(2);
/// One that has drained is back within this: a service manager waits for its end, for which its
/// tunnels and event streams get some seconds, before it starts the next.
const DRAIN_GRACE: Duration = Duration::from_secs(10);
/// Bounds of how long a dial waits before it tries again beside itself: TCP's own first pause is a
/// second, and it doubles.
const PACE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(3));
/// The same where the gateway is silent and somebody waits: a link may be up again at any time.
const MIN_HURRY: Duration = Duration::from_millis(250);
/// A path of which nothing is known.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Dialer {
    next_carrier: u64,
    /// By kind.
    lines: Vec<Line>,
}

/// The carriers of one kind.
#[derive(Debug, Default)]
pub(crate) struct Line {
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
    /// Until then a gateway that has drained is waited for, by those who have no other way.
    back_until: Option<Duration>,
    down: Option<Down>,
    /// What the last dial came to since a carrier was up.
    last_failure: Option<(DialFailure, String)>,
    round_trip: Option<Duration>,
    /// What the gateway of this name said last, until something is sent because of it.
    known: Option<(String, Peer)>,
}

/// A gateway that is known to be unreachable by carriers of a kind.
#[derive(Clone, Debug)]
struct Down {
    since: Duration,
    how: DialFailure,
    reason: String,
}

impl Line {
    fn expected_round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(FIRST_ROUND_TRIP)
    }

    fn has(&self, carrier: CarrierId) -> bool {
        self.current == Some(carrier) || self.fresh == Some(carrier) || self.left.contains(&carrier)
    }

    /// In which way the gateway is known to be unreachable.
    fn is_down(&self, how: DialFailure) -> bool {
        self.down.as_ref().is_some_and(|down| down.how == how)
    }

    /// What the last dial came to.
    fn last_failure(&self) -> Option<(DialFailure, String)> {
        let down = self.down.as_ref().map(|down| (down.how, down.reason.clone()));
        self.last_failure.clone().or(down)
    }
}

impl Dialer {
    /// Nothing is dialled yet, of so many kinds.
    pub(crate) fn new(kinds: usize) -> Self {
        let lines = std::iter::repeat_with(Line::default).take(kinds).collect();
        Self { next_carrier: 0, lines }
    }

    fn line(&mut self, kind: CarrierKind) -> Option<&mut Line> {
        self.lines.get_mut(kind.0)
    }

    /// Of what kind a carrier is that was dialled and has not ended.
    pub(crate) fn kind_of(&self, carrier: CarrierId) -> Option<CarrierKind> {
        self.lines.iter().position(|line| line.has(carrier)).map(CarrierKind)
    }

    fn line_of(&mut self, carrier: CarrierId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.has(carrier))
    }

    /// What a round trip to the gateway takes, as seen last over a carrier.
    pub(crate) fn note_round_trip(&mut self, carrier: CarrierId, round_trip: Duration) {
        self.line_of(carrier).into_iter().for_each(|line| line.round_trip = Some(round_trip));
    }

    /// The gateway takes no new exchanges on a carrier, and another will.
    pub(crate) fn gateway_drains(&mut self, now: Duration, carrier: CarrierId) {
        let until = Some(now + DRAIN_GRACE);
        self.line_of(carrier).into_iter().for_each(|line| line.back_until = until);
    }
}

impl Relay {
    /// Edge: how long an attempt to connect by a carrier of a kind waits before another begins
    /// beside it.
    #[must_use]
    pub fn dial_pace(&self, kind: CarrierKind) -> Duration {
        let Some(line) = self.dialer.lines.get(kind.0) else { return PACE.1 };
        let round_trip = line.expected_round_trip();
        match line.is_down(DialFailure::Silent) {
            true if self.exchanges.is_empty() => PACE.1,
            true => round_trip.mul_f64(0.25).clamp(MIN_HURRY, PACE.1),
            false => round_trip.mul_f64(1.25).clamp(PACE.0, PACE.1),
        }
    }

    /// The carrier of the first kind that is being dialled.
    #[cfg(test)]
    pub(crate) fn next_dialled(&self) -> CarrierId {
        self.dialer.lines[0].fresh.unwrap_or(CarrierId(u64::MAX))
    }

    /// Exchanges that wait for a carrier, oldest first.
    pub(crate) fn waiting_exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        waits.filter(|one| one.stage == Stage::Waiting).map(|one| one.id)
    }

    /// The carriers for new exchanges, one of a kind, without those that have stalled.
    pub(crate) fn usable(&self) -> impl Iterator<Item = CarrierId> {
        let current = self.dialer.lines.iter().filter_map(|line| line.current);
        current.filter(|id| {
            self.carriers.get(id).is_some_and(|carrier| carrier.pulse.stalled.is_none())
        })
    }

    fn usable_of(&self, kind: CarrierKind) -> Option<CarrierId> {
        let current = self.dialer.lines.get(kind.0)?.current?;
        self.usable().find(|id| *id == current)
    }

    /// Edge: the instances of gateways that carriers lead to.
    fn gateways(&self) -> impl Iterator<Item = u64> {
        let current = self.dialer.lines.iter().filter_map(|line| line.current);
        current.filter_map(|id| self.carriers.get(&id)?.peer_instance())
    }

    /// Edge: whether a carrier leads to the gateway that a request was sent to, as far as is known;
    /// `None` where no carrier is up.
    pub(crate) fn is_here(&self, gateway: Option<u64>) -> Option<bool> {
        self.gateways().next()?;
        Some(self.gateways().any(|here| is_or_may_be(gateway, here)))
    }

    /// Somebody waits now: the pauses between dials are over, but for the least.
    pub(crate) fn dial_soon(&mut self, now: Duration) {
        for kind in (0..self.dialer.lines.len()).map(CarrierKind) {
            self.dial_kind_soon(now, kind);
        }
    }

    fn dial_kind_soon(&mut self, now: Duration, kind: CarrierKind) {
        if self.usable_of(kind).is_some() {
            return;
        }
        let Some(line) = self.dialer.line(kind) else { return };
        if let Some(fresh) = line.fresh.filter(|fresh| !self.carriers.contains_key(fresh)) {
            if !std::mem::take(&mut line.in_no_hurry) {
                return;
            }
            // Its attempts are far apart: another begins now.
            let reason = "somebody waits for another".to_owned();
            self.outputs.push_back(Output::Close { carrier: fresh, reason });
            line.fresh = None;
        } else if line.fresh.is_some() {
            return;
        }
        // What somebody has to mend is not mended sooner by asking.
        let least = match line.is_down(DialFailure::Refused) {
            true => MAX_DIAL_PAUSE,
            false => MIN_DIAL_PAUSE,
        };
        let at = line.dialled_at.map_or(now, |at| now.max(at + least));
        self.timers.set_by(Key::Dial(kind), at);
    }

    pub(crate) fn dial(&mut self, now: Duration, kind: CarrierKind) {
        // Also while shutting down, for those who wait for the outcome of their request.
        let wanted = !self.shutting_down || !self.exchanges.is_empty();
        let usable = self.usable_of(kind).is_some();
        let carrier = CarrierId(self.dialer.next_carrier);
        let Some(line) = self.dialer.line(kind) else { return };
        if line.fresh.is_some() || usable || !wanted {
            return;
        }
        line.fresh = Some(carrier);
        line.dialled_at = Some(now);
        // Else its attempts are as close as they are where somebody waits.
        line.in_no_hurry = line.is_down(DialFailure::Silent) && self.exchanges.is_empty();
        line.grace_until.get_or_insert(now + GRACE);
        self.dialer.next_carrier += 1;
        self.outputs.push_back(Output::Dial { carrier, kind });
    }

    /// Of what kind a carrier is that is connected now, if it is the one that was dialled and is
    /// still wanted.
    pub(crate) fn wanted(&self, carrier: CarrierId) -> Option<CarrierKind> {
        let is_fresh = |line: &Line| line.fresh == Some(carrier);
        self.dialer.lines.iter().position(is_fresh).map(CarrierKind)
    }

    /// A dial failed.
    pub(crate) fn dial_failed(
        &mut self,
        now: Duration,
        carrier: CarrierId,
        failure: DialFailure,
        reason: &str,
    ) {
        let Some(kind) = self.wanted(carrier) else { return };
        let Some(line) = self.dialer.line(kind) else { return };
        line.fresh = None;
        line.last_failure = Some((failure, reason.to_owned()));
        let is_before = |until: Option<Duration>| until.is_some_and(|until| now < until);
        let (in_grace, is_back) = (is_before(line.grace_until), is_before(line.back_until));
        self.early_lost(now, carrier);
        match failure {
            DialFailure::Unreachable if in_grace => {}
            DialFailure::Unreachable if is_back => {
                self.gateway_is_down(now, kind, DialFailure::Silent, reason);
            }
            _ => self.gateway_is_down(now, kind, failure, reason),
        }
        self.pause_dialling(now, kind);
    }

    /// A carrier ended, or takes nothing new: if it was in use, the next dial is due.
    pub(crate) fn dialer_lost(&mut self, now: Duration, carrier: CarrierId, reason: &str) {
        let Some(kind) = self.dialer.kind_of(carrier) else { return };
        let Some(line) = self.dialer.line(kind) else { return };
        line.left.retain(|left| *left != carrier);
        if line.fresh == Some(carrier) {
            return self.dial_failed(now, carrier, DialFailure::Unreachable, reason);
        }
        if line.current != Some(carrier) {
            return;
        }
        line.current = None;
        line.grace_until = Some(now + GRACE.max(2 * line.expected_round_trip()));
        line.failures = 0;
        if line.fresh.is_none() {
            self.pause_dialling(now, kind);
        }
    }

    /// The next dial is due after a pause that grows, as seen from when the last began: one that
    /// took long was pause enough.
    fn pause_dialling(&mut self, now: Duration, kind: CarrierKind) {
        let nobody_waits = self.exchanges.is_empty();
        let Some(line) = self.dialer.line(kind) else { return };
        let doublings = line.failures.min(16);
        line.failures += 1;
        let most = match nobody_waits || line.is_down(DialFailure::Refused) {
            true => IDLE_DIAL_PAUSE,
            false => MAX_DIAL_PAUSE,
        };
        let pause = MIN_DIAL_PAUSE.saturating_mul(1 << doublings).min(most);
        // Edges that lost one gateway together come back apart.
        let spread = (self.config.instance >> (doublings % 48)) % 256;
        let jitter = pause.mul_f64(f64::from(u8::try_from(spread).unwrap_or(0)) / 1024.0);
        let began = line.dialled_at.filter(|_| line.last_failure.is_some());
        let at = began.unwrap_or(now) + pause + jitter;
        self.timers.set(Key::Dial(kind), Some(at.max(now)));
    }

    /// The gateway said HELLO on a carrier, which takes over from the one before of its kind.
    pub(crate) fn edge_connected(&mut self, now: Duration, id: CarrierId, gateway: u64) {
        let Some(line) = self.dialer.line_of(id) else { return };
        let before = line.current.replace(id);
        line.fresh = None;
        (line.failures, line.down, line.last_failure) = (0, None, None);
        (line.dialled_at, line.back_until) = (None, None);
        self.early_arrived(now, id);
        if let Some(before) = before {
            self.take_over(now, before, gateway);
        }
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let of_others = waits.filter_map(|exchange| match exchange.stage {
            Stage::Ambiguous { gateway, asked: None } if self.is_here(gateway) == Some(false) => {
                Some(exchange.id)
            }
            _ => None,
        });
        for id in of_others.collect::<Vec<_>>() {
            self.gateway_restarted(now, id);
        }
        self.attach_waiting(now);
    }
}

impl Exchange {
    /// Repeating the request does no harm, and all of it is still here.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.traits.idempotent && self.outgoing.can_go_again() && !self.incoming.headed
    }
}
