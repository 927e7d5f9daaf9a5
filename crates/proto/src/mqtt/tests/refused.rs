//! Packets that break a clause: what for, and with which reason code (MQTT 5 §4.13).

use super::super::*;
use super::one;

/// A packet, and the clause it breaks.
type Row = (&'static str, &'static [u8]);

const V3: [Version; 2] = [Version::V31, Version::V311];
const V4: [Version; 2] = [Version::V311, Version::V5];
const ALL: [Version; 3] = [Version::V31, Version::V311, Version::V5];

fn refused(versions: &[Version], reason: Reason, rows: &[Row]) {
    for (clause, bytes) in rows {
        // Its own length is right, so that it is refused for what it says.
        if let Ok(Some(header)) = frame(bytes, usize::MAX) {
            assert_eq!(header.packet_len(), bytes.len(), "{clause}");
        }
        for version in versions {
            match one(*version, bytes) {
                Err(refused) => assert_eq!(refused.reason, reason, "{version} {clause}: {refused}"),
                Ok(packet) => panic!("{version} {clause}: {packet:?}"),
            }
        }
    }
}

/// CONNECTs that cannot be read.
const MALFORMED_CONNECTS: &[Row] = &[
    ("MQTT-2.1.3-1: flags of the header", b"\x11\x0d\x00\x04MQTT\x04\x02\x00\x0a\x00\x01c"),
    ("MQTT-3.1.2-3: reserved flag", b"\x10\x0d\x00\x04MQTT\x04\x03\x00\x0a\x00\x01c"),
    ("MQTT-3.1.2-11: QoS without will", b"\x10\x0d\x00\x04MQTT\x04\x0a\x00\x0a\x00\x01c"),
    ("MQTT-3.1.2-13: retain without will", b"\x10\x0d\x00\x04MQTT\x04\x22\x00\x0a\x00\x01c"),
    (
        "MQTT-3.1.2-12: will of QoS 3",
        b"\x10\x13\x00\x04MQTT\x04\x1e\x00\x0a\x00\x01c\x00\x01w\x00\x01x",
    ),
    (
        "MQTT 3.1 §3.1: will of QoS 3",
        b"\x10\x15\x00\x06MQIsdp\x03\x1e\x00\x0a\x00\x01c\x00\x01w\x00\x01x",
    ),
    (
        "MQTT 3.1.1 MQTT-3.1.2-22: password alone",
        b"\x10\x10\x00\x04MQTT\x04\x42\x00\x0a\x00\x01c\x00\x01p",
    ),
    ("MQTT 3.1 §3.1: password alone", b"\x10\x12\x00\x06MQIsdp\x03\x42\x00\x0a\x00\x01c\x00\x01p"),
    ("MQTT-3.1.2-17: no user name", b"\x10\x0d\x00\x04MQTT\x04\x82\x00\x0a\x00\x01c"),
    ("MQTT-3.1.2-19: no password", b"\x10\x10\x00\x04MQTT\x04\xc2\x00\x0a\x00\x01c\x00\x01u"),
    ("MQTT-3.1.2-9: no will", b"\x10\x0d\x00\x04MQTT\x04\x06\x00\x0a\x00\x01c"),
    (
        "MQTT-3.1.2-9: no payload of a will",
        b"\x10\x10\x00\x04MQTT\x04\x06\x00\x0a\x00\x01c\x00\x01w",
    ),
    (
        "MQTT-3.1.2-16: user name without flag",
        b"\x10\x10\x00\x04MQTT\x04\x02\x00\x0a\x00\x01c\x00\x01u",
    ),
    ("MQTT-3.1.3-3: no client identifier", b"\x10\x0a\x00\x04MQTT\x04\x02\x00\x0a"),
    ("MQTT-3.1.3-3: half of it", b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x0a\x00\x02c"),
    ("§3.1.2.10: no keep alive", b"\x10\x08\x00\x04MQTT\x04\x02"),
    ("§3.1.2.1: half a name", b"\x10\x04\x00\x04MQ"),
    ("§3.1.2.1: nothing", b"\x10\x00"),
    ("MQTT-1.5.4-1: U+D800", b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x0a\x00\x03\xed\xa0\x80"),
    ("MQTT-1.5.4-1: U+DFFF", b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x0a\x00\x03\xed\xbf\xbf"),
    ("MQTT-1.5.4-1: overlong", b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x0a\x00\x02\xc0\x80"),
    ("MQTT-1.5.4-2: U+0000", b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x0a\x00\x02c\x00"),
    (
        "MQTT-1.5.4-2: U+0000 in a user name",
        b"\x10\x10\x00\x04MQTT\x04\x82\x00\x0a\x00\x01c\x00\x01\x00",
    ),
    ("§3.1.2.11.1: no length of properties", b"\x10\x0a\x00\x04MQTT\x05\x02\x00\x0a"),
    ("§3.1.2.11.1: longer than the packet", b"\x10\x0e\x00\x04MQTT\x05\x02\x00\x0a\x05\x00\x01c"),
    (
        "§3.1.3.2: no properties of a will",
        b"\x10\x14\x00\x04MQTT\x05\x06\x00\x0a\x00\x00\x01c\x00\x01w\x00\x01x",
    ),
];

#[test]
fn connect() {
    refused(
        &ALL,
        Reason::UNSUPPORTED_PROTOCOL_VERSION,
        &[
            ("MQTT-3.1.2-1: name", b"\x10\x0d\x00\x04mqtt\x04\x02\x00\x0a\x00\x01c"),
            ("MQTT-3.1.2-1: empty name", b"\x10\x09\x00\x00\x04\x02\x00\x0a\x00\x01c"),
            ("MQTT-3.1.2-2: level 6", b"\x10\x0d\x00\x04MQTT\x06\x02\x00\x0a\x00\x01c"),
            ("MQTT-3.1.2-2: level 3", b"\x10\x0d\x00\x04MQTT\x03\x02\x00\x0a\x00\x01c"),
            ("MQTT-3.1.2-2: level 4", b"\x10\x0f\x00\x06MQIsdp\x04\x02\x00\x0a\x00\x01c"),
            ("MQTT-3.1.2-2: level 5 of a bridge", b"\x10\x0d\x00\x04MQTT\x85\x02\x00\x0a\x00\x01c"),
        ],
    );
    refused(&ALL, Reason::MALFORMED_PACKET, MALFORMED_CONNECTS);
    refused(
        &ALL,
        Reason::CLIENT_IDENTIFIER_NOT_VALID,
        &[
            (
                "MQTT 3.1.1 MQTT-3.1.3-8: no identifier",
                b"\x10\x0c\x00\x04MQTT\x04\x00\x00\x0a\x00\x00",
            ),
            ("MQTT 3.1 §3.1: no identifier", b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x0a\x00\x00"),
            (
                "MQTT 3.1 §3.1: 24 characters",
                b"\x10\x26\x00\x06MQIsdp\x03\x02\x00\x0a\x00\x18123456789012345678901234",
            ),
        ],
    );
    refused(
        &ALL,
        Reason::TOPIC_NAME_INVALID,
        &[
            (
                "§3.1.3.3: a wildcard in a will",
                b"\x10\x13\x00\x04MQTT\x04\x06\x00\x0a\x00\x01c\x00\x01#\x00\x01x",
            ),
            (
                "MQTT-4.7.3-1: a will without topic",
                b"\x10\x12\x00\x04MQTT\x04\x06\x00\x0a\x00\x01c\x00\x00\x00\x01x",
            ),
        ],
    );
}

/// A CONNECT of MQTT 5 with these properties.
fn connect_with(properties: &[u8]) -> Vec<u8> {
    let mut body = b"\x00\x04MQTT\x05\x02\x00\x0a".to_vec();
    body.push(u8::try_from(properties.len()).unwrap());
    body.extend_from_slice(properties);
    body.extend_from_slice(b"\x00\x01c");
    [&[0x10, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

/// Reads properties of each packet that may have them; which reasons come out.
#[test]
fn properties() {
    let reason = |bytes: &[u8]| one(Version::V5, bytes).map_err(|refused| refused.reason);
    assert!(reason(&connect_with(b"\x21\x00\x01")).is_ok());
    for (clause, properties) in [
        ("§3.1.2.11.3: Receive Maximum 0", &b"\x21\x00\x00"[..]),
        ("§3.1.2.11.3: twice", b"\x21\x00\x01\x21\x00\x01"),
        ("§3.1.2.11.4: Maximum Packet Size 0", b"\x27\x00\x00\x00\x00"),
        ("§3.1.2.11.4: twice", b"\x27\x00\x00\x01\x00\x27\x00\x00\x01\x00"),
        ("§3.1.2.11.2: Session Expiry Interval twice", b"\x11\0\0\0\0\x11\0\0\0\0"),
        ("§3.1.2.11.5: Topic Alias Maximum twice", b"\x22\0\0\x22\0\0"),
        ("§3.1.2.11.6: Request Response Information 2", b"\x19\x02"),
        ("§3.1.2.11.6: twice", b"\x19\x00\x19\x00"),
        ("§3.1.2.11.7: Request Problem Information 2", b"\x17\x02"),
        ("§3.1.2.11.7: twice", b"\x17\x00\x17\x01"),
        ("§3.1.2.11.9: Authentication Method twice", b"\x15\0\x01m\x15\0\x01m"),
        ("§3.1.2.11.10: Authentication Data twice", b"\x15\0\x01m\x16\0\0\x16\0\0"),
        ("§3.1.2.11.10: without a method", b"\x16\0\x01d"),
    ] {
        assert_eq!(reason(&connect_with(properties)), Err(Reason::PROTOCOL_ERROR), "{clause}");
    }
    for (clause, properties) in [
        ("§2.2.2.2: an identifier that is none", &b"\x00"[..]),
        ("§2.2.2.2: an identifier that is none", b"\x7e\x00"),
        ("§2.2.2.2: an identifier of two bytes", b"\xa1\x00\x00\x01"),
        ("§2.2.2.2: of another packet", b"\x01\x00"),
        ("§2.2.2.2: of CONNACK", b"\x24\x00"),
        ("§2.2.2.2: of a will", b"\x18\0\0\0\0"),
        ("§2.2.2.2: without value", b"\x21"),
        ("§2.2.2.2: half a value", b"\x27\x00\x00\x00"),
        ("§1.5.7: half a pair", b"\x26\x00\x01a"),
        ("§1.5.7: half a name", b"\x26\x00\x02a"),
        ("MQTT-1.5.7-1: U+0000 in a value", b"\x26\x00\x01a\x00\x01\x00"),
        ("MQTT-1.5.7-1: no UTF-8 in a name", b"\x26\x00\x01\xff\x00\x01a"),
        ("MQTT-1.5.4-1: no UTF-8", b"\x15\x00\x01\xff"),
        ("§1.5.6: half of binary data", b"\x15\0\x01m\x16\x00\x02d"),
    ] {
        assert_eq!(reason(&connect_with(properties)), Err(Reason::MALFORMED_PACKET), "{clause}");
    }
}

/// Each property in each packet: it is taken exactly where MQTT 5 §2.2.2.2 has it.
#[test]
fn properties_are_taken_where_the_table_has_them() {
    let values: [(u8, &[u8], &str); 27] = [
        (0x01, b"\0", "PUBLISH WILL"),
        (0x02, b"\0\0\0\0", "PUBLISH WILL"),
        (0x03, b"\0\0", "PUBLISH WILL"),
        (0x08, b"\0\x01r", "PUBLISH WILL"),
        (0x09, b"\0\0", "PUBLISH WILL"),
        (0x0b, b"\x01", "PUBLISH SUBSCRIBE"),
        (0x11, b"\0\0\0\0", "CONNECT CONNACK DISCONNECT"),
        (0x12, b"\0\0", "CONNACK"),
        (0x13, b"\0\0", "CONNACK"),
        (0x15, b"\0\0", "CONNECT CONNACK AUTH"),
        (0x16, b"\0\0", "CONNECT CONNACK AUTH"),
        (0x17, b"\0", "CONNECT"),
        (0x18, b"\0\0\0\0", "WILL"),
        (0x19, b"\0", "CONNECT"),
        (0x1a, b"\0\0", "CONNACK"),
        (0x1c, b"\0\0", "CONNACK DISCONNECT"),
        (0x1f, b"\0\0", "CONNACK ACK DISCONNECT AUTH"),
        (0x21, b"\0\x01", "CONNECT CONNACK"),
        (0x22, b"\0\0", "CONNECT CONNACK"),
        (0x23, b"\0\x01", "PUBLISH"),
        (0x24, b"\0", "CONNACK"),
        (0x25, b"\0", "CONNACK"),
        (
            0x26,
            b"\0\0\0\0",
            "CONNECT CONNACK PUBLISH WILL ACK SUBSCRIBE UNSUBSCRIBE DISCONNECT AUTH",
        ),
        (0x27, b"\0\0\0\x01", "CONNECT CONNACK"),
        (0x28, b"\0", "CONNACK"),
        (0x29, b"\0", "CONNACK"),
        (0x2a, b"\0", "CONNACK"),
    ];
    let packets = [
        ("CONNECT", Ids::CONNECT),
        ("CONNACK", Ids::CONNACK),
        ("PUBLISH", Ids::PUBLISH),
        ("WILL", Ids::WILL),
        ("ACK", Ids::ACK),
        ("SUBSCRIBE", Ids::SUBSCRIBE),
        ("UNSUBSCRIBE", Ids::UNSUBSCRIBE),
        ("DISCONNECT", Ids::DISCONNECT),
        ("AUTH", Ids::AUTH),
    ];
    for (number, value, where_allowed) in values {
        let id = Id::from_number(number).unwrap();
        let block = [&[number], value].concat();
        for (name, allowed) in packets {
            let taken = Properties::decode(block.clone().into(), allowed);
            let is_allowed = where_allowed.split(' ').any(|allowed| allowed == name);
            assert_eq!(taken.is_ok(), is_allowed, "{} in {name}", id.name());
            assert!(!is_allowed || taken.unwrap().has(id));
            // And twice only user properties, and subscription identifiers of a PUBLISH.
            let twice = Properties::decode([&block[..], &block].concat().into(), allowed);
            let repeats = number == 0x26 || number == 0x0b && name == "PUBLISH";
            assert_eq!(twice.is_ok(), is_allowed && repeats, "{} in {name}", id.name());
        }
    }
    let named = (0..=255).filter(|number| Id::from_number(*number).is_some()).count();
    assert_eq!(named, values.len());
}

#[test]
fn connack() {
    refused(
        &V4,
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.2.2-1: reserved flags", b"\x20\x03\x02\x00\x00"),
            ("MQTT-2.1.3-1: flags of the header", b"\x21\x03\x00\x00\x00"),
            ("§3.2.2: no code", b"\x20\x01\x00"),
        ],
    );
    refused(&V3, Reason::MALFORMED_PACKET, &[("§3.2.3: a payload", b"\x20\x03\x00\x00\x00")]);
    refused(&V3, Reason::PROTOCOL_ERROR, &[("§3.2.2.3: code 6", b"\x20\x02\x00\x06")]);
    refused(
        &[Version::V311],
        Reason::PROTOCOL_ERROR,
        &[("MQTT 3.1.1 MQTT-3.2.2-4: a session of nobody", b"\x20\x02\x01\x05")],
    );
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[
            ("MQTT-3.2.2-6: a session of nobody", b"\x20\x03\x01\x87\x00"),
            ("MQTT-3.2.2-8: a code of other packets", b"\x20\x03\x00\x8e\x00"),
            ("MQTT-3.2.2-8: a return code", b"\x20\x03\x00\x05\x00"),
            ("§3.2.2.3.3: Receive Maximum 0", b"\x20\x06\x00\x00\x03\x21\x00\x00"),
            ("§3.2.2.3.4: Maximum QoS 2", b"\x20\x05\x00\x00\x02\x24\x02"),
            ("§3.2.2.3.5: Retain Available 2", b"\x20\x05\x00\x00\x02\x25\x02"),
            ("§3.2.2.3.6: Maximum Packet Size 0", b"\x20\x08\x00\x00\x05\x27\x00\x00\x00\x00"),
            ("§3.2.2.3.11: Wildcard Subscription 2", b"\x20\x05\x00\x00\x02\x28\x02"),
            ("§3.2.2.3.12: Subscription Identifiers 2", b"\x20\x05\x00\x00\x02\x29\x02"),
            ("§3.2.2.3.13: Shared Subscription 2", b"\x20\x05\x00\x00\x02\x2a\x02"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("§3.2.2.3.1: no length of properties", b"\x20\x02\x00\x00"),
            ("§3.2.2.3: of CONNECT", b"\x20\x05\x00\x00\x02\x17\x00"),
        ],
    );
}

#[test]
fn publish() {
    refused(
        &ALL,
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.3.1-4: QoS 3", b"\x36\x06\x00\x01a\x00\x01\x00"),
            ("§3.3.2.1: no topic", b"\x30\x00"),
            ("§3.3.2.1: half a length", b"\x30\x01\x00"),
            ("§3.3.2.1: half a topic", b"\x30\x03\x00\x02a"),
            ("MQTT-2.2.1-2: no packet identifier", b"\x32\x03\x00\x01a"),
            ("MQTT-2.2.1-2: half of it", b"\x32\x04\x00\x01a\x00"),
            ("MQTT-1.5.4-1: no UTF-8", b"\x30\x04\x00\x01\xff\x00"),
            ("MQTT-1.5.4-2: U+0000", b"\x30\x04\x00\x01\x00\x00"),
        ],
    );
    refused(
        &V4,
        Reason::MALFORMED_PACKET,
        &[("MQTT-3.3.1-2: DUP with QoS 0", b"\x38\x04\x00\x01a\x00")],
    );
    refused(
        &ALL,
        Reason::PROTOCOL_ERROR,
        &[("MQTT-2.2.1-3: packet identifier 0", b"\x32\x06\x00\x01a\x00\x00\x00")],
    );
    refused(
        &ALL,
        Reason::TOPIC_NAME_INVALID,
        &[
            ("MQTT-3.3.2-2: a wildcard", b"\x30\x06\x00\x03a/#\x00"),
            ("MQTT-3.3.2-2: a wildcard", b"\x30\x06\x00\x03+/b\x00"),
            ("MQTT-3.3.2-2: inside a level", b"\x30\x06\x00\x03a+b\x00"),
        ],
    );
    refused(
        &V3,
        Reason::TOPIC_NAME_INVALID,
        &[("MQTT 3.1.1 MQTT-4.7.3-1: no topic", b"\x30\x03\x00\x00x")],
    );
}

#[test]
fn publish_of_5() {
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[
            ("§3.3.2.1: neither topic nor alias", b"\x30\x04\x00\x00\x00x"),
            ("§3.3.2.3.2: Payload Format Indicator 2", b"\x30\x06\x00\x01a\x02\x01\x02"),
            ("§3.3.2.3.2: twice", b"\x30\x08\x00\x01a\x04\x01\x01\x01\x01"),
            (
                "§3.3.2.3.3: Message Expiry Interval twice",
                b"\x30\x0e\x00\x01a\x0a\x02\0\0\0\0\x02\0\0\0\0",
            ),
            ("§3.3.2.3.4: Topic Alias twice", b"\x30\x0a\x00\x01a\x06\x23\0\x01\x23\0\x01"),
            ("§3.3.2.3.5: Response Topic twice", b"\x30\x0c\x00\x01a\x08\x08\0\x01r\x08\0\x01r"),
            ("§3.3.2.3.6: Correlation Data twice", b"\x30\x0a\x00\x01a\x06\x09\0\0\x09\0\0"),
            ("§3.3.2.3.8: Subscription Identifier 0", b"\x30\x06\x00\x01a\x02\x0b\x00"),
            ("§3.3.2.3.9: Content Type twice", b"\x30\x0a\x00\x01a\x06\x03\0\0\x03\0\0"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::TOPIC_ALIAS_INVALID,
        &[("MQTT-3.3.2-8: Topic Alias 0", b"\x30\x07\x00\x01a\x03\x23\x00\x00")],
    );
    refused(
        &[Version::V5],
        Reason::TOPIC_NAME_INVALID,
        &[("MQTT-3.3.2-14: a wildcard in a response topic", b"\x30\x08\x00\x01a\x04\x08\0\x01#")],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("§3.3.2.3.1: no length of properties", b"\x30\x03\x00\x01a"),
            ("§3.3.2.3.1: longer than the packet", b"\x30\x05\x00\x01a\x02\x01"),
            ("MQTT-1.5.5-1: a length with a byte too many", b"\x30\x05\x00\x01a\x80\x00"),
            ("§1.5.5: a length of five bytes", b"\x30\x08\x00\x01a\x80\x80\x80\x80\x01"),
            (
                "MQTT-1.5.5-1: an identifier with a byte too many",
                b"\x30\x07\x00\x01a\x03\x0b\x81\x00",
            ),
            ("§2.2.2.2: of CONNECT", b"\x30\x09\x00\x01a\x05\x27\0\0\x01\0"),
        ],
    );
}

#[test]
fn acknowledgements() {
    for first in [0x40, 0x50, 0x62, 0x70] {
        let reason = |version, first: u8, rest: &[u8]| {
            one(version, &[&[first], rest].concat()).map_err(|refused| refused.reason)
        };
        for version in ALL {
            for (clause, rest, expected) in [
                ("MQTT-2.2.1-3", &b"\x02\x00\x00"[..], Reason::PROTOCOL_ERROR),
                ("§3.4.2", b"\x01\x00", Reason::MALFORMED_PACKET),
                ("§3.4.2", b"\x00", Reason::MALFORMED_PACKET),
            ] {
                assert_eq!(reason(version, first, rest), Err(expected), "{version} {clause}");
            }
        }
        for version in V4 {
            for flags in (0..16).filter(|flags| *flags != first & 15) {
                let packet = reason(version, first & 0xf0 | flags, b"\x02\x00\x01");
                assert_eq!(packet, Err(Reason::MALFORMED_PACKET), "MQTT-2.1.3-1, MQTT-3.6.1-1");
            }
        }
        for version in V3 {
            let packet = reason(version, first, b"\x03\x00\x01\x00");
            assert_eq!(packet, Err(Reason::MALFORMED_PACKET), "MQTT 3.1.1 §3.4.1");
        }
        for (clause, rest, expected) in [
            ("MQTT-3.4.2-1", &b"\x03\x00\x01\x8e"[..], Reason::PROTOCOL_ERROR),
            ("MQTT-3.4.2-1", b"\x03\x00\x01\xff", Reason::PROTOCOL_ERROR),
            ("§3.4.2.2", b"\x05\x00\x01\x00\x01\x00", Reason::MALFORMED_PACKET),
            ("§3.4.2.2: of others", b"\x06\x00\x01\x00\x02\x01\x00", Reason::MALFORMED_PACKET),
            ("§3.4.2.2: trailing", b"\x05\x00\x01\x00\x00\x00", Reason::MALFORMED_PACKET),
            ("§3.4.2.2.2: twice", b"\x0a\0\x01\0\x06\x1f\0\0\x1f\0\0", Reason::PROTOCOL_ERROR),
        ] {
            assert_eq!(reason(Version::V5, first, rest), Err(expected), "{clause}");
        }
        // MQTT 5 §3.6.2.1: codes of PUBACK are none of PUBREL, and the other way round.
        let other = if first < 0x60 { 0x92 } else { 0x10 };
        let packet = reason(Version::V5, first, &[3, 0, 1, other]);
        assert_eq!(packet, Err(Reason::PROTOCOL_ERROR));
    }
    // MQTT 3.1 §2.1: QoS 1 in its flags.
    refused(&[Version::V31], Reason::MALFORMED_PACKET, &[("§3.6", b"\x60\x02\x00\x01")]);
}

#[test]
fn subscribe() {
    refused(
        &ALL,
        Reason::PROTOCOL_ERROR,
        &[("MQTT-2.2.1-3: packet identifier 0", b"\x82\x07\x00\x00\x00\x00\x01a\x01")],
    );
    refused(
        &[Version::V311],
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.8.1-1: flags of the header", b"\x80\x06\x00\x01\x00\x01a\x01"),
            ("MQTT-3.8.3-4: reserved bits", b"\x82\x06\x00\x01\x00\x01a\x04"),
        ],
    );
    refused(&V3, Reason::PROTOCOL_ERROR, &[("MQTT-3.8.3-3: no filter", b"\x82\x02\x00\x01")]);
    refused(
        &V3,
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.8.3-4: QoS 3", b"\x82\x06\x00\x01\x00\x01a\x03"),
            ("§3.8.3: no QoS", b"\x82\x05\x00\x01\x00\x01a"),
            ("§3.8.3: half a filter", b"\x82\x05\x00\x01\x00\x02a"),
            ("§3.8.2: half an identifier", b"\x82\x01\x00"),
            ("MQTT-3.8.3-1: no UTF-8", b"\x82\x06\x00\x01\x00\x01\xff\x01"),
            ("MQTT-1.5.4-2: U+0000", b"\x82\x06\x00\x01\x00\x01\x00\x01"),
        ],
    );
    refused(
        &V3,
        Reason::TOPIC_FILTER_INVALID,
        &[
            ("MQTT-4.7.3-1: an empty filter", b"\x82\x05\x00\x01\x00\x00\x01"),
            ("MQTT-4.7.1-1: a wildcard inside", b"\x82\x07\x00\x01\x00\x02a#\x01"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.8.1-1: flags of the header", b"\x80\x07\x00\x01\x00\x00\x01a\x01"),
            ("MQTT-3.8.3-5: reserved bit 6", b"\x82\x07\x00\x01\x00\x00\x01a\x41"),
            ("MQTT-3.8.3-5: reserved bit 7", b"\x82\x07\x00\x01\x00\x00\x01a\x81"),
            ("§3.8.3.1: QoS 3", b"\x82\x07\x00\x01\x00\x00\x01a\x03"),
            ("§3.8.2.1.1: no length of properties", b"\x82\x02\x00\x01"),
            ("§3.8.2.1: of PUBLISH", b"\x82\x09\x00\x01\x02\x01\x00\x00\x01a\x01"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[
            ("MQTT-3.8.3-2: no filter", b"\x82\x03\x00\x01\x00"),
            ("§3.8.3.1: Retain Handling 3", b"\x82\x07\x00\x01\x00\x00\x01a\x31"),
            ("§3.8.2.1.2: Subscription Identifier 0", b"\x82\x09\x00\x01\x02\x0b\x00\x00\x01a\x01"),
            ("§3.8.2.1.2: twice", b"\x82\x0b\x00\x01\x04\x0b\x01\x0b\x02\x00\x01a\x01"),
            (
                "MQTT-3.8.3-4: No Local of a shared one",
                b"\x82\x10\x00\x01\x00\x00\x0a$share/g/a\x04",
            ),
        ],
    );
    refused(
        &[Version::V5],
        Reason::TOPIC_FILTER_INVALID,
        &[
            ("MQTT-4.8.2-1: no share name", b"\x82\x0f\x00\x01\x00\x00\x09$share//a\x01"),
            ("MQTT-4.8.2-2: a wildcard in it", b"\x82\x10\x00\x01\x00\x00\x0a$share/+/a\x01"),
            ("MQTT-4.8.2-2: no filter", b"\x82\x0e\x00\x01\x00\x00\x08$share/g\x01"),
            ("MQTT-4.7.1-2: # inside", b"\x82\x09\x00\x01\x00\x00\x03#/a\x01"),
            ("MQTT-4.7.1-3: + inside", b"\x82\x08\x00\x01\x00\x00\x02a+\x01"),
        ],
    );
}

#[test]
fn unsubscribe() {
    refused(
        &V4,
        Reason::MALFORMED_PACKET,
        &[("MQTT-3.10.1-1: flags of the header", b"\xa0\x06\x00\x01\x00\x00\x01a")],
    );
    refused(
        &ALL,
        Reason::PROTOCOL_ERROR,
        &[("MQTT-2.2.1-3: packet identifier 0", b"\xa2\x06\x00\x00\x00\x00\x01a")],
    );
    refused(&V3, Reason::PROTOCOL_ERROR, &[("MQTT-3.10.3-2: no filter", b"\xa2\x02\x00\x01")]);
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[("MQTT-3.10.3-2: no filter", b"\xa2\x03\x00\x01\x00")],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("§3.10.2.1: of SUBSCRIBE", b"\xa2\x08\x00\x01\x02\x0b\x01\x00\x01a"),
            ("§3.10.3: half a filter", b"\xa2\x06\x00\x01\x00\x00\x02a"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::TOPIC_FILTER_INVALID,
        &[
            ("MQTT-4.7.3-1: an empty filter", b"\xa2\x05\x00\x01\x00\x00\x00"),
            ("MQTT-4.8.2-1: no share name", b"\xa2\x0e\x00\x01\x00\x00\x09$share//a"),
        ],
    );
}

#[test]
fn answers() {
    refused(
        &ALL,
        Reason::PROTOCOL_ERROR,
        &[("MQTT-2.2.1-3: packet identifier 0", b"\x90\x04\x00\x00\x00\x00")],
    );
    refused(
        &V3,
        Reason::PROTOCOL_ERROR,
        &[
            ("MQTT-3.9.3-2: code 3", b"\x90\x03\x00\x01\x03"),
            ("MQTT-3.9.3-2: code 0x81", b"\x90\x03\x00\x01\x81"),
            ("MQTT-3.8.4-5: no code", b"\x90\x02\x00\x01"),
        ],
    );
    refused(&V3, Reason::MALFORMED_PACKET, &[("§3.11.3: a payload", b"\xb0\x03\x00\x01\x00")]);
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[
            ("MQTT-3.9.3-2: code 3", b"\x90\x04\x00\x01\x00\x03"),
            ("§3.9.3: no code", b"\x90\x03\x00\x01\x00"),
            ("MQTT-3.11.3-2: code 1", b"\xb0\x04\x00\x01\x00\x01"),
            ("§3.11.3: no code", b"\xb0\x03\x00\x01\x00"),
            ("§3.11.2.1.2: twice", b"\xb0\x0a\x00\x01\x06\x1f\0\0\x1f\0\0\x00"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("§3.9.2.1.1: no length of properties", b"\x90\x02\x00\x01"),
            ("§3.11.2.1.1: no length of properties", b"\xb0\x02\x00\x01"),
            ("§3.9.2.1: of SUBSCRIBE", b"\x90\x06\x00\x01\x02\x0b\x01\x00"),
        ],
    );
}

#[test]
fn pings_and_ends() {
    refused(
        &ALL,
        Reason::MALFORMED_PACKET,
        &[("§3.12.3: a payload", b"\xc0\x01\x00"), ("§3.13.3: a payload", b"\xd0\x01\x00")],
    );
    refused(
        &V4,
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-2.1.3-1: flags of PINGREQ", b"\xc1\x00"),
            ("MQTT-2.1.3-1: flags of PINGRESP", b"\xd8\x00"),
            ("MQTT-3.14.1-1: flags of DISCONNECT", b"\xe2\x00"),
            ("§2.1.2: the type 0", b"\x00\x00"),
        ],
    );
    refused(
        &V3,
        Reason::MALFORMED_PACKET,
        &[("§3.14.3: a payload", b"\xe0\x01\x00"), ("§2.2.1: the type 15", b"\xf0\x00")],
    );
    refused(
        &[Version::V5],
        Reason::PROTOCOL_ERROR,
        &[
            ("MQTT-3.14.2-1: code 1", b"\xe0\x01\x01"),
            (
                "§3.14.2.2.2: Session Expiry Interval twice",
                b"\xe0\x0c\x00\x0a\x11\0\0\0\0\x11\0\0\0\0",
            ),
            ("MQTT-3.15.2-1: code 1", b"\xf0\x06\x01\x04\x15\x00\x01m"),
            ("§3.15.2.2.2: no method", b"\xf0\x02\x18\x00"),
            ("§3.15.2.2.2: no method", b"\xf0\x01\x18"),
            ("§3.15.2.2.3: data twice", b"\xf0\x0c\x18\x0a\x15\0\x01m\x16\0\0\x16\0\0"),
        ],
    );
    refused(
        &[Version::V5],
        Reason::MALFORMED_PACKET,
        &[
            ("MQTT-3.15.1-1: flags of AUTH", b"\xf1\x00"),
            ("§3.14.2.2: of CONNACK", b"\xe0\x04\x00\x02\x25\x00"),
            ("§3.14.2.2.1: longer than the packet", b"\xe0\x02\x00\x05"),
            ("§3.14.3: a payload", b"\xe0\x03\x00\x00\x00"),
        ],
    );
}
