use super::*;
use crate::Direction;

const DELAY: Duration = Duration::from_millis(100);
const JITTER: Duration = Duration::from_millis(30);
const DRAWS: u64 = 100_000;

fn draws(shape: Distribution) -> Vec<f64> {
    correlated(shape, 0.0, 11)
}

fn correlated(distribution: Distribution, jitter_correlation: f64, seed: u64) -> Vec<f64> {
    let config = ChannelConfig {
        delay: DELAY,
        jitter: JITTER,
        distribution,
        jitter_correlation,
        ..ChannelConfig::default()
    };
    let (mut process, dice) = (JitterProcess::default(), Dice::new(seed, Direction::Ab));
    let subject = |number| Subject { number, is_copy: false };
    (0..DRAWS).map(|n| process.delay(&config, &dice, subject(n)).as_secs_f64()).collect()
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

/// Mean and deviation by midpoints over the shares.
fn moments(shape: Distribution) -> (f64, f64) {
    const PARTS: u32 = 20_000;
    let points = (0..PARTS).map(|part| shape.quantile((f64::from(part) + 0.5) / f64::from(PARTS)));
    let (sum, squares) = points.fold((0.0, 0.0), |(s, q), z| (s + z, q + z * z));
    (sum / f64::from(PARTS), (squares / f64::from(PARTS)).sqrt())
}

#[test]
fn shapes_have_the_delay_as_their_mean_and_the_jitter_as_their_deviation() {
    for shape in [Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal] {
        let (mean, deviation) = moments(shape);
        assert!(
            mean.abs() < 1e-4 && (deviation - 1.0).abs() < 2e-4,
            "{shape:?} {mean} {deviation}"
        );
    }
    let (mean, deviation) = moments(Distribution::Uniform);
    assert!(mean.abs() < 1e-9 && (deviation - 1.0 / 3.0_f64.sqrt()).abs() < 1e-6);
}

#[test]
fn pareto_begins_and_ends_where_its_formula_says() {
    let at = |share| Distribution::Pareto.quantile(share);
    let z = |x: f64| (x - PARETO_MEAN) / PARETO_DEVIATION;
    assert!((at(0.0) - z(1.0)).abs() < 1e-9 && (at(1.0) - z(4.5)).abs() < 1e-9);
    assert!((at(0.0) + 0.772).abs() < 5e-4 && (at(1.0) - 4.913).abs() < 5e-4);
    // P(X > x) = x^-3: above 2 lies an eighth.
    assert!((at(7.0 / 8.0) - z(2.0)).abs() < 1e-9);
}

#[test]
fn a_correlated_uniform_jitter_stays_in_its_range() {
    let values = correlated(Distribution::Uniform, 0.9, 3);
    assert!(values.iter().all(|value| (0.07..=0.13).contains(value)));
}

#[test]
fn a_correlation_of_one_repeats_the_first_draw() {
    let values = correlated(Distribution::Normal, 1.0, 5);
    assert!(values.iter().all(|value| *value == values[0]));
    assert!(values[0] != correlated(Distribution::Normal, 1.0, 6)[0]);
}

#[test]
fn no_draw_is_below_zero_or_panics() {
    let dice = Dice::new(1, Direction::Ab);
    for (distribution, jitter_correlation) in
        Distribution::ALL.into_iter().flat_map(|shape| [(shape, 0.0), (shape, 0.5)])
    {
        let plain = ChannelConfig { distribution, jitter_correlation, ..ChannelConfig::default() };
        let long = ChannelConfig { delay: Duration::MAX, jitter: Duration::MAX, ..plain.clone() };
        let short = ChannelConfig { jitter: JITTER, ..plain };
        let mut process = JitterProcess::default();
        for number in 0..1_000 {
            let subject = Subject { number, is_copy: number % 2 == 0 };
            assert!(process.delay(&long, &dice, subject) <= Duration::MAX);
            assert!(process.delay(&short, &dice, subject) <= 9 * JITTER);
        }
    }
}
