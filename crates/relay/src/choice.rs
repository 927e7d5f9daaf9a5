//! What a half goes in: what is known of it, what may be taken, and what the policy says.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::models::Subject;
use decide::network::Path;
use decide::outcome::{Parts, Split};
use decide::policy::{Candidate, Decision, Going, Objective, Observation, Request};
use decide::triage::{Message, Triage};
use proto::stream::Role;
use record::decision as facts;
use record::event::Fact;

use crate::Relay;
use crate::api::ExchangeId;
use crate::course::Course;
use crate::encoding::ANY;
use crate::exchange::Exchange;
use crate::links::figures;

/// Classes whose usual length is remembered.
const MAX_USUAL: usize = 1024;
/// Length to expect of a body that does not say, of a class that nobody has seen.
const UNKNOWN_BYTES: f64 = 65_536.0;
/// Share that a fast coder may leave of a body of which nothing is at hand yet.
pub(crate) const UNKNOWN_SHARE: f64 = 0.35;
/// Share of a new message in what is usual of its class.
const USUAL_GAIN: f64 = 0.25;
/// Memory that a single body's codec may take of what is left, so that others find room.
const MEMORY_SHARE: usize = 4;

/// What a block takes to an encoder's thread and back, beside what it waits for it.
const HANDOVER_S: f64 = 3e-4;
/// A head goes ahead of its body where that gains so much of the message's time.
const LEADS_SHARE: f64 = 0.01;

/// What a half goes in.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) subject: Subject,
    pub(crate) path: Path,
    /// What the policy said; none where it was not asked.
    pub(crate) decision: Option<Decision>,
    facts: Option<Box<facts::Decision>>,
    pub(crate) arm: Arm,
    pub(crate) options: Options,
    pub(crate) reason: &'static str,
    /// The first block's result decides.
    pub(crate) trying: bool,
    /// Its infoset would not come back: every byte has to.
    pub(crate) exact: bool,
    /// What was tried on the first block, and how it would go on.
    pub(crate) tried: Vec<Going>,
    /// What of the first block was encoded beside, to learn from.
    pub(crate) beside: Option<Going>,
    /// Bytes of the first block, where it was tried.
    pub(crate) first_bytes: u64,
    /// The shortest result of those tried.
    pub(crate) best: Option<Tried>,
    /// The next block begins a context.
    pub(crate) fresh: bool,
    /// How it goes on behind its first block, where it may go otherwise than it began.
    pub(crate) course: Option<Course>,
    /// Processor time of encoding what was sent.
    pub(crate) encode: Duration,
    /// What the first block waited for its encoder besides.
    pub(crate) waited: Duration,
    pub(crate) plain_bytes: u64,
    pub(crate) coded_bytes: u64,
}

/// What came of an encoding that was tried.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) arm: Arm,
    pub(crate) options: Options,
    pub(crate) coded: Bytes,
    /// What comes out of it, where that is another text than went in.
    pub(crate) text: Option<Bytes>,
    pub(crate) cpu: Duration,
    pub(crate) waited: Duration,
}

impl Tried {
    /// It would not come back the same, and nothing of it may be sent.
    pub(crate) fn was_refused(&self) -> bool {
        self.options.is_infoset() && self.text.is_none()
    }

    /// What there is to learn from it.
    pub(crate) fn seen(&self) -> (Arm, usize, Duration) {
        (self.arm, self.coded.len(), self.cpu)
    }

    /// Of so many bytes; the rest of a body would go so.
    pub(crate) fn going(&self, plain_len: usize) -> Going {
        going(self.seen(), plain_len)
    }
}

/// How a body would go whose first bytes, so many, gave this.
pub(crate) fn going((arm, coded_len, cpu): (Arm, usize, Duration), plain_len: usize) -> Going {
    let bytes = plain_len.max(1) as f64;
    Going { arm, share: coded_len as f64 / bytes, encode_s: cpu.as_secs_f64() / bytes }
}

/// What is usual of a class.
#[derive(Clone, Copy, Debug)]
struct Usual {
    bytes: f64,
    head_share: f64,
    used: u64,
}

/// What classes are like, for what a message does not tell of itself.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    classes: BTreeMap<u64, Usual>,
    clock: u64,
}

impl Habits {
    fn get(&self, class: u64) -> (f64, f64) {
        let usual = self.classes.get(&class);
        usual.map_or((UNKNOWN_BYTES, UNKNOWN_SHARE), |usual| (usual.bytes, usual.head_share))
    }

    /// Class, bytes and share of each, by class.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = (u64, f64, f64)> {
        self.classes.iter().map(|(&class, usual)| (class, usual.bytes, usual.head_share))
    }

    pub(crate) fn note(&mut self, class: u64, bytes: f64, head_share: f64) {
        self.clock += 1;
        if self.classes.len() >= MAX_USUAL && !self.classes.contains_key(&class) {
            let oldest = self.classes.iter().min_by_key(|(_, usual)| usual.used);
            if let Some(oldest) = oldest.map(|(&class, _)| class) {
                self.classes.remove(&oldest);
            }
        }
        let fresh = Usual { bytes, head_share, used: 0 };
        let usual = self.classes.entry(class).or_insert(fresh);
        usual.bytes += (bytes - usual.bytes) * USUAL_GAIN;
        usual.head_share += (head_share - usual.head_share) * USUAL_GAIN;
        usual.used = self.clock;
    }
}

/// Whether an encoding may be taken, and with what window and memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fit {
    Open { options: Options, bytes: usize },
    Refused(&'static str),
}

/// Its lengths are to tell what they would without the pair.
const FOREIGN: &str = "another site asks for it";
const NO_BASE: &str = "the peer holds nothing that it could be told by";
/// Not worth a word with each decision: it is so whatever else goes on.
const NEVER: &str = "wants more than a quarter of codec_memory";
pub(crate) const SHORT: &str = "wants more than a quarter of what is left of codec_memory";

impl Choice {
    fn alone(subject: Subject, path: Path, reason: &'static str) -> Self {
        Self {
            subject,
            path,
            decision: None,
            facts: None,
            arm: Arm::IDENTITY,
            options: Options::IDENTITY,
            reason,
            trying: false,
            exact: false,
            tried: Vec::new(),
            beside: None,
            first_bytes: 0,
            best: None,
            fresh: true,
            course: None,
            encode: Duration::ZERO,
            waited: Duration::ZERO,
            plain_bytes: 0,
            coded_bytes: 0,
        }
    }

    /// Nothing of the half was encoded or passed on yet.
    pub(crate) fn begins_half(&self) -> bool {
        self.plain_bytes == 0 && self.tried.is_empty()
    }

    /// Whether the next block begins a context; it does so once.
    pub(crate) fn begins(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Not all of the half went as it began.
    pub(crate) fn has_turned(&self) -> bool {
        self.course.as_ref().is_some_and(Course::has_turned)
    }

    /// What was expected of an arm.
    pub(crate) fn expected(&self, arm: Arm) -> Option<&Candidate> {
        self.decision.as_ref()?.candidates.iter().find(|candidate| candidate.arm == arm)
    }
}

impl Relay {
    /// Chooses what the outgoing half goes in by what is at hand of it. The head waits no longer if
    /// nothing is to be tried.
    pub(crate) fn choose(&mut self, now: Duration, id: ExchangeId) {
        self.consider_bases(now, id);
        self.consider_infoset(now, id);
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (head, whole) = exchange.outgoing.at_hand();
        let blind = head.is_empty() && !whole;
        let body_bytes = if whole { Some(head.len() as u64) } else { exchange.content_length };
        let message = Message {
            content_type: exchange.content_type.as_deref(),
            coded: exchange.coded,
            tunnel: exchange.traits.tunnel,
            head,
            body_bytes,
        };
        let (path, link) = self.path(exchange);
        let class = self.class(exchange);
        let (usual_bytes, usual_share) = self.habits.get(class);
        let least = head.len() as f64;
        let bytes = body_bytes.map_or(usual_bytes, |bytes| bytes as f64).max(least);
        // Where nothing but its head is against it, the rest of a body may be coded.
        let later = Message { head: &[], ..message };
        let foreign = exchange.guard.foreign;
        let triage = |message: &Message<'_>| match foreign {
            true => Triage::Alone(FOREIGN),
            false => self.config.encoding.triage(message),
        };
        let may_later = matches!(triage(&later), Triage::Open { .. });
        let mut choice = match triage(&message) {
            Triage::Alone(reason) => {
                let subject = Subject { peer: path.peer, class, bytes, head_share: 1.0 };
                Choice::alone(subject, path, reason)
            }
            Triage::Open { head_share } => {
                let head_share = if blind { usual_share } else { head_share };
                let subject = Subject { peer: path.peer, class, bytes, head_share };
                self.weigh(
                    now,
                    id,
                    Choice::alone(subject, path, "nothing else may be taken"),
                    &link,
                )
            }
        };
        if may_later {
            self.stand_by(id, &mut choice, &link);
        }
        let waits = !blind && !self.config.encoding.is_fixed() && !self.head_leads(id, &choice);
        let try_first = choice.arm != Arm::IDENTITY && waits;
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let named = choice.course.as_ref().map_or(choice.options, Course::named);
        exchange.outgoing.uncoded = choice.course.is_some();
        exchange.outgoing.options = Some(named);
        let arm = choice.arm;
        let choice = exchange.choice.insert(Box::new(choice));
        choice.trying = arm != Arm::IDENTITY && !self.config.encoding.is_fixed();
        if !try_first {
            exchange.outgoing.settle(named);
        }
        if arm == Arm::IDENTITY || !choice.trying {
            self.chosen(now, id);
        }
    }

    /// Whether the head is worth sending before the first block is there: that would show little,
    /// and while it is made the head crosses, in a packet of its own.
    fn head_leads(&self, id: ExchangeId, choice: &Choice) -> bool {
        let (Some(exchange), Some(decision)) = (self.exchanges.get(&id), &choice.decision) else {
            return false;
        };
        let together = choice.options.wants_base() || choice.options.is_infoset();
        let chosen = &decision.chosen;
        if together || decision.objective != Objective::Time || !chosen.expected.is_known() {
            return false;
        }
        let seconds = |bytes: f64| 8.0 * bytes / choice.path.rate_bps;
        let encoder_s = chosen.wait_s + chosen.expected.encode_s + HANDOVER_S;
        let gain_s = encoder_s.min(seconds(exchange.outgoing.head_len() as f64));
        gain_s - seconds(choice.path.header_bytes) > LEADS_SHARE * chosen.total_s()
    }

    /// A half that goes as it is names a coding for what may come.
    fn stand_by(&self, id: ExchangeId, choice: &mut Choice, link: &facts::Link) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        choice.course = self.standby(exchange, choice);
        if choice.course.is_none() || choice.decision.is_some() {
            return;
        }
        let decision = self.as_it_is(exchange, choice);
        let facts = self.facts(exchange, choice, &decision, &[], decision.objective, link);
        (choice.facts, choice.decision) = (Some(Box::new(facts)), Some(decision));
    }

    /// Asks the policy.
    fn weigh(
        &mut self,
        now: Duration,
        id: ExchangeId,
        mut choice: Choice,
        link: &facts::Link,
    ) -> Choice {
        let Some(exchange) = self.exchanges.get(&id) else { return choice };
        let fits = self.fits(exchange, &choice.subject, None);
        let allowed = |arm: Arm| matches!(fits.get(arm.0), Some(Fit::Open { .. }));
        let objective = self.objective(exchange);
        let (subject, path) = (&choice.subject, &choice.path);
        let request = Request { subject, path, objective, allowed: &allowed };
        let seconds = self.waits.expected_s(now);
        self.policy.observe(&Observation::Waits { seconds });
        let decision = self.policy.choose(&request);
        let weighs = !self.config.encoding.is_fixed();
        choice.facts = weighs
            .then(|| Box::new(self.facts(exchange, &choice, &decision, &fits, objective, link)));
        choice.reason = decision.reason;
        let short = fits.iter().any(|fit| matches!(fit, Fit::Refused(SHORT | NEVER)));
        if short && !(1..fits.len()).any(|arm| allowed(Arm(arm))) {
            let (limit, consequence) = ("codec memory".to_owned(), "body goes uncoded".to_owned());
            self.event(now, Fact::LimitReached { limit, consequence });
        }
        let arm = decision.chosen.arm;
        choice.decision = Some(decision);
        if let Some(&Fit::Open { options, bytes }) = fits.get(arm.0) {
            (choice.arm, choice.options) = (arm, options);
            self.reserve_encoder(id, bytes);
        }
        choice
    }

    /// What of the codec memory an exchange's encoder takes from now on. It keeps what it had: the
    /// context before lives until the next begins, and while others are tried it may be gone back
    /// to.
    pub(crate) fn reserve_encoder(&mut self, id: ExchangeId, bytes: usize) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let more = bytes.saturating_sub(exchange.encoder_bytes);
        exchange.encoder_bytes += more;
        self.encoder_bytes += more;
    }

    /// Nothing else will be tried for an exchange: its encoder keeps only what it takes.
    pub(crate) fn trim_encoder(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = &exchange.choice else { return };
        let takes = match choice.options.is_infoset() {
            true => codec::infoset::MEMORY_BYTES,
            false => choice.options.codec().map_or(0, |codec| codec.encoder_bytes(choice.options)),
        };
        let spare = exchange.encoder_bytes.saturating_sub(takes);
        exchange.encoder_bytes -= spare;
        self.encoder_bytes -= spare;
    }

    /// Memory that the encoder of an exchange may take, in bytes: a share of what other bodies
    /// leave. Looks beside them make it no less while there is so much.
    fn encoder_bytes_left(&self, exchange: &Exchange) -> usize {
        let left =
            (self.config.codec_bytes + exchange.encoder_bytes).saturating_sub(self.encoder_bytes);
        (left / MEMORY_SHARE).min(left.saturating_sub(self.shadows.bytes()))
    }

    /// Memory that the encoder of a look may take, in bytes: a share of what everybody leaves.
    pub(crate) fn shadow_bytes_left(&self) -> usize {
        let taken = self.encoder_bytes + self.shadows.bytes();
        self.config.codec_bytes.saturating_sub(taken) / MEMORY_SHARE
    }

    /// Whether each arm may be taken; with `named`, for what goes on behind a head that has named
    /// this window.
    pub(crate) fn fits(
        &self,
        exchange: &Exchange,
        subject: &Subject,
        named: Option<u8>,
    ) -> Vec<Fit> {
        let only = self.service(exchange).and_then(|service| service.encodings.as_deref());
        let peer = exchange.carrier().and_then(|id| self.carriers.get(&id)?.machine.peer());
        let media = exchange.content_type.as_deref().unwrap_or(ANY);
        let media = media.split(';').next().unwrap_or(ANY).trim();
        let fixed = self.config.encoding.is_fixed();
        let left = self.encoder_bytes_left(exchange);
        let fit = |options: &Options| {
            let Ok(codec) = options.codec() else { return Fit::Refused("unknown") };
            if options.codec == 0 {
                return Fit::Open { options: *options, bytes: 0 };
            }
            if only.is_some_and(|only| !only.contains(options)) {
                return Fit::Refused("not among the service's encodings");
            }
            let least = if let Some(peer) = peer {
                if !peer.codecs.contains(&options.codec) {
                    return Fit::Refused("the peer cannot decode it");
                }
                peer.max_window_log
            } else {
                codec::MAX_WINDOW_LOG
            };
            if !fixed && !codec.properties().applies_to(media) {
                return Fit::Refused("not for this media type");
            }
            if options.is_infoset() {
                return self.fit_infoset(exchange, *options, left);
            }
            if options.wants_base() {
                let Some(base) = exchange.held.base_of(*options) else {
                    return Fit::Refused(NO_BASE);
                };
                let both = whole(subject.bytes).saturating_add(base.content().len() as u64);
                let log = (codec::MIN_WINDOW_LOG..codec::MAX_WINDOW_LOG)
                    .find(|log| both <= 1 << log)
                    .unwrap_or(codec::MAX_WINDOW_LOG);
                let options = Options { window_log: log, ..*options };
                let bytes = codec.encoder_bytes(options);
                return match bytes <= left {
                    true => Fit::Open { options, bytes },
                    false => Fit::Refused(SHORT),
                };
            }
            let most = options.window_log.min(least);
            if most < codec::MIN_WINDOW_LOG {
                return Fit::Refused("the peer's window is too small");
            }
            // A smaller one need not take less: brotli's strong levels want most for small ones.
            let wanted = || {
                (codec::MIN_WINDOW_LOG..most).find(|log| subject.bytes <= f64::from(1_u32 << log))
            };
            let most = named.or_else(wanted).unwrap_or(most).min(most);
            let sizes = (codec::MIN_WINDOW_LOG..=most).rev().map(|window_log| {
                let options = Options { window_log, ..*options };
                (options, codec.encoder_bytes(options))
            });
            let share = self.config.codec_bytes / MEMORY_SHARE;
            let why = match sizes.clone().any(|(_, bytes)| bytes <= share) {
                true => SHORT,
                false => NEVER,
            };
            let fitting = sizes.into_iter().find(|(_, bytes)| *bytes <= left);
            fitting.map_or(Fit::Refused(why), |(options, bytes)| Fit::Open { options, bytes })
        };
        self.config.encoding.arms().iter().map(fit).collect()
    }

    /// What is set for the exchange's service.
    pub(crate) fn service(&self, exchange: &Exchange) -> Option<&crate::Service> {
        self.config.services.get(exchange.service?)
    }

    /// Name of the exchange's service, or its target.
    pub(crate) fn service_name<'a>(&'a self, exchange: &'a Exchange) -> &'a str {
        self.service(exchange).map_or(&exchange.target, |service| &service.name)
    }

    pub(crate) fn direction(&self) -> facts::Direction {
        match self.config.role {
            Role::Edge => facts::Direction::Request,
            Role::Gateway => facts::Direction::Response,
        }
    }

    /// Those alike enough to be told by one model: service, operation, media type, direction.
    pub(crate) fn class(&self, exchange: &Exchange) -> u64 {
        let service = self.service_name(exchange);
        let media = exchange.content_type.as_deref().unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        let parts = [service, &exchange.operation, media, self.direction().name()];
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        // FNV-1a of 64 bits.
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    /// The path that an exchange's half takes, as the models want it and as it is told.
    pub(crate) fn path(&self, exchange: &Exchange) -> (Path, facts::Link) {
        let carrier = exchange.carrier().and_then(|id| self.carriers.get(&id));
        let Some(carrier) = carrier else {
            let estimate = self.config.estimate();
            return (estimate.path(), figures(&estimate));
        };
        let mut path = carrier.estimate.path();
        path.peer = carrier.peer_id;
        path.backlog_bytes += carrier.in_flight as f64;
        // More than its credit does not leave before the peer was heard. Once it leaves there is
        // always little left of it, and more on its way.
        if exchange.departure.is_none() {
            let first = || carrier.machine.peer().map_or(0, |peer| peer.initial_credit);
            let credit = match carrier.machine.credit(exchange.id.number) {
                0 => first(),
                credit => credit,
            };
            path.start_window = path.start_window.min(credit as f64 / path.segment_bytes).max(1.0);
        }
        let link = figures(&carrier.estimate);
        (path, facts::Link { window_packets: rounded(path.start_window), ..link })
    }

    fn facts(
        &self,
        exchange: &Exchange,
        choice: &Choice,
        decision: &Decision,
        fits: &[Fit],
        objective: Objective,
        link: &facts::Link,
    ) -> facts::Decision {
        let arms = self.config.encoding.arms();
        let label = |arm: usize| arms.get(arm).map_or_else(String::new, |arm| arm.label());
        let candidates = decision.candidates.iter().map(|candidate| facts::Candidate {
            encoding: label(candidate.arm.0),
            expected: parts(candidate),
        });
        let forbidden = fits.iter().enumerate().filter_map(|(arm, fit)| match fit {
            Fit::Refused(NEVER) => None,
            Fit::Refused(why) => {
                Some(facts::Forbidden { encoding: label(arm), why: (*why).to_owned() })
            }
            Fit::Open { .. } => None,
        });
        let service = self.service_name(exchange).to_owned();
        let content_type = exchange.content_type.as_deref();
        let media =
            content_type.map(|text| text.split(';').next().unwrap_or(text).trim().to_owned());
        let carrier = exchange.carrier().and_then(|id| self.carriers.get(&id));
        facts::Decision {
            service,
            peer: carrier.map(|carrier| carrier.peer.clone()),
            class: format!("{:016x}", choice.subject.class),
            content_type: media,
            body_bytes: whole(choice.subject.bytes),
            head_share: rounded(choice.subject.head_share),
            objective: wanted(objective),
            expected: parts(&decision.chosen),
            candidates: candidates.collect(),
            forbidden: forbidden.collect(),
            link: *link,
            shadow: decision.shadow.map(|arm| label(arm.0)),
            base: None,
            foreign: false,
        }
    }

    /// Tells what the half goes in.
    pub(crate) fn chosen(&mut self, now: Duration, id: ExchangeId) {
        let direction = self.direction();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        let mut decision = choice.facts.take();
        if let Some(decision) = &mut decision {
            if let Some(candidate) = choice.expected(choice.arm) {
                decision.expected = parts(candidate);
            }
            decision.base = exchange.held.fact_of(choice.options);
        }
        let (encoding, reason) = (choice.options.label(), choice.reason.to_owned());
        let exchange = id.to_string();
        self.event(now, Fact::Chosen { exchange, direction, encoding, reason, decision });
    }
}

/// What is wanted of a service, as it is told.
#[must_use]
pub fn wanted(objective: Objective) -> String {
    match objective {
        Objective::Time => "time".to_owned(),
        Objective::Bytes => "bytes".to_owned(),
        Objective::Deadline(seconds) => format!("deadline {seconds} s"),
    }
}

/// What is expected of an arm, as it is told.
#[must_use]
pub fn parts(candidate: &Candidate) -> facts::Parts {
    told_parts(&expected_parts(candidate))
}

/// What is expected of an arm.
pub(crate) fn expected_parts(candidate: &Candidate) -> Parts {
    Parts {
        encode_s: candidate.expected.encode_s,
        network_s: candidate.network_s,
        decode_s: candidate.expected.decode_s,
        wait_s: candidate.wait_s,
        bytes: candidate.expected.bytes,
    }
}

/// What was expected of a half, or came of it, as it is told.
#[must_use]
pub fn told_parts(parts: &Parts) -> facts::Parts {
    facts::Parts {
        bytes: whole(parts.bytes),
        encode_s: rounded(parts.encode_s),
        network_s: rounded(parts.network_s),
        decode_s: rounded(parts.decode_s),
        wait_s: rounded(parts.wait_s),
    }
}

/// Whose the difference is, as it is told: not rounded, so that it adds up.
#[must_use]
pub fn told_split(split: &Split) -> facts::Split {
    facts::Split {
        encode_s: split.encode_s,
        decode_s: split.decode_s,
        network_s: split.network_s,
        size_s: split.size_s,
    }
}

/// A length as it is told; it comes from a model and may be anything.
#[must_use]
pub fn whole(bytes: f64) -> u64 {
    Duration::try_from_secs_f64(bytes.max(0.0)).map_or(u64::MAX, |bytes| bytes.as_secs())
}

/// Six digits are more than anybody measures; what is no number is told as none.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(value.abs().log10().floor() - 5.0);
    let rounded = (value / unit).round() * unit;
    if rounded.is_finite() { rounded } else { 0.0 }
}
