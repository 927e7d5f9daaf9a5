//! How long a client waits for a peer's answer before it sends a copy.

use std::time::Duration;

/// Before anything is known: a request of a phone over GPRS took 6 to 8 s at worst.
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);
/// No shorter: a service takes its time, and a copy costs the link as much as the request.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// No longer, so that the copies go within what a server knows them for.
const MAX_TIMEOUT: Duration = Duration::from_secs(40);
/// The share of a timeout that chance may add, as one in so many.
const CHANCE_DIVISOR: u32 = 4;

/// What is known of a peer's answers, as RFC 6298 §2 has it for round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    smoothed: Option<Duration>,
    deviation: Duration,
    timeout: Duration,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { smoothed: None, deviation: Duration::ZERO, timeout: FIRST_TIMEOUT }
    }

    /// Until the next copy after this many; each time twice as long, and a bit more by `chance`.
    pub(super) fn timeout(&self, copies: u32, chance: u64) -> Duration {
        let doublings = copies.saturating_sub(1).min(16);
        let timeout = self.timeout.saturating_mul(1 << doublings).min(MAX_TIMEOUT);
        let share = chance.to_le_bytes()[0];
        timeout + timeout / CHANCE_DIVISOR * u32::from(share) / 256
    }

    /// An answer came so long after the first copy had left.
    pub(super) fn observe(&mut self, elapsed: Duration, copies: u32) {
        if copies > 1 {
            // Which copy it answers is not known (Karn): if the first, the timeout is too short.
            let longer = self.timeout / 2 + elapsed / 2;
            self.timeout = self.timeout.max(longer).min(MAX_TIMEOUT);
            return;
        }
        let smoothed = self.smoothed.unwrap_or(elapsed);
        let apart = smoothed.abs_diff(elapsed);
        self.deviation = match self.smoothed {
            None => elapsed / 2,
            Some(_) => self.deviation * 3 / 4 + apart / 4,
        };
        let smoothed = smoothed * 7 / 8 + elapsed / 8;
        self.smoothed = Some(smoothed);
        self.timeout = (smoothed + 4 * self.deviation).clamp(MIN_TIMEOUT, MAX_TIMEOUT);
    }
}
