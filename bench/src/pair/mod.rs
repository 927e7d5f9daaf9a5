//! The pair on one machine over loopback: large bodies and small answers.
//!
//! Edge and gateway are processes of the binary that ships; client and service are threads here.

mod bodies;
mod client;
mod content;
mod http;
mod origin;
mod processes;
mod small;
mod tables;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use record::benchmark::Benchmark;
use record::machine::Machine;

use crate::progress::Progress;
pub use tables::render;

/// Bound of each side's resident memory.
const MAX_MEMORY_BYTES: u64 = 64 * 1024 * 1024;
/// How long either end waits for the other before something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Large bodies: the same bytes, memory, throughput.
    Bodies,
    /// Small answers: latency and requests per second.
    Small,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Bodies, Self::Small];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Small => "small",
        }
    }
}

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary `longwire`.
    pub binary: PathBuf,
    /// What.
    pub parts: Vec<Part>,
    /// Length of large bodies.
    pub body_bytes: u64,
    /// How many of them at once, besides one alone.
    pub bodies_at_once: usize,
    /// Fewer and shorter rounds of small answers.
    pub quick: bool,
}

/// How both sides are run.
struct Setup {
    encoding: &'static str,
    keys: bool,
}

impl Setup {
    fn name(&self) -> String {
        format!("{}{}", self.encoding, if self.keys { ", keys" } else { "" })
    }
}

/// A benchmark under way.
struct Trial {
    result: Benchmark,
    progress: Progress,
}

/// Measures everything. What fails is noted in the result, and the rest goes on.
///
/// # Errors
/// When the benchmark itself cannot run.
pub fn run(options: &Options, machine: Machine) -> Result<Benchmark> {
    let planned = |part: &Part| match part {
        Part::Bodies => bodies::planned(options),
        Part::Small => small::planned(options),
    };
    let progress = Progress::new(options.parts.iter().map(planned).sum());
    let result = Benchmark { machine, bodies: Vec::new(), small: Vec::new(), missed: Vec::new() };
    let mut trial = Trial { result, progress };
    for part in &options.parts {
        match part {
            Part::Bodies => bodies::measure(&mut trial, options)?,
            Part::Small => small::measure(&mut trial, options)?,
        }
    }
    trial.progress.finish();
    Ok(trial.result)
}
