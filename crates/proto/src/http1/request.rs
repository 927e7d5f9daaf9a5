//! Heads of requests (RFC 9112 §3, §6).

use bytes::Bytes;

use super::head::{self, Field, Kind, content_length, is_token, members, quote, reframe};
use super::{Fault, Framing};

/// Longest request target, in bytes; RFC 9112 §3 asks for 8000 at least.
pub const MAX_TARGET_BYTES: usize = 32 * 1024;

/// A request's head, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The method.
    pub method: Bytes,
    /// The target as it was sent, without a fragment.
    pub target: Bytes,
    /// 0 or 1.
    pub minor: u8,
    /// Fields in order, those of the framing normalised.
    pub fields: Vec<Field>,
    /// What follows the head.
    pub framing: Framing,
    /// The connection must not be used again: the framing was given twice (RFC 9112 §6.1).
    pub close: bool,
}

impl RequestHead {
    /// Reads a whole head, up to and with its empty line.
    ///
    /// # Errors
    /// What no server may guess at: two lengths, a coding that is not chunked last, no host or two,
    /// white space before a colon, folded lines, control characters, versions other than 1.x.
    pub fn parse(head: &[u8]) -> Result<Self, Fault> {
        let (line, mut fields) = head::lines(head, Kind::Request)?;
        let (method, target, minor) = request_line(&line)?;
        check_host(&fields, minor)?;
        let (framing, close) = framing(&fields, minor)?;
        reframe(&mut fields, framing);
        Ok(Self { method, target, minor, fields, framing, close })
    }

    /// Whether the client waits for 100 (RFC 9110 §10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        let expects = |member: &[u8]| member.eq_ignore_ascii_case(b"100-continue");
        self.minor > 0
            && self.framing != Framing::None
            && members(&self.fields, "expect").any(expects)
    }

    /// Appends the head for a parser of stricter taste: what a target may not hold as it is
    /// (RFC 3986 §2) is escaped there, Expect is left out, for whoever has read this head sees to
    /// it, and so are the fields of [`RequestHead::surplus`].
    pub fn write_strict(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.method);
        out.push(b' ');
        out.extend_from_slice(&escape_target(&self.target));
        out.extend_from_slice(if self.minor == 0 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
        if self.close {
            out.extend_from_slice(head::CLOSE);
        }
        head::write_fields(head::for_strict(self.strict_fields()).0, out);
    }

    /// The fields for which [`RequestHead::write_strict`] has no room: those beyond
    /// [`MAX_STRICT_FIELDS`](super::MAX_STRICT_FIELDS).
    #[must_use]
    pub fn surplus(&self) -> Vec<&Field> {
        head::for_strict(self.strict_fields()).1
    }

    fn strict_fields(&self) -> impl Iterator<Item = &Field> + Clone {
        self.fields.iter().filter(|field| !field.is("expect"))
    }
}

/// A target with every character escaped that a URI must not hold (RFC 3986 §2).
#[must_use]
pub fn escape_target(target: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(target.len());
    for byte in target {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x7f.. => {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
            _ => out.push(*byte),
        }
    }
    out
}

fn request_line(line: &Bytes) -> Result<(Bytes, Bytes, u8), Fault> {
    let wrong = || Fault::bad(format!("'{}' is no request line", quote(line)));
    let first = line.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
    let last = line.iter().rposition(|byte| *byte == b' ').filter(|last| *last > first);
    let last = last.ok_or_else(wrong)?;
    let method = line.slice(..first);
    if method.is_empty() || !method.iter().all(|byte| is_token(*byte)) {
        return Err(Fault::bad(format!("'{}' is no method", quote(&method))));
    }
    let minor = head::minor(&line[last + 1..])?;
    let mut target = line.slice(first + 1..last);
    if target.len() > MAX_TARGET_BYTES {
        let len = target.len();
        let reason = format!("the target is {len} bytes, over the limit of {MAX_TARGET_BYTES}");
        return Err(Fault::with(414, reason));
    }
    // A fragment is not sent (RFC 9110 §7.1); who does means what is before it.
    let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
    target.truncate(end);
    if target.is_empty() || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        return Err(Fault::bad(format!("'{}' is no target of a request", quote(&target))));
    }
    Ok((method, target, minor))
}

/// RFC 9112 §3.2: a request of HTTP/1.1 has one Host, and none has two.
fn check_host(fields: &[Field], minor: u8) -> Result<(), Fault> {
    let mut hosts = fields.iter().filter(|field| field.is("host"));
    let Some(host) = hosts.next() else {
        return match minor {
            0 => Ok(()),
            _ => Err(Fault::bad("the request has no Host field (RFC 9112 section 3.2)")),
        };
    };
    if hosts.next().is_some() {
        return Err(Fault::bad("the request has two Host fields (RFC 9112 section 3.2)"));
    }
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte);
    if host.value.iter().all(fine) && is_port(behind_host(&host.value)) {
        return Ok(());
    }
    Err(Fault::bad(format!("Host '{}' is no host and port", quote(&host.value))))
}

/// What stands behind the host, which may be an address in brackets.
fn behind_host(value: &[u8]) -> &[u8] {
    let end = match value.first() {
        Some(b'[') => value.iter().position(|byte| *byte == b']').map(|at| at + 1),
        _ => value.iter().position(|byte| *byte == b':'),
    };
    &value[end.unwrap_or(value.len())..]
}

/// A colon and digits, or nothing (RFC 3986 §3.2.3).
fn is_port(text: &[u8]) -> bool {
    text.strip_prefix(b":").map_or(text.is_empty(), |port| port.iter().all(u8::is_ascii_digit))
}

/// RFC 9112 §6.1 and §6.3: what follows, and whether the connection may be used behind it.
fn framing(fields: &[Field], minor: u8) -> Result<(Framing, bool), Fault> {
    let length = content_length(fields)?;
    let codings: Vec<&[u8]> =
        members(fields, "transfer-encoding").filter(|coding| !coding.is_empty()).collect();
    if !fields.iter().any(|field| field.is("transfer-encoding")) {
        let framing = length.filter(|length| *length > 0).map(Framing::Length);
        let empty = if length.is_some() { Framing::Length(0) } else { Framing::None };
        return Ok((framing.unwrap_or(empty), false));
    }
    if minor == 0 {
        return Err(Fault::bad("Transfer-Encoding does not go with HTTP/1.0"));
    }
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    match codings.split_last() {
        Some((last, [])) if is_chunked(last) => Ok((Framing::Chunked, length.is_some())),
        Some((last, before)) if is_chunked(last) && !before.iter().any(|one| is_chunked(one)) => {
            let coding = quote(before.first().copied().unwrap_or_default());
            let reason = format!("the transfer coding '{coding}' is not known: send chunked alone");
            Err(Fault::with(501, reason))
        }
        _ => Err(Fault::bad("Transfer-Encoding of a request must end with chunked, once")),
    }
}
