//! Where a reverse proxy sends every request.

use crate::pattern::{COAP, split_authority, standard_port};

/// `http://HOST[:PORT][/PATH]`, resolved; also with `https` or `coap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub(crate) scheme: String,
    /// As it is sent in Host.
    pub(crate) authority: String,
    /// Put before every path; empty or beginning with a slash, never ending with one.
    pub(crate) prefix: String,
}

impl Upstream {
    /// Reads a URL; the error is one line with the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!("upstream '{text}' {what}: a URL like 'http://tracks.example:8080/soap'")
        };
        let uri: http::Uri = text.parse().map_err(|_| wrong("is no URL"))?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https" | COAP));
        let scheme = scheme.ok_or_else(|| wrong("has no scheme http, https or coap"))?.to_owned();
        let authority = uri.authority().ok_or_else(|| wrong("has no host"))?.as_str();
        if authority.contains('@') || uri.query().is_some() {
            return Err(wrong("has a user or a query"));
        }
        let (host, _) =
            host_and_port(authority, &scheme).ok_or_else(|| wrong("has a wrong port"))?;
        if host.is_empty() {
            return Err(wrong("has no host"));
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { scheme, authority: authority.to_owned(), prefix })
    }
}

/// Host without brackets, and the port, by default the scheme's.
pub(crate) fn host_and_port<'a>(authority: &'a str, scheme: &str) -> Option<(&'a str, u16)> {
    let (host, port) = split_authority(authority)?;
    let port = match port {
        None => standard_port(scheme),
        // Digits alone (RFC 3986 §3.2.3): a sign is another port to others.
        Some(port) if !port.bytes().all(|byte| byte.is_ascii_digit()) => return None,
        Some(port) => port.parse().ok().filter(|port| *port > 0)?,
    };
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    Some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_made_of_digits() {
        assert_eq!(host_and_port("a:80", "http"), Some(("a", 80)));
        for authority in ["a:+80", "a:-1", "a:0", "a:65536", "a:8 0", "a:", "a:0x50"] {
            assert_eq!(host_and_port(authority, "http"), None, "{authority}");
        }
    }

    #[test]
    fn a_url_is_taken_apart() {
        let upstream = Upstream::parse("http://a:8080/api/").unwrap();
        assert_eq!(upstream.authority, "a:8080");
        assert_eq!(upstream.prefix, "/api");
        for text in ["a:8080", "ftp://a", "http://u@a", "http://a/?x", "http://a:0", "/x", ""] {
            let error = Upstream::parse(text).expect_err(text);
            assert!(error.contains("upstream '"), "{error}");
        }
        assert_eq!(host_and_port("[::1]:81", "http"), Some(("::1", 81)));
        assert_eq!(host_and_port("[::1]", "https"), Some(("::1", 443)));
        assert_eq!(host_and_port("a:", "https"), None);
    }
}
