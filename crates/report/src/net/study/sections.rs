//! A study as one HTML file that needs nothing else.

use super::paper::PaperTimes;
use super::text::kbps;
use super::{CaseResult, Figure, Outcome, Study};
use crate::format::{count, per_cent, seconds};
use crate::net::page::{document, table};
use crate::net::{STYLE, WIDTH};
use crate::svg::{Anchor, LogScale, Svg};
use crate::text::escaped;

/// Most nodes of a case that are shown.
const MAX_NODES: usize = 12;

/// The study as a whole document. It is XML too.
#[must_use]
pub fn study_page(study: &Study) -> String {
    let mut body = String::new();
    let runs: usize = study.cases.iter().map(|case| case.seeds.len()).sum();
    body += &format!(
        "<p class='lede'>{}</p>\n",
        escaped(&format!(
            "{} in {}. A figure is the mean over runs; in brackets its interval of 95 %.",
            count(runs, "run"),
            count(study.cases.len(), "case")
        ))
    );
    body += &format!("<p class='note'>Scenario {}</p>\n", escaped(&study.fingerprint));
    for remark in &study.remarks {
        body += &format!("<p class='alarm'>{}</p>\n", escaped(remark));
    }
    if study.others > 0 {
        let others = count(study.others, "run");
        body += &format!("<p class='alarm'>{others} of another scenario left out.</p>\n");
    }
    body += &sizes(study);
    body += &outcomes(study, "Table II: all messages", &|case| {
        (&case.all, case.paper.map(|paper| &paper.all))
    });
    // Of one group nothing crosses.
    if study.cases.iter().any(|case| case.crossing.sent > 0.0) {
        body += &outcomes(study, "Table III: messages between groups", &|case| {
            (&case.crossing, case.paper.map(|paper| &paper.crossing))
        });
    }
    body += &format!("<figure>{}</figure>\n", times(study));
    body += &stretches(study);
    body += &loads(study);
    body += &airtime(study);
    body += &nodes(study);
    document(&study.scenario, &body)
}

fn sizes(study: &Study) -> String {
    if study.sizes.is_empty() {
        return String::new();
    }
    let row = |row: &super::SizeRow| {
        let paper = super::PAPER.iter().find(|case| case.name == row.case);
        let paper = paper.map_or(String::new(), |case| case.message_bytes.to_string());
        vec![row.case.clone(), row.message_bytes.to_string(), paper, row.ip_bytes.to_string()]
    };
    let heads = ["Case", "Message, B", "The paper, B", "In IP, B"];
    let title = "Table I: a short message with all mandatory fields";
    table(title, &heads, study.sizes.iter().map(row).collect())
}

/// Of a case, ours and the paper's.
type Pick<'a> = &'a dyn Fn(&CaseResult) -> (&Outcome, Option<&PaperTimes>);

fn outcomes(study: &Study, title: &str, pick: Pick<'_>) -> String {
    let heads = [
        "Case", "Runs", "Sent", "Lost", "paper", "Min s", "paper", "Median s", "paper", "Max s",
        "paper", "Why lost",
    ];
    let row = |case: &CaseResult| {
        let (outcome, paper) = pick(case);
        let paper_s = |value: fn(&PaperTimes) -> f64| {
            paper.map_or(String::new(), |paper| seconds(value(paper)))
        };
        let reasons: Vec<String> =
            outcome.reasons.iter().map(|(reason, times)| format!("{reason} {times}")).collect();
        vec![
            case.name.clone(),
            case.seeds.len().to_string(),
            format!("{:.0}", outcome.sent),
            share(&outcome.lost),
            paper.map_or(String::new(), |paper| format!("{:.2} %", 100.0 * paper.lost)),
            time(&outcome.min_s),
            paper_s(|paper| paper.min_s),
            time(&outcome.median_s),
            paper_s(|paper| paper.median_s),
            time(&outcome.max_s),
            paper_s(|paper| paper.max_s),
            reasons.join(", "),
        ]
    };
    table(title, &heads, study.cases.iter().map(row).collect())
}

fn share(figure: &Option<Figure>) -> String {
    match figure {
        Some(Figure { mean, interval: Some((from, to)) }) => {
            let (from, to) = (100.0 * from.max(0.0), 100.0 * to);
            format!("{:.2} % [{from:.2}, {to:.2}]", 100.0 * mean)
        }
        Some(figure) => per_cent(figure.mean),
        None => "–".to_owned(),
    }
}

fn time(figure: &Option<Figure>) -> String {
    match figure {
        Some(Figure { mean, interval: Some((from, to)) }) => {
            format!("{} [{}, {}]", seconds(*mean), seconds(from.max(0.0)), seconds(*to))
        }
        Some(figure) => seconds(figure.mean),
        None => "–".to_owned(),
    }
}

/// Medians of all messages and of those between groups, the paper's beside ours.
fn times(study: &Study) -> String {
    const LEFT: f64 = 150.0;
    const RIGHT: f64 = WIDTH - 30.0;
    const TOP: f64 = 34.0;
    const ROW: f64 = 34.0;
    let height = TOP + ROW * study.cases.len() as f64 + 40.0;
    let ours = |case: &CaseResult| [case.all.median_s, case.crossing.median_s];
    let papers =
        |case: &CaseResult| case.paper.map(|paper| [paper.all.median_s, paper.crossing.median_s]);
    let values = study.cases.iter().flat_map(|case| {
        let ours = ours(case).into_iter().flatten();
        let ours = ours.flat_map(|one| {
            [Some(one.mean), one.interval.map(|of| of.0), one.interval.map(|of| of.1)]
        });
        ours.flatten().chain(papers(case).into_iter().flatten()).collect::<Vec<f64>>()
    });
    let scale = LogScale::around(values, LEFT, RIGHT);
    let mut svg = Svg::new(WIDTH, height);
    svg.style(STYLE);
    svg.bar("paper", (0.0, 0.0), (WIDTH, height), "");
    svg.text(14.0, 18.0, "title", Anchor::Start, "Median time from sender to receiver");
    let bottom = TOP + ROW * study.cases.len() as f64;
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line("grid", (x, TOP), (x, bottom));
        svg.text(x, bottom + 16.0, "soft", Anchor::Middle, &format!("{tick} s"));
    }
    for (index, case) in study.cases.iter().enumerate() {
        let y = TOP + ROW * index as f64 + ROW / 2.0;
        svg.text(LEFT - 12.0, y + 4.0, "key", Anchor::End, &case.name);
        for (place, figure) in ours(case).into_iter().enumerate() {
            let y = y - 6.0 + 12.0 * place as f64;
            let Some(figure) = figure else { continue };
            if let Some((from, to)) = figure.interval {
                let class = if place == 0 { "mean" } else { "most" };
                let steps = format!("M{:.1} {y:.1}H{:.1}", scale.at(from), scale.at(to));
                svg.path(class, &steps, "");
            }
            let class = if place == 0 { "node g1" } else { "node g0" };
            let title = format!("{}: {} s", case.name, seconds(figure.mean));
            svg.circle(class, (scale.at(figure.mean), y), 5.0, &title);
        }
        for (place, value) in papers(case).into_iter().flatten().enumerate() {
            let (x, y) = (scale.at(value), y - 6.0 + 12.0 * place as f64);
            let title = format!("{}, the paper: {} s", case.name, seconds(value));
            svg.circle("node alone", (x, y), 4.0, &title);
        }
    }
    let key =
        [("node g1", "all messages"), ("node g0", "between groups"), ("node alone", "the paper's")];
    for (index, (class, name)) in key.into_iter().enumerate() {
        let x = LEFT + 150.0 * index as f64;
        svg.circle(class, (x, bottom + 30.0), 5.0, "");
        svg.text(x + 12.0, bottom + 34.0, "soft", Anchor::Start, name);
    }
    svg.finish("Median times by case")
}

fn stretches(study: &Study) -> String {
    let rows = study.cases.iter().flat_map(|case| {
        case.stretches.iter().map(move |stretch| {
            let group =
                |name: &str| if name.is_empty() { "–".to_owned() } else { name.to_owned() };
            let outcome = &stretch.outcome;
            vec![
                case.name.clone(),
                format!("{} → {}", group(&stretch.from), group(&stretch.to)),
                stretch.media.clone(),
                format!("{:.1}", outcome.sent),
                share(&outcome.lost),
                time(&outcome.min_s),
                time(&outcome.median_s),
                time(&outcome.max_s),
            ]
        })
    });
    let heads = ["Case", "Groups", "Channels", "Sent", "Lost", "Min s", "Median s", "Max s"];
    table("By groups and channels", &heads, rows.collect())
}

fn loads(study: &Study) -> String {
    let row = |case: &CaseResult| {
        let load = case.load_bps.map_or(String::new(), |load| kbps(&load));
        vec![case.name.clone(), load, time(&case.all.p95_s)]
    };
    let heads = ["Case", "kbit/s in the air", "95th percentile s"];
    table("Load, all channels and headers", &heads, study.cases.iter().map(row).collect())
}

fn airtime(study: &Study) -> String {
    let rows = study.cases.iter().flat_map(|case| {
        case.airtime.iter().map(move |air| {
            vec![
                case.name.clone(),
                air.medium.clone(),
                air.protocol.clone(),
                format!("{:.0}", air.transmissions),
                format!("{:.0}", air.bytes),
                time(&Some(air.airtime_s)),
            ]
        })
    });
    let heads = ["Case", "Channel", "Protocol", "Transmissions", "Bytes", "Airtime s"];
    table("In the air, a run", &heads, rows.collect())
}

fn nodes(study: &Study) -> String {
    let rows = study.cases.iter().flat_map(|case| {
        case.nodes.iter().take(MAX_NODES).map(move |(medium, node, airtime_s)| {
            vec![case.name.clone(), node.clone(), medium.clone(), seconds(*airtime_s)]
        })
    });
    table(
        "Nodes with most airtime, a run",
        &["Case", "Node", "Channel", "Airtime s"],
        rows.collect(),
    )
}
