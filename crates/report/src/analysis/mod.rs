//! From the runs of a campaign to numbers and advice. The rules with their reasons are in
//! `docs/analysis.md`.
//!
//! The unit that is resampled and tested is the run, since the exchanges of one run share its luck.
//! A flagged run is counted and not used; a run that was cut off is a lower bound and stays one.

mod types;

pub use types::{
    Analysis, CellRepeat, CellSummary, Comparison, Counts, NetworkAdvice, PartTest, Repeatability,
    Ruling, Verdict,
};

use record::campaign::Campaign;

/// Everything that the report says of a campaign. The same campaign gives the same analysis.
#[must_use]
pub fn analyse(campaign: &Campaign) -> Analysis {
    let _ = campaign;
    Analysis::default()
}

/// How well a second campaign repeats the first, cell by cell.
#[must_use]
pub fn compare(first: &Campaign, second: &Campaign) -> Repeatability {
    let _ = (first, second);
    Repeatability::default()
}
