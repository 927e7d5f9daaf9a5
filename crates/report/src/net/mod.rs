//! Scenarios of radio nets, and what came out of their runs.
//!
//! [`picture`] draws a scenario at a time, [`scenario_page`] shows several of them in one file;
//! [`Study`] has the tables of IST-150 from runs.

mod ground;
mod hops;
mod map;
mod page;
mod study;
mod view;

use std::time::Duration;

use link::losses::NodeId;
use link::net::Resolved;

use crate::svg::Svg;
pub use hops::{HopSample, MAX_SAMPLES, hop_samples};
pub use page::scenario_page;
pub use study::{
    Airtime, CaseResult, Figure, Outcome, PAPER, PaperCase, PaperTimes, SizeRow, Stretch, Study,
    study_json, study_page, study_text,
};

/// Colours and strokes of the pictures.
const STYLE: &str = include_str!("style.css");
/// Width of a picture, in pixels.
const WIDTH: f64 = 960.0;
/// Between the map and the plot below it.
const GAP: f64 = 34.0;

/// A scenario at a time as an SVG file that needs nothing else: the ground with its heights, the
/// nodes, who hears whom and how well, and below it hops over the whole scenario. With `root` the
/// routes of all nodes to that one are drawn.
#[must_use]
pub fn picture(resolved: &Resolved, at: Duration, root: Option<NodeId>) -> String {
    let samples = hop_samples(resolved);
    let map = map::Map::new(resolved, at, root);
    let plot = hops::Plot::new(&samples, resolved.scenario.duration);
    let height = map.height() + GAP + plot.height();
    let mut svg = Svg::new(WIDTH, height);
    svg.style(STYLE);
    svg.bar("paper", (0.0, 0.0), (WIDTH, height), "");
    map.draw(&mut svg);
    plot.draw(&mut svg, map.height() + GAP, Some(at));
    svg.finish(&format!("{} at {} s", resolved.scenario.title, at.as_secs_f64()))
}

#[cfg(test)]
mod tests;
