//! References, line ends and normalisation of values (XML 1.0 §2.11, §3.3.3, §4.1).

use memchr::{memchr, memmem};

use super::chars::is_char;

/// What a reference stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A character reference or one of the five.
    Char(char),
    /// Any other entity.
    General,
}

/// Reads the inside of a reference, between `&` and `;`; `None` if it cannot be one.
pub(super) fn reference(inside: &str) -> Option<Reference> {
    let char = match inside {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => match inside.strip_prefix('#') {
            Some(number) => numbered(number)?,
            None if super::chars::is_nc_name(inside) => return Some(Reference::General),
            None => return None,
        },
    };
    Some(Reference::Char(char))
}

fn numbered(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let digit = |byte: u8| char::from(byte).is_digit(radix);
    if digits.is_empty() || !digits.bytes().all(digit) {
        return None;
    }
    let char = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    is_char(char).then_some(char)
}

/// Appends `raw` with its references resolved, which were checked before. White space becomes a
/// space if `value` says that this is an attribute's (§3.3.3), else line ends become line feeds.
fn resolve_into(raw: &str, value: bool, out: &mut String) {
    let mut rest = raw;
    let special = |byte: &u8| match byte {
        b'&' | b'\r' => true,
        b'\n' | b'\t' => value,
        _ => false,
    };
    while let Some(at) = rest.as_bytes().iter().position(special) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if rest.as_bytes()[at] == b'&' {
            let end = memchr(b';', behind.as_bytes()).unwrap_or(behind.len());
            if let Some(Reference::Char(char)) = reference(&behind[..end]) {
                out.push(char);
            }
            rest = behind.get(end + 1..).unwrap_or("");
            continue;
        }
        out.push(if value { ' ' } else { '\n' });
        let pair = rest.as_bytes()[at] == b'\r' && behind.starts_with('\n');
        rest = &behind[usize::from(pair)..];
    }
    out.push_str(rest);
}

/// An attribute's value, normalised as of type CDATA (§3.3.3).
pub(super) fn value(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    resolve_into(raw, true, &mut out);
    out
}

/// Character data with its CDATA sections, which were checked before.
pub(super) fn content(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(begin) = find_section(rest) {
        resolve_into(&rest[..begin], false, &mut out);
        let section = &rest[begin + 9..];
        let end = memmem::find(section.as_bytes(), b"]]>").unwrap_or(section.len());
        line_ends_into(&section[..end], &mut out);
        rest = section.get(end + 3..).unwrap_or("");
    }
    resolve_into(rest, false, &mut out);
    out
}

/// In character data `<` begins nothing but a section.
fn find_section(raw: &str) -> Option<usize> {
    memchr(b'<', raw.as_bytes())
}

fn line_ends_into(raw: &str, out: &mut String) {
    let mut rest = raw;
    while let Some((before, behind)) = rest.split_once('\r') {
        out.push_str(before);
        out.push('\n');
        rest = behind.strip_prefix('\n').unwrap_or(behind);
    }
    out.push_str(rest);
}

/// Line ends as line feeds (§2.11).
pub(super) fn line_ends(raw: &str) -> std::borrow::Cow<'_, str> {
    if !raw.contains('\r') {
        return raw.into();
    }
    let mut out = String::with_capacity(raw.len());
    line_ends_into(raw, &mut out);
    out.into()
}
