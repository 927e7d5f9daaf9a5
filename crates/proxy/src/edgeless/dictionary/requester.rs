//! The requester: whether it may have dictionaries at all, and whose those are.

use std::net::IpAddr;

use codec::dictionary::Id;
use http::header::{self, HeaderMap, HeaderName};
use proto::bhttp;
use relay::Client;

use crate::fields;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// RFC 9842 §8: a context that is secure. This listener knows no TLS, so that is one that does not
/// leave the machine: a client here, or a proxy here that ends TLS, if it says that there was some.
pub(super) fn is_secure(headers: &HeaderMap, client: &str) -> bool {
    let near = client.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    let stated: Vec<_> = fields::tokens(headers, &FORWARDED_PROTO).collect();
    // RFC 7239 §5.4: each proxy says of the one before it, or of the client.
    let protocol = |hop: String| {
        let mut pairs = hop.split(';').filter_map(|pair| pair.trim().strip_prefix("proto="));
        pairs.next().map(|protocol| protocol.trim_matches('"') == "https")
    };
    let hops: Vec<_> = fields::tokens(headers, &header::FORWARDED).map(protocol).collect();
    let is_denied = stated.iter().any(|one| one != "https") || hops.contains(&Some(false));
    let is_stated = !stated.is_empty() || !hops.is_empty() && !hops.contains(&None);
    near && !is_denied && (is_stated || !headers.keys().any(is_of_proxy))
}

/// A field that proxies add to what a client says.
fn is_of_proxy(name: &HeaderName) -> bool {
    name == header::VIA || relay::is_of_proxy(name.as_str())
}

/// The origin; and the origin with the requester, by all that may identify it.
pub(super) fn context(request: &bhttp::Request, client: &Client) -> (Id, Id) {
    let origin = Id::of(&[&request.scheme[..], b"://", &request.authority].concat());
    (origin, Id::of(&[&origin.0[..], &relay::requester(client, request).0].concat()))
}
