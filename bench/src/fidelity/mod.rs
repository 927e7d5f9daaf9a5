//! Whether emulated links are what they were set to, shown by something outside of the ferry.

mod delay;
mod pairs;
mod rate;
mod share;
mod tables;
mod trial;
mod way;

use std::time::Duration;

use anyhow::Result;
use record::fidelity::WayResult;

use crate::progress::Progress;
pub use tables::render;
use trial::Trial;
pub use way::Way;

/// Bound of the 99th percentile of the delay's error, median of the runs.
const MAX_DELAY_P99_US: f64 = 500.0;
/// The same where many pairs run at once.
const MAX_PAIRS_P99_US: f64 = 1_000.0;
/// Bound of a rate's relative error.
const MAX_RATE_ERROR_PERCENT: f64 = 1.0;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The error of delays.
    Delay,
    /// Rates.
    Rate,
    /// Loss, duplication, corruption, reordering, jitter.
    Share,
    /// Many host pairs at once; by root's way only.
    Pairs,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Delay, Self::Rate, Self::Share, Self::Pairs];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Rate => "rate",
            Self::Share => "share",
            Self::Pairs => "pairs",
        }
    }
}

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// What.
    pub parts: Vec<Part>,
    /// Few packets and two runs: to see that all works, not to prove anything.
    pub quick: bool,
    /// Host pairs at once.
    pub pairs: usize,
    /// How long these are probed.
    pub pairs_for: Duration,
    /// Packets per second over all of them together.
    pub pairs_packets_per_s: u32,
}

impl Options {
    /// The parts that belong to a way.
    fn parts(&self, way: Way) -> impl Iterator<Item = Part> {
        let all = self.parts.clone().into_iter();
        all.filter(move |part| *part != Part::Pairs || way == Way::Root)
    }

    /// About how long a way will take.
    #[must_use]
    pub fn planned(&self, way: Way) -> Duration {
        self.parts(way)
            .map(|part| match part {
                Part::Delay => delay::planned(self),
                Part::Rate => rate::planned(self),
                Part::Share => share::planned(self),
                Part::Pairs => pairs::planned(self),
            })
            .sum()
    }
}

/// Measures one way. The calling process must have the right to make namespaces, have no other lab,
/// and for [`Way::Rootless`] be in a user namespace.
///
/// # Errors
/// When the lab or a probe fails, or the machine stays too busy.
pub fn run(way: Way, options: &Options, progress: Progress) -> Result<WayResult> {
    let mut trial = Trial::new(way, progress);
    for part in options.parts(way) {
        match part {
            Part::Delay => trial.result.delays = delay::measure(&mut trial, options)?,
            Part::Rate => trial.result.rates = rate::measure(&mut trial, options)?,
            Part::Share => trial.result.shares = share::measure(&mut trial, options)?,
            Part::Pairs => trial.result.pairs = Some(pairs::measure(&mut trial, options)?),
        }
    }
    Ok(trial.finish())
}
