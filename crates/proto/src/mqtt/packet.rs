//! The packets (MQTT 5 §3).

use bytes::Bytes;

use super::level::{Qos, Version};
use super::property::Properties;
use super::reason::Reason;
use super::text::Text;

/// Longest client identifier of MQTT 3.1 (§3.1).
pub const MAX_V31_CLIENT_ID_CHARS: usize = 23;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// MQTT 5 §3.1.
    Connect(Box<Connect>),
    /// MQTT 5 §3.2.
    ConnAck(ConnAck),
    /// MQTT 5 §3.3.
    Publish(Publish),
    /// MQTT 5 §3.4: the answer to a PUBLISH of QoS 1.
    PubAck(Ack),
    /// MQTT 5 §3.5: the first answer to a PUBLISH of QoS 2.
    PubRec(Ack),
    /// MQTT 5 §3.6: the answer to a PUBREC.
    PubRel(Ack),
    /// MQTT 5 §3.7: the answer to a PUBREL.
    PubComp(Ack),
    /// MQTT 5 §3.8.
    Subscribe(Subscribe),
    /// MQTT 5 §3.9.
    SubAck(SubAck),
    /// MQTT 5 §3.10.
    Unsubscribe(Unsubscribe),
    /// MQTT 5 §3.11.
    UnsubAck(UnsubAck),
    /// MQTT 5 §3.12.
    PingReq,
    /// MQTT 5 §3.13.
    PingResp,
    /// MQTT 5 §3.14.
    Disconnect(Disconnect),
    /// MQTT 5 §3.15; of no other version.
    Auth(Auth),
}

/// The first packet of a client (MQTT 5 §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Which version the connection has.
    pub version: Version,
    /// Whether the client says that it is a bridge of another broker: the highest bit of the
    /// protocol level. No standard has it; Mosquitto set the custom. It is of MQTT 3.1 and 3.1.1
    /// alone: MQTT 5 says by options of subscriptions what it is for.
    pub is_bridge: bool,
    /// Who the client is; empty where the server is to assign one.
    pub client_id: Text,
    /// Begin without what is left of an earlier session (MQTT 5 §3.1.2.4); before MQTT 5 that the
    /// session ends with the connection, too.
    pub clean_start: bool,
    /// Longest time between two packets of the client, in seconds; 0 for no bound (§3.1.2.10).
    pub keep_alive_s: u16,
    /// The name of the user.
    pub username: Option<Text>,
    /// The password, or any other secret.
    pub password: Option<Bytes>,
    /// What is published when the connection ends without a DISCONNECT.
    pub will: Option<Will>,
    /// The properties.
    pub properties: Properties,
}

/// A message that is published when a connection breaks (MQTT 5 §3.1.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Where it is published.
    pub topic: Text,
    /// What is published.
    pub payload: Bytes,
    /// With which quality.
    pub qos: Qos,
    /// Whether it is retained.
    pub retain: bool,
    /// The properties of the will (§3.1.3.2).
    pub properties: Properties,
}

/// The answer to a CONNECT (MQTT 5 §3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnAck {
    /// Whether the server has a session of the client; MQTT 3.1 cannot say so.
    pub session_present: bool,
    /// Whether the client is let in; before MQTT 5 [`Reason::return_code`] of it.
    pub reason: Reason,
    /// The properties.
    pub properties: Properties,
}

/// A message (MQTT 5 §3.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publish {
    /// Whether it may have been sent before.
    pub dup: bool,
    /// The quality of service.
    pub qos: Qos,
    /// Whether it is, or is to be, retained.
    pub retain: bool,
    /// The name of the topic; in MQTT 5 it may be empty where a topic alias is in its place.
    pub topic: Text,
    /// Its packet identifier, never 0; of QoS 1 and 2 alone.
    pub packet_id: Option<u16>,
    /// The properties.
    pub properties: Properties,
    /// What it says.
    pub payload: Bytes,
}

impl Publish {
    /// A message of QoS 0 that is not retained.
    #[must_use]
    pub fn new(topic: Text, payload: Bytes) -> Self {
        Self { topic, payload, ..Self::default() }
    }
}

/// A PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5 §3.4 to §3.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The packet identifier of the PUBLISH, never 0.
    pub id: u16,
    /// What became of it; before MQTT 5 always [`Reason::SUCCESS`].
    pub reason: Reason,
    /// The properties.
    pub properties: Properties,
}

impl Ack {
    /// One without properties.
    #[must_use]
    pub fn new(id: u16, reason: Reason) -> Self {
        Self { id, reason, properties: Properties::NONE }
    }
}

/// A wish for messages (MQTT 5 §3.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscribe {
    /// The packet identifier, never 0.
    pub id: u16,
    /// Which topics, at least one, each with its options.
    pub filters: Vec<Filter>,
    /// The properties.
    pub properties: Properties,
}

/// A filter of topics and how its messages are to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The filter, with `$share/group/` before it where it is shared.
    pub filter: Text,
    /// How.
    pub options: Options,
}

/// The options of a subscription (MQTT 5 §3.8.3.1); before MQTT 5 there is nothing but the quality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The highest quality of service.
    pub qos: Qos,
    /// Messages of this client are not sent to it.
    pub no_local: bool,
    /// The retain flag stays as the publisher set it.
    pub retain_as_published: bool,
    /// When retained messages are sent.
    pub retain_handling: RetainHandling,
}

impl Options {
    /// Nothing but a quality of service.
    #[must_use]
    pub fn new(qos: Qos) -> Self {
        Self { qos, ..Self::default() }
    }
}

/// When a subscription gets the messages that are retained (MQTT 5 §3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetainHandling {
    /// 0: with each SUBSCRIBE.
    #[default]
    Send,
    /// 1: where the subscription is new.
    SendIfNew,
    /// 2: never.
    DoNotSend,
}

/// The answer to a SUBSCRIBE (MQTT 5 §3.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubAck {
    /// The packet identifier of the SUBSCRIBE.
    pub id: u16,
    /// The quality granted, or a failure, for each filter; before MQTT 5 each failure is written as
    /// [`Reason::UNSPECIFIED_ERROR`].
    pub reasons: Vec<Reason>,
    /// The properties.
    pub properties: Properties,
}

/// The end of such wishes (MQTT 5 §3.10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsubscribe {
    /// The packet identifier, never 0.
    pub id: u16,
    /// Which filters, at least one.
    pub filters: Vec<Text>,
    /// The properties.
    pub properties: Properties,
}

/// The answer to an UNSUBSCRIBE (MQTT 5 §3.11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnsubAck {
    /// The packet identifier of the UNSUBSCRIBE.
    pub id: u16,
    /// What became of each filter; before MQTT 5 there are none.
    pub reasons: Vec<Reason>,
    /// The properties.
    pub properties: Properties,
}

/// The last packet of a side (MQTT 5 §3.14); before MQTT 5 only a client sends it, without reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disconnect {
    /// Why.
    pub reason: Reason,
    /// The properties.
    pub properties: Properties,
}

impl Disconnect {
    /// One without properties.
    #[must_use]
    pub fn new(reason: Reason) -> Self {
        Self { reason, properties: Properties::NONE }
    }
}

/// A step of an authentication (MQTT 5 §3.15).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// Which step.
    pub reason: Reason,
    /// The properties, with the method (§3.15.2.2.2).
    pub properties: Properties,
}
