//! The basic values (WAP-230 §8.4.2.1 to §8.4.2.3).

use super::super::reader::{Reader, uintvar};
use super::raw::{self, LENGTH_QUOTE, QUOTE, Value};
use super::text;
use crate::Error;
use crate::date;

/// A version whose minor part is this has none (WAP-230 §8.4.2.3).
const NO_MINOR: u8 = 15;
/// The first octet of a text that is a quoted string.
const QUOTED: u8 = b'"';

/// Puts a Short-integer of at most 127.
pub(super) fn put_short(value: u8, out: &mut Vec<u8>) {
    out.push(value | 0x80);
}

/// Puts an Integer-value in its shortest form.
pub(super) fn put_integer(value: u64, out: &mut Vec<u8>) {
    match u8::try_from(value) {
        Ok(short @ 0..=127) => put_short(short, out),
        _ => put_long(value, out),
    }
}

/// Puts a Long-integer without zeros before it; zero is one octet.
pub(super) fn put_long(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take(7).take_while(|byte| **byte == 0).count();
    let octets = bytes.get(zeros..).unwrap_or(&bytes);
    put_counted(octets, out);
}

/// Puts a uintvar.
pub(super) fn put_uintvar(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(uintvar(value, &mut [0; 5]));
}

/// Puts a Text-string.
pub(super) fn put_text(text: &[u8], out: &mut Vec<u8>) {
    if text.first().is_some_and(|first| *first >= QUOTE) {
        out.push(QUOTE);
    }
    out.extend_from_slice(text);
    out.push(0);
}

/// Puts octets behind their count (Value-length).
pub(super) fn put_counted(octets: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(octets.len()) {
        Ok(len) if len < LENGTH_QUOTE => out.push(len),
        _ => {
            out.push(LENGTH_QUOTE);
            // A field's value is far below 4 GiB: `MAX_BYTES`.
            put_uintvar(u32::try_from(octets.len()).unwrap_or(u32::MAX), out);
        }
    }
    out.extend_from_slice(octets);
}

/// Puts a weight in thousandths, which is below 1: that is not said (WAP-230 §8.4.2.3).
pub(super) fn put_weight(thousandths: u16, out: &mut Vec<u8>) {
    let thousandths = u32::from(thousandths);
    match thousandths % 10 {
        0 => put_uintvar(thousandths / 10 + 1, out),
        _ => put_uintvar(thousandths + 100, out),
    }
}

/// Puts a Text-value of what HTTP has: nothing, a token or a quoted string.
pub(super) fn put_text_value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.push(0) };
    match text::inner(value) {
        Some(inner) => {
            out.push(QUOTED);
            out.extend_from_slice(inner);
            out.push(0);
        }
        None => put_text(value, out),
    }
}

/// A version as one octet, if it has that form.
pub(super) fn version(text: &[u8]) -> Option<u8> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let major = text::decimal(parts.next()?)?;
    let minor = match parts.next() {
        None => NO_MINOR,
        Some(minor) => {
            u8::try_from(text::decimal(minor)?).ok().filter(|minor| *minor < NO_MINOR)?
        }
    };
    let major = u8::try_from(major).ok().filter(|major| (1..=7).contains(major))?;
    Some(major << 4 | minor)
}

/// Seconds of a date that has no other form in HTTP than the one it is written in.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    u64::try_from(date::read(text)?).ok()
}

/// An Integer-value or a Text-value, as untyped values are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Simple<'a> {
    Nothing,
    Integer(u64),
    Text(&'a [u8]),
}

/// Takes an Integer-value or a Text-value.
pub(super) fn simple<'a>(reader: &mut Reader<'a>) -> Result<Simple<'a>, Error> {
    Ok(match raw::value(reader)? {
        Value::Data([]) => Simple::Nothing,
        Value::Data(octets) => Simple::Integer(long(octets)?),
        Value::Short(value) => Simple::Integer(value.into()),
        Value::Text(text) => Simple::Text(text),
    })
}

/// The value of a Long-integer's octets; one over 64 bits is refused, as no field has such.
pub(super) fn long(octets: &[u8]) -> Result<u64, Error> {
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    if octets.is_empty() || octets.len() - zeros > 8 {
        return Err(Error::Peer { what: "a long integer's octets", value: octets.len() as u64 });
    }
    Ok(octets.iter().fold(0, |value, octet| value << 8 | u64::from(*octet)))
}

/// Takes an Integer-value.
pub(super) fn integer(reader: &mut Reader<'_>) -> Result<u64, Error> {
    match simple(reader)? {
        Simple::Integer(value) => Ok(value),
        _ => Err(Error::Peer { what: "no integer", value: 0 }),
    }
}

/// Takes a weight and writes it as HTTP does.
pub(super) fn write_weight(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let thousandths = match reader.uintvar("a weight")? {
        value @ 1..=100 => (value - 1) * 10,
        value @ 101..=1099 => value - 100,
        value => return Err(Error::Peer { what: "a weight of 1 to 1099", value: value.into() }),
    };
    let digits = format!("0.{thousandths:03}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    out.extend_from_slice(digits.as_bytes());
    Ok(())
}

/// Whether `text` is fit for a field.
pub(super) fn check_text(text: &[u8]) -> Result<(), Error> {
    let Some(control) = text.iter().find(|byte| !text::is_text(&[**byte])) else { return Ok(()) };
    Err(Error::Peer { what: "a control character in a header", value: u64::from(*control) })
}

/// Writes text as it is.
pub(super) fn write_plain(text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    check_text(text)?;
    out.extend_from_slice(text);
    Ok(())
}

/// Writes a token as it is, and all else as a quoted string.
pub(super) fn write_value(text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if text::is_token(text) {
        out.extend_from_slice(text);
        return Ok(());
    }
    check_text(text)?;
    text::put_quoted(text, out);
    Ok(())
}

/// Writes a Text-value: a quoted string has no quote at its end (WAP-230 §8.4.2.1), though some
/// peers put one.
pub(super) fn write_text_value(text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let Some(open) = text.strip_prefix(&[QUOTED]) else { return write_value(text, out) };
    check_text(text)?;
    let closed = text::inner(text).unwrap_or(open);
    text::put_quoted(&text::unescape(closed), out);
    Ok(())
}

/// Writes a date as HTTP does.
pub(super) fn write_date(seconds: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let date = i64::try_from(seconds).ok().and_then(date::written);
    let date = date.ok_or(Error::Peer { what: "a date beyond the year 9999", value: seconds })?;
    out.extend_from_slice(date.as_bytes());
    Ok(())
}

/// Writes a number.
pub(super) fn write_decimal(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Writes a version of one octet.
pub(super) fn write_version(version: u8, out: &mut Vec<u8>) {
    write_decimal(u64::from(version >> 4), out);
    if version & 0x0f != NO_MINOR {
        out.push(b'.');
        write_decimal(u64::from(version & 0x0f), out);
    }
}
