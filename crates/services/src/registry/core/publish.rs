//! Changes of a publisher: whose key it is, what it may have, and all or nothing.

use std::sync::Arc;
use std::time::Duration;

use super::super::keys::{self, Form};
use super::super::model::{
    Bag, Binding, Body, Business, Entity, Key, Kind, Reference, Service, TModel, Text,
};
use super::super::quality::{Rung, TMODEL_LATENCY};
use super::super::refusal::{Reason, Refusal};
use super::canonical::{HOME, LEASE, TYPES};
use super::{Change, Core, unknown};
use crate::messaging::shown;

/// Most bindings of a service.
const MAX_BINDINGS: usize = 256;
/// Most values in the bags of an entity.
const MAX_REFERENCES: usize = 256;

/// How long a service is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lease {
    /// As its categories say; else as long as it was before; else for ever.
    AsSaid,
    /// So long.
    For(Duration),
}

/// The changes of one request. Without [`Publication::finish`] they are undone.
pub(crate) struct Publication<'a> {
    core: &'a mut Core,
    now: Duration,
    owner: Arc<str>,
    /// Keys of chance.
    chance: &'a mut dyn FnMut() -> [u8; 16],
    /// What was there before each change.
    journal: Vec<(Key, Option<Arc<Entity>>)>,
}

impl<'a> Publication<'a> {
    /// A publication of this owner's.
    pub(crate) fn new(
        core: &'a mut Core,
        now: Duration,
        owner: &Arc<str>,
        chance: &'a mut dyn FnMut() -> [u8; 16],
    ) -> Self {
        Self { core, now, owner: owner.clone(), chance, journal: Vec::new() }
    }

    /// What the registry knows by now.
    pub(crate) fn core(&self) -> &Core {
        self.core
    }

    /// Makes it all stay; what is to be stored.
    pub(crate) fn finish(mut self) -> Vec<Change> {
        let mut keys: Vec<Key> = self.journal.drain(..).map(|(key, _)| key).collect();
        keys.sort();
        keys.dedup();
        let change = |key: Key| match self.core.entities.get(&key) {
            Some(entity) => Change::Put(entity.clone()),
            None => Change::Removed(key),
        };
        keys.into_iter().map(change).collect()
    }

    fn set(&mut self, key: Key, entity: Option<Entity>) {
        let before = self.core.set(key.clone(), entity.map(Arc::new));
        self.journal.push((key, before));
    }

    fn fresh(&mut self) -> Key {
        loop {
            let key = keys::from_chance((self.chance)());
            if !self.core.entities.contains_key(&key) && !self.core.bindings.contains_key(&key) {
                return key;
            }
        }
    }

    /// What is there with a key, which must be the publisher's and of the kind.
    fn own(&self, kind: Kind, key: &str) -> Result<Option<Arc<Entity>>, Refusal> {
        let Some(entity) = self.core.get(self.now, key) else { return Ok(None) };
        if entity.kind() != kind {
            let line = format!("'{}' is the key of a {}", shown(key), entity.kind().name());
            return Err(Refusal::new(Reason::InvalidKeyPassed, line));
        }
        if entity.owner != self.owner {
            let line = format!("'{}' is another publisher's; only who made it may", shown(key));
            return Err(Refusal::new(Reason::UserMismatch, line));
        }
        Ok(Some(entity.clone()))
    }

    /// Whether the publisher may give this key to something new.
    fn may_give(&self, kind: Kind, key: &str, categories: &Bag) -> Result<(), Refusal> {
        let unavailable = |line: String| Err(Refusal::new(Reason::KeyUnavailable, line));
        let is_generator = categories.values(TYPES).any(|value| value == "keyGenerator");
        let wanted = match keys::form(key)? {
            Form::Uuid => {
                let line = format!("'{key}' was not given out here; leave the key out");
                return unavailable(line);
            }
            Form::Generator { .. } if kind != Kind::TModel || !is_generator => {
                let line = format!(
                    "'{key}' ends as the key of a key generator: a tModel that {TYPES} \
                     categorizes as keyGenerator"
                );
                return Err(Refusal::new(Reason::InvalidKeyPassed, line));
            }
            // Whoever is first has the domain.
            Form::Generator { parent: None } => return Ok(()),
            Form::Generator { parent: Some(parent) } => parent,
            Form::Derived { .. } if is_generator => {
                let line = format!("the key of a key generator ends in keygenerator, not '{key}'");
                return Err(Refusal::new(Reason::InvalidValue, line));
            }
            Form::Derived { generator } => generator,
        };
        match self.core.get(self.now, &wanted) {
            None => unavailable(format!("'{key}' needs the key generator {wanted}; save it first")),
            Some(generator) if generator.owner != self.owner => {
                unavailable(format!("the key generator {wanted} is another publisher's"))
            }
            Some(_) => Ok(()),
        }
    }

    /// The key of something that is saved, and what is there with it.
    fn place(
        &mut self,
        kind: Kind,
        key: Option<Key>,
        categories: &Bag,
    ) -> Result<(Key, Option<Arc<Entity>>), Refusal> {
        let (key, before) = match key {
            Some(key) => match self.own(kind, &key)? {
                Some(before) => (key, Some(before)),
                None => {
                    self.may_give(kind, &key, categories)?;
                    if self.core.bindings.contains_key(&key) {
                        let line = format!("'{key}' is the key of a binding");
                        return Err(Refusal::new(Reason::InvalidKeyPassed, line));
                    }
                    (key, None)
                }
            },
            None => (self.fresh(), None),
        };
        if before.is_none() {
            self.check_room()?;
        }
        Ok((key, before))
    }

    fn check_room(&self) -> Result<(), Refusal> {
        let (all, max) = (self.core.entities.len(), self.core.limits.entries);
        let own = self.core.counts.get(&self.owner).copied().unwrap_or(0);
        let most = self.core.limits.entries_of_publisher;
        if own >= most {
            let line = format!("{own} entries of '{}', the limit is {most}", self.owner);
            let line = format!("{line}; delete some first");
            return Err(Refusal::new(Reason::AccountLimitExceeded, line));
        }
        if all >= max {
            let line = format!("{all} entries of all publishers, the limit is {max}");
            return Err(Refusal::new(Reason::AccountLimitExceeded, line));
        }
        Ok(())
    }

    fn keep(&mut self, key: &Key, before: Option<&Entity>, lease: Option<Duration>, body: Body) {
        let entity = Entity {
            key: key.clone(),
            owner: self.owner.clone(),
            created: before.map_or(self.now, |before| before.created),
            modified: self.now,
            modified_below: self.now,
            lease,
            until: lease.map(|lease| self.now + lease),
            body,
        };
        self.set(key.clone(), Some(entity));
    }

    /// Something in a business was changed.
    fn touch(&mut self, business: &Key) {
        let Some(entity) = self.core.entities.get(business) else { return };
        if entity.modified_below != self.now {
            let entity = Entity { modified_below: self.now, ..(**entity).clone() };
            self.set(business.clone(), Some(entity));
        }
    }

    /// Saves a business; its services are saved behind it, and those it had before and are not
    /// among them are no more (UDDI v3.0.2 §5.2.13).
    ///
    /// # Errors
    /// What the publisher may not do, and values out of their bounds.
    pub(crate) fn save_business(
        &mut self,
        key: Option<Key>,
        business: Business,
        services: Vec<(Option<Key>, Service)>,
    ) -> Result<Key, Refusal> {
        check_bag(&business.categories, business.identifiers.len())?;
        let (key, before) = self.place(Kind::Business, key, &business.categories)?;
        self.keep(&key, before.as_deref(), None, Body::Business(business));
        let mut kept = Vec::new();
        for (service_key, mut service) in services {
            if !service.business.is_empty() && service.business != key {
                let line = "a service of another business is not shown in this one";
                return Err(Refusal::new(Reason::InvalidProjection, line));
            }
            service.business = key.clone();
            kept.push(self.save_service(service_key, service, Lease::AsSaid)?);
        }
        let had = self.core.services.get(&key).cloned().unwrap_or_default();
        for gone in had.into_iter().filter(|had| !kept.contains(had)) {
            self.set(gone, None);
        }
        Ok(key)
    }

    /// Saves a service. One that names no business is put into the publisher's own, which is made
    /// where it is not there.
    ///
    /// # Errors
    /// As [`Publication::save_business`].
    pub(crate) fn save_service(
        &mut self,
        key: Option<Key>,
        mut service: Service,
        lease: Lease,
    ) -> Result<Key, Refusal> {
        check_bag(&service.categories, 0)?;
        check_rungs(&service)?;
        if service.bindings.len() > MAX_BINDINGS {
            let count = service.bindings.len();
            let line = format!("{count} bindings of a service, the limit is {MAX_BINDINGS}");
            return Err(Refusal::new(Reason::TooManyOptions, line));
        }
        let had = match &key {
            Some(key) => self.own(Kind::Service, key)?,
            None => None,
        };
        let had_business = had.as_ref().and_then(|had| Some(had.service()?.business.clone()));
        if service.business.is_empty() {
            service.business = match &had_business {
                Some(business) => business.clone(),
                None => {
                    let line = "a new service says its business in businessKey";
                    return Err(Refusal::new(Reason::InvalidKeyPassed, line));
                }
            };
        }
        if self.own(Kind::Business, &service.business)?.is_none() {
            return Err(unknown("business", &service.business));
        }
        let (key, before) = self.place(Kind::Service, key, &service.categories)?;
        let mut bindings = std::mem::take(&mut service.bindings);
        for binding in &mut bindings {
            self.key_binding(&key, binding)?;
        }
        for (at, binding) in bindings.iter().enumerate() {
            if bindings.iter().take(at).any(|other| other.key == binding.key) {
                let line = format!("'{}' is the key of two bindings", binding.key);
                return Err(Refusal::new(Reason::InvalidKeyPassed, line));
            }
        }
        service.bindings = bindings;
        let lease = self.lease_of(&service, lease, before.as_deref())?;
        let business = service.business.clone();
        self.keep(&key, before.as_deref(), lease, Body::Service(service));
        self.touch(&business);
        if let Some(old) = had_business.filter(|old| *old != business) {
            self.touch(&old);
        }
        Ok(key)
    }

    /// The key of a binding: its own, that it has in this service already, or a new one.
    fn key_binding(&mut self, service: &Key, binding: &mut Binding) -> Result<(), Refusal> {
        check_bag(&binding.categories, binding.instances.len())?;
        if let super::super::model::Target::Redirector(to) = &binding.target
            && !self.core.bindings.contains_key(to)
        {
            return Err(unknown("binding", to));
        }
        if binding.key.is_empty() {
            binding.key = self.fresh();
            return Ok(());
        }
        match self.core.bindings.get(&binding.key) {
            Some(of) if of == service => Ok(()),
            // One of the publisher's moves from one service to another by being saved there.
            Some(_) => {
                let line = format!("'{}' is the key of another service's binding", binding.key);
                Err(Refusal::new(Reason::InvalidKeyPassed, line))
            }
            None if self.core.entities.contains_key(&binding.key) => {
                let line = format!("'{}' is no key of a binding", binding.key);
                Err(Refusal::new(Reason::InvalidKeyPassed, line))
            }
            None => self.may_give(Kind::Service, &binding.key, &Bag::default()),
        }
    }

    fn lease_of(
        &self,
        service: &Service,
        lease: Lease,
        before: Option<&Entity>,
    ) -> Result<Option<Duration>, Refusal> {
        let lease = match (lease, service.categories.value(LEASE)) {
            (Lease::For(lease), _) => lease,
            (Lease::AsSaid, Some(text)) => {
                let seconds = text.parse().map_err(|_| {
                    let line = format!("a lease of '{}'; it is a number of seconds", shown(text));
                    Refusal::new(Reason::InvalidValue, line)
                })?;
                Duration::from_secs(seconds)
            }
            (Lease::AsSaid, None) => return Ok(before.and_then(|before| before.lease)),
        };
        self.check_lease(lease).map(Some)
    }

    fn check_lease(&self, lease: Duration) -> Result<Duration, Refusal> {
        let (least, most) = self.core.limits.leases;
        if (least..=most).contains(&lease) {
            return Ok(lease);
        }
        let (asked, least, most) = (lease.as_secs(), least.as_secs(), most.as_secs());
        let line = format!("a lease of {asked} s; choose one from {least} to {most} s");
        Err(Refusal::value(line))
    }

    /// The publisher's own business, which is made where it is not there.
    ///
    /// # Errors
    /// Where the publisher has as many entries as it may.
    pub(crate) fn home(&mut self) -> Result<Key, Refusal> {
        if let Some(key) = self.core.homes.get(&self.owner) {
            return Ok(key.clone());
        }
        let owner = &*self.owner;
        let business = Business {
            names: vec![Text::plain(owner)],
            categories: Bag { references: vec![Reference::new(HOME, "", owner)], ..Bag::default() },
            ..Business::default()
        };
        self.save_business(None, business, Vec::new())
    }

    /// Saves a service whose key this registry gives: one of its own partition.
    ///
    /// # Errors
    /// As [`Publication::save_service`].
    pub(crate) fn save_at(
        &mut self,
        key: Key,
        service: Service,
        lease: Duration,
    ) -> Result<Key, Refusal> {
        let lease = self.check_lease(lease)?;
        if self.own(Kind::Service, &key)?.is_some() {
            return self.save_service(Some(key), service, Lease::For(lease));
        }
        check_bag(&service.categories, 0)?;
        check_rungs(&service)?;
        self.check_room()?;
        let mut service = service;
        for binding in &mut service.bindings {
            check_bag(&binding.categories, binding.instances.len())?;
            binding.key = self.fresh();
        }
        let business = service.business.clone();
        self.keep(&key, None, Some(lease), Body::Service(service));
        self.touch(&business);
        Ok(key)
    }

    /// Saves a binding of a service that is there.
    ///
    /// # Errors
    /// As [`Publication::save_service`].
    pub(crate) fn save_binding(
        &mut self,
        service: Option<Key>,
        binding: Binding,
    ) -> Result<Key, Refusal> {
        let of = self.core.bindings.get(&binding.key).cloned();
        let Some(key) = service.or(of) else {
            let line = "a new binding says its service in serviceKey";
            return Err(Refusal::new(Reason::InvalidKeyPassed, line));
        };
        let before = self.own(Kind::Service, &key)?.ok_or_else(|| unknown("service", &key))?;
        let Some(mut service) = before.service().cloned() else {
            return Err(unknown("service", &key));
        };
        let at = service.bindings.iter().position(|had| had.key == binding.key);
        let at = match at.and_then(|at| Some((at, service.bindings.get_mut(at)?))) {
            Some((at, had)) => {
                *had = binding;
                at
            }
            None => {
                service.bindings.push(binding);
                service.bindings.len() - 1
            }
        };
        service.facts = super::super::uddi::facts(&service.bindings);
        let key = self.save_service(Some(key), service, Lease::AsSaid)?;
        let saved = self.core.get(self.now, &key).and_then(|saved| saved.service());
        let saved = saved.and_then(|saved| saved.bindings.get(at));
        saved.map(|binding| binding.key.clone()).ok_or_else(|| unknown("service", &key))
    }

    /// Saves a tModel; one that was deleted is there again.
    ///
    /// # Errors
    /// As [`Publication::save_business`].
    pub(crate) fn save_tmodel(&mut self, key: Option<Key>, tmodel: TModel) -> Result<Key, Refusal> {
        check_bag(&tmodel.categories, tmodel.identifiers.len())?;
        let (key, before) = self.place(Kind::TModel, key, &tmodel.categories)?;
        self.keep(&key, before.as_deref(), None, Body::TModel(tmodel));
        Ok(key)
    }

    /// Begins a service's lease again.
    ///
    /// # Errors
    /// A service that is not there, or another's.
    pub(crate) fn renew(&mut self, key: &str, lease: Option<Duration>) -> Result<(), Refusal> {
        let own = self.own(Kind::Service, key)?.ok_or_else(|| unknown("service", key))?;
        let lease = lease.map(|lease| self.check_lease(lease)).transpose()?.or(own.lease);
        let until = lease.map(|lease| self.now + lease);
        let entity = Entity { lease, until, ..(*own).clone() };
        self.set(own.key.clone(), Some(entity));
        Ok(())
    }

    /// Deletes entities of a kind: businesses with their services. A tModel is hidden from
    /// searches, and can still be read (UDDI v3.0.2 §5.2.7).
    ///
    /// # Errors
    /// A key that is not there, or another's.
    pub(crate) fn delete(&mut self, kind: Kind, key: &str) -> Result<(), Refusal> {
        let own = self.own(kind, key)?.ok_or_else(|| unknown(kind.name(), key))?;
        match &own.body {
            Body::Business(_) => {
                for service in self.core.services.get(&own.key).cloned().unwrap_or_default() {
                    self.set(service, None);
                }
                self.set(own.key.clone(), None);
            }
            Body::Service(service) => {
                self.set(own.key.clone(), None);
                self.touch(&service.business);
            }
            Body::TModel(tmodel) => {
                let tmodel = TModel { is_deleted: true, ..tmodel.clone() };
                let body = Body::TModel(tmodel);
                let entity = Entity { modified: self.now, body, ..(*own).clone() };
                self.set(own.key.clone(), Some(entity));
            }
        }
        Ok(())
    }

    /// Deletes a binding.
    ///
    /// # Errors
    /// As [`Publication::delete`].
    pub(crate) fn delete_binding(&mut self, key: &str) -> Result<(), Refusal> {
        let of = self.core.want_binding(self.now, key)?.0.key.clone();
        let own = self.own(Kind::Service, &of)?.ok_or_else(|| unknown("service", &of))?;
        let Some(mut service) = own.service().cloned() else { return Ok(()) };
        service.bindings.retain(|binding| &*binding.key != key);
        service.facts = super::super::uddi::facts(&service.bindings);
        self.save_service(Some(of), service, Lease::AsSaid).map(drop)
    }
}

impl Drop for Publication<'_> {
    fn drop(&mut self) {
        for (key, before) in self.journal.drain(..).rev() {
            self.core.set(key, before);
        }
    }
}

fn check_bag(bag: &Bag, others: usize) -> Result<(), Refusal> {
    let grouped: usize = bag.groups.iter().map(|(_, of)| of.len() + 1).sum();
    let count = bag.references.len() + grouped + others;
    if count > MAX_REFERENCES {
        let line = format!("{count} values of an entity, the limit is {MAX_REFERENCES}");
        return Err(Refusal::new(Reason::TooManyOptions, line));
    }
    Ok(())
}

/// A rung is one of the ladder, and what the service says that it measured bears it out.
fn check_rungs(service: &Service) -> Result<(), Refusal> {
    for value in service.categories.values(TMODEL_LATENCY) {
        let invalid = |line: String| Refusal::new(Reason::InvalidValue, line);
        let rung = Rung::parse(value)
            .ok_or_else(|| invalid(format!("'{}' is no rung of the ladder", shown(value))))?;
        let facts = service.facts.as_ref().filter(|facts| !rung.holds(facts));
        if let Some(facts) = facts {
            let measured = match facts.bound_us(rung.grade) {
                Some(bound) => format!("{bound} us"),
                None => format!("{} samples, too few", facts.samples),
            };
            return Err(invalid(format!(
                "rung {value} is not borne out: measured were {measured}"
            )));
        }
    }
    Ok(())
}
