//! Headers of WSP and fields of HTTP (WAP-230 §8.4), in both directions.
//!
//! A field that the tables have no number for, or whose value their grammar has no form for, goes
//! by its name and as text (§8.4.2.6, Application-header), so nothing is lost. What comes back is
//! canonical: parameters behind `; `, names as the tables write them, each element of a list in a
//! field of its own, unless these would be too many.
//!
//! ```
//! use longwire_proto::wsp::headers::{Rules, decode, encode};
//! let mut bytes = Vec::new();
//! encode(Rules::DEFAULT, "Accept", b"application/vnd.wap.wmlc;q=0.5", &mut bytes)?;
//! assert_eq!(bytes, [0x80, 0x03, 0x94, 0x80, 0x33]);
//! let decoded = decode(Rules::DEFAULT, &bytes)?;
//! assert_eq!(decoded.fields[0].name, "Accept");
//! assert_eq!(decoded.fields[0].value, b"application/vnd.wap.wmlc; q=0.5");
//! # Ok::<(), longwire_proto::Error>(())
//! ```

mod decode;
mod encode;
mod parameter;
mod raw;
mod tables;
mod text;
mod value;

pub use raw::{Headers, Name, Value};

use super::reader::Reader;
use crate::Error;

/// Most octets of headers that are read or written: what a datagram of UDP has room for.
pub const MAX_BYTES: usize = 65_507;
/// Most headers of a PDU beside its content type, as one octet may be a field of twenty: more than
/// any browser sends.
pub const MAX_FIELDS: usize = 512;
/// Most octets of names and values that headers are decoded to.
pub const MAX_DECODED_BYTES: usize = 256 * 1024;

/// Which numbers the peer knows (§8.4.2.70, table 39).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EncodingVersion {
    /// Version 1.1.
    V1_1,
    /// Version 1.2, which a peer has that says nothing of it.
    V1_2,
    /// Version 1.3.
    V1_3,
    /// Version 1.4.
    V1_4,
}

/// What fields are encoded and decoded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Only what this version has is encoded; all there is gets decoded.
    pub version: EncodingVersion,
    /// Octets of the PDU's data, by which Content-Range is understood (§8.4.2.23).
    pub body_bytes: Option<u64>,
}

impl Rules {
    /// Those towards a peer of which nothing is known, and towards Kannel 1.4.5, which knows the
    /// names of later versions but reads few of their values.
    pub const DEFAULT: Self = Self { version: EncodingVersion::V1_2, body_bytes: None };
}

/// A field of HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, as the tables write it or as it came.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
}

/// What headers were decoded to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The fields, in order.
    pub fields: Vec<Field>,
    /// How many headers were left out: of other code pages, of numbers that nobody knows, or with
    /// a value that breaks its grammar. Where the next one begins is known all the same.
    pub skipped: usize,
}

/// Puts fields of HTTP behind `out`, so many that they can be read again: where there would be more
/// than [`MAX_FIELDS`], the next lists go each in one header, by name.
pub struct Encoder<'a> {
    rules: Rules,
    out: &'a mut Vec<u8>,
    fields: usize,
}

impl<'a> Encoder<'a> {
    /// Behind what `out` has, which are no fields.
    pub fn new(rules: Rules, out: &'a mut Vec<u8>) -> Self {
        Self { rules, out, fields: 0 }
    }

    /// Puts a field in its shortest form; one without a value too.
    ///
    /// # Errors
    /// [`Error::Caller`] for a name that is no token, or a value with control characters;
    /// [`Error::Limit`] where what is put gets longer than [`MAX_BYTES`] or has more than
    /// [`MAX_FIELDS`]. Then nothing was put.
    pub fn put(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        if !text::is_token(name.as_bytes()) {
            return Err(Error::Caller { what: "a field's name is no token" });
        }
        let value = checked(value)?;
        check_limit("headers", self.fields + 1, MAX_FIELDS)?;
        let start = self.out.len();
        let known = tables::field(name.as_bytes(), self.rules.version)
            .and_then(|code| Some((code, tables::FIELDS.get(usize::from(code))?)));
        let put = match known {
            Some((code, row)) => {
                let elements = elements(row.is_list, value, MAX_FIELDS - self.fields);
                for element in &elements {
                    put_known(self.rules, (code, row.grammar), name, element, self.out);
                }
                elements.len()
            }
            None => {
                put_by_name(name, value, self.out);
                1
            }
        };
        within(start, self.out)?;
        self.fields += put;
        Ok(())
    }
}

/// [`Encoder::put`] for a field alone.
///
/// # Errors
/// Those of [`Encoder::put`].
pub fn encode(rules: Rules, name: &str, value: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    Encoder::new(rules, out).put(name, value)
}

/// Puts a media type behind `out` as the content type that stands before the headers of a request
/// with a body, of a reply or of a push (§8.4.2.24).
///
/// # Errors
/// [`Error::Caller`] for what is no media type; [`Error::Limit`] as [`encode`].
pub fn encode_content_type(rules: Rules, media: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    let media = checked(media)?;
    if parameter::put_media(media, rules.version, out).is_none() {
        out.truncate(start);
        return Err(Error::Caller { what: "a content type is no media type" });
    }
    within(start, out)
}

fn checked(value: &[u8]) -> Result<&[u8], Error> {
    let value = text::trim(value);
    let what = "a control character in a field's value";
    text::is_text(value).then_some(value).ok_or(Error::Caller { what })
}

fn check_limit(what: &'static str, value: usize, limit: usize) -> Result<(), Error> {
    match value <= limit {
        true => Ok(()),
        false => Err(Error::Limit { what, value: value as u64, limit: limit as u64 }),
    }
}

fn check_len(bytes: &[u8]) -> Result<(), Error> {
    check_limit("headers in bytes", bytes.len(), MAX_BYTES)
}

fn within(start: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    let checked = check_len(out);
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}

fn put_by_name(name: &str, value: &[u8], out: &mut Vec<u8>) {
    value::put_text(name.as_bytes(), out);
    value::put_text(value, out);
}

/// The elements of a list of at most so many, otherwise the value as it is.
fn elements(is_list: bool, value: &[u8], most: usize) -> Vec<&[u8]> {
    let elements = if is_list { text::split(value, b',') } else { None };
    elements.filter(|elements| (1..=most).contains(&elements.len())).unwrap_or_else(|| vec![value])
}

fn put_known(
    rules: Rules,
    (code, grammar): (u8, tables::Grammar),
    name: &str,
    element: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    value::put_short(code, out);
    if encode::put(grammar, rules, element, out).is_none() {
        out.truncate(start);
        put_by_name(name, element, out);
    }
}

/// Decodes headers that have no content type before them: those of a request without a body.
///
/// # Errors
/// [`Error::Truncated`] and [`Error::Peer`] where the end of a header cannot be found,
/// [`Error::Limit`] beyond [`MAX_BYTES`], [`MAX_FIELDS`] or [`MAX_DECODED_BYTES`].
pub fn decode(rules: Rules, bytes: &[u8]) -> Result<Decoded, Error> {
    let mut decoded = Decoded::default();
    decode_behind(rules, bytes, &mut decoded)?;
    Ok(decoded)
}

/// Decodes a content type and the headers behind it. A content type of any sort (`*/*`) says
/// nothing and becomes no field; so does one that is not known, which is counted as skipped. Where
/// there is one, another among the headers, as Kannel 1.4.5 sends in sessions, is left out.
///
/// # Errors
/// Those of [`decode`].
pub fn decode_with_content_type(rules: Rules, bytes: &[u8]) -> Result<Decoded, Error> {
    check_len(bytes)?;
    let mut decoded = Decoded::default();
    let mut reader = Reader::new(bytes);
    // A reply without data may lack even this.
    if !reader.is_empty() {
        let mut value = Vec::new();
        match parameter::write_media(raw::value(&mut reader)?, &mut value) {
            Ok(()) if value == b"*/*" => {}
            Ok(()) => decoded.fields.push(Field { name: "Content-Type".to_owned(), value }),
            Err(_) => decoded.skipped += 1,
        }
    }
    let leading = decoded.fields.len();
    decode_behind(rules, reader.rest(), &mut decoded)?;
    if leading > 0 {
        let mut place = 0;
        decoded.fields.retain(|field| {
            place += 1;
            place <= leading || !field.name.eq_ignore_ascii_case("content-type")
        });
    }
    Ok(decoded)
}

fn decode_behind(rules: Rules, bytes: &[u8], decoded: &mut Decoded) -> Result<(), Error> {
    check_len(bytes)?;
    let mut len = 0;
    for (before, header) in Headers::new(bytes).enumerate() {
        let (name, value) = header?;
        match field(rules, name, value) {
            Ok(field) => {
                len += field.name.len() + field.value.len();
                decoded.fields.push(field);
            }
            Err(_) => decoded.skipped += 1,
        }
        check_limit("headers", before + 1, MAX_FIELDS)?;
        check_limit("decoded headers in bytes", len, MAX_DECODED_BYTES)?;
    }
    Ok(())
}

/// The field of HTTP that a header stands for.
///
/// # Errors
/// A header of another code page, a number or a name that stands for nothing, a value that breaks
/// its grammar, or one that HTTP has no text for.
pub fn field(rules: Rules, name: Name<'_>, value: Value<'_>) -> Result<Field, Error> {
    let mut out = Vec::new();
    let name = match name {
        Name::Known { page: 1, code } => {
            let row = tables::FIELDS.get(usize::from(code));
            let unknown = Error::Peer { what: "an unknown header", value: code.into() };
            let row = row.ok_or(unknown)?;
            decode::write(row.grammar, rules, value, &mut out)?;
            row.name.to_owned()
        }
        Name::Known { page, .. } => {
            return Err(Error::Peer { what: "an unknown code page", value: page.into() });
        }
        Name::Text(name) => {
            let token = str::from_utf8(name).ok().filter(|name| text::is_token(name.as_bytes()));
            let token =
                token.ok_or(Error::Peer { what: "a header's name is no token", value: 0 })?;
            match value {
                Value::Text(text) => value::write_plain(text, &mut out)?,
                // What has no text has an application's own form; nothing at all is a text too.
                Value::Data([]) => {}
                _ => {
                    return Err(Error::Peer { what: "a header by its name has no text", value: 0 });
                }
            }
            token.to_owned()
        }
    };
    let trimmed = text::trim(&out);
    if trimmed.len() != out.len() {
        out = trimmed.to_owned();
    }
    Ok(Field { name, value: out })
}
