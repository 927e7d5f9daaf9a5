//! What a reverse proxy says of itself and its clients: fields that name the client to the service,
//! and addresses of the service that lead clients back to the edge.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;

use crate::fields;
use crate::flow::{AnyBody, BoxError};
use crate::pattern::standard_port;
use crate::upstream::{Upstream, host_and_port};

/// Largest description of a service that is rewritten, in bytes; a larger one passes as it is.
const MAX_DESCRIPTION_BYTES: usize = 2 << 20;
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Which fields name the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarded {
    /// None do.
    #[default]
    None,
    /// `X-Forwarded-For`, `-Host` and `-Proto`.
    Customary,
    /// `Forwarded` (RFC 7239).
    Standard,
}

/// What a reverse proxy does beyond passing messages on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reverse {
    /// Names the client to the service.
    pub forwarded: Forwarded,
    /// `Location` and `Content-Location` lead back to the edge.
    pub location: bool,
    /// Addresses in descriptions of services (WSDL, and schemas asked for as such) do.
    pub wsdl: bool,
}

/// Of a request, what its answer is rewritten by.
pub(super) struct Asked {
    /// Host as the client sent it.
    host: String,
    /// It asks for a description of the service.
    is_description: bool,
}

impl Asked {
    pub(super) fn of(request: &super::target::Asked) -> Option<Self> {
        let host = request.host.as_ref()?.to_str().ok()?.to_owned();
        let query = request.path.split_once('?').map_or("", |(_, query)| query);
        let mut names = query.split('&').map(|one| one.split('=').next().unwrap_or_default());
        let is_description = names.any(|name| {
            ["wsdl", "singlewsdl", "xsd"].iter().any(|one| name.eq_ignore_ascii_case(one))
        });
        Some(Self { host, is_description })
    }
}

impl Reverse {
    /// Adds what names the client at `address`, which asked for `host`.
    pub(super) fn name_client(
        &self,
        headers: &mut HeaderMap,
        address: &str,
        host: Option<&HeaderValue>,
    ) {
        match self.forwarded {
            Forwarded::None => {}
            Forwarded::Customary => {
                append(headers, &FORWARDED_FOR, address);
                headers.insert(FORWARDED_PROTO, HeaderValue::from_static("http"));
                if let Some(host) = host {
                    headers.insert(FORWARDED_HOST, host.clone());
                }
            }
            Forwarded::Standard => {
                let is_v6 = address.parse().is_ok_and(|address: IpAddr| address.is_ipv6());
                let client = if is_v6 { format!("\"[{address}]\"") } else { address.to_owned() };
                let host = host.and_then(|host| host.to_str().ok());
                let host = host.filter(|host| !host.contains(['"', '\\']));
                let host = host.map_or_else(String::new, |host| format!(";host=\"{host}\""));
                append(headers, &header::FORWARDED, &format!("for={client}{host};proto=http"));
            }
        }
    }

    /// Leads addresses of the service in an answer back to the edge.
    pub(super) async fn rewrite(
        &self,
        mut response: Response<AnyBody>,
        upstream: &Upstream,
        asked: &Asked,
    ) -> Response<AnyBody> {
        if self.location {
            for name in [header::LOCATION, header::CONTENT_LOCATION] {
                let value = response.headers().get(&name).and_then(|value| value.to_str().ok());
                let back = value.and_then(|value| lead_back(value, upstream, &asked.host));
                if let Some(back) = back.and_then(|back| HeaderValue::try_from(back).ok()) {
                    response.headers_mut().insert(name, back);
                }
            }
        }
        if self.wsdl && asked.is_description && may_change(&response) {
            return rewrite_description(response, upstream, &asked.host).await;
        }
        response
    }
}

fn append(headers: &mut HeaderMap, name: &HeaderName, value: &str) {
    let before: Vec<&str> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    let all = [&before[..], &[value]].concat().join(", ");
    if let Ok(value) = HeaderValue::try_from(all) {
        headers.insert(name, value);
    }
}

/// Whether the service's bytes may be others: not where something vouches for them.
fn may_change(response: &Response<AnyBody>) -> bool {
    let headers = response.headers();
    let vouched = ["content-md5", "digest", "content-digest", "repr-digest", "signature-input"];
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    response.status() == StatusCode::OK
        && media.is_some_and(|media| media.to_ascii_lowercase().contains("xml"))
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !vouched.iter().any(|name| headers.contains_key(*name))
        && !fields::tokens(headers, &header::CACHE_CONTROL).any(|token| token == "no-transform")
}

async fn rewrite_description(
    response: Response<AnyBody>,
    upstream: &Upstream,
    host: &str,
) -> Response<AnyBody> {
    let (mut parts, mut body) = response.into_parts();
    let (mut pieces, mut len) = (VecDeque::new(), 0);
    loop {
        match body.frame().await {
            None => break,
            Some(Ok(frame)) if frame.is_data() && len <= MAX_DESCRIPTION_BYTES => {
                let bytes = frame.into_data().unwrap_or_default();
                len += bytes.len();
                pieces.push_back(Ok(Frame::data(bytes)));
            }
            Some(other) => {
                // Too long, with trailers, or broken: as it is.
                pieces.push_back(other);
                return Response::from_parts(parts, Prefixed { pieces, body }.boxed_unsync());
            }
        }
    }
    let pieces = pieces.into_iter().flatten().filter_map(|frame| frame.into_data().ok());
    let text: Vec<u8> = pieces.flat_map(Vec::<u8>::from).collect();
    let text = match String::from_utf8(text) {
        Ok(text) => replace_all(&text, upstream, host).into_bytes(),
        Err(error) => error.into_bytes(),
    };
    if parts.headers.contains_key(header::CONTENT_LENGTH) {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    }
    weaken(&mut parts.headers);
    let full = http_body_util::Full::new(Bytes::from(text));
    Response::from_parts(parts, full.map_err(|never| match never {}).boxed_unsync())
}

/// A changed body is not the one that a strong validator names (RFC 9110 §8.8.1).
fn weaken(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
    let weak = tag.filter(|tag| !tag.starts_with("W/")).map(|tag| format!("W/{tag}"));
    if let Some(weak) = weak.and_then(|weak| HeaderValue::try_from(weak).ok()) {
        headers.insert(header::ETAG, weak);
    }
}

/// The ways in which a service may write its own root, without a slash at the end.
fn roots(upstream: &Upstream) -> Vec<String> {
    let Upstream { scheme, authority, prefix } = upstream;
    let mut roots = vec![format!("{scheme}://{authority}{prefix}")];
    if let Some((host, port)) = host_and_port(authority, scheme)
        && port == standard_port(scheme)
    {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        roots.push(format!("{scheme}://{host}:{port}{prefix}"));
        roots.push(format!("{scheme}://{host}{prefix}"));
    }
    roots
}

/// Whether text may go on like this behind a root: not with another name or port.
fn ends_root(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-._~:@%".contains(c))
}

/// An address of the service as the edge's.
fn lead_back(value: &str, upstream: &Upstream, host: &str) -> Option<String> {
    for root in roots(upstream) {
        let begins = value.get(..root.len()).is_some_and(|it| it.eq_ignore_ascii_case(&root));
        if let Some(rest) = value.get(root.len()..).filter(|rest| begins && ends_root(rest)) {
            return Some(format!("http://{host}{rest}"));
        }
    }
    let rest = value.strip_prefix(&upstream.prefix).filter(|_| !upstream.prefix.is_empty())?;
    rest.starts_with('/').then(|| rest.to_owned())
}

fn replace_all(text: &str, upstream: &Upstream, host: &str) -> String {
    let mut text = text.to_owned();
    let back = format!("http://{host}");
    for root in roots(upstream) {
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(&root) {
            let behind = &rest[at + root.len()..];
            out.push_str(&rest[..at]);
            out.push_str(if ends_root(behind) { &back } else { &root });
            rest = behind;
        }
        out.push_str(rest);
        text = out;
    }
    text
}

/// A body of which something was read.
struct Prefixed {
    pieces: VecDeque<Result<Frame<Bytes>, BoxError>>,
    body: AnyBody,
}

impl Body for Prefixed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.pieces.pop_front() {
            Some(piece) => Poll::Ready(Some(piece)),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_service_lead_back_and_others_do_not() {
        let upstream = Upstream::parse("http://b.example/api").unwrap();
        for (value, expected) in [
            ("http://b.example/api/x?y", Some("http://edge:1/x?y")),
            ("HTTP://B.example:80/api", Some("http://edge:1")),
            ("http://b.example/apis", None),
            ("http://b.example:81/api/x", None),
            ("http://b.example.evil/api", None),
            ("https://b.example/api/x", None),
            ("/api/x", Some("/x")),
            ("/other", None),
            ("x", None),
        ] {
            let back = lead_back(value, &upstream, "edge:1");
            assert_eq!(back.as_deref(), expected, "{value}");
        }
        let text = "<a l='http://b.example/api/s'/><b l=\"http://b.example:80/api\"/>\
                    <c l='http://b.example/apix'/>";
        let back = "<a l='http://edge:1/s'/><b l=\"http://edge:1\"/><c l='http://b.example/apix'/>";
        assert_eq!(replace_all(text, &upstream, "edge:1"), back);
    }

    #[test]
    fn the_client_is_named_behind_those_before_it() {
        let with = |forwarded| Reverse { forwarded, ..Reverse::default() };
        let host = HeaderValue::from_static("edge:1");
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, HeaderValue::from_static("192.0.2.1"));
        with(Forwarded::None).name_client(&mut headers, "::1", Some(&host));
        assert_eq!(headers.len(), 1);
        with(Forwarded::Customary).name_client(&mut headers, "::1", Some(&host));
        assert_eq!(headers[FORWARDED_FOR], "192.0.2.1, ::1");
        assert_eq!(headers[FORWARDED_HOST], "edge:1");
        assert_eq!(headers[FORWARDED_PROTO], "http");
        with(Forwarded::Standard).name_client(&mut headers, "::1", Some(&host));
        assert_eq!(headers[header::FORWARDED], "for=\"[::1]\";host=\"edge:1\";proto=http");
    }
}
