//! The core without a protocol.

use std::num::{NonZeroU16, NonZeroU32};

use super::*;
use crate::change::Change;
use crate::event::Event;
use crate::ids::Protocol;
use crate::publication::Grade;
use crate::rules::Rule;
use crate::session::{Subscription, Will};
use crate::settings::Overflow;

const NOW: Duration = Duration::from_secs(1000);

fn key(name: &str) -> ClientKey {
    ClientKey { protocol: Protocol::Mqtt, name: name.into() }
}

fn opening(name: &str, connection: u64) -> Opening {
    Opening {
        client: key(name),
        connection: ConnectionId(connection),
        user: None,
        clean: false,
        expiry: Duration::from_secs(600),
        window: 10,
        will: None,
    }
}

fn publication(from: Option<SessionId>, topic: &str, payload: &str, grade: Grade) -> Publication {
    let mut publication = Publication::new(Protocol::Mqtt, topic, payload.as_bytes().to_vec());
    publication.publisher = from;
    publication.grade = grade;
    publication
}

fn at_least(topic: &str, payload: &str) -> Publication {
    publication(None, topic, payload, Grade::AtLeastOnce)
}

fn quiet() -> Settings {
    Settings { sys_interval: Duration::ZERO, ..Settings::default() }
}

fn join(core: &mut Core, name: &str, connection: u64, filter: &str, grade: Grade) -> SessionId {
    let id = core.open(NOW, opening(name, connection)).unwrap().session;
    core.subscribe(NOW, id, Subscription::new(filter, grade)).unwrap();
    id
}

/// All that a session takes now, as payloads and handles.
fn taken(core: &mut Core, now: Duration, id: SessionId) -> Vec<(String, u16)> {
    let mut all = Vec::new();
    while let Some(next) = core.take(now, id) {
        all.push(match next {
            Next::Publish(delivery) => (
                String::from_utf8(delivery.publication.payload.to_vec()).unwrap(),
                delivery.handle.map_or(0, NonZeroU16::get),
            ),
            Next::Release(handle) => ("release".to_owned(), handle.get()),
        });
    }
    all
}

fn payloads(core: &mut Core, id: SessionId) -> Vec<String> {
    taken(core, NOW, id).into_iter().map(|(payload, _)| payload).collect()
}

#[test]
fn a_session_that_was_left_gets_what_came_meanwhile_once() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, "t/#", Grade::ExactlyOnce);
    core.publish(NOW, at_least("t/1", "one")).unwrap();
    assert_eq!(taken(&mut core, NOW, id), [("one".to_owned(), 1)]);
    core.close(NOW, id, ConnectionId(1), true, None);
    core.publish(NOW, at_least("t/2", "two")).unwrap();
    core.publish(NOW, publication(None, "t/3", "lost", Grade::AtMostOnce)).unwrap();
    let opened = core.open(NOW, opening("a", 2)).unwrap();
    assert!(opened.present && opened.session == id);
    assert_eq!(core.next_ready(), Some((id, ConnectionId(2))));
    // What was not acknowledged first, as a repetition.
    let Some(Next::Publish(first)) = core.take(NOW, id) else { panic!("nothing") };
    assert!(first.repeated && first.publication.payload == "one");
    assert_eq!(taken(&mut core, NOW, id), [("two".to_owned(), 2)]);
    assert!(core.finish(id, 1, false) && core.finish(id, 2, false) && !core.finish(id, 2, false));
    assert_eq!(core.waiting(id), (0, 0));
}

#[test]
fn a_window_bounds_what_is_under_way() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    for number in 0..25 {
        core.publish(NOW, at_least("t", &number.to_string())).unwrap();
    }
    assert_eq!(taken(&mut core, NOW, id).len(), 10);
    assert_eq!(core.next_ready(), Some((id, ConnectionId(1))));
    assert_eq!(core.next_ready(), None);
    core.finish(id, 1, false);
    assert_eq!(core.next_ready(), Some((id, ConnectionId(1))), "there is room again");
    assert_eq!(taken(&mut core, NOW, id), [("10".to_owned(), 11)]);
}

#[test]
fn a_message_of_grade_2_that_was_received_is_released_after_a_break() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, "#", Grade::ExactlyOnce);
    core.publish(NOW, publication(None, "t", "x", Grade::ExactlyOnce)).unwrap();
    assert_eq!(taken(&mut core, NOW, id).len(), 1);
    assert!(core.received(id, 1));
    core.close(NOW, id, ConnectionId(1), false, None);
    core.open(NOW, opening("a", 2)).unwrap();
    assert_eq!(taken(&mut core, NOW, id), [("release".to_owned(), 1)]);
    assert_eq!(core.outstanding(id, 1), Some(Outstanding::Received));
    assert!(core.finish(id, 1, false));
    assert_eq!(core.inbound(id, 5).map(|(is_new, _)| is_new), Some(true));
    assert_eq!(core.inbound(id, 5).map(|(is_new, _)| is_new), Some(false));
    assert!(core.release(id, 5) && !core.release(id, 5));
}

#[test]
fn wills_are_published_when_their_client_stays_away() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "watcher", 1, "will/#", Grade::AtMostOnce);
    let with_will = |name: &str, connection, delay_s: u64| Opening {
        will: Some(Will {
            publication: publication(None, &format!("will/{name}"), name, Grade::AtMostOnce),
            expiry: None,
            delay: Duration::from_secs(delay_s),
        }),
        ..opening(name, connection)
    };
    let at = |seconds| NOW + Duration::from_secs(seconds);
    for (name, connection, delay) in [("now", 2, 0), ("later", 3, 30), ("back", 4, 30)] {
        let opened = core.open(NOW, with_will(name, connection, delay)).unwrap();
        core.close(NOW, opened.session, ConnectionId(connection), false, None);
    }
    let orderly = core.open(NOW, with_will("orderly", 5, 0)).unwrap();
    core.close(NOW, orderly.session, ConnectionId(5), true, None);
    assert_eq!(payloads(&mut core, id), ["now"]);
    core.open(at(10), opening("back", 6)).unwrap();
    core.wake(at(29));
    assert!(payloads(&mut core, id).is_empty());
    core.wake(at(30));
    assert_eq!(payloads(&mut core, id), ["later"]);
    // A session that ends takes no longer than that for its will.
    let short = Opening { expiry: Duration::from_secs(5), ..with_will("short", 7, 100) };
    let short = core.open(at(40), short).unwrap();
    core.close(at(40), short.session, ConnectionId(7), false, None);
    core.wake(at(45));
    assert_eq!(payloads(&mut core, id), ["short"]);
    assert_eq!(core.client(short.session), None, "it has ended");
}

#[test]
fn a_second_connection_takes_the_session_over() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    let opened = core.open(NOW, opening("a", 2)).unwrap();
    assert_eq!((opened.session, opened.displaced), (id, Some(ConnectionId(1))));
    // The connection before learns late that it is gone.
    core.close(NOW, id, ConnectionId(1), false, None);
    core.publish(NOW, at_least("t", "x")).unwrap();
    assert_eq!(core.next_ready(), Some((id, ConnectionId(2))));
    let clean = core.open(NOW, Opening { clean: true, ..opening("a", 3) }).unwrap();
    assert!(!clean.present && clean.displaced == Some(ConnectionId(2)));
    assert_eq!(core.sizes().subscriptions, 0);
    assert_eq!(core.counts().connected, 1);
}

#[test]
fn retained_messages_all_arrive_and_end_with_an_empty_one() {
    let mut core = Core::new(quiet());
    for number in 0..3000 {
        let mut one = at_least(&format!("r/{number}"), "x");
        one.retain = true;
        core.publish(NOW, one).unwrap();
    }
    let id = core.open(NOW, opening("a", 1)).unwrap().session;
    core.subscribe(NOW, id, Subscription::new("r/+", Grade::AtLeastOnce)).unwrap();
    let mut count = 0;
    while count < 3000 {
        let came = taken(&mut core, NOW, id);
        assert!(!came.is_empty(), "after {count}");
        count += came.len();
        for (_, handle) in came {
            assert!(core.finish(id, handle, false));
        }
    }
    let mut empty = at_least("r/7", "");
    empty.retain = true;
    core.publish(NOW, empty).unwrap();
    assert_eq!(core.sizes().retained, 2999);
    assert_eq!(payloads(&mut core, id), [""], "it is published, too");
}

#[test]
fn a_group_gets_each_message_once_and_keeps_what_a_member_leaves() {
    let mut core = Core::new(quiet());
    let shared = Subscription::new("$share/g/job/+", Grade::AtLeastOnce);
    let ids: Vec<SessionId> = (0..2)
        .map(|number| {
            let name = format!("w{number}");
            let mut opening = opening(&name, number);
            opening.expiry = Duration::from_secs(5);
            let id = core.open(NOW, opening).unwrap().session;
            core.subscribe(NOW, id, shared.clone()).unwrap();
            id
        })
        .collect();
    for number in 0..10 {
        core.publish(NOW, at_least("job/x", &number.to_string())).unwrap();
    }
    let first = payloads(&mut core, ids[0]);
    assert_eq!(first.len(), 5);
    assert_eq!(core.waiting(ids[1]).0, 5);
    // The second takes two, acknowledges one of them, and never comes back.
    let Some(Next::Publish(one)) = core.take(NOW, ids[1]) else { panic!("nothing") };
    core.take(NOW, ids[1]);
    core.finish(ids[1], one.handle.unwrap().get(), false);
    core.close(NOW, ids[1], ConnectionId(1), false, None);
    core.wake(NOW + Duration::from_secs(5));
    assert_eq!(payloads(&mut core, ids[0]).len(), 4);
}

#[test]
fn what_a_group_takes_over_is_in_the_store_before_the_one_who_had_it_goes() {
    let mut core = Core::new(Settings { durable: true, ..quiet() });
    let shared = Subscription::new("$share/g/job/+", Grade::AtLeastOnce);
    let ids = ["a", "b"].map(|name| {
        let id = core.open(NOW, opening(name, 1)).unwrap().session;
        core.close(NOW, id, ConnectionId(1), true, None);
        id
    });
    core.subscribe(NOW, ids[0], shared.clone()).unwrap();
    core.publish(NOW, at_least("job/x", "1")).unwrap();
    let (ticket, _) = core.journal.next_batch().unwrap();
    core.persisted(ticket);
    core.subscribe(NOW, ids[1], shared).unwrap();
    core.end(NOW, ids[0]);
    let (_, changes) = core.journal.next_batch().unwrap();
    let place = |wanted: fn(&Change) -> bool| changes.iter().position(wanted).unwrap();
    let queued =
        place(|change| matches!(change, Change::Queued { client, .. } if &*client.name == "b"));
    let ended = place(|change| matches!(change, Change::SessionEnded { .. }));
    // The store forgets the message with the last who waits for it.
    assert!(queued < ended, "{changes:?}");
}

#[test]
fn a_queue_is_bounded_and_says_what_it_drops() {
    for (overflow, kept) in
        [(Overflow::Oldest, ["7", "8", "9"]), (Overflow::Newest, ["0", "1", "2"])]
    {
        let mut core = Core::new(Settings { max_queued: 3, overflow, ..quiet() });
        let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
        for number in 0..10 {
            core.publish(NOW, at_least("t", &number.to_string())).unwrap();
        }
        let dropped = std::iter::from_fn(|| core.next_event())
            .filter(|event| matches!(event, Event::Dropped { why: Drop::QueueFull, .. }))
            .count();
        assert_eq!(dropped, 7);
        assert_eq!(payloads(&mut core, id), kept);
    }
}

#[test]
fn what_has_expired_is_not_given() {
    let mut core = Core::new(quiet());
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    let mut one = at_least("t", "old");
    one.deadline = Some(NOW + Duration::from_secs(5));
    core.publish(NOW, one).unwrap();
    core.publish(NOW, at_least("t", "new")).unwrap();
    let later = NOW + Duration::from_secs(5);
    assert_eq!(taken(&mut core, later, id), [("new".to_owned(), 1)]);
    assert_eq!(core.counts().dropped[Drop::Expired.index()], 1);
}

#[test]
fn a_state_that_waits_is_replaced_by_a_newer_one() {
    let rule = Rule { filter: "track/#".into(), conflate: true, ..Rule::default() };
    let rules = crate::Rules { rules: vec![rule] };
    let mut core = Core::new(Settings { rules, ..quiet() });
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    for number in 0..100 {
        core.publish(NOW, at_least(&format!("track/{}", number % 2), &number.to_string())).unwrap();
    }
    assert_eq!(payloads(&mut core, id), ["98", "99"]);
}

/// Takes and acknowledges all that leaves within a time, by the second in which it does.
fn over_time(core: &mut Core, id: SessionId, seconds: u64) -> Vec<Vec<String>> {
    let second = |at: u64| {
        let mut all = Vec::new();
        for step in 0..20 {
            let now = NOW + Duration::from_millis(at * 1000 + step * 50);
            core.wake(now);
            while core.next_ready().is_some() {
                for (payload, handle) in taken(core, now, id) {
                    core.finish(id, handle, false);
                    all.push(payload);
                }
            }
        }
        all
    };
    (0..seconds).map(second).collect()
}

#[test]
fn what_waited_while_a_client_was_away_leaves_behind_what_is_published_now() {
    let rule = Rule { filter: "state/#".to_owned(), conflate: true, ..Rule::default() };
    let drain_rate = NonZeroU32::new(1000);
    let rules = crate::rules::Rules { rules: vec![rule] };
    let mut core = Core::new(Settings { rules, drain_rate, ..quiet() });
    core.wake(NOW);
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    core.close(NOW, id, ConnectionId(1), true, None);
    for number in 0..20_000 {
        core.publish(NOW, at_least("event", &number.to_string())).unwrap();
        core.publish(NOW, at_least(&format!("state/{}", number % 100), "old")).unwrap();
    }
    assert_eq!(core.waiting(id).0, 20_100, "of a state the newest waits");
    let opened = core.open(NOW, opening("a", 2)).unwrap();
    assert_eq!(opened.session, id);
    core.publish(NOW, at_least("event", "live")).unwrap();
    core.publish(NOW, at_least("state/7", "new")).unwrap();
    let came = over_time(&mut core, id, 25);
    assert_eq!(came[0][..2], ["live", "new"], "before all that waited");
    for (second, of) in came[..20].iter().enumerate() {
        assert!((900..=1150).contains(&of.len()), "{} in second {second}", of.len());
    }
    let all = came.concat();
    assert_eq!(all.len(), 20_000 + 1 + 100);
    assert_eq!(all.iter().filter(|payload| *payload == "old").count(), 99);
    let events = all.iter().filter_map(|payload| payload.parse::<u32>().ok());
    assert!(events.eq(0..20_000), "each once, in order");
    assert_eq!(core.waiting(id), (0, 0));
}

#[test]
fn an_older_state_never_comes_behind_a_newer_one() {
    let rule = Rule { filter: "rule/#".to_owned(), conflate: true, ..Rule::default() };
    let rules = crate::rules::Rules { rules: vec![rule] };
    let drain_rate = NonZeroU32::new(1);
    let settings = Settings { rules, drain_rate, durable: true, ..quiet() };
    let mut core = Core::new(settings.clone());
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    core.close(NOW, id, ConnectionId(1), true, None);
    let say = |core: &mut Core, topic: &str, payload: &str, retain| {
        let mut said = at_least(topic, payload);
        said.retain = retain;
        core.publish(NOW, said).unwrap();
    };
    for topic in ["first", "gone", "kept"] {
        say(&mut core, topic, "old", topic != "first");
    }
    say(&mut core, "rule/x", "old", false);
    // As the store has it.
    let (ticket, changes) = core.journal.next_batch().unwrap();
    core.persisted(ticket);
    let mut again = Core::new(settings.clone());
    again.restore(NOW, changes);
    for core in [&mut core, &mut again] {
        let id = core.open(NOW, opening("a", 2)).unwrap().session;
        say(core, "kept", "new", true);
        say(core, "gone", "", true);
        say(core, "rule/x", "new", false);
        let came: Vec<String> = over_time(core, id, 10).concat();
        assert_eq!(came, ["new", "", "new", "old"], "of the first topic there is no newer one");
    }
    // A rate that is taken back.
    let id = again.open(NOW, opening("a", 3)).unwrap().session;
    again.close(NOW, id, ConnectionId(3), true, None);
    for number in 0..5 {
        say(&mut again, "first", &number.to_string(), false);
    }
    again.open(NOW, opening("a", 4)).unwrap();
    assert_eq!(taken(&mut again, NOW, id).len(), 1);
    again.set_settings(Settings { drain_rate: None, ..settings });
    assert!(again.next_ready().is_some());
    assert_eq!(taken(&mut again, NOW, id).len(), 4);
}

#[test]
fn what_is_under_way_is_counted_once() {
    let mut core = Core::new(quiet());
    let other = join(&mut core, "b", 9, "#", Grade::AtLeastOnce);
    core.close(NOW, other, ConnectionId(9), true, None);
    let id = join(&mut core, "a", 1, "#", Grade::AtLeastOnce);
    core.publish(NOW, at_least("t", "x")).unwrap();
    taken(&mut core, NOW, id);
    let waits = core.sizes().queued_bytes;
    assert!(waits > 0);
    core.end(NOW, id);
    assert_eq!(core.sizes().queued_bytes, waits, "what waits for the other");
    core.end(NOW, other);
    assert_eq!(core.sizes().queued_bytes, 0);
}

/// A broker that has been told all that the store was told holds the same.
#[test]
fn what_was_written_is_restored() {
    let settings = Settings { durable: true, ..quiet() };
    let mut core = Core::new(settings.clone());
    let id = join(&mut core, "a", 1, "t/#", Grade::ExactlyOnce);
    let two = |payload: &str| publication(None, "t/x", payload, Grade::ExactlyOnce);
    for payload in ["done", "received", "sent", "waits"] {
        core.publish(NOW, two(payload)).unwrap();
    }
    assert!(core.take(NOW, id).is_none(), "grade 2 leaves when it is written");
    let (ticket, mut changes) = core.journal.next_batch().unwrap();
    core.persisted(ticket);
    // Four are numbered by now, since the client takes ten.
    for _ in 0..3 {
        core.take(NOW, id).unwrap();
    }
    core.received(id, 1);
    core.finish(id, 1, false);
    core.received(id, 2);
    core.inbound(id, 40);
    let mut retained = at_least("r", "kept");
    retained.retain = true;
    let accepted = core.publish(NOW, retained).unwrap();
    assert!(accepted.ticket > core.journal.done());
    changes.extend(core.journal.next_batch().unwrap().1);
    assert!(matches!(changes[0], Change::Session { .. }));

    let mut other = Core::new(settings);
    assert_eq!(other.restore(NOW, changes), 0);
    let opened = other.open(NOW, opening("a", 9)).unwrap();
    assert!(opened.present);
    let id = opened.session;
    let came = taken(&mut other, NOW, id);
    assert_eq!(came, [("release".to_owned(), 2), ("sent".to_owned(), 3), ("waits".to_owned(), 4)]);
    assert!(other.has_inbound(id, 40));
    assert_eq!(other.retained_at(NOW, "r").unwrap().payload, "kept");
    other.publish(NOW, two("subscribed")).unwrap();
    assert!(other.take(NOW, id).is_none(), "its number is to be written with it");
    let (ticket, _) = other.journal.next_batch().unwrap();
    other.persisted(ticket);
    assert_eq!(payloads(&mut other, id), ["subscribed"]);
}
