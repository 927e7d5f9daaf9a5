//! Carriers over QUIC (RFC 9000): streams of the relay's machine ([`proto::quic`]), between sides
//! that know each other by their pinned keys.
//!
//! [`quinn_proto`] is the transport; sockets and clocks are here. An edge has a socket for each
//! carrier, the gateway one for all. What is given to the transport is little more than the path
//! takes, so that what is urgent passes what is not.

mod congestion;
mod dial;
mod door;
mod line;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use proto::exchange::Role;
use proto::kinds::Kind;
use quinn_proto::{
    EndpointConfig, HashedConnectionIdGenerator, IdleTimeout, TransportConfig, VarInt,
};
use ring::hmac;

pub(super) use dial::Met;
pub(crate) use door::Door;

use super::Carriers;
use crate::keys::Identity;
pub(crate) use congestion::Seen;
use congestion::{Control, Counting};

/// The kind of carriers that these are.
pub(crate) const KIND: Kind = Kind::QUIC;
/// Streams that an edge may open before it is known who it is: its HELLO's and those of requests
/// that go ahead; the transport makes room for all of them at once.
const MAX_FIRST_STREAMS: u32 = 32;
/// Most streams that an edge has open at once: the relay's bound on exchanges is announced in its
/// HELLO, and this is beyond it.
const MAX_STREAMS: u32 = 4096;
/// Bytes that the peer may send on a stream, and on all, before they are read: the relay's credit
/// holds back bodies, and is less.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const WINDOW_BYTES: u32 = 16 << 20;
/// A round trip where nothing is known of it (RFC 9002 §6.2.2).
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(333);

/// Of an endpoint that says of connections that it does not know that they are forgotten, with what
/// only who has `identity`'s key can make.
fn endpoint_config(identity: &Identity) -> Option<EndpointConfig> {
    let secret = identity.to_x25519()?;
    let root = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    let key = hmac::sign(&root, b"longwire quic reset tokens");
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())));
    // It says so of connections of the process before too, which it tells by their ids.
    let ids = hmac::sign(&root, b"longwire quic connection ids");
    let ids = u64::from_be_bytes(*ids.as_ref().first_chunk()?);
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    // By its first byte a datagram is told from those of other carriers (RFC 9443 §3).
    config.grease_quic_bit(false);
    Some(config)
}

impl Carriers {
    /// Of one connection, which notes what it sees of the path.
    fn quic_control(&self, seen: &Arc<Seen>) -> Counting {
        let (congestion, own_bytes_per_s) = self.sending();
        Control::named(congestion).counting(seen, own_bytes_per_s)
    }
}

/// Of one connection of a side of this role. It ends where nothing has come for `silence`, which no
/// relay lets pass without a sign of life.
fn transport(
    role: Role,
    control: Counting,
    (first_round_trip, silence): (Duration, Duration),
) -> TransportConfig {
    let mut config = TransportConfig::default();
    let streams = if role == Role::Gateway { MAX_FIRST_STREAMS } else { 0 };
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .datagram_receive_buffer_size(None)
        // The relay asks for signs of life, and gives up who shows none; where it is not known yet
        // whether the peer answers, this does.
        .max_idle_timeout(IdleTimeout::try_from(silence).ok())
        .keep_alive_interval(None)
        // What a slow link takes is precious, and probes pass by the window.
        .mtu_discovery_config(None)
        .initial_rtt(first_round_trip)
        .congestion_controller_factory(Arc::new(control));
    config
}
