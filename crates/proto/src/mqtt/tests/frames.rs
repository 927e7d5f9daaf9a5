//! Fixed headers and pieces of a stream.

use bytes::BytesMut;

use super::super::*;
use super::same;

/// The table of MQTT 5 §1.5.5 and of MQTT 3.1.1 §2.2.3.
#[test]
fn remaining_lengths_at_their_bounds() {
    let table: [(usize, &[u8]); 8] = [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\x01"),
        (2_097_151, b"\xff\xff\x7f"),
        (2_097_152, b"\x80\x80\x80\x01"),
        (268_435_455, b"\xff\xff\xff\x7f"),
    ];
    for (body_len, coded) in table {
        let mut input = vec![0x30];
        input.extend_from_slice(coded);
        let header = Header { first: 0x30, header_len: input.len(), body_len };
        assert_eq!(frame(&input, usize::MAX), Ok(Some(header)));
        assert!(header.is_minimal());
        for len in 0..input.len() {
            assert_eq!(frame(&input[..len], usize::MAX), Ok(None));
        }
        let total = header.packet_len();
        assert_eq!(frame(&input, total), Ok(Some(header)));
        let refused = frame(&input, total - 1).unwrap_err();
        assert_eq!(refused.reason, Reason::PACKET_TOO_LARGE);
    }
}

#[test]
fn headers_that_are_none() {
    for input in [&b"\x00"[..], b"\x0f\x00", b"\x30\xff\xff\xff\xff", b"\x30\x80\x80\x80\x80\x01"] {
        let refused = frame(input, usize::MAX).unwrap_err();
        assert_eq!(refused.reason, Reason::MALFORMED_PACKET, "{input:02x?}");
    }
}

/// MQTT-1.5.5-1 is of MQTT 5 alone.
#[test]
fn a_length_of_more_bytes_than_it_needs() {
    for (version, is_taken) in [(Version::V31, true), (Version::V311, true), (Version::V5, false)] {
        let mut input = BytesMut::from(&b"\xc0\x80\x80\x00"[..]);
        let packet = take(version, &mut input, 100);
        assert_eq!(packet == Ok(Some(Packet::PingReq)), is_taken, "{version}");
        assert_eq!(packet.is_err(), !is_taken);
    }
}

#[test]
fn packets_come_in_pieces() {
    let stream = b"\x30\x05\x00\x01a\x00x\xc0\x00\x30\x06\x00\x01b\x00yz\xe0\x00";
    for piece in 1..=stream.len() {
        let (mut input, mut packets) = (BytesMut::new(), Vec::new());
        for bytes in stream.chunks(piece) {
            input.extend_from_slice(bytes);
            while let Some(packet) = take(Version::V5, &mut input, 100).unwrap() {
                packets.push(packet);
            }
        }
        assert!(input.is_empty());
        assert_eq!(packets.len(), 4);
        assert_eq!(packets[1], Packet::PingReq);
        assert_eq!(packets[3], Packet::Disconnect(Disconnect::default()));
    }
}

#[test]
fn the_level_of_a_connect_is_known_though_it_is_refused() {
    assert_eq!(level_of(b"\x00\x04MQTT\x06\x02"), Some(6));
    assert_eq!(level_of(b"\x00\x06MQIsdp\x03"), Some(3));
    for body in [&b"\x00\x04MQTT"[..], b"\x00\x04mqtt\x04", b"", b"\x00"] {
        assert_eq!(level_of(body), None);
    }
}

/// Names and bounds of reason codes: MQTT 5 §2.4, MQTT 3.1.1 §3.2.2.3.
#[test]
fn return_codes_are_reason_codes() {
    for code in 0..=5 {
        assert_eq!(Reason::from_return_code(code).unwrap().return_code(), code);
    }
    assert_eq!(Reason::from_return_code(6), None);
    assert_eq!(Reason::QUOTA_EXCEEDED.return_code(), 3);
    assert_eq!(Reason::BANNED.return_code(), 5);
    let named = (0..=255).filter(|code| Reason(*code).name().is_some()).count();
    assert_eq!(named, 43);
    assert_eq!(Reason::QUOTA_EXCEEDED.to_string(), "Quota exceeded (0x97)");
    assert_eq!(Reason(0x7f).to_string(), "reason code 0x7f");
    for version in [Version::V31, Version::V311] {
        // MQTT-3.2.2-6: who is not let in has no session.
        let (session_present, reason) = (true, Reason::QUOTA_EXCEEDED);
        let ack = ConnAck { session_present, reason, ..ConnAck::default() };
        let bytes = super::bytes_of(version, &Packet::ConnAck(ack));
        assert_eq!(bytes, b"\x20\x02\x00\x03");
        same(version, &bytes);
    }
}
