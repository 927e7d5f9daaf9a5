//! The mapping back, clause by clause.

use super::*;

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &'static str)| {
        (header::HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    lines.iter().map(line).collect()
}

fn asked(method: Method, lines: &[(&'static str, &'static str)]) -> Result<Content, u16> {
    let body = if method == Method::GET { "" } else { "x" };
    request(&method, "coap://a.example:99/x/y?z", &headers(lines), Bytes::from(body))
        .map_err(|unfit| unfit.status.as_u16())
}

#[test]
fn a_request_becomes_options() {
    let json = ("content-type", "application/json; charset=utf-8");
    let put = asked(Method::PUT, &[json, ("if-match", "\"0a0b\", \"x\"")]).unwrap();
    let options: Vec<_> = put.options().collect();
    assert_eq!(
        options,
        [
            (option::IF_MATCH, &[0x0a, 0x0b][..]),
            (option::URI_HOST, b"a.example"),
            (option::URI_PATH, b"x"),
            (option::URI_PATH, b"y"),
            (option::CONTENT_FORMAT, &[50]),
            (option::URI_QUERY, b"z"),
            (option::HOP_LIMIT, &[16]),
        ]
    );
    let get = asked(Method::GET, &[("if-none-match", "\"01\", W/\"02\", \"q\"")]).unwrap();
    assert_eq!(get.all(option::ETAG).collect::<Vec<_>>(), [[1], [2]]);
    let only = asked(Method::POST, &[("if-none-match", "*")]).unwrap();
    assert_eq!(only.first(option::IF_NONE_MATCH), Some(&b""[..]));
    assert_eq!(asked(Method::PUT, &[("if-match", "\"x\"")]), Err(412));
    assert_eq!(asked(Method::OPTIONS, &[]), Err(501));
    assert_eq!(asked(Method::HEAD, &[]).unwrap().code, Code::GET);
    let coded = [json, ("content-encoding", "gzip")];
    assert_eq!(asked(Method::PUT, &coded), Err(415));
    let unfit = request(&Method::GET, "coap://a/%2e", &HeaderMap::new(), Bytes::new());
    assert_eq!(unfit.unwrap_err().status, StatusCode::BAD_REQUEST);
}

#[test]
fn of_what_is_accepted_the_best_is_named() {
    let of = |value| {
        let content = asked(Method::GET, &[("accept", value)])?;
        Ok(content.uint(option::ACCEPT))
    };
    assert_eq!(of("application/json"), Ok(Some(50)));
    assert_eq!(of("application/xml;q=0.5, application/cbor;q=0.9, text/html"), Ok(Some(60)));
    assert_eq!(of("text/html, */*;q=0.8"), Ok(None));
    assert_eq!(of("application/json, application/*;q=0.1"), Ok(None));
    assert_eq!(of("text/html, application/json;q=0"), Err(406));
    assert_eq!(asked(Method::GET, &[]).unwrap().uint(option::ACCEPT), None);
}

#[test]
fn an_answer_becomes_fields() {
    let of = |content: Content| response(&Method::GET, content);
    let field = |response: &Response<Bytes>, name: &str| {
        let value = response.headers().get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or("").to_owned()
    };
    let content = Content::new(Code::CONTENT)
        .with(option::ETAG, &[1, 0xff])
        .with_uint(option::CONTENT_FORMAT, 11060)
        .with_payload("x");
    let answer = of(content.clone());
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"x"[..]));
    assert_eq!(field(&answer, "etag"), "\"01ff\"");
    assert_eq!(field(&answer, "content-type"), "application/cbor");
    assert_eq!(field(&answer, "content-encoding"), "deflate");
    assert_eq!(field(&answer, "cache-control"), "max-age=60");
    let head = response(&Method::HEAD, content);
    assert_eq!((head.body().len(), &*field(&head, "content-length")), (0, "1"));
    let strange = Content::new(Code::CONTENT).with_uint(option::CONTENT_FORMAT, 65_000);
    let strange = of(strange.with_payload("x"));
    assert_eq!(field(&strange, "content-type"), "application/coap-payload;cf=65000");
    let made = Content::new(Code::CREATED)
        .with(option::LOCATION_PATH, b"new one")
        .with(option::LOCATION_QUERY, b"a=1");
    let made = of(made);
    assert_eq!(made.status().as_u16(), 201);
    assert_eq!(field(&made, "location"), "/new%20one?a=1");
    let busy = Content::new(Code::SERVICE_UNAVAILABLE).with_uint(option::MAX_AGE, 7);
    assert_eq!(field(&of(busy), "retry-after"), "7");
    let missing = of(Content::new(Code::NOT_FOUND).with_payload("no such thing"));
    assert_eq!(missing.status().as_u16(), 404);
    assert_eq!(field(&missing, "content-type"), "text/plain; charset=utf-8");
    for (code, status) in [
        (Code::CHANGED, 204),
        (Code::DELETED, 204),
        (Code::VALID, 304),
        (Code::UNAUTHORIZED, 403),
        (Code::METHOD_NOT_ALLOWED, 400),
        (Code::PROXYING_NOT_SUPPORTED, 502),
        (Code::new(4, 31), 400),
        (Code::new(5, 31), 500),
        (Code::CONTINUE, 502),
        (Code::REQUEST_ENTITY_INCOMPLETE, 502),
    ] {
        assert_eq!(of(Content::new(code)).status().as_u16(), status, "{code}");
    }
}

#[test]
fn events_are_wanted_where_nothing_else_is_more() {
    let wants = |value: &'static str| wants_events(&Method::GET, &headers(&[("accept", value)]));
    assert!(wants("text/event-stream"));
    assert!(wants("text/event-stream, */*;q=0.5"));
    assert!(wants("application/json, text/event-stream"));
    assert!(!wants("application/json, text/event-stream;q=0.9"));
    assert!(!wants("text/event-stream;q=0"));
    assert!(!wants("*/*"));
    assert!(!wants_events(&Method::PUT, &headers(&[("accept", "text/event-stream")])));
    let both = asked(Method::GET, &[("accept", "text/event-stream, application/json")]).unwrap();
    assert_eq!(both.uint(option::ACCEPT), Some(50));
    let only = asked(Method::GET, &[("accept", "text/event-stream")]).unwrap();
    assert_eq!(only.uint(option::ACCEPT), None);
}

#[test]
fn names_of_methods_and_formats_go_both_ways() {
    let method = |name: &[u8]| {
        let method = Method::from_bytes(name).unwrap();
        asked(method, &[]).map(|content| content.code)
    };
    for (name, code) in [
        (&b"PATCH"[..], Code::PATCH),
        (b"IPATCH", Code::IPATCH),
        (b"QUERY", Code::FETCH),
        (b"FETCH", Code::FETCH),
    ] {
        assert_eq!(method(name), Ok(code));
    }
    assert_eq!(method(b"TRACE"), Err(501));
    let numbered = [("accept", "application/coap-payload;cf=11542")];
    assert_eq!(asked(Method::GET, &numbered).unwrap().uint(option::ACCEPT), Some(11542));
    let long = format!("coap://a/{}", "x".repeat(1100));
    let unfit = request(&Method::GET, &long, &HeaderMap::new(), Bytes::new()).unwrap_err();
    assert_eq!(unfit.status, StatusCode::URI_TOO_LONG);
}

#[test]
fn a_refusal_for_its_size_tells_the_size() {
    let refused = Content::new(Code::REQUEST_ENTITY_TOO_LARGE).with_uint(option::SIZE1, 512);
    let answer = response(&Method::PUT, refused);
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(&answer.body()[..], b"the server takes bodies of up to 512 bytes\n");
    let strange = Content::new(Code::BAD_REQUEST).with_payload(vec![0xff]);
    let answer = response(&Method::PUT, strange);
    assert!(answer.headers().get(header::CONTENT_TYPE).is_none());
    let made = Content::new(Code::CREATED)
        .with(option::LOCATION_PATH, b"")
        .with(option::LOCATION_PATH, b"x");
    let answer = response(&Method::POST, made);
    assert_eq!(answer.headers()[header::LOCATION], "/.//x");
    assert!(response(&Method::PUT, Content::new(Code::CREATED)).headers().is_empty());
}
