//! Messages and the encapsulation of forwarders.

use proptest::prelude::*;

use super::*;
use crate::Error;

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut room = vec![0; MAX_MESSAGE_BYTES];
    let len = packet.encode(&mut room).unwrap();
    assert_eq!(len, packet.encoded_len());
    room.truncate(len);
    room
}

fn will(topic: &str) -> Option<WillTopic<'_>> {
    Some(WillTopic { topic, qos: Qos::One, retain: true })
}

fn publish(topic: Topic, msg_id: u16, data: &[u8], qos: Qos) -> Publish<'_> {
    Publish { topic, msg_id, data, qos, retain: false, dup: false }
}

/// One of each type with its octets (MQTT-SN 1.2 table 3, §5.4).
fn each() -> Vec<(&'static [u8], Packet<'static>)> {
    let accepted = Code::ACCEPTED;
    let connect = Packet::Connect {
        will: true,
        clean_session: true,
        protocol_id: PROTOCOL_ID,
        duration_s: 300,
        client_id: "id",
    };
    let subscribe = |qos, filter| Packet::Subscribe { dup: false, qos, msg_id: 5, filter };
    let sent_again =
        Publish { dup: true, retain: true, ..publish(Topic::Id(0x1234), 7, b"x", Qos::Two) };
    vec![
        (b"\x05\x00\x09\x03\x84", Packet::Advertise { gateway_id: 9, duration_s: 900 }),
        (b"\x03\x01\x02", Packet::SearchGw { radius: 2 }),
        (b"\x03\x02\x09", Packet::GwInfo { gateway_id: 9, address: b"" }),
        (b"\x05\x02\x09\xc0\x01", Packet::GwInfo { gateway_id: 9, address: b"\xc0\x01" }),
        (b"\x08\x04\x0c\x01\x01\x2cid", connect),
        (b"\x03\x05\x03", Packet::ConnAck { code: Code::NOT_SUPPORTED }),
        (b"\x02\x06", Packet::WillTopicReq),
        (b"\x06\x07\x30w/t", Packet::WillTopic(will("w/t"))),
        (b"\x02\x07", Packet::WillTopic(None)),
        (b"\x02\x08", Packet::WillMsgReq),
        (b"\x06\x09gone", Packet::WillMsg { message: b"gone" }),
        (b"\x09\x0a\x00\x00\x00\x05a/b", Packet::Register { topic_id: 0, msg_id: 5, name: "a/b" }),
        (
            b"\x07\x0b\x00\x01\x00\x05\x00",
            Packet::RegAck { topic_id: 1, msg_id: 5, code: accepted },
        ),
        (
            b"\x08\x0c\x20\x00\x01\x00\x06y",
            Packet::Publish(publish(Topic::Id(1), 6, b"y", Qos::One)),
        ),
        (b"\x08\x0c\xd0\x12\x34\x00\x07x", Packet::Publish(sent_again)),
        (
            b"\x08\x0c\x61\x00\x02\x00\x00z",
            Packet::Publish(publish(Topic::Predefined(2), 0, b"z", Qos::MinusOne)),
        ),
        (
            b"\x07\x0c\x02ab\x00\x00",
            Packet::Publish(publish(Topic::Short(*b"ab"), 0, b"", Qos::Zero)),
        ),
        (
            b"\x07\x0d\x00\x01\x00\x06\x02",
            Packet::PubAck { topic_id: 1, msg_id: 6, code: Code::INVALID_TOPIC_ID },
        ),
        (b"\x04\x0e\x00\x07", Packet::PubComp { msg_id: 7 }),
        (b"\x04\x0f\x00\x07", Packet::PubRec { msg_id: 7 }),
        (b"\x04\x10\x00\x07", Packet::PubRel { msg_id: 7 }),
        (b"\x08\x12\x40\x00\x05a/#", subscribe(Qos::Two, Filter::Name("a/#"))),
        (b"\x07\x12\x21\x00\x05\x00\x02", subscribe(Qos::One, Filter::Predefined(2))),
        (b"\x07\x12\x02\x00\x05ab", subscribe(Qos::Zero, Filter::Short(*b"ab"))),
        (
            b"\x08\x13\x40\x00\x00\x00\x05\x01",
            Packet::SubAck { qos: Qos::Two, topic_id: 0, msg_id: 5, code: Code::CONGESTION },
        ),
        (
            b"\x08\x14\x00\x00\x05a/#",
            Packet::Unsubscribe { msg_id: 5, filter: Filter::Name("a/#") },
        ),
        (b"\x04\x15\x00\x05", Packet::UnsubAck { msg_id: 5 }),
        (b"\x02\x16", Packet::PingReq { client_id: "" }),
        (b"\x04\x16id", Packet::PingReq { client_id: "id" }),
        (b"\x02\x17", Packet::PingResp),
        (b"\x02\x18", Packet::Disconnect { duration_s: None }),
        (b"\x04\x18\x00\x3c", Packet::Disconnect { duration_s: Some(60) }),
        (b"\x06\x1a\x30w/t", Packet::WillTopicUpd(will("w/t"))),
        (b"\x02\x1a", Packet::WillTopicUpd(None)),
        (b"\x03\x1b\x00", Packet::WillTopicResp { code: accepted }),
        (b"\x06\x1cgone", Packet::WillMsgUpd { message: b"gone" }),
        (b"\x03\x1d\x00", Packet::WillMsgResp { code: accepted }),
    ]
}

#[test]
fn messages_have_the_layout_of_the_clauses() {
    for (bytes, packet) in each() {
        assert_eq!(encoded(&packet), bytes, "{packet:?}");
        assert_eq!(Packet::decode(bytes), Ok(packet));
    }
}

/// What has no field of variable length at its end ends where it says, and nowhere else.
#[test]
fn datagrams_that_are_too_short_or_too_long_are_refused() {
    for (bytes, packet) in each() {
        for len in 0..bytes.len() {
            assert!(Packet::decode(&bytes[..len]).is_err(), "{packet:?} in {len} octets");
        }
        let longer = [bytes, b" "].concat();
        assert!(Packet::decode(&longer).is_err(), "{packet:?} with an octet behind it");
        let (mut grown, mut shrunk) = (longer, bytes.to_vec());
        grown[0] += 1;
        shrunk[0] -= 1;
        shrunk.pop();
        for bytes in [grown, shrunk] {
            if let Ok(other) = Packet::decode(&bytes) {
                assert_ne!(other, packet);
                assert_eq!(encoded(&other), bytes, "{other:?}");
            }
        }
    }
}

#[test]
fn what_is_reserved_is_refused() {
    for msg_type in [0x03, 0x11, 0x19, 0x1e, 0x7f, 0xfd, 0xfe, 0xff] {
        let bytes = [4, msg_type, 0, 0];
        assert!(matches!(Packet::decode(&bytes), Err(Error::Peer { .. })), "{msg_type:#x}");
    }
    for bytes in [&b"\x07\x0c\x03\x00\x01\x00\x00"[..], b"\x07\x12\x03\x00\x05\x00\x02"] {
        let what = "reserved type of topic id";
        assert_eq!(Packet::decode(bytes), Err(Error::Peer { what, value: 3 }));
    }
}

/// MQTT-SN 1.2 §5.2.1: three octets where the first is 1, also where one would do.
#[test]
fn lengths_of_three_octets_are_read_and_written() {
    for (data, head) in [(248, 7), (249, 9), (MAX_MESSAGE_BYTES - 9, 9)] {
        let data = vec![7; data];
        let packet = Packet::Publish(publish(Topic::Id(1), 0, &data, Qos::Zero));
        let bytes = encoded(&packet);
        assert_eq!(bytes.len(), data.len() + head);
        assert_eq!(Packet::decode(&bytes), Ok(packet));
    }
    let too_long = vec![7; MAX_MESSAGE_BYTES - 8];
    let packet = Packet::WillMsg { message: &too_long };
    assert!(packet.encode(&mut vec![0; MAX_MESSAGE_BYTES + 9]).is_ok());
    let packet = Packet::Publish(publish(Topic::Id(1), 0, &too_long, Qos::Zero));
    assert!(matches!(packet.encode(&mut vec![0; 70_000]), Err(Error::Limit { .. })));
    assert_eq!(
        Packet::decode(b"\x01\x00\x05\x05\x00"),
        Ok(Packet::ConnAck { code: Code::ACCEPTED })
    );
    for bytes in [&b"\x01"[..], b"\x01\x00", b"\x01\x00\x04", b"\x00\x17", b"\x01\x00\x02\x17"] {
        assert!(Packet::decode(bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn names_that_are_no_text_are_refused() {
    for bytes in [
        &b"\x08\x04\x04\x01\x00\x0aa\xff"[..],
        b"\x04\x16\xc3\x28",
        b"\x08\x0a\x00\x00\x00\x05\xff\xfe",
        b"\x07\x12\x00\x00\x05\xed\xa0",
        b"\x05\x07\x10a\x80",
    ] {
        assert!(matches!(Packet::decode(bytes), Err(Error::Peer { .. })), "{bytes:02x?}");
    }
    // A short name need not be text for its message to be read.
    assert!(Packet::decode(b"\x07\x0c\x02\xff\xff\x00\x00").is_ok());
}

#[test]
fn too_little_room_says_how_much_is_needed() {
    let packet = Packet::Register { topic_id: 0, msg_id: 5, name: "a/b" };
    for room in 0..9 {
        let limit = room as u64;
        let needed = Error::Limit { what: "a message of MQTT-SN in bytes", value: 9, limit };
        assert_eq!(packet.encode(&mut vec![0; room]), Err(needed));
    }
}

/// MQTT-SN 1.2 §5.5: the length is that of the head alone.
#[test]
fn forwarders_say_whose_message_it_is() {
    let forwarded = Forwarded { radius: 1, node: b"\x00\x2a", message: b"\x02\x16" };
    let mut room = [0; 16];
    let len = forwarded.encode(&mut room).unwrap();
    assert_eq!(room[..len], *b"\x05\xfe\x01\x00\x2a\x02\x16");
    assert_eq!(len, forwarded.encoded_len());
    assert!(is_forwarded(&room[..len]));
    assert_eq!(Forwarded::decode(&room[..len]), Ok(forwarded));
    assert!(Packet::decode(&room[..len]).is_err());
    let longest = vec![1; MAX_NODE_ID_BYTES];
    let longest = Forwarded { node: &longest, ..forwarded };
    let mut room = [0; 300];
    let len = longest.encode(&mut room).unwrap();
    assert_eq!(Forwarded::decode(&room[..len]), Ok(longest));
    let node = vec![1; MAX_NODE_ID_BYTES + 1];
    for wrong in [Forwarded { node: &node, ..forwarded }, Forwarded { radius: 4, ..forwarded }] {
        assert!(matches!(wrong.encode(&mut room), Err(Error::Caller { .. })));
    }
    for bytes in [
        &b""[..],
        b"\x03\xfe",
        b"\x02\xfe\x00\x02\x16",
        b"\x05\xfe\x01\x00\x2a",
        b"\x08\xfe\x01\x00\x2a\x02\x16",
        b"\x05\xfd\x01\x00\x2a\x02\x16",
    ] {
        assert!(Forwarded::decode(bytes).is_err(), "{bytes:02x?}");
    }
    // Reserved bits are not looked at.
    assert_eq!(Forwarded::decode(b"\x05\xfe\xfd\x00\x2a\x02\x16"), Ok(forwarded));
    // One within another is no message.
    assert!(Packet::decode(b"\x03\xfe\x00").is_err());
    // A PUBLISH of 254 octets of type 0x0c whose length is 0xfe is none.
    assert!(!is_forwarded(&[0xfe, 0x0c]) && !is_forwarded(&[1, 0xfe, 0]));
}

fn any_qos() -> impl Strategy<Value = Qos> {
    prop_oneof![Just(Qos::MinusOne), Just(Qos::Zero), Just(Qos::One), Just(Qos::Two)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn publications_and_subscriptions_round_trip(
        (kind, value, msg_id) in (0..3_u8, any::<u16>(), any::<u16>()),
        (qos, retain, dup) in (any_qos(), any::<bool>(), any::<bool>()),
        data in proptest::collection::vec(any::<u8>(), 0..400),
        name in "[a-z/+#é]{0,300}",
    ) {
        let (topic, filter) = match kind {
            0 => (Topic::Id(value), Filter::Name(&name)),
            1 => (Topic::Predefined(value), Filter::Predefined(value)),
            _ => (Topic::Short(value.to_be_bytes()), Filter::Short(value.to_be_bytes())),
        };
        prop_assert_eq!(topic.value(), value);
        let publish = Packet::Publish(Publish { topic, msg_id, data: &data, qos, retain, dup });
        for packet in [
            publish,
            Packet::Subscribe { dup, qos, msg_id, filter },
            Packet::Unsubscribe { msg_id, filter },
            Packet::Register { topic_id: value, msg_id, name: &name },
            Packet::WillTopic(Some(WillTopic { topic: &name, qos, retain })),
        ] {
            let bytes = encoded(&packet);
            prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        }
    }

    #[test]
    fn no_bytes_panic(
        head in any::<[u8; 2]>(),
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        // Else chance finds no length that is right.
        let msg_type = head[1] % 0x20;
        let bytes = match u8::try_from(body.len() + 2) {
            Ok(len) => [&[len, msg_type], &body[..]].concat(),
            Err(_) => {
                let [high, low] = u16::try_from(body.len() + 4).unwrap().to_be_bytes();
                [&[1, high, low, msg_type], &body[..]].concat()
            }
        };
        if let Ok(packet) = Packet::decode(&bytes) {
            let again = encoded(&packet);
            prop_assert!(again.len() <= bytes.len());
            prop_assert_eq!(Packet::decode(&again), Ok(packet));
        }
        let bytes = [&[head[0], 0xfe], &body[..]].concat();
        if let Ok(forwarded) = Forwarded::decode(&bytes) {
            let mut room = vec![0; bytes.len()];
            let len = forwarded.encode(&mut room).unwrap();
            prop_assert_eq!(Forwarded::decode(&room[..len]), Ok(forwarded));
        }
        let _ = Packet::decode(&body);
    }
}
