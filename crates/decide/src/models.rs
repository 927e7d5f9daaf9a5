//! Sizes and times of encodings, learned for each class of messages.

use std::collections::BTreeMap;

use crate::arm::{Arm, Prior, SIZE_FEATURES, Speed, size_features, time_features};
use crate::decoders::{Decoders, Known};
use crate::groups::Groups;
use crate::regression::{Common, Kin, Lesson, Prediction, Recursive};
use crate::state::{Error, MAX_ARMS, Persist, Reader, Writer};

/// Features of sizes, or their coefficients.
type Sizes = [f64; SIZE_FEATURES];

/// Classes that are known at once; beyond it the one longest unused goes.
const MAX_CLASSES: usize = 256;
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
/// What sizes of different arms have in common, of what they are off (off messages that are judged
/// nowhere: a correlation of 0.96, 0.98 within a family).
const SIZES_IN_COMMON: Common = Common { all: 0.85, family: 0.1 };
/// The same of times (0.2 to 0.5, 0.6 to 0.9 within a family), of messages on one processor: one
/// that is slower than at its trial is so for all.
const TIMES_IN_COMMON: Common = Common { all: 0.5, family: 0.4 };
/// Where a codec models alike both ways, decoding is off by as much as encoding, or nearly.
const BOTH_WAYS: f64 = 0.95;
/// A message that two processors are compared over: neither all beginning nor all bytes.
const TRIAL_BYTES: f64 = 16_384.0;
/// A time below this is none that a clock tells.
const MIN_S: f64 = 1e-7;
/// A time is taken for no more times longer or shorter than its prior, as a logarithm: one absurd
/// time must not end all coding. Where many say so it may be some thousand times, for a prior is
/// of this processor.
const MAX_OFF: f64 = 6.0;
const MAX_KNOWN_OFF: f64 = 9.0;

/// The regressions of one arm.
#[derive(Clone, Debug)]
struct Model {
    /// Of arms that go together, a number among the families of all.
    family: usize,
    /// See [`Prior::is_based`].
    based: bool,
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
    fn of(prior: &Prior, family: usize) -> Self {
        let [one, little, product, long] = prior.size;
        let expected = [one, little, product, long, 0.0];
        Self {
            family,
            based: prior.is_based(),
            size: Recursive::new(expected, SIZE_SPREAD, SIZE_DEVIATION, FORGETTING),
            encode: fresh_times([0.0; 3]),
            decode: fresh_times([0.0; 3]),
        }
    }

    /// For a class that is new: what other classes have taught.
    fn for_class(&self) -> Self {
        Self {
            family: self.family,
            based: self.based,
            size: class_sizes(*self.size.coefficients()),
            encode: fresh_times(*self.encode.coefficients()),
            decode: fresh_times(*self.decode.coefficients()),
        }
    }
}

/// A class of messages: those alike enough for one model (service, operation, content
/// type, direction).
#[derive(Clone, Debug)]
struct Class {
    arms: Vec<Model>,
    sizes: Kin<SIZE_FEATURES>,
    /// What groups of its messages have beyond the regressions of sizes.
    groups: Groups,
    /// Encoding and decoding apart: another processor does the one than the other.
    encoding: Kin<3>,
    decoding: Kin<3>,
    used: u64,
}

impl Class {
    fn new(arms: &[Model], used: u64) -> Self {
        let families = families(arms);
        let times = || Kin::new(&fresh_times([0.0; 3]), TIMES_IN_COMMON, families);
        Self {
            arms: arms.iter().map(Model::for_class).collect(),
            sizes: Kin::new(&class_sizes([0.0; SIZE_FEATURES]), SIZES_IN_COMMON, families),
            groups: Groups::new(arms.len()),
            encoding: times(),
            decoding: times(),
            used,
        }
    }

    /// An arm is new in a class that others have taught.
    fn join(&mut self, arm: usize) {
        let Some(model) = self.arms.get_mut(arm) else { return };
        model.size.follow(&self.sizes.moved(model.family).of(model.family));
        model.encode.follow(&self.encoding.moved(model.family).of(model.family));
        model.decode.follow(&self.decoding.moved(model.family).of(model.family));
    }

    /// Logarithm of the share that an arm leaves of a message.
    fn size(&self, arm: usize, subject: &Subject) -> Option<Prediction> {
        let of = |arm: usize, bytes: f64, head: f64| {
            let Model { family, size, .. } = self.arms.get(arm)?;
            Some(self.sizes.predict(*family, size, &size_features(bytes, head)))
        };
        let found = of(arm, subject.bytes, subject.head_share)?;
        let tells = |other: usize| other == arm || self.arms.get(other).is_some_and(|a| !a.based);
        let mean = |other: usize, bytes: f64, head: f64| {
            tells(other).then(|| of(other, bytes, head)).flatten().map(|found| found.mean)
        };
        let beyond = self.groups.beyond(subject, arm, mean);
        let left = (1.0 - beyond.explained).max(0.0).sqrt();
        Some(Prediction {
            mean: found.mean + beyond.mean,
            deviation: found.deviation * left,
            unsure: found.unsure * left,
        })
    }

    fn observe(&mut self, subject: &Subject, (arm, prior): (usize, &Prior), offs: &Offs) {
        let sizes = &size_features(subject.bytes, subject.head_share);
        let times = &time_features(subject.bytes, offs.size.exp());
        self.groups.observe(subject, arm, offs.size);
        let arms = &mut self.arms;
        if prior.is_based() {
            // What messages before left of it says nothing of those that do without.
            arms.get_mut(arm).and_then(|own| own.size.observe(sizes, offs.size));
        } else {
            teach(&mut self.sizes, arms, arm, |model| &mut model.size, (sizes, offs.size));
        }
        if let Some(off) = offs.encode {
            let reported = (times, off);
            let lesson = teach(&mut self.encoding, arms, arm, |model| &mut model.encode, reported);
            // Decoding is told of what was sent alone. What others showed of encoders before is of
            // this processor, and says nothing of the peer's.
            let lesson = lesson.filter(|_| prior.is_symmetric());
            if let (Some(lesson), Some(own)) = (lesson, arms.get_mut(arm)) {
                own.decode.follow(&lesson.moved(BOTH_WAYS));
            }
        }
        if let Some(off) = offs.decode {
            teach(&mut self.decoding, arms, arm, |model| &mut model.decode, (times, off));
        }
    }
}

/// Teaches one regression of an arm, and with it those of the others.
fn teach<const N: usize>(
    kin: &mut Kin<N>,
    arms: &mut [Model],
    arm: usize,
    of: fn(&mut Model) -> &mut Recursive<N>,
    (features, value): (&[f64; N], f64),
) -> Option<Lesson<N>> {
    let own = arms.get_mut(arm)?;
    let lesson = of(own).observe(features, value)?;
    let moves = kin.observe(own.family, &lesson);
    let others = arms.iter_mut().enumerate().filter(|(other, _)| *other != arm);
    for (_, other) in others {
        let moved = moves.of(other.family);
        of(other).follow(&moved);
    }
    Some(lesson)
}

/// What is believed of a time over its prior, as logarithms.
fn credible(time: Prediction) -> Prediction {
    let most = if time.unsure <= KNOWN { MAX_KNOWN_OFF } else { MAX_OFF };
    Prediction { mean: time.mean.clamp(-most, most), ..time }
}

/// Number of families among arms.
fn families(arms: &[Model]) -> usize {
    arms.iter().map(|arm| arm.family + 1).max().unwrap_or(0)
}

/// What an encoding turned out to be, as logarithms: the share that it left, and its times over
/// what the priors say.
struct Offs {
    size: f64,
    encode: Option<f64>,
    decode: Option<f64>,
}

/// What is expected of an arm for a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// Deviation of the logarithm of `encode_s`, as far as looking would take it away.
    pub encode_unsure: f64,
    /// The same of `decode_s`: only sending takes it away.
    pub decode_unsure: f64,
}

/// An arm of whose sizes and times no more than this is unsure need not be tried again: the rest is
/// the messages' own scatter, which trying does not take away.
pub(crate) const KNOWN: f64 = 0.15;

impl Expected {
    /// Encoding the message, or one like it, would show little that is not known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.unsure <= KNOWN && self.encode_unsure <= KNOWN
    }

    /// Of bytes that are left alone.
    #[must_use]
    pub fn unchanged(bytes: f64) -> Self {
        Self { bytes, ..Self::default() }
    }
}

/// What is known of a message before anything is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject {
    /// Who decodes it, a number that stays with the peer; 0 where that is not known.
    pub peer: u64,
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
    decoders: Decoders,
    clock: u64,
}

impl Models {
    /// Models that know the priors; the first arm leaves bytes alone.
    #[must_use]
    pub fn new(priors: Vec<Prior>) -> Self {
        let mut families: Vec<&str> = Vec::new();
        let mut family = |prior: &Prior| {
            families.iter().position(|family| *family == prior.family).unwrap_or_else(|| {
                families.push(prior.family);
                families.len() - 1
            })
        };
        let arms = priors.iter().map(|prior| Model::of(prior, family(prior))).collect();
        let decoders = Decoders::default();
        Self { priors, arms, classes: BTreeMap::new(), decoders, clock: 0 }
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
        let family = Kin::<SIZE_FEATURES>::FAMILY_BYTES + 2 * Kin::<3>::FAMILY_BYTES;
        let arm = size_of::<Model>() + family;
        // A node of a tree has room for eleven where there may be five.
        let class = 11 * (size_of::<Class>() + 8) / 5 + Groups::most_bytes(self.arms());
        (MAX_CLASSES + 1) * (self.arms() * arm + class) + Decoders::MAX_BYTES
    }

    /// What to expect of `arm` for a message.
    #[must_use]
    pub fn expect(&self, subject: &Subject, arm: Arm) -> Option<Expected> {
        let prior = self.priors.get(arm.0)?;
        if arm == Arm::IDENTITY {
            return Some(Expected::unchanged(subject.bytes));
        }
        let class = self.classes.get(&subject.class);
        let model = class.map_or(&self.arms, |class| &class.arms).get(arm.0)?;
        let Prediction { mean, deviation, unsure } = match class {
            Some(class) => class.size(arm.0, subject)?,
            None => model.size.predict(&size_features(subject.bytes, subject.head_share)),
        };
        let share = mean.clamp(-9.0, 0.5).exp();
        let bytes = (share * subject.bytes).max(1.0) + prior.overhead_bytes;
        let features = time_features(subject.bytes, share);
        let seconds = |speed: &Speed, off: f64| speed.seconds(subject.bytes).max(MIN_S) * off.exp();
        let times = |kin: fn(&Class) -> &Kin<3>, one: &Recursive<3>| {
            credible(match class {
                Some(class) => kin(class).predict(model.family, one, &features),
                None => one.predict(&features),
            })
        };
        let encode = times(|class| &class.encoding, &model.encode);
        let decode = times(|class| &class.decoding, &model.decode);
        let (decode, decode_unsure) = match self.decoders.of(subject.peer) {
            Known::Learned(peer) => {
                (decode.mean + peer.off, decode.unsure.hypot(peer.variance.sqrt()))
            }
            Known::Reported(off, spread) => (off, spread),
        };
        Some(Expected {
            bytes,
            deviation,
            unsure,
            encode_s: seconds(&prior.encode, encode.mean),
            decode_s: seconds(&prior.decode, decode),
            encode_unsure: encode.unsure,
            decode_unsure,
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
            seconds.map(|s| (s.max(MIN_S) / speed.seconds(subject.bytes).max(MIN_S)).ln())
        };
        let encode = off(seen.encode_s, &prior.encode);
        let decode = off(seen.decode_s, &prior.decode).and_then(|off| {
            let expected = self.classes.get(&subject.class).and_then(|class| {
                let model = class.arms.get(arm.0)?;
                Some(credible(class.decoding.predict(model.family, &model.decode, &times)))
            });
            self.decoders.observe(subject.peer, off, &expected?)
        });
        let offs = Offs { size: share.ln(), encode, decode };
        if let Some(class) = self.classes.get_mut(&subject.class) {
            class.observe(subject, (arm.0, &prior), &offs);
        }
        if let Some(model) = self.arms.get_mut(arm.0) {
            model.size.observe(&sizes, offs.size);
            encode.and_then(|off| model.encode.observe(&times, off));
            decode.and_then(|off| model.decode.observe(&times, off));
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

    /// Whether it is known how fast a peer decodes.
    pub(crate) fn knows(&self, peer: u64) -> bool {
        self.decoders.knows(peer)
    }

    /// Takes how fast a peer says that it decodes, where no message has told: as so many times this
    /// processor.
    pub(crate) fn acquaint(&mut self, peer: u64, decode: &[(Arm, Speed)]) {
        let seconds = |speed: &Speed| speed.seconds(TRIAL_BYTES).max(MIN_S);
        let off = |(arm, theirs): &(Arm, Speed)| {
            let prior = self.priors.get(arm.0).filter(|_| *arm != Arm::IDENTITY)?;
            Some((seconds(theirs) / seconds(&prior.decode)).ln())
        };
        let offs: Vec<f64> = decode.iter().filter_map(off).filter(|off| off.is_finite()).collect();
        if !offs.is_empty() {
            self.decoders.acquaint(peer, offs.iter().sum::<f64>() / offs.len() as f64);
        }
    }

    /// Makes a class, or notes that it was used.
    fn class(&mut self, class: u64) {
        if !self.classes.contains_key(&class) && self.classes.len() >= MAX_CLASSES {
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

impl Persist for Model {
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

/// Of each arm its family, the speeds that its times are measured against, and its models; how the
/// peers decode; then the classes in ascending order, each with the models of all arms and what
/// these have in common.
impl Persist for Models {
    fn write(&self, to: &mut Writer<'_>) {
        for (prior, model) in self.priors.iter().zip(&self.arms) {
            to.count(model.family);
            to.speed(&prior.encode);
            to.speed(&prior.decode);
            model.write(to);
        }
        self.decoders.write(to);
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
        let mut families = Vec::new();
        for &arm in &arms {
            let family = from.count("number of a family", MAX_ARMS)?;
            families.resize(families.len().max(family + 1), None);
            let ours = arm.and_then(|Arm(at)| self.arms.get(at));
            ours.into_iter().for_each(|ours| families[family] = Some(ours.family));
            let (encode, decode) = (from.speed()?, from.speed()?);
            let mut skipped = (Prior::IDENTITY, Model::of(&Prior::IDENTITY, 0));
            let own =
                arm.and_then(|Arm(at)| Some((self.priors.get_mut(at)?, self.arms.get_mut(at)?)));
            let (prior, model) = own.unwrap_or((&mut skipped.0, &mut skipped.1));
            *model = Model::of(prior, model.family);
            model.read(from)?;
            // Where nobody has seen a time, what was measured at this start knows better.
            if model.encode.weight() > 0.0 {
                prior.encode = encode;
            }
            if model.decode.weight() > 0.0 {
                prior.decode = decode;
            }
        }
        self.decoders.read(from)?;
        self.clock = from.clock()?;
        self.read_classes(from, &arms, &families)
    }
}

impl Models {
    fn read_classes(
        &mut self,
        from: &mut Reader<'_>,
        arms: &[Option<Arm>],
        families: &[Option<usize>],
    ) -> Result<(), Error> {
        self.classes.clear();
        let mut before = None;
        for _ in 0..from.count("number of classes", MAX_CLASSES)? {
            let (id, used) = (from.u64()?, from.u64()?);
            if before.is_some_and(|before| before >= id) || used > self.clock {
                return Err(Error::Damaged("its classes are out of order"));
            }
            before = Some(id);
            let mut class = Class::new(&self.arms, used);
            for arm in arms {
                let mut skipped = Model::of(&Prior::IDENTITY, 0).for_class();
                let own = arm.and_then(|Arm(at)| class.arms.get_mut(at));
                own.unwrap_or(&mut skipped).read(from)?;
            }
            class.sizes.read(from, families)?;
            class.groups.read(from)?;
            class.encoding.read(from, families)?;
            class.decoding.read(from, families)?;
            let is_new = |at: &usize| !arms.contains(&Some(Arm(*at)));
            (0..self.arms.len()).filter(is_new).for_each(|at| class.join(at));
            self.classes.insert(id, class);
        }
        Ok(())
    }
}
