//! A slice that is read from its begin, and one that is filled.

use crate::Error;

/// Most octets of a uintvar: five hold the 32 bits that WAP-230 §8.1.2 allows.
const MAX_UINTVAR_BYTES: usize = 5;

/// What is left of a slice. Nothing is taken where an error is returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The next octet, which stays.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        let (first, rest) = self.rest.split_first().ok_or(Error::Truncated { what })?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn bytes(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Error::Truncated { what })?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Unsigned integer of two octets, the high one first.
    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        let bytes = self.bytes(2, what)?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u16::from(*byte)))
    }

    /// A uintvar (WAP-230 §8.1.2): seven bits an octet, the high bit on all but the last.
    pub(super) fn uintvar(&mut self, what: &'static str) -> Result<u32, Error> {
        let mut value = 0_u32;
        for (at, byte) in self.rest.iter().enumerate().take(MAX_UINTVAR_BYTES) {
            if value >> 25 != 0 {
                return Err(Error::Peer { what: "a uintvar over 32 bits", value: value.into() });
            }
            value = value << 7 | u32::from(byte & 0x7f);
            if *byte < 0x80 {
                self.rest = self.rest.get(at + 1..).unwrap_or(&[]);
                return Ok(value);
            }
        }
        match self.rest.len() {
            0..MAX_UINTVAR_BYTES => Err(Error::Truncated { what }),
            _ => Err(Error::Peer { what: "a uintvar over 5 octets", value: value.into() }),
        }
    }

    /// As many octets as the uintvar before them says.
    pub(super) fn counted(&mut self, what: &'static str) -> Result<&'a [u8], Error> {
        let mut ahead = *self;
        let len = ahead.len(what)?;
        let bytes = ahead.bytes(len, what)?;
        *self = ahead;
        Ok(bytes)
    }

    /// A uintvar that is a length.
    pub(super) fn len(&mut self, what: &'static str) -> Result<usize, Error> {
        let len = self.uintvar(what)?;
        Ok(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// Octets up to a zero, which is taken with them (WAP-230 §8.4.2.1, End-of-string).
    pub(super) fn terminated(&mut self, what: &'static str) -> Result<&'a [u8], Error> {
        let len = self.rest.iter().position(|byte| *byte == 0).ok_or(Error::Truncated { what })?;
        let text = self.bytes(len, what)?;
        self.byte(what)?;
        Ok(text)
    }
}

/// A slice of the caller's. What does not fit is counted all the same, so that an error says how
/// much room was needed.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0 }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(room) = self.room.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.len = end;
    }

    pub(super) fn uintvar(&mut self, value: u32) {
        self.put(uintvar(value, &mut [0; MAX_UINTVAR_BYTES]));
    }

    /// Puts a length; one over 32 bits is the caller's fault.
    pub(super) fn len(&mut self, len: usize) -> Result<(), Error> {
        let what = "a part of a PDU over 4 GiB";
        self.uintvar(u32::try_from(len).map_err(|_| Error::Caller { what })?);
        Ok(())
    }

    /// Octets written; [`Error::Limit`] has those needed as its value where there was less room.
    pub(super) fn finish(self, what: &'static str) -> Result<usize, Error> {
        let limit = self.room.len();
        if self.len > limit {
            return Err(Error::Limit { what, value: self.len as u64, limit: limit as u64 });
        }
        Ok(self.len)
    }
}

/// Writes `value` as a uintvar into `buffer` and returns what was written.
pub(super) fn uintvar(value: u32, buffer: &mut [u8; MAX_UINTVAR_BYTES]) -> &[u8] {
    let mut rest = value;
    let mut from = MAX_UINTVAR_BYTES;
    for (at, octet) in buffer.iter_mut().enumerate().rev() {
        let more = if at + 1 == MAX_UINTVAR_BYTES { 0 } else { 0x80 };
        *octet = rest.to_le_bytes()[0] & 0x7f | more;
        rest >>= 7;
        from = at;
        if rest == 0 {
            break;
        }
    }
    buffer.get(from..).unwrap_or(&[])
}
