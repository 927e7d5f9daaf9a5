//! What is told of publications that somebody asks for afterwards.

use std::time::Duration;

use record::publication::{Progress, Publication as Facts, Receiver};

use super::*;
use crate::access::{Access, Action, Rule as AccessRule};
use crate::core::{Next, Opening};
use crate::ids::{ConnectionId, Protocol};
use crate::publication::Grade;
use crate::refusal::Refusal;
use crate::rules::Rule;
use crate::session::Subscription;
use crate::settings::{Overflow, Settings};

const NOW: Duration = Duration::from_secs(1000);

fn key(name: &str) -> ClientKey {
    ClientKey { protocol: Protocol::Mqtt, name: name.into() }
}

fn quiet() -> Settings {
    Settings { sys_interval: Duration::ZERO, ..Settings::default() }
}

fn open(core: &mut Core, name: &str, connection: u64) -> SessionId {
    let opening = Opening {
        client: key(name),
        connection: ConnectionId(connection),
        user: Some(name.into()),
        clean: false,
        expiry: Duration::from_secs(600),
        window: 10,
        will: None,
    };
    core.open(NOW, opening).unwrap().session
}

fn join(core: &mut Core, name: &str, connection: u64, subscription: Subscription) -> SessionId {
    let id = open(core, name, connection);
    core.subscribe(NOW, id, subscription).unwrap();
    id
}

fn publish(core: &mut Core, topic: &str, grade: Grade) -> u64 {
    let mut publication = Publication::new(Protocol::Mqtt, topic, "x");
    publication.grade = grade;
    core.publish(NOW, publication).unwrap().id
}

fn facts(core: &Core, id: u64) -> Facts {
    let query = Query { id: Some(id), origin: None, topic: None, last: 1 };
    explain(core, &query).pop().unwrap()
}

fn only(core: &Core, id: u64) -> Receiver {
    let mut facts = facts(core, id);
    assert_eq!((facts.receivers.len(), &facts.ended), (1, &None));
    facts.receivers.remove(0)
}

/// Why a receiver does not get it, and what is said of that.
fn ended(receiver: &Receiver) -> (String, String) {
    assert_eq!(receiver.progress, Progress::Dropped);
    let ended = receiver.ended.clone().unwrap();
    (ended.why, ended.detail.unwrap_or_default())
}

fn take(core: &mut Core, now: Duration, id: SessionId) -> u16 {
    match core.take(now, id) {
        Some(Next::Publish(delivery)) => delivery.handle.map_or(0, std::num::NonZeroU16::get),
        next => panic!("{next:?}"),
    }
}

#[test]
fn a_publication_is_followed_from_its_queue_to_its_acknowledgement() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, Subscription::new("t/#", Grade::ExactlyOnce));
    let one = publish(&mut core, "t/1", Grade::AtLeastOnce);
    assert_eq!(only(&core, one).progress, Progress::Waiting);
    core.telling.trails.set_now(NOW + Duration::from_secs(2));
    let handle = take(&mut core, NOW, id);
    let receiver = only(&core, one);
    assert_eq!((receiver.progress, receiver.times, receiver.qos), (Progress::Sent, 1, 1));
    assert!((receiver.after_s - 2.0).abs() < 1e-9, "{}", receiver.after_s);
    assert_eq!(receiver.client, "mqtt:a");
    assert!(core.give_back(id, handle));
    assert_eq!(only(&core, one).progress, Progress::Waiting);
    let handle = take(&mut core, NOW, id);
    assert!(core.finish(id, handle, false));
    let receiver = only(&core, one);
    assert_eq!((receiver.progress, receiver.times), (Progress::Acknowledged, 2));
    let two = publish(&mut core, "t/2", Grade::ExactlyOnce);
    let handle = take(&mut core, NOW, id);
    assert!(core.received(id, handle));
    assert_eq!(only(&core, two).progress, Progress::Acknowledged);
    let refused = publish(&mut core, "t/3", Grade::AtLeastOnce);
    let handle = take(&mut core, NOW, id);
    core.finish(id, handle, true);
    assert_eq!(ended(&only(&core, refused)).0, "refused");
    let nobody = publish(&mut core, "u", Grade::AtMostOnce);
    assert_eq!(facts(&core, nobody).ended.unwrap().why, "no-subscriber");
}

#[test]
fn each_way_to_be_dropped_is_reported_with_its_bound() {
    for (overflow, says) in [
        (Overflow::Oldest, "max_queued = 2: room for publication 3"),
        (Overflow::Newest, "max_queued = 2"),
    ] {
        let mut core = Core::new(Settings { max_queued: 2, overflow, ..quiet() });
        join(&mut core, "a", 1, Subscription::new("#", Grade::AtLeastOnce));
        let ids = [0; 3].map(|_| publish(&mut core, "t", Grade::AtLeastOnce));
        let victim = if overflow == Overflow::Oldest { ids[0] } else { ids[2] };
        let (why, detail) = ended(&only(&core, victim));
        assert_eq!((&*why, &*detail), ("queue-full", says));
    }
    for (settings, bound) in [
        (Settings { max_queued_bytes: 1, ..quiet() }, "max_queued_bytes = 1"),
        (Settings { max_total_bytes: 2, ..quiet() }, "max_total_bytes = 2"),
    ] {
        let mut core = Core::new(settings);
        join(&mut core, "a", 1, Subscription::new("#", Grade::AtLeastOnce));
        let id = publish(&mut core, "t", Grade::AtLeastOnce);
        assert_eq!(ended(&only(&core, id)), ("queue-full".to_owned(), bound.to_owned()));
    }
}

#[test]
fn what_is_conflated_expires_or_ends_with_a_session_is_reported() {
    let mut settings = quiet();
    let conflate = Rule { filter: "c/#".into(), conflate: true, ..Rule::default() };
    settings.rules.rules.push(conflate);
    let mut core = Core::new(settings);
    let id = join(&mut core, "a", 1, Subscription::new("#", Grade::AtLeastOnce));
    let old = publish(&mut core, "c/1", Grade::AtLeastOnce);
    let new = publish(&mut core, "c/1", Grade::AtLeastOnce);
    let says = format!("by publication {new}");
    assert_eq!(ended(&only(&core, old)), ("superseded".to_owned(), says));
    assert_eq!(facts(&core, old).rule.as_deref(), Some("c/#"));
    let mut short = Publication::new(Protocol::Mqtt, "e", "x");
    (short.grade, short.deadline) = (Grade::AtLeastOnce, Some(NOW + Duration::from_secs(5)));
    let short = core.publish(NOW, short).unwrap().id;
    assert_eq!(facts(&core, short).expiry_s, Some(5.0));
    take(&mut core, NOW, id);
    assert!(core.take(NOW + Duration::from_secs(6), id).is_none());
    assert_eq!(ended(&only(&core, short)).0, "expired");
    let last = publish(&mut core, "l", Grade::AtLeastOnce);
    core.end(NOW, id);
    assert_eq!(ended(&only(&core, last)).0, "session-ended");
}

#[test]
fn who_is_passed_over_is_reported_and_why() {
    let mut settings = quiet();
    let all = |user: &str, action| AccessRule {
        user: Some(user.to_owned()),
        action,
        filter: "#".to_owned(),
        allow: true,
    };
    let secret = AccessRule {
        user: Some("spy".to_owned()),
        action: Some(Action::Subscribe),
        filter: "secret/#".to_owned(),
        allow: false,
    };
    let rules =
        vec![secret, all("spy", Some(Action::Subscribe)), all("own", None), all("far", None)];
    settings.access = Access { rules };
    let mut core = Core::new(settings);
    join(&mut core, "spy", 1, Subscription::new("#", Grade::AtMostOnce));
    let own = Subscription { no_local: true, ..Subscription::new("#", Grade::AtMostOnce) };
    let own = join(&mut core, "own", 2, own);
    let far = join(&mut core, "far", 3, Subscription::new("#", Grade::AtMostOnce));
    core.close(NOW, far, ConnectionId(3), true, None);
    let mut publication = Publication::new(Protocol::Mqtt, "secret/1", "x");
    publication.publisher = Some(own);
    let id = core.publish(NOW, publication).unwrap().id;
    let facts_of = facts(&core, id);
    assert_eq!(facts_of.publisher.as_deref(), Some("mqtt:own"));
    let mut whys: Vec<_> = facts_of
        .receivers
        .iter()
        .map(|one| (one.client.clone(), one.ended.clone().unwrap().why))
        .collect();
    whys.sort();
    let expected = [("mqtt:far", "away"), ("mqtt:own", "own"), ("mqtt:spy", "not-authorized")];
    assert_eq!(whys, expected.map(|(who, why)| (who.to_owned(), why.to_owned())));
    // And who may not publish.
    let spy = core.find(&key("spy")).unwrap();
    let mut publication = Publication::new(Protocol::Mqtt, "t", "x");
    publication.publisher = Some(spy);
    assert_eq!(core.publish(NOW, publication), Err(Refusal::NotAuthorized));
    let query = Query { id: None, origin: None, topic: Some("t".to_owned()), last: 1 };
    let facts = explain(&core, &query).pop().unwrap();
    let ended = facts.ended.unwrap();
    assert_eq!((&*ended.why, facts.publisher.as_deref()), ("refused-by-broker", Some("mqtt:spy")));
    assert_eq!(ended.detail.as_deref(), Some("the client's rules do not allow this"));
}

#[test]
fn what_rules_end_or_change_is_reported() {
    let mut settings = quiet();
    let blocks = Rule { filter: "b".into(), block: true, ..Rule::default() };
    let thins = Rule { filter: "n".into(), thin: Some(Duration::from_secs(9)), ..Rule::default() };
    let renames = Rule {
        filter: "r/#".into(),
        rename: Some(("r/".into(), "s/".into())),
        max_grade: Some(Grade::AtMostOnce),
        ..Rule::default()
    };
    settings.rules.rules = vec![blocks, thins, renames];
    let mut core = Core::new(settings);
    join(&mut core, "a", 1, Subscription::new("#", Grade::AtLeastOnce));
    let blocked = publish(&mut core, "b", Grade::AtMostOnce);
    assert_eq!(facts(&core, blocked).ended.unwrap().why, "blocked");
    publish(&mut core, "n", Grade::AtMostOnce);
    let thinned = publish(&mut core, "n", Grade::AtMostOnce);
    assert_eq!(facts(&core, thinned).ended.unwrap().why, "thinned");
    let renamed = publish(&mut core, "r/1", Grade::ExactlyOnce);
    let facts = facts(&core, renamed);
    assert_eq!((&*facts.topic, facts.published_to.as_deref()), ("s/1", Some("r/1")));
    assert_eq!((facts.qos, facts.published_qos, facts.rule.as_deref()), (0, Some(2), Some("r/#")));
}

#[test]
fn a_later_subscriber_to_what_is_retained_is_reported_of() {
    let mut core = Core::new(quiet());
    let mut publication = Publication::new(Protocol::Mqtt, "t", "x");
    publication.retain = true;
    let id = core.publish(NOW, publication).unwrap().id;
    assert_eq!(facts(&core, id).ended.unwrap().why, "no-subscriber");
    let late = join(&mut core, "late", 1, Subscription::new("t", Grade::AtMostOnce));
    take(&mut core, NOW, late);
    let receiver = only(&core, id);
    assert!(receiver.retain && receiver.progress == Progress::Sent, "{receiver:?}");
}

#[test]
fn what_never_got_a_number_is_reported_under_one() {
    let mut core = Core::new(quiet());
    let id = open(&mut core, "a", 1);
    let publication = Publication::new(Protocol::Mqtt, "loop", "x");
    core.tell_dropped(&publication, Some(id), Drop::Loop);
    let query = Query { id: None, origin: None, topic: Some("loop".to_owned()), last: 9 };
    let facts = explain(&core, &query);
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].ended.as_ref().unwrap().why, "loop");
    assert_eq!(facts[0].publisher.as_deref(), Some("mqtt:a"));
    let next = publish(&mut core, "t", Grade::AtMostOnce);
    assert!(next > facts[0].id);
}

#[test]
fn without_memory_nothing_is_followed() {
    let mut settings = quiet();
    settings.explain.max = 0;
    let mut core = Core::new(settings);
    join(&mut core, "a", 1, Subscription::new("#", Grade::AtMostOnce));
    publish(&mut core, "t", Grade::AtMostOnce);
    assert!(explain(&core, &Query { id: None, origin: None, topic: None, last: 9 }).is_empty());
}
