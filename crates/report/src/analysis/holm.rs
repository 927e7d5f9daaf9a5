//! Correction for the number of tests (Holm 1979): holds however the tests depend on each other,
//! as they do here, since all compare with the same default.

/// Adjusted p values at the places of the given ones; places without a test do not count.
pub(super) fn adjusted(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(at, p)| p.map(|p| (at, p))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut out = vec![None; p.len()];
    let mut greatest = 0.0_f64;
    for (rank, (at, p)) in order.iter().enumerate() {
        greatest = greatest.max((order.len() - rank) as f64 * p).min(1.0);
        out[*at] = Some(greatest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::adjusted;

    #[test]
    fn four_tests_by_hand() {
        // In order 0.005 × 4, 0.01 × 3, 0.03 × 2, and 0.04 × 1 raised to the one before.
        let p = [Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)];
        let expected = [Some(0.03), None, Some(0.06), Some(0.06), Some(0.02)];
        for (found, expected) in adjusted(&p).into_iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12),
                (found, expected) => assert_eq!(found, expected),
            }
        }
        assert_eq!(adjusted(&[Some(0.9), Some(0.8)]), [Some(1.0), Some(1.0)]);
        assert!(adjusted(&[]).is_empty());
    }
}
