//! References, line ends and normalisation of values (XML 1.0 §2.11, §3.3.3, §4.1).

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
    while let Some(at) = rest.find(['&', '\r', '\n', '\t']) {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        match rest.as_bytes()[at] {
            b'&' => {
                let end = behind.find(';').unwrap_or(behind.len());
                if let Some(Reference::Char(char)) = reference(&behind[..end]) {
                    out.push(char);
                }
                rest = behind.get(end + 1..).unwrap_or("");
            }
            byte => {
                let line_end = byte == b'\r';
                out.push(match byte {
                    _ if value => ' ',
                    b'\t' => '\t',
                    _ => '\n',
                });
                let feed = if line_end { behind.strip_prefix('\n') } else { None };
                rest = feed.unwrap_or(behind);
            }
        }
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
    while let Some((before, section)) = rest.split_once("<![CDATA[") {
        resolve_into(before, false, &mut out);
        let (inside, behind) = section.split_once("]]>").unwrap_or((section, ""));
        line_ends_into(inside, &mut out);
        rest = behind;
    }
    resolve_into(rest, false, &mut out);
    out
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
