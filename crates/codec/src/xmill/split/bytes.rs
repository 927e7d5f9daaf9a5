//! Numbers and texts in a row of bytes.

use crate::xmill::outline::Broken;

/// Bytes of a number of the parts of a block.
const NUMBER_BYTES: usize = 4;

/// Writes a number, 7 bits a byte, the lowest first.
#[expect(clippy::cast_possible_truncation, reason = "seven bits")]
pub(in crate::xmill) fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7F) as u8);
}

/// Writes a number of either sign as [`put_number`] does, what is near 0 short.
pub(super) fn put_signed(number: i64, out: &mut Vec<u8>) {
    let mut number = (number << 1 ^ number >> 63).cast_unsigned();
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7F) as u8);
}

/// What of a slice was not yet read.
#[derive(Clone, Copy)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn byte(&mut self) -> Result<u8, Broken> {
        let (&byte, rest) = self.0.split_first().ok_or(Broken::Unknown)?;
        self.0 = rest;
        Ok(byte)
    }

    pub(super) fn number(&mut self) -> Result<usize, Broken> {
        let mut number = 0;
        for i in 0..NUMBER_BYTES {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7F) << (7 * i);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Broken::Unknown)
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Broken> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(Broken::Unknown)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Broken> {
        let mut number = 0_u64;
        for i in 0..10 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << (7 * i);
            if byte < 0x80 {
                return Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed());
            }
        }
        Err(Broken::Unknown)
    }

    /// Bytes with their length before them.
    pub(super) fn text(&mut self) -> Result<&'a [u8], Broken> {
        let len = self.number()?;
        self.take(len)
    }

    /// Bytes up to a zero, which is passed.
    pub(super) fn line(&mut self) -> Result<&'a [u8], Broken> {
        let len = memchr::memchr(0, self.0).ok_or(Broken::Unknown)?;
        let line = self.take(len)?;
        self.byte()?;
        Ok(line)
    }
}
