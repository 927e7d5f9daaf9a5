//! A tool of the laboratory: a processor that seems slower than it is. Work completes later by a
//! factor, and the thread waits for it instead of burning: so many slow pairs run side by side.

use std::time::Duration;

use decide::arm::Speed;

/// How many times slower; read by the pair, written by `longwire lab run`.
const VARIABLE: &str = "LONGWIRE_CODEC_SLOWDOWN";
/// Slower than this is taken for a mistake.
const MAX_SLOWDOWN: f64 = 1_000.0;

/// What encodes and decodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Processor {
    slowdown: f64,
}

impl Processor {
    /// This machine's, or as much slower as the environment says.
    pub(crate) fn of_environment() -> Self {
        match std::env::var(VARIABLE) {
            Ok(text) => Self::parse(&text).unwrap_or_else(|| {
                tracing::error!("{VARIABLE}='{text}' is no factor from 1 to {MAX_SLOWDOWN}");
                Self { slowdown: 1.0 }
            }),
            Err(_) => Self { slowdown: 1.0 },
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let slowdown = text.trim().parse().ok()?;
        (1.0..=MAX_SLOWDOWN).contains(&slowdown).then_some(Self { slowdown })
    }

    /// What of this machine's speed is left.
    pub(crate) fn speed(self, speed: Speed) -> Speed {
        speed.times(self.slowdown)
    }

    /// The time that it takes for what took `time` here.
    pub(super) fn time(self, time: Duration) -> Duration {
        time.mul_f64(self.slowdown)
    }

    /// Waits until it would be done with what took `time` here.
    pub(super) fn wait(self, time: Duration) {
        let rest = self.time(time).saturating_sub(time);
        if !rest.is_zero() {
            // sleep: passing time is what a slower processor is.
            std::thread::sleep(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn only_factors_are_taken() {
        for text in ["0.9", "1001", "NaN", "-4", "fast", ""] {
            assert_eq!(Processor::parse(text), None, "{text}");
        }
        let slow = Processor::parse(" 16 ").unwrap();
        assert_eq!(slow.time(Duration::from_millis(10)), Duration::from_millis(160));
        let speed = slow.speed(Speed { fixed_s: 0.5, per_byte_s: 0.25 });
        assert_eq!((speed.fixed_s, speed.per_byte_s), (8.0, 4.0));
    }

    #[test]
    fn work_is_done_as_much_later_and_a_true_processor_waits_for_nothing() {
        let took = Duration::from_millis(5);
        let begun = Instant::now();
        Processor { slowdown: 4.0 }.wait(took);
        assert!(begun.elapsed() >= 3 * took);
        let same = Processor { slowdown: 1.0 };
        assert_eq!(same.time(took), took);
    }
}
