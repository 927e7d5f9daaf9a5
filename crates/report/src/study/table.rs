//! Tables of the chapter.

use std::fmt::Write;

use super::data::{Arm, GENERATED, NAM, NONE, OURS, Study, StudyCell, XMILL, ZIP, mean};
use super::regret::{Oracle, Regret};
use crate::format;
use crate::text::escaped;

/// Over so much a cell's regret is shown as too much.
const TOO_MUCH: f64 = 0.10;

/// Cells over links that lose more are for the simulator: their means hang on few messages.
const MAX_LOSS: f64 = 0.15;
/// So are those whose delay is near the emulator's own error.
const MIN_DELAY_S: f64 = 0.0003;

/// A cell: a place and a processor, with what came of the policies.
struct Row<'s, 'a> {
    place: &'s StudyCell<'a>,
    processor: f64,
    oracle: Oracle,
    nam: Option<Regret>,
    ours: Option<Regret>,
}

impl Row<'_, '_> {
    /// Whether it counts here; what does not is judged in the simulator.
    fn counts(&self) -> bool {
        let network = self.place.network;
        network.loss <= MAX_LOSS && network.delay_s >= MIN_DELAY_S
    }
}

/// All cells that have an oracle and one of the policies.
fn rows<'s, 'a>(study: &'s Study<'a>) -> Vec<Row<'s, 'a>> {
    let mut all = Vec::new();
    for place in &study.places {
        for processor in place.processors() {
            let Some(oracle) = Oracle::of(place, processor) else { continue };
            let judged = |policy| place.arm(policy, processor).and_then(|arm| oracle.judge(&arm));
            let (nam, ours) = (judged(NAM), judged(OURS));
            if nam.is_some() || ours.is_some() {
                all.push(Row { place, processor, oracle, nam, ours });
            }
        }
    }
    all
}

/// The section of regrets.
pub(super) fn regrets(study: &Study<'_>) -> String {
    let rows = rows(study);
    if rows.is_empty() {
        return "<h3>Regret</h3>\n<p class='note'>No cell has runs enough for an oracle: it takes \
                two, of which one chooses and the other is charged.</p>\n"
            .to_string();
    }
    let counted: Vec<&Row<'_, '_>> = rows.iter().filter(|row| row.counts()).collect();
    let mut out = format!("<h3>Regret</h3>\n<p>{}</p>\n", escaped(&summary(&counted)));
    out += "<p class='note'>Kernel in real time. The oracle takes for each message the fixed \
            encoding with the least mean in one half of the runs, and is charged its mean in the \
            other; both halves in turn. Regret: mean time of a policy over the oracle's, less one, \
            each message counted alike. Against the best fixed: all messages together, against the \
            one encoding that was fastest for them all; in brackets the lower end of the 95 % \
            interval over the runs. Only the encodings measured can be the oracle's: ours has more \
            to choose from, so its regret can be below 0. A time is the whole exchange, request \
            and round trip with it. Cells with a star do not count: over links that lose 20 %, or \
            whose delay is near the emulator's own error; the simulator judges those, and what was \
            not measured here because an answer takes over 10 s uncompressed.</p>\n";
    for (title, key) in
        [("network", key_network as Key), ("class", key_class), ("processor", key_processor)]
    {
        out += &grouped(&counted, title, key);
    }
    let _ = writeln!(out, "<details><summary>Every cell</summary>{}</details>", every(&rows));
    out
}

type Key = fn(&Row<'_, '_>) -> String;

fn key_network(row: &Row<'_, '_>) -> String {
    row.place.network.name.clone()
}

fn key_class(row: &Row<'_, '_>) -> String {
    class_name(row.place)
}

fn key_processor(row: &Row<'_, '_>) -> String {
    row.processor.to_string()
}

/// The class, with what is different about it.
pub(super) fn class_name(place: &StudyCell<'_>) -> String {
    let of = match place.server {
        GENERATED => ", generated".to_string(),
        server if place.several_servers => format!(", {server}"),
        _ => String::new(),
    };
    let among = place.encodings.map_or(String::new(), |names| format!(", encodings: {names}"));
    format!("{}{of}{among}", place.class)
}

/// What came out, in a sentence.
fn summary(rows: &[&Row<'_, '_>]) -> String {
    let of = |regret: fn(&Row<'_, '_>) -> Option<Regret>| -> Vec<Regret> {
        rows.iter().filter_map(|row| regret(row)).collect()
    };
    let (ours, nam) = (of(|row| row.ours), of(|row| row.nam));
    let reported = |name: &str, all: &[Regret]| {
        let relative: Vec<f64> = all.iter().map(|one| one.relative).collect();
        let most = relative.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let over = relative.iter().filter(|one| **one > TOO_MUCH).count();
        let mean = mean(&relative).map_or("–".to_string(), format::per_cent);
        format!(
            "{name}: mean regret {mean} over {}, the worst {}, over {} in {over}",
            format::count(all.len(), "cell"),
            format::per_cent(most),
            format::per_cent(TOO_MUCH),
        )
    };
    let behind = ours.iter().filter(|one| one.behind_low.is_some_and(|low| low > 0.05)).count();
    let mut parts = Vec::new();
    if rows.is_empty() {
        parts.push("No cell counts".to_string());
    }
    if !ours.is_empty() {
        parts.push(reported("Ours", &ours));
        parts.push(format!("surely more than 5 % behind the best fixed encoding: {behind}"));
    }
    if !nam.is_empty() {
        parts.push(reported("NAM as published", &nam));
    }
    parts.join("; ") + "."
}

/// Means over the cells that have something in common.
fn grouped(rows: &[&Row<'_, '_>], title: &str, key: Key) -> String {
    let mut keys: Vec<String> = Vec::new();
    for row in rows {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    if title == "processor" {
        keys.sort_by(|one, other| {
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
            number(one).total_cmp(&number(other))
        });
    }
    let mut out = format!(
        "<div class='wide'><table class='dense'>\n<tr><th>{title}</th><th>cells</th><th>none</th>\
         <th>Zip</th><th>XMill</th><th>NAM</th><th>worst</th><th>ours</th><th>worst</th>\
         <th>ours to best fixed</th></tr>\n"
    );
    for name in keys {
        let of: Vec<_> = rows.iter().filter(|row| key(row) == name).collect();
        let _ = write!(out, "<tr><td>{}</td><td>{}</td>", escaped(&name), of.len());
        for policy in [NONE, ZIP, XMILL] {
            let judged = of.iter().filter_map(|row| fixed(row, policy));
            out += &cell(mean(&judged.map(|one| one.relative).collect::<Vec<_>>()));
        }
        for regret in [(|row| row.nam) as fn(&Row<'_, '_>) -> Option<Regret>, |row| row.ours] {
            let all: Vec<f64> =
                of.iter().filter_map(|row| regret(row)).map(|one| one.relative).collect();
            out += &cell(mean(&all));
            out += &cell(all.iter().copied().max_by(f64::total_cmp));
        }
        let behind: Vec<f64> = of.iter().filter_map(|row| row.ours).map(|one| one.behind).collect();
        let _ = writeln!(out, "{}</tr>", cell(mean(&behind)));
    }
    out + "</table></div>\n"
}

fn fixed(row: &Row<'_, '_>, policy: &str) -> Option<Regret> {
    row.oracle.judge(&row.place.arm(policy, row.processor)?)
}

fn cell(share: Option<f64>) -> String {
    share.map_or("<td></td>".to_string(), |share| format!("<td>{}</td>", format::per_cent(share)))
}

/// One line a cell.
fn every(rows: &[Row<'_, '_>]) -> String {
    let mut out = "<div class='wide'><table class='dense'>\n<tr><th>network</th>\
                   <th class='text'>class</th><th>processor</th><th>runs</th><th>none, s</th>\
                   <th>Zip, s</th><th>XMill, s</th><th>NAM, s</th><th>ours, s</th>\
                   <th>oracle, s</th>\
                   <th class='text'>best fixed</th><th>NAM's regret</th><th>ours</th>\
                   <th>ours to best fixed</th></tr>\n"
        .to_string();
    for row in rows {
        let Row { place, processor, oracle, nam, ours } = row;
        let runs = place.arm(OURS, *processor).or_else(|| place.arm(NAM, *processor));
        let runs = runs.map_or(0, |arm| arm.cell.good_runs().count());
        let _ = write!(
            out,
            "<tr><td>{}{}</td><td class='text'>{}</td><td>{}</td><td>{runs}</td>",
            escaped(&place.network.name),
            if row.counts() { "" } else { " *" },
            escaped(&class_name(place)),
            processor
        );
        for policy in [NONE, ZIP, XMILL, NAM, OURS] {
            let mean_s = place.arm(policy, *processor).and_then(|arm| mean_of(&arm));
            out += &mean_s.map_or("<td></td>".to_string(), |s| format!("<td>{}</td>", fine(s)));
        }
        let _ = write!(
            out,
            "<td>{}</td><td class='text'>{}</td>",
            fine(oracle.mean_s()),
            escaped(&oracle.best_fixed())
        );
        for regret in [nam, ours] {
            let relative = regret.map(|one| one.relative);
            let shown = cell(relative);
            out += &match relative.is_some_and(|relative| relative > TOO_MUCH) {
                true => shown.replacen("<td>", "<td class='avoid'>", 1),
                false => shown,
            };
        }
        let behind = ours.map_or(String::new(), |one| {
            let low =
                one.behind_low.map_or(String::new(), |low| format!(" ({})", format::per_cent(low)));
            format::per_cent(one.behind) + &low
        });
        let _ = writeln!(out, "<td>{behind}</td></tr>");
    }
    out + "</table></div>\n"
}

/// Mean seconds of an arm's messages, each counted alike.
fn mean_of(arm: &Arm<'_>) -> Option<f64> {
    mean(&arm.means().into_values().collect::<Vec<_>>())
}

/// Seconds with three digits, down to microseconds.
pub(super) fn fine(seconds: f64) -> String {
    match seconds {
        s if s >= 0.9995 => format::seconds(s),
        s if s >= 0.1 => format!("{s:.3}"),
        s if s >= 0.01 => format!("{s:.4}"),
        s => format!("{s:.5}"),
    }
}
