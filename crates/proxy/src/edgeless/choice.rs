//! Which coding an answer goes in: what the client takes, what memory holds, and what the policy
//! expects, with the client's own times to decode where it has told them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codec::content::Coding;
use codec::dictionary::Kept;
use codec::dictionary::rfc9842::Form;
use codec::{Encoder, Options, Settings};
use coding::{Encoding, Service};
use decide::Arm;
use decide::models::{Seen, Subject};
use decide::network::Path;
use decide::policy::{Candidate, Decision, Objective, Observation, Policy, Request};
use decide::triage::{Message, Triage};
use proto::profile::Model;
use record::decision as told;

use super::accept::Accepted;
use crate::live::Live;

/// Length to expect of a body that does not say.
const UNKNOWN_BYTES: f64 = 65_536.0;
/// Share that a fast coder may leave of a body of which nothing is at hand yet.
const UNKNOWN_SHARE: f64 = 0.35;
/// Memory that one answer's encoder may take of what is left, so that others find room.
const MEMORY_SHARE: usize = 4;
/// A gain below this share of the message's time is not worth a coding.
const WORTHWHILE: f64 = 0.02;

/// Why an arm may not be taken.
const NOT_TAKEN: &str = "the client does not take it";
/// See [`NOT_TAKEN`].
const SHORT: &str = "codec memory is short";
/// Why a client is not believed.
const USED_UP: &str = "this client's share of the processor is used up";

/// An encoder that takes no longer is nobody's concern.
const CHEAP_S: f64 = 0.002;

/// Level of each coding with a dictionary.
const DCB_LEVEL: i8 = 10;
/// See [`DCB_LEVEL`].
const DCZ_LEVEL: i8 = 19;

/// Who chooses for foreign clients.
pub(crate) struct Chooser {
    encoding: Encoding,
    services: Live<Vec<Service>>,
    policy: Mutex<Box<dyn Policy>>,
    memory: Arc<Memory>,
}

/// An answer to be chosen for.
pub(crate) struct Facts<'a> {
    pub(crate) accepted: &'a Accepted,
    pub(crate) model: Option<&'a Model>,
    pub(crate) service: Option<usize>,
    /// Service, operation: what tells classes apart besides the media type.
    pub(crate) class: [&'a str; 2],
    pub(crate) path: &'a Path,
    /// What a path is taken for of which nobody has said or measured anything.
    pub(crate) usual: &'a Path,
    /// Takes so many seconds of a processor beyond what anybody gets, if the client has them.
    pub(crate) affords: &'a dyn Fn(f64) -> bool,
    /// The same as `path`, as it is told.
    pub(crate) link: told::Link,
    pub(crate) message: Message<'a>,
    /// One that the client has too, where it may be used.
    pub(crate) dictionary: Option<&'a Arc<Kept>>,
}

/// How content is coded.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// By itself, block by block.
    Alone(Coding, Options),
    /// With a dictionary, all of it at once, in so many bytes of memory.
    With(Form, Arc<Kept>, usize),
}

impl How {
    /// Its name in Content-Encoding.
    pub(crate) fn token(&self) -> &'static str {
        match self {
            Self::Alone(coding, _) => coding.token(),
            Self::With(form, ..) => form.name(),
        }
    }

    /// Its name in events.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Alone(_, options) => options.label(),
            Self::With(form, ..) => form_label(*form),
        }
    }

    /// A fresh context.
    pub(crate) fn encoder(&self) -> Result<Box<dyn Encoder>, codec::Error> {
        match self {
            Self::Alone(coding, options) => coding.encoder(*options),
            Self::With(form, kept, _) => {
                let (level, dictionary) = (Some(form_level(*form)), Some(Arc::clone(kept)));
                Settings { level, dictionary, ..Settings::default() }.encoder(form.name())
            }
        }
    }

    /// What it is told by: an answer before it.
    fn base(&self) -> Option<told::Base> {
        match self {
            Self::Alone(..) => None,
            Self::With(_, kept, _) => Some(told::Base::Message { sha256: kept.id().to_string() }),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Alone(_, options) => memory_of(*options),
            Self::With(_, _, bytes) => *bytes,
        }
    }
}

/// What HTTP has in place of the pair's encodings by what both ends hold.
fn form_of(options: Options) -> Option<Form> {
    match options.codec {
        codec if codec == Options::DELTA.codec => Some(Form::Dcb),
        codec if codec == Options::DICTIONARY.codec => Some(Form::Dcz),
        _ => None,
    }
}

fn form_level(form: Form) -> i8 {
    match form {
        Form::Dcb => DCB_LEVEL,
        Form::Dcz => DCZ_LEVEL,
    }
}

fn form_label(form: Form) -> String {
    format!("{}:{}", form.name(), form_level(form))
}

/// What an arm is for a client, as it is told.
fn label(options: Options) -> String {
    form_of(options).map_or_else(|| options.label(), form_label)
}

/// That of the codec within, whose window holds the dictionary and the content.
fn form_memory(form: Form, bytes: f64) -> usize {
    let codec = match form {
        Form::Dcb => Coding::Brotli.codec(),
        Form::Dcz => Coding::Zstd.codec(),
    };
    let window_log = (codec::MIN_WINDOW_LOG..codec::MAX_WINDOW_LOG)
        .find(|log| bytes <= f64::from(1_u32 << log))
        .unwrap_or(codec::MAX_WINDOW_LOG);
    memory_of(Options { codec, level: form_level(form), window_log })
}

/// Number of the codec that makes what an arm is for a client.
fn codec_of(options: Options) -> u64 {
    let named = form_of(options).and_then(|form| codec::find(form.name()).ok());
    named.map_or(options.codec, |codec| codec.number())
}

/// What an answer goes in.
pub(crate) struct Choice {
    pub(crate) subject: Subject,
    /// None: as it is.
    pub(crate) how: Option<How>,
    pub(crate) arm: Arm,
    pub(crate) reason: &'static str,
    /// What the policy said; none where it was not asked, or the choice is the operator's.
    pub(crate) weighed: Option<Weighed>,
    /// The result of the first block may show that it gains nothing: then the answer goes as it is.
    pub(crate) trying: bool,
    /// Another coding of it that is worth looking at, to learn from.
    pub(crate) beside: Option<Box<Choice>>,
    /// Held while the encoder lives.
    pub(crate) _room: Option<Room>,
}

/// What the policy said.
pub(crate) struct Weighed {
    decision: Decision,
    pub(crate) path: Path,
    facts: told::Decision,
}

impl Choice {
    fn new(subject: Subject, arm: Arm, how: Option<How>) -> Self {
        let (reason, weighed, trying, beside, room) = ("", None, false, None, None);
        Self { subject, how, arm, reason, weighed, trying, beside, _room: room }
    }
}

impl Weighed {
    /// What was expected of an arm.
    pub(crate) fn expected(&self, arm: Arm) -> Option<&Candidate> {
        self.decision.candidates.iter().find(|candidate| candidate.arm == arm)
    }

    /// As it is told, of an answer that goes in this arm, made so.
    pub(crate) fn facts(&self, arm: Arm, how: Option<&How>) -> told::Decision {
        let expected = self.expected(arm).map_or(self.facts.expected, coding::parts);
        told::Decision { expected, base: how.and_then(How::base), ..self.facts.clone() }
    }
}

impl Chooser {
    /// Chooses among the arms of `config`, with its memory for encoders.
    pub(crate) fn new(config: &relay::Config) -> Self {
        let memory = Arc::new(Memory { left: Mutex::new(config.codec_bytes) });
        Self {
            encoding: config.encoding.clone(),
            services: Live::new(config.services.clone()),
            policy: Mutex::new(config.encoding.policy()),
            memory,
        }
    }

    /// Takes these services too, whose numbers follow those of the ones before.
    pub(crate) fn add_services(&self, services: &[Service]) {
        self.services.set([&self.services.get()[..], services].concat());
    }

    /// Whether answers of this service may go with a dictionary.
    pub(crate) fn takes_dictionaries(&self, service: Option<usize>) -> bool {
        let mut arms = self.encoding.arms().iter();
        arms.any(|options| options.wants_base() && self.allows(service, *options))
    }

    fn allows(&self, service: Option<usize>, options: Options) -> bool {
        let services = self.services.get();
        let service = service.and_then(|service| services.get(service));
        let only = service.and_then(|service| service.encodings.as_deref());
        only.is_none_or(|only| only.contains(&options))
    }

    fn policy(&self) -> MutexGuard<'_, Box<dyn Policy>> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses.
    pub(crate) fn choose(&self, facts: &Facts<'_>) -> Choice {
        let Facts { accepted, message, .. } = facts;
        let bytes = message.body_bytes.map_or(UNKNOWN_BYTES, |bytes| bytes as f64);
        let mut subject = Subject {
            peer: 0,
            class: class(facts.class, message.content_type),
            bytes: bytes.max(message.head.len() as f64),
            head_share: 1.0,
        };
        let fits: Vec<_> = self
            .encoding
            .arms()
            .iter()
            .map(|options| self.fit(facts, *options, subject.bytes))
            .collect();
        let must = accepted.forbids_identity();
        let (arm, reason, weighed) = match self.encoding.triage(message) {
            Triage::Alone(reason) if !must => (Arm::IDENTITY, reason, None),
            triage => {
                subject.head_share = match triage {
                    Triage::Open { head_share } if !message.head.is_empty() => head_share,
                    Triage::Open { .. } => UNKNOWN_SHARE,
                    Triage::Alone(_) => 1.0,
                };
                self.weigh(facts, &subject, &fits, must)
            }
        };
        let how_of = |arm: Arm| fits.get(arm.0).and_then(|fit| fit.as_ref().ok()).cloned();
        let trying = !must && !self.encoding.is_fixed();
        let choice = Choice { reason, weighed, trying, ..Choice::new(subject, arm, how_of(arm)) };
        let mut choice = match self.reserve(&choice) {
            Err(why) => Choice { how: None, arm: Arm::IDENTITY, reason: why, ..choice },
            Ok(room) => Choice { _room: room, ..choice },
        };
        if let Some(weighed) = &mut choice.weighed
            && let Some(other) = weighed.decision.shadow.filter(|other| *other != arm)
            && let beside = Choice::new(subject, other, how_of(other))
            && let Ok(Some(room)) = self.reserve(&beside)
        {
            weighed.facts.shadow = beside.how.as_ref().map(How::label);
            choice.beside = Some(Box::new(Choice { _room: Some(room), ..beside }));
        }
        choice
    }

    /// Memory for what a choice is made with, if there is anything; or why there is none.
    fn reserve(&self, choice: &Choice) -> Result<Option<Room>, &'static str> {
        let room = choice.how.as_ref().map(|how| self.memory.reserve(how.memory()));
        room.map(|room| room.ok_or(SHORT)).transpose()
    }

    /// Asks the policy, and weighs again what it expects with what the client has told.
    fn weigh(
        &self,
        facts: &Facts<'_>,
        subject: &Subject,
        fits: &[Result<How, &'static str>],
        must: bool,
    ) -> (Arm, &'static str, Option<Weighed>) {
        let services = self.services.get();
        let service = facts.service.and_then(|service| services.get(service));
        let objective = service.map_or(Objective::Time, |service| service.objective);
        let allowed = |arm: Arm| matches!(fits.get(arm.0), Some(Ok(_)));
        let request = Request { subject, path: facts.path, objective, allowed: &allowed };
        let mut decision = self.policy().choose(&request);
        if let Some(model) = facts.model {
            self.with_client(&mut decision, model, subject.bytes, objective);
        }
        if cost(&decision) > CHEAP_S {
            // What anybody would get: beyond that, what the client says or does is to be paid for.
            let usual = self.policy().choose(&Request { path: facts.usual, ..request });
            let extra = cost(&decision) - cost(&usual);
            if extra > CHEAP_S && !(facts.affords)(extra) {
                decision = Decision { reason: USED_UP, ..usual };
            }
        }
        let (mut arm, mut reason) = (decision.chosen.arm, decision.reason);
        if must && arm == Arm::IDENTITY {
            let coded = decision.candidates.iter().filter(|one| one.arm != Arm::IDENTITY);
            let soonest = coded.min_by(|a, b| a.total_s().total_cmp(&b.total_s()));
            let first = (1..fits.len()).map(Arm).find(|&arm| allowed(arm));
            arm = soonest.map(|one| one.arm).or(first).unwrap_or(arm);
            reason = "the client takes no answer without a coding";
        }
        let weighed = (!self.encoding.is_fixed()).then(|| Weighed {
            facts: self.facts(facts, subject, &decision, fits),
            path: *facts.path,
            decision,
        });
        (arm, reason, weighed)
    }

    /// The decision as it is told.
    fn facts(
        &self,
        facts: &Facts<'_>,
        subject: &Subject,
        decision: &Decision,
        fits: &[Result<How, &'static str>],
    ) -> told::Decision {
        let arms = self.encoding.arms();
        let label = |arm: usize| arms.get(arm).map_or_else(String::new, |arm| label(*arm));
        let candidates = decision.candidates.iter().map(|candidate| told::Candidate {
            encoding: label(candidate.arm.0),
            expected: coding::parts(candidate),
        });
        let refused = fits.iter().enumerate().skip(1).filter_map(|(arm, fit)| {
            let why = (*fit.as_ref().err()?).to_owned();
            Some(told::Forbidden { encoding: label(arm), why })
        });
        let services = self.services.get();
        let service = facts.service.and_then(|service| services.get(service));
        let media = facts.message.content_type.map(|text| text.split(';').next().unwrap_or(text));
        told::Decision {
            service: service.map_or(facts.class[0], |service| &service.name).to_owned(),
            peer: None,
            class: format!("{:016x}", subject.class),
            content_type: media.map(|media| media.trim().to_owned()),
            body_bytes: coding::whole(subject.bytes),
            head_share: coding::rounded(subject.head_share),
            objective: coding::wanted(decision.objective),
            expected: coding::parts(&decision.chosen),
            candidates: candidates.collect(),
            forbidden: refused.collect(),
            link: facts.link,
            shadow: None,
            base: None,
            foreign: true,
        }
    }

    /// Puts the client's times to decode in place of those that are expected of any.
    fn with_client(&self, decision: &mut Decision, model: &Model, bytes: f64, to: Objective) {
        let arms = self.encoding.arms();
        for candidate in &mut decision.candidates {
            let codec = arms.get(candidate.arm.0).map(|options| codec_of(*options));
            if let Some(told) = codec.and_then(|codec| model.of(codec)) {
                let seconds = f64::from(told.fixed_s) + f64::from(told.per_byte_s) * bytes;
                candidate.expected.decode_s = seconds;
            }
        }
        if let Some(best) = best(&decision.candidates, to) {
            let changed = best.arm != decision.chosen.arm;
            decision.chosen = *best;
            if changed {
                decision.reason = "best for how fast this client decodes";
            }
        }
    }

    /// What an arm would be for this client, or why it may not be taken.
    fn fit(&self, facts: &Facts<'_>, options: Options, bytes: f64) -> Result<How, &'static str> {
        if !self.allows(facts.service, options) {
            return Err("not among the service's encodings");
        }
        let left = self.memory.left() / MEMORY_SHARE;
        if let Some(form) = form_of(options) {
            if !facts.accepted.takes(form) {
                return Err(NOT_TAKEN);
            }
            let dictionary = facts.dictionary.ok_or("the client has no dictionary of ours")?;
            let memory = form_memory(form, bytes + dictionary.content().len() as f64);
            let with = || How::With(form, Arc::clone(dictionary), memory);
            return (memory <= left).then(with).ok_or(SHORT);
        }
        let mut codings = facts.accepted.best();
        let coding = codings.find(|coding| coding.codec() == options.codec).ok_or(NOT_TAKEN)?;
        let most = options.window_log.min(codec::MAX_WINDOW_LOG);
        let window_log = (codec::MIN_WINDOW_LOG..most)
            .find(|log| bytes <= f64::from(1_u32 << log))
            .unwrap_or(most);
        let sizes = (codec::MIN_WINDOW_LOG..=window_log).rev();
        let mut options = sizes.map(|window_log| Options { window_log, ..options });
        let options = options.find(|options| memory_of(*options) <= left).ok_or(SHORT)?;
        Ok(How::Alone(coding, options))
    }

    /// What was learned, for [`Chooser::restore`]; nothing where the choice is fixed.
    pub(crate) fn learned(&self) -> Vec<u8> {
        let (names, mut bytes) = (self.names(), Vec::new());
        self.policy().save(&names.iter().map(String::as_str).collect::<Vec<_>>(), &mut bytes);
        bytes
    }

    /// Takes what was learned over these encodings or others; nothing of what is no such state.
    pub(crate) fn restore(&self, bytes: &[u8]) -> Result<(), decide::state::Error> {
        let names = self.names();
        self.policy().restore(&names.iter().map(String::as_str).collect::<Vec<_>>(), bytes)
    }

    /// Learns from a decision of an earlier process and its outcome, if it was one for a client.
    pub(crate) fn learn_from(&self, decision: &told::Decision, outcome: &told::Outcome) {
        let arm = self.names().iter().position(|name| *name == outcome.encoding).map(Arm);
        let class = u64::from_str_radix(&decision.class, 16);
        let (Some(arm), Ok(class), true) = (arm, class, decision.foreign) else { return };
        let (bytes, head_share) = (outcome.body_bytes as f64, decision.head_share);
        if arm != Arm::IDENTITY && (0.0..=1.0).contains(&head_share) {
            let actual = &outcome.actual;
            let coded = usize::try_from(actual.bytes).unwrap_or(usize::MAX);
            self.observe(
                &Subject { peer: 0, class, bytes, head_share },
                arm,
                coded,
                actual.encode_s,
            );
        }
    }

    /// The arms as they are told.
    fn names(&self) -> Vec<String> {
        self.encoding.arms().iter().map(|arm| label(*arm)).collect()
    }

    /// Seconds that so many bytes are expected to take on the network.
    pub(crate) fn network_s(&self, path: &Path, bytes: f64) -> f64 {
        self.policy().network_s(path, bytes)
    }

    /// Learns what a coding came to.
    pub(crate) fn observe(&self, subject: &Subject, arm: Arm, bytes: usize, encode_s: f64) {
        let seen = Seen { bytes: bytes as f64, encode_s: Some(encode_s), decode_s: None };
        self.policy().observe(&Observation::Encoding { subject, arm, seen: &seen });
    }
}

/// Seconds of a processor that a decision is expected to take, what is tried beside it included.
fn cost(decision: &Decision) -> f64 {
    let beside = decision.candidates.iter().find(|one| Some(one.arm) == decision.shadow);
    let beside = beside.map_or(0.0, |one| one.expected.encode_s);
    decision.chosen.expected.encode_s + beside
}

/// The best of what was weighed. Nearly as good, the answer goes as it is.
fn best(all: &[Candidate], objective: Objective) -> Option<&Candidate> {
    let in_time = |one: &Candidate, seconds| one.total_s() <= seconds;
    let cost = |one: &Candidate| match objective {
        Objective::Bytes => one.expected.bytes,
        Objective::Deadline(seconds) if all.iter().any(|one| in_time(one, seconds)) => {
            if in_time(one, seconds) { one.expected.bytes } else { f64::INFINITY }
        }
        Objective::Time | Objective::Deadline(_) => one.total_s(),
    };
    let best = all.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let identity = all.iter().find(|one| one.arm == Arm::IDENTITY);
    identity.filter(|one| cost(one) <= cost(best) * (1.0 + WORTHWHILE)).or(Some(best))
}

/// Answers alike enough to be told by one model.
fn class(of: [&str; 2], content_type: Option<&str>) -> u64 {
    let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let parts = [of[0], of[1], media, "to a client"];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    // FNV-1a of 64 bits.
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn memory_of(options: Options) -> usize {
    options.codec().map_or(usize::MAX, |codec| codec.encoder_bytes(options))
}

/// Memory for encoders that is left.
struct Memory {
    left: Mutex<usize>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> usize {
        *self.lock()
    }

    fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Room> {
        let mut left = self.lock();
        *left = left.checked_sub(bytes)?;
        Some(Room { memory: Arc::clone(self), bytes })
    }
}

/// Some of the memory, given back when dropped.
pub(crate) struct Room {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        *self.memory.lock() += self.bytes;
    }
}

#[cfg(test)]
mod tests;
