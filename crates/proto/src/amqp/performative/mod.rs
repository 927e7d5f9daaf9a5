//! Performatives, which frames begin with (AMQP 1.0 Part 2 §2.7), and the types in them
//! (Part 2 §2.8, Part 3 §3.4, §3.5).

mod attach;
mod begin;
pub mod condition;
mod disposition;
mod ends;
mod error;
mod flow;
mod open;
mod outcome;
mod terminus;
#[cfg(test)]
mod tests;
mod transfer;

use bytes::Bytes;

use super::types::{Reader, Value};
use crate::Error;

pub use attach::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
pub use begin::Begin;
pub use disposition::Disposition;
pub use ends::{Close, Detach, End};
pub use error::ErrorInfo;
pub use flow::{Flow, LinkFlow};
pub use open::Open;
pub use outcome::DeliveryState;
pub use terminus::{Durability, ExpiryPolicy, Source, Target, TargetKind};
pub use transfer::Transfer;

/// What a frame says.
#[derive(Clone, Debug, PartialEq)]
pub enum Performative {
    /// The connection begins (AMQP 1.0 Part 2 §2.7.1).
    Open(Box<Open>),
    /// A session begins (§2.7.2).
    Begin(Box<Begin>),
    /// A link is attached (§2.7.3).
    Attach(Box<Attach>),
    /// What the sender of this takes and has (§2.7.4).
    Flow(Box<Flow>),
    /// A part of a message (§2.7.5). The payload follows in the frame.
    Transfer(Box<Transfer>),
    /// What became of deliveries (§2.7.6).
    Disposition(Disposition),
    /// A link is detached (§2.7.7).
    Detach(Detach),
    /// A session ends (§2.7.8).
    End(End),
    /// The connection ends (§2.7.9).
    Close(Close),
}

impl Performative {
    /// What is in a frame, and the payload behind it, which only a transfer may have.
    pub fn decode(body: &Bytes) -> Result<(Self, Bytes), Error> {
        let reader = &mut Reader::new(body);
        let code = descriptor(reader, "descriptor of a performative")?;
        let performative = match code {
            Open::DESCRIPTOR => Self::Open(Box::new(Open::decode(reader)?)),
            Begin::DESCRIPTOR => Self::Begin(Box::new(Begin::decode(reader)?)),
            Attach::DESCRIPTOR => Self::Attach(Box::new(Attach::decode(reader)?)),
            Flow::DESCRIPTOR => Self::Flow(Box::new(Flow::decode(reader)?)),
            Transfer::DESCRIPTOR => Self::Transfer(Box::new(Transfer::decode(reader)?)),
            Disposition::DESCRIPTOR => Self::Disposition(Disposition::decode(reader)?),
            Detach::DESCRIPTOR => Self::Detach(Detach::decode(reader)?),
            End::DESCRIPTOR => Self::End(End::decode(reader)?),
            Close::DESCRIPTOR => Self::Close(Close::decode(reader)?),
            value => return Err(Error::Peer { what: "descriptor of a performative", value }),
        };
        if !matches!(performative, Self::Transfer(_)) {
            reader.finish("bytes behind a performative that has no payload")?;
        }
        Ok((performative, body.slice_ref(reader.rest())))
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Open(it) => it.encode(out),
            Self::Begin(it) => it.encode(out),
            Self::Attach(it) => it.encode(out),
            Self::Flow(it) => it.encode(out),
            Self::Transfer(it) => it.encode(out),
            Self::Disposition(it) => it.encode(out),
            Self::Detach(it) => it.encode(out),
            Self::End(it) => it.encode(out),
            Self::Close(it) => it.encode(out),
        }
    }
}

/// Names that stand for a descriptor's number (AMQP 1.0 Part 1 §1.5, Part 2 §2.7, Part 3, Part 4,
/// Part 5).
const NAMES: &[(&str, u64)] = &[
    ("amqp:open:list", 0x10),
    ("amqp:begin:list", 0x11),
    ("amqp:attach:list", 0x12),
    ("amqp:flow:list", 0x13),
    ("amqp:transfer:list", 0x14),
    ("amqp:disposition:list", 0x15),
    ("amqp:detach:list", 0x16),
    ("amqp:end:list", 0x17),
    ("amqp:close:list", 0x18),
    ("amqp:error:list", 0x1d),
    ("amqp:received:list", 0x23),
    ("amqp:accepted:list", 0x24),
    ("amqp:rejected:list", 0x25),
    ("amqp:released:list", 0x26),
    ("amqp:modified:list", 0x27),
    ("amqp:source:list", 0x28),
    ("amqp:target:list", 0x29),
    ("amqp:coordinator:list", 0x30),
    ("amqp:declare:list", 0x31),
    ("amqp:discharge:list", 0x32),
    ("amqp:declared:list", 0x33),
    ("amqp:transactional-state:list", 0x34),
    ("amqp:sasl-mechanisms:list", 0x40),
    ("amqp:sasl-init:list", 0x41),
    ("amqp:sasl-challenge:list", 0x42),
    ("amqp:sasl-response:list", 0x43),
    ("amqp:sasl-outcome:list", 0x44),
    ("amqp:header:list", 0x70),
    ("amqp:delivery-annotations:map", 0x71),
    ("amqp:message-annotations:map", 0x72),
    ("amqp:properties:list", 0x73),
    ("amqp:application-properties:map", 0x74),
    ("amqp:data:binary", 0x75),
    ("amqp:amqp-sequence:list", 0x76),
    ("amqp:amqp-value:*", 0x77),
    ("amqp:footer:map", 0x78),
];

/// The number of the next value's descriptor; the value follows.
pub(crate) fn descriptor(reader: &mut Reader<'_>, what: &'static str) -> Result<u64, Error> {
    let descriptor = reader.descriptor()?;
    let number = descriptor.as_ref().and_then(number);
    number.ok_or(Error::Peer { what, value: u64::MAX })
}

/// The number of a descriptor of the standard.
#[must_use]
pub fn number(descriptor: &Value) -> Option<u64> {
    match descriptor {
        Value::Ulong(number) => Some(*number),
        Value::Symbol(name) => {
            NAMES.iter().find(|(known, _)| *known == name.as_str()).map(|(_, number)| *number)
        }
        _ => None,
    }
}
