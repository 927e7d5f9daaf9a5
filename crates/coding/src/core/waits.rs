//! How long blocks wait for their encoder beyond the processor time that it takes: for a thread,
//! for a processor that others have, and for this side to look at what came of it. A message in no
//! coding waits for none of that.

use std::time::Duration;

/// Blocks that the mean is of, about.
const MAX_WEIGHT: f64 = 8.0;
/// What was seen says half as much after so long: the processor may have less to do by then, and
/// only a coding that is taken shows that.
const HALF_LIFE_S: f64 = 1.0;
/// What it is believed against: no wait at all, as if so many blocks had shown that.
const UNBELIEVING: f64 = 0.5;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    mean_s: f64,
    weight: f64,
    at: Duration,
}

impl Waits {
    /// A block that was ordered at `ordered` is here, and its encoder took `cpu`. How long it
    /// waited.
    pub(crate) fn note(&mut self, now: Duration, ordered: Duration, cpu: Duration) -> Duration {
        let waited = now.saturating_sub(ordered).saturating_sub(cpu);
        let before = self.weight_at(now);
        self.weight = (before + 1.0).min(MAX_WEIGHT);
        self.mean_s += (waited.as_secs_f64() - self.mean_s) / (before + 1.0);
        self.at = now;
        waited
    }

    /// Seconds that the next block is expected to wait.
    pub(crate) fn expected_s(&self, now: Duration) -> f64 {
        let weight = self.weight_at(now);
        self.mean_s * weight / (weight + UNBELIEVING)
    }

    fn weight_at(&self, now: Duration) -> f64 {
        let age_s = now.saturating_sub(self.at).as_secs_f64();
        self.weight * (-age_s / HALF_LIFE_S).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn waits_are_believed_as_they_come_and_for_a_while() {
        let mut waits = Waits::default();
        let near = |a: f64, b: f64| (a - b).abs() < 0.05 * b;
        assert_eq!(waits.expected_s(9 * MS), 0.0);
        for number in 1..40 {
            let now = 10 * number * MS;
            // The first that wait show it at once.
            assert_eq!(waits.note(now, now - 3 * MS, MS), 2 * MS);
            assert!(waits.expected_s(now) > 1.3e-3);
        }
        let last = 390 * MS;
        assert!(near(waits.expected_s(last), 1.9e-3), "{waits:?}");
        // What nobody sees any more is soon not believed.
        let (later, much_later) = (last + 4_000 * MS, last + 12_000 * MS);
        assert!(waits.expected_s(later) < 1.2e-3);
        assert!(waits.expected_s(much_later) < 2e-5);
        // A clock that is coarser than the processor's tells of no wait.
        assert_eq!(waits.note(much_later, much_later, MS), Duration::ZERO);
        assert!(waits.expected_s(much_later) < 1e-5);
    }
}
