//! The message that comes: what it takes to read it is found, its blocks are decoded in order, its
//! receipt is sent, and what may be kept of it is.

use std::time::Duration;

use bytes::Bytes;
use codec::Options;
use codec::infoset;
use proto::control::{Keeping, Receipt};
use record::event::Fact;

use super::api::{Fault, FaultKind, Output, Piece};
use super::core::habits::UNKNOWN_SHARE;
use super::core::{Core, Key};
use super::exchange::Exchange;
use super::exchange::receiving::Block;
use super::job::{Decode, Job, Setup};
use super::kept::lasting::{Principal, lasts};
use super::kept::pending::{Keep, Whose};
use super::path::Path;
use super::path::piggyback::Waiting;
use super::peer::{Peer, find_schema};
use super::recipient::Framing;
use super::sending::Known;

/// Of the longest body that came of late, one part in so many is forgotten with each that comes.
const LONGEST_FADES: u64 = 32;
/// In events.
const INFOSET: &str = "infoset";

/// An exchange with the path that it goes over, if there is one, and all that is shared.
#[derive(Debug)]
pub(crate) struct Receiver<'a> {
    pub(crate) now: Duration,
    pub(crate) core: &'a mut Core,
    pub(crate) path: Option<&'a mut Path>,
    pub(crate) one: &'a mut Exchange,
}

impl Receiver<'_> {
    fn peer(&mut self) -> Option<Peer<'_>> {
        let path = self.path.as_deref_mut()?;
        Some(Peer { now: self.now, core: self.core, path })
    }

    fn output(&mut self, output: Output) {
        self.core.outputs.push_back(output);
    }

    /// The exchange cannot go on.
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.core.fault(self.one.id, fault);
    }

    /// The head of the message came.
    pub(crate) fn expect(&mut self, options: Options, end: bool) {
        self.one.receiving.expect(options, end);
        self.advance();
    }

    /// A piece of the body came.
    pub(crate) fn piece(&mut self, piece: &Piece, received: u64) {
        let coded = !piece.uncoded && !self.one.receiving.options().is_identity();
        self.one.arrival.note(self.now, received, piece.bytes.len(), coded);
        let read = self.one.receiving.push(piece).and_then(|whole| match whole {
            true => self.find_base().and_then(|()| self.find_schema_context()),
            false => Ok(()),
        });
        match read {
            Ok(()) => self.advance(),
            Err(fault) => self.fault(fault),
        }
    }

    /// The body ended by itself.
    pub(crate) fn end(&mut self) {
        match self.one.receiving.end() {
            Ok(()) => self.advance(),
            Err(fault) => self.fault(fault),
        }
    }

    /// What was decoded was delivered, all of it or not.
    pub(crate) fn delivered(&mut self, all: bool) {
        self.one.arrival.waits(self.now, !all);
        self.one.receiving.undelivered = !all;
        if all {
            self.advance();
        }
    }

    /// Decodes what is next, hands over what needs no decoder, and ends the message when all is
    /// decoded.
    pub(crate) fn advance(&mut self) {
        if let Some(block) = self.one.receiving.next_uncoded() {
            self.consumed(&block);
            self.body(block.bytes);
        } else if self.reserve_decoder() {
            self.decode_next();
        }
        self.core.release_contexts(self.one);
        if !self.one.receiving.is_whole() {
            return;
        }
        self.acknowledge();
        if self.one.receiving.is_whole_at_last() {
            self.output(Output::Received { exchange: self.one.id });
        }
    }

    fn consumed(&mut self, block: &Block) {
        self.output(Output::Consumed { exchange: self.one.id, bytes: block.credit() });
    }

    fn body(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.one.receiving.note_decoded(&bytes);
            self.output(Output::Body { exchange: self.one.id, bytes });
        }
    }

    /// Orders the decoding of the next block.
    fn decode_next(&mut self) {
        let Some((block, next)) = self.one.receiving.next_work() else { return };
        self.consumed(&next);
        self.one.has_contexts = true;
        self.core.job(Job::Decode(Decode {
            exchange: self.one.id,
            block,
            setup: Setup {
                options: self.one.receiving.options(),
                base: self.one.receiving.base.clone(),
                schema_context: self.one.receiving.schema_context.clone(),
                framing: Framing::Blocks,
            },
            bytes: next.bytes,
            decoded_len: next.decoded_len,
            first: next.first,
            last: next.last,
        }));
    }

    /// Reserves memory for the decoder, once a block needs one; `false`: wait. The first gets its
    /// memory whatever it takes, so that somebody always goes on.
    pub(crate) fn reserve_decoder(&mut self) -> bool {
        if self.one.decoder_bytes.is_some() || !self.one.receiving.needs_decoder() {
            return true;
        }
        let options = self.one.receiving.options();
        let bytes = match options.is_infoset() {
            true => infoset::MEMORY_BYTES,
            false => options.codec.decoder_bytes(options),
        };
        let taken = self.core.decoder_bytes;
        let key = Key::Decoder(self.one.id);
        if taken > 0 && taken + bytes > self.core.config.codec_bytes {
            if !self.core.timers.is_set(key) {
                self.core.undecoded.push_back(self.one.id);
                let patience = self.now + self.core.config.body_timeout;
                self.core.timers.set(key, Some(patience));
            }
            return false;
        }
        self.core.decoder_bytes += bytes;
        self.one.decoder_bytes = Some(bytes);
        self.core.timers.set(key, None);
        true
    }

    /// A block was decoded.
    pub(crate) fn decoded(
        &mut self,
        block: u64,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        self.one.cpu += cpu;
        self.one.arrival.decoded(cpu);
        if !self.one.receiving.take_work(block) {
            return;
        }
        match result {
            Ok(bytes) => self.body(bytes),
            Err(error) if self.one.receiving.schema_context.is_some() => {
                return match self.ask_text(&error.to_string()) {
                    Ok(()) => {}
                    Err(fault) => self.fault(fault),
                };
            }
            Err(error) => {
                let reason = format!("the peer's block cannot be decoded: {error}");
                return self.fault(Fault::corrupt(reason));
            }
        }
        self.advance();
    }

    /// No memory came free for a decoder, or a body that had been asked for did not come.
    pub(crate) fn patience_ended(&mut self) {
        let waited = self.core.config.body_timeout.as_secs_f64();
        if self.one.receiving.is_awaiting_identity() {
            let what = "a body that cannot be read here did not come as it is in";
            return self.fault(Fault::corrupt(format!("{what} {waited} s")));
        }
        let reason = format!("no codec memory to decode the body within {waited} s; try later");
        let id = self.one.id;
        self.core.undecoded.retain(|other| *other != id);
        self.fault(Fault { kind: FaultKind::Limit, reason });
    }

    /// Tells the peer of a message that is received and decoded.
    fn acknowledge(&mut self) {
        self.note_arrival();
        if self.keep_received() {
            return;
        }
        // However short it came: the next may come as it is.
        let (bytes, number, now) = (self.one.receiving.decoded_bytes, self.one.id.number, self.now);
        let Some(path) = self.path.as_deref_mut() else { return };
        let receipt: Option<Receipt> = self.one.arrival.receipt(now, number, &mut path.short);
        let Some(receipt) = receipt else { return };
        path.longest = bytes.max(path.longest - path.longest / LONGEST_FADES);
        if let Some(mut peer) = self.peer() {
            peer.piggyback(Waiting::Receipt(receipt, now));
        }
    }

    /// How it came, for those that will.
    fn note_arrival(&mut self) {
        let Some((bytes, behind, spread)) = self.one.arrival.came() else { return };
        let Some(path) = self.path.as_deref_mut() else { return };
        path.measured.arriving.saw(behind, spread);
        if self.core.config.asks() {
            let known = Known { core: self.core, path: Some(path), one: self.one };
            let class = known.answer_class();
            self.core.habits.note(class, bytes as f64, UNKNOWN_SHARE);
        }
    }

    /// The message may be kept; `false`: it is not, and its receipt is due.
    fn keep_received(&mut self) -> bool {
        let Some(slot) = self.one.held.incoming.take() else { return false };
        let body = self.one.receiving.take_body();
        let (Some(body), Some(path)) = (body, &self.path) else { return false };
        let whose = Whose::Received(slot, Box::new(self.one.arrival));
        let keep = Keep { path: path.id, exchange: self.one.id, whose, barred: false };
        let Some(job) = self.core.keeps.order(body, keep) else { return false };
        self.core.job(job);
        self.one.arrival.reported();
        self.one.held.kept_in = Some(slot);
        true
    }

    /// On whose behalf the exchange is, as its edge says.
    pub(crate) fn of_principal(&mut self, number: u64) {
        let Some(path) = &self.path else { return };
        // Where all else lasts, a number would be another's after a restart.
        let name = path.names.of.get(&number).copied();
        let known_as = name.or_else(|| (!lasts(path.scope)).then_some(number));
        if self.core.config.answers() {
            let principal = known_as.map(|known_as| Principal { number, known_as });
            self.one.held.principal = principal;
        }
    }

    /// The message may be kept in this slot of the peer's.
    pub(crate) fn may_be_kept(&mut self, slot: u64) {
        if !self.one.receiving.has_body() {
            self.one.receiving.keeps = true;
            self.one.held.incoming = Some(slot);
        }
    }

    /// The body came as it is.
    pub(crate) fn identity(&mut self, bytes: &Bytes) {
        match self.one.receiving.push_identity(bytes) {
            Ok(true) => {
                self.core.timers.set(Key::Decoder(self.one.id), None);
                self.advance();
            }
            Ok(false) => {
                if let Some(mut peer) = self.peer() {
                    peer.ignore("base", "nobody asked for this body");
                }
            }
            Err(fault) => self.fault(fault),
        }
    }

    /// A block came of a message that goes as a delta: its base is found, or its body asked for.
    fn find_base(&mut self) -> Result<(), Fault> {
        let receiving = &mut self.one.receiving;
        if !receiving.options().wants_base() || receiving.is_awaiting_identity() {
            return Ok(());
        }
        let Some(name) = receiving.named_base()? else { return Ok(()) };
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        let message = path.kept.find(name);
        let of_peer = |scope| self.core.dictionaries.find(scope, name);
        let base = message.or_else(|| path.scope.and_then(of_peer));
        let is_dictionary = message.is_none() && base.is_some();
        receiving.base = base.cloned();
        if is_dictionary {
            if let Some(mut peer) = self.peer() {
                peer.note_use(name, false);
            }
        } else if self.one.receiving.base.is_none() {
            self.one.receiving.await_identity();
            self.ask_identity();
            let reason = "its base is not held here: asked for it as it is".to_owned();
            self.core.event(Fact::Ignored { what: "delta".to_owned(), reason });
        }
        Ok(())
    }

    /// Asks for the body as it is.
    fn ask_identity(&mut self) {
        let patience = self.now + self.core.config.body_timeout;
        let exchange = self.one.id;
        self.core.timers.set(Key::Decoder(exchange), Some(patience));
        if let Some(mut peer) = self.peer() {
            peer.send(Keeping::Missing { exchange: exchange.number }.part());
        }
    }

    /// A block came of a message that goes as an infoset: what it takes to read it is found, or its
    /// text asked for.
    fn find_schema_context(&mut self) -> Result<(), Fault> {
        if self.one.receiving.is_awaiting_identity() {
            return Ok(());
        }
        let Some(block) = self.one.receiving.whole_infoset()? else { return Ok(()) };
        let Ok(named) = infoset::schema_of(self.one.receiving.options(), block) else {
            return self.ask_text("it does not say what it was made with");
        };
        let services = &self.core.config.services;
        let any = || services.iter().find_map(|service| service.infoset.as_ref());
        let found = match named {
            // What others sent is for who reads infosets alone.
            Some(name) => any().and_then(|_| find_schema(self.core, name)),
            None => any(),
        };
        let Some(schema_context) = found.cloned() else {
            return self.ask_text(match named {
                Some(_) => "its schema is not held here",
                None => "no service here is set to fidelity 'infoset'",
            });
        };
        self.one.receiving.schema_context = Some(schema_context);
        if let Some(path) = self.path.as_deref_mut() {
            path.adopt_schema(self.one);
        }
        Ok(())
    }

    /// Asks for the text of a message that cannot be read.
    fn ask_text(&mut self, why: &str) -> Result<(), Fault> {
        self.one.receiving.await_identity();
        if self.path.is_none() || !self.one.receiving.is_awaiting_identity() {
            return Err(Fault::corrupt(format!("an infoset that cannot be read: {why}")));
        }
        self.ask_identity();
        if let Some(mut peer) = self.peer() {
            peer.ignore(INFOSET, &format!("{why}: asked for its text"));
        }
        Ok(())
    }
}
