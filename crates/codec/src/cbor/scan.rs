//! Tokens of JSON (RFC 8259), strictly, from text that may come in parts.

use std::borrow::Cow;

use crate::{Error, Limits};

use super::{malformed, over};

/// Longest number in bytes that is read; nothing but attacks is longer.
pub(super) const MAX_NUMBER: usize = 4096;
/// A string that is longer comes in parts, if its end is not there yet.
const PART: usize = 4096;

/// What stands in a JSON text, apart from white space, commas and colons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    StartArray,
    EndArray,
    StartObject,
    EndObject,
    /// A whole string or key.
    Text(Cow<'a, str>),
    /// A part of one; the next token goes on, and a [`Token::Text`] ends it.
    Part(Cow<'a, str>),
    Number(&'a str),
    False,
    True,
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// Where a reader is in a JSON text.
#[derive(Debug)]
pub(super) struct Scanner {
    /// True for an object.
    open: Vec<bool>,
    due: Due,
    in_string: bool,
    /// Bytes of an unfinished string that were looked at.
    seen: usize,
    offset: u64,
    depth: usize,
}

impl Scanner {
    pub(super) fn new(limits: &Limits) -> Self {
        let due = Due::Value;
        Self { open: Vec::new(), due, in_string: false, seen: 0, offset: 0, depth: limits.depth }
    }

    /// Whether the text is complete but for white space.
    pub(super) fn is_done(&self) -> bool {
        self.due == Due::Nothing
    }

    /// The next token of `input`, which begins where the last one ended, and the bytes used; `None`
    /// with white space used where nothing more is complete.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
        ended: bool,
    ) -> Result<(Option<Token<'a>>, usize), Error> {
        let mut at = 0;
        let token = loop {
            if self.in_string {
                break self.string(input, &mut at, ended)?;
            }
            let Some(&byte) = input.get(at) else { break None };
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b',' if self.due == Due::CommaOrEnd => {
                    self.due = if self.open.last() == Some(&true) { Due::Key } else { Due::Value };
                    at += 1;
                }
                b':' if self.due == Due::Colon => {
                    self.due = Due::Value;
                    at += 1;
                }
                _ => break self.token(input, &mut at, ended)?,
            }
        };
        self.offset += at as u64;
        if token.is_none() && ended && !self.is_done() {
            return Err(malformed(self.offset, "the JSON text ends too early"));
        }
        Ok((token, at))
    }

    fn token<'a>(
        &mut self,
        input: &'a [u8],
        at: &mut usize,
        ended: bool,
    ) -> Result<Option<Token<'a>>, Error> {
        let byte = input.get(*at).copied().unwrap_or(0);
        let value = matches!(self.due, Due::Value | Due::ValueOrEnd);
        match byte {
            b'"' if value || matches!(self.due, Due::Key | Due::KeyOrEnd) => {
                self.in_string = true;
                *at += 1;
                self.string(input, at, ended)
            }
            b'[' if value => self.open(false, Due::ValueOrEnd, Token::StartArray, at),
            b'{' if value => self.open(true, Due::KeyOrEnd, Token::StartObject, at),
            b']' if matches!(self.due, Due::ValueOrEnd | Due::CommaOrEnd) => {
                self.close(false, Token::EndArray, at)
            }
            b'}' if matches!(self.due, Due::KeyOrEnd | Due::CommaOrEnd) => {
                self.close(true, Token::EndObject, at)
            }
            b't' if value => self.literal(input, at, "true", Token::True, ended),
            b'f' if value => self.literal(input, at, "false", Token::False, ended),
            b'n' if value => self.literal(input, at, "null", Token::Null, ended),
            b'-' | b'0'..=b'9' if value => self.number(input, at, ended),
            _ => Err(self.odd(*at)),
        }
    }

    fn odd(&self, at: usize) -> Error {
        let due = match self.due {
            Due::Value => "a value",
            Due::ValueOrEnd => "a value or ']'",
            Due::KeyOrEnd => "a key or '}'",
            Due::Key => "a key",
            Due::Colon => "':'",
            Due::CommaOrEnd => "',' or the end of the array or object",
            Due::Nothing => "nothing behind the value",
        };
        malformed(self.offset + at as u64, format!("expected {due}"))
    }

    fn after_value(&mut self) {
        self.due = if self.open.is_empty() { Due::Nothing } else { Due::CommaOrEnd };
    }

    fn open<'a>(
        &mut self,
        object: bool,
        due: Due,
        token: Token<'a>,
        at: &mut usize,
    ) -> Result<Option<Token<'a>>, Error> {
        if self.open.len() >= self.depth {
            return Err(over(format!("nesting over {} levels", self.depth)));
        }
        self.open.push(object);
        self.due = due;
        *at += 1;
        Ok(Some(token))
    }

    fn close<'a>(
        &mut self,
        object: bool,
        token: Token<'a>,
        at: &mut usize,
    ) -> Result<Option<Token<'a>>, Error> {
        if self.open.last() != Some(&object) {
            return Err(self.odd(*at));
        }
        self.open.pop();
        self.after_value();
        *at += 1;
        Ok(Some(token))
    }

    fn literal<'a>(
        &mut self,
        input: &[u8],
        at: &mut usize,
        word: &str,
        token: Token<'a>,
        ended: bool,
    ) -> Result<Option<Token<'a>>, Error> {
        let rest = input.get(*at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            *at += word.len();
            self.after_value();
            return Ok(Some(token));
        }
        if word.as_bytes().starts_with(rest) && !ended {
            return Ok(None);
        }
        Err(self.odd(*at))
    }

    /// RFC 8259 §6.
    fn number<'a>(
        &mut self,
        input: &'a [u8],
        at: &mut usize,
        ended: bool,
    ) -> Result<Option<Token<'a>>, Error> {
        let rest = input.get(*at..).unwrap_or_default();
        let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|byte| !part(byte)).unwrap_or(rest.len());
        if len > MAX_NUMBER {
            return Err(over(format!("number over {MAX_NUMBER} bytes")));
        }
        if len == rest.len() && !ended {
            return Ok(None);
        }
        match rest.get(..len).and_then(|text| str::from_utf8(text).ok()) {
            Some(text) if is_number(text) => {
                *at += len;
                self.after_value();
                Ok(Some(Token::Number(text)))
            }
            _ => Err(malformed(self.offset + *at as u64, "a number is not as JSON writes it")),
        }
    }

    /// The rest of a string, or as much as is worth a part.
    fn string<'a>(
        &mut self,
        input: &'a [u8],
        at: &mut usize,
        ended: bool,
    ) -> Result<Option<Token<'a>>, Error> {
        let rest = input.get(*at..).unwrap_or_default();
        let offset = self.offset + *at as u64;
        let (mut end, mut seen) = (None, self.seen.min(rest.len()));
        while let Some(found) =
            rest.get(seen..).and_then(|r| r.iter().position(|byte| matches!(byte, b'"' | b'\\')))
        {
            if rest.get(seen + found) == Some(&b'"') {
                end = Some(seen + found);
                break;
            }
            if seen + found + 2 > rest.len() {
                seen += found;
                break;
            }
            seen += found + 2;
        }
        if let Some(end) = end {
            let raw = rest.get(..end).unwrap_or_default();
            *at += end + 1;
            (self.in_string, self.seen) = (false, 0);
            if matches!(self.due, Due::Key | Due::KeyOrEnd) {
                self.due = Due::Colon;
            } else {
                self.after_value();
            }
            let (text, used) = unescape(raw, offset)?;
            if used < raw.len() {
                return Err(malformed(
                    offset + used as u64,
                    "an escape, a surrogate pair or a character is cut off",
                ));
            }
            return Ok(Some(Token::Text(text)));
        }
        if ended {
            return Err(malformed(offset + rest.len() as u64, "a string does not end"));
        }
        if rest.len() < PART {
            self.seen = if rest.last() == Some(&b'\\') { seen } else { rest.len().max(seen) };
            return Ok(None);
        }
        let (text, used) = unescape(rest, offset)?;
        *at += used;
        self.seen = 0;
        Ok(Some(Token::Part(text)))
    }
}

/// RFC 8259 §6: the grammar of a number.
pub(super) fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || whole > 1 && bytes.get(at) == Some(&b'0') {
        return false;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let power = digits(at);
        if power == 0 {
            return false;
        }
        at += power;
    }
    at == bytes.len()
}

/// The text that `raw` means (RFC 8259 §7), and how much of `raw` was whole: an escape or a
/// character may go on behind its end.
fn unescape(raw: &[u8], offset: u64) -> Result<(Cow<'_, str>, usize), Error> {
    if let Some(at) = raw.iter().position(|byte| *byte < 0x20) {
        return Err(malformed(offset + at as u64, "a control character in a string"));
    }
    let (valid, mut used) = match str::from_utf8(raw) {
        Ok(text) => (text, raw.len()),
        Err(error) if error.error_len().is_none() => {
            let upto = error.valid_up_to();
            let head = raw.get(..upto).unwrap_or_default();
            (str::from_utf8(head).unwrap_or_default(), upto)
        }
        Err(error) => {
            return Err(malformed(offset + error.valid_up_to() as u64, "not UTF-8"));
        }
    };
    if !valid.contains('\\') {
        return Ok((Cow::Borrowed(valid), used));
    }
    let mut out = String::with_capacity(valid.len());
    let mut rest = valid;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at..).unwrap_or_default();
        let here = offset + (valid.len() - escape.len()) as u64;
        match character(escape, here)? {
            Some((char, len)) => {
                out.push(char);
                rest = escape.get(len..).unwrap_or_default();
            }
            None => {
                used = valid.len() - escape.len();
                return Ok((Cow::Owned(out), used));
            }
        }
    }
    out.push_str(rest);
    Ok((Cow::Owned(out), used))
}

/// The character that an escape means and its length in bytes; `None` if it is cut off.
fn character(escape: &str, offset: u64) -> Result<Option<(char, usize)>, Error> {
    let bytes = escape.as_bytes();
    let simple = match bytes.get(1) {
        None => return Ok(None),
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(bytes, offset),
        Some(_) => return Err(malformed(offset, "an unknown escape")),
    };
    Ok(Some((simple, 2)))
}

/// `\u` and four digits, or two of them for what is beyond the first plane.
fn unicode(bytes: &[u8], offset: u64) -> Result<Option<(char, usize)>, Error> {
    let unit = |from: usize| -> Result<Option<u32>, Error> {
        let Some(digits) = bytes.get(from..from + 4) else { return Ok(None) };
        digits
            .iter()
            .try_fold(0, |value, digit| {
                char::from(*digit).to_digit(16).map(|digit| value << 4 | digit)
            })
            .map(Some)
            .ok_or_else(|| malformed(offset, "an escape without four digits"))
    };
    let Some(first) = unit(2)? else { return Ok(None) };
    // A text in UTF-8 cannot hold half a pair, so it could not be restored.
    let lone = || malformed(offset, "half a surrogate pair");
    if !(0xd800..0xe000).contains(&first) {
        return char::from_u32(first).map(|char| Some((char, 6))).ok_or_else(lone);
    }
    match bytes.get(6..8) {
        Some(b"\\u") => {}
        Some(_) => return Err(lone()),
        None if bytes.len() == 6 || bytes.get(6) == Some(&b'\\') => return Ok(None),
        None => return Err(lone()),
    }
    let Some(second) = unit(8)? else { return Ok(None) };
    if first >= 0xdc00 || !(0xdc00..0xe000).contains(&second) {
        return Err(lone());
    }
    let code = 0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff);
    char::from_u32(code).map(|char| Some((char, 12))).ok_or_else(lone)
}
