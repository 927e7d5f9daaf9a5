//! Fisher's exact test of two counts, one-sided.

/// The chance, if both fail alike, that at least so many of all the failures fall to the second:
/// (failures, out of) each.
pub(super) fn more(first: (usize, usize), second: (usize, usize)) -> f64 {
    let failures = first.0 + second.0;
    let all = first.1 + second.1;
    let logs = ln_factorials(all);
    let ln_choose = |n: usize, k: usize| logs[n] - logs[k] - logs[n - k];
    if second.0 > second.1 || first.0 > first.1 {
        return 1.0;
    }
    let most = failures.min(second.1);
    let chance = |k: usize| {
        let ways = ln_choose(second.1, k) + ln_choose(first.1, failures - k);
        (ways - ln_choose(all, failures)).exp()
    };
    (second.0..=most).map(chance).sum::<f64>().min(1.0)
}

/// Logarithms of the factorials up to that of `most`.
fn ln_factorials(most: usize) -> Vec<f64> {
    let mut logs = vec![0.0; most + 1];
    for n in 1..=most {
        logs[n] = logs[n - 1] + (n as f64).ln();
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::more;

    #[test]
    fn tables_of_the_textbooks() {
        // The lady tasting tea (Fisher 1935): three of four cups right, p = 17/70.
        assert!((more((1, 4), (3, 4)) - 17.0 / 70.0).abs() < 1e-12);
        assert!((more((0, 4), (4, 4)) - 1.0 / 70.0).abs() < 1e-12);
        // Convictions of twins of criminals (Fisher 1934): 2 of 17 against 10 of 13, p = 0.000465.
        assert!((more((2, 17), (10, 13)) - 0.000_465).abs() < 1e-6);
        assert!((more((0, 10), (0, 10)) - 1.0).abs() < 1e-12);
        assert!((more((0, 0), (0, 0)) - 1.0).abs() < 1e-12);
        assert!((more((5, 10), (0, 10)) - 1.0).abs() < 1e-12);
        assert!(more((0, 396), (40, 396)) < 1e-10);
    }
}
