//! Flow (AMQP 1.0 Part 2 §2.7.4).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, required};

/// What an end of a session, and of a link, takes and has.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The id of the transfer that it awaits next; none before it has seen the peer's begin.
    pub next_incoming_id: Option<u32>,
    /// Transfers that it takes.
    pub incoming_window: u32,
    /// The id that its next transfer will have.
    pub next_outgoing_id: u32,
    /// Transfers that it may send.
    pub outgoing_window: u32,
    /// The link that this is of as well.
    pub link: Option<LinkFlow>,
    /// Whether the peer is to answer with a flow.
    pub echo: bool,
    /// More about it.
    pub properties: Map,
}

/// The part of a flow that is of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFlow {
    /// The link.
    pub handle: u32,
    /// The sending end's count of deliveries, as the sender of this knows it.
    pub delivery_count: Option<u32>,
    /// Deliveries that the receiving end takes from that count on.
    pub link_credit: Option<u32>,
    /// Messages that the sending end has.
    pub available: Option<u32>,
    /// Whether the sending end is to send what it has, and to use up the rest of the credit.
    pub drain: bool,
}

impl Flow {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x13;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of flow")?;
        let mut flow = Self {
            next_incoming_id: fields.uint()?,
            incoming_window: required(fields.uint()?, "flow without incoming-window")?,
            next_outgoing_id: required(fields.uint()?, "flow without next-outgoing-id")?,
            outgoing_window: required(fields.uint()?, "flow without outgoing-window")?,
            link: None,
            echo: false,
            properties: Map::new(),
        };
        let handle = fields.uint()?;
        let link = LinkFlow {
            handle: handle.unwrap_or(0),
            delivery_count: fields.uint()?,
            link_credit: fields.uint()?,
            available: fields.uint()?,
            drain: fields.boolean()?.unwrap_or(false),
        };
        flow.echo = fields.boolean()?.unwrap_or(false);
        flow.properties = fields.map()?;
        fields.finish()?;
        // AMQP 1.0 Part 2 §2.7.4: of no link, it says nothing of a link.
        flow.link = handle.map(|_| link);
        Ok(flow)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let link = self.link.as_ref();
        FieldsWriter::default()
            .uint(self.next_incoming_id)
            .uint(Some(self.incoming_window))
            .uint(Some(self.next_outgoing_id))
            .uint(Some(self.outgoing_window))
            .uint(link.map(|link| link.handle))
            .uint(link.and_then(|link| link.delivery_count))
            .uint(link.and_then(|link| link.link_credit))
            .uint(link.and_then(|link| link.available))
            .flag(link.is_some_and(|link| link.drain))
            .flag(self.echo)
            .map(&self.properties)
            .finish(Self::DESCRIPTOR, out);
    }
}
