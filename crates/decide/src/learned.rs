//! Our policy: for each message the arm that is expected to bring it across soonest (or in the
//! fewest bytes, or in time), from models that learn.

use std::collections::BTreeMap;

use crate::arm::Arm;
use crate::estimate::UNSEEN_LOSS;
use crate::models::{Expected, KNOWN, Models, Subject};
use crate::network::{NetworkModel, Path, Paths};
use crate::policy::{Candidate, Decision, Going, Objective, Observation, Policy, Request};
use crate::state::{self, Error, Kind, Persist, Reader, Writer};

/// A gain below this share of the message's time is not worth a coding, nor another than the last
/// one, nor another try: predictions are not that good, and codecs that are warm are faster.
const WORTHWHILE: f64 = 0.02;
/// A codec that takes less than this share of the message's time costs nothing: what it makes
/// clearly smaller goes in it, for the link may be slower than it seems, and is shared.
const NOTHING: f64 = 0.005;
/// Of a message that is clearly smaller at most so much is left.
const CLEARLY_SMALLER: f64 = 0.9;
/// Share of the messages' time that is spent on probes.
const PROBE_SHARE: f64 = 0.1;
/// The same of a class's first message, whose like are not known yet.
const NEW_SHARE: f64 = 2.0;
/// Most of that time saved up, or as long as the message itself takes if that is longer: a quiet
/// hour must not be followed by a minute of work.
const MAX_PROBE_S: f64 = 1.0;
/// And never more than a day, whatever a message is expected to take.
const MAX_SAVED_S: f64 = 86_400.0;
/// An arm this many deviations better than expected would be the best: worth looking at.
const OPTIMISM: f64 = 3.0;
/// Unless with one deviation's luck it would be better by this share of the message's time: a round
/// trip less may hang on a few bytes.
const MUCH: f64 = 0.1;
/// Why an arm goes that is not expected to be the best.
const VENTURE: &str = "to learn how fast the peer decodes it";
/// The same.
const OPENS: &str = "to open the congestion window for those that follow";
/// A window as wide as any.
const OPEN: f64 = 1e6;
/// Messages that would have gone faster with an open window before one opens it, and so many times
/// that before the next: where a pause closes it again, or a loss, it is not worth much.
const FIRST_OPENING: u32 = 3;
const OPENINGS_APART: u32 = 9;
/// Classes whose last arm is remembered.
const MAX_CLASSES: usize = 1024;

/// See the module.
#[derive(Clone, Debug)]
pub struct Learned {
    models: Models,
    network: Paths,
    /// The arm that a class had last.
    last: BTreeMap<u64, Arm>,
    probe_s: f64,
    /// What is waited for an encoder.
    wait_s: f64,
    opening: Opening,
}

/// When a message is to open the congestion window. For all peers together; a restart forgets it.
#[derive(Clone, Copy, Debug)]
struct Opening {
    /// Messages that would have gone faster with an open window since the last that opened it.
    missed: u32,
    /// As many before the next.
    most: u32,
    /// The class whose last message opens it.
    class: Option<u64>,
}

impl Learned {
    /// A policy that has learned nothing yet.
    #[must_use]
    pub fn new(models: Models) -> Self {
        Self {
            models,
            network: Paths::default(),
            last: BTreeMap::new(),
            probe_s: 0.0,
            wait_s: 0.0,
            opening: Opening { missed: 0, most: FIRST_OPENING, class: None },
        }
    }

    /// What sizes and times are expected to be.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// What the network is expected to take.
    #[must_use]
    pub fn network(&self) -> &Paths {
        &self.network
    }

    fn candidate(&self, subject: &Subject, path: &Path, arm: Arm) -> Option<Candidate> {
        let expected = self.models.expect(subject, arm)?;
        let network_s = self.network.seconds(path, expected.bytes);
        let wait_s = if arm == Arm::IDENTITY { 0.0 } else { self.wait_s };
        Some(Candidate { arm, expected, network_s, wait_s })
    }

    /// The best of all; what went `last` stays where others gain little.
    fn best(
        last: Option<Arm>,
        all: &[Candidate],
        objective: Objective,
    ) -> Option<(Candidate, &'static str)> {
        let cost = |candidate: &Candidate| objective.cost(candidate);
        let best = all.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        let last = last.and_then(|last| all.iter().find(|candidate| candidate.arm == last));
        let plain = all.iter().find(|candidate| candidate.arm == Arm::IDENTITY);
        let near = |one: &&Candidate| cost(one) <= cost(best) * (1.0 + WORTHWHILE);
        if let Some(plain) = plain.filter(near) {
            let free = |one: &&Candidate| {
                near(one)
                    && one.codec_s() < NOTHING * one.total_s()
                    && one.expected.bytes < CLEARLY_SMALLER * plain.expected.bytes
            };
            let small = all.iter().filter(free).min_by(|a, b| cost(a).total_cmp(&cost(b)));
            return match last.filter(free).or(small) {
                Some(small) => Some((*small, "smaller, and coding takes no time to speak of")),
                None => Some((*plain, "no coding gains enough")),
            };
        }
        match last.filter(near) {
            Some(last) if last.arm != best.arm => Some((*last, "as before: others gain little")),
            _ => Some((*best, objective.reason())),
        }
    }

    /// Puts what was seen of one coding in place of what was expected of it, and with it of the
    /// others: the less one finds in blocks, the less all do, and a processor that is slow for one
    /// is so for all.
    fn as_seen(
        &self,
        candidates: &mut [Candidate],
        rest: &Request<'_>,
        expected: &Expected,
        going: &Going,
    ) {
        let all = rest.subject.bytes;
        let found = |share: f64| -share.clamp(1e-4, 0.999).ln();
        let less = found(going.share) / found(expected.bytes / all);
        let slower = going.encode_s * all / expected.encode_s;
        for one in candidates.iter_mut().filter(|one| one.arm != Arm::IDENTITY) {
            let share = (-less * found(one.expected.bytes / all)).exp();
            one.expected.bytes = all * if one.arm == going.arm { going.share } else { share };
            one.expected.encode_s *= slower;
            one.network_s = self.network.seconds(rest.path, one.expected.bytes);
        }
    }

    fn remember(&mut self, class: u64, arm: Arm) {
        if self.last.len() >= MAX_CLASSES && !self.last.contains_key(&class) {
            self.last.pop_first();
        }
        self.last.insert(class, arm);
    }

    /// An arm that would be the best if the peer decoded it faster than expected, and loses less if
    /// it does not than it gains with that luck: only sending tells. What encoding takes a look
    /// tells for less, and until it does it is taken to be slow.
    fn venture(
        &mut self,
        chosen: &Candidate,
        all: &[Candidate],
        objective: Objective,
    ) -> Option<Candidate> {
        let least = objective.cost(chosen);
        let loss = |one: &Candidate| objective.cost(one) - least;
        let gain = |one: &Candidate| {
            let mut lucky = *one;
            lucky.expected.decode_s *= luck(one.expected.decode_unsure);
            lucky.expected.encode_s /= luck(one.expected.encode_unsure);
            least - objective.cost(&lucky)
        };
        let worth = |one: &&Candidate| {
            let unsure = one.expected.decode_unsure > KNOWN;
            one.arm != chosen.arm && unsure && gain(one) > loss(one).max(MUCH * least)
        };
        let found = all.iter().filter(worth).min_by(|a, b| loss(a).total_cmp(&loss(b)))?;
        let cost_s = found.total_s() - chosen.total_s();
        if cost_s > self.probe_s {
            return None;
        }
        self.probe_s -= cost_s.max(0.0);
        Some(*found)
    }

    /// As it is, where that would be the fastest if more packets left at once: whoever sends little
    /// never widens the window, and one message that is sent for it all does for those that follow.
    fn opens(
        &mut self,
        chosen: &Candidate,
        all: &[Candidate],
        objective: Objective,
        path: &Path,
    ) -> Option<Candidate> {
        let plain = all.iter().find(|one| one.arm == Arm::IDENTITY)?;
        let lossless = path.measured && path.loss <= UNSEEN_LOSS;
        if objective != Objective::Time || chosen.arm == Arm::IDENTITY || !lossless {
            return None;
        }
        // What nobody saw lost does not hold a window back that nobody opened.
        let open = Path { start_window: OPEN, loss: 0.0, ..*path };
        let gains =
            self.network.seconds(&open, plain.expected.bytes) < (1.0 - MUCH) * chosen.total_s();
        // A window that one message grows past what the link and its queue hold loses much at once.
        let fits = 2.0 * plain.expected.bytes < path.rate_bps * path.rtt_s / 8.0;
        if !gains || !fits || plain.total_s() > 2.0 * chosen.total_s() {
            return None;
        }
        let Opening { missed, most, .. } = &mut self.opening;
        *missed += 1;
        if *missed < *most {
            return None;
        }
        (*missed, *most) = (0, most.saturating_mul(OPENINGS_APART));
        Some(*plain)
    }

    /// The arm that is worth a probe, if there is time for it.
    fn probe(
        &mut self,
        chosen: &Candidate,
        is_new: bool,
        path: &Path,
        all: &[Candidate],
        objective: Objective,
    ) -> Option<Arm> {
        let most_s = chosen.total_s().max(MAX_PROBE_S);
        let share = if is_new { NEW_SHARE } else { PROBE_SHARE };
        self.probe_s = (self.probe_s + share * chosen.total_s()).min(most_s.min(MAX_SAVED_S));
        let least = objective.cost(chosen);
        let hope = |candidate: &Candidate| {
            let mut lucky = *candidate;
            let smaller = luck(lucky.expected.unsure);
            lucky.expected.bytes *= smaller;
            // What is smaller than expected is made faster too.
            let faster = smaller * luck(lucky.expected.encode_unsure);
            lucky.expected.encode_s *= faster;
            lucky.expected.decode_s *= faster;
            lucky.network_s = self.network.seconds(path, lucky.expected.bytes);
            least - objective.cost(&lucky)
        };
        let worth = |candidate: &&Candidate| {
            let enough = if candidate.expected.is_known() { MUCH } else { WORTHWHILE };
            candidate.arm != chosen.arm
                && candidate.arm != Arm::IDENTITY
                && candidate.expected.encode_s <= most_s
                && hope(candidate) > enough * least
        };
        // What this message earns is there to be spent.
        let earned_s = PROBE_SHARE * chosen.total_s();
        let value =
            |candidate: &Candidate| hope(candidate) / candidate.expected.encode_s.max(earned_s);
        let found = all.iter().filter(worth).max_by(|a, b| value(a).total_cmp(&value(b)))?;
        let (arm, cost) = (found.arm, found.expected.encode_s);
        // What promises most for its time is saved up for.
        if cost > self.probe_s {
            return None;
        }
        self.probe_s -= cost;
        Some(arm)
    }
}

/// What was decided, where who decodes has told how many seconds an arm takes: those count in place
/// of what is expected of any.
#[must_use]
pub fn with_decoder(mut decision: Decision, decode_s: impl Fn(Arm) -> Option<f64>) -> Decision {
    let mut has_reported = false;
    for candidate in &mut decision.candidates {
        if let Some(seconds) = decode_s(candidate.arm) {
            (candidate.expected.decode_s, has_reported) = (seconds, true);
        }
    }
    let objective = decision.objective.among(&decision.candidates);
    let best = Learned::best(None, &decision.candidates, objective).filter(|_| has_reported);
    if let Some((best, _)) = best {
        if best.arm != decision.chosen.arm {
            decision.reason = "best for how fast this client decodes";
        }
        decision.chosen = best;
    }
    decision
}

/// What of a figure is left with luck.
fn luck(unsure: f64) -> f64 {
    (-unsure * if unsure <= KNOWN { 1.0 } else { OPTIMISM }).exp()
}

impl Policy for Learned {
    fn choose(&mut self, request: &Request<'_>) -> Decision {
        let &Request { subject, path, objective, .. } = request;
        let open = request.open(self.models.arms());
        let candidates: Vec<_> =
            open.filter_map(|arm| self.candidate(subject, path, arm)).collect();
        let feasible = objective.among(&candidates);
        let last = self.last.get(&subject.class).copied();
        let Some((chosen, reason)) = Self::best(last, &candidates, feasible) else {
            let network_s = self.network.seconds(path, subject.bytes);
            let chosen = Candidate::identity(subject.bytes, network_s);
            return Decision { chosen, objective, candidates, probe: None, reason: "no arm" };
        };
        let venture = self.venture(&chosen, &candidates, feasible);
        let (chosen, reason) = venture.map_or((chosen, reason), |one| (one, VENTURE));
        let opens = self.opens(&chosen, &candidates, feasible, path);
        self.opening.class.take_if(|class| *class == subject.class);
        self.opening.class = opens.map(|_| subject.class).or(self.opening.class);
        let (chosen, reason) = opens.map_or((chosen, reason), |one| (one, OPENS));
        self.remember(subject.class, chosen.arm);
        let probe = self.probe(&chosen, last.is_none(), path, &candidates, feasible);
        Decision { chosen, objective, candidates, probe, reason }
    }

    /// Long messages repeat themselves: as many times what is expected of so long a beginning.
    fn in_all(&self, subject: &Subject, arm: Arm, plain: f64, coded: f64) -> f64 {
        let first = Subject { bytes: plain.clamp(1.0, subject.bytes.max(1.0)), ..*subject };
        let expected = |subject: &Subject| self.models.expect(subject, arm).map(|one| one.bytes);
        let grown = expected(subject).zip(expected(&first)).map(|(all, first)| all / first);
        coded * grown.unwrap_or(1.0).max(1.0)
    }

    fn again(&self, decision: &Decision, path: &Path, tried: &[Arm], bytes: f64) -> Option<Arm> {
        let decode_s = decision.chosen.expected.decode_s;
        let now = Candidate {
            arm: decision.chosen.arm,
            expected: Expected { decode_s, ..Expected::unchanged(bytes) },
            network_s: self.network.seconds(path, bytes),
            wait_s: 0.0,
        };
        let is_tried = |one: &&Candidate| tried.contains(&one.arm);
        let (spent, open): (Vec<&Candidate>, Vec<&Candidate>) =
            decision.candidates.iter().partition(is_tried);
        let spent_s = spent.iter().map(|one| one.expected.encode_s).sum();
        let objective = decision.objective.after(spent_s);
        let objective = objective.among(open.iter().copied().chain([&now]));
        let cost = |one: &Candidate| objective.cost(one);
        let best = open.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
        (cost(best) < (1.0 - WORTHWHILE) * cost(&now)).then_some(best.arm)
    }

    /// As a message of its own, but for what was seen of the arm that it goes in.
    fn revise(&self, rest: &Request<'_>, going: &Going) -> Option<(Arm, &'static str)> {
        let &Request { subject, path, objective, .. } = rest;
        if going.arm == Arm::IDENTITY && self.opening.class == Some(subject.class) {
            return None;
        }
        let open = rest.open(self.models.arms());
        let mut candidates: Vec<_> =
            open.filter_map(|arm| self.candidate(subject, path, arm)).collect();
        let expected = candidates.iter().find(|one| one.arm == going.arm)?.expected;
        if going.arm != Arm::IDENTITY {
            self.as_seen(&mut candidates, rest, &expected, going);
        }
        let feasible = objective.among(&candidates);
        let cost = |one: &Candidate| feasible.cost(one);
        let now = candidates.iter().find(|one| one.arm == going.arm).map(cost)?;
        // From one coding to another there is a context to lose, and little is not known.
        let is_worth = |one: &Candidate| {
            let same = [Arm::IDENTITY, going.arm].contains(&one.arm);
            same || going.arm == Arm::IDENTITY || cost(one) < (1.0 - MUCH) * now
        };
        candidates.retain(is_worth);
        let (best, reason) = Self::best(Some(going.arm), &candidates, feasible)?;
        (best.arm != going.arm).then_some((best.arm, reason))
    }

    fn knows(&self, peer: u64) -> bool {
        self.models.knows(peer)
    }

    fn network_s(&self, path: &Path, bytes: f64) -> f64 {
        self.network.seconds(path, bytes)
    }

    fn observe(&mut self, observation: &Observation<'_>) {
        match *observation {
            Observation::Encoding { subject, arm, seen } => self.models.observe(subject, arm, seen),
            Observation::Network { path, bytes, seconds } => {
                self.network.observe(path, bytes, seconds);
            }
            Observation::PathChanged { peer } => self.network.forget(peer),
            Observation::Waits { seconds } => self.wait_s = seconds,
            Observation::Speed { arm, encode, decode } => {
                self.models.calibrate(arm, encode, decode);
            }
            Observation::Decoder { peer, decode } => self.models.acquaint(peer, decode),
        }
    }

    fn state_bytes(&self) -> usize {
        let last = MAX_CLASSES * size_of::<(u64, Arm)>() * 2;
        size_of::<Self>() + self.models.most_bytes() + Paths::most_bytes() + last
    }

    fn save(&self, arms: &[&str], out: &mut Vec<u8>) {
        state::save(Kind::Learned, arms, self.models.arms(), self, out);
    }

    fn restore(&mut self, arms: &[&str], bytes: &[u8]) -> Result<(), Error> {
        state::restore(Kind::Learned, arms, self.models.arms(), self, bytes)
    }
}

/// What a class had last keeps a choice steady across a restart; time saved up is not earned again.
impl Persist for Learned {
    fn write(&self, to: &mut Writer<'_>) {
        self.network.write(to);
        self.models.write(to);
        to.count(self.last.len());
        for (&class, arm) in &self.last {
            to.u64(class);
            to.count(arm.0);
        }
        to.f64(self.probe_s);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.network = Paths::default();
        self.network.read(from)?;
        self.models.read(from)?;
        self.last.clear();
        let mut before = None;
        for _ in 0..from.count("number of last arms", MAX_CLASSES)? {
            let class = from.u64()?;
            if before.is_some_and(|before| before >= class) {
                return Err(Error::Damaged("its last arms are out of order"));
            }
            before = Some(class);
            if let Some(arm) = from.arm()? {
                self.last.insert(class, arm);
            }
        }
        self.probe_s = from.f64("a time saved up", 0.0..=MAX_SAVED_S)?;
        Ok(())
    }
}
