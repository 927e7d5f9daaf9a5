//! The edge's carriers to its gateway: when one is dialled, which takes new exchanges, and whether
//! it is worth while to wait for one.
//!
//! Of each kind of carrier one takes new exchanges. Where it has stalled, or there is none, another
//! of its kind is dialled; when that one says HELLO it takes over. What that means for exchanges:
//! [`crate::edge`].
//!
//! Who waits, waits for [`crate::Config::connect_timeout`] at most. A gateway that refuses, or
//! where nobody listens, is known to be unreachable from then on: requests fail at once, and only a
//! dial that succeeds changes that. Right after the start, and after a carrier broke by itself, it
//! may just be starting again, so that a little patience is right, and more after it has drained,
//! for those who have no other way. One that is silent may be behind a link that is down for a
//! while: requests wait, but no longer in all than `connect_timeout` since it fell silent, or a few
//! round trips, in which a link that is up again brings a carrier.

use std::time::Duration;

use proto::carrier::Peer;

use crate::api::{DialFailure, Output};
use crate::carriers::Carriers;
use crate::config::{IDLE_DIAL_PAUSE, MAX_DIAL_PAUSE, MIN_DIAL_PAUSE};
use crate::core::Core;
use crate::exchanges::{Exchange, is_or_may_be};
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
/// A carrier is made within so many round trips of a link that is up: for the packet that went into
/// the outage, three of the carrier, and one that may be lost.
const PROBE_ROUND_TRIPS: u32 = 5;
/// And within this on short paths, where a processor may be late.
const MIN_PROBE: Duration = Duration::from_secs(1);

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
    pub(crate) current: Option<CarrierId>,
    /// One that is being dialled, or has not said HELLO.
    pub(crate) fresh: Option<CarrierId>,
    /// Exchanges that could have gone by it and went by carriers of other kinds, since one did.
    pub(crate) passed_over: u32,
    /// Carriers that take nothing new, the oldest first.
    pub(crate) left: Vec<CarrierId>,
    pub(crate) dialled_at: Option<Duration>,
    /// Nobody waited when it was.
    pub(crate) in_no_hurry: bool,
    pub(crate) failures: u32,
    /// Until then a gateway that is not there says little; set with the first dial.
    pub(crate) grace_until: Option<Duration>,
    /// Until then a gateway that has drained is waited for, by those who have no other way.
    pub(crate) back_until: Option<Duration>,
    pub(crate) down: Option<Down>,
    /// What the last dial came to since a carrier was up.
    pub(crate) last_failure: Option<(DialFailure, String)>,
    pub(crate) round_trip: Option<Duration>,
    /// A gateway has said HELLO on one.
    was_up: bool,
    /// What the gateway of this name said last, until something is sent because of it.
    pub(crate) known: Option<(String, Peer)>,
}

/// A gateway that is known to be unreachable by carriers of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Down {
    pub(crate) since: Duration,
    pub(crate) how: DialFailure,
    pub(crate) reason: String,
}

impl Line {
    /// What a round trip to the gateway takes, about.
    pub(crate) fn expected_round_trip(&self) -> Duration {
        self.round_trip.unwrap_or(FIRST_ROUND_TRIP)
    }

    fn has(&self, carrier: CarrierId) -> bool {
        self.current == Some(carrier) || self.fresh == Some(carrier) || self.left.contains(&carrier)
    }

    /// Whether the gateway is known to be unreachable in this way.
    pub(crate) fn is_down(&self, how: DialFailure) -> bool {
        self.down.as_ref().is_some_and(|down| down.how == how)
    }

    /// The gateway said HELLO on a carrier, which takes over from the one before, if there is one:
    /// which that is.
    pub(crate) fn connected(&mut self, carrier: CarrierId) -> Option<CarrierId> {
        (self.fresh, self.was_up) = (None, true);
        (self.failures, self.down, self.last_failure) = (0, None, None);
        (self.dialled_at, self.back_until) = (None, None);
        self.current.replace(carrier)
    }

    /// What the last dial came to.
    pub(crate) fn last_failure(&self) -> Option<(DialFailure, String)> {
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

    pub(crate) fn line(&mut self, kind: CarrierKind) -> Option<&mut Line> {
        self.lines.get_mut(kind.0)
    }

    /// Of what kind a carrier is that was dialled and has not ended.
    pub(crate) fn kind_of(&self, carrier: CarrierId) -> Option<CarrierKind> {
        self.lines.iter().position(|line| line.has(carrier)).map(CarrierKind)
    }

    pub(crate) fn line_of(&mut self, carrier: CarrierId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.has(carrier))
    }

    /// The line of a carrier.
    pub(crate) fn line_with(&self, carrier: CarrierId) -> Option<&Line> {
        self.lines.iter().find(|line| line.has(carrier))
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

    /// The lines, by kind.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter()
    }

    /// The line of a kind.
    pub(crate) fn line_at(&self, kind: CarrierKind) -> Option<&Line> {
        self.lines.get(kind.0)
    }

    /// Every kind.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = CarrierKind> + Clone + use<> {
        (0..self.lines.len()).map(CarrierKind)
    }

    /// How long an attempt to connect by a carrier of a kind waits before another begins beside it;
    /// `idle`: nobody waits.
    pub(crate) fn pace(&self, kind: CarrierKind, idle: bool) -> Duration {
        let Some(line) = self.line_at(kind) else { return PACE.1 };
        let round_trip = line.expected_round_trip();
        match line.is_down(DialFailure::Silent) {
            true if idle => PACE.1,
            true => round_trip.mul_f64(0.25).clamp(MIN_HURRY, PACE.1),
            false => round_trip.mul_f64(1.25).clamp(PACE.0, PACE.1),
        }
    }

    /// The carrier of the first kind that is being dialled.
    #[cfg(test)]
    pub(crate) fn next_dialled(&self) -> CarrierId {
        self.lines[0].fresh.unwrap_or(CarrierId(u64::MAX))
    }

    /// The carriers for new exchanges, one of a kind, without those that have stalled.
    pub(crate) fn usable(&self, carriers: &Carriers) -> impl Iterator<Item = CarrierId> {
        let current = self.lines.iter().filter_map(|line| line.current);
        current.filter(|id| carriers.contains_key(id) && !carriers.is_stalled(*id))
    }

    pub(crate) fn usable_of(&self, carriers: &Carriers, kind: CarrierKind) -> Option<CarrierId> {
        let current = self.line_at(kind)?.current?;
        self.usable(carriers).find(|id| *id == current)
    }

    /// The instances of gateways that carriers lead to.
    fn gateways(&self, carriers: &Carriers) -> impl Iterator<Item = u64> {
        let current = self.lines.iter().filter_map(|line| line.current);
        current.filter_map(|id| carriers.peer_instance(id))
    }

    /// Whether a carrier leads to the gateway that a request was sent to, as far as is known;
    /// `None` where no carrier is up.
    pub(crate) fn is_here(&self, carriers: &Carriers, gateway: Option<u64>) -> Option<bool> {
        self.gateways(carriers).next()?;
        Some(self.gateways(carriers).any(|here| is_or_may_be(gateway, here)))
    }

    /// Somebody waits now: the pauses between dials are over, but for the least.
    pub(crate) fn dial_soon(&mut self, core: &mut Core, carriers: &Carriers, now: Duration) {
        for kind in self.kinds() {
            self.dial_kind_soon(core, carriers, now, kind);
        }
    }

    fn dial_kind_soon(
        &mut self,
        core: &mut Core,
        carriers: &Carriers,
        now: Duration,
        kind: CarrierKind,
    ) {
        if self.usable_of(carriers, kind).is_some() {
            return;
        }
        let Some(line) = self.line(kind) else { return };
        if let Some(fresh) = line.fresh.filter(|fresh| !carriers.contains_key(fresh)) {
            if !std::mem::take(&mut line.in_no_hurry) {
                return;
            }
            // Its attempts are far apart: another begins now.
            let reason = "somebody waits for another".to_owned();
            core.outputs.push_back(Output::Close { carrier: fresh, reason });
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
        core.timers.set_by(Key::Dial(kind), at);
    }

    /// A carrier of a kind is dialled, where there is none; `idle`: nobody waits.
    pub(crate) fn dial(
        &mut self,
        core: &mut Core,
        carriers: &Carriers,
        now: Duration,
        kind: CarrierKind,
        idle: bool,
    ) {
        // Also while shutting down, for those who wait for the outcome of their request.
        let wanted = !core.shutting_down || !idle;
        let usable = self.usable_of(carriers, kind).is_some();
        let carrier = CarrierId(self.next_carrier);
        let Some(line) = self.line(kind) else { return };
        if line.fresh.is_some() || usable || !wanted {
            return;
        }
        line.fresh = Some(carrier);
        line.dialled_at = Some(now);
        // Else its attempts are as close as they are where somebody waits.
        line.in_no_hurry = line.is_down(DialFailure::Silent) && idle;
        line.grace_until.get_or_insert(now + GRACE);
        self.next_carrier += 1;
        core.outputs.push_back(Output::Dial { carrier, kind });
    }

    /// Of what kind a carrier is that is connected now, if it is the one that was dialled and is
    /// still wanted.
    pub(crate) fn wanted(&self, carrier: CarrierId) -> Option<CarrierKind> {
        let is_fresh = |line: &Line| line.fresh == Some(carrier);
        self.lines.iter().position(is_fresh).map(CarrierKind)
    }

    /// A dial failed: in which way the gateway is known to be unreachable from now on, if it is.
    pub(crate) fn fail(
        &mut self,
        now: Duration,
        kind: CarrierKind,
        failure: DialFailure,
        reason: &str,
    ) -> Option<DialFailure> {
        let line = self.line(kind)?;
        line.fresh = None;
        line.last_failure = Some((failure, reason.to_owned()));
        let is_before = |until: Option<Duration>| until.is_some_and(|until| now < until);
        match failure {
            DialFailure::Unreachable if is_before(line.grace_until) => None,
            DialFailure::Unreachable if is_before(line.back_until) => Some(DialFailure::Silent),
            _ => Some(failure),
        }
    }

    /// The gateway is known to be unreachable by a kind.
    pub(crate) fn set_down(
        &mut self,
        now: Duration,
        kind: CarrierKind,
        how: DialFailure,
        why: &str,
    ) {
        if let Some(line) = self.line(kind) {
            let since = line.down.take().map_or(now, |down| down.since);
            line.down = Some(Down { since, how, reason: why.to_owned() });
        }
    }

    /// The carrier of a kind that took new exchanges does so no more: a dial is due.
    pub(crate) fn lose(&mut self, core: &mut Core, now: Duration, kind: CarrierKind, idle: bool) {
        let Some(line) = self.line(kind) else { return };
        line.current = None;
        line.grace_until = Some(now + GRACE.max(2 * line.expected_round_trip()));
        line.failures = 0;
        if line.fresh.is_none() {
            self.pause(core, now, kind, idle);
        }
    }

    /// The next dial is due after a pause that grows, as seen from when the last began: one that
    /// took long was pause enough. `idle`: nobody waits.
    pub(crate) fn pause(&mut self, core: &mut Core, now: Duration, kind: CarrierKind, idle: bool) {
        let Some(line) = self.line(kind) else { return };
        let doublings = line.failures.min(16);
        line.failures += 1;
        let most = match idle || line.is_down(DialFailure::Refused) {
            true => IDLE_DIAL_PAUSE,
            false => MAX_DIAL_PAUSE,
        };
        let pause = MIN_DIAL_PAUSE.saturating_mul(1 << doublings).min(most);
        // Edges that lost one gateway together come back apart.
        let spread = (core.config.instance >> (doublings % 48)) % 256;
        let jitter = pause.mul_f64(f64::from(u8::try_from(spread).unwrap_or(0)) / 1024.0);
        let began = line.dialled_at.filter(|_| line.last_failure.is_some());
        let at = began.unwrap_or(now) + pause + jitter;
        core.timers.set(Key::Dial(kind), Some(at.max(now)));
    }

    /// The kinds of carriers that may take an exchange.
    pub(crate) fn lines_for(
        &self,
        core: &Core,
        exchange: &Exchange,
    ) -> impl Iterator<Item = CarrierKind> + Clone {
        let able = move |kind: &CarrierKind| {
            let kind = core.config.kinds.get(kind.0);
            kind.is_some_and(|kind| exchange.may_go_by(&kind.abilities))
        };
        self.kinds().filter(able)
    }

    /// Whether carriers of one of these kinds show that the gateway itself is not to be reached,
    /// however silent the others are: it refuses this edge, or nobody listens where it did. One
    /// that has let it in before need not be tried by the others.
    pub(crate) fn has_verdict(&self, kinds: impl Iterator<Item = CarrierKind> + Clone) -> bool {
        let lines = || kinds.clone().filter_map(|kind| self.line_at(kind));
        let all_down = lines().all(|line| line.down.is_some());
        let none_up = lines().all(|line| line.current.is_none());
        none_up
            && lines().any(|line| {
                let refuses = line.is_down(DialFailure::Refused);
                let is_gone = line.was_up && line.is_down(DialFailure::Unreachable);
                refuses && line.was_up || (refuses || is_gone) && all_down
            })
    }

    /// Whether no kind of carrier that may take an exchange is worth waiting for.
    pub(crate) fn is_hopeless(&self, core: &Core, exchange: &Exchange) -> bool {
        if self.has_verdict(self.lines_for(core, exchange)) {
            return true;
        }
        self.lines_for(core, exchange).all(|kind| {
            let down = self.line_at(kind).and_then(|line| line.down.as_ref());
            down.is_some_and(|down| down.how != DialFailure::Silent || exchange.attempts.other_way)
        })
    }

    /// In which a dial succeeds, if the gateway can be reached.
    pub(crate) fn probe_time(&self) -> Duration {
        let round_trips = self.lines.iter().map(Line::expected_round_trip);
        (round_trips.max().unwrap_or_default() * PROBE_ROUND_TRIPS).max(MIN_PROBE)
    }

    /// Why nobody could be reached, in all the time that was waited.
    pub(crate) fn why_in_vain(&mut self, now: Duration, waited: Duration) -> String {
        let waited = waited.as_secs_f64();
        let (_, why) = self.last_failure().unwrap_or_else(no_failure);
        self.lines.iter_mut().for_each(|line| line.grace_until = Some(now));
        let down = self.lines.iter().filter_map(|line| line.down.as_ref());
        let since = down.map(|down| now.saturating_sub(down.since).as_secs_f64());
        let silent = since.fold(0.0, f64::max);
        let within = match silent > waited {
            true => format!("the gateway could not be reached for {silent:.1} s"),
            false => {
                format!("the gateway could not be reached within {waited} s (connect_timeout)")
            }
        };
        format!("{within}: {why}")
    }

    /// Whether a request would get through now, as far as is known; why not.
    pub(crate) fn standing(&self, carriers: &Carriers) -> Result<(), String> {
        if self.usable(carriers).next().is_some() {
            return Ok(());
        }
        let down = self.lines.iter().find_map(|line| line.down.as_ref());
        let down = down.map(|down| down.reason.clone());
        let failure = || self.last_failure().map(|(_, reason)| reason);
        let unknown = || "the gateway has not answered yet".to_owned();
        Err(down.or_else(failure).unwrap_or_else(unknown))
    }

    /// What the last dial came to, of the first kind of which that is known.
    fn last_failure(&self) -> Option<(DialFailure, String)> {
        self.lines.iter().find_map(Line::last_failure)
    }
}

/// What is known before the first dial has come to anything.
pub(crate) fn no_failure() -> (DialFailure, String) {
    (DialFailure::Silent, "no connection came about yet".to_owned())
}
