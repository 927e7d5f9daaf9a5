//! Messages of AMQP 1.0 and what they say, as the broker reads and writes them.

use std::collections::BTreeSet;
use std::time::Duration;

use broker::{amqp_name, amqp_payload, amqp_text};
use bytes::Bytes;
use proto::amqp::machine::Delivery;
use proto::amqp::message::{
    Body, Header, Message as Parts, Properties, encode_bare, encode_message,
};
use proto::amqp::types::{Map, Symbol, Value};

use crate::client::Message;

/// The message annotation that says that a message is its topic's present value.
const RETAIN: &str = "x-opt-retain";
/// The one with all properties in order, where names are repeated.
const ALL_PROPERTIES: &str = "x-opt-lw-properties";
/// The one with the topic, where the message does not say it.
const TOPIC: &str = "x-opt-lw-topic";

/// The bytes of a message.
///
/// # Errors
/// What AMQP has no place for.
pub(super) fn encode(message: &Message) -> Result<Bytes, String> {
    let ttl_ms = message.expiry.map(|expiry| {
        // Zero would be none.
        u32::try_from(expiry.as_millis()).unwrap_or(u32::MAX).max(1)
    });
    let header = Header { durable: message.qos > 0, ttl_ms, ..Header::default() };
    let content_type = message.content_type.as_deref().map(Symbol::of).transpose();
    let properties = Properties {
        to: Some(Value::string(&message.topic)),
        reply_to: message.reply_to.as_deref().map(Value::string),
        correlation_id: message.correlation.as_ref().map(|bytes| match str::from_utf8(bytes) {
            Ok(text) => Value::string(text),
            Err(_) => Value::Binary(bytes.clone()),
        }),
        content_type: content_type.map_err(|_| "a content type is in ASCII".to_owned())?,
        ..Properties::default()
    };
    let mut names = BTreeSet::new();
    let mut application = Map::new();
    for (name, value) in &message.properties {
        if names.insert(name) {
            application.push((Value::string(name), Value::string(value)));
        }
    }
    let mut annotations = Map::new();
    if message.retain {
        annotations.push((Value::symbol(RETAIN), Value::Bool(true)));
    }
    if application.len() < message.properties.len() {
        let all = message.properties.iter().flat_map(|(name, value)| [name, value]);
        let all = all.map(|text| Value::string(text)).collect();
        annotations.push((Value::symbol(ALL_PROPERTIES), Value::List(all)));
    }
    let body = Body::Data(vec![message.payload.clone()]);
    Ok(encode_message(&header, &annotations, &encode_bare(&properties, &application, &body)))
}

/// What a delivery says that came over the link of a filter.
///
/// # Errors
/// Bytes that are no message.
pub(super) fn decode(delivery: &Delivery, filter: &str) -> Result<Message, String> {
    if delivery.format != 0 {
        return Err(format!("its format is {}, which is no standard's", delivery.format));
    }
    let parts = Parts::decode(&delivery.message).map_err(|error| error.to_string())?;
    let (payload, _, is_cbor) = amqp_payload(&parts.body).map_err(|error| error.to_string())?;
    let Properties { to, reply_to, correlation_id, content_type, .. } = &parts.properties;
    let is_topic = !filter.split('/').any(|level| matches!(level, "+" | "#"));
    let named = to.as_ref().or_else(|| parts.annotation(TOPIC)).and_then(Value::as_text);
    let topic = named.filter(|_| !is_topic).unwrap_or(filter);
    let content_type = content_type.as_ref().map(|it| it.as_str().to_owned());
    Ok(Message {
        topic: topic.to_owned(),
        payload,
        qos: match (delivery.settled, delivery.is_second) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        },
        retain: parts.annotation(RETAIN) == Some(&Value::Bool(true)),
        content_type: if is_cbor { Some("application/cbor".to_owned()) } else { content_type },
        reply_to: reply_to.as_ref().and_then(Value::as_text).map(str::to_owned),
        correlation: correlation_id.as_ref().and_then(|value| match value {
            Value::Binary(bytes) => Some(bytes.clone()),
            value => amqp_name(value).map(Into::into),
        }),
        expiry: parts.header.ttl_ms.map(|ms| Duration::from_millis(ms.into())),
        properties: properties(&parts),
    })
}

/// Names and values, all of them where the message has them in order.
fn properties(parts: &Parts) -> Vec<(String, String)> {
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
    own.filter_map(|(name, value)| Some((name.as_text()?.to_owned(), amqp_text(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use proto::amqp::machine::LinkId;

    use super::*;

    fn delivery(message: Bytes) -> Delivery {
        Delivery {
            link: LinkId(0),
            delivery: 0,
            tag: Bytes::new(),
            format: 0,
            settled: false,
            is_second: false,
            message,
        }
    }

    #[test]
    fn all_that_is_said_comes_back() {
        let pairs = [("k", "2"), ("k", "1"), ("other", "ä")];
        let message = Message {
            topic: "unit/7".to_owned(),
            payload: Bytes::from_static(b"\0\xff"),
            qos: 1,
            retain: true,
            content_type: Some("image/x".to_owned()),
            reply_to: Some("answers".to_owned()),
            correlation: Some("c1".into()),
            expiry: Some(Duration::from_secs(60)),
            properties: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        };
        let bytes = encode(&message).unwrap();
        for filter in ["unit/+", "unit/7"] {
            assert_eq!(decode(&delivery(bytes.clone()), filter).unwrap(), message);
        }
        let binary = Message { correlation: Some(Bytes::from_static(b"\xff")), ..message };
        let came = decode(&delivery(encode(&binary).unwrap()), "#").unwrap();
        assert_eq!(came.correlation, binary.correlation);
        let bad = Message { content_type: Some("ä".to_owned()), ..binary };
        assert!(encode(&bad).unwrap_err().contains("ASCII"));
    }

    #[test]
    fn values_of_others_are_read() {
        let none = (Properties::default(), Map::new());
        for (body, payload, content_type) in [
            (Body::Value(Value::string("text")), &b"text"[..], None),
            (Body::Value(Value::Bool(true)), &b"\xf5"[..], Some("application/cbor")),
            (Body::Empty, &b""[..], None),
        ] {
            let bytes = encode_bare(&none.0, &none.1, &body);
            let came = decode(&delivery(bytes), "a").unwrap();
            assert_eq!((&came.payload[..], came.content_type.as_deref()), (payload, content_type));
        }
        assert!(decode(&delivery(Bytes::from_static(b"\0")), "a").is_err());
        let other = Delivery { format: 1, ..delivery(Bytes::new()) };
        assert!(decode(&other, "a").is_err());
    }
}
