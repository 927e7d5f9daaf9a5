//! Classes of characters (XML 1.0, fifth edition, §2.2, §2.3) and searches.

use memchr::memchr_iter;

/// Bytes that are looked at in a step.
const STEP: usize = 16;

/// The first byte at or behind `at` that `hit` accepts, or the end. A step has no branch for a
/// single byte, so that compilers use the processor's vectors.
#[inline(always)]
fn find(bytes: &[u8], mut at: usize, hit: impl Fn(u8) -> bool) -> usize {
    while let Some(step) = bytes.get(at..).and_then(|rest| rest.first_chunk::<STEP>()) {
        let mut hits = [0; STEP];
        for (to, byte) in hits.iter_mut().zip(step) {
            *to = u8::from(hit(*byte)).wrapping_neg();
        }
        // In this form the step stays one of vectors.
        let hits = u128::from_le_bytes(hits);
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += STEP;
    }
    while bytes.get(at).is_some_and(|next| !hit(*next)) {
        at += 1;
    }
    at
}

/// Where character data stops to be plain: `<`, `&`, a carriage return, or `]`.
#[inline]
pub(super) fn text_end(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, |byte| (byte == b'<') | (byte == b'&') | (byte == b'\r') | (byte == b']'))
}

/// Where an attribute's value stops to be plain: its quote, `<`, `&`, or a control character.
#[inline]
pub(super) fn value_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    find(bytes, at, |byte| (byte == quote) | (byte == b'<') | (byte == b'&') | (byte < 0x20))
}

/// Where the first byte is that text escapes.
#[inline]
pub(super) fn text_escape(bytes: &[u8]) -> usize {
    find(bytes, 0, |byte| (byte == b'<') | (byte == b'&') | (byte == b'>') | (byte == b'\r'))
}

/// Where the first byte is that an attribute's value in double quotes escapes.
#[inline]
pub(super) fn value_escape(bytes: &[u8]) -> usize {
    find(bytes, 0, |byte| {
        let white = (byte == b'\t') | (byte == b'\n') | (byte == b'\r');
        white | (byte == b'<') | (byte == b'&') | (byte == b'"')
    })
}

const fn name_bytes() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.' | 0x80..);
        if byte == 0xff {
            return table;
        }
        byte += 1;
    }
}

static NAME_BYTES: [bool; 256] = name_bytes();

/// Whether a byte may be in a name; names are looked at more closely when they are first met.
#[inline]
pub(super) fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

/// Where a name that begins at `at` ends; what it is made of is for [`is_name`].
#[inline]
pub(super) fn name_end(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, |byte| {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        // From the hyphen to the colon all belong to names but the slash.
        let other = (byte.wrapping_sub(b'-') < 14) & (byte != b'/');
        !(letter | other | (byte == b'_') | (byte >= 0x80))
    })
}

/// `S`, production 3.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The first byte at or behind `at` that is not white space.
#[inline]
pub(super) fn space_end(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_space(*byte)) {
        at += 1;
    }
    at
}

/// Where the first `?>` stands.
pub(super) fn instruction_end(bytes: &[u8]) -> Option<usize> {
    // A search for two bytes takes longer to set up than most instructions to read.
    let mut ends = memchr_iter(b'>', bytes).filter_map(|at| at.checked_sub(1));
    ends.find(|at| bytes[*at] == b'?')
}

/// `Char`, production 2.
pub(super) fn is_char(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// `NameStartChar`, production 4.
fn is_name_start(char: char) -> bool {
    matches!(char,
        ':' | '_' | 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// `NameChar`, production 4a.
fn is_name_char(char: char) -> bool {
    is_name_start(char)
        || matches!(char,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// `Name`, production 5.
fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(is_name_start) && text.chars().all(is_name_char)
}

/// `Nmtoken`, production 7.
pub(super) fn is_nm_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_char)
}

/// `NCName` (Namespaces in XML 1.0, production 4).
#[must_use]
pub fn is_nc_name(text: &str) -> bool {
    let start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let plain = |byte: &u8| byte.is_ascii() && is_name_byte(*byte) && *byte != b':';
    // Nearly all names need no look at their characters.
    let bytes = text.as_bytes();
    (bytes.first().is_some_and(start) && bytes.iter().all(plain))
        || (is_name(text) && !text.contains(':'))
}

/// [`is_nc_name`] of what [`name_end`] found, or of a part of it that has no colon: in ASCII only
/// the first byte is left to look at.
pub(super) fn is_nc_part(text: &str) -> bool {
    let first = text.as_bytes().first();
    let start = first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    (start && text.is_ascii()) || is_nc_name(text)
}

/// Whether `text` is a name with at most one colon (Namespaces in XML 1.0, production 7).
#[must_use]
pub fn is_qname(text: &str) -> bool {
    match text.split_once(':') {
        Some((prefix, local)) => is_nc_name(prefix) && is_nc_name(local),
        None => is_nc_name(text),
    }
}

/// Whether all characters of `text` may stand in a document.
#[must_use]
pub fn is_text(text: &str) -> bool {
    forbidden(text.as_bytes()).is_none()
}

/// Where the first character is that no document may have.
pub(super) fn forbidden(bytes: &[u8]) -> Option<usize> {
    // One pass without branches first: nearly all text has neither kind.
    let suspect = |byte: u8| {
        (byte < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r') | (byte == 0xef)
    };
    if !bytes.iter().fold(false, |found, byte| found | suspect(*byte)) {
        return None;
    }
    (0..bytes.len()).find(|at| match bytes[*at] {
        // U+FFFE and U+FFFF.
        0xef => matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf])),
        byte => suspect(byte),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_at_each_byte_that_it_may_not_have() {
        for byte in 0..=u8::MAX {
            for before in [0, 3, 15, 16, 40] {
                let mut bytes = vec![b'n'; before];
                bytes.push(byte);
                bytes.resize(before + 20, b'>');
                let end = before + usize::from(is_name_byte(byte));
                assert_eq!(name_end(&bytes, 0), end, "{byte:#x} behind {before}");
            }
        }
    }

    #[test]
    fn a_search_finds_the_first_hit_wherever_it_stands() {
        for len in 0..50 {
            let mut bytes = vec![b'x'; len];
            assert_eq!(text_end(&bytes, 0), len);
            for at in (0..len).rev() {
                bytes[at] = b'&';
                assert_eq!((text_end(&bytes, 0), value_end(&bytes, 0, b'"')), (at, at));
                assert_eq!((text_escape(&bytes), value_escape(&bytes)), (at, at));
            }
        }
    }
}
