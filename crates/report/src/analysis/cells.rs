//! One cell in numbers.

use record::campaign::{Campaign, Cell, Measured, Run};

use super::bootstrap;
use super::chance::Chance;
use super::series::{mean, median};
use super::types::{CellSummary, Counts};

/// Whether a run has something to say: also that it failed. A run that the machine spoilt has not.
pub(super) fn counts(run: &Run) -> bool {
    run.flagged.is_none()
}

/// The time of a run, if it has one whose logarithm exists.
pub(super) fn time_s(run: &Run) -> Option<f64> {
    let usable = counts(run) && run.failure.is_none();
    run.mean_s().filter(|mean_s| usable && mean_s.is_finite() && *mean_s > 0.0)
}

/// The time of a run is at least `time_s`: an exchange was cut off.
pub(super) fn is_bound(run: &Run) -> bool {
    run.censored() > 0
}

/// Summary of a cell.
pub(super) fn summary(cell: &Cell) -> CellSummary {
    let good: Vec<(&Run, f64)> =
        cell.runs.iter().filter_map(|run| Some((run, time_s(run)?))).collect();
    let runs_s: Vec<f64> = good.iter().map(|(_, time_s)| *time_s).collect();
    let median_s = median(&mut runs_s.clone());
    let mut unbounded: Vec<f64> = good
        .iter()
        .map(|(run, time_s)| if is_bound(run) { f64::INFINITY } else { *time_s })
        .collect();
    let flagged = cell.runs.iter().filter(|run| !counts(run)).count();
    let mut chance = Chance::new(&cell.name, "median");
    let mut summary = CellSummary {
        runs: good.len(),
        flagged,
        failed: cell.runs.len() - flagged - good.len(),
        bound_runs: good.iter().filter(|(run, _)| is_bound(run)).count(),
        median_s,
        interval_s: bootstrap::interval(&[&runs_s], &mut chance, |drawn| {
            drawn.first_mut().and_then(|drawn| median(drawn))
        }),
        is_bound: median(&mut unbounded) != median_s,
        runs_s,
        ..CellSummary::default()
    };
    exchanges(&mut summary, good.iter().flat_map(|(run, _)| &run.measured).collect());
    summary
}

/// What the exchanges say. Those that failed or were cut off count, but have no typical size.
fn exchanges(summary: &mut CellSummary, measured: Vec<&Measured>) {
    let whole: Vec<&Measured> =
        measured.iter().copied().filter(|one| one.exchange.succeeded()).collect();
    let middle = |value: &dyn Fn(&Measured) -> f64| {
        median(&mut whole.iter().map(|one| value(one)).collect::<Vec<f64>>())
    };
    summary.exchanges = measured.len();
    summary.errors = measured.iter().filter(|one| one.exchange.error.is_some()).count();
    summary.censored = measured.iter().filter(|one| one.exchange.censored).count();
    summary.up_bytes = middle(&|one| one.up.bytes as f64);
    summary.down_bytes = middle(&|one| one.down.bytes as f64);
    summary.packets = middle(&|one| one.up.packets as f64 + one.down.packets as f64);
    summary.flights = middle(&|one| f64::from(one.flights));
    summary.body_bytes = middle(&|one| one.exchange.body_bytes as f64);
    let total = |value: fn(&Measured) -> f64| measured.iter().map(|one| value(one)).sum::<f64>();
    let packets = total(|one| one.up.packets as f64 + one.down.packets as f64);
    let again = total(|one| one.up.retransmitted as f64 + one.down.retransmitted as f64);
    summary.retransmitted = (packets > 0.0).then(|| again / packets);
    let connections = measured.iter().map(|one| f64::from(one.exchange.connections));
    summary.connections = mean(&connections.collect::<Vec<f64>>());
}

/// Counts over all cells; those of comparisons are left to the caller.
pub(super) fn totals(campaign: &Campaign, cells: &[CellSummary]) -> Counts {
    let total = |value: fn(&CellSummary) -> usize| cells.iter().map(value).sum::<usize>();
    let runs = || campaign.cells.iter().flat_map(|cell| &cell.runs);
    Counts {
        cells: cells.len(),
        cells_without_runs: cells.iter().filter(|cell| cell.runs == 0).count(),
        runs: campaign.cells.iter().map(|cell| cell.runs.len()).sum(),
        good: total(|cell| cell.runs),
        flagged: total(|cell| cell.flagged),
        failed: total(|cell| cell.failed),
        repeated: runs().filter(|run| run.attempt > 1).count(),
        bound_runs: total(|cell| cell.bound_runs),
        // As exchanges.csv has them.
        exchanges: runs().map(|run| run.measured.len()).sum(),
        errors: runs().map(Run::errors).sum(),
        censored: runs().map(Run::censored).sum(),
        ..Counts::default()
    }
}
