//! Small statistics of a series.

/// The middle value, or the mean of the two in the middle; none of nothing. Sorts.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(0.5 * (values.get(middle - 1)? + upper))
}

/// The arithmetic mean; none of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean of the means of strata, each stratum with the same weight; none without strata or with
/// an empty one.
pub(super) fn mean_of_means<S: AsRef<[f64]>>(strata: &[S]) -> Option<f64> {
    let means: Option<Vec<f64>> = strata.iter().map(|stratum| mean(stratum.as_ref())).collect();
    mean(&means?)
}

/// Matched-pairs rank-biserial correlation (Kerby 2014): the ranks, by size, of the differences
/// above 0 less those below, by the sum of both. Differences of 0 have no rank; 0 when all are.
pub(super) fn rank_biserial(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() {
        return None;
    }
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let (mut balance, mut total, mut before) = (0.0, 0.0, 0);
    for ties in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        // The mean of the ranks before + 1 to before + ties.
        let rank = before as f64 + (ties.len() as f64 + 1.0) / 2.0;
        balance += rank * ties.iter().map(|d| d.signum()).sum::<f64>();
        total += rank * ties.len() as f64;
        before += ties.len();
    }
    Some(if total > 0.0 { balance / total } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_series() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
        assert_eq!(mean_of_means(&[vec![1.0, 3.0], vec![10.0]]), Some(6.0));
        assert_eq!(mean_of_means::<Vec<f64>>(&[]), None);
    }

    #[test]
    fn rank_biserial_by_hand() {
        assert_eq!(rank_biserial(&[1.0, 2.0, 3.0]), Some(1.0));
        // Ranks 1, 2 and 3 of which 2 is negative: (4 - 2) / 6.
        assert_eq!(rank_biserial(&[1.0, -2.0, 3.0]), Some(1.0 / 3.0));
        // Ranks 1.5, 1.5 and 3: (1.5 - 1.5 + 3) / 6.
        assert_eq!(rank_biserial(&[-1.0, 1.0, 0.0, 2.0]), Some(0.5));
        assert_eq!(rank_biserial(&[0.0, 0.0]), Some(0.0));
        assert_eq!(rank_biserial(&[]), None);
    }
}
