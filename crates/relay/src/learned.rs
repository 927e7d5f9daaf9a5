//! What the policy has learned, across restarts: as bytes, and from facts that came after them.

use decide::Arm;
use decide::models::{Seen, Subject};
use decide::policy::Observation;
use decide::state::Error;
use record::decision::{Decision, Outcome};

use crate::Relay;

impl Relay {
    /// What was learned, for [`Relay::restore`]; nothing where the choice is fixed.
    #[must_use]
    pub fn learned(&self) -> Vec<u8> {
        let (names, mut bytes) = (self.names(), Vec::new());
        self.policy.save(&names.iter().map(String::as_str).collect::<Vec<_>>(), &mut bytes);
        bytes
    }

    /// Takes what a relay with this policy had learned, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let names = self.names();
        self.policy.restore(&names.iter().map(String::as_str).collect::<Vec<_>>(), bytes)
    }

    /// Learns from a decision of an earlier process and its outcome, as it had; what it says of the
    /// network is left out: that is measured anew.
    pub fn learn_from(&mut self, decision: &Decision, outcome: &Outcome) {
        let arm = self.names().iter().position(|name| *name == outcome.encoding).map(Arm);
        let class = u64::from_str_radix(&decision.class, 16).ok();
        let (Some(arm), Some(class)) = (arm.filter(|&arm| arm != Arm::IDENTITY), class) else {
            return;
        };
        let (bytes, head_share) = (outcome.body_bytes as f64, decision.head_share);
        let subject = Subject { class, bytes, head_share };
        let (encode_s, decode_s) = (outcome.actual.encode_s, outcome.actual.decode_s);
        let bytes = outcome.actual.bytes as f64;
        let seen = Seen { bytes, encode_s: Some(encode_s), decode_s: Some(decode_s) };
        self.policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
    }

    fn names(&self) -> Vec<String> {
        self.config.encoding.arms().iter().map(|arm| arm.label()).collect()
    }
}
