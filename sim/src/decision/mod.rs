//! The decision in virtual time: policies choose for messages whose sizes and times in each
//! encoding were measured, over TCP that is simulated packet by packet, and are judged against the
//! oracle.
//!
//! What is here is the wide grid and the drift; the truth is the laboratory's, and its figures
//! never stand in one column with these.

mod grid;
mod run;
mod tcp;
#[cfg(test)]
mod tests;
mod workload;

pub use grid::{Changes, Extent, FixedRuns, Regret, drift, judge, judge_fixed};
pub use run::{Chooser, Outcome, Run, Setting, choosing};
pub use tcp::{Connection, Transfer};
pub use workload::{Coded, Message, Workload};

/// A count that was computed.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]
pub fn whole(count: f64) -> u64 {
    count as u64
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
