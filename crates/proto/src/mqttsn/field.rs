//! Fields that several messages have (MQTT-SN 1.2 §5.3).

use super::wire::Reader;
use crate::Error;

/// The lowest topic id that may be given out (MQTT-SN 1.2 §5.3.11: 0x0000 is reserved).
pub const MIN_TOPIC_ID: u16 = 1;
/// The highest one (0xffff is reserved).
pub const MAX_TOPIC_ID: u16 = 0xfffe;

/// Bits of the flags (MQTT-SN 1.2 §5.3.4).
pub(super) mod flag {
    pub(in crate::mqttsn) const DUP: u8 = 0x80;
    pub(in crate::mqttsn) const RETAIN: u8 = 0x10;
    pub(in crate::mqttsn) const WILL: u8 = 0x08;
    pub(in crate::mqttsn) const CLEAN_SESSION: u8 = 0x04;
    pub(super) const TOPIC_ID_TYPE: u8 = 0x03;
    pub(super) const QOS_SHIFT: u32 = 5;
}

/// Quality of service (MQTT-SN 1.2 §5.3.4), from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// Once, without a connection and without an answer (MQTT-SN 1.2 §6.8).
    MinusOne,
    /// At most once.
    Zero,
    /// At least once.
    One,
    /// Exactly once.
    Two,
}

impl Qos {
    pub(super) const fn bits(self) -> u8 {
        let value: u8 = match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::MinusOne => 3,
        };
        value << flag::QOS_SHIFT
    }

    pub(super) const fn of_bits(flags: u8) -> Self {
        match flags >> flag::QOS_SHIFT & 3 {
            0 => Self::Zero,
            1 => Self::One,
            2 => Self::Two,
            _ => Self::MinusOne,
        }
    }
}

/// Types of topic ids in the flags (MQTT-SN 1.2 §5.3.4).
const TYPE_NORMAL: u8 = 0;
const TYPE_PREDEFINED: u8 = 1;
const TYPE_SHORT: u8 = 2;

fn reserved_type(flags: u8) -> Error {
    Error::Peer { what: "reserved type of topic id", value: (flags & flag::TOPIC_ID_TYPE).into() }
}

/// What a PUBLISH is about (MQTT-SN 1.2 §5.3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// An id that was given to a name in this connection, by REGISTER or SUBSCRIBE.
    Id(u16),
    /// An id that both sides know beforehand (MQTT-SN 1.2 §6.7).
    Predefined(u16),
    /// A name of two octets, which needs no id (MQTT-SN 1.2 §6.7). Nothing says that it is text.
    Short([u8; 2]),
}

impl Topic {
    pub(super) fn decode(flags: u8, value: u16) -> Result<Self, Error> {
        match flags & flag::TOPIC_ID_TYPE {
            TYPE_NORMAL => Ok(Self::Id(value)),
            TYPE_PREDEFINED => Ok(Self::Predefined(value)),
            TYPE_SHORT => Ok(Self::Short(value.to_be_bytes())),
            _ => Err(reserved_type(flags)),
        }
    }

    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Id(_) => TYPE_NORMAL,
            Self::Predefined(_) => TYPE_PREDEFINED,
            Self::Short(_) => TYPE_SHORT,
        }
    }

    /// The two octets of the field TopicId, which a PUBACK repeats (MQTT-SN 1.2 §5.4.13).
    #[must_use]
    pub const fn value(self) -> u16 {
        match self {
            Self::Id(id) | Self::Predefined(id) => id,
            Self::Short(name) => u16::from_be_bytes(name),
        }
    }
}

/// What a SUBSCRIBE or UNSUBSCRIBE is about (MQTT-SN 1.2 §5.4.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter<'a> {
    /// A name, with wildcards or without.
    Name(&'a str),
    /// An id that both sides know beforehand.
    Predefined(u16),
    /// A name of two octets.
    Short([u8; 2]),
}

impl<'a> Filter<'a> {
    pub(super) fn decode(flags: u8, reader: &mut Reader<'a>) -> Result<Self, Error> {
        match flags & flag::TOPIC_ID_TYPE {
            TYPE_NORMAL => Ok(Self::Name(reader.text("topic name that is no UTF-8")?)),
            TYPE_PREDEFINED => Ok(Self::Predefined(reader.u16("a predefined topic id")?)),
            TYPE_SHORT => Ok(Self::Short(reader.two("a short topic name")?)),
            _ => Err(reserved_type(flags)),
        }
    }

    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Name(_) => TYPE_NORMAL,
            Self::Predefined(_) => TYPE_PREDEFINED,
            Self::Short(_) => TYPE_SHORT,
        }
    }
}

/// How a request ended (MQTT-SN 1.2 §5.3.10). Codes from 4 on are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u8);

impl Code {
    /// Accepted.
    pub const ACCEPTED: Self = Self(0);
    /// Rejected: congestion. The sender may try again after a while.
    pub const CONGESTION: Self = Self(1);
    /// Rejected: invalid topic id. The sender has to register the name again.
    pub const INVALID_TOPIC_ID: Self = Self(2);
    /// Rejected: not supported.
    pub const NOT_SUPPORTED: Self = Self(3);

    /// Whether the request was accepted.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.0 == Self::ACCEPTED.0
    }
}
