//! Models of the network: how long bytes take from the first to leave to the last to arrive.
//!
//! Each is a function of the [`Path`] alone, so that estimates, however they were had, and models
//! can be put together freely. Times are in seconds.

mod corrected;
mod lengths;
mod no_loss;
mod paths;
mod pftk;
mod rate_aware;
#[cfg(test)]
mod tests;

pub use no_loss::NoLoss;
pub use paths::Paths;
pub use pftk::Pftk;
pub use rate_aware::RateAware;

use corrected::Corrected;

/// Packets of a message beside those that its bytes fill: its head's where that led, and those that
/// left short. With one more, to be safe, what fills nine of ten packets never tells a rate, where
/// nobody sends more.
const UNCOUNTED_PACKETS: f64 = 1.0;

/// What the transport is known to see of the path, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Whom it leads to, a number that stays with the peer; 0 where that is not known.
    pub peer: u64,
    /// How often it had turned out to be another: see [`Estimate::jumps`].
    ///
    /// [`Estimate::jumps`]: crate::estimate::Estimate::jumps
    pub jumps: u32,
    /// Bit/s of the narrowest link.
    pub rate_bps: f64,
    /// What an operator says that it carries at most, in bit/s; infinite where nobody does.
    pub cap_bps: f64,
    /// Whether anybody has measured that: else it is what to expect of any link.
    pub measured: bool,
    /// Round trip without queueing, in seconds.
    pub rtt_s: f64,
    /// Share of packets lost, 0 to 1.
    pub loss: f64,
    /// Payload bytes of a packet.
    pub segment_bytes: f64,
    /// Header bytes of a packet below the payload.
    pub header_bytes: f64,
    /// Packets that may leave at once now.
    pub start_window: f64,
    /// Packets above which the window grows slowly.
    pub threshold: f64,
    /// Most packets under way: the receiver's or the sender's buffer.
    pub most_window: f64,
    /// Shortest timeout of the transport, in seconds.
    pub timeout_s: f64,
    /// Bytes queued before ours.
    pub backlog_bytes: f64,
    /// What is lost is made good by repair that was sent with it, or as soon as that shows: no
    /// window shrinks for it, and no timeout is waited for. Else the transport is TCP.
    pub repairs: bool,
}

impl Path {
    /// Packets that hold so many bytes, at least one.
    fn packets(&self, bytes: f64) -> f64 {
        (bytes / self.segment_bytes).ceil().max(1.0)
    }

    /// Bytes of the packets that hold so many.
    fn wire_bytes(&self, bytes: f64) -> f64 {
        bytes.max(1.0) + self.packets(bytes) * self.header_bytes
    }

    /// Windows that so many bytes of a message take, the first what may leave at once now.
    #[must_use]
    pub fn windows(&self, bytes: f64) -> f64 {
        (bytes / self.segment_bytes + UNCOUNTED_PACKETS) / self.start_window
    }

    /// Bounds that keep a model's arithmetic finite, whatever was estimated.
    #[must_use]
    pub fn bounded(self) -> Self {
        let within = |value: f64, low: f64, high: f64, otherwise: f64| {
            if value.is_finite() { value.clamp(low, high) } else { otherwise }
        };
        Self {
            peer: self.peer,
            jumps: self.jumps,
            rate_bps: within(self.rate_bps, 10.0, 1e12, 1e12),
            cap_bps: if self.cap_bps.is_nan() { f64::INFINITY } else { self.cap_bps.max(10.0) },
            measured: self.measured,
            rtt_s: within(self.rtt_s, 1e-6, 600.0, 1.0),
            loss: within(self.loss, 0.0, 0.9, 0.0),
            segment_bytes: within(self.segment_bytes, 64.0, 65_536.0, 1448.0),
            header_bytes: within(self.header_bytes, 0.0, 256.0, 52.0),
            start_window: within(self.start_window, 1.0, 1e6, 10.0),
            threshold: within(self.threshold, 1.0, 1e6, 1e6),
            most_window: within(self.most_window, 1.0, 1e6, 1e6),
            timeout_s: within(self.timeout_s, 0.01, 120.0, 0.2),
            backlog_bytes: within(self.backlog_bytes, 0.0, 1e12, 0.0),
            repairs: self.repairs,
        }
    }
}

/// A model of the network.
pub trait NetworkModel {
    /// Seconds that `bytes` of payload take.
    fn seconds(&self, path: &Path, bytes: f64) -> f64;
}
