//! A request of CoAP as one of HTTP, and the answer of HTTP as one of CoAP (RFC 7252 §10.1): pure
//! functions. RFC 8075 has the other direction; what it says of media types and statuses holds here
//! as far as it can be read backwards.

use ::http::header::{self, HeaderMap, HeaderValue};
use ::http::{Method, StatusCode, Uri, response};
use bytes::Bytes;
use proto::coap::uri::{self, Destination, Host, Scheme, Via};
use proto::coap::{Code, Content, Datagram, Kind, Token, format, option};

use super::tags::Tags;
use crate::envelope::Soap;
use crate::fields;
use crate::upstream::Upstream;

/// Longest diagnostic message that goes with a refusal, in bytes: it fits one datagram with ease.
const MAX_DIAGNOSTIC_BYTES: usize = 256;
/// The media type of what has a format that is not in the table (RFC 8075 §6.2).
pub(crate) const COAP_PAYLOAD: &str = "application/coap-payload";
/// What a server has that has nothing else (RFC 6690 §4).
const LINKS: &str = "</.well-known/core>;ct=40";

/// An answer of our own instead of an origin's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    /// One line.
    pub(crate) reason: String,
}

/// The refusal with this code, and why.
pub(crate) fn refuse(code: Code, reason: impl Into<String>) -> Refusal {
    Refusal { code, reason: reason.into() }
}

impl Refusal {
    /// The answer, with its reason as a diagnostic message (RFC 7252 §5.5.2).
    pub(crate) fn content(&self) -> Content {
        let mut end = self.reason.len().min(MAX_DIAGNOSTIC_BYTES);
        while !self.reason.is_char_boundary(end) {
            end -= 1;
        }
        let text = self.reason.get(..end).unwrap_or_default().to_owned();
        Content::new(self.code).with_uint(option::MAX_AGE, 0).with_payload(text)
    }
}

/// What a request is for.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Something of an origin.
    Origin(Box<Asked>),
    /// The links of this server itself.
    Links(Content),
}

/// A request, understood.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    /// The only format that the client takes.
    accept: Option<u16>,
    /// Tags of what the client has.
    etags: Vec<Vec<u8>>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) scheme: String,
    pub(crate) authority: String,
    /// With its query.
    pub(crate) path: String,
    /// What stands before each path that clients know.
    prefix: String,
    /// The client named the origin, not the operator.
    pub(crate) is_proxied: bool,
}

/// Understands a request. Without Proxy-Uri and Proxy-Scheme it is for `upstream`, if there is one.
pub(crate) fn ask(
    content: &Content,
    upstream: Option<&Upstream>,
    tags: &Tags,
) -> Result<Wanted, Refusal> {
    check_options(content)?;
    let Some(target) = target(content, upstream)? else { return links(content) };
    // RFC 8613 §11: HTTP can carry such a message, but nobody here takes it for one.
    if content.first(option::OSCORE).is_some() {
        return Err(refuse(Code::BAD_OPTION, "what OSCORE protects does not go on to HTTP"));
    }
    let method = method(content.code)?;
    let accept = content.uint(option::ACCEPT).and_then(|value| u16::try_from(value).ok());
    // RFC 8768 §3: whoever goes on with a request counts it down.
    option::next_hop(content.first(option::HOP_LIMIT))
        .map_err(|code| refuse(code, "Hop-Limit does not allow another hop"))?;
    let etags: Vec<_> = content.all(option::ETAG).map(<[u8]>::to_vec).collect();
    let etags = if content.code == Code::GET { etags } else { Vec::new() };
    let headers = headers(content, accept, &etags, tags)?;
    Ok(Wanted::Origin(Box::new(Asked { method, target, headers, accept, etags })))
}

/// RFC 7252 §5.7.1: a proxy refuses options that are unsafe and that it does not know.
fn check_options(content: &Content) -> Result<(), Refusal> {
    let is_strange = |number| option::is_unsafe(number) && option::definition(number).is_none();
    let strange = content.options().map(|(number, _)| number).find(|number| is_strange(*number));
    match strange {
        None => Ok(()),
        Some(number) => Err(refuse(Code::BAD_OPTION, format!("option {number} is unknown"))),
    }
}

/// RFC 7252 §10.1, RFC 8132 §3. HTTP has nothing for FETCH.
fn method(code: Code) -> Result<Method, Refusal> {
    match code {
        Code::GET => Ok(Method::GET),
        Code::POST => Ok(Method::POST),
        Code::PUT => Ok(Method::PUT),
        Code::DELETE => Ok(Method::DELETE),
        // RFC 5789 §2: what PATCH does may be idempotent, as what iPATCH does is.
        Code::PATCH | Code::IPATCH => Ok(Method::PATCH),
        _ => Err(refuse(Code::NOT_IMPLEMENTED, "HTTP has no such method: GET, POST, PUT, DELETE")),
    }
}

/// Where it goes; `None`: nowhere, it is for the links of this server.
fn target(content: &Content, upstream: Option<&Upstream>) -> Result<Option<Target>, Refusal> {
    let has = |number| content.first(number).is_some();
    if has(option::PROXY_URI) || has(option::PROXY_SCHEME) {
        return proxied(content).map(Some);
    }
    let Some(upstream) = upstream else {
        let path: Vec<_> = content.all(option::URI_PATH).collect();
        if path == [&b".well-known"[..], b"core"] {
            return Ok(None);
        }
        let remedy = "this is a proxy: name an origin with Proxy-Uri";
        return Err(refuse(Code::NOT_FOUND, remedy));
    };
    let mut local = content.clone();
    local.remove(option::URI_HOST);
    local.remove(option::URI_PORT);
    let text = compose(&local, Scheme::Coap.default_port())?;
    let from_root = text.find("://").and_then(|at| text.get(at + 3..));
    let from_root = from_root.and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)));
    Ok(Some(Target {
        scheme: upstream.scheme.clone(),
        authority: upstream.authority.clone(),
        path: format!("{}{}", upstream.prefix, from_root.unwrap_or("/")),
        prefix: upstream.prefix.clone(),
        is_proxied: false,
    }))
}

/// What Proxy-Uri, or Proxy-Scheme with the Uri-* options, name (RFC 7252 §5.10.2).
fn proxied(content: &Content) -> Result<Target, Refusal> {
    let bad = |reason: &str| refuse(Code::BAD_REQUEST, reason);
    let scheme = content.first(option::PROXY_SCHEME);
    if content.first(option::PROXY_URI).is_none() && content.first(option::URI_HOST).is_none() {
        return Err(bad("Proxy-Scheme needs Uri-Host"));
    }
    // A port that is not said is the scheme's own: that of this server tells nothing.
    let is_secure = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https"));
    let text = compose(content, if is_secure { 443 } else { 80 })?;
    let (scheme, _) = text.split_once("://").ok_or_else(|| bad("Proxy-Uri is no absolute URI"))?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        let known = "only http and https go on from here";
        return Err(refuse(Code::PROXYING_NOT_SUPPORTED, known));
    }
    if text.contains('#') {
        return Err(bad("Proxy-Uri has a fragment"));
    }
    let uri: Uri = text.parse().map_err(|_| bad("Proxy-Uri is no URI"))?;
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(bad("Proxy-Uri has no host, or a user"));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Target {
        scheme: scheme.to_ascii_lowercase(),
        authority: authority.to_owned(),
        path: if path.starts_with('/') { path.to_owned() } else { format!("/{path}") },
        prefix: String::new(),
        is_proxied: true,
    })
}

/// The URI that a request's options mean (RFC 7252 §6.5).
fn compose(content: &Content, port: u16) -> Result<String, Refusal> {
    let bad = |_| refuse(Code::BAD_REQUEST, "the options make no URI");
    let bare = content.clone().with_payload(Bytes::new());
    let bytes = bare.encode(Kind::NonConfirmable, 0, Token::EMPTY).map_err(bad)?;
    let datagram = Datagram::decode(&bytes).map_err(bad)?;
    let host = Host::Name("localhost");
    let mut text = String::new();
    let destination = Destination { scheme: Scheme::Coap, host, port };
    uri::compose(datagram.message.options, &destination, &mut text).map_err(bad)?;
    Ok(text)
}

/// The links of this server, of which there is one (RFC 6690 §4, §4.1).
fn links(content: &Content) -> Result<Wanted, Refusal> {
    if content.code != Code::GET {
        return Err(refuse(Code::METHOD_NOT_ALLOWED, "links are only read"));
    }
    if content.uint(option::ACCEPT).is_some_and(|only| only != u32::from(format::LINK_FORMAT)) {
        return Err(refuse(Code::NOT_ACCEPTABLE, "links are in application/link-format"));
    }
    let mut filters = content.all(option::URI_QUERY);
    let is_it = filters.all(|filter| match filter.strip_prefix(b"href=") {
        Some(filter) => match filter.strip_suffix(b"*") {
            Some(prefix) => b"/.well-known/core".starts_with(prefix),
            None => filter == b"/.well-known/core",
        },
        None => filter == b"ct=40",
    });
    let answer = Content::new(Code::CONTENT)
        .with_uint(option::CONTENT_FORMAT, format::LINK_FORMAT.into())
        .with_payload(if is_it { LINKS } else { "" });
    Ok(Wanted::Links(answer))
}

/// The fields that a request's options mean.
fn headers(
    content: &Content,
    accept: Option<u16>,
    etags: &[Vec<u8>],
    tags: &Tags,
) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::new();
    let mut coding = "identity";
    if let Some(number) = accept {
        // RFC 7252 §5.10.4: what the client wants is no media type that can be asked for.
        let known = format::media_type(number).ok_or_else(|| {
            refuse(Code::NOT_ACCEPTABLE, format!("format {number} is not known here"))
        })?;
        coding = known.1.unwrap_or(coding);
        headers.insert(header::ACCEPT, HeaderValue::from_static(known.0));
    }
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding));
    if let Some(number) = content.uint(option::CONTENT_FORMAT) {
        let known = u16::try_from(number).ok().and_then(format::media_type);
        let media = match known {
            Some((media, None)) if number == u32::from(format::XML) => {
                HeaderValue::from_static(soap_media(&content.payload).unwrap_or(media))
            }
            Some((media, _)) => HeaderValue::from_static(media),
            None => value(format!("{COAP_PAYLOAD};cf={number}"))?,
        };
        headers.insert(header::CONTENT_TYPE, media);
        if let Some(coding) = known.and_then(|row| row.1) {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
    }
    if !etags.is_empty() {
        let all: Vec<_> = etags.iter().map(|etag| tags.lengthen(etag)).collect();
        headers.insert(header::IF_NONE_MATCH, value(all.join(", "))?);
    }
    // RFC 7252 §5.10.8.1: an empty one is met by anything that exists.
    let matches: Vec<_> = content.all(option::IF_MATCH).collect();
    if matches.iter().any(|short| short.is_empty()) {
        headers.insert(header::IF_MATCH, HeaderValue::from_static("*"));
    } else if !matches.is_empty() {
        let all: Vec<_> = matches.iter().map(|short| tags.lengthen(short)).collect();
        headers.insert(header::IF_MATCH, value(all.join(", "))?);
    }
    if content.first(option::IF_NONE_MATCH).is_some() {
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("*"));
    }
    Ok(headers)
}

/// The media type of an envelope of SOAP: CoAP has one number for all XML, and services of SOAP
/// take nothing else.
fn soap_media(document: &[u8]) -> Option<&'static str> {
    Soap::of(document).map(|version| match version {
        Soap::V1_1 => "text/xml",
        Soap::V1_2 => "application/soap+xml",
    })
}

fn value(text: String) -> Result<HeaderValue, Refusal> {
    let bad = |_| refuse(Code::BAD_REQUEST, "an option is nothing that HTTP can say");
    HeaderValue::try_from(text).map_err(bad)
}

/// The answer of an origin, whose whole body is here, to a request with this method.
pub(crate) fn answer(
    method: Code,
    asked: &Asked,
    head: &response::Parts,
    body: Bytes,
    tags: &mut Tags,
) -> Result<Content, Refusal> {
    let code = code_of(head.status, method)?;
    let etag = head.headers.get(header::ETAG).and_then(|tag| tags.shorten(tag.to_str().ok()?));
    let is_had = |etag: &Vec<u8>| code == Code::CONTENT && asked.etags.contains(etag);
    if code == Code::VALID || etag.as_ref().is_some_and(is_had) {
        return valid(asked, etag, head);
    }
    let mut content = Content::new(code);
    let format = if body.is_empty() { None } else { content_format(&head.headers)? };
    let is_refused = asked.accept.is_some_and(|only| !body.is_empty() && format != Some(only));
    if is_refused && code.is_success() {
        let reason = "the origin has this in another format only";
        return Err(refuse(Code::NOT_ACCEPTABLE, reason));
    }
    // Why an origin refuses is of no use in what the client does not take.
    if !is_refused {
        content.payload = body;
    }
    // Without a format the payload of a refusal is text (RFC 7252 §5.5.2).
    let is_text = code.is_success() || std::str::from_utf8(&content.payload).is_ok();
    let format = format.or((!is_text).then_some(format::OCTET_STREAM));
    if let Some(format) = format.filter(|_| !content.payload.is_empty()) {
        content.push_uint(option::CONTENT_FORMAT, format.into());
    }
    if let Some(etag) = etag.filter(|_| code.is_success()) {
        content.push(option::ETAG, &etag);
    }
    if code == Code::CREATED
        && let Some(location) = head.headers.get(header::LOCATION)
    {
        put_location(&asked.target, location.to_str().unwrap_or_default(), &mut content);
    }
    // RFC 7252 §5.9.1: answers to what changes something are not kept.
    if code == Code::CONTENT || !code.is_success() {
        put_age(code, &head.headers, &mut content);
    }
    Ok(content)
}

/// RFC 7252 §5.9.1.3: the client has it, and it is this one.
fn valid(asked: &Asked, etag: Option<Vec<u8>>, head: &response::Parts) -> Result<Content, Refusal> {
    let only = || asked.etags.first().filter(|_| asked.etags.len() == 1).cloned();
    let etag = etag.or_else(only).ok_or_else(|| {
        refuse(Code::BAD_GATEWAY, "the origin says 'not modified' and not what is not")
    })?;
    let mut content = Content::new(Code::VALID).with(option::ETAG, &etag);
    put_age(Code::VALID, &head.headers, &mut content);
    Ok(content)
}

/// The code for a status (RFC 7252 §10.1, RFC 8075 §7 read backwards, RFC 8132 §3.4, RFC 8516).
fn code_of(status: StatusCode, method: Code) -> Result<Code, Refusal> {
    Ok(match (status.as_u16(), method) {
        (200..=299, Code::GET) => Code::CONTENT,
        (201, _) => Code::CREATED,
        (200..=299, Code::DELETE) => Code::DELETED,
        (200..=299, _) => Code::CHANGED,
        (304, Code::GET) => Code::VALID,
        (401, _) => Code::UNAUTHORIZED,
        (402 | 403 | 451, _) => Code::FORBIDDEN,
        (404 | 410, _) => Code::NOT_FOUND,
        (405, _) => Code::METHOD_NOT_ALLOWED,
        (406, _) => Code::NOT_ACCEPTABLE,
        (409, _) => Code::CONFLICT,
        (412 | 428, _) => Code::PRECONDITION_FAILED,
        (413, _) => Code::REQUEST_ENTITY_TOO_LARGE,
        (415, _) => Code::UNSUPPORTED_CONTENT_FORMAT,
        (422, _) => Code::UNPROCESSABLE_ENTITY,
        (429, _) => Code::TOO_MANY_REQUESTS,
        (400..=499, _) => Code::BAD_REQUEST,
        (501, _) => Code::NOT_IMPLEMENTED,
        (502, _) => Code::BAD_GATEWAY,
        (503, _) => Code::SERVICE_UNAVAILABLE,
        (504, _) => Code::GATEWAY_TIMEOUT,
        (508, _) => Code::HOP_LIMIT_REACHED,
        (500..=599, _) => Code::INTERNAL_SERVER_ERROR,
        // CoAP leads nobody elsewhere.
        (300..=399, _) => {
            let reason = format!("the origin answers {status}, which CoAP cannot say");
            return Err(refuse(Code::BAD_GATEWAY, reason));
        }
        _ => return Err(refuse(Code::BAD_GATEWAY, format!("status {status} is none"))),
    })
}

/// The status for a code (RFC 8075 §7, table 2; RFC 8132 §3.4, RFC 8516 §5).
pub(crate) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::CREATED => StatusCode::CREATED,
        Code::VALID => StatusCode::NOT_MODIFIED,
        code if code.is_success() => StatusCode::OK,
        // RFC 8075 §7, note 5: there is no challenge that a client of HTTP could answer.
        Code::UNAUTHORIZED | Code::FORBIDDEN => StatusCode::FORBIDDEN,
        Code::NOT_FOUND => StatusCode::NOT_FOUND,
        Code::NOT_ACCEPTABLE => StatusCode::NOT_ACCEPTABLE,
        Code::CONFLICT => StatusCode::CONFLICT,
        Code::PRECONDITION_FAILED => StatusCode::PRECONDITION_FAILED,
        Code::REQUEST_ENTITY_TOO_LARGE => StatusCode::PAYLOAD_TOO_LARGE,
        Code::UNSUPPORTED_CONTENT_FORMAT => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Code::UNPROCESSABLE_ENTITY => StatusCode::UNPROCESSABLE_ENTITY,
        Code::TOO_MANY_REQUESTS => StatusCode::TOO_MANY_REQUESTS,
        // Notes 6 and 7: 4.02 is nothing that the client did; 405 would need a list of methods.
        code if code.class() == 4 => StatusCode::BAD_REQUEST,
        Code::NOT_IMPLEMENTED => StatusCode::NOT_IMPLEMENTED,
        Code::BAD_GATEWAY | Code::PROXYING_NOT_SUPPORTED => StatusCode::BAD_GATEWAY,
        Code::SERVICE_UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
        Code::GATEWAY_TIMEOUT => StatusCode::GATEWAY_TIMEOUT,
        Code::HOP_LIMIT_REACHED => StatusCode::LOOP_DETECTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The URI of a request as far as there is one, for people.
pub(crate) fn shown(content: &Content) -> String {
    compose(content, Scheme::Coap.default_port()).unwrap_or_default()
}

/// The format of a body; `None` where nobody says what it is. What has no format of its own has
/// that of what it is a kind of (RFC 8075 §6.3).
pub(crate) fn content_format(headers: &HeaderMap) -> Result<Option<u16>, Refusal> {
    let codings = fields::tokens(headers, &header::CONTENT_ENCODING);
    let codings: Vec<_> = codings.filter(|coding| coding != "identity").collect();
    let media = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let strange = || refuse(Code::BAD_GATEWAY, "the content coding has no number in CoAP");
    match (media, &codings[..]) {
        (None, []) => Ok(None),
        (Some(media), []) => Ok(Some(format_of(media))),
        (Some(media), [coding]) => format::of(media, Some(coding)).map(Some).ok_or_else(strange),
        _ => Err(strange()),
    }
}

fn format_of(media: &str) -> u16 {
    if let Some(format) = format::of(media, None) {
        return format;
    }
    let mut parts = media.split(';').map(|part| part.trim().to_ascii_lowercase());
    let essence = parts.next().unwrap_or_default();
    let parameters: Vec<_> = parts.collect();
    let parameter = |name: &str| {
        let mut values = parameters.iter().filter_map(|one| one.strip_prefix(name));
        values.next().map(|value| value.trim_matches('"').to_owned())
    };
    if let Some(number) = parameter("cf=").filter(|_| essence == COAP_PAYLOAD) {
        return number.parse().unwrap_or(format::OCTET_STREAM);
    }
    // RFC 7252 §12.3: text is in UTF-8.
    if parameter("charset=").is_some_and(|set| !matches!(&set[..], "utf-8" | "utf8" | "us-ascii")) {
        return format::OCTET_STREAM;
    }
    let (kind, name) = essence.split_once('/').unwrap_or_default();
    match format::of(&essence, None) {
        Some(format) => format,
        None if name.ends_with("+xml") => format::XML,
        None if name.ends_with("+json") => format::JSON,
        None if name.ends_with("+cbor") => format::CBOR,
        None if kind == "text" => 0,
        None => format::OCTET_STREAM,
    }
}

/// How long an answer may be kept. CoAP takes one that says nothing for good for a minute
/// (RFC 7252 §5.10.5), and HTTP does not.
fn put_age(code: Code, headers: &HeaderMap, content: &mut Content) {
    let age = match code {
        // RFC 7252 §5.9.3.4, RFC 8516 §3: when to ask again.
        Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS => {
            number(headers, &header::RETRY_AFTER)
        }
        _ => freshness(headers),
    };
    let age = age.unwrap_or(0);
    if age != option::DEFAULT_AGE_S {
        content.push_uint(option::MAX_AGE, age);
    }
}

/// How many seconds an answer is fresh, if it says so (RFC 9111 §4.2).
fn freshness(headers: &HeaderMap) -> Option<u32> {
    let all: Vec<_> = fields::tokens(headers, &header::CACHE_CONTROL).collect();
    let is_kept = |directive: &String| {
        let name = directive.split('=').next().unwrap_or_default();
        !matches!(name, "no-store" | "no-cache" | "private")
    };
    if !all.iter().all(is_kept) {
        return None;
    }
    let seconds = |name: &str| {
        let mut values = all.iter().filter_map(|directive| directive.strip_prefix(name));
        let value = values.next()?.trim_matches('"').parse::<u64>().ok()?;
        Some(u32::try_from(value).unwrap_or(u32::MAX))
    };
    let most = seconds("s-maxage=").or_else(|| seconds("max-age="))?;
    Some(most.saturating_sub(number(headers, &header::AGE).unwrap_or(0)))
}

fn number(headers: &HeaderMap, name: &header::HeaderName) -> Option<u32> {
    let value = headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok()?;
    Some(u32::try_from(value).unwrap_or(u32::MAX))
}

/// Where a thing was made, as far as CoAP can say it: beside what was asked (RFC 7252 §5.10.7).
fn put_location(target: &Target, location: &str, content: &mut Content) {
    let location = location.split('#').next().unwrap_or_default();
    let path = if let Some((scheme, rest)) = location.split_once("://") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let is_same = scheme.eq_ignore_ascii_case(&target.scheme)
            && authority.eq_ignore_ascii_case(&target.authority);
        if !is_same {
            return;
        }
        path.to_owned()
    } else if location.starts_with("//") {
        return;
    } else if location.starts_with('/') {
        location.to_owned()
    } else {
        let asked = target.path.split('?').next().unwrap_or_default();
        let folder = asked.rfind('/').and_then(|at| asked.get(..=at)).unwrap_or("/");
        format!("{folder}{location}")
    };
    let Some(path) = path.strip_prefix(&target.prefix) else { return };
    if !target.prefix.is_empty() && !path.is_empty() && !path.starts_with(['/', '?']) {
        return;
    }
    let text = format!("coap://localhost{path}");
    let Ok(uri) = uri::Uri::parse(&text) else { return };
    // What was parsed has no option that cannot be said.
    let _ = uri.options(Via::Origin, |number, value| {
        match number {
            option::URI_PATH => content.push(option::LOCATION_PATH, value),
            option::URI_QUERY => content.push(option::LOCATION_QUERY, value),
            _ => {}
        }
        Ok(())
    });
}
