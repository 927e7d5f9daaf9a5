//! The result as tables for a person.

use std::fmt::Write;

use record::benchmark::{Benchmark, BodiesResult, Round, SmallResult};

use crate::markdown::Table;
use crate::statistics::median;

const MIB: f64 = 1024.0 * 1024.0;

/// The whole result in Markdown, legible on a terminal as it is.
#[must_use]
pub fn render(result: &Benchmark) -> String {
    let mut text = crate::machine::render(&result.machine);
    if !result.bodies.is_empty() {
        bodies(&mut text, &result.bodies);
    }
    small(&mut text, &result.small);
    if !result.missed.is_empty() {
        text.push_str("\n**Failed or over a bound:**\n\n");
        for missed in &result.missed {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {missed}");
        }
    }
    text
}

fn carrier(keys: bool) -> String {
    if keys { "TLS 1.3" } else { "plain" }.to_string()
}

fn bodies(text: &mut String, results: &[BodiesResult]) {
    text.push_str("\n### Large bodies\n\n");
    let heads = [
        "encoding",
        "carrier",
        "direction",
        "at once",
        "MB each",
        "same bytes",
        "seconds",
        "MB/s in all",
        "edge peak MiB",
        "gateway peak MiB",
        "bound MiB",
        "stolen %",
    ];
    let mut table = Table::new(&heads);
    for result in results {
        let megabytes = result.body_bytes as f64 / 1e6;
        let per_s = megabytes * result.at_once as f64 / result.elapsed_s;
        table.row([
            result.encoding.clone(),
            carrier(result.keys),
            result.direction.clone(),
            result.at_once.to_string(),
            format!("{megabytes:.0}"),
            format!("{}/{}", result.same, result.at_once),
            format!("{:.1}", result.elapsed_s),
            format!("{per_s:.0}"),
            mebibytes(result.edge_peak_bytes),
            mebibytes(result.gateway_peak_bytes),
            mebibytes(result.bound_bytes),
            format!("{:.1}", result.busy.stolen_percent),
        ]);
    }
    text.push_str(&table.render());
}

fn small(text: &mut String, results: &[SmallResult]) {
    let Some(SmallResult { body_bytes, connections, rounds, .. }) = results.first() else { return };
    let rounds = rounds.len();
    let _ = write!(
        text,
        "\n### Small answers\n\n\
         Answers of {body_bytes} B. Client on one core, service and pair on another. Direct and \
         through the pair in turn,\n{rounds} rounds; medians, and the least and greatest in \
         brackets. Latency with one connection, requests per\nsecond with {connections}. Memory \
         is edge / gateway.\n\n"
    );
    let heads = [
        "encoding",
        "carrier",
        "direct p50 µs",
        "added p50 µs",
        "direct p99 µs",
        "added p99 µs",
        "direct requests/s",
        "requests/s",
        "processor µs a request",
        "idle MiB",
        "peak MiB",
    ];
    let mut table = Table::new(&heads);
    for result in results {
        let of = |get: fn(&Round) -> f64| spread(result.rounds.iter().map(get));
        table.row([
            result.encoding.clone(),
            carrier(result.keys),
            of(|round| round.direct.p50_us),
            of(|round| round.pair.p50_us - round.direct.p50_us),
            of(|round| round.direct.p99_us),
            of(|round| round.pair.p99_us - round.direct.p99_us),
            of(|round| round.direct.requests_per_s),
            of(|round| round.pair.requests_per_s),
            of(|round| round.processor_us),
            result.idle_bytes.map(mebibytes).join(" / "),
            result.peak_bytes.map(mebibytes).join(" / "),
        ]);
    }
    text.push_str(&table.render());
}

/// The median, and in brackets the least and the greatest.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.0} ({least:.0} to {greatest:.0})", median(values))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / MIB)
}
