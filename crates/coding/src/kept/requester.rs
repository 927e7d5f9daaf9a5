//! Who asks, in numbers.

use std::collections::BTreeMap;

use codec::dictionary::Id;

use crate::bounds::MAX_PRINCIPALS;

/// Principals, told apart within [`MAX_PRINCIPALS`].
#[derive(Debug, Default)]
pub(crate) struct Principals {
    known: BTreeMap<Id, (u64, u64)>,
    /// Counts up; a number never means another.
    next: u64,
    clock: u64,
}

impl Principals {
    /// The number of a principal.
    pub(crate) fn number(&mut self, principal: Id) -> u64 {
        self.clock += 1;
        if self.known.len() >= MAX_PRINCIPALS && !self.known.contains_key(&principal) {
            let oldest = self.known.iter().min_by_key(|(_, (_, used))| used);
            if let Some(oldest) = oldest.map(|(&id, _)| id) {
                self.known.remove(&oldest);
            }
        }
        let next = &mut self.next;
        let fresh = || {
            *next += 1;
            (*next, 0)
        };
        let (number, used) = self.known.entry(principal).or_insert_with(fresh);
        *used = self.clock;
        *number
    }
}
