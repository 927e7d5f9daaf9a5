//! The measuring client of IST-118: all the tracks, in one of the service's forms, each checked.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::generate::{FILE_COUNT, file_tracks};
use super::soap::{self, ACTION, Version};
use super::{NFFI_NAMESPACE, SERVICE_NAMESPACE};
use crate::Error;
use crate::client::{Answer, Item, Plan, Target};
use crate::http::MediaType;
use crate::xml::{Node, Reader};

/// Longest reason of a fault that is passed on, in characters.
const MAX_REASON_LEN: usize = 300;

/// One of the service's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// SOAP 1.1.
    Soap,
    /// SOAP 1.2.
    Soap12,
    /// REST with XML.
    RestXml,
    /// REST with JSON.
    RestJson,
}

impl Api {
    /// All, in the order in which the paper has them.
    pub const ALL: [Self; 4] = [Self::Soap, Self::Soap12, Self::RestXml, Self::RestJson];

    /// The name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Soap => "soap",
            Self::Soap12 => "soap12",
            Self::RestXml => "rest-xml",
            Self::RestJson => "rest-json",
        }
    }

    /// Media type of the answers.
    fn media_type(self) -> &'static str {
        match self {
            Self::Soap => Version::Soap11.media_type(),
            Self::Soap12 => Version::Soap12.media_type(),
            Self::RestXml => "application/xml",
            Self::RestJson => "application/json",
        }
    }
}

/// Parses a list of numbers and ranges of a thing, such as `1,2,5-9` of tracks; the order is kept.
///
/// # Errors
/// [`Error::Caller`] naming what is not a number from 1 to 22 or comes twice.
pub fn parse_numbers(text: &str, thing: &str) -> Result<Vec<usize>, Error> {
    let refuse = |part: &str| {
        let part: String = part.chars().take(40).collect();
        let remedy = "give numbers from 1 to 22 such as 1,2,5-9";
        Error::Caller(format!("'{part}' names no {thing}; {remedy}"))
    };
    let mut numbers = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok().filter(|n| (1..=FILE_COUNT).contains(n));
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return Err(refuse(part));
        };
        if first > last {
            return Err(refuse(part));
        }
        for number in first..=last {
            if numbers.contains(&number) {
                let line = format!("{thing} {number} is listed twice; list it once");
                return Err(Error::Caller(line));
            }
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// What to ask of the service at `base` for these tracks (numbers from 1 to 22).
#[must_use]
pub fn plan(base: &Target, api: Api, numbers: &[usize]) -> Plan {
    let items = numbers.iter().map(|&number| item(base, api, number)).collect();
    Plan { url: base.to_string(), api: api.name().into(), items }
}

fn item(base: &Target, api: Api, number: usize) -> Item {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(api.media_type()));
    let soap_version = match api {
        Api::Soap => Some(Version::Soap11),
        Api::Soap12 => Some(Version::Soap12),
        Api::RestXml | Api::RestJson => None,
    };
    let (method, path, body) = match soap_version {
        Some(version) => {
            headers.extend(soap_headers(version));
            (Method::POST, "/soap".to_owned(), Bytes::from(soap::request(version, number)))
        }
        None if api == Api::RestXml => (Method::GET, format!("/rest/xml/{number}"), Bytes::new()),
        None => (Method::GET, format!("/rest/json/{number}"), Bytes::new()),
    };
    Item {
        name: format!("track {number}"),
        method,
        target: base.join(&path),
        headers,
        body,
        keep: true,
        check: Box::new(move |answer| check(api, number, answer)),
    }
}

fn soap_headers(version: Version) -> HeaderMap {
    let (content_type, action) = match version {
        Version::Soap11 => ("text/xml; charset=utf-8".to_owned(), Some(format!("\"{ACTION}\""))),
        Version::Soap12 => {
            (format!("application/soap+xml; charset=utf-8; action=\"{ACTION}\""), None)
        }
    };
    let fields =
        [(CONTENT_TYPE, Some(content_type)), (HeaderName::from_static("soapaction"), action)];
    let value = |(name, text): (HeaderName, Option<String>)| {
        Some((name, HeaderValue::from_str(&text?).ok()?))
    };
    fields.into_iter().filter_map(value).collect()
}

/// Whether an answer is the whole track file asked for.
fn check(api: Api, number: usize, answer: &Answer) -> Result<(), String> {
    if answer.status != StatusCode::OK {
        let fault = fault_reason(&answer.content).map(|reason| format!(", fault: {reason}"));
        return Err(format!("status {}{}", answer.status, fault.unwrap_or_default()));
    }
    let content_type = answer.headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = MediaType::parse(content_type).map(|media| media.essence);
    if essence.as_deref() != Some(api.media_type()) {
        return Err(format!("content type '{content_type}' instead of {}", api.media_type()));
    }
    let text = std::str::from_utf8(&answer.content).map_err(|error| error.to_string())?;
    let tracks = match api {
        Api::Soap => count_tracks(text, Some(Version::Soap11)),
        Api::Soap12 => count_tracks(text, Some(Version::Soap12)),
        Api::RestXml => count_tracks(text, None),
        Api::RestJson => count_json_tracks(text),
    }?;
    match file_tracks(number) {
        Some(expected) if expected == tracks => Ok(()),
        expected => {
            let expected = expected.unwrap_or_default();
            Err(format!("{tracks} tracks in the answer instead of {expected}"))
        }
    }
}

/// Tracks of a well-formed document, counted where they belong.
fn count_tracks(text: &str, envelope: Option<Version>) -> Result<usize, String> {
    let mut path = Vec::new();
    if let Some(version) = envelope {
        path.extend([(version.namespace(), "Envelope"), (version.namespace(), "Body")]);
        path.push((SERVICE_NAMESPACE, "GetTrackResponse"));
    }
    path.extend([(NFFI_NAMESPACE, "NFFIMessage"), (NFFI_NAMESPACE, "track")]);
    let mut reader = Reader::new(text);
    let (mut depth, mut matched, mut tracks) = (0, 0, 0);
    while let Some(node) = reader.next_node().map_err(|error| error.to_string())? {
        match node {
            Node::Start { namespace, name, .. } => {
                let here = (namespace.as_deref().unwrap_or_default(), name.as_str());
                if depth == matched && path.get(depth) == Some(&here) {
                    matched += 1;
                    tracks += usize::from(matched == path.len());
                }
                depth += 1;
            }
            Node::End => {
                depth -= 1;
                matched = matched.min(depth);
            }
            Node::Text(_) | Node::Instruction => {}
        }
    }
    Ok(tracks)
}

fn count_json_tracks(text: &str) -> Result<usize, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let tracks = value.pointer("/NFFIMessage/track").and_then(serde_json::Value::as_array);
    tracks.map(Vec::len).ok_or_else(|| "no NFFIMessage with an array of tracks".to_owned())
}

/// The reason that a SOAP fault gives.
fn fault_reason(content: &[u8]) -> Option<String> {
    let mut reader = Reader::new(std::str::from_utf8(content).ok()?);
    loop {
        match reader.next_node().ok()?? {
            Node::Start { name, .. } if matches!(name.as_str(), "faultstring" | "Text") => break,
            _ => {}
        }
    }
    let mut reason = String::new();
    while let Node::Text(more) = reader.next_node().ok()?? {
        reason.push_str(&more);
    }
    let line: String = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line.chars().take(MAX_REASON_LEN).collect())
}
