//! How long a request waits for a carrier, and what it hears if none comes.

use std::time::Duration;

use coding::ExchangeId;

use super::Edge;
use crate::api::{Cause, CauseKind, DialFailure};
use crate::dialer::{Down, no_failure};
use crate::exchanges::{Exchange, Stage};
use crate::ids::CarrierKind;
use crate::transfer::Transfer;

impl Edge<'_> {
    /// A request waits for a carrier from here on: for how long, if at all.
    pub(crate) fn wait_for_carrier(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let most = self.transfer.core.config.connect_timeout;
        let lines: Vec<_> = self.dialer.lines_for(&self.transfer.core, exchange).collect();
        if lines.is_empty() {
            let reason = "no carrier of this edge takes such a request".to_owned();
            return self.transfer.fail_local(now, id, Cause { kind: CauseKind::Limit, reason });
        }
        let carriers = &self.transfer.carriers;
        let is_usable = |kind: &CarrierKind| self.dialer.usable_of(carriers, *kind).is_some();
        let down = |kind: &CarrierKind| self.dialer.line_at(*kind)?.down.clone();
        // One may have no room, or come soon.
        let verdict = self.dialer.has_verdict(lines.iter().copied());
        if !verdict && lines.iter().any(|kind| is_usable(kind) || down(kind).is_none()) {
            return self.transfer.set_deadline(id, Some(now + most));
        }
        let silent = lines.iter().filter_map(down).filter(|down| down.how == DialFailure::Silent);
        let last = silent.map(|down| down.since).max().filter(|_| !verdict);
        match last.filter(|_| !exchange.attempts.other_way) {
            Some(since) => {
                let probe = self.dialer.probe_time().min(most);
                self.transfer.set_deadline(id, Some((since + most).max(now + probe)));
            }
            None => {
                let clear = |down: &Down| down.how != DialFailure::Silent;
                let downs = || lines.iter().filter_map(down);
                let reason = downs().find(clear).or_else(|| downs().next()).map(|one| one.reason);
                self.fail_unreachable(now, id, &reason.unwrap_or_default());
            }
        }
    }

    pub(super) fn fail_unreachable(&mut self, now: Duration, id: ExchangeId, reason: &str) {
        let cause = Cause { kind: CauseKind::GatewayUnreachable, reason: reason.to_owned() };
        self.transfer.fail_local(now, id, cause);
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
        self.dialer.set_down(now, kind, how, reason);
        let Transfer { core, exchanges, .. } = &*self.transfer;
        let hopeless = exchanges.unsent().filter(|one| self.dialer.is_hopeless(core, one));
        for id in hopeless.map(|exchange| exchange.id).collect::<Vec<_>>() {
            self.fail_unreachable(now, id, reason);
        }
        // What may be repeated is, where there is another way, rather than asked about; and nobody
        // waits for word of what may have reached nobody.
        let verdict = self.dialer.has_verdict(self.dialer.kinds());
        let all_down = verdict || self.dialer.lines().all(|line| line.down.is_some());
        let none_silent =
            verdict || self.dialer.lines().all(|line| !line.is_down(DialFailure::Silent));
        let elsewhere = |one: &&Exchange| {
            let Stage::Ambiguous { gateway, asked: None } = one.stage else { return false };
            let leaves = all_down && (one.attempts.other_way || (gateway.is_none() && none_silent));
            leaves && one.is_repeatable() && one.outgoing.is_untouched()
        };
        let elsewhere = self.transfer.exchanges.waiting().filter(elsewhere).map(|one| one.id);
        for id in elsewhere.collect::<Vec<_>>() {
            self.transfer.set_stage(now, id, Stage::Waiting);
            self.fail_unreachable(now, id, reason);
        }
    }

    /// An exchange waited for as long as it may.
    pub(crate) fn patience_ended(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.transfer.exchanges.get(&id) else { return };
        let withdrawn = Cause { kind: CauseKind::ClientGone, reason: "out of patience".to_owned() };
        let is_early =
            matches!(exchange.stage, Stage::Open(on) if !self.transfer.carriers.is_greeted(on));
        let is_waiting = is_early || exchange.stage == Stage::Waiting;
        let (kind, reason) = match exchange.stage {
            _ if is_waiting => self.why_not_reached(now),
            Stage::Ambiguous { .. } => {
                let waited = self.transfer.core.config.outcome_timeout.as_secs_f64();
                let reason = format!(
                    "the carrier broke and the gateway could not be asked within {waited} s \
                     (outcome_timeout); the request may have been carried out"
                );
                (CauseKind::OutcomeUnknown, reason)
            }
            Stage::Open(carrier) if self.transfer.carriers.is_stalled(carrier) => {
                let waited = self.transfer.core.config.connect_timeout.as_secs_f64();
                let reason = format!(
                    "the gateway was silent for {waited} s (connect_timeout) after it was sent the \
                     request, which may have been carried out"
                );
                (CauseKind::OutcomeUnknown, reason)
            }
            Stage::Waiting | Stage::Open(_) | Stage::Detached => return,
        };
        self.transfer.fail_peer(now, id, &withdrawn);
        if let Some(exchange) = self.transfer.exchanges.get_mut(&id) {
            exchange.attempts.repeated |= is_early && exchange.outgoing.is_head_sent();
        }
        self.transfer.fail_local(now, id, Cause { kind, reason });
        if is_waiting && kind == CauseKind::GatewayUnreachable {
            self.all_are_down(now);
        }
    }

    /// All kinds were waited for in vain.
    fn all_are_down(&mut self, now: Duration) {
        for kind in self.dialer.kinds() {
            let usable = self.dialer.usable_of(&self.transfer.carriers, kind).is_some();
            let line = self.dialer.line_at(kind).filter(|line| line.down.is_none() && !usable);
            if let Some(line) = line {
                let (how, why) = line.last_failure().unwrap_or_else(no_failure);
                self.gateway_is_down(now, kind, how, &why);
            }
        }
    }

    /// Why a request found no carrier in all the time that it may wait.
    fn why_not_reached(&mut self, now: Duration) -> (CauseKind, String) {
        let waited = self.transfer.core.config.connect_timeout.as_secs_f64();
        if self.dialer.usable(&self.transfer.carriers).next().is_some() {
            let reason = format!(
                "the gateway had no room for another exchange for {waited} s (connect_timeout); \
                 try later"
            );
            return (CauseKind::Limit, reason);
        }
        let reason = self.dialer.why_in_vain(now, self.transfer.core.config.connect_timeout);
        (CauseKind::GatewayUnreachable, reason)
    }
}
