//! Properties of AMQP 0.9.1 and what they say, as the broker reads and writes them.

use std::collections::BTreeSet;
use std::time::Duration;

use broker::{amqp091_reply_to, amqp091_reply_topic, amqp091_text, amqp091_topic};
use bytes::Bytes;
use proto::amqp091::{ArrayBuf, Properties, TableBuf, Value};

use crate::client::Message;

/// Header: it is to be retained, or was; argument of a binding: what is retained comes.
pub(super) const RETAIN: &str = "x-retain";
/// Header: all properties in order, where some have the same name.
const PAIRS: &str = "x-opt-lw-properties";
/// The delivery mode of what is kept over a restart.
const PERSISTENT: u8 = 2;

/// Flags and properties of a message.
///
/// # Errors
/// What AMQP 0.9.1 has no place for, by name.
pub(super) fn encode(message: &Message) -> Result<Bytes, String> {
    let mut headers = TableBuf::default();
    let put = |headers: &mut TableBuf, name: &str, value: &Value<'_>| {
        headers.put(name, value).map_err(|error| format!("the property {name}: {error}"))
    };
    let (mut names, mut all) = (BTreeSet::new(), ArrayBuf::default());
    for (name, value) in &message.properties {
        if names.insert(name) {
            put(&mut headers, name, &Value::Text(value.as_bytes()))?;
        }
        for text in [name, value] {
            all.push(&Value::Text(text.as_bytes())).map_err(|error| error.to_string())?;
        }
    }
    if names.len() < message.properties.len() {
        put(&mut headers, PAIRS, &Value::Array(all.as_array()))?;
    }
    if message.retain {
        put(&mut headers, RETAIN, &Value::Bool(true))?;
    }
    let correlation = message.correlation.as_ref().map(|bytes| str::from_utf8(bytes));
    let correlation_id = correlation.transpose().map_err(|_| "a correlation is text".to_owned())?;
    let reply_to = message.reply_to.as_deref().map(|topic| {
        amqp091_reply_to(topic).ok_or_else(|| format!("answers to {topic}: over 255 bytes"))
    });
    let reply_to = reply_to.transpose()?;
    let expiration = message.expiry.map(|expiry| expiry.as_millis().min(u32::MAX.into()));
    let expiration = expiration.map(|ms| ms.to_string());
    let properties = Properties {
        content_type: message.content_type.as_deref(),
        headers: (!headers.as_table().is_empty()).then(|| headers.as_table()),
        delivery_mode: Some(if message.qos > 0 { PERSISTENT } else { 1 }),
        correlation_id,
        reply_to: reply_to.as_deref(),
        expiration: expiration.as_deref(),
        ..Properties::default()
    };
    let mut bytes = Vec::new();
    properties.encode(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes.into())
}

/// What a message says that came under a routing key. One whose key is no topic's has its key in
/// place of a topic.
///
/// # Errors
/// Properties that cannot be read.
pub(super) fn decode(key: &str, properties: &[u8], body: &Bytes) -> Result<Message, String> {
    let properties = Properties::decode(properties).map_err(|error| error.to_string())?;
    let headers = properties.headers.unwrap_or_default();
    let ms = properties.expiration.and_then(|text| text.parse().ok());
    Ok(Message {
        topic: amqp091_topic(key).unwrap_or_else(|| key.to_owned()),
        payload: body.clone(),
        qos: i8::from(properties.delivery_mode == Some(PERSISTENT)),
        retain: headers.get(RETAIN) == Some(Value::Bool(true)),
        content_type: properties.content_type.map(str::to_owned),
        reply_to: properties.reply_to.and_then(amqp091_reply_topic),
        correlation: properties.correlation_id.map(|id| Bytes::copy_from_slice(id.as_bytes())),
        expiry: ms.map(Duration::from_millis),
        properties: amqp091_text(headers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_said_comes_back() {
        let pairs = [("k", "2"), ("k", "1"), ("other", "ä")];
        let message = Message {
            topic: "unit/7.5".to_owned(),
            payload: Bytes::from_static(b"\0\xff"),
            qos: 1,
            retain: true,
            content_type: Some("image/x".to_owned()),
            reply_to: Some("answers/7".to_owned()),
            correlation: Some("c1".into()),
            expiry: Some(Duration::from_millis(1500)),
            properties: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        };
        let came = decode("unit.7%2E5", &encode(&message).unwrap(), &message.payload);
        assert_eq!(came.unwrap(), message);
        let reply_to = Some("$reply/queue/q".to_owned());
        let plain = Message { reply_to, qos: 0, ..Message::default() };
        let came = decode("a*", &encode(&plain).unwrap(), &plain.payload).unwrap();
        assert_eq!((came.topic.as_str(), came.reply_to, came.qos), ("a*", plain.reply_to, 0));
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let long = Some("x".repeat(256));
        for (message, what) in [
            (Message { content_type: long.clone(), ..Message::default() }, "255"),
            (Message { reply_to: long, ..Message::default() }, "over 255 bytes"),
            (
                Message { correlation: Some(Bytes::from_static(b"\xff")), ..Message::default() },
                "is text",
            ),
        ] {
            let error = encode(&message).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        assert!(decode("a", b"\0", &Bytes::new()).is_err());
    }
}
