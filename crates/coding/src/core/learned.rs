//! What the policy has learned, across restarts: as bytes, and from facts that came after them.

use decide::Arm;
use decide::models::{Seen, Subject};
use decide::policy::Observation;
use decide::state::Error;
use record::decision::{Decision, Outcome};

use super::Core;
use super::habits::Habits;
use crate::kept::lasting::peer_id;

/// Version of the bytes; another one is refused.
const VERSION: u8 = 1;
/// Longest body that can be usual, in bytes.
const MAX_BYTES: f64 = 1e15;

impl Core {
    /// What was learned, for [`Core::restore`]; nothing where the choice is fixed.
    ///
    /// Little-endian: a version (1 byte), the length of what the policy saves (4), that, the number
    /// of classes (4), and what is usual of each: its number (8), bytes (8) and share (8).
    pub(crate) fn learned(&self) -> Vec<u8> {
        let (names, mut policy) = (self.names(), Vec::new());
        self.policy.save(&names.iter().map(String::as_str).collect::<Vec<_>>(), &mut policy);
        let Some(length) = u32::try_from(policy.len()).ok().filter(|&length| length > 0) else {
            return Vec::new();
        };
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.append(&mut policy);
        let classes = u32::try_from(self.habits.all().len()).unwrap_or(0);
        bytes.extend_from_slice(&classes.to_le_bytes());
        for (class, usual, share) in self.habits.all() {
            bytes.extend_from_slice(&class.to_le_bytes());
            bytes.extend_from_slice(&usual.to_le_bytes());
            bytes.extend_from_slice(&share.to_le_bytes());
        }
        bytes
    }

    /// Takes what this policy had learned, over these encodings or others.
    ///
    /// # Errors
    /// What is no such state; nothing is taken of it.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (&version, rest) = bytes.split_first().ok_or(Error::Short)?;
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let (length, rest) = rest.split_first_chunk().ok_or(Error::Short)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| Error::Short)?;
        let (policy, rest) = rest.split_at_checked(length).ok_or(Error::Short)?;
        let habits = habits(rest)?;
        let names = self.names();
        self.policy.restore(&names.iter().map(String::as_str).collect::<Vec<_>>(), policy)?;
        self.habits = habits;
        Ok(())
    }

    /// Learns from a decision of an earlier process and its outcome, as it had; what it says of the
    /// network is left out: that is measured anew.
    pub(crate) fn learn_from(&mut self, decision: &Decision, outcome: &Outcome) {
        if decision.edgeless {
            return self.clients.learn_from(&self.config.encoding, decision, outcome);
        }
        let Ok(class) = u64::from_str_radix(&decision.class, 16) else { return };
        let (bytes, head_share) = (outcome.body_bytes as f64, decision.head_share);
        if !(0.0..=1.0).contains(&head_share) {
            return;
        }
        self.habits.note(class, bytes, head_share);
        let arm = self.names().iter().position(|name| *name == outcome.encoding).map(Arm);
        let tells = |arm: &Arm| *arm != Arm::IDENTITY && outcome.revisions.is_empty();
        let Some(arm) = arm.filter(tells) else { return };
        let peer = decision.peer.as_deref().map_or(0, peer_id);
        let subject = Subject { peer, class, bytes, head_share };
        let (encode_s, decode_s) = (outcome.actual.encode_s, outcome.actual.decode_s);
        let bytes = outcome.actual.bytes as f64;
        let seen = Seen { bytes, encode_s: Some(encode_s), decode_s: Some(decode_s) };
        self.policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
    }

    fn names(&self) -> Vec<String> {
        self.config.encoding.arms().iter().map(|arm| arm.label()).collect()
    }
}

/// What is usual of classes; a bound on their number is that of [`Habits`].
fn habits(bytes: &[u8]) -> Result<Habits, Error> {
    let mut habits = Habits::default();
    let (count, bytes) = bytes.split_first_chunk().ok_or(Error::Short)?;
    let length = u64::from(u32::from_le_bytes(*count)) * 24;
    match (bytes.len() as u64).checked_sub(length) {
        Some(0) => {}
        None => return Err(Error::Short),
        Some(_) => return Err(Error::Damaged("it has more classes than it says")),
    }
    let (classes, _) = bytes.as_chunks::<24>();
    for entry in classes {
        let (figures, _) = entry.as_chunks::<8>();
        let &[class, bytes, share] = figures else { return Err(Error::Short) };
        let within = |what, value: f64, least, most| {
            let fits = (least..=most).contains(&value);
            fits.then_some(value).ok_or(Error::Range { what, value, least, most })
        };
        let bytes = within("usual length", f64::from_le_bytes(bytes), 0.0, MAX_BYTES)?;
        let share = within("usual share", f64::from_le_bytes(share), 0.0, 1.0)?;
        habits.note(u64::from_le_bytes(class), bytes, share);
    }
    Ok(habits)
}
