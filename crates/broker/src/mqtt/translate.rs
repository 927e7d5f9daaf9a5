//! Packets to publications and back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::mqtt::{Id, Ids, Properties, Publish, Qos, Reason, Refused, Value};

use crate::federation::BreachKind;
use crate::ids::Protocol;
use crate::publication::{Details, Form, Grade, Publication};
use crate::refusal::Refusal;

/// Payloads of fewer bytes are copied: they would keep all that came with them in memory.
const MIN_KEPT_BYTES: usize = 16 << 10;
/// Properties of a publication that a subscriber gets as they came (MQTT 5 §3.3.2.3).
const FORWARDED: Ids = Ids::new(&[
    Id::PAYLOAD_FORMAT_INDICATOR,
    Id::CONTENT_TYPE,
    Id::RESPONSE_TOPIC,
    Id::CORRELATION_DATA,
    Id::USER_PROPERTY,
]);

/// What a PUBLISH and a will have in common.
pub(super) struct Parts<'a> {
    pub(super) topic: Arc<str>,
    pub(super) payload: &'a Bytes,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) properties: &'a Properties,
}

/// What comes, as all protocols see it; its deadline is the caller's.
pub(super) fn publication(parts: Parts<'_>) -> Result<Publication, Refused> {
    let payload = if parts.payload.len() < MIN_KEPT_BYTES {
        Bytes::copy_from_slice(parts.payload)
    } else {
        parts.payload.clone()
    };
    let mut publication = Publication::new(Protocol::Mqtt, parts.topic, payload);
    publication.grade = grade(parts.qos);
    publication.retain = parts.retain;
    let properties = parts.properties;
    if properties.number(Id::PAYLOAD_FORMAT_INDICATOR) == Some(1) {
        if str::from_utf8(parts.payload).is_err() {
            let what = "a payload that is said to be UTF-8 and is not";
            return Err(Refused::with(Reason::PAYLOAD_FORMAT_INVALID, what));
        }
        publication.form = Form::Text;
    }
    let forwarded = properties.only(FORWARDED);
    if forwarded.is_empty() {
        return Ok(publication);
    }
    let text = |id| properties.text(id).map(str::to_owned);
    publication.details = Some(Box::new(Details {
        content_type: text(Id::CONTENT_TYPE),
        reply_to: text(Id::RESPONSE_TOPIC),
        correlation: properties.binary(Id::CORRELATION_DATA).map(Bytes::copy_from_slice),
        properties: properties
            .user()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        original: Some(Bytes::copy_from_slice(forwarded.as_bytes())),
        ..Details::default()
    }));
    Ok(publication)
}

/// The properties that a subscriber of MQTT 5 gets.
pub(super) fn delivered(
    now: Duration,
    publication: &Publication,
    identifiers: Option<&[u32]>,
) -> Properties {
    let mut properties = match &publication.details {
        Some(details) => details_of(publication, details),
        None if publication.form != Form::Bytes && publication.protocol != Protocol::Mqtt => {
            properties([(Id::PAYLOAD_FORMAT_INDICATOR, Value::Number(1))])
        }
        None if publication.form == Form::Text => {
            properties([(Id::PAYLOAD_FORMAT_INDICATOR, Value::Number(1))])
        }
        None => Properties::NONE,
    };
    if let Some(deadline) = publication.deadline {
        // What is left of it (MQTT 5 §3.3.2.3.3, MQTT-3.3.2-6), in whole seconds that do not
        // lengthen it, and never 0, which would say that it has expired.
        let left = deadline.saturating_sub(now).as_secs().max(1);
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        let _ = properties.push(Id::MESSAGE_EXPIRY_INTERVAL, Value::Number(left));
    }
    for identifier in identifiers.unwrap_or_default() {
        let _ = properties.push(Id::SUBSCRIPTION_IDENTIFIER, Value::Number(*identifier));
    }
    properties
}

fn details_of(publication: &Publication, details: &Details) -> Properties {
    if publication.protocol == Protocol::Mqtt
        && publication.coded.is_none()
        && let Some(original) = &details.original
        && let Ok(properties) = Properties::decode(original.clone(), FORWARDED)
    {
        return properties;
    }
    let mut values = Vec::new();
    if publication.form != Form::Bytes {
        values.push((Id::PAYLOAD_FORMAT_INDICATOR, Value::Number(1)));
    }
    values.extend(details.content_type.as_deref().map(|it| (Id::CONTENT_TYPE, Value::Text(it))));
    values.extend(details.reply_to.as_deref().map(|it| (Id::RESPONSE_TOPIC, Value::Text(it))));
    values
        .extend(details.correlation.as_deref().map(|it| (Id::CORRELATION_DATA, Value::Binary(it))));
    values.extend(
        details
            .properties
            .iter()
            .map(|(name, value)| (Id::USER_PROPERTY, Value::Pair(name, value))),
    );
    properties(values)
}

/// Properties of this side's making; one that MQTT cannot say is left out.
pub(super) fn properties<'a>(values: impl IntoIterator<Item = (Id, Value<'a>)>) -> Properties {
    let mut properties = Properties::NONE;
    for (id, value) in values {
        let _ = properties.push(id, value);
    }
    properties
}

/// Adds a reason in words.
pub(super) fn explain(properties: &mut Properties, what: Option<&str>) {
    if let Some(what) = what {
        let _ = properties.push(Id::REASON_STRING, Value::Text(what));
    }
}

/// The topic of a PUBLISH, which may be a number that stands for one (MQTT 5 §3.3.2.3.4).
pub(super) fn topic(
    publish: &Publish,
    maximum: u16,
    aliases: &mut BTreeMap<u16, Arc<str>>,
) -> Result<Arc<str>, Refused> {
    let alias = publish.properties.number(Id::TOPIC_ALIAS);
    let Some(alias) = alias.map(|alias| u16::try_from(alias).unwrap_or(u16::MAX)) else {
        return Ok(publish.topic.as_str().into());
    };
    if alias == 0 || alias > maximum {
        let what = "a topic alias over the Topic Alias Maximum";
        return Err(Refused::with(Reason::TOPIC_ALIAS_INVALID, what));
    }
    if publish.topic.is_empty() {
        let what = "a topic alias that stands for no topic";
        return aliases.get(&alias).cloned().ok_or_else(|| Refused::protocol(what));
    }
    let topic: Arc<str> = publish.topic.as_str().into();
    aliases.insert(alias, topic.clone());
    Ok(topic)
}

/// The grade of a quality of service.
pub(super) fn grade(qos: Qos) -> Grade {
    match qos {
        Qos::AtMostOnce => Grade::AtMostOnce,
        Qos::AtLeastOnce => Grade::AtLeastOnce,
        Qos::ExactlyOnce => Grade::ExactlyOnce,
    }
}

/// The quality of service of a grade.
pub(super) fn qos(grade: Grade) -> Qos {
    match grade {
        Grade::AtMostOnce => Qos::AtMostOnce,
        Grade::AtLeastOnce => Qos::AtLeastOnce,
        Grade::ExactlyOnce => Qos::ExactlyOnce,
    }
}

/// The reason code of a refusal.
pub(super) fn refused(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::NotAuthorized => {
            Refused::with(Reason::NOT_AUTHORIZED, "the client's rules do not allow this")
        }
        Refusal::TopicName { what } => Refused::with(Reason::TOPIC_NAME_INVALID, what),
        Refusal::TopicFilter { what } => Refused::with(Reason::TOPIC_FILTER_INVALID, what),
        Refusal::Quota { what, .. } => Refused::with(Reason::QUOTA_EXCEEDED, what),
        Refusal::TooLarge { .. } => {
            Refused::with(Reason::PACKET_TOO_LARGE, "a message over max_message_bytes")
        }
        Refusal::Federation(breach) => match breach.kind {
            BreachKind::Rate => Refused::with(Reason::QUOTA_EXCEEDED, "over the profile's rate"),
            BreachKind::MediaType => {
                let what = "the profile has another media type";
                Refused::with(Reason::PAYLOAD_FORMAT_INVALID, what)
            }
            _ => Refused::with(Reason::NOT_AUTHORIZED, "the federation's profile has it not"),
        },
        Refusal::Closing => Refused::with(Reason::SERVER_SHUTTING_DOWN, "the broker is ending"),
    }
}
