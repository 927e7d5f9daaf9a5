//! Probes: encodings of a message's first block that are made only to learn from.

use std::collections::BTreeMap;
use std::time::Duration;

use decide::Arm;
use decide::models::Subject;

use crate::ids::ExchangeId;

/// Most probes at once.
pub(crate) const MAX_PROBES: usize = 2;
/// Processor time that probes may take for each second that messages took to leave.
const PROBE_SHARE: f64 = 0.1;
/// Processor time saved up for probes at first, and at most, in seconds.
const PROBE_S: (f64, f64) = (0.02, 1.0);

/// Probes that are under way, and the time that they may take.
#[derive(Debug)]
pub(crate) struct Probes {
    pub(crate) open: BTreeMap<ExchangeId, Probe>,
    pub(crate) left_s: f64,
}

/// A probe that is under way.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) subject: Subject,
    pub(crate) arm: Arm,
    /// Memory reserved for its encoder.
    pub(crate) bytes: usize,
    /// Its message is for a recipient that is no peer.
    pub(crate) client: bool,
}

impl Default for Probes {
    fn default() -> Self {
        Self { open: BTreeMap::new(), left_s: PROBE_S.0 }
    }
}

impl Probes {
    /// Memory reserved for their encoders.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(|probe| probe.bytes).sum()
    }

    /// A message took so long to leave: a share of it may be spent.
    pub(crate) fn earn(&mut self, took: Duration) {
        self.left_s = (self.left_s + PROBE_SHARE * took.as_secs_f64()).min(PROBE_S.1);
    }
}
