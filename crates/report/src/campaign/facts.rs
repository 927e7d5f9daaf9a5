//! A campaign in a few numbers, for programs, and why its runs failed.

use std::collections::BTreeMap;

use record::campaign::{Campaign, Run};
use record::result::Lateness;
use serde_json::{Value, json};

use super::view::View;
use super::{carriers, gains};
use crate::analysis::Analysis;

/// What `longwire lab run --json` prints, but for the report's place.
#[must_use]
pub fn facts(campaign: &Campaign, analysis: &Analysis) -> Value {
    let view = View::new(campaign, analysis);
    let runs = || campaign.cells.iter().flat_map(|cell| &cell.runs);
    let lateness = Lateness::merged(runs().map(|run| &run.lateness));
    let counts = &analysis.counts;
    let reason = |(reason, runs): (String, usize)| json!({"reason": reason, "runs": runs});
    json!({
        "cells": campaign.cells.len(),
        "runs": counts.runs,
        "good": counts.good,
        "repeated": counts.repeated,
        "flagged": runs().filter(|run| run.flagged.is_some()).count(),
        "failed": runs().filter(|run| run.failure.is_some()).count(),
        "failures": reasons(campaign).into_iter().map(reason).collect::<Vec<_>>(),
        "exchanges": counts.exchanges,
        "failed_exchanges": counts.errors,
        "cut_off_exchanges": counts.censored,
        "gains": analysis.gains.iter().map(|gain| gains::facts(&view, gain)).collect::<Vec<_>>(),
        "carriers": carriers::facts(&view),
        "lateness_p99_us": lateness.p99_us,
        "lateness_p999_us": lateness.p999_us,
        "packets": lateness.count,
        "elapsed_s": campaign.setting.elapsed_s,
        "serial_s": runs().map(|run| run.elapsed_s).sum::<f64>(),
        "parallel_peak": campaign.setting.parallel_peak,
    })
}

/// Why runs have no result, the most frequent reason first, each with its number of runs: of a run
/// in which every exchange failed, the first one's reason.
#[must_use]
pub fn reasons(campaign: &Campaign) -> Vec<(String, usize)> {
    let mut counted: BTreeMap<String, usize> = BTreeMap::new();
    for run in campaign.cells.iter().flat_map(|cell| &cell.runs) {
        if let Some(reason) = reason(run) {
            *counted.entry(reason).or_default() += 1;
        }
    }
    let mut all: Vec<(String, usize)> = counted.into_iter().collect();
    all.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    all
}

fn reason(run: &Run) -> Option<String> {
    if run.failure.is_some() || run.mean_s().is_some() {
        return run.failure.clone();
    }
    let mut errors = run.measured.iter().filter_map(|measured| measured.exchange.error.clone());
    Some(errors.next().unwrap_or_else(|| "no exchange came to an end".to_string()))
}
