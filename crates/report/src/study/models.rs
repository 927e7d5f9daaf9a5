//! The equivalent of NAM's Figure 3: how wrong the models of the network are, by size of message.

use super::data::{NAM, OURS, Study, StudyCell};
use super::plot::{Frame, Panels, decades, figure, size};
use crate::format;
use crate::svg::{Anchor, LogScale, Mark, Svg};

/// Round trips from here on are long.
const LONG_S: f64 = 0.02;
/// The scale ends here, in per cent, either way.
const END: f64 = 100.0;
/// Sizes in a bin: so many bins a decade.
const BINS: f64 = 2.0;
/// A bin of fewer messages says nothing.
const MIN_MESSAGES: usize = 3;
/// The group that is about this.
const GROUP: &str = "models";

/// A policy with or without loss.
struct Series {
    name: &'static str,
    policy: &'static str,
    lossy: bool,
    class: &'static str,
    mark: Mark,
}

const SERIES: [Series; 4] = [
    Series {
        name: "NAM, no loss",
        policy: NAM,
        lossy: false,
        class: "hollow second",
        mark: Mark::Square,
    },
    Series { name: "NAM, loss", policy: NAM, lossy: true, class: "second", mark: Mark::Square },
    Series {
        name: "ours, no loss",
        policy: OURS,
        lossy: false,
        class: "hollow first",
        mark: Mark::Circle,
    },
    Series { name: "ours, loss", policy: OURS, lossy: true, class: "first", mark: Mark::Circle },
];

/// Bytes on the way, and per cent of the time that the model was off.
type Point = (f64, f64);

/// The section.
pub(super) fn figure_3(study: &Study<'_>) -> String {
    let in_group = |place: &&StudyCell<'_>| {
        place.arms.iter().any(|arm| arm.cell.groups.iter().any(|group| group == GROUP))
    };
    let mut places: Vec<&StudyCell<'_>> = study.places.iter().filter(in_group).collect();
    if places.is_empty() {
        places = study.places.iter().collect();
    }
    let long = |place: &&&StudyCell<'_>| 2.0 * place.network.delay_s >= LONG_S;
    let (far, near): (Vec<&StudyCell<'_>>, Vec<&StudyCell<'_>>) =
        places.iter().partition(|place| long(place));
    let panels: Vec<(&str, Vec<&StudyCell<'_>>)> =
        [("a. Long round trip", far), ("b. Short round trip", near)]
            .into_iter()
            .filter(|(_, places)| SERIES.iter().any(|series| !points(series, places).is_empty()))
            .collect();
    if panels.is_empty() {
        return String::new();
    }
    let grid = Panels::new(panels.len(), 240.0, 20.0);
    let mut svg = grid.svg(panels.len());
    for (at, series) in SERIES.iter().enumerate() {
        let x = 62.0 + 150.0 * at as f64;
        svg.mark(series.mark, series.class, (x, 10.0), series.name);
        svg.text(x + 8.0, 14.0, "tick", Anchor::Start, series.name);
    }
    for (at, (title, places)) in panels.iter().enumerate() {
        draw(&mut svg, grid.frame(at), title, places);
    }
    let caption = format!(
        "Error of the models of the network by encoded bytes (NAM's Figure 3): observed less \
         estimated, as a share of observed, in medians of bins with at least {MIN_MESSAGES} \
         messages; estimated for the bytes that really went, so that neither sizes nor codecs \
         count. Beyond ±{END:.0} % at the edge. NAM as published takes its no-loss model until it \
         has seen loss, then that of PFTK. Networks: {}. Kernel in real time.",
        networks(&places)
    );
    "<h3>How good the models of the network are (NAM's Figure 3)</h3>\n".to_string()
        + &figure(&svg.finish("Model error by size"), &caption)
}

fn networks(places: &[&StudyCell<'_>]) -> String {
    let mut all: Vec<String> = Vec::new();
    for place in places {
        let text = format!("{} ({})", place.network.name, crate::campaign::describe(place.network));
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join("; ")
}

fn points(series: &Series, places: &[&StudyCell<'_>]) -> Vec<Point> {
    let of_loss = places.iter().filter(|place| (place.network.loss > 0.0) == series.lossy);
    let arms =
        of_loss.flat_map(|place| place.arms.iter().filter(|arm| arm.policy == series.policy));
    let outcomes = arms.flat_map(|arm| arm.outcomes());
    let point = |outcome: &record::decision::Outcome| {
        let (actual, off_s) = (outcome.actual, outcome.split.network_s);
        let known = actual.network_s > 0.0 && actual.bytes > 0;
        known.then(|| (actual.bytes as f64, 100.0 * off_s / actual.network_s))
    };
    outcomes.filter_map(point).collect()
}

/// Medians by size.
fn binned(points: &[Point]) -> Vec<(f64, f64, usize)> {
    let bin = |bytes: f64| (bytes.log10() * BINS).floor();
    let mut bins: Vec<f64> = points.iter().map(|(bytes, _)| bin(*bytes)).collect();
    bins.sort_by(f64::total_cmp);
    bins.dedup();
    let medians = bins.into_iter().filter_map(|of| {
        let inside: Vec<f64> =
            points.iter().filter(|(bytes, _)| bin(*bytes) == of).map(|(_, off)| *off).collect();
        let count = inside.len();
        let middle = super::data::median(inside).filter(|_| count >= MIN_MESSAGES)?;
        Some((10_f64.powf((of + 0.5) / BINS), middle, count))
    });
    medians.collect()
}

fn draw(svg: &mut Svg, frame: Frame, title: &str, places: &[&StudyCell<'_>]) {
    frame.title(svg, title);
    let all = SERIES.iter().flat_map(|series| points(series, places));
    let x = LogScale::around(all.map(|(bytes, _)| bytes), frame.left, frame.right);
    let ticks = decades(x.ticks()).into_iter().map(|tick| (x.at(tick), size(tick)));
    frame.x_axis(svg, &ticks.collect::<Vec<_>>(), "encoded bytes");
    let middle = (frame.top + frame.bottom) / 2.0;
    let height = (frame.bottom - frame.top) / 2.0;
    let y = |off: f64| middle - off.clamp(-END, END) / END * height;
    let ticks = [-100.0, -50.0, 0.0, 50.0, 100.0].map(|off| (y(off), format!("{off:.0} %")));
    frame.y_axis(svg, &ticks);
    svg.line("axis", (frame.left, middle), (frame.right, middle));
    for (at, series) in SERIES.iter().enumerate() {
        let beside = 3.0 * (at as f64 - 1.5);
        for (bytes, off, count) in binned(&points(series, places)) {
            let title =
                format!("{}: {off:.0} % ({})", series.name, format::count(count, "message"));
            svg.mark(series.mark, series.class, (x.at(bytes) + beside, y(off)), &title);
        }
    }
}
