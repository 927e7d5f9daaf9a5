//! The window of CUBIC (RFC 9438), with the slow start of Linux.

/// CUBIC's C and β (RFC 9438 §4).
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Segments that may leave at once on a new connection (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// The window in which longer round trips begin to end slow start (Linux: `hystart_low_window`).
const HYSTART_WINDOW: f64 = 16.0;
/// Round trips looked at in a round (Linux: `HYSTART_MIN_SAMPLES`).
const HYSTART_SAMPLES: u32 = 8;

/// See the module. Windows are in segments.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    pub(super) window: f64,
    pub(super) threshold: f64,
    /// Window at the last loss.
    most: f64,
    /// When growth along the cubic began.
    epoch_s: Option<f64>,
    origin: f64,
    k: f64,
    /// What Reno's window would be.
    reno: f64,
    round_end: u64,
    round_samples: u32,
    round_least_s: f64,
}

impl Cubic {
    pub(super) fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            most: 0.0,
            epoch_s: None,
            origin: 0.0,
            k: 0.0,
            reno: 0.0,
            round_end: 0,
            round_samples: 0,
            round_least_s: f64::INFINITY,
        }
    }

    pub(super) fn slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// So many segments were acknowledged while the window held the sender back.
    pub(super) fn grow(&mut self, mut acknowledged: f64, now_s: f64, rtt_s: f64) {
        if self.slow_start() {
            let room = (self.threshold - self.window).min(acknowledged);
            self.window += room;
            acknowledged -= room;
        }
        if acknowledged <= 0.0 {
            return;
        }
        let epoch_s = *self.epoch_s.get_or_insert_with(|| {
            self.origin = self.most.max(self.window);
            self.k = ((self.origin - self.window) / C).cbrt();
            self.reno = self.window;
            now_s
        });
        let t = now_s - epoch_s + rtt_s;
        let target = C * (t - self.k).powi(3) + self.origin;
        let step = ((target - self.window) / self.window).clamp(0.01 / self.window, 0.5);
        self.window += step * acknowledged;
        let alpha = 3.0 * (1.0 - BETA) / (1.0 + BETA);
        self.reno += alpha * acknowledged / self.window;
        self.window = self.window.max(self.reno);
    }

    /// A loss: the first of its window.
    pub(super) fn lose(&mut self) {
        // Fast convergence (RFC 9438 §4.7).
        let falling = self.window < self.most;
        self.most = if falling { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.threshold = (self.window * BETA).max(2.0);
        self.window = self.threshold;
        self.epoch_s = None;
    }

    /// Nothing came back in time.
    pub(super) fn time_out(&mut self) {
        self.lose();
        self.window = 1.0;
    }

    /// The sender was idle for a number of timeouts (RFC 2861; Linux: `tcp_cwnd_restart`).
    pub(super) fn idle(&mut self, timeouts: f64, seconds: f64) {
        if timeouts < 1.0 {
            return;
        }
        if self.threshold.is_finite() || self.window > INITIAL_WINDOW {
            self.threshold = self.threshold.max(0.75 * self.window);
        }
        let least = self.window.min(INITIAL_WINDOW);
        self.window = (self.window * 0.5_f64.powf(timeouts.floor())).max(least);
        self.epoch_s = self.epoch_s.map(|epoch_s| epoch_s + seconds);
    }

    /// A round trip in slow start: when those of a round are longer, a queue is building up, and
    /// slow start ends before it overflows (HyStart, as Linux has it).
    pub(super) fn round_trip(&mut self, s: f64, least_s: f64, delivered: u64, next: u64) {
        if delivered >= self.round_end {
            (self.round_end, self.round_samples, self.round_least_s) = (next, 0, f64::INFINITY);
        }
        if !self.slow_start() || self.round_samples >= HYSTART_SAMPLES {
            return;
        }
        self.round_samples += 1;
        self.round_least_s = self.round_least_s.min(s);
        let longer = least_s + (least_s / 8.0).clamp(0.004, 0.016);
        let seen = self.round_samples >= HYSTART_SAMPLES && self.window >= HYSTART_WINDOW;
        if seen && self.round_least_s > longer {
            self.threshold = self.window;
        }
    }
}
