//! The real-time study (RT-SOA): the five profiles side by side, by load on their core.

use serde::{Deserialize, Serialize};

use crate::machine::{Busy, Machine};

/// A series of times, in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub samples: u64,
    /// Mean.
    pub mean_us: f64,
    /// Half are not above it.
    pub p50_us: f64,
    /// 99 of 100 are not.
    pub p99_us: f64,
    /// 999 of 1,000 are not.
    pub p999_us: f64,
    /// 9,999 of 10,000 are not.
    pub p9999_us: f64,
    /// The greatest.
    pub max_us: f64,
    /// How many are above 300 us.
    pub over_300_us: u64,
}

/// What was stored in a second, counted from the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Which.
    pub at_s: u64,
    /// Entities.
    pub entities: u64,
    /// Mean of T2-T1.
    pub internal_mean_us: f64,
    /// Greatest T2-T1.
    pub internal_max_us: f64,
    /// Mean of T2-T0.
    pub whole_mean_us: f64,
    /// Greatest T2-T0.
    pub whole_max_us: f64,
}

/// A profile in a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileRun {
    /// 1 to 5.
    pub profile: u8,
    /// Whether it ran as asked; else something of it was ordinary.
    pub is_as_asked: bool,
    /// What was refused, and why.
    pub refused: Vec<String>,
    /// Messages that were due.
    pub due: u64,
    /// Messages that were accepted.
    pub accepted: u64,
    /// Messages that were stored whole.
    pub processed: u64,
    /// Seconds left out at the beginning.
    pub warm_up_s: u64,
    /// T2-T1 behind these.
    pub internal: Spread,
    /// T1-T0.
    pub before: Spread,
    /// T2-T0.
    pub whole: Spread,
    /// Seconds with another count of entities than most, and all that were looked at.
    pub uneven_s: u64,
    /// All whole seconds.
    pub whole_s: u64,
    /// By second, those at the beginning too.
    pub seconds: Vec<Second>,
}

/// What took the core of the consumers from a thread that never let go of it: interrupts, and what
/// the host did meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Holes {
    /// How long the thread ran, in seconds.
    pub watched_s: f64,
    /// Holes over 50 us.
    pub over_50_us: u64,
    /// Holes over 300 us.
    pub over_300_us: u64,
    /// The longest.
    pub max_us: f64,
}

/// All profiles in a phase of the study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RealtimeRun {
    /// The study's name.
    pub study: String,
    /// The phase's name.
    pub phase: String,
    /// What else ran on the core: `spin`, `faults`, `pipes`.
    pub loads: Vec<String>,
    /// How long messages were sent.
    pub duration_s: u64,
    /// Messages a second.
    pub rate_per_s: f64,
    /// Entities of a message.
    pub entities: u32,
    /// The core of the consumers.
    pub core: usize,
    /// Version of longwire.
    pub version: String,
    /// What it ran on.
    pub machine: Machine,
    /// What the machine did besides.
    pub busy: Busy,
    /// Holes of the core in the same time; none where nothing could be watched.
    pub holes: Option<Holes>,
    /// The profiles, by number.
    pub profiles: Vec<ProfileRun>,
}
