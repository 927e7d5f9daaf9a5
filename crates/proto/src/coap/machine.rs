//! An endpoint over datagrams: reliable messages, requests and responses of both roles, and
//! observations, with any number of peers on one socket (RFC 7252 §4, §5, RFC 7641, RFC 9175).
//!
//! Bodies that take more than a datagram are for [`super::transfer`].

mod client;
mod common;
mod peers;
mod round_trip;
mod seen;
mod sending;
mod server;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::chance::For;
use super::{Code, Content, Datagram, Kind, Token, option};
use client::Call;
pub(super) use client::is_missing_blocks;
use common::Common;
use peers::Entered;
use server::{Exchange, Observation};

pub use seen::{MAX_SEEN, MAX_SEEN_BYTES};
pub use settings::*;

/// What waits for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer<P> {
    /// The outstanding message is to be transmitted again, or its slot is free.
    Flight(P),
    /// A message id is free again.
    Queue(P),
    /// An exchange's acknowledgement waits for an answer no longer.
    Acknowledge(u64),
    /// An exchange has had all its time.
    Expire(u64),
    /// An answer to a group's request leaves.
    Leisure(u64),
    /// An answer to a request of ours is waited for no longer.
    Answer(u64),
    /// An observation of ours is to be renewed.
    Renew(u64),
    /// A notification may leave.
    Notify(u64),
}

/// One endpoint: a client and a server on one socket.
#[derive(Debug)]
pub struct Endpoint<P> {
    common: Common<P>,
    /// Requests of ours by the caller's number; at most [`MAX_REQUESTS`].
    calls: BTreeMap<u64, Call<P>>,
    tokens: BTreeMap<(P, Token), u64>,
    /// Requests of peers by our number; at most [`MAX_EXCHANGES`].
    exchanges: BTreeMap<u64, Exchange<P>>,
    last_exchange: u64,
    /// By the number of the request that began it; at most [`MAX_OBSERVATIONS`].
    observations: BTreeMap<u64, Observation<P>>,
    observers: BTreeMap<(P, Token), u64>,
    announced_wake_at: Option<Duration>,
    /// Requests that OSCORE protects for this endpoint are not challenged here: who verifies them
    /// does so, within what is protected.
    pub(super) leaves_protected: bool,
    /// Whether the options of RFC 9177 are understood above: in requests, and in answers.
    pub(super) takes_q_block: bool,
    pub(super) offers_q_block: bool,
}

impl<P: Address> Endpoint<P> {
    /// Nothing sent, nobody known.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            common: Common::new(settings),
            calls: BTreeMap::new(),
            tokens: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            last_exchange: 0,
            observations: BTreeMap::new(),
            observers: BTreeMap::new(),
            announced_wake_at: None,
            leaves_protected: false,
            takes_q_block: false,
            offers_q_block: false,
        }
    }

    /// What went wrong so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.common.counts
    }

    /// Whether a peer is being told that it is observed no more.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.calls.values().any(Call::is_leaving)
    }

    /// Whether a peer has shown that it has its address, or need not.
    #[must_use]
    pub fn is_trusted(&self, peer: P) -> bool {
        self.common.is_trusted(peer)
    }

    /// Whether a peer's request can still be answered.
    #[must_use]
    pub fn is_open(&self, exchange: u64) -> bool {
        self.exchanges.get(&exchange).is_some_and(|exchange| exchange.answer.is_none())
    }

    /// Whether there may be notifications to who sent this request.
    #[must_use]
    pub fn is_observed(&self, exchange: u64) -> bool {
        self.observations.contains_key(&exchange)
    }

    /// Takes what happened at `now`, which does not go back. Then [`Endpoint::poll_output`] is to
    /// be called until it has nothing.
    pub fn handle_input(&mut self, now: Duration, input: Input<P>) {
        self.common.now = self.common.now.max(now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.common.now < *at);
        match input {
            Input::Datagram { peer, bytes, is_group } => self.datagram(peer, &bytes, is_group),
            Input::Request { request, peer, content, is_confirmable } => {
                self.call(request, Call::new(peer, content, is_confirmable));
            }
            Input::Unpaced { request, peer, content } => {
                self.call(request, Call::unpaced(peer, content));
            }
            Input::Further { exchange, content } => {
                server::respond_in_part(self, exchange, &content);
            }
            Input::Drop { exchange } => server::leave_unanswered(self, exchange),
            Input::Ping { request, peer } => self.call(request, Call::ping(peer)),
            Input::Respond { exchange, content } => self.respond(exchange, content),
            Input::Challenge { exchange } => match self.exchanges.get(&exchange) {
                Some(Exchange { peer, .. }) => {
                    let content = self.common.challenge(*peer);
                    self.respond(exchange, content);
                }
                None => self.common.counts.misused += 1,
            },
            Input::Notify { exchange, content } => self.notify(exchange, content),
            Input::Cancel { request } => self.cancel(request),
            // There are no bodies here.
            Input::Open { .. } | Input::Begin { .. } | Input::Flow(_) => {
                self.common.counts.misused += 1
            }
            Input::Rate(rate_bps) => self.common.link.set_rate(rate_bps),
            Input::Wake => {}
        }
        while let Some(timer) = self.common.timers.pop(self.common.now) {
            self.due(timer);
        }
    }

    /// The next thing to do; `None` when there is nothing until the next input.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        if let Some(output) = self.common.outputs.pop_front() {
            return Some(output);
        }
        let wake_at = self.common.timers.next().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    fn due(&mut self, timer: Timer<P>) {
        match timer {
            Timer::Flight(peer) => self.overdue(peer),
            Timer::Queue(peer) => self.pump(peer),
            Timer::Acknowledge(exchange) => self.acknowledge(exchange),
            Timer::Expire(exchange) => {
                // The application took too long for anything.
                self.respond(exchange, Content::new(Code::SERVICE_UNAVAILABLE));
            }
            Timer::Leisure(exchange) => self.answer_group(exchange),
            Timer::Answer(request) => self.unanswered(request),
            Timer::Renew(request) => self.renew(request),
            Timer::Notify(exchange) => self.send_notification(exchange),
        }
    }

    /// A place for the peer; false if there is none.
    fn enter(&mut self, peer: P, is_known: bool) -> bool {
        let [high, low, ..] = self.common.chance.next(For::MessageId).to_le_bytes();
        let first_mid = u16::from_be_bytes([high, low]);
        match self.common.peers.enter(self.common.now, peer, is_known, first_mid) {
            Entered::No => false,
            Entered::Yes(None) => true,
            Entered::Yes(Some(forgotten)) => {
                self.forget_open(forgotten);
                true
            }
        }
    }

    /// The peer has what was sent to its address.
    pub(super) fn validate(&mut self, peer: P) {
        if self.enter(peer, true)
            && let Some(place) = self.common.peers.get_mut(peer)
        {
            place.is_validated = true;
        }
    }

    fn datagram(&mut self, peer: P, bytes: &Bytes, is_group: bool) {
        let datagram = match Datagram::decode(bytes) {
            Ok(datagram) => datagram,
            Err(_) => {
                self.common.counts.malformed += 1;
                // RFC 7252 §4.2: a confirmable one with a format error is reset.
                if let Some((Kind::Confirmable, mid)) = Datagram::peek(bytes) {
                    self.common.reset(peer, mid, is_group);
                }
                return;
            }
        };
        let code = datagram.message.code;
        match datagram.kind {
            // RFC 7252 §8.1: to a group nothing is confirmable.
            Kind::Confirmable if is_group => self.common.counts.malformed += 1,
            Kind::Acknowledgement if code == Code::EMPTY => self.acknowledged(peer, datagram.mid),
            Kind::Acknowledgement if code.is_response() => self.answered(peer, &datagram),
            // RFC 7252 §4.2: a reset is empty, an acknowledgement has no request in it.
            Kind::Reset if code == Code::EMPTY => self.was_reset(peer, datagram.mid),
            Kind::Acknowledgement | Kind::Reset => self.common.counts.malformed += 1,
            _ if code.is_request() => self.requested(peer, &datagram, bytes.len(), is_group),
            _ if code.is_response() => self.answered(peer, &datagram),
            // RFC 7252 §4.3: this is how one finds out whether we are there.
            Kind::Confirmable => self.common.reset(peer, datagram.mid, is_group),
            Kind::NonConfirmable => self.common.counts.malformed += 1,
        }
    }
}

/// What an observer learns in which order (RFC 7641 §3.4): whether the second is newer.
#[must_use]
pub fn is_newer(before: (u32, Duration), after: (u32, Duration)) -> bool {
    const HALF_OF_ALL: u32 = 1 << 23;
    const MAX_ORDERED: Duration = Duration::from_secs(128);
    let ((first, first_at), (second, second_at)) = (before, after);
    (first < second && second - first < HALF_OF_ALL)
        || (first > second && first - second > HALF_OF_ALL)
        || second_at > first_at + MAX_ORDERED
}

/// What a peer takes to acknowledge a message, smoothed, where that is known.
pub(super) fn round_trip<P: Address>(endpoint: &Endpoint<P>, peer: P) -> Option<Duration> {
    endpoint.common.peers.get(peer)?.round_trip.smoothed()
}

/// Whether the peer is known to have a request of ours, or it is not open.
pub(super) fn is_delivered<P>(endpoint: &Endpoint<P>, request: u64) -> bool {
    endpoint.calls.get(&request).is_none_or(Call::is_delivered)
}

/// Whether a peer's request was confirmable; not where it is not open.
pub(super) fn is_confirmable<P>(endpoint: &Endpoint<P>, exchange: u64) -> bool {
    let kind = endpoint.exchanges.get(&exchange).map(|exchange| exchange.kind);
    kind == Some(Kind::Confirmable)
}

/// When all that was sent so far has left, as far as the rate of the link is known.
pub(super) fn left_at<P: Address>(endpoint: &Endpoint<P>) -> Duration {
    endpoint.common.link.free_at().max(endpoint.common.now)
}

/// How long a response is fresh (RFC 7252 §5.10.5).
fn max_age(content: &Content) -> Duration {
    Duration::from_secs(content.uint(option::MAX_AGE).unwrap_or(option::DEFAULT_AGE_S).into())
}
