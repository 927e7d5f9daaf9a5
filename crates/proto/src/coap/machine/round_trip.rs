//! How long a peer takes to acknowledge, and so how long to wait: estimates from exchanges without
//! retransmission count more than those where it is not known which transmission was acknowledged
//! (after CoCoA, draft-ietf-core-cocoa).

use std::time::Duration;

/// ACK_TIMEOUT, where nothing is known (RFC 7252 §4.8).
const FIRST: Duration = Duration::from_secs(2);
/// An answer that is made just in time for its acknowledgement must not seem lost.
const MIN_TIMEOUT: Duration = Duration::from_millis(500);
const MAX_TIMEOUT: Duration = Duration::from_secs(32);
/// Below the first the next wait is longer by more, above the second by less.
const QUICK: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_secs(3);
/// An estimate beyond these that was not renewed for so many times itself moves towards the first.
const QUICK_TIMES: u32 = 16;
const SLOW_TIMES: u32 = 4;
/// Retransmissions after which a round trip still says something.
const MAX_WEAK_TRIES: u32 = 2;

/// Smoothed mean and deviation (RFC 6298 §2).
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: Duration,
    deviation: Duration,
}

impl Estimate {
    fn observe(before: Option<Self>, sample: Duration) -> Self {
        match before {
            None => Self { mean: sample, deviation: sample / 2 },
            Some(Self { mean, deviation }) => Self {
                deviation: (deviation * 3 + mean.abs_diff(sample)) / 4,
                mean: (mean * 7 + sample) / 8,
            },
        }
    }
}

/// What is believed of one peer's round trip, without the time that datagrams take to serialize.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    strong: Option<Estimate>,
    weak: Option<Estimate>,
    timeout: Duration,
    renewed_at: Duration,
}

impl RoundTrip {
    pub(super) fn new(now: Duration) -> Self {
        Self { strong: None, weak: None, timeout: FIRST, renewed_at: now }
    }

    /// A transmission was acknowledged after `sample` from the first one; `tries` followed that.
    pub(super) fn observe(&mut self, now: Duration, sample: Duration, tries: u32) {
        let (estimate, deviations, share) = match tries {
            0 => {
                let estimate = Estimate::observe(self.strong, sample);
                self.strong = Some(estimate);
                (estimate, 4, 0.5)
            }
            1..=MAX_WEAK_TRIES => {
                let estimate = Estimate::observe(self.weak, sample);
                self.weak = Some(estimate);
                (estimate, 1, 0.25)
            }
            _ => return,
        };
        let new = estimate.mean + estimate.deviation * deviations;
        let timeout = new.mul_f64(share) + self.timeout.mul_f64(1.0 - share);
        self.timeout = timeout.clamp(MIN_TIMEOUT, MAX_TIMEOUT);
        self.renewed_at = now;
    }

    /// How long to wait for an acknowledgement of a first transmission, before chance is added.
    pub(super) fn timeout(&mut self, now: Duration) -> Duration {
        let age = now.saturating_sub(self.renewed_at);
        if self.timeout < QUICK && age > self.timeout * QUICK_TIMES {
            self.timeout *= 2;
            self.renewed_at = now;
        } else if self.timeout > SLOW && age > self.timeout * SLOW_TIMES {
            self.timeout = FIRST / 2 + self.timeout / 2;
            self.renewed_at = now;
        }
        self.timeout
    }

    /// The wait after one of `timeout` was in vain.
    pub(super) fn backed_off(timeout: Duration) -> Duration {
        match timeout {
            _ if timeout < QUICK => timeout * 3,
            _ if timeout > SLOW => timeout.mul_f64(1.5),
            _ => timeout * 2,
        }
    }

    /// The mean, if there is one.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.strong.or(self.weak).map(|estimate| estimate.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_timeout_follows_the_round_trip() {
        let mut quick = RoundTrip::new(ms(0));
        let mut slow = quick;
        assert_eq!(quick.timeout(ms(0)), ms(2000));
        for at in 0..20 {
            quick.observe(ms(at), ms(100), 0);
            slow.observe(ms(at), ms(9000), 0);
        }
        assert_eq!(quick.timeout(ms(20)), MIN_TIMEOUT);
        assert!(slow.timeout(ms(20)) > ms(9000) && slow.timeout(ms(20)) < ms(12_000));
        // Long after, less is believed of it.
        assert_eq!(quick.timeout(ms(60_000)), MIN_TIMEOUT * 2);
        assert!(slow.timeout(ms(90_000)) < ms(7000));
    }

    #[test]
    fn unsure_samples_count_less() {
        let (mut strong, mut weak, mut none) =
            (RoundTrip::new(ms(0)), RoundTrip::new(ms(0)), RoundTrip::new(ms(0)));
        strong.observe(ms(1), ms(8000), 0);
        weak.observe(ms(1), ms(8000), 2);
        none.observe(ms(1), ms(8000), 3);
        assert_eq!(none.timeout(ms(1)), ms(2000));
        assert_eq!(weak.timeout(ms(1)), ms(4500));
        assert_eq!(strong.timeout(ms(1)), ms(13_000));
    }
}
