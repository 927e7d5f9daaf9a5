//! A clock that never goes back, and is behind no other that it has heard of: milliseconds since
//! 1970 in the upper 48 bits, a count below (a hybrid logical clock; Kulkarni et al., Logical
//! Physical Clocks, OPODIS 2014). So what is written after something was seen counts after it,
//! whatever the clocks of the system do.

use std::time::Duration;

/// Stamps beyond the year 9999 are no times.
const MAX_MS: u64 = 253_402_300_800_000;
const COUNT_BITS: u32 = 16;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    last: u64,
}

impl Clock {
    /// One that has given or heard a stamp.
    pub(super) fn new(last: u64) -> Self {
        Self { last }
    }

    /// The last stamp.
    pub(super) fn last(self) -> u64 {
        self.last
    }

    /// The next stamp.
    pub(super) fn next(&mut self, now: Duration) -> u64 {
        let ms = u64::try_from(now.as_millis()).unwrap_or(MAX_MS).min(MAX_MS);
        self.last = self.last.saturating_add(1).max(ms << COUNT_BITS);
        self.last
    }

    /// A stamp of another; whether it can be one.
    pub(super) fn hear(&mut self, stamp: u64) -> bool {
        if stamp >> COUNT_BITS > MAX_MS {
            return false;
        }
        self.last = self.last.max(stamp);
        true
    }
}
