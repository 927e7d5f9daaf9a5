//! What a client asks for: forward proxy, tunnel or reverse proxy.

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use proto::bhttp;

use super::answer::Refusal;
use crate::fields;
use crate::pattern::Target;
use crate::upstream::{Upstream, host_and_port};

/// A request, understood: fields are those that leave this hop.
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Empty for CONNECT.
    pub(crate) scheme: String,
    pub(crate) authority: String,
    /// Path and query; empty for CONNECT.
    pub(crate) path: String,
    pub(crate) headers: http::HeaderMap,
    /// Protocol the client asks to change to.
    pub(crate) upgrade: Option<HeaderValue>,
}

impl Asked {
    /// Takes a request apart; `bodyless` says that nothing follows its head.
    pub(crate) fn new(
        parts: &Parts,
        upstream: Option<&Upstream>,
        bodyless: bool,
    ) -> Result<Self, Refusal> {
        let (scheme, authority, path) = destination(&parts.method, &parts.uri, upstream)?;
        let mut headers = parts.headers.clone();
        // HTTP/2 in clear is between a client and the next hop alone; bytes behind a body could not
        // be told from it.
        let upgrade = fields::upgrade_of(&headers)
            .filter(|protocol| bodyless && !protocol.as_bytes().eq_ignore_ascii_case(b"h2c"));
        let trailers = fields::tokens(&headers, &header::TE).any(|token| token == "trailers");
        fields::remove_hop_by_hop(&mut headers);
        headers.remove(header::HOST);
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        let asked =
            Self { method: parts.method.clone(), scheme, authority, path, headers, upgrade };
        asked.target()?;
        Ok(asked)
    }

    pub(crate) fn target(&self) -> Result<Target<'_>, Refusal> {
        let connect = self.method == Method::CONNECT;
        let (host, port) = host_and_port(&self.authority, &self.scheme)
            .filter(|(host, _)| !host.is_empty())
            .ok_or_else(|| bad(format!("'{}' is no host and port", self.authority)))?;
        let scheme = (!connect).then_some(self.scheme.as_str());
        let path = (!connect).then_some(self.path.as_str());
        Ok(Target { scheme, host, port, path })
    }

    /// Whether bytes may follow both heads without end.
    pub(crate) fn may_tunnel(&self) -> bool {
        self.method == Method::CONNECT || self.upgrade.is_some()
    }

    /// As it crosses the link.
    pub(crate) fn head(&self) -> Result<bhttp::Request, Refusal> {
        let mut headers = self.headers.clone();
        if let Some(protocol) = &self.upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
        }
        let head = bhttp::Request {
            method: self.method.as_str().to_owned().into(),
            scheme: self.scheme.clone().into(),
            authority: self.authority.clone().into(),
            path: self.path.clone().into(),
            fields: fields::to_fields(&headers),
        };
        let mut encoded = Vec::new();
        head.encode(&mut encoded);
        if encoded.len() > bhttp::MAX_HEAD_BYTES {
            let (len, most) = (encoded.len(), bhttp::MAX_HEAD_BYTES);
            let reason = format!("the request's head is {len} bytes, over the limit of {most}");
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Refusal { status, error: "http_request_error", reason });
        }
        Ok(head)
    }
}

/// Scheme, authority and path.
fn destination(
    method: &Method,
    uri: &Uri,
    upstream: Option<&Upstream>,
) -> Result<(String, String, String), Refusal> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if let Some(upstream) = upstream {
        if method == Method::CONNECT {
            let reason = "this is a reverse proxy: it makes no tunnels".to_owned();
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Err(Refusal { status, error: "http_request_denied", reason });
        }
        let path = if path == "*" { "*".to_owned() } else { format!("{}{path}", upstream.prefix) };
        return Ok((upstream.scheme.clone(), upstream.authority.clone(), path));
    }
    let authority = uri.authority().map(|authority| authority.as_str().to_owned());
    let authority = authority.ok_or_else(|| {
        bad("this is a forward proxy: ask it for a whole URL (set http_proxy, or curl -x), or \
             start it with --upstream URL"
            .to_owned())
    })?;
    if authority.contains('@') {
        return Err(bad("a URL may not hold a user or password".to_owned()));
    }
    if method == Method::CONNECT {
        // RFC 9110 §9.3.6: the port is always there.
        if uri.port_u16().is_none() {
            return Err(bad(format!("CONNECT needs a port: '{authority}' has none")));
        }
        return Ok((String::new(), authority, String::new()));
    }
    match uri.scheme_str() {
        Some(scheme @ ("http" | "https")) => Ok((scheme.to_owned(), authority, path.to_owned())),
        scheme => Err(bad(format!("scheme '{}': one of http, https", scheme.unwrap_or_default()))),
    }
}

fn bad(reason: String) -> Refusal {
    Refusal { status: StatusCode::BAD_REQUEST, error: "http_request_error", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, uri: &str, upstream: Option<&str>) -> Result<Asked, Refusal> {
        let upstream = upstream.map(|url| Upstream::parse(url).unwrap());
        let request = http::Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "other.example")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .body(())
            .unwrap();
        Asked::new(&request.into_parts().0, upstream.as_ref(), true)
    }

    #[test]
    fn each_form_of_target_has_its_meaning() {
        let asked = ask("GET", "http://a.example:81/x?y=1", None).unwrap();
        assert_eq!((&*asked.authority, &*asked.path), ("a.example:81", "/x?y=1"));
        assert!(asked.may_tunnel() && asked.headers.is_empty());
        let asked = ask("GET", "/x", Some("http://b.example/api/")).unwrap();
        assert_eq!((&*asked.authority, &*asked.path), ("b.example", "/api/x"));
        let asked = ask("GET", "http://a/x", Some("http://b")).unwrap();
        assert_eq!((&*asked.authority, &*asked.path), ("b", "/x"));
        let asked = ask("CONNECT", "a.example:443", None).unwrap();
        assert_eq!((&*asked.scheme, &*asked.authority, &*asked.path), ("", "a.example:443", ""));
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for (method, uri, upstream, status) in [
            ("GET", "/x", None, 400),
            ("GET", "ftp://a/x", None, 400),
            ("GET", "http://u:p@a/x", None, 400),
            ("CONNECT", "a.example", None, 400),
            ("CONNECT", "a.example:443", Some("http://b"), 405),
        ] {
            let refusal = ask(method, uri, upstream).err().expect(uri);
            assert_eq!(refusal.status.as_u16(), status, "{}", refusal.reason);
        }
    }
}
