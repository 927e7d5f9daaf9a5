//! What is learned of one peer's path, and of another's.

use crate::Arm;
use crate::arm::Prior;
use crate::learned::Learned;
use crate::models::{Models, Subject};
use crate::network::{NetworkModel, Path, RateAware};
use crate::policy::{Objective, Observation, Policy, Request};

const BYTES: f64 = 20_000.0;

fn fresh() -> Learned {
    Learned::new(Models::new(vec![Prior::IDENTITY]))
}

fn to(peer: u64) -> Path {
    Path { peer, ..super::path(2e6, 0.1) }
}

/// Messages over a path took so many times what the model says.
fn took(policy: &mut Learned, path: &Path, ratio: f64, times: usize) {
    let seconds = ratio * RateAware.seconds(path, BYTES);
    (0..times).for_each(|_| policy.observe(&Observation::Network { path, bytes: BYTES, seconds }));
}

/// How many times what the model says is expected, of a length and of a message that is chosen for.
fn ratio(policy: &mut Learned, path: &Path) -> f64 {
    let subject = Subject { peer: 0, class: 1, bytes: BYTES, head_share: 1.0 };
    let (objective, allowed) = (Objective::Time, |_: Arm| true);
    let request = Request { subject: &subject, path, objective, allowed: &allowed };
    let chosen = policy.choose(&request).chosen.network_s;
    assert_eq!(chosen, policy.network_s(path, BYTES));
    chosen / RateAware.seconds(path, BYTES)
}

fn is(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.1
}

#[test]
fn each_path_is_learned_and_forgotten_alone() {
    let mut policy = fresh();
    let (slow, fast) = (to(1), Path { rate_bps: 1e8, rtt_s: 0.001, ..to(2) });
    for _ in 0..10 {
        took(&mut policy, &slow, 2.5, 1);
        took(&mut policy, &fast, 0.6, 1);
    }
    let before = ratio(&mut policy, &fast);
    assert!(is(ratio(&mut policy, &slow), 2.5) && is(before, 0.6), "{before}");
    assert_eq!(ratio(&mut policy, &to(3)), 1.0, "of a third nobody knows anything");
    policy.observe(&Observation::PathChanged { peer: 1 });
    assert_eq!(ratio(&mut policy, &slow), 1.0);
    assert_eq!(ratio(&mut policy, &fast), before);
    policy.observe(&Observation::PathChanged { peer: 9 });
    assert_eq!(ratio(&mut policy, &fast), before);
}

/// 256 peers that taught much and are gone, and two that come by turns.
#[test]
fn who_is_gone_makes_room_for_who_is_there() {
    let mut policy = fresh();
    (0..256).for_each(|peer| took(&mut policy, &to(peer), 2.0, 8));
    for _ in 0..10 {
        took(&mut policy, &to(1000), 2.5, 1);
        took(&mut policy, &to(1001), 0.6, 1);
    }
    let (one, other) = (ratio(&mut policy, &to(1000)), ratio(&mut policy, &to(1001)));
    assert!(is(one, 2.5) && is(other, 0.6), "{one} {other}");
}

#[test]
fn each_path_is_known_after_a_restart() {
    let mut policy = fresh();
    took(&mut policy, &to(1), 2.5, 9);
    took(&mut policy, &to(u64::MAX), 0.6, 9);
    // What nobody has measured is not kept.
    took(&mut policy, &Path { measured: false, ..to(5) }, 3.0, 9);
    let mut bytes = Vec::new();
    policy.save(&["identity"], &mut bytes);
    let mut restored = fresh();
    restored.restore(&["identity"], &bytes).unwrap();
    let mut again = Vec::new();
    restored.save(&["identity"], &mut again);
    assert!(again == bytes);
    for peer in [1, u64::MAX, 5] {
        assert_eq!(ratio(&mut restored, &to(peer)), ratio(&mut policy, &to(peer)), "{peer}");
    }
}

#[test]
fn peers_that_come_once_drive_nobody_out_and_memory_has_a_bound() {
    let mut policy = fresh();
    for peer in 0..224 {
        took(&mut policy, &to(peer), 2.0, 5);
    }
    let saved = |policy: &Learned| {
        let mut bytes = Vec::new();
        policy.save(&["identity"], &mut bytes);
        assert!(bytes.len() <= policy.state_bytes(), "{}", bytes.len());
        // Behind the head, the name and the clock.
        u16::from_le_bytes(*bytes[4 + 2 + 8 + 8..].first_chunk().unwrap())
    };
    for peer in 1000..20_000 {
        took(&mut policy, &to(peer), 4.0, 1);
    }
    assert_eq!(saved(&policy), 256);
    assert!((0..224).all(|peer| is(ratio(&mut policy, &to(peer)), 2.0)));
    // Of those who come to stay, the longest unused goes.
    for peer in 500..510 {
        took(&mut policy, &to(0), 2.0, 1);
        took(&mut policy, &to(peer), 3.0, 5);
    }
    let known = |policy: &mut Learned, peer| ratio(policy, &to(peer)) > 1.5;
    assert!(known(&mut policy, 0) && known(&mut policy, 509) && !known(&mut policy, 1));
    took(&mut policy, &to(u64::MAX), 3.0, 5);
    assert_eq!(saved(&policy), 256);
}

#[test]
fn no_link_is_believed_to_carry_more_than_its_operator_says() {
    let mut policy = fresh();
    let capped = Path { cap_bps: 64e3, rate_bps: 64e3, ..to(1) };
    let least_s = 8.0 * BYTES / 64e3;
    for _ in 0..100 {
        took(&mut policy, &capped, 0.1, 1);
        assert!(policy.network_s(&capped, BYTES) >= least_s);
        assert!(policy.network_s(&capped, 10.0 * BYTES) >= 10.0 * least_s);
    }
    let free = policy.network_s(&Path { cap_bps: f64::INFINITY, ..capped }, BYTES);
    assert!(free < 0.5 * least_s, "what messages took is learned all the same: {free}");
    for absurd in [f64::NAN, f64::NEG_INFINITY, 0.0] {
        let path = Path { cap_bps: absurd, ..capped }.bounded();
        assert!(policy.network_s(&path, BYTES).is_finite());
    }
}
