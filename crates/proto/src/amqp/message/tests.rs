use proptest::prelude::*;

use super::*;
use crate::amqp::types::Symbol;

fn properties() -> Properties {
    Properties {
        message_id: Some(Value::Uuid([7; 16])),
        user_id: Some(Bytes::from_static(b"me")),
        to: Some(Value::string("a/b")),
        subject: Some("s".to_owned()),
        reply_to: Some(Value::string("r")),
        correlation_id: Some(Value::Ulong(9)),
        content_type: Some(Symbol::new("text/plain")),
        content_encoding: Some(Symbol::new("gzip")),
        absolute_expiry_time_ms: Some(1),
        creation_time_ms: Some(2),
        group_id: Some("g".to_owned()),
        group_sequence: Some(3),
        reply_to_group_id: Some("h".to_owned()),
    }
}

#[test]
fn the_bare_message_is_what_came() {
    let application = vec![(Value::string("k"), Value::Int(-1))];
    let body = Body::Data(vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
    let bare = encode_bare(&properties(), &application, &body);
    let header = Header { durable: true, priority: 9, ttl_ms: Some(7), ..Header::default() };
    let annotations = vec![(Value::symbol("x-opt-retain"), Value::Bool(true))];
    let footer = [&bare[..], b"\x00\x53\x78\xc1\x01\x00"].concat();
    let wire = encode_message(&header, &annotations, &footer);
    let message = Message::decode(&wire).unwrap();
    assert_eq!(message.header, header);
    assert_eq!(message.annotation("x-opt-retain"), Some(&Value::Bool(true)));
    assert_eq!(message.properties, properties());
    assert_eq!(message.application_properties, application);
    assert_eq!(message.body, body);
    assert_eq!(message.bare, footer);
    // With nothing in front of it, it is the same.
    let alone = Message::decode(&message.bare).unwrap();
    assert_eq!((alone.bare, alone.body), (footer.into(), body));
}

/// As proton encodes it (its `message.amqp`).
#[test]
fn a_message_of_proton_is_read() {
    let wire = b"\x00\x53\x70\xd0\x00\x00\x00\x0b\x00\x00\x00\x05\x42\x50\x04\x40\x42\x52\x00\
        \x00\x53\x73\xd0\x00\x00\x00\x22\x00\x00\x00\x0d\x40\x40\x40\x40\x40\x40\x40\x40\
        \x83\x00\x00\x00\x00\x00\x00\x00\x00\x83\x00\x00\x00\x00\x00\x00\x00\x00\
        \x40\x52\x00\x40\x00\x53\x77\xa0\x07\xa1\x05hello";
    let message = Message::decode(&Bytes::from_static(wire)).unwrap();
    assert_eq!(message.header, Header::default());
    assert_eq!(message.properties.group_sequence, Some(0));
    assert_eq!(message.body, Body::Value(Value::Binary(Bytes::from_static(b"\xa1\x05hello"))));
    assert_eq!(message.bare.len(), wire.len() - 19);
}

#[test]
fn sections_are_in_order() {
    let data = &b"\x00\x53\x75\xa0\x01a"[..];
    let value = &b"\x00\x53\x77\x40"[..];
    let sequence = &b"\x00\x53\x76\x45"[..];
    let header = &b"\x00\x53\x70\x45"[..];
    let footer = &b"\x00\x53\x78\xc1\x01\x00"[..];
    let good = [
        vec![header, data, data],
        vec![sequence, sequence, footer],
        vec![value],
        vec![header],
        vec![],
    ];
    let bad = [
        vec![data, header],
        vec![data, value],
        vec![value, value],
        vec![data, sequence],
        vec![header, header],
        vec![footer, data],
        vec![&b"\x00\x53\x79\x45"[..]],
        vec![&b"\x53\x75\x40"[..]],
        vec![&b"\x00\x53\x75\xa1\x01a"[..]],
    ];
    for (sections, is_good) in
        good.map(|it| (it, true)).into_iter().chain(bad.map(|it| (it, false)))
    {
        let message = Message::decode(&Bytes::from(sections.concat()));
        assert_eq!(message.is_ok(), is_good, "{sections:x?}");
    }
    let many = data.repeat(MAX_SECTIONS + 1);
    assert!(Message::decode(&Bytes::from(many)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_or_refused(
        kind in 0_usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
    ) {
        let body = match kind {
            0 => Body::Empty,
            1 => Body::Data(vec![Bytes::from_static(b"x")]),
            2 => Body::Sequence(vec![Value::Uint(1)]),
            _ => Body::Value(Value::string("t")),
        };
        let header = Header { ttl_ms: Some(1000), ..Header::default() };
        let bare = encode_bare(&properties(), &Map::new(), &body);
        let mut wire = encode_message(&header, &Map::new(), &bare).to_vec();
        for (at, byte) in changes {
            let at = at.index(wire.len());
            wire[at] = byte;
        }
        if let Ok(message) = Message::decode(&wire.into()) {
            let Message { header, message_annotations, bare, .. } = &message;
            let again = encode_message(header, message_annotations, bare);
            prop_assert_eq!(Message::decode(&again).map(|it| it.bare), Ok(message.bare.clone()));
        }
    }
}
