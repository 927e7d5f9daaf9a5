//! What runs on the hosts of a net: programs, what is done with them when, and what came of it.

mod bridges;
pub(super) mod command;
pub(super) mod message;
mod script;
pub(super) mod topics;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use link::net::Resolved;
use record::net::{NetCheck, NetMessage};

use super::movement::Movement;
use super::topology::Topology;

/// What a workload works on.
pub(super) struct Ground<'a> {
    pub(super) topology: &'a Topology,
    pub(super) resolved: &'a Resolved,
    pub(super) movement: &'a Movement,
    /// This project's binary.
    pub(super) program: &'a Path,
    /// A directory for this run alone.
    pub(super) scratch: &'a Path,
}

/// A program on a host.
pub(super) struct Program {
    pub(super) host: usize,
    pub(super) command: Command,
    /// It can be used once it has printed a line that begins so.
    pub(super) ready: &'static str,
}

/// When a run began, on the clocks of the machine that all hosts share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) at: Instant,
    /// Since 1970.
    pub(super) unix: Duration,
}

impl Begun {
    pub(super) fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at: Instant::now(), unix }
    }

    /// Seconds from the beginning to a time since 1970.
    pub(super) fn seconds_to(&self, unix: Duration) -> f64 {
        unix.as_secs_f64() - self.unix.as_secs_f64()
    }
}

/// What came of a workload.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) messages: Vec<NetMessage>,
    pub(super) checks: Vec<NetCheck>,
}

/// Something to run on the hosts of a net. An implementation says what; the run does it.
pub(super) trait Workload: Sync {
    /// The programs of all hosts, started before the beginning and awaited.
    fn programs(&self, ground: &Ground<'_>) -> Result<Vec<Program>, String>;

    /// Waits for what is to be true besides, once all programs are ready, unless it is to stop.
    fn await_ready(&self, _ground: &Ground<'_>, _stop: &AtomicBool) -> Result<(), String> {
        Ok(())
    }

    /// When something is to be done, in order of time.
    fn times(&self) -> Vec<Duration>;

    /// Whether a run is over once all that is to be done has been done; else it takes as long as
    /// the scenario.
    fn ends_with_its_acts(&self) -> bool {
        false
    }

    /// Does the `number`th of these. Called on a thread of its own; a check reports the error.
    fn act(&self, ground: &Ground<'_>, number: usize) -> Result<(), String>;

    /// What came of it, asked at the end while all programs still run. `failed` are the errors of
    /// what was done, by number.
    fn collect(
        &self,
        ground: &Ground<'_>,
        begun: &Begun,
        failed: &[(usize, String)],
    ) -> Result<Outcome, String>;
}
