//! Quality of service as it was measured, and the ladder that it is published on.
//!
//! UDDI compares strings and knows no "at most". So a service publishes every rung that it meets,
//! and who asks for one names the one it needs: any registry can match that. A rung is a bound of
//! the latency and how sure it is: `le-3000` says that 99 of 100 samples took 3,000 us or less,
//! `firm-le-3000` that 999 of 1,000 did, `hard-le-3000` that 9,999 of 10,000 did. What was measured
//! stands beside it in text, with the window, the number of samples and the time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use crate::messaging::time;

/// The tModel of rungs, and of what was measured.
pub const TMODEL_LATENCY: &str = "uddi:longwire.example:qos-latency";
/// Bounds of the ladder, in microseconds.
pub const RUNGS_US: [u64; 8] = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 1_000_000];
/// Share of a bound that a service must stay below to gain its rung: one that is held is kept up
/// to the bound itself, so that a service near it does not come and go.
pub const GAIN: f64 = 0.9;
/// Longest text of facts, in bytes.
const MAX_FACTS_BYTES: usize = 512;
/// Greatest latency and window that are taken.
const MAX_US: u64 = 86_400_000_000;
/// Most samples that are believed.
const MAX_SAMPLES: u64 = 1 << 53;

/// How sure a bound is: how many of the samples are within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Determinism {
    /// 99 of 100.
    Soft,
    /// 999 of 1,000.
    Firm,
    /// 9,999 of 10,000.
    Hard,
}

impl Determinism {
    /// All grades, the weakest first.
    pub const ALL: [Self; 3] = [Self::Soft, Self::Firm, Self::Hard];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Soft => "soft",
            Self::Firm => "firm",
            Self::Hard => "hard",
        }
    }

    /// The grade with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Fewest samples that bear it out: with fewer not one would have to be beyond the bound.
    #[must_use]
    pub fn min_samples(self) -> u64 {
        match self {
            Self::Soft => 100,
            Self::Firm => 1000,
            Self::Hard => 10_000,
        }
    }
}

/// What was measured of a service's latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Mean, in microseconds.
    pub mean_us: u64,
    /// What 99 of 100 samples took at most.
    pub p99_us: u64,
    /// What 999 of 1,000 took at most.
    pub p999_us: u64,
    /// What 9,999 of 10,000 took at most.
    pub p9999_us: u64,
    /// The greatest.
    pub max_us: u64,
    /// How many samples.
    pub samples: u64,
    /// Over which time they were taken.
    pub window: Duration,
    /// When the window ended, since 1970.
    pub at: Duration,
}

impl Facts {
    /// The names of the numbers, as all faces have them.
    pub const NAMES: [&'static str; 8] = [
        "mean_us",
        "p99_us",
        "p999_us",
        "p9999_us",
        "max_us",
        "samples",
        "window_s",
        "measured_at",
    ];

    /// The bound that is borne out in a grade; none with too few samples.
    #[must_use]
    pub fn bound_us(&self, grade: Determinism) -> Option<u64> {
        let bound = match grade {
            Determinism::Soft => self.p99_us,
            Determinism::Firm => self.p999_us,
            Determinism::Hard => self.p9999_us,
        };
        (self.samples >= grade.min_samples()).then_some(bound)
    }

    /// Checks that the numbers can be of one series.
    ///
    /// # Errors
    /// A line that names the two that contradict each other, or the one that is too great.
    pub fn check(&self) -> Result<(), String> {
        let rising = [
            ("p99_us", self.p99_us),
            ("p999_us", self.p999_us),
            ("p9999_us", self.p9999_us),
            ("max_us", self.max_us),
        ];
        for ((below, low), (above, high)) in rising.iter().zip(&rising[1..]) {
            if low > high {
                return Err(format!("{below} is {low}, above {above}, which is {high}"));
            }
        }
        if self.mean_us > self.max_us {
            let (mean, max) = (self.mean_us, self.max_us);
            return Err(format!("mean_us is {mean}, above max_us, which is {max}"));
        }
        if self.max_us > MAX_US || self.window > Duration::from_micros(MAX_US) {
            return Err(format!("a latency or a window is over {MAX_US} us"));
        }
        if self.samples == 0 || self.samples > MAX_SAMPLES {
            return Err(format!("samples is {}; it is 1 to {MAX_SAMPLES}", self.samples));
        }
        Ok(())
    }

    /// The text that an instanceParms has: names and numbers.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (name, value) in Self::NAMES.iter().zip(self.values()) {
            let _ = write!(out, "{name}={value} ");
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// The numbers as text, in the order of [`Facts::NAMES`].
    #[must_use]
    pub fn values(&self) -> [String; 8] {
        [
            self.mean_us.to_string(),
            self.p99_us.to_string(),
            self.p999_us.to_string(),
            self.p9999_us.to_string(),
            self.max_us.to_string(),
            self.samples.to_string(),
            self.window.as_secs().to_string(),
            time::format(self.at),
        ]
    }

    /// Reads names and numbers.
    ///
    /// # Errors
    /// A line that says which is missing, wrong, or there twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_FACTS_BYTES {
            return Err(format!("{} bytes, over the limit of {MAX_FACTS_BYTES}", text.len()));
        }
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self::of(pairs)
    }

    /// The same of pairs; names that are not known are refused.
    ///
    /// # Errors
    /// As [`Facts::parse`].
    pub fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut values: [Option<&str>; 8] = [None; 8];
        for (name, value) in pairs {
            let at = Self::NAMES.iter().position(|known| *known == name);
            let shown = crate::messaging::shown(name);
            let at = at.ok_or_else(|| format!("'{shown}' is not known"))?;
            if values[at].replace(value).is_some() {
                return Err(format!("{name} is there twice"));
            }
        }
        let number = |at: usize| {
            let (name, text) = (Self::NAMES[at], values[at]);
            let text = text.ok_or_else(|| format!("{name} is missing"))?;
            let wrong = |_| format!("{name} is '{}', no number", crate::messaging::shown(text));
            text.parse::<u64>().map_err(wrong)
        };
        let at = values[7].ok_or("measured_at is missing")?;
        let at = time::parse(at).ok_or_else(|| {
            let shown = crate::messaging::shown(at);
            format!("measured_at is '{shown}', no time as 2026-03-14T06:00:00Z is")
        })?;
        let facts = Self {
            mean_us: number(0)?,
            p99_us: number(1)?,
            p999_us: number(2)?,
            p9999_us: number(3)?,
            max_us: number(4)?,
            samples: number(5)?,
            window: Duration::from_secs(number(6)?),
            at,
        };
        facts.check()?;
        Ok(facts)
    }
}

/// A rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rung {
    /// How sure.
    pub grade: Determinism,
    /// The bound, in microseconds: one of [`RUNGS_US`].
    pub bound_us: u64,
}

impl Rung {
    /// The value that it has in the value set.
    #[must_use]
    pub fn value(self) -> String {
        match self.grade {
            Determinism::Soft => format!("le-{}", self.bound_us),
            other => format!("{}-le-{}", other.name(), self.bound_us),
        }
    }

    /// The rung of a value.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let (grade, bound) = match value.split_once("-le-") {
            Some((grade, bound)) => (Determinism::parse(grade)?, bound),
            None => (Determinism::Soft, value.strip_prefix("le-")?),
        };
        let bound_us = RUNGS_US.into_iter().find(|known| bound == known.to_string())?;
        Some(Self { grade, bound_us }).filter(|rung| rung.value() == value)
    }

    /// The widest rung that holds at most this bound, which any registry can be asked for; none
    /// where the bound is below the ladder.
    #[must_use]
    pub fn within(grade: Determinism, bound_us: u64) -> Option<Self> {
        let bound_us = RUNGS_US.into_iter().rev().find(|known| *known <= bound_us)?;
        Some(Self { grade, bound_us })
    }

    /// Whether what was measured bears it out.
    #[must_use]
    pub fn holds(self, facts: &Facts) -> bool {
        facts.bound_us(self.grade).is_some_and(|bound| bound <= self.bound_us)
    }
}

/// The rungs that a service has, which follow what is measured with hysteresis: one is gained below
/// [`GAIN`] of its bound and lost beyond the bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    held: BTreeSet<Rung>,
}

impl Ladder {
    /// A ladder with these rungs held already.
    #[must_use]
    pub fn holding(rungs: impl IntoIterator<Item = Rung>) -> Self {
        Self { held: rungs.into_iter().collect() }
    }

    /// What is held, the weakest and lowest first.
    pub fn held(&self) -> impl Iterator<Item = Rung> + '_ {
        self.held.iter().copied()
    }

    /// Takes what was measured; whether what is held has changed, so that the service is to be
    /// published anew.
    pub fn observe(&mut self, facts: &Facts) -> bool {
        let mut now = BTreeSet::new();
        for grade in Determinism::ALL {
            let Some(bound) = facts.bound_us(grade) else { continue };
            for bound_us in RUNGS_US {
                let rung = Rung { grade, bound_us };
                let limit = match self.held.contains(&rung) {
                    true => bound_us as f64,
                    false => bound_us as f64 * GAIN,
                };
                if bound as f64 <= limit {
                    now.insert(rung);
                }
            }
        }
        let has_changed = now != self.held;
        self.held = now;
        has_changed
    }
}

/// What somebody wants of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Longest latency, in microseconds.
    pub max_us: u64,
    /// How sure.
    pub grade: Determinism,
}

impl Wanted {
    /// Whether what was measured is within what is wanted.
    #[must_use]
    pub fn holds(&self, facts: &Facts) -> bool {
        facts.bound_us(self.grade).is_some_and(|bound| bound <= self.max_us)
    }
}

/// How a service ranks among others: lower is better. First whoever has been measured, then by the
/// bound in the wanted grade, the mean, how many samples bear it out and how fresh they are.
#[must_use]
pub fn rank(facts: Option<&Facts>, grade: Determinism) -> (bool, u64, u64, u64, u64) {
    match facts {
        None => (true, u64::MAX, u64::MAX, u64::MAX, u64::MAX),
        Some(facts) => (
            false,
            facts.bound_us(grade).unwrap_or(u64::MAX),
            facts.mean_us,
            u64::MAX - facts.samples,
            u64::MAX - facts.at.as_secs(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts(p99_us: u64, p999_us: u64, p9999_us: u64, samples: u64) -> Facts {
        Facts {
            mean_us: p99_us / 2,
            p99_us,
            p999_us,
            p9999_us,
            max_us: p9999_us,
            samples,
            window: Duration::from_secs(60),
            at: Duration::from_secs(1_773_468_000),
        }
    }

    fn values(ladder: &Ladder) -> Vec<String> {
        ladder.held().map(Rung::value).collect()
    }

    #[test]
    fn every_rung_that_is_met_is_published() {
        let mut ladder = Ladder::default();
        assert!(ladder.observe(&facts(250, 2500, 25_000, 20_000)));
        let rungs = values(&ladder);
        let expected = [
            "le-300",
            "le-1000",
            "le-3000",
            "le-10000",
            "le-30000",
            "le-100000",
            "le-1000000",
            "firm-le-3000",
            "firm-le-10000",
            "firm-le-30000",
            "firm-le-100000",
            "firm-le-1000000",
            "hard-le-30000",
            "hard-le-100000",
            "hard-le-1000000",
        ];
        assert_eq!(rungs, expected);
        assert!(!ladder.observe(&facts(250, 2500, 25_000, 20_000)), "nothing has changed");
    }

    #[test]
    fn a_rung_is_gained_below_its_bound_and_held_up_to_it() {
        let mut ladder = Ladder::default();
        let mut holds = |p99_us| {
            ladder.observe(&facts(p99_us, 50_000, 50_000, 500));
            values(&ladder).contains(&"le-1000".to_owned())
        };
        let seen = [950, 901, 900, 950, 1000, 1001, 950, 899, 999].map(&mut holds);
        assert_eq!(seen, [false, false, true, true, true, false, false, true, true]);
    }

    #[test]
    fn too_few_samples_bear_nothing_out() {
        let mut ladder = Ladder::default();
        assert!(!ladder.observe(&facts(1, 1, 1, 99)));
        ladder.observe(&facts(1, 1, 1, 9999));
        assert!(values(&ladder).iter().all(|rung| !rung.starts_with("hard")));
        assert!(values(&ladder).contains(&"firm-le-100".to_owned()));
    }

    #[test]
    fn rungs_are_read_as_they_are_written() {
        for grade in Determinism::ALL {
            for bound_us in RUNGS_US {
                let rung = Rung { grade, bound_us };
                assert_eq!(Rung::parse(&rung.value()), Some(rung));
            }
        }
        for text in ["", "le-", "le-301", "le-0300", "soft-le-300", "hardle-300", "hard-le-+300"] {
            assert_eq!(Rung::parse(text), None, "{text}");
        }
        assert_eq!(Rung::within(Determinism::Hard, 2999).unwrap().value(), "hard-le-1000");
        assert_eq!(Rung::within(Determinism::Soft, 99), None);
    }

    #[test]
    fn the_best_rank_first() {
        let fast = facts(100, 200, 3000, 20_000);
        let sure = facts(500, 600, 700, 20_000);
        let few = facts(10, 10, 10, 500);
        let order = |grade| {
            let mut all =
                [("fast", Some(&fast)), ("sure", Some(&sure)), ("none", None), ("few", Some(&few))];
            all.sort_by_key(|(_, facts)| rank(*facts, grade));
            all.map(|(name, _)| name)
        };
        assert_eq!(order(Determinism::Soft), ["few", "fast", "sure", "none"]);
        assert_eq!(order(Determinism::Hard), ["sure", "fast", "few", "none"]);
    }

    #[test]
    fn what_cannot_have_been_measured_is_refused() {
        let good = facts(10, 20, 30, 100).text();
        assert_eq!(Facts::parse(&good), Ok(facts(10, 20, 30, 100)));
        for (from, to, expected) in [
            ("p99_us=10", "p99_us=21", "above p999_us"),
            ("mean_us=5", "mean_us=31", "above max_us"),
            ("samples=100", "samples=0", "samples is 0"),
            ("samples=100", "samples=-1", "no number"),
            ("samples=100", "", "samples is missing"),
            ("samples=100", "samples=1 samples=1", "twice"),
            ("samples=100", "bogus=1", "'bogus' is not known"),
            ("max_us=30", "max_us=99999999999999", "is over"),
            ("06:00:00Z", "", "measured_at"),
        ] {
            let error = Facts::parse(&good.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{from} {to}: {error}");
        }
        assert!(Facts::parse(&"x".repeat(600)).is_err());
    }

    proptest! {
        /// No rung is held that what was measured last does not bear out.
        #[test]
        fn what_is_held_holds(series in prop::collection::vec(
            (1..2_000_000_u64, 0..100_000_u64, 1..50_000_u64), 1..20)) {
            let mut ladder = Ladder::default();
            for (p99_us, more, samples) in series {
                let facts = facts(p99_us, p99_us + more, p99_us + 2 * more, samples);
                ladder.observe(&facts);
                prop_assert!(ladder.held().all(|rung| rung.holds(&facts)));
            }
        }
    }
}
