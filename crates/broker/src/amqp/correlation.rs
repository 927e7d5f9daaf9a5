//! What an answer says to be known as one, and names of messages: values of four types here, bytes
//! or text with others.

use bytes::Bytes;
use proto::amqp::types::{Reader, Value, encode};

use crate::ids::Protocol;
use crate::publication::Publication;

/// Where the text of a UUID begins (RFC 9562 §4).
const UUID_TEXT: &str = "urn:uuid:";

/// A correlation as others have it. In a request it is in its AMQP encoding, unless it is binary,
/// so that an answer that brings it back tells the type as well.
pub(super) fn to_bytes(value: &Value, is_request: bool) -> Bytes {
    match value {
        Value::Binary(bytes) if !is_request || decode(bytes).is_none() => bytes.clone(),
        value if is_request => {
            let mut bytes = Vec::new();
            encode(value, &mut bytes);
            bytes.into()
        }
        value => to_text(value).unwrap_or_default().into(),
    }
}

/// A correlation of others: in answers to requests of AMQP the value that the request had.
pub(super) fn to_value(publication: &Publication, bytes: &Bytes, is_reply: bool) -> Value {
    match publication.protocol {
        Protocol::Amqp091 => match std::str::from_utf8(bytes) {
            Ok(text) => of_text(text),
            Err(_) => Value::Binary(bytes.clone()),
        },
        _ if is_reply => decode(bytes).unwrap_or_else(|| Value::Binary(bytes.clone())),
        _ => Value::Binary(bytes.clone()),
    }
}

/// A correlation as text, for protocols that know no other; `None` if it is none.
pub(crate) fn text_of(publication: &Publication) -> Option<String> {
    let details = publication.details.as_ref()?;
    let bytes = details.correlation.as_ref()?;
    let is_encoded = publication.protocol == Protocol::Amqp && details.reply_to.is_some();
    match decode(bytes).filter(|_| is_encoded) {
        Some(value) => to_text(&value),
        None => std::str::from_utf8(bytes).ok().map(str::to_owned),
    }
}

/// The value that bytes are the encoding of, if they are that of one (AMQP 1.0 Part 3 §3.2.4).
fn decode(bytes: &Bytes) -> Option<Value> {
    let mut reader = Reader::new(bytes);
    let value = reader.value().ok().filter(|_| reader.is_empty())?;
    let is_one =
        matches!(value, Value::String(_) | Value::Ulong(_) | Value::Uuid(_) | Value::Binary(_));
    is_one.then_some(value)
}

/// A name as text, that of a UUID as a URN; `None` for what is no name, or binary that is no text.
#[must_use]
pub fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::Binary(bytes) => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Value::Uuid(_) => super::translate::text(value).map(|text| format!("{UUID_TEXT}{text}")),
        value => super::translate::text(value),
    }
}

/// A name that is text elsewhere.
pub(super) fn of_text(text: &str) -> Value {
    let uuid = text.strip_prefix(UUID_TEXT).and_then(uuid);
    uuid.map_or_else(|| Value::string(text), Value::Uuid)
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let is_sound = text.len() == 36
        && text.char_indices().all(|(at, character)| match at {
            8 | 13 | 18 | 23 => character == '-',
            _ => character.is_ascii_hexdigit(),
        });
    let digits = text.replace('-', "");
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_sound)?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "urn:uuid:00000000-0000-0000-0000-0000000000ab";

    fn publication(protocol: Protocol, correlation: Bytes, reply_to: Option<&str>) -> Publication {
        let mut publication = Publication::new(protocol, "a", "");
        publication.details_mut().correlation = Some(correlation);
        publication.details_mut().reply_to = reply_to.map(str::to_owned);
        publication
    }

    fn binary(bytes: &'static [u8]) -> Value {
        Value::Binary(Bytes::from_static(bytes))
    }

    #[test]
    fn a_request_gets_back_what_it_said() {
        let uuid = Value::Uuid(0xab_u128.to_be_bytes());
        let encoded = binary(b"\xa1\x02c1");
        for value in [Value::string("c1"), Value::Ulong(0), uuid, binary(b"\x00\xff"), encoded] {
            let bytes = to_bytes(&value, true);
            // A client of MQTT gives it back as it came.
            let answer = publication(Protocol::Mqtt, bytes.clone(), None);
            assert_eq!(to_value(&answer, &bytes, true), value);
        }
        assert_eq!(&to_bytes(&binary(b"\x00\xff"), true)[..], b"\x00\xff");
    }

    #[test]
    fn an_answer_says_what_the_request_of_others_said() {
        for bytes in [&b"c1"[..], b"\x00\xff", b"\xa1\x02c1", b"D"] {
            let bytes = Bytes::from_static(bytes);
            let request = publication(Protocol::Mqtt, bytes.clone(), Some("answers"));
            let value = to_value(&request, &bytes, false);
            assert_eq!(to_bytes(&value, false), bytes);
        }
        for text in ["c1", "D", UUID] {
            let bytes = Bytes::from_static(text.as_bytes());
            let request = publication(Protocol::Amqp091, bytes.clone(), Some("$reply/queue/q"));
            let value = to_value(&request, &bytes, false);
            assert!(!matches!(value, Value::Binary(_)), "{value:?}");
            let answer = publication(Protocol::Amqp, to_bytes(&value, false), None);
            assert_eq!(text_of(&answer).as_deref(), Some(text));
        }
    }

    #[test]
    fn with_amqp_0_9_1_it_is_text() {
        for (value, text) in [
            (Value::string("c1"), Some("c1")),
            (Value::Uuid(0xab_u128.to_be_bytes()), Some(UUID)),
            (Value::Ulong(5), Some("5")),
            (binary(b"c1"), Some("c1")),
            (binary(b"\xff"), None),
        ] {
            let request = publication(Protocol::Amqp, to_bytes(&value, true), Some("$reply/c/1"));
            assert_eq!(text_of(&request).as_deref(), text);
        }
        let answer = publication(Protocol::Amqp091, Bytes::from_static(b"D"), None);
        assert_eq!(to_value(&answer, &Bytes::from_static(b"D"), true), Value::string("D"));
    }

    #[test]
    fn what_is_no_uuid_stays_text() {
        for text in
            ["urn:uuid:", "urn:uuid:+0000000-0000-0000-0000-0000000000ab", "urn:uuid:x", "x"]
        {
            assert_eq!(of_text(text), Value::string(text));
        }
    }
}
