//! Carriers over transports of requests and responses: each exchange is a transaction of theirs.
//!
//! The edge gathers the parts of a request, as frames of [`crate::stream`], and sends them as the
//! payload of one request of the transport when they are whole; the parts of the answer are the
//! payload of its response. HELLO and PING have transactions of their own, and so has what gives an
//! exchange up (ABORT). No CONTROL crosses, and a gateway says nothing unasked. It gives no CREDIT
//! either, as a request is bounded as a whole.
//!
//! A response has what is there of a long answer, or of one that takes long, and nothing where
//! there is nothing. As long as the exchange is open the edge then asks on, by a CREDIT of 0 bytes.
//! One of more bytes has a transaction beside that: nothing comes with its response, so that the
//! order is kept. An edge opens no exchange anew while a transaction of one of the same number is
//! open. Where ABORT overtakes what it is about, the gateway does not take that when it comes.
//!
//! | kind | below | a transaction |
//! | --- | --- | --- |
//! | `coap` | datagrams | POST of the resource `lw`, confirmable (RFC 7252) |
//! | `coap+tcp` | a byte pipe | the same over a connection (RFC 8323) |
//!
//! What is longer than a message goes in blocks (RFC 7959, RFC 8323 §6). What the transport
//! acknowledges and sends again is its own. Transactions that are open at once have resources of
//! their own (`lw/1`, `lw/2`), lest blocks of their answers be taken for each other's (RFC 7959
//! §2.4).

mod asked;
mod calls;
mod coap;
mod coap_tcp;
mod gathered;
mod machine;
mod resource;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::Error;
use crate::carrier::{self, Abilities, Measured, Setup};
use machine::Machine;

/// Exchanges of a carrier that are open at once: an endpoint of CoAP puts together as many bodies
/// of a peer, and keeps twice as many for it to fetch.
pub const MAX_EXCHANGES: u64 = 4;
/// Most bytes of a request's body: with frames around each byte that is still a body of CoAP.
pub const MAX_REQUEST_BYTES: u64 = 64 << 10;
/// Most bytes of a datagram: those of burst, so that they can be sealed as its are.
pub const MAX_DATAGRAM_BYTES: usize = crate::burst::MAX_DATAGRAM_BYTES;
/// Bytes of a message that leave before the peer has answered (RFC 7959 §2.2).
pub const BLOCK_BYTES: usize = 1024;

const _: () = assert!(MAX_EXCHANGES <= crate::coap::transfer::MAX_UPLOADS_PER_PEER as u64);
const _: () = assert!(2 * MAX_EXCHANGES <= crate::coap::transfer::MAX_SERVED_PER_PEER as u64);

/// What carriers over datagrams of CoAP can do.
pub const COAP_ABILITIES: Abilities = Abilities {
    ordered: false,
    streams: false,
    gateway_first: false,
    control: false,
    early: false,
    repairs: false,
    max_datagram_bytes: Some(MAX_DATAGRAM_BYTES),
    max_request_bytes: Some(MAX_REQUEST_BYTES),
    max_answer_bytes: None,
    block_bytes: Some(BLOCK_BYTES),
};

/// What carriers over connections of CoAP can do.
pub const COAP_TCP_ABILITIES: Abilities =
    Abilities { max_datagram_bytes: None, block_bytes: None, ..COAP_ABILITIES };

/// One end of a carrier over datagrams of CoAP.
#[must_use]
pub fn over_coap(setup: Setup) -> Box<dyn carrier::Machine> {
    let transport = coap::Datagrams::new(&setup);
    Box::new(Machine::new(setup, transport))
}

/// One end of a carrier over a connection of CoAP.
#[must_use]
pub fn over_coap_tcp(setup: Setup) -> Box<dyn carrier::Machine> {
    let transport = coap_tcp::Pipe::new(&setup);
    Box::new(Machine::new(setup, transport))
}

/// What a transport says.
#[derive(Debug)]
enum Event {
    /// Gateway: a request came, to be answered by its number. Edge: the response to the request of
    /// this number.
    Came { number: u64, payload: Bytes },
    /// Gateway: a request came that is no transaction; it is to be refused.
    Foreign(u64),
    /// No use can be made of what the peer says.
    Failed(Error),
    /// The peer is not there any more, or knows nothing of the carrier.
    Lost(Error),
    /// Bytes for the pipe below.
    Bytes(Bytes),
    /// A datagram for the path below.
    Datagram(Bytes),
    /// The transport is to be woken then.
    WakeAt(Duration),
}

/// What comes from below.
#[derive(Debug)]
enum Below {
    Bytes(Bytes),
    Datagram(Bytes),
    Wake,
}

/// One end of a transport, whose only peer is the other relay. After each call the caller drains
/// [`Transport::next_event`].
trait Transport: fmt::Debug + Send {
    /// A gateway answers within so long, and be it with nothing.
    const PATIENCE: Duration;

    /// Something came from below, or its time has come.
    fn hear(&mut self, now: Duration, below: Below);

    /// Edge: sends a request. The number is of no other that has no response.
    fn request(&mut self, now: Duration, number: u64, payload: Bytes);

    /// Gateway: answers the request of this number, once.
    fn answer(&mut self, now: Duration, number: u64, payload: Bytes);

    /// Gateway: answers it with an error: it is no transaction of this carrier.
    fn refuse(&mut self, now: Duration, number: u64);

    /// What there is to do.
    fn next_event(&mut self) -> Option<Event>;

    /// Edge: whether the peer is known to have the request.
    fn is_delivered(&self, number: u64) -> bool;

    /// What it has measured of the path; `None` where what is below does so.
    fn measured(&self) -> Option<Measured>;
}
