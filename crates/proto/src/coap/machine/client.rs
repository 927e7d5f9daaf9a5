//! Requests of this side, their answers, and what it observes.

use std::time::Duration;

use super::peers::Purpose;
use super::settings::*;
use super::{Endpoint, Timer, is_newer, max_age};
use crate::coap::{Code, Content, Datagram, Kind, Token, format, option};

/// A request of ours that has no last answer yet.
#[derive(Debug)]
pub(super) struct Call<P> {
    peer: P,
    pub(super) content: Content,
    pub(super) token: Token,
    pub(super) is_confirmable: bool,
    is_ping: bool,
    /// Whether it leaves at once; who sends it sees to the path.
    is_unpaced: bool,
    /// The message id of the last transmission, by which a reset may name it.
    mid: Option<u16>,
    /// Whether the peer is known to have it.
    is_delivered: bool,
    echoes: u8,
    /// The last notification, where one came.
    notified: Option<(u32, Duration)>,
    /// Nobody wants it any more, and the peer is being told so.
    is_leaving: bool,
}

impl<P> Call<P> {
    pub(super) fn new(peer: P, content: Content, is_confirmable: bool) -> Self {
        Self {
            peer,
            content,
            token: Token::EMPTY,
            is_confirmable,
            is_ping: false,
            is_unpaced: false,
            mid: None,
            is_delivered: false,
            echoes: 0,
            notified: None,
            is_leaving: false,
        }
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.is_delivered
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    pub(super) fn ping(peer: P) -> Self {
        Self { is_ping: true, ..Self::new(peer, Content::new(Code::EMPTY), true) }
    }

    pub(super) fn unpaced(peer: P, content: Content) -> Self {
        Self { is_unpaced: true, ..Self::new(peer, content, false) }
    }

    /// Whether others follow this response to it: parts of a body, and what is said of one on its
    /// way (RFC 9177 §4.3, §4.4).
    fn goes_on_behind(&self, response: &Content) -> bool {
        let has = |number| self.content.first(number).is_some();
        let is_part = response.first(option::Q_BLOCK2).is_some()
            || response.code == Code::CONTINUE
            || is_missing_blocks(response);
        (has(option::Q_BLOCK1) || has(option::Q_BLOCK2)) && is_part
    }

    fn purpose(&self, request: u64) -> Purpose {
        if self.is_ping { Purpose::Ping(request) } else { Purpose::Request(request) }
    }

    /// Whether it asks to observe (RFC 7641 §2).
    fn observes(&self) -> bool {
        self.content.uint(option::OBSERVE) == Some(0)
    }

    /// Whether it asks for no answer of any class (RFC 7967 §2.1).
    fn wants_none(&self) -> bool {
        use option::{NO_CLIENT_ERROR, NO_SERVER_ERROR, NO_SUCCESS};
        let all = NO_SUCCESS | NO_CLIENT_ERROR | NO_SERVER_ERROR;
        self.content.uint(option::NO_RESPONSE).is_some_and(|not| not & all == all)
    }
}

impl<P: Address> Endpoint<P> {
    pub(super) fn call(&mut self, request: u64, mut call: Call<P>) {
        if self.calls.contains_key(&request) {
            self.common.counts.misused += 1;
            return;
        }
        let failed = |reason| Output::Failed { request, reason };
        if !call.is_ping && !call.content.code.is_request() {
            return self.common.outputs.push_back(failed(Reason::Misuse));
        }
        let peer = call.peer;
        let has_room = self.calls.len() < MAX_REQUESTS && self.enter(peer, true);
        let place = self.common.peers.get_mut(peer).filter(|_| has_room);
        let Some(place) = place.filter(|place| place.requests < MAX_REQUESTS_PER_PEER) else {
            return self.common.outputs.push_back(failed(Reason::Full));
        };
        place.requests += 1;
        if !call.is_ping {
            call.token = self.new_token(peer);
            self.tokens.insert((peer, call.token), request);
        }
        let purpose = call.purpose(request);
        let is_unpaced = call.is_unpaced;
        self.calls.insert(request, call);
        match is_unpaced {
            true => send_unpaced(self, request),
            false => self.enqueue(peer, purpose),
        }
    }

    /// The first transmission of a request, or of its renewal, leaves.
    pub(super) fn launched(&mut self, request: u64, mid: u16, left_at: Duration) {
        if let Some(call) = self.calls.get_mut(&request) {
            call.mid = Some(mid);
            call.is_delivered = false;
            // One that is confirmable fails sooner, or begins to wait anew when it is delivered.
            let until = left_at + MAX_ANSWER_WAIT;
            self.common.timers.set(Timer::Answer(request), Some(until));
        }
    }

    /// The peer has the request; its answer comes by itself (RFC 7252 §5.2.2).
    pub(super) fn delivered(&mut self, request: u64) {
        let Some(call) = self.calls.get_mut(&request) else { return };
        call.is_delivered = true;
        if call.wants_none() {
            return self.finish(request, Output::Suppressed { request });
        }
        self.common.timers.set(Timer::Answer(request), Some(self.common.now + MAX_ANSWER_WAIT));
    }

    pub(super) fn unanswered(&mut self, request: u64) {
        let Some(call) = self.calls.get(&request) else { return };
        match call.wants_none() && !call.is_confirmable {
            true => self.finish(request, Output::Suppressed { request }),
            false => self.fail(request, Reason::NoAnswer),
        }
    }

    pub(super) fn fail(&mut self, request: u64, reason: Reason) {
        self.finish(request, Output::Failed { request, reason });
    }

    /// Ends a request, if it is open, with this; of one that was cancelled nothing is said.
    pub(super) fn finish(&mut self, request: u64, output: Output<P>) {
        let is_wanted = self.calls.get(&request).is_some_and(|call| !call.is_leaving);
        if self.drop_call(request) && is_wanted {
            self.common.outputs.push_back(output);
        }
    }

    fn drop_call(&mut self, request: u64) -> bool {
        let Some(call) = self.calls.remove(&request) else { return false };
        self.tokens.remove(&(call.peer, call.token));
        self.common.timers.set(Timer::Answer(request), None);
        self.common.timers.set(Timer::Renew(request), None);
        if let Some(place) = self.common.peers.get_mut(call.peer) {
            place.requests -= 1;
            let purpose = call.purpose(request);
            place.queue.retain(|other| *other != purpose);
            // What left holds its slot until it would be repeated, so that requests which are
            // cancelled are no way around NSTART.
            if let Some(flight) = place.flight.as_mut().filter(|it| it.purpose == purpose) {
                flight.is_repeated = false;
            }
        }
        true
    }

    /// RFC 7641 §3.6: who was notified asks with the same token to be so no more. Of what was not
    /// answered yet, the answer is reset when it comes.
    pub(super) fn cancel(&mut self, request: u64) {
        let is_observing = |call: &&mut Call<P>| call.notified.is_some() && !call.is_leaving;
        let Some(call) = self.calls.get_mut(&request).filter(is_observing) else {
            let is_leaving = self.calls.get(&request).is_some_and(Call::is_leaving);
            if is_leaving || !self.drop_call(request) {
                self.common.counts.misused += 1;
            }
            return;
        };
        (call.is_leaving, call.is_delivered) = (true, false);
        call.content.set(option::OBSERVE, &[1]);
        call.content.remove(option::ETAG);
        let peer = call.peer;
        self.common.timers.set(Timer::Renew(request), None);
        self.enqueue(peer, Purpose::Request(request));
    }

    /// A response came, by itself or with an acknowledgement.
    pub(super) fn answered(&mut self, peer: P, datagram: &Datagram<'_>) {
        if self.common.is_duplicate_answer(peer, datagram) {
            return;
        }
        let request = self.tokens.get(&(peer, datagram.message.token)).copied();
        let flight = self.common.peers.get(peer).and_then(|place| place.flight.as_ref());
        // A notification is no answer to who says that he wants none.
        let is_leaving =
            request.and_then(|request| self.calls.get(&request)).is_some_and(Call::is_leaving);
        let is_late = is_leaving
            && datagram.kind != Kind::Acknowledgement
            && datagram.message.options.first(option::OBSERVE).is_some();
        let is_outstanding = request.is_some()
            && !is_late
            && flight.is_some_and(|it| it.purpose == Purpose::Request(request.unwrap_or(0)));
        let is_acknowledging = datagram.kind == Kind::Acknowledgement;
        // RFC 7252 §5.3.2: with an acknowledgement both token and message id must match.
        let is_match = !is_acknowledging || flight.is_some_and(|it| it.mid == datagram.mid);
        let Some(request) = request.filter(|_| is_match && (is_outstanding || !is_acknowledging))
        else {
            return self.common.reject(peer, datagram);
        };
        self.validate(peer);
        self.common.heard(peer);
        // Until now it had a place, but none of its messages were noted.
        let _ = self.common.is_duplicate(peer, datagram);
        let flight = if is_outstanding { self.common.land(peer) } else { None };
        if let Some(flight) = flight.filter(|_| is_acknowledging) {
            self.common.measure(peer, &flight, datagram.message.payload.len());
        }
        let is_protected = |call: &Call<P>| call.content.first(option::OSCORE).is_some();
        let known = match self.calls.get(&request).is_some_and(is_protected) {
            true => &WITH_OSCORE[..],
            false if self.offers_q_block => &WITH_Q_BLOCK[..],
            false => &UNDERSTOOD[..],
        };
        let bad = option::find_bad_critical(datagram.message.options, known);
        match Content::try_from(datagram) {
            Ok(content) if bad.is_none() => {
                if datagram.kind == Kind::Confirmable {
                    self.common.reply_empty(peer, Kind::Acknowledgement, datagram.mid);
                }
                self.take_answer(peer, request, content);
            }
            _ => {
                // RFC 7252 §5.4.1: rejected, which only of a confirmable one the peer is told.
                if datagram.kind == Kind::Confirmable {
                    self.common.reply_empty(peer, Kind::Reset, datagram.mid);
                }
                self.fail(request, Reason::BadAnswer);
            }
        }
        self.pump(peer);
    }

    fn take_answer(&mut self, peer: P, request: u64, content: Content) {
        let Some(call) = self.calls.get_mut(&request) else { return };
        // RFC 9175 §2.3: the server wants to see that this side has its address.
        if let Some(echo) = content.first(option::ECHO)
            && content.code == Code::UNAUTHORIZED
            && call.echoes < MAX_ECHOES
        {
            call.echoes += 1;
            call.content.set(option::ECHO, echo);
            self.tokens.remove(&(peer, call.token));
            let token = self.new_token(peer);
            self.tokens.insert((peer, token), request);
            if let Some(call) = self.calls.get_mut(&request) {
                call.token = token;
            }
            self.common.timers.set(Timer::Answer(request), None);
            return match self.calls.get(&request).is_some_and(|call| call.is_unpaced) {
                true => send_unpaced(self, request),
                false => self.enqueue(peer, Purpose::Request(request)),
            };
        }
        if call.goes_on_behind(&content) {
            let until = self.common.now + MAX_ANSWER_WAIT;
            self.common.timers.set(Timer::Answer(request), Some(until));
            self.common.outputs.push_back(Output::Response { request, content, is_last: false });
            return;
        }
        let is_notification = content.first(option::OBSERVE).is_some() && content.code.is_success();
        if call.is_leaving && is_notification {
            // It left before the peer knew.
            return;
        }
        let sequence = content.uint(option::OBSERVE).filter(|_| content.code.is_success());
        let Some(sequence) = sequence.filter(|_| call.observes()) else {
            let response = Output::Response { request, content, is_last: true };
            return self.finish(request, response);
        };
        let is_new =
            call.notified.is_none_or(|before| is_newer(before, (sequence, self.common.now)));
        // RFC 7641 §3.3.1: after its age another request asks whether it still goes on.
        let (least, greatest) = RENEW_AFTER;
        let renew_at =
            self.common.now + max_age(&content) + self.common.chance.between(least, greatest);
        self.common.timers.set(Timer::Answer(request), None);
        self.common.timers.set(Timer::Renew(request), Some(renew_at));
        if !is_new {
            self.common.counts.stale += 1;
            return;
        }
        call.notified = Some((sequence, self.common.now));
        self.common.outputs.push_back(Output::Response { request, content, is_last: false });
    }

    pub(super) fn renew(&mut self, request: u64) {
        if let Some(call) = self.calls.get(&request) {
            let peer = call.peer;
            if call.content.first(option::OSCORE).is_some() {
                return self.fail(request, Reason::Aged);
            }
            self.enqueue(peer, Purpose::Request(request));
        }
    }

    /// Whether a request of ours that is not confirmable has this message id; then it fails.
    pub(super) fn call_was_reset(&mut self, peer: P, mid: u16) -> bool {
        let is_it = |call: &Call<P>| call.peer == peer && call.mid == Some(mid);
        let mut open = self.calls.iter().filter(|(_, call)| !call.is_delivered && is_it(call));
        let request = open.next().map(|(request, _)| *request);
        if let Some(request) = request {
            self.fail(request, Reason::Reset);
        }
        request.is_some()
    }
}

/// Sends a request that waits for no other.
fn send_unpaced<P: Address>(it: &mut Endpoint<P>, request: u64) {
    let Some(call) = it.calls.get(&request) else { return };
    let (peer, token) = (call.peer, call.token);
    match it.common.send_unconfirmed(peer, token, &call.content) {
        Some(mid) => it.launched(request, mid, it.common.now),
        None => it.fail(request, Reason::Misuse),
    }
}

/// Whether a response says which blocks of a body are missing (RFC 9177 §5).
pub(in crate::coap) fn is_missing_blocks(response: &Content) -> bool {
    response.code == Code::REQUEST_ENTITY_INCOMPLETE
        && response.uint(option::CONTENT_FORMAT) == Some(format::MISSING_BLOCKS.into())
}
