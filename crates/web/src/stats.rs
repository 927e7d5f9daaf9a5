//! A few runs in two numbers: the median, and where that of all runs is.

/// The median of sorted values.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) =
        (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

/// The interval between two of the sorted values that has the median in it with a probability of
/// 95 % or more, whatever the distribution is; `None` with fewer than six values.
///
/// The median is below the k-th of n values with the probability that fewer than k of n tosses of
/// a coin are heads (David and Nagaraja, Order Statistics, section 7.1).
#[must_use]
pub fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    /// What may be left out at each end.
    const TAIL: f64 = 0.025;
    let count = i32::try_from(sorted.len()).ok()?;
    // By logarithms: 2 to the minus 1,075 is no number any more.
    let (mut below, mut log, mut place) = (0.0, -f64::from(count) * std::f64::consts::LN_2, 0);
    while below + log.exp() <= TAIL && place < count {
        below += log.exp();
        log += (f64::from(count - place) / f64::from(place + 1)).ln();
        place += 1;
    }
    let place = usize::try_from(place).ok()?.checked_sub(1)?;
    Some((*sorted.get(place)?, *sorted.get(sorted.len() - 1 - place)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&values(5)), None);
        // From tables of the sign test: 6 values 1..6, 10 values 2..9, 20 values 6..15.
        for (count, low, high) in [(6, 1.0, 6.0), (8, 1.0, 8.0), (10, 2.0, 9.0), (20, 6.0, 15.0)] {
            assert_eq!(interval(&values(count)), Some((low, high)), "{count}");
        }
        // By whole numbers of any length.
        for (count, low) in [(1074, 505.0), (1075, 505.0), (5000, 2431.0)] {
            let high = f64::from(count) + 1.0 - low;
            assert_eq!(interval(&values(count)), Some((low, high)), "{count}");
        }
        assert_eq!(median(&values(4)), Some(2.5));
        assert_eq!(median(&values(5)), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
