//! What the registry knows, and what may be done with it: pure, with time and chance as arguments.
//!
//! Each change of a request is made at once and undone where a later one of the same request is
//! refused. What changed goes to the store, and is answered when the disk has it.

mod canonical;
mod publish;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::model::{Binding, Entity, Key, Kind, Service};
use super::refusal::{Reason, Refusal};
use crate::messaging::shown;

pub(crate) use canonical::{KEYWORDS, KIND};
pub(crate) use publish::{Lease, Publication};

/// Entities that end at once when many leases are over: the next go a moment later.
pub(crate) const MAX_ENDED: usize = 1000;

/// Bounds.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Most entities of one publisher.
    pub(crate) entries_of_publisher: usize,
    /// Most entities of all.
    pub(crate) entries: usize,
    /// Shortest and longest lease.
    pub(crate) leases: (Duration, Duration),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries_of_publisher: 20_000,
            entries: 200_000,
            leases: (Duration::from_secs(1), Duration::from_secs(30 * 86_400)),
        }
    }
}

/// What is to be written to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The entity is now so.
    Put(Arc<Entity>),
    /// It is no more.
    Removed(Key),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    limits: Limits,
    entities: BTreeMap<Key, Arc<Entity>>,
    /// The keys of each kind.
    kinds: BTreeMap<Kind, BTreeSet<Key>>,
    /// The service of a binding.
    bindings: BTreeMap<Key, Key>,
    /// The services of a business.
    services: BTreeMap<Key, BTreeSet<Key>>,
    /// Which entities have a value in a value set.
    categories: BTreeMap<(Key, String), BTreeSet<Key>>,
    /// Which leases end when.
    ends: BTreeSet<(Duration, Key)>,
    /// How many entities each publisher has.
    counts: BTreeMap<Arc<str>, usize>,
    /// The business of each publisher that services are put into which name none.
    homes: BTreeMap<Arc<str>, Key>,
    /// Counts changes, so that who watches sees that there was one.
    version: u64,
}

impl Core {
    /// A registry with the canonical tModels, and with what the store has.
    pub(crate) fn new(limits: Limits, stored: impl IntoIterator<Item = Entity>) -> Self {
        let mut core = Self {
            limits,
            entities: BTreeMap::new(),
            kinds: BTreeMap::new(),
            bindings: BTreeMap::new(),
            services: BTreeMap::new(),
            categories: BTreeMap::new(),
            ends: BTreeSet::new(),
            counts: BTreeMap::new(),
            homes: BTreeMap::new(),
            version: 0,
        };
        for entity in canonical::entities().into_iter().chain(stored) {
            core.set(entity.key.clone(), Some(Arc::new(entity)));
        }
        core
    }

    /// Changes so far.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// How many entities there are of a kind, the canonical ones among them.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).map_or(0, BTreeSet::len)
    }

    /// An entity whose lease is not over.
    pub(crate) fn get(&self, now: Duration, key: &str) -> Option<&Arc<Entity>> {
        self.entities.get(key).filter(|entity| !entity.is_over(now))
    }

    /// An entity of a kind.
    ///
    /// # Errors
    /// [`Reason::InvalidKeyPassed`] where there is none of that kind.
    pub(crate) fn want(
        &self,
        now: Duration,
        kind: Kind,
        key: &str,
    ) -> Result<&Arc<Entity>, Refusal> {
        let found = self.get(now, key).filter(|entity| entity.kind() == kind);
        found.ok_or_else(|| unknown(kind.name(), key))
    }

    /// A binding, with the service that has it.
    ///
    /// # Errors
    /// [`Reason::InvalidKeyPassed`] where there is none.
    pub(crate) fn want_binding(
        &self,
        now: Duration,
        key: &str,
    ) -> Result<(&Arc<Entity>, &Binding), Refusal> {
        let service = self.bindings.get(key).and_then(|service| self.get(now, service));
        let found = service.and_then(|entity| {
            let of = entity.service()?;
            Some((entity, of.bindings.iter().find(|binding| &*binding.key == key)?))
        });
        found.ok_or_else(|| unknown("binding", key))
    }

    /// All entities of a kind whose leases are not over, by key.
    pub(crate) fn all(&self, now: Duration, kind: Kind) -> impl Iterator<Item = &Arc<Entity>> {
        let keys = self.kinds.get(&kind).into_iter().flatten();
        keys.filter_map(move |key| self.get(now, key))
    }

    /// The services of a business.
    pub(crate) fn services_of<'a>(
        &'a self,
        now: Duration,
        business: &str,
    ) -> impl Iterator<Item = (&'a str, &'a Service)> {
        let keys = self.services.get(business).into_iter().flatten();
        keys.filter_map(move |key| Some((&**key, self.get(now, key)?.service()?)))
    }

    /// The keys of what has a value in a value set; without case, as keys of value sets have.
    pub(crate) fn with_category(&self, tmodel: &str, value: &str) -> Option<&BTreeSet<Key>> {
        self.categories.get(&(tmodel.into(), value.to_owned()))
    }

    /// When the next lease ends.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// Takes out entities whose leases are over, [`MAX_ENDED`] at most.
    pub(crate) fn expire(&mut self, now: Duration) -> Vec<Change> {
        let over = self.ends.iter().take_while(|(until, _)| *until <= now).take(MAX_ENDED);
        let over: Vec<Key> = over.map(|(_, key)| key.clone()).collect();
        for key in &over {
            self.set(key.clone(), None);
        }
        over.into_iter().map(Change::Removed).collect()
    }

    /// Puts an entity in place of another one, or takes it out: the one place where indexes follow.
    fn set(&mut self, key: Key, entity: Option<Arc<Entity>>) -> Option<Arc<Entity>> {
        self.version += 1;
        let before = match &entity {
            Some(entity) => self.entities.insert(key.clone(), entity.clone()),
            None => self.entities.remove(&key),
        };
        if let Some(before) = &before {
            self.index(before, false);
        }
        if let Some(entity) = &entity {
            self.index(entity, true);
        }
        before
    }

    fn index(&mut self, entity: &Entity, is_there: bool) {
        let key = &entity.key;
        alter(&mut self.kinds, entity.kind(), key, is_there);
        let count = self.counts.entry(entity.owner.clone()).or_default();
        *count = if is_there { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.counts.remove(&entity.owner);
        }
        for reference in &entity.categories().references {
            let at = (reference.tmodel.clone(), reference.value.clone());
            alter(&mut self.categories, at, key, is_there);
        }
        if let Some(until) = entity.until {
            let end = (until, key.clone());
            if is_there {
                self.ends.insert(end);
            } else {
                self.ends.remove(&end);
            }
        }
        if let Some(service) = entity.service() {
            alter(&mut self.services, service.business.clone(), key, is_there);
            for binding in &service.bindings {
                if is_there {
                    self.bindings.insert(binding.key.clone(), key.clone());
                } else {
                    self.bindings.remove(&binding.key);
                }
            }
        }
        let is_home = entity.business().is_some_and(|one| {
            one.categories.values(canonical::HOME).any(|owner| owner == &*entity.owner)
        });
        if is_home && is_there {
            self.homes.insert(entity.owner.clone(), key.clone());
        } else if is_home {
            self.homes.remove(&entity.owner);
        }
    }
}

/// Puts a key into the set at a place, or takes it out; sets without a key are no more.
fn alter<P: Ord + Clone>(
    sets: &mut BTreeMap<P, BTreeSet<Key>>,
    place: P,
    key: &Key,
    is_there: bool,
) {
    if is_there {
        // bound: the entities that are kept.
        sets.entry(place).or_default().insert(key.clone());
        return;
    }
    if let Some(keys) = sets.get_mut(&place) {
        keys.remove(key);
        if keys.is_empty() {
            sets.remove(&place);
        }
    }
}

fn unknown(kind: &str, key: &str) -> Refusal {
    let line = format!("no {kind} has the key '{}'; find_{kind} tells those there are", shown(key));
    Refusal::new(Reason::InvalidKeyPassed, line)
}
