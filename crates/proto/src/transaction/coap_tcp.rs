//! Transactions as requests over a connection (RFC 8323).

use std::time::Duration;

use bytes::Bytes;

use super::coap::{failed, response};
use super::resource::{self, Resources};
use super::{Below, Event, Transport};
use crate::Error;
use crate::carrier::{Measured, Setup};
use crate::coap::stream::{Connection, End, Framing, Input, Output, Settings};
use crate::coap::{Code, Content};
use crate::exchange::Role;

/// A connection.
#[derive(Debug)]
pub(super) struct Pipe {
    connection: Connection,
    resources: Resources,
}

impl Pipe {
    pub(super) fn new(setup: &Setup) -> Self {
        let side = if setup.role == Role::Edge { 0 } else { 1 };
        let seed = [setup.instance, side];
        let connection = Connection::new(&Settings { seed, framing: Framing::Stream, idle: None });
        Self { connection, resources: Resources::default() }
    }
}

impl Transport for Pipe {
    // As over datagrams.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn hear(&mut self, now: Duration, below: Below) {
        let input = match below {
            Below::Bytes(bytes) => Input::Bytes(bytes),
            Below::Datagram(_) | Below::Wake => Input::Wake,
        };
        self.connection.handle_input(now, input);
    }

    fn request(&mut self, now: Duration, number: u64, payload: Bytes) {
        let content = self.resources.request(number, payload);
        self.connection.handle_input(now, Input::Request { request: number, content });
    }

    fn answer(&mut self, now: Duration, number: u64, payload: Bytes) {
        let content = resource::answer(payload);
        self.connection.handle_input(now, Input::Respond { exchange: number, content });
    }

    fn refuse(&mut self, now: Duration, number: u64) {
        let content = Content::new(Code::UNAUTHORIZED);
        self.connection.handle_input(now, Input::Respond { exchange: number, content });
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            return Some(match self.connection.poll_output()? {
                Output::Transmit(bytes) => Event::Bytes(bytes),
                Output::Request { exchange, content } => match resource::payload_of(&content) {
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
                Output::Closed(end) => ended(&end),
                Output::WakeAt(at) => Event::WakeAt(at),
                Output::Flow(_)
                | Output::Opened { .. }
                | Output::Suppressed { .. }
                | Output::Alive { .. }
                | Output::Ended { .. }
                | Output::Released { .. } => continue,
            });
        }
    }

    /// The transport below knows what has arrived.
    fn is_delivered(&self, _: u64) -> bool {
        true
    }

    fn measured(&self) -> Option<Measured> {
        None
    }
}

/// What the end of a connection is, seen from this side.
fn ended(end: &End) -> Event {
    let of_peer = |what| Error::Peer { what, value: 0 };
    match end {
        End::Eof | End::Released => Event::Lost(of_peer("the connection was closed")),
        End::Silent(_) => Event::Lost(of_peer("the peer is silent though it should not be")),
        End::Aborted { .. } => Event::Failed(of_peer("the connection was given up by the peer")),
        End::GivenUp(what) => Event::Failed(Error::Caller { what }),
        End::Broken(_) => Event::Failed(of_peer("the peer breaks the protocol of the connection")),
    }
}
