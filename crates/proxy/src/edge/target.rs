//! What a client asks for: forward proxy, tunnel or reverse proxy.

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use proto::bhttp;
use proto::http1::{CONNECTION_FIELD, Field, RequestHead, STYLE_FIELD};

use super::answer::Refusal;
use super::hosted;
use crate::fields;
use crate::front::Sent;
use crate::pattern::{COAP, Target};
use crate::upstream::{Upstream, host_and_port};

/// A request, understood: fields are those that leave this hop.
pub(crate) struct Asked {
    pub(crate) method: Method,
    /// Empty for CONNECT.
    pub(crate) scheme: String,
    pub(crate) authority: String,
    /// Path and query, with what a URI must not hold escaped; empty for CONNECT.
    pub(crate) path: String,
    /// The same as it was sent, where it is another.
    pub(crate) raw_path: Option<Bytes>,
    pub(crate) headers: http::HeaderMap,
    /// Protocol the client asks to change to.
    pub(crate) upgrade: Option<HeaderValue>,
    /// The head as it was sent; none for a request of our own.
    pub(crate) sent: Option<Sent>,
    /// Host as the client sent it.
    pub(crate) host: Option<HeaderValue>,
}

impl Asked {
    /// Takes a request apart; `bodyless` says that nothing follows its head.
    pub(crate) fn new(
        parts: &Parts,
        upstream: Option<&Upstream>,
        bodyless: bool,
    ) -> Result<Self, Refusal> {
        let sent = parts.extensions.get::<Sent>().cloned();
        let (scheme, authority, path) =
            destination(&parts.method, &parts.uri, upstream, sent.as_deref())?;
        let raw_path = sent.as_ref().filter(|_| !path.is_empty() && path != "*").map(|sent| {
            let prefix = upstream.map_or("", |upstream| &upstream.prefix);
            raw_path(prefix, &sent.target)
        });
        // A URI of CoAP is sent as options, which hold nothing of how it was written.
        let raw_path = raw_path.filter(|raw| raw != path.as_bytes() && scheme != COAP);
        let mut headers = parts.headers.clone();
        note_expectation(&mut headers, sent.as_deref())?;
        if !fields::count_forward(&parts.method, &mut headers) {
            return Err(last_recipient(&parts.method));
        }
        // Bytes behind a body could not be told from it, and HTTP/1.0 knows no change (RFC 9110
        // §7.8).
        let may_change = bodyless && parts.version >= http::Version::HTTP_11;
        let upgrade = fields::upgrade_of(&headers).filter(|_| may_change);
        let trailers = fields::tokens(&headers, &header::TE).any(|token| token == "trailers");
        fields::remove_hop_by_hop(&mut headers);
        let host = headers.remove(header::HOST);
        if trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        let method = parts.method.clone();
        let asked =
            Self { method, scheme, authority, path, raw_path, headers, upgrade, sent, host };
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

    /// Path and query as they are sent on.
    pub(crate) fn path_as_sent(&self) -> Bytes {
        self.raw_path.clone().unwrap_or_else(|| Bytes::copy_from_slice(self.path.as_bytes()))
    }

    /// The fields as they were sent.
    pub(crate) fn sent_fields(&self) -> &[Field] {
        self.sent.as_ref().map_or(&[], |sent| &sent.fields)
    }

    /// As it crosses the link: `exact` with the case and the order of its fields, and with the
    /// number of the client's connection where the request belongs to it.
    pub(crate) fn head(
        &self,
        exact: bool,
        connection: Option<u64>,
    ) -> Result<bhttp::Request, Refusal> {
        let mut headers = self.headers.clone();
        if let Some(protocol) = &self.upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
        }
        let mut fields = match exact {
            false => fields::to_fields(&headers),
            true => {
                let (mut fields, style) = fields::to_fields_as_sent(&headers, self.sent_fields());
                fields.push((STYLE_FIELD.into(), style.encode()));
                fields
            }
        };
        if let Some(number) = connection {
            fields.push((CONNECTION_FIELD.into(), format!("{number:x}").into()));
        }
        let head = bhttp::Request {
            method: self.method.as_str().to_owned().into(),
            scheme: self.scheme.clone().into(),
            authority: self.authority.clone().into(),
            path: self.path_as_sent(),
            fields,
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
    sent: Option<&RequestHead>,
) -> Result<(String, String, String), Refusal> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if let Some(upstream) = upstream {
        if method == Method::CONNECT {
            let reason = "this is a reverse proxy: it makes no tunnels".to_owned();
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return Err(Refusal { status, error: "http_request_denied", reason });
        }
        if uri.scheme().is_none() && uri.authority().is_some() {
            return Err(bad(format!("'{uri}' is a target for CONNECT alone")));
        }
        let path = match path {
            "*" => "*".to_owned(),
            _ => format!("{}{}", upstream.prefix, from_root(path)),
        };
        return Ok((upstream.scheme.clone(), upstream.authority.clone(), path));
    }
    if uri.authority().is_none()
        && let Some(mapped) = hosted::mapped(uri)
    {
        return mapped;
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
        Some(scheme @ ("http" | "https" | COAP)) => {
            // RFC 9112 §3.2.4: the whole server is meant, and the last proxy says so.
            let is_server = method == Method::OPTIONS
                && sent.is_some_and(|sent| behind_authority(&sent.target).is_empty());
            let path = if is_server { "*".to_owned() } else { from_root(path) };
            Ok((scheme.to_owned(), authority, path))
        }
        scheme => {
            let given = scheme.unwrap_or_default();
            Err(bad(format!("scheme '{given}': one of http, https, coap")))
        }
    }
}

/// A path is never empty; with a query it is often left out (RFC 9112 §3.2.1).
fn from_root(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// Path and query of a target as it was sent.
fn raw_path(prefix: &str, target: &[u8]) -> Bytes {
    let path = behind_authority(target);
    let slash: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
    Bytes::from([prefix.as_bytes(), slash, path].concat())
}

/// A target without its scheme and authority.
fn behind_authority(target: &[u8]) -> &[u8] {
    let at = target.windows(3).position(|three| three == b"://");
    let Some(at) = at.filter(|_| !target.starts_with(b"/")) else { return target };
    let behind = &target[at + 3..];
    let begin = behind.iter().position(|byte| matches!(byte, b'/' | b'?'));
    &behind[begin.unwrap_or(behind.len())..]
}

/// RFC 9110 §10.1.1: what a client of HTTP/1.1 expects goes on, but for the wait for a body that
/// there is none of; what else it expects is not met here.
fn note_expectation(
    headers: &mut http::HeaderMap,
    sent: Option<&RequestHead>,
) -> Result<(), Refusal> {
    let Some(sent) = sent else { return Ok(()) };
    if sent.expects_continue() {
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        return Ok(());
    }
    let mut others = sent.fields.iter().filter(|field| field.is("expect"));
    let other = others.find(|field| !field.value.eq_ignore_ascii_case(b"100-continue"));
    match other.filter(|_| sent.minor > 0) {
        None => Ok(()),
        Some(_) => Err(Refusal {
            status: StatusCode::EXPECTATION_FAILED,
            error: "http_request_error",
            reason: "an expectation other than 100-continue cannot be met".to_owned(),
        }),
    }
}

/// The answer to a message that may go no further (RFC 9110 §7.6.2).
fn last_recipient(method: &Method) -> Refusal {
    let (status, reason) = match *method {
        Method::OPTIONS => (StatusCode::OK, "Max-Forwards is 0: this proxy answers"),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "Max-Forwards is 0, and this proxy traces nothing"),
    };
    Refusal { status, error: "http_request_denied", reason: reason.to_owned() }
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
