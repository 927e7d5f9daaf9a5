//! Who has how much of something, and who has most of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module. Whoever has none takes no memory.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    of: BTreeMap<Arc<str>, usize>,
    order: BTreeSet<(usize, Arc<str>)>,
    total: usize,
}

impl Ranking {
    /// What all have.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// What one has.
    pub(super) fn of(&self, who: &str) -> usize {
        self.of.get(who).copied().unwrap_or(0)
    }

    /// Who has most; none where nobody has any.
    pub(super) fn most(&self) -> Option<Arc<str>> {
        self.order.last().map(|(_, who)| who.clone())
    }

    /// Somebody has so much more.
    pub(super) fn add(&mut self, who: &Arc<str>, amount: usize) {
        let before = self.of(who);
        self.set(who, before, before + amount);
    }

    /// Somebody has so much less, and had it.
    pub(super) fn take(&mut self, who: &Arc<str>, amount: usize) {
        let before = self.of(who);
        self.set(who, before, before.saturating_sub(amount));
    }

    fn set(&mut self, who: &Arc<str>, before: usize, after: usize) {
        self.order.remove(&(before, who.clone()));
        self.total = self.total - before + after;
        if after == 0 {
            self.of.remove(who);
        } else {
            self.of.insert(who.clone(), after);
            self.order.insert((after, who.clone()));
        }
    }
}
