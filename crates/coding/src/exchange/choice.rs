//! What a message goes in: what was known of it, what may be taken, and what the policy says.

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::models::Subject;
use decide::network::Path;
use decide::policy::{Candidate, Decision, Going};
use record::decision as facts;

use super::revision::Revisions;

/// See the module.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) subject: Subject,
    pub(crate) path: Path,
    /// What the policy said; none where it was not asked.
    pub(crate) decision: Option<Decision>,
    pub(crate) facts: Option<Box<facts::Decision>>,
    pub(crate) arm: Arm,
    pub(crate) options: Options,
    pub(crate) reason: &'static str,
    /// The first block's result decides.
    pub(crate) trying: bool,
    /// Its infoset would not come back: every byte has to.
    pub(crate) exact: bool,
    /// What was tried on the first block, and how it would go on.
    pub(crate) tried: Vec<Going>,
    /// What the first block gave in a probe.
    pub(crate) probed: Option<Going>,
    /// Bytes of the first block, where it was tried.
    pub(crate) first_bytes: u64,
    /// The shortest result of those tried.
    pub(crate) best: Option<Tried>,
    /// The next block begins a context.
    pub(crate) fresh: bool,
    /// How it goes on behind its first block, where it may go otherwise than it began.
    pub(crate) revisions: Option<Revisions>,
    /// Processor time of encoding what was sent.
    pub(crate) encode: Duration,
    /// What the first block waited for its encoder besides.
    pub(crate) waited: Duration,
    pub(crate) plain_bytes: u64,
    pub(crate) coded_bytes: u64,
}

/// What came of an encoding that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) arm: Arm,
    pub(crate) options: Options,
    pub(crate) coded: Bytes,
    /// What comes out of it, where that is another text than went in.
    pub(crate) text: Option<Bytes>,
    pub(crate) cpu: Duration,
    pub(crate) waited: Duration,
}

impl Tried {
    /// It would not come back the same, and nothing of it may be sent.
    pub(crate) fn was_refused(&self) -> bool {
        self.options.is_infoset() && self.text.is_none()
    }

    /// What there is to learn from it.
    pub(crate) fn seen(&self) -> (Arm, usize, Duration) {
        (self.arm, self.coded.len(), self.cpu)
    }

    /// Of so many bytes; the rest of a body would go so.
    pub(crate) fn going(&self, plain_len: usize) -> Going {
        going(self.seen(), plain_len)
    }
}

/// How a body would go whose first bytes, so many, gave this.
pub(crate) fn going((arm, coded_len, cpu): (Arm, usize, Duration), plain_len: usize) -> Going {
    let bytes = plain_len.max(1) as f64;
    Going { arm, share: coded_len as f64 / bytes, encode_s: cpu.as_secs_f64() / bytes }
}

impl Choice {
    pub(crate) fn alone(subject: Subject, path: Path, reason: &'static str) -> Self {
        Self {
            subject,
            path,
            decision: None,
            facts: None,
            arm: Arm::IDENTITY,
            options: Options::IDENTITY,
            reason,
            trying: false,
            exact: false,
            tried: Vec::new(),
            probed: None,
            first_bytes: 0,
            best: None,
            fresh: true,
            revisions: None,
            encode: Duration::ZERO,
            waited: Duration::ZERO,
            plain_bytes: 0,
            coded_bytes: 0,
        }
    }

    /// Nothing of the message was encoded or passed on yet.
    pub(crate) fn begins_message(&self) -> bool {
        self.plain_bytes == 0 && self.tried.is_empty()
    }

    /// Whether the next block begins a context; it does so once.
    pub(crate) fn begins(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Not all of the message went as it began.
    pub(crate) fn is_revised(&self) -> bool {
        self.revisions.as_ref().is_some_and(Revisions::is_revised)
    }

    /// What was expected of an arm.
    pub(crate) fn expected(&self, arm: Arm) -> Option<&Candidate> {
        self.decision.as_ref()?.candidates.iter().find(|candidate| candidate.arm == arm)
    }
}
