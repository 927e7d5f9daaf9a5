//! Reason codes (MQTT 5 §2.4) and the return codes that they were before (MQTT 3.1.1 §3.2.2.3).

use std::fmt;

/// Why something was done or refused; from 0x80 on it is a failure (MQTT 5 §2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub u8);

/// Makes the constants and the table of names.
macro_rules! reasons {
    ($($code:literal $constant:ident $name:literal)*) => {
        impl Reason {
            $(#[doc = concat!($name, ".")] pub const $constant: Self = Self($code);)*

            /// The name that the standard has for it; of 0x00 the most general of the three.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

reasons! {
    0x00 SUCCESS "Success"
    0x01 GRANTED_QOS_1 "Granted QoS 1"
    0x02 GRANTED_QOS_2 "Granted QoS 2"
    0x04 DISCONNECT_WITH_WILL "Disconnect with Will Message"
    0x10 NO_MATCHING_SUBSCRIBERS "No matching subscribers"
    0x11 NO_SUBSCRIPTION_EXISTED "No subscription existed"
    0x18 CONTINUE_AUTHENTICATION "Continue authentication"
    0x19 RE_AUTHENTICATE "Re-authenticate"
    0x80 UNSPECIFIED_ERROR "Unspecified error"
    0x81 MALFORMED_PACKET "Malformed Packet"
    0x82 PROTOCOL_ERROR "Protocol Error"
    0x83 IMPLEMENTATION_SPECIFIC_ERROR "Implementation specific error"
    0x84 UNSUPPORTED_PROTOCOL_VERSION "Unsupported Protocol Version"
    0x85 CLIENT_IDENTIFIER_NOT_VALID "Client Identifier not valid"
    0x86 BAD_USER_NAME_OR_PASSWORD "Bad User Name or Password"
    0x87 NOT_AUTHORIZED "Not authorized"
    0x88 SERVER_UNAVAILABLE "Server unavailable"
    0x89 SERVER_BUSY "Server busy"
    0x8a BANNED "Banned"
    0x8b SERVER_SHUTTING_DOWN "Server shutting down"
    0x8c BAD_AUTHENTICATION_METHOD "Bad authentication method"
    0x8d KEEP_ALIVE_TIMEOUT "Keep Alive timeout"
    0x8e SESSION_TAKEN_OVER "Session taken over"
    0x8f TOPIC_FILTER_INVALID "Topic Filter invalid"
    0x90 TOPIC_NAME_INVALID "Topic Name invalid"
    0x91 PACKET_IDENTIFIER_IN_USE "Packet Identifier in use"
    0x92 PACKET_IDENTIFIER_NOT_FOUND "Packet Identifier not found"
    0x93 RECEIVE_MAXIMUM_EXCEEDED "Receive Maximum exceeded"
    0x94 TOPIC_ALIAS_INVALID "Topic Alias invalid"
    0x95 PACKET_TOO_LARGE "Packet too large"
    0x96 MESSAGE_RATE_TOO_HIGH "Message rate too high"
    0x97 QUOTA_EXCEEDED "Quota exceeded"
    0x98 ADMINISTRATIVE_ACTION "Administrative action"
    0x99 PAYLOAD_FORMAT_INVALID "Payload format invalid"
    0x9a RETAIN_NOT_SUPPORTED "Retain not supported"
    0x9b QOS_NOT_SUPPORTED "QoS not supported"
    0x9c USE_ANOTHER_SERVER "Use another server"
    0x9d SERVER_MOVED "Server moved"
    0x9e SHARED_SUBSCRIPTIONS_NOT_SUPPORTED "Shared Subscriptions not supported"
    0x9f CONNECTION_RATE_EXCEEDED "Connection rate exceeded"
    0xa0 MAXIMUM_CONNECT_TIME "Maximum connect time"
    0xa1 SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED "Subscription Identifiers not supported"
    0xa2 WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED "Wildcard Subscriptions not supported"
}

impl Reason {
    /// DISCONNECT's name of 0x00: the will is not published.
    pub const NORMAL_DISCONNECTION: Self = Self(0x00);
    /// SUBACK's name of 0x00.
    pub const GRANTED_QOS_0: Self = Self(0x00);

    /// Whether it says that something failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        self.0 >= 0x80
    }

    /// Whether a DISCONNECT may have it (MQTT 5 §3.14.2.1).
    #[must_use]
    pub fn is_of_disconnect(self) -> bool {
        Reasons::DISCONNECT.has(self)
    }

    /// Whether a PUBACK or PUBREC may have it (MQTT 5 §3.4.2.1, §3.5.2.1).
    #[must_use]
    pub fn is_of_puback(self) -> bool {
        Reasons::PUBACK.has(self)
    }

    /// What a return code of CONNACK says, before MQTT 5 (MQTT 3.1.1 §3.2.2.3); `None` where it is
    /// reserved.
    #[must_use]
    pub fn from_return_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::SUCCESS),
            1 => Some(Self::UNSUPPORTED_PROTOCOL_VERSION),
            2 => Some(Self::CLIENT_IDENTIFIER_NOT_VALID),
            3 => Some(Self::SERVER_UNAVAILABLE),
            4 => Some(Self::BAD_USER_NAME_OR_PASSWORD),
            5 => Some(Self::NOT_AUTHORIZED),
            _ => None,
        }
    }

    /// The return code of CONNACK nearest to it, before MQTT 5 (MQTT 3.1.1 §3.2.2.3).
    #[must_use]
    pub fn return_code(self) -> u8 {
        match self {
            reason if !reason.is_failure() => 0,
            Self::UNSUPPORTED_PROTOCOL_VERSION => 1,
            Self::CLIENT_IDENTIFIER_NOT_VALID => 2,
            Self::BAD_USER_NAME_OR_PASSWORD => 4,
            Self::NOT_AUTHORIZED | Self::BANNED | Self::BAD_AUTHENTICATION_METHOD => 5,
            _ => 3,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (0x{:02x})", self.0),
            None => write!(f, "reason code 0x{:02x}", self.0),
        }
    }
}

/// The reason codes that a packet may have (MQTT 5 §2.4).
pub(super) struct Reasons {
    /// Those below 0x80: one bit each.
    below: u32,
    /// Those from 0x80 on: one bit each.
    above: u64,
}

impl Reasons {
    /// The set of these.
    const fn new(codes: &[u8]) -> Self {
        let (mut below, mut above, mut at) = (0, 0, 0);
        while at < codes.len() {
            if codes[at] < 0x80 {
                below |= 1 << codes[at];
            } else {
                above |= 1 << (codes[at] - 0x80);
            }
            at += 1;
        }
        Self { below, above }
    }

    /// Whether a code is one of them.
    pub(super) fn has(&self, reason: Reason) -> bool {
        match reason.0 {
            code @ 0..0x20 => self.below & (1 << code) != 0,
            code @ 0x80..0xc0 => self.above & (1 << (code - 0x80)) != 0,
            _ => false,
        }
    }

    /// MQTT 5 §3.2.2.2.
    pub(super) const CONNACK: Self = Self::new(&[
        0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95,
        0x97, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9f,
    ]);
    /// PUBACK and PUBREC: MQTT 5 §3.4.2.1, §3.5.2.1.
    pub(super) const PUBACK: Self =
        Self::new(&[0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]);
    /// PUBREL and PUBCOMP: MQTT 5 §3.6.2.1, §3.7.2.1.
    pub(super) const PUBREL: Self = Self::new(&[0x00, 0x92]);
    /// MQTT 5 §3.9.3.
    pub(super) const SUBACK: Self =
        Self::new(&[0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2]);
    /// SUBACK before MQTT 5: MQTT 3.1.1 §3.9.3.
    pub(super) const SUBACK_V311: Self = Self::new(&[0x00, 0x01, 0x02, 0x80]);
    /// MQTT 5 §3.11.3.
    pub(super) const UNSUBACK: Self = Self::new(&[0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91]);
    /// MQTT 5 §3.14.2.1; 0x8c by §2.4 alone.
    pub(super) const DISCONNECT: Self = Self::new(&[
        0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90, 0x93,
        0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
    ]);
    /// MQTT 5 §3.15.2.1.
    pub(super) const AUTH: Self = Self::new(&[0x00, 0x18, 0x19]);
}
