mod decoders;
mod estimate;
mod exploring;
mod learned;
mod paths;
mod prior;
mod state;
mod triage;

use crate::network::Path;

/// A path that was measured, without loss, on which nothing was sent yet.
pub(crate) fn path(rate_bps: f64, rtt_s: f64) -> Path {
    Path {
        peer: 0,
        cap_bps: f64::INFINITY,
        jumps: 0,
        rate_bps,
        measured: true,
        rtt_s,
        loss: 0.0,
        segment_bytes: 1448.0,
        header_bytes: 52.0,
        start_window: 10.0,
        threshold: 1e6,
        most_window: 1e6,
        timeout_s: 0.2,
        backlog_bytes: 0.0,
        repairs: false,
    }
}
