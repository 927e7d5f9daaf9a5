//! Properties of messages as fields of publications, and back.
//!
//! What is published here keeps its properties for consumers here, as they came. Headers that begin
//! with `x-` are annotations and stay here, as between RabbitMQ and AMQP 1.0.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp091::{ArrayBuf, MAX_SHORT_BYTES, Properties, Table, TableBuf, Value};

use super::modern::{self, Modern};
use super::names::{key_of, topic_of};
use crate::ids::Protocol;
use crate::publication::{Details, Grade, MEDIA_TYPE, Publication};

/// Header: it is to be retained, or was.
const RETAIN: &str = "x-retain";
/// Header: all properties in order, where some have the same name.
const PAIRS: &str = "x-opt-lw-properties";
/// Where answers to a queue go, as a topic.
pub(super) const REPLY_TOPIC: &str = "$reply/queue/";
/// Where answers to a topic go, as a key of the default exchange.
pub(super) const REPLY_KEY: &str = "/topic/";

/// The publication of a message; `None` of its fields is lost but those that only this protocol
/// has, and these are in its original.
pub(super) fn publication(
    now: Duration,
    topic: String,
    bytes: &Bytes,
    body: &Bytes,
    is_confirmed: bool,
) -> Publication {
    let properties = Properties::decode(bytes).unwrap_or_default();
    let mut publication = Publication::new(Protocol::Amqp091, topic, body.clone());
    if is_confirmed || properties.delivery_mode == Some(2) {
        publication.grade = Grade::AtLeastOnce;
    }
    let headers = properties.headers.unwrap_or_default();
    publication.retain = headers.get(RETAIN) == Some(Value::Bool(true));
    publication.deadline = ttl_of(&properties).ok().flatten().map(|ttl| now.saturating_add(ttl));
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let reply_to = properties.reply_to.and_then(reply_topic);
    let details = Details {
        content_type: owned(properties.content_type),
        reply_to,
        correlation: properties.correlation_id.map(|id| Bytes::copy_from_slice(id.as_bytes())),
        properties: pairs(headers),
        priority: properties.priority.map(|priority| priority.min(9)),
        message_id: owned(properties.message_id),
        created_ms: properties.timestamp.map(|seconds| seconds.saturating_mul(1000)),
        via: Vec::new(),
        original: Some(bytes.clone()),
    };
    publication.details = Some(Box::new(details));
    publication
}

/// The topic that answers go to, of the property that names a queue, or a topic's key; `None` where
/// no topic can name it.
#[must_use]
pub fn reply_topic(reply_to: &str) -> Option<String> {
    match reply_to.strip_prefix(REPLY_KEY) {
        Some(key) => topic_of(key),
        // A queue whose name is no part of a topic cannot be named to others.
        None if reply_to.contains(['+', '#']) || reply_to.is_empty() => None,
        None => Some(format!("{REPLY_TOPIC}{reply_to}")),
    }
}

/// How long a message is of use; the error says that the property is no number.
pub(super) fn ttl_of(properties: &Properties<'_>) -> Result<Option<Duration>, String> {
    let Some(text) = properties.expiration else { return Ok(None) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(ms) if is_number => Ok(Some(Duration::from_millis(ms.into()))),
        _ => Err(format!("expiration '{text}' is not from 0 to {} milliseconds", u32::MAX)),
    }
}

/// Headers as pairs of text: simple values as they are written, others dropped.
#[must_use]
pub fn pairs(headers: Table<'_>) -> Vec<(String, String)> {
    if let Some(Value::Array(array)) = headers.get(PAIRS) {
        let texts: Vec<String> =
            array.iter().filter_map(|value| value.as_text().map(str::to_owned)).collect();
        let pairs = texts.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((name.clone(), value.clone())),
            _ => None,
        });
        return pairs.collect();
    }
    let named = headers.iter().filter(|(name, _)| !name.starts_with("x-"));
    named.filter_map(|(name, value)| Some((name.to_owned(), text_of(&value)?))).collect()
}

fn text_of(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Text(_) => value.as_text()?.to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Timestamp(seconds) => seconds.to_string(),
        Value::Decimal { scale, value } => decimal(*scale, *value),
        Value::Bytes(_) | Value::Array(_) | Value::Table(_) | Value::Void => return None,
        whole => whole.as_integer()?.to_string(),
    })
}

/// The digits with their point.
fn decimal(scale: u8, value: i32) -> String {
    let (sign, scale) = (if value < 0 { "-" } else { "" }, usize::from(scale));
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// Flags and properties of a publication: its own, or made of its fields. What does not fit this
/// protocol is left out.
pub(super) fn properties(now: Duration, publication: &Publication, is_retained: bool) -> Bytes {
    let empty = Details::default();
    let details = publication.details.as_deref().unwrap_or(&empty);
    if let (Protocol::Amqp091, Some(original)) = (publication.protocol, &details.original)
        && let Ok(own) = Properties::decode(original)
    {
        return match publication.coded {
            None => original.clone(),
            Some(_) => retyped(own, details),
        };
    }
    let modern = match (publication.protocol, &details.original) {
        (Protocol::Amqp, Some(original)) => Some(modern::of(original)),
        _ => None,
    };
    let Modern { headers: typed, content_encoding, app_id, kind } = modern.unwrap_or_default();
    let typed = match publication.coded {
        Some(_) => retyped_headers(typed.as_table(), details),
        None => typed,
    };
    let headers = headers(details, typed, is_retained);
    let is_durable = publication.grade > Grade::AtMostOnce;
    let left_ms = publication.deadline.map(|deadline| deadline.saturating_sub(now).as_millis());
    let expiration = left_ms.map(|ms| ms.min(u32::MAX.into()).to_string());
    let reply_to = details.reply_to.as_deref().and_then(reply_to);
    let correlation = crate::amqp::correlation_text(publication);
    let properties = Properties {
        content_type: short(details.content_type.as_deref()),
        content_encoding: short(content_encoding.as_deref()),
        headers: (!headers.as_table().is_empty()).then(|| headers.as_table()),
        delivery_mode: Some(if is_durable { 2 } else { 1 }),
        priority: details.priority,
        correlation_id: short(correlation.as_deref()),
        reply_to: short(reply_to.as_deref()),
        expiration: expiration.as_deref(),
        message_id: short(details.message_id.as_deref()),
        timestamp: details.created_ms.map(|ms| ms / 1000),
        kind: short(kind.as_deref()),
        app_id: short(app_id.as_deref()),
        ..Properties::default()
    };
    let mut bytes = Vec::new();
    match properties.encode(&mut bytes) {
        Ok(()) => bytes.into(),
        // All of its strings are short: there is nothing left that may fail.
        Err(_) => Bytes::from_static(&[0, 0]),
    }
}

/// Headers that came with a message, which say of the payload's own media type what is said of the
/// payload as it leaves.
fn retyped_headers(came: Table<'_>, details: &Details) -> TableBuf {
    let mut headers = TableBuf::default();
    for (name, value) in came {
        if name != MEDIA_TYPE {
            // It was in one before.
            let _ = headers.put(name, &value);
        }
    }
    if let Some((name, value)) = details.properties.iter().find(|(name, _)| name == MEDIA_TYPE) {
        let _ = headers.put(name, &Value::Text(value.as_bytes()));
    }
    headers
}

/// Properties that came by this protocol about the payload as it leaves.
fn retyped(own: Properties<'_>, details: &Details) -> Bytes {
    let headers = retyped_headers(own.headers.unwrap_or_default(), details);
    let content_type = short(details.content_type.as_deref());
    let headers = (!headers.as_table().is_empty()).then(|| headers.as_table());
    let mut bytes = Vec::new();
    match (Properties { content_type, headers, ..own }).encode(&mut bytes) {
        Ok(()) => bytes.into(),
        Err(_) => Bytes::from_static(&[0, 0]),
    }
}

/// A queue that a topic for answers stands for, or a key under which the default exchange reaches
/// the topic; `None` where neither fits.
#[must_use]
pub fn reply_to(topic: &str) -> Option<String> {
    match topic.strip_prefix(REPLY_TOPIC) {
        Some(queue) => Some(queue.to_owned()),
        None => key_of(topic).map(|key| format!("{REPLY_KEY}{key}")),
    }
}

fn short(text: Option<&str>) -> Option<&str> {
    text.filter(|text| text.len() <= MAX_SHORT_BYTES && !text.contains('\0'))
}

/// The first property of each name as a header, where it is not there with its type; all of them
/// besides where names are repeated.
fn headers(details: &Details, typed: TableBuf, is_retained: bool) -> TableBuf {
    let (mut headers, mut all) = (typed, ArrayBuf::default());
    let mut names = BTreeSet::new();
    let mut is_repeated = false;
    for (name, value) in &details.properties {
        let pair = [name, value].map(|text| Value::Text(text.as_bytes()));
        for text in &pair {
            // No text of a message is longer than the message.
            let _ = all.push(text);
        }
        is_repeated |= !names.insert(name);
        if headers.as_table().get(name).is_none() {
            // A name that is too long is in no header.
            let [_, value] = &pair;
            let _ = headers.put(name, value);
        }
    }
    if is_repeated {
        let _ = headers.put(PAIRS, &Value::Array(all.as_array()));
    }
    if is_retained {
        let _ = headers.put(RETAIN, &Value::Bool(true));
    }
    headers
}

/// Whether a binding asks for what is retained.
pub(super) fn wants_retained(arguments: Table<'_>) -> bool {
    arguments.get(RETAIN) == Some(Value::Bool(true))
}
