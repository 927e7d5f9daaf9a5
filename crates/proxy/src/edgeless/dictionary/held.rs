//! Dictionaries that are held for those who got them, and origins that have their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codec::dictionary::{Id, Kept};

/// Dictionaries held; beyond it the one longest unused goes.
pub(super) const MAX_DICTIONARIES: usize = 256;
/// Bytes of all of them.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// Held for one client and pattern: a client that keeps none must not drive others' out.
pub(super) const MAX_ALIKE: usize = 8;
/// Origins remembered that offer dictionaries of their own; beyond it the one that counts
/// the shortest goes.
pub(super) const MAX_ORIGINS: usize = 256;

pub(super) struct Held {
    pub(super) kept: Arc<Kept>,
    pattern: String,
    used: u64,
}

#[derive(Default)]
pub(super) struct HeldState {
    /// By context and hash.
    pub(super) held: BTreeMap<(Id, Id), Held>,
    pub(super) bytes: usize,
    clock: u64,
    /// Offers made since one was taken up.
    pub(super) unused: u64,
    /// Answers that could have been offered since one was.
    pub(super) passed: u64,
    /// Origins with dictionaries of their own, and until when they count as such.
    pub(super) with_own: BTreeMap<Id, Instant>,
}

impl HeldState {
    pub(super) fn find(&mut self, context: Id, hash: Id) -> Option<Arc<Kept>> {
        self.clock += 1;
        let held = self.held.get_mut(&(context, hash))?;
        held.used = self.clock;
        self.unused = 0;
        Some(Arc::clone(&held.kept))
    }

    /// An origin has offered a dictionary that lasts so long.
    pub(super) fn note_own(&mut self, origin: Id, now: Instant, lasts: Duration) {
        self.with_own.retain(|_, until| *until > now);
        let until = self.with_own.entry(origin).or_insert(now);
        *until = (now + lasts).max(*until);
        if self.with_own.len() > MAX_ORIGINS {
            let first = self.with_own.iter().min_by_key(|(_, until)| **until);
            if let Some(first) = first.map(|(origin, _)| *origin) {
                self.with_own.remove(&first);
            }
        }
    }

    pub(super) fn has_own(&self, origin: Id, now: Instant) -> bool {
        self.with_own.get(&origin).is_some_and(|until| *until > now)
    }

    pub(super) fn hold(&mut self, context: Id, pattern: String, kept: Arc<Kept>) {
        self.clock += 1;
        let (key, used) = ((context, kept.id()), self.clock);
        if let Some(held) = self.held.get_mut(&key) {
            held.used = used;
            return;
        }
        let of = |(of, _): &(Id, Id), held: &Held| *of == context && held.pattern == pattern;
        if self.held.iter().filter(|(key, held)| of(key, held)).count() >= MAX_ALIKE {
            self.forget_one(of);
        }
        self.bytes += kept.content().len();
        self.held.insert(key, Held { kept, pattern, used });
        while self.held.len() > MAX_DICTIONARIES || self.bytes > MAX_BYTES {
            self.forget_one(|_, _| true);
        }
    }

    /// Of these, the one longest unused.
    fn forget_one(&mut self, of: impl Fn(&(Id, Id), &Held) -> bool) {
        let these = self.held.iter().filter(|(key, held)| of(key, held));
        let oldest = these.min_by_key(|(_, held)| held.used).map(|(&key, _)| key);
        if let Some(gone) = oldest.and_then(|key| self.held.remove(&key)) {
            self.bytes -= gone.kept.content().len();
        }
    }
}
