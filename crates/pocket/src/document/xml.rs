//! XML 1.0 with namespaces, in UTF-8 and without a document type.

use super::name::{Name, Space};
use super::reader::{Event, Open, Reader};
use super::scope::declared;
use super::writer::{Level, Writer};
use crate::Error;
use crate::input::Input;

fn close_tag(writer: &mut Writer<'_>) -> Result<(), Error> {
    if core::mem::take(&mut writer.is_tag_open) { writer.out.byte(b'>') } else { Ok(()) }
}

pub(super) fn begin<'a>(writer: &mut Writer<'a>, name: Name<'a>) -> Result<(), Error> {
    close_tag(writer)?;
    let default = writer.default_space();
    let tag_at = writer.out.len();
    writer.out.byte(b'<')?;
    writer.out.put(name.local.as_bytes())?;
    writer.push(Level { name, tag_at });
    if name.space == default { Ok(()) } else { attribute(writer, "xmlns", name.space) }
}

pub(super) fn attribute(writer: &mut Writer<'_>, name: &str, value: &str) -> Result<(), Error> {
    writer.out.byte(b' ')?;
    writer.out.put(name.as_bytes())?;
    writer.out.put(b"=\"")?;
    escape(writer, value)?;
    writer.out.byte(b'"')
}

pub(super) fn text(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    close_tag(writer)?;
    escape(writer, text)
}

pub(super) fn end(writer: &mut Writer<'_>) -> Result<(), Error> {
    if writer.is_tag_open {
        return writer.out.put(b"/>");
    }
    let Some(local) = writer.level().map(|level| level.name.local) else { return Ok(()) };
    writer.out.put(b"</")?;
    writer.out.put(local.as_bytes())?;
    writer.out.byte(b'>')
}

pub(super) fn finish(writer: &mut Writer<'_>) -> Result<usize, Error> {
    Ok(writer.out.len())
}

fn escape(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    for byte in text.bytes() {
        match byte {
            b'&' => writer.out.put(b"&amp;")?,
            b'<' => writer.out.put(b"&lt;")?,
            b'>' => writer.out.put(b"&gt;")?,
            b'"' => writer.out.put(b"&quot;")?,
            // What a reader would change (XML 1.0 §2.11, §3.3.3).
            b'\r' => writer.out.put(b"&#13;")?,
            b'\n' => writer.out.put(b"&#10;")?,
            b'\t' => writer.out.put(b"&#9;")?,
            _ => writer.out.byte(byte)?,
        }
    }
    Ok(())
}

pub(super) fn next<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    if !core::mem::replace(&mut reader.has_begun, true) && reader.whole.starts_with(MARK) {
        reader.input.bytes(MARK.len())?;
    }
    loop {
        let rest = reader.input.rest();
        match rest {
            [] if reader.depth == 0 && reader.has_root => return Ok(Event::Over),
            [] => return Err(Error::Truncated),
            [b'<', b'/', ..] => return end_tag(reader),
            [b'<', b'?', ..] => {
                if !is_known(skip_to(reader, b"?>")?) {
                    return Err(Error::UnknownKind);
                }
            }
            [b'<', b'!', b'-', b'-', ..] => {
                reader.input.bytes(4)?;
                skip_to(reader, b"-->")?;
            }
            [b'<', b'!', ..] if rest.starts_with(CDATA) && reader.depth > 0 => {
                reader.input.bytes(CDATA.len())?;
                let inside = skip_to(reader, b"]]>")?;
                if !inside.is_empty() {
                    return Input::text(inside).map(Event::Text);
                }
            }
            // SOAP 1.1 §3: a document type must not be there.
            [b'<', b'!', ..] => return Err(Error::UnknownKind),
            [b'<', ..] => return start_tag(reader),
            [b'&', ..] if reader.depth == 0 => return Err(Error::Malformed),
            [b'&', ..] => return reference(reader).map(Event::Char),
            _ => {
                let len = rest.iter().position(|byte| matches!(byte, b'<' | b'&'));
                let text = reader.input.bytes(len.unwrap_or(rest.len()))?;
                if reader.depth > 0 {
                    return Input::text(text).map(Event::Text);
                }
                if text.iter().any(|byte| !is_space(*byte)) {
                    return Err(Error::Malformed);
                }
            }
        }
    }
}

/// UTF-8's byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";
const CDATA: &[u8] = b"<![CDATA[";

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Whether an instruction is none that declares a character set which is not read here (XML 1.0
/// §2.8, §4.3.3): UTF-8, and what is a part of it.
fn is_known(instruction: &[u8]) -> bool {
    let rest = match instruction.strip_prefix(b"<?xml") {
        Some(rest) if rest.first().is_some_and(|byte| is_space(*byte)) => rest,
        _ => return true,
    };
    let Some(at) = find(rest, b"encoding") else { return true };
    let mut parts = rest.split_at(at).1.split(|byte| matches!(byte, b'"' | b'\''));
    let name = parts.nth(1).unwrap_or_default();
    name.eq_ignore_ascii_case(b"UTF-8") || name.eq_ignore_ascii_case(b"US-ASCII")
}

/// What stands before `end`, which is taken too.
fn skip_to<'a>(reader: &mut Reader<'a>, end: &[u8]) -> Result<&'a [u8], Error> {
    let rest = reader.input.rest();
    let at = find(rest, end).ok_or(Error::Truncated)?;
    let inside = reader.input.bytes(at)?;
    reader.input.bytes(end.len())?;
    Ok(inside)
}

fn spaces(reader: &mut Reader<'_>) -> Result<(), Error> {
    while reader.input.peek().is_some_and(is_space) {
        reader.input.byte()?;
    }
    Ok(())
}

/// A name as written.
fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Error> {
    let rest = reader.input.rest();
    let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'>' | b'/' | b'=' | b'<' | b'&');
    let len = rest.iter().position(ends).ok_or(Error::Truncated)?;
    if len == 0 {
        return Err(Error::Malformed);
    }
    Input::text(reader.input.bytes(len)?)
}

fn end_tag<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    reader.input.bytes(2)?;
    let written = name(reader)?;
    spaces(reader)?;
    if reader.input.byte()? != b'>' || reader.pop()?.written != written {
        return Err(Error::Malformed);
    }
    Ok(Event::End)
}

fn start_tag<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    if reader.depth == 0 && core::mem::replace(&mut reader.has_root, true) {
        return Err(Error::Malformed);
    }
    reader.input.byte()?;
    let written = name(reader)?;
    reader.push(Open { written, left: 0 })?;
    loop {
        spaces(reader)?;
        match reader.input.peek().ok_or(Error::Truncated)? {
            b'>' => {
                reader.input.byte()?;
                break;
            }
            b'/' => {
                reader.input.byte()?;
                if reader.input.byte()? != b'>' {
                    return Err(Error::Malformed);
                }
                reader.is_empty = true;
                break;
            }
            _ => attribute_read(reader)?,
        }
    }
    reader.scopes.resolve(written).map(Event::Start)
}

fn attribute_read(reader: &mut Reader<'_>) -> Result<(), Error> {
    let attribute = name(reader)?;
    spaces(reader)?;
    if reader.input.byte()? != b'=' {
        return Err(Error::Malformed);
    }
    spaces(reader)?;
    let quote = reader.input.byte()?;
    if !matches!(quote, b'"' | b'\'') {
        return Err(Error::Malformed);
    }
    let value = Input::text(reader.input.until(quote)?)?;
    if value.as_bytes().contains(&b'<') {
        return Err(Error::Malformed);
    }
    match declared(attribute) {
        // A reference in a namespace is compared as it is written.
        Some(prefix) => reader.scopes.bind(prefix, Space::of(value), reader.depth),
        None => Ok(()),
    }
}

/// A reference to a character (XML 1.0 §4.1, §4.6).
fn reference(reader: &mut Reader<'_>) -> Result<char, Error> {
    reader.input.byte()?;
    let text = Input::text(reader.input.until(b';')?)?;
    let code = match text {
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "amp" => return Ok('&'),
        "quot" => return Ok('"'),
        "apos" => return Ok('\''),
        _ => text.strip_prefix('#').ok_or(Error::Malformed)?,
    };
    let (digits, radix) = match code.strip_prefix('x') {
        Some(hex) => (hex, 16),
        None => (code, 10),
    };
    let is_digit = |byte: u8| char::from(byte).is_digit(radix);
    if digits.is_empty() || !digits.bytes().all(is_digit) {
        return Err(Error::Malformed);
    }
    let number = u32::from_str_radix(digits, radix).map_err(|_| Error::Malformed)?;
    char::from_u32(number).filter(|char| *char != '\0').ok_or(Error::Malformed)
}
