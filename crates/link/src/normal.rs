//! The standard normal distribution.

use std::f64::consts::TAU;

/// Beyond this many deviations the share is 0 or 1 to the last bit that matters here.
const MAX_DEVIATIONS: f64 = 8.5;
/// More terms than the series needs within [`MAX_DEVIATIONS`].
const MAX_TERMS: u32 = 200;
/// Halvings after which an interval of twice [`MAX_DEVIATIONS`] is below 1e-14.
const HALVINGS: u32 = 52;

/// The share of standard normal numbers below `deviations`, to an absolute error of about 1e-15:
/// the series of Abramowitz and Stegun 26.2.11.
pub(crate) fn share_below(deviations: f64) -> f64 {
    if deviations.abs() >= MAX_DEVIATIONS {
        return if deviations > 0.0 { 1.0 } else { 0.0 };
    }
    let square = deviations * deviations;
    let (mut term, mut sum) = (deviations, deviations);
    for k in 1..MAX_TERMS {
        term *= square / f64::from(2 * k + 1);
        sum += term;
        if term.abs() <= sum.abs() * f64::EPSILON / 4.0 {
            break;
        }
    }
    (0.5 + (-square / 2.0).exp() / TAU.sqrt() * sum).clamp(0.0, 1.0)
}

/// The deviations below which `share` of standard normal numbers lie, by halving.
pub(crate) fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-MAX_DEVIATIONS, MAX_DEVIATIONS);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if share_below(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_agree_with_tables() {
        // Abramowitz and Stegun, table 26.1.
        for (deviations, expected) in [
            (0.0, 0.5),
            (0.5, 0.691_462_461_274_013),
            (1.0, 0.841_344_746_068_543),
            (2.0, 0.977_249_868_051_821),
            (-3.0, 0.001_349_898_031_630),
            (4.0, 0.999_968_328_758_167),
        ] {
            let share = share_below(deviations);
            assert!((share - expected).abs() < 1e-14, "{deviations}: {share}");
        }
        assert_eq!((share_below(-9.0), share_below(f64::INFINITY)), (0.0, 1.0));
        assert!(share_below(8.4) <= 1.0 && share_below(-8.4) >= 0.0);
    }

    #[test]
    fn a_quantile_undoes_the_share() {
        for share in [1e-9, 0.001, 0.2, 0.5, 0.9, 0.999_999] {
            assert!((share_below(quantile(share)) - share).abs() < 1e-13, "{share}");
        }
        assert!(quantile(0.0) < -8.0 && quantile(1.0) > 8.0);
    }
}
