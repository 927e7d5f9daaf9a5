//! A path to a peer: what is believed of it, what was agreed over it, and what waits for it.

pub(crate) mod arriving;
pub(crate) mod awaited;
pub(crate) mod gone;
pub(crate) mod measured;
pub(crate) mod offers;
pub(crate) mod piggyback;
pub(crate) mod texts;

use std::collections::BTreeMap;

use codec::Options;
use decide::estimate::Estimate;

use super::api::{Abilities, Wire};
use super::exchange::Exchange;
use super::ids::PathId;
use super::kept::bases::{Received, Sent};
use super::kept::lasting::{carrier_id, peer_id};
use awaited::Awaited;
use measured::Measured;
use offers::Offers;
use piggyback::Piggyback;
use texts::Texts;

/// Names that were said over a path.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The edge has said its own.
    pub(crate) is_introduced: bool,
    /// Those of principals by their number; the greatest numbers.
    pub(crate) of: BTreeMap<u64, u64>,
}

/// By what the policy knows a path, now and after a restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownAs {
    /// The peer: it decodes.
    pub(crate) peer: u64,
    /// Kind of the carrier.
    pub(crate) kind: &'static str,
    /// The peer by carriers of this kind.
    pub(crate) carrier: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    /// Name of the peer.
    pub(crate) peer: String,
    /// Instance of the edge at either end, by which exchanges are named.
    pub(crate) edge: u64,
    pub(crate) known: KnownAs,
    pub(crate) abilities: Abilities,
    pub(crate) wire: Wire,
    pub(crate) measured: Measured,
    /// Bytes of the longest body that came of late, decoded; it fades with each that is shorter.
    pub(crate) longest: u64,
    /// Messages that came uncoded in a packet.
    pub(crate) short: u64,
    /// Messages that have left, by exchange, whose receipts may come.
    pub(crate) awaited: BTreeMap<u64, Awaited>,
    /// The peer has sent a receipt: others will come.
    pub(crate) sends_receipts: bool,
    pub(crate) piggyback: Piggyback,
    /// Messages that both ends hold.
    pub(crate) sent: Sent,
    pub(crate) kept: Received,
    /// Messages that went as an infoset, and what the peer could not read of such.
    pub(crate) texts: Texts,
    /// Dictionaries and schemas on their way.
    pub(crate) offers: Offers,
    /// The peer wants to know how fast this side decodes.
    pub(crate) wants_processor: bool,
    /// Whose dictionaries it has to do with.
    pub(crate) scope: Option<u64>,
    pub(crate) names: Names,
    /// Bytes of bases that were counted for all paths.
    counted_bytes: usize,
}

impl Path {
    pub(crate) fn new(
        id: PathId,
        (peer, kind, edge): (String, &'static str, u64),
        abilities: Abilities,
        estimate: Estimate,
        scope: Option<u64>,
    ) -> Self {
        Self {
            id,
            edge,
            known: KnownAs { peer: peer_id(&peer), kind, carrier: carrier_id(&peer, kind) },
            peer,
            abilities,
            wire: Wire::default(),
            measured: Measured::new(estimate),
            longest: 0,
            short: 0,
            awaited: BTreeMap::new(),
            sends_receipts: false,
            piggyback: Piggyback::default(),
            sent: Sent::default(),
            kept: Received::default(),
            texts: Texts::default(),
            offers: Offers::default(),
            wants_processor: false,
            scope,
            names: Names::default(),
            counted_bytes: 0,
        }
    }

    /// What is believed of the path.
    pub(crate) fn estimate(&self) -> &Estimate {
        &self.measured.estimate
    }

    /// Whether the peer reads deltas, and so knows of bases.
    pub(crate) fn knows_bases(&self) -> bool {
        self.decodes(Options::DELTA)
    }

    /// Whether the peer reads what is encoded with a dictionary.
    pub(crate) fn knows_dictionaries(&self) -> bool {
        self.decodes(Options::DICTIONARY)
    }

    fn decodes(&self, options: Options) -> bool {
        self.abilities.codecs.contains(&options.codec.number())
    }

    /// The peer knows the schema that its message came with: what goes back may go with it too.
    pub(crate) fn adopt_schema(&mut self, one: &Exchange) {
        let name = one.receiving.schema_context.as_ref().and_then(|one| one.name());
        if let Some((service, name)) = one.about.service.zip(name) {
            self.texts.adopted.insert(service, name);
        }
    }

    /// Counts the bytes of its bases among those of all paths.
    pub(crate) fn count_bases(&mut self, all: &mut usize) {
        let bytes = self.sent.bytes() + self.kept.bytes();
        *all = *all + bytes - self.counted_bytes;
        self.counted_bytes = bytes;
    }

    /// It is gone, and its bases with it.
    pub(crate) fn uncount_bases(&self, all: &mut usize) {
        *all -= self.counted_bytes;
    }
}
