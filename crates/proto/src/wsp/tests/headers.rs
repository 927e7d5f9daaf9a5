//! Headers: vectors by hand, what round trips, and what is hostile.

use proptest::prelude::*;

use crate::Error;
use crate::wsp::headers::EncodingVersion::{V1_1, V1_2, V1_3, V1_4};
use crate::wsp::headers::{
    Decoded, Encoder, EncodingVersion, Field, MAX_FIELDS, Rules, decode, decode_with_content_type,
    encode, encode_content_type,
};

fn rules(version: EncodingVersion) -> Rules {
    Rules { version, body_bytes: Some(500) }
}

fn encoded(version: EncodingVersion, name: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode(rules(version), name, value.as_bytes(), &mut out).unwrap();
    out
}

/// Names and values; what was skipped must be said.
fn fields(bytes: &[u8], skipped: usize) -> Vec<(String, String)> {
    let decoded = decode(rules(V1_4), bytes).unwrap();
    assert_eq!(decoded.skipped, skipped, "{bytes:02x?}");
    let text = |value| String::from_utf8_lossy(value).into_owned();
    decoded.fields.iter().map(|field| (field.name.clone(), text(&field.value))).collect()
}

fn joined(bytes: &[u8]) -> String {
    let values: Vec<String> = fields(bytes, 0).into_iter().map(|(_, value)| value).collect();
    values.join(", ")
}

/// Encodes, compares, and decodes again to `back`.
fn check(version: EncodingVersion, name: &str, value: &str, bytes: &[u8], back: &str) {
    let encoded = encoded(version, name, value);
    assert_eq!(encoded, bytes, "{name}: {value} is {encoded:02x?}");
    assert_eq!(joined(bytes), back, "{name}: {value}");
}

/// A field and its value behind its count of at most 30.
fn with_count(code: u8, value: &[u8]) -> Vec<u8> {
    assert!(value.len() < 31);
    [&[code, u8::try_from(value.len()).unwrap()], value].concat()
}

/// The same where the text stays as it is.
fn stays(version: EncodingVersion, name: &str, value: &str, bytes: &[u8]) {
    check(version, name, value, bytes, value);
}

/// WAP-230 §8.4.7: examples of primitive values, structured values and header encodings.
#[test]
fn examples_of_the_specification() {
    stays(V1_2, "Accept", "application/vnd.wap.wmlc", b"\x80\x94");
    let wmlc = "application/vnd.wap.wmlc; q=0.9";
    stays(V1_2, "Accept", wmlc, b"\x80\x03\x94\x80\x5b");
    stays(V1_2, "Accept", "text/x-new", b"\x80text/x-new\0");
    stays(V1_2, "Accept-Language", "en; q=0.7", b"\x83\x02\x99\x47");
    check(V1_2, "Accept-Language", "en, sv", b"\x83\x99\x83\xf0", "en, sv");
    // Thu, 23 Apr 1998 13:41:37 GMT is 0x353f4511.
    let date = "Thu, 23 Apr 1998 13:41:37 GMT";
    stays(V1_2, "Date", date, b"\x92\x04\x35\x3f\x45\x11");
    stays(V1_2, "Accept-Ranges", "bytes", b"\x84\x81");
    stays(V1_2, "X-Unknown", "a value", b"X-Unknown\0a value\0");
}

/// WAP-230 §8.4.2.3: two digits are times 100 plus 1, three times 1000 plus 100.
#[test]
fn weights() {
    let cases: [(&str, &[u8]); 6] = [
        ("0", b"\x01"),
        ("0.1", b"\x0b"),
        ("0.99", b"\x64"),
        ("0.333", b"\x83\x31"),
        ("0.001", b"\x65"),
        ("0.999", b"\x88\x4b"),
    ];
    for (weight, octets) in cases {
        let count = u8::try_from(octets.len() + 1).unwrap();
        let bytes = [&[0x83, count, 0x99], octets].concat();
        stays(V1_2, "Accept-Language", &format!("en; q={weight}"), &bytes);
    }
    for one in ["en;q=1", "en; q=1.000", "en"] {
        check(V1_2, "Accept-Language", one, b"\x83\x99", "en");
    }
    // A weight that is none stays text.
    for wrong in ["en;q=2", "en;q=0.1234", "en;q=", "en;q=-1"] {
        let bytes = [b"Accept-Language\0", wrong.as_bytes(), b"\0"].concat();
        stays(V1_2, "Accept-Language", wrong, &bytes);
    }
    for wrong in [&b"\x83\x02\x99\x00"[..], b"\x83\x03\x99\x88\x4c", b"\x83\x03\x99\x01\x01"] {
        assert!(fields(wrong, 1).is_empty(), "{wrong:02x?}");
    }
}

#[test]
fn media_types_and_their_parameters() {
    let cases: [(EncodingVersion, &str, &[u8]); 11] = [
        (V1_2, "text/html", b"\x91\x82"),
        (V1_2, "text/plain; charset=utf-8", b"\x91\x00\x83\x81\xea"),
        (V1_2, "text/xml; charset=utf-16", b"\x91\x00\xa8\x81\x02\x03\xf7"),
        (V1_2, "text/xml; charset=x-own", b"\x91\x00\xa8\x81x-own\0"),
        (V1_2, "application/vnd.wap.wbxml", b"\x91\xa9"),
        (V1_2, "application/soap+xml", b"\x91application/soap+xml\0"),
        (V1_1, "text/xml", b"\x91text/xml\0"),
        (V1_3, "application/xhtml+xml", b"\x91application/xhtml+xml\0"),
        (V1_4, "application/xhtml+xml", b"\x91\xbb"),
        (V1_2, "multipart/mixed; boundary=\"a b\"", b"\x91\x00\x8cboundary\0\"a b\0"),
        (V1_2, "text/plain; format=flowed; level=1.2", b"\x91\x00\x83format\0flowed\0\x82\x92"),
    ];
    for (version, media, bytes) in cases {
        let counted = match bytes.get(1) {
            Some(0) => with_count(0x91, &bytes[2..]),
            _ => bytes.to_vec(),
        };
        stays(version, "Content-Type", media, &counted);
    }
    let related = "multipart/related; type=\"text/xml\"; start=\"<a@b>\"";
    let body = b"multipart/related\0\x89\xa8\x8a<a@b>\0";
    stays(V1_2, "Content-Type", related, &with_count(0x91, body));
    let body = b"multipart/related\0\x89\xa8\x99\"<a@b>\0";
    stays(V1_4, "Content-Type", related, &with_count(0x91, body));
}

#[test]
fn a_long_value_has_its_length_behind_a_quote() {
    let media = "application/soap+xml; action=\"urn:example:getString\"";
    let body = b"application/soap+xml\0action\0\"urn:example:getString\0";
    let bytes = [&[0x91, 31, u8::try_from(body.len()).unwrap()], &body[..]].concat();
    stays(V1_2, "Content-Type", media, &bytes);
}

#[test]
fn content_types_before_the_headers() {
    let mut out = Vec::new();
    encode_content_type(Rules::DEFAULT, b"text/xml; charset=utf-8", &mut out).unwrap();
    encode(Rules::DEFAULT, "Content-Length", b"508", &mut out).unwrap();
    assert_eq!(out, b"\x03\xa8\x81\xea\x8d\x02\x01\xfc");
    let decoded = decode_with_content_type(Rules::DEFAULT, &out).unwrap();
    assert_eq!(decoded.fields[0].name, "Content-Type");
    assert_eq!(decoded.fields[0].value, b"text/xml; charset=utf-8");
    assert_eq!(decoded.fields[1].value, b"508");
    for nothing in [&b""[..], b"\x80"] {
        let decoded = decode_with_content_type(Rules::DEFAULT, nothing);
        assert_eq!(decoded, Ok(Decoded::default()));
    }
    let unknown = decode_with_content_type(Rules::DEFAULT, b"\xff\x8d\x85").unwrap();
    assert_eq!((unknown.fields.len(), unknown.skipped), (1, 1));
    let twice = decode_with_content_type(Rules::DEFAULT, b"\xa8Content-Type\0text/html\0\x8d\x85");
    let twice = twice.unwrap();
    assert_eq!(twice.fields.len(), 2);
    assert_eq!(twice.fields[0].value, b"text/xml");
    for wrong in [&b"text"[..], b"text/", b"a b/c", b""] {
        let before = out.clone();
        assert!(encode_content_type(Rules::DEFAULT, wrong, &mut out).is_err(), "{wrong:?}");
        assert_eq!(out, before);
    }
}

#[test]
fn numbers_dates_and_texts() {
    stays(V1_2, "Content-Length", "0", b"\x8d\x80");
    stays(V1_2, "Content-Length", "127", b"\x8d\xff");
    stays(V1_2, "Content-Length", "128", b"\x8d\x01\x80");
    stays(V1_2, "Content-Length", "65536", b"\x8d\x03\x01\x00\x00");
    stays(V1_2, "Age", "010", b"Age\x00010\0");
    stays(V1_2, "Expires", "0", b"Expires\x000\0");
    stays(V1_2, "Expires", "Thu, 01 Jan 1970 00:00:00 GMT", b"\x94\x01\x00");
    stays(V1_2, "If-Range", "\"tag\"", b"If-Range\0\"tag\"\0");
    stays(V1_2, "If-Range", "Thu, 01 Jan 1970 00:00:02 GMT", b"\x9a\x01\x02");
    stays(V1_2, "ETag", "W/\"a\"", b"\x93W/\"a\"\0");
    stays(V1_2, "Host", "example.org", b"\x96example.org\0");
    stays(V1_2, "User-Agent", "a/1 (b; c)", b"\xa9a/1 (b; c)\0");
    stays(V1_2, "Server", "", b"\xa6\0");
    stays(V1_3, "Content-ID", "\"<a@b>\"", b"\xc0\"<a@b>\0");
    let high = "Server\u{20ac}";
    let bytes = [b"\xa6", high.as_bytes(), b"\0"].concat();
    stays(V1_2, "Server", high, &bytes);
    stays(V1_2, "Server", "\u{20ac}", b"\xa6\x7f\xe2\x82\xac\0");
    stays(V1_3, "X-Wap-Tod", "Thu, 01 Jan 1970 00:00:00 GMT", b"\xbf\x01\x00");
    stays(V1_3, "Encoding-Version", "1.3", b"\xc3\x93");
    stays(V1_3, "Encoding-Version", "2", b"\xc3\xaf");
}

#[test]
fn names_and_lists() {
    stays(V1_2, "Content-Encoding", "gzip", b"\x8b\x80");
    stays(V1_2, "Content-Encoding", "br", b"\x8bbr\0");
    check(V1_2, "Accept-Encoding", "gzip,deflate", b"\x82\x80\x82\x82", "gzip, deflate");
    stays(V1_3, "Accept-Encoding", "gzip; q=0.5", b"\xbc\x02\x80\x33");
    stays(V1_3, "Accept-Encoding", "*; q=0", b"\xbc\x02\x83\x01");
    stays(V1_2, "Accept-Encoding", "gzip;q=0.5", b"Accept-Encoding\0gzip;q=0.5\0");
    stays(V1_2, "Accept-Charset", "utf-8", b"\x81\xea");
    stays(V1_3, "Accept-Charset", "utf-16", b"\xbb\x03\x02\x03\xf7");
    stays(V1_3, "Accept-Charset", "*; q=0.5", b"\xbb\x02\x80\x33");
    stays(V1_2, "Content-Language", "fo", b"\x8c\x01\x82");
    stays(V1_2, "Accept-Language", "rm", b"\x83\x02\x01\x8c");
    stays(V1_2, "Content-Language", "en-GB", b"\x8cen-GB\0");
    stays(V1_2, "Allow", "GET", b"\x86\xc0");
    check(V1_2, "Allow", "PATCH, PUT", b"Allow\0PATCH\0\x86\xe1", "PATCH, PUT");
    stays(V1_2, "Connection", "close", b"\x89\x80");
    stays(V1_2, "Transfer-Encoding", "chunked", b"\xa7\x80");
    stays(V1_2, "Vary", "Accept-Language", b"\xaa\x83");
    stays(V1_2, "Vary", "*", b"\xaa*\0");
    stays(V1_3, "Trailer", "ETag", b"\xba\x93");
    stays(V1_3, "Expect", "100-continue", b"\xb8\x80");
    stays(V1_3, "TE", "trailers", b"\xb9\x81");
    stays(V1_3, "TE", "deflate; q=0.5", b"\xb9\x03\x86\x80\x33");
    stays(V1_2, "TE", "trailers", b"TE\0trailers\0");
    stays(V1_2, "X-Wap-Application-Id", "x-wap-application:mms.ua", b"\xaf\x84");
    stays(V1_2, "Push-Flag", "3", b"\xb4\x83");
    check(V1_2, "accept-LANGUAGE", "EN", b"\x83\x99", "en");
}

#[test]
fn directives_ranges_and_warnings() {
    stays(V1_3, "Cache-Control", "no-cache", b"\xbd\x80");
    stays(V1_2, "Cache-Control", "max-age=3600", b"\x88\x04\x82\x02\x0e\x10");
    stays(V1_4, "Cache-Control", "s-maxage=60", b"\xc7\x02\x8b\xbc");
    stays(V1_2, "Cache-Control", "s-maxage=60", b"Cache-Control\0s-maxage=60\0");
    stays(V1_2, "Cache-Control", "private=\"ETag, X-A\"", b"\x88\x06\x87\x93X-A\0");
    stays(V1_2, "Cache-Control", "immutable", b"\x88immutable\0");
    stays(V1_2, "Cache-Control", "a=b", b"Cache-Control\0a=b\0");
    check(V1_2, "Cache-Control", "no-store,max-stale", b"\x88\x81\x88\x83", "no-store, max-stale");
    stays(V1_2, "Pragma", "no-cache", b"\x9f\x80");
    stays(V1_2, "Pragma", "a=b", b"\x9f\x04a\0b\0");
    stays(V1_2, "Range", "bytes=0-499", b"\xa3\x04\x80\x00\x83\x73");
    stays(V1_2, "Range", "bytes=500-", b"\xa3\x03\x80\x83\x74");
    stays(V1_2, "Range", "bytes=-1", b"\xa3\x02\x81\x01");
    stays(V1_2, "Range", "bytes=0-1,5-6", b"Range\0bytes=0-1,5-6\0");
    // 500 bytes of data, as the rules here have it.
    stays(V1_2, "Content-Range", "bytes 0-499/1234", b"\x90\x03\x00\x89\x52");
    stays(V1_3, "Content-Range", "bytes 1-500/*", b"\xbe\x02\x01\x80");
    stays(V1_2, "Content-Range", "bytes 0-4/5", b"Content-Range\0bytes 0-4/5\0");
    stays(V1_2, "Retry-After", "120", b"\xa5\x02\x81\xf8");
    stays(V1_2, "Retry-After", "Thu, 01 Jan 1970 00:00:02 GMT", b"\xa5\x03\x80\x01\x02");
    stays(V1_2, "Warning", "110 - \"stale\"", b"\xac\x09\x8a-\0stale\0");
    stays(V1_2, "Warning", "299 - \"x\"", b"Warning\x00299 - \"x\"\0");
    assert_eq!(joined(b"\xac\x8b"), "111 - \"\"");
    assert_eq!(joined(b"\xb7\x91"), "101 - \"used stale profile\"");
    stays(V1_2, "Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==", &[b"\x8f\x10", &[0; 16][..]].concat());
    check(
        V1_2,
        "Content-Disposition",
        "attachment; filename=\"a b.txt\"",
        b"\xae\x0a\x81\x86a b.txt\0",
        "attachment; filename=\"a b.txt\"",
    );
}

#[test]
fn authentication() {
    // RFC 7617 §2: Aladdin, open sesame.
    stays(
        V1_2,
        "Authorization",
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        b"\x87\x15\x80Aladdin\0open sesame\0",
    );
    stays(V1_2, "Authorization", "Bearer abc=", b"Authorization\0Bearer abc=\0");
    let digest = "Digest username=\"a\", nc=00000001";
    let body = b"Digest\0username\0\"a\0nc\x0000000001\0";
    let bytes = [&[0x87, 31, u8::try_from(body.len()).unwrap()], &body[..]].concat();
    stays(V1_2, "Authorization", digest, &bytes);
    stays(V1_2, "WWW-Authenticate", "Basic realm=\"a b\"", b"\xad\x05\x80a b\0");
    stays(
        V1_2,
        "Proxy-Authenticate",
        "Digest realm=\"r\", stale=true",
        b"\xa0\x14Digest\0r\0stale\0true\0",
    );
    let two = "Basic realm=\"a\", Digest realm=\"b\"";
    let bytes = [b"WWW-Authenticate\0", two.as_bytes(), b"\0"].concat();
    stays(V1_2, "WWW-Authenticate", two, &bytes);
    // A colon in the name would move into the password.
    assert!(fields(b"\x87\x06\x80a:\0b\0", 1).is_empty());
}

#[test]
fn cookies_that_come_encoded() {
    assert_eq!(joined(b"\xc2\x0b\x90\x04a\0b\0\x04c\0d\0"), "a=b; c=d");
    assert_eq!(joined(b"\xc1\x0a\x90a\0b\0\x8f/\0\x90\0"), "a=b; path=\"/\"; secure");
}

/// As Kannel 1.4.5 sends them, and as the clause has them (§8.4.2.28).
#[test]
fn entity_tags_have_the_quotes_of_http() {
    let cases: [(&[u8], &str); 6] = [
        (b"\x93\"\"abc\"\0", "\"abc\""),
        (b"\x93\"abc\"\0", "\"abc\""),
        (b"\x93\"W/\"abc\"\0", "W/\"abc\""),
        (b"\x93\"\"\0", "\"\""),
        (b"\x99\"\", \"a\"\0", "\"\", \"a\""),
        (b"\x99*\0", "*"),
    ];
    for (bytes, tags) in cases {
        assert_eq!(joined(bytes), tags);
    }
}

#[test]
fn code_pages_are_shifted() {
    // A shift to page 2 in one octet, to page 200 in two, and back.
    let bytes = b"\x02\x80\x81\x7f\xc8\x80\x81\x01\x8d\x81";
    assert_eq!(fields(bytes, 2), [("Content-Length".to_owned(), "1".to_owned())]);
}

/// What is wrong in one header leaves the others as they are (§8.4.1.2).
#[test]
fn broken_headers_are_skipped() {
    let broken: [&[u8]; 12] = [
        b"\xff\x80",
        b"\x80\xff",
        b"\x92\x06\x01\x00\x00\x00\x00\x00",
        b"\x92\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01",
        b"\xa3\x03\x82\x01\x02",
        b"\xa3\x02\x80\x80",
        b"\x83\x00",
        b"\x88\x02\x81\x81",
        b"bad name\0x\0",
        b"name\0\x81",
        b"\x96a\rb\0",
        b"name\0a\nb\0",
    ];
    for bytes in broken {
        let around = [b"\x8d\x81", bytes, b"\x85\x82"].concat();
        let decoded = decode(rules(V1_4), &around).unwrap();
        let values: Vec<&[u8]> = decoded.fields.iter().map(|field| &field.value[..]).collect();
        assert_eq!(decoded.skipped, 1, "{bytes:02x?}");
        assert_eq!(values, [b"1", b"2"], "{bytes:02x?}");
    }
}

#[test]
fn headers_without_an_end_are_errors() {
    let cases: [&[u8]; 8] = [
        b"\x80",
        b"\x00",
        b"name",
        b"name\0",
        b"\x96host",
        b"\x80\x05\x80",
        b"\x80\x1f\x90\x80\x80\x80\x00",
        b"\x7f",
    ];
    for bytes in cases {
        assert!(decode(Rules::DEFAULT, bytes).is_err(), "{bytes:02x?}");
    }
    let many = b"\x8d\x80".repeat(MAX_FIELDS + 1);
    assert!(matches!(decode(Rules::DEFAULT, &many), Err(Error::Limit { .. })));
}

#[test]
fn what_is_no_field_is_the_callers_fault() {
    for (name, value) in [("", "a"), ("a b", "a"), ("a", "a\nb"), ("a", "\0"), ("a", "\x7f")] {
        let mut out = vec![1];
        let done = encode(Rules::DEFAULT, name, value.as_bytes(), &mut out);
        assert!(matches!(done, Err(Error::Caller { .. })), "{name:?}: {value:?}");
        assert_eq!(out, [1]);
    }
    let long = vec![b'a'; 70_000];
    assert!(matches!(
        encode(Rules::DEFAULT, "a", &long, &mut Vec::new()),
        Err(Error::Limit { .. })
    ));
}

/// Lists of more elements than there may be headers go as they are, and are read again.
#[test]
fn no_more_headers_are_put_than_are_read() {
    let accept = vec!["*"; MAX_FIELDS - 1].join(",");
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(Rules::DEFAULT, &mut bytes);
    encoder.put("Accept", accept.as_bytes()).unwrap();
    encoder.put("Accept-Language", b"en, de").unwrap();
    let refused = encoder.put("Allow", b"GET");
    assert!(matches!(refused, Err(Error::Limit { value: 513, limit: 512, .. })), "{refused:?}");
    let decoded = decode(Rules::DEFAULT, &bytes).unwrap();
    assert_eq!((decoded.fields.len(), decoded.skipped), (MAX_FIELDS, 0));
    assert_eq!(decoded.fields.last().unwrap().value, b"en, de");
    let longer = vec!["*"; MAX_FIELDS + 1].join(",");
    let once = encoded(V1_2, "Accept", &longer);
    assert_eq!(joined(&once), longer);
}

fn any_version() -> impl Strategy<Value = EncodingVersion> {
    proptest::sample::select(vec![V1_1, V1_2, V1_3, V1_4])
}

const NAMES: [&str; 24] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Age",
    "Allow",
    "Authorization",
    "Cache-Control",
    "Content-Disposition",
    "Content-Range",
    "Content-Type",
    "Date",
    "ETag",
    "Pragma",
    "Range",
    "Retry-After",
    "TE",
    "Transfer-Encoding",
    "Vary",
    "Warning",
    "WWW-Authenticate",
    "Set-Cookie",
    "Profile-Warning",
    "X-Own",
];

/// Whether fields that were read are read again once they are written.
fn come_back(rules: Rules, fields: &[Field]) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(rules, &mut bytes);
    for field in fields {
        encoder.put(&field.name, &field.value).unwrap();
    }
    let decoded = decode(rules, &bytes).unwrap();
    prop_assert_eq!(decoded.skipped, 0, "{:?} as {:02x?}", fields, bytes);
    Ok(())
}

/// A text that is empty behind its Quote.
#[test]
fn what_was_read_can_be_read_again() {
    let decoded = decode(rules(V1_4), b"\x8c\x7f\0").unwrap();
    assert_eq!(decoded.fields.len(), 1);
    come_back(rules(V1_4), &decoded.fields).unwrap();
}

proptest! {
    /// What was encoded and decoded once is canonical: it stays as it is from then on.
    #[test]
    fn what_is_canonical_stays(
        version in any_version(),
        name in proptest::sample::select(NAMES.to_vec()),
        value in "[a-z0-9*/=;,\" .:A-E\\\\-]{0,40}",
    ) {
        let once = encoded(version, name, &value);
        let decoded = decode(rules(version), &once).unwrap();
        prop_assert_eq!(decoded.skipped, 0, "{:02x?}", once);
        let mut again = Vec::new();
        for field in &decoded.fields {
            prop_assert!(field.name.eq_ignore_ascii_case(name));
            encode(rules(version), &field.name, &field.value, &mut again).unwrap();
        }
        prop_assert_eq!(decode(rules(version), &again).unwrap(), decoded);
    }

    #[test]
    fn numbers_and_dates_round_trip(number: u64, seconds in 0..253_402_300_800_i64) {
        let number = number.to_string();
        prop_assert_eq!(joined(&encoded(V1_2, "Content-Length", &number)), number);
        let date = crate::date::written(seconds).unwrap();
        let bytes = encoded(V1_2, "Date", &date);
        prop_assert!(bytes.len() <= 7);
        prop_assert_eq!(joined(&bytes), date);
    }

    /// No bytes panic, and what they are decoded to can be encoded.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), body in 0..9_u64) {
        let rules = Rules { version: V1_4, body_bytes: Some(body) };
        for decoded in [decode(rules, &bytes), decode_with_content_type(rules, &bytes)] {
            let fields = decoded.map(|decoded| decoded.fields).unwrap_or_default();
            come_back(rules, &fields)?;
        }
    }

    /// The same of headers whose names and lengths are mostly right.
    #[test]
    fn no_values_panic(
        headers in proptest::collection::vec(
            (0x80..0xc9_u8, proptest::collection::vec(any::<u8>(), 0..12)), 0..12,
        ),
    ) {
        let mut bytes = Vec::new();
        for (code, value) in &headers {
            bytes.extend([*code, u8::try_from(value.len()).unwrap()]);
            bytes.extend(value);
        }
        let decoded = decode(rules(V1_4), &bytes).unwrap();
        prop_assert_eq!(decoded.fields.len() + decoded.skipped, headers.len());
        come_back(rules(V1_4), &decoded.fields)?;
    }
}
