//! Dictionaries that a peer has lost, does not answer for, or that go for others.

use std::collections::BTreeSet;

use super::*;
use crate::kept::dictionaries::MAX_SAMPLE_BYTES;
use crate::kept::lasting;
use crate::path::offers::Offers;

const DICTIONARY: &str = "zstd-dictionary:19";

/// A pair that has dictionaries only, so that nothing else is better.
fn with_dictionaries() -> Pair {
    let configs = [EDGE, GATEWAY].map(|at| {
        let mut config = config(at);
        let encodings = Some(config.encoding.meant_by(&[DICTIONARY.to_owned()]).unwrap());
        config.services = vec![Service { encodings, ..Service::default() }];
        config
    });
    Pair::with(configs, Some(0))
}

fn ask(pair: &mut Pair, client: &str, seed: u32) {
    pair.asks(client, &track(seed, ""), &track(seed + 500, ""));
}

#[test]
fn a_dictionary_outlives_its_path_and_is_sent_again_where_it_is_gone() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| ask(&mut pair, "a", seed));
    let crossed = pair.rests(30);
    for at in [GATEWAY, EDGE] {
        pair.tell(at, Input::Down { path: PATH });
    }
    pair.connects();
    let offered = pair.rests(10);
    assert!(offered[0] * 2 < crossed[0] && offered[1] * 2 < crossed[1], "{offered:?} {crossed:?}");
    ask(&mut pair, "a", 40);
    assert_eq!(pair.last()[EDGE], DICTIONARY);
    // The receivers have lost it: the message gets through, and the dictionary comes again.
    for end in &mut pair.ends {
        end.coding.core.dictionaries.lose_held();
    }
    ask(&mut pair, "a", 41);
    let ignored = [EDGE, GATEWAY].map(|at| pair.ends[at].ignored.len());
    assert_eq!(ignored, [1, 1]);
    ask(&mut pair, "a", 42);
    assert_ne!(pair.last()[EDGE], DICTIONARY);
    pair.rests(30);
    ask(&mut pair, "a", 43);
    assert_eq!(pair.last(), [DICTIONARY; 2]);
}

#[test]
fn a_message_too_long_for_a_sample_gets_through_without_its_dictionary() {
    let mut pair = with_dictionaries();
    (0..20).for_each(|seed| ask(&mut pair, "a", seed));
    pair.rests(30);
    pair.ends[GATEWAY].coding.core.dictionaries.lose_held();
    let words: String = (0..600).map(|at| format!("<n>{at} of many</n>")).collect();
    let long = track(50, &words);
    assert!(long.len() > MAX_SAMPLE_BYTES);
    pair.asks("a", &long, &track(51, ""));
    assert_eq!(pair.last()[EDGE], DICTIONARY);
    let ignored = [EDGE, GATEWAY].map(|at| pair.ends[at].ignored.len());
    assert_eq!(ignored, [0, 1]);
}

#[test]
fn a_peer_that_does_not_answer_an_offer_holds_up_no_other_for_ever() {
    let mut pair = with_dictionaries();
    let get = |pair: &mut Pair, client, seed| {
        pair.asks(client, &[], &track(seed, ""));
    };
    for (client, first) in [("a", 0), ("b", 100)] {
        (first..first + 20).for_each(|seed| get(&mut pair, client, seed));
    }
    pair.rests(60);
    // It is all to be agreed on anew, but of what the gateway sends the edge hears nothing.
    pair.held = Some(Vec::new());
    let now = pair.now;
    pair.ends[GATEWAY].coding.with_peer(now, PATH, |peer| {
        peer.path.offers = Offers::default();
        peer.greet_offers();
    });
    let offers = |pair: &mut Pair, seconds| {
        let before = pair.held.as_ref().unwrap().len();
        pair.rests(seconds);
        pair.held.as_ref().unwrap().len() - before
    };
    assert_eq!(offers(&mut pair, 100), 1, "one at a time");
    assert_eq!(offers(&mut pair, 100), 1, "then the other");
    assert_eq!(offers(&mut pair, 1000), 0, "and none twice");
    // A late word counts all the same.
    for input in pair.held.take().unwrap() {
        pair.tell(EDGE, input);
    }
    for client in ["a", "b"] {
        get(&mut pair, client, 30);
        assert_eq!(pair.last()[GATEWAY], DICTIONARY, "{client}");
    }
}

#[test]
fn what_goes_for_another_is_kept_no_longer() {
    let mut coding = Coding::new(config(GATEWAY));
    let mut kept = BTreeSet::new();
    let held = |number: u64| Kept::new(number.to_be_bytes().repeat(9));
    let mut takes = |coding: &mut Coding, scope, number| {
        let (name, bytes) = lasting::held(scope, &held(number));
        coding.core.store(name, bytes);
        coding.core.dictionaries.hold(scope, Arc::new(held(number)));
        coding.handle_input(ms(0), Input::Wake);
        for output in std::iter::from_fn(|| coding.poll_output()) {
            match output {
                Output::Store { name, .. } => assert!(kept.insert(name)),
                Output::Dropped { name } => assert!(kept.remove(&name)),
                _ => {}
            }
        }
        assert_eq!(kept.len(), coding.dictionaries().count());
        kept.clone()
    };
    let of_one = takes(&mut coding, 1, 0);
    (0..300).for_each(|number| drop(takes(&mut coding, 2, number)));
    // One peer's many are not kept in place of another's.
    assert!(takes(&mut coding, 2, 300).is_superset(&of_one));
}

/// The requester has another name with another secret.
#[test]
fn nobody_can_be_guessed_by_a_name() {
    let id = Id::of(b"a");
    let [five, six] = [5, 6].map(|byte| Secret::new([byte; 32]).of_principal(id));
    assert!(five != six && format!("{:?}", Secret::new([5; 32])) == "Secret(..)");
}
