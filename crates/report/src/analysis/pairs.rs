//! Runs of two cells, paired by repetition and seed: the same chances on the same link.

use std::collections::BTreeMap;

use record::campaign::{Cell, Run};

use super::cells::{counts, is_bound, time_s};
use super::chance::Chance;
use super::fisher;
use super::permutation;

/// What the pairs of two cells, or of several such, hold. Two figures are (first, second).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pairs {
    /// Logarithms of second time by first.
    pub(super) logs: Vec<f64>,
    /// Pairs with a time that is a lower bound.
    pub(super) bounds: usize,
    /// Pairs in which only that side has no time.
    pub(super) lost: (usize, usize),
    /// Runs without a partner.
    pub(super) unpaired: (usize, usize),
    /// Exchanges without a whole answer.
    pub(super) errors: (usize, usize),
    /// Exchanges.
    pub(super) exchanges: (usize, usize),
    /// By pair: share of exchanges without a whole answer of the second, less that of the first.
    pub(super) more_errors: Vec<f64>,
}

impl Pairs {
    /// The pairs of two cells. Runs that the machine spoilt are left out with their partner.
    pub(super) fn of(first: &Cell, second: &Cell) -> Self {
        let most = [first, second].into_iter().flat_map(|cell| &cell.runs);
        let usual = most.map(|run| run.measured.len()).max().unwrap_or(0).max(1);
        let key = |run: &Run| (run.repetition, run.seed);
        let mut firsts: BTreeMap<_, &Run> =
            first.runs.iter().filter(|run| counts(run)).map(|run| (key(run), run)).collect();
        let mut pairs = Self::default();
        for run in second.runs.iter().filter(|run| counts(run)) {
            match firsts.remove(&key(run)) {
                Some(partner) => pairs.add(partner, run, usual),
                None => pairs.unpaired.1 += 1,
            }
        }
        pairs.unpaired.0 = firsts.len();
        pairs
    }

    fn add(&mut self, first: &Run, second: &Run, usual: usize) {
        match (time_s(first), time_s(second)) {
            (Some(first_s), Some(second_s)) => {
                // Of times so far apart the quotient is 0 or infinite, the difference is neither.
                let log = second_s.ln() - first_s.ln();
                self.logs.push(proven(log, is_bound(first), is_bound(second)));
                self.bounds += usize::from(is_bound(first) || is_bound(second));
            }
            (None, Some(_)) => self.lost.0 += 1,
            (Some(_), None) => self.lost.1 += 1,
            (None, None) => {}
        }
        let ((bad_first, all_first), (bad_second, all_second)) =
            (failures(first, usual), failures(second, usual));
        self.errors = (self.errors.0 + bad_first, self.errors.1 + bad_second);
        self.exchanges = (self.exchanges.0 + all_first, self.exchanges.1 + all_second);
        let share = |bad: usize, all: usize| bad as f64 / all.max(1) as f64;
        self.more_errors.push(share(bad_second, all_second) - share(bad_first, all_first));
    }

    /// All pairs together.
    pub(super) fn pooled<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let both = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
        parts.into_iter().fold(Self::default(), |mut all, part| {
            all.logs.extend_from_slice(&part.logs);
            all.more_errors.extend_from_slice(&part.more_errors);
            all.bounds += part.bounds;
            all.lost = both(all.lost, part.lost);
            all.unpaired = both(all.unpaired, part.unpaired);
            all.errors = both(all.errors, part.errors);
            all.exchanges = both(all.exchanges, part.exchanges);
            all
        })
    }

    /// The chance, if both fail alike, that so many of the failures fall to the second: each
    /// exchange taken as a trial of its own, then the runs. None without pairs.
    pub(super) fn errors_p(&self, chance: &mut Chance) -> Option<(f64, f64)> {
        let runs = permutation::one_sided(&self.more_errors, chance)?;
        let first = (self.errors.0, self.exchanges.0);
        Some((fisher::more(first, (self.errors.1, self.exchanges.1)), runs))
    }
}

/// What the logarithm of a ratio proves when a time is only a lower bound: that of the second makes
/// the true one greater, that of the first smaller. What is not proven counts as no difference.
fn proven(log: f64, first_is_bound: bool, second_is_bound: bool) -> f64 {
    match (first_is_bound, second_is_bound) {
        (false, false) => log,
        (false, true) => log.max(0.0),
        (true, false) => log.min(0.0),
        (true, true) => 0.0,
    }
}

/// Exchanges of a run without a whole answer, and all. A run without any failed in as many as
/// others have.
fn failures(run: &Run, usual: usize) -> (usize, usize) {
    if run.failure.is_some() || run.measured.is_empty() {
        return (usual, usual);
    }
    let bad = run.measured.iter().filter(|measured| !measured.exchange.succeeded()).count();
    (bad, run.measured.len())
}
