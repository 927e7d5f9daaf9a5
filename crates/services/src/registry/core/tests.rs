use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::model::{Bag, Binding, Body, Business, Reference, Service, TModel, Target, Text};
use super::super::quality::TMODEL_LATENCY;
use super::super::uddi;
use super::canonical::{LEASE, TYPES};
use super::*;

/// A registry with a clock and chance of its own.
struct World {
    core: Core,
    now: Duration,
    last: u8,
}

impl World {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self { core: Core::new(limits, []), now: Duration::from_secs(1000), last: 0 }
    }

    fn by<T>(
        &mut self,
        owner: &str,
        change: impl FnOnce(&mut Publication<'_>) -> Result<T, Refusal>,
    ) -> Result<(T, Vec<Change>), Refusal> {
        let last = &mut self.last;
        let mut chance = || {
            *last += 1;
            [*last; 16]
        };
        let mut publication =
            Publication::new(&mut self.core, self.now, &Arc::from(owner), &mut chance);
        let answer = change(&mut publication)?;
        Ok((answer, publication.finish()))
    }

    fn business(&mut self, owner: &str) -> Key {
        let business = Business { names: vec![Text::plain("b")], ..Business::default() };
        self.by(owner, |all| all.save_business(None, business, Vec::new())).unwrap().0
    }
}

fn service(business: &Key, references: Vec<Reference>) -> Service {
    Service {
        business: business.clone(),
        names: vec![Text::plain("s")],
        categories: Bag { references, groups: Vec::new() },
        ..Service::default()
    }
}

fn binding(key: &str) -> Binding {
    Binding {
        key: key.into(),
        descriptions: Vec::new(),
        target: Target::Access { use_type: None, address: "http://192.0.2.1/".to_owned() },
        instances: Vec::new(),
        categories: Bag::default(),
    }
}

fn tmodel(references: Vec<Reference>) -> TModel {
    TModel {
        is_deleted: false,
        name: Text::plain("t"),
        descriptions: Vec::new(),
        overviews: Vec::new(),
        identifiers: Vec::new(),
        categories: Bag { references, groups: Vec::new() },
    }
}

fn generator() -> TModel {
    tmodel(vec![Reference::new(TYPES, "", "keyGenerator")])
}

fn reason<T: std::fmt::Debug>(outcome: Result<T, Refusal>) -> Reason {
    outcome.unwrap_err().reason
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let mut world = World::new();
    let home = world.business("alice");
    let before = format!("{:?}", world.core.entities);
    let outcome = world.by("alice", |all| {
        all.save_service(None, service(&home, vec![]), Lease::AsSaid)?;
        all.delete(Kind::Business, &home)?;
        all.save_tmodel(Some("uddi:a.example:x".into()), tmodel(vec![]))
    });
    assert_eq!(reason(outcome), Reason::KeyUnavailable);
    assert_eq!(format!("{:?}", world.core.entities), before);
    assert_eq!(world.core.services_of(world.now, &home).count(), 0);
    assert_eq!(world.core.counts[&Arc::from("alice") as &Arc<str>], 1);
}

#[test]
fn keys_are_of_whoever_has_their_generator() {
    let mut world = World::new();
    let save = |world: &mut World, owner: &str, key: &str, one: TModel| {
        world.by(owner, |all| all.save_tmodel(Some(key.into()), one)).map(drop)
    };
    let domain = "uddi:a.example:keygenerator";
    assert_eq!(reason(save(&mut world, "alice", domain, tmodel(vec![]))), Reason::InvalidKeyPassed);
    assert_eq!(save(&mut world, "alice", domain, generator()), Ok(()));
    assert_eq!(reason(save(&mut world, "bob", domain, generator())), Reason::UserMismatch);
    let key = "uddi:a.example:x";
    assert_eq!(reason(save(&mut world, "bob", key, tmodel(vec![]))), Reason::KeyUnavailable);
    assert_eq!(reason(save(&mut world, "alice", key, generator())), Reason::InvalidValue);
    assert_eq!(save(&mut world, "alice", key, tmodel(vec![])), Ok(()));
    let deeper = "uddi:a.example:qos:x";
    assert_eq!(reason(save(&mut world, "alice", deeper, tmodel(vec![]))), Reason::KeyUnavailable);
    let inner = "uddi:a.example:qos:keygenerator";
    assert_eq!(reason(save(&mut world, "bob", inner, generator())), Reason::KeyUnavailable);
    assert_eq!(save(&mut world, "alice", inner, generator()), Ok(()));
    assert_eq!(save(&mut world, "alice", deeper, tmodel(vec![])), Ok(()));
    let uuid = "uddi:4cd7e4bc-648b-426d-9936-443eaac8ae23";
    assert_eq!(reason(save(&mut world, "alice", uuid, tmodel(vec![]))), Reason::KeyUnavailable);
}

#[test]
fn only_the_owner_changes_what_is_his() {
    let mut world = World::new();
    let home = world.business("alice");
    let one = service(&home, vec![]);
    let key =
        world.by("alice", |all| all.save_service(None, one.clone(), Lease::AsSaid)).unwrap().0;
    let other =
        world.by("bob", |all| all.save_service(Some(key.clone()), one.clone(), Lease::AsSaid));
    assert_eq!(reason(other), Reason::UserMismatch);
    assert_eq!(
        reason(world.by("bob", |all| all.save_service(None, one, Lease::AsSaid))),
        Reason::UserMismatch,
        "nobody puts a service into another's business"
    );
    for kind in [Kind::Service, Kind::Business] {
        let key = if kind == Kind::Service { &key } else { &home };
        assert_eq!(reason(world.by("bob", |all| all.delete(kind, key))), Reason::UserMismatch);
        assert_eq!(
            reason(world.by("bob", |all| all.renew(key, None))),
            match kind {
                Kind::Service => Reason::UserMismatch,
                _ => Reason::InvalidKeyPassed,
            }
        );
    }
    let canonical = world.by("alice", |all| all.delete(Kind::TModel, TYPES));
    assert_eq!(reason(canonical), Reason::UserMismatch);
}

#[test]
fn a_business_goes_with_its_services_and_a_tmodel_only_hides() {
    let mut world = World::new();
    let home = world.business("alice");
    let (key, changes) = world
        .by("alice", |all| {
            let mut one = service(&home, vec![]);
            one.bindings = vec![binding("")];
            all.save_service(None, one, Lease::AsSaid)
        })
        .unwrap();
    assert_eq!(changes.len(), 1, "the business was changed at this same time: {changes:?}");
    let of = world.core.want(world.now, Kind::Service, &key).unwrap().service().unwrap();
    let binding = of.bindings[0].key.clone();
    assert!(world.core.want_binding(world.now, &binding).is_ok());
    let changes = world.by("alice", |all| all.delete(Kind::Business, &home)).unwrap().1;
    assert_eq!(changes.len(), 2);
    assert!(world.core.want_binding(world.now, &binding).is_err());
    assert_eq!(world.core.count(Kind::Service), 0);
    let model = world.by("alice", |all| all.save_tmodel(None, tmodel(vec![]))).unwrap().0;
    world.by("alice", |all| all.delete(Kind::TModel, &model)).unwrap();
    assert!(world.core.want(world.now, Kind::TModel, &model).unwrap().tmodel().unwrap().is_deleted);
    world.by("alice", |all| all.save_tmodel(Some(model.clone()), tmodel(vec![]))).unwrap();
    assert!(
        !world.core.want(world.now, Kind::TModel, &model).unwrap().tmodel().unwrap().is_deleted
    );
}

#[test]
fn services_that_a_business_is_saved_without_are_no_more() {
    let mut world = World::new();
    let business = Business { names: vec![Text::plain("b")], ..Business::default() };
    let of = |key: Option<Key>| vec![(key, service(&"".into(), vec![]))];
    let two = [of(None), of(None)].concat();
    let home = world.by("alice", |all| all.save_business(None, business.clone(), two)).unwrap().0;
    let keys: Vec<Key> =
        world.core.services_of(world.now, &home).map(|(key, _)| key.into()).collect();
    assert_eq!(keys.len(), 2);
    let kept = of(Some(keys[0].clone()));
    world.by("alice", |all| all.save_business(Some(home.clone()), business.clone(), kept)).unwrap();
    let left: Vec<&str> = world.core.services_of(world.now, &home).map(|(key, _)| key).collect();
    assert_eq!(left, [&*keys[0]]);
    let foreign = vec![(None, service(&"uddi:other".into(), vec![]))];
    let outcome = world.by("alice", |all| all.save_business(Some(home), business, foreign));
    assert_eq!(reason(outcome), Reason::InvalidProjection);
}

#[test]
fn leases_end_and_are_renewed() {
    let mut world = World::new();
    let home = world.business("alice");
    let leased = service(&home, vec![Reference::new(LEASE, "", "60")]);
    let key = world.by("alice", |all| all.save_service(None, leased, Lease::AsSaid)).unwrap().0;
    assert_eq!(world.core.next_end(), Some(Duration::from_secs(1060)));
    world.now = Duration::from_secs(1059);
    world.by("alice", |all| all.renew(&key, None)).unwrap();
    assert_eq!(world.core.expire(Duration::from_secs(1118)), []);
    assert!(world.core.get(Duration::from_secs(1118), &key).is_some());
    assert!(
        world.core.get(Duration::from_secs(1119), &key).is_none(),
        "also before it is taken out"
    );
    world.now = Duration::from_secs(1119);
    assert_eq!(reason(world.by("alice", |all| all.renew(&key, None))), Reason::InvalidKeyPassed);
    assert_eq!(world.core.expire(world.now), [Change::Removed(key)]);
    assert_eq!(world.core.next_end(), None);
    for (text, expected) in [
        ("0", Reason::ValueNotAllowed),
        ("99999999", Reason::ValueNotAllowed),
        ("soon", Reason::InvalidValue),
    ] {
        let bad = service(&home, vec![Reference::new(LEASE, "", text)]);
        let outcome = world.by("alice", |all| all.save_service(None, bad, Lease::AsSaid));
        assert_eq!(reason(outcome), expected, "{text}");
    }
}

#[test]
fn leases_that_end_in_numbers_are_taken_out_in_parts() {
    let mut world = World::new();
    let home = world.business("alice");
    for number in 0..2500_u32 {
        let key: Key = format!("uddi:longwire.example:rd-{number:08x}").into();
        let one = service(&home, vec![]);
        world.by("alice", |all| all.save_at(key, one, Duration::from_secs(10))).unwrap();
    }
    world.now += Duration::from_secs(10);
    assert_eq!(world.core.all(world.now, Kind::Service).count(), 0);
    let counts = [(); 4].map(|()| world.core.expire(world.now).len());
    assert_eq!(counts, [1000, 1000, 500, 0]);
    assert_eq!(world.core.count(Kind::Service), 0);
}

#[test]
fn a_publisher_has_as_many_entries_as_he_may() {
    let limits = Limits { entries_of_publisher: 3, ..Limits::default() };
    let mut world = World::with(limits);
    let home = world.business("alice");
    let mut save = |owner: &str, home: &Key| {
        let one = service(home, vec![]);
        world.by(owner, |all| all.save_service(None, one, Lease::AsSaid)).map(|(key, _)| key)
    };
    let first = save("alice", &home).unwrap();
    save("alice", &home).unwrap();
    assert_eq!(reason(save("alice", &home)), Reason::AccountLimitExceeded);
    // What is there may still be changed, and others have their own.
    let again = service(&home, vec![]);
    world.by("alice", |all| all.save_service(Some(first), again, Lease::AsSaid)).unwrap();
    world.business("bob");
}

#[test]
fn a_service_that_lies_about_its_rungs_is_refused() {
    let mut world = World::new();
    let home = world.business("alice");
    let facts = "mean_us=900 p99_us=1500 p999_us=2000 p9999_us=2900 max_us=4000 samples=20000 \
                 window_s=60 measured_at=2026-03-14T06:00:00Z";
    let mut save = |rung: &str| {
        let facts = super::super::quality::Facts::parse(facts).unwrap();
        let mut one = service(&home, vec![Reference::new(TMODEL_LATENCY, "", rung)]);
        one.facts = Some(facts);
        world.by("alice", |all| all.save_service(None, one, Lease::AsSaid)).map(drop)
    };
    for rung in ["le-3000", "hard-le-3000", "le-1000000"] {
        assert_eq!(save(rung), Ok(()), "{rung}");
    }
    for rung in ["le-1000", "hard-le-1000", "fast", "le-2000"] {
        assert_eq!(reason(save(rung)), Reason::InvalidValue, "{rung}");
    }
}

#[test]
fn bindings_are_of_one_service() {
    let mut world = World::new();
    let home = world.business("alice");
    let key = world
        .by("alice", |all| all.save_service(None, service(&home, vec![]), Lease::AsSaid))
        .unwrap()
        .0;
    let of = Some(key.clone());
    let saved = world.by("alice", |all| all.save_binding(of.clone(), binding(""))).unwrap().0;
    // By its own key it is found without its service.
    assert!(world.by("alice", |all| all.save_binding(None, binding(&saved))).is_ok());
    let other = world
        .by("alice", |all| all.save_service(None, service(&home, vec![]), Lease::AsSaid))
        .unwrap()
        .0;
    let taken = world.by("alice", |all| all.save_binding(Some(other), binding(&saved)));
    assert_eq!(reason(taken), Reason::InvalidKeyPassed);
    assert_eq!(reason(world.by("bob", |all| all.delete_binding(&saved))), Reason::UserMismatch);
    assert_eq!(
        reason(world.by("alice", |all| all.save_binding(None, binding("")))),
        Reason::InvalidKeyPassed
    );
    let mut lost = binding("");
    lost.target = Target::Redirector("uddi:nobody".into());
    assert_eq!(
        reason(world.by("alice", |all| all.save_binding(of, lost))),
        Reason::InvalidKeyPassed
    );
    world.by("alice", |all| all.delete_binding(&saved)).unwrap();
    assert!(world.core.want_binding(world.now, &saved).is_err());
}

proptest! {
    /// Whatever is published and refused, the indexes are those of the entities.
    #[test]
    fn indexes_follow(steps in prop::collection::vec((0..6_u8, 0..4_usize, 0..3_usize), 0..40)) {
        let mut world = World::new();
        let homes = ["a", "b"].map(|owner| (owner, world.business(owner)));
        let mut keys: Vec<Key> = Vec::new();
        for (step, at, category) in steps {
            let (owner, home) = &homes[at % 2];
            let references = vec![Reference::new("uddi:x", "", ["1", "2", "3"][category])];
            let key = keys.get(at).cloned();
            let mut one = service(home, references);
            one.bindings = vec![binding("")];
            let outcome = world.by(owner, |all| match (step, &key) {
                (0 | 1, _) => all.save_service(None, one, Lease::AsSaid).map(Some),
                (2, Some(_)) => all.save_service(key.clone(), one, Lease::AsSaid).map(Some),
                (3, Some(key)) => all.delete(Kind::Service, key).map(|()| None),
                (4, Some(key)) => {
                    all.delete(Kind::Service, key)?;
                    // Undone.
                    all.delete(Kind::Service, key).map(|()| None)
                }
                _ => all.delete(Kind::Business, home).map(|()| None),
            });
            if let Ok((Some(key), _)) = outcome {
                keys.push(key);
            }
        }
        let stored = world.core.entities.values().filter(|one| &*one.owner != "*registry");
        let fresh = Core::new(Limits::default(), stored.map(|one| (**one).clone()));
        prop_assert_eq!(format!("{:?}", fresh.categories), format!("{:?}", world.core.categories));
        prop_assert_eq!(&fresh.bindings, &world.core.bindings);
        prop_assert_eq!(&fresh.services, &world.core.services);
        prop_assert_eq!(&fresh.counts, &world.core.counts);
        prop_assert_eq!(&fresh.ends, &world.core.ends);
        prop_assert_eq!(&fresh.kinds, &world.core.kinds);
    }

    /// What is kept is read as it was.
    #[test]
    fn entities_survive_their_document(
        name in "[ -~é<&\"]{1,20}", value in "[ -~]{0,20}", address in "[a-z:/<>&]{1,30}",
    ) {
        prop_assume!(!name.trim().is_empty());
        let clean = uddi::collapsed;
        let mut one = service(&"uddi:b".into(), vec![Reference::new("uddi:x", "n", clean(&value))]);
        one.names = vec![Text { lang: Some("de".to_owned()), text: clean(&name) }];
        one.bindings = vec![binding("uddi:k")];
        one.bindings[0].target = Target::Access { use_type: Some("endPoint".to_owned()), address };
        let entity = Entity {
            key: "uddi:s".into(), owner: "a".into(), created: Duration::ZERO,
            modified: Duration::ZERO, modified_below: Duration::ZERO, lease: None, until: None,
            body: Body::Service(one),
        };
        let read = uddi::of_document(2, &uddi::document(&entity)).unwrap();
        prop_assert_eq!(read, entity.body);
    }
}
