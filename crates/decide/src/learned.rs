//! Our policy: for each message the arm that is expected to bring it across soonest (or in the
//! fewest bytes, or in time), from models that learn.

use std::collections::BTreeMap;

use crate::arm::Arm;
use crate::models::{Expected, Models, Seen, Subject};
use crate::network::{Corrected, NetworkModel, Path};

/// A gain below this share of the message's time is not worth a coding, nor another than the last
/// one, nor another try: predictions are not that good, and codecs that are warm are faster.
const WORTHWHILE: f64 = 0.02;
/// Share of the messages' time that goes into encodings that nobody sends, off their way.
const SHADOW_SHARE: f64 = 0.1;
/// Most of that time saved up: a quiet hour must not be followed by a minute of work.
const MOST_SHADOW_S: f64 = 1.0;
/// An arm this many deviations better than expected would be the best: worth looking at.
const OPTIMISM: f64 = 1.5;
/// An arm whose sizes are known this well need not be looked at again.
const KNOWN_DEVIATION: f64 = 0.08;
/// Classes whose last arm is remembered.
const MOST_CLASSES: usize = 1024;

/// What an operator wants of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Objective {
    /// The soonest.
    #[default]
    Time,
    /// The fewest bytes.
    Bytes,
    /// The fewest bytes among what arrives within so many seconds; else the soonest.
    Deadline(f64),
}

/// An arm with what it would give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The arm.
    pub arm: Arm,
    /// Bytes and seconds of the codec.
    pub expected: Expected,
    /// Seconds on the network for those bytes.
    pub network_s: f64,
}

impl Candidate {
    /// Seconds in all.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.expected.encode_s + self.network_s + self.expected.decode_s
    }
}

/// What a message goes in, and what else there was.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What was chosen.
    pub chosen: Candidate,
    /// All that were allowed, by arm: what would have been.
    pub candidates: Vec<Candidate>,
    /// An arm to encode the message with beside it, off its way, to learn from.
    pub shadow: Option<Arm>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Learned {
    models: Models,
    network: Corrected,
    /// The arm that a class had last.
    last: BTreeMap<u64, Arm>,
    shadow_s: f64,
}

impl Learned {
    /// A policy that has learned nothing yet.
    #[must_use]
    pub fn new(models: Models) -> Self {
        Self { models, network: Corrected::default(), last: BTreeMap::new(), shadow_s: 0.0 }
    }

    /// What sizes and times are expected to be.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// What the network is expected to take.
    #[must_use]
    pub fn network(&self) -> &Corrected {
        &self.network
    }

    /// Chooses among the arms for which `allowed` says so; that which leaves bytes alone always is.
    pub fn choose(
        &mut self,
        subject: &Subject,
        path: &Path,
        objective: Objective,
        allowed: impl Fn(Arm) -> bool,
    ) -> Decision {
        let arms = (0..self.models.arms()).map(Arm);
        let arms = arms.filter(|&arm| arm == Arm::IDENTITY || allowed(arm));
        let candidates: Vec<Candidate> =
            arms.filter_map(|arm| self.candidate(subject, path, arm)).collect();
        let best = self.best(subject.class, &candidates, objective);
        let Some(chosen) = best else {
            return Self::alone(subject, self.network.seconds(path, subject.bytes));
        };
        self.remember(subject.class, chosen.arm);
        let shadow = self.shadow(&chosen, path, &candidates);
        Decision { chosen, candidates, shadow }
    }

    fn alone(subject: &Subject, network_s: f64) -> Decision {
        let expected =
            Expected { bytes: subject.bytes, deviation: 0.0, encode_s: 0.0, decode_s: 0.0 };
        let chosen = Candidate { arm: Arm::IDENTITY, expected, network_s };
        Decision { chosen, candidates: vec![chosen], shadow: None }
    }

    fn candidate(&self, subject: &Subject, path: &Path, arm: Arm) -> Option<Candidate> {
        let expected = self.models.expect(subject, arm)?;
        Some(Candidate { arm, expected, network_s: self.network.seconds(path, expected.bytes) })
    }

    fn best(&self, class: u64, all: &[Candidate], objective: Objective) -> Option<Candidate> {
        let cost = |candidate: &Candidate| match objective {
            Objective::Bytes => candidate.expected.bytes,
            Objective::Deadline(seconds) if all.iter().any(|one| one.total_s() <= seconds) => {
                if candidate.total_s() <= seconds {
                    candidate.expected.bytes
                } else {
                    f64::INFINITY
                }
            }
            Objective::Time | Objective::Deadline(_) => candidate.total_s(),
        };
        let best = all.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let last = self.last.get(&class);
        let last = last.and_then(|last| all.iter().find(|candidate| candidate.arm == *last));
        let plain = all.iter().find(|candidate| candidate.arm == Arm::IDENTITY);
        let near = |one: &&Candidate| cost(one) <= cost(best) * (1.0 + WORTHWHILE);
        Some(*plain.into_iter().chain(last).find(near).unwrap_or(best))
    }

    fn remember(&mut self, class: u64, arm: Arm) {
        if self.last.len() >= MOST_CLASSES && !self.last.contains_key(&class) {
            self.last.pop_first();
        }
        self.last.insert(class, arm);
    }

    /// The arm that is worth looking at, if there is time for it.
    fn shadow(&mut self, chosen: &Candidate, path: &Path, all: &[Candidate]) -> Option<Arm> {
        self.shadow_s = (self.shadow_s + SHADOW_SHARE * chosen.total_s()).min(MOST_SHADOW_S);
        let hope = |candidate: &Candidate| {
            let bytes = candidate.expected.bytes * (-OPTIMISM * candidate.expected.deviation).exp();
            let codec = candidate.expected.encode_s + candidate.expected.decode_s;
            chosen.total_s() - codec - self.network.seconds(path, bytes)
        };
        let worth = |candidate: &&Candidate| {
            candidate.arm != chosen.arm
                && candidate.arm != Arm::IDENTITY
                && candidate.expected.deviation > KNOWN_DEVIATION
                && candidate.expected.encode_s <= self.shadow_s
                && hope(candidate) > WORTHWHILE * chosen.total_s()
        };
        let found = all.iter().filter(worth).max_by(|a, b| hope(a).total_cmp(&hope(b)))?;
        let (arm, cost) = (found.arm, found.expected.encode_s);
        self.shadow_s -= cost;
        Some(arm)
    }

    /// Another arm that is worth encoding a message with, now that `tried` is known to give
    /// `bytes`: one whose gain, as far as it can be expected, pays for its own time.
    #[must_use]
    pub fn again(
        &self,
        decision: &Decision,
        path: &Path,
        tried: &[Arm],
        bytes: f64,
    ) -> Option<Arm> {
        let decode_s = decision.chosen.expected.decode_s;
        let now_s = self.network.seconds(path, bytes) + decode_s;
        let gain = |candidate: &Candidate| now_s - candidate.total_s();
        let open = decision.candidates.iter().filter(|one| !tried.contains(&one.arm));
        let best = open.max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        (gain(best) > WORTHWHILE * now_s).then_some(best.arm)
    }

    /// Learns what an encoding turned out to be, sent or not.
    pub fn observe_encoding(&mut self, subject: &Subject, arm: Arm, seen: &Seen) {
        self.models.observe(subject, arm, seen);
    }

    /// Learns what the network took.
    pub fn observe_network(&mut self, path: &Path, bytes: f64, seconds: f64) {
        self.network.observe(path, bytes, seconds);
    }

    /// The path turned out to be another.
    pub fn path_changed(&mut self) {
        self.network.doubt();
    }
}
