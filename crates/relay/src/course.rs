//! How a half goes on behind its first block: whether its blocks go through its codec is decided
//! again at the ends of blocks, where what they leave, or the path, departs from what it was.
//!
//! A half names one codec and window in its head; each block goes through its context or as it is,
//! and may begin a context anew, at another level. A half that begins as it is and is long names a
//! codec too, for what may come.

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::head::share_left;
use decide::models::Subject;
use decide::network::Path;
use decide::policy::{Candidate, Decision, Going, Objective, Request};
use decide::triage::INCOMPRESSIBLE_SHARE;
use proto::stream::MAX_BLOCK_BYTES;
use record::decision as facts;

use crate::Relay;
use crate::api::ExchangeId;
use crate::choice::{Choice, Fit, UNKNOWN_SHARE};
use crate::encoding::ANY;
use crate::exchange::Exchange;

/// Bytes of blocks that are judged together, at first. Each turn doubles it, so that what changes
/// to and fro is judged as a whole; and no turn is worth while for fewer.
const STRETCH_BYTES: usize = MAX_BLOCK_BYTES;
/// A half that went in one arm for this share of its bytes tells what that arm is like.
const MOSTLY: f64 = 0.9;
/// Most turns of a half.
const MAX_TURNS: usize = 6;
/// Blocks are others than before if so many times as much or as little is left of them.
const SHARE_DEPARTS: f64 = 1.05;
/// The same for times: of the encoder for each byte, of the network for a block.
const TIME_DEPARTS: f64 = 2.0;
/// Blocks that the network carries in less go as they are without being looked at, which takes some
/// 10 µs each.
const MIN_BLOCK_S: f64 = 1e-3;

/// Blocks since the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    plain: usize,
    /// What was left of them; of those that went as they are, what a fast coder would leave.
    left: f64,
    encode: Duration,
}

/// What blocks, and the path, were like.
#[derive(Clone, Copy, Debug)]
struct Seen {
    share: f64,
    /// Seconds of encoding for each byte.
    encode_s: f64,
    /// Seconds of the network for a full block that finds no queue.
    block_s: f64,
}

impl Seen {
    fn is_like(&self, other: &Self) -> bool {
        is_near(self.share, other.share, SHARE_DEPARTS)
            && is_near(self.encode_s, other.encode_s, TIME_DEPARTS)
            && is_near(self.block_s, other.block_s, TIME_DEPARTS)
    }
}

/// Neither is more than so many times the other.
fn is_near(a: f64, b: f64, most: f64) -> bool {
    a <= b * most && b <= a * most
}

/// From some byte of a body on it went otherwise.
#[derive(Clone, Copy, Debug)]
struct Turn {
    at_bytes: u64,
    options: Options,
    reason: &'static str,
}

/// What came of the coded blocks of a half that went in one arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) arm: Arm,
    pub(crate) plain_bytes: u64,
    pub(crate) coded_bytes: u64,
    pub(crate) encode: Duration,
}

/// What a context goes on in: only as it began, or also otherwise, in a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    None,
    Begun,
    Renewable,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Course {
    /// What those blocks go in that are coded.
    arm: Arm,
    options: Options,
    /// What the head names, whatever the blocks behind go in.
    named: Options,
    stretch: Stretch,
    /// At the last look.
    seen: Option<Seen>,
    /// It found something new, of which there may be more to come: a stretch holds some of both.
    moving: bool,
    turns: Vec<Turn>,
    /// Of each arm that blocks went in.
    parts: Vec<Part>,
}

impl Course {
    /// Of a half whose head names these options; none where its blocks belong together.
    pub(crate) fn new(arm: Arm, options: Options) -> Option<Self> {
        let together = options.wants_base() || options.is_infoset() || options.codec == 0;
        (!together).then(|| Self {
            arm,
            options,
            named: options,
            stretch: Stretch::default(),
            seen: None,
            moving: false,
            turns: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// What the head names.
    pub(crate) fn named(&self) -> Options {
        self.named
    }

    /// Not all of the half went as it began.
    pub(crate) fn has_turned(&self) -> bool {
        !self.turns.is_empty()
    }

    /// A block came out of its encoder.
    pub(crate) fn coded(&mut self, plain_len: usize, coded_len: usize, cpu: Duration) {
        let arm = self.arm;
        let at = self.parts.iter().position(|part| part.arm == arm).unwrap_or_else(|| {
            self.parts.push(Part { arm, plain_bytes: 0, coded_bytes: 0, encode: Duration::ZERO });
            self.parts.len() - 1
        });
        let part = &mut self.parts[at];
        part.plain_bytes += plain_len as u64;
        part.coded_bytes += coded_len as u64;
        part.encode += cpu;
    }

    /// What came of all but a little of a half of so many bytes, where that went in one arm.
    pub(crate) fn mostly(&self, plain_bytes: u64) -> Option<Part> {
        let most = |part: &&Part| part.plain_bytes as f64 >= MOSTLY * plain_bytes as f64;
        self.parts.iter().find(most).copied()
    }

    /// How it went on, as it is told.
    pub(crate) fn turns(&self) -> Vec<facts::Turn> {
        let told = |turn: &Turn| facts::Turn {
            at_bytes: turn.at_bytes,
            encoding: turn.options.label(),
            reason: turn.reason.to_owned(),
        };
        self.turns.iter().map(told).collect()
    }

    /// A block went: with what came out of its encoder and how long that took, or as it is.
    fn note(&mut self, plain: &[u8], coded: Option<(usize, Duration)>) {
        let (left, encode) = match coded {
            Some((left, encode)) => (left as f64, encode),
            None => (share_left(plain) * plain.len() as f64, Duration::ZERO),
        };
        self.stretch.plain += plain.len();
        self.stretch.left += left;
        self.stretch.encode += encode;
    }

    /// What the blocks were like, where there are enough of them and they are not as before.
    fn departs(&mut self, block_s: f64) -> Option<Seen> {
        if self.stretch.plain < STRETCH_BYTES << self.turns.len() {
            return None;
        }
        let Stretch { plain, left, encode } = std::mem::take(&mut self.stretch);
        let bytes = plain as f64;
        let (share, encode_s) = (left / bytes, encode.as_secs_f64() / bytes);
        let now = Seen { share, encode_s, block_s };
        let is_new = !self.seen.is_some_and(|before| now.is_like(&before));
        let looks = is_new || self.moving;
        self.moving = is_new;
        if looks {
            self.seen = Some(now);
        }
        self.seen.filter(|_| looks)
    }
}

impl Relay {
    /// The course of a half that goes as it is, by which it names a coding for what may come; none
    /// where nothing may, or too little.
    pub(crate) fn standby(&self, exchange: &Exchange, choice: &Choice) -> Option<Course> {
        let (head, whole) = exchange.outgoing.at_hand();
        let all = exchange.content_length.unwrap_or(u64::MAX);
        let short = all.saturating_sub(head.len() as u64) < STRETCH_BYTES as u64;
        if choice.arm != Arm::IDENTITY || whole || short || !self.config.encoding.may_turn() {
            return None;
        }
        let fits = self.fits(exchange, &choice.subject, None);
        let open = |arm: Arm| match fits.get(arm.0) {
            Some(Fit::Open { options, .. }) if is_for_any(*options) => Some(*options),
            _ => None,
        };
        let arm = match &choice.decision {
            Some(decision) => {
                let coded = decision.candidates.iter().filter(|one| open(one.arm).is_some());
                coded.min_by(|a, b| a.total_s().total_cmp(&b.total_s())).map(|one| one.arm)
            }
            None => {
                let subject = Subject { head_share: UNKNOWN_SHARE, ..choice.subject };
                let (path, objective) = (&choice.path, self.objective(exchange));
                let allowed = |arm: Arm| open(arm).is_some();
                let request = Request { subject: &subject, path, objective, allowed: &allowed };
                self.policy.turn(&request, &Going::PLAIN).map(|(arm, _)| arm)
            }
        }?;
        open(arm).and_then(|options| Course::new(arm, options))
    }

    /// What is expected of a half that goes as it is though no policy was asked.
    pub(crate) fn as_it_is(&self, exchange: &Exchange, choice: &Choice) -> Decision {
        let bytes = choice.subject.bytes;
        let chosen = Candidate::identity(bytes, self.policy.network_s(&choice.path, bytes));
        let (objective, candidates) = (self.objective(exchange), vec![chosen]);
        Decision { chosen, objective, candidates, shadow: None, reason: choice.reason }
    }

    /// What is wanted of the exchange's service.
    pub(crate) fn objective(&self, exchange: &Exchange) -> Objective {
        self.service(exchange).map_or(Objective::Time, |service| service.objective)
    }

    /// A block of a half has gone, through its encoder or as it is: the rest may go otherwise.
    pub(crate) fn look(
        &mut self,
        now: Duration,
        id: ExchangeId,
        plain: &Bytes,
        coded: Option<(usize, Duration)>,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let may_turn = |course: &Course| course.turns.len() < MAX_TURNS;
        let course = exchange.choice.as_ref().and_then(|choice| choice.course.as_ref());
        if exchange.outgoing.is_cut() || !course.is_some_and(may_turn) {
            return;
        }
        let path = self.path(exchange).0;
        if let Some(carrier) = exchange.carrier() {
            // For the next look: a link may have faded since the head left, or first show itself.
            self.measure(now, carrier);
        }
        let unqueued = Path { backlog_bytes: 0.0, ..path };
        let block_s = self.policy.network_s(&unqueued, MAX_BLOCK_BYTES as f64);
        if coded.is_none() && block_s < MIN_BLOCK_S {
            return;
        }
        let choice = self.exchanges.get_mut(&id).and_then(|exchange| exchange.choice.as_mut());
        let Some(choice) = choice else { return };
        let head_share = choice.subject.head_share;
        let Some(course) = choice.course.as_mut() else { return };
        course.note(plain, coded);
        let Some(seen) = course.departs(block_s) else { return };
        let (going, head_share) = match coded {
            Some(_) => {
                let Seen { share, encode_s, .. } = seen;
                (Going { arm: course.arm, share, encode_s }, head_share)
            }
            None if seen.share > INCOMPRESSIBLE_SHARE => return,
            None => (Going::PLAIN, seen.share),
        };
        self.weigh_rest(now, id, &path, head_share, &going);
    }

    /// Asks the policy what the rest of a half is worth going on in.
    fn weigh_rest(
        &mut self,
        now: Duration,
        id: ExchangeId,
        path: &Path,
        head_share: f64,
        going: &Going,
    ) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(choice) = &exchange.choice else { return };
        let Some(course) = &choice.course else { return };
        let bytes = rest_bytes(exchange, choice);
        if bytes < STRETCH_BYTES as f64 {
            return;
        }
        let subject = Subject { bytes, head_share, ..choice.subject };
        let context = self.context(exchange);
        let fits = match context {
            Context::Begun => Vec::new(),
            Context::None | Context::Renewable => {
                self.fits(exchange, &subject, Some(course.named.window_log))
            }
        };
        let worse = self.found_worse(exchange, choice, going, &subject, path);
        let allowed = |arm: Arm| match fits.get(arm.0) {
            _ if worse.contains(&arm) => false,
            _ if context != Context::None && arm == course.arm => true,
            Some(Fit::Open { options, .. }) => options.codec == course.options.codec,
            _ => false,
        };
        let left_at = exchange.departure.map_or(now, |departure| departure.first);
        let spent_s = now.saturating_sub(left_at).as_secs_f64();
        let objective = self.objective(exchange).after(spent_s);
        let request = Request { subject: &subject, path, objective, allowed: &allowed };
        let Some((arm, reason)) = self.policy.turn(&request, going) else { return };
        let fit = fits.get(arm.0).copied();
        self.go_on_in(id, arm, fit, reason);
    }

    /// What was tried on the first block and would bring the rest no better than what goes, while
    /// blocks are like that one. What the policy expects of others rests on less.
    fn found_worse(
        &self,
        exchange: &Exchange,
        choice: &Choice,
        going: &Going,
        rest: &Subject,
        path: &Path,
    ) -> Vec<Arm> {
        let (first, share, first_share) = match going.arm {
            Arm::IDENTITY => (Some(going), rest.head_share, choice.subject.head_share),
            arm => {
                let first = choice.tried.iter().find(|one| one.arm == arm);
                (first, going.share, first.map_or(0.0, |first| first.share))
            }
        };
        let Some(first) = first.filter(|_| is_near(share, first_share, SHARE_DEPARTS)) else {
            return Vec::new();
        };
        let seconds = |one: &Going| {
            one.encode_s * rest.bytes + self.policy.network_s(path, one.share * rest.bytes)
        };
        let (larger, later) =
            (|one: &Going| one.share >= first.share, |one: &Going| seconds(one) >= seconds(first));
        let objective = self.objective(exchange);
        let is_worse = |one: &&Going| match objective {
            Objective::Time => later(one),
            Objective::Bytes => larger(one),
            Objective::Deadline(_) => larger(one) && later(one),
        };
        let others = choice.tried.iter().filter(|one| one.arm != going.arm);
        others.filter(is_worse).map(|one| one.arm).collect()
    }

    /// The context that an outgoing half has.
    fn context(&self, exchange: &Exchange) -> Context {
        match exchange.outgoing.has_context() {
            false => Context::None,
            true if exchange.carrier().is_some_and(|id| self.takes_anew(id)) => Context::Renewable,
            true => Context::Begun,
        }
    }

    /// The rest of a half goes so.
    fn go_on_in(&mut self, id: ExchangeId, arm: Arm, fit: Option<Fit>, reason: &'static str) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        let Some(course) = choice.course.as_mut() else { return };
        let mut reserved = None;
        let goes_on = exchange.outgoing.has_context() && arm == course.arm;
        if arm != Arm::IDENTITY && !goes_on {
            let Some(Fit::Open { options, bytes }) = fit else { return };
            (course.arm, course.options) = (arm, options);
            (choice.options, choice.fresh) = (course.options, true);
            exchange.outgoing.begin_context();
            reserved = Some(bytes);
        }
        exchange.outgoing.uncoded = arm == Arm::IDENTITY;
        let options = if arm == Arm::IDENTITY { Options::IDENTITY } else { course.options };
        course.turns.push(Turn { at_bytes: choice.plain_bytes, options, reason });
        // Whether it was right is seen at the end of the next stretch.
        course.seen = None;
        if let Some(bytes) = reserved {
            self.reserve_encoder(id, bytes);
        }
    }
}

/// Bytes that are to come: as the head or the end says, else as is usual; and who has sent much
/// without an end sends as much again.
fn rest_bytes(exchange: &Exchange, choice: &Choice) -> f64 {
    let (open, whole) = exchange.outgoing.at_hand();
    let (at_hand, passed) = (open.len() as f64, choice.plain_bytes as f64);
    match exchange.content_length {
        _ if whole => at_hand,
        Some(all) => (all as f64 - passed).max(at_hand),
        None => (choice.subject.bytes - passed).max(passed).max(at_hand),
    }
}

/// A coding of blocks of any bytes, whatever the half began with.
fn is_for_any(options: Options) -> bool {
    let together = options.wants_base() || options.is_infoset();
    let coded = options.codec != 0 && !together;
    coded && options.codec().is_ok_and(|codec| codec.properties().applies_to(ANY))
}
