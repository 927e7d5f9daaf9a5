//! Which coding an answer goes in: what the client takes, what memory holds, and what the policy
//! expects, with the client's own times to decode where it has told them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codec::Options;
use codec::content::Coding;
use decide::Arm;
use decide::models::{Seen, Subject};
use decide::network::Path;
use decide::policy::{Candidate, Decision, Objective, Observation, Policy, Request};
use decide::triage::{Message, Triage};
use proto::profile::Model;
use relay::{Encoding, Service};

use super::accept::Accepted;

/// Length to expect of a body that does not say.
const UNKNOWN_BYTES: f64 = 65_536.0;
/// Share that a fast coder may leave of a body of which nothing is at hand yet.
const UNKNOWN_SHARE: f64 = 0.35;
/// Memory that one answer's encoder may take of what is left, so that others find room.
const MEMORY_SHARE: usize = 4;
/// A gain below this share of the message's time is not worth a coding.
const WORTHWHILE: f64 = 0.02;

/// Who chooses for foreign clients.
pub(crate) struct Chooser {
    encoding: Encoding,
    services: Vec<Service>,
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
    pub(crate) message: Message<'a>,
}

/// What an answer goes in.
pub(crate) struct Choice {
    pub(crate) subject: Subject,
    /// None: as it is.
    pub(crate) coding: Option<(Coding, Options)>,
    pub(crate) arm: Arm,
    pub(crate) reason: &'static str,
    /// The result of the first block may show that it gains nothing: then the answer goes as it is.
    pub(crate) trying: bool,
    /// Held while the encoder lives.
    pub(crate) _room: Option<Room>,
}

impl Chooser {
    /// Chooses among the arms of `config`, with its memory for encoders.
    pub(crate) fn new(config: &relay::Config) -> Self {
        let memory = Arc::new(Memory { left: Mutex::new(config.codec_bytes) });
        Self {
            encoding: config.encoding.clone(),
            services: config.services.clone(),
            policy: Mutex::new(config.encoding.policy()),
            memory,
        }
    }

    fn policy(&self) -> MutexGuard<'_, Box<dyn Policy>> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses.
    pub(crate) fn choose(&self, facts: &Facts<'_>) -> Choice {
        let Facts { accepted, message, .. } = facts;
        let bytes = message.body_bytes.map_or(UNKNOWN_BYTES, |bytes| bytes as f64);
        let mut subject = Subject {
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
        let (arm, reason) = match self.encoding.triage(message) {
            Triage::Alone(reason) if !must => (Arm::IDENTITY, reason),
            triage => {
                subject.head_share = match triage {
                    Triage::Open { head_share } if !message.head.is_empty() => head_share,
                    Triage::Open { .. } => UNKNOWN_SHARE,
                    Triage::Alone(_) => 1.0,
                };
                self.weigh(facts, &subject, &fits, must)
            }
        };
        let coding = fits.get(arm.0).copied().flatten();
        let room = coding.map(|(_, options)| self.memory.reserve(options));
        let trying = !must && !self.encoding.is_fixed();
        match room {
            Some(None) => {
                let reason = "codec memory is short";
                Choice { subject, coding: None, arm: Arm::IDENTITY, reason, trying, _room: None }
            }
            room => Choice { subject, coding, arm, reason, trying, _room: room.flatten() },
        }
    }

    /// Asks the policy, and weighs again what it expects with what the client has told.
    fn weigh(
        &self,
        facts: &Facts<'_>,
        subject: &Subject,
        fits: &[Option<(Coding, Options)>],
        must: bool,
    ) -> (Arm, &'static str) {
        let service = facts.service.and_then(|service| self.services.get(service));
        let objective = service.map_or(Objective::Time, |service| service.objective);
        let allowed = |arm: Arm| matches!(fits.get(arm.0), Some(Some(_)));
        let request = Request { subject, path: facts.path, objective, allowed: &allowed };
        let mut decision = self.policy().choose(&request);
        if let Some(model) = facts.model {
            self.with_client(&mut decision, model, subject.bytes, objective);
        }
        let chosen = decision.chosen.arm;
        if !must || chosen != Arm::IDENTITY {
            return (chosen, decision.reason);
        }
        let coded = decision.candidates.iter().filter(|one| one.arm != Arm::IDENTITY);
        let soonest = coded.min_by(|a, b| a.total_s().total_cmp(&b.total_s()));
        let first = (1..fits.len()).map(Arm).find(|&arm| allowed(arm));
        let arm = soonest.map(|one| one.arm).or(first).unwrap_or(chosen);
        (arm, "the client takes no answer without a coding")
    }

    /// Puts the client's times to decode in place of those that are expected of any.
    fn with_client(&self, decision: &mut Decision, model: &Model, bytes: f64, to: Objective) {
        let arms = self.encoding.arms();
        for candidate in &mut decision.candidates {
            let codec = arms.get(candidate.arm.0).map(|options| options.codec);
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

    /// What an arm would be for this client; none where it may not be taken.
    fn fit(&self, facts: &Facts<'_>, options: Options, bytes: f64) -> Option<(Coding, Options)> {
        let service = facts.service.and_then(|service| self.services.get(service));
        let only = service.and_then(|service| service.encodings.as_deref());
        if only.is_some_and(|only| !only.contains(&options)) {
            return None;
        }
        let coding = facts.accepted.best().find(|coding| coding.codec() == options.codec)?;
        let most = options.window_log.min(codec::MAX_WINDOW_LOG);
        let window_log = (codec::MIN_WINDOW_LOG..most)
            .find(|log| bytes <= f64::from(1_u32 << log))
            .unwrap_or(most);
        let left = self.memory.left() / MEMORY_SHARE;
        let sizes = (codec::MIN_WINDOW_LOG..=window_log).rev();
        let options = sizes
            .map(|window_log| Options { window_log, ..options })
            .find(|options| memory_of(*options) <= left)?;
        Some((coding, options))
    }

    /// Learns what a coding came to.
    pub(crate) fn observe(&self, subject: &Subject, arm: Arm, bytes: usize, encode_s: f64) {
        let seen = Seen { bytes: bytes as f64, encode_s: Some(encode_s), decode_s: None };
        self.policy().observe(&Observation::Encoding { subject, arm, seen: &seen });
    }
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
    let plain = all.iter().find(|one| one.arm == Arm::IDENTITY);
    plain.filter(|one| cost(one) <= cost(best) * (1.0 + WORTHWHILE)).or(Some(best))
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

    fn reserve(self: &Arc<Self>, options: Options) -> Option<Room> {
        let bytes = memory_of(options);
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
