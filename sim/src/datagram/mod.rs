//! A small carrier over datagrams that are lost, come late, out of order or twice: the carrier seam
//! with the least that it asks for. No file of `relay` or `coding` knows of it.
//!
//! Messages (a frame of `proto::stream` each) are numbered, cut into fragments and sent again until
//! each fragment was acknowledged. A message names the one before it of the same exchange, so that
//! the order within exchanges is kept and no other.

mod machine;
mod packet;
mod receiving;
mod sending;

use proto::carrier::{Abilities, Setup};
use proto::kinds::{Carrier, Kind};

/// Most bytes of a datagram: what any link takes in a piece, with the headers below.
pub(crate) const MAX_DATAGRAM_BYTES: usize = 1200;
/// Messages that may be under way at once; a peer that is ahead by more breaks the protocol.
const MAX_AHEAD: u64 = 1024;

/// As a relay is told of it.
pub const KIND: Kind = Kind {
    name: "datagram",
    abilities: Abilities {
        ordered: false,
        streams: true,
        gateway_first: true,
        control: true,
        early: false,
        repairs: false,
        max_datagram_bytes: Some(MAX_DATAGRAM_BYTES),
        max_request_bytes: None,
        max_answer_bytes: None,
        block_bytes: None,
    },
    make,
};

fn make(setup: Setup) -> Carrier {
    Carrier::Other(Box::new(machine::Machine::new(setup)))
}
