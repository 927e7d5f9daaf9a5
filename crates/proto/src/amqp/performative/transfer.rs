//! Transfer (AMQP 1.0 Part 2 §2.7.5).

use bytes::Bytes;

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Reader, required};

use super::attach::ReceiverSettleMode;
use super::outcome::DeliveryState;

/// Longest tag of a delivery in bytes (AMQP 1.0 Part 2 §2.8.7).
const MAX_TAG_BYTES: usize = 32;

/// A delivery, or a part of one; the bytes of the message follow it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// The link.
    pub handle: u32,
    /// The delivery's id within the session. The first transfer of a delivery has it.
    pub delivery_id: Option<u32>,
    /// What the link calls the delivery until it is settled. The first transfer has it.
    pub delivery_tag: Option<Bytes>,
    /// The format of the message: 0 is that of Part 3.
    pub message_format: Option<u32>,
    /// Whether the sender has settled already.
    pub settled: Option<bool>,
    /// Whether more of the message follows.
    pub more: bool,
    /// How the receiver is to settle this one.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// What the sender believes of it.
    pub state: Option<DeliveryState>,
    /// Whether it is one that was not settled before.
    pub resume: bool,
    /// Whether the sender gives the message up.
    pub aborted: bool,
    /// Whether the answer may wait for others.
    pub batchable: bool,
}

impl Transfer {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x14;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of transfer")?;
        let transfer = Self {
            handle: required(fields.uint()?, "transfer without handle")?,
            delivery_id: fields.uint()?,
            delivery_tag: fields.binary()?,
            message_format: fields.uint()?,
            settled: fields.boolean()?,
            more: fields.boolean()?.unwrap_or(false),
            rcv_settle_mode: fields.ubyte()?.map(ReceiverSettleMode::of).transpose()?,
            state: DeliveryState::of(&mut fields)?,
            resume: fields.boolean()?.unwrap_or(false),
            aborted: fields.boolean()?.unwrap_or(false),
            batchable: fields.boolean()?.unwrap_or(false),
        };
        fields.finish()?;
        match transfer.delivery_tag.as_ref().map(Bytes::len) {
            Some(len) if len > MAX_TAG_BYTES => {
                let (value, limit) = (len as u64, MAX_TAG_BYTES as u64);
                Err(Error::Limit { what: "delivery-tag in bytes", value, limit })
            }
            _ => Ok(transfer),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .uint(Some(self.handle))
            .uint(self.delivery_id)
            .binary(self.delivery_tag.as_deref())
            .uint(self.message_format)
            .boolean(self.settled)
            .flag(self.more)
            .ubyte(self.rcv_settle_mode.map(ReceiverSettleMode::code))
            .with(self.state.as_ref(), DeliveryState::encode)
            .flag(self.resume)
            .flag(self.aborted)
            .flag(self.batchable)
            .finish(Self::DESCRIPTOR, out);
    }
}
