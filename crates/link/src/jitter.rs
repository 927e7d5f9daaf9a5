//! How the delay varies from packet to packet.

use crate::random::{Dice, Purpose, Subject};
use std::f64::consts::TAU;
use std::time::Duration;

/// The shape of the jitter around the delay. A sum below zero counts as no delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Evenly from `delay - jitter` to `delay + jitter`.
    #[default]
    Uniform,
    /// Normal with mean `delay` and standard deviation `jitter`; no draw is further out than 8.6
    /// standard deviations. Its last bits are those of the platform's logarithm and cosine.
    Normal,
}

impl Distribution {
    /// All shapes, for help texts.
    pub const ALL: [Self; 2] = [Self::Uniform, Self::Normal];

    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
        }
    }

    /// One delay drawn for `subject`.
    pub(crate) fn draw(
        self,
        dice: &Dice,
        subject: Subject,
        delay: Duration,
        jitter: Duration,
    ) -> Duration {
        if jitter.is_zero() {
            return delay;
        }
        match self {
            Self::Uniform => {
                let jitter_ns = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX);
                let span = jitter_ns.saturating_mul(2).saturating_add(1);
                let drawn = dice.below(subject, Purpose::JitterRadius, span);
                delay.saturating_add(Duration::from_nanos(drawn)).saturating_sub(jitter)
            }
            Self::Normal => {
                let deviations = normal(dice, subject);
                let offset_s = jitter.as_secs_f64() * deviations.abs();
                let offset = Duration::try_from_secs_f64(offset_s).unwrap_or(Duration::MAX);
                if deviations < 0.0 {
                    delay.saturating_sub(offset)
                } else {
                    delay.saturating_add(offset)
                }
            }
        }
    }
}

/// A standard normal number by the method of Box and Muller (1958).
fn normal(dice: &Dice, subject: Subject) -> f64 {
    // 1 - u lies in (0, 1]: its logarithm is finite.
    let radius = (-2.0 * (1.0 - dice.unit(subject, Purpose::JitterRadius)).ln()).sqrt();
    radius * (TAU * dice.unit(subject, Purpose::JitterAngle)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;

    const DELAY: Duration = Duration::from_millis(100);
    const JITTER: Duration = Duration::from_millis(30);
    const DRAWS: u64 = 100_000;

    fn draws(shape: Distribution) -> Vec<f64> {
        let dice = Dice::new(11, Direction::Ab);
        let subject = |number| Subject { number, is_copy: false };
        let one = |number| shape.draw(&dice, subject(number), DELAY, JITTER).as_secs_f64();
        (0..DRAWS).map(one).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        (mean, (square / values.len() as f64).sqrt())
    }

    #[test]
    fn uniform_fills_its_range_evenly() {
        let mut values = draws(Distribution::Uniform);
        let (mean, deviation) = mean_and_deviation(&values);
        // Four standard errors of the mean; for the deviation 1 % is over five of its own.
        assert!((mean - 0.1).abs() < 4.0 * deviation / (DRAWS as f64).sqrt(), "{mean}");
        let expected = 0.03 / 3.0_f64.sqrt();
        assert!((deviation / expected - 1.0).abs() < 0.01, "{deviation}");
        values.sort_by(f64::total_cmp);
        assert!(values[0] >= 0.07 && values[0] < 0.0701);
        assert!(values[values.len() - 1] <= 0.13 && values[values.len() - 1] > 0.1299);
        // Kolmogorov–Smirnov at 0.1 %: 1.95 / sqrt(n).
        let worst = (0..values.len())
            .map(|i| ((values[i] - 0.07) / 0.06 - i as f64 / DRAWS as f64).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1.95 / (DRAWS as f64).sqrt(), "{worst}");
    }

    #[test]
    fn normal_has_its_moments_and_tails() {
        let values = draws(Distribution::Normal);
        let (mean, deviation) = mean_and_deviation(&values);
        // The mean lies 3.3 deviations above zero: cutting there moves it by 4 us.
        assert!((mean - 0.1).abs() < 4.0 * deviation / (DRAWS as f64).sqrt(), "{mean}");
        assert!((deviation / 0.03 - 1.0).abs() < 0.01, "{deviation}");
        let outside = |z: f64| {
            values.iter().filter(|v| (*v - 0.1).abs() > z * 0.03).count() as f64 / DRAWS as f64
        };
        for (z, expected) in [(1.0, 0.317_31), (2.0, 0.045_50), (3.0, 0.002_70)] {
            let error = 4.0 * (expected * (1.0_f64 - expected) / DRAWS as f64).sqrt();
            assert!((outside(z) - expected).abs() < error, "{z}: {}", outside(z));
        }
    }

    #[test]
    fn no_draw_is_below_zero_or_panics() {
        let dice = Dice::new(1, Direction::Ab);
        for shape in Distribution::ALL {
            for number in 0..1_000 {
                let subject = Subject { number, is_copy: false };
                let long = shape.draw(&dice, subject, Duration::MAX, Duration::MAX);
                let short = shape.draw(&dice, subject, Duration::ZERO, JITTER);
                assert!(long <= Duration::MAX && short <= 9 * JITTER);
            }
        }
    }
}
