//! Items into bytes.

use crate::Error;

use super::{
    Major, NULL, Shortest,
    head::{HeadBytes, head},
    shortest,
};

/// Where encoded bytes go.
pub trait Sink {
    /// Takes all of `bytes`, or says why not.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error>;
}

/// A slice of the caller's that is filled from its begin.
#[derive(Debug)]
pub struct Slice<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl<'a> Slice<'a> {
    /// Nothing written yet.
    pub fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0 }
    }

    /// Bytes written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Sink for Slice<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let end = self.len.saturating_add(bytes.len());
        let limit = self.room.len() as u64;
        let room = self.room.get_mut(self.len..end).ok_or(Error::Limit {
            what: "encoded CBOR in bytes",
            value: end as u64,
            limit,
        })?;
        room.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

/// For callers that have an allocator; it bounds nothing.
impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl<S: Sink> Sink for &mut S {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        (**self).put(bytes)
    }
}

/// Writes items. Heads and [`Encoder::float`] take their shortest form, so that what is written is
/// core deterministic (RFC 8949 §4.2.1) if the caller also sorts keys and uses no `start_`.
///
/// That arrays, maps, tags and strings get what they announce is the caller's part.
#[derive(Debug)]
pub struct Encoder<S> {
    sink: S,
}

impl<S: Sink> Encoder<S> {
    /// Writes to `sink`; errors are the sink's.
    pub fn new(sink: S) -> Self {
        Self { sink }
    }

    /// What was written to.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn head(&mut self, major: Major, argument: u64) -> Result<(), Error> {
        let bytes: HeadBytes = head(major, argument);
        self.sink.put(&bytes)
    }

    /// A number from 0 to 2^64 − 1.
    pub fn unsigned(&mut self, value: u64) -> Result<(), Error> {
        self.head(Major::Unsigned, value)
    }

    /// The number −1 − `argument`.
    pub fn negative(&mut self, argument: u64) -> Result<(), Error> {
        self.head(Major::Negative, argument)
    }

    /// A number of either sign.
    pub fn integer(&mut self, value: i64) -> Result<(), Error> {
        // RFC 8949 §3.1: −1 − n, which is the complement.
        let argument = if value < 0 { !value } else { value };
        let major = if value < 0 { Major::Negative } else { Major::Unsigned };
        self.head(major, argument.unsigned_abs())
    }

    /// A byte string.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.head(Major::Bytes, bytes.len() as u64)?;
        self.sink.put(bytes)
    }

    /// A text string.
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        self.head(Major::Text, text.len() as u64)?;
        self.sink.put(text.as_bytes())
    }

    /// An array: `len` items follow.
    pub fn array(&mut self, len: u64) -> Result<(), Error> {
        self.head(Major::Array, len)
    }

    /// A map: `len` keys follow, each with its value.
    pub fn map(&mut self, len: u64) -> Result<(), Error> {
        self.head(Major::Map, len)
    }

    /// The tag of the item that follows.
    pub fn tag(&mut self, tag: u64) -> Result<(), Error> {
        self.head(Major::Tag, tag)
    }

    /// Byte strings follow as chunks of one, then [`Encoder::end`].
    pub fn start_bytes(&mut self) -> Result<(), Error> {
        self.sink.put(&[0x5f])
    }

    /// Text strings follow as chunks of one, then [`Encoder::end`].
    pub fn start_text(&mut self) -> Result<(), Error> {
        self.sink.put(&[0x7f])
    }

    /// Items of an array follow, then [`Encoder::end`].
    pub fn start_array(&mut self) -> Result<(), Error> {
        self.sink.put(&[0x9f])
    }

    /// Keys and values of a map follow, then [`Encoder::end`].
    pub fn start_map(&mut self) -> Result<(), Error> {
        self.sink.put(&[0xbf])
    }

    /// The break behind what a `start_` began (RFC 8949 §3.2.1).
    pub fn end(&mut self) -> Result<(), Error> {
        self.sink.put(&[0xff])
    }

    /// A simple value; 24 to 31 do not exist (RFC 8949 §3.3).
    pub fn simple(&mut self, value: u8) -> Result<(), Error> {
        match value {
            0..=23 => self.sink.put(&[0xe0 | value]),
            24..=31 => Err(Error::Caller { what: "simple values from 24 to 31 do not exist" }),
            _ => self.sink.put(&[0xf8, value]),
        }
    }

    /// `false` or `true`.
    pub fn boolean(&mut self, value: bool) -> Result<(), Error> {
        self.simple(if value { super::TRUE } else { super::FALSE })
    }

    /// `null`.
    pub fn null(&mut self) -> Result<(), Error> {
        self.simple(NULL)
    }

    /// A float in the shortest form that keeps its value (RFC 8949 §4.2.2).
    pub fn float(&mut self, value: f64) -> Result<(), Error> {
        match shortest(value) {
            Shortest::Half(bits) => self.half(bits),
            Shortest::Single(bits) => self.single(bits),
            Shortest::Double(bits) => self.double(bits),
        }
    }

    /// A float of 16 bits, whatever its value.
    pub fn half(&mut self, bits: u16) -> Result<(), Error> {
        self.sink.put(&[0xf9])?;
        self.sink.put(&bits.to_be_bytes())
    }

    /// A float of 32 bits, whatever its value.
    pub fn single(&mut self, bits: u32) -> Result<(), Error> {
        self.sink.put(&[0xfa])?;
        self.sink.put(&bits.to_be_bytes())
    }

    /// A float of 64 bits, whatever its value.
    pub fn double(&mut self, bits: u64) -> Result<(), Error> {
        self.sink.put(&[0xfb])?;
        self.sink.put(&bits.to_be_bytes())
    }
}
