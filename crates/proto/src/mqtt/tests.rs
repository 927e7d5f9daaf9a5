//! What the standards say, clause by clause, and what any bytes and any packets come to.

mod captures;
mod frames;
mod packets;
mod properties;
mod refused;
mod topics;

use bytes::BytesMut;

use super::{Packet, Refused, Version, encode, encoded_len, take};

/// Longest packet that these tests take.
const MAX_PACKET_BYTES: usize = 1 << 20;

/// The one packet that these bytes are.
fn one(version: Version, bytes: &[u8]) -> Result<Packet, Refused> {
    let mut input = BytesMut::from(bytes);
    let packet = take(version, &mut input, MAX_PACKET_BYTES)?.expect("a whole packet");
    assert!(input.is_empty(), "{} bytes are left of {bytes:02x?}", input.len());
    Ok(packet)
}

/// The bytes of a packet.
fn bytes_of(version: Version, packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    encode(packet, version, &mut out).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
    assert_eq!(encoded_len(packet, version), out.len(), "{packet:?}");
    out
}

/// Reads a packet that is written as it was.
fn same(version: Version, bytes: &[u8]) -> Packet {
    let packet = one(version, bytes).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
    assert_eq!(bytes_of(version, &packet), bytes, "{packet:?}");
    packet
}
