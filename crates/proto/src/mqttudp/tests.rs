//! Datagrams, their records and their signatures.

use proptest::prelude::*;

use super::*;
use crate::Error;

const KEY: &[u8] = b"signature key";

fn encoded(packet: &Packet<'_>, records: &Records, signer: &Signer<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(records, signer, &mut out).unwrap();
    out
}

fn signer(sha256: bool, md5: bool) -> Signer<'static> {
    Signer { key: KEY, sha256, md5 }
}

#[test]
fn packets_are_on_the_wire_as_others_send_them() {
    let none = Records::default();
    let cases: [(&[u8], Packet<'_>); 6] = [
        (b"\x30\x09\x00\x03a/b21.5", Packet::publish("a/b", b"21.5")),
        (b"\x80\x06\x00\x03a/b\x00", Packet::Subscribe { topic: "a/b" }),
        (b"\x40\x00", Packet::PubAck { qos: 0 }),
        (b"\x44\x00", Packet::PubAck { qos: 2 }),
        (b"\xc0\x00", Packet::PingReq),
        (b"\xd0\x00", Packet::PingResp),
    ];
    for (bytes, packet) in cases {
        assert_eq!(encoded(&packet, &none, &Signer::NONE), bytes);
        let datagram = Datagram::decode(bytes).unwrap();
        assert_eq!((datagram.packet, datagram.records), (packet, none));
        assert_eq!(datagram.verify(KEY), Signature::Missing);
    }
    let flagged = Publish { topic: "t", payload: b"", qos: 1, retain: true, dup: true };
    assert_eq!(encoded(&Packet::Publish(flagged), &none, &Signer::NONE), b"\x3b\x03\x00\x01t");
    // Some leave the requested QoS out.
    let subscribe = Datagram::decode(b"\x80\x05\x00\x03a/b").unwrap();
    assert_eq!(subscribe.packet, Packet::Subscribe { topic: "a/b" });
}

#[test]
fn records_stand_behind_the_packet() {
    let records = Records {
        number: Some(0x0102_0304),
        reply_to: Some(5),
        sent_at_ms: Some(0x0001_8bcf_e568_0000),
        measured_at_ms: Some(1),
    };
    let bytes = encoded(&Packet::PubAck { qos: 1 }, &records, &Signer::NONE);
    let expected = b"\x42\x00n\x04\x01\x02\x03\x04r\x04\x00\x00\x00\x05\
        p\x08\x00\x01\x8b\xcf\xe5\x68\x00\x00m\x08\x00\x00\x00\x00\x00\x00\x00\x01";
    assert_eq!(bytes, expected);
    assert_eq!(Datagram::decode(&bytes).unwrap().records, records);
    // Others are passed over, also where their length has two octets.
    let long = [&b"\xc0\x00x\x00y\x81\x01"[..], &[7; 129], b"n\x04\x00\x00\x00\x09"].concat();
    let expected = Records { number: Some(9), ..Records::default() };
    assert_eq!(Datagram::decode(&long).unwrap().records, expected);
}

#[test]
fn malformed_datagrams_are_refused() {
    let truncated: [&[u8]; 9] = [
        b"",
        b"\x30",
        b"\x30\x80",
        b"\x30\x0a\x00\x03a/b21.5",
        b"\x30\x01\x00",
        b"\x30\x04\x00\x03a/",
        b"\xc0\x00n",
        b"\xc0\x00n\x04\x00\x00\x00",
        b"\x80\x00",
    ];
    for bytes in truncated {
        let error = Datagram::decode(bytes).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. }), "{bytes:02x?}: {error}");
    }
    let wrong: [&[u8]; 13] = [
        b"\x30\x80\x80\x80\x80\x00",
        b"\x36\x05\x00\x03a/b",
        b"\x30\x03\x00\x01\xff",
        b"\x80\x05\x00\x01a\x00\x00",
        b"\xc0\x01\x00",
        b"\x40\x02\x00\x01",
        b"\x10\x00",
        b"\x50\x00",
        b"\xc0\x00n\x03\x00\x00\x00",
        b"\xc0\x00p\x04\x00\x00\x00\x00",
        b"\xc0\x00n\x04\x00\x00\x00\x01n\x04\x00\x00\x00\x01",
        b"\xc0\x00X\x00",
        b"\xc0\x00s\x0f0123456789abcde",
    ];
    for bytes in wrong {
        let error = Datagram::decode(bytes).unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{bytes:02x?}: {error}");
    }
}

/// What Python's `hmac` says of the same octets.
#[test]
fn signatures_are_those_of_others() {
    let records = Records { number: Some(1), ..Records::default() };
    let bytes = encoded(&Packet::publish("a/b", b"21.5"), &records, &signer(false, true));
    let (signed, tail) = bytes.split_at(bytes.len() - 18);
    assert_eq!(signed, b"\x30\x09\x00\x03a/b21.5n\x04\x00\x00\x00\x01");
    assert_eq!(tail, b"s\x10\x7d\xb0\x36\x02\xcf\x48\x4c\xf1\xd4\xe3\x42\xae\xcc\xad\xc8\x38");
}

#[test]
fn a_signature_is_of_all_that_stands_before_it() {
    let records = Records { number: Some(1), ..Records::default() };
    for (sha256, md5, expected) in [
        (false, false, Signature::Missing),
        (false, true, Signature::Md5),
        (true, false, Signature::Sha256),
        (true, true, Signature::Sha256),
    ] {
        let bytes = encoded(&Packet::publish("a/b", b"x"), &records, &signer(sha256, md5));
        let datagram = Datagram::decode(&bytes).unwrap();
        assert_eq!(datagram.verify(KEY), expected);
        if expected == Signature::Missing {
            continue;
        }
        assert_eq!(datagram.verify(b"another key"), Signature::Wrong);
        // Where both are there the stronger decides, and what is behind it is the other alone.
        let covered = if sha256 { bytes.len() - 18 * usize::from(md5) } else { bytes.len() };
        for at in 0..covered {
            let mut other = bytes.clone();
            other[at] ^= 1;
            if let Ok(datagram) = Datagram::decode(&other) {
                assert!(datagram.verify(KEY) < Signature::Md5, "octet {at} of {covered}");
            }
        }
        let behind = [&bytes[..], b"z\x00"].concat();
        let what = "a record behind the signature";
        assert_eq!(Datagram::decode(&behind), Err(Error::Peer { what, value: b'z'.into() }));
    }
}

#[test]
fn packets_over_127_octets_have_longer_lengths() {
    for (payload, head) in [(124, 2), (125, 3), (16_380, 3), (16_381, 4), (65_500, 4)] {
        let payload = vec![7; payload];
        let packet = Packet::publish("t", &payload);
        let bytes = encoded(&packet, &Records::default(), &Signer::NONE);
        assert_eq!(bytes.len(), head + 3 + payload.len());
        assert_eq!(Datagram::decode(&bytes).unwrap().packet, packet);
    }
}

#[test]
fn what_no_datagram_can_hold_is_refused_and_leaves_nothing() {
    let (long, longer) = ("t".repeat(0x1_0000), vec![7; 65_500]);
    let mut out = b"before".to_vec();
    let both = signer(true, true);
    let none = Records::default();
    for (packet, records) in [
        (Packet::publish(&long, b""), none),
        (Packet::publish("t", &longer), Records { number: Some(1), ..none }),
        (Packet::PubAck { qos: 3 }, none),
    ] {
        assert!(packet.encode(&records, &both, &mut out).is_err());
        assert_eq!(out, b"before");
    }
}

#[test]
fn numbers_go_round() {
    for (before, after, newer) in [
        (1, 2, true),
        (2, 2, false),
        (2, 1, false),
        (u32::MAX, 0, true),
        (0, u32::MAX, false),
        (0, 0x7fff_ffff, true),
        (0, 0x8000_0000, false),
    ] {
        assert_eq!(is_newer(before, after), newer, "{before} {after}");
    }
}

fn any_records() -> impl Strategy<Value = Records> {
    type All = (Option<u32>, Option<u32>, Option<u64>, Option<u64>);
    any::<All>().prop_map(|(number, reply_to, sent_at_ms, measured_at_ms)| Records {
        number,
        reply_to,
        sent_at_ms,
        measured_at_ms,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn datagrams_round_trip(
        (kind, qos, retain, dup) in (0..5_u8, 0..=MAX_QOS, any::<bool>(), any::<bool>()),
        (topic, payload) in ("[a-z/é]{0,200}", proptest::collection::vec(any::<u8>(), 0..400)),
        (records, sha256, md5) in (any_records(), any::<bool>(), any::<bool>()),
    ) {
        let packet = match kind {
            0 => Packet::Subscribe { topic: &topic },
            1 => Packet::PubAck { qos },
            2 => Packet::PingReq,
            3 => Packet::PingResp,
            _ => Packet::Publish(Publish { topic: &topic, payload: &payload, qos, retain, dup }),
        };
        let bytes = encoded(&packet, &records, &signer(sha256, md5));
        let datagram = Datagram::decode(&bytes).unwrap();
        prop_assert_eq!((datagram.packet, datagram.records), (packet, records));
        let expected = match (sha256, md5) {
            (true, _) => Signature::Sha256,
            (false, true) => Signature::Md5,
            (false, false) => Signature::Missing,
        };
        prop_assert_eq!(datagram.verify(KEY), expected);
    }

    #[test]
    fn no_bytes_panic(
        first in any::<u8>(),
        body in proptest::collection::vec(any::<u8>(), 0..100),
        tail in proptest::collection::vec((any::<u8>(), 0..20_u8), 0..6),
    ) {
        let tail: Vec<u8> = tail
            .iter()
            .flat_map(|(tag, len)| [&[*tag, *len], &vec![1; usize::from(*len)][..]].concat())
            .collect();
        let len = u8::try_from(body.len()).unwrap();
        for bytes in [[&[first, len], &body[..], &tail].concat(), body.clone()] {
            if let Ok(datagram) = Datagram::decode(&bytes) {
                let _ = datagram.verify(KEY);
                let again = encoded(&datagram.packet, &datagram.records, &Signer::NONE);
                let same = Datagram::decode(&again).unwrap();
                prop_assert_eq!((same.packet, same.records), (datagram.packet, datagram.records));
            }
        }
    }
}
