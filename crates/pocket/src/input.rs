//! A slice that is read from its begin.

use crate::Error;

/// A text before and behind a byte of ASCII.
pub(crate) fn split_at(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|other| other == byte)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// What is left of a slice. Nothing is taken where an error is returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, which stays.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        let (first, rest) = self.rest.split_first().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// An integer of WAP, of 32 bits at most (WAP-230 §8.1.2, WAP-192 §5.1).
    pub(crate) fn uintvar(&mut self) -> Result<usize, Error> {
        let mut value = 0_u32;
        for _ in 0..5 {
            let next = self.byte()?;
            if value >> 25 != 0 {
                break;
            }
            value = value << 7 | u32::from(next & 0x7f);
            if next < 0x80 {
                return usize::try_from(value).map_err(|_| Error::Malformed);
            }
        }
        Err(Error::Malformed)
    }

    /// As many bytes as the integer before them says.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Error> {
        let len = self.uintvar()?;
        self.bytes(len)
    }

    /// Bytes up to one that is `end`, which is taken with them.
    pub(crate) fn until(&mut self, end: u8) -> Result<&'a [u8], Error> {
        let len = self.rest.iter().position(|byte| *byte == end).ok_or(Error::Truncated)?;
        let bytes = self.bytes(len)?;
        self.byte()?;
        Ok(bytes)
    }

    /// Bytes that hold text.
    pub(crate) fn text(bytes: &'a [u8]) -> Result<&'a str, Error> {
        core::str::from_utf8(bytes).map_err(|_| Error::Malformed)
    }
}
