//! The kinds of carriers: which ones a relay is configured with.

use std::ops::{Deref, DerefMut};

use crate::carrier::{Abilities, Machine, Setup};
use crate::{burst, quic, stream, transaction};

/// A kind of carrier.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// As facts and people call it.
    pub name: &'static str,
    /// What carriers of this kind can do.
    pub abilities: Abilities,
    /// Makes one end of a new carrier.
    pub make: fn(Setup) -> Carrier,
}

impl Kind {
    /// Frames over TCP or TLS: see [`stream`].
    pub const STREAM: Self = Self {
        name: "stream",
        abilities: Abilities::STREAM,
        make: |setup| Carrier::Stream(Box::new(stream::Machine::new(setup))),
    };

    /// Generations with forward error correction, over datagrams: see [`burst`].
    pub const BURST: Self = Self {
        name: "burst",
        abilities: burst::ABILITIES,
        make: |setup| Carrier::Other(Box::new(burst::Machine::new(setup))),
    };

    /// A stream of QUIC for each exchange: see [`quic`].
    pub const QUIC: Self = Self {
        name: "quic",
        abilities: quic::ABILITIES,
        make: |setup| Carrier::Other(Box::new(quic::Machine::new(setup))),
    };

    /// A request of CoAP over datagrams for each exchange: see [`transaction`].
    pub const COAP: Self = Self {
        name: "coap",
        abilities: transaction::COAP_ABILITIES,
        make: |setup| Carrier::Other(transaction::over_coap(setup)),
    };

    /// The same over a connection: see [`transaction`].
    pub const COAP_TCP: Self = Self {
        name: "coap+tcp",
        abilities: transaction::COAP_TCP_ABILITIES,
        make: |setup| Carrier::Other(transaction::over_coap_tcp(setup)),
    };
}

/// One end of a carrier, of whichever kind: a [`Machine`].
#[derive(Debug)]
pub enum Carrier {
    /// See [`stream`].
    Stream(Box<stream::Machine>),
    /// A machine that this crate does not know.
    Other(Box<dyn Machine>),
}

impl Deref for Carrier {
    type Target = dyn Machine;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Stream(machine) => &**machine,
            Self::Other(machine) => &**machine,
        }
    }
}

impl DerefMut for Carrier {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Stream(machine) => &mut **machine,
            Self::Other(machine) => &mut **machine,
        }
    }
}
