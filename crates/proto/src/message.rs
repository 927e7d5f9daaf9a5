//! Envelopes of messages that are no HTTP: of what opens an exchange, and of what answers it.
//!
//! A relay carries them without knowing what they are. It needs what is said here: how often the
//! message may be delivered, what comes back, and by what its body is best encoded. The rest are
//! its properties, which its kind gives a meaning and nobody in between reads.
//!
//! ```text
//! 0x20, kind, flags, media type, target, operation, properties     what opens an exchange
//! 0x21, kind, flags, media type, properties                        what answers
//! ```
//!
//! Numbers are those of RFC 9000 §16; texts have their length before them, the properties are the
//! rest. The first byte is where binary HTTP has its framing indicator (RFC 9292 §3.3), none of
//! whose values is so great: whoever knows HTTP only refuses the exchange as a head that it cannot
//! read, and nothing else.

use bytes::Bytes;

use crate::bhttp::MAX_HEAD_BYTES;
use crate::{Error, varint};

/// Longest target, operation or media type, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;

const OPENING: u64 = 0x20;
const ANSWER: u64 = 0x21;
const REPEATABLE: u64 = 1;
const OUTCOME_ONLY: u64 = 2;
const PRIVATE: u64 = 4;
const CODED: u64 = 8;
const EXACT: u64 = 16;

/// How a message is delivered: at most once, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Delivering it twice does no harm: after a failure of which nobody knows the outcome it is
    /// sent again.
    pub repeatable: bool,
    /// Nothing comes back but that it was taken: an answer without a body.
    pub outcome_only: bool,
}

/// A message, in either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What its properties mean, as both ends have agreed.
    pub kind: u64,
    /// Media type of its body, with parameters; empty where it is not known.
    pub media: String,
    /// Its body is compressed or encrypted already.
    pub coded: bool,
    /// Every byte of its body has to come back.
    pub exact: bool,
    /// Nobody may keep any of it.
    pub private: bool,
    /// What its kind says of it, in bytes of the kind.
    pub properties: Bytes,
}

/// What opens an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The message.
    pub message: Message,
    /// How it is delivered.
    pub delivery: Delivery,
    /// Whatever names its service; messages of two services share nothing.
    pub target: String,
    /// What it is about, without what differs from one message to the next (a topic): those alike
    /// are encoded alike.
    pub operation: String,
}

impl Message {
    /// Appends it, as what answers.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.begin(ANSWER, 0, out);
        out.extend_from_slice(&self.properties);
    }

    /// Reads what answers.
    ///
    /// # Errors
    /// What is no such envelope; flags of a later version; texts that are not UTF-8 or over
    /// [`MAX_TEXT_BYTES`].
    pub fn decode(input: &[u8]) -> Result<Self, Error> {
        let mut rest = input;
        let (message, flags) = Self::take(ANSWER, &mut rest)?;
        match flags {
            0 => Ok(Self { properties: Bytes::copy_from_slice(rest), ..message }),
            value => Err(Error::Peer { what: "flags of an answer", value }),
        }
    }

    fn begin(&self, first: u64, more: u64, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u64| if set { bit } else { 0 };
        let flags =
            more | flag(self.private, PRIVATE) | flag(self.coded, CODED) | flag(self.exact, EXACT);
        for number in [first, self.kind, flags] {
            varint::encode(number, out);
        }
        varint::encode_bytes(self.media.as_bytes(), out);
    }

    /// What both have, without the properties, and the flags that are not of a message.
    fn take(first: u64, rest: &mut &[u8]) -> Result<(Self, u64), Error> {
        let (value, limit) = (rest.len() as u64, MAX_HEAD_BYTES as u64);
        if value > limit {
            return Err(Error::Limit { what: "the size of a head in bytes", value, limit });
        }
        match varint::decode(rest, "an envelope")? {
            is if is == first => {}
            value => return Err(Error::Peer { what: "an envelope of another sort", value }),
        }
        let kind = varint::decode(rest, "the kind of a message")?;
        let flags = varint::decode(rest, "flags of a message")?;
        let message = Self {
            kind,
            media: text(rest, "the media type")?,
            coded: flags & CODED != 0,
            exact: flags & EXACT != 0,
            private: flags & PRIVATE != 0,
            properties: Bytes::new(),
        };
        Ok((message, flags & !(CODED | EXACT | PRIVATE)))
    }
}

impl Opening {
    /// Whether this is such an envelope, and not a head in binary HTTP.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|first| u64::from(*first) == OPENING)
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Delivery { repeatable, outcome_only } = self.delivery;
        let flags =
            if repeatable { REPEATABLE } else { 0 } | if outcome_only { OUTCOME_ONLY } else { 0 };
        self.message.begin(OPENING, flags, out);
        varint::encode_bytes(self.target.as_bytes(), out);
        varint::encode_bytes(self.operation.as_bytes(), out);
        out.extend_from_slice(&self.message.properties);
    }

    /// Reads it.
    ///
    /// # Errors
    /// Those of [`Message::decode`].
    pub fn decode(input: &[u8]) -> Result<Self, Error> {
        let mut rest = input;
        let (message, flags) = Message::take(OPENING, &mut rest)?;
        if flags & !(REPEATABLE | OUTCOME_ONLY) != 0 {
            return Err(Error::Peer { what: "flags of a message", value: flags });
        }
        let delivery = Delivery {
            repeatable: flags & REPEATABLE != 0,
            outcome_only: flags & OUTCOME_ONLY != 0,
        };
        let (target, operation) = (text(&mut rest, "the target")?, text(&mut rest, "a topic")?);
        let message = Message { properties: Bytes::copy_from_slice(rest), ..message };
        Ok(Self { message, delivery, target, operation })
    }
}

fn text(rest: &mut &[u8], what: &'static str) -> Result<String, Error> {
    let bytes = varint::decode_bytes(rest, what)?;
    let (value, limit) = (bytes.len() as u64, MAX_TEXT_BYTES as u64);
    if value > limit {
        return Err(Error::Limit { what, value, limit });
    }
    let wrong =
        |error: std::str::Utf8Error| Error::Peer { what, value: error.valid_up_to() as u64 };
    str::from_utf8(bytes).map(str::to_owned).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bhttp;

    fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&mut out);
        out
    }

    fn opening() -> Opening {
        let properties = Bytes::from_static(b"properties");
        let message = Message {
            kind: 7,
            media: "text/xml".into(),
            exact: true,
            properties,
            ..Message::default()
        };
        let delivery = Delivery { repeatable: true, outcome_only: true };
        let (target, operation) = ("mqtt://broker".to_owned(), "tracks/air".to_owned());
        Opening { message, delivery, target, operation }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let bytes = encoded(|out| opening().encode(out));
        assert!(Opening::is_one(&bytes));
        assert_eq!(Opening::decode(&bytes).unwrap(), opening());
        let answer = Message { private: true, coded: true, ..opening().message };
        let bytes = encoded(|out| answer.encode(out));
        assert_eq!(Message::decode(&bytes).unwrap(), answer);
        // That it was taken takes four bytes.
        let taken = Message { kind: 7, ..Message::default() };
        assert_eq!(encoded(|out| taken.encode(out)), [0x21, 7, 0, 0]);
    }

    /// So a peer of before refuses the exchange, and goes on.
    #[test]
    fn neither_is_taken_for_http_nor_http_for_it() {
        let bytes = encoded(|out| opening().encode(out));
        assert!(bhttp::Request::decode(&bytes).is_err() && Message::decode(&bytes).is_err());
        let bytes = encoded(|out| opening().message.encode(out));
        assert!(bhttp::Response::decode(&bytes).is_err() && Opening::decode(&bytes).is_err());
        let request = bhttp::Request { method: "GET".into(), ..Default::default() };
        let bytes = encoded(|out| request.encode(out));
        assert!(!Opening::is_one(&bytes) && Opening::decode(&bytes).is_err());
    }

    #[test]
    fn what_is_longer_than_it_may_be_or_of_a_later_version_is_refused() {
        let long = Opening { operation: "x".repeat(MAX_TEXT_BYTES + 1), ..opening() };
        let bytes = encoded(|out| long.encode(out));
        assert!(matches!(Opening::decode(&bytes), Err(Error::Limit { .. })));
        let mut bytes = encoded(|out| opening().encode(out));
        bytes[2] |= 32;
        assert!(matches!(Opening::decode(&bytes), Err(Error::Peer { .. })));
        let mut bytes = encoded(|out| opening().message.encode(out));
        bytes[2] |= 1;
        assert!(matches!(Message::decode(&bytes), Err(Error::Peer { .. })), "of an opening");
    }

    proptest! {
        #[test]
        fn junk_is_refused_or_read_as_it_would_be_written(first in 0x20..0x22_u8, junk: Vec<u8>) {
            let bytes = [&[first][..], &junk].concat();
            if let Ok(opening) = Opening::decode(&bytes) {
                let again = Opening::decode(&encoded(|out| opening.encode(out)));
                prop_assert_eq!(again.ok(), Some(opening));
            }
            if let Ok(message) = Message::decode(&bytes) {
                let again = Message::decode(&encoded(|out| message.encode(out)));
                prop_assert_eq!(again.ok(), Some(message));
            }
        }
    }
}
