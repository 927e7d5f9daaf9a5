//! Hops over a scenario's time.

use std::fmt::Write as _;
use std::time::Duration;

use link::net::{HopCounts, Resolved};

use super::WIDTH;
use crate::svg::{Anchor, LinearScale, Svg};

/// Most times at which hops are counted for a picture.
pub const MAX_SAMPLES: usize = 120;

const LEFT: f64 = 60.0;
const RIGHT: f64 = WIDTH - 150.0;
const HEIGHT: f64 = 120.0;
const TOP: f64 = 22.0;
const FOOT: f64 = 30.0;

/// Hops at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct HopSample {
    /// Since the scenario's start.
    pub at: Duration,
    /// Of all pairs of nodes.
    pub counts: HopCounts,
}

/// Hops at the scenario's steps, at [`MAX_SAMPLES`] of them at the most: the first, the last, and
/// even ones between.
#[must_use]
pub fn hop_samples(resolved: &Resolved) -> Vec<HopSample> {
    let steps: Vec<Duration> = resolved.steps().collect();
    let count = steps.len().min(MAX_SAMPLES);
    let last = steps.len().saturating_sub(1);
    let place = |index: usize| match count {
        0 | 1 => 0,
        count => index * last / (count - 1),
    };
    let sample = |at: &Duration| HopSample { at: *at, counts: resolved.routes(*at).hop_counts() };
    (0..count).filter_map(|index| steps.get(place(index))).map(sample).collect()
}

/// The plot of hops.
pub(super) struct Plot<'a> {
    samples: &'a [HopSample],
    duration: Duration,
}

impl<'a> Plot<'a> {
    pub(super) fn new(samples: &'a [HopSample], duration: Duration) -> Self {
        Self { samples, duration }
    }

    pub(super) fn height(&self) -> f64 {
        TOP + HEIGHT + FOOT
    }

    pub(super) fn draw(&self, svg: &mut Svg, top: f64, now: Option<Duration>) {
        let (upper, lower) = (top + TOP, top + TOP + HEIGHT);
        svg.text(14.0, top + 10.0, "title", Anchor::Start, "Hops over time");
        let most = self.samples.iter().map(|sample| sample.counts.max()).max().unwrap_or(1);
        let scale = LinearScale::up_to(most.max(1) as f64, lower, upper);
        for tick in scale.ticks().into_iter().filter(|tick| tick.fract() == 0.0) {
            let y = scale.at(tick);
            svg.line("grid", (LEFT, y), (RIGHT, y));
            svg.text(LEFT - 8.0, y + 4.0, "soft", Anchor::End, &format!("{tick}"));
        }
        let length_s = self.duration.as_secs_f64().max(1e-9);
        let x = |at: Duration| LEFT + (at.as_secs_f64() / length_s).min(1.0) * (RIGHT - LEFT);
        let times = LinearScale::up_to(length_s, 0.0, 1.0);
        for tick in times.ticks().into_iter().filter(|tick| *tick <= length_s) {
            let at = Duration::from_secs_f64(tick);
            svg.line("axis", (x(at), lower), (x(at), lower + 4.0));
            svg.text(x(at), lower + 17.0, "soft", Anchor::Middle, &format!("{tick} s"));
        }
        svg.line("axis", (LEFT, lower), (RIGHT, lower));
        let share = |counts: &HopCounts| counts.connected() as f64 / counts.pairs.max(1) as f64;
        type Height<'a> = &'a dyn Fn(&HopCounts) -> f64;
        let curves: [(&str, Height<'_>, &str); 3] = [
            ("share", &|counts| lower - share(counts) * HEIGHT, "pairs connected (top: all)"),
            ("most", &|counts| scale.at(counts.max() as f64), "most hops"),
            ("mean", &|counts| scale.at(counts.mean()), "mean hops"),
        ];
        for (index, (class, y, name)) in curves.into_iter().enumerate() {
            let mut steps = String::new();
            for sample in self.samples {
                let verb = if steps.is_empty() { 'M' } else { 'L' };
                // Writing to a string cannot fail.
                let _ = write!(steps, "{verb}{:.1} {:.1}", x(sample.at), y(&sample.counts));
            }
            svg.path(class, &steps, name);
            let key = upper + 14.0 + 18.0 * index as f64;
            let start = RIGHT + 10.0;
            svg.path(class, &format!("M{start:.1} {:.1}h22", key - 4.0), "");
            svg.text(
                start + 28.0,
                key,
                "soft",
                Anchor::Start,
                name.split(" (").next().unwrap_or(name),
            );
        }
        if let Some(now) = now {
            svg.line("now", (x(now), upper), (x(now), lower));
        }
    }
}
