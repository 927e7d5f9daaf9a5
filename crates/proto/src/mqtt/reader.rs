//! A place in the bytes of a packet.

use bytes::{Buf, Bytes};

use super::refused::Refused;
use super::text::{Text, check};

/// What is left to read of a packet.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    rest: Bytes,
}

impl Reader {
    /// All of these bytes are to be read.
    pub(super) fn new(rest: Bytes) -> Self {
        Self { rest }
    }

    /// How many bytes are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether none is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, Refused> {
        let byte = *self.rest.first().ok_or(CUT)?;
        self.rest.advance(1);
        Ok(byte)
    }

    /// An integer of two bytes (MQTT 5 §1.5.2).
    pub(super) fn two(&mut self) -> Result<u16, Refused> {
        let bytes = *self.rest.first_chunk::<2>().ok_or(CUT)?;
        self.rest.advance(2);
        Ok(u16::from_be_bytes(bytes))
    }

    /// A packet identifier, which is never 0 (MQTT 5 §2.2.1, MQTT-2.2.1-3).
    pub(super) fn packet_id(&mut self) -> Result<u16, Refused> {
        match self.two()? {
            0 => Err(Refused::protocol("the packet identifier 0")),
            id => Ok(id),
        }
    }

    /// A variable byte integer of as few bytes as it can have (MQTT 5 §1.5.5).
    pub(super) fn varint(&mut self) -> Result<usize, Refused> {
        let (value, len) = varint(&self.rest)?;
        self.rest.advance(len);
        Ok(value)
    }

    /// So many bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<Bytes, Refused> {
        if len > self.rest.len() {
            return Err(CUT);
        }
        // Not `split_to` of nothing, which would still share the memory.
        Ok(if len == 0 { Bytes::new() } else { self.rest.split_to(len) })
    }

    /// Binary data (MQTT 5 §1.5.6).
    pub(super) fn binary(&mut self) -> Result<Bytes, Refused> {
        let len = self.two()?;
        self.take(len.into())
    }

    /// A string (MQTT 5 §1.5.4).
    pub(super) fn text(&mut self) -> Result<Text, Refused> {
        let bytes = self.binary()?;
        check(&bytes)?;
        Ok(Text::checked(bytes))
    }

    /// Refuses what is left over.
    pub(super) fn finish(&self) -> Result<(), Refused> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Refused::malformed("bytes after the end of a packet's content"))
    }
}

/// The refusal of a packet that is shorter than what it says.
pub(super) const CUT: Refused = Refused {
    reason: super::reason::Reason::MALFORMED_PACKET,
    what: "a packet that ends inside one of its fields",
};

/// A variable byte integer at the start of `bytes`, and how many bytes it has (MQTT 5 §1.5.5).
pub(super) fn varint(bytes: &[u8]) -> Result<(usize, usize), Refused> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            // MQTT-1.5.5-1: as few bytes as it can have.
            if at > 0 && *byte == 0 {
                return Err(Refused::malformed("an integer with more bytes than it needs"));
            }
            return Ok((value, at + 1));
        }
    }
    Err(if bytes.len() < 4 { CUT } else { Refused::malformed("an integer of over four bytes") })
}
