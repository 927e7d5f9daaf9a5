//! What this side's message goes in is chosen by what is at hand of it.

use decide::Arm;
use decide::models::Subject;
use decide::network::Path;
use decide::policy::{Decision, Objective, Observation, Request};
use decide::triage::{Message, Triage};
use record::decision as facts;

use super::Sender;
use super::fits::{Fit, NEVER, SHORT};
use super::known::Known;
use crate::exchange::choice::Choice;
use crate::exchange::revision::Revisions;
use crate::links::figures;
use crate::path;
use crate::reported::{parts, rounded, wanted, whole};

/// What a block takes to an encoder's thread and back, beside what it waits for it.
const HANDOVER_S: f64 = 3e-4;
/// A head goes ahead of its body where that gains so much of the message's time.
const LEADS_SHARE: f64 = 0.01;
/// Its lengths are to tell what they would without the pair.
const CROSS_SITE: &str = "another site asks for it";

impl Sender<'_> {
    /// Chooses what the message goes in. The head waits no longer if nothing is to be tried.
    pub(super) fn choose(&mut self) {
        self.consider_bases();
        self.consider_infoset();
        let (prefix, whole) = self.one.sending.at_hand();
        let blind = prefix.is_empty() && !whole;
        let body_bytes = match whole {
            true => Some(prefix.len() as u64),
            false => self.one.sending.said_length(),
        };
        let message = Message {
            content_type: self.one.sending.media(),
            coded: self.one.sending.is_coded(),
            tunnel: self.one.about.tunnel,
            head: prefix,
            body_bytes,
        };
        let (path, link) = self.known().expected_path();
        let class = self.known().class();
        let peer = self.known().decoder(&path);
        let (usual_bytes, usual_share) = self.core.habits_of(self.one).get(class);
        let least = prefix.len() as f64;
        let bytes = body_bytes.map_or(usual_bytes, |bytes| bytes as f64).max(least);
        // Where nothing but its beginning is against it, the rest of a body may be coded.
        let later = Message { head: &[], ..message };
        let cross_site = self.one.about.cross_site;
        let triage = |message: &Message<'_>| match cross_site {
            true => Triage::Alone(CROSS_SITE),
            false => self.core.config.encoding.triage(message),
        };
        let may_later = matches!(triage(&later), Triage::Open { .. });
        let must = self.known().must_encode();
        let mut choice = match triage(&message) {
            Triage::Alone(reason) if !must => {
                let subject = Subject { peer, class, bytes, head_share: 1.0 };
                Choice::alone(subject, path, reason)
            }
            triage => {
                let head_share = match triage {
                    Triage::Open { .. } if blind => usual_share,
                    Triage::Open { head_share } => head_share,
                    Triage::Alone(_) => 1.0,
                };
                let subject = Subject { peer, class, bytes, head_share };
                let choice = Choice::alone(subject, path, "nothing else may be taken");
                self.weigh(choice, &link)
            }
        };
        if may_later {
            self.known().stand_by(&mut choice, &link);
        }
        let is_fixed = self.core.config.encoding.is_fixed();
        let waits = !blind && !is_fixed && !must && !self.known().head_leads(&choice);
        let try_first = choice.arm != Arm::IDENTITY && waits;
        let named = choice.revisions.as_ref().map_or(choice.options, Revisions::named);
        self.one.sending.uncoded = choice.revisions.is_some();
        self.one.sending.options = Some(named);
        let arm = choice.arm;
        choice.trying = arm != Arm::IDENTITY && !is_fixed && !must;
        let trying = choice.trying;
        self.one.choice = Some(Box::new(choice));
        if !try_first {
            self.settle(named, None);
        }
        if arm == Arm::IDENTITY || !trying {
            self.chosen();
        }
    }

    /// Asks the policy.
    fn weigh(&mut self, mut choice: Choice, link: &facts::Link) -> Choice {
        let fits = self.known().fits(&choice.subject, None);
        let allowed = |arm: Arm| matches!(fits.get(arm.0), Some(Fit::Open { .. }));
        let objective = self.known().objective();
        let (subject, path) = (&choice.subject, &choice.path);
        let request = Request { subject, path, objective, allowed: &allowed };
        let seconds = self.core.waits.expected_s(self.now);
        let policy = self.core.policy_of(self.one);
        policy.observe(&Observation::Waits { seconds });
        let decision = policy.choose(&request);
        let decision = self.for_recipient(decision, &request);
        if !self.core.config.encoding.is_fixed() {
            let facts = self.known().facts(&choice, &decision, &fits, objective, link);
            choice.facts = Some(Box::new(facts));
        }
        choice.reason = decision.reason;
        let short = fits.iter().any(|fit| matches!(fit, Fit::Refused(SHORT | NEVER)));
        if short && !(1..fits.len()).any(|arm| allowed(Arm(arm))) {
            self.core.limit_reached("codec memory", "body goes uncoded");
        }
        let arm = decision.chosen.arm;
        choice.decision = Some(decision);
        if let Some(&Fit::Open { options, bytes }) = fits.get(arm.0) {
            (choice.arm, choice.options) = (arm, options);
            self.reserve_encoder(bytes);
        }
        choice
    }
}

impl<'a> Known<'a> {
    /// Whether the head is worth sending before the first block is there: that would show little,
    /// and while it is made the head crosses, in a packet of its own.
    fn head_leads(&self, choice: &Choice) -> bool {
        let Some(decision) = &choice.decision else { return false };
        let together = !choice.options.stands_alone();
        let together = together || self.one.has_recipient();
        let chosen = &decision.chosen;
        if together || decision.objective != Objective::Time || !chosen.expected.is_known() {
            return false;
        }
        let seconds = |bytes: f64| 8.0 * bytes / choice.path.rate_bps;
        let encoder_s = chosen.wait_s + chosen.expected.encode_s + HANDOVER_S;
        let gain_s = encoder_s.min(seconds(self.one.sending.head_len() as f64));
        gain_s - seconds(choice.path.header_bytes) > LEADS_SHARE * chosen.total_s()
    }

    /// A message that goes as it is names a coding for what may come.
    fn stand_by(&self, choice: &mut Choice, link: &facts::Link) {
        choice.revisions = self.standby(choice);
        if choice.revisions.is_none() || choice.decision.is_some() {
            return;
        }
        let decision = self.as_it_is(choice);
        let facts = self.facts(choice, &decision, &[], decision.objective, link);
        (choice.facts, choice.decision) = (Some(Box::new(facts)), Some(decision));
    }

    /// The path that the message takes, as the models want it and as it is told.
    pub(crate) fn expected_path(&self) -> (Path, facts::Link) {
        if let Some(recipient) = self.recipient() {
            return (recipient.path, recipient.link);
        }
        let Some(at) = &self.path else {
            let estimate = self.core.config.estimate();
            return (estimate.path(), figures(&estimate));
        };
        let mut path = at.estimate().path();
        path.peer = at.known.carrier;
        path.backlog_bytes += at.wire.in_flight as f64;
        // More than its credit does not leave before the peer was heard. Once it leaves there is
        // always little left of it, and more on its way.
        if self.one.departure.is_none() {
            let credit = match self.one.credit {
                0 => at.abilities.initial_credit,
                credit => credit,
            };
            path.start_window = path.start_window.min(credit as f64 / path.segment_bytes).max(1.0);
        }
        let link = figures(at.estimate());
        (path, facts::Link { window_packets: rounded(path.start_window), ..link })
    }

    /// Who decodes the message, as the policy knows it.
    fn decoder(&self, path: &Path) -> u64 {
        let peer = self.path.filter(|_| self.recipient().is_none());
        peer.map_or(path.peer, |peer| peer.known.peer)
    }

    /// How long the message and the answer to it take over the path, in seconds, as far as is known
    /// of them, and of it by these others that lead to the same peer.
    pub(crate) fn expected_s(&self, others: impl Iterator<Item = &'a path::Path> + Clone) -> f64 {
        let (path, _) = self.expected_path();
        let path = self.path.map_or(path, |at| at.with_others(path, others.clone()));
        let (usual_bytes, usual_share) = self.core.habits.get(self.class());
        let (prefix, whole) = self.one.sending.at_hand();
        let said = self.one.sending.said_length().map(|bytes| bytes as f64);
        let known = if whole { Some(prefix.len() as f64) } else { said };
        let body = known.unwrap_or(usual_bytes).max(prefix.len() as f64) * usual_share;
        let out_s = self.core.policy.network_s(&path, body + self.one.sending.head_len() as f64);
        let back_s = self.path.filter(|_| self.core.config.asks()).map_or(0.0, |at| {
            let (answer_bytes, _) = self.core.habits.get(self.answer_class());
            self.core.policy.network_s(&at.inwards(path, others), answer_bytes)
        });
        out_s + back_s
    }

    fn facts(
        &self,
        choice: &Choice,
        decision: &Decision,
        fits: &[Fit],
        objective: Objective,
        link: &facts::Link,
    ) -> facts::Decision {
        let arms = self.core.config.encoding.arms();
        let labels = self.labels();
        let label = |arm: usize| arms.get(arm).map_or_else(String::new, |arm| labels(*arm));
        let candidates = decision.candidates.iter().map(|candidate| facts::Candidate {
            encoding: label(candidate.arm.0),
            expected: parts(candidate),
        });
        let forbidden = fits.iter().enumerate().filter_map(|(arm, fit)| match fit {
            Fit::Refused(NEVER) => None,
            Fit::Refused(why) => {
                Some(facts::Forbidden { encoding: label(arm), why: (*why).to_owned() })
            }
            Fit::Open { .. } => None,
        });
        facts::Decision {
            service: self.service_name().to_owned(),
            peer: self.path.as_ref().map(|path| path.peer.clone()),
            class: format!("{:016x}", choice.subject.class),
            content_type: self.one.sending.media_type().map(ToOwned::to_owned),
            body_bytes: whole(choice.subject.bytes),
            head_share: rounded(choice.subject.head_share),
            objective: wanted(objective),
            expected: parts(&decision.chosen),
            candidates: candidates.collect(),
            forbidden: forbidden.collect(),
            link: *link,
            probe: decision.probe.map(|arm| label(arm.0)),
            base: None,
            edgeless: self.one.has_recipient(),
            route: self.one.route.as_deref().cloned(),
        }
    }
}
