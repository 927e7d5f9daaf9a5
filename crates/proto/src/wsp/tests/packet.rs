//! PDUs and status codes.

use proptest::prelude::*;

use crate::Error;
use crate::wsp::packet::{Method, Pdu, decode, encode};
use crate::wsp::reader::{Reader, uintvar};
use crate::wsp::status;

fn encoded(tid: u8, pdu: &Pdu<'_>) -> Vec<u8> {
    let mut room = vec![0; 4096];
    let len = encode(tid, pdu, &mut room).unwrap();
    room.truncate(len);
    room
}

/// WAP-230 §8.1.2: 0x87A5 is 0x82 0x8F 0x25 as a uintvar.
#[test]
fn uintvars_are_those_of_the_clause() {
    let cases: [(u32, &[u8]); 6] = [
        (0, &[0]),
        (0x7f, &[0x7f]),
        (0x80, &[0x81, 0]),
        (0x87a5, &[0x82, 0x8f, 0x25]),
        (0x0fff_ffff, &[0xff, 0xff, 0xff, 0x7f]),
        (u32::MAX, &[0x8f, 0xff, 0xff, 0xff, 0x7f]),
    ];
    for (value, bytes) in cases {
        assert_eq!(uintvar(value, &mut [0; 5]), bytes);
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.uintvar("a test"), Ok(value));
        assert!(reader.is_empty());
    }
}

#[test]
fn uintvars_over_32_bits_or_5_octets_are_refused() {
    for bytes in [&[0x90, 0x80, 0x80, 0x80, 0][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0]] {
        assert!(matches!(Reader::new(bytes).uintvar("a test"), Err(Error::Peer { .. })));
    }
    for bytes in [&[][..], &[0x80], &[0x81, 0x80, 0x80, 0x80]] {
        let truncated = Err(Error::Truncated { what: "a test" });
        assert_eq!(Reader::new(bytes).uintvar("a test"), truncated);
    }
}

/// WAP-230 §8.2.3: the layout of Get, Post and Reply.
#[test]
fn pdus_have_the_layout_of_the_clauses() {
    let get =
        Pdu::Request { method: Method::Get, uri: b"http://h/", headers: b"\x80\x88", body: b"" };
    assert_eq!(encoded(1, &get), b"\x01\x40\x09http://h/\x80\x88");
    let post =
        Pdu::Request { method: Method::Post, uri: b"http://h/", headers: b"\xa8", body: b"<a/>" };
    assert_eq!(encoded(0xff, &post), b"\xff\x60\x09\x01http://h/\xa8<a/>");
    let reply = Pdu::Reply { status: 0x20, headers: b"\x94", body: b"deck" };
    assert_eq!(encoded(1, &reply), b"\x01\x04\x20\x01\x94deck");
    let push = Pdu::Push { headers: b"\xae", body: b"x" };
    assert_eq!(encoded(2, &push), b"\x02\x06\x01\xaex");
}

#[test]
fn what_needs_a_session_is_refused() {
    // Connect, ConfirmedPush, an extended method and a reserved type.
    for pdu_type in [0x00, 0x01, 0x07, 0x45, 0x50, 0x62, 0x70, 0x80, 0xff] {
        assert!(decode(&[1, pdu_type, 0, 0, 0]).is_err(), "{pdu_type:#x}");
    }
}

#[test]
fn lengths_beyond_the_datagram_are_refused() {
    for bytes in [
        &[][..],
        &[1],
        b"\x01\x40",
        b"\x01\x40\x0ahttp://h/",
        b"\x01\x60\x01\x05u\x00",
        b"\x01\x04\x20\x02\x80",
        b"\x01\x60\x8f\xff\xff\xff\x7f\x8f\xff\xff\xff\x7fu",
    ] {
        assert!(decode(bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn too_little_room_says_how_much_is_needed() {
    let reply = Pdu::Reply { status: 0x20, headers: b"\x94", body: b"deck" };
    for room in 0..9 {
        let limit = room as u64;
        let needed = Error::Limit { what: "a datagram of WSP in bytes", value: 9, limit };
        assert_eq!(encode(1, &reply, &mut vec![0; room]), Err(needed));
    }
    let body = Pdu::Request { method: Method::Get, uri: b"u", headers: b"", body: b"x" };
    assert!(matches!(encode(1, &body, &mut [0; 64]), Err(Error::Caller { .. })));
}

/// WAP-230 table 36.
#[test]
fn statuses_are_those_of_the_table() {
    let pairs = [(0x10, 100), (0x20, 200), (0x26, 206), (0x37, 307), (0x4f, 415), (0x50, 416)];
    for (octet, http) in pairs.into_iter().chain([(0x51, 417), (0x60, 500), (0x65, 505)]) {
        assert_eq!(status::of_http(http), Some(octet), "{http}");
        assert_eq!(status::to_http(octet), Some(http), "{octet:#x}");
    }
    let known: Vec<u16> = (0..=255).filter_map(status::to_http).collect();
    assert_eq!(known.len(), 40);
    for http in known {
        assert_eq!(status::of_http(http).and_then(status::to_http), Some(http));
    }
    let cases =
        [(199, 0x10), (226, 0x20), (308, 0x30), (306, 0x30), (429, 0x40), (599, 0x60), (7, 0x60)];
    for (http, octet) in cases {
        assert_eq!(status::nearest(http), octet, "{http}");
    }
}

fn any_pdu() -> impl Strategy<Value = (u8, u8, Vec<u8>, Vec<u8>, Vec<u8>)> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    (any::<u8>(), 0..9_u8, bytes(), bytes(), bytes())
}

proptest! {
    #[test]
    fn pdus_round_trip((tid, kind, uri, headers, body) in any_pdu()) {
        let pdu = match kind {
            0 => Pdu::Reply { status: tid, headers: &headers, body: &body },
            1 => Pdu::Push { headers: &headers, body: &body },
            kind => {
                let method = Method::ALL[usize::from(kind) - 2];
                let body = if method.has_body() { &body[..] } else { &[] };
                Pdu::Request { method, uri: &uri, headers: &headers, body }
            }
        };
        let datagram = encoded(tid, &pdu);
        prop_assert_eq!(decode(&datagram), Ok((tid, pdu)));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok((tid, pdu)) = decode(&bytes) {
            let mut room = vec![0; 512];
            let len = encode(tid, &pdu, &mut room).unwrap();
            prop_assert_eq!(decode(&room[..len]), Ok((tid, pdu)));
        }
    }
}
