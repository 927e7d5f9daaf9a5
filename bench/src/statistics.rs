//! The statistics that judge measurements.

use record::fidelity::ErrorFigures;

/// Upper edges of the histogram of errors, in microseconds.
const EDGES_US: [f64; 10] =
    [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];

/// Order statistics of errors in nanoseconds, of which `sent` packets should have made one each.
#[must_use]
pub fn error_figures(errors_ns: &[i64], sent: usize) -> ErrorFigures {
    let mut absolute: Vec<u64> = errors_ns.iter().map(|error| error.unsigned_abs()).collect();
    absolute.sort_unstable();
    let (Some(least), Some(greatest)) = (errors_ns.iter().min(), absolute.last()) else {
        return ErrorFigures { sent, ..ErrorFigures::default() };
    };
    let us = |ns: u64| ns as f64 / 1e3;
    ErrorFigures {
        sent,
        measured: absolute.len(),
        least_us: *least as f64 / 1e3,
        p50_us: us(nearest_rank(&absolute, 500)),
        p99_us: us(nearest_rank(&absolute, 990)),
        p999_us: us(nearest_rank(&absolute, 999)),
        max_us: us(*greatest),
        bins: bins(&absolute),
    }
}

/// The least value that `per_mille` in 1000 of `sorted` do not exceed; `sorted` is not empty.
fn nearest_rank(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1]
}

fn bins(sorted_ns: &[u64]) -> Vec<(f64, u64)> {
    let greatest = sorted_ns.last().map_or(0.0, |ns| *ns as f64 / 1e3);
    let below = EDGES_US.into_iter().filter(|edge| *edge < greatest).chain([greatest]);
    let mut counted = 0;
    below
        .map(|edge| {
            let upto = sorted_ns.partition_point(|ns| *ns as f64 / 1e3 <= edge);
            let bin = (edge, (upto - counted) as u64);
            counted = upto;
            bin
        })
        .collect()
}

/// The middle value, or the mean of the two in the middle; 0 for none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// The standard normal quantile of `1 - tail`, for small tails: Abramowitz and Stegun 26.2.23,
/// whose error is below 4.5e-4.
#[must_use]
pub fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

/// Student's quantile from the normal one (Cornish and Fisher), for 30 degrees of freedom and more.
fn student_quantile(tail: f64, freedom: f64) -> f64 {
    let z = normal_quantile(tail);
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom)
}

/// Half the width of the confidence interval of a share of independent trials.
#[must_use]
pub fn share_half_width(expected: f64, trials: usize, tail: f64) -> f64 {
    normal_quantile(tail) * (expected * (1.0 - expected) / trials as f64).sqrt()
}

/// The same for trials that depend on their neighbours, from the means of `batches` batches.
#[must_use]
pub fn batch_half_width(hits: &[bool], batches: usize, tail: f64) -> f64 {
    let size = (hits.len() / batches).max(1);
    let share = |batch: &[bool]| batch.iter().filter(|hit| **hit).count() as f64 / size as f64;
    let means: Vec<f64> = hits.chunks_exact(size).map(share).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let square = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    student_quantile(tail, count - 1.0) * (square / (count - 1.0) / count).sqrt()
}

/// The greatest distance between the values' distribution and `distribution`: Kolmogorov and
/// Smirnov's statistic.
#[must_use]
pub fn distance(values: &[f64], distribution: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let at = |(rank, value): (usize, &f64)| {
        let expected = distribution(*value);
        let (below, upto) = (rank as f64 / count, (rank + 1) as f64 / count);
        (expected - below).abs().max((upto - expected).abs())
    };
    sorted.iter().enumerate().map(at).fold(0.0, f64::max)
}

/// The distance that true values exceed with probability `alpha` (asymptotic).
#[must_use]
pub fn distance_limit(count: usize, alpha: f64) -> f64 {
    (-(alpha / 2.0).ln() / 2.0).sqrt() / (count as f64).sqrt()
}

/// The standard normal distribution: Abramowitz and Stegun 26.2.17, whose error is below 7.5e-8.
#[must_use]
pub fn normal_distribution(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let terms = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = terms.iter().rev().fold(0.0, |sum, term| t * (sum + term));
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z >= 0.0 { 1.0 - density * sum } else { density * sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn percentiles_are_of_the_absolute_error_and_bins_hold_every_packet() {
        let mut errors: Vec<i64> = (1..=1000).map(|us| us * 1000).collect();
        errors[0] = -1_000_000_000;
        let figures = error_figures(&errors, 1002);
        assert_eq!((figures.sent, figures.measured), (1002, 1000));
        assert_eq!((figures.least_us, figures.max_us), (-1e6, 1e6));
        assert_eq!((figures.p50_us, figures.p99_us, figures.p999_us), (501.0, 991.0, 1000.0));
        assert_eq!(figures.bins.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert_eq!(figures.bins[0], (10.0, 9));
        assert_eq!(figures.bins.last(), Some(&(1e6, 1)));
        assert_eq!(error_figures(&[], 3).measured, 0);
    }

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn quantiles_and_distributions_agree_with_tables() {
        for (tail, expected) in [(0.025, 1.959_96), (0.005, 2.575_83), (0.0001, 3.719_02)] {
            assert!((normal_quantile(tail) - expected).abs() < 5e-4);
        }
        for (tail, expected) in [(0.025, 2.009_6), (0.0005, 3.500_4)] {
            assert!((student_quantile(tail, 49.0) - expected).abs() < 2e-3);
        }
        for (z, expected) in [(0.0, 0.5), (1.0, 0.841_344_7), (-2.0, 0.022_750_1)] {
            assert!((normal_distribution(z) - expected).abs() < 1e-6, "{z}");
        }
        // Smirnov's table: 1.36 / sqrt(n) at 5 %, 1.63 / sqrt(n) at 1 %.
        assert!((distance_limit(100, 0.05) - 0.1358).abs() < 1e-4);
        assert!((distance_limit(10_000, 0.01) - 0.016_28).abs() < 1e-5);
    }

    #[test]
    fn a_distribution_is_distinguished_from_one_that_is_a_twentieth_wider() {
        let mut random = Random::new(9);
        let unit: Vec<f64> =
            (0..5000).map(|_| (random.bits() >> 11) as f64 / (1_u64 << 53) as f64).collect();
        let limit = distance_limit(5000, 0.001);
        assert!(distance(&unit, |x| x.clamp(0.0, 1.0)) < limit);
        assert!(distance(&unit, |x| (x / 1.05).clamp(0.0, 1.0)) > limit);
    }

    #[test]
    fn neighbours_that_agree_widen_the_interval() {
        let mut random = Random::new(3);
        let alone: Vec<bool> = (0..5000).map(|_| random.bits().is_multiple_of(5)).collect();
        let in_tens: Vec<bool> = alone.iter().take(500).flat_map(|hit| [*hit; 10]).collect();
        let (narrow, wide) =
            (batch_half_width(&alone, 50, 0.005), batch_half_width(&in_tens, 50, 0.005));
        // Ten alike in a row are worth one: the square root of ten wider.
        assert!((2.0..5.0).contains(&(wide / narrow)), "{narrow} {wide}");
        let independent = share_half_width(0.2, 5000, 0.005);
        assert!((0.7..1.4).contains(&(narrow / independent)), "{narrow} {independent}");
    }
}
