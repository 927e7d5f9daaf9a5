//! Carriers over UDP: datagrams of the relay's machine, sealed ([`proto::sealed`]).
//!
//! An edge has a socket for each carrier, the gateway one for all. Who sends to the gateway is a
//! stranger until its first message proves that it has the key of a peer; before that, nothing is
//! kept of it, little time is spent on it ([`tokens`]) and little is sent to it.

mod dial;
mod door;
mod noise;
mod seal;
mod session;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use door::Door;

use proto::kinds::Kind;

/// Datagrams that wait for a socket; one more is as good as lost, and comes again.
pub(crate) const MAX_WAITING: usize = 1024;
/// Most bytes of a datagram that are read: none of ours has more.
const MAX_BYTES: usize = 1500;
/// What a sealed datagram holds that closes the carrier: nothing. It is sent so many times, for
/// one may be lost, and who hears none finds out in time.
const CLOSES: usize = 2;
/// Bytes that the kernel keeps of datagrams that wait to be read, if it gives as much.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// The kind of carriers that these are.
pub(crate) const KIND: Kind = Kind::BURST;
