//! From the runs of a campaign to numbers and advice. The rules with their reasons are in
//! `docs/analysis.md`.
//!
//! The unit that is resampled and tested is the run, since the exchanges of one run share its luck.
//! A flagged run is counted and not used; a run that was cut off is a lower bound and stays one.

mod advice;
mod bootstrap;
mod cells;
mod chance;
mod comparisons;
mod fisher;
mod gains;
mod holm;
mod pairs;
mod permutation;
mod repeat;
mod rule;
mod series;
#[cfg(test)]
mod tests;
mod types;
mod words;

pub use types::{
    Analysis, CellRepeat, CellSummary, Comparison, Counts, Gain, NetworkAdvice, PartTest,
    Repeatability, Ruling, ServiceRatio, Verdict,
};

use record::campaign::Campaign;

pub(crate) use bootstrap::MIN_VALUES as MIN_INTERVAL_VALUES;
pub(crate) use series::median;

/// A test says something when its adjusted p is below this.
pub const SIGNIFICANT_P: f64 = 0.05;

/// Everything that the report says of a campaign. The same campaign gives the same analysis.
#[must_use]
pub fn analyse(campaign: &Campaign) -> Analysis {
    let cells: Vec<CellSummary> = campaign.cells.iter().map(cells::summary).collect();
    let (comparisons, alone) = comparisons::all(campaign);
    let significant = |comparison: &&Comparison| {
        comparison.p_adjusted.is_some_and(|p_adjusted| p_adjusted < SIGNIFICANT_P)
    };
    let counts = Counts {
        cells_without_default: alone,
        comparisons: comparisons.len(),
        significant: comparisons.iter().filter(significant).count(),
        ..cells::totals(campaign, &cells)
    };
    let recommendations = advice::all(campaign, &comparisons);
    let gains = gains::all(campaign);
    Analysis { cells, comparisons, gains, recommendations, counts }
}

/// The interval of 95 % of the mean of values, by resampling; none with fewer than
/// [`MIN_INTERVAL_VALUES`]. The same name and values give the same interval.
pub(crate) fn mean_interval(name: &str, values: &[f64]) -> Option<(f64, f64)> {
    let mut chance = chance::Chance::new(name, "mean");
    bootstrap::interval(&[values], &mut chance, |drawn| series::mean_of_means(drawn))
}

/// How well a second campaign repeats the first, cell by cell.
#[must_use]
pub fn compare(first: &Campaign, second: &Campaign) -> Repeatability {
    repeat::compare(first, second)
}
