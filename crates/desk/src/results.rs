//! Campaigns from their databases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::StatusCode;
use lab::campaign::{Results, has_results};
use record::figures::Overview;
use serde_json::{Value, json};
use web::cells::{Row, View};
use web::pages::results::Listed;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::children::blocking;
use crate::kept::Figures;
use crate::problem::{Problem, Result};
use crate::shared::Shared;

/// Most campaigns of the list.
const MAX_CAMPAIGNS: usize = 500;
/// Longest name of a campaign's directory.
const MAX_NAME_BYTES: usize = 64;
/// Largest report that is passed on.
const MAX_REPORT_BYTES: u64 = 64 << 20;

/// A name that leads nowhere but into a folder of ours.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = name.bytes().all(allowed) && name.len() <= MAX_NAME_BYTES;
    if is_name && name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "this is no name: give 1 to {MAX_NAME_BYTES} letters, digits, '-', '_' or '.', the first a \
         letter or digit"
    )))
}

/// The names of what is in a folder, sorted, at most so many.
pub(crate) fn names_in(folder: &Path, most: usize) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| check_name(name).is_ok()).take(most).collect();
    names.sort();
    names
}

/// The directory of a campaign, which need not exist.
pub(crate) fn folder(shared: &Shared, name: &str) -> Result<PathBuf> {
    check_name(name)?;
    Ok(shared.results().join(name))
}

/// All campaigns, each with what it is or why it cannot be read.
pub(crate) async fn campaigns(shared: &Shared) -> Result<Vec<Listed>> {
    let folder = shared.results().to_path_buf();
    blocking(move || {
        let names = names_in(&folder, MAX_CAMPAIGNS).into_iter();
        let names = names.filter(|name| has_results(&folder.join(name)).is_some());
        Ok(names
            .map(|name| {
                let found = Results::open(&folder.join(&name));
                let found = found.and_then(|results| results.overview());
                (name, found.map_err(|error| error.to_string()))
            })
            .collect())
    })
    .await
}

/// One campaign with the figures of its runs.
pub(crate) async fn campaign(shared: &Shared, name: &str) -> Result<Arc<Figures>> {
    let folder = folder(shared, name)?;
    let written = has_results(&folder)
        .ok_or_else(|| Problem::missing(format!("there is no campaign '{name}': see /results")))?;
    if let Some(figures) = shared.kept.find(name, written) {
        return Ok(figures);
    }
    let figures = blocking(move || {
        let results = Results::open(&folder)?;
        Ok(Figures { overview: results.overview()?, cells: results.figures()? })
    })
    .await?;
    let figures = Arc::new(figures);
    shared.kept.put(name.to_string(), written, &figures);
    Ok(figures)
}

/// The cell at a place of a campaign.
pub(crate) async fn cell(
    shared: &Shared,
    name: &str,
    place: &str,
) -> Result<record::campaign::Cell> {
    let folder = folder(shared, name)?;
    let missing = || Problem::missing(format!("campaign '{name}' has no such cell"));
    let place: usize = place.parse().map_err(|_| missing())?;
    let found = blocking(move || Results::open(&folder)?.cell(place)).await?;
    found.ok_or_else(missing)
}

/// Two campaigns, as `longwire lab compare` has them.
pub(crate) async fn compared(
    shared: &Shared,
    first: &str,
    second: &str,
) -> Result<report::analysis::Repeatability> {
    let folders = [folder(shared, first)?, folder(shared, second)?];
    blocking(move || {
        let [first, second] = &folders;
        let first = lab::campaign::load(first)?;
        Ok(report::analysis::compare(&first, &lab::campaign::load(second)?))
    })
    .await
}

/// The report of a campaign: a page of its own, in which nothing runs.
pub(crate) async fn report(shared: &Shared, name: &str) -> Result<Answer> {
    let path = folder(shared, name)?.join("report.html");
    let missing = || Problem::missing(format!("campaign '{name}' has no report yet"));
    let length = path.metadata().map_err(|_| missing())?.len();
    if length > MAX_REPORT_BYTES {
        let detail = format!("the report has {length} B, at most {MAX_REPORT_BYTES} are sent");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let text = tokio::fs::read(&path).await.map_err(|_| missing())?;
    Ok(Answer::report(text))
}

pub(crate) async fn all_facts(shared: &Shared) -> Result<Value> {
    let all = campaigns(shared).await?;
    let one = |(name, found): &Listed| match found {
        Ok(overview) => overview_json(name, overview),
        Err(why) => json!({"name": name, "error": why}),
    };
    Ok(all.iter().map(one).collect())
}

pub(crate) async fn facts(shared: &Shared, name: &str) -> Result<Value> {
    let figures = campaign(shared, name).await?;
    Ok(overview_json(name, &figures.overview))
}

pub(crate) async fn cells_facts(shared: &Shared, name: &str, asked: &Asked) -> Result<Value> {
    let figures = campaign(shared, name).await?;
    Ok(View::read(&asked.query).rows(&figures.cells).iter().map(row_json).collect())
}

pub(crate) async fn compare_facts(shared: &Shared, first: &str, second: &str) -> Result<Value> {
    Ok(compared(shared, first, second).await?.json())
}

/// The picture, or the table, of a campaign as a file.
pub(crate) async fn file(
    shared: &Shared,
    name: &str,
    asked: &Asked,
    is_plot: bool,
) -> Result<Answer> {
    let figures = campaign(shared, name).await?;
    let view = View::read(&asked.query);
    let campaign = web::pages::campaign::Campaign {
        name,
        overview: &figures.overview,
        cells: &figures.cells,
        view: &view,
        has_report: false,
    };
    Ok(if is_plot {
        Answer::file("image/svg+xml", web::pages::campaign::plot(&campaign, true), "plot.svg")
    } else {
        let kind = "text/csv; charset=utf-8";
        Answer::file(kind, web::pages::campaign::csv(&campaign), "cells.csv")
    })
}

fn overview_json(name: &str, of: &Overview) -> Value {
    json!({
        "name": name,
        "title": of.setting.title,
        "cells": of.cells,
        "planned": of.planned,
        "done": of.done,
        "flagged": of.flagged,
        "failed": of.failed,
        "seed": of.setting.seed,
        "date": of.setting.machine.date,
        "revision": of.setting.machine.revision,
    })
}

fn row_json(row: &Row<'_>) -> Value {
    let cell = &row.of.cell;
    let (low, high) = row.interval_s.unzip();
    json!({
        "cell": row.place,
        "name": cell.name,
        "network": cell.network,
        "server": cell.server,
        "service": cell.service,
        "way": cell.way.name(),
        "settings": cell.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
        "runs": row.of.runs.len(),
        "used": row.of.good().count(),
        "median_s": row.median_s,
        "interval_s": low.zip(high).map(|(low, high)| [low, high]),
        "lost": row.lost,
        "wire_bytes": row.wire_bytes,
        "lateness_p99_us": row.lateness_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        for name in ["ist118", "ist118-quick", "a.b_c", &"n".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", "/etc", "a/b", "-x", ".x", "é", "a b", &"n".repeat(65)]
        {
            let problem = check_name(name).unwrap_err();
            assert!(problem.detail.contains("1 to 64"), "{name}");
        }
    }
}
