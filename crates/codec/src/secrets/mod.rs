//! What is secret in a message, and whom it names as its sender.
//!
//! Whatever becomes part of a dictionary, or a base of later messages, shows through
//! the length of those that have it in common. So before a message is kept, what proves an identity
//! is cut out of it: headers of WS-Security and what they hold, assertions, passwords, tokens,
//! keys, cookies, by their names (`words`) or by how they look (`text`). Names are compared without
//! their prefix, namespace and case, and what cannot be read is not kept at all: rather too much is
//! cut than too little.

mod text;
mod words;

use std::ops::Range;

use crate::xml::{Event, NameId, Reader, Start};
use crate::{Error, Limits};
use text::holds_secret;
pub use words::says_so;
use words::{Says, is_secret, names_secret};

const NAME: &str = "secrets";
/// The namespace of xsi:type and the like.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Whether content of this type can be read for its secrets.
#[must_use]
pub fn is_readable(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let kinds = ["/xml", "+xml", "/json", "+json"];
    kinds.iter().any(|kind| media.ends_with(kind))
}

/// The message without what is secret in it. The same message gives the same on both sides; what
/// comes of it need be no document.
///
/// # Errors
/// What is neither XML in UTF-8 nor JSON.
pub fn cut(message: &[u8]) -> Result<Vec<u8>, Error> {
    let secrets = find(message)?.cuts;
    let mut kept = Vec::with_capacity(message.len());
    let mut from = 0;
    for Range { start, end } in secrets {
        kept.extend_from_slice(message.get(from..start).unwrap_or_default());
        from = end;
    }
    kept.extend_from_slice(message.get(from..).unwrap_or_default());
    Ok(kept)
}

/// Whom the message names as its sender, in WS-Security or SAML, and what else in it proves that,
/// such as a password; empty where nothing does. It is a claim: nothing is verified.
///
/// # Errors
/// What is neither XML in UTF-8 nor JSON; a message that proves an identity without naming it.
pub fn claims(message: &[u8]) -> Result<Vec<u8>, Error> {
    let Found { who, guarded, .. } = find(message)?;
    if guarded && who.is_empty() {
        return Err(unreadable("it does not name whose it is"));
    }
    Ok(who)
}

/// What a message has.
#[derive(Debug, Default)]
struct Found {
    /// In order, apart from each other.
    cuts: Vec<Range<usize>>,
    who: Vec<u8>,
    guarded: bool,
}

impl Found {
    /// What is in the range is secret; whether it tells one sender from another.
    fn cut(&mut self, message: &[u8], range: Range<usize>, tells: bool) {
        if tells {
            self.who.extend_from_slice(message.get(range.clone()).unwrap_or_default());
            self.who.push(0);
        }
        self.cuts.push(range);
    }
}

fn unreadable(what: &str) -> Error {
    Error::Corrupt { codec: NAME, what: what.to_owned() }
}

fn first(message: &[u8]) -> Option<u8> {
    message.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn find(message: &[u8]) -> Result<Found, Error> {
    match first(message) {
        Some(b'<') => of_xml(message),
        Some(b'{' | b'[') => of_json(message),
        _ => Err(unreadable("neither XML nor JSON")),
    }
}

/// What is known of names; most come again and again.
#[derive(Default)]
struct Known(Vec<Option<Says>>);

impl Known {
    fn says(&mut self, reader: &Reader<'_>, name: NameId) -> Says {
        let index = name.index();
        if index >= self.0.len() {
            self.0.resize(index + 1, None);
        }
        let says = || Says::of(reader.names().name(name).local);
        match self.0.get_mut(index) {
            Some(known) => *known.get_or_insert_with(says),
            None => says(),
        }
    }

    /// Whether an attribute is secret.
    fn has_secret(&mut self, reader: &Reader<'_>, start: &Start<'_>) -> Result<bool, Error> {
        for attribute in reader.attributes() {
            let secret = self.says(reader, attribute.name).secret;
            // A type's name names nothing that stands beside it (XML Schema 1 §2.6).
            let types = reader.names().name(attribute.name).uri == INSTANCE;
            if secret || !types && is_secret_text(attribute.value(start).as_bytes())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a text has to be cut. Refuses one that may be the name of what stands beside it: that
/// may be anywhere.
fn is_secret_text(text: &[u8]) -> Result<bool, Error> {
    let holds = holds_secret(text);
    // Behind an equals sign what is named stands in the text itself, if anything does.
    let value = text.splitn(2, |byte| *byte == b'=').nth(1).map(<[u8]>::trim_ascii);
    let has_value = value.is_some_and(|value| !value.is_empty() && !names_secret(value));
    match names_secret(text) && !(holds && has_value) {
        true => Err(unreadable("a text that names a secret")),
        false => Ok(holds),
    }
}

fn of_xml(message: &[u8]) -> Result<Found, Error> {
    let mut reader = Reader::new(message, &Limits::default())?;
    let (mut found, mut known) = (Found::default(), Known::default());
    // Where the secret begins that the reader is in, how many elements are open in it, and whether
    // it says by itself who somebody is.
    let mut secret: Option<(usize, usize, bool)> = None;
    let mut telling = 0_usize;
    loop {
        let begin = reader.offset();
        match reader.next()? {
            Event::Start(start) => {
                let says = known.says(&reader, start.name);
                found.guarded |= says.listed;
                if telling > 0 || says.who {
                    telling += 1;
                }
                match &mut secret {
                    Some((_, depth, _)) => *depth += 1,
                    None if says.listed || says.secret || known.has_secret(&reader, &start)? => {
                        secret = Some((begin, 1, !says.listed));
                    }
                    None => {}
                }
            }
            Event::End { .. } => {
                telling = telling.saturating_sub(1);
                if let Some((begin, depth, tells)) = &mut secret {
                    *depth -= 1;
                    if *depth == 0 {
                        found.cut(message, *begin..reader.offset(), *tells);
                        secret = None;
                    }
                }
            }
            Event::Text(text) => {
                if telling > 0 {
                    found.who.extend_from_slice(text.trim().as_bytes());
                    found.who.push(0);
                }
                if secret.is_none() && is_secret_text(text.as_bytes())? {
                    found.cut(message, begin..reader.offset(), true);
                }
            }
            Event::Comment(text) if secret.is_none() && holds_secret(text.as_bytes()) => {
                found.cut(message, begin..reader.offset(), false);
            }
            Event::Pi { target, data }
                if secret.is_none() && (says_so(target) || holds_secret(data.as_bytes())) =>
            {
                found.cut(message, begin..reader.offset(), false);
            }
            Event::Doctype(doctype) if !doctype.subset.is_empty() => {
                return Err(unreadable("a document type with declarations"));
            }
            Event::Doctype(doctype) if holds_secret(doctype.system.as_bytes()) => {
                return Err(unreadable("a document type with a secret"));
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

/// Values of members whose name says so are cut. Of the grammar no more is read than strings and
/// brackets.
fn of_json(message: &[u8]) -> Result<Found, Error> {
    let (mut found, mut unescaped) = (Found::default(), Vec::new());
    let mut at = 0;
    while let Some(&byte) = message.get(at) {
        if byte != b'"' {
            at += 1;
            continue;
        }
        let end = string_end(message, at)?;
        let text = message.get(at + 1..end - 1).unwrap_or_default();
        let colon = skip_space(message, end);
        if message.get(colon) == Some(&b':') {
            at = colon + 1;
            // A name with an escape may be any.
            if text.contains(&b'\\') || text.eq_ignore_ascii_case(b"token") || is_secret(text) {
                let value = skip_space(message, at);
                at = value_end(message, value)?;
                found.cut(message, value..at, true);
            }
        } else {
            let text = match text.contains(&b'\\') {
                true => unescape(text, &mut unescaped),
                false => text,
            };
            if is_secret_text(text)? {
                found.cut(message, at..end, true);
            }
            at = end;
        }
    }
    Ok(found)
}

/// A string's text without its escapes (RFC 8259 §7); what is beyond ASCII names nothing.
fn unescape<'a>(text: &[u8], into: &'a mut Vec<u8>) -> &'a [u8] {
    into.clear();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        into.push(match escaped {
            Some(b'u') => {
                let digits = bytes.by_ref().take(4);
                let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0xff);
                let code = digits.fold(0, |code, byte| code * 16 + digit(byte));
                u8::try_from(code).unwrap_or(0xff)
            }
            Some(b'n' | b't' | b'r' | b'f' | b'b') => b' ',
            Some(other) => other,
            None => byte,
        });
    }
    into
}

fn skip_space(message: &[u8], at: usize) -> usize {
    let rest = message.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Behind the string that begins at `at`.
fn string_end(message: &[u8], at: usize) -> Result<usize, Error> {
    let mut next = at + 1;
    while let Some(&byte) = message.get(next) {
        next += match byte {
            b'"' => return Ok(next + 1),
            b'\\' => 2,
            _ => 1,
        };
    }
    Err(unreadable("a string without an end"))
}

/// Behind the value that begins at `at`.
fn value_end(message: &[u8], mut at: usize) -> Result<usize, Error> {
    let mut open = 0_usize;
    while let Some(&byte) = message.get(at) {
        match byte {
            b'"' => {
                at = string_end(message, at)?;
                if open == 0 {
                    return Ok(at);
                }
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' if open <= 1 => return Ok(at + open),
            b'}' | b']' => open -= 1,
            b',' if open == 0 => return Ok(at),
            _ => {}
        }
        at += 1;
    }
    Err(unreadable("a value without an end"))
}

#[cfg(test)]
mod tests;
