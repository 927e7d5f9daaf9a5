//! Dictionaries that outlive a side's process: who has them again, and who has not.

use proptest::prelude::*;

use super::dictionaries::{DICTIONARY, HUSHED, ask, base, says, with_config};
use super::*;
use coding::Secret;

/// A pair with names that last.
fn lasting() -> Pair {
    with_config(Config { secret: Some(Secret::new([5; 32])), ..Config::new(Role::Edge, 0) })
}

/// One whose dictionaries both sides hold; bytes that it took to bring them across.
fn warm() -> (Pair, [usize; 2]) {
    let mut pair = lasting();
    (0..20).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
    let crossed = pair.rests(30);
    ask(&mut pair, "a", 30);
    assert_eq!(used(&pair), [true, true]);
    (pair, crossed)
}

/// Whether the last messages of edge and gateway were encoded with a dictionary.
fn used(pair: &Pair) -> [bool; 2] {
    [&pair.edge, &pair.gateway].map(|end| end.chosen().last() == Some(&DICTIONARY))
}

#[test]
fn dictionaries_outlive_either_side() {
    for role in [Role::Edge, Role::Gateway] {
        let (mut pair, crossed) = warm();
        let before = [base(&pair.edge), base(&pair.gateway)];
        pair.restarts(role, |_| {});
        let agreed = pair.rests(10);
        assert!(agreed[0] * 2 < crossed[0] && agreed[1] * 2 < crossed[1], "{agreed:?}");
        ask(&mut pair, "a", 40);
        assert_eq!(used(&pair), [true, true], "{role:?}");
        assert_eq!([base(&pair.edge), base(&pair.gateway)], before);
        // They are still nobody else's.
        ask(&mut pair, "b", 41);
        assert_eq!(used(&pair), [false, false], "{role:?}");
        assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (0, 0));
        // That they are in use is told now and then, not each time.
        (42..46).for_each(|seed| assert_ne!(ask(&mut pair, "a", seed), [0, 0]));
        let end = pair.end(role);
        assert_eq!(end.used.len(), 2, "{role:?}");
        assert!(end.used[0] != end.used[1], "its own and the other's");
        assert!(end.used.iter().all(|name| end.disk.contains_key(name)));
    }
}

#[test]
fn both_sides_can_have_started_again_also_where_requests_have_no_body() {
    let mut pair = lasting();
    let get = |pair: &mut Pair, seed| pair.asks("a", &[], &[], &track(seed, HUSHED));
    (0..20).for_each(|seed| assert_ne!(get(&mut pair, seed), [0, 0]));
    pair.rests(30);
    pair.restarts(Role::Edge, |_| {});
    pair.restarts(Role::Gateway, |_| {});
    pair.rests(10);
    get(&mut pair, 40);
    assert_eq!(pair.gateway.chosen(), [DICTIONARY]);
    // A number that another principal had before is still another's.
    pair.restarts(Role::Edge, |_| {});
    pair.rests(10);
    pair.asks("b", &[], &[], &track(41, HUSHED));
    assert_ne!(pair.gateway.chosen().last(), Some(&DICTIONARY));
    get(&mut pair, 42);
    assert_eq!(pair.gateway.chosen().last(), Some(&DICTIONARY));
}

#[test]
fn a_side_that_has_lost_its_dictionaries_gets_them_again() {
    for role in [Role::Edge, Role::Gateway] {
        let (mut pair, crossed) = warm();
        pair.end(role).disk.clear();
        pair.restarts(role, |_| {});
        // What the other side has made crosses again; until then messages go without it.
        ask(&mut pair, "a", 40);
        assert_eq!(used(&pair), [false, false], "{role:?}");
        let (at, again) = (usize::from(role == Role::Edge), pair.rests(30));
        assert!(again[at] * 2 > crossed[at], "{role:?} {again:?} {crossed:?}");
        ask(&mut pair, "a", 41);
        assert!(used(&pair)[at], "{role:?}");
        assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (0, 0));
    }
}

#[test]
fn who_is_not_the_same_edge_hears_of_none() {
    let changes: [fn(&mut Config); 2] =
        [|config| config.secret = Some(Secret::new([6; 32])), |config| config.secret = None];
    for change in changes {
        let (mut pair, _) = warm();
        pair.restarts(Role::Edge, change);
        assert_eq!(pair.rests(60)[1], 0, "nothing is offered");
        ask(&mut pair, "a", 40);
        assert_eq!(used(&pair), [false, false]);
    }
    // Nor does the same edge where it comes as another peer, for what the gateway knows of it.
    let (mut pair, _) = warm();
    pair.peer = "q";
    pair.restarts(Role::Edge, |_| {});
    pair.rests(60);
    ask(&mut pair, "a", 40);
    assert_eq!(used(&pair), [false, false]);
}

#[test]
fn what_a_hostile_peer_says_of_names_harms_nobody() {
    let (mut pair, _) = warm();
    let before = pair.gateway.ignored();
    for name in [0, 1, u64::MAX] {
        says(&mut pair, Role::Gateway, &Keeping::Name { principal: 0, name });
    }
    for principal in 1..5000 {
        says(&mut pair, Role::Gateway, &Keeping::Name { principal, name: principal });
    }
    says(&mut pair, Role::Edge, &Keeping::Name { principal: 0, name: 9 });
    assert_eq!(pair.gateway.ignored(), before + 3, "an edge is who it was");
    let names = pair.gateway.relay.transfer.coding.principals(path_of(pair.carrier));
    assert!((1..=MAX_PRINCIPALS).contains(&names), "{names}");
    for seed in 40..44 {
        assert_ne!(ask(&mut pair, "a", seed), [0, 0]);
    }
}

#[test]
fn nothing_secret_is_kept_and_nobody_can_be_guessed() {
    let (pair, _) = warm();
    for end in [&pair.edge, &pair.gateway] {
        assert_eq!(end.disk.len(), 2, "its own and the other's");
        for bytes in end.disk.values() {
            let text = String::from_utf8_lossy(bytes);
            assert!(text.contains("callsign"), "{text}");
            assert!(!text.contains("HUSH") && !text.contains("alice"), "{text}");
        }
    }
}

#[test]
fn what_is_no_dictionary_of_this_sides_is_refused() {
    let (pair, _) = warm();
    for (name, bytes) in &pair.gateway.disk {
        let mut relay = Relay::new(Config::new(Role::Gateway, 77));
        for len in 0..bytes.len().min(200) {
            assert!(relay.restore_dictionary(*name, &bytes[..len]).is_err(), "{len}");
        }
        // Of what is behind whose it is only a digest could tell.
        for at in 0..18 {
            let mut other = bytes.to_vec();
            other[at] ^= 0x40;
            assert!(relay.restore_dictionary(*name, &other).is_err(), "{at}");
        }
        let long = [&bytes[..], &[0; 17 << 10]].concat();
        assert!(relay.restore_dictionary(*name, &long).is_err());
        assert!(relay.restore_dictionary([1; 32], bytes).is_err());
        relay.restore_dictionary(*name, bytes).unwrap();
        assert_eq!(relay.transfer.coding.dictionaries().count(), 1);
    }
}

proptest! {
    #[test]
    fn junk_is_refused(name: [u8; 32], kind in 0..4_u8, junk: Vec<u8>) {
        let mut relay = Relay::new(Config::new(Role::Edge, 1));
        prop_assert!(relay.restore_dictionary(name, &junk).is_err());
        let junk = [&[1, kind][..], &junk].concat();
        prop_assert!(relay.restore_dictionary(name, &junk).is_err());
    }
}
