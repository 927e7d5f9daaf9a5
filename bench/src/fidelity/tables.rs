//! The result as tables for a person.

use std::fmt::Write;

use record::fidelity::{
    DelayResult, DelayRun, Fidelity, PairsResult, RateResult, ShareResult, WayResult,
};
use record::machine::Busy;

use crate::markdown::Table;
use crate::statistics::median;

/// Errors whose share is shown, in microseconds.
const TAILS_US: [f64; 5] = [100.0, 200.0, 500.0, 1_000.0, 5_000.0];

/// The whole result in Markdown, legible on a terminal as it is.
#[must_use]
pub fn render(result: &Fidelity) -> String {
    let mut text = crate::machine::render(&result.machine);
    for way in &result.ways {
        render_way(&mut text, way);
    }
    text
}

fn render_way(text: &mut String, way: &WayResult) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n### {}: {}\n\n", way.way, way.about);
    let _ = writeln!(
        text,
        "Ferry: {}. Load: {}.\nTransmit timestamps: {}.",
        way.scheduling,
        way.load,
        if way.transmit_stamps.is_empty() { "none needed" } else { &way.transmit_stamps }
    );
    if !way.delays.is_empty() {
        delays(text, &way.delays);
    }
    if !way.rates.is_empty() {
        rates(text, &way.rates);
    }
    if !way.shares.is_empty() {
        shares(text, &way.shares);
    }
    if let Some(result) = &way.pairs {
        pairs(text, result);
    }
    let repeated = way.repeated.len();
    let _ = write!(text, "\nRuns repeated for stolen time or a clock that was set: {repeated}");
    text.push_str(if repeated == 0 { ".\n" } else { ":\n\n" });
    for reason in &way.repeated {
        let _ = writeln!(text, "- {reason}");
    }
    if !way.missed.is_empty() {
        text.push_str("\n**Bounds missed:**\n\n");
        for missed in &way.missed {
            let _ = writeln!(text, "- {missed}");
        }
    }
}

const RUN_HEADS: [&str; 12] = [
    "packets",
    "least µs",
    "p50 µs",
    "p99 µs",
    "p99.9 µs",
    "max µs",
    "ferry p50",
    "p99",
    "p99.9",
    "max",
    "stolen %",
    "others %",
];

fn run_cells(run: &DelayRun) -> [String; 12] {
    let DelayRun { error, ferry, busy } = run;
    [
        format!("{}/{}", error.measured, error.sent),
        us(error.least_us),
        us(error.p50_us),
        us(error.p99_us),
        us(error.p999_us),
        us(error.max_us),
        ferry.p50_us.to_string(),
        ferry.p99_us.to_string(),
        ferry.p999_us.to_string(),
        ferry.max_us.to_string(),
        percent(busy.stolen_percent),
        percent(busy.others_percent),
    ]
}

fn delays(text: &mut String, results: &[DelayResult]) {
    text.push_str(
        "\nError of the delay, by kernel timestamps outside of the ferry; beside it the ferry's \
         own lateness\n(from the due time to the end of its write):\n\n",
    );
    let mut table = Table::new(&[&["delay, run"], RUN_HEADS.as_slice()].concat());
    for result in results {
        for (index, run) in result.runs.iter().enumerate() {
            let name = format!("{} ms, {}", result.delay_ms, index + 1);
            table.row([name].into_iter().chain(run_cells(run)));
        }
        table.row(median_cells(result));
    }
    text.push_str(&table.render());
    if let Some(bound_us) = results.iter().find_map(|result| result.bound_us) {
        let _ =
            writeln!(text, "\nBound: the median of p99 is at most {bound_us} µs at each delay.");
    }
    text.push_str("\nShare of all packets that were off by more:\n\n");
    let heads = TAILS_US.map(|edge| format!("over {edge} µs"));
    let mut heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    heads.insert(0, "delay");
    let mut table = Table::new(&heads);
    for result in results {
        let name = format!("{} ms", result.delay_ms);
        table.row([name].into_iter().chain(TAILS_US.map(|edge| tail(&result.runs, edge))));
    }
    text.push_str(&table.render());
}

fn median_cells(result: &DelayResult) -> Vec<String> {
    let of = |get: fn(&DelayRun) -> f64| us(median(result.runs.iter().map(get)));
    vec![
        format!("{} ms, median", result.delay_ms),
        String::new(),
        of(|run| run.error.least_us),
        of(|run| run.error.p50_us),
        of(|run| run.error.p99_us),
        of(|run| run.error.p999_us),
        of(|run| run.error.max_us),
        of(|run| run.ferry.p50_us as f64),
        of(|run| run.ferry.p99_us as f64),
        of(|run| run.ferry.p999_us as f64),
        of(|run| run.ferry.max_us as f64),
        String::new(),
        String::new(),
    ]
}

fn tail(runs: &[DelayRun], edge_us: f64) -> String {
    let over = |run: &DelayRun| {
        let bins = run.error.bins.iter().filter(|(edge, _)| *edge > edge_us);
        bins.map(|(_, packets)| packets).sum::<u64>()
    };
    let (over, all) = (
        runs.iter().map(over).sum::<u64>(),
        runs.iter().map(|run| run.error.measured).sum::<usize>(),
    );
    format!("{:.3} % ({over})", over as f64 / all.max(1) as f64 * 100.0)
}

fn rates(text: &mut String, results: &[RateResult]) {
    text.push_str("\nRates, by receive timestamps over IP bytes, packets kept waiting:\n\n");
    let heads = [
        "rate, bit/s",
        "measured",
        "error %",
        "bound %",
        "over s",
        "packet B",
        "packets",
        "queue peak B",
        "stolen %",
        "others %",
    ];
    let mut table = Table::new(&heads);
    for result in results {
        let error_percent = (result.measured_bps / result.nominal_bps as f64 - 1.0) * 100.0;
        let Busy { stolen_percent, others_percent } = result.busy;
        table.row([
            result.nominal_bps.to_string(),
            format!("{:.0}", result.measured_bps),
            format!("{error_percent:+.3}"),
            result.bound_percent.map_or("-".to_string(), |bound| bound.to_string()),
            format!("{:.2}", result.span_s),
            result.packet_bytes.to_string(),
            format!("{}/{}", result.arrived, result.sent),
            result.queue_peak_bytes.to_string(),
            percent(stolen_percent),
            percent(others_percent),
        ]);
    }
    text.push_str(&table.render());
}

fn shares(text: &mut String, results: &[ShareResult]) {
    text.push_str(
        "\nShares and distributions; all intervals together hold with 99 % confidence \
         (Bonferroni). 'model' is the\nlink model alone in virtual time with the same seed:\n\n",
    );
    let heads = ["setting", "expected", "observed", "± at most", "packets", "model", "seed", "how"];
    let mut table = Table::new(&heads);
    for result in results {
        table.row([
            result.what.clone(),
            format!("{:.4}", result.expected),
            format!("{:.4}", result.observed),
            format!("{:.4}", result.half_width),
            format!("{}/{}", result.counted, result.packets),
            result.in_virtual_time.map_or("-".to_string(), |count| count.to_string()),
            result.seed.to_string(),
            result.method.clone(),
        ]);
    }
    text.push_str(&table.render());
}

fn pairs(text: &mut String, result: &PairsResult) {
    let PairsResult { pairs, seconds, packets_per_s, set_up_s, tear_down_s, ferry_percent, .. } =
        result;
    let delays: Vec<String> = result.delays_ms.iter().map(u64::to_string).collect();
    let _ = write!(
        text,
        "\n{pairs} host pairs at once for {seconds} s, {packets_per_s} packets a second in all, \
         delays {} ms in turn.\nBuilt in {set_up_s:.1} s, removed in {tear_down_s:.1} s; the \
         ferry's thread used {ferry_percent:.0} % of a core.\n\n",
        delays.join(", ")
    );
    let mut table = Table::new(&[&["pairs"], RUN_HEADS.as_slice()].concat());
    table.row([pairs.to_string()].into_iter().chain(run_cells(&result.run)));
    text.push_str(&table.render());
    if let Some(bound_us) = result.bound_us {
        let _ = writeln!(text, "\nBound: p99 is at most {bound_us} µs.");
    }
}

fn us(value: f64) -> String {
    format!("{value:.0}")
}

fn percent(value: f64) -> String {
    format!("{value:.1}")
}
