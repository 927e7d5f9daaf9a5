//! Parameters and media types (WAP-230 §8.4.2.4, §8.4.2.7, §8.4.2.24), in both directions.

use super::super::reader::Reader;
use super::EncodingVersion;
use super::raw::Value;
use super::tables::{self, Compact, Names};
use super::text::{self, Parameter};
use super::value::{self, Simple};
use crate::Error;

/// The first octet of a text that is a quoted string.
const QUOTED: &[u8] = b"\"";
/// The greatest Short-integer.
const MAX_SHORT: u64 = 127;
/// The parameter that is a Short-integer in any case (table 38, Padding).
const PADDING: u8 = 8;

/// Puts a parameter in its shortest form; `None` where it has none.
pub(super) fn put(
    parameter: Parameter<'_>,
    version: EncodingVersion,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (name, value) = parameter;
    let Some((code, compact)) = tables::parameter(name, version) else {
        put_untyped(parameter, out);
        return Some(());
    };
    let start = out.len();
    value::put_short(code, out);
    let is_padding = |value: &[u8]| code != PADDING || text::decimal(value) <= Some(MAX_SHORT);
    if value.is_none_or(is_padding) && put_compact(compact, value, version, out).is_some() {
        return Some(());
    }
    out.truncate(start);
    match compact {
        Compact::Weight => return None,
        // A text that begins with a quote would be taken for a quoted string.
        Compact::Text => put_untyped(parameter, out),
        // §8.4.2.4: what is not as expected is text.
        _ => {
            value::put_short(code, out);
            value::put_text_value(value, out);
        }
    }
    Some(())
}

fn put_compact(
    compact: Compact,
    value: Option<&[u8]>,
    version: EncodingVersion,
    out: &mut Vec<u8>,
) -> Option<()> {
    let Some(raw) = value else {
        return matches!(compact, Compact::Nothing | Compact::TextValue).then(|| out.push(0));
    };
    let plain = text::unquote(raw);
    let is_plain = !plain.starts_with(QUOTED);
    match compact {
        Compact::Weight => {
            let weight = text::weight(&plain).filter(|weight| *weight < 1000)?;
            value::put_weight(weight, out);
        }
        Compact::Charset => value::put_integer(Names::Charset.number(&plain, version)?, out),
        Compact::Version => value::put_short(value::version(&plain)?, out),
        Compact::Integer => value::put_integer(text::decimal(&plain)?, out),
        Compact::Text => is_plain.then(|| value::put_text(&plain, out))?,
        Compact::TextValue => value::put_text_value(value, out),
        Compact::Field => value::put_short(tables::field(&plain, version)?, out),
        Compact::Media => match tables::media(&plain, version) {
            Some(number) => value::put_short(number, out),
            None => is_plain.then(|| value::put_text(&plain, out))?,
        },
        Compact::Security => {
            let listed = Names::Listed(&tables::SECURITIES).number(&plain, version)?;
            value::put_integer(listed, out);
        }
        Compact::Date => value::put_long(value::seconds(&plain)?, out),
        Compact::Nothing => return None,
    }
    Some(())
}

/// Puts a parameter by its name; a number as such.
fn put_untyped((name, value): Parameter<'_>, out: &mut Vec<u8>) {
    value::put_text(name, out);
    match value.and_then(text::decimal) {
        Some(number) => value::put_integer(number, out),
        None => value::put_text_value(value, out),
    }
}

/// Puts a parameter by its name, its value as text.
pub(super) fn put_textual((name, value): Parameter<'_>, out: &mut Vec<u8>) {
    value::put_text(name, out);
    value::put_text_value(value, out);
}

/// Puts a media type or range with its parameters; `None` where it is none.
pub(super) fn put_media(text: &[u8], version: EncodingVersion, out: &mut Vec<u8>) -> Option<()> {
    let (media, mut parameters) = text::parameters(text)?;
    let mut parts = media.splitn(2, |byte| *byte == b'/');
    if !text::is_token(parts.next()?) || !text::is_token(parts.next()?) {
        return None;
    }
    // A weight of 1 is the one that is not said (RFC 9110 §12.4.2).
    parameters.pop_if(|(name, value)| {
        name.eq_ignore_ascii_case(b"q") && value.and_then(text::weight) == Some(1000)
    });
    let number = tables::media(media, version);
    if parameters.is_empty() {
        match number {
            Some(number) => value::put_short(number, out),
            None => value::put_text(media, out),
        }
        return Some(());
    }
    let mut body = Vec::new();
    match number {
        Some(number) => value::put_short(number, &mut body),
        None => value::put_text(media, &mut body),
    }
    for parameter in parameters {
        put(parameter, version, &mut body)?;
    }
    value::put_counted(&body, out);
    Some(())
}

/// Writes a media type or range with its parameters.
pub(super) fn write_media(value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let known = |number: u64| {
        tables::media_text(number)
            .ok_or(Error::Peer { what: "an unknown media type", value: number })
    };
    match value {
        Value::Short(number) => out.extend_from_slice(known(number.into())?.as_bytes()),
        Value::Text(text) => value::write_plain(text, out)?,
        Value::Data(octets) => {
            let mut reader = Reader::new(octets);
            match value::simple(&mut reader)? {
                Simple::Integer(number) => out.extend_from_slice(known(number)?.as_bytes()),
                Simple::Text(text) => value::write_plain(text, out)?,
                Simple::Nothing => return Err(Error::Truncated { what: "a media type" }),
            }
            write_all(&mut reader, out)?;
        }
    }
    Ok(())
}

/// Writes all parameters that are left.
pub(super) fn write_all(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    while !reader.is_empty() {
        out.extend_from_slice(b"; ");
        write(reader, out)?;
    }
    Ok(())
}

/// Takes a parameter and writes it as HTTP does.
pub(super) fn write(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match value::simple(reader)? {
        Simple::Nothing => Err(Error::Truncated { what: "a parameter's name" }),
        Simple::Integer(code) => {
            let unknown = Error::Peer { what: "an unknown parameter", value: code };
            let place = usize::try_from(code).unwrap_or(usize::MAX);
            let (name, _, compact) = tables::PARAMETERS.get(place).ok_or(unknown)?;
            out.extend_from_slice(name.as_bytes());
            write_compact(*compact, reader, out)
        }
        Simple::Text(name) => {
            if !text::is_token(name) {
                return Err(Error::Peer { what: "a parameter's name is no token", value: 0 });
            }
            out.extend_from_slice(name);
            write_untyped(reader, out)
        }
    }
}

/// Takes an Untyped-value and writes it with its equals sign, if there is a value.
pub(super) fn write_untyped(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let value = value::simple(reader)?;
    if !matches!(value, Simple::Nothing) {
        out.push(b'=');
    }
    match value {
        Simple::Nothing => Ok(()),
        Simple::Integer(number) => {
            value::write_decimal(number, out);
            Ok(())
        }
        Simple::Text(text) => value::write_text_value(text, out),
    }
}

fn write_compact(
    compact: Compact,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if compact == Compact::Weight {
        out.push(b'=');
        return value::write_weight(reader, out);
    }
    let number = match value::simple(reader)? {
        Simple::Nothing => {
            let empty: &[u8] = if compact == Compact::Text { b"=\"\"" } else { b"" };
            out.extend_from_slice(empty);
            return Ok(());
        }
        Simple::Text(text) => {
            out.push(b'=');
            return value::write_text_value(text, out);
        }
        Simple::Integer(number) => number,
    };
    out.push(b'=');
    let named = match compact {
        Compact::Charset => Names::Charset.text(number),
        Compact::Field => Names::Field.text(number),
        Compact::Media => tables::media_text(number),
        Compact::Security => Names::Listed(&tables::SECURITIES).text(number),
        Compact::Integer => {
            value::write_decimal(number, out);
            return Ok(());
        }
        Compact::Version => {
            let octet = u8::try_from(number).ok().filter(|octet| *octet < 0x80);
            let wrong = Error::Peer { what: "a version's octet", value: number };
            value::write_version(octet.ok_or(wrong)?, out);
            return Ok(());
        }
        Compact::Date => {
            let mut date = Vec::new();
            value::write_date(number, &mut date)?;
            return value::write_value(&date, out);
        }
        Compact::Weight | Compact::Text | Compact::TextValue | Compact::Nothing => None,
    };
    let wrong =
        Error::Peer { what: "a number that stands for no parameter's value", value: number };
    value::write_value(named.ok_or(wrong)?.as_bytes(), out)
}
