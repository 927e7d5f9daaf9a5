//! Which requests an entry of the allow list, or a service of the configuration, means.
//!
//! `SCHEME://HOST[:PORT][/PATH]`: the scheme is `http`, `https`, `coap`, or `*` for the first two;
//! the host a name, an address, `*.domain` for every name under a domain, or `*`; the port a
//! number, `*`, or absent for the scheme's own; the path a prefix of whole segments.

use std::fmt;
use std::net::IpAddr;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 2048;

/// Scheme, host, port and path of a request, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    /// `http`, `https` or [`COAP`]; none for CONNECT, where the bytes inside are not seen.
    pub(crate) scheme: Option<&'a str>,
    /// Name or address, without brackets.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Path and query; none for CONNECT.
    pub(crate) path: Option<&'a str>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    scheme: Option<String>,
    host: Host,
    port: Port,
    /// Segments; empty for every path.
    path: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    /// Names under a domain, with its leading dot.
    Under(String),
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Any,
    Standard,
    Number(u16),
}

/// The scheme of CoAP over UDP (RFC 7252 §6.1). Its requests go to other servers than those of
/// HTTP at the same host, so that only a pattern that names the scheme means it.
pub(crate) const COAP: &str = "coap";

/// The port a scheme has when none is said.
pub(crate) fn standard_port(scheme: &str) -> u16 {
    match scheme {
        "https" => 443,
        COAP => proto::coap::uri::Scheme::Coap.default_port(),
        _ => 80,
    }
}

impl Pattern {
    /// Reads a pattern; the error is one line with the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "'{text}' {what}: a pattern is SCHEME://HOST[:PORT][/PATH], like \
                 'http://tracks.example:8080/soap' or 'https://*.example.org'"
            )
        };
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!("a pattern is longer than {MAX_PATTERN_BYTES} bytes"));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
        let scheme = match scheme {
            "*" => None,
            "http" | "https" | COAP => Some(scheme.to_owned()),
            _ => return Err(wrong("has a scheme other than http, https, coap or *")),
        };
        if rest.contains(['?', '#', '@']) {
            return Err(wrong("has a query, fragment or user"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = split_authority(authority).ok_or_else(|| wrong("has a wrong port"))?;
        let port = match port {
            None => Port::Standard,
            Some("*") => Port::Any,
            Some(port) => Port::Number(
                port.parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or_else(|| wrong("has a wrong port"))?,
            ),
        };
        let host = Host::parse(host).ok_or_else(|| wrong("has a wrong host"))?;
        let path = segments(path).ok_or_else(|| wrong("has a path with '..' or the like"))?;
        Ok(Self { text: text.to_owned(), scheme, host, port, path })
    }

    /// Whether a request is meant.
    pub(crate) fn matches(&self, target: &Target<'_>) -> bool {
        let is_named = match (self.scheme.as_deref(), target.scheme) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (Some(ours), None) => ours != COAP,
            (None, theirs) => theirs != Some(COAP),
        };
        is_named && self.matches_place(target)
    }

    /// Whether it is meant, whatever its scheme.
    fn matches_place(&self, target: &Target<'_>) -> bool {
        let standard = self.scheme.as_deref().or(target.scheme).unwrap_or("https");
        let port = match self.port {
            Port::Any => true,
            Port::Standard => target.port == standard_port(standard),
            Port::Number(port) => target.port == port,
        };
        port && self.host.matches(target.host) && self.matches_path(target.path)
    }

    /// Whether the host is named, not meant by a wildcard: only then may it be a private address.
    pub(crate) fn names_host(&self) -> bool {
        matches!(self.host, Host::Name(_) | Host::Address(_))
    }

    /// Whether a request may be meant, to refuse it: a path that servers read differently is, and a
    /// tunnel to the host of a pattern with a path.
    pub(crate) fn may_mean(&self, target: &Target<'_>) -> bool {
        let path = target.path.map(|path| path.split(['?', '#']).next().unwrap_or_default());
        let plain = path.is_some_and(|path| segments(path).is_some());
        let may_mean = |pattern: &Self, target: &Target<'_>| match pattern.scheme {
            // What names no scheme is refused in any.
            None => pattern.matches_place(target),
            Some(_) => pattern.matches(target),
        };
        may_mean(self, &Target { path: path.filter(|_| plain), ..target.clone() })
            || !plain && may_mean(&Self { path: Vec::new(), ..self.clone() }, target)
    }

    fn matches_path(&self, path: Option<&str>) -> bool {
        if self.path.is_empty() {
            return true;
        }
        // Inside a tunnel any path may be asked for.
        let Some(path) = path else { return false };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        segments(path).is_some_and(|segments| segments.starts_with(&self.path))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let text = normal_host(text);
        let is_name = |name: &str| {
            let label = |label: &str| {
                !label.is_empty()
                    && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            };
            name.len() <= 253 && name.split('.').all(label)
        };
        if text == "*" {
            Some(Self::Any)
        } else if let Some(domain) = text.strip_prefix('*') {
            let name = domain.strip_prefix('.')?;
            is_name(name).then(|| Self::Under(domain.to_owned()))
        } else if let Ok(address) = text.parse::<IpAddr>() {
            Some(Self::Address(address.to_canonical()))
        } else {
            is_name(&text).then_some(Self::Name(text))
        }
    }

    fn matches(&self, host: &str) -> bool {
        let host = normal_host(host);
        match self {
            Self::Any => true,
            Self::Under(domain) => {
                host.len() > domain.len()
                    && host.ends_with(domain.as_str())
                    && host.parse::<IpAddr>().is_err()
            }
            Self::Name(name) => host == *name,
            Self::Address(address) => {
                host.parse::<IpAddr>().is_ok_and(|host| host.to_canonical() == *address)
            }
        }
    }
}

/// Lower case, without a final dot or brackets.
fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Host and port as written; `None` when what follows the host is no port.
pub(crate) fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    let after_host = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (host, port) = authority.split_at(after_host);
    match port {
        "" => Some((host, None)),
        _ => port.strip_prefix(':').filter(|port| !port.is_empty()).map(|port| (host, Some(port))),
    }
}

/// Decoded segments of a path. `None` for one that servers read differently: a segment of dots
/// (also coded, or with parameters behind), an empty one amid others, a coded slash or a backslash.
fn segments(path: &str) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(segments);
    }
    for segment in path.split('/') {
        let segment = percent_decode(segment)?;
        let name = segment.split(';').next().unwrap_or_default();
        let unfit = segment.contains(['/', '\\', '\0', '%']);
        if name.is_empty() || name == "." || name == ".." || unfit {
            return None;
        }
        segments.push(segment);
    }
    Some(segments)
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
