//! The exchanges that are open.

mod exchange;
mod incoming;
mod outgoing;
mod padding;

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Values, ValuesMut};

use coding::ExchangeId;

use crate::ids::CarrierId;
pub(crate) use exchange::{Asked, Exchange, Stage, is_or_may_be, unshared};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    table: BTreeMap<ExchangeId, Exchange>,
    /// Those that wait for a carrier, or for the question about them to go: whoever looks for them
    /// need not look at all.
    waiting: BTreeSet<ExchangeId>,
}

impl Exchanges {
    pub(crate) fn get(&self, id: &ExchangeId) -> Option<&Exchange> {
        self.table.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &ExchangeId) -> Option<&mut Exchange> {
        self.table.get_mut(id)
    }

    pub(crate) fn contains_key(&self, id: &ExchangeId) -> bool {
        self.table.contains_key(id)
    }

    pub(crate) fn values(&self) -> Values<'_, ExchangeId, Exchange> {
        self.table.values()
    }

    pub(crate) fn values_mut(&mut self) -> ValuesMut<'_, ExchangeId, Exchange> {
        self.table.values_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn insert(&mut self, exchange: Exchange) {
        if exchange.stage.waits() {
            self.waiting.insert(exchange.id);
        }
        self.table.insert(exchange.id, exchange);
    }

    pub(crate) fn remove(&mut self, id: &ExchangeId) -> Option<Exchange> {
        self.waiting.remove(id);
        self.table.remove(id)
    }

    /// An exchange stands there towards its carrier from here on. Whether it is open.
    pub(crate) fn set_stage(&mut self, id: ExchangeId, stage: Stage) -> bool {
        let Some(exchange) = self.table.get_mut(&id) else { return false };
        exchange.stage = stage;
        if stage.waits() {
            self.waiting.insert(id);
        } else {
            self.waiting.remove(&id);
        }
        true
    }

    pub(crate) fn stage_of(&self, id: ExchangeId) -> Option<Stage> {
        self.get(&id).map(|exchange| exchange.stage)
    }

    /// Those that wait for a carrier, or for the question about them to go, oldest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Exchange> {
        self.waiting.iter().filter_map(|id| self.get(id))
    }

    /// Those of them of which nothing was sent.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = &Exchange> {
        self.waiting().filter(|one| one.stage == Stage::Waiting)
    }

    /// Those on a carrier, without those that an answer came for.
    pub(crate) fn unanswered(&self, carrier: CarrierId) -> impl Iterator<Item = &Exchange> {
        let on_it = move |exchange: &&Exchange| exchange.carrier() == Some(carrier);
        self.values().filter(on_it).filter(|exchange| !exchange.incoming.headed)
    }
}

#[cfg(test)]
impl std::ops::Index<&ExchangeId> for Exchanges {
    type Output = Exchange;

    fn index(&self, id: &ExchangeId) -> &Exchange {
        &self.table[id]
    }
}
