//! Dictionaries that maintain themselves: of what a service's messages for one principal have in
//! common, made when deltas had nothing of their kind to go by, sent while the path is idle.
//!
//! They outlive paths, and the process where its shell keeps them ([`super::lasting`]), and are
//! agreed on each path anew: by name, since either side may have lost them. A sender has
//! [`MAX_MAKERS`] contexts with [`MAX_SAMPLES`] of [`MAX_SAMPLE_BYTES`] each and a dictionary (3
//! MiB in all), a receiver [`MAX_HELD`] dictionaries (2 MiB).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::dictionary::{Distilled, Kept};

use super::bases::Context;
use super::held::Held;
use super::lasting::{name_of_held, name_of_made};
use crate::job::Prepare;

/// Contexts of which samples are collected; beyond it the one longest unused goes.
const MAX_MAKERS: usize = 32;
/// Samples of a context: the latest.
const MAX_SAMPLES: usize = 16;
/// A longer message gains little by a dictionary.
pub(crate) const MAX_SAMPLE_BYTES: usize = 4 << 10;
/// Dictionaries that are being made: one, and one that waits. So there is always a context that may
/// go for another.
const MAX_TRAINING: usize = 2;
/// Messages that had no base and no dictionary of their kind, since a dictionary was last thought
/// of: fewer are not worth its way across.
const MIN_MISSES: u32 = 4;
/// Samples that have to be new for another try; each one in vain doubles it up to the second. No
/// fewer than there can be: what one is made of never has to outlive the relay.
const FRESH_SAMPLES: (u32, u32) = (16, 1024);
/// Dictionaries that are held for peers, of [`codec::dictionary::DISTILLED_BYTES`] each.
const MAX_HELD: usize = 128;
/// Those of one peer: none drives out all that others have sent.
const MAX_OF_A_PEER: usize = MAX_MAKERS;
/// It is told that a dictionary is in use once in so long.
const USED_PAUSE: Duration = Duration::from_secs(600);
/// A dictionary of this side's.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) kept: Arc<Kept>,
    /// Those of its context so far, with it.
    pub(crate) version: u32,
    pub(crate) parcel: Bytes,
}

/// A dictionary that was made: whose it is, it, and the name of the one before.
#[derive(Debug)]
pub(crate) struct Trained {
    pub(crate) scope: u64,
    pub(crate) context: Context,
    pub(crate) made: Made,
    pub(crate) before: Option<[u8; 8]>,
}

/// A peer's.
#[derive(Debug)]
struct Theirs {
    kept: Arc<Kept>,
    reported: Option<Duration>,
}

/// What is collected of a context.
#[derive(Debug)]
struct Maker {
    samples: VecDeque<Arc<Kept>>,
    fresh: u32,
    /// So many fresh ones are wanted for the next try.
    wanted: u32,
    misses: u32,
    made: Option<Made>,
    training: bool,
    used: u64,
    /// When it was told that its dictionary is used.
    reported: Option<Duration>,
}

impl Maker {
    fn new() -> Self {
        let (samples, wanted) = (VecDeque::new(), FRESH_SAMPLES.0);
        let (made, training, reported) = (None, false, None);
        Self { samples, fresh: 0, wanted, misses: 0, made, training, used: 0, reported }
    }
}

/// Of all peers, by the scope that principals belong to.
#[derive(Debug, Default)]
pub(crate) struct Dictionaries {
    makers: BTreeMap<(u64, Context), Maker>,
    held: Held<Theirs, MAX_HELD, MAX_OF_A_PEER>,
    /// Whose dictionary is being made.
    training: BTreeMap<u64, (u64, Context)>,
    next: u64,
    clock: u64,
    /// Names of those that went for others since it was last told.
    pub(crate) gone: Vec<[u8; 32]>,
}

impl Dictionaries {
    fn maker(&mut self, scope: u64, context: &Context) -> &mut Maker {
        self.clock += 1;
        let key = (scope, context.clone());
        if self.makers.len() >= MAX_MAKERS && !self.makers.contains_key(&key) {
            let idle = self.makers.iter().filter(|(_, maker)| !maker.training);
            // Whoever comes once must not drive out what was made for others.
            let least = idle.min_by_key(|(_, maker)| (maker.made.is_some(), maker.used));
            let oldest = least.map(|(key, _)| key.clone());
            if let Some((oldest, maker)) = oldest.and_then(|key| self.makers.remove_entry(&key))
                && maker.made.is_some()
            {
                self.gone.push(name_of_made(oldest.0, &oldest.1));
            }
        }
        let maker = self.makers.entry(key).or_insert_with(Maker::new);
        maker.used = self.clock;
        maker
    }

    /// A message had no base and no dictionary of its kind.
    pub(crate) fn missed(&mut self, scope: u64, context: &Context) {
        let maker = self.maker(scope, context);
        maker.misses = maker.misses.saturating_add(1);
    }

    /// The dictionary of a context.
    pub(crate) fn of(&self, scope: u64, context: &Context) -> Option<&Made> {
        self.makers.get(&(scope, context.clone()))?.made.as_ref()
    }

    /// Takes one of an earlier relay.
    pub(crate) fn restore(&mut self, scope: u64, context: &Context, made: Made) {
        self.maker(scope, context).made = Some(made);
    }

    /// What a peer's dictionary of this name is.
    pub(crate) fn find(&self, scope: u64, id: [u8; 8]) -> Option<&Arc<Kept>> {
        let of = self.held.iter().filter(|(owner, _)| *owner == scope);
        of.map(|(_, one)| &one.kept).find(|kept| kept.id().short() == id)
    }

    /// A message was encoded with one of this side's: the name to report.
    pub(crate) fn used_made(&mut self, now: Duration, scope: u64, id: [u8; 8]) -> Option<[u8; 32]> {
        let is_it =
            |maker: &Maker| maker.made.as_ref().is_some_and(|it| it.kept.id().short() == id);
        let mut mine = self.makers.iter_mut().filter(|((of, _), _)| *of == scope);
        let ((_, context), maker) = mine.find(|(_, maker)| is_it(maker))?;
        is_due(&mut maker.reported, now).then(|| name_of_made(scope, context))
    }

    /// A message was encoded with one of a peer's.
    pub(crate) fn used_held(&mut self, now: Duration, scope: u64, id: [u8; 8]) -> Option<[u8; 32]> {
        let one = self.held.used(|owner, one| owner == scope && one.kept.id().short() == id)?;
        is_due(&mut one.reported, now).then(|| name_of_held(scope, one.kept.id()))
    }

    /// This side's and those that it holds for peers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kept>> {
        let made = self.makers.values().filter_map(|maker| maker.made.as_ref());
        made.map(|made| &made.kept).chain(self.held.iter().map(|(_, one)| &one.kept))
    }

    /// Those of peers are gone, for tests.
    #[cfg(test)]
    pub(crate) fn lose_held(&mut self) {
        self.held = Held::default();
    }

    /// Holds a peer's dictionary; `false`: another peer's oldest went for it.
    pub(crate) fn hold(&mut self, scope: u64, kept: Arc<Kept>) -> bool {
        let gone = self.held.hold(scope, Theirs { kept, reported: None });
        let is_anothers = gone.as_ref().is_some_and(|(owner, _)| *owner != scope);
        self.gone.extend(gone.map(|(owner, one)| name_of_held(owner, one.kept.id())));
        !is_anothers
    }

    /// Those of one scope's contexts.
    pub(crate) fn made_for(&self, scope: u64) -> impl Iterator<Item = &Made> {
        let mine = self.makers.iter().filter(move |((of, _), _)| *of == scope);
        mine.filter_map(|(_, maker)| maker.made.as_ref())
    }

    /// Takes a message of this side's as a sample; the job that makes a dictionary of the samples,
    /// where one is due.
    pub(crate) fn sample(
        &mut self,
        scope: u64,
        context: &Context,
        kept: &Arc<Kept>,
    ) -> Option<Prepare> {
        if kept.content().len() > MAX_SAMPLE_BYTES {
            return None;
        }
        let busy = self.training.len() >= MAX_TRAINING;
        let maker = self.maker(scope, context);
        if maker.samples.len() >= MAX_SAMPLES {
            maker.samples.pop_front();
        }
        maker.samples.push_back(Arc::clone(kept));
        maker.fresh = maker.fresh.saturating_add(1);
        let due = maker.fresh >= maker.wanted && maker.misses >= MIN_MISSES && !maker.training;
        if !due || busy {
            return None;
        }
        (maker.fresh, maker.misses, maker.training) = (0, 0, true);
        let samples = maker.samples.iter().cloned().collect();
        let before = maker.made.as_ref().map(|made| Arc::clone(&made.kept));
        self.next += 1;
        self.training.insert(self.next, (scope, context.clone()));
        Some(Prepare::Dictionary { number: self.next, samples, before })
    }

    /// A dictionary was made, or would not pay; where it was, whose it is, it, and the name of the
    /// one before.
    pub(crate) fn trained(
        &mut self,
        now: Duration,
        number: u64,
        result: Result<Option<Distilled>, codec::Error>,
    ) -> Option<Trained> {
        let key = self.training.remove(&number)?;
        let maker = self.makers.get_mut(&key)?;
        maker.training = false;
        let Some(Distilled { kept, parcel }) = result.ok().flatten() else {
            maker.wanted = (2 * maker.wanted).min(FRESH_SAMPLES.1);
            return None;
        };
        maker.wanted = FRESH_SAMPLES.0;
        let version = maker.made.as_ref().map_or(1, |before| before.version.saturating_add(1));
        let made = Made { kept: Arc::new(kept), version, parcel: parcel.into() };
        let before = maker.made.replace(made.clone()).map(|before| before.kept.id().short());
        maker.reported = Some(now);
        let (scope, context) = key;
        Some(Trained { scope, context, made, before })
    }

    /// What is sent of the dictionary of this name.
    pub(crate) fn parcel(&self, id: [u8; 8]) -> Option<&Bytes> {
        let mut all = self.makers.values().filter_map(|maker| maker.made.as_ref());
        all.find(|made| made.kept.id().short() == id).map(|made| &made.parcel)
    }
}

/// Whether it is to be told again, which is done then.
fn is_due(reported: &mut Option<Duration>, now: Duration) -> bool {
    let due = reported.is_none_or(|before| now >= before + USED_PAUSE);
    if due {
        *reported = Some(now);
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(number: u64) -> Arc<Kept> {
        Arc::new(Kept::new(number.to_be_bytes().repeat(9)))
    }

    #[test]
    fn what_another_peer_sent_goes_only_for_many() {
        let mut all = Dictionaries::default();
        assert!((0..300).all(|number| all.hold(1, kept(number))));
        assert_eq!((all.held.iter().count(), all.gone.len()), (MAX_OF_A_PEER, 268));
        assert!(all.find(1, kept(299).id().short()).is_some());
        assert!(all.find(2, kept(299).id().short()).is_none(), "it is nobody else's");
        assert!(!(2..300).all(|peer| all.hold(peer, kept(1))));
        assert_eq!(all.held.iter().count(), MAX_HELD);
    }

    #[test]
    fn many_contexts_at_once_are_neither_all_collected_nor_all_made() {
        let (mut all, mut orders) = (Dictionaries::default(), 0);
        for principal in 0..200 {
            let context = Context { principal, service: "http://origin".to_owned() };
            for number in 0..40 {
                all.missed(1, &context);
                orders += usize::from(all.sample(1, &context, &kept(number)).is_some());
            }
        }
        assert_eq!(all.makers.len(), MAX_MAKERS);
        assert_eq!(orders, MAX_TRAINING);
    }
}
