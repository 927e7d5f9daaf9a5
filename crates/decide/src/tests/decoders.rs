//! What is learned of one peer's processor, and of another's.

use super::learned::{priors, seen_in, xml};
use crate::Arm;
use crate::models::{Models, Subject};

const BYTES: f64 = 50_000.0;
/// What the first peer takes to decode in the first arm that codes.
const FIRST_S: f64 = 1e-4;

fn of(peer: u64) -> Subject {
    Subject { peer, ..xml(BYTES) }
}

fn reported(models: &mut Models, peer: u64, seconds: f64) {
    models.observe(&of(peer), Arm(1), &seen_in(20_000.0, None, Some(seconds)));
}

fn expected_s(models: &Models, peer: u64, arm: Arm) -> f64 {
    models.expect(&of(peer), arm).unwrap().decode_s
}

/// The first peer has told much.
fn taught() -> Models {
    let mut models = Models::new(priors());
    (0..30).for_each(|_| reported(&mut models, 1, FIRST_S));
    models
}

fn times_off(found: f64, expected: f64) -> f64 {
    (found / expected).max(expected / found)
}

#[test]
fn a_slow_peer_is_known_by_its_first_message_and_costs_the_others_nothing() {
    for slower in [0.02, 30.0, 1000.0] {
        let mut models = taught();
        let before = [Arm(1), Arm(2)].map(|arm| expected_s(&models, 1, arm));
        reported(&mut models, 2, slower * FIRST_S);
        let found = expected_s(&models, 2, Arm(1));
        assert!(times_off(found, slower * FIRST_S) < 1.5, "{slower}: {found}");
        // So it is for encodings in which nothing was sent to it.
        let other = expected_s(&models, 2, Arm(2)) / expected_s(&models, 1, Arm(2));
        assert!(times_off(other, slower) < 1.5, "{slower}: {other}");
        (0..30).for_each(|_| reported(&mut models, 2, slower * FIRST_S));
        let after = [Arm(1), Arm(2)].map(|arm| expected_s(&models, 1, arm));
        for (before, after) in before.into_iter().zip(after) {
            assert!(times_off(after, before) < 1.2, "{slower}: {before} {after}");
        }
        assert!(times_off(expected_s(&models, 2, Arm(1)), slower * FIRST_S) < 1.1);
    }
}

#[test]
fn who_lies_about_decoding_is_believed_of_himself_alone() {
    let mut models = taught();
    for at in 0..100 {
        reported(&mut models, 2, if at % 2 == 0 { 1e-7 } else { 100.0 });
        reported(&mut models, 1, FIRST_S);
    }
    let found = expected_s(&models, 1, Arm(1));
    assert!(times_off(found, FIRST_S) < 2.0, "{found}");
    // The first one lies: the others are that much further off him.
    let mut models = Models::new(priors());
    for _ in 0..30 {
        reported(&mut models, 1, 10.0);
        reported(&mut models, 2, FIRST_S);
    }
    let found = expected_s(&models, 2, Arm(1));
    assert!(times_off(found, FIRST_S) < 2.0, "{found}");
}

/// Nobody is measured by one that is like no other.
#[test]
fn a_new_peer_is_taken_to_be_as_the_others_are() {
    let mut models = Models::new(priors());
    (0..10).for_each(|_| reported(&mut models, 1, 10.0));
    for peer in 2..40 {
        (0..3).for_each(|_| reported(&mut models, peer, FIRST_S));
    }
    let found = expected_s(&models, 99, Arm(1));
    assert!(times_off(found, FIRST_S) < 2.0, "{found}");
}

/// What a peer takes is known after some messages, though they scatter; then none is sent for it.
#[test]
fn a_peer_is_known_after_some_messages() {
    let mut models = taught();
    let unsure = |models: &Models| models.expect(&of(2), Arm(1)).unwrap().decode_unsure;
    reported(&mut models, 3, FIRST_S);
    assert!(unsure(&models) > 1.0);
    (0..40).for_each(|at| reported(&mut models, 2, FIRST_S * f64::from(4 + at % 3)));
    assert!(unsure(&models) < 0.15, "{}", unsure(&models));
}

#[test]
fn one_peer_alone_is_learned_as_if_it_had_no_name() {
    let mut models = [Models::new(priors()), Models::new(priors())];
    for (peer, models) in models.iter_mut().enumerate() {
        for at in 0..40 {
            reported(models, 9 * peer as u64, FIRST_S * f64::from(1 + at % 3));
        }
    }
    let [nobody, somebody] = models;
    for arm in [Arm(1), Arm(2)] {
        assert_eq!(nobody.expect(&of(0), arm), somebody.expect(&of(9), arm));
    }
}

/// What peers say of themselves: so many times this processor.
fn says(models: &mut Models, peer: u64, slower: f64) {
    let priors = priors();
    let decode = |arm: usize| (Arm(arm), priors[arm].decode.times(slower));
    models.acquaint(peer, &[decode(1), decode(2)]);
}

#[test]
fn a_peer_that_says_so_is_slow_before_it_has_decoded_anything() {
    let mut models = Models::new(priors());
    let own = [Arm(1), Arm(2)].map(|arm| expected_s(&models, 0, arm));
    assert!(!models.knows(1) && !models.knows(2));
    for (peer, slower) in [(1, 20.0), (2, 0.25), (3, 1.0)] {
        says(&mut models, peer, slower);
        assert!(models.knows(peer));
        for (arm, own) in [Arm(1), Arm(2)].into_iter().zip(own) {
            let found = expected_s(&models, peer, arm);
            assert!(times_off(found, slower * own) < 1.01, "{peer}: {found} for {own}");
        }
    }
    // What the first takes in fact is learned as if nobody had said anything.
    (0..30).for_each(|_| reported(&mut models, 1, 40.0 * own[0]));
    assert!(times_off(expected_s(&models, 1, Arm(1)), 40.0 * own[0]) < 1.1);
    // And so is that of the others.
    for (peer, slower) in [(2, 0.25), (3, 1.0)] {
        assert!(times_off(expected_s(&models, peer, Arm(1)), slower * own[0]) < 1.01);
        (0..30).for_each(|_| reported(&mut models, peer, slower * own[0]));
        let found = expected_s(&models, peer, Arm(1));
        assert!(times_off(found, slower * own[0]) < 1.1, "{peer}: {found}");
    }
}

/// The first may have told before anybody could ask, or say what is not so.
#[test]
fn what_others_say_holds_whatever_the_first_one_is() {
    let own = expected_s(&Models::new(priors()), 0, Arm(1));
    for (said, takes) in [(None, 30.0), (None, 1.0), (Some(55.0), 1.0), (Some(1.0), 30.0)] {
        let mut models = Models::new(priors());
        said.into_iter().for_each(|slower| says(&mut models, 1, slower));
        (0..30).for_each(|_| reported(&mut models, 1, takes * own));
        for (peer, slower) in [(2, 30.0), (3, 1.0)] {
            says(&mut models, peer, slower);
            let found = expected_s(&models, peer, Arm(1));
            assert!(times_off(found, slower * own) < 1.01, "{said:?} {takes}: {found}");
            reported(&mut models, peer, slower * own);
            let found = expected_s(&models, peer, Arm(1));
            assert!(times_off(found, slower * own) < 1.5, "{said:?} {takes}: {found}");
        }
        assert!(times_off(expected_s(&models, 1, Arm(1)), takes * own) < 1.2, "{said:?} {takes}");
    }
}

#[test]
fn of_many_that_say_something_the_latest_are_remembered() {
    let mut models = taught();
    (2..2000).for_each(|peer| says(&mut models, peer, 3.0));
    assert!((1744..2000).all(|peer| models.knows(peer)) && !models.knows(2));
    assert!(!models.knows(1743));
}

#[test]
fn what_a_peer_says_counts_for_less_than_what_it_does() {
    let mut models = taught();
    says(&mut models, 1, 1000.0);
    assert!(times_off(expected_s(&models, 1, Arm(1)), FIRST_S) < 1.1, "it is known");
    for lie in [1e-30, 1e30, f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let mut models = taught();
        says(&mut models, 2, lie);
        let found = expected_s(&models, 2, Arm(1));
        assert!(found.is_finite() && times_off(found, FIRST_S) < 500.0, "{lie}: {found}");
        (0..6).for_each(|_| reported(&mut models, 2, FIRST_S));
        let found = expected_s(&models, 2, Arm(1));
        assert!(times_off(found, FIRST_S) < 1.5, "{lie}: {found}");
        assert!(times_off(expected_s(&models, 1, Arm(1)), FIRST_S) < 1.2, "{lie}");
    }
    let mut models = Models::new(priors());
    models.acquaint(5, &[]);
    models.acquaint(5, &[(Arm(0), crate::arm::Speed::NONE), (Arm(99), crate::arm::Speed::NONE)]);
    assert!(!models.knows(5), "nothing was said");
}

#[test]
fn many_peers_are_remembered_in_bounded_memory() {
    let mut models = taught();
    // Every other one is as slow again: what is known of a peer is more than what all have.
    let takes_s = |peer: u64| FIRST_S * if peer.is_multiple_of(2) { 3.0 } else { 300.0 };
    (2..2000).for_each(|peer| reported(&mut models, peer, takes_s(peer)));
    let is_known = |peer| times_off(expected_s(&models, peer, Arm(1)), takes_s(peer)) < 1.5;
    assert!((1744..2000).all(is_known) && !is_known(2) && !is_known(1743));
}

#[test]
fn a_time_a_thousand_times_the_prior_is_learned() {
    let mut models = Models::new(priors());
    let prior = expected_s(&models, 1, Arm(1));
    (0..40).for_each(|_| reported(&mut models, 1, 2000.0 * prior));
    let found = expected_s(&models, 1, Arm(1));
    assert!(times_off(found, 2000.0 * prior) < 1.3, "{found} of {}", 2000.0 * prior);
}
