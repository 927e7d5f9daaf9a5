//! Messages to publications and back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::amqp::message::{
    Body, DEFAULT_PRIORITY, Header, Message, Properties, encode_bare, encode_message,
};
use proto::amqp::performative::{ErrorInfo, condition};
use proto::amqp::types::{Map, Symbol, Value};

use super::address::{self, REPLY};
use super::cbor;
use super::classic;
use super::correlation;
use super::selector::{Fields, Operand, Selector};
use crate::core::Delivery;
use crate::federation::BreachKind;
use crate::ids::Protocol;
use crate::publication::{Details, Form, Grade, MEDIA_TYPE, Publication};
use crate::refusal::Refusal;

/// The message annotation that says that a message is its topic's present value.
const RETAIN: &str = "x-opt-retain";
/// The message annotation with all properties in order, where names are repeated.
const ALL_PROPERTIES: &str = "x-opt-lw-properties";
/// The message annotation with the topic, where the message does not say it and the subscriber
/// could not know.
const TOPIC: &str = "x-opt-lw-topic";
/// Messages of fewer bytes are copied: they would keep all that came with them in memory.
const MIN_KEPT_BYTES: usize = 16 << 10;

/// What comes, as all protocols see it, with its lifetime. `topic` is that of the link; without one
/// the message says it.
pub(super) fn publication(
    message: &Bytes,
    topic: Option<Arc<str>>,
) -> Result<(Publication, Option<Duration>), ErrorInfo> {
    let message = if message.len() < MIN_KEPT_BYTES {
        Bytes::copy_from_slice(message)
    } else {
        message.clone()
    };
    let parts = Message::decode(&message)
        .map_err(|error| ErrorInfo::new(condition::DECODE_ERROR, error.to_string()))?;
    let to = || parts.properties.to.as_ref().and_then(Value::as_text);
    let topic = topic.or_else(|| to().map(|to| address::topic(to, false).into()));
    let what = "a message to a link without address says in properties.to where it goes";
    let topic = topic.ok_or_else(|| ErrorInfo::new(condition::INVALID_FIELD, what))?;
    let mut content_type = parts.properties.content_type.as_ref().map(|it| it.as_str().to_owned());
    let failed = |error: proto::Error| ErrorInfo::new(condition::DECODE_ERROR, error.to_string());
    let (payload, form, is_cbor) = payload(&parts.body).map_err(failed)?;
    if is_cbor {
        content_type = Some("application/cbor".to_owned());
    }
    let is_xml = |it: &String| {
        let it = it.split(';').next().unwrap_or_default().trim();
        it == "application/xml" || it == "text/xml" || it.ends_with("+xml")
    };
    let mut publication = Publication::new(Protocol::Amqp, topic, payload);
    publication.form = match form {
        Form::Bytes if content_type.as_ref().is_some_and(is_xml) => {
            if str::from_utf8(&publication.payload).is_ok() { Form::Xml } else { Form::Bytes }
        }
        form => form,
    };
    publication.retain = parts.annotation(RETAIN) == Some(&Value::Bool(true));
    publication.details = Some(Box::new(details(&parts, content_type)));
    let ttl_ms = parts.header.ttl_ms.filter(|ttl| *ttl > 0);
    Ok((publication, ttl_ms.map(|ttl| Duration::from_millis(ttl.into()))))
}

/// The bytes of a body for clients of protocols that know nothing else, what they are, and whether
/// they are CBOR: that of values which are neither text nor binary.
///
/// # Errors
/// Values that CBOR does not have.
pub fn payload(body: &Body) -> Result<(Bytes, Form, bool), proto::Error> {
    Ok(match body {
        Body::Empty | Body::Value(Value::Null) => (Bytes::new(), Form::Bytes, false),
        Body::Data(sections) => match sections.as_slice() {
            [one] => (one.clone(), Form::Bytes, false),
            several => (several.concat().into(), Form::Bytes, false),
        },
        Body::Value(Value::Binary(bytes)) => (bytes.clone(), Form::Bytes, false),
        Body::Value(Value::String(text)) => (text.clone().into(), Form::Text, false),
        Body::Value(value) => (cbor::encode(value)?.into(), Form::Bytes, true),
        Body::Sequence(items) => (cbor::encode_all(items)?.into(), Form::Bytes, true),
    })
}

fn details(parts: &Message, content_type: Option<String>) -> Details {
    let Properties { message_id, reply_to, correlation_id, creation_time_ms, .. } =
        &parts.properties;
    let reply_to = reply_to.as_ref().and_then(Value::as_text);
    Details {
        content_type,
        reply_to: reply_to.map(|it| address::topic(it, false)),
        correlation: correlation_id
            .as_ref()
            .map(|value| correlation::to_bytes(value, reply_to.is_some())),
        properties: properties(parts),
        priority: (parts.header.priority != DEFAULT_PRIORITY).then_some(parts.header.priority),
        message_id: message_id.as_ref().and_then(correlation::to_text),
        created_ms: creation_time_ms.and_then(|ms| u64::try_from(ms).ok()),
        via: Vec::new(),
        original: Some(original(parts)),
    }
}

/// Names and values, those of an earlier passage in order where they are there.
fn properties(parts: &Message) -> Vec<(String, String)> {
    if let Some(Value::List(all)) = parts.annotation(ALL_PROPERTIES) {
        let pairs = all.chunks_exact(2).map(|pair| match pair {
            [Value::String(name), Value::String(value)] => Some((name.clone(), value.clone())),
            _ => None,
        });
        if let Some(pairs) = pairs.collect() {
            return pairs;
        }
    }
    let own = parts.application_properties.iter();
    own.filter_map(|(name, value)| Some((name.as_text()?.to_owned(), text(value)?))).collect()
}

/// What consumers of the same protocol get: the annotations, but those of this broker, and behind
/// them the bare message as it came (AMQP 1.0 Part 3 §3.2).
fn original(parts: &Message) -> Bytes {
    if parts.message_annotations.is_empty() {
        return parts.bare.clone();
    }
    let mut annotations = parts.message_annotations.clone();
    annotations.retain(|(key, _)| !matches!(key.as_text(), Some(RETAIN | TOPIC)));
    encode_message(&Header::default(), &annotations, &parts.bare)
}

/// A simple value as text; `None` for others.
#[must_use]
pub fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Ubyte(value) => value.to_string(),
        Value::Ushort(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Ulong(value) => value.to_string(),
        Value::Byte(value) => value.to_string(),
        Value::Short(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Long(value) | Value::Timestamp(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Char(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Symbol(value) => value.as_str().to_owned(),
        Value::Uuid(bytes) => uuid(*bytes),
        _ => return None,
    })
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// What a consumer of AMQP gets. `attempts` are those before that failed; a consumer by wildcards
/// reads the topic as well.
pub(super) fn message(
    now: Duration,
    delivery: &Delivery,
    attempts: u32,
    is_wildcard: bool,
) -> Bytes {
    let publication = &delivery.publication;
    let details = publication.details.as_deref();
    let left = publication.deadline.map(|deadline| deadline.saturating_sub(now).as_millis());
    let header = Header {
        durable: delivery.grade > Grade::AtMostOnce,
        priority: details.and_then(|it| it.priority).unwrap_or(DEFAULT_PRIORITY),
        ttl_ms: left.map(|left| u32::try_from(left).unwrap_or(u32::MAX).max(1)),
        first_acquirer: false,
        delivery_count: attempts.saturating_add(u32::from(delivery.repeated)),
    };
    let original = details.and_then(|it| it.original.as_ref());
    if let (Protocol::Amqp, Some(original)) = (publication.protocol, original) {
        let reshaped = publication.coded.and_then(|_| reshaped(original, publication));
        return forwarded(delivery, &header, reshaped.as_ref().unwrap_or(original), is_wildcard);
    }
    let empty = Details::default();
    let details = details.unwrap_or(&empty);
    let (mut properties, mut application) = said(publication, details);
    let body = Body::Data(vec![publication.payload.clone()]);
    let mut annotations = Map::new();
    let names = details.properties.iter().map(|(name, _)| name);
    if application.len() < names.count() {
        let all = details.properties.iter().flat_map(|(name, value)| [name, value]);
        let all = all.map(|it| Value::string(it)).collect();
        annotations.push((Value::symbol(ALL_PROPERTIES), Value::List(all)));
    }
    if let (Protocol::Amqp091, Some(original)) = (publication.protocol, &details.original) {
        let classic = classic::of(original);
        application = classic.application;
        if publication.coded.is_some() {
            retype(&mut application, details);
        }
        annotations.extend(classic.annotations);
        properties.content_encoding = classic.content_encoding;
        properties.group_id = classic.group_id;
    }
    if delivery.retain {
        annotations.push((Value::symbol(RETAIN), Value::Bool(true)));
    }
    encode_message(&header, &annotations, &encode_bare(&properties, &application, &body))
}

/// Application properties that came with a message say of the payload's own media type what is said
/// of the payload as it leaves.
fn retype(application: &mut Map, details: &Details) {
    application.retain(|(name, _)| name.as_text() != Some(MEDIA_TYPE));
    let kept = details.properties.iter().find(|(name, _)| name == MEDIA_TYPE);
    application.extend(kept.map(|(name, value)| (Value::string(name), Value::string(value))));
}

/// One that came by AMQP about its payload as it leaves, without the footer, which is about the one
/// that came (AMQP 1.0 Part 3 §3.2.9).
fn reshaped(original: &Bytes, publication: &Publication) -> Option<Bytes> {
    // It was read when it came.
    let mut parts = Message::decode(original).ok()?;
    let details = publication.details.as_deref()?;
    let content_type = details.content_type.as_deref();
    parts.properties.content_type = content_type.and_then(|it| Symbol::of(it).ok());
    let application = &mut parts.application_properties;
    retype(application, details);
    let body = Body::Data(vec![publication.payload.clone()]);
    let bare = encode_bare(&parts.properties, application, &body);
    Some(match parts.message_annotations.is_empty() {
        true => bare,
        false => encode_message(&Header::default(), &parts.message_annotations, &bare),
    })
}

/// One that came by AMQP: the same bare message.
fn forwarded(delivery: &Delivery, header: &Header, original: &Bytes, is_wildcard: bool) -> Bytes {
    let unchanged = || encode_message(header, &Map::new(), original);
    if !delivery.retain && !is_wildcard {
        return unchanged();
    }
    // It was read when it came.
    let Ok(parts) = Message::decode(original) else { return unchanged() };
    let mut annotations = parts.message_annotations;
    if is_wildcard && parts.properties.to.is_none() {
        let topic = Value::string(&delivery.publication.topic);
        annotations.push((Value::symbol(TOPIC), topic));
    }
    if delivery.retain {
        annotations.push((Value::symbol(RETAIN), Value::Bool(true)));
    }
    encode_message(header, &annotations, &parts.bare)
}

/// Sections of a message that did not come by AMQP.
fn said(publication: &Publication, details: &Details) -> (Properties, Map) {
    let content_type = details.content_type.clone().or_else(|| match publication.form {
        Form::Bytes => None,
        Form::Text => Some("text/plain; charset=utf-8".to_owned()),
        Form::Xml => Some("application/xml".to_owned()),
    });
    let is_reply = publication.topic.starts_with(REPLY);
    let properties = Properties {
        to: Some(Value::string(&publication.topic)),
        message_id: details.message_id.as_deref().map(|id| match publication.protocol {
            Protocol::Amqp091 => correlation::of_text(id),
            _ => Value::string(id),
        }),
        reply_to: details.reply_to.as_deref().map(Value::string),
        correlation_id: details
            .correlation
            .as_ref()
            .map(|bytes| correlation::to_value(publication, bytes, is_reply)),
        // One that is not ASCII cannot be said.
        content_type: content_type.and_then(|it| Symbol::of(&it).ok()),
        creation_time_ms: details.created_ms.and_then(|ms| i64::try_from(ms).ok()),
        ..Properties::default()
    };
    let mut application = Map::new();
    for (name, value) in &details.properties {
        if !application.iter().any(|(known, _)| known.as_text() == Some(name)) {
            application.push((Value::string(name), Value::string(value)));
        }
    }
    (properties, application)
}

/// The error of a refusal.
pub(super) fn refused(refusal: &Refusal) -> ErrorInfo {
    let condition = match refusal {
        Refusal::Federation(breach) if breach.kind == BreachKind::Rate => {
            condition::RESOURCE_LIMIT_EXCEEDED
        }
        Refusal::NotAuthorized | Refusal::Federation(_) => condition::UNAUTHORIZED_ACCESS,
        Refusal::TopicName { .. } | Refusal::TopicFilter { .. } => condition::INVALID_FIELD,
        Refusal::Quota { .. } => condition::RESOURCE_LIMIT_EXCEEDED,
        Refusal::TooLarge { .. } => condition::MESSAGE_SIZE_EXCEEDED,
        Refusal::Closing => condition::CONNECTION_FORCED,
    };
    ErrorInfo::new(condition, refusal.to_string())
}

/// What a selector asks of a publication: its properties, and fields by the names that JMS has for
/// them.
struct Asked<'a> {
    publication: &'a Publication,
    /// The message as it came, if by AMQP.
    parts: Option<Message>,
}

/// Whether a selector fits.
pub(super) fn fits(selector: &Selector, publication: &Publication) -> bool {
    let original = publication.details.as_ref().and_then(|it| it.original.as_ref());
    let original = original.filter(|_| publication.protocol == Protocol::Amqp);
    let parts = original.and_then(|original| Message::decode(original).ok());
    selector.fits(&Asked { publication, parts })
}

impl Fields for Asked<'_> {
    fn field(&self, name: &str) -> Operand {
        let details = self.publication.details.as_deref();
        let text = |it: Option<&String>| it.map_or(Operand::Null, |it| Operand::Text(it.clone()));
        let properties = self.parts.as_ref().map(|parts| &parts.properties);
        match name {
            "JMSPriority" => {
                let priority = details.and_then(|it| it.priority).unwrap_or(DEFAULT_PRIORITY);
                Operand::Integer(priority.into())
            }
            "JMSDeliveryMode" => {
                let is_kept = self.publication.grade > Grade::AtMostOnce;
                Operand::Text(if is_kept { "PERSISTENT" } else { "NON_PERSISTENT" }.to_owned())
            }
            "JMSMessageID" => text(details.and_then(|it| it.message_id.as_ref())),
            "JMSTimestamp" => {
                let created_ms = details.and_then(|it| it.created_ms);
                let created_ms = created_ms.and_then(|it| i64::try_from(it).ok());
                created_ms.map_or(Operand::Null, Operand::Integer)
            }
            "JMSCorrelationID" => {
                properties.and_then(|it| it.correlation_id.as_ref()).map_or(Operand::Null, operand)
            }
            "JMSType" => text(properties.and_then(|it| it.subject.as_ref())),
            _ => self.property(name),
        }
    }
}

impl Asked<'_> {
    fn property(&self, name: &str) -> Operand {
        if let Some(parts) = &self.parts {
            let is_it = |(key, _): &&(Value, Value)| key.as_text() == Some(name);
            let found = parts.application_properties.iter().find(is_it);
            return found.map_or(Operand::Null, |(_, value)| operand(value));
        }
        let properties = self.publication.details.iter().flat_map(|it| &it.properties);
        let mut found = properties.filter(|(key, _)| key == name);
        found.next().map_or(Operand::Null, |(_, value)| Operand::Text(value.clone()))
    }
}

fn operand(value: &Value) -> Operand {
    match value {
        Value::Bool(value) => Operand::Bool(*value),
        Value::Ubyte(value) => Operand::Integer((*value).into()),
        Value::Ushort(value) => Operand::Integer((*value).into()),
        Value::Uint(value) => Operand::Integer((*value).into()),
        Value::Ulong(value) => {
            i64::try_from(*value).map_or(Operand::Real(*value as f64), Operand::Integer)
        }
        Value::Byte(value) => Operand::Integer((*value).into()),
        Value::Short(value) => Operand::Integer((*value).into()),
        Value::Int(value) => Operand::Integer((*value).into()),
        Value::Long(value) | Value::Timestamp(value) => Operand::Integer(*value),
        Value::Float(value) => Operand::Real((*value).into()),
        Value::Double(value) => Operand::Real(*value),
        value => text(value).map_or(Operand::Null, Operand::Text),
    }
}
