//! The model that knows the link's rate: what ours starts from before it has measured.

use super::{NetworkModel, Path, Pftk};

/// Loss above which a transfer is held back by timeouts more than by its window.
const MUCH_LOSS: f64 = 0.02;
/// PFTK is of Reno; what runs today (SACK, tail loss probes) does somewhat better.
const BETTER_THAN_RENO: f64 = 1.3;
/// What the mean windows of Reno and of CUBIC are to their powers of the loss.
const RENO: f64 = 1.5;
const CUBIC: f64 = 1.054;
/// Slow start cannot take more rounds than this before any link is full.
const MAX_ROUNDS: u32 = 24;

/// What repair that was not needed, and datagrams that are not full, add to the bytes of a message.
const REPAIR_SHARE: f64 = 0.05;
/// Messages of which more is lost than the repair that was sent with them makes good, among those
/// of which anything is lost: they wait for another round trip.
const UNREPAIRED_SHARE: f64 = 0.25;

/// A transport without a window waits so many times as long as it expects an acknowledgement to
/// take, in the mean, before it sends again, and at least so long in seconds (RFC 7252 §4.8, after
/// CoCoA).
const LOCKSTEP_FACTOR: f64 = 1.25;
const MIN_LOCKSTEP_TIMEOUT_S: f64 = 0.5;

/// Slow start, serialization at the rate, the window that loss leaves to CUBIC, and what the loss
/// of a transfer's last packets costs; of a transport that repairs ([`Path::repairs`]) the repair,
/// and what it does not make good at once. One of which a packet is under way at a time
/// ([`Path::most_window`]) takes a round trip for each, and a timeout for what is lost either way.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateAware;

impl RateAware {
    /// Bit/s of payload and headers that the transport sustains.
    #[must_use]
    pub fn sustained_bps(path: &Path) -> f64 {
        if path.repairs {
            // Its rate is that of what arrives.
            return (path.rate_bps / (1.0 + REPAIR_SHARE)).max(1.0);
        }
        let packet_bits = 8.0 * (path.segment_bytes + path.header_bytes);
        let mut rate = path.rate_bps * (1.0 - path.loss);
        rate = rate.min(path.most_window / path.rtt_s * packet_bits);
        if path.loss > 0.0 {
            // Mean window of CUBIC (RFC 9438 §5.1), never below that of Reno.
            let reno = (RENO / path.loss).sqrt();
            let cubic = CUBIC * (path.rtt_s / path.loss).powf(0.75);
            rate = rate.min(reno.max(cubic) / path.rtt_s * packet_bits);
        }
        if path.loss > MUCH_LOSS {
            rate = rate.min(BETTER_THAN_RENO * Pftk::packets_per_second(path) * packet_bits);
        }
        rate.max(1.0)
    }

    /// The most loss that leaves a mean window of so many packets.
    pub(crate) fn most_loss(window: f64, rtt_s: f64) -> f64 {
        let reno = RENO / (window * window);
        let cubic = rtt_s * (CUBIC / window).powf(4.0 / 3.0);
        reno.max(cubic)
    }

    /// Seconds that come from waiting (round trips of slow start, the delay, what the loss of the
    /// last packets costs, what is queued already), and seconds of sending at the rate.
    #[must_use]
    pub fn parts(path: &Path, bytes: f64) -> (f64, f64) {
        if path.most_window <= 1.0 {
            return Self::lockstep(path, bytes);
        }
        let packets = path.packets(bytes);
        let wire_bits = 8.0 * path.wire_bytes(bytes);
        let rate = Self::sustained_bps(path);
        let packet_bits = 8.0 * (path.segment_bytes + path.header_bytes);
        let (mut window, mut left, mut waits) = (path.start_window, packets, 0.0);
        // A round whose packets take less time than the round trip leaves the link idle for the
        // rest.
        for _ in 0..MAX_ROUNDS {
            let sending = window.min(left) * packet_bits / rate;
            if left <= window || window * packet_bits / rate >= path.rtt_s {
                break;
            }
            waits += path.rtt_s - sending;
            left -= window;
            window *= 2.0;
        }
        let p = path.loss;
        let tail = if path.repairs {
            UNREPAIRED_SHARE * (1.0 - (1.0 - p).powf(packets)) * path.rtt_s
        } else {
            // The last packets have nobody behind them whose arrival would tell of their loss.
            let last = 1.0 - (1.0 - p).powf(packets.min(3.0));
            last * (2.0 * path.rtt_s + 0.1) + 1.3 * p * (path.rtt_s + 0.2) / (1.0 - p)
        };
        let queued = 8.0 * path.backlog_bytes / path.rate_bps;
        (waits + path.rtt_s / 2.0 + tail + queued, wire_bits / rate)
    }

    /// The same of a transport without a window.
    fn lockstep(path: &Path, bytes: f64) -> (f64, f64) {
        let packets = path.packets(bytes);
        let arrives = (1.0 - path.loss) * (1.0 - path.loss);
        let timeout = LOCKSTEP_FACTOR * path.timeout_s.max(MIN_LOCKSTEP_TIMEOUT_S);
        let again = packets * (1.0 / arrives - 1.0) * timeout;
        let queued = 8.0 * path.backlog_bytes / path.rate_bps;
        let waits = (packets - 1.0) * path.rtt_s + path.rtt_s / 2.0;
        (waits + again + queued, 8.0 * path.wire_bytes(bytes) / path.rate_bps)
    }
}

impl NetworkModel for RateAware {
    fn seconds(&self, path: &Path, bytes: f64) -> f64 {
        let (waiting, sending) = Self::parts(path, bytes);
        waiting + sending
    }
}
