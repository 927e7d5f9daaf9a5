//! The index against the definition of what fits.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::filter::matches;

fn subscriber(session: u32) -> Subscriber {
    Subscriber {
        session: SessionId(session),
        grade: Grade::AtMostOnce,
        no_local: false,
        as_published: false,
        identifier: 0,
    }
}

fn sessions(index: &mut Index, topic: &str) -> Vec<u32> {
    index.find(&topic.into()).own.as_slice().iter().map(|hit| hit.session.0).collect()
}

#[test]
fn one_subscription_for_each_session_and_filter() {
    let mut index = Index::default();
    index.insert("a/+", None, subscriber(1));
    index.insert("a/+", None, Subscriber { grade: Grade::AtLeastOnce, ..subscriber(1) });
    index.insert("a/b", None, subscriber(1));
    index.insert("a/b", None, subscriber(2));
    assert_eq!(index.len(), 3);
    assert_eq!(sessions(&mut index, "a/b"), [1, 1, 2]);
    assert!(index.remove("a/+", None, SessionId(1)));
    assert!(!index.remove("a/+", None, SessionId(1)));
    assert_eq!(sessions(&mut index, "a/b"), [1, 2]);
}

#[test]
fn groups_are_apart_from_those_who_share_nothing() {
    let mut index = Index::default();
    index.insert("a/#", Some("g"), subscriber(1));
    index.insert("a/#", Some("g"), subscriber(2));
    index.insert("a/#", Some("h"), subscriber(2));
    index.insert("a/#", None, subscriber(2));
    let hits = index.find(&"a".into());
    assert_eq!(hits.own.as_slice().len(), 1);
    let groups: Vec<(&str, usize)> =
        hits.shares.iter().map(|share| (&*share.of, share.members.len())).collect();
    assert_eq!(groups, [("$share/g/a/#", 2), ("$share/h/a/#", 1)]);
    assert!(index.remove("a/#", Some("g"), SessionId(1)));
    assert!(index.remove("a/#", Some("g"), SessionId(2)));
    assert_eq!(index.find(&"a".into()).shares.len(), 1);
}

#[test]
fn nothing_is_left_of_what_has_gone() {
    let mut index = Index::default();
    for round in 0..3 {
        for number in 0..200_u32 {
            index.insert(&format!("a/{number}/+/x{round}"), None, subscriber(number));
            index.insert(&format!("a/{number}/b"), None, subscriber(number));
        }
        for number in 0..200_u32 {
            assert!(index.remove(&format!("a/{number}/+/x{round}"), None, SessionId(number)));
            assert!(index.remove(&format!("a/{number}/b"), None, SessionId(number)));
        }
    }
    assert_eq!((index.len(), index.levels.len(), index.tree.len()), (0, 0, 1));
    assert!(index.exact.is_empty());
}

fn level() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just(""), Just("$x")]
}

fn topic() -> impl Strategy<Value = String> {
    proptest::collection::vec(level(), 1..4)
        .prop_map(|levels| levels.join("/"))
        .prop_filter("a topic has a character", |topic| !topic.is_empty())
}

fn filter() -> impl Strategy<Value = String> {
    let levels = proptest::collection::vec(prop_oneof![3 => level(), 2 => Just("+")], 0..4);
    (levels, any::<bool>())
        .prop_map(|(mut levels, rest)| {
            if rest || levels.is_empty() {
                levels.push("#");
            }
            levels.join("/")
        })
        .prop_filter("a filter has a character", |filter| !filter.is_empty())
}

proptest! {
    #[test]
    fn finds_what_fits_and_nothing_else(
        filters in proptest::collection::vec((filter(), 0..8_u32), 0..30),
        gone in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        topics in proptest::collection::vec(topic(), 1..10),
    ) {
        let mut index = Index::default();
        let mut kept: BTreeSet<(String, u32)> = BTreeSet::new();
        for (filter, session) in &filters {
            index.insert(filter, None, subscriber(*session));
            kept.insert((filter.clone(), *session));
        }
        for one in gone {
            if filters.is_empty() {
                break;
            }
            let (filter, session) = &filters[one.index(filters.len())];
            let was = kept.remove(&(filter.clone(), *session));
            prop_assert_eq!(index.remove(filter, None, SessionId(*session)), was);
        }
        prop_assert_eq!(index.len(), kept.len());
        for topic in topics {
            let mut fits: Vec<u32> = kept
                .iter()
                .filter(|(filter, _)| matches(filter, &topic))
                .map(|(_, session)| *session)
                .collect();
            fits.sort_unstable();
            prop_assert_eq!(sessions(&mut index, &topic), fits.clone());
            prop_assert_eq!(sessions(&mut index, &topic), fits, "the second time");
        }
    }
}
