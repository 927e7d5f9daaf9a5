//! Items of structured fields (RFC 9651) as single fields of HTTP have them. Parameters that a
//! field does not define mean nothing (§2), so they are stepped over unread.

use std::collections::BTreeMap;

use base64::{
    Engine as _, alphabet,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig},
    },
};

use crate::Error;

/// Padding may be left out, and bits beyond the last byte are ignored: RFC 9651 §4.2.7 asks both of
/// a reader.
const READER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What a byte sequence has between its colons (§4.2.7).
pub(crate) fn byte_sequence(value: &[u8]) -> Result<&[u8], Error> {
    let inside = value.trim_ascii().strip_prefix(b":").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b':')?;
        Some((&rest[..end], &rest[end + 1..]))
    });
    let bad = || wrong("no byte sequence of structured fields", value);
    let (digits, behind) = inside.ok_or_else(bad)?;
    nothing_more(behind, value)?;
    Ok(digits)
}

/// The bytes that such digits stand for.
pub(crate) fn base64(digits: &[u8]) -> Result<Vec<u8>, Error> {
    READER.decode(digits).map_err(|_| wrong("no base64", digits))
}

/// The characters of a string (§4.2.5).
pub(crate) fn string(value: &[u8]) -> Result<String, Error> {
    let bad = || wrong("no string of structured fields", value);
    let mut rest = value.trim_ascii().strip_prefix(b"\"").ok_or_else(bad)?.iter();
    let mut text = String::new();
    loop {
        let escaped = match rest.next() {
            Some(b'"') => break,
            Some(b'\\') => rest.next().filter(|byte| matches!(byte, b'"' | b'\\')),
            byte => byte,
        };
        match escaped {
            Some(&byte @ b' '..=b'~') => text.push(char::from(byte)),
            _ => return Err(bad()),
        }
    }
    nothing_more(rest.as_slice(), value)?;
    Ok(text)
}

/// Members of a dictionary by their keys (§4.2.2), each with what stands for its value, unread; of
/// a key that is there twice the last counts.
pub(crate) fn dictionary(value: &[u8]) -> Result<BTreeMap<&[u8], &[u8]>, Error> {
    let bad = || wrong("no dictionary of structured fields", value);
    let mut members = BTreeMap::new();
    let (mut quoted, mut escaped) = (false, false);
    let parts = value.split(|&byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ => {}
        }
        byte == b',' && !quoted
    });
    for part in parts {
        let part = part.trim_ascii();
        let end = part.iter().position(|byte| b"=;".contains(byte)).unwrap_or(part.len());
        let (key, rest) = part.split_at(end);
        let begins = key.first().is_some_and(|byte| byte.is_ascii_lowercase() || *byte == b'*');
        let is_of_key = |byte: &u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte)
        };
        if !begins || !key.iter().all(is_of_key) {
            return Err(bad());
        }
        // A member without a value is true.
        members.insert(key, rest.strip_prefix(b"=").unwrap_or(b"?1"));
    }
    match quoted {
        true => Err(bad()),
        false => Ok(members),
    }
}

/// Refuses what stands behind an item but parameters.
fn nothing_more(behind: &[u8], value: &[u8]) -> Result<(), Error> {
    match (behind.is_empty() || behind.starts_with(b";")) && !behind.contains(&b',') {
        true => Ok(()),
        false => Err(wrong("more than an item", value)),
    }
}

fn wrong(what: &'static str, value: &[u8]) -> Error {
    Error::Peer { what, value: value.len() as u64 }
}
