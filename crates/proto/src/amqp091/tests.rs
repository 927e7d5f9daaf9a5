use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Error;

fn table(entries: &[(&str, Value<'_>)]) -> TableBuf {
    let mut table = TableBuf::default();
    for (name, value) in entries {
        table.put(name, value).unwrap();
    }
    table
}

/// Every type, nested in each other.
fn everything() -> TableBuf {
    let inner = table(&[("S", Value::Text(b"inside"))]);
    let mut array = ArrayBuf::default();
    for value in [
        Value::Void,
        Value::Bytes(&[0, 255]),
        Value::Decimal { scale: 2, value: -314 },
        Value::Table(inner.as_table()),
    ] {
        array.push(&value).unwrap();
    }
    table(&[
        ("t", Value::Bool(true)),
        ("b", Value::I8(-1)),
        ("B", Value::U8(255)),
        ("s", Value::I16(-300)),
        ("u", Value::U16(65_535)),
        ("I", Value::I32(-70_000)),
        ("i", Value::U32(u32::MAX)),
        ("l", Value::I64(i64::MIN)),
        ("f", Value::F32(1.5)),
        ("d", Value::F64(-2.25)),
        ("A", Value::Array(array.as_array())),
        ("T", Value::Timestamp(1_764_000_000)),
        ("F", Value::Table(inner.as_table())),
        ("V", Value::Void),
    ])
}

#[test]
fn tables_have_every_type() {
    let made = everything();
    let read = Table::decode(made.as_table().as_bytes()).unwrap();
    assert_eq!(read.iter().count(), 14);
    assert_eq!(read.get("l"), Some(Value::I64(i64::MIN)));
    assert_eq!(read.get("none"), None);
    let Some(Value::Array(array)) = read.get("A") else { panic!("no array") };
    assert_eq!(array.iter().count(), 4);
    let again = table(&read.iter().collect::<Vec<_>>());
    assert_eq!(again, made);
    assert_eq!(Array::decode(&[b't', 1, b'V']).unwrap().iter().count(), 2);
}

#[test]
fn types_that_only_some_send_are_read() {
    let bytes = [&b"\x01aU\xff\xfe\x01bL"[..], &(-5_i64).to_be_bytes()].concat();
    let read = Table::decode(&bytes).unwrap();
    assert_eq!(read.get("a"), Some(Value::I16(-2)));
    assert_eq!(read.get("b").and_then(|value| value.as_integer()), Some(-5));
    let unknown = Table::decode(b"\x01aQ").unwrap_err();
    assert_eq!(unknown, Error::Peer { what: "type of an AMQP field", value: u64::from(b'Q') });
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut made = TableBuf::default();
        for _ in 0..depth {
            made = table(&[("F", Value::Table(made.as_table()))]);
        }
        Table::decode(made.as_table().as_bytes()).map(|_| ())
    };
    assert_eq!(nested(MAX_NESTING), Ok(()));
    let (value, limit) = (MAX_NESTING as u64 + 1, MAX_NESTING as u64);
    let error = Error::Limit { what: "nesting of AMQP tables", value, limit };
    assert_eq!(nested(MAX_NESTING + 1), Err(error));
}

#[test]
fn names_in_tables_are_short() {
    let mut made = TableBuf::default();
    assert!(made.put(&"n".repeat(256), &Value::Void).is_err());
    assert!(made.put("a\0b", &Value::Void).is_err());
    assert!(made.as_table().is_empty(), "nothing is left of what was refused");
}

/// AMQP 0.9.1 §4.2.5.2: bits share an octet from its lowest on.
#[test]
fn a_declaration_is_as_the_standard_says() {
    let declare = Method::QueueDeclare {
        queue: "q",
        passive: false,
        durable: true,
        exclusive: false,
        auto_delete: true,
        no_wait: false,
        arguments: Table::default(),
    };
    let mut out = Vec::new();
    declare.encode(&mut out).unwrap();
    assert_eq!(out, [0, 50, 0, 10, 0, 0, 1, b'q', 0b01010, 0, 0, 0, 0]);
    assert_eq!(Method::decode(&out), Ok(declare));
    out.push(0);
    assert!(matches!(Method::decode(&out), Err(Error::Peer { value: 1, .. })), "a byte too many");
}

#[test]
fn there_are_64_methods_each_once() {
    assert_eq!(Method::ALL.len(), 64);
    let mut all = Method::ALL.to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 64);
}

#[test]
fn strings_that_are_none_are_refused() {
    let cancel = |name: &[u8]| {
        let mut payload = vec![0, 60, 0, 31, u8::try_from(name.len()).unwrap()];
        payload.extend(name);
        Method::decode(&payload).map(|_| ())
    };
    assert_eq!(cancel("ü".as_bytes()), Ok(()));
    assert!(matches!(cancel(&[0xff]), Err(Error::Peer { .. })));
    assert!(matches!(cancel(b"a\0"), Err(Error::Peer { .. })));
    let long = "x".repeat(256);
    let method = Method::BasicCancelOk { consumer_tag: &long };
    let mut out = vec![1];
    assert!(encode_method(1, &method, &mut out).is_err());
    assert_eq!(out, [1], "nothing is left of it");
}

#[test]
fn properties_are_there_or_not() {
    let headers = everything();
    let all = Properties {
        content_type: Some("text/plain"),
        content_encoding: Some("gzip"),
        headers: Some(headers.as_table()),
        delivery_mode: Some(2),
        priority: Some(9),
        correlation_id: Some("c"),
        reply_to: Some("r"),
        expiration: Some("60000"),
        message_id: Some("m"),
        timestamp: Some(7),
        kind: Some("t"),
        user_id: Some("u"),
        app_id: Some("a"),
        cluster_id: Some("x"),
    };
    for properties in [
        all,
        Properties::default(),
        Properties { content_encoding: Some(""), cluster_id: Some("z"), ..Properties::default() },
    ] {
        let mut bytes = Vec::new();
        properties.encode(&mut bytes).unwrap();
        assert_eq!(Properties::decode(&bytes), Ok(properties));
    }
    // Content-type and delivery-mode are the first and the fourth flag.
    let some =
        Properties { content_type: Some("a"), delivery_mode: Some(1), ..Properties::default() };
    let mut bytes = Vec::new();
    some.encode(&mut bytes).unwrap();
    assert_eq!(bytes, [0b1001_0000, 0, 1, b'a', 1]);
    assert!(Properties::decode(&[0, 1]).is_err(), "more flags than there are properties");
    assert!(Properties::decode(&[0x80, 0]).is_err(), "a flag without its property");
    assert!(Properties::decode(&[0, 0, 0]).is_err(), "a byte too many");
}

#[test]
fn content_goes_in_frames_of_what_was_agreed() {
    let body: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let mut out = Vec::new();
    encode_content(3, &[0, 0], &body, MIN_FRAME_BYTES, &mut out).unwrap();
    let (mut rest, mut kinds, mut got) = (out.as_slice(), Vec::new(), Vec::new());
    while let Some((frame, len)) = Frame::decode(rest, MIN_FRAME_BYTES).unwrap() {
        assert_eq!(frame.channel, 3);
        kinds.push(frame.kind);
        if frame.kind == FrameKind::Header {
            let header = ContentHeader::decode(frame.payload).unwrap();
            assert_eq!(header, ContentHeader { body_bytes: 10_000, properties: &[0, 0] });
        } else {
            got.extend_from_slice(frame.payload);
        }
        rest = &rest[len..];
    }
    assert_eq!(kinds, [&[FrameKind::Header][..], &[FrameKind::Body; 3]].concat());
    assert_eq!(got, body);
    out.clear();
    encode_content(3, &[0, 0], &[], MIN_FRAME_BYTES, &mut out).unwrap();
    assert_eq!(out.len(), 22, "an empty body has no frame");
    out.clear();
    let long = vec![0; 5000];
    assert!(matches!(
        encode_content(3, &long, &[], MIN_FRAME_BYTES, &mut out),
        Err(Error::Limit { .. })
    ));
    assert!(out.is_empty(), "nothing is left of it");
}

#[test]
fn frames_that_are_none_are_refused() {
    let mut good = Vec::new();
    encode_heartbeat(&mut good);
    assert_eq!(Frame::decode(&good, MIN_FRAME_BYTES).unwrap().unwrap().1, 8);
    for len in 0..good.len() {
        assert_eq!(Frame::decode(&good[..len], MIN_FRAME_BYTES), Ok(None));
    }
    for (at, byte) in [(0, 4), (2, 1), (6, 1), (7, 0xcd)] {
        let mut bad = good.clone();
        bad[at] = byte;
        bad.push(0xce);
        assert!(matches!(Frame::decode(&bad, MIN_FRAME_BYTES), Err(Error::Peer { .. })), "{at}");
    }
    let too_long = [3, 0, 1, 0, 0, 0x0f, 0xf9];
    let error = Error::Limit { what: "AMQP frame in bytes", value: 4097, limit: 4096 };
    assert_eq!(Frame::decode(&too_long, MIN_FRAME_BYTES), Err(error));
}

#[test]
fn codes_are_of_the_channel_or_of_the_connection() {
    for code in ReplyCode::ALL {
        assert_eq!(ReplyCode::of(code.number()), Some(code));
    }
    assert_eq!(ReplyCode::of(299), None);
    assert!(!ReplyCode::NotFound.is_hard() && !ReplyCode::ContentTooLarge.is_hard());
    assert!(ReplyCode::ConnectionForced.is_hard() && ReplyCode::NotImplemented.is_hard());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_is_read_can_be_written(
        ids in proptest::sample::select(Method::ALL), arguments in vec(any::<u8>(), 0..60),
    ) {
        let payload = [&ids.0.to_be_bytes()[..], &ids.1.to_be_bytes(), &arguments].concat();
        if let Ok(method) = Method::decode(&payload) {
            prop_assert_eq!(method.ids(), ids);
            let mut out = Vec::new();
            method.encode(&mut out).unwrap();
            prop_assert_eq!(Method::decode(&out), Ok(method));
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_none(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(read) = Table::decode(&bytes) {
            let mut again = TableBuf::default();
            for (name, value) in read {
                again.put(name, &value).unwrap();
            }
            prop_assert_eq!(again.as_table().iter().count(), read.iter().count());
        }
        let _ = Array::decode(&bytes);
        if let Ok(properties) = Properties::decode(&bytes) {
            let mut out = Vec::new();
            properties.encode(&mut out).unwrap();
            prop_assert!(Properties::decode(&out).is_ok());
        }
        let _ = ContentHeader::decode(&bytes);
        let _ = Frame::decode(&bytes, MIN_FRAME_BYTES);
    }

    #[test]
    fn methods_with_any_strings_survive(
        queue in "[^\\x00]{0,60}", key in "[^\\x00]{0,60}", bits in any::<[bool; 5]>(), tag: u64,
    ) {
        let headers = everything();
        let [passive, durable, exclusive, auto_delete, no_wait] = bits;
        let arguments = headers.as_table();
        for method in [
            Method::QueueDeclare {
                queue: &queue, passive, durable, exclusive, auto_delete, no_wait, arguments,
            },
            Method::BasicDeliver {
                consumer_tag: &queue, delivery_tag: tag, redelivered: passive, exchange: &key,
                routing_key: &queue,
            },
            Method::BasicNack { delivery_tag: tag, multiple: passive, requeue: durable },
        ] {
            let mut out = Vec::new();
            method.encode(&mut out).unwrap();
            prop_assert_eq!(Method::decode(&out), Ok(method));
        }
    }
}
