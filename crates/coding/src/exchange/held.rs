//! What an exchange has to do with messages and dictionaries that both ends hold.

use std::sync::Arc;

use bytes::Bytes;
use codec::Options;
use codec::dictionary::{Id, Kept};
use record::decision as facts;

use crate::ids::PathId;
use crate::kept::bases::{Base, By, Context};
use crate::kept::dictionaries::Made;
use crate::kept::lasting::Principal;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Who asks, as far as this side can tell.
    pub(crate) requester: Option<Id>,
    /// On whose behalf it is; none where that cannot be told.
    pub(crate) principal: Option<Principal>,
    /// Where `base` and `slot` are good for anything.
    pub(crate) path: Option<PathId>,
    /// What this side's message can be encoded against: a message, a dictionary.
    pub(crate) base: Option<Base>,
    pub(crate) dictionary: Option<Made>,
    /// Of whose dictionary it may become a part.
    pub(crate) context: Option<Context>,
    /// Where the peer may keep this side's message.
    pub(crate) slot: Option<u64>,
    /// The body of this side's message, where it may be kept, or has gone as the peer may not read
    /// it.
    pub(crate) plain: Option<Bytes>,
    /// This side's message went by what both ends hold, or as an infoset.
    went: bool,
    /// What it was encoded against.
    pub(crate) by: Option<By>,
    /// Where the peer's message may be kept, or is.
    pub(crate) incoming: Option<u64>,
    pub(crate) kept_in: Option<u64>,
    /// This side's message as a sample, once its answer forbids nobody to keep it.
    pub(crate) sample: Option<(Context, Arc<Kept>)>,
}

impl Held {
    /// Of an exchange of this requester's.
    pub(crate) fn of(requester: Option<Id>) -> Self {
        Self { requester, ..Self::default() }
    }

    /// The body, where it has gone by what both ends of its path hold, or as an infoset: on another
    /// path that alone may be of no use.
    pub(crate) fn delta(&self) -> Option<&Bytes> {
        self.plain.as_ref().filter(|_| self.went)
    }

    /// What an encoding of this side's message is made against.
    pub(crate) fn base_of(&self, options: Options) -> Option<Arc<Kept>> {
        match options.codec {
            codec if codec == Options::DELTA.codec => {
                self.base.as_ref().map(|base| Arc::clone(&base.kept))
            }
            codec if codec == Options::DICTIONARY.codec => {
                self.dictionary.as_ref().map(|made| Arc::clone(&made.kept))
            }
            _ => None,
        }
    }

    /// What [`Held::base_of`] is called where decisions are told.
    pub(crate) fn fact_of(&self, options: Options) -> Option<facts::Base> {
        match options.codec {
            codec if codec == Options::DELTA.codec => self.base.as_ref().map(|base| {
                let sha256 = base.kept.id().to_string();
                facts::Base::Message { sha256 }
            }),
            codec if codec == Options::DICTIONARY.codec => self.dictionary.as_ref().map(|made| {
                let (sha256, version) = (made.kept.id().to_string(), made.version);
                facts::Base::Dictionary { sha256, version }
            }),
            _ => None,
        }
    }

    /// All of this side's message is in this block.
    pub(crate) fn note_body(&mut self, body: &Bytes) {
        let has_base = self.base.is_some() || self.dictionary.is_some();
        if has_base || self.slot.is_some() || self.context.is_some() {
            self.plain = Some(body.clone());
        }
    }

    /// What this side's message goes in is final.
    pub(crate) fn settle(&mut self, options: Options) {
        let slot = self.base.as_ref().map(|base| By::Slot(base.slot));
        let made = self.dictionary.as_ref();
        let name = made.map(|made| By::Dictionary(made.kept.id().short()));
        self.by = match options.codec {
            codec if codec == Options::DELTA.codec => slot,
            codec if codec == Options::DICTIONARY.codec => name,
            _ => None,
        };
        self.went = !options.stands_alone();
    }

    /// The body of this side's message is another text, which says the same.
    pub(crate) fn adopt(&mut self, text: &Bytes) {
        self.plain = Some(text.clone());
    }

    /// This side's message goes anew.
    pub(crate) fn rewind(&mut self) {
        let Self { requester, principal, incoming, kept_in, .. } = *self;
        *self = Self { requester, principal, incoming, kept_in, ..Self::default() };
    }
}
