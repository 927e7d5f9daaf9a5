//! Requests of peers, the answers to them, and what peers observe.

use std::collections::VecDeque;
use std::time::Duration;

use super::peers::Purpose;
use super::settings::*;
use super::{Endpoint, Timer};
use crate::coap::{Code, Content, Datagram, Kind, Token, option};

/// Where Observe's 24 bits wrap (RFC 7641 §4.4).
const SEQUENCES: u32 = 1 << 24;

/// A peer's request that is not answered yet, or whose separate answer is under way.
#[derive(Debug)]
pub(super) struct Exchange<P> {
    pub(super) peer: P,
    pub(super) token: Token,
    pub(super) mid: u16,
    pub(super) kind: Kind,
    is_acknowledged: bool,
    is_group: bool,
    /// Whether it asks to observe.
    observes: bool,
    no_response: u32,
    request_bytes: usize,
    pub(super) answer: Option<Content>,
    /// Of the parts that were sent last; at most [`MAX_NAMED_PARTS`].
    part_mids: VecDeque<u16>,
}

impl<P> Exchange<P> {
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

/// What a peer observes.
#[derive(Debug)]
pub(super) struct Observation<P> {
    peer: P,
    pub(super) token: Token,
    sequence: u32,
    /// What is to be sent next.
    pending: Option<Content>,
    /// Whether what was sent last ends it.
    is_ending: bool,
    unconfirmed: u32,
    confirmed_at: Duration,
    /// The next that is not confirmable leaves no sooner.
    next_at: Duration,
    mids: VecDeque<u16>,
}

impl<P> Observation<P> {
    /// The notification that waits, with its number.
    pub(super) fn take(&mut self) -> Option<Content> {
        let mut content = self.pending.take()?;
        self.is_ending = !content.code.is_success();
        self.sequence = (self.sequence + 1) % SEQUENCES;
        content.remove(option::OBSERVE);
        // RFC 7641 §4.2: one that is no success has no Observe.
        Some(match self.is_ending {
            true => content,
            false => content.with_uint(option::OBSERVE, self.sequence),
        })
    }
}

impl<P: Address> Endpoint<P> {
    /// A request came, in a datagram of so many bytes.
    pub(super) fn requested(
        &mut self,
        peer: P,
        datagram: &Datagram<'_>,
        request_bytes: usize,
        is_group: bool,
    ) {
        if !self.enter(peer, !self.common.is_challenging()) {
            self.common.counts.refused += 1;
            return;
        }
        if self.common.is_duplicate(peer, datagram) {
            return;
        }
        let message = &datagram.message;
        if message.options.first(option::ECHO).is_some_and(|echo| self.common.is_echo(peer, echo)) {
            self.validate(peer);
        }
        let exchange = Exchange {
            peer,
            token: message.token,
            mid: datagram.mid,
            kind: datagram.kind,
            is_acknowledged: false,
            is_group,
            observes: message.options.uint(option::OBSERVE) == Some(0) && !is_group,
            no_response: message.options.uint(option::NO_RESPONSE).unwrap_or(0),
            request_bytes,
            answer: None,
            part_mids: VecDeque::new(),
        };
        match self.check(&exchange, datagram) {
            Ok(content) => self.open(exchange, content),
            Err(None) => {}
            // Those that a group would send are the implosion of RFC 7252 §8.2.
            Err(Some(_)) if is_group => {}
            Err(Some(answer)) => self.common.answer_at_once(&exchange, &answer),
        }
    }

    /// The request, if the application is to see it; else what to answer, or nothing.
    fn check(
        &mut self,
        exchange: &Exchange<P>,
        datagram: &Datagram<'_>,
    ) -> Result<Content, Option<Content>> {
        let message = &datagram.message;
        let is_confirmable = datagram.kind == Kind::Confirmable;
        let has = |number| message.options.first(number).is_some();
        let is_for_proxy = has(option::PROXY_URI) || has(option::PROXY_SCHEME);
        // RFC 8613 §10: a proxy passes it on.
        let is_quick = has(option::Q_BLOCK1) || has(option::Q_BLOCK2);
        let known = match self.leaves_protected || is_for_proxy {
            _ if self.takes_q_block && is_quick => &WITH_Q_BLOCK[..],
            true => &WITH_OSCORE[..],
            false => &UNDERSTOOD[..],
        };
        if let Some(number) = option::find_bad_critical(message.options, known) {
            self.common.counts.unsupported += 1;
            // RFC 7252 §5.4.1: one that is not confirmable is rejected, here in silence.
            let answer = Content::new(Code::BAD_OPTION).with_payload(format!("option {number}"));
            return Err(is_confirmable.then_some(answer));
        }
        // RFC 7252 §5.8.
        if message.code > Code::IPATCH {
            self.common.counts.unsupported += 1;
            return Err(Some(Content::new(Code::METHOD_NOT_ALLOWED)));
        }
        if exchange.request_bytes > MAX_REQUEST_BYTES {
            self.common.counts.refused += 1;
            return Err(Some(Content::new(Code::REQUEST_ENTITY_TOO_LARGE)));
        }
        let content = match Content::try_from(datagram) {
            Ok(content) => content,
            Err(_) => {
                self.common.counts.malformed += 1;
                return Err(Some(Content::new(Code::BAD_REQUEST)));
            }
        };
        // RFC 9177 §4.8: one answer of many datagrams from each of a group.
        if is_quick && exchange.is_group {
            self.common.counts.refused += 1;
            return Err(None);
        }
        // What changes something is not done for a forged address, nor is it done twice because of
        // an answer that turns out to be too long for that. Nor does one get many datagrams, or the
        // place of a body that comes in blocks (that of FETCH does too).
        let is_harmful =
            exchange.observes || is_quick || has(option::BLOCK1) || !message.code.is_safe();
        let is_left = self.leaves_protected && !is_for_proxy && has(option::OSCORE);
        if is_harmful && !is_left && !self.common.is_trusted(exchange.peer) {
            return Err(Some(self.common.challenge(exchange.peer)));
        }
        if !self.has_room(exchange.peer) {
            self.common.counts.refused += 1;
            let answer = Content::new(Code::SERVICE_UNAVAILABLE);
            return Err(Some(answer.with_uint(option::MAX_AGE, RETRY_AFTER_S)));
        }
        Ok(content)
    }

    fn has_room(&self, peer: P) -> bool {
        let limit = match self.common.is_trusted(peer) {
            true => MAX_EXCHANGES_PER_PEER,
            false => MAX_EXCHANGES_PER_NEW_PEER,
        };
        let has_share = self.common.peers.get(peer).is_some_and(|place| place.exchanges < limit);
        has_share && self.exchanges.len() < MAX_EXCHANGES
    }

    fn open(&mut self, exchange: Exchange<P>, content: Content) {
        self.last_exchange += 1;
        let (number, peer) = (self.last_exchange, exchange.peer);
        // RFC 7641 §3.6: a request with its token and Observe 1 ends an observation.
        if content.uint(option::OBSERVE) == Some(1)
            && let Some(observed) = self.observers.get(&(peer, exchange.token)).copied()
        {
            self.end_observation(observed);
        }
        if exchange.kind == Kind::Confirmable {
            let until = self.common.now + PIGGYBACK_WAIT;
            self.common.timers.set(Timer::Acknowledge(number), Some(until));
        }
        self.common.timers.set(Timer::Expire(number), Some(self.common.now + MAX_EXCHANGE_TIME));
        self.exchanges.insert(number, exchange);
        if let Some(place) = self.common.peers.get_mut(peer) {
            place.exchanges += 1;
        }
        self.common.outputs.push_back(Output::Request { exchange: number, peer, content });
    }

    /// The application took too long for its answer to go with the acknowledgement.
    pub(super) fn acknowledge(&mut self, number: u64) {
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.is_acknowledged = true;
            let (peer, mid) = (exchange.peer, exchange.mid);
            self.common.reply_empty(peer, Kind::Acknowledgement, mid);
        }
    }

    pub(super) fn respond(&mut self, number: u64, mut content: Content) {
        let exchange = self.exchanges.get(&number).filter(|exchange| exchange.answer.is_none());
        let Some(exchange) = exchange.filter(|_| content.code.is_response()) else {
            self.common.counts.misused += 1;
            return;
        };
        let (peer, token) = (exchange.peer, exchange.token);
        let is_observed = exchange.observes
            && content.code.is_success()
            && content.first(option::OBSERVE).is_some();
        content.remove(option::OBSERVE);
        if exchange.is_group {
            return self.respond_to_group(number, content);
        }
        if exchange.suppresses(content.code) && !is_observed {
            acknowledge_once(self, number);
            return drop(self.close(number));
        }
        let limit = exchange.request_bytes * MAX_AMPLIFICATION;
        let answer_bytes = content.encode(Kind::Acknowledgement, 0, token);
        if !self.common.is_trusted(peer) && answer_bytes.is_ok_and(|bytes| bytes.len() > limit) {
            content = self.common.challenge(peer);
        }
        if is_observed {
            match self.observe(number) {
                Some(sequence) => content.push_uint(option::OBSERVE, sequence),
                None => self.common.outputs.push_back(Output::Ended { exchange: number }),
            }
        }
        self.deliver(number, content);
    }

    fn deliver(&mut self, number: u64, content: Content) {
        let Some(exchange) = self.exchanges.get(&number) else { return };
        let (peer, token, is_acknowledged) =
            (exchange.peer, exchange.token, exchange.is_acknowledged);
        match exchange.kind {
            // RFC 7252 §5.2.2: in a message of its own. To who may not be there it goes once.
            Kind::Confirmable if is_acknowledged && self.common.is_trusted(peer) => {
                if let Some(exchange) = self.exchanges.get_mut(&number) {
                    exchange.answer = Some(content);
                }
                self.common.timers.set(Timer::Expire(number), None);
                self.enqueue(peer, Purpose::Response(number));
            }
            Kind::Confirmable if !is_acknowledged => {
                if let Some(exchange) = self.close(number) {
                    self.common.answer_at_once(&exchange, &content);
                }
            }
            _ => {
                let _ = self.common.send_unconfirmed(peer, token, &content);
                self.close(number);
            }
        }
    }

    /// RFC 7252 §8.2: only what is of use, and not all members of the group at once.
    fn respond_to_group(&mut self, number: u64, content: Content) {
        if !content.code.is_success() || content.payload.is_empty() {
            self.close(number);
            return;
        }
        let leaves_at = self.common.now + self.common.chance.between(Duration::ZERO, LEISURE);
        if let Some(exchange) = self.exchanges.get_mut(&number) {
            exchange.answer = Some(content);
            self.common.timers.set(Timer::Leisure(number), Some(leaves_at));
        }
    }

    pub(super) fn answer_group(&mut self, number: u64) {
        if let Some(mut exchange) = self.close(number)
            && let Some(answer) = exchange.answer.take()
            && !exchange.suppresses(answer.code)
        {
            let limit = exchange.request_bytes * MAX_AMPLIFICATION;
            if self.common.is_trusted(exchange.peer) || answer.payload.len() <= limit {
                self.common.answer_at_once(&exchange, &answer);
            }
        }
    }

    /// Forgets an exchange.
    pub(super) fn close(&mut self, number: u64) -> Option<Exchange<P>> {
        let exchange = self.exchanges.remove(&number)?;
        for timer in [Timer::Acknowledge(number), Timer::Expire(number), Timer::Leisure(number)] {
            self.common.timers.set(timer, None);
        }
        if let Some(place) = self.common.peers.get_mut(exchange.peer) {
            place.exchanges -= 1;
        }
        Some(exchange)
    }

    /// What was open with a peer that has lost its place.
    pub(super) fn forget_open(&mut self, peer: P) {
        let of_peer = |(number, of): (&u64, &P)| (*of == peer).then_some(*number);
        let exchanges = self.exchanges.iter().map(|(number, open)| (number, &open.peer));
        for number in exchanges.filter_map(of_peer).collect::<Vec<_>>() {
            self.close(number);
        }
        let observed = self.observations.iter().map(|(number, open)| (number, &open.peer));
        for number in observed.filter_map(of_peer).collect::<Vec<_>>() {
            self.end_observation(number);
        }
        self.common.timers.set(Timer::Flight(peer), None);
        self.common.timers.set(Timer::Queue(peer), None);
    }

    /// Notes that an exchange's peer observes from now on: the number of the first notification, if
    /// there is room (RFC 7641 §4.1).
    fn observe(&mut self, number: u64) -> Option<u32> {
        let exchange = self.exchanges.get(&number)?;
        let (peer, token) = (exchange.peer, exchange.token);
        // RFC 7641 §4.1: with the same token it is the same observation, renewed.
        let before = self.observers.get(&(peer, token)).copied();
        let last = before.and_then(|before| self.observations.get(&before)).map(|it| it.sequence);
        if let Some(before) = before {
            self.end_observation(before);
        }
        let place = self.common.peers.get_mut(peer)?;
        let has_share = place.observations < MAX_OBSERVATIONS_PER_PEER;
        if !has_share || self.observations.len() >= MAX_OBSERVATIONS {
            return None;
        }
        place.observations += 1;
        let sequence = last.map_or(0, |last| (last + 1) % SEQUENCES);
        self.observers.insert((peer, token), number);
        let observation = Observation {
            peer,
            token,
            sequence,
            pending: None,
            is_ending: false,
            // The first is confirmable, which also shows how long it takes.
            unconfirmed: MAX_UNCONFIRMED,
            confirmed_at: self.common.now,
            next_at: self.common.now,
            mids: VecDeque::new(),
        };
        self.observations.insert(number, observation);
        Some(sequence)
    }

    pub(super) fn notify(&mut self, number: u64, content: Content) {
        let open = self.observations.get_mut(&number).filter(|it| !it.is_ending);
        let Some(observation) = open.filter(|_| content.code.is_response()) else {
            self.common.counts.misused += 1;
            return;
        };
        observation.pending = Some(content);
        self.send_notification(number);
    }

    /// Sends the notification that waits, or sees to it that it is sent.
    pub(super) fn send_notification(&mut self, number: u64) {
        let Some(observation) = self.observations.get_mut(&number) else { return };
        let Some(pending) = &observation.pending else { return };
        let (peer, token) = (observation.peer, observation.token);
        let purpose = Purpose::Notification(number);
        let Some(place) = self.common.peers.get(peer) else { return };
        let is_under_way = place.flight.as_ref().is_some_and(|it| it.purpose == purpose);
        if is_under_way || place.queue.contains(&purpose) {
            return;
        }
        let unconfirmed_for = self.common.now.saturating_sub(observation.confirmed_at);
        if observation.unconfirmed >= MAX_UNCONFIRMED
            || unconfirmed_for >= MAX_UNCONFIRMED_TIME
            || !pending.code.is_success()
        {
            return self.enqueue(peer, purpose);
        }
        if self.common.now < observation.next_at {
            return self.common.timers.set(Timer::Notify(number), Some(observation.next_at));
        }
        // RFC 7641 §4.5.1: no more than one in a round trip.
        let pause = place.round_trip.smoothed().unwrap_or(NOTIFICATION_PAUSE);
        observation.next_at = self.common.now + pause;
        observation.unconfirmed += 1;
        let Some(content) = observation.take() else { return };
        let mid = self.common.send_unconfirmed(peer, token, &content);
        if let Some(observation) = self.observations.get_mut(&number) {
            observation.mids.extend(mid);
            if observation.mids.len() > MAX_NAMED_NOTIFICATIONS {
                observation.mids.pop_front();
            }
        }
    }

    /// A notification was acknowledged.
    pub(super) fn confirmed(&mut self, number: u64) {
        let Some(observation) = self.observations.get_mut(&number) else { return };
        observation.unconfirmed = 0;
        observation.confirmed_at = self.common.now;
        match observation.is_ending {
            true => self.end_observation(number),
            false => self.send_notification(number),
        }
    }

    /// The peer observes no more, if it did.
    pub(super) fn end_observation(&mut self, number: u64) {
        let Some(observation) = self.observations.remove(&number) else { return };
        self.observers.remove(&(observation.peer, observation.token));
        self.common.timers.set(Timer::Notify(number), None);
        if let Some(place) = self.common.peers.get_mut(observation.peer) {
            place.observations -= 1;
            place.queue.retain(|purpose| *purpose != Purpose::Notification(number));
        }
        self.common.outputs.push_back(Output::Ended { exchange: number });
    }

    /// A reset names a message that was not confirmable (RFC 7641 §3.6).
    pub(super) fn unconfirmed_was_reset(&mut self, peer: P, mid: u16) {
        let open = self.common.peers.get(peer).map(|place| (place.observations, place.requests));
        let (observations, requests) = open.unwrap_or_default();
        let is_it = |open: &Observation<P>| open.peer == peer && open.mids.contains(&mid);
        let mut observed = self.observations.iter().filter(|(_, it)| observations > 0 && is_it(it));
        if let Some((number, _)) = observed.next() {
            let number = *number;
            self.end_observation(number);
        } else if !(answer_was_reset(self, peer, mid)
            || requests > 0 && self.call_was_reset(peer, mid))
        {
            self.common.counts.unmatched += 1;
        }
    }
}

/// A part of an answer, behind which others come.
pub(super) fn respond_in_part<P: Address>(it: &mut Endpoint<P>, number: u64, content: &Content) {
    let open = it.exchanges.get(&number).filter(|open| open.answer.is_none() && !open.is_group);
    let Some(exchange) = open.filter(|open| it.common.is_trusted(open.peer)) else {
        it.common.counts.misused += 1;
        return;
    };
    let (peer, token) = (exchange.peer, exchange.token);
    acknowledge_once(it, number);
    let mid = it.common.send_unconfirmed(peer, token, content);
    if let Some(exchange) = it.exchanges.get_mut(&number) {
        exchange.part_mids.extend(mid);
        if exchange.part_mids.len() > MAX_NAMED_PARTS {
            exchange.part_mids.pop_front();
        }
    }
    it.common.timers.set(Timer::Expire(number), Some(it.common.now + MAX_EXCHANGE_TIME));
}

/// A request that gets no answer, or no further part of one.
pub(super) fn leave_unanswered<P: Address>(it: &mut Endpoint<P>, number: u64) {
    acknowledge_once(it, number);
    if it.close(number).is_none() {
        it.common.counts.misused += 1;
    }
}

/// Acknowledges a confirmable request, if that is still to be done.
fn acknowledge_once<P: Address>(it: &mut Endpoint<P>, number: u64) {
    let exchange = it.exchanges.get(&number);
    if exchange.is_some_and(|open| open.kind == Kind::Confirmable && !open.is_acknowledged) {
        it.common.timers.set(Timer::Acknowledge(number), None);
        it.acknowledge(number);
    }
}

/// Whether a part of an answer of ours has this message id; then nobody waits for the others.
fn answer_was_reset<P: Address>(it: &mut Endpoint<P>, peer: P, mid: u16) -> bool {
    let has_open = it.common.peers.get(peer).is_some_and(|place| place.exchanges > 0);
    let is_it = |open: &Exchange<P>| open.peer == peer && open.part_mids.contains(&mid);
    let mut open = it.exchanges.iter().filter(|(_, open)| has_open && is_it(open));
    let Some(number) = open.next().map(|(number, _)| *number) else { return false };
    it.close(number);
    it.common.outputs.push_back(Output::Ended { exchange: number });
    true
}
