//! Any bytes and any packets.

use bytes::Bytes;
use proptest::prelude::*;

use super::super::topic::{check_filter, check_name, levels, matches, parts};
use super::super::*;
use super::{bytes_of, one};

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V31), Just(Version::V311), Just(Version::V5)]
}

fn qos() -> impl Strategy<Value = Qos> {
    prop_oneof![Just(Qos::AtMostOnce), Just(Qos::AtLeastOnce), Just(Qos::ExactlyOnce)]
}

fn text() -> impl Strategy<Value = Text> {
    "[^\0]{0,12}".prop_map(|text| Text::try_from(text).unwrap())
}

fn name() -> impl Strategy<Value = Text> {
    "[a-c/ä$]{1,8}".prop_map(|text| Text::try_from(text).unwrap())
}

fn filter() -> impl Strategy<Value = Text> {
    "([+]|[a-b$]{0,2})(/([+]|[a-b$]{0,2})){0,3}(/#)?"
        .prop_map(|text| if text.is_empty() { "#".to_owned() } else { text })
        .prop_map(|text| Text::try_from(text).unwrap())
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from)
}

/// Some of the properties that a packet may have, in any order.
fn properties(allowed: Ids) -> impl Strategy<Value = Properties> {
    let property = (0_u8..0x2b, any::<u32>(), name(), bytes());
    prop::collection::vec(property, 0..6).prop_map(move |chosen| {
        let mut properties = Properties::NONE;
        for (number, value, text, bytes) in chosen {
            let Some(id) = Id::from_number(number).filter(|id| allowed.has(*id)) else { continue };
            let repeats = id == Id::USER_PROPERTY
                || id == Id::SUBSCRIPTION_IDENTIFIER && allowed == Ids::PUBLISH;
            if properties.has(id) && !repeats {
                continue;
            }
            // One of these is of the right type and size.
            let _ = properties
                .push(id, Value::Number(value))
                .or_else(|_| properties.push(id, Value::Number(value & 0xffff | 1)))
                .or_else(|_| properties.push(id, Value::Number(value & 1)))
                .or_else(|_| properties.push(id, Value::Text(text.as_str())))
                .or_else(|_| properties.push(id, Value::Binary(&bytes)))
                .or_else(|_| properties.push(id, Value::Pair(text.as_str(), "")));
        }
        properties
    })
}

fn will() -> impl Strategy<Value = Will> {
    (name(), bytes(), qos(), any::<bool>(), properties(Ids::WILL)).prop_map(
        |(topic, payload, qos, retain, properties)| Will {
            topic,
            payload,
            qos,
            retain,
            properties,
        },
    )
}

fn connect() -> impl Strategy<Value = Connect> {
    let secrets = (prop::option::of(text()), prop::option::of(bytes()));
    let rest = (prop::option::of(will()), properties(Ids::CONNECT));
    (version(), "[a-z]{1,23}", any::<bool>(), any::<u16>(), secrets, rest).prop_map(
        |(version, id, clean_start, keep_alive_s, (username, password), (will, properties))| {
            let is_v5 = version == Version::V5;
            let password = password.filter(|_| is_v5 || username.is_some());
            let orphan = Ids::new(&[Id::AUTHENTICATION_DATA]);
            let has_method = properties.has(Id::AUTHENTICATION_METHOD);
            let properties = if has_method { properties } else { properties.without(orphan) };
            Connect {
                version,
                is_bridge: false,
                client_id: Text::try_from(id).unwrap(),
                clean_start,
                keep_alive_s,
                username,
                password,
                will,
                properties,
            }
        },
    )
}

fn publish() -> impl Strategy<Value = Publish> {
    let flags = (any::<bool>(), any::<bool>(), qos(), 1_u16..);
    (flags, name(), properties(Ids::PUBLISH), bytes()).prop_map(
        |((dup, retain, qos, id), topic, properties, payload)| {
            let packet_id = (qos != Qos::AtMostOnce).then_some(id);
            let dup = dup && packet_id.is_some();
            Publish { dup, qos, retain, topic, packet_id, properties, payload }
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let handling = prop_oneof![
        Just(RetainHandling::Send),
        Just(RetainHandling::SendIfNew),
        Just(RetainHandling::DoNotSend)
    ];
    (qos(), any::<bool>(), any::<bool>(), handling).prop_map(
        |(qos, no_local, retain_as_published, retain_handling)| Options {
            qos,
            no_local,
            retain_as_published,
            retain_handling,
        },
    )
}

fn reason(codes: &'static [u8]) -> impl Strategy<Value = Reason> {
    prop::sample::select(codes).prop_map(Reason)
}

fn ack() -> impl Strategy<Value = Ack> {
    (1_u16.., reason(&[0]), properties(Ids::ACK)).prop_map(|(id, reason, properties)| Ack {
        id,
        reason,
        properties,
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let connack = (any::<bool>(), reason(&[0, 0x84, 0x88]), properties(Ids::CONNACK)).prop_map(
        |(session, reason, properties)| ConnAck {
            session_present: session && !reason.is_failure(),
            reason,
            properties,
        },
    );
    let filters = prop::collection::vec((filter(), options()), 1..4).prop_map(|filters| {
        filters.into_iter().map(|(filter, options)| Filter { filter, options }).collect()
    });
    let subscribe = (1_u16.., filters, properties(Ids::SUBSCRIBE))
        .prop_map(|(id, filters, properties)| Subscribe { id, filters, properties });
    let reasons = prop::collection::vec(reason(&[0, 1, 2, 0x80]), 1..4);
    let suback = (1_u16.., reasons, properties(Ids::ACK))
        .prop_map(|(id, reasons, properties)| SubAck { id, reasons, properties });
    let unsubscribe =
        (1_u16.., prop::collection::vec(filter(), 1..4), properties(Ids::UNSUBSCRIBE))
            .prop_map(|(id, filters, properties)| Unsubscribe { id, filters, properties });
    let reasons = prop::collection::vec(reason(&[0, 0x11, 0x87]), 1..4);
    let unsuback = (1_u16.., reasons, properties(Ids::ACK))
        .prop_map(|(id, reasons, properties)| UnsubAck { id, reasons, properties });
    let disconnect = (reason(&[0, 4, 0x8e]), properties(Ids::DISCONNECT))
        .prop_map(|(reason, properties)| Disconnect { reason, properties });
    prop_oneof![
        connect().prop_map(|connect| Packet::Connect(Box::new(connect))),
        connack.prop_map(Packet::ConnAck),
        publish().prop_map(Packet::Publish),
        ack().prop_map(Packet::PubAck),
        ack().prop_map(Packet::PubRec),
        ack().prop_map(Packet::PubRel),
        ack().prop_map(Packet::PubComp),
        subscribe.prop_map(Packet::Subscribe),
        suback.prop_map(Packet::SubAck),
        unsubscribe.prop_map(Packet::Unsubscribe),
        unsuback.prop_map(Packet::UnsubAck),
        Just(Packet::PingReq),
        Just(Packet::PingResp),
        disconnect.prop_map(Packet::Disconnect),
    ]
}

/// What a version says of a packet, or nothing where it cannot say that it is read again.
fn bare(packet: &Packet, version: Version) -> bool {
    version == Version::V5 || matches!(packet, Packet::Connect(_) | Packet::PingReq)
}

/// Reads what was written; that is written as before; and each piece of it is cut.
fn there_and_back(version: Version, packet: &Packet) {
    let bytes = bytes_of(version, packet);
    let read = one(version, &bytes).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
    if bare(packet, version) && !matches!(packet, Packet::Connect(_)) {
        assert_eq!(&read, packet);
    }
    assert_eq!(bytes_of(version, &read), bytes);
    let header = frame(&bytes, usize::MAX).unwrap().unwrap();
    let body = Bytes::from(bytes).slice(header.header_len..);
    for len in 0..body.len() {
        // Whatever is missing, no panic; most of it is refused.
        let _ = decode(version, header.first, body.slice(..len));
    }
}

/// The rule of MQTT 5 §4.7 in other words, on lists of levels.
fn selects(filter: &[&[u8]], name: &[&[u8]]) -> bool {
    match (filter, name) {
        ([b"#"], _) | ([], []) => true,
        ([first, filter @ ..], [level, name @ ..]) => {
            (first == b"+" || first == level) && selects(filter, name)
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn packets_are_read_as_they_were_written(version in version(), packet in packet()) {
        there_and_back(version, &packet);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        version in version(),
        first: u8,
        body in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        if let Ok(packet) = decode(version, first, body.into()) {
            let bytes = bytes_of(version, &packet);
            prop_assert_eq!(one(version, &bytes), Ok(packet));
        }
    }

    #[test]
    fn a_byte_that_changed_does_no_harm(
        version in version(),
        packet in packet(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = bytes_of(version, &packet);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let Ok(Some(header)) = frame(&bytes, bytes.len()) else { return Ok(()) };
        let whole = header.header_len..header.packet_len();
        if let Ok(packet) = decode(version, header.first, Bytes::from(bytes).slice(whole)) {
            let bytes = bytes_of(version, &packet);
            prop_assert_eq!(one(version, &bytes), Ok(packet));
        }
    }

    #[test]
    fn filters_select_by_the_rule(filter in filter(), name in name()) {
        prop_assert_eq!(check_name(name.as_bytes()), Ok(()));
        prop_assert_eq!(check_filter(filter.as_bytes()), Ok(()));
        let (filter, name) = (filter.as_bytes(), name.as_bytes());
        let is_hidden = name[0] == b'$' && matches!(filter[0], b'+' | b'#');
        let lists: (Vec<&[u8]>, Vec<&[u8]>) = (levels(filter).collect(), levels(name).collect());
        prop_assert_eq!(matches(filter, name), !is_hidden && selects(&lists.0, &lists.1));
        // A name is a filter that selects itself.
        prop_assert_eq!(check_filter(name), Ok(()));
        prop_assert!(matches(name, name));
    }

    #[test]
    fn any_bytes_are_a_name_or_filter_or_none(bytes in bytes()) {
        let is_name = check_name(&bytes).is_ok();
        prop_assert!(!is_name || check_filter(&bytes).is_ok());
        if let Ok(parts) = parts(&bytes) {
            prop_assert_eq!(check_filter(parts.filter), Ok(()));
            prop_assert_eq!(parts.group.is_some(), bytes.starts_with(b"$share/"));
        }
    }

    #[test]
    fn properties_can_be_taken_apart(properties in properties(Ids::PUBLISH), number in 0_u8..0x2b) {
        let Some(id) = Id::from_number(number) else { return Ok(()) };
        let ids = Ids::new(&[id]);
        let (with, without) = (properties.only(ids), properties.without(ids));
        let total = with.as_bytes().len() + without.as_bytes().len();
        prop_assert_eq!(total, properties.as_bytes().len());
        prop_assert_eq!(with.has(id), properties.has(id));
        prop_assert!(!without.has(id));
        let mut again = Properties::NONE;
        for property in properties.iter() {
            again.push(property.id, property.value).unwrap();
        }
        prop_assert_eq!(again, properties);
    }
}
