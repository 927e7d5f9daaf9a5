//! What is apart for recipients that are no peers: what is learned of their messages, for the
//! requests of strangers must not drive out what the pair has learned; what they may cost; and how
//! much memory.

use decide::Arm;
use decide::models::{Seen, Subject};
use decide::policy::{Observation, Policy};
use decide::state::Error;
use record::decision::{Decision, Outcome};

use super::accounts::Accounts;
use super::habits::Habits;
use crate::encoding::Encoding;
use crate::recipient::label;

/// Of the memory for encoders their messages may have so much.
const MEMORY_SHARE: usize = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) habits: Habits,
    pub(crate) accounts: Accounts,
    /// Memory reserved for their encoders, in bytes; part of that of all.
    pub(crate) encoder_bytes: usize,
}

impl Clients {
    pub(crate) fn new(encoding: &Encoding) -> Self {
        Self {
            policy: encoding.policy(),
            habits: Habits::default(),
            accounts: Accounts::default(),
            encoder_bytes: 0,
        }
    }

    /// What of so much memory for encoders is left to them, in bytes.
    pub(crate) fn bytes_left(&self, all: usize) -> usize {
        (all / MEMORY_SHARE).saturating_sub(self.encoder_bytes)
    }

    /// What was learned over these encodings, for [`Clients::restore`]; nothing where the choice is
    /// fixed, or nothing came to it.
    pub(crate) fn learned(&self, encoding: &Encoding) -> Vec<u8> {
        let (names, mut bytes) = (names(encoding), Vec::new());
        if self.habits.all().len() == 0 {
            return bytes;
        }
        self.policy.save(&names.iter().map(String::as_str).collect::<Vec<_>>(), &mut bytes);
        bytes
    }

    /// Takes what was learned over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub(crate) fn restore(&mut self, encoding: &Encoding, bytes: &[u8]) -> Result<(), Error> {
        let names = names(encoding);
        self.policy.restore(&names.iter().map(String::as_str).collect::<Vec<_>>(), bytes)
    }

    /// Learns from a decision of an earlier process and its outcome, but for the time to decode:
    /// that was never seen.
    pub(crate) fn learn_from(
        &mut self,
        encoding: &Encoding,
        decision: &Decision,
        outcome: &Outcome,
    ) {
        let arm = names(encoding).iter().position(|name| *name == outcome.encoding).map(Arm);
        let (Some(arm), Ok(class)) = (arm, u64::from_str_radix(&decision.class, 16)) else {
            return;
        };
        let (bytes, head_share) = (outcome.body_bytes as f64, decision.head_share);
        if !(0.0..=1.0).contains(&head_share) {
            return;
        }
        self.habits.note(class, bytes, head_share);
        if arm != Arm::IDENTITY {
            let subject = Subject { peer: 0, class, bytes, head_share };
            let (bytes, encode_s) = (outcome.actual.bytes as f64, outcome.actual.encode_s);
            let seen = Seen { bytes, encode_s: Some(encode_s), decode_s: None };
            self.policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        }
    }
}

/// The arms as they are told.
fn names(encoding: &Encoding) -> Vec<String> {
    encoding.arms().iter().map(|arm| label(*arm)).collect()
}
