use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn request(head: &str) -> Result<RequestHead, Fault> {
    RequestHead::parse(head.as_bytes())
}

fn response(head: &str) -> Result<ResponseHead, Fault> {
    ResponseHead::parse(head.as_bytes(), b"GET")
}

fn values(fields: &[Field], name: &str) -> Vec<String> {
    let named = fields.iter().filter(|field| field.is(name));
    named.map(|field| String::from_utf8_lossy(&field.value).into_owned()).collect()
}

fn post(fields: &str) -> Result<RequestHead, Fault> {
    request(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
}

/// RFC 9112 §6.3 and RFC 9110 §8.6.
#[test]
fn a_request_has_one_framing_or_is_refused() {
    for (fields, framing, close) in [
        ("", Framing::None, false),
        ("Content-Length: 0\r\n", Framing::Length(0), false),
        ("Content-Length: 0005\r\n", Framing::Length(5), false),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", Framing::Length(5), false),
        ("Content-Length: 5, 5\r\n", Framing::Length(5), false),
        ("Transfer-Encoding: Chunked\r\n", Framing::Chunked, false),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", Framing::Chunked, true),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Framing::Chunked, true),
    ] {
        let head = post(fields).unwrap_or_else(|fault| panic!("{fields:?}: {fault}"));
        assert_eq!((head.framing, head.close), (framing, close), "{fields:?}");
        let lengths = values(&head.fields, "content-length");
        let codings = values(&head.fields, "transfer-encoding");
        match framing {
            Framing::Length(length) => assert_eq!(lengths, [length.to_string()]),
            _ => assert!(lengths.is_empty()),
        }
        assert_eq!(codings.len(), usize::from(framing == Framing::Chunked));
    }
    for (fields, status) in [
        ("Content-Length: 5, 6\r\n", 400),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 400),
        ("Content-Length: +5\r\n", 400),
        ("Content-Length: -5\r\n", 400),
        ("Content-Length: 0x5\r\n", 400),
        ("Content-Length: 5 5\r\n", 400),
        ("Content-Length:\r\n", 400),
        ("Content-Length: 5,\r\n", 400),
        ("Content-Length: 99999999999999999999\r\n", 400),
        ("Transfer-Encoding: identity\r\n", 400),
        ("Transfer-Encoding:\r\n", 400),
        ("Transfer-Encoding: chunked, gzip\r\n", 400),
        ("Transfer-Encoding: chunked, chunked\r\n", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: \"chunked\"\r\n", 400),
        ("Transfer-Encoding: xchunked\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501),
    ] {
        assert_eq!(post(fields).expect_err(fields).status, status, "{fields:?}");
    }
    let old = request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap_err().status, 400);
}

/// RFC 9112 §2.2, §3, §5.
#[test]
fn a_malformed_request_is_refused_with_its_status() {
    for (head, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [::1]:x\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\n", 505),
        ("GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /\r\nHost: a\r\n\r\n", 400),
        ("GET  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /\u{1} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("G\u{1}T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \r1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \u{7f}\r\n\r\n", 400),
    ] {
        let fault = request(head).expect_err(head);
        assert_eq!(fault.status, status, "{head:?}: {fault}");
        assert!(!fault.reason.contains(['\n', '\r', '\0']), "{fault}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(MAX_TARGET_BYTES));
    assert_eq!(request(&long).unwrap_err().status, 414);
    let many = "X: 1\r\n".repeat(crate::bhttp::MAX_FIELDS);
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n");
    assert_eq!(request(&many).unwrap_err().status, 431);
}

#[test]
fn a_sound_request_keeps_what_was_sent() {
    let text = "\r\nGET http://h/a?b={\"c\":[1]}&d=\u{e9}|#top HTTP/1.3\nHost: h\nX-A:  1 \n\
                x-a:\t2\nExpect: 100-continue\n\n";
    let head = request(text).unwrap();
    assert_eq!(head.target, "http://h/a?b={\"c\":[1]}&d=\u{e9}|".as_bytes());
    assert_eq!((head.minor, &head.method[..]), (1, &b"GET"[..]));
    assert_eq!(values(&head.fields, "x-a"), ["1", "2"]);
    assert_eq!(head.fields[1].name, "X-A");
    assert!(!head.expects_continue(), "there is no body to wait with");
    let mut strict = Vec::new();
    head.write_strict(&mut strict);
    let strict = String::from_utf8(strict).unwrap();
    let line = "GET http://h/a?b=%7B%22c%22:[1]%7D&d=%C3%A9%7C HTTP/1.1\r\n";
    assert!(strict.starts_with(line), "{strict}");
    assert!(strict.ends_with("x-a: 2\r\n\r\n"), "{strict}");
    assert!(post("Expect: 100-Continue\r\nContent-Length: 1\r\n").unwrap().expects_continue());
    let old = request("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    assert!(!old.unwrap().expects_continue());
}

/// RFC 9112 §6.3: Transfer-Encoding wins and a length beside it goes.
#[test]
fn a_response_has_one_framing_or_is_refused() {
    use Framing::{Chunked, Length, UntilClose};
    for (fields, framing, close) in [
        ("", UntilClose, true),
        ("Content-Length: 5\r\n", Length(5), false),
        ("Content-Length : 5\r\n", Length(5), false),
        ("Content-Length: 5, 5\r\n", Length(5), false),
        ("Content-Length: 5\r\ncontent-length: 005\r\n", Length(5), false),
        ("Content-Length: 5\r\nConnection: close\r\n", Length(5), true),
        ("Transfer-Encoding: chunked\r\n", Chunked, false),
        ("Transfer-Encoding: identity, chunked\r\n", Chunked, false),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Chunked, true),
        ("Content-Length: 5, 6\r\nTransfer-Encoding: chunked\r\n", Chunked, true),
        ("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", UntilClose, true),
    ] {
        let head = response(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        let head = head.unwrap_or_else(|fault| panic!("{fields:?}: {fault}"));
        assert_eq!((head.framing, head.close), (framing, close), "{fields:?}");
        let lengths = values(&head.fields, "content-length");
        assert_eq!(lengths.len(), usize::from(matches!(framing, Length(_))), "{fields:?}");
        let codings = values(&head.fields, "transfer-encoding");
        assert_eq!(codings.len(), usize::from(framing == Chunked), "{fields:?}");
    }
    for fields in [
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "X/Y: 1\r\n",
        "X\r\n",
        "X: \0\r\n",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        assert_eq!(response(&head).expect_err(fields).status, 502, "{fields:?}");
    }
    let old = response("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!((old.framing, old.close, old.minor), (Chunked, true, 0));
    let kept = "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\n";
    assert!(!response(kept).unwrap().close);
    for (line, method, stated) in [
        ("HTTP/1.1 200 OK", &b"HEAD"[..], 1),
        ("HTTP/1.1 304 Not Modified", b"GET", 1),
        ("HTTP/1.1 204 No Content", b"GET", 0),
        ("HTTP/1.1 103 Early Hints", b"GET", 0),
    ] {
        let text = format!("{line}\r\nContent-Length: 5\r\n\r\n");
        let head = ResponseHead::parse(text.as_bytes(), method).unwrap();
        assert_eq!(head.framing, Framing::None, "{line}");
        assert_eq!(values(&head.fields, "content-length").len(), stated, "{line}");
    }
}

#[test]
fn a_response_of_an_old_server_is_repaired() {
    let text = "HTTP/1.1 299\nX-Device : cam 7\r\nX-Long: one\r\n \t two\r\n\r\n";
    let head = response(text).unwrap();
    assert_eq!((head.status, head.reason.len()), (299, 0));
    assert_eq!(values(&head.fields, "x-device"), ["cam 7"]);
    assert_eq!(values(&head.fields, "x-long"), ["one two"]);
    let head = response("HTTP/1.1 999 L\u{e4}uft gut\r\n\r\n").unwrap();
    assert_eq!((head.status, &head.reason[..]), (999, "L\u{e4}uft gut".as_bytes()));
    for line in ["HTTP/1.1", "HTTP/1.1 20 x", "HTTP/1.1 2000 x", "HTTP/1.1 099 x", "ICY 200 OK"] {
        assert_eq!(response(&format!("{line}\r\n\r\n")).expect_err(line).status, 502);
    }
    let folded = response("HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n");
    assert!(folded.is_err(), "a fold that continues nothing");
}

#[test]
fn the_end_of_a_head_is_found_wherever_it_is_cut() {
    for head in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.1\nHost: a\n\n"] {
        let all = format!("{head}body\n\nmore");
        assert_eq!(end_of_head(all.as_bytes(), 0), Some(head.len()));
        let mut searched = 0;
        for len in 0..head.len() {
            assert_eq!(end_of_head(&all.as_bytes()[..len], searched), None, "{len}");
            searched = len;
        }
        assert_eq!(end_of_head(&all.as_bytes()[..head.len()], searched), Some(head.len()));
    }
}

fn scan_all(framing: Framing, bytes: &[u8], step: usize) -> Result<(usize, bool), Fault> {
    let mut body = Body::new(framing);
    let mut used = 0;
    for piece in bytes.chunks(step.max(1)) {
        let scan = body.scan(piece)?;
        used += scan.used;
        if scan.ended {
            break;
        }
    }
    Ok((used, body.has_ended()))
}

#[test]
fn a_body_ends_where_its_framing_says() {
    let chunked = b"5\r\nhello\r\n00A ;x=\"1\"\r\n0123456789\r\n0\r\nX: 1\r\n\r\n";
    let next = b"GET / HTTP/1.1\r\n";
    let all = [&chunked[..], next].concat();
    for step in 1..all.len() {
        assert_eq!(scan_all(Framing::Chunked, &all, step), Ok((chunked.len(), true)));
        assert_eq!(scan_all(Framing::Length(9), &all, step), Ok((9, true)));
        assert_eq!(scan_all(Framing::UntilClose, &all, step), Ok((all.len(), false)));
        assert_eq!(scan_all(Framing::None, &all, step), Ok((0, true)));
    }
    for wrong in [
        "\r\n",
        "+2\r\nab\r\n",
        "0x2\r\nab\r\n",
        "2\nab\r\n",
        "2\r\nabc\r\n",
        "2 \0\r\nab",
        "11111111111111111\r\n",
        "-1\r\n",
        "2\r\nab\n",
        "0\r\nX: 1\n\r\n",
        "0\r\nX\0: 1\r\n\r\n",
    ] {
        assert!(scan_all(Framing::Chunked, wrong.as_bytes(), 1).is_err(), "{wrong:?}");
    }
    let long = format!("2;{}\r\nab\r\n", "x".repeat(10_000));
    assert!(scan_all(Framing::Chunked, long.as_bytes(), 100).is_err());
    let trailers = format!("0\r\n{}\r\n", "X: 1\r\n".repeat(20_000));
    assert!(scan_all(Framing::Chunked, trailers.as_bytes(), 100).is_err());
}

#[test]
fn a_style_crosses_in_few_bytes() {
    let names = ["Host", "SOAPAction", "Content-Type", "X-FOO", "etag", "ETag", "Accept", "Via"];
    let names: Vec<Bytes> = names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
    let style = Style { names, reason: Some(Bytes::from_static(b"Ticket; has expired")) };
    let value = style.encode();
    assert_eq!(&value[..], b"t,x1f,t,u,l,x3,t;Ticket; has expired");
    let lower: Vec<Vec<u8>> = style.names.iter().map(|name| name.to_ascii_lowercase()).collect();
    assert_eq!(Style::decode(&value, lower.iter().map(Vec::as_slice)), style);
    let head =
        b"HTTP/1.1 401 Unauthorized\r\nvia: 1.1 x\r\netag: 1\r\ndate: now\r\netag: 2\r\n\r\n";
    let text = String::from_utf8(style.apply(head, None)).unwrap();
    assert_eq!(
        text,
        "HTTP/1.1 401 Ticket; has expired\r\netag: 1\r\nETag: 2\r\nVia: 1.1 x\r\nDate: now\r\n\r\n"
    );
    let text = Style::default().apply(b"GET /%7B HTTP/1.1\r\nhost: a\r\n\r\n", Some(b"/{"));
    assert_eq!(text, b"GET /{ HTTP/1.1\r\nHost: a\r\n\r\n");
    let junk = Bytes::from_static(b"q,xzz,\xff;\r\n");
    let read = Style::decode(&junk, [&b"a"[..], b"b"].into_iter());
    assert_eq!((read.names.len(), read.reason), (2, None));
}

/// Lines that frame a message, and others.
const LINES: &str =
    "(Content-Length|Transfer-Encoding|X-A|Host|Expect): (5|5, 5|chunked|gzip|a)\r\n";

/// A strict head has few fields, those of the framing among them; what it leaves out is reported.
#[test]
fn fields_beyond_those_of_a_strict_head_are_left_to_the_caller() {
    let others = |range: std::ops::Range<usize>| -> String {
        range.map(|at| format!("X-{at}: {at}\r\n")).collect()
    };
    let framing = "Connection: close\r\nContent-Length: 5\r\n";
    let (before, behind) = (others(0..200), others(200..300));
    let head = post(&format!("{before}Expect: a\r\n{framing}{behind}")).unwrap();
    let mut strict = Vec::new();
    head.write_strict(&mut strict);
    let strict = RequestHead::parse(&strict).unwrap();
    assert_eq!(strict.fields.len(), MAX_STRICT_FIELDS);
    assert_eq!(strict.framing, Framing::Length(5));
    let surplus = head.surplus();
    assert_eq!(strict.fields.len() + surplus.len(), head.fields.len() - 1, "all but Expect");
    let numbered = |fields: Vec<&Field>| -> Vec<Bytes> {
        let others = fields.into_iter().filter(|field| field.name.starts_with(b"X-"));
        others.map(|field| field.value.clone()).collect()
    };
    let all = [numbered(strict.fields.iter().collect()), numbered(surplus)].concat();
    assert_eq!(all, (0..300).map(|at| Bytes::from(at.to_string())).collect::<Vec<_>>());
    assert!(post(framing).unwrap().surplus().is_empty());

    let text = format!("HTTP/1.1 200 OK\r\n{before}{framing}\r\n");
    let head = response(&text).unwrap();
    let mut strict = Vec::new();
    head.write_strict(&mut strict);
    let strict = ResponseHead::parse(&strict, b"GET").unwrap();
    assert_eq!((strict.framing, strict.close), (Framing::Length(5), true));
    assert_eq!(strict.fields.len() + head.surplus().len(), head.fields.len());
}

proptest! {
    /// What one parser takes, the next takes for the same message.
    #[test]
    fn what_is_normalised_is_normal(
        fields in proptest::collection::vec(LINES, 0..4),
        junk in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for head in [post(&fields.concat()), RequestHead::parse(&junk)].into_iter().flatten() {
            let mut out = Vec::new();
            head.write_strict(&mut out);
            let again = RequestHead::parse(&out).unwrap();
            prop_assert_eq!(again.framing, head.framing);
            prop_assert!(!again.close);
        }
        let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", fields.concat());
        for head in [response(&text), ResponseHead::parse(&junk, b"GET")].into_iter().flatten() {
            let mut out = Vec::new();
            head.write_strict(&mut out);
            let again = ResponseHead::parse(&out, b"GET").unwrap();
            prop_assert_eq!((again.framing, again.close), (head.framing, head.close));
        }
        let _ = scan_all(Framing::Chunked, &junk, 7);
        let _ = Style::decode(&Bytes::from(junk.clone()), [&b"a-b"[..]].into_iter());
        let _ = Style::default().apply(&junk, None);
    }
}
