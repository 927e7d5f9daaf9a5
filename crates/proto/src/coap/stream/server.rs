//! Requests of the peer, the answers to them, and what it observes.

use super::messages::{Messages, Timer};
use super::settings::*;
use super::wire;
use crate::coap::machine::UNDERSTOOD;
use crate::coap::{Block, Code, Content, Message, Token, option};

/// Where Observe's 24 bits wrap (RFC 7641 §4.4).
const SEQUENCES: u32 = 1 << 24;

/// A request of the peer that is not answered yet.
#[derive(Debug)]
pub(super) struct Exchange {
    token: Token,
    /// Whether it asks to observe.
    observes: bool,
    no_response: u32,
}

impl Exchange {
    /// Whether an answer with this code is not wanted (RFC 7967 §2.1).
    fn suppresses(&self, code: Code) -> bool {
        let bit = match code.class() {
            2 => option::NO_SUCCESS,
            4 => option::NO_CLIENT_ERROR,
            _ => option::NO_SERVER_ERROR,
        };
        self.no_response & bit != 0
    }
}

/// What the peer observes.
#[derive(Debug)]
pub(super) struct Observation {
    token: Token,
    /// Of the notification before. The order is the transport's (RFC 8323 §7); clients that count
    /// all the same find that the numbers grow.
    sequence: u32,
}

/// Whether it is about a further block of a body, of what was asked before.
fn is_continuing(message: &Message<'_>) -> bool {
    let block = |number| message.options.first(number).map(|value| Block::decode(value, true));
    let is_further = |block: &Result<Block, _>| block.as_ref().is_ok_and(|block| block.num > 0);
    [option::BLOCK1, option::BLOCK2].into_iter().filter_map(block).any(|block| is_further(&block))
}

impl Messages {
    pub(super) fn requested(&mut self, message: &Message<'_>) {
        let options = message.options;
        let exchange = Exchange {
            token: message.token,
            observes: options.uint(option::OBSERVE) == Some(0),
            no_response: options.uint(option::NO_RESPONSE).unwrap_or(0),
        };
        match self.check(message) {
            Ok(content) => self.open(exchange, content),
            Err(answer) if exchange.suppresses(answer.code) => {}
            Err(answer) => self.answer(exchange.token, &answer),
        }
    }

    /// The request, if the application is to see it; else what to answer.
    fn check(&mut self, message: &Message<'_>) -> Result<Content, Content> {
        if let Some(number) = option::find_bad_critical(message.options, &UNDERSTOOD) {
            self.counts.unsupported += 1;
            let answer = Content::new(Code::BAD_OPTION);
            return Err(answer.with_payload(format!("option {number}")));
        }
        // RFC 7252 §5.8.
        if message.code > Code::IPATCH {
            self.counts.unsupported += 1;
            return Err(Content::new(Code::METHOD_NOT_ALLOWED));
        }
        let is_late = self.progress.has_released && !is_continuing(message);
        if self.exchanges.len() >= MAX_EXCHANGES || is_late {
            self.counts.refused += 1;
            let answer = Content::new(Code::SERVICE_UNAVAILABLE);
            return Err(answer.with_uint(option::MAX_AGE, RETRY_AFTER_S));
        }
        Content::of(message).map_err(|_| {
            self.counts.malformed += 1;
            Content::new(Code::BAD_REQUEST)
        })
    }

    fn open(&mut self, exchange: Exchange, content: Content) {
        self.last_exchange += 1;
        let number = self.last_exchange;
        // RFC 7641 §3.6: a request with its token and Observe 1 ends an observation.
        if content.uint(option::OBSERVE) == Some(1)
            && let Some(observed) = self.observed_with(exchange.token)
        {
            self.end_observation(observed);
        }
        self.timers.set(Timer::Expire(number), Some(self.now + MAX_EXCHANGE_TIME));
        self.exchanges.insert(number, exchange);
        self.outputs.push_back(Output::Request { exchange: number, content });
    }

    /// The observation that has this token, of the few that there are.
    fn observed_with(&self, token: Token) -> Option<u64> {
        let mut with = self.observations.iter().filter(|(_, it)| it.token == token);
        with.next().map(|(number, _)| *number)
    }

    pub(super) fn respond(&mut self, number: u64, mut content: Content) {
        let exchange = match self.exchanges.remove(&number) {
            Some(exchange) if content.code.is_response() => exchange,
            other => {
                self.exchanges.extend(other.map(|exchange| (number, exchange)));
                self.counts.misused += 1;
                return;
            }
        };
        self.timers.set(Timer::Expire(number), None);
        let is_success = content.code.is_success();
        let is_observed =
            exchange.observes && is_success && content.first(option::OBSERVE).is_some();
        content.remove(option::OBSERVE);
        if exchange.suppresses(content.code) && !is_observed {
            return;
        }
        if is_observed {
            match self.observe(number, exchange.token) {
                Some(sequence) => content.push_uint(option::OBSERVE, sequence),
                None => self.outputs.push_back(Output::Ended { exchange: number }),
            }
        }
        self.answer(exchange.token, &content);
    }

    /// Sends a response; where the peer takes none so long, what says so.
    fn answer(&mut self, token: Token, content: &Content) {
        if self.send(token, content).is_err() {
            self.counts.refused += 1;
            let bytes = wire::bare(self.framing, token, Code::INTERNAL_SERVER_ERROR);
            self.transmit(bytes);
        }
    }

    /// Notes that the peer observes from now on: the number of the first notification, if there is
    /// room (RFC 7641 §4.1).
    fn observe(&mut self, number: u64, token: Token) -> Option<u32> {
        // RFC 7641 §4.1: with the same token it is the same observation, renewed.
        let before = self.observed_with(token);
        let last = before.and_then(|before| self.observations.get(&before)).map(|it| it.sequence);
        if let Some(before) = before {
            self.end_observation(before);
        }
        if self.observations.len() >= MAX_OBSERVATIONS {
            return None;
        }
        let sequence = last.map_or(0, |last| (last + 1) % SEQUENCES);
        self.observations.insert(number, Observation { token, sequence });
        Some(sequence)
    }

    /// Whether there may be notifications to what asked with this number.
    pub(super) fn is_observed(&self, number: u64) -> bool {
        self.observations.contains_key(&number)
    }

    pub(super) fn notify(&mut self, number: u64, mut content: Content) {
        let observation = self.observations.get_mut(&number);
        let Some(observation) = observation.filter(|_| content.code.is_response()) else {
            self.counts.misused += 1;
            return;
        };
        observation.sequence = (observation.sequence + 1) % SEQUENCES;
        let (token, sequence) = (observation.token, observation.sequence);
        content.remove(option::OBSERVE);
        // RFC 7641 §4.2: one that is no success has no Observe, and ends it.
        match content.code.is_success() {
            true => content.push_uint(option::OBSERVE, sequence),
            false => self.end_observation(number),
        }
        self.answer(token, &content);
    }

    /// The peer observes no more, if it did.
    fn end_observation(&mut self, number: u64) {
        if self.observations.remove(&number).is_some() {
            self.outputs.push_back(Output::Ended { exchange: number });
        }
    }
}
