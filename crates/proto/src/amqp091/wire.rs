//! Arguments of methods and properties, one after the other (AMQP 0.9.1 §4.2.5).

use crate::Error;

/// Longest short string in bytes (AMQP 0.9.1 §4.2.5.3).
pub const MAX_SHORT_BYTES: usize = 255;

/// Takes arguments off the front of a payload. Bits that follow each other share octets.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    bits: u8,
    bits_used: u8,
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest, bits: 0, bits_used: 0 }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        self.bits_used = 0;
        let truncated = Error::Truncated { what: "an AMQP field" };
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| Error::Truncated { what: "an AMQP field" })
    }

    /// Nothing may be left.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            left => {
                Err(Error::Peer { what: "bytes after the last AMQP field", value: left as u64 })
            }
        }
    }

    // AMQP 0.9.1 §4.2.5.2: bits that follow each other fill an octet from its lowest bit on.
    fn bit(&mut self) -> Result<bool, Error> {
        if self.bits_used.is_multiple_of(8) {
            [self.bits] = self.array()?;
        }
        let bit = self.bits >> (self.bits_used % 8) & 1;
        self.bits_used = self.bits_used % 8 + 1;
        Ok(bit == 1)
    }
}

/// Appends arguments.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    bits_used: u8,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, bits_used: 0 }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bits_used = 0;
        self.out.extend_from_slice(bytes);
    }

    fn bit(&mut self, bit: bool) {
        if self.bits_used.is_multiple_of(8) {
            self.out.push(0);
        }
        if let Some(last) = self.out.last_mut() {
            *last |= u8::from(bit) << (self.bits_used % 8);
        }
        self.bits_used = self.bits_used % 8 + 1;
    }
}

/// What an argument can be.
pub(super) trait Field<'a>: Sized {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error>;
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error>;
}

impl<'a> Field<'a> for bool {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        reader.bit()
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bit(*self);
        Ok(())
    }
}

macro_rules! integers {
    ($($type:ty)*) => { $(
        impl<'a> Field<'a> for $type {
            fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
                reader.array().map(Self::from_be_bytes)
            }

            fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                writer.put(&self.to_be_bytes());
                Ok(())
            }
        }
    )* };
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

/// A short string: UTF-8 without a zero (AMQP 0.9.1 §4.2.5.3).
impl<'a> Field<'a> for &'a str {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let len = u8::take(reader)?;
        let bytes = reader.take(len.into())?;
        let bad = Error::Peer { what: "short string of AMQP is not UTF-8", value: len.into() };
        let text = std::str::from_utf8(bytes).map_err(|_| bad)?;
        if text.contains('\0') {
            return Err(Error::Peer { what: "zero in a short string of AMQP", value: 0 });
        }
        Ok(text)
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let caller = Error::Caller { what: "a short string of AMQP has at most 255 bytes" };
        let len = u8::try_from(self.len()).map_err(|_| caller)?;
        writer.put(&[len]);
        writer.put(self.as_bytes());
        Ok(())
    }
}

/// A long string: any bytes (AMQP 0.9.1 §4.2.5.3).
impl<'a> Field<'a> for &'a [u8] {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let len = u32::take(reader)?;
        reader.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        let caller = Error::Caller { what: "a long string of AMQP has at most 4 GiB" };
        let len = u32::try_from(self.len()).map_err(|_| caller)?;
        len.put(writer)?;
        writer.put(self);
        Ok(())
    }
}
