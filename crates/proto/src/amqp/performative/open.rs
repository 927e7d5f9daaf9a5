//! Open (AMQP 1.0 Part 2 §2.7.1).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, Symbol, required};

/// Who a peer is and what it takes on the whole connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The name of the container.
    pub container_id: String,
    /// The host that the peer wants to speak to.
    pub hostname: Option<String>,
    /// Longest frame that it takes, in bytes.
    pub max_frame_size: u32,
    /// The greatest channel that it takes.
    pub channel_max: u16,
    /// It gives up when nothing comes for so long, in milliseconds.
    pub idle_time_out_ms: Option<u32>,
    /// Languages in which it can say errors.
    pub outgoing_locales: Vec<Symbol>,
    /// Languages in which it wants errors.
    pub incoming_locales: Vec<Symbol>,
    /// Extensions that the peer may use.
    pub offered_capabilities: Vec<Symbol>,
    /// Extensions that it would use.
    pub desired_capabilities: Vec<Symbol>,
    /// More about it.
    pub properties: Map,
}

impl Open {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x10;

    /// One of a container that takes everything.
    #[must_use]
    pub fn new(container_id: &str) -> Self {
        Self {
            container_id: container_id.to_owned(),
            hostname: None,
            max_frame_size: u32::MAX,
            channel_max: u16::MAX,
            idle_time_out_ms: None,
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Map::new(),
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of open")?;
        let open = Self {
            container_id: required(fields.string()?, "open without container-id")?,
            hostname: fields.string()?,
            max_frame_size: fields.uint()?.unwrap_or(u32::MAX),
            channel_max: fields.ushort()?.unwrap_or(u16::MAX),
            idle_time_out_ms: fields.uint()?,
            outgoing_locales: fields.symbols()?,
            incoming_locales: fields.symbols()?,
            offered_capabilities: fields.symbols()?,
            desired_capabilities: fields.symbols()?,
            properties: fields.map()?,
        };
        fields.finish()?;
        Ok(open)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .string(Some(&self.container_id))
            .string(self.hostname.as_deref())
            .uint((self.max_frame_size != u32::MAX).then_some(self.max_frame_size))
            .ushort((self.channel_max != u16::MAX).then_some(self.channel_max))
            .uint(self.idle_time_out_ms)
            .symbols(&self.outgoing_locales)
            .symbols(&self.incoming_locales)
            .symbols(&self.offered_capabilities)
            .symbols(&self.desired_capabilities)
            .map(&self.properties)
            .finish(Self::DESCRIPTOR, out);
    }
}
