//! When a connection that was lost is made again.

use std::time::Duration;

/// Between two attempts: the first, and at most.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The attempts since a connection was there.
#[derive(Debug)]
pub(super) struct Again {
    patience: Duration,
    pause: Duration,
    /// When the connection was lost; `None` while it is there, or has never been.
    lost_at: Option<Duration>,
}

impl Again {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, pause: MIN_PAUSE, lost_at: None }
    }

    /// The connection is there.
    pub(super) fn connected(&mut self) {
        self.pause = MIN_PAUSE;
        self.lost_at = None;
    }

    /// It is not, or was not to be had: how long to wait before the next attempt; `None` where
    /// there is none.
    pub(super) fn pause(&mut self, now: Duration) -> Option<Duration> {
        let lost_at = *self.lost_at.get_or_insert(now);
        let left = self.patience.saturating_sub(now.saturating_sub(lost_at));
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Some(pause).filter(|pause| !pause.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_until_patience_ends() {
        let mut again = Again::new(Duration::from_secs(10));
        let mut now = Duration::from_secs(7);
        let mut times = Vec::new();
        while let Some(pause) = again.pause(now) {
            now += pause;
            times.push(now.as_millis() - 7000);
        }
        assert_eq!(times, [500, 1500, 3500, 7500, 10_000]);
        again.connected();
        assert!(again.pause(now).is_some(), "a connection that was there is made again");
        assert_eq!(Again::new(Duration::ZERO).pause(now), None);
    }
}
