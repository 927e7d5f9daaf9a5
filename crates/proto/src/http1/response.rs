//! Heads of responses (RFC 9112 §4, §6).

use bytes::Bytes;

use super::head::{
    self, Field, Kind, connection_has, content_length, members, quote, reframe, write_fields,
};
use super::{Fault, Framing};

/// A response's head, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// 0 or 1.
    pub minor: u8,
    /// 100 to 999.
    pub status: u16,
    /// The reason phrase; may be empty.
    pub reason: Bytes,
    /// Fields in order, those of the framing normalised.
    pub fields: Vec<Field>,
    /// What follows the head.
    pub framing: Framing,
    /// The connection ends with this response.
    pub close: bool,
}

impl ResponseHead {
    /// Reads a whole head, up to and with its empty line; `method` is that of the request.
    ///
    /// # Errors
    /// What a proxy answers with 502: two lengths, codings that it cannot take off, no status.
    pub fn parse(head: &[u8], method: &[u8]) -> Result<Self, Fault> {
        Self::read(head, method).map_err(Fault::of_response)
    }

    fn read(head: &[u8], method: &[u8]) -> Result<Self, Fault> {
        let (line, mut fields) = head::lines(head, Kind::Response)?;
        let (minor, status, reason) = status_line(&line)?;
        let (framing, doubt) = framing(&fields, minor, status, method)?;
        let persists = minor > 0 || connection_has(&fields, "keep-alive");
        let close = doubt
            || !persists
            || framing == Framing::UntilClose
            || connection_has(&fields, "close");
        // What would follow an answer to HEAD or stands in 304 is stated, not sent.
        let stated = match framing {
            Framing::None if method == b"HEAD" || status == 304 => content_length(&fields)?,
            _ => None,
        };
        let carries_length = !fields.iter().any(|field| field.is("transfer-encoding"));
        let stated = stated.filter(|_| carries_length).map(Framing::Length);
        reframe(&mut fields, stated.unwrap_or(framing));
        Ok(Self { minor, status, reason, fields, framing, close })
    }

    /// An interim response: the final one is still to come. 101 is final.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// Appends the head for a parser of stricter taste, as HTTP/1.1, without the fields of
    /// [`ResponseHead::surplus`].
    pub fn write_strict(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("HTTP/1.1 {} ", self.status).as_bytes());
        out.extend_from_slice(&self.reason);
        out.extend_from_slice(b"\r\n");
        if self.close && !connection_has(&self.fields, "close") {
            out.extend_from_slice(head::CLOSE);
        }
        write_fields(head::for_strict(self.fields.iter()).0, out);
    }

    /// The fields for which [`ResponseHead::write_strict`] has no room: those beyond
    /// [`MAX_STRICT_FIELDS`](super::MAX_STRICT_FIELDS).
    #[must_use]
    pub fn surplus(&self) -> Vec<&Field> {
        head::for_strict(self.fields.iter()).1
    }
}

/// RFC 9112 §4: the reason, and the space before it, may be missing.
fn status_line(line: &Bytes) -> Result<(u8, u16, Bytes), Fault> {
    let wrong = || Fault::bad(format!("'{}' is no status line", quote(line)));
    let space = line.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
    let minor = head::minor(&line[..space])?;
    let begin = line[space..].iter().position(|byte| *byte != b' ').ok_or_else(wrong)?;
    let rest = line.slice(space + begin..);
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let digits = std::str::from_utf8(&rest[..end]).map_err(|_| wrong())?;
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let status: u16 = digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    if status < 100 {
        return Err(Fault::bad(format!("the status {digits} is not 100 or more")));
    }
    let reason = rest.slice((end + 1).min(rest.len())..);
    let fine = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    if !reason.iter().all(fine) {
        return Err(Fault::bad("the reason phrase has a control character"));
    }
    Ok((minor, status, reason))
}

/// RFC 9112 §6.3: what follows, and whether something about it is in doubt.
fn framing(
    fields: &[Field],
    minor: u8,
    status: u16,
    method: &[u8],
) -> Result<(Framing, bool), Fault> {
    let codings: Vec<&[u8]> =
        members(fields, "transfer-encoding").filter(|coding| !coding.is_empty()).collect();
    let is_coded = fields.iter().any(|field| field.is("transfer-encoding"));
    if method == b"HEAD" || status < 200 || status == 204 || status == 304 {
        return Ok((Framing::None, is_coded && status == 204));
    }
    if !is_coded {
        let length = content_length(fields)?;
        return Ok((length.map_or(Framing::UntilClose, Framing::Length), false));
    }
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let is_identity = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"identity");
    match codings.split_last() {
        // A length beside it, or HTTP/1.0, is a faulty framing: the connection ends with it.
        Some((last, before)) if is_chunked(last) && before.iter().all(is_identity) => {
            let doubt = minor == 0 || fields.iter().any(|field| field.is("content-length"));
            Ok((Framing::Chunked, doubt))
        }
        _ if codings.iter().all(is_identity) => Ok((Framing::UntilClose, true)),
        _ => {
            let codings = quote(&codings.join(&b", "[..]));
            Err(Fault::bad(format!("the transfer coding '{codings}' cannot be taken off")))
        }
    }
}
