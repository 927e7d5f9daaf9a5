//! Requests of HTTP as those of WSP, and the replies of WSP as answers of HTTP (WAP-230 §8.2.3):
//! pure functions.

use ::http::StatusCode;
use ::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use proto::wsp::headers::{self, Encoder, Rules};
use proto::wsp::packet::{self, Pdu};
use proto::wsp::{MAX_PDU_BYTES, status};

use super::super::super::answer::Refusal;
use super::super::{Answer, Whole, bad, broken, cannot, too_large};
use crate::fields;

/// Longest body: a request has a datagram, in which its head stands too.
pub(in super::super) const MAX_BODY_BYTES: usize = MAX_PDU_BYTES;
/// What a body without a content type is (RFC 9110 §8.3).
const BINARY: &[u8] = b"application/octet-stream";
/// The type of what has none, as replies say it (WAP-230 §8.4.2.24).
const ANY_MEDIA: &[u8] = b"*/*";
/// The version of header codes that a peer knows; it holds on one hop (WAP-230 §8.4.2.70).
const ENCODING_VERSION: HeaderName = HeaderName::from_static("encoding-version");
/// What the codes before the headers take beside the URI: a type and two lengths.
const AROUND_HEADERS_BYTES: usize = 16;

/// The PDU of a request, without its transaction id.
pub(super) fn request(whole: &Whole) -> Result<Bytes, Refusal> {
    let Whole { method, headers: fields, body, .. } = whole;
    let known = packet::Method::of_name(method.as_str().as_bytes());
    let known = known.ok_or_else(|| cannot(format!("{method} cannot be said by wsp")))?;
    if !known.has_body() && !body.is_empty() {
        return Err(cannot(format!("{method} has no body in WSP, and this one has")));
    }
    let (rules, mut headers) = (Rules::DEFAULT, Vec::new());
    if known.has_body() {
        let media = fields.get(header::CONTENT_TYPE).map_or(BINARY, HeaderValue::as_bytes);
        headers::encode_content_type(rules, media, &mut headers)
            .map_err(|error| bad(format!("the content type cannot be said by wsp: {error}")))?;
    }
    // The body's length is that of the datagram, and its type stands before.
    let is_said = |name: &HeaderName| {
        [header::CONTENT_LENGTH, header::EXPECT, header::HOST, header::TE].contains(name)
            || name == ENCODING_VERSION
            || (known.has_body() && name == header::CONTENT_TYPE)
    };
    let mut encoder = Encoder::new(rules, &mut headers);
    for (name, value) in fields.iter().filter(|(name, _)| !is_said(name)) {
        encoder
            .put(name.as_str(), value.as_bytes())
            .map_err(|error| bad(format!("the field '{name}' cannot be said by wsp: {error}")))?;
    }
    let uri = whole.uri();
    let len = AROUND_HEADERS_BYTES + uri.len() + headers.len() + body.len();
    let pdu = Pdu::Request { method: known, uri: uri.as_bytes(), headers: &headers, body };
    let mut room = vec![0; len.min(MAX_PDU_BYTES)];
    let len = pdu.encode(&mut room).map_err(|_| {
        let (head, body) = (uri.len() + headers.len(), body.len());
        let why = "WSP without a session has one datagram for both";
        too_large(format!(
            "the request has {head} bytes of head and {body} of body, over the limit of \
             {MAX_PDU_BYTES}: {why}"
        ))
    })?;
    room.truncate(len);
    Ok(room.into())
}

/// The answer that the PDU of a reply means; `is_head`: it has no body, whatever its length says.
pub(super) fn answer(pdu: &Bytes, is_head: bool) -> Result<Answer, Refusal> {
    let wrong = |why: &dyn std::fmt::Display| {
        broken(format!("the gateway's answer cannot be read as one of WSP: {why}"))
    };
    let decoded = Pdu::decode(pdu).map_err(|error| wrong(&error))?;
    let Pdu::Reply { status: octet, headers, body } = decoded else {
        return Err(wrong(&"it is none"));
    };
    let status = status::to_http(octet).and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.filter(|status| !status.is_informational());
    let status = status.ok_or_else(|| wrong(&format!("status {octet:#04x} is none of HTTP")))?;
    let rules = Rules { body_bytes: Some(body.len() as u64), ..Rules::DEFAULT };
    let decoded = headers::decode_with_content_type(rules, headers);
    let decoded = decoded.map_err(|error| wrong(&error))?;
    let mut fields = HeaderMap::new();
    for headers::Field { name, value } in decoded.fields {
        // What HTTP forbids in a field does not come from HTTP, and goes no further.
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) else { continue };
        if fields.try_append(name, value).is_err() {
            return Err(wrong(&"it has too many fields"));
        }
    }
    if fields.get(header::CONTENT_TYPE).is_some_and(|media| media.as_bytes() == ANY_MEDIA) {
        fields.remove(header::CONTENT_TYPE);
    }
    fields::remove_hop_by_hop(&mut fields);
    fields.remove(ENCODING_VERSION);
    // Gateways say of HEAD that it has no body (Kannel), which is nothing of what GET would bring.
    if !is_head || fields::content_length(&fields).is_none_or(|length| length == 0) {
        fields.remove(header::CONTENT_LENGTH);
    }
    let body = if is_head { Bytes::new() } else { pdu.slice(pdu.len() - body.len()..) };
    Ok(Answer { status, headers: fields, body })
}

#[cfg(test)]
mod tests {
    use ::http::Method;

    use super::*;

    fn whole(method: &str, fields: &[(&'static str, &'static str)], body: &[u8]) -> Whole {
        let line = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        Whole {
            method: Method::from_bytes(method.as_bytes()).unwrap(),
            scheme: "http".to_owned(),
            authority: "a".to_owned(),
            path: "/".to_owned(),
            headers: fields.iter().map(line).collect(),
            body: Bytes::copy_from_slice(body),
        }
    }

    #[test]
    fn a_request_is_a_pdu() {
        let get = whole("GET", &[("accept", "*/*"), ("host", "a"), ("te", "trailers")], b"");
        assert_eq!(request(&get).unwrap()[..], *b"\x40\x09http://a/\x80\x80");
        let fields = [("content-type", "text/xml"), ("content-length", "4"), ("accept", "*/*")];
        let post = whole("POST", &fields, b"<a/>");
        assert_eq!(request(&post).unwrap()[..], *b"\x60\x09\x03http://a/\xa8\x80\x80<a/>");
        let options = Whole { path: "*".to_owned(), ..whole("OPTIONS", &[], b"") };
        assert_eq!(request(&options).unwrap()[..], *b"\x41\x08http://a");
    }

    #[test]
    fn what_cannot_be_said_is_refused_in_one_line() {
        let over = vec![0; MAX_PDU_BYTES];
        for (whole, status) in [
            (whole("PATCH", &[], b"x"), 501),
            (whole("GET", &[], b"x"), 501),
            (whole("POST", &[], &over), 413),
            (whole("POST", &[("content-type", "no media type")], b"x"), 400),
        ] {
            let refusal = request(&whole).unwrap_err();
            assert_eq!(refusal.status.as_u16(), status, "{}", refusal.reason);
            assert_eq!(refusal.reason.lines().count(), 1, "{}", refusal.reason);
        }
    }

    #[test]
    fn a_reply_is_an_answer() {
        let pdu = Bytes::from_static(b"\x04\x20\x0a\x83etag\0\"a\"\0ok");
        let said = answer(&pdu, false).unwrap();
        assert_eq!((said.status, &said.body[..]), (StatusCode::OK, &b"ok"[..]));
        assert_eq!(said.headers[header::CONTENT_TYPE], "text/plain");
        assert_eq!(said.headers[header::ETAG], "\"a\"");
        // The length of what HEAD would have brought stays; any type is none.
        let head = answer(&Bytes::from_static(b"\x04\x20\x03\x80\x8d\x85"), true).unwrap();
        assert_eq!(
            (&head.headers[header::CONTENT_LENGTH], head.headers.len()),
            (&"5".parse().unwrap(), 1)
        );
        for wrong in
            [&b""[..], b"\x04\x11\x01\x80", b"\x04\x75\x01\x80", b"\x40\x01a", b"\x04\x20\x09\x80"]
        {
            let error = answer(&Bytes::copy_from_slice(wrong), false).unwrap_err();
            assert_eq!(error.status.as_u16(), 502, "{wrong:?}");
        }
    }
}
