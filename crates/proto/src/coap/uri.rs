//! URIs of CoAP into options and back (RFC 7252 §6, RFC 8323 §8), without allocation.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::option;
use super::{Options, Uint};
use crate::Error;

/// Longest URI in bytes: what a Proxy-Uri holds (RFC 7252 §5.10.2).
pub const MAX_URI_BYTES: usize = 1034;
/// Longest host, path segment or query argument in bytes (RFC 7252 §5.10.1).
pub const MAX_PART_BYTES: usize = 255;

/// The schemes (RFC 7252 §6.1, §6.2, RFC 8323 §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// UDP.
    Coap,
    /// DTLS.
    Coaps,
    /// TCP.
    CoapTcp,
    /// TLS.
    CoapsTcp,
    /// WebSocket.
    CoapWs,
    /// WebSocket over TLS.
    CoapsWs,
}

const SCHEMES: [(Scheme, &str, u16); 6] = [
    (Scheme::Coap, "coap", 5683),
    (Scheme::Coaps, "coaps", 5684),
    (Scheme::CoapTcp, "coap+tcp", 5683),
    (Scheme::CoapsTcp, "coaps+tcp", 5684),
    (Scheme::CoapWs, "coap+ws", 80),
    (Scheme::CoapsWs, "coaps+ws", 443),
];

impl Scheme {
    /// The scheme with this name, in any case.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        SCHEMES.iter().find(|row| row.1.eq_ignore_ascii_case(name)).map(|row| row.0)
    }

    fn row(self) -> (Self, &'static str, u16) {
        SCHEMES.iter().find(|row| row.0 == self).copied().unwrap_or(SCHEMES[0])
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Whether messages are those of a WebSocket (RFC 8323 §8.3, §8.4).
    #[must_use]
    pub fn is_websocket(self) -> bool {
        matches!(self, Self::CoapWs | Self::CoapsWs)
    }

    /// The port of a URI that says none.
    #[must_use]
    pub fn default_port(self) -> u16 {
        self.row().2
    }
}

/// Who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'a> {
    /// An address, which a request to it need not repeat.
    Ip(IpAddr),
    /// A name, percent-encoded as in the URI.
    Name(&'a str),
}

/// Whom a request is sent to, which decides what it must say (RFC 7252 §5.7.2, §6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// To the host and the port that the URI names.
    Origin,
    /// To a proxy: scheme, host and port are said.
    Proxy,
}

/// A URI, taken apart. Percent-encoded text in it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uri<'a> {
    /// The scheme.
    pub scheme: Scheme,
    /// The host.
    pub host: Host<'a>,
    /// The port, or the scheme's.
    pub port: u16,
    path: &'a str,
    query: Option<&'a str>,
}

fn refuse(what: &'static str) -> Error {
    Error::Peer { what, value: 0 }
}

impl<'a> Uri<'a> {
    /// Reads an absolute URI. Refuses other schemes, user information, fragments, names and parts
    /// that no option can hold (RFC 7252 §6.4).
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        if text.len() > MAX_URI_BYTES {
            let (value, limit) = (text.len() as u64, MAX_URI_BYTES as u64);
            return Err(Error::Limit { what: "URI in bytes", value, limit });
        }
        if text.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'#') {
            return Err(refuse("a fragment or what no URI has in it"));
        }
        let (scheme, rest) = text.split_once("://").ok_or(refuse("a URI that is not absolute"))?;
        let scheme = Scheme::of(scheme).ok_or(refuse("a URI of another scheme"))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let (host, port) = split_authority(authority)?;
        let port = match port {
            None | Some("") => scheme.default_port(),
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().map_err(|_| refuse("a port over 65,535"))?
            }
            Some(_) => return Err(refuse("a port that is no number")),
        };
        let uri = Self { scheme, host, port, path, query };
        uri.options(Via::Origin, |_, _| Ok(()))?;
        Ok(uri)
    }

    /// Gives `put` each option with its value, in the order of their numbers (RFC 7252 §6.4).
    pub fn options(
        &self,
        via: Via,
        mut put: impl FnMut(u16, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut room = Part::default();
        match self.host {
            Host::Name(name) => {
                room.decode(name)?;
                room.bytes[..room.len].make_ascii_lowercase();
                put(option::URI_HOST, room.as_slice())?;
            }
            Host::Ip(ip) if via == Via::Proxy => {
                room.write_ip(ip)?;
                put(option::URI_HOST, room.as_slice())?;
            }
            Host::Ip(_) => {}
        }
        if via == Via::Proxy {
            put(option::URI_PORT, Uint::new(self.port.into()).as_slice())?;
        }
        for segment in segments(self.path) {
            room.decode(segment)?;
            // RFC 7252 §5.10.1: no value is one of these, however it was encoded.
            if matches!(room.as_slice(), b"." | b"..") {
                return Err(refuse("an encoded dot segment"));
            }
            put(option::URI_PATH, room.as_slice())?;
        }
        for argument in self.query.into_iter().flat_map(|query| query.split('&')) {
            room.decode(argument)?;
            put(option::URI_QUERY, room.as_slice())?;
        }
        if via == Via::Proxy {
            put(option::PROXY_SCHEME, self.scheme.name().as_bytes())?;
        }
        Ok(())
    }
}

/// Host and port of an authority.
fn split_authority(authority: &str) -> Result<(Host<'_>, Option<&str>), Error> {
    if authority.contains('@') {
        return Err(refuse("user information in a URI"));
    }
    if let Some(literal) = authority.strip_prefix('[') {
        let (literal, rest) = literal.split_once(']').ok_or(refuse("an IP literal without end"))?;
        let ip: Ipv6Addr = literal.parse().map_err(|_| refuse("an IP literal that is none"))?;
        let port = match rest {
            "" => None,
            _ => Some(rest.strip_prefix(':').ok_or(refuse("text behind an IP literal"))?),
        };
        return Ok((Host::Ip(ip.into()), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    // RFC 7252 §6.1: no empty host.
    if host.is_empty() {
        return Err(refuse("a URI without host"));
    }
    let is_name = |byte: u8| is_unreserved(byte) || is_sub_delimiter(byte) || byte == b'%';
    if !host.bytes().all(is_name) {
        return Err(refuse("a host that is no name"));
    }
    Ok((host.parse::<Ipv4Addr>().map_or(Host::Name(host), |ip| Host::Ip(ip.into())), port))
}

/// Whether a segment is left out by RFC 3986 §5.2.4.
fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// The segments of a path without those that dot segments take away (RFC 3986 §5.2.4).
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut rest = Some(path);
    let mut is_first = true;
    core::iter::from_fn(move || {
        loop {
            let (segment, more) = match rest?.split_once('/') {
                Some((segment, more)) => (segment, Some(more)),
                None => (rest?, None),
            };
            rest = more;
            let is_last = more.is_none();
            let is_gone = is_dots(segment) || is_taken_back(more);
            // A path that ends in a dot segment ends in a slash.
            let segment = if is_dots(segment) && is_last { "" } else { segment };
            // RFC 7252 §6.4: a path that is only a slash has no option.
            if (is_gone && !segment.is_empty()) || (is_first && is_last && segment.is_empty()) {
                continue;
            }
            if is_gone && !is_last {
                continue;
            }
            is_first = false;
            return Some(segment);
        }
    })
}

/// Whether one of the segments behind takes this one back.
fn is_taken_back(rest: Option<&str>) -> bool {
    let mut depth = 1_usize;
    for segment in rest.into_iter().flat_map(|rest| rest.split('/')) {
        match segment {
            "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth == 0 {
            return true;
        }
    }
    false
}

/// Room for one part of a URI.
struct Part {
    bytes: [u8; MAX_PART_BYTES],
    len: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { bytes: [0; MAX_PART_BYTES], len: 0 }
    }
}

impl Part {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) -> Result<(), Error> {
        let limit = MAX_PART_BYTES as u64;
        let what = "host, segment or argument in bytes";
        let room = self.bytes.get_mut(self.len);
        *room.ok_or(Error::Limit { what, value: limit + 1, limit })? = byte;
        self.len += 1;
        Ok(())
    }

    /// Replaces what is there by the decoded text, which must be UTF-8 (RFC 7252 §6.4).
    fn decode(&mut self, text: &str) -> Result<(), Error> {
        self.len = 0;
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let byte = match byte {
                b'%' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    let value = digit().zip(digit()).map(|(high, low)| high << 4 | low);
                    let value = value.and_then(|value| u8::try_from(value).ok());
                    value.ok_or(refuse("percent without two digits"))?
                }
                other => other,
            };
            self.push(byte)?;
        }
        core::str::from_utf8(self.as_slice()).map_err(|_| refuse("what is no UTF-8 in a URI"))?;
        Ok(())
    }

    fn write_ip(&mut self, ip: IpAddr) -> Result<(), Error> {
        struct Bytes<'a>(&'a mut Part);
        impl fmt::Write for Bytes<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.bytes().try_for_each(|byte| self.0.push(byte)).map_err(|_| fmt::Error)
            }
        }
        self.len = 0;
        write_host(&mut Bytes(self), Host::Ip(ip)).map_err(|_| no_room())
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_sub_delimiter(byte: u8) -> bool {
    b"!$&'()*+,;=".contains(&byte)
}

fn is_in_segment(byte: u8) -> bool {
    is_unreserved(byte) || is_sub_delimiter(byte) || matches!(byte, b':' | b'@')
}

fn is_in_argument(byte: u8) -> bool {
    byte != b'&' && (is_in_segment(byte) || matches!(byte, b'/' | b'?'))
}

fn no_room() -> Error {
    let limit = MAX_URI_BYTES as u64;
    Error::Limit { what: "room for a URI in bytes", value: limit + 1, limit }
}

fn write_host(out: &mut impl fmt::Write, host: Host<'_>) -> fmt::Result {
    match host {
        Host::Ip(IpAddr::V4(ip)) => write!(out, "{ip}"),
        Host::Ip(IpAddr::V6(ip)) => write!(out, "[{ip}]"),
        Host::Name(name) => out.write_str(name),
    }
}

/// Writes bytes, percent-encoded where `is_plain` says no.
fn write_encoded(
    out: &mut impl fmt::Write,
    value: &[u8],
    is_plain: fn(u8) -> bool,
) -> Result<(), Error> {
    value.iter().try_for_each(|byte| {
        let done = match is_plain(*byte) {
            true => out.write_char(char::from(*byte)),
            false => write!(out, "%{byte:02X}"),
        };
        done.map_err(|_| no_room())
    })
}

/// What a request came to, which it then need not say (RFC 7252 §5.10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination<'a> {
    /// The scheme of the transport.
    pub scheme: Scheme,
    /// The address, or the name in the transport's security.
    pub host: Host<'a>,
    /// The port.
    pub port: u16,
}

/// Writes the URI that a request's options mean (RFC 7252 §6.5). With Proxy-Uri it is that one,
/// and nothing else counts (RFC 7252 §5.10.2); with Proxy-Scheme it has that scheme.
///
/// The error of `out` counts as a lack of room.
pub fn compose(
    options: Options<'_>,
    destination: &Destination<'_>,
    out: &mut impl fmt::Write,
) -> Result<(), Error> {
    fn text<'t>(value: &'t [u8], what: &'static str) -> Result<&'t str, Error> {
        core::str::from_utf8(value).map_err(|_| refuse(what))
    }
    if let Some(uri) = options.first(option::PROXY_URI) {
        let uri = text(uri, "what is no UTF-8 in Proxy-Uri")?;
        return out.write_str(uri).map_err(|_| no_room());
    }
    let (name, default_port) = match options.first(option::PROXY_SCHEME) {
        Some(scheme) => {
            let name = text(scheme, "what is no UTF-8 in Proxy-Scheme")?;
            let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
            if !name.bytes().all(is_scheme) || !name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                return Err(refuse("a scheme that is none"));
            }
            (name, Scheme::of(name).map(Scheme::default_port))
        }
        None => (destination.scheme.name(), Some(destination.scheme.default_port())),
    };
    write!(out, "{name}://").map_err(|_| no_room())?;
    match options.first(option::URI_HOST) {
        None => write_host(out, destination.host).map_err(|_| no_room())?,
        Some(host) => {
            let host = text(host, "what is no UTF-8 in Uri-Host")?;
            let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            match literal.map(str::parse::<Ipv6Addr>) {
                Some(Ok(ip)) => write!(out, "[{ip}]").map_err(|_| no_room())?,
                Some(Err(_)) => return Err(refuse("an IP literal that is none")),
                None => {
                    let is_plain = |byte| is_unreserved(byte) || is_sub_delimiter(byte);
                    write_encoded(out, host.as_bytes(), is_plain)?;
                }
            }
        }
    }
    let port = options.uint(option::URI_PORT).unwrap_or(destination.port.into());
    if default_port.map(u32::from) != Some(port) {
        write!(out, ":{port}").map_err(|_| no_room())?;
    }
    let mut is_empty = true;
    for segment in options.all(option::URI_PATH) {
        if matches!(segment, b"." | b"..") {
            return Err(refuse("a dot segment in Uri-Path"));
        }
        is_empty = false;
        out.write_char('/').map_err(|_| no_room())?;
        write_encoded(out, segment, is_in_segment)?;
    }
    if is_empty {
        out.write_char('/').map_err(|_| no_room())?;
    }
    for (at, argument) in options.all(option::URI_QUERY).enumerate() {
        out.write_char(if at == 0 { '?' } else { '&' }).map_err(|_| no_room())?;
        write_encoded(out, argument, is_in_argument)?;
    }
    Ok(())
}
