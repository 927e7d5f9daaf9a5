//! Resources of CoAP under a path of our own, for clients of HTTP that know nothing of proxies
//! (RFC 8075 §5.3, the default mapping): `/hc/` and a URI of CoAP behind it.
//!
//! Only a forward proxy has that path; the paths of a reverse proxy are its service's. Where it is
//! can be asked at `/.well-known/core` (RFC 8075 §5.5). Any page can have a browser ask for it, as
//! it cannot have it use a proxy, so that what another site asks for is refused.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};

use super::answer::Refusal;
use crate::flow::AnyBody;
use crate::pattern::COAP;

/// What stands before the URI (RFC 8075 §5.3: the hosting HTTP URI).
const HOSTING: &str = "/hc/";
/// Where a server's links are (RFC 6690 §4).
const LINKS_PATH: &str = "/.well-known/core";
/// Where the mapping is (RFC 8075 §5.5). No template is the default one.
const LINKS: &str = "</hc/>;rt=\"core.hc\"";
/// The attributes of that link, by which a query selects it (RFC 6690 §4.1).
const ATTRIBUTES: [(&str, &str); 2] = [("href", "/hc/"), ("rt", "core.hc")];

/// Scheme, authority and path of what a request is for.
type Mapped = Result<(String, String, String), Refusal>;

/// Of a request that names a resource of CoAP so: what its answer is rewritten by.
pub(super) struct Hosted {
    /// What stands before each path of the same server.
    root: String,
}

impl Hosted {
    /// Of the request for this target, at a forward proxy.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let (scheme, authority, _) = mapped(uri).filter(|_| uri.authority().is_none())?.ok()?;
        // RFC 8075 §5.3.2.
        let authority = authority.replace('[', "%5B").replace(']', "%5D");
        Some(Self { root: format!("{HOSTING}{scheme}://{authority}") })
    }

    /// Leads what the answer says of the same server back to the mapping.
    pub(super) fn rewrite(&self, response: &mut Response<AnyBody>) {
        let location = response.headers().get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let path = location.filter(|path| path.starts_with('/') && !path.starts_with("//"));
        let back = path.map(|path| format!("{}{path}", self.root));
        if let Some(back) = back.and_then(|back| HeaderValue::try_from(back).ok()) {
            response.headers_mut().insert(header::LOCATION, back);
        }
    }
}

/// What the path of a request to this proxy itself stands for; `None`: it is no such path.
pub(super) fn mapped(uri: &Uri) -> Option<Mapped> {
    let target = uri.path().strip_prefix(HOSTING)?;
    Some(take_apart(target, uri.query()))
}

fn take_apart(target: &str, query: Option<&str>) -> Mapped {
    let bad = |what: &str| Refusal {
        status: StatusCode::BAD_REQUEST,
        error: "http_request_error",
        reason: format!("'{HOSTING}{target}' {what}: ask for {HOSTING}coap://HOST[:PORT]/PATH"),
    };
    // RFC 8075 §5.3.1: without a scheme nobody has said which is meant.
    let (scheme, rest) = target.split_once("://").ok_or_else(|| bad("names no scheme"))?;
    if !scheme.eq_ignore_ascii_case(COAP) {
        return Err(bad("has a scheme other than coap"));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // RFC 8075 §5.3.2: a path of HTTP has no brackets as they are.
    let authority = authority.replace("%5B", "[").replace("%5b", "[");
    let authority = authority.replace("%5D", "]").replace("%5d", "]");
    if authority.is_empty() || authority.contains('@') {
        return Err(bad("has no host, or a user"));
    }
    let path = if path.is_empty() { "/" } else { path };
    let path = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    Ok((COAP.to_owned(), authority, path))
}

/// Whether another site has somebody's browser ask for a resource under [`HOSTING`] (W3C Fetch
/// Metadata; RFC 6454 for browsers without it).
pub(super) fn check_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut sites = headers.get_all("sec-fetch-site").iter().peekable();
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let is_own = if sites.peek().is_some() {
        sites.all(|site| matches!(&text(site)[..], "same-origin" | "none"))
    } else {
        let host = headers.get(header::HOST).map(text);
        headers.get_all(header::ORIGIN).iter().all(|origin| {
            let origin = text(origin);
            let host_of_origin = origin.split_once("://").map(|(_, host)| host);
            host_of_origin.is_some() && host_of_origin == host.as_deref()
        })
    };
    let reason = "another site asks for a resource of CoAP: ask for it yourself, or by a proxy";
    match is_own {
        true => Ok(()),
        false => Err(Refusal {
            status: StatusCode::FORBIDDEN,
            error: "http_request_denied",
            reason: reason.to_owned(),
        }),
    }
}

/// The answer to who asks where the mapping is; `None`: he asks for something else.
pub(super) fn links(method: &Method, uri: &Uri) -> Option<Response<AnyBody>> {
    let is_it = uri.authority().is_none() && uri.path() == LINKS_PATH;
    if !is_it || !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let filters = uri.query().unwrap_or_default().split('&').filter(|filter| !filter.is_empty());
    let text = if filters.into_iter().all(selects) { LINKS } else { "" };
    let body = Full::new(Bytes::from_static(text.as_bytes()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    let media = HeaderValue::from_static("application/link-format");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    Some(response)
}

/// Whether one filter of a query selects the link (RFC 6690 §4.1).
fn selects(filter: &str) -> bool {
    let (name, wanted) = filter.split_once('=').unwrap_or((filter, "*"));
    let mut values = ATTRIBUTES.iter().filter(|(other, _)| *other == name).map(|(_, value)| value);
    values.any(|value| match wanted.strip_suffix('*') {
        Some(prefix) => value.starts_with(prefix),
        None => *value == wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> Option<Result<(String, String, String), u16>> {
        let mapped = mapped(&uri.parse().unwrap())?;
        Some(mapped.map_err(|refusal| refusal.status.as_u16()))
    }

    #[test]
    fn a_path_stands_for_a_uri_of_coap() {
        let coap = |authority: &str, path: &str| {
            Some(Ok(("coap".to_owned(), authority.to_owned(), path.to_owned())))
        };
        assert_eq!(of("/hc/coap://s.example/light"), coap("s.example", "/light"));
        assert_eq!(of("/hc/coap://s:99/a%20b?x=1&y"), coap("s:99", "/a%20b?x=1&y"));
        assert_eq!(of("/hc/COAP://s"), coap("s", "/"));
        assert_eq!(of("/hc/coap://s?x"), coap("s", "/?x"));
        assert_eq!(of("/hc/coap://%5b::1%5D:61616/"), coap("[::1]:61616", "/"));
        for wrong in ["/hc/", "/hc/s/light", "/hc/http://s/", "/hc/coap:///x", "/hc/coap://u@s/"] {
            assert_eq!(of(wrong), Some(Err(400)), "{wrong}");
        }
        assert_eq!(of("/other"), None);
        assert_eq!(of("/hcx/coap://s/"), None);
    }

    #[test]
    fn what_was_made_is_found_by_the_same_way() {
        let hosted = Hosted::of(&"/hc/coap://%5B::1%5D:99/x".parse().unwrap()).unwrap();
        let location = |value: &'static str| {
            let mut response = links(&Method::GET, &LINKS_PATH.parse().unwrap()).unwrap();
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(value));
            hosted.rewrite(&mut response);
            response.headers()[header::LOCATION].to_str().unwrap().to_owned()
        };
        assert_eq!(location("/x/7?y"), "/hc/coap://%5B::1%5D:99/x/7?y");
        assert_eq!(location("//other/x"), "//other/x");
        assert_eq!(location("http://other/x"), "http://other/x");
        for other in ["/x", "http://edge/hc/coap://a/", "coap://a/"] {
            assert!(Hosted::of(&other.parse().unwrap()).is_none(), "{other}");
        }
    }

    #[tokio::test]
    async fn the_mapping_can_be_found() {
        for (query, found) in [
            ("", true),
            ("?rt=core.hc", true),
            ("?rt=core.*&href=/hc/", true),
            ("?rt=core.rd", false),
            ("?href=/x", false),
            ("?title", false),
        ] {
            let uri = format!("{LINKS_PATH}{query}").parse().unwrap();
            let response = links(&Method::GET, &uri).unwrap();
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/link-format");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(&body[..], if found { LINKS.as_bytes() } else { b"" }, "{query}");
        }
        assert!(links(&Method::POST, &LINKS_PATH.parse().unwrap()).is_none());
        assert!(links(&Method::GET, &"http://a/.well-known/core".parse().unwrap()).is_none());
    }

    #[test]
    fn another_site_does_not_ask_by_a_browser() {
        let check = |fields: &[(&'static str, &'static str)]| {
            let field = |(name, value): &(&'static str, &'static str)| {
                (header::HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            check_site(&fields.iter().map(field).collect()).is_ok()
        };
        let host = ("host", "edge:8080");
        assert!(check(&[host]));
        assert!(check(&[host, ("origin", "http://edge:8080")]));
        assert!(check(&[host, ("sec-fetch-site", "none")]));
        assert!(!check(&[host, ("origin", "http://evil.example")]));
        assert!(!check(&[host, ("origin", "null")]));
        assert!(!check(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!check(&[host, ("sec-fetch-site", "same-site"), ("origin", "http://edge:8080")]));
    }
}
