//! Packets that are right: the examples of the standards and one of each kind with all it can have.

use bytes::Bytes;

use super::super::*;
use super::{bytes_of, one, same};

fn text(text: &str) -> Text {
    text.parse().unwrap()
}

/// MQTT 3.1.1 §3.1.2.11 (figure 3.6), with the payload that its flags ask for.
#[test]
fn connect_of_311() {
    let bytes =
        b"\x10\x1d\x00\x04MQTT\x04\xce\x00\x0a\x00\x01c\x00\x01w\x00\x04gone\x00\x01u\x00\x02pw";
    let Packet::Connect(connect) = same(Version::V5, bytes) else { panic!() };
    let will = Will {
        topic: text("w"),
        payload: Bytes::from_static(b"gone"),
        qos: Qos::AtLeastOnce,
        retain: false,
        properties: Properties::NONE,
    };
    let expected = Connect {
        version: Version::V311,
        is_bridge: false,
        client_id: text("c"),
        clean_start: true,
        keep_alive_s: 10,
        username: Some(text("u")),
        password: Some(Bytes::from_static(b"pw")),
        will: Some(will),
        properties: Properties::NONE,
    };
    assert_eq!(*connect, expected);
}

#[test]
fn connect_of_31() {
    let bytes = b"\x10\x11\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x03abc";
    let Packet::Connect(connect) = same(Version::V311, bytes) else { panic!() };
    assert_eq!((connect.version, connect.client_id.as_str()), (Version::V31, "abc"));
    // MQTT 3.1 §3.1: flags may announce what is left out.
    let bytes = b"\x10\x11\x00\x06MQIsdp\x03\xc2\x00\x3c\x00\x03abc";
    let Ok(Packet::Connect(bare)) = one(Version::V31, bytes) else { panic!() };
    assert_eq!(bare, connect);
    let bytes = b"\x10\x14\x00\x06MQIsdp\x03\xc2\x00\x3c\x00\x03abc\x00\x01u";
    let Ok(Packet::Connect(named)) = one(Version::V31, bytes) else { panic!() };
    assert_eq!((named.username, named.password), (Some(text("u")), None));
}

/// MQTT 5 §3.1 with each property, and a password without a user name.
#[test]
fn connect_of_5() {
    let mut body = b"\x00\x04MQTT\x05\x66\x00\x0a\x31".to_vec();
    body.extend_from_slice(b"\x11\0\0\0\x0a\x21\0\x14\x27\0\0\x01\0\x22\0\x05\x19\x01\x17\x00");
    body.extend_from_slice(b"\x26\0\x01a\0\x01b\x26\0\x01a\0\x01b\x15\0\x05PLAIN\x16\0\x04\0u\0p");
    body.extend_from_slice(b"\x00\x00\x27\x18\0\0\0\x05\x01\x01\x02\0\0\0\x3c\x03\0\x03t/p");
    body.extend_from_slice(b"\x08\0\x04back\x09\0\x02id\x26\0\x01k\0\x03v\xc3\xa4");
    body.extend_from_slice(b"\0\x01w\0\x01!\0\x01p");
    let mut bytes = vec![0x10, u8::try_from(body.len()).unwrap()];
    bytes.extend_from_slice(&body);
    let Packet::Connect(connect) = same(Version::V311, &bytes) else { panic!() };
    let properties = &connect.properties;
    assert_eq!(properties.number(Id::SESSION_EXPIRY_INTERVAL), Some(10));
    assert_eq!(properties.number(Id::RECEIVE_MAXIMUM), Some(20));
    assert_eq!(properties.number(Id::REQUEST_PROBLEM_INFORMATION), Some(0));
    assert_eq!(properties.text(Id::AUTHENTICATION_METHOD), Some("PLAIN"));
    assert_eq!(properties.binary(Id::AUTHENTICATION_DATA), Some(&b"\0u\0p"[..]));
    assert_eq!(properties.user().collect::<Vec<_>>(), [("a", "b"), ("a", "b")]);
    let will = connect.will.as_ref().unwrap();
    assert_eq!(will.properties.text(Id::CONTENT_TYPE), Some("t/p"));
    assert_eq!(will.properties.user().collect::<Vec<_>>(), [("k", "vä")]);
    assert!(will.retain);
    assert_eq!((connect.username.clone(), connect.password.clone()), (None, Some("p".into())));
}

/// MQTT 5 §1.5.4.
#[test]
fn strings_keep_their_characters() {
    // The example: A and U+2A6D4.
    let bytes = b"\x30\x08\x00\x05A\xf0\xaa\x9b\x94\x00";
    let Packet::Publish(publish) = same(Version::V5, bytes) else { panic!() };
    assert_eq!(publish.topic.as_str(), "A\u{2a6d4}");
    // MQTT-1.5.4-3: U+FEFF is a character like others; and so are U+FFFE and control characters.
    let bytes = b"\x30\x0b\x00\x08\xef\xbb\xbf\xef\xbf\xbe\x01\x7f\x00";
    let Packet::Publish(publish) = same(Version::V5, bytes) else { panic!() };
    assert_eq!(publish.topic.as_str(), "\u{feff}\u{fffe}\u{1}\u{7f}");
}

#[test]
fn connack() {
    let Packet::ConnAck(ack) = same(Version::V311, b"\x20\x02\x01\x00") else { panic!() };
    assert_eq!(ack, ConnAck { session_present: true, ..ConnAck::default() });
    let Packet::ConnAck(ack) = same(Version::V311, b"\x20\x02\x00\x05") else { panic!() };
    assert_eq!(ack.reason, Reason::NOT_AUTHORIZED);
    let mut bytes = b"\x20\x54\x00\x00\x51\x11\0\0\0\x78\x21\0\x08\x24\x01\x25\0\x27\0\0\xff\xff\
        \x12\0\x03c-1\x22\0\x0a\x1f\0\x02ok\x26\0\x01a\0\x01b\x28\x01\x29\x01\x2a\0\x13\0\x3c"
        .to_vec();
    bytes.extend_from_slice(b"\x1a\0\x01r\x1c\0\x01s\x15\0\x01m\x16\0\x01d");
    bytes[1] = u8::try_from(bytes.len() - 2).unwrap();
    bytes[4] = u8::try_from(bytes.len() - 5).unwrap();
    let Packet::ConnAck(ack) = same(Version::V5, &bytes) else { panic!() };
    assert_eq!(ack.properties.iter().count(), 17);
    assert_eq!(ack.properties.number(Id::SHARED_SUBSCRIPTION_AVAILABLE), Some(0));
    assert_eq!(ack.properties.text(Id::ASSIGNED_CLIENT_IDENTIFIER), Some("c-1"));
}

/// MQTT 3.1.1 §3.3.2 and MQTT 5 §3.3.2: the example a/b with the identifier 10.
#[test]
fn publish() {
    for (version, bytes) in [
        (Version::V31, &b"\x33\x08\x00\x03a/b\x00\x0ax"[..]),
        (Version::V311, b"\x33\x08\x00\x03a/b\x00\x0ax"),
        (Version::V5, b"\x33\x09\x00\x03a/b\x00\x0a\x00x"),
    ] {
        let Packet::Publish(publish) = same(version, bytes) else { panic!() };
        assert_eq!((publish.qos, publish.packet_id), (Qos::AtLeastOnce, Some(10)));
        assert!(publish.retain && !publish.dup);
        assert_eq!(&publish.payload[..], b"x");
    }
    // MQTT 3.1 §2.1: DUP says nothing there.
    let Ok(Packet::Publish(publish)) = one(Version::V31, b"\x38\x03\x00\x01a") else { panic!() };
    assert!(!publish.dup);
    // No payload; QoS 0; again with QoS 2; an alias in place of the topic.
    same(Version::V311, b"\x30\x03\x00\x01a");
    same(Version::V5, b"\x30\x04\x00\x01a\x00");
    same(Version::V5, b"\x3c\x06\x00\x01a\xff\xff\x00");
    let Packet::Publish(publish) = same(Version::V5, b"\x30\x07\0\0\x03\x23\0\x01!") else {
        panic!()
    };
    assert!(publish.topic.is_empty());
    // Each property, and subscription identifiers more than once (MQTT 5 §3.3.2.3.8).
    let bytes = b"\x30\x32\x00\x01a\x2e\x01\x01\x02\0\0\0\x3c\x23\0\x07\x08\0\x01r\x09\0\x02\0\xff\
        \x0b\x01\x0b\xff\xff\xff\x7f\x0b\x01\x26\0\x01k\0\0\x03\0\x09text/html";
    let Packet::Publish(publish) = same(Version::V5, bytes) else { panic!() };
    let ids: Vec<u32> = publish.properties.subscription_identifiers().collect();
    assert_eq!(ids, [1, 268_435_455, 1]);
    assert_eq!(publish.properties.binary(Id::CORRELATION_DATA), Some(&b"\0\xff"[..]));
}

#[test]
fn a_publish_shares_the_bytes_that_it_came_in() {
    let body = Bytes::from_static(b"\x00\x03a/b\x00\x0a\x05\x01\x01\x23\x00\x07payload");
    let within = |part: &[u8]| body.as_ptr_range().contains(&part.as_ptr());
    let Ok(Packet::Publish(publish)) = decode(Version::V5, 0x33, body.clone()) else { panic!() };
    assert!(within(publish.topic.as_bytes()) && within(&publish.payload));
    assert!(within(publish.properties.as_bytes()));
    assert!(!within(publish.topic.to_owned_bytes().as_bytes()));
}

#[test]
fn a_head_is_patched_for_each_receiver() {
    let mut publish = Publish::new(text("a/b"), Bytes::from_static(b"x"));
    let mut out = Vec::new();
    let marks = encode_publish_head(&publish, Version::V311, &mut out).unwrap();
    marks.patch(&mut out, true, 0x1234);
    assert_eq!(out, b"\x30\x06\x00\x03a/b");
    publish.qos = Qos::ExactlyOnce;
    publish.packet_id = Some(1);
    let mut out = vec![9];
    let marks = encode_publish_head(&publish, Version::V311, &mut out).unwrap();
    marks.patch(&mut out, true, 0x1234);
    assert_eq!(out, b"\x09\x3c\x08\x00\x03a/b\x12\x34");
    marks.patch(&mut out, false, 1);
    assert_eq!(out, b"\x09\x34\x08\x00\x03a/b\x00\x01");
    publish.packet_id = None;
    assert!(encode_publish_head(&publish, Version::V311, &mut out).is_err());
}

/// MQTT 5 §3.4 to §3.7.
#[test]
fn acknowledgements() {
    for first in [0x40, 0x50, 0x62, 0x70] {
        for version in [Version::V31, Version::V311, Version::V5] {
            same(version, &[first, 2, 0, 10]);
        }
        same(Version::V5, &[&[first], &b"\x09\x00\x0a\x00\x05\x1f\x00\x02ok"[..]].concat());
        // Longer forms of the same.
        for long in [&b"\x03\x00\x0a\x00"[..], b"\x04\x00\x0a\x00\x00"] {
            let packet = one(Version::V5, &[&[first], long].concat()).unwrap();
            assert_eq!(bytes_of(Version::V5, &packet), [first, 2, 0, 10]);
        }
    }
    same(Version::V5, b"\x40\x03\x00\x0a\x10");
    same(Version::V5, b"\x50\x03\x00\x0a\x97");
    same(Version::V5, b"\x62\x03\x00\x0a\x92");
    same(Version::V5, b"\x70\x03\x00\x0a\x92");
    // MQTT 3.1 §2.1: DUP may be set in three packets.
    one(Version::V31, b"\x6a\x02\x00\x0a").unwrap();
    // What a version lacks is left out.
    let properties = Properties::NONE.with(Id::REASON_STRING, Value::Text("no")).unwrap();
    let ack = Ack { id: 10, reason: Reason::QUOTA_EXCEEDED, properties };
    assert_eq!(bytes_of(Version::V311, &Packet::PubAck(ack)), b"\x40\x02\x00\x0a");
}

/// MQTT 3.1.1 §3.8.3, MQTT 5 §3.8.3: the examples.
#[test]
fn subscribe() {
    for (version, bytes) in [
        (Version::V31, &b"\x82\x0e\x00\x0a\x00\x03a/b\x01\x00\x03c/d\x02"[..]),
        (Version::V311, b"\x82\x0e\x00\x0a\x00\x03a/b\x01\x00\x03c/d\x02"),
        (Version::V5, b"\x82\x0f\x00\x0a\x00\x00\x03a/b\x01\x00\x03c/d\x02"),
    ] {
        let Packet::Subscribe(subscribe) = same(version, bytes) else { panic!() };
        assert_eq!(subscribe.id, 10);
        assert_eq!(subscribe.filters[1].filter.as_str(), "c/d");
        assert_eq!(subscribe.filters[1].options, Options::new(Qos::ExactlyOnce));
    }
    let bytes = b"\x82\x1a\x00\x0a\x05\x0b\xff\xff\xff\x7f\x00\x01#\x2e\x00\x0b$share/g/+/\x19";
    let Packet::Subscribe(subscribe) = same(Version::V5, bytes) else { panic!() };
    let [all, shared] = &subscribe.filters[..] else { panic!() };
    assert!(all.options.no_local && all.options.retain_as_published);
    assert_eq!(all.options.retain_handling, RetainHandling::DoNotSend);
    assert!(!shared.options.no_local && shared.options.retain_as_published);
    assert_eq!(shared.options.retain_handling, RetainHandling::SendIfNew);
    assert_eq!(subscribe.properties.number(Id::SUBSCRIPTION_IDENTIFIER), Some(268_435_455));
    // Before MQTT 5 `$share` is a level like others, and the other bits of MQTT 3.1 are unused.
    same(Version::V311, b"\x82\x0b\x00\x0a\x00\x06$share\x01");
    one(Version::V31, b"\x8a\x06\x00\x0a\x00\x01a\xfd").unwrap();
    assert_eq!(bytes_of(Version::V311, &Packet::Subscribe(subscribe))[7], 2);
}

/// MQTT 3.1.1 §3.9.3: the example; MQTT 5 §3.9.
#[test]
fn suback() {
    let Packet::SubAck(ack) = same(Version::V311, b"\x90\x05\x00\x0a\x00\x02\x80") else {
        panic!()
    };
    let expected = [Reason::GRANTED_QOS_0, Reason::GRANTED_QOS_2, Reason::UNSPECIFIED_ERROR];
    assert_eq!(ack.reasons, expected);
    same(Version::V5, b"\x90\x0b\x00\x0a\x05\x1f\x00\x02no\x87\x01\x9e");
    let ack = SubAck { id: 1, reasons: vec![Reason::NOT_AUTHORIZED], ..SubAck::default() };
    assert_eq!(bytes_of(Version::V311, &Packet::SubAck(ack)), b"\x90\x03\x00\x01\x80");
}

/// MQTT 3.1.1 §3.10.3: the example; MQTT 5 §3.10, §3.11.
#[test]
fn unsubscribe() {
    same(Version::V311, b"\xa2\x0c\x00\x0a\x00\x03a/b\x00\x03c/d");
    same(Version::V31, b"\xa2\x0c\x00\x0a\x00\x03a/b\x00\x03c/d");
    same(Version::V5, b"\xa2\x14\x00\x0a\x07\x26\x00\x01k\x00\x01v\x00\x03a/b\x00\x03c/d");
    same(Version::V311, b"\xb0\x02\x00\x0a");
    same(Version::V5, b"\xb0\x05\x00\x0a\x00\x00\x11");
}

#[test]
fn pings_and_ends() {
    for version in [Version::V31, Version::V311, Version::V5] {
        assert_eq!(same(version, b"\xc0\x00"), Packet::PingReq);
        assert_eq!(same(version, b"\xd0\x00"), Packet::PingResp);
        let end = same(version, b"\xe0\x00");
        assert_eq!(end, Packet::Disconnect(Disconnect::new(Reason::NORMAL_DISCONNECTION)));
    }
    same(Version::V5, b"\xe0\x01\x8e");
    same(Version::V5, b"\xe0\x07\x04\x05\x11\x00\x00\x00\x0a");
    same(Version::V5, b"\xe0\x0b\x9c\x09\x1c\x00\x06server");
    same(Version::V5, b"\xf0\x00");
    same(Version::V5, b"\xf0\x0a\x18\x08\x15\x00\x01m\x16\x00\x01d");
    same(Version::V5, b"\xf0\x06\x19\x04\x15\x00\x01m");
}

/// MQTT 5 §3.2.2.3.9, §3.2.2.3.10, §3.1.2.11.4.
#[test]
fn an_answer_is_shortened_to_what_its_receiver_takes() {
    let mut properties = Properties::NONE;
    properties.push(Id::SERVER_KEEP_ALIVE, Value::Number(60)).unwrap();
    properties.push(Id::USER_PROPERTY, Value::Pair("name", "value")).unwrap();
    properties.push(Id::REASON_STRING, Value::Text("a reason")).unwrap();
    let whole = Packet::ConnAck(ConnAck { properties, ..ConnAck::default() });
    let mut packet = whole.clone();
    assert!(shorten(&mut packet, Version::V5, 33));
    assert_eq!((encoded_len(&packet, Version::V5), &packet), (33, &whole));
    assert!(shorten(&mut packet, Version::V5, 32));
    assert_eq!(bytes_of(Version::V5, &packet).len(), 22);
    assert!(shorten(&mut packet, Version::V5, 21));
    assert_eq!(bytes_of(Version::V5, &packet), b"\x20\x06\x00\x00\x03\x13\x00\x3c");
    assert!(!shorten(&mut packet, Version::V5, 7));
    let mut publish = Packet::Publish(Publish::new(text("a"), Bytes::new()));
    assert!(shorten(&mut publish, Version::V5, 6) && !shorten(&mut publish, Version::V5, 5));
}

/// What no packet can say is refused, and nothing of it is written.
#[test]
fn what_cannot_be_said() {
    let mut out = b"before".to_vec();
    let alias = Properties::NONE.with(Id::TOPIC_ALIAS, Value::Number(1)).unwrap();
    let twice = alias.clone().with(Id::TOPIC_ALIAS, Value::Number(2)).unwrap();
    let publish = |properties| {
        Packet::Publish(Publish { topic: text("a"), properties, ..Publish::default() })
    };
    assert_eq!(encode(&publish(alias.clone()), Version::V5, &mut out.clone()), Ok(()));
    let connect = Connect {
        version: Version::V311,
        is_bridge: false,
        client_id: Text::EMPTY,
        clean_start: true,
        keep_alive_s: 0,
        username: None,
        password: Some(Bytes::new()),
        will: None,
        properties: Properties::NONE,
    };
    let mut long = Box::new(connect.clone());
    (long.version, long.password) = (Version::V5, Some(vec![0; 65_536].into()));
    for packet in [
        publish(twice),
        Packet::Publish(Publish::default()),
        Packet::Publish(Publish { topic: text("a"), packet_id: Some(1), ..Publish::default() }),
        Packet::PubAck(Ack { id: 1, reason: Reason::SUCCESS, properties: alias.clone() }),
        Packet::PubRel(Ack::default()),
        Packet::Connect(Box::new(connect)),
        Packet::Connect(long),
        Packet::ConnAck(ConnAck { properties: alias, ..ConnAck::default() }),
        Packet::Subscribe(Subscribe { id: 1, ..Subscribe::default() }),
        Packet::Unsubscribe(Unsubscribe { id: 1, ..Unsubscribe::default() }),
        Packet::SubAck(SubAck { id: 1, ..SubAck::default() }),
        Packet::UnsubAck(UnsubAck { id: 1, ..UnsubAck::default() }),
        Packet::PubAck(Ack::new(1, Reason::SESSION_TAKEN_OVER)),
        Packet::PubComp(Ack::new(1, Reason::QUOTA_EXCEEDED)),
        Packet::ConnAck(ConnAck { reason: Reason::SESSION_TAKEN_OVER, ..ConnAck::default() }),
        Packet::SubAck(SubAck { id: 1, reasons: vec![Reason(3)], ..SubAck::default() }),
        Packet::UnsubAck(UnsubAck { id: 1, reasons: vec![Reason(1)], ..UnsubAck::default() }),
        Packet::Disconnect(Disconnect::new(Reason::UNSUPPORTED_PROTOCOL_VERSION)),
        Packet::Auth(Auth { reason: Reason::CONTINUE_AUTHENTICATION, ..Auth::default() }),
    ] {
        assert!(encode(&packet, Version::V5, &mut out).is_err(), "{packet:?}");
        assert_eq!(out, b"before");
    }
    assert!(encode(&Packet::Auth(Auth::default()), Version::V311, &mut out).is_err());
}

#[test]
fn properties_are_made_and_changed() {
    let mut properties = Properties::NONE;
    for (id, value) in [
        (Id::MESSAGE_EXPIRY_INTERVAL, Value::Number(60)),
        (Id::USER_PROPERTY, Value::Pair("a", "1")),
        (Id::TOPIC_ALIAS, Value::Number(3)),
        (Id::USER_PROPERTY, Value::Pair("a", "2")),
    ] {
        properties.push(id, value).unwrap();
    }
    let later = properties.with_number(Id::MESSAGE_EXPIRY_INTERVAL, 7).unwrap();
    let kept = later.without(Ids::new(&[Id::TOPIC_ALIAS]));
    assert_eq!(kept.as_bytes(), b"\x02\0\0\0\x07\x26\0\x01a\0\x011\x26\0\x01a\0\x012");
    assert_eq!(kept.number(Id::TOPIC_ALIAS), None);
    assert_eq!(kept.only(Ids::new(&[Id::TOPIC_ALIAS])), Properties::NONE);
    assert_eq!(
        format!("{:?}", later.only(Ids::new(&[Id::TOPIC_ALIAS]))),
        "{\"Topic Alias\": Number(3)}"
    );
    assert_eq!(kept.to_owned_bytes(), kept);
    for (id, value) in [
        (Id::TOPIC_ALIAS, Value::Number(0)),
        (Id::TOPIC_ALIAS, Value::Number(65_536)),
        (Id::MAXIMUM_QOS, Value::Number(2)),
        (Id::SUBSCRIPTION_IDENTIFIER, Value::Number(268_435_456)),
        (Id::RESPONSE_TOPIC, Value::Text("a/+")),
        (Id::CONTENT_TYPE, Value::Text("\0")),
        (Id::CONTENT_TYPE, Value::Number(1)),
        (Id::CORRELATION_DATA, Value::Binary(&[0; 65_536])),
    ] {
        assert!(properties.push(id, value).is_err(), "{}", id.name());
    }
}
