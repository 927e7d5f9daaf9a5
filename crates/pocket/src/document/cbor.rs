//! XML in CBOR (RFC 8949), as `docs/formats/cbor-xml.md` has it.

use super::name::{Name, Space};
use super::reader::{Event, Numbers, Open, Reader};
use super::scope::declared;
use super::writer::{Level, Writer};
use crate::Error;
use crate::input::Input;

/// Major types (RFC 8949 §3.1).
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const SIMPLE: u8 = 7;
/// An array of one item, one and a map of any length, and what ends those.
const ARRAY_OF_ONE: u8 = 0x81;
const ANY_ARRAY: u8 = 0x9f;
const ANY_MAP: u8 = 0xbf;
const BREAK: u8 = 0xff;
/// As a count: until a break.
const ANY: u32 = u32::MAX;
/// Texts of so many bytes have numbers, up to as many of them.
const MIN_VALUE_BYTES: usize = 3;
const MAX_VALUE_BYTES: usize = 64;
const MAX_VALUES: u32 = 65_536;
/// Bytes of a document that may be read again for references, as a multiple of its length.
const MAX_STEPS: usize = 64;

fn head(writer: &mut Writer<'_>, major: u8, argument: usize) -> Result<(), Error> {
    let [.., high, low] = (argument & 0xffff).to_be_bytes();
    match argument {
        0..24 => writer.out.byte(major << 5 | low),
        24..0x100 => writer.out.put(&[major << 5 | 24, low]),
        0x100..0x1_0000 => writer.out.put(&[major << 5 | 25, high, low]),
        _ => {
            let argument = u32::try_from(argument).map_err(|_| Error::Misuse)?;
            writer.out.byte(major << 5 | 26)?;
            writer.out.put(&argument.to_be_bytes())
        }
    }
}

fn put_text(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    head(writer, TEXT, text.len())?;
    writer.out.put(text.as_bytes())
}

/// A name, or its number where it came before.
fn put_name(writer: &mut Writer<'_>, name: &str) -> Result<(), Error> {
    let written = writer.out.written();
    let is_it = |(at, len): &(u16, u16)| {
        let (at, len) = (usize::from(*at), usize::from(*len));
        len > 0 && written.get(at..at + len) == Some(name.as_bytes())
    };
    let known = writer.names.get(..writer.name_count.min(writer.names.len()));
    if let Some(number) = known.unwrap_or_default().iter().position(is_it) {
        return head(writer, UNSIGNED, number);
    }
    put_text(writer, name)?;
    let at = u16::try_from(writer.out.len() - name.len());
    if let (Ok(at), Ok(len)) = (at, u16::try_from(name.len()))
        && let Some(free) = writer.names.get_mut(writer.name_count)
    {
        *free = (at, len);
    }
    writer.name_count += 1;
    Ok(())
}

fn close_tag(writer: &mut Writer<'_>) -> Result<(), Error> {
    writer.is_tag_open = false;
    if core::mem::take(&mut writer.has_attributes) { writer.out.byte(BREAK) } else { Ok(()) }
}

pub(super) fn begin<'a>(writer: &mut Writer<'a>, name: Name<'a>) -> Result<(), Error> {
    close_tag(writer)?;
    let default = writer.default_space();
    if writer.depth == 0 {
        writer.out.byte(ARRAY_OF_ONE)?;
    }
    let tag_at = writer.out.len();
    writer.out.byte(ANY_ARRAY)?;
    put_name(writer, name.local)?;
    writer.push(Level { name, tag_at });
    if name.space == default { Ok(()) } else { attribute(writer, "xmlns", name.space) }
}

pub(super) fn attribute(writer: &mut Writer<'_>, name: &str, value: &str) -> Result<(), Error> {
    if !core::mem::replace(&mut writer.has_attributes, true) {
        writer.out.byte(ANY_MAP)?;
    }
    put_name(writer, name)?;
    put_text(writer, value)
}

pub(super) fn text(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    close_tag(writer)?;
    put_text(writer, text)
}

pub(super) fn end(writer: &mut Writer<'_>) -> Result<(), Error> {
    close_tag(writer)?;
    writer.out.byte(BREAK)
}

pub(super) fn finish(writer: &mut Writer<'_>) -> Result<usize, Error> {
    Ok(writer.out.len())
}

/// An item's head: its major type and its argument; `None` for one of any length.
fn take_head(input: &mut Input<'_>) -> Result<(u8, Option<u32>), Error> {
    let first = input.byte()?;
    let argument = match first & 0x1f {
        info @ 0..24 => u32::from(info),
        24 => u32::from(input.byte()?),
        25 => u32::from(u16::from_be_bytes([input.byte()?, input.byte()?])),
        26 => {
            let bytes = input.bytes(4)?.first_chunk().copied().ok_or(Error::Truncated)?;
            u32::from_be_bytes(bytes)
        }
        31 => return Ok((first >> 5, None)),
        27 => return Err(Error::UnknownKind),
        _ => return Err(Error::Malformed),
    };
    Ok((first >> 5, Some(argument)))
}

fn take_text<'a>(input: &mut Input<'a>, len: Option<u32>) -> Result<&'a str, Error> {
    let len = len.ok_or(Error::UnknownKind)?;
    Input::text(input.bytes(usize::try_from(len).map_err(|_| Error::Truncated)?)?)
}

fn count_of(argument: Option<u32>) -> Result<u32, Error> {
    match argument {
        None => Ok(ANY),
        Some(ANY) => Err(Error::Malformed),
        Some(count) => Ok(count),
    }
}

pub(super) fn next<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    if !core::mem::replace(&mut reader.has_begun, true) {
        let (major, count) = take_head(&mut reader.input)?;
        if major != ARRAY {
            return Err(Error::Malformed);
        }
        // The document has what stands around the root too.
        reader.outside = count_of(count)?;
    }
    loop {
        if ends(reader)? {
            if reader.depth > 0 {
                reader.pop()?;
                return Ok(Event::End);
            }
            let is_over = reader.input.is_empty() && reader.has_root;
            return if is_over { Ok(Event::Over) } else { Err(Error::Malformed) };
        }
        let (major, argument) = take_head(&mut reader.input)?;
        match major {
            ARRAY => {
                if let Some(found) = array(reader, argument)? {
                    return Ok(found);
                }
            }
            UNSIGNED if reader.depth > 0 => {
                let number = argument.ok_or(Error::Malformed)?;
                return referred(reader, false, number).map(Event::Text);
            }
            TEXT if reader.depth > 0 => {
                return take_value(reader, argument).map(Event::Text);
            }
            _ => return Err(Error::Malformed),
        }
    }
}

/// Whether what is open ends here; if not, an item of it is counted.
fn ends(reader: &mut Reader<'_>) -> Result<bool, Error> {
    let next = reader.input.peek();
    let outside = &mut reader.outside;
    let depth = reader.depth;
    if depth == 0 {
        if *outside == ANY && next == Some(BREAK) {
            reader.input.byte()?;
            *outside = 0;
        }
        if *outside == 0 {
            return Ok(true);
        }
        *outside -= u32::from(*outside != ANY);
        return Ok(false);
    }
    let Some(top) = reader.top() else { return Err(Error::Malformed) };
    if top.left == ANY && next == Some(BREAK) {
        reader.input.byte()?;
        return Ok(true);
    }
    if top.left == 0 {
        return Ok(true);
    }
    top.left -= u32::from(top.left != ANY);
    Ok(false)
}

/// An element, or `None` for something that is left out.
fn array<'a>(reader: &mut Reader<'a>, count: Option<u32>) -> Result<Option<Event<'a>>, Error> {
    let mut left = count_of(count)?;
    if left == 0 {
        return Err(Error::Malformed);
    }
    left -= u32::from(left != ANY);
    let (major, argument) = take_head(&mut reader.input)?;
    let written = match major {
        NEGATIVE => return skip(reader, left).map(|()| None),
        TEXT => take_name(reader, argument)?,
        UNSIGNED => referred(reader, true, argument.ok_or(Error::Malformed)?)?,
        _ => return Err(Error::Malformed),
    };
    if reader.depth == 0 && core::mem::replace(&mut reader.has_root, true) {
        return Err(Error::Malformed);
    }
    reader.push(Open { written, left })?;
    let has_map = left > 0 && reader.input.peek().is_some_and(|first| first >> 5 == MAP);
    if has_map {
        ends(reader)?;
        attributes(reader)?;
    }
    // Who looks for a name or value needs no namespaces.
    if reader.numbers.wanted.is_some() {
        return Ok(Some(Event::Char(' ')));
    }
    reader.scopes.resolve(written).map(|found| Some(Event::Start(found)))
}

fn attributes(reader: &mut Reader<'_>) -> Result<(), Error> {
    let (_, count) = take_head(&mut reader.input)?;
    let mut left = count_of(count)?;
    loop {
        if left == ANY && reader.input.peek() == Some(BREAK) {
            reader.input.byte()?;
            return Ok(());
        }
        if left == 0 {
            return Ok(());
        }
        left -= u32::from(left != ANY);
        let (major, argument) = take_head(&mut reader.input)?;
        let name = match major {
            TEXT => take_name(reader, argument)?,
            UNSIGNED => referred(reader, true, argument.ok_or(Error::Malformed)?)?,
            _ => return Err(Error::Malformed),
        };
        let (major, argument) = take_head(&mut reader.input)?;
        let value = match major {
            TEXT => take_value(reader, argument)?,
            UNSIGNED => referred(reader, false, argument.ok_or(Error::Malformed)?)?,
            _ => return Err(Error::Malformed),
        };
        if let Some(prefix) = declared(name)
            && reader.numbers.wanted.is_none()
        {
            reader.scopes.bind(prefix, Space::of(value), reader.depth)?;
        }
    }
}

/// Skips what is left of a comment, an instruction, a document type or the like: texts and simple
/// values.
fn skip(reader: &mut Reader<'_>, mut left: u32) -> Result<(), Error> {
    loop {
        if left == ANY && reader.input.peek() == Some(BREAK) {
            reader.input.byte()?;
            return Ok(());
        }
        if left == 0 {
            return Ok(());
        }
        left -= u32::from(left != ANY);
        match take_head(&mut reader.input)? {
            (TEXT, len) => {
                take_text(&mut reader.input, len)?;
            }
            (SIMPLE, Some(20..=23)) => {}
            _ => return Err(Error::Malformed),
        }
    }
}

fn take_name<'a>(reader: &mut Reader<'a>, len: Option<u32>) -> Result<&'a str, Error> {
    let text = take_text(&mut reader.input, len)?;
    let numbers = &mut reader.numbers;
    if text.is_empty() {
        return Err(Error::Malformed);
    }
    if numbers.wanted == Some((true, numbers.names)) {
        numbers.found = Some(text);
    }
    numbers.names = numbers.names.saturating_add(1);
    Ok(text)
}

fn take_value<'a>(reader: &mut Reader<'a>, len: Option<u32>) -> Result<&'a str, Error> {
    let text = take_text(&mut reader.input, len)?;
    let numbers = &mut reader.numbers;
    if (MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&text.len()) && numbers.values < MAX_VALUES {
        if numbers.wanted == Some((false, numbers.values)) {
            numbers.found = Some(text);
        }
        numbers.values += 1;
    }
    Ok(text)
}

/// What a number stands for. Nothing is kept of what came: it is read again, within bounds.
fn referred<'a>(reader: &mut Reader<'a>, is_name: bool, number: u32) -> Result<&'a str, Error> {
    if reader.numbers.wanted.is_some() {
        return Ok("");
    }
    let came = if is_name { reader.numbers.names } else { reader.numbers.values };
    if number >= came {
        return Err(Error::Malformed);
    }
    let mut again = Reader::new(reader.whole, reader.form, reader.tokens);
    again.numbers = Numbers { wanted: Some((is_name, number)), ..Numbers::default() };
    while again.numbers.found.is_none() {
        if let Event::Over = again.next()? {
            return Err(Error::Malformed);
        }
    }
    let read = reader.whole.len() - again.input.rest().len();
    reader.numbers.steps = reader.numbers.steps.saturating_add(read);
    if reader.numbers.steps > reader.whole.len().saturating_mul(MAX_STEPS) {
        return Err(Error::TooComplex);
    }
    again.numbers.found.ok_or(Error::Malformed)
}
