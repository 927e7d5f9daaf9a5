//! States of deliveries (AMQP 1.0 Part 3 §3.4), the last of which are outcomes.

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Symbol, Value, encode, required};

use super::error::ErrorInfo;
use super::number;

/// What is known of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryState {
    /// So much of it is there (§3.4.1): no outcome.
    Received {
        /// The section.
        section_number: u32,
        /// The byte within it.
        section_offset: u64,
    },
    /// It was taken (§3.4.2).
    Accepted,
    /// It is no good, and nobody will take it (§3.4.3).
    Rejected(Option<ErrorInfo>),
    /// It was not looked at, and others may have it (§3.4.4).
    Released,
    /// It was not taken (§3.4.5).
    Modified {
        /// Whether this counts as an attempt.
        delivery_failed: bool,
        /// Whether the same receiver is not to get it again.
        undeliverable_here: bool,
        /// Annotations that the message gets.
        message_annotations: Map,
    },
    /// One that is not of Part 3, such as those of transactions.
    Other(Value),
}

/// Numbers of the descriptors of outcomes (AMQP 1.0 Part 3 §3.4).
const RECEIVED: u64 = 0x23;
const ACCEPTED: u64 = 0x24;
const REJECTED: u64 = 0x25;
const RELEASED: u64 = 0x26;
const MODIFIED: u64 = 0x27;

impl DeliveryState {
    /// Whether nothing can come of the delivery any more.
    #[must_use]
    pub fn is_outcome(&self) -> bool {
        !matches!(self, Self::Received { .. } | Self::Other(_))
    }

    /// The symbols of the outcomes that sources name (§3.5.3).
    #[must_use]
    pub fn symbols() -> Vec<Symbol> {
        ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"]
            .map(Symbol::new)
            .to_vec()
    }

    pub(super) fn of(fields: &mut Fields<'_>) -> Result<Option<Self>, Error> {
        let Some(reader) = fields.reader()? else { return Ok(None) };
        let again = &mut reader.clone();
        let what = "a field of a delivery's state";
        let code = again.descriptor()?.as_ref().and_then(number);
        let state = match code {
            Some(RECEIVED) => {
                let mut fields = Fields::open(again, what)?;
                let section_number = required(fields.uint()?, "received without section-number")?;
                let section_offset = required(fields.ulong()?, "received without section-offset")?;
                fields.finish()?;
                Self::Received { section_number, section_offset }
            }
            Some(ACCEPTED) => {
                Fields::open(again, what)?.finish()?;
                Self::Accepted
            }
            Some(REJECTED) => {
                let mut fields = Fields::open(again, what)?;
                let error = ErrorInfo::of(&mut fields)?;
                fields.finish()?;
                Self::Rejected(error)
            }
            Some(RELEASED) => {
                Fields::open(again, what)?.finish()?;
                Self::Released
            }
            Some(MODIFIED) => {
                let mut fields = Fields::open(again, what)?;
                let delivery_failed = fields.boolean()?.unwrap_or(false);
                let undeliverable_here = fields.boolean()?.unwrap_or(false);
                let message_annotations = fields.map()?;
                fields.finish()?;
                Self::Modified { delivery_failed, undeliverable_here, message_annotations }
            }
            _ => return Ok(Some(Self::Other(reader.value()?))),
        };
        *reader = again.clone();
        Ok(Some(state))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let fields = &mut FieldsWriter::default();
        match self {
            Self::Received { section_number, section_offset } => {
                fields.uint(Some(*section_number)).ulong(Some(*section_offset));
                fields.finish(RECEIVED, out);
            }
            Self::Accepted => fields.finish(ACCEPTED, out),
            Self::Rejected(error) => {
                fields.with(error.as_ref(), ErrorInfo::encode).finish(REJECTED, out);
            }
            Self::Released => fields.finish(RELEASED, out),
            Self::Modified { delivery_failed, undeliverable_here, message_annotations } => {
                fields.flag(*delivery_failed).flag(*undeliverable_here).map(message_annotations);
                fields.finish(MODIFIED, out);
            }
            Self::Other(value) => encode(value, out),
        }
    }
}
