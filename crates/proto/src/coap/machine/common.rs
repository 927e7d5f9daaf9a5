//! What both roles of an endpoint share: peers, time, chance, and what is sent at once.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::Timer;
use super::peers::{Flight, Peers};
use super::sending::Link;
use super::server::Exchange;
use super::settings::*;
use crate::coap::chance::{Chance, For};
use crate::coap::{Code, Content, Datagram, Kind, Token, format, option};
use crate::timers::Timers;

/// Bytes of an Echo: seconds, and what only this endpoint can make of them and the peer.
const ECHO_TIME_BYTES: usize = 4;
const ECHO_BYTES: usize = ECHO_TIME_BYTES + 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Common<P> {
    is_challenging: bool,
    pub(super) chance: Chance,
    pub(super) now: Duration,
    pub(super) link: Link,
    pub(super) peers: Peers<P>,
    pub(super) timers: Timers<Timer<P>>,
    /// Bounded by what one input can do, as the caller drains it.
    pub(super) outputs: VecDeque<Output<P>>,
    pub(super) counts: Counts,
}

impl<P: Address> Common<P> {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            is_challenging: settings.is_challenging,
            chance: Chance::new(settings.seed),
            now: Duration::ZERO,
            link: Link::new(settings.rate_bps),
            peers: Peers::new(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Whether addresses are to be validated.
    pub(super) fn is_challenging(&self) -> bool {
        self.is_challenging
    }

    /// Sends a datagram; when it has left.
    pub(super) fn transmit(&mut self, peer: P, bytes: Bytes) -> Duration {
        let left_at = self.link.leaves_at(self.now, bytes.len());
        self.outputs.push_back(Output::Datagram { peer, bytes });
        left_at
    }

    /// A message without a slot of its own; dropped where no message id is free.
    pub(super) fn send_unconfirmed(
        &mut self,
        peer: P,
        token: Token,
        content: &Content,
    ) -> Option<u16> {
        let mid = self.peers.get_mut(peer)?.mids.next(self.now).ok()?;
        let bytes = content.encode(Kind::NonConfirmable, mid, token).ok()?;
        self.transmit(peer, bytes);
        Some(mid)
    }

    /// Whether the message came before; then it is answered as it was. Only of peers with a place.
    pub(super) fn is_duplicate(&mut self, peer: P, datagram: &Datagram<'_>) -> bool {
        let lifetime = match datagram.kind {
            Kind::Confirmable => (true, EXCHANGE_LIFETIME),
            Kind::NonConfirmable => (false, NON_LIFETIME),
            // RFC 7252 §4.2: what acknowledges does so as often as it comes.
            Kind::Acknowledgement | Kind::Reset => return false,
        };
        let Some(place) = self.peers.get_mut(peer) else { return false };
        let Some(reply) = place.seen.find(self.now, datagram.mid, lifetime) else { return false };
        self.counts.duplicates += 1;
        if let Some(reply) = reply {
            self.transmit(peer, reply);
        }
        true
    }

    /// Whether this response came before. Nothing is noted, as it may match no request.
    pub(super) fn is_duplicate_answer(&mut self, peer: P, datagram: &Datagram<'_>) -> bool {
        let Some(place) = self.peers.get(peer) else { return false };
        let is_checked = matches!(datagram.kind, Kind::Confirmable | Kind::NonConfirmable);
        is_checked && place.seen.holds(self.now, datagram.mid) && self.is_duplicate(peer, datagram)
    }

    /// Answers a message, and its duplicates, with an empty one.
    pub(super) fn reply_empty(&mut self, peer: P, kind: Kind, mid: u16) {
        if let Ok(bytes) = Content::new(Code::EMPTY).encode(kind, mid, Token::EMPTY) {
            self.reply(peer, mid, bytes);
        }
    }

    pub(super) fn reply(&mut self, peer: P, mid: u16, bytes: Bytes) {
        if let Some(place) = self.peers.get_mut(peer) {
            place.seen.keep(mid, bytes.clone());
        }
        self.transmit(peer, bytes);
    }

    /// RFC 7252 §8.1: what came to a group is never reset.
    pub(super) fn reset(&mut self, peer: P, mid: u16, is_group: bool) {
        let reset = Content::new(Code::EMPTY).encode(Kind::Reset, mid, Token::EMPTY);
        if let Ok(bytes) = reset
            && !is_group
        {
            self.transmit(peer, bytes);
        }
    }

    /// A response to nothing (RFC 7252 §4.2, §4.3, RFC 7641 §3.6).
    pub(super) fn reject(&mut self, peer: P, datagram: &Datagram<'_>) {
        self.counts.unmatched += 1;
        let observes = datagram.message.options.first(option::OBSERVE).is_some();
        // RFC 9177 §4.3: by this the server knows that nobody sends the rest of a body, or waits
        // for the rest of one.
        let is_asking = datagram.message.code == Code::REQUEST_ENTITY_INCOMPLETE
            && datagram.message.options.uint(option::CONTENT_FORMAT)
                == Some(format::MISSING_BLOCKS.into());
        let is_part = datagram.message.options.first(option::Q_BLOCK2).is_some();
        match datagram.kind {
            Kind::Confirmable => self.reset(peer, datagram.mid, false),
            Kind::NonConfirmable if observes || is_asking || is_part => {
                self.reset(peer, datagram.mid, false);
            }
            _ => {}
        }
    }

    /// The slot is free for the next message.
    pub(super) fn land(&mut self, peer: P) -> Option<Flight> {
        let flight = self.peers.get_mut(peer)?.flight.take();
        self.timers.set(Timer::Flight(peer), None);
        flight
    }

    /// A message was acknowledged for the first time: what that says of the round trip.
    pub(super) fn measure(&mut self, peer: P, flight: &Flight, answer_bytes: usize) {
        let sample = self.now.saturating_sub(flight.left_at);
        let sample = sample.saturating_sub(self.link.takes(answer_bytes));
        if let Some(place) = self.peers.get_mut(peer)
            && flight.is_repeated
        {
            place.round_trip.observe(self.now, sample, flight.tries);
        }
    }

    /// The peer is there: what holds the slot without being repeated does so no longer than usual.
    pub(super) fn heard(&mut self, peer: P) {
        let Some(flight) = self.peers.get(peer).and_then(|place| place.flight.as_ref()) else {
            return;
        };
        if !flight.is_repeated {
            let until = flight.left_at + flight.timeout;
            self.timers.set_by(Timer::Flight(peer), until);
        }
    }

    /// The answer that asks for a sign that the peer has its address (RFC 9175 §2.4).
    pub(super) fn challenge(&mut self, peer: P) -> Content {
        self.counts.challenged += 1;
        let seconds = u32::try_from(self.now.as_secs()).unwrap_or(u32::MAX);
        let mut echo = seconds.to_be_bytes().to_vec();
        echo.extend(self.chance.of(For::Echo, &(seconds, peer)).to_be_bytes());
        Content::new(Code::UNAUTHORIZED).with(option::ECHO, &echo)
    }

    pub(super) fn is_echo(&self, peer: P, echo: &[u8]) -> bool {
        let Some((seconds, sign)) = echo.split_first_chunk::<ECHO_TIME_BYTES>() else {
            return false;
        };
        let seconds = u32::from_be_bytes(*seconds);
        let age = self.now.checked_sub(Duration::from_secs(seconds.into()));
        let is_ours = sign == self.chance.of(For::Echo, &(seconds, peer)).to_be_bytes();
        is_ours && echo.len() == ECHO_BYTES && age.is_some_and(|age| age <= ECHO_LIFETIME)
    }

    /// Whether answers of any size may go to the peer.
    pub(super) fn is_trusted(&self, peer: P) -> bool {
        !self.is_challenging || self.peers.get(peer).is_some_and(|place| place.is_validated)
    }

    /// Answers within the acknowledgement, or as the request came (RFC 7252 §5.2.1, §5.2.3).
    pub(super) fn answer_at_once(&mut self, exchange: &Exchange<P>, content: &Content) {
        let Exchange { peer, mid, token, .. } = *exchange;
        if exchange.kind != Kind::Confirmable {
            let _ = self.send_unconfirmed(peer, token, content);
            return;
        }
        let answer = content.encode(Kind::Acknowledgement, mid, token).or_else(|_| {
            Content::new(Code::INTERNAL_SERVER_ERROR).encode(Kind::Acknowledgement, mid, token)
        });
        if let Ok(bytes) = answer {
            self.reply(peer, mid, bytes);
        }
    }
}
