//! The text of fields as HTTP has it (RFC 9110 §5.5, §5.6).

use std::borrow::Cow;

/// Characters of a token (RFC 9110 §5.6.2).
const fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'z' | b'|' | b'~')
        || byte.is_ascii_alphanumeric()
}

pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| is_token_byte(*byte))
}

/// Whether a field's value may have these octets (RFC 9110 §5.5): what ends a line or a string of
/// WSP is none of them.
pub(super) fn is_text(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

/// Without the white space around it.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let from = text.iter().position(|byte| !is_blank(byte)).unwrap_or(text.len());
    let to = text.iter().rposition(|byte| !is_blank(byte)).map_or(from, |at| at + 1);
    text.get(from..to).unwrap_or(&[])
}

/// Parts of `text` between separators that stand in no quoted string, without those that are
/// empty; `None` where a quoted string does not end.
pub(super) fn split(text: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    let (mut from, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if *byte == separator && !quoted => {
                parts.push(trim(text.get(from..at)?));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(trim(text.get(from..)?));
    parts.retain(|part| !part.is_empty());
    (!quoted).then_some(parts)
}

/// A parameter: its name and, if there is one, its value, a token or a quoted string with quotes.
pub(super) type Parameter<'a> = (&'a [u8], Option<&'a [u8]>);

/// A parameter (RFC 9110 §5.6.6); `None` for what is none.
pub(super) fn parameter(text: &[u8]) -> Option<Parameter<'_>> {
    let Some(equals) = text.iter().position(|byte| *byte == b'=') else {
        return is_token(text).then_some((text, None));
    };
    let (name, value) = (trim(text.get(..equals)?), trim(text.get(equals + 1..)?));
    let is_value = is_token(value) || is_quoted(value);
    (is_token(name) && is_value).then_some((name, Some(value)))
}

/// What stands before the first `;`, and the parameters behind it.
pub(super) fn parameters(text: &[u8]) -> Option<(&[u8], Vec<Parameter<'_>>)> {
    let parts = split(text, b';')?;
    let (first, rest) = parts.split_first()?;
    let rest: Option<Vec<Parameter<'_>>> = rest.iter().map(|part| parameter(part)).collect();
    Some((first, rest?))
}

/// What is in a quoted string, escapes and all; `None` if it is none.
pub(super) fn inner(text: &[u8]) -> Option<&[u8]> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut escaped = false;
    for byte in inner {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return None,
            _ => {}
        }
    }
    (!escaped).then_some(inner)
}

fn is_quoted(text: &[u8]) -> bool {
    inner(text).is_some()
}

/// Without escapes.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut escaped = false;
    for byte in text {
        escaped = *byte == b'\\' && !escaped;
        if !escaped {
            plain.push(*byte);
        }
    }
    Cow::Owned(plain)
}

/// What a token or a quoted string means.
pub(super) fn unquote(text: &[u8]) -> Cow<'_, [u8]> {
    inner(text).map_or(Cow::Borrowed(text), unescape)
}

/// Puts `text` as a quoted string.
pub(super) fn put_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// A number as HTTP writes it, without zeros before it.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let is_canonical = text == b"0" || text.first().is_some_and(|first| *first != b'0');
    if !is_canonical || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

/// A weight in thousandths (RFC 9110 §12.4.2).
pub(super) fn weight(text: &[u8]) -> Option<u16> {
    let (first, rest) = text.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] if digits.len() <= 3 => digits,
        _ => return None,
    };
    if !matches!(first, b'0' | b'1') || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| digits.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    let weight = u16::from(first - b'0') * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    (weight <= 1000).then_some(weight)
}
