//! HTTP as the relay carries it: what of a head decides how its exchange may be treated, in the
//! terms of [`coding`] and of the relay.

mod exact;
pub(crate) mod privacy;
pub(crate) mod requester;

use std::time::Duration;

use bytes::Bytes;
use coding::api::{About, Message};
use proto::bhttp;
use proto::control::Expires;
use proto::urgency::Urgency;

use privacy::{Client, Guard};
use requester::requester;

use crate::kind::Kind;

/// Of a path or SOAPAction so much tells the class.
const MAX_OPERATION_BYTES: usize = 256;
/// Media types of answers that have no end of their own: events (HTML, server-sent events), and
/// parts of which each replaces the one before.
const ENDLESS_MEDIA: [&str; 2] = ["text/event-stream", "multipart/x-mixed-replace"];

/// What of a request decides how it may be treated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// RFC 9110 §9.2.1: it asks for no change.
    pub(crate) safe: bool,
    /// RFC 9110 §9.2.2: repeating it does no harm.
    pub(crate) idempotent: bool,
    /// CONNECT or Upgrade: bytes both ways, neither message ends the other.
    pub(crate) tunnel: bool,
    /// The body waits for the origin's 100 (RFC 9110 §10.1.1).
    pub(crate) expects_continue: bool,
    /// Which messages it consists of.
    pub(crate) kind: Kind,
    /// How urgent it is. Whoever asks may say that it is less than others are (RFC 9218); that it
    /// is more, whoever runs the edge.
    pub(crate) urgency: Urgency,
}

impl Traits {
    /// Those of a request.
    pub(crate) fn of(request: &bhttp::Request) -> Self {
        let safe = matches!(&request.method[..], b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE");
        let idempotent = safe || matches!(&request.method[..], b"PUT" | b"DELETE");
        let fields = &request.fields;
        let tunnel = request.method == "CONNECT" || field(fields, "upgrade").is_some();
        let expects = field(fields, "expect");
        let expects_continue =
            expects.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
        let urgency = priority(request).unwrap_or_default().max(Urgency::DEFAULT);
        Self { safe, idempotent, tunnel, expects_continue, kind: Kind::Http, urgency }
    }
}

/// The urgency that a request says it has (RFC 9218 §4.1).
pub(crate) fn priority(request: &bhttp::Request) -> Option<Urgency> {
    field(&request.fields, "priority").and_then(|value| Urgency::of_field(value))
}

/// How long a request says that its client waits for the answer (RFC 7240 §4.3).
pub(crate) fn patience(request: &bhttp::Request) -> Option<Duration> {
    let fields = request.fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"prefer"));
    let preferences = fields.flat_map(|(_, value)| value.split(|byte| *byte == b','));
    // The first of each kind counts (§2).
    let mut waits = preferences.filter_map(|preference| {
        let preference = preference.split(|byte| *byte == b';').next()?;
        let (name, value) = str::from_utf8(preference).ok()?.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim().trim_matches('"'))
    });
    let seconds = waits.next()?.parse::<u32>().ok().filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds.into()).min(Expires::MAX))
}

/// What is known of an exchange by its request.
pub(crate) fn about(request: &bhttp::Request, client: Option<&Client>) -> About {
    let guard = Guard::of(request);
    About {
        target: target(request),
        operation: operation(request),
        tunnel: Traits::of(request).tunnel,
        service: None,
        requester: client.map(|client| requester(client, request)),
        cross_site: guard.cross_site,
        private: guard.marked,
    }
}

/// Scheme and authority of a request.
pub(crate) fn target(request: &bhttp::Request) -> String {
    format!("{}://{}", text(&request.scheme), text(&request.authority))
}

/// SOAPAction or path of a request, without what differs from one message to the next.
fn operation(request: &bhttp::Request) -> String {
    let path = request.path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let operation = field(&request.fields, "soapaction").map_or(path, |action| &action[..]);
    // Numbers differ from one message to the next.
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let kept = operation.iter().enumerate().filter(|(at, byte)| {
        !byte.is_ascii_digit() || at.checked_sub(1).is_none_or(|at| !is_digit(operation.get(at)))
    });
    let kept = kept.map(|(_, byte)| if byte.is_ascii_digit() { b'0' } else { *byte });
    let kept: Vec<u8> = kept.take(MAX_OPERATION_BYTES).collect();
    String::from_utf8_lossy(&kept).into_owned()
}

/// What is known of a message by the fields of its head, which takes so many bytes.
pub(crate) fn message(fields: &bhttp::Fields, head_bytes: usize) -> Message {
    let coded = field(fields, "content-encoding").is_some_and(|value| {
        let value = value.trim_ascii();
        !value.is_empty() && !value.eq_ignore_ascii_case(b"identity")
    });
    let length = field(fields, "content-length");
    Message {
        media: field(fields, "content-type").map(text),
        coded,
        length: length.and_then(|value| str::from_utf8(value).ok()?.parse().ok()),
        exact: exact::reason(fields),
        head_bytes,
        ..Message::default()
    }
}

/// The answer has no end but that its client has enough.
pub(crate) fn has_no_end(response: &bhttp::Response) -> bool {
    field(&response.fields, "content-type").is_some_and(|media| is_endless(media))
}

/// Whether an answer of this media type has no end of its own.
#[must_use]
pub fn is_endless(media: &[u8]) -> bool {
    let media = media.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    ENDLESS_MEDIA.iter().any(|endless| media.eq_ignore_ascii_case(endless.as_bytes()))
}

fn field<'a>(fields: &'a bhttp::Fields, name: &str) -> Option<&'a Bytes> {
    fields.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

pub(crate) fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The head with the length of another body, where it says a length.
pub(crate) fn with_length(is_request: bool, head: &Bytes, len: usize) -> Option<Bytes> {
    let mut out = Vec::new();
    let adjust = |fields: &mut bhttp::Fields| {
        let lengths = fields.iter_mut().filter(|(name, _)| name == "content-length");
        lengths.for_each(|(_, value)| *value = len.to_string().into());
    };
    if is_request {
        let mut request = bhttp::Request::decode(head).ok()?;
        adjust(&mut request.fields);
        request.encode(&mut out);
    } else {
        let mut response = bhttp::Response::decode(head).ok()?;
        adjust(&mut response.fields);
        response.encode(&mut out);
    }
    Some(out.into())
}
