//! MQTT for Sensor Networks (MQTT-SN 1.2): publish and subscribe in datagrams of a few bytes.
//!
//! - [`Packet`]: the messages of both roles on slices, without allocation.
//! - [`Forwarded`]: messages that a forwarder passes on for nodes without IP.
//! - [`client`]: the machine of a client.
//! - [`Topic`], [`Filter`], [`Qos`], [`Code`]: what messages say.
//!
//! ```
//! use longwire_proto::mqttsn::{Packet, Publish, Qos, Topic};
//! let publish = Publish {
//!     topic: Topic::Short(*b"ab"),
//!     msg_id: 0,
//!     data: b"21.5",
//!     qos: Qos::MinusOne,
//!     retain: false,
//!     dup: false,
//! };
//! let mut room = [0; 32];
//! let len = Packet::Publish(publish).encode(&mut room)?;
//! assert_eq!(room[..len], *b"\x0b\x0c\x62ab\x00\x0021.5");
//! assert_eq!(Packet::decode(&room[..len])?, Packet::Publish(publish));
//! # Ok::<(), longwire_proto::Error>(())
//! ```

pub mod client;
mod field;
mod forward;
mod packet;
#[cfg(test)]
mod tests;
mod wire;

pub use field::{Code, Filter, MAX_TOPIC_ID, MIN_TOPIC_ID, Qos, Topic};
pub use forward::{Forwarded, MAX_NODE_ID_BYTES, is_forwarded};
pub use packet::{
    MAX_CLIENT_ID_CHARS, MAX_MESSAGE_BYTES, PROTOCOL_ID, Packet, Publish, WillTopic, set_dup,
};
