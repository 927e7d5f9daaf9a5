//! A request of HTTP as one of CoAP, and the answer of CoAP as one of HTTP (RFC 7252 §10.2,
//! RFC 8075): pure functions.

use ::http::header::{self, HeaderMap, HeaderValue};
use ::http::{Method, Response, StatusCode};
use bytes::Bytes;
use proto::coap::uri::{self, Destination, Scheme, Uri, Via};
use proto::coap::{Code, Content, Datagram, Kind, Token, format, option};

use super::http::{COAP_PAYLOAD, content_format, status_of};
use super::tags::{of_digits, to_digits};
use crate::fields;

/// Most media types of Accept that are looked at.
const MAX_RANGES: usize = 32;
/// The media type of what goes on coming (WHATWG HTML §9.2.5).
const EVENT_STREAM: &str = "text/event-stream";
/// RFC 7252 §5.5.2: a diagnostic message is in UTF-8.
const DIAGNOSTIC: &str = "text/plain; charset=utf-8";

/// Why a request cannot be one of CoAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
}

fn unfit(status: StatusCode, reason: impl Into<String>) -> Unfit {
    Unfit { status, reason: reason.into() }
}

/// The request for `target`, a URI of the scheme coap.
pub(crate) fn request(
    method: &Method,
    target: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Content, Unfit> {
    let bad = |error: proto::Error| {
        let status = match error {
            proto::Error::Limit { .. } => StatusCode::URI_TOO_LONG,
            _ => StatusCode::BAD_REQUEST,
        };
        unfit(status, format!("the target is no URI of CoAP: {error}"))
    };
    let mut content = Content::new(code_of(method)?);
    let uri = Uri::parse(target).map_err(bad)?;
    let put = |number, value: &[u8]| {
        content.push(number, value);
        Ok(())
    };
    uri.options(Via::Origin, put).map_err(bad)?;
    // RFC 8768 §3: whoever makes a request of CoAP of another says how far it may go.
    content.push_uint(option::HOP_LIMIT, option::DEFAULT_HOP_LIMIT.into());
    if let Some(format) = accept(headers)? {
        content.push_uint(option::ACCEPT, format.into());
    }
    if !body.is_empty() {
        let format = content_format(headers)
            .map_err(|refusal| unfit(StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal.reason))?;
        if let Some(format) = format {
            content.push_uint(option::CONTENT_FORMAT, format.into());
        }
    }
    put_conditions(headers, &mut content)?;
    Ok(content.with_payload(body))
}

/// RFC 7252 §10.2, RFC 8132 §2. HTTP has no FETCH; QUERY, which is safe and has a body, is as near
/// as it comes, and whoever knows the names of CoAP may use them.
fn code_of(method: &Method) -> Result<Code, Unfit> {
    match method.as_str() {
        "GET" | "HEAD" => Ok(Code::GET),
        "POST" => Ok(Code::POST),
        "PUT" => Ok(Code::PUT),
        "DELETE" => Ok(Code::DELETE),
        "PATCH" => Ok(Code::PATCH),
        "IPATCH" => Ok(Code::IPATCH),
        "QUERY" | "FETCH" => Ok(Code::FETCH),
        _ => Err(unfit(StatusCode::NOT_IMPLEMENTED, format!("CoAP has no method {method}"))),
    }
}

/// Media types of Accept with their weights, without those that are refused (RFC 9110 §12.5.1).
fn ranges(headers: &HeaderMap) -> Vec<(f32, String)> {
    let mut ranges: Vec<(f32, String)> = Vec::new();
    for range in fields::tokens(headers, &header::ACCEPT).take(MAX_RANGES) {
        let mut parts = range.split(';').map(str::trim);
        let mut media = parts.next().unwrap_or_default().to_owned();
        let mut weight = 1.0;
        for part in parts {
            match part.strip_prefix("q=") {
                Some(value) => weight = value.parse().unwrap_or(0.0),
                None => {
                    media.push(';');
                    media.push_str(part);
                }
            }
        }
        if weight > 0.0 {
            ranges.push((weight, media));
        }
    }
    ranges.sort_by(|one, other| other.0.total_cmp(&one.0));
    ranges
}

/// Whether a client wants to hear of changes, and nothing else more than that.
pub(crate) fn wants_events(method: &Method, headers: &HeaderMap) -> bool {
    let ranges = ranges(headers);
    let best = ranges.first().map_or(0.0, |(weight, _)| *weight);
    let is_it = |(weight, media): &(f32, String)| media == EVENT_STREAM && *weight >= best;
    *method == Method::GET && ranges.iter().any(is_it)
}

/// The format that a client wants most, where it does not take any: CoAP can name one. Events have
/// what they tell of in any.
fn accept(headers: &HeaderMap) -> Result<Option<u16>, Unfit> {
    let ranges: Vec<_> =
        ranges(headers).into_iter().filter(|(_, media)| media != EVENT_STREAM).collect();
    if ranges.is_empty() || ranges.iter().any(|(_, media)| media.contains('*')) {
        return Ok(None);
    }
    let known = ranges.iter().find_map(|(_, media)| format::of(media, None).or(numbered(media)));
    let why = "no media type of Accept has a number in CoAP: leave Accept out";
    known.map(Some).ok_or_else(|| unfit(StatusCode::NOT_ACCEPTABLE, why))
}

/// The format that a media type names by its number (RFC 8075 §6.2).
fn numbered(media: &str) -> Option<u16> {
    let parameters = media.strip_prefix(COAP_PAYLOAD)?;
    parameters.split(';').find_map(|one| one.trim().strip_prefix("cf=")?.parse().ok())
}

/// Tags that CoAP has given out are hexadecimal (RFC 8075 §8.3); no other can match.
fn put_conditions(headers: &HeaderMap, content: &mut Content) -> Result<(), Unfit> {
    let none: Vec<_> = fields::tokens(headers, &header::IF_NONE_MATCH).take(MAX_RANGES).collect();
    if !content.code.is_safe() {
        if none.iter().any(|tag| tag == "*") {
            content.push(option::IF_NONE_MATCH, b"");
        }
    } else {
        for tag in none.iter().filter_map(|tag| of_digits(tag.strip_prefix("w/").unwrap_or(tag))) {
            content.push(option::ETAG, &tag);
        }
    }
    let some: Vec<_> = fields::tokens(headers, &header::IF_MATCH).take(MAX_RANGES).collect();
    if some.iter().any(|tag| tag == "*") {
        content.push(option::IF_MATCH, b"");
        return Ok(());
    }
    let known: Vec<_> = some.iter().filter_map(|tag| of_digits(tag)).collect();
    if known.is_empty() && !some.is_empty() {
        let why = "no tag of If-Match is one that CoAP can have given";
        return Err(unfit(StatusCode::PRECONDITION_FAILED, why));
    }
    known.iter().for_each(|tag| content.push(option::IF_MATCH, tag));
    Ok(())
}

/// The answer to a request with this method.
pub(crate) fn response(method: &Method, content: Content) -> Response<Bytes> {
    let code = content.code;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status(&content);
    let headers = response.headers_mut();
    let body = match content.uint(option::SIZE1) {
        // RFC 7959 §2.9.3: how much the server would take.
        Some(most) if code == Code::REQUEST_ENTITY_TOO_LARGE && content.payload.is_empty() => {
            Bytes::from(format!("the server takes bodies of up to {most} bytes\n"))
        }
        _ => content.payload.clone(),
    };
    if !body.is_empty() {
        put_media(&content, &body, headers);
    }
    if let Some(tag) = content.first(option::ETAG).and_then(|tag| value(to_digits(tag))) {
        headers.insert(header::ETAG, tag);
    }
    put_age(&content, headers);
    if code == Code::CREATED {
        headers.extend(location(&content).map(|location| (header::LOCATION, location)));
    }
    if *method == Method::HEAD {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    } else if code != Code::VALID {
        *response.body_mut() = body;
    }
    response
}

/// RFC 8075 §7, table 2, with what depends on more than the code.
fn status(content: &Content) -> StatusCode {
    match content.code {
        // Note 2: nothing came of it that could be shown.
        Code::CHANGED | Code::DELETED if content.payload.is_empty() => StatusCode::NO_CONTENT,
        // Note 10: these are between this proxy and the server alone.
        Code::CONTINUE | Code::REQUEST_ENTITY_INCOMPLETE => StatusCode::BAD_GATEWAY,
        code => status_of(code),
    }
}

/// RFC 8075 §8.1: how long an answer may be kept is said also where CoAP leaves it out.
fn put_age(content: &Content, headers: &mut HeaderMap) {
    let (code, age) = (content.code, content.uint(option::MAX_AGE));
    if matches!(code, Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS) {
        // RFC 8075 §7, note 8; RFC 8516 §5.
        headers.extend(age.map(|age| (header::RETRY_AFTER, HeaderValue::from(age))));
    } else if matches!(code, Code::CONTENT | Code::VALID) || !code.is_success() {
        let age = age.unwrap_or(option::DEFAULT_AGE_S);
        headers.extend(value(format!("max-age={age}")).map(|age| (header::CACHE_CONTROL, age)));
        // RFC 7252 §5.4.2: what a kept answer belongs to includes the format that was asked for.
        headers.insert(header::VARY, HeaderValue::from_static("accept"));
    }
}

fn value(text: String) -> Option<HeaderValue> {
    HeaderValue::try_from(text).ok()
}

fn put_media(content: &Content, body: &[u8], headers: &mut HeaderMap) {
    let Some(number) = content.uint(option::CONTENT_FORMAT) else {
        if !content.code.is_success() && std::str::from_utf8(body).is_ok() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(DIAGNOSTIC));
        }
        return;
    };
    match u16::try_from(number).ok().and_then(format::media_type) {
        Some((media, coding)) => {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            let coding = coding.map(HeaderValue::from_static);
            headers.extend(coding.map(|coding| (header::CONTENT_ENCODING, coding)));
        }
        // RFC 8075 §6.2.
        None => {
            let media = value(format!("{COAP_PAYLOAD};cf={number}"));
            headers.extend(media.map(|media| (header::CONTENT_TYPE, media)));
        }
    }
}

/// Where a thing was made, on the same server (RFC 7252 §5.10.7): relative, so that it holds
/// whatever the client calls the server.
fn location(content: &Content) -> Option<HeaderValue> {
    let mut made = Content::new(Code::GET);
    content.all(option::LOCATION_PATH).for_each(|part| made.push(option::URI_PATH, part));
    content.all(option::LOCATION_QUERY).for_each(|part| made.push(option::URI_QUERY, part));
    made.options().next()?;
    let bytes = made.encode(Kind::NonConfirmable, 0, Token::EMPTY).ok()?;
    let datagram = Datagram::decode(&bytes).ok()?;
    let (scheme, host) = (Scheme::Coap, uri::Host::Name("x"));
    let destination = Destination { scheme, host, port: scheme.default_port() };
    let mut text = String::new();
    uri::compose(datagram.message.options, &destination, &mut text).ok()?;
    let path = text.strip_prefix("coap://x")?;
    // Two slashes would begin another authority.
    let path = if path.starts_with("//") { format!("/.{path}") } else { path.to_owned() };
    value(path)
}

#[cfg(test)]
mod tests;
