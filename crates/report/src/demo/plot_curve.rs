//! Time by loss: median and 95th percentile of each way.

use record::demo::{Curve, Demo};

use super::curve::{MODES, points, share};
use super::figures::{LEFT, WIDTH, class, mark, mode_name};
use crate::format;
use crate::svg::{Anchor, LogScale, Svg};

const TOP: f64 = 30.0;
const HEIGHT: f64 = 260.0;
const FOOT: f64 = 40.0;
/// Where the scale ends and the names of the lines stand.
const RIGHT: f64 = WIDTH - 190.0;

/// The plot.
pub(super) fn plot(demo: &Demo, curve: &Curve) -> String {
    let points = points(demo, curve);
    let mut svg = Svg::new(WIDTH, TOP + HEIGHT + FOOT);
    let most = points.iter().map(|point| point.loss).fold(0.01, f64::max);
    // Small losses, which are common, lie apart.
    let x = |loss: f64| LEFT + (loss / most).sqrt() * (RIGHT - LEFT);
    let all = points.iter().flat_map(|point| point.times()).flat_map(|(median, p95)| [median, p95]);
    let seconds = all.filter_map(record::demo::Time::at_least_s).filter(|time| *time > 0.0);
    // From the bottom up.
    let scale = LogScale::around(seconds, -(TOP + HEIGHT), -TOP);
    for tick in scale.ticks() {
        let y = -scale.at(tick);
        svg.line("grid", (LEFT, y), (RIGHT, y));
        svg.text(LEFT - 8.0, y + 4.0, "tick", Anchor::End, &format!("{tick} s"));
    }
    for point in &points {
        let at = x(point.loss);
        svg.text(at, TOP + HEIGHT + 16.0, "tick", Anchor::Middle, &share(point.loss));
    }
    let lost = "packets lost each way";
    svg.text(RIGHT, TOP + HEIGHT + 34.0, "tick", Anchor::End, lost);
    for (way, mode) in MODES.into_iter().enumerate() {
        for (is_tail, name) in [(false, "median"), (true, "95th percentile")] {
            let (mut before, mut last): (Option<(f64, f64)>, _) = (None, None);
            for point in &points {
                let (median, p95) = point.times()[way];
                let time = if is_tail { p95 } else { median };
                let Some(seconds) = time.at_least_s().filter(|seconds| *seconds > 0.0) else {
                    before = None;
                    continue;
                };
                let here = (x(point.loss), -scale.at(seconds));
                if let Some(before) = before {
                    let line = if is_tail { "tail" } else { "through" };
                    svg.line(&format!("{} {line}", class(mode)), before, here);
                }
                let title = format!(
                    "{}, {name} at {}: {} s",
                    mode_name(mode),
                    share(point.loss),
                    format::time(time),
                );
                svg.mark(mark(mode), &format!("{} point", class(mode)), here, &title);
                (before, last) = (Some(here), Some(here));
            }
            if let Some((at, y)) = last {
                let label = format!("{}, {name}", mode_name(mode));
                svg.text(at + 10.0, y + 4.0, "label", Anchor::Start, &label);
            }
        }
    }
    svg.finish("Seconds per fetch by loss, with gzip and with longwire")
}
