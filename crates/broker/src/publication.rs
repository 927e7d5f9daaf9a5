//! What is published, in the form that every protocol is translated to and from.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::urgency::Urgency;

use crate::ids::{Principal, Protocol, SessionId};

/// Priority of a message that says none (AMQP 1.0 Part 3 §3.2.1, JMS).
pub const DEFAULT_PRIORITY: u8 = 4;

/// The property with the media type that a document has as its publisher writes it, where it goes
/// in another form and the type says more than which: `application/geo+json` of what goes as
/// `application/cbor`.
pub(crate) const MEDIA_TYPE: &str = "lw-media-type";

/// How often a message may arrive: the quality of service of MQTT, and what settlement,
/// acknowledgement and redelivery of the others come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// At most once.
    #[default]
    AtMostOnce = 0,
    /// At least once.
    AtLeastOnce = 1,
    /// Exactly once.
    ExactlyOnce = 2,
}

impl Grade {
    /// One of 0 to 2; `None` for others.
    #[must_use]
    pub fn new(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// The number, 0 to 2.
    #[must_use]
    pub fn get(self) -> u8 {
        self as u8
    }
}

/// What the bytes of a payload are, as far as its publisher has said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Anything.
    #[default]
    Bytes,
    /// Text in UTF-8.
    Text,
    /// One element of XML in UTF-8, with the namespaces in scope declared on it.
    Xml,
}

/// A form that a payload can be put into before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadForm {
    /// JSON (RFC 8259).
    Json,
    /// CBOR (RFC 8949): of XML by the mapping of `docs/formats/cbor-xml.md`.
    Cbor,
    /// XML.
    Xml,
    /// EXI 1.0.
    Exi,
    /// As it came, whatever rules behind this one say.
    Identity,
}

impl PayloadForm {
    /// Every one, with its name.
    pub const NAMES: [(Self, &'static str); 5] = [
        (Self::Json, "json"),
        (Self::Cbor, "cbor"),
        (Self::Xml, "xml"),
        (Self::Exi, "exi"),
        (Self::Identity, "identity"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(form, _)| *form == self).map_or("", |(_, name)| name)
    }

    /// The one that has a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(form, _)| *form)
    }
}

/// A message that is published. Whoever receives it shares one.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// Its number in the store and in events; the core gives it.
    pub id: u64,
    /// Levels of UTF-8 with `/` between them, without wildcards (MQTT 5 §4.7).
    pub topic: Arc<str>,
    /// What is said.
    pub payload: Bytes,
    /// What the payload's bytes are.
    pub form: Form,
    /// How often it may arrive.
    pub grade: Grade,
    /// It is the topic's present value, kept for those who subscribe later.
    pub retain: bool,
    /// When it is of no use any more, in the time of the caller.
    pub deadline: Option<Duration>,
    /// How urgent it is.
    pub urgency: Urgency,
    /// By which protocol it came.
    pub protocol: Protocol,
    /// Whose it is, for subscriptions that want nothing of their own; `None`: the broker's own.
    pub publisher: Option<SessionId>,
    /// Whose words they are, for what is compressed together; the core finds it out.
    pub principal: Principal,
    /// What few messages have.
    pub details: Option<Box<Details>>,
    /// What becomes of it is remembered.
    pub(crate) is_followed: bool,
    /// The form that its payload was put into here; `None`: it is what came.
    pub(crate) coded: Option<PayloadForm>,
}

/// What a message says of itself besides; all of it is optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Media type of the payload.
    pub content_type: Option<String>,
    /// Topic that an answer is expected at.
    pub reply_to: Option<String>,
    /// What an answer has to say to be known as one.
    pub correlation: Option<Bytes>,
    /// Names and values of the publisher, in order, names repeated where they were.
    pub properties: Vec<(String, String)>,
    /// 0 to 9; [`DEFAULT_PRIORITY`] where none was said.
    pub priority: Option<u8>,
    /// The publisher's name for it.
    pub message_id: Option<String>,
    /// Milliseconds since 1970 at which it was made.
    pub created_ms: Option<u64>,
    /// Nodes that it has passed, at most [`MAX_HOPS`].
    pub via: Vec<String>,
    /// The message as it came, for consumers of the same protocol; of what form is the protocol's.
    /// Where the payload is in another form now, what it says of the payload does not hold.
    pub original: Option<Bytes>,
}

/// Nodes that a publication may have passed.
pub const MAX_HOPS: usize = 8;

impl Publication {
    /// A publication of bytes, at most once, that nothing else is known of.
    #[must_use]
    pub fn new(protocol: Protocol, topic: impl Into<Arc<str>>, payload: impl Into<Bytes>) -> Self {
        Self {
            id: 0,
            topic: topic.into(),
            payload: payload.into(),
            form: Form::Bytes,
            grade: Grade::AtMostOnce,
            retain: false,
            deadline: None,
            urgency: Urgency::DEFAULT,
            protocol,
            publisher: None,
            principal: Principal::UNSAID,
            details: None,
            is_followed: false,
            coded: None,
        }
    }

    /// What few messages have, to be written.
    pub fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    /// Whether it is of no use any more.
    #[must_use]
    pub fn is_expired(&self, now: Duration) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Bytes of memory that it takes, as queues count them.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let details = self.details.as_ref().map_or(0, |details| details.size_bytes());
        size_of::<Self>() + self.topic.len() + self.payload.len() + details
    }
}

impl Details {
    /// Bytes of what its publisher says that goes on to other brokers beside the payload.
    pub(crate) fn said_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let properties = self.properties.iter().map(|(name, value)| name.len() + value.len());
        text(&self.content_type)
            + text(&self.reply_to)
            + text(&self.message_id)
            + self.correlation.as_ref().map_or(0, Bytes::len)
            + properties.sum::<usize>()
    }

    fn size_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let bytes = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let properties = self
            .properties
            .iter()
            .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
        size_of::<Self>()
            + text(&self.content_type)
            + text(&self.reply_to)
            + text(&self.message_id)
            + bytes(&self.correlation)
            + bytes(&self.original)
            + properties.sum::<usize>()
            + self.via.iter().map(|node| size_of::<String>() + node.len()).sum::<usize>()
    }
}
