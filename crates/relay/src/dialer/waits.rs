//! How long a request waits for a carrier, and what it hears if none comes.

use std::time::Duration;

use coding::ExchangeId;
use proto::exchange::Role;

use super::Down;
use crate::Relay;
use crate::api::{Cause, CauseKind, DialFailure};
use crate::exchange::{Exchange, Stage};
use crate::ids::{CarrierId, CarrierKind};
use crate::timers::Key;

/// A carrier is made within so many round trips of a link that is up: for the packet that went into
/// the outage, three of the carrier, and one that may be lost.
const PROBE_ROUND_TRIPS: u32 = 5;
/// And within this on short paths, where a processor may be late.
const MIN_PROBE: Duration = Duration::from_secs(1);
impl Relay {
    /// A request waits for a carrier from here on: for how long, if at all.
    pub(crate) fn wait_for_carrier(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let most = self.config.connect_timeout;
        let lines: Vec<_> = self.lines_for(exchange).collect();
        if lines.is_empty() {
            let reason = "no carrier of this edge takes such a request".to_owned();
            return self.fail_local(now, id, Cause { kind: CauseKind::Limit, reason });
        }
        let is_usable = |kind: &CarrierKind| self.usable_of(*kind).is_some();
        let down = |kind: &CarrierKind| self.dialer.lines.get(kind.0)?.down.clone();
        // One may have no room, or come soon.
        if lines.iter().any(|kind| is_usable(kind) || down(kind).is_none()) {
            return self.timers.set(Key::Exchange(id), Some(now + most));
        }
        let silent = lines.iter().filter_map(down).filter(|down| down.how == DialFailure::Silent);
        let last = silent.map(|down| down.since).max();
        match last.filter(|_| !exchange.other_way) {
            Some(since) => {
                let probe = self.probe_time().min(most);
                self.timers.set(Key::Exchange(id), Some((since + most).max(now + probe)));
            }
            None => {
                let reason = lines.iter().find_map(down).map(|down| down.reason);
                self.fail_unreachable(now, id, &reason.unwrap_or_default());
            }
        }
    }

    /// The kinds of carriers that may take an exchange.
    fn lines_for(&self, exchange: &Exchange) -> impl Iterator<Item = CarrierKind> {
        let able = |kind: &CarrierKind| {
            let kind = self.config.kinds.get(kind.0);
            kind.is_some_and(|kind| exchange.may_go_by(&kind.abilities))
        };
        (0..self.dialer.lines.len()).map(CarrierKind).filter(able)
    }

    /// In which a dial succeeds, if the gateway can be reached.
    pub(super) fn probe_time(&self) -> Duration {
        let round_trips = self.dialer.lines.iter().map(super::Line::expected_round_trip);
        (round_trips.max().unwrap_or_default() * PROBE_ROUND_TRIPS).max(MIN_PROBE)
    }

    pub(super) fn fail_unreachable(&mut self, now: Duration, id: ExchangeId, reason: &str) {
        let cause = Cause { kind: CauseKind::GatewayUnreachable, reason: reason.to_owned() };
        self.fail_local(now, id, cause);
    }

    /// From now on the gateway is known to be unreachable by a kind: who waits for it hears so,
    /// unless it is worth while to wait, or there is another kind.
    pub(super) fn gateway_is_down(
        &mut self,
        now: Duration,
        kind: CarrierKind,
        how: DialFailure,
        reason: &str,
    ) {
        let Some(line) = self.dialer.line(kind) else { return };
        let since = line.down.take().map_or(now, |down| down.since);
        line.down = Some(Down { since, how, reason: reason.to_owned() });
        let waits = self.waiting_exchanges().filter_map(|id| self.exchanges.get(&id));
        let hopeless = waits.filter(|exchange| self.is_hopeless(exchange));
        for id in hopeless.map(|exchange| exchange.id).collect::<Vec<_>>() {
            self.fail_unreachable(now, id, reason);
        }
        // What may be repeated is, where there is another way, rather than asked about; and nobody
        // waits for word of what may have reached nobody.
        let mut lines = self.dialer.lines.iter();
        let all_down = lines.clone().all(|line| line.down.is_some());
        let none_silent = lines.all(|line| !line.is_down(DialFailure::Silent));
        let elsewhere = |one: &&Exchange| {
            let Stage::Ambiguous { gateway, asked: None } = one.stage else { return false };
            let leaves = all_down && (one.other_way || (gateway.is_none() && none_silent));
            leaves && one.is_repeatable() && one.outgoing.is_untouched()
        };
        let waits = self.waiting.iter().filter_map(|id| self.exchanges.get(id));
        let elsewhere = waits.filter(elsewhere).map(|one| one.id);
        for id in elsewhere.collect::<Vec<_>>() {
            self.set_stage(now, id, Stage::Waiting);
            self.fail_unreachable(now, id, reason);
        }
    }

    /// Whether no kind of carrier that may take an exchange is worth waiting for.
    fn is_hopeless(&self, exchange: &Exchange) -> bool {
        self.lines_for(exchange).all(|kind| {
            let down = self.dialer.lines.get(kind.0).and_then(|line| line.down.as_ref());
            down.is_some_and(|down| down.how != DialFailure::Silent || exchange.other_way)
        })
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
        if is_waiting && kind == CauseKind::GatewayUnreachable {
            self.all_are_down(now);
        }
    }

    /// All kinds were waited for in vain.
    fn all_are_down(&mut self, now: Duration) {
        for kind in (0..self.dialer.lines.len()).map(CarrierKind) {
            let usable = self.usable_of(kind).is_some();
            let line = self.dialer.lines.get(kind.0).filter(|line| line.down.is_none() && !usable);
            if let Some(line) = line {
                let (how, why) = line.last_failure().unwrap_or_else(no_failure);
                self.gateway_is_down(now, kind, how, &why);
            }
        }
    }

    fn is_stalled(&self, carrier: CarrierId) -> bool {
        self.carriers.get(&carrier).is_some_and(|carrier| carrier.pulse.stalled.is_some())
    }

    /// Why a request found no carrier in all the time that it may wait.
    fn why_not_reached(&mut self, now: Duration) -> (CauseKind, String) {
        let waited = self.config.connect_timeout.as_secs_f64();
        if self.usable().next().is_some() {
            let reason = format!(
                "the gateway had no room for another exchange for {waited} s (connect_timeout); \
                 try later"
            );
            return (CauseKind::Limit, reason);
        }
        let (_, why) = self.last_failure().unwrap_or_else(no_failure);
        self.dialer.lines.iter_mut().for_each(|line| line.grace_until = Some(now));
        let down = self.dialer.lines.iter().filter_map(|line| line.down.as_ref());
        let since = down.map(|down| now.saturating_sub(down.since).as_secs_f64());
        let silent = since.fold(0.0, f64::max);
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
        if self.config.role == Role::Gateway || self.usable().next().is_some() {
            return Ok(());
        }
        let down = self.dialer.lines.iter().find_map(|line| line.down.as_ref());
        let down = down.map(|down| down.reason.clone());
        let failure = || self.last_failure().map(|(_, reason)| reason);
        let unknown = || "the gateway has not answered yet".to_owned();
        Err(down.or_else(failure).unwrap_or_else(unknown))
    }

    /// What the last dial came to, of the first kind of which that is known.
    fn last_failure(&self) -> Option<(DialFailure, String)> {
        self.dialer.lines.iter().find_map(super::Line::last_failure)
    }
}

fn no_failure() -> (DialFailure, String) {
    (DialFailure::Silent, "no connection came about yet".to_owned())
}
