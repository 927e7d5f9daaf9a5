//! Disposition (AMQP 1.0 Part 2 §2.7.6).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Reader, required};

use super::attach::Role;
use super::outcome::DeliveryState;

/// What became of deliveries of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Disposition {
    /// Which end the sender of this is.
    pub role: Role,
    /// The first delivery's id.
    pub first: u32,
    /// The last one's, if there are more.
    pub last: Option<u32>,
    /// Whether the sender of this has settled them.
    pub settled: bool,
    /// What became of them.
    pub state: Option<DeliveryState>,
    /// Whether the answer may wait for others.
    pub batchable: bool,
}

impl Disposition {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x15;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of disposition")?;
        let disposition = Self {
            role: Role::of(required(fields.boolean()?, "disposition without role")?),
            first: required(fields.uint()?, "disposition without first")?,
            last: fields.uint()?,
            settled: fields.boolean()?.unwrap_or(false),
            state: DeliveryState::of(&mut fields)?,
            batchable: fields.boolean()?.unwrap_or(false),
        };
        fields.finish()?;
        Ok(disposition)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .boolean(Some(self.role == Role::Receiver))
            .uint(Some(self.first))
            .uint(self.last)
            .flag(self.settled)
            .with(self.state.as_ref(), DeliveryState::encode)
            .flag(self.batchable)
            .finish(Self::DESCRIPTOR, out);
    }
}
