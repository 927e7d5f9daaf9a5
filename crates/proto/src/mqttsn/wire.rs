//! A slice that is read from its begin, and one that is filled.

use crate::Error;

/// What is left of a message.
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

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        let (first, rest) = self.rest.split_first().ok_or(Error::Truncated { what })?;
        self.rest = rest;
        Ok(*first)
    }

    /// Two octets, the high one first (MQTT-SN 1.2 §5.3).
    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        let (two, rest) = self.rest.split_first_chunk().ok_or(Error::Truncated { what })?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*two))
    }

    pub(super) fn two(&mut self, what: &'static str) -> Result<[u8; 2], Error> {
        Ok(self.u16(what)?.to_be_bytes())
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// All that is left, which is text.
    pub(super) fn text(&mut self, what: &'static str) -> Result<&'a str, Error> {
        let bytes = self.rest();
        std::str::from_utf8(bytes)
            .map_err(|error| Error::Peer { what, value: error.valid_up_to() as u64 })
    }

    /// Refuses what stands behind the last field.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(Error::Peer { what: "octets behind the last field", value: more as u64 }),
        }
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

    pub(super) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Octets written; [`Error::Limit`] has those needed as its value where there was less room.
    pub(super) fn finish(self) -> Result<usize, Error> {
        let (value, limit) = (self.len as u64, self.room.len() as u64);
        if value > limit {
            return Err(Error::Limit { what: "a message of MQTT-SN in bytes", value, limit });
        }
        Ok(self.len)
    }
}
