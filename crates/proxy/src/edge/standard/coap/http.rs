//! Requests of HTTP as those of CoAP, and the responses of CoAP as answers of HTTP (RFC 8075): pure
//! functions. What CoAP has no option for is left out, unless the request would then mean another
//! thing; `docs/foreign.md` has the table.

use ::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ::http::{Method, StatusCode};
use proto::coap::{Code, Content, format, option};

use super::super::super::answer::Refusal;
use super::super::{Answer, Whole, bad, broken, cannot};
use crate::coap::http::{self as mapping, COAP_PAYLOAD};
use crate::coap::tags;
use crate::fields;

/// Longest absolute URI (RFC 7252 §5.10).
const MAX_URI_BYTES: usize = 1034;
/// Fields that options say, or that say nothing behind this hop: these are not missed.
const SAID: [HeaderName; 9] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::EXPECT,
    header::TE,
    header::VIA,
];
/// Conditions that CoAP has no option for. What only asks is answered without them; what changes
/// something would do so though the condition is not met.
const CONDITIONS: [HeaderName; 2] = [header::IF_UNMODIFIED_SINCE, header::IF_MODIFIED_SINCE];

/// A request of CoAP, and what did not go along.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) content: Content,
    /// Names of fields.
    pub(super) dropped: Vec<String>,
}

/// The method of CoAP for one of HTTP (RFC 8075 §5.4, RFC 8132 §3); HEAD is GET whose body is not
/// passed on.
pub(super) fn code_of(method: &Method) -> Option<Code> {
    match *method {
        Method::GET | Method::HEAD => Some(Code::GET),
        Method::POST => Some(Code::POST),
        Method::PUT => Some(Code::PUT),
        Method::DELETE => Some(Code::DELETE),
        Method::PATCH => Some(Code::PATCH),
        _ => None,
    }
}

/// The request as a message.
pub(super) fn request(whole: &Whole) -> Result<Asked, Refusal> {
    let Whole { method, headers, body, .. } = whole;
    let code = code_of(method).ok_or_else(|| cannot(format!("{method} cannot be said by coap")))?;
    let takes_body = matches!(code, Code::POST | Code::PUT | Code::PATCH);
    if !takes_body && !body.is_empty() {
        return Err(cannot(format!("{method} has no body in CoAP, and this one has")));
    }
    let uri = whole.uri();
    if uri.len() > MAX_URI_BYTES {
        return Err(Refusal {
            status: StatusCode::URI_TOO_LONG,
            error: "http_request_error",
            reason: format!(
                "the URI is {} bytes, over the limit of {MAX_URI_BYTES} of Proxy-Uri in CoAP",
                uri.len()
            ),
        });
    }
    let mut content = Content::new(code).with_payload(body.clone());
    content.push(option::PROXY_URI, uri.as_bytes());
    // RFC 8768 §3: whoever goes on with a request says how many may follow.
    content.push_uint(option::HOP_LIMIT, option::DEFAULT_HOP_LIMIT.into());
    if !body.is_empty()
        && let Some(format) = content_format(headers)?
    {
        content.push_uint(option::CONTENT_FORMAT, format.into());
    }
    if let Some(format) = accept(headers) {
        content.push_uint(option::ACCEPT, format.into());
    }
    put_conditions(method, headers, &mut content)?;
    let is_dropped = |name: &&HeaderName| !SAID.contains(name);
    let dropped = headers.keys().filter(is_dropped).map(|name| name.as_str().to_owned()).collect();
    Ok(Asked { content, dropped })
}

/// The format of a request's body. A coding that has no number is the client's to leave out.
fn content_format(headers: &HeaderMap) -> Result<Option<u16>, Refusal> {
    mapping::content_format(headers).map_err(|_| Refusal {
        status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
        error: "http_request_error",
        reason: "the body's content coding has no number in CoAP: send it without".to_owned(),
    })
}

/// The only format that the client takes, if it is one (RFC 7252 §5.10.4). A format that is only a
/// kind of what it asks for is not asked for.
fn accept(headers: &HeaderMap) -> Option<u16> {
    let mut only = None;
    for range in fields::tokens(headers, &header::ACCEPT) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (weights, rest): (Vec<_>, Vec<_>) = parts.partition(|part| part.starts_with("q="));
        let is_none = |weight: &str| weight.get(2..).and_then(|q| q.parse().ok()) == Some(0.0_f32);
        if weights.into_iter().any(is_none) {
            continue;
        }
        let media = [&[name][..], &rest].concat().join(";");
        // RFC 8075 §6.3: what is XML by its name goes as XML, and comes as such.
        let format =
            format::of(&media, None).or_else(|| name.ends_with("+xml").then_some(format::XML))?;
        if only.is_some_and(|only| only != format) {
            return None;
        }
        only = Some(format);
    }
    only
}

/// Conditions on what is there (RFC 7252 §5.10.6, §5.10.8).
fn put_conditions(
    method: &Method,
    headers: &HeaderMap,
    content: &mut Content,
) -> Result<(), Refusal> {
    let lost = |name: &HeaderName| {
        cannot(format!("{method} with {name} cannot be said by coap, and without it means more"))
    };
    if !method.is_safe()
        && let Some(name) = CONDITIONS.iter().find(|name| headers.contains_key(*name))
    {
        return Err(lost(name));
    }
    let unmatched = tags_of(headers, &header::IF_NONE_MATCH);
    match (method.is_safe(), &unmatched[..]) {
        (_, []) => {}
        // What is here already; a tag that came another way matches nothing.
        (true, tags) => tags
            .iter()
            .filter_map(|tag| tags::of_digits(tag))
            .for_each(|short| content.push(option::ETAG, &short)),
        (false, [any]) if any == "*" => content.push(option::IF_NONE_MATCH, b""),
        (false, _) => return Err(lost(&header::IF_NONE_MATCH)),
    }
    let matched = tags_of(headers, &header::IF_MATCH);
    match &matched[..] {
        [] => Ok(()),
        [any] if any == "*" => {
            content.push(option::IF_MATCH, b"");
            Ok(())
        }
        tags => {
            let all: Vec<_> = tags.iter().filter_map(|tag| tags::of_digits(tag)).collect();
            all.iter().for_each(|short| content.push(option::IF_MATCH, short));
            match all.is_empty() {
                false => Ok(()),
                // RFC 9110 §13.1.1: none of them is of anything that has come by CoAP.
                true => Err(Refusal {
                    status: StatusCode::PRECONDITION_FAILED,
                    error: "http_request_error",
                    reason: "no entity tag in If-Match is one that came by coap".to_owned(),
                }),
            }
        }
    }
}

/// The entity tags of a field, as they are written; they may hold commas (RFC 9110 §8.8.3).
fn tags_of(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let mut all = Vec::new();
    for value in headers.get_all(name) {
        let (mut tag, mut is_quoted) = (String::new(), false);
        for byte in value.as_bytes() {
            match (byte, is_quoted) {
                (b'"', _) => {
                    is_quoted = !is_quoted;
                    tag.push('"');
                }
                (b',', false) => all.push(std::mem::take(&mut tag)),
                (b' ' | b'\t', false) => {}
                (byte, _) => tag.push(char::from(*byte)),
            }
        }
        all.push(tag);
    }
    all.retain(|tag| !tag.is_empty());
    all
}

/// The answer that a response means.
pub(super) fn answer(whole: &Whole, content: &Content) -> Result<Answer, Refusal> {
    let (code, body) = (content.code, content.payload.clone());
    let status = status_of(whole, code, body.is_empty())?;
    let mut headers = HeaderMap::new();
    if !body.is_empty() {
        put_media(content, &mut headers)?;
    }
    if let Some(etag) = content.first(option::ETAG).filter(|_| code.is_success()) {
        put(&mut headers, header::ETAG, tags::to_digits(etag))?;
    }
    put_age(whole, content, &mut headers);
    if code == Code::CREATED
        && let Some(location) = location(whole, content)
    {
        put(&mut headers, header::LOCATION, location)?;
    }
    Ok(Answer { status, headers, body })
}

/// RFC 8075 §7, table 2.
fn status_of(whole: &Whole, code: Code, is_empty: bool) -> Result<StatusCode, Refusal> {
    let is_conditional = || whole.headers.contains_key(header::IF_NONE_MATCH);
    match code {
        Code::VALID if !(whole.method.is_safe() && is_conditional()) => {
            Err(broken("the gateway says 'not modified' (2.03) and was not asked that".to_owned()))
        }
        Code::PROXYING_NOT_SUPPORTED if is_empty => {
            let (what, uri) = ("the gateway does not go on to", whole.uri());
            Err(broken(format!("{what} {uri} (5.05 without a reason)")))
        }
        Code::CONTINUE => Err(broken("the gateway's answer has no end (2.31)".to_owned())),
        // Notes 2 and 3 of the table.
        Code::CHANGED | Code::DELETED if is_empty => Ok(StatusCode::NO_CONTENT),
        code => Ok(mapping::status_of(code)),
    }
}

/// The media type and the coding of a body (RFC 8075 §6.2, §6.4). A refusal's without a format is
/// text (RFC 7252 §5.5.2); of any other without one nothing is known.
fn put_media(content: &Content, headers: &mut HeaderMap) -> Result<(), Refusal> {
    let Some(number) = content.uint(option::CONTENT_FORMAT) else {
        if !content.code.is_success() {
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            headers.insert(header::CONTENT_TYPE, text);
        }
        return Ok(());
    };
    match u16::try_from(number).ok().and_then(format::media_type) {
        Some((media, coding)) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            if let Some(coding) = coding {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            Ok(())
        }
        None => put(headers, header::CONTENT_TYPE, format!("{COAP_PAYLOAD};cf={number}")),
    }
}

/// Max-Age as what HTTP says of it (RFC 8075 §8.1); answers to what changes something are not kept
/// (RFC 7252 §5.9.1).
fn put_age(whole: &Whole, content: &Content, headers: &mut HeaderMap) {
    let code = content.code;
    let age = content.uint(option::MAX_AGE).unwrap_or(option::DEFAULT_AGE_S);
    match code {
        // RFC 7252 §5.9.3.4, RFC 8516 §3: when to ask again.
        Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS => {
            headers.insert(header::RETRY_AFTER, age.into());
        }
        Code::CONTENT | Code::VALID if whole.method.is_safe() => {
            if let Ok(value) = HeaderValue::try_from(format!("max-age={age}")) {
                headers.insert(header::CACHE_CONTROL, value);
            }
        }
        // What is not there now may be there in the next moment.
        _ => {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
}

/// Where a thing was made (RFC 7252 §5.10.7), at the origin that was asked, if it says so.
fn location(whole: &Whole, content: &Content) -> Option<String> {
    let mut path = String::new();
    for segment in content.all(option::LOCATION_PATH) {
        path.push('/');
        escape(segment, b"", &mut path);
    }
    for (at, argument) in content.all(option::LOCATION_QUERY).enumerate() {
        path.push(if at == 0 { '?' } else { '&' });
        escape(argument, b"/?", &mut path);
    }
    let Whole { scheme, authority, .. } = whole;
    let root = if path.starts_with('/') { "" } else { "/" };
    (!path.is_empty()).then(|| format!("{scheme}://{authority}{root}{path}"))
}

/// Puts bytes as part of a URI, with what it must not hold there escaped (RFC 3986 §3.3, RFC 7252
/// §6.5).
fn escape(bytes: &[u8], more: &[u8], out: &mut String) {
    const ALSO: &[u8] = b"-._~!$'()*+,;=:@";
    for byte in bytes {
        match byte.is_ascii_alphanumeric() || ALSO.contains(byte) || more.contains(byte) {
            true => out.push(char::from(*byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: String) -> Result<(), Refusal> {
    let value = HeaderValue::try_from(value);
    headers.insert(name, value.map_err(|_| bad("an option is nothing of HTTP".to_owned()))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn whole(method: &str, fields: &[(&'static str, &'static str)], body: &'static str) -> Whole {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Whole {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            scheme: "http".to_owned(),
            authority: "a:81".to_owned(),
            path: "/b?c".to_owned(),
            headers: fields.iter().map(line).collect(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn a_request_is_a_message_and_what_is_lost_is_named() {
        let fields = [
            ("accept", "text/xml, application/soap+xml;q=0.9, text/html;q=0"),
            ("content-type", "text/xml; charset=utf-8"),
            ("content-length", "4"),
            ("soapaction", "\"urn:a\""),
            ("authorization", "Basic x"),
            ("if-match", "\"00ff\", W/\"x\""),
        ];
        let Asked { content, mut dropped } = request(&whole("POST", &fields, "<a/>")).unwrap();
        let options: Vec<_> = content.options().collect();
        assert_eq!(
            options,
            [
                (option::IF_MATCH, &b"\x00\xff"[..]),
                (option::CONTENT_FORMAT, b"\x29"),
                (option::HOP_LIMIT, b"\x10"),
                (option::ACCEPT, b"\x29"),
                (option::PROXY_URI, b"http://a:81/b?c"),
            ]
        );
        assert_eq!((content.code, &content.payload[..]), (Code::POST, &b"<a/>"[..]));
        dropped.sort();
        assert_eq!(dropped, ["authorization", "soapaction"]);
    }

    #[test]
    fn a_format_is_asked_for_only_where_it_is_the_only_one() {
        for (accepted, format) in [
            ("application/json", Some(50)),
            ("application/json;q=0.5", Some(50)),
            ("*/*", None),
            ("application/json, text/xml", None),
            ("application/json, */*;q=0.1", None),
            ("application/json, text/xml;q=0.000", Some(50)),
            ("text/html", None),
            ("application/atom+xml", Some(41)),
        ] {
            let content = request(&whole("GET", &[("accept", accepted)], "")).unwrap().content;
            assert_eq!(content.uint(option::ACCEPT), format, "{accepted}");
        }
    }

    #[test]
    fn conditions_go_along_or_the_request_does_not() {
        let of = |method: &str, fields: &[(&'static str, &'static str)]| {
            request(&whole(method, fields, ""))
        };
        let had =
            of("GET", &[("if-none-match", "\"0a\", \"x,y\", \"0b\""), ("if-modified-since", "x")]);
        let had = had.unwrap().content;
        assert_eq!(had.all(option::ETAG).collect::<Vec<_>>(), [&[10][..], &[11]]);
        let new = of("PUT", &[("if-none-match", "*")]).unwrap().content;
        assert_eq!(new.first(option::IF_NONE_MATCH), Some(&b""[..]));
        let any = of("PUT", &[("if-match", "*")]).unwrap().content;
        assert_eq!(any.first(option::IF_MATCH), Some(&b""[..]));
        for (method, field, status) in [
            ("PUT", ("if-none-match", "\"0a\""), 501),
            ("PUT", ("if-unmodified-since", "Fri, 02 Oct 2026 10:00:00 GMT"), 501),
            ("PUT", ("if-match", "W/\"0a\""), 412),
            ("PUT", ("if-match", "\"version 1\""), 412),
        ] {
            let fields = [field];
            let refusal = of(method, &fields).unwrap_err();
            assert_eq!(refusal.status.as_u16(), status, "{}", refusal.reason);
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused_in_one_line() {
        let mut long = whole("GET", &[], "");
        long.path = format!("/{}", "a".repeat(MAX_URI_BYTES));
        for (whole, status) in [
            (whole("OPTIONS", &[], ""), 501),
            (whole("GET", &[], "x"), 501),
            (whole("DELETE", &[], "x"), 501),
            (whole("POST", &[("content-encoding", "br"), ("content-type", "a/b")], "x"), 415),
            (long, 414),
        ] {
            let refusal = request(&whole).unwrap_err();
            assert_eq!(refusal.status.as_u16(), status, "{}", refusal.reason);
            assert_eq!(refusal.reason.lines().count(), 1, "{}", refusal.reason);
        }
    }

    #[test]
    fn each_code_has_its_status() {
        let of =
            |method: &str, fields: &[(&'static str, &'static str)], code, body: &'static str| {
                let content = Content::new(code).with_payload(body);
                answer(&whole(method, fields, ""), &content)
            };
        let tagged = [("if-none-match", "\"0a\"")];
        for (method, fields, code, body, status) in [
            ("GET", &[][..], Code::CONTENT, "a", 200),
            ("GET", &[], Code::CONTENT, "", 200),
            ("POST", &[], Code::CHANGED, "a", 200),
            ("POST", &[], Code::CHANGED, "", 204),
            ("DELETE", &[], Code::DELETED, "", 204),
            ("PUT", &[], Code::CREATED, "", 201),
            ("GET", &tagged, Code::VALID, "", 304),
            ("GET", &[], Code::NOT_FOUND, "no", 404),
            ("GET", &[], Code::UNAUTHORIZED, "", 403),
            ("GET", &[], Code::PROXYING_NOT_SUPPORTED, "no", 502),
            ("GET", &[], Code::GATEWAY_TIMEOUT, "", 504),
        ] {
            let answer = of(method, fields, code, body).unwrap();
            assert_eq!(answer.status.as_u16(), status, "{code}");
        }
        for code in [Code::VALID, Code::CONTINUE, Code::PROXYING_NOT_SUPPORTED] {
            assert_eq!(of("GET", &[], code, "").unwrap_err().status.as_u16(), 502);
        }
    }

    #[test]
    fn options_of_an_answer_are_fields() {
        let made = Content::new(Code::CREATED)
            .with(option::LOCATION_PATH, b"x y")
            .with(option::LOCATION_PATH, "é/".as_bytes())
            .with(option::LOCATION_QUERY, b"a=/&")
            .with(option::ETAG, &[1, 0xab]);
        let made = answer(&whole("PUT", &[], ""), &made).unwrap().headers;
        assert_eq!(made[header::LOCATION], "http://a:81/x%20y/%C3%A9%2F?a=/%26");
        assert_eq!(
            (&made[header::ETAG], &made[header::CACHE_CONTROL]),
            (&"\"01ab\"".parse().unwrap(), &"no-store".parse().unwrap())
        );
        let of = |content: Content| answer(&whole("GET", &[], ""), &content).unwrap().headers;
        let content = || Content::new(Code::CONTENT).with_payload("a");
        let fresh =
            of(content().with_uint(option::CONTENT_FORMAT, 50).with_uint(option::MAX_AGE, 9));
        assert_eq!(fresh[header::CACHE_CONTROL], "max-age=9");
        assert_eq!(fresh[header::CONTENT_TYPE], "application/json");
        assert_eq!(of(content())[header::CACHE_CONTROL], "max-age=60");
        assert!(!of(content()).contains_key(header::CONTENT_TYPE));
        let strange = of(content().with_uint(option::CONTENT_FORMAT, 9999));
        assert_eq!(strange[header::CONTENT_TYPE], "application/coap-payload;cf=9999");
        let busy = Content::new(Code::SERVICE_UNAVAILABLE).with_uint(option::MAX_AGE, 7);
        let busy = of(busy.with_payload("later"));
        assert_eq!(busy[header::RETRY_AFTER], "7");
        assert_eq!(busy[header::CONTENT_TYPE], "text/plain; charset=utf-8");
    }
}
