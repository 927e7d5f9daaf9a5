//! The transmitter: how long a packet occupies the link.

use crate::ChannelConfig;
use crate::trace::Cursor;
use std::time::Duration;

const BITS_TIMES_NANOS: u128 = 8 * 1_000_000_000;

/// Computes when packets sent one after another have left, without drift: at a constant rate the
/// part of a nanosecond that a packet leaves over is carried into the next one.
#[derive(Default)]
pub(crate) struct Serializer {
    /// When the last packet left, in whole nanoseconds ...
    finish: Duration,
    /// ... plus this many `1/rate_bps` parts of a nanosecond.
    remainder: u128,
    /// The rate that `remainder` counts in.
    rate_bps: u64,
    cursor: Cursor,
}

impl Serializer {
    /// Sends a packet from `start` on; answers when its last bit has left.
    pub(crate) fn send(
        &mut self,
        config: &ChannelConfig,
        start: Duration,
        len_bytes: usize,
    ) -> Duration {
        let finish = match (&config.trace, config.rate_bps) {
            (Some(trace), _) => self.cursor.send(trace, start, len_bytes),
            (None, Some(rate_bps)) => self.send_at(rate_bps.max(1), start, len_bytes),
            (None, None) => start,
        };
        self.finish = finish;
        finish
    }

    /// Forgets the place in a trace that is no longer in force.
    pub(crate) fn reconfigure(&mut self) {
        self.cursor = Cursor::default();
    }

    fn send_at(&mut self, rate_bps: u64, start: Duration, len_bytes: usize) -> Duration {
        let back_to_back = start == self.finish && rate_bps == self.rate_bps;
        let carried = if back_to_back { self.remainder } else { 0 };
        let rate = u128::from(rate_bps);
        let parts = (len_bytes as u128) * BITS_TIMES_NANOS + carried;
        self.remainder = parts % rate;
        self.rate_bps = rate_bps;
        let nanos = u64::try_from(parts / rate).unwrap_or(u64::MAX);
        start.saturating_add(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(rate_bps: u64) -> ChannelConfig {
        ChannelConfig { rate_bps: Some(rate_bps), ..ChannelConfig::default() }
    }

    #[test]
    fn a_long_run_ends_at_the_exact_nanosecond() {
        // 1 byte at 7 bit/s takes 8/7 s; after 7 million of them exactly 8 million seconds.
        let (mut serializer, config) = (Serializer::default(), config(7));
        let mut finish = Duration::ZERO;
        for _ in 0..7_000_000 {
            finish = serializer.send(&config, finish, 1);
        }
        assert_eq!(finish, Duration::from_secs(8_000_000));
    }

    #[test]
    fn a_pause_starts_anew() {
        let (mut serializer, config) = (Serializer::default(), config(3));
        let first = serializer.send(&config, Duration::ZERO, 1);
        assert_eq!(first, Duration::from_nanos(2_666_666_666));
        let later = Duration::from_secs(10);
        let second = serializer.send(&config, later, 1);
        assert_eq!(second - later, Duration::from_nanos(2_666_666_666));
    }

    #[test]
    fn a_change_of_rate_carries_nothing_over() {
        let mut serializer = Serializer::default();
        let first = serializer.send(&config(3), Duration::ZERO, 1);
        let second = serializer.send(&config(8), first, 1);
        assert_eq!(second - first, Duration::from_secs(1));
    }

    #[test]
    fn without_a_rate_packets_leave_at_once() {
        let unlimited = ChannelConfig::default();
        let at = Duration::from_secs(5);
        assert_eq!(Serializer::default().send(&unlimited, at, 1500), at);
    }
}
