//! A SOAP resource: media types and content codings around the message.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Response, StatusCode};

use super::answer::{document, plain, with_type};
use super::{Compression, Document};
use crate::http::MediaType;
use crate::tracks::soap::{Code, Fault, Operation, Version, parse};

/// Answers a POST with the message that `find` has for a number in a version.
pub(crate) fn answer<'a>(
    compression: Compression,
    (headers, body): (&HeaderMap, &[u8]),
    operation: &Operation,
    find: impl FnOnce(usize, Version) -> Result<&'a Document, String>,
) -> Response<Bytes> {
    let fault = |version, reason| client_fault(operation, version, reason);
    let media = match media_type(headers) {
        Ok(media) => media,
        Err(refusal) => return *refusal,
    };
    let outcome = decode(body, media.charset.as_deref())
        .map_err(|reason| fault(media.version, reason))
        .and_then(|text| parse(&text, media.version, operation));
    match outcome {
        Err(fault) => of_fault(&fault),
        Ok((version, _)) if version != media.version => {
            let line = format!(
                "the envelope's namespace belongs with {}; send that as Content-Type",
                version.media_type()
            );
            plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, &line)
        }
        Ok((version, number)) => {
            let ours = operation.action;
            if let Some(action) = foreign_action(&media, headers, ours) {
                let reason = format!("no action '{action}'; the one that exists is {ours}");
                return of_fault(&fault(version, reason));
            }
            match find(number, version) {
                Ok(message) => document(compression, headers, message, content_type(version)),
                Err(reason) => of_fault(&fault(version, reason)),
            }
        }
    }
}

/// What `Content-Type` says of a message.
struct Media {
    version: Version,
    charset: Option<String>,
    action: Option<String>,
}

fn media_type(headers: &HeaderMap) -> Result<Media, Box<Response<Bytes>>> {
    let refuse = |line: &str| Box::new(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, line));
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let mut response = refuse("requests are taken without content coding only");
        // RFC 9110 §15.5.16: tells that it was the coding, and which one would do.
        let identity = HeaderValue::from_static("identity");
        response.headers_mut().insert(ACCEPT_ENCODING, identity);
        return Err(response);
    }
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = value.and_then(MediaType::parse);
    let version = media.as_ref().and_then(|media| {
        let versions = [Version::Soap11, Version::Soap12];
        versions.into_iter().find(|version| version.media_type() == media.essence)
    });
    match (media, version) {
        (Some(media), Some(version)) => Ok(Media {
            version,
            charset: media.parameter("charset").map(str::to_ascii_lowercase),
            action: media.parameter("action").map(str::to_owned),
        }),
        _ => Err(refuse("send text/xml for SOAP 1.1 or application/soap+xml for SOAP 1.2")),
    }
}

/// Characters from bytes: UTF-8 and UTF-16, as the Basic Profile demands of receivers. A byte order
/// mark counts more than the parameter (RFC 7303 §3).
fn decode<'a>(body: &'a [u8], charset: Option<&str>) -> Result<Cow<'a, str>, String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|&pair| unit(pair)).collect();
        match String::from_utf16(&units) {
            Ok(text) if rest.is_empty() => Ok(Cow::Owned(text)),
            _ => Err("the content is not UTF-16, as its first bytes say".to_owned()),
        }
    };
    match body {
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        _ => match charset {
            None | Some("utf-8" | "us-ascii") => std::str::from_utf8(body)
                .map(Cow::Borrowed)
                .map_err(|error| format!("the content is not UTF-8: {error}")),
            Some("utf-16" | "utf-16be") => utf16(body, u16::from_be_bytes),
            Some("utf-16le") => utf16(body, u16::from_le_bytes),
            Some(other) => Err(format!("charset '{other}' is not known; use utf-8 or utf-16")),
        },
    }
}

/// The action that a request names, unless it is this service's or empty. SOAP 1.1 has it in a
/// field, quoted (§6.1.1), SOAP 1.2 in the media type (RFC 3902).
fn foreign_action(media: &Media, headers: &HeaderMap, ours: &str) -> Option<String> {
    let action = match media.version {
        Version::Soap11 => {
            let value = headers.get("soapaction").and_then(|value| value.to_str().ok());
            value.map(|value| value.trim().trim_matches('"').to_owned())
        }
        Version::Soap12 => media.action.clone(),
    };
    action.filter(|action| !action.is_empty() && action != ours)
}

fn client_fault(operation: &Operation, version: Version, reason: String) -> Fault {
    let code = Code::Sender { in_body: false };
    Fault { version, code, reason, service: operation.namespace }
}

fn of_fault(fault: &Fault) -> Response<Bytes> {
    let status = StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    with_type(status, content_type(fault.version), fault.to_xml().into())
}

fn content_type(version: Version) -> &'static str {
    match version {
        Version::Soap11 => "text/xml; charset=utf-8",
        Version::Soap12 => "application/soap+xml; charset=utf-8",
    }
}
