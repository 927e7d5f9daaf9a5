//! Identifiers of properties (MQTT 5 §2.2.2.2).

/// The identifier of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u8);

/// How the value of a property is written (MQTT 5 §1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Byte,
    Two,
    Four,
    Varint,
    Text,
    Binary,
    Pair,
}

/// Makes the constants and the tables.
macro_rules! ids {
    ($($code:literal $constant:ident $kind:ident $name:literal)*) => {
        impl Id {
            $(#[doc = concat!($name, ".")] pub const $constant: Self = Self($code);)*

            /// The property that a number names; `None` where the standard has none.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($code => Some(Self($code)),)*
                    _ => None,
                }
            }

            /// The name that the standard has for it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($code => $name,)*
                    _ => "",
                }
            }

            /// How its value is written.
            pub(super) const fn kind(self) -> Kind {
                match self.0 {
                    $($code => Kind::$kind,)*
                    _ => Kind::Byte,
                }
            }
        }
    };
}

ids! {
    0x01 PAYLOAD_FORMAT_INDICATOR Byte "Payload Format Indicator"
    0x02 MESSAGE_EXPIRY_INTERVAL Four "Message Expiry Interval"
    0x03 CONTENT_TYPE Text "Content Type"
    0x08 RESPONSE_TOPIC Text "Response Topic"
    0x09 CORRELATION_DATA Binary "Correlation Data"
    0x0b SUBSCRIPTION_IDENTIFIER Varint "Subscription Identifier"
    0x11 SESSION_EXPIRY_INTERVAL Four "Session Expiry Interval"
    0x12 ASSIGNED_CLIENT_IDENTIFIER Text "Assigned Client Identifier"
    0x13 SERVER_KEEP_ALIVE Two "Server Keep Alive"
    0x15 AUTHENTICATION_METHOD Text "Authentication Method"
    0x16 AUTHENTICATION_DATA Binary "Authentication Data"
    0x17 REQUEST_PROBLEM_INFORMATION Byte "Request Problem Information"
    0x18 WILL_DELAY_INTERVAL Four "Will Delay Interval"
    0x19 REQUEST_RESPONSE_INFORMATION Byte "Request Response Information"
    0x1a RESPONSE_INFORMATION Text "Response Information"
    0x1c SERVER_REFERENCE Text "Server Reference"
    0x1f REASON_STRING Text "Reason String"
    0x21 RECEIVE_MAXIMUM Two "Receive Maximum"
    0x22 TOPIC_ALIAS_MAXIMUM Two "Topic Alias Maximum"
    0x23 TOPIC_ALIAS Two "Topic Alias"
    0x24 MAXIMUM_QOS Byte "Maximum QoS"
    0x25 RETAIN_AVAILABLE Byte "Retain Available"
    0x26 USER_PROPERTY Pair "User Property"
    0x27 MAXIMUM_PACKET_SIZE Four "Maximum Packet Size"
    0x28 WILDCARD_SUBSCRIPTION_AVAILABLE Byte "Wildcard Subscription Available"
    0x29 SUBSCRIPTION_IDENTIFIERS_AVAILABLE Byte "Subscription Identifiers Available"
    0x2a SHARED_SUBSCRIPTION_AVAILABLE Byte "Shared Subscription Available"
}

impl Id {
    /// The number of it, below 0x2b.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A set of identifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids(u64);

impl Ids {
    /// The set of none.
    pub const NONE: Self = Self(0);

    /// The set of these.
    #[must_use]
    pub const fn new(ids: &[Id]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < ids.len() {
            bits |= 1 << ids[at].0;
            at += 1;
        }
        Self(bits)
    }

    /// Whether it has this one.
    #[must_use]
    pub const fn has(self, id: Id) -> bool {
        self.0 & (1 << id.0) != 0
    }

    /// This set and another.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has all of another.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Adds one.
    pub(super) fn add(&mut self, id: Id) {
        self.0 |= 1 << id.0;
    }

    /// CONNECT: MQTT 5 §3.1.2.11.
    pub const CONNECT: Self = Self::new(&[
        Id::SESSION_EXPIRY_INTERVAL,
        Id::RECEIVE_MAXIMUM,
        Id::MAXIMUM_PACKET_SIZE,
        Id::TOPIC_ALIAS_MAXIMUM,
        Id::REQUEST_RESPONSE_INFORMATION,
        Id::REQUEST_PROBLEM_INFORMATION,
        Id::USER_PROPERTY,
        Id::AUTHENTICATION_METHOD,
        Id::AUTHENTICATION_DATA,
    ]);
    /// A will: MQTT 5 §3.1.3.2.
    pub const WILL: Self = Self::new(&[
        Id::WILL_DELAY_INTERVAL,
        Id::PAYLOAD_FORMAT_INDICATOR,
        Id::MESSAGE_EXPIRY_INTERVAL,
        Id::CONTENT_TYPE,
        Id::RESPONSE_TOPIC,
        Id::CORRELATION_DATA,
        Id::USER_PROPERTY,
    ]);
    /// CONNACK: MQTT 5 §3.2.2.3.
    pub const CONNACK: Self = Self::new(&[
        Id::SESSION_EXPIRY_INTERVAL,
        Id::RECEIVE_MAXIMUM,
        Id::MAXIMUM_QOS,
        Id::RETAIN_AVAILABLE,
        Id::MAXIMUM_PACKET_SIZE,
        Id::ASSIGNED_CLIENT_IDENTIFIER,
        Id::TOPIC_ALIAS_MAXIMUM,
        Id::REASON_STRING,
        Id::USER_PROPERTY,
        Id::WILDCARD_SUBSCRIPTION_AVAILABLE,
        Id::SUBSCRIPTION_IDENTIFIERS_AVAILABLE,
        Id::SHARED_SUBSCRIPTION_AVAILABLE,
        Id::SERVER_KEEP_ALIVE,
        Id::RESPONSE_INFORMATION,
        Id::SERVER_REFERENCE,
        Id::AUTHENTICATION_METHOD,
        Id::AUTHENTICATION_DATA,
    ]);
    /// PUBLISH: MQTT 5 §3.3.2.3.
    pub const PUBLISH: Self = Self::new(&[
        Id::PAYLOAD_FORMAT_INDICATOR,
        Id::MESSAGE_EXPIRY_INTERVAL,
        Id::TOPIC_ALIAS,
        Id::RESPONSE_TOPIC,
        Id::CORRELATION_DATA,
        Id::USER_PROPERTY,
        Id::SUBSCRIPTION_IDENTIFIER,
        Id::CONTENT_TYPE,
    ]);
    /// PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and UNSUBACK: MQTT 5 §3.4.2.2 and the like.
    pub const ACK: Self = Self::new(&[Id::REASON_STRING, Id::USER_PROPERTY]);
    /// SUBSCRIBE: MQTT 5 §3.8.2.1.
    pub const SUBSCRIBE: Self = Self::new(&[Id::SUBSCRIPTION_IDENTIFIER, Id::USER_PROPERTY]);
    /// UNSUBSCRIBE: MQTT 5 §3.10.2.1.
    pub const UNSUBSCRIBE: Self = Self::new(&[Id::USER_PROPERTY]);
    /// DISCONNECT: MQTT 5 §3.14.2.2.
    pub const DISCONNECT: Self = Self::new(&[
        Id::SESSION_EXPIRY_INTERVAL,
        Id::REASON_STRING,
        Id::USER_PROPERTY,
        Id::SERVER_REFERENCE,
    ]);
    /// AUTH: MQTT 5 §3.15.2.2.
    pub const AUTH: Self = Self::new(&[
        Id::AUTHENTICATION_METHOD,
        Id::AUTHENTICATION_DATA,
        Id::REASON_STRING,
        Id::USER_PROPERTY,
    ]);
}
