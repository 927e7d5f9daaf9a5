//! The five profiles of RT-SOA: which of runtime, engine and worker are real-time.

use super::class::MAX_CLASSES;

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Profile(u8);

impl Profile {
    /// All of them, in their order.
    pub const ALL: [Self; 5] = [Self(1), Self(2), Self(3), Self(4), Self(5)];

    /// The profile with a number, 1 to 5.
    #[must_use]
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.0 == number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self.0
    }

    /// Whether memory is locked and touched, timers are exact and the processor stays awake.
    #[must_use]
    pub fn has_runtime(self) -> bool {
        self.0 < 5
    }

    /// Whether the engine's thread is real-time.
    #[must_use]
    pub fn has_engine(self) -> bool {
        matches!(self.0, 1 | 3)
    }

    /// Whether the workers' threads are real-time.
    #[must_use]
    pub fn has_workers(self) -> bool {
        matches!(self.0, 1 | 2)
    }

    /// The three as the paper writes them.
    #[must_use]
    pub fn words(self) -> [&'static str; 3] {
        [self.has_runtime(), self.has_engine(), self.has_workers()]
            .map(|is_real_time| if is_real_time { "RT" } else { "std" })
    }
}

/// Priorities of real-time threads (SCHED_FIFO, 1 to 99), the higher the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// Of the engine.
    pub engine: i32,
    /// Of the worker of each class.
    pub workers: [i32; MAX_CLASSES],
}

impl Default for Priorities {
    /// The most urgent worker above the engine, which would else read on while its message waits;
    /// all others below it: with one at the engine's, urgent messages wait before T1 for an engine
    /// that gets no turn, and T2-T1 tells nothing of it.
    fn default() -> Self {
        Self { engine: 60, workers: [70, 50, 45, 40, 35, 30, 25, 20] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_are_the_papers() {
        let words: Vec<String> =
            Profile::ALL.into_iter().map(|profile| profile.words().join("/")).collect();
        assert_eq!(words, ["RT/RT/RT", "RT/std/RT", "RT/RT/std", "RT/std/std", "std/std/std"]);
        assert_eq!(Profile::of(0), None);
        assert_eq!(Profile::of(6), None);
    }

    #[test]
    fn the_engine_is_below_the_first_worker_and_above_the_rest() {
        let Priorities { engine, workers } = Priorities::default();
        assert!(workers[0] > engine && workers[1..].iter().all(|worker| *worker < engine));
        assert!(workers.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
