//! A reliable ordered byte pipe: what TCP makes of a link, where loss shows as delay.

use std::time::Duration;

use crate::Random;

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    rate_bps: u64,
    delay: Duration,
    /// Once in so many segments one is lost, which holds everything back.
    loss_once_in: u64,
    free_at: Duration,
    last_arrival: Duration,
}

impl Pipe {
    pub(crate) fn new(random: &mut Random) -> Self {
        let rates = [9_600, 250_000, 2_000_000, 100_000_000];
        let at = usize::try_from(random.below(4)).unwrap_or(0);
        Self {
            rate_bps: rates[at],
            delay: Duration::from_millis(random.below(600)),
            loss_once_in: 5 + random.below(200),
            free_at: Duration::ZERO,
            last_arrival: Duration::ZERO,
        }
    }

    /// When what was sent so far has arrived.
    pub(crate) fn last_arrival(&self) -> Duration {
        self.last_arrival
    }

    /// When `bytes` have left the sender, and when they arrive.
    pub(crate) fn carry(
        &mut self,
        now: Duration,
        bytes: usize,
        random: &mut Random,
    ) -> (Duration, Duration) {
        let airtime = bytes as u64 * 8 * 1_000_000_000 / self.rate_bps;
        self.free_at = self.free_at.max(now) + Duration::from_nanos(airtime);
        let mut arrival = self.free_at + self.delay;
        if random.once_in(self.loss_once_in) {
            arrival += self.delay * 2 + Duration::from_millis(200);
        }
        self.last_arrival = self.last_arrival.max(arrival);
        (self.free_at, self.last_arrival)
    }
}
