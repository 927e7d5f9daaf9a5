//! What comes out of the codecs: the first block of a message is tried in more than one where the
//! first disappoints, and some encodings are made only to learn from.

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use decide::Arm;
use decide::models::{Seen, Subject};
use decide::policy::{Observation, Policy};

use super::Sender;
use super::fits::Fit;
use super::infoset::{arms_of_infosets, probed_len};
use crate::core::Core;
use crate::core::probes::{MAX_PROBES, Probe};
use crate::exchange::Exchange;
use crate::exchange::choice::{Tried, going};
use crate::exchange::revision::Revisions;
use crate::job::{Job, Setup, Try};
use crate::reported::whole;

/// Most encodings tried on the first block of a message: each waits for the one before.
const MAX_TRIES: usize = 3;

/// A block that was encoded, and what it was.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) plain: Bytes,
    pub(super) coded: Bytes,
    /// What comes out of it, where that is another text than `plain`.
    pub(super) text: Option<Bytes>,
    pub(super) end: bool,
    pub(super) cpu: Duration,
    /// How long it waited for its encoder besides.
    pub(super) waited: Duration,
}

impl Sender<'_> {
    /// A block came out of its codec: it goes, or the message goes otherwise.
    pub(super) fn settle_block(&mut self, block: Encoded) {
        let may_revise = self.known().may_revise();
        let Some(choice) = self.one.choice.as_mut() else { return };
        if choice.trying {
            return self.tried(block);
        }
        if choice.revisions.is_none() && may_revise && !self.one.sending.is_cut() {
            choice.revisions = Revisions::new(choice.arm, choice.options);
        }
        let tries_end = choice.plain_bytes == 0;
        if tries_end {
            choice.waited = block.waited;
        }
        choice.encode += block.cpu;
        choice.plain_bytes += block.plain.len() as u64;
        choice.coded_bytes += block.coded.len() as u64;
        if let Some(revisions) = &mut choice.revisions {
            revisions.coded(block.plain.len(), block.coded.len(), block.cpu);
        }
        let options = choice.options;
        let is_first = !self.one.sending.is_settled();
        if is_first {
            // The head may wait still when a later block goes otherwise: it names what bears both.
            self.one.held.settle(options);
        }
        if let Some(text) = &block.text {
            self.one.held.adopt(text);
        }
        if is_first {
            self.settle(options, block.text.as_ref().map(Bytes::len));
        }
        let decoded_len = block.text.as_ref().map_or(block.plain.len(), Bytes::len);
        let coded = Some((block.coded.len(), block.cpu));
        self.block(block.coded, decoded_len, true, block.end);
        if tries_end {
            self.trim_encoder();
        }
        if is_first {
            self.chosen();
        }
        self.review(&block.plain, coded);
    }

    /// The first block came out of a codec: what was dropped teaches, what is best goes, or another
    /// is tried.
    fn tried(&mut self, block: Encoded) {
        let (settled, is_client) = (self.one.sending.is_settled(), self.one.has_recipient());
        let Some(choice) = self.one.choice.as_mut() else { return };
        let plain_len = block.plain.len();
        let Encoded { coded, text, cpu, waited, .. } = &block;
        let (coded, text, cpu, waited) = (coded.clone(), text.clone(), *cpu, *waited);
        let this = Tried { arm: choice.arm, options: choice.options, coded, text, cpu, waited };
        choice.tried.push(this.going(plain_len));
        choice.first_bytes = plain_len as u64;
        let mut closed: Vec<_> = choice.tried.iter().map(|one| one.arm).collect();
        if choice.exact {
            closed.extend(arms_of_infosets(&self.core.config.encoding));
        }
        let (best, dropped) = match choice.best.take() {
            Some(best) if best.coded.len() <= this.coded.len() => (best, Some(this)),
            before => (this, before),
        };
        let policy = self.core.policy_for(is_client);
        let subject = Subject { bytes: plain_len as f64, ..choice.subject };
        let (plain, coded) = (subject.bytes, best.coded.len() as f64);
        let bytes = policy.in_all(&choice.subject, best.arm, plain, coded);
        let open = choice.decision.as_ref().filter(|_| choice.tried.len() < MAX_TRIES);
        let next = open.and_then(|decision| policy.again(decision, &choice.path, &closed, bytes));
        // Of a client's account comes what was chosen; it has no other tried by what it says.
        let next = next.filter(|next| !is_client || *next == Arm::IDENTITY);
        // What would not come back the same says nothing of how others compress.
        let was_refused = choice.exact && next.is_some();
        if let Some(dropped) = dropped {
            learn(policy, &subject, dropped.seen());
        }
        let in_vain = best.coded.len() >= plain_len && !was_refused || next == Some(Arm::IDENTITY);
        if in_vain {
            learn(policy, &subject, best.seen());
            return self.leave_alone(block);
        }
        choice.best = Some(best);
        match next.filter(|_| !settled) {
            Some(next) if self.try_in(next, &block) => {}
            _ => self.take_best(block),
        }
    }

    /// Orders the first block's encoding in another arm; `false` where that cannot be had any more.
    fn try_in(&mut self, arm: Arm, block: &Encoded) -> bool {
        let Some(choice) = &self.one.choice else { return false };
        let fit = self.known().fits(&choice.subject, None).get(arm.0).copied();
        let Some(Fit::Open { options, bytes }) = fit else { return false };
        self.reserve_encoder(bytes);
        self.encode_anew(arm, options, block);
        true
    }

    fn encode_anew(&mut self, arm: Arm, options: Options, block: &Encoded) {
        let Some(choice) = self.one.choice.as_mut() else { return };
        (choice.arm, choice.options, choice.fresh) = (arm, options, true);
        self.one.sending.options = Some(options);
        self.order(block.plain.clone(), block.end);
    }

    /// The best of what was tried goes.
    fn take_best(&mut self, block: Encoded) {
        let Some(choice) = self.one.choice.as_mut() else { return };
        let Some(best) = choice.best.take() else { return };
        choice.trying = false;
        if best.was_refused() {
            return self.leave_alone(block);
        }
        if best.arm != choice.arm && !self.one.sending.is_cut() {
            // More blocks follow, and the context that they need is gone.
            return self.encode_anew(best.arm, best.options, &block);
        }
        (choice.arm, choice.options) = (best.arm, best.options);
        let Tried { coded, text, cpu, waited, .. } = best;
        let was_settled = self.one.sending.is_settled();
        self.settle_block(Encoded { coded, text, cpu, waited, ..block });
        if was_settled {
            // The head went before there was a block, and the choice with it was provisional.
            self.chosen();
        }
    }

    /// The message goes as it is, or the rest of it where the head has gone.
    fn leave_alone(&mut self, block: Encoded) {
        let may_revise = self.known().may_revise();
        let Some(choice) = self.one.choice.as_mut() else { return };
        if may_revise && !self.one.sending.is_cut() {
            // The rest may be otherwise.
            choice.revisions = Revisions::new(choice.arm, choice.options);
        }
        let named = choice.revisions.as_ref().map_or(Options::IDENTITY, Revisions::named);
        (choice.trying, choice.best, choice.fresh) = (false, None, true);
        (choice.arm, choice.options) = (Arm::IDENTITY, Options::IDENTITY);
        choice.reason = "does not compress enough";
        choice.plain_bytes += block.plain.len() as u64;
        choice.coded_bytes += block.plain.len() as u64;
        if !self.one.sending.is_settled() {
            self.settle(named, None);
        }
        self.one.sending.uncoded = true;
        let plain_len = block.plain.len();
        self.block(block.plain, plain_len, false, block.end);
        self.chosen();
    }

    /// Orders an encoding of the first block that nobody will send, if there is time, memory and
    /// something to learn.
    pub(super) fn probe(&mut self, plain: &Bytes) {
        let Some(choice) = &self.one.choice else { return };
        let Some(arm) = choice.decision.as_ref().and_then(|decision| decision.probe) else {
            return;
        };
        let id = self.one.id;
        let probes = &self.core.probes;
        let busy = probes.open.len() >= MAX_PROBES || probes.open.contains_key(&id);
        // What those of clients may take is the policy's to say, and their accounts'.
        let spent = probes.left_s <= 0.0 && !self.one.has_recipient();
        if busy || spent || plain.is_empty() {
            return;
        }
        let subject = Subject { bytes: plain.len() as f64, ..choice.subject };
        let fit = self.known().fits(&subject, None).get(arm.0).copied();
        let Some(Fit::Open { options, bytes }) = fit else { return };
        if bytes > self.known().probe_bytes_left() {
            return;
        }
        let (framing, base) = self.known().made_with(options);
        let schema_context =
            self.known().schema_context().filter(|_| options.is_infoset()).cloned();
        let client = self.one.has_recipient();
        self.core.probes.open.insert(id, Probe { subject, arm, bytes, client });
        let setup = Setup { options, base, schema_context, framing };
        self.core.job(Job::Try(Try { exchange: id, setup, bytes: plain.clone() }));
    }
}

/// A probe is done, of an exchange that may be over.
pub(crate) fn probed(
    core: &mut Core,
    probe: &Probe,
    one: Option<&mut Exchange>,
    result: Result<Bytes, codec::Error>,
    cpu: Duration,
) {
    let Probe { subject, arm, client, .. } = probe;
    if !client {
        core.probes.left_s -= cpu.as_secs_f64();
    }
    let plain_len = usize::try_from(whole(subject.bytes)).unwrap_or(usize::MAX);
    if let Ok(len) = probed_len(&core.config.encoding, *arm, plain_len, result) {
        learn(core.policy_for(*client), subject, (*arm, len, cpu));
        if let Some(choice) = one.and_then(|one| one.choice.as_mut()) {
            choice.probed = Some(going((*arm, len, cpu), plain_len));
        }
    }
}

/// What an encoding gave that is not sent.
fn learn(policy: &mut dyn Policy, subject: &Subject, (arm, len, cpu): (Arm, usize, Duration)) {
    let seen = Seen { bytes: len as f64, encode_s: Some(cpu.as_secs_f64()), decode_s: None };
    policy.observe(&Observation::Encoding { subject, arm, seen: &seen });
}
