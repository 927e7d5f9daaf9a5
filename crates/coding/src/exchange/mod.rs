//! One exchange, as far as the form of its two messages goes: the one that this side sends, and the
//! one that comes.

pub(crate) mod choice;
pub(crate) mod exact;
pub(crate) mod held;
pub(crate) mod receiving;
pub(crate) mod revision;
pub(crate) mod sending;

use std::time::Duration;

use record::decision as facts;

use super::api::About;
use super::ids::{ExchangeId, PathId};
use super::times::{Arrival, Departure};
use choice::Choice;
use exact::Exact;
use held::Held;
use receiving::Receiving;
use sending::Sending;

/// Where an exchange stands towards its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// Nothing is decided before there is a path: what its peer decodes is not known.
    Waits,
    /// It has none; what was decided holds.
    Away,
    /// It goes over this one.
    On(PathId),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) id: ExchangeId,
    pub(crate) stands: Stands,
    pub(crate) about: About,
    /// Bytes of body that the peer takes now; none were said yet where 0.
    pub(crate) credit: u64,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// What this side's message goes in, from its choice until it has left.
    pub(crate) choice: Option<Box<Choice>>,
    pub(crate) departure: Option<Departure>,
    pub(crate) arrival: Arrival,
    /// What it has to do with messages that both ends hold.
    pub(crate) held: Held,
    /// Why every byte of this side's message has to come back.
    pub(crate) exact: Exact,
    /// Memory reserved for this side's encoder, in bytes.
    pub(crate) encoder_bytes: usize,
    /// Memory reserved for this side's decoder, in bytes; `None` until it is.
    pub(crate) decoder_bytes: Option<usize>,
    /// Workers hold codec contexts.
    pub(crate) has_contexts: bool,
    /// Why it goes over its path, where there were several.
    pub(crate) route: Option<Box<facts::Route>>,
    /// Processor time of its blocks.
    pub(crate) cpu: Duration,
}

impl Exchange {
    pub(crate) fn new(id: ExchangeId, about: About) -> Self {
        let held = Held::of(about.requester);
        Self {
            id,
            stands: Stands::Waits,
            about,
            credit: 0,
            sending: Sending::default(),
            receiving: Receiving::default(),
            choice: None,
            departure: None,
            arrival: Arrival::default(),
            held,
            exact: Exact::default(),
            encoder_bytes: 0,
            decoder_bytes: None,
            has_contexts: false,
            route: None,
            cpu: Duration::ZERO,
        }
    }

    /// The path that it goes over.
    pub(crate) fn path(&self) -> Option<PathId> {
        match self.stands {
            Stands::On(path) => Some(path),
            Stands::Waits | Stands::Away => None,
        }
    }

    /// This side's message is for a recipient that is no peer.
    pub(crate) fn has_recipient(&self) -> bool {
        self.sending.recipient().is_some()
    }

    /// This side's message goes again: what was decided, and seen of its way, is of no use.
    pub(crate) fn rewind(&mut self) {
        (self.choice, self.departure) = (None, None);
        self.held.rewind();
    }
}
