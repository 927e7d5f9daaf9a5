//! What came of it, for people and for programs, and whether bounds were kept.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{Write as _, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use longwire_bench::machine;
use longwire_bench::markdown::Table;
use serde_json::{Value, json};
use sim::decision::Regret;

use crate::judge::{BACK_MESSAGES, Cell, Drift, Findings, HUGE_BYTES};
use crate::measure::ARMS;

/// Most mean relative regret over the cells, and in each.
const MEAN_REGRET: f64 = 0.03;
pub(crate) const CELL_REGRET: f64 = 0.10;
/// Most that ours is behind the best fixed policy, by the lower limit of the mean.
const BEHIND_FIXED: f64 = 0.05;
/// Most that huge answers are behind identity.
const BEHIND_IDENTITY: f64 = 0.02;
/// Most regret once ours is back after a change of the link.
pub(crate) const BACK_REGRET: f64 = 0.10;
/// Most time of a decision.
const DECISION_US: f64 = 20.0;
/// Worst cells shown.
const WORST: usize = 16;

/// A bound, what was found, and the most that it may be.
struct Bound {
    what: String,
    found: f64,
    most: f64,
    /// Where it is of each: how many there are, how many are above it, and how many of these are so
    /// by their lower 95 % limits too.
    each: Option<[usize; 3]>,
    /// As a share, else in microseconds.
    share: bool,
}

/// Prints and keeps the report; gives whether all bounds were kept.
pub(crate) fn write(
    findings: &Findings,
    json: Option<&Path>,
    markdown: Option<&Path>,
) -> Result<bool> {
    let bounds = bounds(findings);
    let text = markdown_of(findings, &bounds)?;
    stdout().write_all(text.as_bytes())?;
    if let Some(path) = markdown {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&json_of(findings, &bounds))?;
        std::fs::write(path, text + "\n").with_context(|| path.display().to_string())?;
    }
    Ok(bounds.iter().all(Bound::kept))
}

impl Bound {
    fn kept(&self) -> bool {
        self.found <= self.most
    }

    fn say(&self, value: f64) -> String {
        if self.share { per_cent(value) } else { format!("{value:.1} µs") }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn bounds<'a>(findings: &'a Findings) -> Vec<Bound> {
    let share = |what: &str, found: f64, most: f64| Bound {
        what: what.to_owned(),
        found: if found.is_finite() { found } else { 0.0 },
        most,
        each: None,
        share: true,
    };
    // Values with their lower limits.
    let each = |what: &str, values: Vec<(f64, f64)>, most: f64| {
        let above = values.iter().filter(|(value, _)| *value > most).count();
        let surely = values.iter().filter(|(_, low)| *low > most).count();
        let found = values.iter().fold(f64::NEG_INFINITY, |most, (value, _)| value.max(most));
        Bound { each: Some([values.len(), above, surely]), ..share(what, found, most) }
    };
    let mut bounds = Vec::new();
    let all = |cells: &'a [Cell]| cells.iter().collect::<Vec<_>>();
    let here = findings.grid.iter().filter(|cell| cell.is_judged_here()).collect();
    for (what, cells) in [
        ("grid, what the laboratory cannot judge", here),
        ("grid, all", all(&findings.grid)),
        ("links by chance", all(&findings.random)),
    ] {
        if cells.is_empty() {
            continue;
        }
        let ours = || cells.iter().map(|cell| &cell.ours);
        let name = |of: &str| format!("{what}: {of}");
        let relative = mean(ours().map(|one| one.relative));
        bounds.push(share(&name("mean relative regret over cells"), relative, MEAN_REGRET));
        let worst = ours().map(|one| (one.relative, one.relative_low)).collect();
        bounds.push(each(&name("relative regret of the worst cell"), worst, CELL_REGRET));
        let behind = ours().map(|one| (one.fixed_low, one.fixed_low)).collect();
        let of = "behind the best fixed policy, lower limit, worst cell";
        bounds.push(each(&name(of), behind, BEHIND_FIXED));
        let huge = cells.iter().filter(|cell| cell.bytes >= HUGE_BYTES);
        let behind = huge.map(|cell| (cell.ours.identity, cell.ours.identity)).collect();
        bounds.push(each(&name("huge answers behind identity, worst"), behind, BEHIND_IDENTITY));
    }
    if !findings.drift.is_empty() {
        let with_low =
            |drift: &Drift| drift.after(BACK_MESSAGES).into_iter().zip(drift.low.clone());
        let after = findings.drift.iter().flat_map(with_low).collect();
        let what = format!("links that change: regret after {BACK_MESSAGES} messages, worst");
        bounds.push(each(&what, after, BACK_REGRET));
    }
    let what = format!("a decision among {} arms", ARMS.len());
    let (found, most) = (findings.decision_us, DECISION_US);
    bounds.push(Bound { what, found, most, each: None, share: false });
    bounds
}

fn markdown_of(findings: &Findings, bounds: &[Bound]) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "# The decision in virtual time\n")?;
    let extent = findings.extent;
    writeln!(
        text,
        "TCP is simulated packet by packet (`sim::decision`), sizes and processor times of codecs \
         are measured; times are virtual, no kernel was involved. A cell is a class of messages, a \
         network and a processor; {} seeds, {} messages each, the first {} of which do not count. \
         The oracle takes for each cell the encoding with the least mean over {} seeds and is \
         charged its mean over as many others. Regret is the mean of time over the oracle's, less \
         one.\n",
        extent.seeds, extent.messages, extent.warm_up, extent.seeds
    )?;
    writeln!(text, "{}", machine::render(&machine::describe("decision")))?;
    let heads = ["bound", "found", "at most", "kept", "of", "above", "surely"];
    let mut table = Table::new(&heads);
    for bound in bounds {
        let (found, most) = (bound.say(bound.found), bound.say(bound.most));
        let kept = if bound.kept() { "yes" } else { "**no**" };
        let [of, above, surely] =
            bound.each.map_or(Default::default(), |each| each.map(|count| count.to_string()));
        table.row([bound.what.clone(), found, most, kept.to_owned(), of, above, surely]);
    }
    writeln!(text, "{}", table.render())?;
    writeln!(
        text,
        "Of so many cells, or parts of drift, so many are above the bound, and so many surely: by \
         the lower 95 % limit over seeds too, where times scatter.\n"
    )?;
    writeln!(text, "## By network\n\nMean relative regret, and of the worst cell.\n")?;
    writeln!(text, "{}", by(&findings.grid, |cell| cell.network.clone()))?;
    writeln!(text, "## By processor (times slower than here)\n")?;
    writeln!(text, "{}", by(&findings.grid, |cell| format!("{:>2}", cell.slower)))?;
    writeln!(text, "## By class\n")?;
    writeln!(text, "{}", by(&findings.grid, |cell| cell.class.clone()))?;
    writeln!(text, "## Worst cells of ours\n\nWith a star: what the laboratory cannot judge.\n")?;
    writeln!(text, "{}", worst(&findings.grid, |ours| ours.relative))?;
    writeln!(text, "Behind the best fixed encoding, by the lower limit:\n")?;
    writeln!(text, "{}", worst(&findings.grid, |ours| ours.fixed_low))?;
    if !findings.random.is_empty() {
        writeln!(text, "## Links by chance\n")?;
        writeln!(text, "{}", by(&findings.random, |_| "all".to_owned()))?;
        writeln!(text, "{}", worst(&findings.random, |ours| ours.relative))?;
    }
    if !findings.drift.is_empty() {
        writeln!(text, "## Links that change\n")?;
        writeln!(
            text,
            "Mean relative regret of the first {BACK_MESSAGES} messages on each link, and of the \
             rest: wifi1, wifi2, los, satcom.\n"
        )?;
        writeln!(text, "{}", drifts(&findings.drift))?;
    }
    Ok(text)
}

fn by(cells: &[Cell], key: impl Fn(&Cell) -> String) -> String {
    let mut groups = BTreeMap::<String, Vec<&Cell>>::new();
    cells.iter().for_each(|cell| groups.entry(key(cell)).or_default().push(cell));
    groups.insert("total".to_owned(), cells.iter().collect());
    let heads = [
        "",
        "cells",
        "none",
        "Zip",
        "XMill",
        "NAM",
        "worst",
        "ours, its arms",
        "ours",
        "worst",
        "against best fixed",
        "log error",
    ];
    let mut table = Table::new(&heads);
    for (name, cells) in groups {
        let of = |value: &dyn Fn(&Cell) -> f64| per_cent(mean(cells.iter().map(|one| value(one))));
        let worst =
            |value: &dyn Fn(&Cell) -> f64| per_cent(most(cells.iter().map(|one| value(one))));
        table.row([
            name,
            cells.len().to_string(),
            of(&|cell| cell.fixed[0]),
            of(&|cell| cell.fixed[1]),
            of(&|cell| cell.fixed[2]),
            of(&|cell| cell.nam.relative),
            worst(&|cell| cell.nam.relative),
            of(&|cell| cell.ours_of_nam.relative),
            of(&|cell| cell.ours.relative),
            worst(&|cell| cell.ours.relative),
            of(&|cell| cell.ours.fixed),
            format!("{:.3}", mean(cells.iter().map(|cell| cell.ours.error))),
        ]);
    }
    table.render()
}

fn worst(cells: &[Cell], by: fn(&Regret) -> f64) -> String {
    let mut cells: Vec<&Cell> = cells.iter().collect();
    cells.sort_by(|a, b| by(&b.ours).total_cmp(&by(&a.ours)));
    let heads = [
        "class",
        "bytes",
        "network",
        "slower",
        "ours",
        "NAM",
        "against best fixed",
        "lower limit",
        "of ours",
        "oracle s",
        "oracle's",
        "usual",
    ];
    let mut table = Table::new(&heads);
    for cell in cells.iter().take(WORST) {
        table.row([
            cell.class.clone(),
            format!("{:.0}", cell.bytes),
            format!("{}{}", cell.network, if cell.is_judged_here() { " *" } else { "" }),
            format!("{:.1}", cell.slower),
            per_cent(cell.ours.relative),
            per_cent(cell.nam.relative),
            per_cent(cell.ours.fixed),
            per_cent(cell.ours.fixed_low),
            per_cent(cell.ours.relative_low),
            format!("{:.5}", cell.ours.oracle_s),
            ARMS[cell.ours.best_arm].to_owned(),
            ARMS[cell.ours.usual_arm].to_owned(),
        ]);
    }
    table.render()
}

fn drifts(drifts: &[Drift]) -> String {
    let mut table = Table::new(&["class", "slower", "first messages", "after"]);
    for drift in drifts {
        let list = |values: &[f64]| {
            values.iter().map(|one| format!("{:.1}", 100.0 * one)).collect::<Vec<_>>().join(", ")
        };
        let first = drift.first(BACK_MESSAGES);
        let (class, slower) = (drift.class.clone(), drift.slower.to_string());
        table.row([class, slower, list(&first), list(&drift.after(BACK_MESSAGES))]);
    }
    table.render()
}

fn json_of(findings: &Findings, bounds: &[Bound]) -> Value {
    let regret = |regret: &Regret| {
        json!({
            "relative": regret.relative,
            "relative_low": regret.relative_low,
            "weighted": regret.weighted,
            "against_best_fixed": regret.fixed,
            "against_best_fixed_low": regret.fixed_low,
            "against_identity": regret.identity,
            "oracle": ARMS[regret.best_arm],
            "usual": ARMS[regret.usual_arm],
            "identity_s": regret.identity_s,
            "oracle_s": regret.oracle_s,
            "log_error": regret.error,
        })
    };
    let cells = |cells: &[Cell]| -> Vec<Value> {
        let cell = |cell: &Cell| {
            json!({
                "class": cell.class,
                "bytes": cell.bytes,
                "network": cell.network,
                "slower": cell.slower,
                "none": cell.fixed[0],
                "zip": cell.fixed[1],
                "xmill": cell.fixed[2],
                "nam": regret(&cell.nam),
                "ours_with_arms_of_nam": regret(&cell.ours_of_nam),
                "ours": regret(&cell.ours),
            })
        };
        cells.iter().map(cell).collect()
    };
    let bound = |bound: &Bound| {
        let (what, found, most) = (&bound.what, bound.found, bound.most);
        let [of, above, surely] = bound.each.unwrap_or_default();
        json!({ "bound": what, "found": found, "at_most": most, "kept": bound.kept(),
                "of": of, "above": above, "surely": surely })
    };
    let drift = |drift: &Drift| {
        let Drift { class, slower, relative, low } = drift;
        json!({ "class": class, "slower": slower, "relative": relative, "after_low": low })
    };
    json!({
        "bounds": bounds.iter().map(bound).collect::<Vec<_>>(),
        "grid": cells(&findings.grid),
        "random": cells(&findings.random),
        "drift": findings.drift.iter().map(drift).collect::<Vec<_>>(),
    })
}
