//! How far policies are from the oracle: for each message the encoding that was fastest in one half
//! of the runs, charged by its mean in the other half.

use std::collections::BTreeMap;

use record::campaign::Run;

use super::data::{Arm, StudyCell, mean, means};

/// What half the width of a 95 % interval is in standard errors, by degrees of freedom from 1
/// (Student's t).
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// With more of them, nearly.
const STUDENT_MANY: f64 = 2.1;

/// What the oracle of a cell takes.
pub(super) struct Oracle {
    /// Whether the odd runs chose and the even ones are charged, or the other way round.
    halves: [Half; 2],
}

struct Half {
    /// By message.
    seconds: BTreeMap<String, f64>,
    /// All messages together, of the one encoding that was the fastest for them all.
    best_fixed_s: f64,
    best_fixed: String,
}

/// A policy against the oracle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Regret {
    /// Mean over the messages of time over the oracle's, less one.
    pub(super) relative: f64,
    /// Against the best fixed encoding: all messages together, less one.
    pub(super) behind: f64,
    /// The lower end of its 95 % interval over the runs.
    pub(super) behind_low: Option<f64>,
}

fn is_charged(half: usize) -> impl Fn(&Run) -> bool {
    move |run| run.repetition as usize % 2 == half
}

fn chooses(half: usize) -> impl Fn(&Run) -> bool {
    move |run| run.repetition as usize % 2 != half
}

impl Oracle {
    /// Of a place and a processor; none where one half of the runs is missing.
    pub(super) fn of(place: &StudyCell<'_>, processor: f64) -> Option<Self> {
        let arms = place.fixed(processor);
        Some(Self { halves: [half(&arms, 0)?, half(&arms, 1)?] })
    }

    /// Mean seconds of a message, each counted alike.
    pub(super) fn mean_s(&self) -> f64 {
        let all = self.halves.iter().flat_map(|half| half.seconds.values().copied());
        mean(&all.collect::<Vec<_>>()).unwrap_or_default()
    }

    /// The encoding that is the fastest for all messages together.
    pub(super) fn best_fixed(&self) -> String {
        let [one, other] = &self.halves;
        match one.best_fixed == other.best_fixed {
            true => one.best_fixed.clone(),
            false => format!("{} or {}", one.best_fixed, other.best_fixed),
        }
    }

    /// How far a policy is from it; none where it lacks runs.
    pub(super) fn judge(&self, arm: &Arm<'_>) -> Option<Regret> {
        let mut relative = Vec::new();
        let mut behind = Vec::new();
        for (at, half) in self.halves.iter().enumerate() {
            let means = means(arm.times(is_charged(at)));
            let of = half
                .seconds
                .iter()
                .filter_map(|(name, oracle_s)| Some(means.get(name.as_str())? / oracle_s - 1.0));
            relative.push(mean(&of.collect::<Vec<_>>())?);
            for run in arm.cell.good_runs().filter(|run| is_charged(at)(run)) {
                let of_run = super::data::means(arm.times(|one| one.seed == run.seed));
                let times = half.seconds.keys().map(|name| of_run.get(name.as_str()));
                // One that lacks a message has no sum.
                if let Some(sum_s) = times.sum::<Option<f64>>() {
                    behind.push(sum_s / half.best_fixed_s - 1.0);
                }
            }
        }
        let (relative, behind_mean) = (mean(&relative)?, mean(&behind)?);
        let behind_low = error_of_mean(&behind).map(|error| behind_mean - error);
        Some(Regret { relative, behind: behind_mean, behind_low })
    }
}

fn half(arms: &[Arm<'_>], half: usize) -> Option<Half> {
    let [first, second]: [Vec<_>; 2] = [
        arms.iter().map(|arm| means(arm.times(chooses(half)))).collect(),
        arms.iter().map(|arm| means(arm.times(is_charged(half)))).collect(),
    ];
    let names: Vec<&str> = second.first()?.keys().copied().collect();
    let mut seconds = BTreeMap::new();
    for name in names {
        let of =
            |at: &usize| first[*at].get(name).copied().filter(|_| second[*at].contains_key(name));
        let known = (0..arms.len()).filter_map(|at| Some((at, of(&at)?)));
        let best = known.min_by(|(_, one), (_, other)| one.total_cmp(other));
        if let Some((best, _)) = best {
            seconds.insert(name.to_string(), second[best][name]);
        }
    }
    let total = |means: &BTreeMap<&str, f64>| -> Option<f64> {
        let times = seconds.keys().map(|name| means.get(name.as_str()).copied());
        times.sum()
    };
    let known = (0..arms.len()).filter_map(|at| Some((at, total(&first[at])?)));
    let (best, _) = known.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let best_fixed_s = total(&second[best]).filter(|total_s| *total_s > 0.0)?;
    Some(Half { seconds, best_fixed_s, best_fixed: arms[best].policy.to_string() })
}

/// Half the width of the mean's 95 % interval.
fn error_of_mean(values: &[f64]) -> Option<f64> {
    let freedom = values.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / values.len() as f64).sqrt();
    Some(STUDENT.get(freedom - 1).copied().unwrap_or(STUDENT_MANY) * error)
}
