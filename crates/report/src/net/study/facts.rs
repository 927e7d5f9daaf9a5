//! A study as JSON.

use serde_json::{Value, json};

use super::paper::PaperTimes;
use super::{CaseResult, Figure, Outcome, Study};

/// All figures of a study; times in seconds, shares from 0 to 1, intervals of 95 % as
/// `[from, to]`.
#[must_use]
pub fn study_json(study: &Study) -> Value {
    let sizes = study.sizes.iter().map(|row| {
        let paper = super::PAPER.iter().find(|case| case.name == row.case);
        json!({
            "case": row.case,
            "message_bytes": row.message_bytes,
            "ip_bytes": row.ip_bytes,
            "paper_bytes": paper.map(|case| case.message_bytes),
        })
    });
    json!({
        "scenario": study.scenario,
        "fingerprint": study.fingerprint,
        "left_out": study.others,
        "remarks": study.remarks,
        "sizes": sizes.collect::<Vec<_>>(),
        "cases": study.cases.iter().map(case).collect::<Vec<_>>(),
    })
}

fn case(case: &CaseResult) -> Value {
    let stretches = case.stretches.iter().map(|stretch| {
        json!({
            "from": stretch.from,
            "to": stretch.to,
            "media": stretch.media,
            "outcome": outcome(&stretch.outcome),
        })
    });
    let airtime = case.airtime.iter().map(|air| {
        json!({
            "medium": air.medium,
            "protocol": air.protocol,
            "transmissions": air.transmissions,
            "bytes": air.bytes,
            "airtime_s": figure(&air.airtime_s),
        })
    });
    let nodes = case.nodes.iter().map(|(medium, node, airtime_s)| {
        json!({ "medium": medium, "node": node, "airtime_s": airtime_s })
    });
    json!({
        "name": case.name,
        "seeds": case.seeds,
        "all": outcome(&case.all),
        "crossing": outcome(&case.crossing),
        "paper": case.paper.map(|paper| json!({
            "all": times(&paper.all),
            "crossing": times(&paper.crossing),
        })),
        "load_bps": case.load_bps.as_ref().map(figure),
        "stretches": stretches.collect::<Vec<_>>(),
        "airtime": airtime.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    let figure = |one: &Option<Figure>| one.as_ref().map(figure);
    json!({
        "sent": outcome.sent,
        "lost": figure(&outcome.lost),
        "min_s": figure(&outcome.min_s),
        "median_s": figure(&outcome.median_s),
        "p95_s": figure(&outcome.p95_s),
        "max_s": figure(&outcome.max_s),
        "repeated": outcome.repeated,
        "reasons": outcome.reasons,
    })
}

fn figure(figure: &Figure) -> Value {
    json!({ "mean": figure.mean, "interval": figure.interval.map(|(from, to)| [from, to]) })
}

fn times(times: &PaperTimes) -> Value {
    json!({
        "sent": times.sent,
        "lost": times.lost,
        "min_s": times.min_s,
        "median_s": times.median_s,
        "max_s": times.max_s,
    })
}
