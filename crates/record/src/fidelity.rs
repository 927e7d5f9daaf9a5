//! Results of the emulator's own trial: how true emulated links are.
//!
//! Measured by kernel timestamps outside of the ferry. Errors and lateness are in microseconds.

use serde::{Deserialize, Serialize};

use crate::machine::{Busy, Machine};
use crate::result::Lateness;

/// One trial, in one or several ways of running the ferry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Where and with what.
    pub machine: Machine,
    /// One entry for each way.
    pub ways: Vec<WayResult>,
}

/// What one way of running the ferry yielded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WayResult {
    /// `root`, `veth`, `no-priority` or `rootless`.
    pub way: String,
    /// What the way is, in words.
    pub about: String,
    /// Scheduling of the ferry's thread, as read back from the kernel.
    pub scheduling: String,
    /// What else runs on purpose meanwhile.
    pub load: String,
    /// Where transmit timestamps come from: `kernel`, or `program` where the driver makes none.
    pub transmit_stamps: String,
    /// Delays, one entry for each.
    pub delays: Vec<DelayResult>,
    /// Rates.
    pub rates: Vec<RateResult>,
    /// Loss, duplication, corruption, reordering, jitter.
    pub shares: Vec<ShareResult>,
    /// Many host pairs at once, when asked for.
    pub pairs: Option<PairsResult>,
    /// Runs that were repeated, and why: over 1 % of stolen time, or the wall clock was set.
    pub repeated: Vec<String>,
    /// Bounds that were missed; the way without real-time priority and the rootless ones have none.
    pub missed: Vec<String>,
}

/// One delay, several runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayResult {
    /// What the link was set to.
    pub delay_ms: u64,
    /// Bound of the median of `p99_us`; none when there is none.
    pub bound_us: Option<f64>,
    /// Each run.
    pub runs: Vec<DelayRun>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayRun {
    /// Between the kernel's timestamps, less the delay.
    pub error: ErrorFigures,
    /// What the ferry says of itself: from the due time to the end of its write.
    pub ferry: Lateness,
    /// What the machine did meanwhile.
    pub busy: Busy,
}

/// Order statistics of errors. Percentiles are of the absolute error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// Packets sent.
    pub sent: usize,
    /// Packets that arrived and have both timestamps.
    pub measured: usize,
    /// The least error; below zero is too early.
    pub least_us: f64,
    /// Half were off by at most this.
    pub p50_us: f64,
    /// 99 in 100.
    pub p99_us: f64,
    /// 999 in 1000.
    pub p999_us: f64,
    /// The greatest.
    pub max_us: f64,
    /// Histogram of absolute errors: (upper edge in microseconds, packets); the last edge is the
    /// greatest error itself.
    pub bins: Vec<(f64, u64)>,
}

/// One rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateResult {
    /// What the link was set to.
    pub nominal_bps: u64,
    /// IP bytes after the first arrival over the time from the first to the last.
    pub measured_bps: f64,
    /// Time from the first to the last arrival, in seconds.
    pub span_s: f64,
    /// Length of the packets.
    pub packet_bytes: usize,
    /// Packets sent.
    pub sent: usize,
    /// Packets that arrived.
    pub arrived: usize,
    /// Most packets' bytes that waited, by the ferry's count.
    pub queue_peak_bytes: u64,
    /// What the machine did meanwhile.
    pub busy: Busy,
    /// Bound of the relative error, in per cent; none when there is none.
    pub bound_percent: Option<f64>,
}

/// One share, or one distribution, against what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareResult {
    /// What was checked, by its settings.
    pub what: String,
    /// How it was counted and judged.
    pub method: String,
    /// Packets sent.
    pub packets: usize,
    /// Decides every chance.
    pub seed: u64,
    /// What was asked for: a share from 0 to 1, or distance 0 of distributions.
    pub expected: f64,
    /// What was observed.
    pub observed: f64,
    /// How far off it may be, all checks together at 99 %.
    pub half_width: f64,
    /// Packets concerned, by the probe's count.
    pub counted: u64,
    /// The same by the link model alone in virtual time with the same seed; none for distributions.
    pub in_virtual_time: Option<u64>,
}

/// Many host pairs at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairsResult {
    /// How many.
    pub pairs: usize,
    /// How long packets were sent, in seconds.
    pub seconds: f64,
    /// Packets per second, over all pairs together.
    pub packets_per_s: f64,
    /// Delays of the links, in turn.
    pub delays_ms: Vec<u64>,
    /// Time to build all, in seconds.
    pub set_up_s: f64,
    /// Time to remove all, in seconds.
    pub tear_down_s: f64,
    /// Processor time of the ferry's thread, in per cent of one core.
    pub ferry_percent: f64,
    /// Error, lateness and the machine.
    pub run: DelayRun,
    /// Bound of `p99_us`; none when there is none.
    pub bound_us: Option<f64>,
}
