//! Sizes and times of encodings, learned for each class of messages.

use std::collections::BTreeMap;

use crate::arm::{Arm, Prior, SIZE_FEATURES, Speed, size_features, time_features};
use crate::groups::Groups;
use crate::regression::{MOST_FIGURE, Prediction, Recursive};
use crate::state::{Error, Reader, State, Writer};

/// Features of sizes, or their coefficients.
type Sizes = [f64; SIZE_FEATURES];

/// Classes that are known at once; beyond it the one longest unused goes.
const MOST_CLASSES: usize = 256;
/// What an observation of sizes and times weighs after the next one.
const FORGETTING: f64 = 0.995;
/// How far the prior's coefficients of sizes may be off, for an arm that nobody has seen.
const SIZE_SPREAD: Sizes = [0.5, 0.4, 0.15, 0.15, 0.1];
/// The same for a class, of an arm that other classes have taught.
const CLASS_SIZE_SPREAD: Sizes = [0.35, 0.3, 0.1, 0.1, 0.1];
/// Scatter of the logarithm of sizes within a class.
const SIZE_DEVIATION: f64 = 0.12;
/// How far coefficients of times may be off.
const TIME_SPREAD: [f64; 3] = [0.7, 0.15, 0.2];
/// Scatter of the logarithm of times.
const TIME_DEVIATION: f64 = 0.25;
/// A time below this is none that a clock tells.
const LEAST_S: f64 = 1e-7;

/// The regressions of one arm.
#[derive(Clone, Debug)]
struct Model {
    size: Recursive<SIZE_FEATURES>,
    encode: Recursive<3>,
    decode: Recursive<3>,
}

/// Regressions of a class, from what is expected of it.
fn class_sizes(expected: Sizes) -> Recursive<SIZE_FEATURES> {
    Recursive::new(expected, CLASS_SIZE_SPREAD, SIZE_DEVIATION, FORGETTING)
}

fn fresh_times(expected: [f64; 3]) -> Recursive<3> {
    Recursive::new(expected, TIME_SPREAD, TIME_DEVIATION, FORGETTING)
}

impl Model {
    fn of(prior: &Prior) -> Self {
        let [one, little, product, long] = prior.size;
        let expected = [one, little, product, long, 0.0];
        Self {
            size: Recursive::new(expected, SIZE_SPREAD, SIZE_DEVIATION, FORGETTING),
            encode: fresh_times([0.0; 3]),
            decode: fresh_times([0.0; 3]),
        }
    }

    /// For a class that is new: what other classes have taught.
    fn for_class(&self) -> Self {
        Self {
            size: class_sizes(*self.size.coefficients()),
            encode: fresh_times(*self.encode.coefficients()),
            decode: fresh_times(*self.decode.coefficients()),
        }
    }
}

/// What the regressions of a class have in common, of all arms: how much otherwise its messages
/// turn out than was expected. What one arm showed is to be expected of those that nobody has
/// tried: messages that repeat themselves are shorter and faster in all of them, and a processor
/// that is slower than at its trial is so for all.
#[derive(Clone, Debug)]
struct Shared<const N: usize> {
    /// What was expected when the class was new, by arm.
    starts: Vec<[f64; N]>,
    off: Recursive<N>,
}

impl<const N: usize> Shared<N> {
    fn new(starts: impl Iterator<Item = [f64; N]>, off: fn([f64; N]) -> Recursive<N>) -> Self {
        Self { starts: starts.collect(), off: off([0.0; N]) }
    }

    /// What an arm's own regression says, and where it has seen nothing, what others showed too.
    fn predict(&self, own: &Recursive<N>, features: &[f64; N]) -> Prediction {
        let own_says = own.predict(features);
        if own.weight() > 0.0 {
            return own_says;
        }
        Prediction { mean: own_says.mean + self.off.predict(features).mean, ..own_says }
    }

    /// Teaches an arm's own regression, which begins with what was expected of it until now, and
    /// the others'.
    fn observe(
        &mut self,
        (arm, own): (usize, &mut Recursive<N>),
        fresh: fn([f64; N]) -> Recursive<N>,
        features: &[f64; N],
        value: f64,
    ) {
        let Some(start) = self.starts.get(arm) else { return };
        if own.weight() == 0.0 {
            let mut expected = *start;
            let more = self.off.coefficients();
            expected.iter_mut().zip(more).for_each(|(to, more)| *to += more);
            *own = fresh(expected);
        }
        own.observe(features, value);
        let expected: f64 = start.iter().zip(features).map(|(start, of)| start * of).sum();
        self.off.observe(features, value - expected);
    }
}

/// A class of messages: those alike enough to be told by one model (service, operation, content
/// type, direction).
#[derive(Clone, Debug)]
struct Class {
    arms: Vec<Model>,
    sizes: Shared<SIZE_FEATURES>,
    /// What groups of its messages have beyond the regressions of sizes.
    groups: Groups,
    /// Encoding and decoding apart: another processor does the one than the other.
    encoding: Shared<3>,
    decoding: Shared<3>,
    used: u64,
}

impl Class {
    fn new(arms: &[Model], used: u64) -> Self {
        let of = |model: fn(&Model) -> &Recursive<3>| {
            Shared::new(arms.iter().map(|arm| *model(arm).coefficients()), fresh_times)
        };
        Self {
            arms: arms.iter().map(Model::for_class).collect(),
            sizes: Shared::new(arms.iter().map(|arm| *arm.size.coefficients()), class_sizes),
            groups: Groups::new(arms.len()),
            encoding: of(|arm| &arm.encode),
            decoding: of(|arm| &arm.decode),
            used,
        }
    }

    /// Logarithm of the share that an arm leaves of a message.
    fn size(&self, arm: usize, subject: &Subject) -> Option<Prediction> {
        let of = |arm: usize, bytes: f64, head: f64| {
            Some(self.sizes.predict(&self.arms.get(arm)?.size, &size_features(bytes, head)))
        };
        let found = of(arm, subject.bytes, subject.head_share)?;
        let mean = |arm: usize, bytes: f64, head: f64| Some(of(arm, bytes, head)?.mean);
        let beyond = self.groups.beyond(subject, arm, mean);
        let left = (1.0 - beyond.explained).max(0.0).sqrt();
        Some(Prediction {
            mean: found.mean + beyond.mean,
            deviation: found.deviation * left,
            unsure: found.unsure * left,
        })
    }

    /// Logarithms of the times of encoding and decoding over the prior's. Decoding is told of what
    /// was sent alone: a codec that models alike both ways is expected to take as much less, or
    /// more, for it as encoding did.
    fn times(&self, Arm(arm): Arm, prior: &Prior, features: &[f64; 3]) -> Option<(f64, f64)> {
        let (model, start) = (self.arms.get(arm)?, self.encoding.starts.get(arm)?);
        let encode = self.encoding.predict(&model.encode, features).mean;
        if !prior.is_symmetric() || model.decode.weight() > 0.0 || model.encode.weight() == 0.0 {
            return Some((encode, self.decoding.predict(&model.decode, features).mean));
        }
        let expected: f64 = start.iter().zip(features).map(|(start, of)| start * of).sum();
        Some((encode, model.decode.predict(features).mean + encode - expected))
    }

    fn observe(&mut self, subject: &Subject, arm: usize, times: &[f64; 3], offs: &Offs) {
        let sizes = &size_features(subject.bytes, subject.head_share);
        self.groups.observe(subject, arm, offs.size);
        let Some(model) = self.arms.get_mut(arm) else { return };
        self.sizes.observe((arm, &mut model.size), class_sizes, sizes, offs.size);
        if let Some(off) = offs.encode {
            self.encoding.observe((arm, &mut model.encode), fresh_times, times, off);
        }
        if let Some(off) = offs.decode {
            self.decoding.observe((arm, &mut model.decode), fresh_times, times, off);
        }
    }
}

/// What an encoding turned out to be, as logarithms: the share that it left, and its times over
/// what the priors say.
struct Offs {
    size: f64,
    encode: Option<f64>,
    decode: Option<f64>,
}

/// What is expected of an arm for a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Encoded bytes.
    pub bytes: f64,
    /// Deviation of the logarithm of `bytes`.
    pub deviation: f64,
    /// The part of it that looking would take away.
    pub unsure: f64,
    /// Seconds to encode.
    pub encode_s: f64,
    /// Seconds to decode.
    pub decode_s: f64,
}

impl Expected {
    /// Of bytes that are left alone.
    #[must_use]
    pub fn unchanged(bytes: f64) -> Self {
        Self { bytes, deviation: 0.0, unsure: 0.0, encode_s: 0.0, decode_s: 0.0 }
    }
}

/// What is known of a message before anything is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// Class.
    pub class: u64,
    /// Bytes, or those to expect where the end is not known.
    pub bytes: f64,
    /// Of [`crate::head::share_left`].
    pub head_share: f64,
}

/// What an encoding turned out to be; what is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Encoded bytes.
    pub bytes: f64,
    /// Seconds to encode.
    pub encode_s: Option<f64>,
    /// Seconds to decode, as the peer tells.
    pub decode_s: Option<f64>,
}

/// Models of all arms for all classes.
#[derive(Clone, Debug)]
pub struct Models {
    priors: Vec<Prior>,
    /// Of all classes together.
    arms: Vec<Model>,
    classes: BTreeMap<u64, Class>,
    clock: u64,
}

impl Models {
    /// Models that know the priors; the first arm leaves bytes alone.
    #[must_use]
    pub fn new(priors: Vec<Prior>) -> Self {
        let arms = priors.iter().map(Model::of).collect();
        Self { priors, arms, classes: BTreeMap::new(), clock: 0 }
    }

    /// Number of arms.
    #[must_use]
    pub fn arms(&self) -> usize {
        self.priors.len()
    }

    /// Classes known now.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Most bytes of memory that the models take, whatever comes.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        let arm = size_of::<Model>() + size_of::<Sizes>() + 2 * size_of::<[f64; 3]>();
        let class = size_of::<Class>() + Groups::most_bytes(self.arms());
        (MOST_CLASSES + 1) * (self.arms() * arm + class + 16)
    }

    /// What to expect of `arm` for a message.
    #[must_use]
    pub fn expect(&self, subject: &Subject, arm: Arm) -> Option<Expected> {
        let prior = self.priors.get(arm.0)?;
        if arm == Arm::IDENTITY {
            return Some(Expected::unchanged(subject.bytes));
        }
        let class = self.classes.get(&subject.class);
        let model = self.arms.get(arm.0)?;
        let Prediction { mean, deviation, unsure } = match class {
            Some(class) => class.size(arm.0, subject)?,
            None => model.size.predict(&size_features(subject.bytes, subject.head_share)),
        };
        let share = mean.clamp(-9.0, 0.5).exp();
        let bytes = (share * subject.bytes).max(1.0) + prior.overhead_bytes;
        let features = time_features(subject.bytes, share);
        let (encode, decode) = match class {
            Some(class) => class.times(arm, prior, &features)?,
            None => (model.encode.predict(&features).mean, model.decode.predict(&features).mean),
        };
        let seconds = |speed: &Speed, off: f64| {
            speed.seconds(subject.bytes).max(LEAST_S) * off.clamp(-6.0, 6.0).exp()
        };
        Some(Expected {
            bytes,
            deviation,
            unsure,
            encode_s: seconds(&prior.encode, encode),
            decode_s: seconds(&prior.decode, decode),
        })
    }

    /// Learns what an encoding of a message turned out to be.
    pub fn observe(&mut self, subject: &Subject, arm: Arm, seen: &Seen) {
        let Some(&prior) = self.priors.get(arm.0).filter(|_| arm != Arm::IDENTITY) else { return };
        if seen.bytes < 1.0 || subject.bytes < 1.0 {
            return;
        }
        self.clock += 1;
        self.class(subject.class);
        let share = (seen.bytes - prior.overhead_bytes).max(1.0) / subject.bytes;
        let sizes = size_features(subject.bytes, subject.head_share);
        let times = time_features(subject.bytes, share);
        let off = |seconds: Option<f64>, speed: &Speed| {
            seconds.map(|s| (s.max(LEAST_S) / speed.seconds(subject.bytes).max(LEAST_S)).ln())
        };
        let (encode, decode) =
            (off(seen.encode_s, &prior.encode), off(seen.decode_s, &prior.decode));
        let offs = Offs { size: share.ln(), encode, decode };
        if let Some(class) = self.classes.get_mut(&subject.class) {
            class.observe(subject, arm.0, &times, &offs);
        }
        if let Some(model) = self.arms.get_mut(arm.0) {
            model.size.observe(&sizes, offs.size);
            encode.into_iter().for_each(|off| model.encode.observe(&times, off));
            decode.into_iter().for_each(|off| model.decode.observe(&times, off));
        }
    }

    /// Takes the speeds of an arm as measured on this processor, where no message has told.
    pub fn calibrate(&mut self, arm: Arm, encode: Option<Speed>, decode: Option<Speed>) {
        let (Some(prior), Some(model)) = (self.priors.get_mut(arm.0), self.arms.get(arm.0)) else {
            return;
        };
        let untold = |times: &Recursive<3>| times.weight() == 0.0;
        prior.encode = encode.filter(|_| untold(&model.encode)).unwrap_or(prior.encode);
        prior.decode = decode.filter(|_| untold(&model.decode)).unwrap_or(prior.decode);
    }

    /// Makes a class, or notes that it was used.
    fn class(&mut self, class: u64) {
        if !self.classes.contains_key(&class) && self.classes.len() >= MOST_CLASSES {
            let oldest = self.classes.iter().min_by_key(|(_, class)| class.used);
            if let Some(oldest) = oldest.map(|(&oldest, _)| oldest) {
                self.classes.remove(&oldest);
            }
        }
        let arms = &self.arms;
        let fresh = || Class::new(arms, 0);
        self.classes.entry(class).or_insert_with(fresh).used = self.clock;
    }
}

impl State for Model {
    fn write(&self, to: &mut Writer<'_>) {
        self.size.write(to);
        self.encode.write(to);
        self.decode.write(to);
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.size.read(from)?;
        self.encode.read(from)?;
        self.decode.read(from)
    }
}

/// What the regressions have in common, and what was expected of each arm.
impl<const N: usize> State for Shared<N> {
    fn write(&self, to: &mut Writer<'_>) {
        self.off.write(to);
        self.starts.iter().flatten().for_each(|&coefficient| to.f64(coefficient));
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        self.off.read(from)?;
        for arm in from.arms() {
            let mut skipped = [0.0; N];
            let own = arm.and_then(|Arm(at)| self.starts.get_mut(at));
            for coefficient in own.unwrap_or(&mut skipped) {
                *coefficient = from.f64("a coefficient", -MOST_FIGURE..=MOST_FIGURE)?;
            }
        }
        Ok(())
    }
}

/// Of each arm the speeds that its times are measured against, and its models; then the classes in
/// ascending order, each with the models of all arms and what these have in common.
impl State for Models {
    fn write(&self, to: &mut Writer<'_>) {
        for (prior, model) in self.priors.iter().zip(&self.arms) {
            to.speed(&prior.encode);
            to.speed(&prior.decode);
            model.write(to);
        }
        to.u64(self.clock);
        to.count(self.classes.len());
        for (&id, class) in &self.classes {
            to.u64(id);
            to.u64(class.used);
            class.arms.iter().for_each(|model| model.write(to));
            class.sizes.write(to);
            class.groups.write(to);
            class.encoding.write(to);
            class.decoding.write(to);
        }
    }

    fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Error> {
        let arms = from.arms();
        for &arm in &arms {
            let (encode, decode) = (from.speed()?, from.speed()?);
            let mut skipped = (Prior::IDENTITY, Model::of(&Prior::IDENTITY));
            let own =
                arm.and_then(|Arm(at)| Some((self.priors.get_mut(at)?, self.arms.get_mut(at)?)));
            let (prior, model) = own.unwrap_or((&mut skipped.0, &mut skipped.1));
            *model = Model::of(prior);
            model.read(from)?;
            // Where nobody has seen a time, what was measured at this start knows better.
            if model.encode.weight() > 0.0 {
                prior.encode = encode;
            }
            if model.decode.weight() > 0.0 {
                prior.decode = decode;
            }
        }
        self.clock = from.clock()?;
        self.read_classes(from, &arms)
    }
}

impl Models {
    fn read_classes(&mut self, from: &mut Reader<'_>, arms: &[Option<Arm>]) -> Result<(), Error> {
        self.classes.clear();
        let mut before = None;
        for _ in 0..from.count("number of classes", MOST_CLASSES)? {
            let (id, used) = (from.u64()?, from.u64()?);
            if before.is_some_and(|before| before >= id) || used > self.clock {
                return Err(Error::Damaged("its classes are out of order"));
            }
            before = Some(id);
            let mut class = Class::new(&self.arms, used);
            for arm in arms {
                let mut skipped = Model::of(&Prior::IDENTITY).for_class();
                let own = arm.and_then(|Arm(at)| class.arms.get_mut(at));
                own.unwrap_or(&mut skipped).read(from)?;
            }
            class.sizes.read(from)?;
            class.groups.read(from)?;
            class.encoding.read(from)?;
            class.decoding.read(from)?;
            self.classes.insert(id, class);
        }
        Ok(())
    }
}
