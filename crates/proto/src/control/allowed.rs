//! What edges may reach, as a gateway announces it: CONTROL of kind 18.
//!
//! The content is one pattern after another, as in the gateway's allow list, each with its length
//! before it. An edge refuses at once what none of them can mean, and asks for the rest, which
//! the gateway decides. A content without patterns takes back what was announced before; so
//! does one that cannot be read. It holds for the carrier that it came on.

use bytes::Bytes;

use crate::exchange::Part;
use crate::{Error, varint};

/// Longest content, in bytes: it goes with each carrier, and at 2.4 kbit/s takes some seconds.
const MAX_BYTES: usize = 1024;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Empty where no list is announced.
    pub patterns: Vec<String>,
}

impl Allowed {
    /// Kind of the control part.
    pub const KIND: u64 = 18;

    /// What is announced of a list: all of it, or nothing where it is too long.
    #[must_use]
    pub fn of(patterns: Vec<String>) -> Self {
        let bytes: usize = patterns.iter().map(|pattern| wire_len(pattern)).sum();
        let is_sent = bytes <= MAX_BYTES && patterns.iter().all(|pattern| !pattern.is_empty());
        Self { patterns: if is_sent { patterns } else { Vec::new() } }
    }

    /// As it is sent.
    #[must_use]
    pub fn part(&self) -> Part {
        let mut content = Vec::new();
        for pattern in &self.patterns {
            varint::encode(pattern.len() as u64, &mut content);
            content.extend_from_slice(pattern.as_bytes());
        }
        Part::Control(Self::KIND, Bytes::from(content))
    }

    /// Reads the content of a control part of this kind. Errors: more than is ever sent, a pattern
    /// that is empty, cut short or no text.
    pub fn decode(mut content: &[u8]) -> Result<Self, Error> {
        if content.len() > MAX_BYTES {
            let (value, limit) = (content.len() as u64, MAX_BYTES as u64);
            return Err(Error::Limit { what: "the length of an allow list", value, limit });
        }
        let mut patterns = Vec::new();
        while !content.is_empty() {
            let len = varint::decode(&mut content, "the length of a pattern")?;
            let wrong = Error::Peer { what: "the length of a pattern:", value: len };
            let taken = usize::try_from(len).ok().filter(|len| *len > 0);
            let Some((pattern, rest)) = taken.and_then(|len| content.split_at_checked(len)) else {
                return Err(wrong);
            };
            let text = std::str::from_utf8(pattern);
            let what = "a pattern that is no text, of bytes:";
            patterns.push(text.map_err(|_| Error::Peer { what, value: len })?.to_owned());
            content = rest;
        }
        Ok(Self { patterns })
    }
}

fn wire_len(pattern: &str) -> usize {
    varint::encoded_len(pattern.len() as u64) + pattern.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(allowed: &Allowed) -> Bytes {
        let Part::Control(Allowed::KIND, content) = allowed.part() else { unreachable!() };
        content
    }

    #[test]
    fn a_list_that_is_too_long_is_not_sent() {
        let pattern = |len: usize| "x".repeat(len);
        let whole = Allowed::of(vec![pattern(509); 2]);
        assert_eq!((whole.patterns.len(), content(&whole).len()), (2, 1022));
        assert_eq!(Allowed::of(vec![pattern(511), pattern(511)]), Allowed::default());
        assert!(Allowed::decode(&[0; MAX_BYTES + 1]).is_err());
        for wrong in [&[0][..], &[2, b'x'], &[1, 0xff], &[0x40], &[0xff; 8]] {
            assert!(Allowed::decode(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Allowed::decode(&[]).unwrap(), Allowed::default());
    }

    proptest! {
        #[test]
        fn a_list_comes_back(patterns in prop::collection::vec(".{1,40}", 0..30), junk: Vec<u8>) {
            let allowed = Allowed::of(patterns);
            prop_assert_eq!(Allowed::decode(&content(&allowed)).unwrap(), allowed);
            if let Ok(read) = Allowed::decode(&junk) {
                prop_assert_eq!(Allowed::of(read.patterns.clone()), read);
            }
        }
    }
}
