//! What encodings cost: the equivalents of NAM's Table 3 and Figure 5.

use std::fmt::Write;

use record::decision::Outcome;

use super::data::{Arm, GENERATED, Study, XMILL, ZIP, median};
use super::plot::{Panels, figure, time};
use crate::format;
use crate::svg::{Anchor, LogScale, Mark};
use crate::text::escaped;

/// A row of the paper's Table 3: the query, bytes as they are, and for Zip and XMill bytes and
/// milliseconds to compress and to decompress.
struct Published {
    query: &'static str,
    bytes: u64,
    coded: [(u64, f64, f64); 2],
}

/// With its processor of 3.06 GHz.
const PUBLISHED: [Published; 4] = [
    Published { query: "query 12", bytes: 929, coded: [(303, 0.68, 0.07), (358, 1.78, 0.70)] },
    Published {
        query: "query 20",
        bytes: 46_219,
        coded: [(6_766, 2.8, 0.85), (5_962, 9.54, 3.04)],
    },
    Published {
        query: "query 3",
        bytes: 3_513_484,
        coded: [(243_912, 146.4, 55.32), (199_671, 356.54, 173.1)],
    },
    Published {
        query: "query 10",
        bytes: 25_927_167,
        coded: [(4_166_404, 1493.0, 569.0), (3_259_501, 2916.6, 273.3)],
    },
];
const POLICIES: [&str; 2] = [ZIP, XMILL];
/// The message of Figure 5.
const FIGURE_5: &str = "query 13";

/// What an encoding made of a message, in the middle of all runs.
struct Coded {
    body_bytes: u64,
    bytes: u64,
    encode_s: f64,
    decode_s: f64,
}

/// A time of it.
type Of = fn(&Coded) -> f64;

/// What a policy on a processor made of the messages of a name, wherever.
fn coded(study: &Study<'_>, policy: &str, processor: f64, query: &str) -> Option<Coded> {
    let arms = study.arms().filter(|(place, arm)| {
        place.server != GENERATED && arm.policy == policy && arm.processor == processor
    });
    let outcomes: Vec<&Outcome> = arms.flat_map(|(_, arm)| of_query(arm, query)).collect();
    let first = outcomes.first()?;
    let middle = |of: fn(&Outcome) -> f64| median(outcomes.iter().map(|one| of(one)).collect());
    Some(Coded {
        body_bytes: first.body_bytes,
        bytes: first.actual.bytes,
        encode_s: middle(|one| one.actual.encode_s)?,
        decode_s: middle(|one| one.actual.decode_s)?,
    })
}

/// Outcomes of the messages that have the length of the answers of this name.
fn of_query<'a>(arm: &Arm<'a>, query: &str) -> Vec<&'a Outcome> {
    let measured = arm.cell.good_runs().flat_map(|run| &run.measured);
    let mut of_name = measured.map(|one| &one.exchange).filter(|one| one.name == query);
    let Some(bytes) = of_name.find(|one| one.error.is_none()).map(|one| one.body_bytes) else {
        return Vec::new();
    };
    arm.outcomes().filter(|one| one.body_bytes == bytes).collect()
}

/// The equivalent of Table 3.
pub(super) fn table_3(study: &Study<'_>) -> String {
    let mut rows = String::new();
    for published in &PUBLISHED {
        let ours = POLICIES.map(|policy| coded(study, policy, 1.0, published.query));
        let Some(bytes) = ours.iter().flatten().next().map(|one| one.body_bytes) else { continue };
        let name = escaped(published.query);
        let _ = write!(rows, "<tr class='first'><td>{name}, here</td><td>{bytes}</td>");
        for one in &ours {
            rows += &one.as_ref().map_or("<td></td>".repeat(4), |one| {
                entry(one.body_bytes, (one.bytes, 1e3 * one.encode_s, 1e3 * one.decode_s))
            });
        }
        let _ = write!(rows, "</tr>\n<tr><td>{name}, the paper</td><td>{}</td>", published.bytes);
        for coded in published.coded {
            rows += &entry(published.bytes, coded);
        }
        rows += "</tr>\n";
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<h3>What encodings cost (NAM's Table 3)</h3>\n<div class='wide'><table class='dense'>\n\
         <tr><th>answer</th><th>bytes</th><th>Zip, bytes</th><th>factor</th><th>encode, ms</th>\
         <th>decode, ms</th><th>XMill, bytes</th><th>factor</th><th>encode, ms</th>\
         <th>decode, ms</th></tr>\n{rows}</table></div>\n<p class='note'>One answer of each class, \
         as SOAP; medians over all runs on this machine's own processor, encoded by the gateway \
         and decoded by the edge, in blocks of 64 KiB. Zip is deflate at level 6, XMill our codec \
         of its kind with deflate inside. The paper: whole files, 3.06 GHz; its answers are other \
         renderings of the same tables.</p>\n"
    )
}

fn entry(plain: u64, (bytes, encode_ms, decode_ms): (u64, f64, f64)) -> String {
    let factor = format::factor(plain as f64 / bytes.max(1) as f64);
    let ms = |ms: f64| match ms {
        ms if ms < 10.0 => format!("{ms:.2}"),
        ms => format!("{ms:.0}"),
    };
    format!("<td>{bytes}</td><td>{factor}</td><td>{}</td><td>{}</td>", ms(encode_ms), ms(decode_ms))
}

/// The equivalent of Figure 5: times of codecs by processor.
pub(super) fn figure_5(study: &Study<'_>) -> String {
    let mut processors: Vec<f64> = study.arms().map(|(_, arm)| arm.processor).collect();
    processors.sort_by(f64::total_cmp);
    processors.dedup();
    let series: Vec<(&str, Vec<(f64, Coded)>)> = POLICIES
        .into_iter()
        .map(|policy| {
            let points = processors.iter().filter_map(|processor| {
                Some((*processor, coded(study, policy, *processor, FIGURE_5)?))
            });
            (policy, points.collect())
        })
        .collect();
    let points = || series.iter().flat_map(|(_, points)| points);
    if points().count() < 2 {
        return String::new();
    }
    let parts: [(&str, Of); 2] = [("encode", |one| one.encode_s), ("decode", |one| one.decode_s)];
    let panels = Panels::new(2, 210.0, 18.0);
    let mut svg = panels.svg(2);
    for (at, policy) in POLICIES.iter().enumerate() {
        let (mark, class) = style(at);
        let x = 60.0 + 120.0 * at as f64;
        svg.mark(mark, class, (x, 10.0), policy);
        svg.text(x + 8.0, 14.0, "tick", Anchor::Start, policy);
    }
    for (at, (name, of)) in parts.into_iter().enumerate() {
        let frame = panels.frame(at);
        let values = points().map(|(_, one)| of(one)).filter(|seconds| *seconds > 0.0);
        let y = LogScale::around(values, frame.bottom, frame.top);
        let x = LogScale::around(processors.iter().copied(), frame.left, frame.right);
        frame.title(&mut svg, &format!("to {name}"));
        let ticks = processors.iter().map(|one| (x.at(*one), one.to_string()));
        frame.x_axis(&mut svg, &ticks.collect::<Vec<_>>(), "times slower than this machine");
        let ticks = y.ticks().into_iter().map(|tick| (y.at(tick), time(tick)));
        frame.y_axis(&mut svg, &ticks.collect::<Vec<_>>());
        for (at, (policy, points)) in series.iter().enumerate() {
            let (mark, class) = style(at);
            for (processor, one) in points.iter().filter(|(_, one)| of(one) > 0.0) {
                let title = format!("{policy}, {processor}: {:.3} ms", 1e3 * of(one));
                svg.mark(mark, class, (x.at(*processor), y.at(of(one))), &title);
            }
        }
    }
    let caption = format!(
        "Processor and codec (NAM's Figure 5): time to encode and to decode the answer of \
         {FIGURE_5}, median over all runs, both scales logarithmic. A slower processor is \
         emulated: what took a time here completes later by the factor, so times grow with it by \
         construction; the paper's four real processors did not scale as their clocks."
    );
    "<h3>Codecs and processors (NAM's Figure 5)</h3>\n".to_string()
        + &figure(&svg.finish("Time of codecs by processor"), &caption)
}

fn style(at: usize) -> (Mark, &'static str) {
    [(Mark::Circle, "second"), (Mark::Square, "first")][at % 2]
}
