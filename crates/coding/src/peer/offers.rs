//! Dictionaries on their way to the peer and from it.

use std::sync::Arc;

use bytes::Bytes;
use codec::dictionary::Kept;
use codec::infoset::SchemaContext;
use proto::control::Keeping;

use super::Peer;
use crate::api::Output;
use crate::core::Key;
use crate::job::{Job, Prepare};
use crate::kept::lasting;
use crate::path::offers::{BUDGET_SHARE, Coming, MAX_UNPACKING, PART_BYTES, PAUSE, Stage};

impl Peer<'_> {
    /// Dictionaries there are, and perhaps some for the peer: it is looked in a while.
    pub(crate) fn greet_offers(&mut self) {
        let Some(scope) = self.path.scope.filter(|_| self.path.knows_dictionaries()) else {
            return;
        };
        if let Some(at) = self.path.offers.due(self.now, &self.core.dictionaries, scope) {
            self.core.timers.set_by(Key::Offers(self.path.id), at);
        }
    }

    /// A pause is over, and has earned its share of what the link carries.
    pub(crate) fn tend_offers(&mut self) {
        let rate_bps = self.path.estimate().rate_bps().value;
        let earned = BUDGET_SHARE * PAUSE.as_secs_f64() * rate_bps / 8.0;
        let offers = &mut self.path.offers;
        offers.budget = (offers.budget + earned.max(0.0)).min(PART_BYTES);
        self.advance_offers();
    }

    /// The path may be idle: dictionaries go on, within their budget.
    fn advance_offers(&mut self) {
        let Some(scope) = self.path.scope.filter(|_| self.path.knows_dictionaries()) else {
            return;
        };
        self.path.offers.expire(self.now, &self.core.dictionaries);
        if self.path.wire.idle
            && let Some(next) = self.path.offers.next(self.now, &self.core.dictionaries, scope)
        {
            self.send(next.part());
        }
        self.greet_offers();
    }

    /// What the peer says of dictionaries.
    pub(crate) fn offered(&mut self, keeping: Keeping) {
        let Some(scope) = self.path.scope else { return };
        match keeping {
            Keeping::Offer { id: name, bytes } => {
                let Some(short) = name.first_chunk().copied() else { return };
                if self.core.dictionaries.find(scope, short).is_some() {
                    return self.send(Keeping::Held { id: short }.part());
                }
                self.path.offers.coming = Some(Coming::new(short, false, bytes));
                self.send(Keeping::Want { id: short }.part());
            }
            Keeping::Want { id: name } => {
                if let Some(stage @ (Stage::Offered(_) | Stage::Silent)) =
                    self.path.offers.stages.get_mut(&name)
                {
                    *stage = Stage::Wanted(0);
                    self.greet_offers();
                }
            }
            Keeping::Schema { id: name, bytes } => self.schema_offered(name, bytes),
            Keeping::Held { id: name } => {
                if let Some(stage) = self.path.offers.stages.get_mut(&name) {
                    *stage = Stage::Held;
                    self.schema_held(name);
                    // Who has one mostly has the others: to ask for each takes no more than that.
                    self.advance_offers();
                }
            }
            Keeping::Part { id: name, bytes } => self.part(name, &bytes),
            _ => {}
        }
    }

    /// A part of a dictionary, or of a schema, came.
    fn part(&mut self, name: [u8; 8], bytes: &Bytes) {
        let offers = &mut self.path.offers;
        let fits = |coming: &mut Coming| {
            coming.id == name && coming.parcel.len() + bytes.len() <= coming.bytes
        };
        let busy = offers.unpacking >= MAX_UNPACKING;
        let is_taken = |coming: &Coming| coming.is_schema || !busy;
        let Some(mut coming) = offers.coming.take_if(fits).filter(is_taken) else {
            return self.ignore("dictionary", "a part that nobody waits for");
        };
        coming.parcel.extend_from_slice(bytes);
        if coming.parcel.len() < coming.bytes {
            offers.coming = Some(coming);
        } else if coming.is_schema {
            let schema_context = SchemaContext::of_parcel(name, coming.parcel.into());
            self.compile(Arc::new(schema_context));
        } else {
            offers.unpacking += 1;
            let (path, bytes) = (self.path.id, coming.parcel.freeze());
            self.core.job(Job::Prepare(Prepare::Parcel { path, bytes }));
        }
    }

    /// A message was encoded with a dictionary, this side's or the peer's.
    pub(crate) fn note_use(&mut self, name: [u8; 8], own: bool) {
        let Some(scope) = self.path.scope else { return };
        let used = match own {
            true => self.core.dictionaries.used_made(self.now, scope, name),
            false => self.core.dictionaries.used_held(self.now, scope, name),
        };
        self.core.outputs.extend(used.map(|name| Output::Used { name }));
    }

    /// A peer's dictionary is whole, or was none.
    pub(crate) fn unpacked(&mut self, result: Result<Kept, codec::Error>) {
        self.path.offers.unpacking = self.path.offers.unpacking.saturating_sub(1);
        let Some(scope) = self.path.scope else { return };
        let kept = match result {
            Ok(kept) => kept,
            Err(error) => return self.ignore("dictionary", &error.to_string()),
        };
        let short = kept.id().short();
        if self.core.dictionaries.find(scope, short).is_none() {
            let (name, bytes) = lasting::held(scope, &kept);
            self.core.store(name, bytes);
            if !self.core.dictionaries.hold(scope, Arc::new(kept)) {
                self.core.limit_reached("dictionaries of peers", "the oldest is forgotten");
            }
        }
        self.send(Keeping::Held { id: short }.part());
    }
}
