//! Versions of the protocol and qualities of service.

use std::fmt;

/// The bit of the protocol level that a bridge of another broker sets.
pub(super) const BRIDGE: u8 = 0x80;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// MQTT 3.1, level 3.
    V31,
    /// MQTT 3.1.1, level 4.
    V311,
    /// MQTT 5, level 5.
    V5,
}

impl Version {
    /// The protocol level that CONNECT has (MQTT 5 §3.1.2.2).
    #[must_use]
    pub fn level(self) -> u8 {
        match self {
            Self::V31 => 3,
            Self::V311 => 4,
            Self::V5 => 5,
        }
    }

    /// The protocol name that CONNECT has (MQTT 5 §3.1.2.1; MQTT 3.1 §3.1).
    #[must_use]
    pub fn name(self) -> &'static str {
        if self == Self::V31 { "MQIsdp" } else { "MQTT" }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V31 => "MQTT 3.1",
            Self::V311 => "MQTT 3.1.1",
            Self::V5 => "MQTT 5",
        })
    }
}

/// The quality of service: how often a message arrives (MQTT 5 §4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Qos {
    /// QoS 0: it may get lost.
    #[default]
    AtMostOnce,
    /// QoS 1: it may arrive again.
    AtLeastOnce,
    /// QoS 2.
    ExactlyOnce,
}

impl Qos {
    /// The quality that two bits name; `None` for 3, which is malformed (MQTT 5 §3.3.1.2).
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// The number of it: 0, 1 or 2.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Self::AtMostOnce => 0,
            Self::AtLeastOnce => 1,
            Self::ExactlyOnce => 2,
        }
    }
}
