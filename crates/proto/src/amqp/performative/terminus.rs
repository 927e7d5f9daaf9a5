//! Sources and targets (AMQP 1.0 Part 3 §3.5), and the coordinator of transactions in place of a
//! target (Part 4 §4.5.1).

use crate::Error;
use crate::amqp::types::{Fields, FieldsWriter, Map, Reader, Symbol, Value};

use super::descriptor;
use super::outcome::DeliveryState;

/// What of a terminus is kept over restarts (AMQP 1.0 Part 3 §3.5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Nothing.
    #[default]
    None,
    /// That there is one.
    Configuration,
    /// What is not settled as well.
    UnsettledState,
}

/// From when on the time-out of a terminus counts (AMQP 1.0 Part 3 §3.5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiryPolicy {
    /// When its link is detached.
    LinkDetach,
    /// When its session ends.
    #[default]
    SessionEnd,
    /// When its connection ends.
    ConnectionClose,
    /// Never.
    Never,
}

const POLICIES: [(&str, ExpiryPolicy); 4] = [
    ("link-detach", ExpiryPolicy::LinkDetach),
    ("session-end", ExpiryPolicy::SessionEnd),
    ("connection-close", ExpiryPolicy::ConnectionClose),
    ("never", ExpiryPolicy::Never),
];

impl Durability {
    fn of(code: Option<u32>) -> Result<Self, Error> {
        match code {
            None | Some(0) => Ok(Self::None),
            Some(1) => Ok(Self::Configuration),
            Some(2) => Ok(Self::UnsettledState),
            Some(code) => Err(Error::Peer { what: "terminus-durability", value: code.into() }),
        }
    }

    fn code(self) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Configuration => Some(1),
            Self::UnsettledState => Some(2),
        }
    }
}

impl ExpiryPolicy {
    fn of(symbol: Option<Symbol>) -> Result<Self, Error> {
        let Some(symbol) = symbol else { return Ok(Self::default()) };
        let known = POLICIES.iter().find(|(name, _)| *name == symbol.as_str());
        let (what, value) = ("terminus-expiry-policy, of so many bytes", symbol.as_str().len());
        known.map(|(_, policy)| *policy).ok_or(Error::Peer { what, value: value as u64 })
    }

    fn symbol(self) -> Option<Symbol> {
        let known = POLICIES.iter().find(|(_, policy)| *policy == self);
        known.filter(|_| self != Self::default()).map(|(name, _)| Symbol::new(name))
    }
}

/// Where messages come from (AMQP 1.0 Part 3 §3.5.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The node; a string in all known uses.
    pub address: Option<Value>,
    /// What is kept over restarts.
    pub durable: Durability,
    /// From when on `timeout_s` counts.
    pub expiry_policy: ExpiryPolicy,
    /// How long it is kept from then on, in seconds.
    pub timeout_s: u32,
    /// Whether the node is to be made, and its address told back.
    pub dynamic: bool,
    /// What a node that is made is to be like.
    pub dynamic_node_properties: Map,
    /// `move` or `copy`.
    pub distribution_mode: Option<Symbol>,
    /// Which messages are sent: filters by name.
    pub filter: Map,
    /// What becomes of deliveries that are settled without a word.
    pub default_outcome: Option<DeliveryState>,
    /// Outcomes that may be.
    pub outcomes: Vec<Symbol>,
    /// Extensions of the node that are supported, or wanted.
    pub capabilities: Vec<Symbol>,
}

impl Source {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x28;

    pub(super) fn of(fields: &mut Fields<'_>) -> Result<Option<Self>, Error> {
        let Some(reader) = fields.reader()? else { return Ok(None) };
        let what = "descriptor of a source";
        match descriptor(reader, what)? {
            Self::DESCRIPTOR => Self::decode(reader).map(Some),
            value => Err(Error::Peer { what, value }),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of source")?;
        let source = Self {
            address: fields.value()?,
            durable: Durability::of(fields.uint()?)?,
            expiry_policy: ExpiryPolicy::of(fields.symbol()?)?,
            timeout_s: fields.uint()?.unwrap_or(0),
            dynamic: fields.boolean()?.unwrap_or(false),
            dynamic_node_properties: fields.map()?,
            distribution_mode: fields.symbol()?,
            filter: fields.map()?,
            default_outcome: DeliveryState::of(&mut fields)?,
            outcomes: fields.symbols()?,
            capabilities: fields.symbols()?,
        };
        fields.finish()?;
        Ok(source)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .value(self.address.as_ref())
            .uint(self.durable.code())
            .symbol(self.expiry_policy.symbol().as_ref())
            .uint(Some(self.timeout_s).filter(|timeout| *timeout > 0))
            .flag(self.dynamic)
            .map(&self.dynamic_node_properties)
            .symbol(self.distribution_mode.as_ref())
            .map(&self.filter)
            .with(self.default_outcome.as_ref(), DeliveryState::encode)
            .symbols(&self.outcomes)
            .symbols(&self.capabilities)
            .finish(Self::DESCRIPTOR, out);
    }
}

/// Where messages go (AMQP 1.0 Part 3 §3.5.4).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// The node; without one the message names it (`properties.to`).
    pub address: Option<Value>,
    /// What is kept over restarts.
    pub durable: Durability,
    /// From when on `timeout_s` counts.
    pub expiry_policy: ExpiryPolicy,
    /// How long it is kept from then on, in seconds.
    pub timeout_s: u32,
    /// Whether the node is to be made, and its address told back.
    pub dynamic: bool,
    /// What a node that is made is to be like.
    pub dynamic_node_properties: Map,
    /// Extensions of the node that are supported, or wanted.
    pub capabilities: Vec<Symbol>,
}

/// What the messages of a link go to.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKind {
    /// A node.
    Target(Box<Target>),
    /// The coordinator of transactions, with its capabilities.
    Coordinator(Vec<Symbol>),
}

/// The number of the coordinator's descriptor (AMQP 1.0 Part 4 §4.5.1).
const COORDINATOR: u64 = 0x30;

impl TargetKind {
    pub(super) fn of(fields: &mut Fields<'_>) -> Result<Option<Self>, Error> {
        let Some(reader) = fields.reader()? else { return Ok(None) };
        let what = "descriptor of a target";
        match descriptor(reader, what)? {
            Target::DESCRIPTOR => Ok(Some(Self::Target(Box::new(Target::decode(reader)?)))),
            COORDINATOR => {
                let mut fields = Fields::open(reader, "a field of coordinator")?;
                let capabilities = fields.symbols()?;
                fields.finish()?;
                Ok(Some(Self::Coordinator(capabilities)))
            }
            value => Err(Error::Peer { what, value }),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Target(target) => target.encode(out),
            Self::Coordinator(capabilities) => {
                FieldsWriter::default().symbols(capabilities).finish(COORDINATOR, out);
            }
        }
    }
}

impl Target {
    /// The number of its descriptor.
    pub const DESCRIPTOR: u64 = 0x29;

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut fields = Fields::open(reader, "a field of target")?;
        let target = Self {
            address: fields.value()?,
            durable: Durability::of(fields.uint()?)?,
            expiry_policy: ExpiryPolicy::of(fields.symbol()?)?,
            timeout_s: fields.uint()?.unwrap_or(0),
            dynamic: fields.boolean()?.unwrap_or(false),
            dynamic_node_properties: fields.map()?,
            capabilities: fields.symbols()?,
        };
        fields.finish()?;
        Ok(target)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        FieldsWriter::default()
            .value(self.address.as_ref())
            .uint(self.durable.code())
            .symbol(self.expiry_policy.symbol().as_ref())
            .uint(Some(self.timeout_s).filter(|timeout| *timeout > 0))
            .flag(self.dynamic)
            .map(&self.dynamic_node_properties)
            .symbols(&self.capabilities)
            .finish(Self::DESCRIPTOR, out);
    }
}
