//! The mapping between CoAP and HTTP, clause by clause.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, response};
use bytes::Bytes;
use proto::coap::{Code, Content, format, option};

use super::http::{Asked, Refusal, Wanted, answer, ask, content_format, status_of};
use super::tags::Tags;
use crate::upstream::Upstream;

fn proxied(code: Code, uri: &str) -> Content {
    Content::new(code).with(option::PROXY_URI, uri.as_bytes())
}

fn asked(content: &Content) -> Result<Box<Asked>, Refusal> {
    match ask(content, None, &Tags::default())? {
        Wanted::Origin(asked) => Ok(asked),
        Wanted::Links(_) => panic!("links"),
    }
}

fn head(status: u16, fields: &[(&str, &str)]) -> response::Parts {
    let mut response = ::http::Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(()).unwrap().into_parts().0
}

fn answered(
    request: &Content,
    status: u16,
    fields: &[(&str, &str)],
    body: &'static str,
) -> Result<Content, Refusal> {
    let asked = asked(request).unwrap();
    let mut tags = Tags::default();
    answer(request.code, &asked, &head(status, fields), Bytes::from(body), &mut tags)
}

/// RFC 7252 §5.10.2, §6.5.
#[test]
fn a_target_is_said_in_two_ways() {
    let by_uri = asked(&proxied(Code::GET, "http://a.example:8080/x/y?z=1&w")).unwrap();
    let target = &by_uri.target;
    let parts = (&*target.scheme, &*target.authority, &*target.path);
    assert_eq!(parts, ("http", "a.example:8080", "/x/y?z=1&w"));
    assert!(by_uri.target.is_proxied && by_uri.method == Method::GET);
    let by_scheme = Content::new(Code::PUT)
        .with(option::PROXY_SCHEME, b"HTTPS")
        .with(option::URI_HOST, b"a.example")
        .with(option::URI_PATH, b"x y")
        .with(option::URI_QUERY, b"z=1");
    let by_scheme = asked(&by_scheme).unwrap();
    let target = &by_scheme.target;
    let parts = (&*target.scheme, &*target.authority, &*target.path);
    assert_eq!(parts, ("https", "a.example:443", "/x%20y?z=1"));
    let bare = asked(&proxied(Code::GET, "http://a")).unwrap();
    assert_eq!((&*bare.target.authority, &*bare.target.path), ("a", "/"));
}

#[test]
fn what_cannot_go_on_is_refused_with_its_code() {
    let get = |uri| proxied(Code::GET, uri);
    let no_host = Content::new(Code::GET).with(option::PROXY_SCHEME, b"http");
    for (request, code) in [
        (Content::new(Code::GET).with(option::URI_PATH, b"x"), Code::NOT_FOUND),
        (get("ftp://a/x"), Code::PROXYING_NOT_SUPPORTED),
        (get("coaps://a/x"), Code::PROXYING_NOT_SUPPORTED),
        (get("a/x"), Code::BAD_REQUEST),
        (get("http://u:p@a/x"), Code::BAD_REQUEST),
        (get("http://a/x#y"), Code::BAD_REQUEST),
        (get("http://"), Code::BAD_REQUEST),
        (no_host, Code::BAD_REQUEST),
        (proxied(Code::FETCH, "http://a/"), Code::NOT_IMPLEMENTED),
        (get("http://a/").with(option::HOP_LIMIT, &[1]), Code::HOP_LIMIT_REACHED),
        (get("http://a/").with(option::HOP_LIMIT, &[0]), Code::BAD_REQUEST),
        (get("http://a/").with_uint(option::ACCEPT, 9999), Code::NOT_ACCEPTABLE),
        // RFC 7252 §5.7.1: elective, unsafe and unknown.
        (get("http://a/").with(2050, b""), Code::BAD_OPTION),
    ] {
        let refusal = ask(&request, None, &Tags::default()).map(|_| ()).unwrap_err();
        assert_eq!(refusal.code, code, "{request:?}: {}", refusal.reason);
        let content = refusal.content();
        assert!(content.payload.len() <= 256 && content.uint(option::MAX_AGE) == Some(0));
    }
    let links = Content::new(Code::GET)
        .with(option::URI_PATH, b".well-known")
        .with(option::URI_PATH, b"core");
    let of = |request: &Content| match ask(request, None, &Tags::default()) {
        Ok(Wanted::Links(links)) => Ok(links.payload.len()),
        Ok(Wanted::Origin(_)) => panic!("an origin"),
        Err(refusal) => Err(refusal.code),
    };
    assert_eq!(of(&links), Ok(25));
    assert_eq!(of(&links.clone().with(option::URI_QUERY, b"href=/.well*")), Ok(25));
    assert_eq!(of(&links.clone().with(option::URI_QUERY, b"rt=x")), Ok(0));
    assert_eq!(of(&links.clone().with_uint(option::ACCEPT, 0)), Err(Code::NOT_ACCEPTABLE));
    let mut posted = links;
    posted.code = Code::POST;
    assert_eq!(of(&posted), Err(Code::METHOD_NOT_ALLOWED));
}

#[test]
fn without_an_origin_a_reverse_proxy_asks_its_own() {
    let upstream = Upstream::parse("http://b:8080/api").unwrap();
    let local =
        Content::new(Code::POST).with(option::URI_HOST, b"gateway").with(option::URI_PATH, b"x");
    let Ok(Wanted::Origin(asked)) = ask(&local, Some(&upstream), &Tags::default()) else {
        panic!("no origin");
    };
    let target = &asked.target;
    assert_eq!((&*target.authority, &*target.path), ("b:8080", "/api/x"));
    assert!(!target.is_proxied);
    let made = |location| {
        let head = head(201, &[("location", location)]);
        let made = answer(Code::POST, &asked, &head, Bytes::new(), &mut Tags::default()).unwrap();
        let path: Vec<_> = made.all(option::LOCATION_PATH).map(<[u8]>::to_vec).collect();
        path.join(&b'/')
    };
    assert_eq!(made("/api/x/7"), b"x/7");
    assert_eq!(made("http://b:8080/api/y"), b"y");
    assert_eq!(made("7"), b"7");
    for elsewhere in ["/apiary/7", "/other", "//c/api/7", "http://c/api/7", "/api/%zz"] {
        let head = head(201, &[("location", elsewhere)]);
        let made = answer(Code::POST, &asked, &head, Bytes::new(), &mut Tags::default());
        assert!(made.unwrap().first(option::LOCATION_PATH).is_none(), "{elsewhere}");
    }
}

#[test]
fn conditions_and_formats_become_fields() {
    let request = proxied(Code::GET, "http://a/")
        .with_uint(option::ACCEPT, format::JSON.into())
        .with(option::ETAG, &[1, 2])
        .with(option::ETAG, &[3]);
    let headers = asked(&request).unwrap().headers;
    let field = |headers: &HeaderMap, name: &str| {
        headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    };
    assert_eq!(field(&headers, "accept"), "application/json");
    assert_eq!(field(&headers, "if-none-match"), "\"0102\", \"03\"");
    assert_eq!(field(&headers, "accept-encoding"), "identity");
    let request = proxied(Code::PUT, "http://a/")
        .with(option::IF_MATCH, &[1, 2])
        .with(option::ETAG, &[9])
        .with_uint(option::CONTENT_FORMAT, 11050);
    let headers = asked(&request).unwrap().headers;
    assert_eq!(field(&headers, "if-match"), "\"0102\"");
    assert_eq!(field(&headers, "if-none-match"), "");
    assert_eq!(field(&headers, "content-type"), "application/json");
    assert_eq!(field(&headers, "content-encoding"), "deflate");
    let request = proxied(Code::PUT, "http://a/")
        .with(option::IF_NONE_MATCH, b"")
        .with(option::IF_MATCH, b"")
        .with_uint(option::CONTENT_FORMAT, 65_000);
    let headers = asked(&request).unwrap().headers;
    assert_eq!((&*field(&headers, "if-match"), &*field(&headers, "if-none-match")), ("*", "*"));
    assert_eq!(field(&headers, "content-type"), "application/coap-payload;cf=65000");
}

#[test]
fn a_status_becomes_a_code_by_its_method() {
    for (method, status, code) in [
        (Code::GET, 200, Code::CONTENT),
        (Code::GET, 204, Code::CONTENT),
        (Code::PUT, 200, Code::CHANGED),
        (Code::PUT, 201, Code::CREATED),
        (Code::POST, 204, Code::CHANGED),
        (Code::PATCH, 202, Code::CHANGED),
        (Code::DELETE, 204, Code::DELETED),
        (Code::GET, 401, Code::UNAUTHORIZED),
        (Code::GET, 410, Code::NOT_FOUND),
        (Code::GET, 418, Code::BAD_REQUEST),
        (Code::PUT, 412, Code::PRECONDITION_FAILED),
        (Code::GET, 429, Code::TOO_MANY_REQUESTS),
        (Code::GET, 500, Code::INTERNAL_SERVER_ERROR),
        (Code::GET, 599, Code::INTERNAL_SERVER_ERROR),
        (Code::GET, 504, Code::GATEWAY_TIMEOUT),
    ] {
        let answer = answered(&proxied(method, "http://a/"), status, &[], "").unwrap();
        assert_eq!(answer.code, code, "{method} {status}");
        assert!(!status_of(code).is_redirection());
    }
    for status in [301, 302, 304, 307, 308, 600] {
        let refusal = answered(&proxied(Code::GET, "http://a/"), status, &[], "").unwrap_err();
        assert_eq!(refusal.code, Code::BAD_GATEWAY, "{status}");
    }
}

/// RFC 7252 §5.10.5: CoAP takes what says nothing to be fresh for a minute.
#[test]
fn an_age_is_what_is_left_of_it() {
    let age = |status, fields: &[(&str, &str)]| {
        let answer = answered(&proxied(Code::GET, "http://a/"), status, fields, "x").unwrap();
        answer.uint(option::MAX_AGE)
    };
    let control = "cache-control";
    assert_eq!(age(200, &[]), Some(0));
    assert_eq!(age(200, &[(control, "max-age=60")]), None);
    assert_eq!(age(200, &[(control, "public, Max-Age=100"), ("age", "30")]), Some(70));
    assert_eq!(age(200, &[(control, "max-age=100, s-maxage=5")]), Some(5));
    assert_eq!(age(200, &[(control, "max-age=100"), ("age", "300")]), Some(0));
    assert_eq!(age(200, &[(control, "max-age=99999999999")]), Some(u32::MAX));
    for never in ["no-store, max-age=9", "private=\"x\", max-age=9", "no-cache", "max-age=x"] {
        assert_eq!(age(200, &[(control, never)]), Some(0), "{never}");
    }
    assert_eq!(age(503, &[("retry-after", "120"), (control, "max-age=5")]), Some(120));
    assert_eq!(age(429, &[("retry-after", "7")]), Some(7));
    assert_eq!(age(404, &[]), Some(0));
    let put = answered(&proxied(Code::PUT, "http://a/"), 200, &[], "x").unwrap();
    assert_eq!(put.uint(option::MAX_AGE), None);
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let mut tags = Tags::default();
    let short = tags.shorten("\"v1\"").unwrap();
    let request = proxied(Code::GET, "http://a/").with(option::ETAG, &short);
    let valid = |status, fields: &[(&str, &str)]| {
        answered(&request, status, fields, if status == 200 { "body" } else { "" }).unwrap()
    };
    for answer in [
        valid(304, &[("etag", "\"v1\"")]),
        valid(304, &[]),
        // An origin that knows nothing of conditions, or a tag that is forgotten here.
        valid(200, &[("etag", "\"v1\"")]),
    ] {
        assert_eq!((answer.code, answer.first(option::ETAG)), (Code::VALID, Some(&short[..])));
        assert!(answer.payload.is_empty());
    }
    let other = valid(200, &[("etag", "\"v2\"")]);
    assert_eq!((other.code, &other.payload[..]), (Code::CONTENT, &b"body"[..]));
    assert_ne!(other.first(option::ETAG), Some(&short[..]));
}

/// RFC 8075 §6.3: what has no number has that of what it is a kind of.
#[test]
fn a_media_type_becomes_a_format() {
    let of = |fields: &[(&'static str, &'static str)]| {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        content_format(&fields.iter().map(line).collect()).map_err(|refusal| refusal.code)
    };
    for (media, format) in [
        ("application/json", 50),
        ("application/json; charset=UTF-8", 50),
        ("application/problem+json", 50),
        ("application/soap+xml; charset=utf-8; action=\"x\"", 41),
        ("text/xml", 41),
        ("text/html", 0),
        ("text/plain; charset=us-ascii", 0),
        ("text/plain; charset=iso-8859-1", 42),
        ("image/webp", 42),
        ("application/coap-payload; cf=11542", 11542),
        ("nonsense", 42),
    ] {
        assert_eq!(of(&[("content-type", media)]), Ok(Some(format)), "{media}");
    }
    assert_eq!(of(&[]), Ok(None));
    let coded = |coding| of(&[("content-type", "application/json"), ("content-encoding", coding)]);
    assert_eq!(coded("identity"), Ok(Some(50)));
    assert_eq!(coded("deflate"), Ok(Some(11050)));
    assert_eq!(coded("gzip"), Err(Code::BAD_GATEWAY));
}

/// RFC 7252 §5.10.4.
#[test]
fn a_format_that_is_not_taken_is_not_sent() {
    let request = proxied(Code::GET, "http://a/").with_uint(option::ACCEPT, format::CBOR.into());
    let json = [("content-type", "application/json")];
    let refusal = answered(&request, 200, &json, "{}").unwrap_err();
    assert_eq!(refusal.code, Code::NOT_ACCEPTABLE);
    let missing = answered(&request, 404, &json, "{}").unwrap();
    assert!(missing.code == Code::NOT_FOUND && missing.payload.is_empty());
    let cbor = answered(&request, 200, &[("content-type", "application/cbor")], "x").unwrap();
    assert_eq!(cbor.uint(option::CONTENT_FORMAT), Some(60));
    let html =
        answered(&proxied(Code::GET, "http://a/"), 404, &[("content-type", "text/html")], "<p>no");
    let html = html.unwrap();
    assert_eq!((html.uint(option::CONTENT_FORMAT), &html.payload[..]), (Some(0), &b"<p>no"[..]));
}

/// SOAP 1.1 §6, RFC 3902: services of SOAP take no other type.
#[test]
fn an_envelope_goes_in_its_own_type() {
    let xml = |body: &'static str| {
        let post = proxied(Code::POST, "http://a/").with_uint(option::CONTENT_FORMAT, 41);
        asked(&post.with_payload(body)).unwrap().headers["content-type"].clone()
    };
    assert_eq!(xml("<e xmlns='http://schemas.xmlsoap.org/soap/envelope/'/>"), "text/xml");
    let v1_2 = xml("<e xmlns='http://www.w3.org/2003/05/soap-envelope'/>");
    assert_eq!(
        (v1_2, xml("<e/>")),
        ("application/soap+xml".parse().unwrap(), "application/xml".parse().unwrap())
    );
}
