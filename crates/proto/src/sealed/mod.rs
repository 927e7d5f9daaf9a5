//! Sealed datagrams: what a carrier over datagrams is made secret and known by.
//!
//! Both ends have keys that the other has pinned. They agree as Noise IK has it (the Noise Protocol
//! Framework, revision 34, §7.5), but nothing waits for that: until the other's part of the
//! handshake is here, each datagram has this end's in front, and is sealed with what the keys so
//! far give. So any datagram that arrives is read, whichever are lost.
//!
//! | sent by | until | as | sealed with |
//! | --- | --- | --- | --- |
//! | dialler | the answer is here | [`Packet::First`] | the keys behind the first message (0-RTT) |
//! | dialled | something came with the session's keys | [`Packet::Answer`] | the session's keys |
//! | both | | [`Packet::Data`], [`Packet::Reply`] | the session's keys |
//! | dialled | | [`Packet::Retry`], [`Packet::Reset`] | nothing: they are no secrets |
//!
//! What is sealed with the keys behind the first message alone can be played back by others, and
//! read by who gets hold of the dialled side's key later; what may go so, the relay decides. Who
//! is dialled takes a first message only with a time that is later than any that it had of the same
//! key, or with a token that it has just given out ([`Packet::Retry`]) to that address, which the
//! handshake then contains: it is no older than the token.
//!
//! Datagrams are numbered, of which 24 bits are sent, and none is read twice ([`Window`]).

mod packet;
#[cfg(test)]
mod tests;
mod window;

pub use packet::{
    CONNECTION_BYTES, FIRST_MESSAGE_BYTES, Granted, HeadBytes, Inside, Packet, RESET_BYTES,
    SECOND_MESSAGE_BYTES, Said, TAG_BYTES, TOKEN_BYTES,
};
pub use window::Window;
