//! Predicted against actual, by network.

use super::data::{OURS, Study, median};
use super::plot::{Frame, Panels, decades, figure, time};
use crate::format;
use crate::svg::{Anchor, LogScale, Svg};

/// So many points of a network are drawn: the rest would lie on top of them.
const MAX_POINTS: usize = 400;

/// Seconds that were predicted, and those that it took.
type Point = (f64, f64);

/// The section.
pub(super) fn predicted(study: &Study<'_>) -> String {
    let mut networks: Vec<(&str, Vec<Point>)> = Vec::new();
    for network in &study.campaign.networks {
        let arms = study
            .arms()
            .filter(|(place, arm)| place.network.name == network.name && arm.policy == OURS);
        let outcomes = arms.flat_map(|(_, arm)| arm.outcomes());
        let points = outcomes.map(|one| (one.expected.total_s(), one.actual.total_s()));
        let points: Vec<Point> = points.filter(|(one, other)| *one > 0.0 && *other > 0.0).collect();
        if !points.is_empty() {
            networks.push((&network.name, points));
        }
    }
    if networks.is_empty() {
        return String::new();
    }
    let grid = Panels::new(4, 165.0, 0.0);
    let mut svg = grid.svg(networks.len());
    for (at, (name, points)) in networks.iter().enumerate() {
        draw(&mut svg, grid.frame(at), name, points);
    }
    let all: usize = networks.iter().map(|(_, points)| points.len()).sum();
    let caption = format!(
        "What ours expected of a message before it was encoded (to the right) and what it took \
         (up): encoding, the network, decoding. On the line both are the same; above it was slower \
         than expected. Within the thin lines: a factor of two. {} of answers, those that count; \
         in each corner the share within a factor of two, and the factor that half of them are \
         within. At most {MAX_POINTS} of a network are drawn, evenly. Kernel in real time.",
        format::count(all, "decision")
    );
    "<h3>Predicted and actual</h3>\n".to_string()
        + &figure(&svg.finish("Predicted against actual by network"), &caption)
}

fn draw(svg: &mut Svg, frame: Frame, name: &str, points: &[Point]) {
    frame.title(svg, name);
    let values = || points.iter().flat_map(|(one, other)| [*one, *other]);
    let x = LogScale::around(values(), frame.left, frame.right);
    let y = LogScale::around(values(), frame.bottom, frame.top);
    let ticks = || decades(x.ticks());
    let across = ticks().into_iter().map(|tick| (x.at(tick), time(tick)));
    frame.x_axis(svg, &across.collect::<Vec<_>>(), "expected");
    let up = ticks().into_iter().map(|tick| (y.at(tick), time(tick)));
    frame.y_axis(svg, &up.collect::<Vec<_>>());
    svg.text(frame.left + 5.0, frame.top + 10.0, "tick", Anchor::Start, "took");
    let (least, most) = values()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
    for factor in [1.0, 0.5, 2.0_f64] {
        let (from, to) = (least.max(least / factor), most.min(most / factor));
        let class = if factor == 1.0 { "axis" } else { "grid" };
        if from < to {
            svg.line(class, (x.at(from), y.at(from * factor)), (x.at(to), y.at(to * factor)));
        }
    }
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let dots: String = points
        .iter()
        .step_by(step)
        .map(|(one, other)| format!("M{:.1} {:.1}h0", x.at(*one), y.at(*other)))
        .collect();
    svg.path("points", &dots, "");
    let off = points.iter().map(|(one, other)| (other / one).ln().abs());
    let close = off.clone().filter(|off| *off <= 2.0_f64.ln()).count() as f64 / points.len() as f64;
    let middle = median(off.collect()).map_or(1.0, f64::exp);
    let text = format!("{:.0} %, × {middle:.2}", 100.0 * close);
    svg.text(frame.right, frame.bottom - 6.0, "tick", Anchor::End, &text);
}
