//! A client of brokers: publishes, or gets what it has subscribed to, by the protocol that a URL
//! names.
//!
//! Each protocol is a file with two functions, one for each direction. A connection that was there
//! and is lost is made again, for as long as [`Settings::retry`] says; messages of QoS 1 and 2 that
//! were not acknowledged are then sent again.

mod ability;
mod again;
mod amqp;
mod amqp091;
mod line;
mod mqtt;
mod mqttsn;
mod mqttudp;
mod pending;
mod target;
mod wsn;

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::error::Error;

pub use ability::{Ability, Dialect, Direction};
pub use proto::mqtt::Version;
pub use target::{Identity, Scheme, Target};

/// A publication. What a protocol cannot say of it is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// What it says.
    pub payload: Bytes,
    /// Quality of service, 0 to 2; -1 is of MQTT-SN alone (MQTT-SN 1.2 §6.8).
    pub qos: i8,
    /// Whether it is kept for later subscribers; of one that came, whether it was.
    pub retain: bool,
    /// Media type.
    pub content_type: Option<String>,
    /// Where an answer is expected.
    pub reply_to: Option<String>,
    /// What the answer is to carry.
    pub correlation: Option<Bytes>,
    /// How long it is of use.
    pub expiry: Option<Duration>,
    /// Names and values, in order.
    pub properties: Vec<(String, String)>,
}

impl Message {
    /// All of it as an object; a payload that is no UTF-8 is in Base64, under another name.
    #[must_use]
    pub fn facts(&self) -> serde_json::Value {
        let mut facts = serde_json::json!({
            "topic": self.topic, "qos": self.qos, "retain": self.retain,
            "content_type": self.content_type, "reply_to": self.reply_to,
            "correlation_base64": self.correlation.as_ref().map(|bytes| STANDARD.encode(bytes)),
            "expiry_s": self.expiry.map(|expiry| expiry.as_secs()),
            "properties": self.properties,
        });
        let (name, payload) = match str::from_utf8(&self.payload) {
            Ok(text) => ("payload", text.to_owned()),
            Err(_) => ("payload_base64", STANDARD.encode(&self.payload)),
        };
        facts[name] = payload.into();
        facts
    }
}

/// What a client does with a broker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who it is; where it is empty, the broker names it (MQTT), or chance does.
    pub client_id: String,
    /// The version of MQTT.
    pub version: Version,
    /// Begins without what is left of an earlier session.
    pub clean: bool,
    /// The broker hears of it at least so often.
    pub keep_alive: Duration,
    /// How long the broker keeps the session behind the connection (MQTT 5 §3.1.2.11.2).
    pub expiry: Duration,
    /// What is published when the client is lost.
    pub will: Option<Message>,
    /// For how long a connection that was lost is made again.
    pub retry: Duration,
    /// The exchange of AMQP 0.9.1 that is published to, or that queues are bound to; without it
    /// `amq.topic`, which is the one of topics.
    pub exchange: Option<String>,
}

impl Settings {
    /// The keep-alive in whole seconds; only zero is none.
    fn keep_alive_s(&self) -> u64 {
        self.keep_alive.as_secs() + u64::from(self.keep_alive.subsec_nanos() > 0)
    }
}

/// What is subscribed to.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Filters of topics.
    pub filters: Vec<String>,
    /// The highest quality of service, 0 to 2.
    pub qos: u8,
    /// Messages that are retained do not come.
    pub no_retained: bool,
    /// A queue of AMQP 0.9.1, which is made where it is not there, and stays; without it the client
    /// has one of its own for as long as it is connected.
    pub queue: Option<String>,
    /// Where a consumer of WS-Notification listens; without it at a port of the system's choice.
    pub listen: Option<SocketAddr>,
    /// With WS-Notification: the broker keeps messages in a pull point, and is asked for them this
    /// often.
    pub pull: Option<Duration>,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The broker has accepted the subscriptions, those of the text excepted.
    Subscribed(Vec<String>),
    /// A message came.
    Message(Message),
    /// A message came that cannot be read, for this reason; the broker is told that it is not
    /// taken.
    Unreadable(String),
}

/// What became of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken, and more is wanted.
    More,
    /// It was taken, and was the last.
    Last,
    /// It could not be taken: a message stays with the broker, as far as the protocol can say so,
    /// and nothing more is wanted.
    Failed,
}

/// Takes what a subscriber hears.
pub(crate) type Take<'a> = dyn FnMut(Event) -> Taken + 'a;

/// What became of the messages of a publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Messages that the broker has acknowledged, or that have left where nobody acknowledges.
    pub accepted: u64,
    /// What the others failed of, in order; at most [`MAX_FAILURES`] are kept.
    pub failures: Vec<String>,
    /// How many failed.
    pub failed: u64,
}

/// What is said of a message that was under way when the connection was lost, and must not go
/// twice.
const UNKNOWN_END: &str = "the connection was lost: whether it arrived is not known";

/// Failures whose reasons are kept.
pub const MAX_FAILURES: usize = 100;

impl Published {
    /// Messages that have their end.
    fn ended(&self) -> u64 {
        self.accepted + self.failed
    }

    fn fail(&mut self, why: String) {
        self.failed += 1;
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(why);
        }
    }

    /// A message has its end.
    fn end(&mut self, end: Result<(), String>) {
        match end {
            Ok(()) => self.accepted += 1,
            Err(why) => self.fail(why),
        }
    }

    /// One that has left where nobody acknowledges was refused behind that.
    fn fail_late(&mut self, why: String) {
        self.accepted = self.accepted.saturating_sub(1);
        self.fail(why);
    }
}

/// Publishes what comes from `messages` until there are no more, and all have their end.
///
/// # Errors
/// [`Error::Caller`] for what the protocol cannot do, [`Error::System`] where the broker cannot be
/// reached, refuses the client, or is lost for longer than it is tried again.
pub async fn publish(
    target: &Target,
    settings: &Settings,
    messages: mpsc::Receiver<Message>,
) -> Result<Published, Error> {
    match target.scheme() {
        Scheme::Mqtt => mqtt::publish(target, settings, messages).await,
        Scheme::MqttSn => mqttsn::publish(target, settings, messages).await,
        Scheme::MqttUdp => mqttudp::publish(target, messages).await,
        Scheme::Amqp => amqp::publish(target, settings, messages).await,
        Scheme::Amqp091 => amqp091::publish(target, settings, messages).await,
        Scheme::Wsn => wsn::publish(target, settings, messages).await,
    }
}

/// Hands on what comes of a subscription until `take` wants no more or `end` is done, and then says
/// that it leaves. A message is acknowledged when `take` has it.
///
/// # Errors
/// As [`publish`].
pub async fn subscribe(
    target: &Target,
    settings: &Settings,
    wish: &Wish,
    take: &mut dyn FnMut(Event) -> Taken,
    end: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut end = std::pin::pin!(end);
    match target.scheme() {
        Scheme::Mqtt => mqtt::subscribe(target, settings, wish, take, end.as_mut()).await,
        Scheme::MqttSn => mqttsn::subscribe(target, settings, wish, take, end.as_mut()).await,
        Scheme::MqttUdp => mqttudp::subscribe(target, wish, take, end.as_mut()).await,
        Scheme::Amqp => amqp::subscribe(target, settings, wish, take, end.as_mut()).await,
        Scheme::Amqp091 => amqp091::subscribe(target, settings, wish, take, end.as_mut()).await,
        Scheme::Wsn => wsn::subscribe(target, settings, wish, take, end.as_mut()).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_no_text_is_in_base64() {
        let text = Message { payload: "äh".into(), ..Message::default() };
        assert_eq!(text.facts()["payload"], "äh");
        let bytes = Message { payload: Bytes::from_static(b"\xff"), ..Message::default() };
        assert_eq!(bytes.facts()["payload_base64"], "/w==");
    }
}
