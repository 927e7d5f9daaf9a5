//! Bodies in many blocks that are not confirmed one by one (RFC 9177): sent in sets, after which
//! the other side says how far it has come or which blocks are missing.
//!
//! Without sockets and clocks, beside the transfers of RFC 7959 and apart from them:
//!
//! - [`missing`] is what a server says of blocks that have not come.
//! - `gathered` is a body of which blocks come in any order, `outgoing` one of which they leave.
//! - `client` and `server` are the two roles.
//!
//! A client asks each server first, by a confirmable request for 16 bytes of its links, whether it
//! knows these options (§4.1), and goes on by RFC 7959 where it does not. It uses them for what can
//! be asked again without harm, and for request bodies over a block. Not used: with OSCORE, with
//! Observe (a long notification goes in blocks of RFC 7959, to all), over reliable transports.
//!
//! What bounds it: a peer has to show that it has its address before it gets more than one datagram
//! for one; bodies have at most [`MAX_BODY_BYTES`](crate::coap::MAX_BODY_BYTES); a set has
//! [`MAX_PAYLOADS`] blocks, and the next leaves once the peer says so or after a pause; a block is
//! asked for again at most [`MAX_NON_RETRANSMIT`] times in a row; blocks are repeated no more than
//! so often for each that the body has.

mod asked;
mod client;
mod gathered;
pub mod missing;
mod outgoing;
mod server;

use std::time::Duration;

use crate::coap::{Block, Content, option};

pub(super) use client::{Client, is_part};
pub(super) use server::Server;

pub use client::MAX_SUPPORT;
pub use server::{
    MAX_GATHERED, MAX_GATHERED_BYTES, MAX_GATHERED_PER_PEER, MAX_SENDINGS, MAX_SENDINGS_PER_PEER,
};

/// Blocks of a set (RFC 9177 §7.2: the same at both ends).
pub const MAX_PAYLOADS: u32 = 10;
/// Times in a row that blocks are asked for without an answer (RFC 9177 §7.2, which calls it
/// `NON_MAX_RETRANSMIT`).
pub const MAX_NON_RETRANSMIT: u32 = 4;
/// Least pause between two sets; each body has one of up to half as much again (RFC 9177 §7.2).
pub const NON_TIMEOUT: Duration = Duration::from_secs(2);
/// For so long the next block is waited for before those that are missing are asked for; twice as
/// long each further time (RFC 9177 §7.2).
pub const NON_RECEIVE_TIMEOUT: Duration = Duration::from_secs(4);
/// A body of which blocks are missing is kept for so long behind the newest (RFC 9177 §7.2).
pub const NON_PARTIAL_TIMEOUT: Duration = Duration::from_secs(247);

/// The pause behind the `count`th time (from 0) that something was asked for in vain.
fn receive_timeout(count: u32) -> Duration {
    NON_RECEIVE_TIMEOUT * (1 << count.min(MAX_NON_RETRANSMIT))
}

/// How many blocks a body has; an empty one has one.
fn blocks_of(bytes: usize, szx: u8) -> u32 {
    let unit = Block { num: 0, more: false, szx }.size_bytes();
    u32::try_from(bytes.div_ceil(unit).max(1)).unwrap_or(u32::MAX)
}

/// The set that a block belongs to.
fn set_of(num: u32) -> u32 {
    num / MAX_PAYLOADS
}

fn put_block(content: &mut Content, number: option::Number, block: Block) {
    if let Ok(value) = block.encode() {
        content.push(number, value.as_slice());
    }
}
