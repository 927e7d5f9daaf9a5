//! What leaves and when: one outstanding message to a peer, and its transmissions.

use std::time::Duration;

use bytes::Bytes;

use super::peers::{Flight, Purpose};
use super::round_trip::RoundTrip;
use super::settings::*;
use super::{Endpoint, Timer};
use crate::coap::chance::For;
use crate::coap::{Code, Content, Kind, Token};

/// What the shell says of the link that all peers are behind.
#[derive(Debug)]
pub(super) struct Link {
    rate_bps: Option<u64>,
    /// When all that was given to it has left.
    free_at: Duration,
}

impl Link {
    pub(super) fn new(rate_bps: Option<u64>) -> Self {
        Self { rate_bps, free_at: Duration::ZERO }
    }

    pub(super) fn set_rate(&mut self, rate_bps: Option<u64>) {
        self.rate_bps = rate_bps;
    }

    /// When all that was given to it has left.
    pub(super) fn free_at(&self) -> Duration {
        self.free_at
    }

    /// How long so many bytes take, with what is around them.
    pub(super) fn takes(&self, bytes: usize) -> Duration {
        let bits = (bytes + AROUND_DATAGRAM_BYTES) as f64 * 8.0;
        let rate = self.rate_bps.filter(|rate| *rate > 0);
        let takes = rate.map(|rate| Duration::try_from_secs_f64(bits / rate as f64));
        takes.and_then(Result::ok).unwrap_or_default()
    }

    /// When a datagram that is given to it now has left.
    pub(super) fn leaves_at(&mut self, now: Duration, bytes: usize) -> Duration {
        let free_at = self.free_at.max(now) + self.takes(bytes);
        self.free_at = free_at.min(now + MAX_BACKLOG);
        self.free_at
    }
}

impl<P: Address> Endpoint<P> {
    /// Queues a message that takes the slot.
    pub(super) fn enqueue(&mut self, peer: P, purpose: Purpose) {
        if let Some(place) = self.common.peers.get_mut(peer)
            && !place.queue.contains(&purpose)
        {
            place.queue.push_back(purpose);
        }
        self.pump(peer);
    }

    /// What is to be sent for a purpose, unless it is gone: token, content, whether it is repeated.
    fn wanted(&mut self, purpose: Purpose) -> Option<(Token, Content, bool)> {
        match purpose {
            Purpose::Request(request) => {
                let call = self.calls.get(&request)?;
                Some((call.token, call.content.clone(), call.is_confirmable))
            }
            Purpose::Ping(request) => {
                self.calls.get(&request)?;
                Some((Token::EMPTY, Content::new(Code::EMPTY), true))
            }
            Purpose::Response(exchange) => {
                let exchange = self.exchanges.get(&exchange)?;
                Some((exchange.token, exchange.answer.clone()?, true))
            }
            Purpose::Notification(exchange) => {
                let observation = self.observations.get_mut(&exchange)?;
                Some((observation.token, observation.take()?, true))
            }
        }
    }

    /// Sends the next message to the peer if its slot is free.
    pub(super) fn pump(&mut self, peer: P) {
        while let Some(place) = self.common.peers.get_mut(peer) {
            if place.flight.is_some() {
                return;
            }
            let Some(purpose) = place.queue.pop_front() else { return };
            let mid = match place.mids.next_in_turn(self.common.now) {
                Ok(mid) => mid,
                Err(free_at) => {
                    place.queue.push_front(purpose);
                    self.common.timers.set(Timer::Queue(peer), Some(free_at));
                    return;
                }
            };
            let Some((token, content, is_repeated)) = self.wanted(purpose) else { continue };
            let kind = if is_repeated { Kind::Confirmable } else { Kind::NonConfirmable };
            match content.encode(kind, mid, token) {
                Ok(bytes) => self.launch(peer, purpose, mid, bytes, is_repeated),
                Err(_) => self.undeliverable(purpose, Reason::Misuse),
            }
        }
    }

    fn launch(&mut self, peer: P, purpose: Purpose, mid: u16, bytes: Bytes, is_repeated: bool) {
        let left_at = self.common.transmit(peer, bytes.clone());
        let answer_takes = self.common.link.takes(MAX_ANSWER_BYTES);
        let Some(place) = self.common.peers.get_mut(peer) else { return };
        let base = place.round_trip.timeout(self.common.now) + answer_takes;
        // RFC 7252 §4.8: ACK_RANDOM_FACTOR is 1.5.
        let timeout = self.common.chance.between(base, base.mul_f64(1.5));
        // RFC 7252 §4.7: to who may not be there no more than PROBING_RATE.
        let probing = Duration::from_secs_f64(bytes.len() as f64 / PROBING_RATE);
        let wait = if is_repeated { timeout } else { timeout.max(probing) };
        place.flight =
            Some(Flight { purpose, mid, bytes, is_repeated, left_at, tries: 0, timeout });
        self.common.timers.set(Timer::Flight(peer), Some(left_at + wait));
        if let Purpose::Request(request) = purpose {
            self.launched(request, mid, left_at);
        }
    }

    /// The outstanding message was not acknowledged in time.
    pub(super) fn overdue(&mut self, peer: P) {
        let Some(place) = self.common.peers.get_mut(peer) else { return };
        let Some(mut flight) = place.flight.take() else { return };
        if !flight.is_repeated {
            return self.pump(peer);
        }
        let timeout = RoundTrip::backed_off(flight.timeout);
        let span = self.common.now.saturating_sub(flight.left_at);
        if flight.tries >= MAX_RETRANSMIT || span > MAX_TRANSMIT_SPAN {
            self.undeliverable(flight.purpose, Reason::TimedOut);
            return self.pump(peer);
        }
        // RFC 7641 §4.5.2: what is observed has changed, so the new state goes in its place.
        if let Purpose::Notification(exchange) = flight.purpose
            && let Ok(mid) = place.mids.next(self.common.now)
            && let Some(observation) = self.observations.get_mut(&exchange)
            && let Some(content) = observation.take()
            && let Ok(bytes) = content.encode(Kind::Confirmable, mid, observation.token)
        {
            (flight.mid, flight.bytes) = (mid, bytes);
        }
        self.common.counts.retransmitted += 1;
        let left_at = self.common.transmit(peer, flight.bytes.clone());
        (flight.tries, flight.timeout) = (flight.tries + 1, timeout);
        if let Some(place) = self.common.peers.get_mut(peer) {
            place.flight = Some(flight);
            self.common.timers.set(Timer::Flight(peer), Some(left_at + timeout));
        }
    }

    /// An empty acknowledgement.
    pub(super) fn acknowledged(&mut self, peer: P, mid: u16) {
        let flight = self.common.peers.get(peer).and_then(|place| place.flight.as_ref());
        if !flight.is_some_and(|flight| flight.mid == mid && flight.is_repeated) {
            self.common.counts.unmatched += 1;
            return;
        }
        let Some(flight) = self.common.land(peer) else { return };
        self.common.measure(peer, &flight, 4);
        match flight.purpose {
            Purpose::Request(request) => self.delivered(request),
            Purpose::Response(exchange) => drop(self.close(exchange)),
            Purpose::Notification(exchange) => self.confirmed(exchange),
            // RFC 7252 §4.3 asks for a reset; this says as well that somebody is there.
            Purpose::Ping(request) => self.finish(request, Output::Alive { request }),
        }
        self.pump(peer);
    }

    /// A reset.
    pub(super) fn was_reset(&mut self, peer: P, mid: u16) {
        let flight = self.common.peers.get(peer).and_then(|place| place.flight.as_ref());
        if flight.is_none_or(|flight| flight.mid != mid) {
            return self.unconfirmed_was_reset(peer, mid);
        }
        let Some(flight) = self.common.land(peer) else { return };
        self.common.measure(peer, &flight, 4);
        match flight.purpose {
            Purpose::Ping(request) => self.finish(request, Output::Alive { request }),
            purpose => self.undeliverable(purpose, Reason::Reset),
        }
        self.pump(peer);
    }

    fn undeliverable(&mut self, purpose: Purpose, reason: Reason) {
        match purpose {
            Purpose::Request(request) | Purpose::Ping(request) => self.fail(request, reason),
            // RFC 7641 §4.5: who does not take it observes no more.
            Purpose::Response(exchange) => {
                self.end_observation(exchange);
                drop(self.close(exchange));
            }
            Purpose::Notification(exchange) => self.end_observation(exchange),
        }
    }

    /// A token that no other open request has, and that nobody can foresee (RFC 7252 §5.3.1).
    pub(super) fn new_token(&mut self, peer: P) -> Token {
        loop {
            let token = Token::from(self.common.chance.next(For::Token).to_le_bytes());
            if !self.tokens.contains_key(&(peer, token)) {
                return token;
            }
        }
    }
}
