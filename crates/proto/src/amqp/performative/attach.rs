//! Attach (AMQP 1.0 Part 2 §2.7.3).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, Symbol, required};

use super::terminus::{Source, TargetKind};

/// Which end of a link somebody is (AMQP 1.0 Part 2 §2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Messages go from it.
    Sender,
    /// Messages go to it.
    Receiver,
}

impl Role {
    pub(super) fn of(is_receiver: bool) -> Self {
        if is_receiver { Self::Receiver } else { Self::Sender }
    }

    /// The role at the other end.
    #[must_use]
    pub fn other(self) -> Self {
        Self::of(self == Self::Sender)
    }
}

/// How a sender settles (AMQP 1.0 Part 2 §2.8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderSettleMode {
    /// It sends everything unsettled.
    Unsettled,
    /// It sends everything settled.
    Settled,
    /// As it likes.
    #[default]
    Mixed,
}

/// How a receiver settles (AMQP 1.0 Part 2 §2.8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverSettleMode {
    /// Of itself, with what became of the delivery.
    #[default]
    First,
    /// Behind the sender.
    Second,
}

impl ReceiverSettleMode {
    pub(super) fn of(code: u8) -> Result<Self, Error> {
        match code {
            0 => Ok(Self::First),
            1 => Ok(Self::Second),
            code => Err(Error::Peer { what: "rcv-settle-mode", value: code.into() }),
        }
    }

    pub(super) fn code(self) -> u8 {
        u8::from(self == Self::Second)
    }
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Attach {
    /// The link's name, one between the two containers in this direction.
    pub name: String,
    /// What frames of the sender of this call the link.
    pub handle: u32,
    /// Which end the sender of this is.
    pub role: Role,
    /// How the sending end settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the receiving end settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// Where messages come from.
    pub source: Option<Source>,
    /// Where messages go.
    pub target: Option<TargetKind>,
    /// Deliveries that are not settled, by their tags.
    pub unsettled: Map,
    /// Whether there are more of these than fit.
    pub incomplete_unsettled: bool,
    /// The sending end's count of deliveries.
    pub initial_delivery_count: Option<u32>,
    /// Longest message in bytes; none is as well 0 (§2.7.3).
    pub max_message_size: Option<u64>,
    /// Extensions that the peer may use.
    pub offered_capabilities: Vec<Symbol>,
    /// Extensions that it would use.
    pub desired_capabilities: Vec<Symbol>,
    /// More about it.
    pub properties: Map,
}

impl Attach {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x12;

    /// An end without anything said of it.
    #[must_use]
    pub fn new(name: &str, handle: u32, role: Role) -> Self {
        Self {
            name: name.to_owned(),
            handle,
            role,
            snd_settle_mode: SenderSettleMode::default(),
            rcv_settle_mode: ReceiverSettleMode::default(),
            source: None,
            target: None,
            unsettled: Map::new(),
            incomplete_unsettled: false,
            initial_delivery_count: None,
            max_message_size: None,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Map::new(),
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of attach")?;
        let attach = Self {
            name: required(fields.string()?, "attach without name")?,
            handle: required(fields.uint()?, "attach without handle")?,
            role: Role::of(required(fields.boolean()?, "attach without role")?),
            snd_settle_mode: match fields.ubyte()? {
                Some(0) => SenderSettleMode::Unsettled,
                Some(1) => SenderSettleMode::Settled,
                None | Some(2) => SenderSettleMode::Mixed,
                Some(code) => {
                    return Err(Error::Peer { what: "snd-settle-mode", value: code.into() });
                }
            },
            rcv_settle_mode: ReceiverSettleMode::of(fields.ubyte()?.unwrap_or(0))?,
            source: Source::of(&mut fields)?,
            target: TargetKind::of(&mut fields)?,
            unsettled: fields.map()?,
            incomplete_unsettled: fields.boolean()?.unwrap_or(false),
            initial_delivery_count: fields.uint()?,
            max_message_size: fields.ulong()?.filter(|size| *size > 0),
            offered_capabilities: fields.symbols()?,
            desired_capabilities: fields.symbols()?,
            properties: fields.map()?,
        };
        fields.finish()?;
        // AMQP 1.0 Part 2 §2.7.3: of a sender it must not be null.
        if attach.role == Role::Sender {
            required(attach.initial_delivery_count, "attach without initial-delivery-count")?;
        }
        Ok(attach)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let settle = match self.snd_settle_mode {
            SenderSettleMode::Unsettled => Some(0),
            SenderSettleMode::Settled => Some(1),
            SenderSettleMode::Mixed => None,
        };
        FieldsWriter::default()
            .string(Some(&self.name))
            .uint(Some(self.handle))
            .boolean(Some(self.role == Role::Receiver))
            .ubyte(settle)
            .ubyte(Some(self.rcv_settle_mode.code()).filter(|code| *code > 0))
            .with(self.source.as_ref(), Source::encode)
            .with(self.target.as_ref(), TargetKind::encode)
            .map(&self.unsettled)
            .flag(self.incomplete_unsettled)
            .uint(self.initial_delivery_count)
            .ulong(self.max_message_size)
            .symbols(&self.offered_capabilities)
            .symbols(&self.desired_capabilities)
            .map(&self.properties)
            .finish(Self::DESCRIPTOR, out);
    }
}
