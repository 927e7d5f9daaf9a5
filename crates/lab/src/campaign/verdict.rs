//! Whether the machine kept up with a run.

use record::campaign::{MAX_LATENESS_US, MAX_WAIT_S, MAX_WAIT_SHARE, Run};

/// What a plan bears before a run is done again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// A packet in a hundred may be later than this.
    pub(crate) lateness_us: u64,
    /// The endpoints may wait for a processor for this share of the time.
    pub(crate) wait_share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lateness_us: MAX_LATENESS_US, wait_share: MAX_WAIT_SHARE }
    }
}

/// How often a run is tried in all before it is kept as it is.
const MAX_ATTEMPTS: u32 = 3;

/// Whether a run is to be done again: spoilt or failed, and not tried often enough.
pub(super) fn is_to_be_repeated(run: &Run, limits: Limits) -> bool {
    run.attempt < MAX_ATTEMPTS && (run.failure.is_some() || spoilt(run, limits).is_some())
}

/// Why the figures of a run are not to be trusted, in one line; none when they are.
pub(super) fn spoilt(run: &Run, limits: Limits) -> Option<String> {
    let (late_us, limit_us) = (run.lateness.p99_us, limits.lateness_us);
    if late_us > limit_us {
        return Some(format!("lateness p99 {late_us} µs, over the limit of {limit_us} µs"));
    }
    let limit_s = (limits.wait_share * run.elapsed_s).max(MAX_WAIT_S);
    (run.processor_wait_s > limit_s).then(|| {
        format!(
            "the endpoints waited {:.3} s for a processor, over the limit of {limit_s:.3} s",
            run.processor_wait_s
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::result::Lateness;

    fn run(late_us: u64, wait_s: f64, elapsed_s: f64) -> Run {
        let lateness = Lateness { p99_us: late_us, ..Lateness::default() };
        Run { lateness, processor_wait_s: wait_s, elapsed_s, ..Run::default() }
    }

    #[test]
    fn late_packets_and_waiting_endpoints_spoil_a_run() {
        let usual = |late_us, wait_s, elapsed_s| {
            spoilt(&run(late_us, wait_s, elapsed_s), Limits::default())
        };
        assert_eq!(usual(500, 0.010, 0.1), None);
        assert_eq!(usual(500, 0.200, 10.0), None);
        assert!(usual(501, 0.0, 10.0).is_some_and(|why| why.contains("501 µs")));
        assert!(usual(0, 0.011, 0.1).is_some_and(|why| why.contains("0.011 s")));
        assert!(usual(0, 0.201, 10.0).is_some_and(|why| why.contains("0.200 s")));
        let wide = Limits { lateness_us: 1500, wait_share: 0.1 };
        assert_eq!(spoilt(&run(1500, 1.0, 10.0), wide), None);
        assert!(spoilt(&run(0, 1.1, 10.0), wide).is_some_and(|why| why.contains("1.000 s")));
    }
}
