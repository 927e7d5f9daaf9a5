//! What a message of AMQP 1.0 says besides what all protocols have, as RabbitMQ's table of
//! conversions has it: types are kept, annotations that begin with `x-` are headers, lists and maps
//! stay there.

use bytes::Bytes;
use proto::amqp::message::Message;
use proto::amqp::types::Value;
use proto::amqp091::{self, TableBuf};

/// Annotations that this broker writes and reads itself, or that are a property.
const OWN: [&str; 4] = ["x-opt-retain", "x-opt-lw-topic", "x-opt-lw-properties", TYPE];
/// The annotation for the property `type`.
const TYPE: &str = "x-basic-type";

/// Headers and properties of the message.
#[derive(Debug, Default)]
pub(super) struct Modern {
    pub(super) headers: TableBuf,
    pub(super) content_encoding: Option<String>,
    pub(super) app_id: Option<String>,
    pub(super) kind: Option<String>,
}

/// Those of a message, without its header and delivery annotations.
pub(super) fn of(original: &Bytes) -> Modern {
    let Ok(message) = Message::decode(original) else { return Modern::default() };
    let properties = &message.properties;
    let mut modern = Modern {
        content_encoding: properties.content_encoding.as_ref().map(|it| it.as_str().to_owned()),
        app_id: properties.group_id.clone(),
        kind: message.annotation(TYPE).and_then(Value::as_text).map(str::to_owned),
        ..Modern::default()
    };
    for (name, value) in &message.application_properties {
        if let Some(name) = name.as_text() {
            put(&mut modern.headers, name, value);
        }
    }
    for (name, value) in &message.message_annotations {
        let name = name.as_text().filter(|name| name.starts_with("x-") && !OWN.contains(name));
        if let Some(name) = name {
            put(&mut modern.headers, name, value);
        }
    }
    modern
}

/// Appends a header, if it can be said and is not there.
fn put(headers: &mut TableBuf, name: &str, value: &Value) {
    use amqp091::Value as Header;
    let text;
    let header = match value {
        Value::Null => Header::Void,
        Value::Bool(value) => Header::Bool(*value),
        Value::Byte(value) => Header::I8(*value),
        Value::Ubyte(value) => Header::U8(*value),
        Value::Short(value) => Header::I16(*value),
        Value::Ushort(value) => Header::U16(*value),
        Value::Int(value) => Header::I32(*value),
        Value::Uint(value) => Header::U32(*value),
        Value::Long(value) => Header::I64(*value),
        Value::Ulong(value) => match i64::try_from(*value) {
            Ok(value) => Header::I64(value),
            Err(_) => return,
        },
        Value::Float(value) => Header::F32(*value),
        Value::Double(value) => Header::F64(*value),
        Value::Timestamp(ms) => match u64::try_from(*ms) {
            Ok(ms) => Header::Timestamp(ms / 1000),
            Err(_) => return,
        },
        Value::Char(value) => {
            text = value.to_string();
            Header::Text(text.as_bytes())
        }
        Value::Binary(bytes) => Header::Bytes(bytes),
        Value::String(value) => Header::Text(value.as_bytes()),
        Value::Symbol(value) => Header::Text(value.as_str().as_bytes()),
        _ => return,
    };
    if headers.as_table().get(name).is_none() {
        // A name that is too long is in no header.
        let _ = headers.put(name, &header);
    }
}

#[cfg(test)]
mod tests {
    use proto::amqp::message::{Body, Header, Properties, encode_bare, encode_message};
    use proto::amqp::types::Symbol;
    use proto::amqp091::Value as Field;

    use super::*;

    #[test]
    fn properties_keep_their_types_and_annotations_with_x_are_headers() {
        let properties = Properties {
            content_encoding: Some(Symbol::new("gzip")),
            group_id: Some("g".to_owned()),
            ..Properties::default()
        };
        let application = vec![
            (Value::string("text"), Value::string("a")),
            (Value::string("n"), Value::Ulong(5)),
            (Value::string("large"), Value::Ulong(u64::MAX)),
            (Value::string("at"), Value::Timestamp(7001)),
            (Value::string("list"), Value::List(Vec::new())),
        ];
        let annotations = vec![
            (Value::symbol("x-basic-type"), Value::string("k")),
            (Value::symbol("x-own"), Value::Bool(true)),
            (Value::symbol("x-opt-retain"), Value::Bool(true)),
            (Value::symbol("other"), Value::Bool(true)),
        ];
        let bare = encode_bare(&properties, &application, &Body::Empty);
        let modern = of(&encode_message(&Header::default(), &annotations, &bare));
        let headers: Vec<_> = modern.headers.as_table().iter().collect();
        let wanted = [
            ("text", Field::Text(b"a")),
            ("n", Field::I64(5)),
            ("at", Field::Timestamp(7)),
            ("x-own", Field::Bool(true)),
        ];
        assert_eq!(headers, wanted);
        let fields = (modern.content_encoding, modern.app_id, modern.kind);
        assert_eq!(fields, (Some("gzip".to_owned()), Some("g".to_owned()), Some("k".to_owned())));
    }
}
