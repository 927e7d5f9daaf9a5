//! Values of WSP's fields as HTTP writes them (WAP-230 §8.4.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::reader::Reader;
use super::encode::{FIRST_FORM, MD5_BYTES, SECOND_FORM};
use super::raw::{self, Value};
use super::tables::{self, Grammar, Names};
use super::value::{self, Simple};
use super::{Rules, parameter};
use crate::Error;

/// Writes a value. A text under any field is taken as HTTP has it: some peers send all so.
pub(super) fn write(
    grammar: Grammar,
    rules: Rules,
    value: Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match (grammar, value) {
        (Grammar::Media, value) => parameter::write_media(value, out),
        (Grammar::Quoted, Value::Text(text)) => value::write_text_value(text, out),
        (Grammar::Tags | Grammar::TagOrDate, Value::Text(text)) => {
            value::write_plain(tags(text), out)
        }
        (_, Value::Text(text)) => value::write_plain(text, out),
        // An empty text is its terminator alone, which is an empty count too.
        (
            Grammar::Text | Grammar::Tags | Grammar::TagOrDate | Grammar::Application,
            Value::Data([]),
        ) => Ok(()),
        (_, Value::Short(number)) => write_short(grammar, number, out),
        (_, Value::Data(octets)) => write_data(grammar, rules, octets, out),
    }
}

/// Entity tags without a quote too many: Kannel 1.4.5 puts one before them. No tag is empty with
/// more text behind it, and a weak one begins with no quote (RFC 9110 §8.8.3).
fn tags(text: &[u8]) -> &[u8] {
    let Some(rest) = text.strip_prefix(b"\"") else { return text };
    let is_doubled = match rest {
        [b'"', next, ..] => !matches!(next, b',' | b' ' | b'\t'),
        rest => rest.starts_with(b"W/\""),
    };
    if is_doubled { rest } else { text }
}

fn wrong(what: &'static str, value: u64) -> Error {
    Error::Peer { what, value }
}

fn write_name(names: Names, number: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let text = names.text(number).ok_or(wrong("a number that stands for no value", number))?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_short(grammar: Grammar, number: u8, out: &mut Vec<u8>) -> Result<(), Error> {
    let (octet, number) = (number, u64::from(number));
    let names = match grammar {
        Grammar::Named(names) | Grammar::Qualified(names) => names,
        Grammar::WithParameters(names) => Names::Listed(names),
        Grammar::Application => Names::Listed(&tables::APPLICATIONS),
        Grammar::CacheControl => Names::Listed(&tables::CACHE_DIRECTIVES),
        Grammar::Pragma => Names::Listed(&["no-cache"]),
        Grammar::Te if number == 1 => Names::Listed(&tables::TRANSFER_ENCODINGS),
        Grammar::Integer => {
            value::write_decimal(number, out);
            return Ok(());
        }
        Grammar::Version => {
            value::write_version(octet, out);
            return Ok(());
        }
        Grammar::Warning => return write_warning(octet, b"-", b"", out),
        Grammar::ProfileWarning => return write_profile_warning(octet, b"-", out),
        _ => return Err(wrong("no number of this field", number)),
    };
    write_name(names, number, out)
}

/// Writes a counted value that is a number or octets as a whole, or else its parts.
fn write_data(
    grammar: Grammar,
    rules: Rules,
    octets: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match grammar {
        Grammar::Integer => {
            value::write_decimal(value::long(octets)?, out);
            Ok(())
        }
        Grammar::Date | Grammar::TagOrDate => value::write_date(value::long(octets)?, out),
        Grammar::Named(names) => write_name(names, value::long(octets)?, out),
        Grammar::Application => {
            write_name(Names::Listed(&tables::APPLICATIONS), value::long(octets)?, out)
        }
        Grammar::Md5 if octets.len() == MD5_BYTES => {
            out.extend_from_slice(STANDARD.encode(octets).as_bytes());
            Ok(())
        }
        Grammar::Md5
        | Grammar::Text
        | Grammar::Tags
        | Grammar::Quoted
        | Grammar::Version
        | Grammar::Opaque
        | Grammar::Media => Err(wrong("no counted value of this field", octets.len() as u64)),
        grammar => {
            let mut reader = Reader::new(octets);
            write_parts(grammar, rules, &mut reader, out)?;
            match reader.rest().len() {
                0 => Ok(()),
                behind => Err(wrong("octets behind a header's value", behind as u64)),
            }
        }
    }
}

fn write_parts(
    grammar: Grammar,
    rules: Rules,
    reader: &mut Reader<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match grammar {
        Grammar::Qualified(names) => {
            write_first(names, reader, out)?;
            if !reader.is_empty() {
                out.extend_from_slice(b"; q=");
                value::write_weight(reader, out)?;
            }
            Ok(())
        }
        Grammar::WithParameters(names) => {
            write_first(Names::Listed(names), reader, out)?;
            parameter::write_all(reader, out)
        }
        Grammar::Disposition => {
            write_first(Names::Listed(&tables::DISPOSITIONS), reader, out)?;
            parameter::write_all(reader, out)
        }
        Grammar::Te => {
            write_first(Names::Listed(&tables::TRANSFER_ENCODINGS), reader, out)?;
            parameter::write_all(reader, out)
        }
        Grammar::CacheControl => write_cache_directive(reader, out),
        Grammar::Challenge => write_challenge(reader, out),
        Grammar::Credentials => write_credentials(reader, out),
        Grammar::ContentRange => write_content_range(reader, rules, out),
        Grammar::Cookie => write_cookies(reader, out),
        Grammar::SetCookie => {
            value::simple(reader)?;
            write_cookie(reader, out)?;
            parameter::write_all(reader, out)
        }
        Grammar::Pragma => parameter::write(reader, out),
        Grammar::Range => write_range(reader, out),
        Grammar::RetryAfter => match reader.byte("a time")? {
            FIRST_FORM => value::write_date(value::integer(reader)?, out),
            SECOND_FORM => {
                value::write_decimal(value::integer(reader)?, out);
                Ok(())
            }
            form => Err(wrong("neither a date nor seconds", form.into())),
        },
        Grammar::Warning => {
            let code = code(reader)?;
            write_warning(code, raw::text(reader)?, raw::text(reader)?, out)
        }
        Grammar::ProfileWarning => {
            let code = code(reader)?;
            write_profile_warning(code, raw::text(reader)?, out)?;
            while !reader.is_empty() {
                out.extend_from_slice(b" \"");
                value::write_date(value::integer(reader)?, out)?;
                out.push(b'"');
            }
            Ok(())
        }
        _ => Err(wrong("no parts of this field's value", 0)),
    }
}

fn write_first(names: Names, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match value::simple(reader)? {
        Simple::Nothing => Err(Error::Truncated { what: "a counted value" }),
        Simple::Integer(number) => write_name(names, number, out),
        Simple::Text(text) => value::write_plain(text, out),
    }
}

fn write_cache_directive(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    match value::simple(reader)? {
        Simple::Nothing => return Err(Error::Truncated { what: "a cache directive" }),
        Simple::Text(text) => {
            value::write_plain(text, out)?;
            return parameter::write_untyped(reader, out);
        }
        Simple::Integer(number @ (2 | 3 | 4 | 11)) => {
            write_name(Names::Listed(&tables::CACHE_DIRECTIVES), number, out)?;
            out.push(b'=');
            value::write_decimal(value::integer(reader)?, out);
            return Ok(());
        }
        Simple::Integer(number @ (0 | 7)) => {
            write_name(Names::Listed(&tables::CACHE_DIRECTIVES), number, out)?;
        }
        Simple::Integer(number) => return Err(wrong("a directive without a value", number)),
    }
    let mut fields = Vec::new();
    while !reader.is_empty() {
        if !fields.is_empty() {
            fields.extend_from_slice(b", ");
        }
        write_first(Names::Field, reader, &mut fields)?;
    }
    out.push(b'=');
    super::text::put_quoted(&fields, out);
    Ok(())
}

fn write_credentials(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    if reader.peek() != Some(FIRST_FORM) {
        value::write_plain(raw::text(reader)?, out)?;
        return write_authentication(reader, b" ", out);
    }
    reader.byte("a scheme")?;
    let user = raw::text(reader)?;
    // RFC 7617 §2: a colon ends the name.
    if user.contains(&b':') {
        return Err(wrong("a colon in a user's name", b':'.into()));
    }
    let cookie = [user, b":", raw::text(reader)?].concat();
    out.extend_from_slice(b"Basic ");
    out.extend_from_slice(STANDARD.encode(cookie).as_bytes());
    Ok(())
}

fn write_challenge(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    if reader.peek() == Some(FIRST_FORM) {
        reader.byte("a scheme")?;
        out.extend_from_slice(b"Basic");
    } else {
        value::write_plain(raw::text(reader)?, out)?;
    }
    out.extend_from_slice(b" realm=");
    let realm = raw::text(reader)?;
    value::check_text(realm)?;
    super::text::put_quoted(realm, out);
    write_authentication(reader, b", ", out)
}

fn write_authentication(
    reader: &mut Reader<'_>,
    first: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut separator = first;
    while !reader.is_empty() {
        out.extend_from_slice(separator);
        parameter::write(reader, out)?;
        separator = b", ";
    }
    Ok(())
}

fn write_content_range(
    reader: &mut Reader<'_>,
    rules: Rules,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let first = u64::from(reader.uintvar("the first byte of a range")?);
    let unknown = Error::Caller { what: "a range of a body whose length is not known" };
    let len = rules.body_bytes.ok_or(unknown)?;
    let last = len.checked_sub(1).and_then(|len| first.checked_add(len));
    let last = last.ok_or(wrong("a range of an empty body", first))?;
    out.extend_from_slice(format!("bytes {first}-{last}/").as_bytes());
    if reader.peek() == Some(FIRST_FORM) {
        reader.byte("the length of an entity")?;
        out.push(b'*');
    } else {
        value::write_decimal(reader.uintvar("the length of an entity")?.into(), out);
    }
    Ok(())
}

fn write_range(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(b"bytes=");
    let form = reader.byte("a range")?;
    let first = reader.uintvar("a range")?.into();
    match form {
        FIRST_FORM => {
            value::write_decimal(first, out);
            out.push(b'-');
            if !reader.is_empty() {
                value::write_decimal(reader.uintvar("the last byte of a range")?.into(), out);
            }
        }
        SECOND_FORM => {
            out.push(b'-');
            value::write_decimal(first, out);
        }
        form => return Err(wrong("neither a range nor one from the end", form.into())),
    }
    Ok(())
}

fn code(reader: &mut Reader<'_>) -> Result<u8, Error> {
    let code = value::integer(reader)?;
    u8::try_from(code).map_err(|_| wrong("an unknown warning", code))
}

fn write_warning(code: u8, agent: &[u8], warning: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let row = tables::WARNINGS.iter().find(|(number, _)| *number == code);
    let (_, http) = row.ok_or(wrong("an unknown warning", code.into()))?;
    value::write_decimal(*http, out);
    out.push(b' ');
    value::write_plain(agent, out)?;
    out.push(b' ');
    value::check_text(warning)?;
    // Some peers send the text with its quotes.
    let plain = super::text::unquote(warning);
    super::text::put_quoted(&plain, out);
    Ok(())
}

fn write_profile_warning(code: u8, target: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let row = tables::PROFILE_WARNINGS.iter().find(|(number, ..)| *number == code);
    let (_, http, text) = row.ok_or(wrong("an unknown warning", code.into()))?;
    value::write_decimal(*http, out);
    out.push(b' ');
    value::write_plain(target, out)?;
    out.push(b' ');
    super::text::put_quoted(text.as_bytes(), out);
    Ok(())
}

fn write_cookie(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    value::write_plain(raw::text(reader)?, out)?;
    out.push(b'=');
    value::write_plain(raw::text(reader)?, out)
}

/// Cookies without their paths and domains, which RFC 6265 §4.2 has no place for.
fn write_cookies(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    value::simple(reader)?;
    let mut separator: &[u8] = b"";
    while !reader.is_empty() {
        let mut cookie = Reader::new(reader.counted("a cookie")?);
        out.extend_from_slice(separator);
        write_cookie(&mut cookie, out)?;
        separator = b"; ";
    }
    Ok(())
}
