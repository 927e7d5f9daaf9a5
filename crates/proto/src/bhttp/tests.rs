use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::Error;

fn field(name: &'static str, value: &'static str) -> (Bytes, Bytes) {
    (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes()))
}

/// The request of RFC 9292 §5.1 in known-length form, without content and trailers.
#[test]
fn a_request_has_the_layout_of_the_rfc() {
    let head = Request {
        method: Bytes::from_static(b"GET"),
        scheme: Bytes::from_static(b"https"),
        authority: Bytes::new(),
        path: Bytes::from_static(b"/hello.txt"),
        fields: vec![
            field("user-agent", "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"),
            field("host", "www.example.com"),
            field("accept-language", "en, mi"),
        ],
    };
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    assert_eq!(&bytes[..23], b"\x00\x03GET\x05https\x00\x0a/hello.txt");
    assert_eq!(&bytes[23..26], &[0x40, 0x6c, 0x0a]);
    assert_eq!(Request::decode(&bytes).unwrap(), head);
    bytes.extend([0, 0]);
    assert_eq!(Request::decode(&bytes).unwrap(), head, "explicit empty content and trailers");
}

#[test]
fn informational_responses_are_skipped() {
    let mut bytes = vec![1, 0x40, 102, 0];
    let head = Response { status: 200, fields: vec![field("server", "Apache")] };
    let mut last = Vec::new();
    head.encode(&mut last);
    bytes.extend(&last[1..]);
    assert_eq!(Response::decode(&bytes).unwrap(), head);
}

#[test]
fn what_could_smuggle_a_field_is_refused() {
    let refuse = |name: &'static str, value: &'static str| {
        let mut bytes = Vec::new();
        encode_fields(&vec![field(name, value)], &mut bytes);
        decode_fields(&bytes).unwrap_err()
    };
    assert!(matches!(refuse("Host", "x"), Error::Peer { .. }));
    assert!(matches!(refuse("a b", "x"), Error::Peer { .. }));
    assert!(matches!(refuse("", "x"), Error::Peer { .. }));
    assert!(matches!(refuse("a", "x\r\nb: c"), Error::Peer { value: 13, .. }));
}

#[test]
fn white_space_in_the_target_is_refused() {
    let head = Request {
        method: Bytes::from_static(b"GET"),
        scheme: Bytes::from_static(b"http"),
        authority: Bytes::from_static(b"a"),
        path: Bytes::from_static(b"/ HTTP/1.1\r\nx: y"),
        fields: Vec::new(),
    };
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    assert!(matches!(Request::decode(&bytes), Err(Error::Peer { value: 32, .. })));
}

#[test]
fn bounds_are_kept() {
    let many: Fields = (0..=MAX_FIELDS).map(|_| field("a", "b")).collect();
    let mut bytes = Vec::new();
    encode_fields(&many, &mut bytes);
    assert!(matches!(decode_fields(&bytes), Err(Error::Limit { limit: 512, .. })));
    let large = vec![0; MAX_HEAD_BYTES + 1];
    assert!(matches!(Request::decode(&large), Err(Error::Limit { .. })));
}

proptest! {
    #[test]
    fn heads_round_trip(
        status in 200_u16..600,
        fields in proptest::collection::vec(("[a-z-]{1,20}", "[ -~]{0,40}"), 0..20),
    ) {
        let fields = fields.into_iter().map(|(n, v)| (Bytes::from(n), Bytes::from(v))).collect();
        let head = Response { status, fields };
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        prop_assert_eq!(Response::decode(&bytes).unwrap(), head);
        for cut in 0..bytes.len() {
            prop_assert!(Response::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::decode(&bytes);
        let _ = Response::decode(&bytes);
        let _ = decode_fields(&bytes);
    }
}
