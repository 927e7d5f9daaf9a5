//! What became of a publication at a broker: who got it, in which form, and what kept it from
//! others.
//!
//! Sizes are bytes; times are seconds.

use serde::{Deserialize, Serialize};

/// A publication, as a broker remembers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Publication {
    /// Its number at this broker.
    pub id: u64,
    /// When it came, seconds since 1970.
    pub unix_s: f64,
    /// The topic that it has here.
    pub topic: String,
    /// The topic that it was published to, where a rule has renamed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_to: Option<String>,
    /// The protocol that it came by.
    pub protocol: String,
    /// Whose it is, as `PROTOCOL:CLIENT`; none where no session had published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<String>,
    /// How often it may arrive, 0 to 2.
    pub qos: u8,
    /// How often its publisher wanted that, where a rule allows less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_qos: Option<u8>,
    /// Whether it is the topic's present value.
    pub retain: bool,
    /// How urgent it is, 0 to 7 (RFC 9218).
    pub urgency: u8,
    /// How long it was of use when it came; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiry_s: Option<f64>,
    /// Bytes of its payload.
    pub bytes: u64,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Nodes that it had passed before this one, the first with the number that it has there:
    /// `NODE:BEGUN.NUMBER`, both hexadecimal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<String>,
    /// The filter of the rule that applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why it went no further, to nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// For whom it was.
    pub receivers: Vec<Receiver>,
    /// Receivers besides these, of whom nothing is remembered.
    pub unlisted: u64,
    /// Sessions besides these that it was not for, though their subscriptions fit it.
    #[serde(default)]
    pub passed_over: u64,
}

/// Why something ended without delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The reason, as metrics name it.
    pub why: String,
    /// What was met and what is allowed, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How far a publication is for one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It waits.
    #[default]
    Waiting,
    /// It was sent, and nothing has acknowledged it: of QoS 0 nothing will.
    Sent,
    /// The receiver has acknowledged it.
    Acknowledged,
    /// The receiver does not get it.
    Dropped,
}

impl Progress {
    /// One word, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sent => "sent",
            Self::Acknowledged => "acknowledged",
            Self::Dropped => "dropped",
        }
    }
}

/// One for whom a publication was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Receiver {
    /// Who, as `PROTOCOL:CLIENT`; a bridge is `bridge:NAME`.
    pub client: String,
    /// How often it may arrive there, 0 to 2.
    pub qos: u8,
    /// Whether it comes as a retained message.
    pub retain: bool,
    /// How far it is.
    pub progress: Progress,
    /// From when it came to that, seconds.
    pub after_s: f64,
    /// How often it was sent.
    pub times: u32,
    /// Why it was dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// In which form it was sent last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

/// In which form a publication was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sent {
    /// The protocol with its version.
    pub protocol: String,
    /// The topic, or where it went, where that is not the publication's topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Bytes of the message with the protocol's head; none where it shares one with others, or the
    /// protocol's machine puts it together later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The form that the payload was put into here; none where it left as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Why it left as it came though another form was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<String>,
    /// Nodes that it has passed with this one, where it crosses a bridge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<String>,
}
