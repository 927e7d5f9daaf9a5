use super::*;
use crate::ids::Protocol;

const NOW: Duration = Duration::from_secs(1000);

fn settings(max: usize, per_s: u32) -> Settings {
    Settings { max, facts_per_s: NonZeroU32::new(per_s).unwrap(), filter: "t/#".to_owned() }
}

fn publication(id: u64, topic: &str) -> Publication {
    let mut publication = Publication::new(Protocol::Mqtt, topic, "x");
    publication.id = id;
    publication
}

fn client(name: &str) -> ClientKey {
    ClientKey { protocol: Protocol::Mqtt, name: name.into() }
}

fn all(trails: &Trails) -> Vec<Facts> {
    trails.find(&Query { id: None, origin: None, topic: None, last: 1000 })
}

/// Follows one as the core does; whether it was followed.
fn follow(trails: &mut Trails, settings: &Settings, id: u64, topic: &str) -> bool {
    let follows = trails.follows(settings, topic);
    if follows {
        trails.begin(settings, &publication(id, topic), None, None);
    }
    follows
}

#[test]
fn as_many_are_followed_as_the_rate_allows() {
    let (mut trails, settings) = (Trails::default(), settings(10_000, 100));
    trails.set_now(NOW);
    let begun = |trails: &mut Trails, ids: std::ops::Range<u64>| {
        ids.filter(|id| follow(trails, &settings, *id, "t/1")).count()
    };
    assert_eq!(begun(&mut trails, 0..1000), 101, "what a second allows, and the one of now");
    trails.set_now(NOW + Duration::from_millis(500));
    assert_eq!(begun(&mut trails, 1000..2000), 50);
    // A receiver uses as much as a publication.
    trails.set_now(NOW + Duration::from_secs(100));
    assert_eq!(begun(&mut trails, 2000..2001), 1);
    for number in 0..80 {
        trails.waits(2000, &client(&number.to_string()), Grade::AtMostOnce, false);
    }
    assert_eq!(begun(&mut trails, 2001..3000), 20);
}

#[test]
fn others_topics_and_all_of_none_are_not_followed() {
    let mut trails = Trails::default();
    trails.set_now(NOW);
    assert!(!follow(&mut trails, &settings(10, 100), 1, "u"));
    assert!(!follow(&mut trails, &settings(0, 100), 2, "t"));
    assert!(follow(&mut trails, &settings(10, 100), 3, "t"));
    assert_eq!(all(&trails).len(), 1);
}

#[test]
fn the_oldest_make_room_by_number_and_by_memory() {
    let mut trails = Trails::default();
    trails.set_now(NOW);
    let few = settings(3, 1_000_000);
    (1..=10).for_each(|id| assert!(follow(&mut trails, &few, id, "t")));
    assert_eq!(all(&trails).iter().map(|facts| facts.id).collect::<Vec<_>>(), [8, 9, 10]);
    let (many, mut trails) = (settings(100_000, 1_000_000), Trails::default());
    let long = format!("t/{}", "x".repeat(60_000));
    (1..=200).for_each(|id| assert!(follow(&mut trails, &many, id, &long)));
    let kept = all(&trails).len();
    assert!(kept < 75 && trails.bytes <= MAX_BYTES, "{kept} of {} bytes", trails.bytes);
    assert!(kept > 60, "{kept}");
    // What receivers are told with counts as well.
    let before = trails.bytes;
    trails.waits(200, &client(&"n".repeat(10_000)), Grade::AtMostOnce, false);
    assert!(trails.bytes > before + 10_000 || trails.trails.len() < kept);
}

#[test]
fn memory_is_given_back_to_the_byte() {
    let (mut trails, settings) = (Trails::default(), settings(2, 1_000_000));
    for id in 1..100 {
        assert!(follow(&mut trails, &settings, id, "t"));
        for name in ["a", "b"] {
            trails.waits(id, &client(name), Grade::AtLeastOnce, false);
            let how = (Grade::AtLeastOnce, false);
            trails.given(&publication(id, "t"), &client(name), how, None);
            let sent = Sent { protocol: "MQTT 5", hops: vec!["n".to_owned()], ..Sent::default() };
            trails.sent(id, &client(name), sent);
            trails.dropped(id, Some(&client(name)), Drop::TooLarge, format_args!("{id} bytes"));
        }
    }
    let counted: usize = trails.trails.iter().map(Trail::bytes).sum();
    assert_eq!((trails.bytes, trails.trails.len()), (counted, 2));
    (0..2).for_each(|_| trails.forget_oldest());
    assert_eq!(trails.bytes, 0);
}

#[test]
fn of_many_receivers_the_first_are_listed() {
    let (mut trails, settings) = (Trails::default(), settings(2, 1_000_000));
    assert!(follow(&mut trails, &settings, 1, "t"));
    for number in 0..250 {
        trails.waits(1, &client(&number.to_string()), Grade::AtMostOnce, false);
    }
    for number in 0..250 {
        let (of, how) = (client(&number.to_string()), (Grade::AtMostOnce, false));
        trails.given(&publication(1, "t"), &of, how, None);
    }
    let facts = all(&trails).remove(0);
    assert_eq!((facts.receivers.len(), facts.unlisted), (100, 150));
    assert!(facts.receivers.iter().all(|one| one.times == 1));
}

#[test]
fn those_it_is_not_for_take_no_places_of_those_who_get_it() {
    let (mut trails, settings) = (Trails::default(), settings(2, 1_000_000));
    assert!(follow(&mut trails, &settings, 1, "t"));
    let names = |from: usize| (from..from + 100).map(|number| client(&number.to_string()));
    for away in names(0) {
        let before = trails.used_until;
        trails.passes_over(1, &away, Grade::AtMostOnce, ("away", "it has no connection"));
        // Who is not listed costs nothing of what may be followed.
        let is_listed = all(&trails)[0].passed_over == 0;
        assert_eq!(trails.used_until > before, is_listed);
    }
    names(1000).for_each(|one| trails.waits(1, &one, Grade::AtMostOnce, false));
    let facts = all(&trails).remove(0);
    assert_eq!((facts.receivers.len(), facts.passed_over, facts.unlisted), (100, 90, 10));
    let ended = |one: &&record::publication::Receiver| one.ended.is_some();
    assert_eq!(facts.receivers.iter().filter(ended).count(), 10);
}

#[test]
fn questions_are_by_number_by_topic_and_by_where_it_came_in() {
    let (mut trails, settings) = (Trails::default(), settings(10, 1_000_000));
    trails.set_now(NOW);
    for (id, topic, origin) in [(1, "t/a", "n:1.1"), (2, "t/b", "n:1.2"), (3, "t/a", "n:1.3")] {
        let mut publication = publication(id, topic);
        publication.details_mut().via = vec![origin.to_owned(), "m".to_owned()];
        assert!(trails.follows(&settings, topic));
        let before = Before { topic: "old/a".into(), grade: Grade::ExactlyOnce, rule: None };
        let before = (id == 3).then_some(before);
        trails.begin(&settings, &publication, None, before);
    }
    let none = Query { id: None, origin: None, topic: None, last: 10 };
    let ids = |query: Query| trails.find(&query).iter().map(|facts| facts.id).collect::<Vec<_>>();
    assert_eq!(ids(none.clone()), [1, 2, 3]);
    assert_eq!(ids(Query { last: 2, ..none.clone() }), [2, 3], "the last");
    assert_eq!(ids(Query { id: Some(2), ..none.clone() }), [2]);
    assert_eq!(ids(Query { topic: Some("t/a".to_owned()), ..none.clone() }), [1, 3]);
    assert_eq!(ids(Query { topic: Some("old/#".to_owned()), ..none.clone() }), [3]);
    assert_eq!(ids(Query { origin: Some("n:1.2".to_owned()), ..none }), [2]);
    let facts = all(&trails).pop().unwrap();
    assert_eq!((facts.qos, facts.published_qos, &*facts.topic), (0, Some(2), "t/a"));
}
