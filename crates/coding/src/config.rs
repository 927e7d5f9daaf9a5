//! Settings.

use std::time::Duration;

use codec::{Options, Table};
use decide::estimate::Estimate;
use record::decision::Direction;

use crate::encoding::{Encoding, Service};
use crate::kept::lasting::Secret;

/// Most services that a process ever has, with those that were set before: requests that are open
/// go on by theirs, and their numbers stay what they were.
const MAX_SERVICES: usize = 8192;
/// What a link is taken for before anything is known: a slow one, for which the pair is there.
const FIRST_RATE_BPS: f64 = 1e6;
/// The same for its round trip.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which of an exchange's two messages this side sends.
    pub sends: Direction,
    /// Drawn at random at every start.
    pub instance: u64,
    /// What makes this side and its principals known when it has started again; without it their
    /// dictionaries end with it.
    pub secret: Option<Secret>,
    /// The codecs that this side has.
    pub codecs: Table,
    /// Encodings and who chooses among them.
    pub encoding: Encoding,
    /// What is different for some services.
    pub services: Vec<Service>,
    /// Operator's bound on what the link is believed to carry, in bit/s.
    pub rate_cap_bps: Option<f64>,
    /// How long a body waits for what it takes to read it: memory, or the body as it is.
    pub body_timeout: Duration,
    /// Memory of all encoders, in bytes: beyond it windows shrink, then bodies go uncoded. All
    /// decoders get as much again: beyond it decoding waits its turn.
    pub codec_bytes: usize,
}

impl Config {
    /// Codecs that this side decodes, by number.
    pub(crate) fn codecs(&self) -> impl Iterator<Item = u64> {
        let allowed = self.services.iter().any(|service| service.infoset.is_some());
        let infoset = [Options::EXI, Options::WBXML, Options::CBOR];
        let infoset = infoset.into_iter().filter(move |_| allowed);
        let held = [Options::DELTA, Options::DICTIONARY];
        let others = held.into_iter().chain(infoset).map(|options| options.codec);
        self.codecs.block_codecs().chain(others).map(|codec| codec.number())
    }

    /// What is believed of a path that nobody has measured.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        Estimate::new(FIRST_RATE_BPS, FIRST_ROUND_TRIP, self.rate_cap_bps)
    }

    /// Takes these services too, unless they are too many.
    pub(crate) fn add_services(&mut self, services: &[Service]) -> bool {
        let fits = self.services.len() + services.len() <= MAX_SERVICES;
        if fits {
            self.services.extend_from_slice(services);
        }
        fits
    }

    /// This side sends the requests.
    pub(crate) fn asks(&self) -> bool {
        self.sends == Direction::Request
    }

    /// This side sends the answers.
    pub(crate) fn answers(&self) -> bool {
        self.sends == Direction::Response
    }
}
