//! Dictionaries, and schemas, on their way: what the peer was offered and holds, and what it sends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codec::infoset::SchemaContext;
use proto::control::Keeping;

use crate::kept::dictionaries::{Dictionaries, Made};
use crate::reported::whole;

/// Dictionaries of a path's peer that are made ready at once: one, and one that came in the
/// place of another.
pub(crate) const MAX_UNPACKING: u8 = 2;
/// A schema is offered so often on a path.
const MAX_OFFERS: u8 = 4;
/// Share of what the link is believed to carry that dictionaries may take.
pub(crate) const BUDGET_SHARE: f64 = 0.05;
/// How often it is looked whether the path is idle.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// How long an offer or a parcel waits for the peer's word before another dictionary goes: what the
/// peer has in its queue by then takes a while on a slow link.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// Longest piece that goes at a time, and what a budget may save up.
pub(crate) const PART_BYTES: f64 = 1024.0;
/// A shorter piece is not worth its headers.
const MIN_PART_BYTES: f64 = 64.0;

/// Where a dictionary stands with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// When it was.
    Offered(Duration),
    /// So much of its parcel has gone.
    Wanted(usize),
    /// All of it has, at that time.
    Sent(Duration),
    /// The peer said nothing in [`ANSWER_PATIENCE`]. It may still.
    Silent,
    Held,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    pub(crate) stages: BTreeMap<[u8; 8], Stage>,
    pub(crate) budget: f64,
    /// Schemas of this side's services that the peer turned out not to hold, and how often.
    schemas: BTreeMap<[u8; 8], (Arc<SchemaContext>, u8)>,
    /// What the peer is sending.
    pub(crate) coming: Option<Coming>,
    /// How many that it has sent are being made ready.
    pub(crate) unpacking: u8,
    /// The schema of its that is being made ready.
    pub(crate) compiling: Option<Arc<SchemaContext>>,
    /// One of its was none: others are not taken.
    pub(crate) refuses_schemas: bool,
}

/// What a peer is sending.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) id: [u8; 8],
    pub(crate) is_schema: bool,
    pub(crate) bytes: usize,
    pub(crate) parcel: BytesMut,
}

impl Coming {
    pub(crate) fn new(id: [u8; 8], is_schema: bool, bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { id, is_schema, bytes, parcel: BytesMut::new() }
    }
}

impl Offers {
    /// Whether the peer holds a dictionary.
    pub(crate) fn is_held(&self, id: [u8; 8]) -> bool {
        self.stages.get(&id) == Some(&Stage::Held)
    }

    /// The peer turned out not to hold a dictionary.
    pub(crate) fn lost(&mut self, id: [u8; 8]) {
        self.stages.remove(&id);
    }

    /// The peer turned out not to hold a schema: it is offered, and again where it was given up
    /// since. One that cannot be read though it is held is not offered for ever.
    pub(crate) fn lacks(&mut self, id: [u8; 8], schema: &Arc<SchemaContext>) {
        let (_, often) = self.schemas.entry(id).or_insert_with(|| (Arc::clone(schema), 0));
        *often = often.saturating_add(1);
        if *often <= MAX_OFFERS && self.stages.get(&id) == Some(&Stage::Held) {
            self.stages.remove(&id);
        }
    }

    /// Whether it is a schema that was offered.
    pub(crate) fn is_schema(&self, id: [u8; 8]) -> bool {
        self.schemas.contains_key(&id)
    }
}

impl Offers {
    /// What goes next: the rest of what the peer waits for, else another offer.
    pub(crate) fn next(
        &mut self,
        now: Duration,
        all: &Dictionaries,
        scope: u64,
    ) -> Option<Keeping> {
        let wanted = self.stages.iter().find_map(|(&id, stage)| match *stage {
            Stage::Wanted(at) => Some((id, at)),
            _ => None,
        });
        if let Some((id, at)) = wanted {
            let rest = self.parcel(all, id).and_then(|parcel| parcel.get(at..));
            let Some(rest) = rest else {
                // Another has come in its place.
                self.stages.remove(&id);
                return None;
            };
            let left = rest.len();
            if self.budget < MIN_PART_BYTES.min(left as f64) {
                return None;
            }
            let len = usize::try_from(whole(self.budget)).unwrap_or(0).min(left);
            let bytes = Bytes::copy_from_slice(&rest[..len]);
            self.budget -= len as f64;
            let stage = if len == left { Stage::Sent(now) } else { Stage::Wanted(at + len) };
            self.stages.insert(id, stage);
            return Some(Keeping::Part { id, bytes });
        }
        if self.waits_until().is_some() {
            return None;
        }
        if let Some((id, bytes)) = self.unoffered_schema() {
            self.stages.insert(id, Stage::Offered(now));
            return Some(Keeping::Schema { id, bytes });
        }
        let made = self.unoffered(all, scope)?;
        let (id, bytes) = (made.kept.id(), made.parcel.len() as u64);
        self.stages.insert(id.short(), Stage::Offered(now));
        Some(Keeping::Offer { id: id.0, bytes })
    }

    /// A dictionary for the peer that it has not heard of.
    fn unoffered<'a>(&self, all: &'a Dictionaries, scope: u64) -> Option<&'a Made> {
        let unheard = |made: &&Made| !self.stages.contains_key(&made.kept.id().short());
        all.made_for(scope).find(unheard)
    }

    /// A schema that the peer has not heard of, and bytes of its parcel.
    fn unoffered_schema(&self) -> Option<([u8; 8], u64)> {
        let mut others = self.schemas.iter().filter(|(id, _)| !self.stages.contains_key(*id));
        others.find_map(|(&id, (one, _))| Some((id, one.parcel()?.len() as u64)))
    }

    fn parcel<'a>(&'a self, all: &'a Dictionaries, id: [u8; 8]) -> Option<&'a [u8]> {
        match self.schemas.get(&id) {
            Some((schema, _)) => schema.parcel(),
            None => all.parcel(id).map(|parcel| &parcel[..]),
        }
    }

    /// One at a time: what was offered or sent is answered first, within a bound.
    fn waits_until(&self) -> Option<Duration> {
        let ends = self.stages.values().filter_map(|stage| stage.waits_until());
        ends.max()
    }

    /// What has gone for another is not told of, and what the peer did not answer in time is not
    /// waited for any more.
    pub(crate) fn expire(&mut self, now: Duration, all: &Dictionaries) {
        let schemas = &self.schemas;
        self.stages.retain(|id, _| schemas.contains_key(id) || all.parcel(*id).is_some());
        for stage in self.stages.values_mut() {
            if stage.waits_until().is_some_and(|until| until <= now) {
                *stage = Stage::Silent;
            }
        }
    }

    /// When there is something to do next.
    pub(crate) fn due(&self, now: Duration, all: &Dictionaries, scope: u64) -> Option<Duration> {
        let goes_on = self.stages.values().any(|stage| matches!(stage, Stage::Wanted(_)));
        if goes_on {
            return Some(now + PAUSE);
        }
        let more = self.unoffered_schema().is_some() || self.unoffered(all, scope).is_some();
        more.then(|| self.waits_until().unwrap_or(now + PAUSE))
    }
}

impl Stage {
    fn waits_until(self) -> Option<Duration> {
        match self {
            Self::Offered(since) | Self::Sent(since) => Some(since + ANSWER_PATIENCE),
            Self::Wanted(_) | Self::Silent | Self::Held => None,
        }
    }
}
