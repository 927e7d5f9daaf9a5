//! The envelope of SOAP around a call and its answer (SOAP 1.1 §4, SOAP 1.2 part 1 §5).

use crate::Error;
use crate::document::{Event, Found, Name, Reader, Writer};

/// Namespaces of the envelope.
const SOAP_1_1: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const SOAP_1_2: &str = "http://www.w3.org/2003/05/soap-envelope";

/// Writes the begin of a SOAP 1.1 envelope up to its body.
///
/// # Errors
/// [`Error::NoRoom`].
pub fn begin(writer: &mut Writer<'_>) -> Result<(), Error> {
    writer.begin(Name { space: SOAP_1_1, local: "Envelope" })?;
    writer.begin(Name { space: SOAP_1_1, local: "Body" })
}

/// Ends the body, the envelope and the document, and returns its length.
///
/// # Errors
/// [`Error::NoRoom`], and [`Error::Misuse`] where something in the body is open.
pub fn end(mut writer: Writer<'_>) -> Result<usize, Error> {
    writer.end()?;
    writer.end()?;
    writer.finish()
}

fn is_soap(found: &Found<'_>, local: &str) -> bool {
    found.local == local && (found.space.is(SOAP_1_1) || found.space.is(SOAP_1_2))
}

/// Goes to the first element of the body of an answer, and returns its name.
///
/// # Errors
/// [`Error::Fault`] where that is a fault, whose text [`fault`] has then; [`Error::NotSoap`], also
/// for an empty body; what is wrong with the document.
pub fn open<'a>(reader: &mut Reader<'a>) -> Result<Found<'a>, Error> {
    let root = child(reader)?.ok_or(Error::NotSoap)?;
    if !is_soap(&root, "Envelope") {
        return Err(Error::NotSoap);
    }
    loop {
        let part = child(reader)?.ok_or(Error::NotSoap)?;
        if is_soap(&part, "Body") {
            break;
        }
        skip(reader)?;
    }
    let first = child(reader)?.ok_or(Error::NotSoap)?;
    if is_soap(&first, "Fault") { Err(Error::Fault) } else { Ok(first) }
}

/// The next element within the one that is open, which is open then; `None` where that one ends.
/// Text between elements is left out.
///
/// # Errors
/// What is wrong with the document.
pub fn child<'a>(reader: &mut Reader<'a>) -> Result<Option<Found<'a>>, Error> {
    loop {
        match reader.next()? {
            Event::Start(found) => return Ok(Some(found)),
            Event::End | Event::Over => return Ok(None),
            Event::Text(_) | Event::Char(_) => {}
        }
    }
}

/// Opens the next element, which must have this name.
///
/// # Errors
/// [`Error::UnexpectedElement`] for another one or none; what is wrong with the document.
pub fn expect(reader: &mut Reader<'_>, name: &Name<'_>) -> Result<(), Error> {
    match child(reader)? {
        Some(found) if found.is(name) => Ok(()),
        _ => Err(Error::UnexpectedElement),
    }
}

/// Goes behind the end of the element that is open.
///
/// # Errors
/// What is wrong with the document.
pub fn skip(reader: &mut Reader<'_>) -> Result<(), Error> {
    let depth = reader.depth();
    while reader.depth() >= depth {
        if let Event::Over = reader.next()? {
            return Ok(());
        }
    }
    Ok(())
}

/// The text of the element that is open, in the caller's room, and goes behind its end.
///
/// # Errors
/// [`Error::NoRoom`]; [`Error::UnexpectedElement`] for an element in it; what is wrong with the
/// document.
pub fn text<'r>(reader: &mut Reader<'_>, room: &'r mut [u8]) -> Result<&'r str, Error> {
    let mut len: usize = 0;
    loop {
        let mut char_room = [0; 4];
        let piece = match reader.next()? {
            Event::Text(text) => text,
            Event::Char(char) => char.encode_utf8(&mut char_room),
            Event::End | Event::Over => break,
            Event::Start(_) => return Err(Error::UnexpectedElement),
        };
        let end = len.saturating_add(piece.len());
        room.get_mut(len..end).ok_or(Error::NoRoom)?.copy_from_slice(piece.as_bytes());
        len = end;
    }
    let written = room.get(..len).unwrap_or_default();
    core::str::from_utf8(written).map_err(|_| Error::Malformed)
}

/// The whole number in the element that is open, and goes behind its end.
///
/// # Errors
/// [`Error::NotANumber`], and those of [`text`].
pub fn integer(reader: &mut Reader<'_>) -> Result<i32, Error> {
    let mut room = [0; 24];
    let text = match text(reader, &mut room) {
        Err(Error::NoRoom) => return Err(Error::NotANumber),
        other => other?,
    };
    text.trim_ascii().parse().map_err(|_| Error::NotANumber)
}

/// What a fault says for a person, behind [`Error::Fault`] of [`open`]: `faultstring` of SOAP 1.1,
/// the first `Text` of SOAP 1.2; cut where the room ends.
///
/// # Errors
/// [`Error::NotSoap`] where it says nothing; what is wrong with the document.
pub fn fault<'r>(reader: &mut Reader<'_>, room: &'r mut [u8]) -> Result<&'r str, Error> {
    let depth = reader.depth();
    loop {
        match reader.next()? {
            Event::Start(found) if found.local == "faultstring" || is_soap(&found, "Text") => break,
            Event::Over => return Err(Error::NotSoap),
            Event::End if reader.depth() < depth => return Err(Error::NotSoap),
            _ => {}
        }
    }
    let mut len: usize = 0;
    loop {
        let mut char_room = [0; 4];
        let piece = match reader.next()? {
            Event::Text(text) => text,
            Event::Char(char) => char.encode_utf8(&mut char_room),
            _ => break,
        };
        let mut fits = piece.len().min(room.len() - len);
        while !piece.is_char_boundary(fits) {
            fits -= 1;
        }
        let (from, to) = (piece.as_bytes().get(..fits), room.get_mut(len..len + fits));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
        len += fits;
        if fits < piece.len() {
            break;
        }
    }
    let written = room.get(..len).unwrap_or_default();
    core::str::from_utf8(written).map_err(|_| Error::Malformed)
}
