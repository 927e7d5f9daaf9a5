//! Entity tags of HTTP, which have any length, as those of CoAP, which have eight bytes at most
//! (RFC 7252 §5.10.6), and back.
//!
//! A tag that is a number in hexadecimal, as proxies make them of a tag of CoAP (RFC 8075 §8.3),
//! stands for those bytes. Of any other the tag in CoAP is a hash, and the tag that it stands for
//! is remembered for a while. One that is forgotten matches nothing, which costs a transfer.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use codec::dictionary::Id;

/// Tags that are remembered; of more the oldest is forgotten.
const MAX_TAGS: usize = 1024;
/// Longest tag that is, in bytes; a longer one does not go on.
const MAX_TAG_BYTES: usize = 256;
/// Longest tag of CoAP, in bytes (RFC 7252 §5.10.6).
const MAX_SHORT_BYTES: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    of: BTreeMap<[u8; MAX_SHORT_BYTES], String>,
    by_age: VecDeque<[u8; MAX_SHORT_BYTES]>,
}

impl Tags {
    /// The tag of CoAP for one of HTTP, with its quotes and what makes it weak.
    pub(crate) fn shorten(&mut self, tag: &str) -> Option<Vec<u8>> {
        if tag.len() > MAX_TAG_BYTES || !is_tag(tag) {
            return None;
        }
        if let Some(bytes) = of_digits(tag) {
            return Some(bytes);
        }
        let short = Id::of(tag.as_bytes()).short();
        if self.of.insert(short, tag.to_owned()).is_none() {
            self.by_age.push_back(short);
        }
        if self.by_age.len() > MAX_TAGS
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.of.remove(&oldest);
        }
        Some(short.to_vec())
    }

    /// The tag of HTTP that one of CoAP stands for.
    pub(crate) fn lengthen(&self, short: &[u8]) -> String {
        let known = <[u8; MAX_SHORT_BYTES]>::try_from(short).ok();
        known.and_then(|short| self.of.get(&short).cloned()).unwrap_or_else(|| to_digits(short))
    }
}

/// A strong tag of HTTP that says these bytes (RFC 8075 §8.3).
pub(crate) fn to_digits(short: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in short {
        // Writing to a String cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

/// The bytes that a tag of hexadecimal digits says.
pub(crate) fn of_digits(tag: &str) -> Option<Vec<u8>> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let is_digits = digits.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    if !is_digits || digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let byte = |pair: &[u8]| Some(value(*pair.first()?)? << 4 | value(*pair.get(1)?)?);
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.filter(|bytes| bytes.len() <= MAX_SHORT_BYTES)
}

/// Whether this is a tag (RFC 9110 §8.8.3).
fn is_tag(tag: &str) -> bool {
    let opaque = tag.strip_prefix("W/").unwrap_or(tag);
    let inside = opaque.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    inside.is_some_and(|tag| tag.bytes().all(|b| b == 0x21 || (0x23..0x7f).contains(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_comes_back_as_it_was() {
        let mut tags = Tags::default();
        for tag in ["\"a\"", "W/\"5f3-60d\"", "\"0A\"", "\"000102030405060708\"", "\"\""] {
            let short = tags.shorten(tag).unwrap();
            assert_eq!(short.len(), 8, "{tag}");
            assert_eq!(tags.lengthen(&short), tag);
        }
        assert_eq!(tags.shorten("\"00ff\"").unwrap(), [0, 0xff]);
        assert_eq!(tags.lengthen(&[0, 0xff]), "\"00ff\"");
        for tag in ["a", "\"a", "\"a b\"", "W/a", "w/\"a\""] {
            assert_eq!(tags.shorten(tag), None, "{tag}");
        }
        assert_eq!(tags.shorten(&format!("\"{}\"", "x".repeat(MAX_TAG_BYTES))), None);
    }

    #[test]
    fn the_oldest_is_forgotten_and_then_matches_nothing() {
        let mut tags = Tags::default();
        let first = tags.shorten("\"x\"").unwrap();
        for number in 0..MAX_TAGS {
            assert!(tags.shorten(&format!("\"x-{number}\"")).is_some());
            assert!(tags.shorten(&format!("\"x-{number}\"")).is_some());
        }
        assert_eq!((tags.of.len(), tags.by_age.len()), (MAX_TAGS, MAX_TAGS));
        assert_eq!(tags.lengthen(&first), to_digits(&first));
    }
}
