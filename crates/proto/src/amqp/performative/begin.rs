//! Begin (AMQP 1.0 Part 2 §2.7.2).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, Symbol, required};

/// A session's end at the sender of this.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// The channel of the peer's begin that this one answers.
    pub remote_channel: Option<u16>,
    /// The id that its next transfer will have.
    pub next_outgoing_id: u32,
    /// Transfers that it takes.
    pub incoming_window: u32,
    /// Transfers that it may send.
    pub outgoing_window: u32,
    /// The greatest handle that it takes.
    pub handle_max: u32,
    /// Extensions that the peer may use.
    pub offered_capabilities: Vec<Symbol>,
    /// Extensions that it would use.
    pub desired_capabilities: Vec<Symbol>,
    /// More about it.
    pub properties: Map,
}

impl Begin {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x11;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of begin")?;
        let begin = Self {
            remote_channel: fields.ushort()?,
            next_outgoing_id: required(fields.uint()?, "begin without next-outgoing-id")?,
            incoming_window: required(fields.uint()?, "begin without incoming-window")?,
            outgoing_window: required(fields.uint()?, "begin without outgoing-window")?,
            handle_max: fields.uint()?.unwrap_or(u32::MAX),
            offered_capabilities: fields.symbols()?,
            desired_capabilities: fields.symbols()?,
            properties: fields.map()?,
        };
        fields.finish()?;
        Ok(begin)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .ushort(self.remote_channel)
            .uint(Some(self.next_outgoing_id))
            .uint(Some(self.incoming_window))
            .uint(Some(self.outgoing_window))
            .uint((self.handle_max != u32::MAX).then_some(self.handle_max))
            .symbols(&self.offered_capabilities)
            .symbols(&self.desired_capabilities)
            .map(&self.properties)
            .finish(Self::DESCRIPTOR, out);
    }
}
