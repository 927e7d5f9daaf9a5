//! Transactions as confirmable requests over datagrams (RFC 7252), in blocks where they are long.

use std::time::Duration;

use bytes::Bytes;

use super::resource::{self, Resources};
use super::{Below, Event, Transport};
use crate::Error;
use crate::carrier::{Measured, Setup};
use crate::coap::machine::{Input, Output, Reason, Settings};
use crate::coap::transfer::Transfers;
use crate::coap::{Code, Content};
use crate::exchange::Role;

/// Said of a gateway that has started again.
const KNOWS_NOTHING: &str = "the gateway knows nothing of the carrier";

/// An endpoint with one peer.
#[derive(Debug)]
pub(super) struct Datagrams {
    endpoint: Transfers<()>,
    resources: Resources,
    /// Datagrams that left.
    sent: u32,
    /// What had been sent again when something came last.
    sent_again_before: u64,
    min_round_trip: Option<Duration>,
}

impl Datagrams {
    /// Tokens and message ids follow from the instance, which is drawn at random at every start:
    /// whoever is not the peer and not on the path does not know it.
    pub(super) fn new(setup: &Setup) -> Self {
        let side = if setup.role == Role::Edge { 0 } else { 1 };
        let rate_bps = setup.own_bytes_per_s.map(|rate| rate.saturating_mul(8));
        // Whose address it is, whoever carries the datagrams knows.
        let settings = Settings { seed: [setup.instance, side], is_challenging: false, rate_bps };
        Self {
            endpoint: Transfers::new(&settings),
            resources: Resources::default(),
            sent: 0,
            sent_again_before: 0,
            min_round_trip: None,
        }
    }

    /// The round trip as it is now, and the least.
    fn note_round_trip(&mut self) {
        if let Some(now) = self.endpoint.round_trip(()) {
            self.min_round_trip = Some(self.min_round_trip.map_or(now, |least| least.min(now)));
        }
    }
}

impl Transport for Datagrams {
    // Well within the time that an endpoint gives an application.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn hear(&mut self, now: Duration, below: Below) {
        match below {
            Below::Datagram(bytes) => {
                self.sent_again_before = self.endpoint.counts().retransmitted;
                let input = Input::Datagram { peer: (), bytes, is_group: false };
                self.endpoint.handle_input(now, input);
                self.note_round_trip();
            }
            Below::Bytes(_) | Below::Wake => self.endpoint.handle_input(now, Input::Wake),
        }
    }

    fn request(&mut self, now: Duration, number: u64, payload: Bytes) {
        let content = self.resources.request(number, payload);
        let (peer, is_confirmable) = ((), true);
        let input = Input::Request { request: number, peer, content, is_confirmable };
        self.endpoint.handle_input(now, input);
    }

    fn answer(&mut self, now: Duration, number: u64, payload: Bytes) {
        let content = resource::answer(payload);
        self.endpoint.handle_input(now, Input::Respond { exchange: number, content });
    }

    fn refuse(&mut self, now: Duration, number: u64) {
        let content = Content::new(Code::UNAUTHORIZED);
        self.endpoint.handle_input(now, Input::Respond { exchange: number, content });
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            return Some(match self.endpoint.poll_output()? {
                Output::Datagram { bytes, .. } => {
                    self.sent = self.sent.wrapping_add(1);
                    Event::Datagram(bytes)
                }
                Output::Request { exchange, content, .. } => match resource::payload_of(&content) {
                    Some(payload) => Event::Came { number: exchange, payload },
                    None => Event::Foreign(exchange),
                },
                Output::Response { request, content, .. } => {
                    self.resources.end(request);
                    response(request, content)
                }
                Output::Failed { request, reason } => {
                    self.resources.end(request);
                    failed(request, reason)
                }
                Output::WakeAt(at) => Event::WakeAt(at),
                // Nothing is observed, bodies are whole, nothing asks for no answer, and nobody is
                // pinged.
                Output::Flow(_)
                | Output::Opened { .. }
                | Output::Suppressed { .. }
                | Output::Alive { .. }
                | Output::Ended { .. } => continue,
            });
        }
    }

    fn is_delivered(&self, number: u64) -> bool {
        self.endpoint.is_delivered(number)
    }

    fn measured(&self) -> Option<Measured> {
        let counts = self.endpoint.counts();
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let in_a_row = counts.retransmitted.saturating_sub(self.sent_again_before);
        Some(Measured {
            round_trip: self.endpoint.round_trip(()).unwrap_or_default(),
            min_round_trip: self.min_round_trip.unwrap_or_default(),
            bytes_per_s: 0,
            sent: self.sent,
            sent_again: number(counts.retransmitted),
            timeouts: number(in_a_row),
            incoming_loss_ppm: None,
        })
    }
}

/// A response, to which a transaction comes.
pub(super) fn response(request: u64, content: Content) -> Event {
    let value = u64::from(content.code.0);
    match content.code {
        code if code.is_success() => Event::Came { number: request, payload: content.payload },
        Code::UNAUTHORIZED => Event::Lost(Error::Peer { what: KNOWS_NOTHING, value }),
        _ => Event::Failed(Error::Peer { what: "a transaction is refused with the code", value }),
    }
}

/// A request that has no response.
pub(super) fn failed(request: u64, reason: Reason) -> Event {
    let of_peer = |what| Error::Peer { what, value: request };
    match reason {
        Reason::TimedOut | Reason::NoAnswer => Event::Lost(of_peer("nobody answers a transaction")),
        Reason::Reset => Event::Lost(of_peer(KNOWS_NOTHING)),
        Reason::Closed => Event::Lost(of_peer("the connection takes no further transaction")),
        Reason::Full | Reason::Misuse => {
            Event::Failed(Error::Caller { what: "no further transaction can begin" })
        }
        _ => Event::Failed(of_peer("no use can be made of the answer to a transaction")),
    }
}
