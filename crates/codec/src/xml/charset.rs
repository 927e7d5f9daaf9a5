//! Documents in other character sets, as UTF-8 (XML 1.0 §4.3.3 and appendix F).

use std::borrow::Cow;

use super::NAME;
use crate::{Error, Limits};

/// What bytes 0x80 to 0x9f are in windows-1252; 0 is undefined.
static WINDOWS_1252: [u16; 32] = [
    0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039,
    0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc,
    0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
];

fn malformed(offset: usize, what: impl Into<String>) -> Error {
    Error::Malformed { codec: NAME, offset: offset as u64, what: what.into() }
}

/// The document as UTF-8 without a byte order mark: it may be in UTF-8, UTF-16, US-ASCII,
/// ISO-8859-1 or windows-1252, as its mark or its declaration says.
///
/// # Errors
/// Other character sets, by name; bytes that the set does not have; more than
/// [`Limits::message_bytes`], for a converted document is held whole.
pub fn to_utf8<'a>(document: &'a [u8], limits: &Limits) -> Result<Cow<'a, str>, Error> {
    let plain = |bytes: &'a [u8], skipped| match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(error) => Err(malformed(skipped + error.valid_up_to(), "not UTF-8")),
    };
    let held = || {
        let what = format!("a document to convert over message_bytes {}", limits.message_bytes);
        let fits = document.len() <= limits.message_bytes / 3;
        if fits { Ok(()) } else { Err(Error::Limit { codec: NAME, what }) }
    };
    match document {
        [0xef, 0xbb, 0xbf, rest @ ..] => return plain(rest, 3),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, b'<', ..] => {
            return Err(malformed(0, "UTF-32, which is not read"));
        }
        [0xff, 0xfe, rest @ ..] => return held().and_then(|()| utf16(rest, 2, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => return held().and_then(|()| utf16(rest, 2, u16::from_be_bytes)),
        [b'<', 0, ..] => return held().and_then(|()| utf16(document, 0, u16::from_le_bytes)),
        [0, b'<', ..] => return held().and_then(|()| utf16(document, 0, u16::from_be_bytes)),
        _ => {}
    }
    let Some(name) = declared(document) else { return plain(document, 0) };
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "utf-8" | "utf8" => plain(document, 0),
        "us-ascii" | "ascii" => match document.iter().position(|byte| !byte.is_ascii()) {
            Some(at) => Err(malformed(at, format!("not a character of {name}"))),
            None => plain(document, 0),
        },
        "iso-8859-1" | "latin1" | "iso_8859-1" | "l1" => {
            held().map(|()| document.iter().map(|byte| char::from(*byte)).collect())
        }
        "windows-1252" | "cp1252" => held().and_then(|()| windows_1252(document)),
        _ => Err(malformed(
            0,
            format!(
                "charset '{name}', which is not read: UTF-8, UTF-16, US-ASCII, ISO-8859-1 and \
                 windows-1252 are"
            ),
        )),
    }
}

fn utf16<'a>(
    bytes: &[u8],
    skipped: usize,
    unit: fn([u8; 2]) -> u16,
) -> Result<Cow<'a, str>, Error> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(malformed(skipped + bytes.len(), "half a character of UTF-16"));
    }
    let mut at = skipped;
    let mut out = String::with_capacity(bytes.len());
    for char in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let char = char.map_err(|_| malformed(at, "a lone surrogate in UTF-16"))?;
        at += 2 * char.len_utf16();
        out.push(char);
    }
    Ok(out.into())
}

fn windows_1252<'a>(document: &[u8]) -> Result<Cow<'a, str>, Error> {
    let mut out = String::with_capacity(document.len());
    for (at, byte) in document.iter().enumerate() {
        let code = match byte {
            0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
            _ => u16::from(*byte),
        };
        match char::from_u32(u32::from(code)) {
            Some(char) if code != 0 || *byte == 0 => out.push(char),
            _ => return Err(malformed(at, format!("0x{byte:02x} is not in windows-1252"))),
        }
    }
    Ok(out.into())
}

/// The name in the declaration of a document whose set has ASCII in it.
fn declared(document: &[u8]) -> Option<&str> {
    let inside = document.strip_prefix(b"<?xml")?;
    let end = inside.iter().take(1024).position(|byte| *byte == b'>')?;
    let inside = std::str::from_utf8(&inside[..end]).ok()?;
    let (_, behind) = inside.split_once("encoding")?;
    let behind = behind.trim_start().strip_prefix('=')?.trim_start();
    let quote = behind.chars().next().filter(|char| matches!(char, '"' | '\''))?;
    behind[1..].split(quote).next()
}
