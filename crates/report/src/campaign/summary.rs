//! What came out, in sentences, and what a reader must know before trusting it.

use std::collections::BTreeSet;

use record::campaign::Setting;

use super::gains;
use super::view::View;
use crate::analysis::{Analysis, Ruling};
use crate::format;

/// Of the remarks on cells, so many are told.
const MAX_REMARKS: usize = 60;

/// What came out, in a few sentences.
pub(super) fn summary(view: &View<'_>) -> Vec<String> {
    let counts = &view.analysis.counts;
    if counts.runs == 0 {
        return vec!["Nothing was measured: the campaign has no run.".to_string()];
    }
    let names: BTreeSet<&str> =
        view.campaign.cells.iter().map(|cell| cell.network.as_str()).collect();
    let networks = names.len();
    let mut all = vec![format!(
        "{} over {}: {} with {}; without one good run: {}.",
        format::count(counts.cells, "cell"),
        format::count(networks, "network"),
        format::count(counts.runs, "run"),
        format::count(counts.exchanges, "exchange"),
        format::count(counts.cells_without_runs, "cell"),
    )];
    all.extend(gains::sentence(view));
    let compared = view.analysis.comparisons.iter();
    let clear = compared.filter(|one| view.clear_ratio(one.cell).is_some()).count();
    if counts.comparisons == 0 {
        if view.analysis.gains.is_empty() {
            all.push("No setting was varied: nothing is compared with a default.".to_string());
        }
        return all;
    }
    all.push(format!(
        "{} of one cell with its default: the 95 % interval leaves out 1 in {clear} (by chance \
         alone in about {:.0}); sure when all are judged together (adjusted p < 0.05): {}.",
        format::count(counts.comparisons, "comparison"),
        counts.comparisons as f64 / 20.0,
        counts.significant,
    ));
    let rulings = view.analysis.recommendations.iter().flat_map(|advice| &advice.verdicts);
    let of = |ruling| rulings.clone().filter(|one| one.verdict == ruling).count();
    all.push(format!(
        "Settings by network: {} worth using, {} to be avoided, {} without a difference that \
         matters.",
        of(Ruling::Use),
        of(Ruling::Avoid),
        of(Ruling::Indifferent),
    ));
    all
}

/// What was spoilt, failed or cut off, in one sentence.
pub(super) fn losses(analysis: &Analysis) -> String {
    let counts = &analysis.counts;
    format!(
        "Of {}: {} flagged (spoilt by the machine at every attempt, not used), {} failed (without \
         a result, or every exchange failed), {} with more than one attempt, {} with an exchange \
         that was cut off. In all {} and {} cut off.",
        format::count(counts.runs, "run"),
        counts.flagged,
        counts.failed,
        counts.repeated,
        counts.bound_runs,
        format::count(counts.errors, "failed exchange"),
        counts.censored,
    )
}

/// What a reader must know of the conditions.
pub(super) fn conditions(setting: &Setting) -> Vec<String> {
    let mut all = Vec::new();
    let mut put = |text: String| all.push(text);
    if setting.quick {
        put("The quick form: fewer cells and runs than the study has.".to_string());
    }
    if setting.rootless {
        put("Not root: the hosts lived in a user namespace.".to_string());
    }
    if !setting.real_time {
        put("Without real-time priority: delays are true only while the machine is idle."
            .to_string());
    }
    if let Some(stolen) = setting.stolen.filter(|stolen| *stolen > 0.01) {
        put(format!("Other guests of this machine took {} of its time.", format::per_cent(stolen)));
    }
    if setting.machine.profile != "release" {
        let profile = &setting.machine.profile;
        put(format!("A {profile} build was measured: figures are for trying only."));
    }
    all
}

/// One line for each cell in which something went wrong: its index and what.
pub(super) fn remarks(view: &View<'_>) -> (Vec<(usize, String)>, usize) {
    let mut all: Vec<(usize, String)> = Vec::new();
    for (index, cell) in view.campaign.cells.iter().enumerate() {
        let summary = view.summary(index);
        let parts = [
            (summary.failed, "run", "failed"),
            (summary.flagged, "run", "flagged"),
            (summary.errors, "exchange", "failed"),
            (summary.censored, "exchange", "cut off"),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts =
            parts.map(|(count, noun, what)| format!("{} {what}", format::count(count, noun)));
        let mut text = parts.collect::<Vec<_>>().join(", ");
        let runs = cell.runs.iter();
        let first = runs.clone().find_map(|run| run.failure.as_ref());
        let measured = runs.flat_map(|run| &run.measured);
        let first = first.or_else(|| {
            let mut errors = measured.filter_map(|measured| measured.exchange.error.as_ref());
            errors.next()
        });
        if let Some(why) = first {
            text += &format!("; first: {why}");
        }
        if cell.runs.is_empty() {
            text = "no run".to_string();
        }
        if !text.is_empty() {
            all.push((index, text));
        }
    }
    let more = all.len().saturating_sub(MAX_REMARKS);
    all.truncate(MAX_REMARKS);
    (all, more)
}
