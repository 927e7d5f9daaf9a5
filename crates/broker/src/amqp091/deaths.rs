//! Dead letters: messages that a queue does not keep, and the header that says so (`x-death`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp091::{Array, ArrayBuf, Properties, Table, TableBuf, Value};

use super::arguments::DeadLetters;
use super::queue::Message;

/// Deaths that a message tells of; the oldest are left out.
const MAX_DEATHS: usize = 32;

/// Why a queue does not keep a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A consumer wants it not.
    Rejected,
    /// It is of no use any more.
    Expired,
    /// The queue is full.
    MaxLength,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
        }
    }
}

/// The message as a dead letter of a queue.
pub(super) fn letter(
    now: Duration,
    queue: &str,
    message: &Message,
    letters: &DeadLetters,
    reason: Reason,
) -> Message {
    let properties = Properties::decode(&message.properties).unwrap_or_default();
    let old = properties.headers.unwrap_or_default();
    let mut headers = TableBuf::default();
    let deaths = deaths(now, queue, message, &properties, reason);
    // The names are short, and what was read can be written.
    let _ = headers.put("x-death", &Value::Array(deaths.as_array()));
    for (name, value) in old.iter().filter(|(name, _)| *name != "x-death") {
        let _ = headers.put(name, &value);
    }
    if old.get("x-first-death-reason").is_none() {
        for (name, value) in [
            ("x-first-death-reason", reason.name()),
            ("x-first-death-queue", queue),
            ("x-first-death-exchange", &message.exchange),
        ] {
            let _ = headers.put(name, &Value::Text(value.as_bytes()));
        }
    }
    // What has expired once would expire again at once.
    let properties =
        Properties { headers: Some(headers.as_table()), expiration: None, ..properties };
    let mut bytes = Vec::new();
    let encoded = properties.encode(&mut bytes);
    debug_assert_eq!(encoded, Ok(()));
    Message {
        exchange: letters.exchange.clone(),
        key: letters.key.clone().unwrap_or_else(|| message.key.clone()),
        properties: Bytes::from(bytes),
        ttl: None,
        ..message.clone()
    }
}

/// The death of now before those of earlier; the same again counts.
fn deaths(
    now: Duration,
    queue: &str,
    message: &Message,
    properties: &Properties<'_>,
    reason: Reason,
) -> ArrayBuf {
    let mut count = 1;
    let mut earlier = Vec::new();
    for death in earlier_deaths(properties) {
        if is_of(death, queue, reason.name()) {
            count += death.get("count").and_then(|count| count.as_integer()).unwrap_or(0);
        } else {
            earlier.push(death);
        }
    }
    let mut keys = ArrayBuf::default();
    let _ = keys.push(&Value::Text(message.key.as_bytes()));
    let mut death = TableBuf::default();
    for (name, value) in [
        ("count", Value::I64(count)),
        ("reason", Value::Text(reason.name().as_bytes())),
        ("queue", Value::Text(queue.as_bytes())),
        ("time", Value::Timestamp(now.as_secs())),
        ("exchange", Value::Text(message.exchange.as_bytes())),
        ("routing-keys", Value::Array(keys.as_array())),
    ] {
        let _ = death.put(name, &value);
    }
    if let Some(expiration) = properties.expiration {
        let _ = death.put("original-expiration", &Value::Text(expiration.as_bytes()));
    }
    let mut deaths = ArrayBuf::default();
    let _ = deaths.push(&Value::Table(death.as_table()));
    for death in earlier.into_iter().take(MAX_DEATHS - 1) {
        let _ = deaths.push(&Value::Table(death));
    }
    deaths
}

fn earlier_deaths<'a>(properties: &Properties<'a>) -> impl Iterator<Item = Table<'a>> {
    let deaths = match properties.headers.and_then(|headers| headers.get("x-death")) {
        Some(Value::Array(deaths)) => deaths,
        _ => Array::default(),
    };
    deaths.into_iter().filter_map(|death| match death {
        Value::Table(death) => Some(death),
        _ => None,
    })
}

fn is_of(death: Table<'_>, queue: &str, reason: &str) -> bool {
    death.get("queue") == Some(Value::Text(queue.as_bytes()))
        && death.get("reason") == Some(Value::Text(reason.as_bytes()))
}

/// Whether a dead letter goes round without anybody's doing: it has died in this queue, and no
/// consumer has rejected it since.
pub(super) fn is_loop(message: &Arc<Message>, queue: &str) -> bool {
    let properties = Properties::decode(&message.properties).unwrap_or_default();
    for death in earlier_deaths(&properties) {
        if death.get("reason") == Some(Value::Text(Reason::Rejected.name().as_bytes())) {
            return false;
        }
        if death.get("queue") == Some(Value::Text(queue.as_bytes())) {
            return true;
        }
    }
    false
}
