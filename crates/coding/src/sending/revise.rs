//! How the message goes on behind its first block is revised at the ends of blocks.

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::models::Subject;
use decide::network::Path;
use decide::policy::{Candidate, Decision, Going, Objective, Request};
use decide::triage::INCOMPRESSIBLE_SHARE;
use proto::exchange::MAX_BLOCK_BYTES;

use super::Sender;
use super::fits::Fit;
use super::known::Known;
use crate::core::habits::UNKNOWN_SHARE;
use crate::encoding::ANY;
use crate::exchange::choice::Choice;
use crate::exchange::revision::{Revisions, SHARE_DEVIATES, STRETCH_BYTES, Seen, is_near};

/// Blocks that the network carries in less go as they are without being reviewed, which takes some
/// 10 µs each.
const MIN_BLOCK_S: f64 = 1e-3;

/// What a context goes on in: only as it began, or also otherwise, in a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    None,
    Begun,
    Renewable,
}

impl Sender<'_> {
    /// A block has gone, through its encoder or as it is: the rest may go otherwise.
    pub(super) fn review(&mut self, plain: &Bytes, coded: Option<(usize, Duration)>) {
        let revisions = self.one.choice.as_ref().and_then(|choice| choice.revisions.as_ref());
        if self.one.sending.is_cut() || !revisions.is_some_and(Revisions::may_revise) {
            return;
        }
        let path = self.known().expected_path().0;
        if let Some(at) = &self.path {
            // For the next review: a link may have faded since the head left, or first show itself.
            self.core.measure(at.id, false);
        }
        let unqueued = Path { backlog_bytes: 0.0, ..path };
        let block_s = self.core.policy.network_s(&unqueued, MAX_BLOCK_BYTES as f64);
        if coded.is_none() && block_s < MIN_BLOCK_S {
            return;
        }
        let Some(choice) = self.one.choice.as_mut() else { return };
        let head_share = choice.subject.head_share;
        let Some(revisions) = choice.revisions.as_mut() else { return };
        revisions.note(plain, coded);
        let Some(seen) = revisions.deviates(block_s) else { return };
        let (going, head_share) = match coded {
            Some(_) => {
                let Seen { share, encode_s, .. } = seen;
                (Going { arm: revisions.arm, share, encode_s }, head_share)
            }
            None if seen.share > INCOMPRESSIBLE_SHARE => return,
            None => (Going::IDENTITY, seen.share),
        };
        self.weigh_rest(&path, head_share, &going);
    }

    /// Asks the policy what the rest of the message is worth going on in.
    fn weigh_rest(&mut self, path: &Path, head_share: f64, going: &Going) {
        let Some(choice) = &self.one.choice else { return };
        let Some(revisions) = &choice.revisions else { return };
        let bytes = self.known().rest_bytes(choice);
        if bytes < STRETCH_BYTES as f64 {
            return;
        }
        let subject = Subject { bytes, head_share, ..choice.subject };
        let context = self.known().context();
        let fits = match context {
            Context::Begun => Vec::new(),
            Context::None | Context::Renewable => {
                self.known().fits(&subject, Some(revisions.named().window_log))
            }
        };
        let worse = self.known().found_worse(choice, going, &subject, path);
        let allowed = |arm: Arm| match fits.get(arm.0) {
            _ if worse.contains(&arm) => false,
            _ if context != Context::None && arm == revisions.arm => true,
            Some(Fit::Open { options, .. }) => options.codec == revisions.options.codec,
            _ => false,
        };
        let left_at = self.one.departure.map_or(self.now, |departure| departure.first);
        let spent_s = self.now.saturating_sub(left_at).as_secs_f64();
        let objective = self.known().objective().after(spent_s);
        let request = Request { subject: &subject, path, objective, allowed: &allowed };
        let Some((arm, reason)) = self.core.policy.revise(&request, going) else { return };
        let fit = fits.get(arm.0).copied();
        self.go_on_in(arm, fit, reason);
    }

    /// The rest of the message goes so.
    fn go_on_in(&mut self, arm: Arm, fit: Option<Fit>, reason: &'static str) {
        let Some(choice) = self.one.choice.as_mut() else { return };
        let Some(revisions) = choice.revisions.as_mut() else { return };
        let mut reserved = None;
        let goes_on = self.one.sending.has_context() && arm == revisions.arm;
        if arm != Arm::IDENTITY && !goes_on {
            let Some(Fit::Open { options, bytes }) = fit else { return };
            (revisions.arm, revisions.options) = (arm, options);
            (choice.options, choice.fresh) = (options, true);
            self.one.sending.begin_context();
            reserved = Some(bytes);
        }
        self.one.sending.uncoded = arm == Arm::IDENTITY;
        let options = if arm == Arm::IDENTITY { Options::IDENTITY } else { revisions.options };
        revisions.revise(choice.plain_bytes, options, reason);
        if let Some(bytes) = reserved {
            self.reserve_encoder(bytes);
        }
    }
}

impl Known<'_> {
    /// How a message that goes as it is may be revised, by which it names a coding for what may
    /// come; none where nothing may, or too little.
    pub(super) fn standby(&self, choice: &Choice) -> Option<Revisions> {
        let (prefix, whole) = self.one.sending.at_hand();
        let all = self.one.sending.said_length().unwrap_or(u64::MAX);
        let short = all.saturating_sub(prefix.len() as u64) < STRETCH_BYTES as u64;
        let may_revise = self.may_revise();
        if choice.arm != Arm::IDENTITY || whole || short || !may_revise {
            return None;
        }
        let fits = self.fits(&choice.subject, None);
        let open = |arm: Arm| match fits.get(arm.0) {
            Some(Fit::Open { options, .. }) if is_for_any(*options) => Some(*options),
            _ => None,
        };
        let arm = match &choice.decision {
            Some(decision) => {
                let coded = decision.candidates.iter().filter(|one| open(one.arm).is_some());
                coded.min_by(|a, b| a.total_s().total_cmp(&b.total_s())).map(|one| one.arm)
            }
            None => {
                let subject = Subject { head_share: UNKNOWN_SHARE, ..choice.subject };
                let (path, objective) = (&choice.path, self.objective());
                let allowed = |arm: Arm| open(arm).is_some();
                let request = Request { subject: &subject, path, objective, allowed: &allowed };
                self.core.policy.revise(&request, &Going::IDENTITY).map(|(arm, _)| arm)
            }
        }?;
        open(arm).and_then(|options| Revisions::new(arm, options))
    }

    /// What is expected of a message that goes as it is though no policy was asked.
    pub(super) fn as_it_is(&self, choice: &Choice) -> Decision {
        let bytes = choice.subject.bytes;
        let chosen = Candidate::identity(bytes, self.core.policy.network_s(&choice.path, bytes));
        let (objective, candidates) = (self.objective(), vec![chosen]);
        Decision { chosen, objective, candidates, probe: None, reason: choice.reason }
    }

    /// What was tried on the first block and would bring the rest no better than what goes, while
    /// blocks are like that one. What the policy expects of others rests on less.
    fn found_worse(&self, choice: &Choice, going: &Going, rest: &Subject, path: &Path) -> Vec<Arm> {
        let (first, share, first_share) = match going.arm {
            Arm::IDENTITY => (Some(going), rest.head_share, choice.subject.head_share),
            arm => {
                let first = choice.tried.iter().find(|one| one.arm == arm);
                (first, going.share, first.map_or(0.0, |first| first.share))
            }
        };
        let Some(first) = first.filter(|_| is_near(share, first_share, SHARE_DEVIATES)) else {
            return Vec::new();
        };
        let policy = &self.core.policy;
        let seconds = |one: &Going| {
            one.encode_s * rest.bytes + policy.network_s(path, one.share * rest.bytes)
        };
        let (larger, later) =
            (|one: &Going| one.share >= first.share, |one: &Going| seconds(one) >= seconds(first));
        let objective = self.objective();
        let is_worse = |one: &&Going| match objective {
            Objective::Time => later(one),
            Objective::Bytes => larger(one),
            Objective::Deadline(_) => larger(one) && later(one),
        };
        let others = choice.tried.iter().filter(|one| one.arm != going.arm);
        others.filter(is_worse).map(|one| one.arm).collect()
    }

    /// The context that the message has.
    fn context(&self) -> Context {
        match self.one.sending.has_context() {
            false => Context::None,
            true if self.path.as_ref().is_some_and(|path| path.abilities.renews) => {
                Context::Renewable
            }
            true => Context::Begun,
        }
    }

    /// Bytes that are to come: as the head or the end says, else as is usual; and who has sent much
    /// without an end sends as much again.
    fn rest_bytes(&self, choice: &Choice) -> f64 {
        let (open, whole) = self.one.sending.at_hand();
        let (at_hand, passed) = (open.len() as f64, choice.plain_bytes as f64);
        match self.one.sending.said_length() {
            _ if whole => at_hand,
            Some(all) => (all as f64 - passed).max(at_hand),
            None => (choice.subject.bytes - passed).max(passed).max(at_hand),
        }
    }
}

/// A coding of blocks of any bytes, whatever the message began with.
fn is_for_any(options: Options) -> bool {
    let coded = !options.is_identity() && options.stands_alone();
    coded && options.codec.properties().applies_to(ANY)
}
