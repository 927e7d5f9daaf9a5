//! Packets of MQTT 3.1, 3.1.1 and 5, for clients and servers.
//!
//! - [`frame()`] finds out how long the next packet of a stream is, [`take`] takes it out.
//! - [`decode`] reads a packet, [`encode()`] writes one; [`encode_publish_head`] writes all of a
//!   PUBLISH but its payload, so that the payload need not be copied.
//! - [`Packet`] is a packet of any of the three versions. What a version lacks is left out when a
//!   packet is written for it: a caller makes packets as MQTT 5 has them.
//! - [`Properties`] are the properties of MQTT 5, kept as they came.
//! - [`client`] is a client as a machine: its session and what is on the way.
//! - [`topic`] checks and compares names and filters of topics.
//!
//! Texts and payloads are parts of the bytes that came in, which they keep in memory; whoever holds
//! a packet for long should copy them.
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use longwire_proto::mqtt::{Packet, Publish, Version, encode, take};
//! let mut publish = Publish::new("a/b".parse()?, Bytes::from_static(b"21.5"));
//! publish.retain = true;
//! let mut out = Vec::new();
//! encode(&Packet::Publish(publish.clone()), Version::V5, &mut out)?;
//! assert_eq!(out, b"\x31\x0a\x00\x03a/b\x0021.5");
//! let mut input = BytesMut::from(&out[..]);
//! let packet = take(Version::V5, &mut input, 1 << 20)?;
//! assert_eq!(packet, Some(Packet::Publish(publish)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
mod decode;
mod encode;
mod frame;
mod id;
mod level;
mod packet;
mod property;
mod reader;
mod reason;
mod refused;
#[cfg(test)]
mod tests;
mod text;
pub mod topic;

pub use decode::{decode, level_of, take};
pub use encode::{Marks, encode, encode_publish_head, encoded_len, shorten};
pub use frame::{Header, MAX_HEADER_BYTES, MAX_REMAINING_BYTES, frame};
pub use id::{Id, Ids};
pub use level::{Qos, Version};
pub use packet::{
    Ack, Auth, ConnAck, Connect, Disconnect, Filter, MAX_V31_CLIENT_ID_CHARS, Options, Packet,
    Publish, RetainHandling, SubAck, Subscribe, UnsubAck, Unsubscribe, Will,
};
pub use property::{Properties, Property, Value};
pub use reason::Reason;
pub use refused::Refused;
pub use text::{MAX_TEXT_BYTES, Text};
