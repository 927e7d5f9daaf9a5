//! Bulk TCP under loss (Padhye, Firoiu, Towsley, Kurose 1998; NAM's equation 4 with the reciprocal
//! and the factor `b` that its print lacks).

use super::{NetworkModel, Path};

/// Segments that an acknowledgement covers (delayed acknowledgements, RFC 1122 §4.2.3.2).
const SEGMENTS_PER_ACK: f64 = 2.0;
/// Less loss than this is none: the formula divides by it.
const MIN_LOSS: f64 = 1e-9;

/// Throughput from loss, round trip and window; right for long transfers alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pftk;

impl Pftk {
    /// Packets a second.
    #[must_use]
    pub fn packets_per_second(path: &Path) -> f64 {
        let by_window = path.most_window / path.rtt_s;
        let p = path.loss;
        if p < MIN_LOSS {
            return by_window;
        }
        let b = SEGMENTS_PER_ACK;
        let fast = path.rtt_s * (2.0 * b * p / 3.0).sqrt();
        let timeouts = (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        by_window.min(1.0 / (fast + path.timeout_s * timeouts))
    }
}

impl NetworkModel for Pftk {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        bytes / (Self::packets_per_second(path) * path.segment_bytes)
    }
}
