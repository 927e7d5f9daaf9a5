//! Bases of deltas: what the peer keeps of this side's messages, and this side of the peer's.

use std::sync::Arc;

use codec::Options;
use codec::dictionary::Kept;
use proto::control::Keeping;

use super::Peer;
use crate::bounds::MAX_BASE_BYTES;
use crate::job::Job;
use crate::kept::bases::{By, Context};
use crate::kept::pending::{Keep, Whose};
use crate::path::piggyback::Waiting;
use crate::path::texts::Text;

impl Peer<'_> {
    /// A message was made into a base, or cannot be one; the sample that it is, where it is one.
    pub(crate) fn kept(
        &mut self,
        keep: Keep,
        result: Result<Kept, codec::Error>,
    ) -> Option<(Context, Arc<Kept>)> {
        let (exchange, barred) = (keep.exchange.number, keep.barred);
        let kept = result.ok().map(Arc::new);
        let kept = kept.filter(|kept| !kept.content().is_empty() && !barred);
        let bytes = kept.as_ref().map_or(0, |kept| kept.content().len());
        let has_room = self.core.base_bytes + bytes <= MAX_BASE_BYTES;
        match keep.whose {
            // The next may find room.
            Whose::Sent(_) if !has_room => self.path.sent.give_up(exchange),
            Whose::Sent(context) => {
                let sample = context.zip(kept.clone());
                if let Err(why) = self.path.sent.kept(exchange, kept) {
                    self.ignore("base", why);
                }
                return sample;
            }
            Whose::Screened(..) => {}
            Whose::Received(slot, mut arrival) => {
                self.path.kept.free(slot);
                let receipt = arrival.receipt(self.now, exchange, &mut self.path.short);
                if let Some(receipt) = receipt {
                    self.piggyback(Waiting::Receipt(receipt, self.now));
                }
                let kept = kept.filter(|_| has_room)?;
                let id = kept.id().short();
                self.path.kept.keep(slot, exchange, kept);
                self.piggyback(Waiting::Kept(Keeping::Kept { exchange, id }));
            }
        }
        None
    }

    /// A message of this side's is kept: it is a sample for a dictionary.
    pub(crate) fn sample(&mut self, context: &Context, kept: &Arc<Kept>) {
        let Some(scope) = self.path.scope else { return };
        let order = self.core.dictionaries.sample(scope, context, kept);
        order.into_iter().for_each(|order| self.core.job(Job::Prepare(order)));
    }

    /// The peer keeps a message of this side's.
    pub(crate) fn confirmed(&mut self, exchange: u64, id: [u8; 8]) {
        if let Err(why) = self.path.sent.confirmed(exchange, id) {
            self.ignore("base", why);
        }
    }

    /// The peer cannot read a message: it gets the body as it is.
    pub(crate) fn missing(&mut self, exchange: u64) {
        let Some((bytes, by)) = self.path.sent.missing(exchange) else {
            return self.text_missing(exchange);
        };
        if let By::Dictionary(id) = by {
            self.path.offers.lost(id);
        }
        self.send(Keeping::Identity { exchange, bytes }.part());
        self.greet_offers();
    }

    /// The peer could not read an infoset: its text is what it gets, and others go otherwise.
    fn text_missing(&mut self, exchange: u64) {
        let Some(Text { text: bytes, service, options, .. }) = self.path.texts.take(exchange)
        else {
            return;
        };
        let is_new =
            self.path.texts.unread.insert((service, options.codec.number(), options.level));
        self.send(Keeping::Identity { exchange, bytes }.part());
        if is_new {
            let services = &self.core.config.services;
            let name = services.get(service).map_or("", |service| &service.name);
            let label = options.label();
            let reason = format!("the peer cannot read {label} of {name}: not taken until it can");
            let what = "infoset".to_owned();
            self.event(record::event::Fact::Ignored { what, reason });
            if options == Options::EXI_SCHEMA {
                self.offer_schema(service);
            }
        }
    }
}
