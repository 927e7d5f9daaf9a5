//! The message that this side sends: what it goes in is chosen, tried on its first block and
//! revised behind it; its blocks are encoded; what may be kept of it is.

mod choosing;
mod fits;
mod infoset;
mod known;
mod leave;
mod recipient;
mod revise;
mod share;
mod trial;

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use record::event::Fact;

use super::api::{Fault, FaultKind, Message, Output};
use super::core::{Core, Key};
use super::exchange::sending::{Cut, InWork};
use super::exchange::{Exchange, Stands};
use super::job::{Encode, Job, Setup};
use super::path::Path;
use super::peer::Peer;
use trial::Encoded;

pub(crate) use known::Known;
pub(crate) use trial::probed;

/// An exchange with the path that it goes over, if there is one, and all that is shared.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) now: Duration,
    pub(crate) core: &'a mut Core,
    pub(crate) path: Option<&'a mut Path>,
    pub(crate) one: &'a mut Exchange,
}

impl Sender<'_> {
    /// What is known of the message.
    pub(crate) fn known(&self) -> Known<'_> {
        Known { core: self.core, path: self.path.as_deref(), one: self.one }
    }

    /// The peer at the other end of the path.
    pub(crate) fn peer(&mut self) -> Option<Peer<'_>> {
        let path = self.path.as_deref_mut()?;
        Some(Peer { now: self.now, core: self.core, path })
    }

    fn output(&mut self, output: Output) {
        self.core.outputs.push_back(output);
    }

    /// The message begins.
    pub(crate) fn begin(&mut self, message: Message) {
        if message.recipient.is_some() {
            self.one.stands = Stands::Away;
        }
        self.one.exact.said = message.exact;
        self.one.sending.begin(self.now, message);
        self.advance();
    }

    /// Bytes of its body came.
    pub(crate) fn push(&mut self, bytes: &Bytes) {
        self.one.sending.push(self.now, bytes);
        self.advance();
    }

    /// Its body is whole; trailer fields may follow it.
    pub(crate) fn end(&mut self, trailers: bool) {
        self.one.sending.end(trailers);
        self.advance();
    }

    /// The exchange has no path any more.
    pub(crate) fn detach(&mut self, waits: bool) {
        self.one.stands = if waits { Stands::Waits } else { Stands::Away };
        self.path = None;
        self.advance();
    }

    /// The message goes again from its beginning.
    pub(crate) fn rewind(&mut self, body: &Bytes) {
        self.one.sending.rewind(body);
        self.one.rewind();
    }

    /// Nothing more of it is wanted.
    pub(crate) fn stop(&mut self) {
        self.one.sending.stop();
        self.one.rewind();
        self.advance();
    }

    /// Cuts blocks, chooses the codec with the first, orders work, hands over what is ready.
    pub(crate) fn advance(&mut self) {
        while self.one.stands != Stands::Waits {
            if self.one.sending.options.is_none() {
                if !self.one.sending.is_choice_due(self.now) {
                    break;
                }
                self.choose();
                continue;
            }
            let Some(cut) = self.one.sending.cut(self.now) else { break };
            self.encode(cut);
        }
        if self.one.sending.take_trailers() {
            self.output(Output::Trailers { exchange: self.one.id });
        }
        self.core.release_contexts(self.one);
        let waits = self.one.stands == Stands::Waits;
        let wake_at = self.one.sending.wake_at().filter(|_| !waits);
        self.core.timers.set(Key::Block(self.one.id), wake_at);
    }

    /// Orders a block's encoding, or passes it on as it is.
    fn encode(&mut self, cut: Cut) {
        let Some(choice) = &mut self.one.choice else { return };
        let (is_first, decoded_len) = (choice.begins_message(), cut.bytes.len());
        let plain = cut.bytes.clone();
        if is_first && cut.end {
            self.one.held.note_body(&plain);
        }
        // The end of a coding for who is no peer comes out of its encoder, also where it is alone.
        let empty = decoded_len == 0 && self.one.sending.recipient().is_none();
        if choice.options.is_identity() || self.one.sending.uncoded || empty {
            choice.plain_bytes += decoded_len as u64;
            choice.coded_bytes += decoded_len as u64;
            self.block(cut.bytes, decoded_len, false, cut.end);
            self.review(&plain, None);
        } else {
            self.order(cut.bytes, cut.end);
        }
        if is_first {
            self.probe(&plain);
        }
    }

    /// A block is ready.
    fn block(&mut self, bytes: Bytes, decoded_len: usize, coded: bool, end: bool) {
        if let Some(anew) = self.one.sending.block(decoded_len, coded, end) {
            let exchange = self.one.id;
            self.output(Output::Block { exchange, bytes, decoded_len, coded, anew, end });
        }
    }

    /// What the message goes in is final: its head may go.
    fn settle(&mut self, options: Options, length: Option<usize>) {
        self.one.sending.settle(options);
        let (exchange, (framing, _)) = (self.one.id, self.known().made_with(options));
        let awaited = self.one.choice.as_ref().is_some_and(|choice| choice.decision.is_some());
        self.output(Output::Settled { exchange, options, framing, awaited, length });
    }

    /// Orders a block's encoding.
    fn order(&mut self, plain: Bytes, end: bool) {
        let schema_context = self.known().schema_context().cloned();
        let Some(options) = self.one.choice.as_ref().map(|choice| choice.options) else { return };
        let (framing, base) = self.known().made_with(options);
        let Some(choice) = &mut self.one.choice else { return };
        let block = self.one.sending.begin_work(self.now, plain.clone(), end);
        self.one.has_contexts = true;
        let schema_context = schema_context.filter(|_| choice.options.is_infoset());
        self.core.job(Job::Encode(Encode {
            exchange: self.one.id,
            block,
            setup: Setup { options: choice.options, base, schema_context, framing },
            bytes: plain,
            first: choice.begins(),
            last: end,
        }));
    }

    /// A block was encoded.
    pub(crate) fn encoded(
        &mut self,
        block: u64,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        self.one.cpu += cpu;
        let Some(work) = self.one.sending.take_work(block) else { return };
        let InWork { plain, ordered, end, .. } = work;
        let waited = self.core.waits.note(self.now, ordered, cpu);
        match self.faithful(&plain, result) {
            Ok((coded, text)) => {
                self.settle_block(Encoded { plain, coded, text, end, cpu, waited });
            }
            Err(error) => {
                let reason = format!("this side's encoder failed: {error}");
                let fault = Fault { kind: FaultKind::Limit, reason };
                return self.core.fault(self.one.id, fault);
            }
        }
        self.advance();
    }

    /// Tells what the message goes in.
    fn chosen(&mut self) {
        let direction = self.core.config.sends;
        let Some(choice) = self.one.choice.as_mut() else { return };
        let mut decision = choice.facts.take();
        if let Some(decision) = &mut decision {
            if let Some(candidate) = choice.expected(choice.arm) {
                decision.expected = super::reported::parts(candidate);
            }
            decision.base = match self.one.sending.recipient() {
                Some(recipient) => recipient.fact_of(choice.options),
                None => self.one.held.fact_of(choice.options),
            };
        }
        let reason = choice.reason.to_owned();
        let options = choice.options;
        let encoding = self.known().label(options);
        let exchange = self.one.id.to_string();
        self.core.event(Fact::Chosen { exchange, direction, encoding, reason, decision });
    }
}
