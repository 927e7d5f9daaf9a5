//! Intervals of 95 % by resampling, with a correction for few values.
//!
//! The percentile interval is too narrow for few values: resampling n values spreads as n - 1 of
//! them do, and has not Student's tails. So the percentiles lie further out, where that interval
//! for a mean of normal values would be Student's (Hesterberg 2015, "expanded percentiles").

use super::chance::Chance;

/// How often it is resampled.
const RESAMPLES: usize = 2000;
/// Fewest values for an interval: below that the points themselves say more.
pub(crate) const MIN_VALUES: usize = 6;
/// Fewest values above the number of strata: Student's quantile below is good from here on.
const MIN_FREEDOM: usize = 3;

/// The interval of a statistic of strata, values drawn with replacement within each stratum. None
/// with too few values, or when the statistic is none for a resample.
pub(super) fn interval<S: AsRef<[f64]>>(
    strata: &[S],
    chance: &mut Chance,
    statistic: impl Fn(&mut [Vec<f64>]) -> Option<f64>,
) -> Option<(f64, f64)> {
    let values = strata.iter().map(|stratum| stratum.as_ref().len()).sum::<usize>();
    let freedom = values.checked_sub(strata.len())?;
    if values < MIN_VALUES || freedom < MIN_FREEDOM {
        return None;
    }
    let mut drawn: Vec<Vec<f64>> = strata.iter().map(|stratum| stratum.as_ref().to_vec()).collect();
    let mut found = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for (drawn, stratum) in drawn.iter_mut().zip(strata) {
            let stratum = stratum.as_ref();
            drawn.fill_with(|| stratum[chance.below(stratum.len())]);
        }
        found.push(statistic(&mut drawn)?);
    }
    found.sort_unstable_by(f64::total_cmp);
    let tail = tail(values, freedom);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to RESAMPLES")]
    let out = ((tail * RESAMPLES as f64) as usize).min(RESAMPLES / 2);
    Some((*found.get(out)?, *found.get(RESAMPLES - 1 - out)?))
}

/// Share of resamples left out at each end.
fn tail(values: usize, freedom: usize) -> f64 {
    let wider = (values as f64 / freedom as f64).sqrt();
    normal_tail(wider * student(freedom as f64))
}

/// Student's 97.5 % quantile by Fisher's expansion (Abramowitz, Stegun 26.7.5): within 1 % from 3
/// degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let z: f64 = 1.959_964;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// The normal distribution above `x` >= 0 (Abramowitz, Stegun 26.2.17, to 7.5e-8).
fn normal_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let series = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    density * series.iter().fold(0.0, |sum, factor| (sum + factor) * t)
}

#[cfg(test)]
mod tests {
    use super::super::series::{mean_of_means, median};
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        for (freedom, expected) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042)] {
            let found = student(freedom);
            assert!((found - expected).abs() < 0.01 * expected, "{freedom}: {found}");
        }
        assert!((normal_tail(1.959_964) - 0.025).abs() < 1e-6);
        assert!((normal_tail(2.816) - 0.002_431).abs() < 1e-5);
    }

    #[test]
    fn too_few_values_have_no_interval() {
        let mut chance = Chance::new("few", "");
        assert_eq!(interval(&[vec![1.0; 5]], &mut chance, |s| median(&mut s[0])), None);
        assert_eq!(interval(&[[1.0]; 6], &mut chance, |s| mean_of_means(s)), None);
        assert_eq!(interval(&[vec![2.0; 6]], &mut chance, |s| median(&mut s[0])), Some((2.0, 2.0)));
        assert_eq!(interval::<Vec<f64>>(&[], &mut chance, |s| mean_of_means(s)), None);
    }

    /// Name, sizes of the strata, what makes a value, the truth, and whether medians are asked.
    type Case = (&'static str, &'static [usize], fn(&mut Chance) -> f64, f64, bool);

    /// How often an interval holds what it should, out of so many made-up samples.
    fn coverage(sizes: &[usize], make: fn(&mut Chance) -> f64, truth: f64, median_of: bool) -> f64 {
        const SAMPLES: u32 = 1000;
        let mut chance = Chance::new("coverage", &format!("{sizes:?}"));
        let mut held = 0_u32;
        for _ in 0..SAMPLES {
            let strata: Vec<Vec<f64>> =
                sizes.iter().map(|n| (0..*n).map(|_| make(&mut chance)).collect()).collect();
            let (low, high) = interval(&strata, &mut chance, |drawn| match (median_of, drawn) {
                (true, [first, second]) => Some(median(second)? - median(first)?),
                (true, [only]) => median(only),
                (_, drawn) => mean_of_means(drawn),
            })
            .unwrap();
            held += u32::from(low <= truth && truth <= high);
        }
        f64::from(held) / f64::from(SAMPLES)
    }

    /// Twelve uniform numbers: nearly normal, with mean and median 0 and variance 1.
    fn normal(chance: &mut Chance) -> f64 {
        (0..12).map(|_| uniform(chance)).sum::<f64>() - 6.0
    }

    fn uniform(chance: &mut Chance) -> f64 {
        (chance.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Skewed as times with losses are, with median 1.
    fn skewed(chance: &mut Chance) -> f64 {
        (0.7 * normal(chance)).exp()
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // 1000 samples: a standard error of 0.7 %; the tolerance is some three of them and what
        // is known to be left of the error at six values.
        let cases: [Case; 7] = [
            ("median of 6", &[6], normal, 0.0, true),
            ("median of 6 skewed", &[6], skewed, 1.0, true),
            ("median of 12 skewed", &[12], skewed, 1.0, true),
            ("difference of medians", &[6, 6], skewed, 0.0, true),
            ("mean of 6", &[6], normal, 0.0, false),
            ("mean of 12", &[12], normal, 0.0, false),
            ("mean of 3 x 6", &[6, 6, 6], normal, 0.0, false),
        ];
        for (name, sizes, make, truth, median_of) in cases {
            let found = coverage(sizes, make, truth, median_of);
            println!("{name}: {found}");
            assert!((0.92..=0.99).contains(&found), "{name}: {found}");
        }
    }
}
