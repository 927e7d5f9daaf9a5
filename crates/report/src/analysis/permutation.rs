//! Sign-flip permutation tests of paired differences.
//!
//! If a setting does nothing, then which of two paired runs had it is a matter of the label, and
//! each difference could as well have had the other sign. So the p value is the share of all
//! assignments of signs whose sum is at least as far from 0 as the one that was seen.

use super::chance::Chance;

/// Up to so many pairs all patterns of signs are tried: 2^20 sums take some milliseconds.
const MAX_EXACT_PAIRS: usize = 20;
/// Patterns drawn beyond that: p of 0.05 is then known to ±0.001.
const DRAWS: u32 = 200_000;
/// Sums that differ by less than this share of the largest possible are taken as equal, as they
/// were added up in different orders.
const TIE: f64 = 1e-9;

/// The share of sign patterns whose sum is at least as far from 0.
pub(super) fn two_sided(terms: &[f64], chance: &mut Chance) -> Option<f64> {
    let least = terms.iter().sum::<f64>().abs() - slack(terms);
    share(terms, chance, |sum| sum.abs() >= least)
}

/// The share of sign patterns whose sum is at least as great.
pub(super) fn one_sided(terms: &[f64], chance: &mut Chance) -> Option<f64> {
    let least = terms.iter().sum::<f64>() - slack(terms);
    share(terms, chance, |sum| sum >= least)
}

/// The fewest pairs that can be surprising at this level: all with one sign, either way.
pub(super) fn pairs_min(p: f64) -> usize {
    (1..)
        .find(|pairs| 2.0_f64.powi(1 - pairs) < p)
        .map_or(0, |pairs: i32| pairs.unsigned_abs() as usize)
}

fn slack(terms: &[f64]) -> f64 {
    TIE * terms.iter().map(|term| term.abs()).sum::<f64>()
}

/// The share of sign patterns whose sum is `extreme`; none without terms. A drawn share counts what
/// was seen as one of the draws, so that it is never 0 (Phipson, Smyth 2010).
fn share(terms: &[f64], chance: &mut Chance, extreme: impl Fn(f64) -> bool) -> Option<f64> {
    if terms.is_empty() {
        return None;
    }
    let tables: Vec<[f64; 256]> = terms.chunks(8).map(signed_sums).collect();
    if terms.len() <= MAX_EXACT_PAIRS {
        return exact(&tables, terms.len(), extreme);
    }
    let mut words = vec![0; terms.len().div_ceil(64)];
    let mut found = 1_u32;
    for _ in 0..DRAWS {
        words.fill_with(|| chance.bits());
        found += u32::from(extreme(sum(&tables, &words)));
    }
    Some(f64::from(found) / f64::from(DRAWS + 1))
}

/// The share among all patterns: of the first eight terms, for each pattern of the others. Signs of
/// terms that are not there change nothing, so that each pattern counts equally often.
fn exact(tables: &[[f64; 256]], terms: usize, extreme: impl Fn(f64) -> bool) -> Option<f64> {
    let (first, others) = tables.split_first()?;
    let rests = 1_u64 << terms.saturating_sub(8);
    let found = |rest: u64| {
        let rest = sum(others, &[rest]);
        first.iter().filter(|sum| extreme(rest + **sum)).count()
    };
    Some((0..rests).map(found).sum::<usize>() as f64 / (rests * 256) as f64)
}

/// The sums of up to eight terms for every pattern of signs: an eighth of the additions later.
fn signed_sums(terms: &[f64]) -> [f64; 256] {
    std::array::from_fn(|pattern| {
        let signed = |(at, term): (usize, &f64)| if pattern >> at & 1 == 1 { *term } else { -term };
        terms.iter().enumerate().map(signed).sum()
    })
}

/// The sum for the pattern of signs in the bits of `words`.
fn sum(tables: &[[f64; 256]], words: &[u64]) -> f64 {
    let octets = words.iter().flat_map(|word| word.to_le_bytes());
    tables.iter().zip(octets).map(|(table, octet)| table[usize::from(octet)]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(terms: &[f64]) -> f64 {
        two_sided(terms, &mut Chance::new("test", "")).unwrap()
    }

    #[test]
    fn small_cases_by_hand() {
        assert_eq!(two(&[1.0, 2.0, 0.5, 3.0, 0.1, 4.0]), 2.0 / 64.0);
        // |±1 ±2 ±3| >= 4: 6, 4 (the 1 turned), and their mirror images, out of 8.
        assert_eq!(two(&[-1.0, 2.0, 3.0]), 4.0 / 8.0);
        assert_eq!(two(&[0.0, 0.0]), 1.0);
        assert_eq!(two(&[0.3, -0.3]), 1.0);
        assert_eq!(two(&[1.0; 10]), 2.0 / 1024.0);
        // 9 of 10 of one sign or more: 11 patterns of 1024 on each side.
        assert_eq!(two(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0]), 22.0 / 1024.0);
        let one = |terms: &[f64]| one_sided(terms, &mut Chance::new("test", ""));
        assert_eq!(one(&[1.0, 1.0, 1.0]), Some(1.0 / 8.0));
        assert_eq!(one(&[-1.0, -1.0, -1.0]), Some(1.0));
        assert_eq!(one(&[]), None);
    }

    #[test]
    fn fewer_pairs_than_the_least_prove_nothing() {
        let enough = pairs_min(0.05);
        assert!(two(&vec![1.0; enough]) < 0.05);
        assert!(two(&vec![1.0; enough - 1]) >= 0.05);
    }

    #[test]
    fn drawing_agrees_with_counting() {
        // 24 equal terms, 17 of one sign: P(|2B - 24| >= 10) with B binomial.
        let terms: Vec<f64> = (0..24).map(|at| if at < 17 { 1.0 } else { -1.0 }).collect();
        let ways =
            |taken: u32| (0..taken).fold(1.0, |w, k| w * f64::from(24 - k) / f64::from(k + 1));
        let exact = 2.0 * (0..=7).map(ways).sum::<f64>() / 2_f64.powi(24);
        let drawn = two(&terms);
        // Five standard errors of 200,000 draws.
        assert!((drawn - exact).abs() < 5.0 * (exact / 200_000.0).sqrt(), "{drawn} {exact}");
        // More than one word of signs: all of one sign never happens again.
        assert_eq!(two(&[1.0; 100]), 1.0 / 200_001.0);
    }
}
