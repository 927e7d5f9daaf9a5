//! The decision in virtual time: policies choose for messages whose sizes and times in each encoding
//! were measured, over TCP that is simulated packet by packet, and are judged against the oracle.
//!
//! What is here is the wide grid and the drift; the truth is the laboratory's, and its figures never
//! stand in one column with these.

mod grid;
mod tcp;
mod workload;

pub use grid::{Cell, Chooser, Outcome, Regret, judge, run};
pub use tcp::{Connection, Network, Transfer};
pub use workload::{Coded, Message, Workload};

/// A count that was computed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]
fn whole(count: f64) -> u64 {
    count as u64
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// NAM's networks and those of IST-118.
pub const NETWORKS: [Network; 12] = [
    network("nam-lan", 400e6, 0.00015, 0.0),
    network("nam-sc", 93e6, 0.0035, 0.0),
    network("nam-us", 91e6, 0.045, 0.0),
    network("nam-us-t1", 1.1e6, 0.045, 0.0),
    network("nam-atlantic", 93e6, 0.089, 0.0),
    network("modem", 56e3, 0.07, 0.0),
    network("satcom", 250e3, 0.55, 0.0),
    network("los", 2e6, 0.005, 0.0),
    network("wifi1", 2e6, 0.1, 0.01),
    network("wifi2", 2e6, 0.1, 0.2),
    network("wifi3", 2e6, 0.1, 0.05),
    network("cnr", 9.6e3, 0.1, 0.01),
];

const fn network(name: &'static str, rate_bps: f64, delay_s: f64, loss: f64) -> Network {
    Network { name, rate_bps, delay_s, loss }
}
