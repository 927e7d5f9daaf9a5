//! The table at the end of a demonstration, within 100 columns.

use std::fmt::Write;

use record::demo::{Demo, Mode};

use super::remarks::{conditions, remarks};
use super::rows::{Row, item_noun, rows};
use super::summary::summary;
use super::{curve, urgent};
use crate::format;
use crate::text::wrap;

/// Of the remarks on cells, so many are shown; all are in the report.
const MAX_REMARKS: usize = 12;

/// What came out, for a terminal.
#[must_use]
pub fn table(demo: &Demo) -> String {
    let name_width = demo.networks.iter().map(|network| network.name.len()).max();
    let width = name_width.unwrap_or(0).max("network".len());
    let noun = item_noun(demo);
    let mut text = format!(
        "{:width$}  {:<9}  {:^26}  {:^13}  {:^26}  {:>5}\n",
        "",
        "",
        format!("median s per {noun}"),
        "times faster",
        format!("KB per {noun} on the wire"),
        "bound",
    );
    let modes = Mode::ALL.map(|mode| format!("{:>8}", mode.name())).join(" ");
    let _ = writeln!(
        text,
        "{:width$}  {:<9}  {modes}  {:>6} {:>6}  {modes}  {:>5}",
        "network", "service", "direct", "gzip", "s"
    );
    let mut last = "";
    for row in rows(demo) {
        let network = row.network.name.as_str();
        let shown = if network == last { "" } else { network };
        last = network;
        let _ = writeln!(text, "{shown:width$}  {}", line(&row));
    }
    text.push('\n');
    tail(demo, noun, width, &mut text);
    let encoding = &demo.setting.bound_encoding;
    let mut notes = vec![
        summary(demo),
        format!(
            "bound: one round trip and the airtime of request and answer in {encoding}; a delta of \
             an earlier answer may come in below."
        ),
    ];
    notes.extend(curve::sentence(demo));
    notes.extend(urgent::sentence(demo));
    notes.extend(conditions(&demo.setting));
    let all = remarks(demo);
    let more = all.len().saturating_sub(MAX_REMARKS);
    notes.extend(all.into_iter().take(MAX_REMARKS));
    if more > 0 {
        notes.push(format!("and {more} more remarks: see the report"));
    }
    for note in notes {
        wrap(&note, &mut text);
    }
    text
}

/// Means and 95th percentiles: what is lost shows there.
fn tail(demo: &Demo, noun: &str, width: usize, text: &mut String) {
    let _ = writeln!(
        text,
        "{:width$}  {:<9}  {:^26}  {:^26}  {:^15}",
        "",
        "",
        format!("mean s per {noun}"),
        "95th percentile, s",
        "times gzip",
    );
    let modes = Mode::ALL.map(|mode| format!("{:>8}", mode.name())).join(" ");
    let _ = writeln!(
        text,
        "{:width$}  {:<9}  {modes}  {modes}  {:>7} {:>7}",
        "network", "service", "mean", "p95"
    );
    let mut last = "";
    for row in rows(demo) {
        let network = row.network.name.as_str();
        let shown = if network == last { "" } else { network };
        last = network;
        let times = [row.means(), row.p95s()]
            .map(|times| times.map(|time| format!("{:>8}", format::time(time))).join(" "));
        let [mean, p95] = row.tail_gains();
        let _ = writeln!(
            text,
            "{shown:width$}  {:<9}  {}  {}  {mean:>7} {p95:>7}",
            row.service.name, times[0], times[1],
        );
    }
    text.push('\n');
}

fn line(row: &Row<'_>) -> String {
    let medians = row.medians().into_iter().zip(row.marks());
    let medians =
        medians.map(|(time, mark)| format!("{:>8}", format!("{}{mark}", format::time(time))));
    let medians = medians.collect::<Vec<_>>().join(" ");
    let bytes = |bytes: Option<f64>| bytes.map(|bytes| format!("{:.1}", bytes / 1000.0));
    let bytes = row.wire_bytes().map(|all| format!("{:>8}", bytes(all).unwrap_or("–".into())));
    let bytes = bytes.join(" ");
    let [direct, gzip] = row.gains();
    let bound = row.bound_s().map_or("–".to_string(), format::seconds);
    let service = &row.service.name;
    format!("{service:<9}  {medians}  {direct:>6} {gzip:>6}  {bytes}  {bound:>5}")
}
