//! Characters as bytes of a document's character set, and back (§5.6).

use std::borrow::Cow;

use proto::wbxml::charset;

/// A character set that documents can be written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8, which has all characters.
    #[default]
    Utf8,
    /// US-ASCII; other characters become entities.
    UsAscii,
    /// ISO-8859-1; other characters become entities.
    Iso8859_1,
    /// UTF-16, the high byte first, without a byte order mark.
    Utf16,
}

impl Charset {
    /// Its MIBenum (IANA).
    pub(super) fn number(self) -> u32 {
        match self {
            Self::Utf8 => charset::UTF_8,
            Self::UsAscii => charset::US_ASCII,
            Self::Iso8859_1 => charset::ISO_8859_1,
            Self::Utf16 => charset::UTF_16BE,
        }
    }

    /// Whether it has the character.
    pub(super) fn has(self, char: char) -> bool {
        match self {
            Self::Utf8 | Self::Utf16 => true,
            Self::UsAscii => char.is_ascii(),
            Self::Iso8859_1 => u32::from(char) < 0x100,
        }
    }

    /// Whether it has all characters.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Utf8 | Self::Utf16)
    }

    /// Bytes of the text with its terminator; the set has the text's characters.
    pub(super) fn terminated_len(self, text: &str) -> usize {
        match self {
            Self::Utf8 | Self::UsAscii => text.len() + 1,
            Self::Iso8859_1 => text.chars().count() + 1,
            Self::Utf16 => 2 * text.encode_utf16().count() + 2,
        }
    }

    /// Appends the text with its terminator; the set has the text's characters.
    pub(super) fn terminated(self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Utf8 | Self::UsAscii => out.extend_from_slice(text.as_bytes()),
            // Characters below U+0100 have the numbers that they have in ISO-8859-1.
            Self::Iso8859_1 => {
                out.extend(text.chars().map(|char| u32::from(char).to_le_bytes()[0]))
            }
            Self::Utf16 => {
                text.encode_utf16().for_each(|unit| out.extend_from_slice(&unit.to_be_bytes()));
                out.push(0);
            }
        }
        out.push(0);
    }
}

/// Whether [`decoded`] reads the set.
pub(super) fn is_read(number: u32) -> bool {
    use charset::{ISO_8859_1, UCS_2, UNKNOWN, US_ASCII, UTF_8, UTF_16, UTF_16BE, UTF_16LE};
    let read = [UNKNOWN, US_ASCII, ISO_8859_1, UTF_8, UCS_2, UTF_16BE, UTF_16LE, UTF_16];
    read.contains(&number)
}

/// Text of a set that [`is_read`]; `None` if these bytes are none.
pub(super) fn decoded(number: u32, bytes: &[u8]) -> Option<Cow<'_, str>> {
    let utf8 = || std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    match number {
        // Version 1.0 has no field, and 0 is unknown: UTF-8 is what XML would mean (§5.6).
        charset::UTF_8 | charset::UNKNOWN => utf8(),
        charset::US_ASCII if bytes.is_ascii() => utf8(),
        charset::ISO_8859_1 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        charset::UTF_16LE => wide(bytes, u16::from_le_bytes),
        charset::UCS_2 | charset::UTF_16BE => wide(bytes, u16::from_be_bytes),
        // RFC 2781 §4.3: as a mark says, else the high byte first.
        charset::UTF_16 => match bytes {
            [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
            _ => wide(bytes, u16::from_be_bytes),
        },
        _ => None,
    }
}

fn wide<'a>(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'a, str>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
    rest.is_empty().then_some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_in_each_set_that_has_them() {
        for set in [Charset::Utf8, Charset::UsAscii, Charset::Iso8859_1, Charset::Utf16] {
            for text in ["", "plain", "\u{e4}\u{ff}", "\u{20ac}", "\u{1f600}"] {
                if !text.chars().all(|char| set.has(char)) {
                    continue;
                }
                let mut bytes = Vec::new();
                set.terminated(text, &mut bytes);
                assert_eq!(bytes.len(), set.terminated_len(text));
                let end = bytes.len() - if set == Charset::Utf16 { 2 } else { 1 };
                assert_eq!(decoded(set.number(), &bytes[..end]).as_deref(), Some(text));
                assert!(is_read(set.number()));
            }
        }
    }

    #[test]
    fn marks_and_halves_of_utf_16() {
        assert_eq!(decoded(charset::UTF_16, b"\xff\xfea\0").as_deref(), Some("a"));
        assert_eq!(decoded(charset::UTF_16, b"\xfe\xff\0a").as_deref(), Some("a"));
        assert_eq!(decoded(charset::UTF_16, b"\0a").as_deref(), Some("a"));
        assert_eq!(decoded(charset::UTF_16BE, b"\0a\0"), None);
        assert_eq!(decoded(charset::UTF_16BE, b"\xd8\0"), None);
        assert_eq!(decoded(charset::US_ASCII, b"\xe4"), None);
        assert_eq!(decoded(17, b"a"), None);
        assert!(!is_read(17));
    }
}
