//! The error of delays: arrival less departure less the delay that was set.
//!
//! The link has no rate, so that no packet waits for another and serialization takes no time; rates
//! have measurements of their own.

use std::time::Duration;

use anyhow::Result;
use record::fidelity::{DelayResult, DelayRun, ErrorFigures};

use super::trial::{Trial, lateness, link};
use super::{MAX_DELAY_P99_US, Options};
use crate::probe::{Flow, Plan, run};
use crate::random::Random;
use crate::statistics::{error_figures, median};

const DELAYS_MS: [u64; 3] = [5, 100, 550];
const PACKET_BYTES: usize = 100;
/// Packets leave in gaps like those of independent senders, so that no rhythm of theirs meets one
/// of the machine's timers.
const PACKETS_PER_S: f64 = 500.0;
/// A run ends when nothing has come for this long beyond the delay.
const QUIET: Duration = Duration::from_millis(500);
/// What it takes to build and remove a lab, about.
const OVERHEAD: Duration = Duration::from_millis(200);

fn runs(options: &Options) -> usize {
    if options.quick { 2 } else { 5 }
}

fn packets(options: &Options) -> usize {
    if options.quick { 500 } else { 2_500 }
}

fn planned_run(options: &Options, delay: Duration) -> Duration {
    Duration::from_secs_f64(packets(options) as f64 / PACKETS_PER_S) + delay + OVERHEAD
}

pub(super) fn planned(options: &Options) -> Duration {
    let all = DELAYS_MS.map(|ms| planned_run(options, Duration::from_millis(ms)));
    all.into_iter().sum::<Duration>() * u32::try_from(runs(options)).unwrap_or(u32::MAX)
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<Vec<DelayResult>> {
    let mut results = Vec::new();
    for delay_ms in DELAYS_MS {
        let delay = Duration::from_millis(delay_ms);
        let bound_us = trial.bound(MAX_DELAY_P99_US);
        let mut result = DelayResult { delay_ms, bound_us, runs: Vec::new() };
        for number in 1..=runs(options) {
            let what = format!("delay {delay_ms} ms, run {number} of {}", runs(options));
            let planned = planned_run(options, delay);
            let one = |trial: &mut Trial| one_run(trial, delay, packets(options), number as u64);
            let ((error, ferry), busy) = trial.undisturbed(&what, planned, one)?;
            result.runs.push(DelayRun { error, ferry, busy });
        }
        judge(trial, &result);
        results.push(result);
    }
    Ok(results)
}

fn judge(trial: &mut Trial, result: &DelayResult) {
    let p99_us = median(result.runs.iter().map(|run| run.error.p99_us));
    trial.demand(p99_us <= MAX_DELAY_P99_US, || {
        let (is, limit) = (p99_us.round(), MAX_DELAY_P99_US);
        format!("delay {} ms: p99 of the error is {is} µs, over {limit} µs", result.delay_ms)
    });
    let missing: usize = result.runs.iter().map(|run| run.error.sent - run.error.measured).sum();
    trial.demand(missing == 0, || {
        format!("delay {} ms: {missing} packets are missing or unstamped", result.delay_ms)
    });
}

fn one_run(
    trial: &mut Trial,
    delay: Duration,
    packets: usize,
    seed: u64,
) -> Result<(ErrorFigures, record::result::Lateness)> {
    let stage = trial.stage(vec![(link(&[&format!("delay={} ms", delay.as_millis())])?, seed)])?;
    let flow = Flow {
        link: 0,
        packet_bytes: PACKET_BYTES,
        stamped: true,
        captured: false,
        expected: Some(packets),
    };
    let mut random = Random::new(seed);
    let mut at = Duration::ZERO;
    let schedule = (0..packets)
        .map(|_| {
            at += Duration::from_secs_f64(random.exponential() / PACKETS_PER_S);
            (at, 0)
        })
        .collect();
    let traces = run(&stage.lab, &Plan { flows: vec![flow], schedule, quiet: delay + QUIET })?;
    trial.note_stamps(&traces);
    let delay_ns = i64::try_from(delay.as_nanos())?;
    let errors: Vec<i64> =
        traces[0].travel_times_ns().into_iter().map(|travel| travel - delay_ns).collect();
    Ok((error_figures(&errors, packets), lateness(&stage.lab)?))
}

#[cfg(test)]
mod tests {
    use super::super::Way;
    use super::*;
    use crate::progress::Progress;

    fn missed(way: Way, p99_us: [f64; 5], measured: usize) -> Vec<String> {
        let run = |p99_us| DelayRun {
            error: ErrorFigures { sent: 10, measured, p99_us, ..ErrorFigures::default() },
            ferry: record::result::Lateness::default(),
            busy: record::machine::Busy::default(),
        };
        let runs = p99_us.map(run).to_vec();
        let mut trial = Trial::new(way, Progress::new(Duration::ZERO));
        judge(&mut trial, &DelayResult { delay_ms: 5, bound_us: None, runs });
        trial.finish().missed
    }

    #[test]
    fn the_median_run_decides_and_only_where_there_is_a_bound() {
        assert!(missed(Way::Root, [100.0, 100.0, 499.0, 9e3, 9e3], 10).is_empty());
        let late = missed(Way::Root, [100.0, 100.0, 501.0, 501.0, 501.0], 10);
        assert!(late.len() == 1 && late[0].contains("501"), "{late:?}");
        assert!(missed(Way::NoPriority, [9e3; 5], 10).is_empty());
    }

    #[test]
    fn a_packet_that_is_missing_is_reported() {
        let lost = missed(Way::Root, [100.0; 5], 9);
        assert!(lost.len() == 1 && lost[0].contains("5 packets"), "{lost:?}");
    }
}
