//! Documents in other character sets, as UTF-8 (XML 1.0 §4.3.3 and appendix F).

use std::borrow::Cow;
use std::fmt;

use super::NAME;
use super::chars::{instruction_end, is_space};
use super::scanner::declaration;
use crate::{Error, Limits};

/// What bytes 0x80 to 0x9f are in windows-1252; 0 is undefined.
static WINDOWS_1252: [u16; 32] = [
    0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039,
    0x0152, 0, 0x017d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc,
    0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
];
/// Longest XML declaration that is looked at for a character set.
const DECLARATION_BYTES: usize = 1024;
/// Bytes that tell sets apart that have no ASCII in them.
const MARK_BYTES: usize = 4;

fn malformed(offset: u64, what: impl Into<String>) -> Error {
    Error::Malformed { codec: NAME, offset, what: what.into() }
}

pub(super) fn not_utf8(before: u64, error: &std::str::Utf8Error) -> Error {
    malformed(before + error.valid_up_to() as u64, "not UTF-8")
}

/// How characters stand as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charset {
    Utf8,
    Utf16Le,
    Utf16Be,
    Ascii,
    Latin1,
    Windows1252,
}

impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16, the low byte first",
            Self::Utf16Be => "UTF-16, the high byte first",
            Self::Ascii => "US-ASCII",
            Self::Latin1 => "ISO-8859-1",
            Self::Windows1252 => "windows-1252",
        })
    }
}

impl Charset {
    /// Whether a declaration may call the set so, where the begin of the document shows it.
    fn is_called(self, name: &str) -> bool {
        let names: &[&str] = match self {
            Self::Utf8 => &["utf-8", "utf8"],
            Self::Utf16Le => &["utf-16", "utf16", "utf-16le", "iso-10646-ucs-2", "ucs-2"],
            Self::Utf16Be => &["utf-16", "utf16", "utf-16be", "iso-10646-ucs-2", "ucs-2"],
            Self::Ascii | Self::Latin1 | Self::Windows1252 => &[],
        };
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    /// The begin of a document as bytes of ASCII, as long as a declaration is looked for; other
    /// characters stand as a byte that no declaration has.
    fn ascii(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        let unit = match self {
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
            _ => return Cow::Borrowed(bytes),
        };
        let (units, _) = bytes.as_chunks::<2>();
        let units = units.iter().take(DECLARATION_BYTES + b"<?xml".len());
        let ascii = |pair: &[u8; 2]| u8::try_from(unit(*pair)).ok().filter(u8::is_ascii);
        Cow::Owned(units.map(|pair| ascii(pair).unwrap_or(0)).collect())
    }

    /// The character of a byte, in sets where each byte is one.
    fn char(self, byte: u8) -> Option<char> {
        match (self, byte) {
            (_, ..0x80) => Some(byte.into()),
            (Self::Latin1, _) | (Self::Windows1252, 0xa0..) => Some(byte.into()),
            (Self::Windows1252, _) => {
                let code = WINDOWS_1252[usize::from(byte - 0x80)];
                char::from_u32(code.into()).filter(|_| code != 0)
            }
            _ => None,
        }
    }
}

/// The set that the begin of a document shows, and the length of its mark; `None` if that takes
/// more bytes, unless `ended` says that there are no more.
fn detect(begin: &[u8], ended: bool) -> Result<Option<(Charset, usize)>, Error> {
    if begin.len() < MARK_BYTES && !ended {
        return Ok(None);
    }
    let (charset, mark) = match begin {
        [0xef, 0xbb, 0xbf, ..] => (Charset::Utf8, 3),
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, b'<', ..] => {
            return Err(malformed(0, "UTF-32, which is not read"));
        }
        [0xff, 0xfe, ..] => (Charset::Utf16Le, 2),
        [0xfe, 0xff, ..] => (Charset::Utf16Be, 2),
        [b'<', 0, ..] => (Charset::Utf16Le, 0),
        [0, b'<', ..] => (Charset::Utf16Be, 0),
        _ => return Ok(declared(begin, ended)?.map(|charset| (charset, 0))),
    };
    let text = charset.ascii(begin.get(mark..).unwrap_or_default());
    match declared_name(&text, ended) {
        None => Ok(None),
        // XML 1.0 §4.3.3: a document in another set than it declares is a fatal error.
        Some(Some(name)) if !charset.is_called(&name) => {
            let shown = if mark > 0 { "the byte order mark shows" } else { "its bytes are" };
            Err(malformed(
                mark as u64,
                format!("charset '{name}' is declared, but {shown} {charset}"),
            ))
        }
        Some(_) => Ok(Some((charset, mark))),
    }
}

/// The set in the declaration of a document whose set has ASCII in it; without one it is UTF-8.
fn declared(begin: &[u8], ended: bool) -> Result<Option<Charset>, Error> {
    declared_name(begin, ended)
        .map(|name| name.map_or(Ok(Charset::Utf8), |name| named(&name)))
        .transpose()
}

/// The name in the declaration of a document, if there is one; `None` if that takes more bytes.
fn declared_name(begin: &[u8], ended: bool) -> Option<Option<String>> {
    if !ended && b"<?xml ".starts_with(begin) {
        return None;
    }
    let inside = begin.strip_prefix(b"<?xml").filter(|rest| rest.first().is_some_and(is_space_at));
    let Some(inside) = inside else { return Some(None) };
    let Some(end) = instruction_end(&inside[..inside.len().min(DECLARATION_BYTES)]) else {
        let more = !ended && inside.len() < DECLARATION_BYTES;
        return (!more).then_some(None);
    };
    // Of a declaration in another form it is the scanner that complains.
    let inside = std::str::from_utf8(&inside[..end]).ok();
    let name = inside.and_then(declaration).and_then(|found| found.encoding);
    Some(name.map(str::to_owned))
}

fn is_space_at(byte: &u8) -> bool {
    is_space(*byte)
}

fn named(name: &str) -> Result<Charset, Error> {
    if name.eq_ignore_ascii_case("utf-8") {
        return Ok(Charset::Utf8);
    }
    match name.to_ascii_lowercase().as_str() {
        "utf8" => Ok(Charset::Utf8),
        "us-ascii" | "ascii" => Ok(Charset::Ascii),
        "iso-8859-1" | "latin1" | "iso_8859-1" | "l1" => Ok(Charset::Latin1),
        "windows-1252" | "cp1252" => Ok(Charset::Windows1252),
        "utf-16" | "utf-16le" | "utf-16be" | "iso-10646-ucs-2" => {
            Err(malformed(0, format!("charset '{name}' is declared, in bytes that are not of it")))
        }
        _ => Err(malformed(
            0,
            format!(
                "charset '{name}', which is not read: UTF-8, UTF-16, US-ASCII, ISO-8859-1 and \
                 windows-1252 are"
            ),
        )),
    }
}

/// The document as UTF-8 without a byte order mark: it may be in UTF-8, UTF-16, US-ASCII,
/// ISO-8859-1 or windows-1252, as its mark or its declaration says.
///
/// # Errors
/// Other character sets, by name; bytes that the set does not have; more than
/// [`Limits::message_bytes`], for a converted document is held whole.
pub fn to_utf8<'a>(document: &'a [u8], limits: &Limits) -> Result<Cow<'a, str>, Error> {
    let (charset, mark) = detect(document, true)?.unwrap_or((Charset::Utf8, 0));
    let bytes = document.get(mark..).unwrap_or_default();
    let wide = matches!(charset, Charset::Utf16Le | Charset::Utf16Be);
    if charset == Charset::Utf8 || (!wide && bytes.is_ascii()) {
        let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(mark as u64, &error))?;
        return one_mark(text, mark).map(|()| Cow::Borrowed(text));
    }
    if document.len() > limits.message_bytes / 3 {
        let what = format!("a document to convert over message_bytes {}", limits.message_bytes);
        return Err(Error::Limit { codec: NAME, what });
    }
    let mut text = String::with_capacity(bytes.len());
    let mut transcoder = Transcoder { charset: Some(charset), held: Vec::new(), used: mark as u64 };
    transcoder.push(bytes, true, &mut text)?;
    one_mark(&text, mark).map(|()| Cow::Owned(text))
}

/// Behind a byte order mark another is text, which the scanner would take for the mark.
fn one_mark(text: &str, mark: usize) -> Result<(), Error> {
    if mark > 0 && text.starts_with('\u{feff}') {
        return Err(malformed(mark as u64, "text outside the root element"));
    }
    Ok(())
}

/// Makes UTF-8 of a document that comes in blocks, cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Transcoder {
    /// Not known before the first bytes have come.
    charset: Option<Charset>,
    /// The begin of the document, or of a character, whose rest is not there.
    held: Vec<u8>,
    /// Bytes of the document before those that are held.
    used: u64,
}

impl Transcoder {
    /// Appends what `block` says; `last` says that no other follows.
    pub(super) fn push(&mut self, block: &[u8], last: bool, out: &mut String) -> Result<(), Error> {
        if let Some(charset) = self.charset {
            return self.decode(charset, block, last, out);
        }
        let mut begin = Cow::Borrowed(block);
        if !self.held.is_empty() {
            self.held.extend_from_slice(block);
            begin = Cow::Owned(std::mem::take(&mut self.held));
        }
        let Some((charset, mark)) = detect(&begin, last)? else {
            self.held = begin.into_owned();
            return Ok(());
        };
        self.charset = Some(charset);
        // The scanner knows the mark of UTF-8.
        let mark = if charset == Charset::Utf8 { 0 } else { mark };
        self.used = mark as u64;
        self.decode(charset, begin.get(mark..).unwrap_or_default(), last, out)
    }

    fn decode(
        &mut self,
        charset: Charset,
        block: &[u8],
        last: bool,
        out: &mut String,
    ) -> Result<(), Error> {
        match charset {
            Charset::Utf8 => self.utf8(block, out)?,
            Charset::Utf16Le => self.utf16(block, last, u16::from_le_bytes, out)?,
            Charset::Utf16Be => self.utf16(block, last, u16::from_be_bytes, out)?,
            Charset::Ascii | Charset::Latin1 | Charset::Windows1252 => {
                self.single(charset, block, out)?;
            }
        }
        if last && !self.held.is_empty() {
            return Err(malformed(self.used, "half a character at the end"));
        }
        Ok(())
    }

    fn utf8(&mut self, block: &[u8], out: &mut String) -> Result<(), Error> {
        let mut block = block;
        while let Some((byte, rest)) = block.split_first().filter(|_| !self.held.is_empty()) {
            self.held.push(*byte);
            block = rest;
            match std::str::from_utf8(&self.held) {
                Ok(char) => {
                    out.push_str(char);
                    self.used += self.held.len() as u64;
                    self.held.clear();
                }
                Err(error) if error.error_len().is_some() => {
                    return Err(not_utf8(self.used, &error));
                }
                Err(_) => {}
            }
        }
        let whole = match std::str::from_utf8(block) {
            Ok(text) => text,
            Err(error) if error.error_len().is_some() => return Err(not_utf8(self.used, &error)),
            Err(error) => {
                let (whole, partial) = block.split_at(error.valid_up_to());
                self.held.extend_from_slice(partial);
                std::str::from_utf8(whole).unwrap_or("")
            }
        };
        out.push_str(whole);
        self.used += whole.len() as u64;
        Ok(())
    }

    fn utf16(
        &mut self,
        block: &[u8],
        last: bool,
        unit: fn([u8; 2]) -> u16,
        out: &mut String,
    ) -> Result<(), Error> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(block);
        let (mut pairs, _) = bytes.as_chunks::<2>();
        if let Some((high, before)) = pairs.split_last().filter(|_| !last) {
            // Its other half may come.
            pairs = if unit(*high) & 0xfc00 == 0xd800 { before } else { pairs };
        }
        out.reserve(bytes.len());
        let decoded = pairs.len() * 2;
        for char in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
            let char = char.map_err(|_| malformed(self.used, "a lone surrogate in UTF-16"))?;
            self.used += 2 * char.len_utf16() as u64;
            out.push(char);
        }
        bytes.drain(..decoded);
        self.held = bytes;
        Ok(())
    }

    fn single(&mut self, charset: Charset, block: &[u8], out: &mut String) -> Result<(), Error> {
        if block.is_ascii() {
            out.push_str(std::str::from_utf8(block).unwrap_or(""));
            self.used += block.len() as u64;
            return Ok(());
        }
        out.reserve(block.len());
        for byte in block {
            let char = charset.char(*byte).ok_or_else(|| {
                malformed(self.used, format!("0x{byte:02x}, which is no character of {charset:?}"))
            })?;
            self.used += 1;
            out.push(char);
        }
        Ok(())
    }
}
