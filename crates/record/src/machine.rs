//! What a measurement ran on, and what else ran there.

use serde::{Deserialize, Serialize};

/// What a measurement ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name and release of the kernel.
    pub kernel: String,
    /// The processor, as the kernel calls it.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Revision of the sources, where it is known; ends in `+` when files were changed.
    pub revision: Option<String>,
    /// Day of the measurement (UTC), such as 2026-11-21.
    pub date: String,
    /// `release` or `debug`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
}

/// What the machine did during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Processor time taken by other guests of the host, in per cent of all.
    pub stolen_percent: f64,
    /// Processor time of other programs on this machine, in per cent of all.
    pub others_percent: f64,
}
