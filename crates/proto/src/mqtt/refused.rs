//! Why a packet was refused.

use std::fmt;

use super::reason::Reason;

/// Why bytes are no packet that may stand there: what to close the connection with (MQTT 5 §4.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason code of the CONNACK that says so; of a DISCONNECT see
    /// [`Self::disconnect_reason`].
    pub reason: Reason,
    /// What was found, in one line.
    pub what: &'static str,
}

impl Refused {
    /// The bytes cannot be read by the standard (MQTT 5 §1.2, Malformed Packet).
    #[must_use]
    pub fn malformed(what: &'static str) -> Self {
        Self { reason: Reason::MALFORMED_PACKET, what }
    }

    /// They can be read, but the standard forbids what they say (MQTT 5 §1.2, Protocol Error).
    #[must_use]
    pub fn protocol(what: &'static str) -> Self {
        Self { reason: Reason::PROTOCOL_ERROR, what }
    }

    /// The reason code of the DISCONNECT that says so: the same, but for those of a CONNACK alone,
    /// which come of a second CONNECT (MQTT 5 §3.1, MQTT-3.1.0-2).
    #[must_use]
    pub fn disconnect_reason(&self) -> Reason {
        if self.reason.is_of_disconnect() { self.reason } else { Reason::PROTOCOL_ERROR }
    }

    /// Another reason code.
    #[must_use]
    pub fn with(reason: Reason, what: &'static str) -> Self {
        Self { reason, what }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.what)
    }
}

impl std::error::Error for Refused {}
