//! A carrier over datagrams for messages that have to be there soon, however much gets lost.
//!
//! The frames of [`crate::stream`] that are sent of one exchange at a time are gathered into a
//! generation, which is cut into symbols of equal length. Any of them, and of repair symbols made
//! of them, that are as many as the source symbols restore it (`code`): what is lost need not be
//! told apart, but only how much. How much repair leaves with the source symbols, and how much
//! once losses show, is what is expected to cost less time: `code::repairs`. A generation names
//! the one before it of the same exchange: the order within exchanges is kept, and no other.
//!
//! Datagrams are numbered, and acknowledged by ranges of numbers, each range again and again
//! (`packet`); which are lost, and how long a round trip takes, is found out as RFC 9002 has it
//! (`sent`). They leave at the rate that the path is seen to deliver (`pace`).
//!
//! A path may swallow datagrams for their length: what has not arrived of a generation is then cut
//! into more, shorter symbols, and of two cuts the one with more symbols counts (`lengths`).
//!
//! There is no handshake: the first datagrams hold the HELLO and, behind it, what may go before
//! the peer's. Who the peer is, that nobody reads or changes what passes, and that nothing is read
//! twice is for whoever carries the datagrams: they are sealed and come from the peer.

mod code;
mod lengths;
mod machine;
mod pace;
mod packet;
mod receiving;
mod sending;
mod sent;
#[cfg(test)]
mod tests;

pub use machine::Machine;

use crate::carrier::Abilities;

/// Most bytes of a datagram: with 24 that seal it what any path takes in a piece (RFC 9000 §14).
pub const MAX_DATAGRAM_BYTES: usize = 1176;
/// The same until the peer has acknowledged one: what makes both known to each other goes with it.
pub const FIRST_DATAGRAM_BYTES: usize = 1040;
/// What a datagram takes on the path beside its own bytes, about: the heads of IPv4 and UDP, and
/// what seals it.
const AROUND_DATAGRAM_BYTES: usize = 52;
/// What the longest datagram takes there.
const FULL_BYTES: usize = MAX_DATAGRAM_BYTES + AROUND_DATAGRAM_BYTES;
/// Of the bytes of a datagram, what stands beside a symbol: numbers, its place, and an
/// acknowledgement of a range.
const BESIDE_BYTES: usize = 40;
/// Most bytes of a symbol.
const MAX_SYMBOL_BYTES: usize = MAX_DATAGRAM_BYTES - BESIDE_BYTES;
/// Most bytes of a generation: the longest frame fits, and none goes beyond its generation.
const MAX_GENERATION_BYTES: usize = 72 * 1024;
/// The generation with the HELLO, which is read before all others.
const FIRST_GENERATION: u64 = 1;
/// Generations that may be under way at once; a peer that is ahead by more breaks the protocol.
const MAX_AHEAD: u64 = 1024;
/// Most bytes of generations that came and are not read.
const MAX_HELD_BYTES: usize = 2 << 20;

/// What carriers of this kind can do.
pub const ABILITIES: Abilities = Abilities {
    ordered: false,
    streams: true,
    gateway_first: true,
    control: true,
    early: true,
    repairs: true,
    max_datagram_bytes: Some(MAX_DATAGRAM_BYTES),
    max_request_bytes: None,
    max_answer_bytes: None,
    block_bytes: None,
};

const _: () =
    assert!(MAX_GENERATION_BYTES <= code::MAX_SOURCE * (FIRST_DATAGRAM_BYTES - BESIDE_BYTES));
