//! Cells of the grid, and how far a policy is from the oracle in them.

use std::ops::Range;

use link::LinkConfig;

use super::{Chooser, Outcome, Run, Setting};

/// Seeds after which arms are left out that cannot be the best.
const FEW_SEEDS: u64 = 3;
/// How far from the best an arm may be then.
const HOPELESS: f64 = 1.6;

/// Under loss times scatter with heavy tails: classes whose messages can be made shorter than this
/// get more seeds, up to so many times, and more where the link changes.
const MANY_BYTES: f64 = 100e3;
const MAX_TIMES: f64 = 10.0;
const DRIFT_TIMES: u64 = 4;
/// How many errors of a mean its lower 95 % limit is below it.
const LOWER_LIMIT: f64 = 1.96;

/// How long runs are and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Seeds of the policy. The oracle has as many to choose by and as many to be charged by.
    pub seeds: u64,
    /// Messages of a run.
    pub messages: usize,
    /// Messages that are not judged: the policy learns.
    pub warm_up: usize,
}

/// What each fixed arm takes on the network: the same for every processor.
#[derive(Clone, Debug)]
pub struct FixedRuns {
    /// By arm, then by seed, the seconds of each judged message.
    network_s: Vec<Vec<Vec<f64>>>,
    /// Arms that cannot be the best: they ran with few seeds.
    hopeless: Vec<bool>,
    extent: Extent,
}

/// How far a policy is from the oracle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regret {
    /// Mean of time over the oracle's, less one.
    pub relative: f64,
    /// Its lower 95 % limit over seeds: what is above a bound with this is so not by chance.
    pub relative_low: f64,
    /// Sum of times over the oracle's sum, less one.
    pub weighted: f64,
    /// Against the best fixed arm of the cell: mean time over mean time, less one, and its lower
    /// 95 % limit over seeds. (The mean of the seeds' own ratios would be above it: where times
    /// scatter, the inverse of what one divides by does not average to the inverse of its mean.)
    pub fixed: f64,
    /// See `fixed`.
    pub fixed_low: f64,
    /// Against the arm that leaves bytes alone.
    pub identity: f64,
    /// Mean seconds of a message in that arm.
    pub identity_s: f64,
    /// The oracle's arm, and the one that the policy took most.
    pub best_arm: usize,
    /// See `best_arm`.
    pub usual_arm: usize,
    /// Mean seconds of a message of the oracle.
    pub oracle_s: f64,
    /// Mean of the absolute logarithm of measured over expected times.
    pub error: f64,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0_f64);
    values.for_each(|value| (sum, count) = (sum + value, count + 1.0));
    sum / count.max(1.0)
}

/// A mean and its lower 95 % limit.
fn mean_and_low(values: &[f64]) -> (f64, f64) {
    let centre = mean(values.iter().copied());
    let squares = values.iter().map(|one| (one - centre).powi(2)).sum::<f64>();
    let n = values.len() as f64;
    let error = (squares / (n - 1.0).max(1.0) / n.max(1.0)).sqrt();
    (centre, centre - LOWER_LIMIT * error)
}

/// Of pairs, the mean of the first over that of the second, less one, and its lower 95 % limit
/// (linearized: the errors of both means, and how they go together).
fn ratio_of_means(pairs: &[(f64, f64)]) -> (f64, f64) {
    let below = mean(pairs.iter().map(|pair| pair.1));
    let ratio = mean(pairs.iter().map(|pair| pair.0)) / below;
    let off: Vec<f64> = pairs.iter().map(|pair| (pair.0 - ratio * pair.1) / below).collect();
    let (centre, low) = mean_and_low(&off);
    (ratio - 1.0, ratio - 1.0 + low - centre)
}

impl FixedRuns {
    /// Runs every arm that may be the best for one of the processors.
    #[must_use]
    pub fn new(setting: Setting<'_>, link: &LinkConfig, extent: Extent, slower: &[f64]) -> Self {
        let arms = setting.class.arms.len();
        let messages = &setting.class.messages;
        let coded = |arm: usize| mean(messages.iter().map(|message| message.coded[arm].bytes));
        let least = (0..arms).map(coded).fold(f64::INFINITY, f64::min);
        let most = if link.ab.loss + link.ba.loss > 0.0 { MAX_TIMES } else { 1.0 };
        let more = (MANY_BYTES / least.max(1.0)).clamp(1.0, most);
        let extent = Extent { seeds: extent.seeds * super::whole(more), ..extent };
        let seeds = 2 * extent.seeds;
        let run = |arm: usize, seed: u64| {
            let mut run = Run::new(setting, Chooser::Fixed(arm), link, seed);
            let all = (0..extent.messages).map(|place| run.send(place).network_s);
            all.skip(extent.warm_up).collect::<Vec<f64>>()
        };
        let few = FEW_SEEDS.min(seeds);
        let mut network_s: Vec<Vec<Vec<f64>>> =
            (0..arms).map(|arm| (0..few).map(|seed| run(arm, seed)).collect()).collect();
        let this = Self { network_s: network_s.clone(), hopeless: Vec::new(), extent };
        let hopeless = |arm: usize| {
            let far = |slower: &f64| {
                let total = |arm| this.total(&Setting { slower: *slower, ..setting }, arm);
                let best = (0..arms).map(total).fold(f64::INFINITY, f64::min);
                total(arm) > HOPELESS * best
            };
            slower.iter().all(far)
        };
        let hopeless: Vec<bool> = (0..arms).map(hopeless).collect();
        for arm in (0..arms).filter(|&arm| !hopeless[arm]) {
            network_s[arm].extend((few..seeds).map(|seed| run(arm, seed)));
        }
        Self { network_s, hopeless, extent }
    }

    fn codec_s(setting: &Setting<'_>, arm: usize, message: usize) -> f64 {
        let coded = &setting.class.messages[message].coded[arm];
        (coded.encode_s + coded.decode_s) * setting.slower
    }

    fn message(&self, setting: &Setting<'_>, judged: usize) -> usize {
        (self.extent.warm_up + judged) % setting.class.messages.len()
    }

    /// Mean of all seeds and messages.
    fn total(&self, setting: &Setting<'_>, arm: usize) -> f64 {
        let seeds = self.network_s[arm].iter();
        mean(seeds.map(|run| mean(self.seconds(setting, arm, run))))
    }

    fn seconds<'a>(
        &'a self,
        setting: &'a Setting<'_>,
        arm: usize,
        run: &'a [f64],
    ) -> impl Iterator<Item = f64> + 'a {
        run.iter().enumerate().map(move |(judged, network_s)| {
            network_s + Self::codec_s(setting, arm, self.message(setting, judged))
        })
    }

    /// Arms that are left, with the mean of a part of the seeds for each message of the class.
    fn means(&self, setting: &Setting<'_>, second: bool) -> Vec<(usize, Vec<f64>)> {
        let messages = setting.class.messages.len();
        let runs = self.network_s.iter().enumerate().filter(|&(arm, _)| !self.hopeless[arm]);
        let mean_of =
            |arm: usize, runs: &[Vec<f64>], message: usize| {
                let middle = runs.len().div_ceil(2);
                let part = if second && runs.len() > 1 { &runs[middle..] } else { &runs[..middle] };
                let of_message = |(judged, seconds): (usize, f64)| {
                    (self.message(setting, judged) == message).then_some(seconds)
                };
                let all = part.iter();
                mean(all.flat_map(|run| {
                    self.seconds(setting, arm, run).enumerate().filter_map(of_message)
                }))
            };
        runs.map(|(arm, runs)| (arm, (0..messages).map(|at| mean_of(arm, runs, at)).collect()))
            .collect()
    }
}

/// Mean relative regret of a fixed arm against the oracle.
#[must_use]
pub fn judge_fixed(setting: &Setting<'_>, fixed: &FixedRuns, arm: usize) -> f64 {
    let first = fixed.means(setting, false);
    let sum = |(_, means): &(usize, Vec<f64>)| means.iter().sum::<f64>();
    let best = (0..first.len()).min_by(|&a, &b| sum(&first[a]).total_cmp(&sum(&first[b])));
    let second = fixed.means(setting, true);
    let Some((_, oracle)) = best.and_then(|best| second.get(best)) else { return 0.0 };
    mean(fixed.network_s[arm].iter().flat_map(|run| {
        let seconds = fixed.seconds(setting, arm, run).enumerate();
        seconds.map(|(judged, s)| s / oracle[fixed.message(setting, judged)] - 1.0)
    }))
}

/// Judges a policy in a cell: the oracle takes the arm with the least mean over some seeds and is
/// charged its mean over others.
#[must_use]
pub fn judge(
    setting: &Setting<'_>,
    link: &LinkConfig,
    fixed: &FixedRuns,
    chooser: Chooser,
) -> Regret {
    let Extent { messages, warm_up, .. } = fixed.extent;
    let seeds = fixed.extent.seeds;
    let (first, second) = (fixed.means(setting, false), fixed.means(setting, true));
    let sum = |(_, means): &(usize, Vec<f64>)| means.iter().sum::<f64>();
    let best = (0..first.len()).min_by(|&a, &b| sum(&first[a]).total_cmp(&sum(&first[b])));
    let Some((best_arm, oracle)) = best.and_then(|best| second.get(best)) else {
        return Regret::default();
    };
    // The policy meets the weather that the oracle is charged for.
    let runs: Vec<Vec<Outcome>> = (seeds..2 * seeds)
        .map(|seed| {
            let mut run = Run::new(*setting, chooser, link, seed);
            let all: Vec<_> = (0..messages).map(|place| run.send(place)).collect();
            all.into_iter().skip(warm_up).collect()
        })
        .collect();
    let all = || runs.iter().flatten();
    let total = |run: &[Outcome]| run.iter().map(Outcome::seconds).sum::<f64>();
    // What an arm took in the same weather.
    let theirs = |arm: usize, seed: usize| {
        let runs = &fixed.network_s[arm];
        runs.get(seed + super::index(seeds)).or(runs.first()).map(Vec::as_slice)
    };
    let compared = |arm: usize| {
        let of_seed = |(seed, run): (usize, &Vec<Outcome>)| {
            let theirs = fixed.seconds(setting, arm, theirs(arm, seed)?).sum::<f64>();
            Some((total(run), theirs))
        };
        ratio_of_means(&runs.iter().enumerate().filter_map(of_seed).collect::<Vec<_>>())
    };
    let ((fixed_mean, fixed_low), (identity, _)) = (compared(*best_arm), compared(0));
    // In each seed ours less the oracle's, both over the oracle's mean: the weather they share
    // cancels.
    let apart = |(seed, run): (usize, &Vec<Outcome>)| {
        let ours = mean(run.iter().map(|one| one.seconds() / oracle[one.message]));
        let seconds = fixed.seconds(setting, *best_arm, theirs(*best_arm, seed)?).enumerate();
        let ratio = |(judged, s): (usize, f64)| s / oracle[fixed.message(setting, judged)];
        Some(ours - mean(seconds.map(ratio)))
    };
    let apart: Vec<f64> = runs.iter().enumerate().filter_map(apart).collect();
    let relative = mean(all().map(|one| one.seconds() / oracle[one.message] - 1.0));
    let (apart_mean, apart_low) = mean_and_low(&apart);
    let arms = 0..setting.class.arms.len();
    let usual = arms.max_by_key(|&arm| all().filter(|one| one.arm == arm).count());
    Regret {
        relative,
        relative_low: relative + apart_low - apart_mean,
        weighted: all().map(Outcome::seconds).sum::<f64>()
            / all().map(|one| oracle[one.message]).sum::<f64>()
            - 1.0,
        fixed: fixed_mean,
        fixed_low,
        identity,
        identity_s: fixed.total(setting, 0),
        best_arm: *best_arm,
        usual_arm: usual.unwrap_or(0),
        oracle_s: mean(oracle.iter().copied()),
        error: mean(all().map(|one| (one.seconds() / one.expected_s).ln().abs())),
    }
}

/// How far a policy is from the oracle while the link changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Mean relative regret by message.
    pub relative: Vec<f64>,
    /// By link, the lower 95 % limit over seeds of its mean once the policy has had its time.
    pub low: Vec<f64>,
}

/// Runs in which the link changes: `each` messages on every link, of which the policy has `back` to
/// come back. The oracle takes for each link the arm with the least mean of those that had it all
/// along.
#[must_use]
pub fn drift(
    setting: &Setting<'_>,
    links: &[&LinkConfig],
    (each, back): (usize, usize),
    seeds: u64,
    chooser: Chooser,
) -> Changes {
    let messages = each * links.len();
    let seeds = DRIFT_TIMES * seeds;
    let run = |chooser: Chooser, seed: u64| -> Vec<f64> {
        let mut run = Run::new(*setting, chooser, links[0], seed);
        let mut send = |place: usize| {
            run.change(links[place / each]);
            run.send(place).seconds()
        };
        (0..messages).map(&mut send).collect()
    };
    let runs = |chooser: Chooser, seeds: Range<u64>| -> Vec<Vec<f64>> {
        seeds.map(|seed| run(chooser, seed)).collect()
    };
    let by_message = |runs: &[Vec<f64>]| -> Vec<f64> {
        (0..messages).map(|at| mean(runs.iter().map(|run| run[at]))).collect()
    };
    let part = |of: &[f64], part: usize| of[part * each..(part + 1) * each].iter().sum::<f64>();
    let arms = setting.class.arms.len();
    let few: Vec<Vec<f64>> =
        (0..arms).map(|arm| by_message(&runs(Chooser::Fixed(arm), 0..FEW_SEEDS))).collect();
    let hopeful = |&arm: &usize| {
        (0..links.len()).any(|at| {
            let best = few.iter().map(|means| part(means, at)).fold(f64::INFINITY, f64::min);
            part(&few[arm], at) <= HOPELESS * best
        })
    };
    let first: Vec<(usize, Vec<f64>)> = (0..arms)
        .filter(hopeful)
        .map(|arm| (arm, by_message(&runs(Chooser::Fixed(arm), 0..seeds))))
        .collect();
    let best = |at: usize| {
        let least = first.iter().min_by(|a, b| part(&a.1, at).total_cmp(&part(&b.1, at)));
        least.map_or(0, |(arm, _)| *arm)
    };
    let ours = runs(chooser, seeds..2 * seeds);
    let (mut relative, mut low) = (Vec::new(), Vec::new());
    for at in 0..links.len() {
        let theirs = runs(Chooser::Fixed(best(at)), seeds..2 * seeds);
        let oracle = by_message(&theirs);
        let here = at * each..(at + 1) * each;
        let regret = |message| mean(ours.iter().map(|run| run[message] / oracle[message])) - 1.0;
        relative.extend(here.clone().map(regret));
        let apart: Vec<f64> = (ours.iter().zip(&theirs))
            .map(|(ours, theirs)| {
                let judged = here.clone().skip(back);
                mean(judged.map(|message| (ours[message] - theirs[message]) / oracle[message]))
            })
            .collect();
        low.push(mean_and_low(&apart).1);
    }
    Changes { relative, low }
}
