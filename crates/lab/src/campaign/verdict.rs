//! Whether the machine kept up with a run.

use record::campaign::Run;

/// A packet in a hundred may be later than this, in microseconds; then the run is done again.
pub(super) const LATENESS_LIMIT_US: u64 = 500;
/// The endpoints may wait for a processor for this share of the time, and for this long anyway.
const WAIT_SHARE_MAX: f64 = 0.02;
const WAIT_S_MAX: f64 = 0.010;

/// How often a run is tried in all before it is kept as it is.
const ATTEMPTS_MAX: u32 = 3;

/// Whether a run is to be done again: spoilt or failed, and not tried often enough.
pub(super) fn is_to_be_repeated(run: &Run) -> bool {
    run.attempt < ATTEMPTS_MAX && (run.failure.is_some() || spoilt(run).is_some())
}

/// Why the figures of a run are not to be trusted, in one line; none when they are.
pub(super) fn spoilt(run: &Run) -> Option<String> {
    let late_us = run.lateness.p99_us;
    if late_us > LATENESS_LIMIT_US {
        return Some(format!(
            "lateness p99 {late_us} µs, over the limit of {LATENESS_LIMIT_US} µs"
        ));
    }
    let limit_s = (WAIT_SHARE_MAX * run.elapsed_s).max(WAIT_S_MAX);
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
        assert_eq!(spoilt(&run(500, 0.010, 0.1)), None);
        assert_eq!(spoilt(&run(500, 0.200, 10.0)), None);
        assert!(spoilt(&run(501, 0.0, 10.0)).is_some_and(|why| why.contains("501 µs")));
        assert!(spoilt(&run(0, 0.011, 0.1)).is_some_and(|why| why.contains("0.011 s")));
        assert!(spoilt(&run(0, 0.201, 10.0)).is_some_and(|why| why.contains("0.200 s")));
    }
}
