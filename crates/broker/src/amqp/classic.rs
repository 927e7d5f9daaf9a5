//! What a message of AMQP 0.9.1 says besides what all protocols have, as RabbitMQ's table of
//! conversions has it: types are kept, headers that begin with `x-` are annotations, arrays and
//! tables stay there.

use bytes::Bytes;
use proto::amqp::types::{Map, Symbol, Value};
use proto::amqp091;

/// Headers that this broker writes and reads itself.
const OWN: [&str; 2] = ["x-retain", "x-opt-lw-properties"];
/// The annotation for the property `type`.
const TYPE: &str = "x-basic-type";

/// Sections and fields of the message.
#[derive(Debug, Default)]
pub(super) struct Classic {
    pub(super) application: Map,
    pub(super) annotations: Map,
    pub(super) content_encoding: Option<Symbol>,
    pub(super) group_id: Option<String>,
}

/// Those of a message with these flags and properties.
pub(super) fn of(original: &Bytes) -> Classic {
    let Ok(properties) = amqp091::Properties::decode(original) else { return Classic::default() };
    let mut classic = Classic {
        content_encoding: properties.content_encoding.and_then(|it| Symbol::of(it).ok()),
        group_id: properties.app_id.map(str::to_owned),
        ..Classic::default()
    };
    if let Some(kind) = properties.kind {
        classic.annotations.push((Value::symbol(TYPE), Value::string(kind)));
    }
    for (name, header) in properties.headers.unwrap_or_default().iter() {
        let Some(value) = value(&header).filter(|_| !OWN.contains(&name)) else { continue };
        let (section, key) = match Symbol::of(name) {
            Ok(symbol) if name.starts_with("x-") => {
                (&mut classic.annotations, Value::Symbol(symbol))
            }
            _ => (&mut classic.application, Value::string(name)),
        };
        // The keys of a map are different (AMQP 1.0 Part 1 §1.6.23).
        if !section.iter().any(|(known, _)| *known == key) {
            section.push((key, value));
        }
    }
    classic
}

/// A header's value; `None` for arrays and tables, and for decimals, which have other digits here.
fn value(header: &amqp091::Value<'_>) -> Option<Value> {
    use amqp091::Value as Header;
    Some(match header {
        Header::Bool(value) => Value::Bool(*value),
        Header::I8(value) => Value::Byte(*value),
        Header::U8(value) => Value::Ubyte(*value),
        Header::I16(value) => Value::Short(*value),
        Header::U16(value) => Value::Ushort(*value),
        Header::I32(value) => Value::Int(*value),
        Header::U32(value) => Value::Uint(*value),
        Header::I64(value) => Value::Long(*value),
        Header::F32(value) => Value::Float(*value),
        Header::F64(value) => Value::Double(*value),
        Header::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::string(text),
            Err(_) => Value::Binary(Bytes::copy_from_slice(bytes)),
        },
        Header::Bytes(bytes) => Value::Binary(Bytes::copy_from_slice(bytes)),
        Header::Timestamp(seconds) => {
            Value::Timestamp(i64::try_from(*seconds).ok()?.checked_mul(1000)?)
        }
        Header::Void => Value::Null,
        Header::Decimal { .. } | Header::Array(_) | Header::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_types_and_those_with_x_are_annotations() {
        use amqp091::Value as Header;
        let mut table = amqp091::TableBuf::default();
        let nested = amqp091::TableBuf::default();
        for (name, value) in [
            ("text", Header::Text(b"a")),
            ("octets", Header::Text(b"\xff")),
            ("n", Header::I64(-5)),
            ("n", Header::Void),
            ("at", Header::Timestamp(7)),
            ("table", Header::Table(nested.as_table())),
            ("x-own", Header::Bool(true)),
            ("x-retain", Header::Bool(true)),
        ] {
            table.put(name, &value).unwrap();
        }
        let properties = amqp091::Properties {
            headers: Some(table.as_table()),
            kind: Some("k"),
            app_id: Some("app"),
            content_encoding: Some("gzip"),
            ..amqp091::Properties::default()
        };
        let mut bytes = Vec::new();
        properties.encode(&mut bytes).unwrap();
        let classic = of(&bytes.into());
        let application = [
            (Value::string("text"), Value::string("a")),
            (Value::string("octets"), Value::Binary(Bytes::from_static(b"\xff"))),
            (Value::string("n"), Value::Long(-5)),
            (Value::string("at"), Value::Timestamp(7000)),
        ];
        assert_eq!(classic.application, application);
        let annotations = [
            (Value::symbol("x-basic-type"), Value::string("k")),
            (Value::symbol("x-own"), Value::Bool(true)),
        ];
        assert_eq!(classic.annotations, annotations);
        assert_eq!(classic.content_encoding, Some(Symbol::new("gzip")));
        assert_eq!(classic.group_id.as_deref(), Some("app"));
        assert!(of(&Bytes::from_static(b"x")).application.is_empty());
    }
}
