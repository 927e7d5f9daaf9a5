//! Sender Sequence Numbers, none of which is used twice, also not after a restart (RFC 8613 §7.2
//! and appendix B.1.1).

use crate::Error;

use super::option::MAX_PARTIAL_IV;

/// Behind the greatest Sender Sequence Number.
const MAX_END: u64 = MAX_PARTIAL_IV + 1;

/// The next number, and the watermark below which numbers may be used, since the store has it.
///
/// The caller writes [`SenderSequence::to_store`] to a store that survives a restart, and when it
/// is written for sure says so by [`SenderSequence::note_stored`]. Numbers at or over the watermark
/// are refused until then, so that however long writing takes, no number is used that a restart
/// would begin with. Appendix B.1.1 stores the first number of a step and adds the step after the
/// restart; here the sum is what is stored.
///
/// It cannot be copied, as a copy would give the same numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct SenderSequence {
    next: u64,
    /// Numbers below may be used.
    safe: u64,
    /// By how much the watermark rises; 0 where nothing has to be stored.
    step: u64,
}

impl SenderSequence {
    /// For keys of which no number was ever used. `step` is how many numbers one writing is for:
    /// the more, the more rarely there is one, and the more numbers a restart skips.
    ///
    /// # Errors
    /// `Caller` where `step` is 0.
    pub fn fresh(step: u64) -> Result<Self, Error> {
        Self::restored(0, step)
    }

    /// After a restart: `watermark` is the greatest that was ever given to the store.
    ///
    /// # Errors
    /// `Caller` where `step` is 0, `Limit` where the watermark is none of ours.
    pub fn restored(watermark: u64, step: u64) -> Result<Self, Error> {
        if step == 0 {
            return Err(Error::Caller { what: "a step of no sender sequence numbers" });
        }
        if watermark > MAX_END {
            let (what, limit) = ("a watermark of sender sequence numbers", MAX_END);
            return Err(Error::Limit { what, value: watermark, limit });
        }
        Ok(Self { next: watermark, safe: watermark, step })
    }

    /// For keys that end with the process, so that there is no restart with them: nothing has to be
    /// stored.
    #[must_use]
    pub fn unstored() -> Self {
        Self { next: 0, safe: MAX_END, step: 0 }
    }

    /// The watermark to store now, where it is time: early enough that numbers of half a step are
    /// left to use while it is written.
    #[must_use]
    pub fn to_store(&self) -> Option<u64> {
        let left = self.safe.saturating_sub(self.next);
        let wanted = self.next.saturating_add(self.step).min(MAX_END);
        (left <= self.step / 2 && wanted > self.safe).then_some(wanted)
    }

    /// The store has this watermark, which [`SenderSequence::to_store`] gave; it is never lowered.
    pub fn note_stored(&mut self, watermark: u64) {
        self.safe = watermark.min(MAX_END).max(self.safe);
    }

    /// The number that is used next.
    #[must_use]
    pub fn peek(&self) -> u64 {
        self.next
    }

    /// Takes a number, which no other message gets.
    ///
    /// # Errors
    /// `Limit` where all are used up and the keys must be replaced (RFC 8613 §7.2.1), or where the
    /// store does not yet have a watermark over it.
    pub fn take(&mut self) -> Result<u64, Error> {
        let value = self.next;
        if value > MAX_PARTIAL_IV {
            let (what, limit) = ("a sender sequence number", MAX_PARTIAL_IV);
            return Err(Error::Limit { what, value, limit });
        }
        if value >= self.safe {
            let (what, limit) = ("a sender sequence number not stored", self.safe);
            return Err(Error::Limit { what, value, limit });
        }
        self.next += 1;
        Ok(value)
    }
}
