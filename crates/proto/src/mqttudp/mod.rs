//! MQTT/UDP: publish and subscribe without a broker, in datagrams to everybody.
//!
//! On the wire it is an MQTT 3.1.1 packet without a packet identifier, and behind it, where the
//! packet's own length ends, tagged records: a number, times, a signature. The source is what the
//! protocol's implementations send and read, as nothing else describes it.
//!
//! - [`Datagram`]: packet and records on slices, and whether a key signed them.
//! - [`Packet`], [`Records`]: what a datagram says.
//! - [`Signer`]: what is signed with, by the protocol's HMAC-MD5 or by HMAC-SHA-256.
//!
//! ```
//! use longwire_proto::mqttudp::{Datagram, Packet, Records, Signer};
//! let packet = Packet::publish("a/b", b"21.5");
//! let records = Records { number: Some(7), ..Records::default() };
//! let mut out = Vec::new();
//! packet.encode(&records, &Signer::NONE, &mut out)?;
//! assert_eq!(out, b"\x30\x09\x00\x03a/b21.5n\x04\x00\x00\x00\x07");
//! let datagram = Datagram::decode(&out)?;
//! assert_eq!((datagram.packet, datagram.records), (packet, records));
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod datagram;
mod hmac;
mod md5;
mod packet;
mod tail;
#[cfg(test)]
mod tests;

pub use datagram::{Datagram, MAX_DATAGRAM_BYTES};
pub use packet::{MAX_QOS, Packet, Publish};
pub use tail::{Records, Signature, Signer, is_newer};
