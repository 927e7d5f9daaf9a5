//! One port that contends for the channel: IEEE 802.11-2020 §10.3.4 as Bianchi models it.

use super::config::Csma;
use crate::random::{Dice, Purpose, Subject};
use std::time::Duration;

/// What a port hears, and how many slots it has still to wait.
pub(super) struct Contention {
    /// Since when the channel has been free; none while it is busy.
    free_from: Option<Duration>,
    /// Slots to go; none where nothing waits for its turn.
    backoff: Option<u32>,
    /// Slots are counted from here on at the earliest.
    since: Duration,
    /// It sends as soon as the channel has been free for long enough, without a draw.
    is_at_once: bool,
    retries: u32,
    draws: u64,
}

impl Contention {
    pub(super) fn new() -> Self {
        Self {
            free_from: Some(Duration::ZERO),
            backoff: None,
            since: Duration::ZERO,
            is_at_once: false,
            retries: 0,
            draws: 0,
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.free_from.is_some()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.backoff.is_some()
    }

    /// When its turn comes, if the channel stays free.
    pub(super) fn fires_at(&self, csma: &Csma) -> Option<Duration> {
        let slots = self.backoff?;
        Some(self.count_from(csma)?.saturating_add(csma.slot.saturating_mul(slots)))
    }

    /// Sends as soon as the channel has been free for long enough. Where it becomes busy before
    /// that, a backoff is due (§10.3.4.2), see [`Contention::hear`].
    pub(super) fn at_once(&mut self, now: Duration) {
        (self.backoff, self.since, self.is_at_once) = (Some(0), now, true);
    }

    /// Draws a backoff.
    pub(super) fn draw(&mut self, csma: &Csma, dice: &Dice, port: usize, now: Duration) {
        let doubled = u64::from(csma.window_min) << self.retries.min(32);
        let window = doubled.min(u64::from(csma.window_max));
        let subject = Subject { number: (port as u64) << 48 | self.draws, is_copy: false };
        self.draws += 1;
        let slots = dice.below(subject, Purpose::Backoff, window);
        (self.backoff, self.since) = (u32::try_from(slots).ok(), now);
        self.is_at_once = false;
    }

    /// Has sent, or has nothing to send.
    pub(super) fn stop(&mut self) {
        (self.backoff, self.is_at_once) = (None, false);
    }

    pub(super) fn succeed(&mut self) {
        self.retries = 0;
    }

    pub(super) fn retry(&mut self) {
        self.retries = self.retries.saturating_add(1);
    }

    /// The channel is heard busy or free from `at` on. Says whether a backoff is to be drawn.
    #[must_use]
    pub(super) fn hear(&mut self, is_busy: bool, csma: &Csma, at: Duration) -> bool {
        let is_surprised = is_busy && self.free_from.is_some() && self.is_at_once;
        match (is_busy, self.free_from) {
            (true, Some(_)) => {
                if let (Some(slots), Some(from)) = (self.backoff, self.count_from(csma))
                    && from <= at
                {
                    // The slots that passed, and that in which the channel became busy: in
                    // Bianchi's model a busy slot counts as one.
                    let passed = (at - from).as_nanos() / csma.slot.as_nanos().max(1) + 1;
                    let passed = u32::try_from(passed).unwrap_or(u32::MAX);
                    self.backoff = Some(slots.saturating_sub(passed));
                }
                self.free_from = None;
            }
            (false, None) => self.free_from = Some(at),
            _ => {}
        }
        is_surprised
    }

    /// When the first slot begins.
    fn count_from(&self, csma: &Csma) -> Option<Duration> {
        Some(self.free_from?.saturating_add(csma.difs).max(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_backoff_stops_while_the_channel_is_busy() {
        let csma = Csma::bianchi();
        let mut contention = Contention::new();
        contention.backoff = Some(5);
        assert_eq!(contention.fires_at(&csma), Some(us(128 + 250)));
        // Busy from the beginning of the third slot on: two passed, and that one.
        assert!(!contention.hear(true, &csma, us(128 + 100)));
        assert_eq!((contention.fires_at(&csma), contention.backoff), (None, Some(2)));
        assert!(!contention.hear(true, &csma, us(1_000)));
        assert!(!contention.hear(false, &csma, us(2_000)));
        assert_eq!(contention.fires_at(&csma), Some(us(2_000 + 128 + 100)));
        // Busy before it was free for long enough: nothing passed.
        assert!(!contention.hear(true, &csma, us(2_100)));
        assert!(!contention.hear(false, &csma, us(2_200)));
        assert_eq!(contention.backoff, Some(2));
    }

    #[test]
    fn who_finds_the_channel_busy_after_all_draws() {
        let csma = Csma::bianchi();
        let mut contention = Contention::new();
        assert!(!contention.hear(true, &csma, us(1_000)));
        assert!(!contention.hear(false, &csma, us(2_000)));
        contention.at_once(us(2_010));
        assert_eq!(contention.fires_at(&csma), Some(us(2_128)));
        assert!(contention.hear(true, &csma, us(2_028)));
        contention.draw(&csma, &Dice::for_seed(1), 3, us(2_028));
        assert!(!contention.hear(false, &csma, us(2_200)));
        assert!(!contention.hear(true, &csma, us(2_210)));
    }

    #[test]
    fn the_window_doubles_up_to_its_greatest() {
        let csma = Csma::bianchi();
        let dice = Dice::for_seed(1);
        let mut contention = Contention::new();
        for (retries, window) in [(0, 32), (1, 64), (3, 256), (9, 256), (200, 256)] {
            contention.retries = retries;
            let draw = |contention: &mut Contention| {
                contention.draw(&csma, &dice, 3, us(0));
                contention.backoff.unwrap()
            };
            let drawn: Vec<u32> = (0..2_000).map(|_| draw(&mut contention)).collect();
            let mean = drawn.iter().map(|slots| f64::from(*slots)).sum::<f64>() / 2_000.0;
            let expected = (f64::from(window) - 1.0) / 2.0;
            // Five standard errors of a uniform distribution.
            assert!((mean - expected).abs() < 5.0 * f64::from(window) / 12_f64.sqrt() / 44.7);
            assert!(drawn.iter().all(|slots| *slots < window));
        }
    }
}
