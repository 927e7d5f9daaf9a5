//! One cell of the grid: a network, a processor, a class of messages, a policy.

use std::time::Duration;

use decide::Arm;
use decide::arm::Prior;
use decide::estimate::{Estimate, Receipt, Transport};
use decide::fixed::Fixed;
use decide::learned::Learned;
use decide::models::{Models, Seen, Subject};
use decide::nam::Nam;
use decide::policy::{Objective, Observation, Policy, Request};

use super::{Connection, Network, Workload};
use crate::Random;

/// Scatter of codec times, as a share, as measured on a quiet machine.
const TIME_SCATTER: f64 = 0.05;
/// Seconds between messages.
const PAUSE_S: f64 = 1.0;

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Chooser {
    /// Always the same arm.
    Fixed(usize),
    /// NAM as published.
    Nam,
    /// Ours.
    Ours,
}

impl Chooser {
    fn policy(self, priors: &[Prior]) -> Box<dyn Policy> {
        match self {
            Self::Fixed(arm) => Box::new(Fixed(Arm(arm))),
            Self::Nam => Box::new(Nam::new(priors.len())),
            Self::Ours => Box::new(Learned::new(Models::new(priors.to_vec()))),
        }
    }
}

/// What a cell is.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    /// The link; with more than one, it changes to the next in equal parts of the run.
    pub networks: &'a [Network],
    /// How many times longer codecs take than where the table was measured.
    pub slower: f64,
    /// Messages of the class, in the order of a run, and again.
    pub workload: &'a Workload,
    /// What is expected of the arms before anything was seen.
    pub priors: &'a [Prior],
    /// Messages in a run.
    pub messages: usize,
}

/// A message's way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Which message of the workload.
    pub message: usize,
    /// The arm it went in.
    pub arm: usize,
    /// Seconds in all.
    pub seconds: f64,
}

/// Runs a cell with a seed. The network's dice depend on the seed and the message's place alone, as
/// far as they can: policies meet the same weather.
#[must_use]
pub fn run(cell: &Cell<'_>, chooser: Chooser, seed: u64) -> Vec<Outcome> {
    let first = cell.networks.first().copied().unwrap_or(super::NETWORKS[0]);
    let mut connection = Connection::new(first);
    let mut policy = chooser.policy(cell.priors);
    let mut estimate = Estimate::new(1e6, Duration::from_millis(100), None);
    let mut jumps = 0;
    let mut outcomes = Vec::with_capacity(cell.messages);
    for at in 0..cell.messages {
        let part = at * cell.networks.len() / cell.messages;
        connection.change(cell.networks[part.min(cell.networks.len() - 1)]);
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let place = at % cell.workload.messages.len();
        let message = &cell.workload.messages[place];
        let subject = Subject { class: 1, bytes: message.bytes, head_share: message.head_share };
        let path = estimate.path();
        let (objective, allowed) = (Objective::Time, &|_| true);
        let decision =
            policy.choose(&Request { subject: &subject, path: &path, objective, allowed });
        let arm = decision.chosen.arm;
        let coded = message.coded[arm.0];
        let seen = seen(&coded, cell.slower, &mut random);
        let transfer = connection.send(coded.bytes, &mut random);
        let codec_s = seen.encode_s.unwrap_or(0.0) + seen.decode_s.unwrap_or(0.0);
        outcomes.push(Outcome { message: place, arm: arm.0, seconds: codec_s + transfer.seconds });
        observe_path(&mut estimate, &connection, &transfer, coded.bytes);
        if std::mem::replace(&mut jumps, estimate.jumps()) != estimate.jumps() {
            policy.observe(&Observation::PathChanged);
        }
        policy.observe(&Observation::Network {
            path: &path,
            bytes: coded.bytes,
            seconds: transfer.seconds,
        });
        policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        if let Some(arm) = decision.shadow {
            let seen = Seen {
                decode_s: None,
                ..self::seen(&message.coded[arm.0], cell.slower, &mut random)
            };
            policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        }
        connection.idle(PAUSE_S);
    }
    outcomes
}

fn seen(coded: &super::Coded, slower: f64, random: &mut Random) -> Seen {
    let mut scattered = |seconds: f64| {
        Some(seconds * slower * (1.0 + TIME_SCATTER * (random.below(2001) as f64 / 1000.0 - 1.0)))
    };
    Seen {
        bytes: coded.bytes,
        encode_s: scattered(coded.encode_s),
        decode_s: scattered(coded.decode_s),
    }
}

fn observe_path(
    estimate: &mut Estimate,
    connection: &Connection,
    transfer: &super::Transfer,
    bytes: f64,
) {
    let (sent, again) = connection.counters();
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let rtt = Duration::from_secs_f64(connection.smoothed_s());
    estimate.transport(Transport {
        rtt,
        min_rtt: rtt,
        app_limited: true,
        segments_out: small(sent),
        retransmitted: small(again),
        window_segments: small(super::whole(connection.window())),
        segment_bytes: 1448,
        ..Transport::default()
    });
    estimate.receipt(&Receipt {
        bytes: super::whole((bytes - 1448.0).max(0.0)),
        spread: Duration::from_secs_f64(transfer.spread_s.max(0.0)),
        unbroken: transfer.unbroken,
    });
}

/// How far a policy is from the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regret {
    /// Mean of time over the oracle's, less one.
    pub relative: f64,
    /// Sum of times over the oracle's sum, less one.
    pub weighted: f64,
    /// Against the best fixed arm of the cell: mean over seeds, and its lower 95 % limit.
    pub fixed: f64,
    /// See `fixed`.
    pub fixed_low: f64,
}

/// Judges a policy in a cell: the oracle takes for each message the arm with the least mean over one
/// half of the seeds, and is charged its mean over the other half.
#[must_use]
pub fn judge(cell: &Cell<'_>, policy: Chooser, seeds: u64, warm_up: usize) -> Regret {
    let arms = cell.workload.arms.len();
    let fixed: Vec<Vec<Vec<Outcome>>> = (0..arms)
        .map(|arm| (0..seeds).map(|seed| run(cell, Chooser::Fixed(arm), seed)).collect())
        .collect();
    let messages = cell.workload.messages.len();
    let mean = |arm: usize, message: usize, odd: u64| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (seed, run) in (0..seeds).zip(&fixed[arm]) {
            let ours = run.iter().skip(warm_up).filter(|one| one.message == message);
            for one in ours.filter(|_| seed % 2 == odd) {
                sum += one.seconds;
                count += 1.0;
            }
        }
        sum / f64::max(count, 1.0)
    };
    let oracle: Vec<f64> = (0..messages)
        .map(|message| {
            let best =
                (0..arms).min_by(|&a, &b| mean(a, message, 0).total_cmp(&mean(b, message, 0)));
            mean(best.unwrap_or(0), message, 1)
        })
        .collect();
    let total = |run: &[Outcome]| run.iter().skip(warm_up).map(|one| one.seconds).sum::<f64>();
    let all = |runs: &&Vec<Vec<Outcome>>| runs.iter().map(|run| total(run)).sum::<f64>();
    let best_fixed = fixed.iter().min_by(|a, b| all(a).total_cmp(&all(b)));
    let (mut relative, mut time, mut ideal, mut count) = (0.0, 0.0, 0.0, 0.0);
    let mut against = Vec::new();
    for seed in 0..seeds {
        let run = run(cell, policy, seed);
        for one in run.iter().skip(warm_up) {
            relative += one.seconds / oracle[one.message] - 1.0;
            time += one.seconds;
            ideal += oracle[one.message];
            count += 1.0;
        }
        let best = best_fixed.map_or(f64::INFINITY, |runs| total(&runs[super::index(seed)]));
        against.push(total(&run) / best - 1.0);
    }
    let n = against.len() as f64;
    let fixed_mean = against.iter().sum::<f64>() / n;
    let variance =
        against.iter().map(|one| (one - fixed_mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Regret {
        relative: relative / count,
        weighted: time / ideal - 1.0,
        fixed: fixed_mean,
        fixed_low: fixed_mean - 1.96 * (variance / n).sqrt(),
    }
}
