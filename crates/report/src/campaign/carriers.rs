//! What the choice of the carrier is worth: each cell that leaves it to the pair beside the same
//! one by each carrier alone.

use std::collections::BTreeMap;
use std::fmt::Write;

use record::campaign::{Cell, PAIR_SETTINGS};

use super::cells::link_to;
use super::references::time;
use super::view::View;
use crate::format;
use crate::text::escaped;

/// What leaves the choice to the pair.
const CHOSEN: &str = "auto";
/// Widest name on a terminal.
const MAX_NAME_LETTERS: usize = 38;

/// Cells that differ in their carrier alone.
struct Row<'a> {
    /// Network, server, service and the other settings.
    name: String,
    /// The cell of each carrier, by name.
    by: BTreeMap<&'a str, usize>,
}

impl Row<'_> {
    /// Mean time by the carriers that were chosen over that by the best one alone, less one; none
    /// where a mean is only bounded, or there is nothing to compare.
    fn regret(&self, view: &View<'_>) -> Option<f64> {
        let exact_s = |index: &usize| {
            let summary = view.summary(*index);
            summary.median_s.filter(|_| !summary.is_bound)
        };
        let fixed = self.by.iter().filter(|(carrier, _)| **carrier != CHOSEN);
        let best_s = fixed.filter_map(|(_, index)| exact_s(index)).reduce(f64::min)?;
        Some(exact_s(self.by.get(CHOSEN)?)? / best_s - 1.0)
    }
}

/// Cells of which one was measured by several carriers, in the order of the campaign.
fn rows<'a>(view: &View<'a>) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (index, cell) in view.campaign.cells.iter().enumerate() {
        let Some(carrier) = carrier(cell, view) else { continue };
        let name = name(cell);
        match rows.iter_mut().find(|row| row.name == name) {
            Some(row) => drop(row.by.insert(carrier, index)),
            None => rows.push(Row { name, by: BTreeMap::from([(carrier, index)]) }),
        }
    }
    rows.retain(|row| row.by.len() > 1);
    rows
}

/// The setting in force; that of the server by default is not in the cell.
fn carrier<'a>(cell: &'a Cell, view: &View<'a>) -> Option<&'a str> {
    let [.., carrier] = PAIR_SETTINGS;
    let own = cell.settings.iter().find(|(name, _)| name == carrier);
    let of_server =
        |(server, name, _): &&(String, String, String)| *server == cell.server && name == carrier;
    let default = || view.campaign.setting.defaults.iter().find(of_server);
    let own = own.map(|(_, value)| value.as_str());
    own.or_else(|| default().map(|(_, _, value)| value.as_str()))
}

fn name(cell: &Cell) -> String {
    let [.., carrier] = PAIR_SETTINGS;
    let others = cell.settings.iter().filter(|(name, _)| name != carrier);
    let others: String = others.map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{} {} {}{others}", cell.network, cell.server, format::service_name(&cell.service))
}

/// All carriers that were measured: those alone first, then the choice.
fn columns<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
    let mut all: Vec<&str> = rows.iter().flat_map(|row| row.by.keys().copied()).collect();
    all.sort_by_key(|carrier| (*carrier == CHOSEN, *carrier));
    all.dedup();
    all
}

fn mean_regret(view: &View<'_>, rows: &[Row<'_>]) -> Option<f64> {
    let all: Vec<f64> = rows.iter().filter_map(|row| row.regret(view)).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn per_cent(share: Option<f64>) -> String {
    share.map_or("–".to_string(), |share| format!("{:+.1} %", 100.0 * share))
}

/// The chapter; empty where no cell was measured by several carriers.
pub(super) fn carriers(view: &View<'_>) -> String {
    let rows = rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let columns = columns(&rows);
    let heads = columns.iter().map(|carrier| format!("<th>{}, s</th>", escaped(carrier)));
    let mut out = format!(
        "<h2 id='carriers'>Carriers</h2>\n<div class='wide'><table class='dense'>\n<tr>\
         <th class='text'>what is asked for</th>{}<th>regret</th></tr>\n",
        heads.collect::<String>()
    );
    for row in &rows {
        let one = |carrier: &&str| {
            let index = row.by.get(carrier);
            let shown = index.map(|index| link_to(*index, &time(view.summary(*index))));
            format!("<td>{}</td>", shown.unwrap_or_default())
        };
        let _ = writeln!(
            out,
            "<tr><td class='text'>{}</td>{}<td><b>{}</b></td></tr>",
            escaped(&row.name),
            columns.iter().map(one).collect::<String>(),
            per_cent(row.regret(view)),
        );
    }
    let _ = writeln!(
        out,
        "</table></div>\n<p class='note'>Times are medians of the runs' means. Regret: the time \
         with the carrier left to the pair over that by the carrier which was the fastest alone, \
         less one; mean {}. The least of several figures that vary is too small by chance, so that \
         a choice as good as the best one has some regret too.</p>",
        per_cent(mean_regret(view, &rows)),
    );
    out
}

/// The table on a terminal.
pub(super) fn lines(view: &View<'_>) -> String {
    let rows = rows(view);
    if rows.is_empty() {
        return String::new();
    }
    let columns = columns(&rows);
    let widths = rows.iter().map(|row| row.name.chars().count());
    let width = widths.max().unwrap_or(0).min(MAX_NAME_LETTERS);
    let mut out = format!("\ncarriers, mean time in s\n{:width$}", "asked for");
    out.extend(columns.iter().map(|carrier| format!(" {carrier:>9}")));
    out += "    regret\n";
    for row in &rows {
        let name: String = row.name.chars().take(width).collect();
        let _ = write!(out, "{name:width$}");
        for carrier in &columns {
            let shown = row.by.get(carrier).map(|index| time(view.summary(*index)));
            let _ = write!(out, " {:>9}", shown.unwrap_or_default());
        }
        let _ = writeln!(out, " {:>9}", per_cent(row.regret(view)));
    }
    let mean = per_cent(mean_regret(view, &rows));
    out + &format!("regret: of auto against the best carrier alone; mean {mean}\n")
}

/// The same for programs.
pub(super) fn facts(view: &View<'_>) -> serde_json::Value {
    let rows = rows(view);
    let one = |row: &Row<'_>| {
        let times = row.by.iter().map(|(carrier, index)| (*carrier, view.summary(*index).median_s));
        serde_json::json!({
            "cell": row.name,
            "mean_s": times.collect::<BTreeMap<_, _>>(),
            "regret": row.regret(view),
        })
    };
    serde_json::json!({
        "cells": rows.iter().map(one).collect::<Vec<_>>(),
        "mean_regret": mean_regret(view, &rows),
    })
}
