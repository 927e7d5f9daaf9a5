//! The local side's body on its way to the carrier, and the peer's on its way to the local side.

use std::time::Duration;

use bytes::Bytes;
use proto::bhttp;
use proto::stream::{Frame, Role};
use record::decision::Direction;
use record::event::Fact;

use crate::Relay;
use crate::api::{Cause, CauseKind, ExchangeId, Output, Work, WorkDirection};
use crate::config::{INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES};
use crate::exchange::Exchange;
use crate::outgoing::Cut;
use crate::timers::Key;

impl Relay {
    pub(crate) fn local_data(&mut self, now: Duration, id: ExchangeId, bytes: &Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.sent_body_bytes += bytes.len() as u64;
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
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let started = exchange.started;
        self.failed(now, started, id, &cause);
        self.fail_peer(now, id, &cause);
        if self.config.role == Role::Gateway {
            self.note_abort(id);
        }
        self.forget(id);
    }

    pub(crate) fn local_credit(&mut self, now: Duration, id: ExchangeId, bytes: u64) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.incoming.add_local_credit(bytes);
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
            self.encode(id, cut);
        }
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let wake_at = exchange.outgoing.wake_at();
        self.timers.set(Key::Block(id), wake_at);
        self.grant_local(id);
        self.offer(id);
    }

    /// Chooses the outgoing half's codec by what is at hand, within the budget of codec memory.
    fn choose(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let (first_block_bytes, whole) = exchange.outgoing.at_hand();
        let at_hand = whole.then_some(first_block_bytes as u64);
        let body_bytes = at_hand.or(exchange.content_length);
        let facts = decide::Facts {
            content_type: exchange.content_type.as_deref(),
            coded: exchange.coded,
            tunnel: exchange.traits.tunnel,
            first_block_bytes,
            body_bytes,
        };
        let (mut options, choice) = self.config.encoding.choose(&facts);
        let mut reason = choice.reason;
        if body_bytes == Some(0) {
            (options, reason) = (codec::Options::IDENTITY, "no body");
        }
        let carrier = exchange.carrier();
        if !carrier.and_then(|id| self.carriers.get(&id)).is_none_or(|c| c.can_decode(options)) {
            (options, reason) = (codec::Options::IDENTITY, "the peer cannot decode it");
        }
        let (options, bytes) = self.within_budget(now, options, body_bytes);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.encoder_bytes += bytes;
        self.encoder_bytes += bytes;
        exchange.outgoing.options = Some(options);
        // Without a block there is nothing to try: the head goes now, later blocks may go uncoded.
        exchange.outgoing.trial = choice.trial && options.codec != 0;
        if options.codec == 0 || !choice.trial || first_block_bytes == 0 {
            exchange.outgoing.settle(options);
        }
        if options.codec == 0 || !choice.trial {
            self.chosen(now, id, options, reason);
        }
    }

    /// The same codec with a window that fits the memory left, or identity.
    fn within_budget(
        &mut self,
        now: Duration,
        options: codec::Options,
        body_bytes: Option<u64>,
    ) -> (codec::Options, usize) {
        let Ok(codec) = options.codec() else { return (codec::Options::IDENTITY, 0) };
        if options.codec == 0 {
            return (options, 0);
        }
        let left = self.config.codec_bytes.saturating_sub(self.encoder_bytes);
        let most = (codec::MIN_WINDOW_LOG..options.window_log)
            .find(|log| body_bytes.is_some_and(|bytes| bytes <= 1 << log))
            .unwrap_or(options.window_log);
        for window_log in (codec::MIN_WINDOW_LOG..=most).rev() {
            let options = codec::Options { window_log, ..options };
            let bytes = codec.encoder_bytes(options);
            // A single body may take a quarter of what is left, so that others find room.
            if bytes <= left / 4 {
                return (options, bytes);
            }
        }
        let (limit, consequence) = ("codec memory".to_owned(), "body goes uncoded".to_owned());
        self.event(now, Fact::LimitReached { limit, consequence });
        (codec::Options::IDENTITY, 0)
    }

    fn chosen(&mut self, now: Duration, id: ExchangeId, options: codec::Options, reason: &str) {
        let (encoding, reason) = (options.label(), reason.to_owned());
        let direction = match self.config.role {
            Role::Edge => Direction::Request,
            Role::Gateway => Direction::Response,
        };
        let exchange = id.to_string();
        self.event(now, Fact::Chosen { exchange, direction, encoding, reason, decision: None });
    }

    /// Orders a block's encoding, or passes it on as it is.
    fn encode(&mut self, id: ExchangeId, cut: Cut) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let outgoing = &mut exchange.outgoing;
        let options = outgoing.options.unwrap_or(codec::Options::IDENTITY);
        let decoded_len = cut.bytes.len();
        if options.codec == 0 || outgoing.uncoded || decoded_len == 0 {
            outgoing.push_block(cut.bytes, decoded_len, false, cut.end);
            return;
        }
        let block = outgoing.begin_work(cut.bytes.clone(), cut.end);
        exchange.has_contexts = true;
        self.outputs.push_back(Output::Work(Work {
            exchange: id,
            direction: WorkDirection::Encode,
            block,
            options,
            bytes: cut.bytes,
            decoded_len,
            last: cut.last,
        }));
    }

    pub(crate) fn work_done(
        &mut self,
        now: Duration,
        id: ExchangeId,
        direction: WorkDirection,
        block: u64,
        result: Result<Bytes, codec::Error>,
        cpu: Duration,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.meter.codec += cpu;
        match direction {
            WorkDirection::Encode => self.encoded(now, id, block, result),
            WorkDirection::Decode => self.decoded(now, id, block, result),
        }
    }

    fn encoded(
        &mut self,
        now: Duration,
        id: ExchangeId,
        block: u64,
        result: Result<Bytes, codec::Error>,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let outgoing = &mut exchange.outgoing;
        let Some((plain, end)) = outgoing.take_work(block) else { return };
        let coded = match result {
            Ok(coded) => coded,
            Err(error) => {
                let reason = format!("this side's encoder failed: {error}");
                self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
                return;
            }
        };
        let mut chosen = None;
        let mut keep = true;
        if outgoing.trial {
            outgoing.trial = false;
            keep = self.config.encoding.observe(plain.len(), coded.len());
            let options = outgoing.options.unwrap_or(codec::Options::IDENTITY);
            if keep || outgoing.is_settled() {
                chosen = Some((options, if keep { "compresses" } else { "does not compress" }));
            } else {
                chosen = Some((codec::Options::IDENTITY, "does not compress"));
            }
        }
        if keep {
            let options = outgoing.options.unwrap_or(codec::Options::IDENTITY);
            outgoing.settle(options);
            outgoing.push_block(coded, plain.len(), true, end);
        } else {
            if !outgoing.is_settled() {
                outgoing.settle(codec::Options::IDENTITY);
            }
            outgoing.uncoded = true;
            let plain_len = plain.len();
            outgoing.push_block(plain, plain_len, false, end);
        }
        self.release_contexts(id);
        if let Some((options, reason)) = chosen {
            self.chosen(now, id, options, reason);
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
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        if !exchange.incoming.working || block + 1 != exchange.incoming.next_block {
            return;
        }
        exchange.incoming.working = false;
        match result {
            Ok(bytes) => exchange.incoming.push_decoded(bytes),
            Err(error) => {
                let reason = format!("the peer's block cannot be decoded: {error}");
                self.refuse(now, id, &Cause { kind: CauseKind::Corrupt, reason });
                return;
            }
        }
        self.release_contexts(id);
        self.advance_incoming(now, id);
    }

    /// Decodes, delivers, gives the peer credit, and ends the half when all is delivered.
    pub(crate) fn advance_incoming(&mut self, now: Duration, id: ExchangeId) {
        if !self.reserve_decoder(id) {
            if !self.timers.is_set(Key::Decoder(id)) {
                self.undecoded.push_back(id);
                self.timers.set(Key::Decoder(id), Some(now + self.config.connect_timeout));
            }
            return;
        }
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        loop {
            while let Some(bytes) = exchange.incoming.deliver() {
                exchange.meter.received_body_bytes += bytes.len() as u64;
                self.outputs.push_back(Output::Data { exchange: id, bytes });
            }
            if let Some(block) = exchange.incoming.next_work() {
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
                    last: block.last,
                }));
                break;
            }
            if !exchange.incoming.can_deliver() {
                break;
            }
        }
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

    /// Reserves memory for an exchange's decoder, once a block needs one; `false`: wait. The first
    /// gets its memory whatever it takes, so that somebody always goes on.
    pub(crate) fn reserve_decoder(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return true };
        if exchange.decoder_bytes.is_some() || !exchange.incoming.needs_decoder() {
            return true;
        }
        let options = exchange.incoming.options;
        let bytes = options.codec().map_or(0, |codec| codec.decoder_bytes(options));
        if self.decoder_bytes > 0 && self.decoder_bytes + bytes > self.config.codec_bytes {
            return false;
        }
        self.decoder_bytes += bytes;
        exchange.decoder_bytes = Some(bytes);
        self.timers.set(Key::Decoder(id), None);
        true
    }

    /// An exchange's share of the memory for bodies from the peer, of what the others left of it.
    fn credit_target(&self, id: ExchangeId) -> u64 {
        let share = self.config.receive_bytes / (self.exchanges.len().max(1) as u64);
        let others = self.exchanges.values().filter(|exchange| exchange.id != id);
        let taken = others.map(|exchange| exchange.incoming.window()).sum();
        let left = self.config.receive_bytes.saturating_sub(taken);
        share.min(left).clamp(INITIAL_CREDIT_BYTES, MAX_CREDIT_BYTES)
    }

    /// No memory came free for a decoder.
    pub(crate) fn decoder_patience_ended(&mut self, now: Duration, id: ExchangeId) {
        let waited = self.config.connect_timeout.as_secs_f64();
        let reason = format!("no codec memory to decode the body within {waited} s; try later");
        self.undecoded.retain(|other| *other != id);
        self.refuse(now, id, &Cause { kind: CauseKind::Limit, reason });
    }

    /// Ends an exchange when both halves are through.
    pub(crate) fn settle_if_done(&mut self, now: Duration, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (sent, got) = (exchange.outgoing.finished, exchange.incoming.finished);
        let early = match self.config.role {
            Role::Gateway => sent && !exchange.incoming.has_ended() && !exchange.traits.tunnel,
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
        let Exchange { meter, status, started, .. } = *exchange;
        let log = std::mem::take(&mut exchange.log);
        if self.config.role == Role::Gateway {
            self.note_answer(id, status, log);
        }
        self.event(
            now,
            Fact::Finished {
                exchange: id.to_string(),
                status,
                elapsed_s: now.saturating_sub(started).as_secs_f64(),
                sent_body_bytes: meter.sent_body_bytes,
                sent_wire_bytes: meter.sent_wire_bytes,
                received_body_bytes: meter.received_body_bytes,
                received_wire_bytes: meter.received_wire_bytes,
                codec_s: meter.codec.as_secs_f64(),
            },
        );
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
