//! The local side's body on its way to the carrier, and the peer's on its way to the local side.

use std::time::Duration;

use bytes::Bytes;
use proto::bhttp;
use proto::stream::{Frame, Role};
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, ExchangeId, Output, Work, WorkDirection};
use crate::config::{INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES};
use crate::exchange::Stage;
use crate::outgoing::{Cut, InWork};
use crate::timers::Key;
use crate::trial::Encoded;

impl Relay {
    pub(crate) fn local_data(&mut self, now: Duration, id: ExchangeId, bytes: &Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.sent_body_bytes += bytes.len() as u64;
        (exchange.moved, exchange.took) = (now, now);
        exchange.outgoing.push(now, bytes);
        self.advance_outgoing(now, id);
    }

    pub(crate) fn local_end(&mut self, now: Duration, id: ExchangeId, trailers: bhttp::Fields) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if let Err(error) = check_trailers(&trailers) {
            let kind = match self.config.role {
                Role::Edge => CauseKind::BadRequest,
                Role::Gateway => CauseKind::OriginFailed,
            };
            let reason = format!("trailers that cannot cross the link: {error}");
            self.refuse(now, id, &Cause { kind, reason });
            return;
        }
        exchange.outgoing.end(trailers);
        self.advance_outgoing(now, id);
    }

    pub(crate) fn local_abort(&mut self, now: Duration, id: ExchangeId, cause: Cause) {
        if !self.exchanges.contains_key(&id) {
            return;
        }
        self.failed(now, id, &cause);
        self.fail_peer(now, id, &cause);
        if self.config.role == Role::Gateway {
            self.note_abort(id);
        }
        self.forget(id);
    }

    pub(crate) fn local_credit(&mut self, now: Duration, id: ExchangeId, bytes: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.add_local_credit(bytes);
        exchange.took = now;
        if exchange.stage == Stage::Detached && exchange.traits.tunnel {
            // It is not kept for an edge that comes back: its reader has all the time it reads in.
            self.timers.set(Key::Exchange(id), Some(now + self.config.retain));
        }
        self.advance_incoming(now, id);
    }

    /// Tells the local side how much more body it may hand over, unless the body has to wait.
    pub(crate) fn grant_local(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let attached = exchange.carrier().is_some() || self.config.role == Role::Gateway;
        if !attached || exchange.traits.expects_continue && self.config.role == Role::Edge {
            return;
        }
        if let Some(bytes) = exchange.outgoing.grant() {
            self.outputs.push_back(Output::Credit { exchange: id, bytes });
        }
    }

    /// Cuts blocks, chooses the codec with the first, orders work, queues what is ready.
    pub(crate) fn advance_outgoing(&mut self, now: Duration, id: ExchangeId) {
        loop {
            let Some(exchange) = self.exchanges.get_mut(&id) else { return };
            if exchange.stage == Stage::Waiting {
                // What the peer can decode is not known: the choice waits for the carrier.
                break;
            }
            if exchange.outgoing.options.is_none() {
                let can_wait = !exchange.traits.tunnel && !exchange.traits.expects_continue;
                let due = exchange.outgoing.head_is_due(now) || !can_wait;
                if exchange.outgoing.can_cut(now) || (due && exchange.outgoing.has_head()) {
                    self.choose(now, id);
                    continue;
                }
                break;
            }
            let Some(cut) = exchange.outgoing.cut(now) else { break };
            self.encode(now, id, cut);
        }
        self.release_contexts(id);
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let wake_at = exchange.outgoing.wake_at().filter(|_| exchange.stage != Stage::Waiting);
        self.timers.set(Key::Block(id), wake_at);
        self.grant_local(id);
        self.offer(id);
    }

    /// Orders a block's encoding, or passes it on as it is.
    fn encode(&mut self, now: Duration, id: ExchangeId, cut: Cut) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = &mut exchange.choice else { return };
        let outgoing = &mut exchange.outgoing;
        let (is_first, decoded_len) = (choice.begins_half(), cut.bytes.len());
        let plain = cut.bytes.clone();
        if is_first && cut.end {
            exchange.held.note_body(&plain);
        }
        if choice.options.codec == 0 || outgoing.uncoded || decoded_len == 0 {
            choice.plain_bytes += decoded_len as u64;
            choice.coded_bytes += decoded_len as u64;
            outgoing.push_block(cut.bytes, decoded_len, false, cut.end);
            self.look(now, id, &plain, None);
        } else {
            self.order(now, id, cut.bytes, cut.end, cut.last);
        }
        if is_first {
            self.shadow(id, &plain);
        }
    }

    /// Orders a block's encoding.
    pub(crate) fn order(
        &mut self,
        now: Duration,
        id: ExchangeId,
        plain: Bytes,
        end: bool,
        last: bool,
    ) {
        let vocabulary = self.exchanges.get(&id).and_then(|one| self.vocabulary(one)).cloned();
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(choice) = &mut exchange.choice else { return };
        let block = exchange.outgoing.begin_work(now, plain.clone(), end, last);
        exchange.has_contexts = true;
        let vocabulary = vocabulary.filter(|_| choice.options.is_infoset());
        let base = exchange.held.base_of(choice.options);
        self.outputs.push_back(Output::Work(Work {
            exchange: id,
            direction: WorkDirection::Encode,
            block,
            options: choice.options,
            decoded_len: plain.len(),
            bytes: plain,
            first: choice.begins(),
            last,
            base,
            vocabulary,
        }));
    }

    pub(crate) fn work_done(
        &mut self,
        now: Duration,
        id: ExchangeId,
        (direction, block): (WorkDirection, u64),
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        match direction {
            WorkDirection::Encode => self.encoded(now, id, block, result, cpu),
            WorkDirection::Decode => self.decoded(now, id, block, result, cpu),
            WorkDirection::Shadow => self.shadow_done(id, result, cpu),
            WorkDirection::Keep => self.keep_done(now, block, result),
            WorkDirection::Distil => self.distil_done(now, block, result),
            WorkDirection::Unpack => self.unpack_done(now, block, result),
            WorkDirection::Compile => self.compile_done(now, block, result),
        }
    }

    fn encoded(
        &mut self,
        now: Duration,
        id: ExchangeId,
        block: u64,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.codec += cpu;
        let Some(work) = exchange.outgoing.take_work(block) else { return };
        let InWork { plain, ordered, end, last, .. } = work;
        let waited = self.waits.note(now, ordered, cpu);
        match self.faithful(id, &plain, result) {
            Ok((coded, text)) => {
                self.settle_block(now, id, Encoded { plain, coded, text, end, last, cpu, waited });
            }
            Err(error) => {
                let reason = format!("this side's encoder failed: {error}");
                self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
                return;
            }
        }
        self.advance_outgoing(now, id);
    }

    /// Gives back the memory of contexts that have nothing left to do. They go together.
    fn release_contexts(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if exchange.has_contexts && exchange.outgoing.is_encoded() && exchange.incoming.is_decoded()
        {
            exchange.has_contexts = false;
            self.encoder_bytes -= std::mem::take(&mut exchange.encoder_bytes);
            self.decoder_bytes -= exchange.decoder_bytes.as_mut().map_or(0, std::mem::take);
            self.outputs.push_back(Output::Release { exchange: id });
        }
    }

    fn decoded(
        &mut self,
        now: Duration,
        id: ExchangeId,
        block: u64,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.note_decoded(cpu);
        if !exchange.incoming.working || block + 1 != exchange.incoming.next_block {
            return;
        }
        exchange.incoming.working = false;
        match result {
            Ok(bytes) => exchange.incoming.push_decoded(bytes),
            Err(error) if exchange.incoming.vocabulary.is_some() => {
                let asked = self.ask_text(now, id, &error.to_string());
                return asked.unwrap_or_else(|cause| self.refuse(now, id, &cause));
            }
            Err(error) => {
                let reason = format!("the peer's block cannot be decoded: {error}");
                self.refuse(now, id, &Cause { kind: CauseKind::Corrupt, reason });
                return;
            }
        }
        self.advance_incoming(now, id);
    }

    /// Decodes, delivers, gives the peer credit, and ends the half when all is delivered.
    pub(crate) fn advance_incoming(&mut self, now: Duration, id: ExchangeId) {
        self.deliver(id);
        if !self.reserve_decoder(id) {
            if !self.timers.is_set(Key::Decoder(id)) {
                self.undecoded.push_back(id);
                self.timers.set(Key::Decoder(id), Some(now + self.config.body_timeout));
            }
        } else {
            self.decode_next(id);
        }
        self.release_contexts(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let waits = exchange.incoming.waits();
        exchange.arrival.waits(now, waits);
        self.acknowledge(now, id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let wants_credit = exchange.incoming.wants_credit();
        let target = if wants_credit { self.credit_target(id) } else { 0 };
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let credit = wants_credit.then(|| exchange.incoming.credit_due(target)).flatten();
        let trailers = exchange.incoming.take_end();
        let told = exchange.incoming.ended_with_head;
        let carrier = exchange.carrier();
        if let (Some(carrier), Some(bytes)) = (carrier, credit) {
            self.send(now, carrier, Frame::Credit(id.number, bytes));
        }
        if let Some(trailers) = trailers {
            if !told {
                self.outputs.push_back(Output::End { exchange: id, trailers });
            }
            self.settle_if_done(now, id);
        }
    }

    /// Gives the local side what is decoded or needs no decoder, within its credit.
    fn deliver(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        loop {
            while let Some(bytes) = exchange.incoming.deliver() {
                exchange.meter.received_body_bytes += bytes.len() as u64;
                self.outputs.push_back(Output::Data { exchange: id, bytes });
            }
            exchange.incoming.pass_uncoded();
            if !exchange.incoming.can_deliver() {
                return;
            }
        }
    }

    /// Orders the decoding of the next block.
    fn decode_next(&mut self, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(block) = exchange.incoming.next_work() else { return };
        let number = exchange.incoming.next_block;
        exchange.incoming.next_block += 1;
        exchange.has_contexts = true;
        self.outputs.push_back(Output::Work(Work {
            exchange: id,
            direction: WorkDirection::Decode,
            block: number,
            options: exchange.incoming.options,
            bytes: block.bytes,
            decoded_len: block.decoded_len,
            first: block.first,
            last: block.last,
            base: exchange.incoming.base.clone(),
            vocabulary: exchange.incoming.vocabulary.clone(),
        }));
    }

    /// Reserves memory for an exchange's decoder, once a block needs one; `false`: wait. The first
    /// gets its memory whatever it takes, so that somebody always goes on.
    pub(crate) fn reserve_decoder(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return true };
        if exchange.decoder_bytes.is_some() || !exchange.incoming.needs_decoder() {
            return true;
        }
        let options = exchange.incoming.options;
        let bytes = match options.is_infoset() {
            true => codec::infoset::MEMORY_BYTES,
            false => options.codec().map_or(0, |codec| codec.decoder_bytes(options)),
        };
        if self.decoder_bytes > 0 && self.decoder_bytes + bytes > self.config.codec_bytes {
            return false;
        }
        self.decoder_bytes += bytes;
        exchange.decoder_bytes = Some(bytes);
        self.timers.set(Key::Decoder(id), None);
        true
    }

    /// An exchange's share of the memory for bodies from the peer, of what the others left of it.
    pub(crate) fn credit_target(&self, id: ExchangeId) -> u64 {
        // Beyond what each has from its beginning; tunnels and event streams seldom want more.
        let sharing = self.shares.passing().max(1) as u64;
        let share = self.config.receive_bytes / sharing;
        let others = self.exchanges.values().filter(|exchange| exchange.id != id);
        let beyond = |window: u64| window.saturating_sub(INITIAL_CREDIT_BYTES);
        let taken = others.map(|exchange| beyond(exchange.incoming.window())).sum();
        let left = self.config.receive_bytes.saturating_sub(taken);
        share.min(left).clamp(INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES)
    }

    /// No memory came free for a decoder.
    pub(crate) fn decoder_patience_ended(&mut self, now: Duration, id: ExchangeId) {
        if self.exchanges.get(&id).is_some_and(|exchange| exchange.incoming.is_awaiting_plain()) {
            return self.plain_patience_ended(now, id);
        }
        let waited = self.config.body_timeout.as_secs_f64();
        let reason = format!("no codec memory to decode the body within {waited} s; try later");
        self.undecoded.retain(|other| *other != id);
        self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
    }

    /// Ends an exchange when both halves are through.
    pub(crate) fn settle_if_done(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (sent, got) = (exchange.outgoing.finished, exchange.incoming.finished);
        let early = match self.config.role {
            // An origin that has answered with success may take the rest of the request still.
            Role::Gateway => {
                sent && !exchange.incoming.has_ended()
                    && !exchange.traits.tunnel
                    && exchange.status >= 300
            }
            Role::Edge => false,
        };
        if early {
            let reason = "the answer is whole".to_owned();
            let cause = Cause { kind: CauseKind::AnsweredEarly, reason };
            self.fail_peer(now, id, &cause);
            self.outputs.push_back(Output::Abort { exchange: id, cause, untouched: false });
        } else if !(sent && got) {
            return;
        }
        self.finish(now, id);
    }

    fn finish(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (status, started, carried) = (exchange.status, exchange.started, exchange.carried());
        if self.config.role == Role::Gateway {
            let mut log = std::mem::take(&mut exchange.log);
            if let Some(body) = exchange.held.delta().cloned() {
                // Should it have to be sent again, then by another carrier, without the base.
                exchange.outgoing.anew(body);
                log = exchange.outgoing.as_log(id.number);
            }
            self.note_answer(id, status, log);
        }
        let elapsed_s = now.saturating_sub(started).as_secs_f64();
        let exchange = id.to_string();
        self.event(now, Fact::Finished { exchange, status, elapsed_s, carried });
        self.forget(id);
    }
}

/// The peer reads trailers with the frame: what it cannot read would cost everybody the carrier.
fn check_trailers(trailers: &bhttp::Fields) -> Result<(), proto::Error> {
    if trailers.is_empty() {
        return Ok(());
    }
    let mut encoded = Vec::new();
    bhttp::encode_fields(trailers, &mut encoded);
    bhttp::decode_fields(&encoded).map(drop)
}
