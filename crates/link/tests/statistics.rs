//! Shares over 100,000 packets of virtual time with fixed seeds: every check lies in its
//! confidence interval, all of them together at 99 % (Bonferroni).

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests may fail them")]

mod common;

use common::{Outcome, batch_means, normal_quantile, offer};
use longwire_link::{ChannelConfig, DropReason, LinkConfig};
use std::time::Duration;

const PACKETS: usize = 100_000;
const LEN_BYTES: usize = 500;
/// Longer than a packet takes, so that the queue never drops.
const GAP: Duration = Duration::from_millis(10);
/// All checks of this file: each one's error is the family's 1 % divided by this.
const CHECKS: usize = 69;
/// One side of a two-sided check.
const TAIL: f64 = 0.01 / CHECKS as f64 / 2.0;

/// Runs the checks of one file in one test, so that their number can be counted.
#[derive(Default)]
struct Checks {
    done: usize,
    failed: Vec<String>,
}

impl Checks {
    fn within(&mut self, what: &str, observed: f64, expected: f64, half_width: f64) {
        self.done += 1;
        let line = format!("{what}: {observed:.6}, expected {expected:.6} ± {half_width:.6}");
        println!("{line}");
        if (observed - expected).abs() > half_width {
            self.failed.push(line);
        }
    }

    /// A share of independent trials.
    fn share(&mut self, what: &str, hits: usize, trials: usize, expected: f64) {
        let half_width =
            normal_quantile(TAIL) * (expected * (1.0 - expected) / trials as f64).sqrt();
        self.within(what, hits as f64 / trials as f64, expected, half_width);
    }

    /// A share of trials that depend on their neighbours.
    fn batches(&mut self, what: &str, hits: impl Iterator<Item = bool>, expected: f64) {
        self.mean(what, hits.map(|hit| f64::from(u8::from(hit))), expected);
    }

    /// A mean of values that depend on their neighbours.
    fn mean(&mut self, what: &str, values: impl Iterator<Item = f64>, expected: f64) {
        let values: Vec<f64> = values.collect();
        let (observed, half_width) = batch_means(&values, 50, TAIL);
        self.within(what, observed, expected, half_width);
    }
}

fn run(settings: &[&str], seed: u64) -> Outcome {
    let mut link = LinkConfig::default();
    link.apply(&["rate=2 Mbit/s"], |_| Err(String::new())).unwrap();
    link.apply(settings, |_| Err(String::new())).unwrap();
    offer(link.ab, seed, PACKETS, LEN_BYTES, GAP)
}

/// Whether each packet in turn was lost.
fn losses(outcome: &Outcome) -> Vec<bool> {
    let mut lost = vec![false; PACKETS];
    for (packet, reason) in &outcome.dropped {
        assert_eq!(*reason, DropReason::Loss);
        lost[packet.id] = true;
    }
    lost
}

fn count(flags: &[bool]) -> usize {
    flags.iter().filter(|flag| **flag).count()
}

fn check_loss(checks: &mut Checks) {
    for (loss, expected, seed) in [("1 %", 0.01, 1), ("5 %", 0.05, 2), ("10 %", 0.1, 3)] {
        let lost = losses(&run(&[&format!("loss={loss}")], seed));
        checks.share(&format!("loss of {loss}"), count(&lost), lost.len(), expected);
    }
    for (settings, seed) in
        [(["loss=20 %", "loss_first=false"], 4), (["loss=20 %", "loss_first=true"], 5)]
    {
        let lost = losses(&run(&settings, seed));
        checks.share(&format!("{settings:?}"), count(&lost), lost.len(), 0.2);
        for lag in [1, 2] {
            let what = format!("{settings:?}, packets {lag} apart both lost");
            checks.batches(&what, lost.windows(lag + 1).map(|w| w[0] && w[lag]), 0.04);
        }
    }
}

fn check_correlated_loss(checks: &mut Checks) {
    for (loss, correlation, seed) in [(0.05, 0.25, 19), (0.2, 0.5, 20), (0.01, 0.8, 21)] {
        let settings = [
            format!("loss={} %", loss * 100.0),
            format!("loss_correlation={} %", correlation * 100.0),
        ];
        let lost = losses(&run(&settings.each_ref().map(String::as_str), seed));
        checks.batches(&format!("{settings:?}"), lost.iter().copied(), loss);
        for lag in [1, 3] {
            // P(both) = loss² + autocorrelation · loss · (1 - loss).
            let expected = loss * loss + f64::powi(correlation, lag) * loss * (1.0 - loss);
            let lag = usize::try_from(lag).unwrap();
            let both = lost.windows(lag + 1).map(|w| w[0] && w[lag]);
            checks.batches(&format!("{settings:?}, {lag} apart both lost"), both, expected);
        }
    }
}

fn check_burst_loss(checks: &mut Checks) {
    let cases = [
        ("p=1 %, r=30 %, bad=100 %, good=0 %", [0.01, 0.3, 1.0, 0.0], 6),
        ("p=2 %, r=10 %, bad=60 %, good=1 %", [0.02, 0.1, 0.6, 0.01], 7),
        ("p=30 %, r=60 %, bad=90 %", [0.3, 0.6, 0.9, 0.0], 8),
    ];
    for (text, [p, r, bad, good], seed) in cases {
        let lost = losses(&run(&[&format!("burst_loss={text}")], seed));
        let in_bad = p / (p + r);
        let mean = (r * good + p * bad) / (p + r);
        checks.batches(&format!("burst loss {text}"), lost.iter().copied(), mean);
        // Two in a row: the state met first loses, stays or turns, and what it leads to loses.
        let expected = in_bad * bad * ((1.0 - r) * bad + r * good)
            + (1.0 - in_bad) * good * ((1.0 - p) * good + p * bad);
        let pairs = lost.windows(2).map(|w| w[0] && w[1]);
        checks.batches(&format!("two in a row, {text}"), pairs, expected);
    }
}

fn check_duplication(checks: &mut Checks) {
    for (duplicate, expected, seed) in [("0.5 %", 0.005, 9), ("5 %", 0.05, 10)] {
        let outcome = run(&[&format!("duplicate={duplicate}")], seed);
        let copies = outcome.delivered.iter().filter(|(_, packet)| packet.is_copy).count();
        assert_eq!(outcome.delivered.len(), PACKETS + copies);
        checks.share(&format!("duplication of {duplicate}"), copies, PACKETS, expected);
    }
}

fn check_corruption(checks: &mut Checks) {
    for (corrupt, expected, seed) in [("0.5 %", 0.005, 11), ("10 %", 0.1, 12)] {
        let outcome = run(&[&format!("corrupt={corrupt}")], seed);
        let bits: Vec<usize> =
            outcome.delivered.iter().flat_map(|(_, packet)| packet.flipped.clone()).collect();
        let what = format!("corruption of {corrupt}");
        checks.share(&what, bits.len(), PACKETS, expected);
        assert!(bits.iter().all(|bit| *bit < 8 * LEN_BYTES));
        for (half, below) in [("first half", 2), ("first tenth", 10)] {
            let hits = bits.iter().filter(|bit| **bit < 8 * LEN_BYTES / below).count();
            checks.share(&format!("{what}, in the {half}"), hits, bits.len(), 1.0 / below as f64);
        }
    }
}

fn check_reordering(checks: &mut Checks) {
    let airtime = Duration::from_millis(2);
    for (reorder, expected, seed) in [("1 %", 0.01, 13), ("25 %", 0.25, 14)] {
        let outcome = run(&[&format!("reorder={reorder}"), "delay=105 ms"], seed);
        assert_eq!(outcome.delivered.len(), PACKETS);
        let travelled = |due: Duration, id: usize| due - GAP * u32::try_from(id).unwrap() - airtime;
        let skipped = outcome
            .delivered
            .iter()
            .filter(|(due, packet)| travelled(*due, packet.id).is_zero())
            .count();
        checks.share(&format!("skipping {reorder}"), skipped, PACKETS, expected);
        // RFC 4737 §3.3: reordered is what arrives after a later one. Here a packet is, unless it
        // skips or none of the ten that can overtake it does; those windows overlap.
        let mut latest = 0;
        let mut late = vec![false; PACKETS];
        for (_, packet) in &outcome.delivered {
            late[packet.id] = packet.id < latest;
            latest = latest.max(packet.id);
        }
        let overtaken = (1.0 - expected) * (1.0 - (1.0 - expected).powi(10));
        checks.batches(&format!("late by RFC 4737, {reorder}"), late.into_iter(), overtaken);
    }
}

fn check_independence(checks: &mut Checks) {
    let outcome = run(&["loss=20 %", "duplicate=20 %", "corrupt=20 %", "ab.delay=1 ms"], 15);
    let originals = PACKETS - outcome.dropped.len();
    checks.share("20 % lost beside the rest", outcome.dropped.len(), PACKETS, 0.2);
    let copies: Vec<_> = outcome.delivered.iter().filter(|(_, packet)| packet.is_copy).collect();
    checks.share("20 % of the rest doubled", copies.len(), originals, 0.2);
    let flipped = copies.iter().filter(|(_, packet)| !packet.flipped.is_empty()).count();
    checks.share("20 % of copies corrupt", flipped, copies.len(), 0.2);
    let mut clean = vec![false; PACKETS];
    for (_, packet) in outcome.delivered.iter().filter(|(_, packet)| !packet.is_copy) {
        clean[packet.id] = packet.flipped.is_empty();
    }
    let of_clean =
        copies.iter().filter(|(_, packet)| packet.flipped.is_empty() && clean[packet.id]).count();
    checks.share("neither original nor copy corrupt", of_clean, copies.len(), 0.64);
}

fn check_jitter(checks: &mut Checks) {
    let airtime_s = 0.002;
    for (shape, deviation, seed) in [("uniform", 0.004 / 3.0_f64.sqrt(), 16), ("normal", 0.002, 17)]
    {
        let jitter = if shape == "uniform" { "jitter=4 ms" } else { "jitter=2 ms" };
        let outcome = run(&["delay=20 ms", jitter, &format!("distribution={shape}")], seed);
        let excess: Vec<f64> = outcome
            .delivered
            .iter()
            .map(|(due, packet)| due.as_secs_f64() - packet.id as f64 * 0.01 - airtime_s)
            .collect();
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        let half_width = normal_quantile(TAIL) * deviation / (excess.len() as f64).sqrt();
        checks.within(&format!("mean of {shape} jitter, s"), mean, 0.02, half_width);
        // The share within one deviation, by each shape's own distribution.
        let expected = if shape == "uniform" { 1.0 / 3.0_f64.sqrt() } else { 0.682_689 };
        let inside = excess.iter().filter(|s| (*s - 0.02).abs() < deviation).count();
        checks.share(&format!("{shape} jitter within a deviation"), inside, excess.len(), expected);
    }
}

/// Shape, median, share within a deviation of the mean, share above three deviations: by the
/// formulae of the shapes, worked out apart from the code.
const SHAPES: [(&str, f64, f64, f64); 4] = [
    ("uniform", 0.0, 0.577_350, 0.0),
    ("normal", 0.0, 0.682_689, 0.001_350),
    ("pareto", -0.349_856, 0.890_613, 0.027_271),
    ("paretonormal", -0.257_964, 0.815_008, 0.023_642),
];

/// Offsets from the delay in deviations; a gap wide enough that no packet waits for another.
fn offsets(shape: &str, correlation: &str, seed: u64) -> Vec<f64> {
    let settings = ["delay=20 ms", "jitter=1 ms", &format!("distribution={shape}")];
    let correlation = format!("jitter_correlation={correlation}");
    let outcome = run(&[settings[0], settings[1], settings[2], &correlation], seed);
    let deviation_s = if shape == "uniform" { 0.001 / 3.0_f64.sqrt() } else { 0.001 };
    let offset = |due: Duration, id: usize| {
        (due.as_secs_f64() - id as f64 * GAP.as_secs_f64() - 0.022) / deviation_s
    };
    outcome.delivered.iter().map(|(due, packet)| offset(*due, packet.id)).collect()
}

fn check_heavy_tails(checks: &mut Checks) {
    for ((shape, median, inside, above), seed) in SHAPES.into_iter().zip(22..).skip(2) {
        let offsets = offsets(shape, "0 %", seed);
        let count = |matches: &dyn Fn(f64) -> bool| offsets.iter().filter(|o| matches(**o)).count();
        let half_width = normal_quantile(TAIL) / (offsets.len() as f64).sqrt();
        let mean = offsets.iter().sum::<f64>() / offsets.len() as f64;
        checks.within(&format!("mean of {shape}"), mean, 0.0, half_width);
        checks.share(&format!("{shape} within 1"), count(&|o| o.abs() < 1.0), PACKETS, inside);
        checks.share(&format!("{shape} above 3"), count(&|o| o > 3.0), PACKETS, above);
        checks.share(&format!("{shape} below its median"), count(&|o| o < median), PACKETS, 0.5);
    }
}

fn check_correlated_jitter(checks: &mut Checks) {
    let correlation: f64 = 0.6;
    for ((shape, median, inside, above), seed) in SHAPES.into_iter().zip(26..) {
        let offsets = offsets(shape, "60 %", seed);
        let what = |check: &str| format!("{shape} at 60 %, {check}");
        checks.batches(&what("within 1"), offsets.iter().map(|o| o.abs() < 1.0), inside);
        if above > 0.0 {
            checks.batches(&what("above 3"), offsets.iter().map(|o| *o > 3.0), above);
        }
        // Sheppard: two normal numbers of correlation r are on one side of the median with
        // probability 1/2 + asin(r)/π, and so is whatever rises with them.
        for lag in [1, 2] {
            let expected = 0.5 + correlation.powi(lag).asin() / std::f64::consts::PI;
            let lag = usize::try_from(lag).unwrap();
            let pairs = offsets.windows(lag + 1).map(|w| (w[0] < median) == (w[lag] < median));
            checks.batches(&what(&format!("one side, {lag} apart")), pairs, expected);
        }
        // The autocorrelation itself, where it has a closed form.
        let closed = match shape {
            "normal" => correlation,
            "uniform" => 6.0 / std::f64::consts::PI * (correlation / 2.0).asin(),
            _ => continue,
        };
        checks.mean(&what("lag 1"), offsets.windows(2).map(|w| w[0] * w[1]), closed);
    }
}

#[test]
fn shares_lie_in_their_confidence_intervals() {
    let mut checks = Checks::default();
    check_loss(&mut checks);
    check_burst_loss(&mut checks);
    check_correlated_loss(&mut checks);
    check_duplication(&mut checks);
    check_corruption(&mut checks);
    check_reordering(&mut checks);
    check_independence(&mut checks);
    check_jitter(&mut checks);
    check_heavy_tails(&mut checks);
    check_correlated_jitter(&mut checks);
    assert_eq!(checks.done, CHECKS, "the correction counts other checks than were made");
    assert!(checks.failed.is_empty(), "{:#?}", checks.failed);
}

#[test]
fn the_checks_would_notice_a_share_that_is_off() {
    let lost = losses(&offer_with_loss(0.0525));
    let mut checks = Checks::default();
    checks.share("loss of 5.25 % taken for 5 %", count(&lost), lost.len(), 0.05);
    assert_eq!(checks.failed.len(), 1, "a twentieth off passed unnoticed");
}

fn offer_with_loss(loss: f64) -> Outcome {
    offer(ChannelConfig { loss, ..ChannelConfig::default() }, 18, PACKETS, LEN_BYTES, GAP)
}

#[test]
fn quantiles_agree_with_tables() {
    for (tail, expected) in [(0.025, 1.959_96), (0.005, 2.575_83), (0.0001, 3.719_02)] {
        assert!((normal_quantile(tail) - expected).abs() < 5e-4);
    }
    for (tail, expected) in [(0.025, 2.009_6), (0.005, 2.680_0), (0.0005, 3.500_4)] {
        assert!((common::student_quantile(tail, 49.0) - expected).abs() < 2e-3);
    }
}
