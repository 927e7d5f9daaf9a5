//! A study on a terminal, within 100 columns.

use std::fmt::Write as _;

use super::paper::PaperTimes;
use super::{Figure, Outcome, Study};
use crate::format::{per_cent, seconds};
use crate::text::wrap;

/// The tables of the paper, and ours beside.
#[must_use]
pub fn study_text(study: &Study) -> String {
    let mut text = String::new();
    let runs: usize = study.cases.iter().map(|case| case.seeds.len()).sum();
    let line = format!(
        "{}: {} in {}, fingerprint {}",
        study.scenario,
        crate::format::count(runs, "run"),
        crate::format::count(study.cases.len(), "case"),
        study.fingerprint
    );
    wrap(&line, &mut text);
    study.remarks.iter().for_each(|remark| wrap(remark, &mut text));
    if study.others > 0 {
        let others = crate::format::count(study.others, "run");
        wrap(&format!("{others} of another scenario left out."), &mut text);
    }
    if !study.sizes.is_empty() {
        text += "\nTable I: bytes of a short message\n";
        text += &format!("  {:<16}{:>8}{:>8}{:>8}\n", "case", "ours", "paper", "IP");
    }
    for row in &study.sizes {
        let paper = super::PAPER.iter().find(|case| case.name == row.case);
        let paper = paper.map_or(String::new(), |case| case.message_bytes.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:<16}{:>8}{:>8}{:>8}",
            row.case, row.message_bytes, paper, row.ip_bytes
        );
    }
    // Of one group nothing crosses.
    let crosses = study.cases.iter().any(|case| case.crossing.sent > 0.0);
    let width = study.cases.iter().map(|case| case.name.len()).max().unwrap_or(0).clamp(16, 24);
    for (title, is_all) in
        [("Table II: all messages", true), ("Table III: messages between groups", false)]
    {
        if !is_all && !crosses {
            continue;
        }
        let _ = writeln!(text, "\n{title}; the paper's in brackets");
        let _ = writeln!(
            text,
            "  {:<width$}{:>6}{:>24}{:>16}{:>20}{:>14}",
            "case", "sent", "lost", "min s", "median s", "max s"
        );
        for case in &study.cases {
            let (outcome, paper) = match is_all {
                true => (&case.all, case.paper.map(|paper| &paper.all)),
                false => (&case.crossing, case.paper.map(|paper| &paper.crossing)),
            };
            text += &row((&case.name, width), outcome, paper);
        }
    }
    text + &loads(study, width)
}

/// What was in the air, and the tail of the times.
fn loads(study: &Study, width: usize) -> String {
    let mut text = format!(
        "\nIn the air, a run\n  {:<width$}{:>22}{:>16}{:>14}{:>12}\n",
        "case", "kbit/s", "transmissions", "airtime s", "p95 s"
    );
    for case in &study.cases {
        let load = case.load_bps.map_or("-".to_owned(), |load| kbps(&load));
        let transmissions: f64 = case.airtime.iter().map(|air| air.transmissions).sum();
        let airtime_s: f64 = case.airtime.iter().map(|air| air.airtime_s.mean).sum();
        let p95 = case.all.p95_s.map_or("-".to_owned(), |p95| seconds(p95.mean));
        let airtime = seconds(airtime_s);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:<width$}{load:>22}{transmissions:>16.0}{airtime:>14}{p95:>12}",
            case.name
        );
    }
    text
}

/// A rate in kbit/s, with its interval.
pub(super) fn kbps(load_bps: &Figure) -> String {
    let mean = load_bps.mean / 1e3;
    match load_bps.interval {
        Some((from, to)) => format!("{mean:.1} [{:.1}, {:.1}]", from / 1e3, to / 1e3),
        None => format!("{mean:.1}"),
    }
}

fn row((name, width): (&str, usize), outcome: &Outcome, paper: Option<&PaperTimes>) -> String {
    let beside = |paper: Option<String>| paper.map_or(String::new(), |paper| format!(" ({paper})"));
    let lost = match &outcome.lost {
        Some(Figure { mean, interval: Some((from, to)) }) => {
            let (from, to) = (100.0 * from.max(0.0), 100.0 * to);
            format!("{:.1} [{from:.1}, {to:.1}] %", 100.0 * mean)
        }
        Some(figure) => per_cent(figure.mean),
        None => "-".to_owned(),
    };
    let time = |figure: &Option<Figure>| {
        figure.as_ref().map_or("-".to_owned(), |figure| seconds(figure.mean))
    };
    let lost = lost + &beside(paper.map(|paper| format!("{:.1}", 100.0 * paper.lost)));
    let min = time(&outcome.min_s) + &beside(paper.map(|paper| seconds(paper.min_s)));
    let middle = time(&outcome.median_s) + &beside(paper.map(|paper| seconds(paper.median_s)));
    let max = time(&outcome.max_s) + &beside(paper.map(|paper| seconds(paper.max_s)));
    format!("  {name:<width$}{:>6.0}{lost:>24}{min:>16}{middle:>20}{max:>14}\n", outcome.sent)
}
