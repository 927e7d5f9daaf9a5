//! What comes out of the codecs: the first block of a half is tried in more than one where the
//! first disappoints, and some encodings are made only to learn from.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::models::{Seen, Subject};
use decide::policy::Observation;

use crate::Relay;
use crate::api::{ExchangeId, Output, Work, WorkDirection};
use crate::choice::{Fit, Tried, going, whole};
use crate::course::Course;

/// Most encodings tried on the first block of a half: each waits for the one before.
const MAX_TRIES: usize = 3;
/// Most encodings at once that only teach.
const MAX_SHADOWS: usize = 2;
/// Processor time that they may take for each second that halves took to leave.
const SHADOW_SHARE: f64 = 0.1;
/// Processor time saved up for them at first, and at most.
const SHADOW_S: (f64, f64) = (0.02, 1.0);

/// A block that was encoded, and what it was.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) plain: Bytes,
    pub(crate) coded: Bytes,
    /// What comes out of it, where that is another text than `plain`.
    pub(crate) text: Option<Bytes>,
    pub(crate) end: bool,
    pub(crate) last: bool,
    pub(crate) cpu: Duration,
    /// How long it waited for its encoder besides.
    pub(crate) waited: Duration,
}

/// Encodings that are under way only to teach, and the time that they may take.
#[derive(Debug)]
pub(crate) struct Shadows {
    open: BTreeMap<ExchangeId, Shadow>,
    left_s: f64,
}

#[derive(Debug)]
struct Shadow {
    subject: Subject,
    arm: Arm,
    /// Memory reserved for its encoder.
    bytes: usize,
}

impl Default for Shadows {
    fn default() -> Self {
        Self { open: BTreeMap::new(), left_s: SHADOW_S.0 }
    }
}

impl Shadows {
    /// Memory reserved for their encoders.
    pub(crate) fn bytes(&self) -> usize {
        self.open.values().map(|shadow| shadow.bytes).sum()
    }

    /// A half took so long to leave: a share of it may be spent.
    pub(crate) fn earn(&mut self, took: Duration) {
        self.left_s = (self.left_s + SHADOW_SHARE * took.as_secs_f64()).min(SHADOW_S.1);
    }
}

impl Relay {
    /// A block of a half came out of its codec: it goes, or the half goes otherwise.
    pub(crate) fn settle_block(&mut self, now: Duration, id: ExchangeId, block: Encoded) {
        let may_turn = self.config.encoding.may_turn();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        if choice.trying {
            return self.tried(now, id, block);
        }
        if choice.course.is_none() && may_turn && !exchange.outgoing.is_cut() {
            choice.course = Course::new(choice.arm, choice.options);
        }
        let tries_end = choice.plain_bytes == 0;
        if tries_end {
            choice.waited = block.waited;
        }
        choice.encode += block.cpu;
        choice.plain_bytes += block.plain.len() as u64;
        choice.coded_bytes += block.coded.len() as u64;
        if let Some(course) = &mut choice.course {
            course.coded(block.plain.len(), block.coded.len(), block.cpu);
        }
        let is_first = !exchange.outgoing.is_settled();
        if is_first {
            // The head may wait still when a later block goes otherwise: it names what bears both.
            exchange.outgoing.settle(choice.options);
            exchange.held.settle(choice.options);
        }
        if let Some(text) = &block.text {
            exchange.adopt(self.config.role, text);
        }
        let decoded_len = block.text.as_ref().map_or(block.plain.len(), Bytes::len);
        let coded = Some((block.coded.len(), block.cpu));
        exchange.outgoing.push_block(block.coded, decoded_len, true, block.end);
        if tries_end {
            self.trim_encoder(id);
        }
        if is_first {
            self.chosen(now, id);
        }
        self.look(now, id, &block.plain, coded);
    }

    /// The first block came out of a codec: what was dropped teaches, what is best goes, or another
    /// is tried.
    fn tried(&mut self, now: Duration, id: ExchangeId, block: Encoded) {
        let infosets: Vec<_> = self.infoset_arms().collect();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let settled = exchange.outgoing.is_settled();
        let Some(choice) = exchange.choice.as_mut() else { return };
        let plain_len = block.plain.len();
        let Encoded { coded, text, cpu, waited, .. } = &block;
        let (coded, text, cpu, waited) = (coded.clone(), text.clone(), *cpu, *waited);
        let this = Tried { arm: choice.arm, options: choice.options, coded, text, cpu, waited };
        choice.tried.push(this.going(plain_len));
        choice.first_bytes = plain_len as u64;
        let mut closed: Vec<_> = choice.tried.iter().map(|one| one.arm).collect();
        closed.extend(infosets.iter().filter(|_| choice.exact));
        let (best, dropped) = match choice.best.take() {
            Some(best) if best.coded.len() <= this.coded.len() => (best, Some(this)),
            before => (this, before),
        };
        let subject = Subject { bytes: plain_len as f64, ..choice.subject };
        let (plain, coded) = (subject.bytes, best.coded.len() as f64);
        let bytes = self.policy.in_all(&choice.subject, best.arm, plain, coded);
        let open = choice.decision.as_ref().filter(|_| choice.tried.len() < MAX_TRIES);
        let next =
            open.and_then(|decision| self.policy.again(decision, &choice.path, &closed, bytes));
        // What would not come back the same says nothing of how others compress.
        let was_refused = choice.exact && next.is_some();
        if let Some(dropped) = dropped {
            learn(&mut *self.policy, &subject, dropped.seen());
        }
        let in_vain = best.coded.len() >= plain_len && !was_refused || next == Some(Arm::IDENTITY);
        if in_vain {
            learn(&mut *self.policy, &subject, best.seen());
            return self.leave_alone(now, id, block);
        }
        match next.filter(|_| !settled) {
            Some(next) => {
                choice.best = Some(best);
                if !self.try_in(now, id, next, &block) {
                    self.take_best(now, id, block);
                }
            }
            None => {
                choice.best = Some(best);
                self.take_best(now, id, block);
            }
        }
    }

    /// Orders the first block's encoding in another arm; `false` where that cannot be had any more.
    fn try_in(&mut self, now: Duration, id: ExchangeId, arm: Arm, block: &Encoded) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return false };
        let Some(choice) = &exchange.choice else { return false };
        let fit = self.fits(exchange, &choice.subject, None).get(arm.0).copied();
        let Some(Fit::Open { options, bytes }) = fit else { return false };
        self.reserve_encoder(id, bytes);
        self.encode_anew(now, id, arm, options, block);
        true
    }

    fn encode_anew(
        &mut self,
        now: Duration,
        id: ExchangeId,
        arm: Arm,
        options: Options,
        block: &Encoded,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        (choice.arm, choice.options, choice.fresh) = (arm, options, true);
        exchange.outgoing.options = Some(options);
        let (plain, end, last) = (block.plain.clone(), block.end, block.last);
        self.order(now, id, plain, end, last);
    }

    /// The best of what was tried goes.
    fn take_best(&mut self, now: Duration, id: ExchangeId, block: Encoded) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        let Some(best) = choice.best.take() else { return };
        choice.trying = false;
        if best.was_refused() {
            return self.leave_alone(now, id, block);
        }
        if best.arm != choice.arm && !exchange.outgoing.is_cut() {
            // More blocks follow, and the context that they need is gone.
            return self.encode_anew(now, id, best.arm, best.options, &block);
        }
        (choice.arm, choice.options) = (best.arm, best.options);
        let Tried { coded, text, cpu, waited, .. } = best;
        self.settle_block_as(now, id, Encoded { coded, text, cpu, waited, ..block });
    }

    fn settle_block_as(&mut self, now: Duration, id: ExchangeId, block: Encoded) {
        let was_settled = self.exchanges.get(&id).is_some_and(|one| one.outgoing.is_settled());
        self.settle_block(now, id, block);
        if was_settled {
            // The head went before there was a block, and the choice with it was provisional.
            self.chosen(now, id);
        }
    }

    /// The half goes as it is, or the rest of it where the head has gone.
    fn leave_alone(&mut self, now: Duration, id: ExchangeId, block: Encoded) {
        let may_turn = self.config.encoding.may_turn();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = exchange.choice.as_mut() else { return };
        if may_turn && !exchange.outgoing.is_cut() {
            // The rest may be otherwise.
            choice.course = Course::new(choice.arm, choice.options);
        }
        let named = choice.course.as_ref().map_or(Options::IDENTITY, Course::named);
        (choice.trying, choice.best, choice.fresh) = (false, None, true);
        (choice.arm, choice.options) = (Arm::IDENTITY, Options::IDENTITY);
        choice.reason = "does not compress enough";
        choice.plain_bytes += block.plain.len() as u64;
        choice.coded_bytes += block.plain.len() as u64;
        if !exchange.outgoing.is_settled() {
            exchange.outgoing.settle(named);
        }
        exchange.outgoing.uncoded = true;
        let plain_len = block.plain.len();
        exchange.outgoing.push_block(block.plain, plain_len, false, block.end);
        self.chosen(now, id);
    }

    /// Orders an encoding of a half's first block that nobody will send, if there is time, memory
    /// and something to learn.
    pub(crate) fn shadow(&mut self, id: ExchangeId, plain: &Bytes) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(choice) = &exchange.choice else { return };
        let Some(arm) = choice.decision.as_ref().and_then(|decision| decision.shadow) else {
            return;
        };
        let shadows = &self.shadows;
        let busy = shadows.open.len() >= MAX_SHADOWS || shadows.open.contains_key(&id);
        if busy || shadows.left_s <= 0.0 || plain.is_empty() {
            return;
        }
        let subject = Subject { bytes: plain.len() as f64, ..choice.subject };
        let fit = self.fits(exchange, &subject, None).get(arm.0).copied();
        let Some(Fit::Open { options, bytes }) = fit else { return };
        if bytes > self.shadow_bytes_left() {
            return;
        }
        let base = exchange.held.base_of(options);
        let vocabulary = self.vocabulary(exchange).filter(|_| options.is_infoset()).cloned();
        self.shadows.open.insert(id, Shadow { subject, arm, bytes });
        self.outputs.push_back(Output::Work(Work {
            exchange: id,
            direction: WorkDirection::Shadow,
            block: 0,
            options,
            bytes: plain.clone(),
            decoded_len: plain.len(),
            first: true,
            last: true,
            base,
            vocabulary,
        }));
    }

    pub(crate) fn shadow_done(
        &mut self,
        id: ExchangeId,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        let Some(Shadow { subject, arm, .. }) = self.shadows.open.remove(&id) else { return };
        self.shadows.left_s -= cpu.as_secs_f64();
        let plain_len = usize::try_from(whole(subject.bytes)).unwrap_or(usize::MAX);
        if let Ok(len) = self.shadow_len(arm, plain_len, result) {
            learn(&mut *self.policy, &subject, (arm, len, cpu));
            let choice = self.exchanges.get_mut(&id).and_then(|exchange| exchange.choice.as_mut());
            if let Some(choice) = choice {
                choice.beside = Some(going((arm, len, cpu), plain_len));
            }
        }
    }
}

/// What an encoding gave that is not sent.
fn learn(
    policy: &mut dyn decide::policy::Policy,
    subject: &Subject,
    (arm, len, cpu): (Arm, usize, Duration),
) {
    let seen = Seen { bytes: len as f64, encode_s: Some(cpu.as_secs_f64()), decode_s: None };
    policy.observe(&Observation::Encoding { subject, arm, seen: &seen });
}
