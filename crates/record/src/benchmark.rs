//! Results of the benchmarks of the pair: edge and gateway on one machine, over loopback.

use serde::{Deserialize, Serialize};

use crate::machine::{Busy, Machine};

/// What one run of the benchmarks yielded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Where and with what.
    pub machine: Machine,
    /// Large bodies, when asked for.
    pub bodies: Vec<BodiesResult>,
    /// What the pair adds to small answers, when asked for.
    pub small: Vec<SmallResult>,
    /// What failed and bounds that were missed.
    pub missed: Vec<String>,
}

/// Large bodies through a pair of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodiesResult {
    /// `--encoding` of both sides.
    pub encoding: String,
    /// Whether both sides have keys, so that the carrier is TLS 1.3.
    pub keys: bool,
    /// `answers`: from the service to the client; `requests`: the other way.
    pub direction: String,
    /// Bodies at the same time.
    pub at_once: usize,
    /// Length of each.
    pub body_bytes: u64,
    /// From the first request to the end of the last body, in seconds.
    pub elapsed_s: f64,
    /// Bodies that arrived with every byte as it was sent.
    pub same: usize,
    /// Greatest resident memory of the edge.
    pub edge_peak_bytes: u64,
    /// Greatest resident memory of the gateway.
    pub gateway_peak_bytes: u64,
    /// Bound of either.
    pub bound_bytes: u64,
    /// What the machine did meanwhile; other programs are the pair itself too.
    pub busy: Busy,
}

/// Small answers: rounds that ask the service directly and through the pair in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmallResult {
    /// `--encoding` of both sides.
    pub encoding: String,
    /// Whether both sides have keys, so that the carrier is TLS 1.3.
    pub keys: bool,
    /// Length of the answers' bodies.
    pub body_bytes: u64,
    /// Connections that ask at the same time where requests per second are counted.
    pub connections: usize,
    /// Each round.
    pub rounds: Vec<Round>,
    /// Resident memory before the first request: edge, gateway.
    pub idle_bytes: [u64; 2],
    /// The greatest after the last.
    pub peak_bytes: [u64; 2],
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Client to service.
    pub direct: Figures,
    /// The same with the pair in between.
    pub pair: Figures,
    /// Processor time of edge and gateway together for each request, in microseconds.
    pub processor_us: f64,
}

/// What a client sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// One connection, one request after another: half took at most this, in microseconds.
    pub p50_us: f64,
    /// The same: 99 in 100.
    pub p99_us: f64,
    /// Several connections at once.
    pub requests_per_s: f64,
}
