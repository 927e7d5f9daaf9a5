//! How many runs go side by side: as many as the machine does truly. What a run costs the machine
//! is its packets a second: hundreds of clients of a slow radio weigh as much as a few of a fast
//! one.
//!
//! Pure: what was measured comes in, whether another may start comes out.

use std::collections::VecDeque;
use std::time::Duration;

/// Packets a second of all runs side by side at the beginning, and the fewest that spoilt runs can
/// bring them to.
const START: f64 = 2_500.0;
const LEAST: f64 = 500.0;
/// Beyond this a ferry's thread would not keep up.
const MOST: f64 = 20_000.0;
/// From one start to the next: starting many in the same instant adds to their connects.
pub(super) const STAGGER: Duration = Duration::from_millis(60);
/// No start while the processors are busier than this; more room only below that.
const MAX_BUSY: f64 = 0.72;
const BUSY_ROOM: f64 = 0.60;
/// How often the limit is thought over, and over which time runs count for it.
const REVIEW: Duration = Duration::from_secs(4);
const MEMORY: Duration = Duration::from_secs(30);
/// More spoilt runs than this share of those that ended lately, and than this number, bring the
/// limit down: some are spoilt by what has nothing to do with it, and are done again.
const MAX_SPOILT_SHARE: f64 = 0.15;
const MIN_SPOILT: usize = 8;
/// By which factors the limit goes down and up.
const DOWN: f64 = 0.85;
const UP: f64 = 1.15;
/// Most runs remembered.
const MAX_ENDED: usize = 4096;

/// Decides whether another run may start.
#[derive(Debug)]
pub(super) struct Throttle {
    /// In packets a second.
    limit: f64,
    most: usize,
    busy: f64,
    last_start: Option<Duration>,
    last_review: Duration,
    /// When runs ended and whether the machine had spoilt them.
    ended: VecDeque<(Duration, bool)>,
}

impl Throttle {
    /// At most `most` at once.
    pub(super) fn new(most: usize) -> Self {
        Self {
            limit: START,
            most: most.max(1),
            busy: 0.0,
            last_start: None,
            last_review: Duration::ZERO,
            ended: VecDeque::new(),
        }
    }

    /// The share of all processors' time that was used lately, 0 to 1.
    pub(super) fn observe_busy(&mut self, busy: f64) {
        self.busy = busy;
    }

    /// A run ended; `spoilt` when the machine was too slow for it.
    pub(super) fn observe_end(&mut self, now: Duration, spoilt: bool) {
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((now, spoilt));
    }

    /// Whether a run may start beside so many, all with their packets a second.
    pub(super) fn may_start(
        &mut self,
        now: Duration,
        next: f64,
        (active, load): (usize, f64),
    ) -> bool {
        self.review(now, load, load + next > self.limit);
        let rested = self.last_start.is_none_or(|last| now.saturating_sub(last) >= STAGGER);
        let fits = active < self.most && load + next <= self.limit;
        active == 0 || (rested && fits && self.busy < MAX_BUSY)
    }

    /// A run was started.
    pub(super) fn started(&mut self, now: Duration) {
        self.last_start = Some(now);
    }

    /// `held` when the limit keeps the next run back: few heavy ones may never come near it.
    fn review(&mut self, now: Duration, load: f64, held: bool) {
        if now.saturating_sub(self.last_review) < REVIEW {
            return;
        }
        self.last_review = now;
        while self.ended.front().is_some_and(|(at, _)| now.saturating_sub(*at) > MEMORY) {
            self.ended.pop_front();
        }
        let spoilt = self.ended.iter().filter(|(_, spoilt)| *spoilt).count();
        let is_much = spoilt as f64 > MAX_SPOILT_SHARE * self.ended.len() as f64;
        if is_much && spoilt > MIN_SPOILT {
            self.limit = (self.limit.min(load) * DOWN).max(LEAST);
            // What came of the old limit says nothing about the new one.
            self.ended.clear();
        } else if !is_much && held && self.busy < BUSY_ROOM {
            self.limit = (self.limit * UP).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn it_grows_while_the_machine_keeps_up_and_shrinks_when_runs_are_spoilt() {
        let mut throttle = Throttle::new(500);
        assert!(throttle.may_start(seconds(0), 100.0, (20, START - 100.0)));
        assert!(!throttle.may_start(seconds(0), 100.0, (20, START)));
        for second in 0..40 {
            throttle.observe_busy(0.3);
            throttle.observe_end(seconds(second), false);
            throttle.may_start(seconds(second), 1.0, (20, throttle.limit));
        }
        let grown = throttle.limit;
        assert!(grown > 2.0 * START, "{grown}");
        for second in 40..45 {
            // A few among many are borne.
            throttle.observe_end(seconds(second), true);
            throttle.may_start(seconds(second), 1.0, (20, grown));
        }
        assert!(throttle.limit >= grown, "{}", throttle.limit);
        for second in 45..60 {
            throttle.observe_end(seconds(second), true);
            throttle.may_start(seconds(second), 1.0, (20, grown));
        }
        assert!(throttle.limit < grown, "{}", throttle.limit);
    }

    #[test]
    fn it_grows_for_runs_of_which_it_bears_just_one() {
        let mut throttle = Throttle::new(500);
        throttle.limit = LEAST;
        let heavy = 0.6 * LEAST;
        let starts = |throttle: &mut Throttle, second| {
            throttle.may_start(seconds(second), heavy, (1, heavy))
        };
        assert!(!starts(&mut throttle, 4));
        assert!((8..40).any(|second| starts(&mut throttle, second)));
        // Where nothing is held back there is nothing to learn.
        let grown = throttle.limit;
        throttle.may_start(seconds(100), 1.0, (1, heavy));
        assert!(throttle.limit <= grown, "{} after {grown}", throttle.limit);
    }

    #[test]
    fn a_busy_machine_starts_nothing_unless_nothing_runs() {
        let mut throttle = Throttle::new(10);
        throttle.observe_busy(0.95);
        assert!(!throttle.may_start(seconds(1), 1.0, (3, 3.0)));
        assert!(throttle.may_start(seconds(1), 1e9, (0, 0.0)));
        throttle.observe_busy(0.1);
        assert!(throttle.may_start(seconds(2), 1.0, (3, 3.0)));
        throttle.started(seconds(2));
        assert!(!throttle.may_start(seconds(2), 1.0, (4, 4.0)));
        assert!(throttle.may_start(seconds(2) + STAGGER, 1.0, (4, 4.0)));
        assert!(!throttle.may_start(seconds(9), 1.0, (10, 10.0)));
    }

    #[test]
    fn it_never_goes_under_the_least_nor_over_the_most() {
        let mut throttle = Throttle::new(6);
        for second in 0..1000 {
            throttle.observe_end(seconds(second), true);
            throttle.may_start(seconds(second), 1.0, (6, throttle.limit));
            assert!(throttle.limit >= LEAST);
        }
        for second in 1000..2000 {
            throttle.observe_end(seconds(second), false);
            throttle.may_start(seconds(second), 1.0, (6, throttle.limit));
            assert!(throttle.limit <= MOST);
        }
    }
}
