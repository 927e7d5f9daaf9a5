//! WBXML 1.3 (WAP-192-WBXML-20010725-a), with a table of tokens that both sides have agreed on.

use super::name::{MAX_PARTS, Name, Space};
use super::reader::{Event, Open, Reader};
use super::scope::declared;
use super::tokens::{Entry, kind};
use super::writer::{Level, Writer};
use crate::Error;
use crate::input::{Input, split_at};

/// Version 1.3 (§5.4).
const VERSION: u8 = 3;
/// Of UTF-8 and of US-ASCII (IANA MIBenum).
const UTF_8: usize = 106;
const US_ASCII: usize = 3;
/// Global tokens (§7.1, table 4).
const SWITCH_PAGE: u8 = 0x00;
const END: u8 = 0x01;
const ENTITY: u8 = 0x02;
const STR_I: u8 = 0x03;
const LITERAL: u8 = 0x04;
const STR_T: u8 = 0x83;
/// In a tag (§5.8.2).
const HAS_ATTRIBUTES: u8 = 0x80;
const HAS_CONTENT: u8 = 0x40;
const TAG_BITS: u8 = 0x3f;

/// Ends the attributes of the tag that is open.
fn close_tag(writer: &mut Writer<'_>) -> Result<(), Error> {
    if writer.is_tag_open && writer.has_attributes {
        writer.out.byte(END)?;
    }
    writer.is_tag_open = false;
    writer.has_attributes = false;
    Ok(())
}

/// Notes that the element that is open has content.
fn content(writer: &mut Writer<'_>) -> Result<(), Error> {
    close_tag(writer)?;
    if let Some(tag_at) = writer.level().map(|level| level.tag_at) {
        writer.out.mark(tag_at, HAS_CONTENT);
    }
    Ok(())
}

/// Appends the index of a name in the string table, which grows at the end of the room.
fn literal(writer: &mut Writer<'_>, name: &str) -> Result<(), Error> {
    let mut index = 0;
    let mut known = Input::new(writer.out.tail());
    while !known.is_empty() {
        let other = known.until(0)?;
        if other == name.as_bytes() {
            return writer.out.uintvar(index);
        }
        index += other.len() + 1;
    }
    writer.out.put_tail(name.as_bytes())?;
    writer.out.put_tail(&[0])?;
    writer.out.uintvar(index)
}

pub(super) fn begin<'a>(writer: &mut Writer<'a>, name: Name<'a>) -> Result<(), Error> {
    content(writer)?;
    let default = writer.default_space();
    let is_it = |one: &Entry<'_>| {
        one.kind == kind::TAG
            && one.text == name.local.as_bytes()
            && one.space == name.space.as_bytes()
    };
    let found = writer.tokens.entries().find(is_it);
    let tag_at = match found {
        Some(Entry { page, code, .. }) => {
            if page != writer.tag_page {
                writer.out.put(&[SWITCH_PAGE, page])?;
                writer.tag_page = page;
            }
            writer.out.byte(code)?;
            writer.out.len() - 1
        }
        None => {
            let tag_at = writer.out.len();
            writer.out.byte(LITERAL)?;
            literal(writer, name.local)?;
            tag_at
        }
    };
    writer.push(Level { name, tag_at });
    // A reader knows the namespaces of tokens; the first of them becomes the default one where no
    // prefix means it, and where one may, nothing is left to that.
    if found.is_none() && (name.space != default || writer.has_prefixes) {
        return attribute(writer, "xmlns", name.space);
    }
    Ok(())
}

pub(super) fn attribute(writer: &mut Writer<'_>, name: &str, value: &str) -> Result<(), Error> {
    writer.has_attributes = true;
    if let Some(tag_at) = writer.level().map(|level| level.tag_at) {
        writer.out.mark(tag_at, HAS_ATTRIBUTES);
    }
    let mut rest = value;
    match longest(writer, kind::START, name, value) {
        Some((entry, len)) => {
            attribute_page(writer, entry.page)?;
            writer.out.byte(entry.code)?;
            rest = rest.get(len..).unwrap_or_default();
        }
        None => {
            writer.out.byte(LITERAL)?;
            literal(writer, name)?;
        }
    }
    while !rest.is_empty() {
        match longest(writer, kind::VALUE, "", rest) {
            Some((entry, len)) if len > 0 => {
                attribute_page(writer, entry.page)?;
                writer.out.byte(entry.code)?;
                rest = rest.get(len..).unwrap_or_default();
            }
            _ => {
                string(writer, rest)?;
                rest = "";
            }
        }
    }
    Ok(())
}

/// The token of an attribute's name, or of a part of its value, with the longest begin of that;
/// and how long it is.
fn longest<'a>(
    writer: &Writer<'a>,
    kind: u8,
    name: &str,
    value: &str,
) -> Option<(Entry<'a>, usize)> {
    let mut found: Option<(Entry<'a>, usize)> = None;
    for entry in writer.tokens.entries() {
        if entry.kind != kind {
            continue;
        }
        let (known, begin) = match kind {
            kind::VALUE => (&[][..], entry.text),
            _ => {
                let mut parts = entry.text.splitn(2, |byte| *byte == b'=');
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
            }
        };
        let is_longer = found.is_none_or(|(_, len)| begin.len() > len);
        if is_longer && known == name.as_bytes() && value.as_bytes().starts_with(begin) {
            found = Some((entry, begin.len()));
        }
    }
    found
}

fn attribute_page(writer: &mut Writer<'_>, page: u8) -> Result<(), Error> {
    if page == writer.attribute_page {
        return Ok(());
    }
    writer.attribute_page = page;
    writer.out.put(&[SWITCH_PAGE, page])
}

fn string(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    writer.out.byte(STR_I)?;
    writer.out.put(text.as_bytes())?;
    writer.out.byte(0)
}

pub(super) fn text(writer: &mut Writer<'_>, text: &str) -> Result<(), Error> {
    content(writer)?;
    string(writer, text)
}

pub(super) fn end(writer: &mut Writer<'_>) -> Result<(), Error> {
    close_tag(writer)?;
    let Some(tag_at) = writer.level().map(|level| level.tag_at) else { return Ok(()) };
    let tag = writer.out.written().get(tag_at).copied().unwrap_or_default();
    if tag & HAS_CONTENT == 0 { Ok(()) } else { writer.out.byte(END) }
}

/// Puts the header and the string table before the body.
pub(super) fn finish(writer: &mut Writer<'_>) -> Result<usize, Error> {
    let strings_len = writer.out.tail().len();
    let body_len = writer.out.fold_tail();
    let mut room = [0; 16];
    let mut header = crate::out::Out::new(&mut room);
    header.byte(VERSION)?;
    header.uintvar(writer.tokens.number())?;
    header.uintvar(UTF_8)?;
    header.uintvar(strings_len)?;
    let (head, len) = (header.written(), body_len + strings_len);
    writer.out.put_before(head)?;
    Ok(len + head.len())
}

pub(super) fn next<'a>(reader: &mut Reader<'a>) -> Result<Event<'a>, Error> {
    if !core::mem::replace(&mut reader.has_begun, true) {
        header(reader)?;
    }
    if reader.depth == 0 && reader.has_root {
        let is_over = reader.input.is_empty();
        return if is_over { Ok(Event::Over) } else { Err(Error::Malformed) };
    }
    let mut page = reader.tag_page;
    let code = switched(&mut reader.input, &mut page)?;
    reader.tag_page = page;
    if reader.depth == 0 && code & TAG_BITS < LITERAL {
        return Err(Error::Malformed);
    }
    match code {
        END => reader.pop().map(|_| Event::End),
        ENTITY => {
            let code = u32::try_from(reader.input.uintvar()?).map_err(|_| Error::Malformed)?;
            char::from_u32(code).filter(|c| *c != '\0').map(Event::Char).ok_or(Error::Malformed)
        }
        STR_I => Input::text(reader.input.until(0)?).map(Event::Text),
        STR_T => {
            let index = reader.input.uintvar()?;
            table_string(reader.strings, index).map(Event::Text)
        }
        // Extensions, opaque data and instructions.
        _ if code & TAG_BITS < LITERAL => Err(Error::UnknownKind),
        _ => tag(reader, code),
    }
}

fn header(reader: &mut Reader<'_>) -> Result<(), Error> {
    let version = reader.input.byte()?;
    if version > VERSION {
        return Err(Error::UnknownKind);
    }
    let number = reader.input.uintvar()?;
    if number == 0 {
        // The identifier as text: only who knows it could tell what tokens mean.
        reader.input.uintvar()?;
    }
    // Version 1.0 has no character set.
    let charset = if version == 0 { UTF_8 } else { reader.input.uintvar()? };
    if !matches!(charset, 0 | US_ASCII | UTF_8) {
        return Err(Error::UnknownKind);
    }
    reader.strings = reader.input.counted()?;
    // With another table the same codes would be other names.
    if number != reader.tokens.number() {
        reader.tokens = super::Tokens::NONE;
    }
    Ok(())
}

/// A code behind page switches.
fn switched(input: &mut Input<'_>, page: &mut u8) -> Result<u8, Error> {
    loop {
        match input.byte()? {
            SWITCH_PAGE => *page = input.byte()?,
            code => return Ok(code),
        }
    }
}

fn table_string(strings: &[u8], index: usize) -> Result<&str, Error> {
    let rest = strings.get(index..).filter(|rest| !rest.is_empty()).ok_or(Error::Malformed)?;
    Input::text(Input::new(rest).until(0)?)
}

fn tag<'a>(reader: &mut Reader<'a>, code: u8) -> Result<Event<'a>, Error> {
    reader.has_root = true;
    let page = reader.tag_page;
    let (written, space) = match code & TAG_BITS {
        LITERAL => {
            let index = reader.input.uintvar()?;
            (table_string(reader.strings, index)?, None)
        }
        code => {
            let found = reader.tokens.find(kind::TAG, page, code).ok_or(Error::UnknownToken)?;
            (found.text()?, Some(found.space()?))
        }
    };
    reader.push(Open { written, left: 0 })?;
    if code & HAS_ATTRIBUTES != 0 {
        attributes(reader)?;
    }
    let found = match space {
        None => reader.scopes.resolve(written)?,
        Some(space) => {
            // What a token says of its namespace holds for literals in it.
            let space = Space::of(space);
            let is_default = reader.scopes.default_space().equals(&space);
            if !is_default && !reader.scopes.has_prefix(&space) {
                reader.scopes.bind("", space, reader.depth)?;
            }
            super::Found { space, local: written }
        }
    };
    reader.is_empty = code & HAS_CONTENT == 0;
    Ok(Event::Start(found))
}

/// Reads attributes up to their end, and takes declarations of namespaces into scope.
fn attributes(reader: &mut Reader<'_>) -> Result<(), Error> {
    let mut prefix = None;
    let mut has_name = false;
    let (mut parts, mut count) = ([""; MAX_PARTS], 0);
    loop {
        let mut page = reader.attribute_page;
        let code = switched(&mut reader.input, &mut page)?;
        reader.attribute_page = page;
        let is_start = code == LITERAL || (code > LITERAL && code < 0x80 && code & 0x3f > 3);
        if code == END || is_start {
            if let Some(prefix) = prefix.take() {
                reader.scopes.bind(prefix, Space { parts }, reader.depth)?;
            }
            if code == END {
                return if has_name { Ok(()) } else { Err(Error::Malformed) };
            }
            (parts, count) = ([""; MAX_PARTS], 0);
        }
        let mut part = "";
        match code {
            LITERAL => {
                let index = reader.input.uintvar()?;
                prefix = declared(table_string(reader.strings, index)?);
                has_name = true;
                continue;
            }
            STR_I => part = Input::text(reader.input.until(0)?)?,
            STR_T => {
                let index = reader.input.uintvar()?;
                part = table_string(reader.strings, index)?;
            }
            ENTITY => {
                reader.input.uintvar()?;
                // Its character has no text in the document.
                count = MAX_PARTS;
            }
            _ if is_start => {
                let found = reader.tokens.find(kind::START, page, code);
                let text = found.ok_or(Error::UnknownToken)?.text()?;
                let (name, begin) = split_at(text, b'=').unwrap_or((text, ""));
                prefix = declared(name);
                has_name = true;
                part = begin;
            }
            0x85.. if code & 0x3f > 3 => {
                let found = reader.tokens.find(kind::VALUE, page, code);
                part = found.ok_or(Error::UnknownToken)?.text()?;
            }
            _ => return Err(Error::UnknownKind),
        }
        if !has_name {
            return Err(Error::Malformed);
        }
        // Only namespaces matter.
        if prefix.is_some() && (!part.is_empty() || count == MAX_PARTS) {
            *parts.get_mut(count).ok_or(Error::UnknownKind)? = part;
            count += 1;
        }
    }
}
