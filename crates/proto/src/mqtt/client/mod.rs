//! A client of MQTT: its packets, its session and its signs of life, without a socket.
//!
//! The shell opens a connection and says so ([`Input::Connected`]); what it reads goes in, what
//! comes out it writes. When the connection is gone ([`Output::Closed`], or [`Input::Disconnected`]
//! by itself) it may open another: messages that were not acknowledged are then sent again where
//! the server still has the session (MQTT 5 §4.4).
//!
//! - A message to the server has one end: [`Output::Published`] or [`Output::Failed`].
//! - A message from the server is acknowledged when the caller accepts it ([`Input::Accept`]), so
//!   that it can be stored first. One of QoS 2 is handed out once, also when the connection breaks
//!   in between.
//! - Nothing is sent beyond what the server takes: its Receive Maximum, Maximum Packet Size,
//!   Maximum QoS and the rest of its CONNACK.

mod alive;
mod line;
mod machine;
mod peer;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;

use super::frame::MAX_REMAINING_BYTES;
use super::packet::{Auth, ConnAck, Connect, Disconnect, Filter, Publish, SubAck, UnsubAck};
use super::property::Properties;
use super::reason::Reason;
use super::refused::Refused;
use super::text::Text;
use crate::Error;

pub use machine::Client;

/// Messages that wait for a connection or a place in the window.
pub const MAX_WAITING: usize = 100_000;
/// Bytes of them.
pub const MAX_WAITING_BYTES: usize = 64 << 20;
/// Topics that aliases are used for when sending: each is kept in memory twice.
pub const MAX_ALIASES: u16 = 256;
/// Longest packet that is taken where nothing else is set: as the largest of MQTT.
pub const MAX_PACKET_BYTES: usize = MAX_REMAINING_BYTES;

/// What a client does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The CONNECT. The client takes its own bounds from it: Receive Maximum and Topic Alias
    /// Maximum. `clean_start` is of the first connection; later ones continue the session where
    /// the version and the Session Expiry Interval keep one.
    pub connect: Connect,
    /// Longest packet that is taken, in bytes; MQTT 5 tells the server.
    pub max_packet_bytes: usize,
    /// Most messages of QoS 1 and 2 on the way at once, however many the server takes.
    pub max_in_flight: u16,
    /// How long the server may take to answer a CONNECT or a PINGREQ.
    pub answer_timeout: Duration,
}

/// What happens to a client.
#[derive(Clone, Debug)]
pub enum Input {
    /// There is a connection; what was left of an earlier one is gone.
    Connected,
    /// Bytes came.
    Bytes(Bytes),
    /// The connection is gone.
    Disconnected,
    /// A message is to be published: now, or when there is a connection and a place in the window.
    Publish {
        /// What the caller knows it by; of no other that is open.
        key: u64,
        /// The message; its packet identifier and DUP flag are the client's.
        publish: Publish,
    },
    /// Messages are wanted. There must be a connection.
    Subscribe {
        /// What the caller knows it by; of no other that is open.
        key: u64,
        /// Which.
        filters: Vec<Filter>,
        /// A subscription identifier, user properties.
        properties: Properties,
    },
    /// They are not any more. There must be a connection.
    Unsubscribe {
        /// What the caller knows it by; of no other that is open.
        key: u64,
        /// Which.
        filters: Vec<Text>,
        /// User properties.
        properties: Properties,
    },
    /// A message is taken, or is refused by the reason.
    Accept {
        /// Of its [`Output::Message`].
        receipt: u64,
        /// What the server hears of it; before MQTT 5 that it is taken. One that a PUBACK cannot
        /// have (§3.4.2.1) leaves as Success or Unspecified error.
        reason: Reason,
    },
    /// The next step of an authentication that CONNECT began (MQTT 5 §4.12).
    Authenticate(Auth),
    /// The connection is to end.
    Disconnect(Disconnect),
    /// The instant of the last [`Output::WakeAt`] has come, or any other.
    Wake,
}

/// What a client wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Bytes are to be written.
    Transmit(Bytes),
    /// The server lets the client in. Where it has no session, nobody is subscribed to anything.
    Open(ConnAck),
    /// A message came; its topic alias is resolved.
    Message {
        /// What to accept it with; none of QoS 0.
        receipt: Option<u64>,
        /// The message.
        publish: Publish,
    },
    /// A message is published: written, where its QoS is 0; acknowledged, where it is more.
    Published {
        /// Of the message.
        key: u64,
        /// What the server says of it, a failure too.
        reason: Reason,
    },
    /// The server has answered a SUBSCRIBE.
    Subscribed {
        /// Of it.
        key: u64,
        /// The answer.
        ack: SubAck,
    },
    /// The server has answered an UNSUBSCRIBE.
    Unsubscribed {
        /// Of it.
        key: u64,
        /// The answer.
        ack: UnsubAck,
    },
    /// Nothing will come of a message or a wish.
    Failed {
        /// Of it.
        key: u64,
        /// Why.
        failure: Failure,
    },
    /// The server wants the next step of an authentication.
    Authenticate(Auth),
    /// The connection is over: the shell closes it, after what is to be written.
    Closed(Closed),
    /// When to call again at the latest.
    WakeAt(Duration),
}

/// Why nothing comes of a message or a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Too many messages wait already.
    Full,
    /// It is none that can be sent.
    Invalid(Error),
    /// Its topic or a filter is none.
    InvalidTopic(Refused),
    /// It has more bytes than the server takes (MQTT 5 §3.2.2.3.6).
    TooLarge,
    /// The server has said that it does not take such (MQTT 5 §3.2.2.3).
    Unsupported(Reason),
    /// There is no connection, or it broke before the answer came.
    Unconnected,
    /// The server has lost the session: whether a message of QoS 2 arrived is not known.
    SessionLost,
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The caller wanted it.
    Asked,
    /// It broke.
    Broken,
    /// The server does not let the client in.
    Unwelcome(ConnAck),
    /// The server has ended it.
    ByServer(Disconnect),
    /// The server sent what it may not send.
    Refused(Refused),
    /// The server does not answer.
    Unanswered,
    /// The caller's step of an authentication cannot be written.
    Invalid(Error),
}
