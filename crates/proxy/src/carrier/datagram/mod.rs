//! Carriers over UDP: datagrams of the relay's machine, sealed ([`proto::sealed`]).
//!
//! An edge has a socket for each carrier, the gateway one for all. Who sends to the gateway is a
//! stranger until its first message proves that it has the key of a peer; before that, nothing is
//! kept of it, little time is spent on it ([`tokens`]) and little is sent to it.

mod dial;
mod door;
mod firsts;
mod noise;
mod seal;
mod session;
#[cfg(test)]
mod tests;
mod tokens;

pub(super) use dial::connect;
pub(crate) use door::Door;

use proto::kinds::Kind;

/// Datagrams that wait for a socket; one more is as good as lost, and comes again.
pub(crate) const MAX_WAITING: usize = 1024;
/// What a sealed datagram holds that closes the carrier: nothing. It is sent so many times, for
/// one may be lost, and who hears none finds out in time.
const CLOSES: usize = 2;

/// The kinds of carriers that these are.
pub(crate) const KINDS: [Kind; 2] = [Kind::BURST, Kind::COAP];

/// Whether a datagram, the first of a carrier, is a request of CoAP (RFC 7252 §3): of version 1,
/// and with a method. Those of burst begin with a low number.
pub(super) fn is_coap(datagram: &[u8]) -> bool {
    const VERSION: (u8, u8) = (0xc0, 0x40);
    const METHODS: std::ops::RangeInclusive<u8> = 1..=31;
    let (mask, version) = VERSION;
    matches!(datagram, [first, code, ..] if first & mask == version && METHODS.contains(code))
}

/// The kind of a carrier whose first datagram this is.
fn kind_of(first: &[u8]) -> Kind {
    if is_coap(first) { Kind::COAP } else { Kind::BURST }
}
