//! Packets as MQTT 3.1.1 has them, without a packet identifier.

use crate::Error;

/// The most that the field QoS may say (MQTT 3.1.1 §3.3.1.2).
pub const MAX_QOS: u8 = 2;
/// Most octets of a length (MQTT 3.1.1 §2.2.3).
const MAX_LENGTH_BYTES: usize = 4;

/// Types in the high bits of the first octet (MQTT 3.1.1 §2.2.1).
mod packet_type {
    pub(super) const PUBLISH: u8 = 0x30;
    pub(super) const PUBACK: u8 = 0x40;
    pub(super) const SUBSCRIBE: u8 = 0x80;
    pub(super) const PINGREQ: u8 = 0xc0;
    pub(super) const PINGRESP: u8 = 0xd0;
    pub(super) const MASK: u8 = 0xf0;
}

/// Flags of a PUBLISH (MQTT 3.1.1 §3.3.1).
const DUP: u8 = 0x08;
const RETAIN: u8 = 0x01;
const QOS_SHIFT: u32 = 1;

/// A value of a topic, for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The value.
    pub payload: &'a [u8],
    /// Above 0 the sender wants a PUBACK of this level, 0 to 2.
    pub qos: u8,
    /// Whether it is kept for later subscribers. The protocol's implementations leave it 0.
    pub retain: bool,
    /// Whether it was sent before. The protocol's implementations leave it 0.
    pub dup: bool,
}

/// What a datagram carries in front of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A value.
    Publish(Publish<'a>),
    /// A value has arrived; which one is in the record `r`.
    PubAck {
        /// The level at which it is acknowledged, 0 to 2.
        qos: u8,
    },
    /// Who has this value is to send it again.
    Subscribe {
        /// The topic.
        topic: &'a str,
    },
    /// All who listen are to answer.
    PingReq,
    /// Somebody is there.
    PingResp,
}

impl<'a> Packet<'a> {
    /// A value that nobody acknowledges or keeps.
    #[must_use]
    pub fn publish(topic: &'a str, payload: &'a [u8]) -> Self {
        Self::Publish(Publish { topic, payload, qos: 0, retain: false, dup: false })
    }

    /// The packet and what follows it.
    pub(super) fn take(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let (first, rest) =
            bytes.split_first().ok_or(Error::Truncated { what: "the type of a packet" })?;
        let (len, rest) = take_length(rest)?;
        let (body, tail) =
            rest.split_at_checked(len).ok_or(Error::Truncated { what: "a packet" })?;
        Ok((Self::of(*first, body)?, tail))
    }

    fn of(first: u8, body: &'a [u8]) -> Result<Self, Error> {
        match first & packet_type::MASK {
            packet_type::PUBLISH => {
                let (topic, payload) = take_topic(body)?;
                let (retain, dup) = (first & RETAIN != 0, first & DUP != 0);
                Ok(Self::Publish(Publish { topic, payload, qos: qos(first)?, retain, dup }))
            }
            packet_type::SUBSCRIBE => {
                let (topic, more) = take_topic(body)?;
                // Some send a requested QoS as MQTT has it, which says nothing, others do not.
                empty(more.get(1..).unwrap_or_default())?;
                Ok(Self::Subscribe { topic })
            }
            packet_type::PUBACK => empty(body).and(Ok(Self::PubAck { qos: qos(first)? })),
            packet_type::PINGREQ => empty(body).and(Ok(Self::PingReq)),
            packet_type::PINGRESP => empty(body).and(Ok(Self::PingResp)),
            other => Err(Error::Peer { what: "no packet of MQTT/UDP", value: other.into() }),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let (first, topic, rest): (u8, Option<&str>, &[u8]) = match *self {
            Self::Publish(Publish { topic, payload, qos, retain, dup }) => {
                let flags = level(qos)? | set(retain, RETAIN) | set(dup, DUP);
                (packet_type::PUBLISH | flags, Some(topic), payload)
            }
            Self::PubAck { qos } => (packet_type::PUBACK | level(qos)?, None, &[]),
            // The requested QoS is there as MQTT has it.
            Self::Subscribe { topic } => (packet_type::SUBSCRIBE, Some(topic), &[0]),
            Self::PingReq => (packet_type::PINGREQ, None, &[]),
            Self::PingResp => (packet_type::PINGRESP, None, &[]),
        };
        let topic_bytes = topic.map_or(0, |topic| topic.len() + 2);
        out.push(first);
        put_length(topic_bytes + rest.len(), out)?;
        if let Some(topic) = topic {
            let what = "a topic over 65,535 bytes";
            let len = u16::try_from(topic.len()).map_err(|_| Error::Caller { what })?;
            out.extend(len.to_be_bytes());
            out.extend(topic.as_bytes());
        }
        out.extend(rest);
        Ok(())
    }
}

const fn set(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

fn qos(first: u8) -> Result<u8, Error> {
    match first >> QOS_SHIFT & 3 {
        qos @ ..=MAX_QOS => Ok(qos),
        // MQTT 3.1.1 §3.3.1.2.
        qos => Err(Error::Peer { what: "QoS over 2", value: qos.into() }),
    }
}

fn level(qos: u8) -> Result<u8, Error> {
    match qos {
        ..=MAX_QOS => Ok(qos << QOS_SHIFT),
        _ => Err(Error::Caller { what: "a QoS over 2" }),
    }
}

fn empty(body: &[u8]) -> Result<(), Error> {
    match body.len() {
        0 => Ok(()),
        more => Err(Error::Peer { what: "octets behind the last field", value: more as u64 }),
    }
}

fn take_topic(body: &[u8]) -> Result<(&str, &[u8]), Error> {
    let truncated = Error::Truncated { what: "a topic" };
    let (len, rest) = body.split_first_chunk::<2>().ok_or(truncated.clone())?;
    let len = usize::from(u16::from_be_bytes(*len));
    let (topic, rest) = rest.split_at_checked(len).ok_or(truncated)?;
    let topic = std::str::from_utf8(topic).map_err(|error| Error::Peer {
        what: "topic that is no UTF-8",
        value: error.valid_up_to() as u64,
    })?;
    Ok((topic, rest))
}

/// A length and what follows it (MQTT 3.1.1 §2.2.3): seven bits an octet, the low ones first.
pub(super) fn take_length(bytes: &[u8]) -> Result<(usize, &[u8]), Error> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(MAX_LENGTH_BYTES) {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Ok((value, bytes.get(at + 1..).unwrap_or_default()));
        }
    }
    match bytes.len() {
        0..MAX_LENGTH_BYTES => Err(Error::Truncated { what: "a length" }),
        _ => Err(Error::Peer { what: "a length over 4 octets", value: value as u64 }),
    }
}

pub(super) fn put_length(len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut rest = len;
    for _ in 0..MAX_LENGTH_BYTES {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        out.push(if rest == 0 { low & 0x7f } else { low | 0x80 });
        if rest == 0 {
            return Ok(());
        }
    }
    Err(Error::Caller { what: "a packet over 256 MiB" })
}
