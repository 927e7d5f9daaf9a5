//! Who asks: whether they may have dictionaries at all, whose those are, and what they may read.

use std::net::IpAddr;

use codec::dictionary::Id;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use proto::bhttp;

use crate::fields;

/// Fields whose name has any of these come from a proxy in front of this one.
const PROXY_NAMES: [&str; 12] = [
    "forwarded",
    "real-ip",
    "client-ip",
    "clientip",
    "connecting-ip",
    "original-host",
    "original-for",
    "external-address",
    "cdn-loop",
    "front-end-https",
    "x-scheme",
    "url-scheme",
];
/// Fields whose name has any of these tell origins apart, or clients that come by a proxy, besides
/// those of [`PROXY_NAMES`] and those that prove who asks.
const FROM_NAMES: [&str; 15] = [
    "host",
    "user",
    "client",
    "cert",
    "ssl",
    "remote",
    "tenant",
    "account",
    "subject",
    "identity",
    "principal",
    "socketip",
    "peer",
    "email",
    "group",
];

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Whether who asks may read the answer, so that its length tells nothing new (RFC 9842 §9.3.3).
#[derive(Clone, Debug)]
pub(super) enum Readable {
    Yes,
    No,
    /// If the answer allows this origin.
    By(HeaderValue),
}

impl Readable {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is = |name: &HeaderName, values: &[&str]| {
            let value = headers.get(name);
            value.is_none_or(|value| values.iter().any(|one| value == one))
        };
        if is(&SEC_FETCH_SITE, &["same-origin"])
            || is(&SEC_FETCH_MODE, &["navigate", "same-origin"])
        {
            return Self::Yes;
        }
        let origin = headers.get(header::ORIGIN).filter(|_| is(&SEC_FETCH_MODE, &["cors"]));
        origin.cloned().map_or(Self::No, Self::By)
    }
}

/// RFC 9842 §8: a context that is secure. This listener knows no TLS, so that is one that does not
/// leave the machine: a client here, or a proxy here that ends TLS, if it says that there was some.
pub(super) fn is_secure(headers: &HeaderMap, client: &str) -> bool {
    let near = client.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    let told: Vec<_> = fields::tokens(headers, &FORWARDED_PROTO).collect();
    // RFC 7239 §5.4: each proxy says of the one before it, or of the client.
    let protocol = |hop: String| {
        let mut pairs = hop.split(';').filter_map(|pair| pair.trim().strip_prefix("proto="));
        pairs.next().map(|protocol| protocol.trim_matches('"') == "https")
    };
    let hops: Vec<_> = fields::tokens(headers, &header::FORWARDED).map(protocol).collect();
    let is_denied = told.iter().any(|one| one != "https") || hops.contains(&Some(false));
    let is_told = !told.is_empty() || !hops.is_empty() && !hops.contains(&None);
    near && !is_denied && (is_told || !headers.keys().any(is_of_proxy))
}

/// A field that proxies add to what a client says.
fn is_of_proxy(name: &HeaderName) -> bool {
    name == header::VIA || PROXY_NAMES.iter().any(|part| name.as_str().contains(part))
}

/// The origin; and it and who asks, by all that may tell it.
pub(super) fn context(head: &Parts, target: &str, client: &str) -> (Id, Id) {
    let mut who = client.to_owned();
    for (name, value) in &head.headers {
        let tells = || FROM_NAMES.iter().any(|part| name.as_str().contains(part));
        if is_of_proxy(name) || tells() {
            who.push_str(&format!("\n{name}: {:?}", value.as_bytes()));
        }
    }
    let request = bhttp::Request {
        method: head.method.as_str().to_owned().into(),
        scheme: String::new().into(),
        authority: target.to_owned().into(),
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned().into(),
        fields: fields::to_fields(&head.headers),
    };
    let origin = Id::of(target.as_bytes());
    (origin, Id::of(&[&origin.0[..], &relay::asker(&who, &request).0].concat()))
}
