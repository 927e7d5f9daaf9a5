//! Many host pairs at once, each a link of its own, all in one ferry.

use std::time::{Duration, Instant};

use anyhow::Result;
use record::fidelity::{DelayRun, PairsResult};

use super::trial::{Trial, lateness, link};
use super::{MAX_PAIRS_P99_US, Options};
use crate::probe::{Flow, Plan, run};
use crate::random::Random;
use crate::statistics::error_figures;

/// Delays of the links, in turn.
const DELAYS_MS: [u64; 3] = [5, 100, 550];
const PACKET_BYTES: usize = 100;
const QUIET: Duration = Duration::from_millis(1_050);
/// To build and to remove a pair, about.
const OVERHEAD_PER_PAIR: Duration = Duration::from_millis(15);

/// The pairs' figures, with the machine's still to come.
struct Figures {
    result: PairsResult,
    missing: usize,
}

pub(super) fn planned(options: &Options) -> Duration {
    options.pairs_for + OVERHEAD_PER_PAIR * u32::try_from(options.pairs).unwrap_or(u32::MAX)
}

pub(super) fn measure(trial: &mut Trial, options: &Options) -> Result<PairsResult> {
    let what = format!("{} host pairs", options.pairs);
    let one = |trial: &mut Trial| one_run(trial, options);
    let (Figures { mut result, missing }, busy) =
        trial.undisturbed(&what, planned(options), one)?;
    result.run.busy = busy;
    let p99_us = result.run.error.p99_us;
    trial.demand(p99_us <= MAX_PAIRS_P99_US, || {
        format!("{what}: p99 of the error is {p99_us:.0} µs, over {MAX_PAIRS_P99_US} µs")
    });
    trial.demand(missing == 0, || format!("{what}: {missing} packets missing or unstamped"));
    Ok(result)
}

fn one_run(trial: &mut Trial, options: &Options) -> Result<Figures> {
    let delay_ms = |pair: usize| DELAYS_MS[pair % DELAYS_MS.len()];
    let specs = (0..options.pairs)
        .map(|pair| Ok((link(&[&format!("delay={} ms", delay_ms(pair))])?, pair as u64)))
        .collect::<Result<Vec<_>>>()?;
    let before = Instant::now();
    let stage = trial.stage(specs)?;
    let set_up_s = before.elapsed().as_secs_f64();
    let schedule = schedule(options);
    let mut counts = vec![0; options.pairs];
    for (_, pair) in &schedule {
        counts[*pair] += 1;
    }
    let flow = |(link, count): (usize, &usize)| Flow {
        link,
        packet_bytes: PACKET_BYTES,
        stamped: true,
        captured: false,
        expected: Some(*count),
    };
    let flows = counts.iter().enumerate().map(flow).collect();
    let sent = schedule.len();
    let (busy_before, started) = (stage.ferry.processor_time()?, Instant::now());
    let traces = run(&stage.lab, &Plan { flows, schedule, quiet: QUIET })?;
    let ferry_time = stage.ferry.processor_time()?.saturating_sub(busy_before);
    let ferry_percent = ferry_time.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    trial.note_stamps(&traces);
    let mut errors = Vec::with_capacity(sent);
    for (pair, trace) in traces.iter().enumerate() {
        let delay_ns = i64::try_from(delay_ms(pair))? * 1_000_000;
        errors.extend(trace.travel_times_ns().into_iter().map(|travel| travel - delay_ns));
    }
    let error = error_figures(&errors, sent);
    let run = DelayRun { error, ferry: lateness(&stage.lab)?, busy: Default::default() };
    let missing = sent - run.error.measured.min(sent);
    let before = Instant::now();
    drop(stage);
    let result = PairsResult {
        pairs: options.pairs,
        seconds: options.pairs_for.as_secs_f64(),
        packets_per_s: f64::from(options.pairs_packets_per_s),
        delays_ms: DELAYS_MS.to_vec(),
        set_up_s,
        tear_down_s: before.elapsed().as_secs_f64(),
        ferry_percent,
        run,
        bound_us: trial.bound(MAX_PAIRS_P99_US),
    };
    Ok(Figures { result, missing })
}

/// The pairs take turns; the gaps are those of independent senders.
fn schedule(options: &Options) -> Vec<(Duration, usize)> {
    let mut random = Random::new(1);
    let mean_s = 1.0 / f64::from(options.pairs_packets_per_s);
    let mut at = Duration::ZERO;
    let mut schedule = Vec::new();
    loop {
        at += Duration::from_secs_f64(random.exponential() * mean_s);
        if at >= options.pairs_for {
            return schedule;
        }
        schedule.push((at, schedule.len() % options.pairs));
    }
}
