//! The header of a message (AMQP 1.0 Part 3 §3.2.1).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Reader};

use super::HEADER;

/// The priority of messages that say none.
pub const DEFAULT_PRIORITY: u8 = 4;

/// How a message is on its way; each hop may change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether it is to survive a restart.
    pub durable: bool,
    /// From 0, the least, to 9; more means as much as 9.
    pub priority: u8,
    /// So long it is of use, in milliseconds.
    pub ttl_ms: Option<u32>,
    /// Whether nobody had it before.
    pub first_acquirer: bool,
    /// Attempts before, that failed.
    pub delivery_count: u32,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            durable: false,
            priority: DEFAULT_PRIORITY,
            ttl_ms: None,
            first_acquirer: false,
            delivery_count: 0,
        }
    }
}

impl Header {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of header")?;
        let header = Self {
            durable: fields.boolean()?.unwrap_or(false),
            priority: fields.ubyte()?.unwrap_or(DEFAULT_PRIORITY),
            ttl_ms: fields.uint()?,
            first_acquirer: fields.boolean()?.unwrap_or(false),
            delivery_count: fields.uint()?.unwrap_or(0),
        };
        fields.finish()?;
        Ok(header)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .flag(self.durable)
            .ubyte((self.priority != DEFAULT_PRIORITY).then_some(self.priority))
            .uint(self.ttl_ms)
            .flag(self.first_acquirer)
            .uint((self.delivery_count > 0).then_some(self.delivery_count))
            .finish(HEADER, out);
    }
}
