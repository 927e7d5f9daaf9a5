//! Messages that have left and whose receipts are not here: what is learned of them.

use decide::Arm;
use decide::models::{Seen, Subject};
use decide::outcome::{Parts, Split};
use decide::policy::{Observation, Policy};
use record::decision as facts;

use crate::exchange::choice::Choice;
use crate::exchange::revision::{Part, Revisions};
use crate::ids::ExchangeId;
use crate::reported::{expected_parts, reported_parts, reported_split};
use crate::times::Departure;

/// See the module.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) id: ExchangeId,
    pub(crate) choice: Box<Choice>,
    pub(crate) departure: Departure,
    /// Bytes that the path was given from its first piece to its last, others' between included,
    /// and its head's where that did not lead.
    pub(crate) carried: u64,
    /// What the network was expected to take for the bytes that there are.
    pub(crate) network_s: f64,
    /// What it was encoded in has been learned from.
    pub(crate) learned: bool,
}

impl Awaited {
    /// What the message became, for the models; once without and once with the peer's part of it.
    /// Of one that did not go as it began the first block is told, for how slow an encoder is may
    /// be why it was revised, and what it mostly went in: the rest is a mixture.
    pub(crate) fn learn(&mut self, policy: &mut dyn Policy, decode_s: Option<f64>) {
        let again = std::mem::replace(&mut self.learned, true);
        let choice = &self.choice;
        let tells = choice.arm != Arm::IDENTITY && choice.decision.is_some();
        if !tells || again && (decode_s.is_none() || choice.is_revised()) {
            return;
        }
        if choice.is_revised() {
            self.learn_first(policy);
            return self.learn_part(policy, decode_s);
        }
        let subject = Subject { bytes: choice.plain_bytes as f64, ..choice.subject };
        let encode_s = (!again).then_some(choice.encode.as_secs_f64());
        let seen = Seen { bytes: choice.coded_bytes as f64, encode_s, decode_s };
        policy.observe(&Observation::Encoding { subject: &subject, arm: choice.arm, seen: &seen });
        if !again {
            self.learn_probe(policy, &subject);
        }
    }

    fn learn_first(&self, policy: &mut dyn Policy) {
        let choice = &self.choice;
        let Some(first) = choice.tried.iter().find(|one| one.arm == choice.arm) else { return };
        let bytes = choice.first_bytes as f64;
        let encode_s = Some(first.encode_s * bytes);
        let seen = Seen { bytes: first.share * bytes, encode_s, decode_s: None };
        let subject = Subject { bytes, ..choice.subject };
        policy.observe(&Observation::Encoding { subject: &subject, arm: first.arm, seen: &seen });
    }

    fn learn_part(&self, policy: &mut dyn Policy, decode_s: Option<f64>) {
        let choice = &self.choice;
        let all_bytes = choice.plain_bytes;
        let part = choice.revisions.as_ref().and_then(|revisions| revisions.mostly(all_bytes));
        let Some(Part { arm, plain_bytes, coded_bytes, encode }) = part else { return };
        let subject = Subject { bytes: plain_bytes as f64, ..choice.subject };
        let share = plain_bytes as f64 / all_bytes as f64;
        let seen = Seen {
            bytes: coded_bytes as f64,
            encode_s: Some(encode.as_secs_f64()),
            decode_s: decode_s.map(|all| share * all),
        };
        policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
    }

    /// What the first block alone was encoded in beside it would have left of a longer body as much
    /// more or less than of that as what was sent did: long bodies repeat themselves, for all.
    fn learn_probe(&self, policy: &mut dyn Policy, subject: &Subject) {
        let choice = &self.choice;
        let first = choice.tried.iter().find(|one| one.arm == choice.arm && one.share > 0.0);
        let Some(first) = first.filter(|_| choice.plain_bytes > choice.first_bytes) else { return };
        let grown = choice.coded_bytes as f64 / subject.bytes / first.share;
        let Some(one) = choice.probed.filter(|one| one.arm != choice.arm) else { return };
        let encode_s = Some(one.encode_s * subject.bytes);
        let seen = Seen { bytes: one.share * grown * subject.bytes, encode_s, decode_s: None };
        policy.observe(&Observation::Encoding { subject, arm: one.arm, seen: &seen });
    }

    /// The event's content, of an encoding of this name; none where nothing had been expected.
    pub(crate) fn outcome(
        &self,
        encoding: String,
        network_s: f64,
        decode_s: f64,
    ) -> Option<facts::Outcome> {
        let choice = &self.choice;
        let candidate = choice.expected(choice.arm)?;
        let expected = expected_parts(candidate);
        let actual = Parts {
            encode_s: choice.encode.as_secs_f64(),
            network_s,
            decode_s,
            wait_s: choice.waited.as_secs_f64(),
            bytes: choice.coded_bytes as f64,
        };
        let split = Split::new(&expected, &actual, self.network_s);
        Some(facts::Outcome {
            encoding,
            body_bytes: choice.plain_bytes,
            expected: reported_parts(&expected),
            actual: reported_parts(&actual),
            split: reported_split(&split),
            revisions: choice.revisions.as_ref().map(Revisions::reported).unwrap_or_default(),
        })
    }
}
