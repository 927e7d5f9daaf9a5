//! Byte layout of requests, responses and field sections (RFC 9292 §3).

use bytes::Bytes;

use crate::{Error, varint};

/// Greatest encoded head or trailer section accepted, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Most fields accepted in one section.
pub const MAX_FIELDS: usize = 512;

/// Framing indicators (RFC 9292 §3.3).
const KNOWN_LENGTH_REQUEST: u64 = 0;
const KNOWN_LENGTH_RESPONSE: u64 = 1;

/// Field lines in order; names are lower case (RFC 9292 §3.6 by RFC 9113 §8.2.1).
pub type Fields = Vec<(Bytes, Bytes)>;

/// Control data and fields of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Method token.
    pub method: Bytes,
    /// Scheme, empty for CONNECT.
    pub scheme: Bytes,
    /// Authority; may be empty where a Host field stands in.
    pub authority: Bytes,
    /// Path and query, empty for CONNECT.
    pub path: Bytes,
    /// Header fields.
    pub fields: Fields,
}

/// Status and fields of a final response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Status code, 200 to 599.
    pub status: u16,
    /// Header fields.
    pub fields: Fields,
}

impl Request {
    /// Appends the head as a truncated known-length request.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(KNOWN_LENGTH_REQUEST, out);
        for part in [&self.method, &self.scheme, &self.authority, &self.path] {
            varint::encode_bytes(part, out);
        }
        encode_fields(&self.fields, out);
    }

    /// Reads a head; content, trailers or padding behind it are refused unless all zero length.
    pub fn decode(input: &[u8]) -> Result<Self, Error> {
        let mut rest = checked(input)?;
        indicator(&mut rest, KNOWN_LENGTH_REQUEST)?;
        let mut part = |what| varint::decode_bytes(&mut rest, what).map(Bytes::copy_from_slice);
        let head = Self {
            method: part("the method")?,
            scheme: part("the scheme")?,
            authority: part("the authority")?,
            path: part("the path")?,
            fields: Vec::new(),
        };
        if head.method.is_empty() || !head.method.iter().all(|byte| is_token(*byte)) {
            return Err(Error::Peer { what: "a method must be a token", value: 0 });
        }
        for part in [&head.scheme, &head.authority, &head.path] {
            if let Some(byte) = part.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
                return Err(Error::Peer {
                    what: "control data must not hold white space or control characters",
                    value: u64::from(*byte),
                });
            }
        }
        let fields = section(&mut rest)?;
        nothing_behind(rest)?;
        Ok(Self { fields, ..head })
    }
}

impl Response {
    /// Appends the head as a truncated known-length response.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode(KNOWN_LENGTH_RESPONSE, out);
        varint::encode(u64::from(self.status), out);
        encode_fields(&self.fields, out);
    }

    /// Reads a head; informational responses before it are skipped (RFC 9292 §3.5.1).
    pub fn decode(input: &[u8]) -> Result<Self, Error> {
        let mut rest = checked(input)?;
        indicator(&mut rest, KNOWN_LENGTH_RESPONSE)?;
        loop {
            let status = varint::decode(&mut rest, "the status")?;
            let fields = section(&mut rest)?;
            match u16::try_from(status) {
                Ok(100..=199) => {}
                Ok(status @ 200..=599) => {
                    nothing_behind(rest)?;
                    return Ok(Self { status, fields });
                }
                _ => return Err(Error::Peer { what: "a status is 100 to 599", value: status }),
            }
        }
    }
}

/// Appends a known-length field section.
pub fn encode_fields(fields: &Fields, out: &mut Vec<u8>) {
    let line = |text: &Bytes| varint::encoded_len(text.len() as u64) + text.len();
    let total: usize = fields.iter().map(|(name, value)| line(name) + line(value)).sum();
    out.reserve(varint::encoded_len(total as u64) + total);
    varint::encode(total as u64, out);
    for (name, value) in fields {
        varint::encode_bytes(name, out);
        varint::encode_bytes(value, out);
    }
}

/// Reads a bare field section, as trailers are sent; trailing bytes are refused.
pub fn decode_fields(input: &[u8]) -> Result<Fields, Error> {
    let mut rest = checked(input)?;
    let fields = section(&mut rest)?;
    if rest.is_empty() { Ok(fields) } else { Err(trailing(rest)) }
}

fn checked(input: &[u8]) -> Result<&[u8], Error> {
    if input.len() > MAX_HEAD_BYTES {
        let (value, limit) = (input.len() as u64, MAX_HEAD_BYTES as u64);
        return Err(Error::Limit { what: "the size of a head in bytes", value, limit });
    }
    Ok(input)
}

fn indicator(rest: &mut &[u8], expected: u64) -> Result<(), Error> {
    match varint::decode(rest, "the framing indicator")? {
        value if value == expected => Ok(()),
        value => Err(Error::Peer { what: "unexpected framing indicator", value }),
    }
}

/// A truncated message may spell out that content, trailers and padding are empty (§3.8).
fn nothing_behind(rest: &[u8]) -> Result<(), Error> {
    if rest.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(trailing(rest)) }
}

fn trailing(rest: &[u8]) -> Error {
    Error::Peer { what: "bytes behind the end of a head", value: rest.len() as u64 }
}

fn section(rest: &mut &[u8]) -> Result<Fields, Error> {
    let mut lines = varint::decode_bytes(rest, "a field section")?;
    let mut fields = Vec::new();
    while !lines.is_empty() {
        if fields.len() == MAX_FIELDS {
            let (value, limit) = (MAX_FIELDS as u64 + 1, MAX_FIELDS as u64);
            return Err(Error::Limit { what: "the number of fields", value, limit });
        }
        let name = varint::decode_bytes(&mut lines, "a field name")?;
        let value = varint::decode_bytes(&mut lines, "a field value")?;
        if name.is_empty() || !name.iter().all(|b| is_token(*b) && !b.is_ascii_uppercase()) {
            return Err(Error::Peer {
                what: "a field name must be a lower-case token",
                value: fields.len() as u64,
            });
        }
        // RFC 9113 §8.2.1: these could smuggle a field into an HTTP/1.1 message.
        if let Some(byte) = value.iter().find(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err(Error::Peer {
                what: "a field value must not hold NUL, CR or LF",
                value: u64::from(*byte),
            });
        }
        fields.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
    }
    Ok(fields)
}

/// `tchar` of RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
