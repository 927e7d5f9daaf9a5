//! The two PDUs of a call on slices: Post and Reply (WAP-230 §8.2.3).

use crate::input::Input;
use crate::out::Out;
use crate::{Content, Error, Request};

use super::{media_code, media_text};

/// PDU types (WAP-230 table 34).
const POST: u8 = 0x60;
const REPLY: u8 = 0x04;
/// Well-known headers (WAP-230 table 39), as short integers.
const ACCEPT: u8 = 0x80;
const MAX_FORWARDS: u8 = 0x9e;
/// Any media type, as a short integer.
const ANY_MEDIA: u8 = 0x80;
/// Parameter Charset and the number of UTF-8 (WAP-230 table 38, IANA MIBenum 106).
const CHARSET_UTF_8: [u8; 2] = [0x81, 0xea];
/// A code as a short integer.
const SHORT: u8 = 0x80;

/// An answer on a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The transaction id.
    pub tid: u8,
    /// The status as HTTP has it.
    pub status: u16,
    /// What the body is.
    pub content: Content,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// [`Error::Truncated`] and [`Error::Malformed`]; what is no reply is malformed too.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Error> {
        let mut input = Input::new(datagram);
        let tid = input.byte()?;
        if input.byte()? != REPLY {
            return Err(Error::Malformed);
        }
        let status = status(input.byte()?)?;
        let headers = input.counted()?;
        let content = if headers.is_empty() { Content::Other } else { media(headers)? };
        Ok(Self { tid, status, content, body: input.rest() })
    }
}

/// The status of HTTP that an octet stands for (WAP-230 table 36).
fn status(octet: u8) -> Result<u16, Error> {
    match (octet >> 4, u16::from(octet & 0x0f)) {
        (5, last @ 0..=1) => Ok(416 + last),
        (6, last) => Ok(500 + last),
        (class @ 1..=4, last) => Ok(u16::from(class) * 100 + last),
        _ => Err(Error::Malformed),
    }
}

/// The media type that headers begin with (WAP-230 §8.4.2.24), without its parameters.
fn media(headers: &[u8]) -> Result<Content, Error> {
    let mut input = Input::new(headers);
    let first = input.byte()?;
    match first {
        SHORT.. => Ok(of_code(first & !SHORT)),
        0..0x20 => {
            let len = if first == 0x1f { input.uintvar()? } else { usize::from(first) };
            let mut value = Input::new(input.bytes(len)?);
            match value.peek().ok_or(Error::Truncated)? {
                code @ SHORT.. => Ok(of_code(code & !SHORT)),
                // A code of more than seven bits: none that is known here.
                0..0x20 => Ok(Content::Other),
                _ => Ok(of_text(value.until(0)?)),
            }
        }
        _ => Ok(of_text(Input::new(headers).until(0)?)),
    }
}

fn of_code(code: u8) -> Content {
    match code {
        // text/xml and application/xml.
        0x28 | 0x27 => Content::Xml,
        0x29 => Content::Wbxml,
        _ => Content::Other,
    }
}

fn of_text(text: &[u8]) -> Content {
    let is = |name: &[u8]| text.eq_ignore_ascii_case(name);
    if is(b"application/cbor") {
        Content::Cbor
    } else if is(b"application/exi") {
        Content::Exi
    } else if is(b"application/soap+xml") || is(b"text/xml") || is(b"application/xml") {
        Content::Xml
    } else if is(b"application/vnd.wap.wbxml") {
        Content::Wbxml
    } else {
        Content::Other
    }
}

/// Writes the datagram of a call and returns its length.
///
/// `round` is 0, or in a header that no origin acts on where the method is POST (RFC 9110 §7.6.2):
/// it makes the bytes of a call differ from those of another one with the same id.
pub(super) fn encode(
    (tid, round): (u8, u32),
    request: &Request<'_>,
    room: &mut [u8],
) -> Result<usize, Error> {
    let round = round & 0x3f;
    let type_len = match (request.content, media_code(request.content)) {
        (Content::Xml, _) => 4,
        (_, Some(_)) => 1,
        (content, None) => media_text(content).len() + 1,
    };
    let action_len = match request.action.len() {
        0 => 0,
        // The name with its end, quotes, the end.
        len => ACTION.len() + len + 3,
    };
    let round_len = if round == 0 { 0 } else { 2 };
    let mut out = Out::new(room);
    out.put(&[tid, POST])?;
    out.uintvar(request.uri.len())?;
    out.uintvar(type_len + 2 + round_len + action_len)?;
    out.put(request.uri.as_bytes())?;
    match (request.content, media_code(request.content)) {
        (Content::Xml, Some(code)) => {
            out.put(&[3, code | SHORT])?;
            out.put(&CHARSET_UTF_8)?;
        }
        (_, Some(code)) => out.byte(code | SHORT)?,
        (content, None) => {
            out.put(media_text(content))?;
            out.byte(0)?;
        }
    }
    // Some gateways refuse who says nothing.
    out.put(&[ACCEPT, ANY_MEDIA])?;
    if round != 0 {
        let round = round.to_le_bytes()[0];
        out.put(&[MAX_FORWARDS, SHORT | (0x7f - round)])?;
    }
    if !request.action.is_empty() {
        out.put(ACTION)?;
        out.byte(b'"')?;
        out.put(request.action.as_bytes())?;
        out.put(b"\"\0")?;
    }
    out.put(request.body)?;
    Ok(out.len())
}

/// The header of SOAP 1.1 §6.1.1, which has no code.
const ACTION: &[u8] = b"SOAPAction\0";
