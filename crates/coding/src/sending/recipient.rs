//! Messages for recipients that are no peers: what they say of themselves decides besides, within
//! what they may cost; and nobody tells what came of them but this side's transport.

use std::sync::Arc;
use std::time::Duration;

use codec::Options;
use codec::dictionary::Kept;
use decide::Arm;
use decide::estimate::Transport;
use decide::learned::with_decoder;
use decide::policy::{Candidate, Decision, Request};
use record::event::Fact;

use super::Sender;
use super::known::Known;
use crate::path::awaited::Awaited;
use crate::recipient::{self, Framing, Recipient};
use crate::times::Departure;

/// An encoder that takes no longer is nobody's concern.
const CHEAP_S: f64 = 0.002;
/// Why a recipient is not believed.
const USED_UP: &str = "this client's share of the processor is used up";
/// Why a message is encoded that need not be.
const MUST: &str = "the client takes no answer without a coding";

impl Sender<'_> {
    /// What was decided, with the recipient's own times to decode; what it costs by what it says of
    /// itself, or by the path that it makes, is to be paid for.
    pub(super) fn for_recipient(&mut self, decision: Decision, request: &Request<'_>) -> Decision {
        let Some(recipient) = self.one.sending.recipient().cloned() else { return decision };
        let arms = self.core.config.encoding.arms();
        let decode_s = |arm: Arm| {
            let options = arms.get(arm.0).copied()?;
            recipient.decode_s(options, request.subject.bytes)
        };
        let mut decision = with_decoder(decision, decode_s);
        if cost(&decision) > CHEAP_S {
            let path = self.core.config.estimate().path();
            let policy = self.core.policy_of(self.one);
            let usual = policy.choose(&Request { path: &path, ..*request });
            let extra = cost(&decision) - cost(&usual);
            let accounts = &mut self.core.clients.accounts;
            if extra > CHEAP_S && !accounts.take(self.now, recipient.account, extra) {
                decision = Decision { reason: USED_UP, ..usual };
            }
        }
        if !recipient.identity && decision.chosen.arm == Arm::IDENTITY {
            let mut arms = (1..self.core.config.encoding.arms().len()).map(Arm);
            encode_anyway(&mut decision, arms.find(|&arm| (request.allowed)(arm)));
        }
        decision
    }

    /// All of the message is with the recipient's transport: nobody tells more of its encoding.
    pub(super) fn left(&mut self) {
        let Some(mut awaited) = self.awaited() else { return };
        awaited.learn(self.core.policy_of(self.one), None);
        self.note_usual(&awaited);
        self.one.choice = Some(awaited.choice);
    }

    /// The recipient has all of the message, which came to so many bytes on its way.
    pub(crate) fn arrived(&mut self, bytes: u64, network: Duration) {
        let Some(mut awaited) = self.awaited() else { return };
        let choice = &mut awaited.choice;
        if choice.arm == Arm::IDENTITY {
            // Not all of it went through here.
            (choice.plain_bytes, choice.coded_bytes) = (bytes, bytes);
            self.note_usual(&awaited);
        }
        let choice = &awaited.choice;
        let policy = self.core.policy_of(self.one);
        awaited.network_s = policy.network_s(&choice.path, choice.coded_bytes as f64);
        let Some(decode_s) = choice.expected(choice.arm).map(|one| one.expected.decode_s) else {
            return;
        };
        let encoding = self.known().label(choice.options);
        let outcome = awaited.outcome(encoding, network.as_secs_f64(), decode_s);
        if let Some(outcome) = outcome {
            let (exchange, direction) = (self.one.id.to_string(), self.core.config.sends);
            self.core.event(Fact::Outcome { exchange, direction, outcome });
        }
    }

    fn awaited(&mut self) -> Option<Awaited> {
        let choice = self.one.choice.take()?;
        let departure = Departure {
            first: self.now,
            before: 0,
            counters: Transport::default(),
            idle: Duration::ZERO,
            idle_since: None,
        };
        let (id, carried) = (self.one.id, choice.coded_bytes);
        Some(Awaited { id, choice, departure, carried, network_s: 0.0, learned: false })
    }

    fn note_usual(&mut self, awaited: &Awaited) {
        let (subject, bytes) = (awaited.choice.subject, awaited.choice.plain_bytes as f64);
        self.core.habits_of(self.one).note(subject.class, bytes, subject.head_share);
    }
}

impl<'a> Known<'a> {
    /// Who gets the message, where that is no peer.
    pub(super) fn recipient(&self) -> Option<&'a Recipient> {
        self.one.sending.recipient().map(|recipient| &**recipient)
    }

    /// The message may not go as it is.
    pub(super) fn must_encode(&self) -> bool {
        self.recipient().is_some_and(|recipient| !recipient.identity)
    }

    /// It may go on otherwise than it began: a content coding holds for all of it.
    pub(super) fn may_revise(&self) -> bool {
        self.core.config.encoding.may_revise() && self.recipient().is_none()
    }

    /// How an encoding is framed, and what it is made against.
    pub(super) fn made_with(&self, options: Options) -> (Framing, Option<Arc<Kept>>) {
        match self.recipient() {
            Some(recipient) => {
                (recipient.framing(options).unwrap_or_default(), recipient.base_of(options))
            }
            None => (Framing::Blocks, self.one.held.base_of(options)),
        }
    }

    /// What an encoding is called in events.
    pub(super) fn label(&self, options: Options) -> String {
        self.labels()(options)
    }

    /// What encodings are called in events.
    pub(super) fn labels(&self) -> fn(Options) -> String {
        match self.recipient() {
            Some(_) => recipient::label,
            None => |options| options.label(),
        }
    }
}

/// The soonest of those that are encoded, or else the first that may be taken.
fn encode_anyway(decision: &mut Decision, first: Option<Arm>) {
    let encoded = decision.candidates.iter().filter(|one| one.arm != Arm::IDENTITY);
    let soonest = encoded.min_by(|a, b| a.total_s().total_cmp(&b.total_s())).copied();
    let first = first.map(|arm| Candidate { arm, ..decision.chosen });
    if let Some(chosen) = soonest.or(first) {
        (decision.chosen, decision.reason) = (chosen, MUST);
    }
}

/// Seconds of a processor that a decision is expected to take, its probe included.
fn cost(decision: &Decision) -> f64 {
    let probe = decision.candidates.iter().find(|one| Some(one.arm) == decision.probe);
    decision.chosen.expected.encode_s + probe.map_or(0.0, |one| one.expected.encode_s)
}
