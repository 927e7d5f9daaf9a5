//! Rates: IP bytes over the time between arrivals, while the queue never runs dry and never fills.

use std::time::Duration;

use anyhow::{Context, Result};
use record::fidelity::RateResult;

use super::trial::{Trial, link};
use super::{MAX_RATE_ERROR_PERCENT, Options};
use crate::probe::{Flow, Plan, Trace, run};

/// A rate and how it is tried.
struct Case {
    rate_bps: u64,
    /// Short where the rate is low, so that there are many.
    packet_bytes: usize,
    seconds: f64,
}

const CASES: [Case; 4] = [
    Case { rate_bps: 9_600, packet_bytes: 100, seconds: 10.0 },
    Case { rate_bps: 250_000, packet_bytes: 500, seconds: 5.0 },
    Case { rate_bps: 2_000_000, packet_bytes: 1500, seconds: 5.0 },
    Case { rate_bps: 100_000_000, packet_bytes: 1500, seconds: 3.0 },
];
/// What waits ahead: packets are sent at the link's own rate from then on, and so much may their
/// sender be late without the queue running dry. At 100 Mbit/s it is 417 of 1000 packets.
const AHEAD_S: f64 = 0.05;
const MIN_AHEAD_PACKETS: usize = 4;
const QUIET: Duration = Duration::from_secs(1);
const OVERHEAD: Duration = Duration::from_millis(200);

impl Case {
    fn seconds(&self, options: &Options) -> f64 {
        if options.quick { 2.2 } else { self.seconds }
    }

    fn packet_s(&self) -> f64 {
        (self.packet_bytes * 8) as f64 / self.rate_bps as f64
    }

    fn planned(&self, options: &Options) -> Duration {
        Duration::from_secs_f64(self.seconds(options)) + OVERHEAD
    }

    /// When each packet is sent.
    fn schedule(&self, seconds: f64) -> Vec<(Duration, usize)> {
        let (count, ahead) = (whole(seconds / self.packet_s()), whole(AHEAD_S / self.packet_s()));
        let ahead = ahead.max(MIN_AHEAD_PACKETS);
        let at = |number: usize| self.packet_s() * number.saturating_sub(ahead) as f64;
        // The first packet starts the clock and is not counted.
        (0..=count).map(|number| (Duration::from_secs_f64(at(number)), 0)).collect()
    }
}

/// A count, rounded up. Packets here are few.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(value: f64) -> usize {
    value.ceil() as usize
}

pub(super) fn planned(options: &Options) -> Duration {
    CASES.iter().map(|case| case.planned(options)).sum()
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<Vec<RateResult>> {
    let mut results = Vec::new();
    for case in &CASES {
        let what = format!("rate {} bit/s", case.rate_bps);
        let planned = case.planned(options);
        let one = |trial: &mut Trial| one_run(trial, case, case.seconds(options));
        let (mut result, busy) = trial.undisturbed(&what, planned, one)?;
        result.busy = busy;
        let error_percent = (result.measured_bps / case.rate_bps as f64 - 1.0) * 100.0;
        trial.demand(error_percent.abs() <= MAX_RATE_ERROR_PERCENT, || {
            format!("{what}: off by {error_percent:.2} %, over {MAX_RATE_ERROR_PERCENT} %")
        });
        trial.demand(result.arrived == result.sent, || {
            format!("{what}: {} of {} packets arrived", result.arrived, result.sent)
        });
        results.push(result);
    }
    Ok(results)
}

fn one_run(trial: &mut Trial, case: &Case, seconds: f64) -> Result<RateResult> {
    let config = link(&[&format!("rate={} bit/s", case.rate_bps), "delay=5 ms"])?;
    let stage = trial.stage(vec![(config, 1)])?;
    let schedule = case.schedule(seconds);
    let sent = schedule.len();
    let flow = Flow {
        link: 0,
        packet_bytes: case.packet_bytes,
        // The arrivals alone tell the rate.
        stamped: false,
        captured: false,
        expected: Some(sent),
    };
    let traces = run(&stage.lab, &Plan { flows: vec![flow], schedule, quiet: QUIET })?;
    let span_s = span_s(&traces[0]).context("no packets arrived with timestamps")?;
    let arrived = traces[0].arrivals.len();
    Ok(RateResult {
        nominal_bps: case.rate_bps,
        measured_bps: ((arrived - 1) * case.packet_bytes * 8) as f64 / span_s,
        span_s,
        packet_bytes: case.packet_bytes,
        sent,
        arrived,
        queue_peak_bytes: stage.lab.stats(0)?.ab.traffic.queue_peak_bytes,
        busy: record::machine::Busy::default(),
        bound_percent: trial.bound(MAX_RATE_ERROR_PERCENT),
    })
}

/// From the first arrival to the last.
fn span_s(trace: &Trace) -> Option<f64> {
    let (first, last) = (trace.arrivals.first()?.at_ns?, trace.arrivals.last()?.at_ns?);
    let span_ns = last.checked_sub(first).filter(|span_ns| *span_ns > 0)?;
    Some(span_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_neither_runs_dry_nor_fills() {
        for case in &CASES {
            let schedule = case.schedule(case.seconds);
            let mut finish = 0.0_f64;
            for (number, (at, _)) in schedule.iter().enumerate() {
                let at = at.as_secs_f64();
                assert!(number == 0 || at < finish, "dry before packet {number}");
                finish = finish.max(at) + case.packet_s();
                let waiting = (finish - at) / case.packet_s();
                assert!(waiting < 500.0, "{waiting} of 1000 packets");
            }
            assert!(finish >= 2.0, "{finish} s of traffic");
        }
    }
}
