//! What samples say: exact quantiles, after the run.

use std::time::Duration;

use crate::registry::quality::Facts;

/// What was seen of one entity. Times are in nanoseconds of the consumer's `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The producer's number of its message; 0 where it says none.
    pub sequence: u64,
    /// T0: sent; 0 where the producer does not say.
    pub sent_ns: u64,
    /// T1: handed over by the engine.
    pub handed_ns: u64,
    /// T2: stored.
    pub stored_ns: u64,
}

/// A number without its fraction; what is below zero or above all numbers is the nearest there is.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "so a cast is defined")]
pub(super) fn whole(value: f64) -> u64 {
    value as u64
}

/// A series of times in microseconds, in short.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many.
    pub samples: u64,
    /// Mean.
    pub mean_us: f64,
    /// Half are not above it.
    pub p50_us: f64,
    /// 99 of 100 are not.
    pub p99_us: f64,
    /// 999 of 1,000 are not.
    pub p999_us: f64,
    /// 9,999 of 10,000 are not.
    pub p9999_us: f64,
    /// The greatest.
    pub max_us: f64,
    /// How many are above 300 us.
    pub over_300_us: u64,
}

impl Summary {
    /// Of times in nanoseconds, in any order; they are sorted. `None` where there are none.
    #[must_use]
    pub fn of(times_ns: &mut [u64]) -> Option<Self> {
        /// What the goal of RT-SOA here counts.
        const GOAL_NS: u64 = 300_000;
        times_ns.sort_unstable();
        let last = *times_ns.last()?;
        let count = times_ns.len();
        // The smallest that so many of them are not above: rank by the next whole number.
        let at = |share: f64| {
            let rank = usize::try_from(whole((share * count as f64).ceil())).unwrap_or(count);
            let time = times_ns.get(rank.clamp(1, count) - 1).copied().unwrap_or(last);
            time as f64 / 1000.0
        };
        let sum: u128 = times_ns.iter().map(|time| u128::from(*time)).sum();
        let within = times_ns.partition_point(|time| *time <= GOAL_NS);
        Some(Self {
            samples: count as u64,
            mean_us: sum as f64 / count as f64 / 1000.0,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: at(0.9999),
            max_us: last as f64 / 1000.0,
            over_300_us: (count - within) as u64,
        })
    }

    /// As a registry takes it: whole microseconds, rounded up, over a window that ended `at`.
    #[must_use]
    pub fn facts(&self, window: Duration, at: Duration) -> Facts {
        let up = |value_us: f64| whole(value_us.ceil());
        Facts {
            mean_us: up(self.mean_us),
            p99_us: up(self.p99_us),
            p999_us: up(self.p999_us),
            p9999_us: up(self.p9999_us),
            max_us: up(self.max_us),
            samples: self.samples,
            window,
            at,
        }
    }
}

/// The three series of some samples: T2-T1 within the consumer, T1-T0 before it, T2-T0 from end to
/// end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Series {
    /// T2-T1.
    pub internal: Option<Summary>,
    /// T1-T0, of samples with a T0.
    pub before: Option<Summary>,
    /// T2-T0, of samples with a T0.
    pub whole: Option<Summary>,
    /// Samples whose T0 is after their T1: the clocks disagree, and they are in T2-T1 alone.
    pub disagreeing: u64,
    /// Seconds in which another number of entities was stored than in most: the paper's jitter.
    pub uneven_s: u64,
    /// Seconds that were looked at for it.
    pub whole_s: u64,
}

impl Series {
    /// Of the samples whose T2 is at `from_ns` or later: what is before warms up.
    #[must_use]
    pub fn of(samples: &[Sample], from_ns: u64) -> Self {
        let kept = || samples.iter().filter(|sample| sample.stored_ns >= from_ns);
        let dated = || kept().filter(|sample| sample.sent_ns != 0);
        let agreeing = || dated().filter(|sample| sample.sent_ns <= sample.handed_ns);
        let mut internal: Vec<u64> =
            kept().map(|sample| sample.stored_ns.saturating_sub(sample.handed_ns)).collect();
        let mut before: Vec<u64> =
            agreeing().map(|sample| sample.handed_ns - sample.sent_ns).collect();
        let mut whole: Vec<u64> =
            agreeing().map(|sample| sample.stored_ns.saturating_sub(sample.sent_ns)).collect();
        let all: Vec<Sample> = kept().copied().collect();
        let (uneven_s, whole_s) = uneven(&all);
        Self {
            internal: Summary::of(&mut internal),
            before: Summary::of(&mut before),
            whole: Summary::of(&mut whole),
            disagreeing: (dated().count() - agreeing().count()) as u64,
            uneven_s,
            whole_s,
        }
    }
}

/// Seconds in which another number of entities was stored than in most, of all whole seconds. They
/// begin half an interval of messages before the first, so that no message is due where one ends.
fn uneven(samples: &[Sample]) -> (u64, u64) {
    /// Most seconds that are looked at.
    const MAX_S: u64 = 86_400;
    const NS_PER_S: u64 = 1_000_000_000;
    let times = || samples.iter().map(|sample| sample.stored_ns);
    let (Some(first), Some(last)) = (times().min(), times().max()) else { return (0, 0) };
    let mut handed: Vec<u64> = samples.iter().map(|sample| sample.handed_ns).collect();
    handed.sort_unstable();
    handed.dedup();
    let intervals = (handed.len() as u64).saturating_sub(1).max(1);
    let begin = first.saturating_sub((last - first) / intervals / 2);
    let seconds = ((last - begin) / NS_PER_S).min(MAX_S);
    let mut counts = vec![0_u64; usize::try_from(seconds).unwrap_or(0)];
    for time in times() {
        let second = usize::try_from(time.saturating_sub(begin) / NS_PER_S).unwrap_or(usize::MAX);
        if let Some(count) = counts.get_mut(second) {
            *count += 1;
        }
    }
    let mut sorted = counts.clone();
    sorted.sort_unstable();
    let Some(usual) = sorted.get(sorted.len() / 2) else { return (0, 0) };
    (counts.iter().filter(|count| *count != usual).count() as u64, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact() {
        let mut times: Vec<u64> = (1..=10_000).rev().map(|time| time * 1000).collect();
        let summary = Summary::of(&mut times).unwrap();
        let figures = (summary.p50_us, summary.p99_us, summary.p999_us, summary.p9999_us);
        assert_eq!(figures, (5000.0, 9900.0, 9990.0, 9999.0));
        assert_eq!((summary.max_us, summary.mean_us), (10_000.0, 5000.5));
        assert_eq!((summary.samples, summary.over_300_us), (10_000, 9700));
        assert_eq!(Summary::of(&mut []), None);
        assert_eq!(Summary::of(&mut [7000]).unwrap().p99_us, 7.0);
    }

    #[test]
    fn samples_without_t0_and_with_one_of_another_clock_count_within_only() {
        let sample = |sent_ns, handed_ns| Sample {
            sequence: 1,
            sent_ns,
            handed_ns,
            stored_ns: handed_ns + 5000,
        };
        let samples = [sample(1000, 3000), sample(0, 4000), sample(9000, 5000)];
        let series = Series::of(&samples, 0);
        assert_eq!(series.internal.unwrap().samples, 3);
        assert_eq!(series.before.unwrap().max_us, 2.0);
        assert_eq!(series.whole.unwrap().max_us, 7.0);
        assert_eq!((series.whole.unwrap().samples, series.disagreeing), (1, 1));
        let later = Series::of(&samples, 9001);
        assert_eq!(later.internal.unwrap().samples, 1, "what is before warms up");
    }

    /// A message of five entities each 50 ms, but for what `change` does to its time.
    fn minute(change: impl Fn(u64) -> Option<u64>) -> Vec<Sample> {
        let message = |at: u64| {
            let handed_ns = 7_000_000_000 + at * 50_000_000 + change(at)?;
            let entity = |one: u64| Sample {
                sequence: at + 1,
                sent_ns: 1,
                handed_ns,
                stored_ns: handed_ns + 1000 * one,
            };
            Some((0..5).map(entity).collect::<Vec<_>>())
        };
        (0..1200).filter_map(message).flatten().collect()
    }

    #[test]
    fn seconds_with_another_count_are_uneven() {
        let jittery = |at: u64| Some(at * 7919 % 20_000_000);
        assert_eq!(uneven(&minute(jittery)), (0, 59), "late by up to 20 ms of 50");
        let lost = |at: u64| (at != 130).then_some(0);
        assert_eq!(uneven(&minute(lost)), (1, 59));
        let late = |at: u64| Some(if at == 139 { 60_000_000 } else { 0 });
        assert_eq!(uneven(&minute(late)), (2, 59), "one second lacks what the next has");
        assert_eq!(uneven(&[]), (0, 0));
    }
}
