//! How the delay varies from packet to packet.

use crate::ChannelConfig;
use crate::normal::{quantile, share_below};
use crate::random::{Dice, Purpose, Subject};
use std::f64::consts::TAU;
use std::time::Duration;

/// The shape of the jitter around the delay. A sum below zero counts as no delay.
///
/// `pareto` and `paretonormal` have the shapes of the tables of these names that iproute2 makes for
/// netem, moved and stretched so that `delay` is their mean and `jitter` their standard deviation,
/// which those of iproute2 miss (0.82 and −0.03 for pareto, 0.83 and −0.02 for paretonormal). Their
/// last bits, and those of `normal`, are those of the platform's logarithm, cosine and powers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Evenly from `delay - jitter` to `delay + jitter`.
    #[default]
    Uniform,
    /// Normal with mean `delay` and standard deviation `jitter`; no draw is further out than 8.6
    /// standard deviations.
    Normal,
    /// Pareto with exponent 3, many short and few long delays: `X = v^(-1/3)` for `v` uniform in
    /// (0, 1], cut at 9/2 (where iproute2's table ends), less its mean 239/162 and over its
    /// deviation 0.6156. From 0.77 deviations below the mean to 4.91 above.
    Pareto,
    /// A quarter normal and three quarters pareto, both at the same quantile, as iproute2 adds
    /// them: `N/4 + X - 3/2`, less its mean −2/81 and over its deviation 0.8350.
    ParetoNormal,
}

/// The largest value of `X`.
const MAX_PARETO: f64 = 4.5;
/// Mean of `X`: `3/2 - 1 / (2 · (9/2)²)`.
const PARETO_MEAN: f64 = 239.0 / 162.0;
/// Standard deviation of `X`: the root of `3 - 2 / (9/2) - mean²`.
const PARETO_DEVIATION: f64 = 0.615_645_974_961_9;
/// Mean of `N/4 + X - 3/2`.
const PARETO_NORMAL_MEAN: f64 = -2.0 / 81.0;
/// Its standard deviation: the root of `1/16 + var X + cov(N, X) / 2`, by quadrature.
const PARETO_NORMAL_DEVIATION: f64 = 0.834_952_822_747_4;

impl Distribution {
    /// All shapes, for help texts.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Normal, Self::Pareto, Self::ParetoNormal];

    /// The name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
            Self::ParetoNormal => "paretonormal",
        }
    }

    /// How far from `delay`, in units of `jitter`, the draw lies that `share` (0 to 1) of all draws
    /// lie below.
    #[must_use]
    pub fn quantile(self, share: f64) -> f64 {
        self.offset(quantile(share))
    }

    /// The offset in units of `jitter` at the quantile of a standard normal number.
    fn offset(self, normal: f64) -> f64 {
        match self {
            Self::Uniform => 2.0 * share_below(normal) - 1.0,
            Self::Normal => normal,
            Self::Pareto => (pareto(normal) - PARETO_MEAN) / PARETO_DEVIATION,
            Self::ParetoNormal => {
                let sum = normal / 4.0 + pareto(normal) - 1.5;
                (sum - PARETO_NORMAL_MEAN) / PARETO_NORMAL_DEVIATION
            }
        }
    }
}

/// `X` of [`Distribution::Pareto`] at the quantile of a standard normal number.
fn pareto(normal: f64) -> f64 {
    share_below(-normal).powf(-1.0 / 3.0).min(MAX_PARETO)
}

/// The state that delays depend on.
///
/// With a correlation `c` above 0, standard normal numbers follow each other by
/// `g = c · g' + √(1 - c²) · e` with `g'` of the packet before and `e` fresh: a stationary process
/// with autocorrelation `c^k` at lag `k`. Each is mapped to the shape by its quantile (a Gaussian
/// copula), so that the shape stays as it is set. netem mixes uniform numbers in the shares `c` and
/// `1 - c` instead, which narrows the shape: at 50 % to 0.58 of its deviation.
#[derive(Clone, Copy, Default)]
pub(crate) struct JitterProcess {
    before: Option<f64>,
}

impl JitterProcess {
    /// The delay of the next packet; each call is a step.
    pub(crate) fn delay(
        &mut self,
        config: &ChannelConfig,
        dice: &Dice,
        subject: Subject,
    ) -> Duration {
        let (delay, jitter) = (config.delay, config.jitter);
        if jitter.is_zero() {
            return delay;
        }
        let correlation = config.jitter_correlation.clamp(0.0, 1.0);
        if correlation > 0.0 {
            let fresh = normal(dice, subject);
            let rest = (1.0 - correlation * correlation).sqrt();
            let number = self.before.map_or(fresh, |before| correlation * before + rest * fresh);
            self.before = Some(number);
            return shifted(delay, jitter, config.distribution.offset(number));
        }
        self.before = None;
        if config.distribution == Distribution::Uniform {
            let jitter_ns = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX);
            let span = jitter_ns.saturating_mul(2).saturating_add(1);
            let drawn = dice.below(subject, Purpose::JitterRadius, span);
            return delay.saturating_add(Duration::from_nanos(drawn)).saturating_sub(jitter);
        }
        shifted(delay, jitter, config.distribution.offset(normal(dice, subject)))
    }
}

/// The delay moved by `offset` times the jitter, not below zero.
fn shifted(delay: Duration, jitter: Duration, offset: f64) -> Duration {
    let distance_s = jitter.as_secs_f64() * offset.abs();
    let distance = Duration::try_from_secs_f64(distance_s).unwrap_or(Duration::MAX);
    if offset < 0.0 { delay.saturating_sub(distance) } else { delay.saturating_add(distance) }
}

/// A standard normal number by the method of Box and Muller (1958).
fn normal(dice: &Dice, subject: Subject) -> f64 {
    // 1 - u lies in (0, 1]: its logarithm is finite.
    let radius = (-2.0 * (1.0 - dice.unit(subject, Purpose::JitterRadius)).ln()).sqrt();
    radius * (TAU * dice.unit(subject, Purpose::JitterAngle)).cos()
}

#[cfg(test)]
mod tests;
