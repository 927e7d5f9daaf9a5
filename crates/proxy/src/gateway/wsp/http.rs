//! Requests and replies of WSP as those of HTTP (WAP-230 §8.2.3).

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use proto::http1::escape_target;
use proto::wsp::headers::{self, Encoder, EncodingVersion, Field, Rules};
use proto::wsp::packet::Pdu;
use proto::wsp::{MAX_PDU_BYTES, packet, status};

use crate::edge::Refusal;
use crate::fields;
use crate::pattern::Target;
use crate::upstream::host_and_port;

/// The version of header codes that a peer knows; it holds on one hop (WAP-230 §8.4.2.70).
const ENCODING_VERSION: HeaderName = HeaderName::from_static("encoding-version");
/// The content type of what has none: any (WAP-230 §8.4.2.24).
const ANY_MEDIA: u8 = 0x80;
/// What the codes before the body take in a reply: the type, the status, a length.
const AROUND_HEADERS_BYTES: usize = 8;

/// A request, understood: fields are those that leave this hop.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    scheme: String,
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What its reply is encoded by.
    pub(super) rules: Rules,
}

impl Asked {
    /// Takes the PDU of a request apart. Errors: what is wrong with it, as the client is told.
    pub(super) fn new(pdu: &Bytes) -> Result<Self, Refusal> {
        let request = Pdu::decode(pdu).map_err(|error| bad(format!("the PDU: {error}")))?;
        let Pdu::Request { method, uri, headers, body } = request else {
            return Err(bad("the PDU is no request".to_owned()));
        };
        if method == packet::Method::Trace {
            let reason = "TRACE is not served here".to_owned();
            let status = StatusCode::NOT_IMPLEMENTED;
            return Err(Refusal { status, error: "http_request_error", reason });
        }
        let body = pdu.slice(pdu.len() - body.len()..);
        let rules = Rules { body_bytes: Some(body.len() as u64), ..Rules::DEFAULT };
        let decoded = match method.has_body() {
            true => headers::decode_with_content_type(rules, headers),
            false => headers::decode(rules, headers),
        };
        let decoded = decoded.map_err(|error| bad(format!("the headers: {error}")))?;
        let mut headers = joined(&decoded.fields)?;
        let rules = Rules { version: version(&headers), body_bytes: None };
        let (scheme, authority, path) = destination(uri)?;
        let method = Method::from_bytes(method.name().as_bytes())
            .map_err(|_| bad("the method is none of HTTP".to_owned()))?;
        if !fields::count_forward(&method, &mut headers) {
            return Err(bad("Max-Forwards lets the request go no further".to_owned()));
        }
        fields::remove_hop_by_hop(&mut headers);
        for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT, ENCODING_VERSION] {
            headers.remove(name);
        }
        if method == Method::POST || method == Method::PUT {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(Self { method, scheme, authority, path, headers, body, rules })
    }

    pub(super) fn target(&self) -> Result<Target<'_>, Refusal> {
        let (host, port) = host_and_port(&self.authority, &self.scheme)
            .filter(|(host, _)| !host.is_empty())
            .ok_or_else(|| bad(format!("'{}' is no host and port", self.authority)))?;
        Ok(Target { scheme: Some(&self.scheme), host, port, path: Some(&self.path) })
    }

    /// The whole URI, for the log.
    pub(super) fn uri(&self) -> Uri {
        format!("{}://{}{}", self.scheme, self.authority, self.path).parse().unwrap_or_default()
    }
}

/// Fields as HTTP has them. What is a list in HTTP comes as a header for each of its elements, and
/// goes as one field: some services look at the first alone.
fn joined(decoded: &[Field]) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::new();
    let wrong = |what: &str, name: &str| bad(format!("the header '{name}' {what}"));
    for Field { name, value } in decoded {
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|_| wrong("has no name of HTTP", name))?;
        let separator: &[u8] = if key == header::COOKIE { b"; " } else { b", " };
        let whole = match headers.get(&key).map(HeaderValue::as_bytes) {
            Some(before) => [before, separator, value].concat(),
            None => value.clone(),
        };
        let whole = HeaderValue::from_bytes(&whole);
        let whole = whole.map_err(|_| wrong("has a value that HTTP forbids", name))?;
        headers.try_insert(key, whole).map_err(|_| wrong("is one too many", name))?;
    }
    Ok(headers)
}

/// Which numbers the client knows, if it says so.
fn version(headers: &HeaderMap) -> EncodingVersion {
    match headers.get(ENCODING_VERSION).map(HeaderValue::as_bytes) {
        Some(b"1.1") => EncodingVersion::V1_1,
        Some(b"1.3") => EncodingVersion::V1_3,
        Some(b"1.4" | b"1.5") => EncodingVersion::V1_4,
        _ => Rules::DEFAULT.version,
    }
}

/// Scheme, authority and path of an absolute URI.
fn destination(uri: &[u8]) -> Result<(String, String, String), Refusal> {
    let shown = || uri.get(..60).unwrap_or(uri).escape_ascii().to_string();
    let text = escape_target(uri);
    let uri = Uri::try_from(text).map_err(|_| bad(format!("'{}' is no URI", shown())))?;
    let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
    let scheme = scheme
        .ok_or_else(|| bad(format!("'{}': a whole URI, of scheme http or https", shown())))?
        .to_owned();
    let authority = uri.authority().map(|authority| authority.as_str().to_owned());
    let authority = authority.ok_or_else(|| bad(format!("'{}' has no host", shown())))?;
    if authority.contains('@') {
        return Err(bad("a URI may not hold a user or password".to_owned()));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok((scheme, authority, format!("{slash}{path}")))
}

/// The PDU of a reply. Error: it does not fit a datagram; nothing of it goes then.
pub(super) fn reply(
    rules: Rules,
    status: StatusCode,
    fields: &HeaderMap,
    body: &[u8],
) -> Result<Bytes, proto::Error> {
    let mut headers = Vec::new();
    let media = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let put = media.map(|media| headers::encode_content_type(rules, media, &mut headers));
    if !matches!(put, Some(Ok(()))) {
        headers.push(ANY_MEDIA);
    }
    // Where there is a body its length is that of the PDU.
    let tells_length = body.is_empty();
    let mut encoder = Encoder::new(rules, &mut headers);
    for (name, value) in fields {
        let is_said = name == header::CONTENT_TYPE
            || name == header::TRANSFER_ENCODING
            || (name == header::CONTENT_LENGTH && !tells_length);
        if !is_said {
            encoder.put(name.as_str(), value.as_bytes())?;
        }
    }
    let pdu = Pdu::Reply { status: status::nearest(status.as_u16()), headers: &headers, body };
    let most = headers.len() + body.len() + AROUND_HEADERS_BYTES;
    let mut room = vec![0; most.min(MAX_PDU_BYTES)];
    let len = pdu.encode(&mut room)?;
    room.truncate(len);
    Ok(room.into())
}

/// What is wrong with a request.
pub(super) fn bad(reason: String) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, error: "http_request_error", reason }
}

/// A body, or a head, that does not fit.
pub(super) fn too_large(reason: String) -> Refusal {
    Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, error: "http_request_error", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pdu(method: packet::Method, uri: &str, fields: &[(&str, &str)], body: &[u8]) -> Bytes {
        let mut headers = Vec::new();
        if method.has_body() {
            let media = b"text/xml; charset=utf-8";
            headers::encode_content_type(Rules::DEFAULT, media, &mut headers).unwrap();
        }
        for (name, value) in fields {
            headers::encode(Rules::DEFAULT, name, value.as_bytes(), &mut headers).unwrap();
        }
        let pdu = Pdu::Request { method, uri: uri.as_bytes(), headers: &headers, body };
        let mut room = vec![0; 4096];
        let len = pdu.encode(&mut room).unwrap();
        room.truncate(len);
        room.into()
    }

    #[test]
    fn a_request_is_one_of_http() {
        let fields = [
            ("Accept", "text/xml, application/vnd.wap.wmlc;q=0.5"),
            ("SOAPAction", "\"urn:a\""),
            ("Host", "elsewhere"),
            ("Connection", "close"),
            ("Encoding-Version", "1.3"),
        ];
        let asked =
            Asked::new(&pdu(packet::Method::Post, "http://a:81?x=1#f", &fields, b"<a/>")).unwrap();
        assert_eq!(
            (&asked.method, &asked.path[..], &asked.body[..]),
            (&Method::POST, "/?x=1", &b"<a/>"[..])
        );
        let target = asked.target().unwrap();
        assert_eq!((target.scheme, target.host, target.port), (Some("http"), "a", 81));
        assert_eq!(asked.rules.version, EncodingVersion::V1_3);
        let mut lines: Vec<_> = asked
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "accept: text/xml, application/vnd.wap.wmlc; q=0.5",
                "content-length: 4",
                "content-type: text/xml; charset=utf-8",
                "soapaction: \"urn:a\"",
            ]
        );
    }

    #[test]
    fn what_is_no_request_of_http_is_refused_in_one_line() {
        for (method, uri, status) in [
            (packet::Method::Get, "ftp://a/", 400),
            (packet::Method::Get, "/a", 400),
            (packet::Method::Get, "http://u@a/", 400),
            (packet::Method::Get, "http:///a", 400),
            (packet::Method::Get, "http://a b/", 400),
            (packet::Method::Get, "", 400),
            (packet::Method::Trace, "http://a/", 501),
        ] {
            let refusal = Asked::new(&pdu(method, uri, &[], b"")).unwrap_err();
            assert_eq!(refusal.status.as_u16(), status, "{uri}");
            assert_eq!(refusal.reason.lines().count(), 1, "{uri}");
        }
        // A pair of surrogate codes or the like in a URI goes escaped.
        let asked = Asked::new(&pdu(packet::Method::Get, "http://a/é|", &[], b"")).unwrap();
        assert_eq!(asked.path, "/%C3%A9%7C");
        for wrong in [&b""[..], b"\x40", b"\x04\x20\x01\x80", b"\x40\x09http://a/\x80"] {
            assert!(Asked::new(&Bytes::copy_from_slice(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_reply_says_what_the_answer_says() {
        let fields: HeaderMap = [
            (header::CONTENT_TYPE, "text/plain"),
            (header::CONTENT_LENGTH, "2"),
            (header::ETAG, "\"a\""),
        ]
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .into_iter()
        .collect();
        let rules = Rules::DEFAULT;
        let pdu = reply(rules, StatusCode::OK, &fields, b"ok").unwrap();
        assert_eq!(pdu[..], *b"\x04\x20\x0a\x83etag\0\"a\"\0ok");
        // The length of what HEAD would have brought is told.
        let pdu = reply(rules, StatusCode::NOT_MODIFIED, &fields, b"").unwrap();
        assert_eq!(pdu[..], *b"\x04\x34\x0c\x83\x8d\x82etag\0\"a\"\0");
        let pdu = reply(rules, StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), b"").unwrap();
        assert_eq!(pdu[..], *b"\x04\x40\x01\x80");
        let most = MAX_PDU_BYTES - 4;
        assert!(reply(rules, StatusCode::OK, &HeaderMap::new(), &vec![0; most]).is_ok());
        assert!(reply(rules, StatusCode::OK, &HeaderMap::new(), &vec![0; most + 1]).is_err());
    }
}
