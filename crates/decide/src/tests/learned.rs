use std::time::Duration;

use super::path;
use crate::Arm;
use crate::arm::{Prior, SYMMETRIC, Speed};
use crate::estimate::Estimate;
use crate::fixed::Fixed;
use crate::learned::Learned;
use crate::models::{Models, Seen, Subject};
use crate::nam::Nam;
use crate::network::{NetworkModel, Path, Pftk, RateAware};
use crate::outcome::{Parts, Split};
use crate::policy::{Decision, Going, Objective, Observation, Policy, Request};

fn speed(bytes_per_s: f64) -> Speed {
    Speed { fixed_s: 2e-5, per_byte_s: 1.0 / bytes_per_s }
}

/// Nothing, a fast one and a strong one.
pub(super) fn priors() -> Vec<Prior> {
    let coded = |share: f64, encode: f64, decode: f64| Prior {
        size: [share.ln(), 0.9, 0.0, -0.02],
        overhead_bytes: 12.0,
        encode: speed(encode),
        decode: speed(decode),
        family: "",
    };
    vec![Prior::IDENTITY, coded(0.7, 300e6, 800e6), coded(0.4, 2e6, 400e6)]
}

pub(super) fn xml(bytes: f64) -> Subject {
    Subject { peer: 0, class: 7, bytes, head_share: 0.2 }
}

pub(super) fn ask(
    policy: &mut dyn Policy,
    subject: &Subject,
    path: &Path,
    objective: Objective,
    allowed: impl Fn(Arm) -> bool,
) -> Decision {
    policy.choose(&Request { subject, path, objective, allowed: &allowed })
}

fn chosen(policy: &mut dyn Policy, subject: &Subject, path: &Path, objective: Objective) -> Arm {
    ask(policy, subject, path, objective, |_| true).chosen.arm
}

fn took(policy: &mut dyn Policy, path: &Path, bytes: f64, seconds: f64) {
    policy.observe(&Observation::Network { path, bytes, seconds });
}

pub(super) fn learn(policy: &mut dyn Policy, subject: &Subject, arm: Arm, seen: Seen) {
    policy.observe(&Observation::Encoding { subject, arm, seen: &seen });
}

pub(super) fn seen_in(bytes: f64, encode_s: Option<f64>, decode_s: Option<f64>) -> Seen {
    Seen { bytes, encode_s, decode_s }
}

#[test]
fn the_slower_the_link_the_stronger_the_coding() {
    let mut learned = Learned::new(Models::new(priors()));
    let mut of =
        |rate: f64| chosen(&mut learned, &xml(50_000.0), &path(rate, 1e-6), Objective::Time);
    assert_eq!(of(9_600.0), Arm(2));
    assert_eq!(of(250e3), Arm(2));
    assert_eq!(of(100e6), Arm(1));
    assert_eq!(of(100e9), Arm(0));
}

#[test]
fn what_does_not_compress_is_left_alone_once_that_was_seen() {
    let mut learned = Learned::new(Models::new(priors()));
    let noise = Subject { peer: 0, class: 9, bytes: 50_000.0, head_share: 1.0 };
    for arm in [Arm(1), Arm(2)] {
        for _ in 0..8 {
            let seen = Seen { bytes: 50_030.0, encode_s: Some(0.001), decode_s: None };
            learn(&mut learned, &noise, arm, seen);
        }
    }
    let decision = ask(&mut learned, &noise, &path(9_600.0, 0.2), Objective::Time, |_| true);
    assert_eq!(decision.chosen.arm, Arm::IDENTITY, "{decision:?}");
}

/// The strong one decodes as slowly as it encodes.
fn alike_both_ways() -> (Learned, Subject) {
    let mut all = priors();
    (all[2].decode, all[2].family) = (speed(2.2e6), SYMMETRIC);
    (Learned::new(Models::new(all)), xml(2e6))
}

#[test]
fn where_both_ways_do_the_same_looking_tells_of_decoding_too() {
    let (mut learned, subject) = alike_both_ways();
    let decoding = |learned: &Learned, arm: usize| {
        learned.models().expect(&subject, Arm(arm)).unwrap().decode_s
    };
    let before = [decoding(&learned, 1), decoding(&learned, 2)];
    for _ in 0..4 {
        let seen = Seen { bytes: 20e3, encode_s: Some(0.1), decode_s: None };
        learn(&mut learned, &subject, Arm(2), seen);
    }
    let probed = decoding(&learned, 2);
    assert!(probed < 0.15 * before[1], "{probed} of {before:?}");
    assert!(decoding(&learned, 1) > 0.5 * before[0], "its decoder is another matter");
    // Whoever decoded knows better.
    for _ in 0..4 {
        let seen = Seen { bytes: 20e3, encode_s: Some(0.1), decode_s: Some(0.5) };
        learn(&mut learned, &subject, Arm(2), seen);
    }
    assert!((decoding(&learned, 2) / 0.5 - 1.0).abs() < 0.2, "{}", decoding(&learned, 2));
}

/// Of a fast codec the measured speeds may be alike, which are mostly the making of its context.
#[test]
fn speeds_that_are_measured_alike_do_not_make_encoding_tell_of_decoding() {
    let mut learned = Learned::new(Models::new(priors()));
    let alike = Some(speed(300e6));
    learned.observe(&Observation::Speed { arm: Arm(1), encode: alike, decode: alike });
    let decoding = |learned: &Learned| learned.models().expect(&xml(2e6), Arm(1)).unwrap();
    let before = decoding(&learned);
    (0..4).for_each(|_| learn(&mut learned, &xml(2e6), Arm(1), seen_in(20e3, Some(0.05), None)));
    let after = decoding(&learned);
    assert!((after.decode_s / before.decode_s - 1.0).abs() < 0.1, "{after:?} {before:?}");
    assert!(after.decode_unsure > 0.9 * before.decode_unsure, "{after:?} {before:?}");
}

/// The peer is slow: so it is for a decoder that only its encoder was looked at of.
#[test]
fn what_decoders_showed_of_a_slow_peer_is_expected_of_one_that_was_only_probed() {
    let (mut learned, subject) = alike_both_ways();
    let decoding = |learned: &Learned| learned.models().expect(&subject, Arm(2)).unwrap().decode_s;
    let before = decoding(&learned);
    learn(&mut learned, &subject, Arm(2), seen_in(20e3, Some(1.0), None));
    (0..4).for_each(|_| {
        learn(&mut learned, &subject, Arm(1), seen_in(20e3, Some(0.0067), Some(0.025)));
    });
    let slow = decoding(&learned) / before;
    assert!((2.5..10.0).contains(&slow), "{slow}");
}

/// Our processor is slower than at its trial, for all: that tells nothing of the peer's.
#[test]
fn what_all_encoders_showed_says_nothing_of_decoding() {
    let (mut learned, subject) = alike_both_ways();
    let decoding = |learned: &Learned| learned.models().expect(&subject, Arm(2)).unwrap().decode_s;
    let before = decoding(&learned);
    (0..4).for_each(|_| {
        learn(&mut learned, &subject, Arm(1), seen_in(600e3, Some(0.067), Some(0.0025)));
    });
    learn(&mut learned, &subject, Arm(2), seen_in(300e3, Some(10.0), None));
    let slow = decoding(&learned) / before;
    assert!((0.5..4.0).contains(&slow), "of ten times: {slow}");
}

/// 0.4 and 39 kB: an arm was looked at when the message was short. What another then showed of long
/// ones is expected of it too, and what it showed itself of short ones stays.
#[test]
fn what_one_showed_of_a_length_is_expected_of_the_others_there() {
    let mut learned = Learned::new(Models::new(priors()));
    let (short, long) = (xml(400.0), xml(39e3));
    let of = |learned: &Learned, subject: &Subject, arm: usize| {
        learned.models().expect(subject, Arm(arm)).unwrap()
    };
    let seen = Seen { bytes: of(&learned, &short, 2).bytes, ..Seen::default() };
    learn(&mut learned, &short, Arm(2), seen);
    let before = [short, long].map(|subject| of(&learned, &subject, 2));
    for (subject, times) in [(&short, 1.0), (&long, 0.25), (&short, 1.0), (&long, 0.25)] {
        let bytes = times * of(&Learned::new(Models::new(priors())), subject, 1).bytes;
        learn(&mut learned, subject, Arm(1), Seen { bytes, ..Seen::default() });
    }
    let after = [short, long].map(|subject| of(&learned, &subject, 2));
    assert!(after[1].bytes < 0.5 * before[1].bytes, "{after:?} {before:?}");
    assert!(after[1].unsure < 0.9 * before[1].unsure, "{after:?} {before:?}");
    assert!((after[0].bytes / before[0].bytes - 1.0).abs() < 0.2, "{after:?} {before:?}");
}

#[test]
fn a_class_that_compresses_otherwise_than_expected_is_learned_in_a_few() {
    let mut learned = Learned::new(Models::new(priors()));
    let subject = xml(30_000.0);
    for _ in 0..5 {
        let seen = Seen { bytes: 600.0, encode_s: Some(0.004), decode_s: Some(0.0001) };
        learn(&mut learned, &subject, Arm(1), seen);
    }
    let found = learned.models().expect(&subject, Arm(1)).unwrap();
    assert!((found.bytes / 600.0 - 1.0).abs() < 0.1, "{found:?}");
    assert!((found.encode_s / 0.004 - 1.0).abs() < 0.2, "{found:?}");
    assert!(found.deviation < 0.3, "{found:?}");
}

#[test]
fn forbidden_arms_are_never_chosen_nor_tried() {
    let mut learned = Learned::new(Models::new(priors()));
    for _ in 0..50 {
        let decision =
            ask(&mut learned, &xml(50_000.0), &path(9600.0, 0.2), Objective::Bytes, |arm| {
                arm != Arm(2)
            });
        assert_eq!(decision.chosen.arm, Arm(1));
        assert_ne!(decision.probe, Some(Arm(2)));
        assert!(decision.candidates.iter().all(|candidate| candidate.arm != Arm(2)));
    }
    let none = ask(&mut learned, &xml(50_000.0), &path(9600.0, 0.2), Objective::Bytes, |_| false);
    assert_eq!(none.chosen.arm, Arm::IDENTITY);
}

#[test]
fn objectives_differ_where_they_must() {
    let mut learned = Learned::new(Models::new(priors()));
    let (subject, fast) = (xml(400_000.0), path(1e9, 0.001));
    assert_eq!(chosen(&mut learned, &subject, &fast, Objective::Time), Arm(1));
    assert_eq!(chosen(&mut learned, &subject, &fast, Objective::Bytes), Arm(2));
    assert_eq!(chosen(&mut learned, &subject, &fast, Objective::Deadline(10.0)), Arm(2));
    assert_eq!(chosen(&mut learned, &subject, &fast, Objective::Deadline(0.05)), Arm(1));
    assert_eq!(
        chosen(&mut learned, &subject, &fast, Objective::Deadline(0.0)),
        Arm(1),
        "what cannot be in time is as soon as possible"
    );
}

#[test]
fn near_equals_do_not_flap() {
    let alike = |share: f64| Prior {
        size: [share.ln(), 0.0, 0.0, 0.0],
        overhead_bytes: 0.0,
        encode: speed(500e6),
        decode: speed(500e6),
        family: "",
    };
    let mut learned = Learned::new(Models::new(vec![Prior::IDENTITY, alike(0.2), alike(0.201)]));
    let mut changes = 0;
    let mut before = None;
    for at in 0..100_u32 {
        for (arm, off) in [(Arm(1), at * 7 % 5), (Arm(2), (at * 7 + 3) % 5)] {
            let off = f64::from(off) * 10.0;
            let seen = Seen { bytes: 10_000.0 + off, encode_s: None, decode_s: None };
            learn(&mut learned, &xml(50_000.0), arm, seen);
        }
        let now = chosen(&mut learned, &xml(50_000.0), &path(1e6, 0.1), Objective::Time);
        changes += u32::from(before.replace(now).is_some_and(|before| before != now));
    }
    assert!(changes <= 1, "{changes}");
}

#[test]
fn encodings_that_nobody_sends_take_a_tenth_of_the_time_at_most_beyond_twice_the_first() {
    let mut learned = Learned::new(Models::new(priors()));
    let (mut messages_s, mut probes_s) = (0.0, 0.0);
    for number in 0..300 {
        let decision =
            ask(&mut learned, &xml(50_000.0), &path(50e6, 0.02), Objective::Time, |_| true);
        let total_s = decision.chosen.total_s();
        messages_s += if number == 0 { 20.0 * total_s } else { total_s };
        if let Some(arm) = decision.probe {
            let probe = decision.candidates.iter().find(|candidate| candidate.arm == arm);
            probes_s += probe.map_or(0.0, |probe| probe.expected.encode_s);
        }
    }
    assert!(probes_s <= 0.1 * messages_s, "{probes_s} of {messages_s}");
}

#[test]
fn the_network_is_learned_and_forgotten_when_the_path_changes() {
    let mut learned = Learned::new(Models::new(priors()));
    let path = path(2e6, 0.2);
    for bytes in [2e3, 2e4, 2e5, 2e3, 2e4, 2e5, 2e3, 2e4, 2e5] {
        took(&mut learned, &path, bytes, 2.0 * RateAware.seconds(&path, bytes));
    }
    let ratio =
        |learned: &Learned| learned.network().seconds(&path, 2e4) / RateAware.seconds(&path, 2e4);
    assert!((ratio(&learned) - 2.0).abs() < 0.15, "{}", ratio(&learned));
    learned.observe(&Observation::PathChanged { peer: 0 });
    assert!((ratio(&learned) - 1.0).abs() < 1e-9, "{}", ratio(&learned));
    took(&mut learned, &path, 2e4, RateAware.seconds(&path, 2e4));
    took(&mut learned, &path, 2e4, RateAware.seconds(&path, 2e4));
    assert!((ratio(&learned) - 1.0).abs() < 0.2, "{}", ratio(&learned));
    took(&mut learned, &path, 2e4, f64::NAN);
    took(&mut learned, &path, 0.0, 0.0);
    assert!(ratio(&learned).is_finite());
}

/// The first message of a link: that a link was expected to be fast is no news of what messages
/// wait for.
#[test]
fn what_went_before_a_path_was_measured_is_not_held_against_it() {
    let mut learned = Learned::new(Models::new(priors()));
    let slow = path(56e3, 0.15);
    let guess = Path { rate_bps: 1e6, measured: false, ..slow };
    (0..3).for_each(|_| took(&mut learned, &guess, 2e3, RateAware.seconds(&slow, 2e3)));
    let guessed = learned.network().seconds(&guess, 2e3) / RateAware.seconds(&slow, 2e3);
    assert!((guessed - 1.0).abs() < 0.05, "as long as it is all there is: {guessed}");
    for bytes in [1e3, 2e3, 1e5] {
        let expected = RateAware.seconds(&slow, bytes);
        assert_eq!(learned.network().seconds(&slow, bytes), expected, "{bytes}");
    }
}

#[test]
fn a_bad_surprise_asks_for_another_arm_if_that_pays() {
    let mut learned = Learned::new(Models::new(priors()));
    let (subject, path) = (xml(50_000.0), path(250_000.0, 1.1));
    let decision = ask(&mut learned, &subject, &path, Objective::Time, |arm| arm != Arm(2));
    assert_eq!(decision.chosen.arm, Arm(1));
    assert_eq!(learned.again(&decision, &path, &[Arm(1)], decision.chosen.expected.bytes), None);
    let decision = ask(&mut learned, &subject, &path, Objective::Time, |_| true);
    let tried = [decision.chosen.arm];
    assert_eq!(learned.again(&decision, &path, &tried, 45_000.0), Some(Arm(1)));
}

/// Over a link so fast that any coding is later than none.
#[test]
fn going_back_on_an_encoding_is_judged_by_what_is_wanted() {
    let mut learned = Learned::new(Models::new(priors()));
    let (subject, fast) = (xml(400_000.0), path(1e11, 1e-6));
    let mut wants = |objective| ask(&mut learned, &subject, &fast, objective, |_| true);
    let [bytes, soon, fastest] =
        [Objective::Bytes, Objective::Deadline(1.0), Objective::Time].map(&mut wants);
    assert_eq!(fastest.chosen.arm, Arm::IDENTITY);
    let [_, one, two] = fastest.candidates[..] else { panic!("{fastest:?}") };
    // Enough for the strong one alone, but not after another.
    let tight = wants(Objective::Deadline(two.total_s() + 0.5 * one.expected.encode_s));
    for decision in [&bytes, &soon, &tight] {
        assert_eq!(decision.chosen.arm, Arm(2));
        let as_expected = learned.again(decision, &fast, &[Arm(2)], two.expected.bytes);
        assert_eq!(as_expected, None, "{decision:?}");
    }
    assert_eq!(learned.again(&bytes, &fast, &[Arm(2)], 390_000.0), Some(Arm(1)));
    assert_eq!(learned.again(&bytes, &fast, &[Arm(1), Arm(2)], 410_000.0), Some(Arm(0)));
    assert_eq!(learned.again(&soon, &fast, &[Arm(1)], 300_000.0), Some(Arm(2)));
    assert_eq!(learned.again(&tight, &fast, &[Arm(1)], 300_000.0), None);
}

#[test]
fn what_may_be_smaller_is_probed_where_bytes_count_however_slow_it_is() {
    let [plain, fast, slow] = priors()[..] else { unreachable!() };
    // The slow one is not expected to be any smaller, and takes seconds for a megabyte.
    let overhead_bytes = fast.overhead_bytes + 1.0;
    let slow = Prior { size: fast.size, overhead_bytes, encode: speed(450e3), ..slow };
    let mut learned = Learned::new(Models::new(vec![plain, fast, slow]));
    let (subject, path) = (xml(400_000.0), Path { start_window: 1e3, ..path(10e9, 0.02) });
    let bytes = learned.models().expect(&subject, Arm(1)).unwrap().bytes;
    let seen = Seen { bytes, ..Seen::default() };
    (0..5).for_each(|_| learn(&mut learned, &subject, Arm(1), seen));
    let mut probed = |objective| {
        (0..500)
            .any(|_| ask(&mut learned, &subject, &path, objective, |_| true).probe == Some(Arm(2)))
    };
    assert!(!probed(Objective::Time));
    assert!(probed(Objective::Bytes));
}

#[test]
fn state_is_bounded_however_many_classes_come() {
    let mut learned = Learned::new(Models::new(priors()));
    for class in 0..5_000 {
        let subject = Subject { peer: 0, class, bytes: 10_000.0, head_share: 0.3 };
        let seen = Seen { bytes: 2_000.0, ..Seen::default() };
        learn(&mut learned, &subject, Arm(1), seen);
        ask(&mut learned, &subject, &path(2e6, 0.2), Objective::Time, |_| true);
    }
    assert!(learned.models().most_bytes() < 1 << 21, "{}", learned.models().most_bytes());
    assert!(learned.models().classes() <= 256);
}

#[test]
fn nam_leaves_a_packet_alone_and_takes_what_it_has_seen_to_pay() {
    let mut nam = Nam::new(3);
    let plain = |bytes| Subject { peer: 0, class: 1, bytes, head_share: 0.3 };
    let t1 = Path { most_window: 44.0, ..path(1.5e6, 0.09) };
    assert_eq!(
        ask(&mut nam, &plain(50_000.0), &t1, Objective::Time, |_| true).chosen.arm,
        Arm::IDENTITY,
        "nothing seen yet"
    );
    for bytes in [900.0, 46_000.0, 3.5e6, 25.9e6] {
        let zip = Seen {
            bytes: bytes * 0.15,
            encode_s: Some(bytes * 5e-8),
            decode_s: Some(bytes * 2e-8),
        };
        let xmill = Seen {
            bytes: bytes * 0.12,
            encode_s: Some(bytes * 1.1e-7),
            decode_s: Some(bytes * 5e-8),
        };
        learn(&mut nam, &plain(bytes), Arm(1), zip);
        learn(&mut nam, &plain(bytes), Arm(2), xmill);
    }
    assert_eq!(
        ask(&mut nam, &plain(1_000.0), &t1, Objective::Time, |_| true).chosen.arm,
        Arm::IDENTITY
    );
    assert_ne!(
        ask(&mut nam, &plain(2e6), &t1, Objective::Time, |_| true).chosen.arm,
        Arm::IDENTITY
    );
    assert_eq!(
        ask(&mut nam, &plain(2e6), &t1, Objective::Time, |arm| arm == Arm(1)).chosen.arm,
        Arm(1)
    );
    let lan = Path { most_window: 44.0, ..path(4e8, 0.0003) };
    assert_eq!(
        ask(&mut nam, &plain(46_000.0), &lan, Objective::Time, |_| true).chosen.arm,
        Arm::IDENTITY
    );
}

#[test]
fn nam_counts_rounds_of_full_packets_until_something_is_lost() {
    let estimate = Estimate::new(2e6, Duration::from_millis(10), None);
    let path = Path { most_window: 44.0, ..estimate.path() };
    // 14 packets are four rounds, and a full one is on the link for 6 ms.
    let seconds = Nam::network_s(&path, 20_000.0);
    assert!((seconds - 4.0 * 0.016).abs() < 1e-9, "{seconds}");
    let lossy = Path { loss: 0.01, ..path };
    let round = Path { rtt_s: 0.016, ..lossy };
    assert_eq!(Nam::network_s(&lossy, 20_000.0), Pftk.seconds(&round, 20_000.0));
}

#[test]
fn the_four_parts_of_an_error_add_up_to_it() {
    let expected =
        Parts { encode_s: 0.1, network_s: 1.0, decode_s: 0.05, wait_s: 0.01, bytes: 1000.0 };
    let actual =
        Parts { encode_s: 0.15, network_s: 1.7, decode_s: 0.04, wait_s: 0.03, bytes: 1500.0 };
    let split = Split::new(&expected, &actual, 1.4);
    assert!((split.total_s() - (actual.total_s() - expected.total_s())).abs() < 1e-12);
    assert!((split.size_s - 0.4).abs() < 1e-12 && (split.network_s - 0.3).abs() < 1e-12);
}

#[test]
fn nam_tries_beside_messages_what_it_has_seen_least_until_it_has_a_profile() {
    let mut nam = Nam::new(3);
    let (subject, path) = (xml(50_000.0), path(1e6, 0.1));
    let mut tried = [0; 3];
    for _ in 0..200 {
        let Some(arm) = ask(&mut nam, &subject, &path, Objective::Time, |_| true).probe else {
            continue;
        };
        tried[arm.0] += 1;
        let seen = Seen { bytes: 60_000.0, encode_s: Some(0.01), decode_s: None };
        learn(&mut nam, &subject, arm, seen);
    }
    assert_eq!(tried, [0, 32, 32]);
    assert_eq!(chosen(&mut nam, &subject, &path, Objective::Time), Arm::IDENTITY);
}

#[test]
fn a_fixed_policy_is_obeyed_whatever_comes_but_where_it_may_not_be() {
    let mut fixed = Fixed(Arm(7));
    for bytes in [1.0, 1e7] {
        let decision = ask(&mut fixed, &xml(bytes), &path(1e9, 0.1), Objective::Time, |_| true);
        assert_eq!((decision.chosen.arm, decision.reason), (Arm(7), "fixed"));
        assert_eq!((fixed.again(&decision, &path(1e4, 0.1), &[Arm(7)], bytes)), None);
    }
    let decision = ask(&mut fixed, &xml(1e4), &path(1e9, 0.1), Objective::Time, |_| false);
    assert_eq!(decision.chosen.arm, Arm::IDENTITY);
}

#[test]
fn what_one_arm_showed_of_a_class_is_expected_of_those_that_nobody_tried() {
    let mut learned = Learned::new(Models::new(priors()));
    let subject = xml(200_000.0);
    let before = learned.models().expect(&subject, Arm(2)).unwrap();
    let seen = Seen { bytes: 4_000.0, encode_s: Some(0.001), decode_s: None };
    let plain = learned.models().expect(&subject, Arm(1)).unwrap();
    (0..3).for_each(|_| learn(&mut learned, &subject, Arm(1), seen));
    let after = learned.models().expect(&subject, Arm(2)).unwrap();
    let (shown, expected) = (4_000.0 / plain.bytes, after.bytes / before.bytes);
    assert!(shown < 0.5 && (expected / shown - 1.0).abs() < 0.3, "{shown} {expected}");
    // Once it was tried, its own figures count.
    let own = Seen { bytes: before.bytes, ..seen };
    (0..10).for_each(|_| learn(&mut learned, &subject, Arm(2), own));
    let found = learned.models().expect(&subject, Arm(2)).unwrap();
    assert!((found.bytes / before.bytes - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn what_short_messages_teach_of_waiting_is_not_held_against_long_ones() {
    let mut learned = Learned::new(Models::new(priors()));
    let path = path(100e6, 0.1);
    for _ in 0..20 {
        took(&mut learned, &path, 2e3, 2.0 * RateAware.seconds(&path, 2e3));
    }
    let ratio = |bytes| learned.network().seconds(&path, bytes) / RateAware.seconds(&path, bytes);
    assert!((ratio(2e3) - 2.0).abs() < 0.1, "{}", ratio(2e3));
    assert!(ratio(50e6) < 1.3, "{}", ratio(50e6));
}

#[test]
fn times_that_one_arm_showed_are_expected_of_those_that_nobody_tried() {
    let mut learned = Learned::new(Models::new(priors()));
    let subject = xml(200_000.0);
    let [one, before] = [1, 2].map(|arm| learned.models().expect(&subject, Arm(arm)).unwrap());
    let (encode_s, decode_s) = (Some(one.encode_s / 4.0), Some(one.decode_s * 3.0));
    (0..3).for_each(|_| {
        learn(&mut learned, &subject, Arm(1), Seen { bytes: one.bytes, encode_s, decode_s });
    });
    let after = learned.models().expect(&subject, Arm(2)).unwrap();
    assert!((before.encode_s / after.encode_s / 4.0 - 1.0).abs() < 0.3, "{before:?} {after:?}");
    assert!((after.decode_s / before.decode_s / 3.0 - 1.0).abs() < 0.3, "{before:?} {after:?}");
    // Once it was tried, its own figures count; those of its decoder are still the others'.
    let own = Seen { bytes: before.bytes, encode_s: Some(before.encode_s), decode_s: None };
    (0..10).for_each(|_| learn(&mut learned, &subject, Arm(2), own));
    let found = learned.models().expect(&subject, Arm(2)).unwrap();
    assert!((found.encode_s / before.encode_s - 1.0).abs() < 0.1, "{found:?}");
    assert!((found.decode_s / before.decode_s / 3.0 - 1.0).abs() < 0.3, "{found:?}");
}

#[test]
fn what_is_smaller_goes_where_it_costs_nothing() {
    let mut learned = Learned::new(Models::new(priors()));
    let (small, hopeful) = (xml(1300.0), path(20e6, 1.1));
    let far = ask(&mut learned, &small, &hopeful, Objective::Time, |_| true);
    assert_ne!(far.chosen.arm, Arm::IDENTITY, "{far:?}");
    assert_eq!(chosen(&mut learned, &small, &path(4e8, 3e-4), Objective::Time), Arm::IDENTITY);
    let noise = Subject { peer: 0, class: 8, bytes: 1300.0, head_share: 1.0 };
    for arm in [Arm(1), Arm(2)] {
        (0..8).for_each(|_| {
            learn(&mut learned, &noise, arm, Seen { bytes: 1310.0, ..Seen::default() });
        });
    }
    assert_eq!(chosen(&mut learned, &noise, &hopeful, Objective::Time), Arm::IDENTITY);
}

#[test]
fn an_arm_that_is_as_expected_is_probed_once() {
    let mut learned = Learned::new(Models::new(priors()));
    let subject = xml(50_000.0);
    let mut probed = 0;
    for _ in 0..300 {
        let decision = ask(&mut learned, &subject, &path(50e6, 0.02), Objective::Time, |_| true);
        let Some(arm) = decision.probe else { continue };
        probed += 1;
        let expected = decision.candidates.iter().find(|one| one.arm == arm).unwrap().expected;
        let encode_s = Some(expected.encode_s);
        learn(
            &mut learned,
            &subject,
            arm,
            Seen { bytes: expected.bytes, encode_s, decode_s: None },
        );
    }
    assert_eq!(probed, 1);
}

#[test]
fn a_length_that_nobody_probed_is_not_known() {
    let mut learned = Learned::new(Models::new(priors()));
    let [(long, long_bytes), (short, short_bytes)] =
        [(4.3e6, 200_000.0), (430e3, 30_000.0)].map(|(bytes, coded)| (xml(bytes), coded));
    let probe = |learned: &mut Learned, subject: &Subject, bytes| {
        learn(learned, subject, Arm(2), Seen { bytes, ..Seen::default() });
    };
    let known = |learned: &Learned, subject: &Subject| {
        learned.models().expect(subject, Arm(2)).unwrap().unsure < 0.15
    };
    probe(&mut learned, &long, long_bytes);
    assert!(known(&learned, &long) && !known(&learned, &short));
    probe(&mut learned, &short, short_bytes);
    assert!(known(&learned, &long) && known(&learned, &short));
    for _ in 0..3 {
        probe(&mut learned, &long, long_bytes);
        probe(&mut learned, &short, short_bytes);
    }
    for (subject, bytes) in [(long, long_bytes), (short, short_bytes)] {
        let found = learned.models().expect(&subject, Arm(2)).unwrap();
        assert!((found.bytes / bytes - 1.0).abs() < 0.05, "{found:?}");
    }
}

/// One operation, two questions: neither the lengths nor the heads of their answers say how much
/// more the one compresses, and what one arm showed of an answer is to be expected of the others.
#[test]
fn answers_of_one_class_that_differ_are_distinguished() {
    let mut learned = Learned::new(Models::new(priors()));
    let [one, other] = [(2.9e6, 0.033), (4.3e6, 0.010)].map(|(bytes, share)| (xml(bytes), share));
    let of = |arm: usize, share: f64| share / arm as f64;
    for _ in 0..3 {
        for (subject, share) in [one, other] {
            let bytes = of(1, share) * subject.bytes;
            learn(&mut learned, &subject, Arm(1), Seen { bytes, ..Seen::default() });
        }
    }
    let off = |learned: &Learned, (subject, share): (Subject, f64), arm: usize| {
        let found = learned.models().expect(&subject, Arm(arm)).unwrap();
        (found.bytes / subject.bytes / of(arm, share)).ln()
    };
    for answer in [one, other] {
        assert!(off(&learned, answer, 1).abs() < 0.05, "{answer:?}: {}", off(&learned, answer, 1));
    }
    let apart = off(&learned, one, 2) - off(&learned, other, 2);
    assert!(apart.abs() < 0.5 * (one.1 / other.1).ln(), "{apart}");
    // Between the two lengths neither is told.
    let between = learned.models().expect(&xml(3.5e6), Arm(1)).unwrap();
    assert!(between.unsure > 2.0 * learned.models().expect(&one.0, Arm(1)).unwrap().unsure);
}

/// One round trip more or less over a long path, at three windows of ten packets and more.
#[test]
fn what_is_known_is_probed_again_near_a_step() {
    let [plain, fast, _] = priors()[..] else { unreachable!() };
    let other = Prior { overhead_bytes: fast.overhead_bytes + 2_000.0, ..fast };
    let mut learned = Learned::new(Models::new(vec![plain, fast, other]));
    let (subject, path) = (xml(700_000.0), path(90e6, 0.2));
    let (step, seen) = (70.0 * 1448.0, Seen { encode_s: Some(0.003), ..Seen::default() });
    let seen_of = |bytes| Seen { bytes, ..seen };
    // One is known to take a round trip more; the other was looked at once, and found to.
    (0..20).for_each(|_| learn(&mut learned, &subject, Arm(1), seen_of(1.01 * step)));
    learn(&mut learned, &subject, Arm(2), seen_of(1.02 * step));
    assert!(learned.models().expect(&subject, Arm(2)).unwrap().unsure < 0.15);
    let decision = ask(&mut learned, &subject, &path, Objective::Time, |_| true);
    assert_eq!((decision.chosen.arm, decision.probe), (Arm(1), Some(Arm(2))), "{decision:?}");
    // Not where no step is near.
    (0..20).for_each(|_| learn(&mut learned, &subject, Arm(1), seen_of(0.7 * step)));
    (0..2).for_each(|_| learn(&mut learned, &subject, Arm(2), seen_of(0.75 * step)));
    let decision = ask(&mut learned, &subject, &path, Objective::Time, |_| true);
    assert_eq!((decision.chosen.arm, decision.probe), (Arm(1), None), "{decision:?}");
}

/// What the rest of a message is worth going on in.
fn revise(learned: &Learned, head_share: f64, rate_bps: f64, going: Going) -> Option<Arm> {
    let rest = Subject { head_share, ..xml(1e6) };
    let (path, allowed) = (path(rate_bps, 1e-6), |arm| arm != Arm(2));
    let (subject, objective) = (&rest, Objective::Time);
    let request = Request { subject, path: &path, objective, allowed: &allowed };
    learned.revise(&request, &going).map(|(arm, _)| arm)
}

#[test]
fn the_rest_of_a_message_goes_by_what_was_seen_of_its_blocks() {
    let learned = Learned::new(Models::new(priors()));
    let coded = |share, encode_s| Going { arm: Arm(1), share, encode_s };
    // Blocks of which nothing goes any more, and such that turned out as they should.
    assert_eq!(revise(&learned, 1.0, 2e6, coded(1.0, 1e-8)), Some(Arm::IDENTITY));
    assert_eq!(revise(&learned, 0.2, 2e6, coded(0.15, 1e-8)), None);
    // An encoder that takes far longer than it was believed to, and a path that fades.
    assert_eq!(revise(&learned, 0.2, 100e6, coded(0.15, 1e-6)), Some(Arm::IDENTITY));
    assert_eq!(revise(&learned, 0.2, 100e9, Going::IDENTITY), None);
    assert_eq!(revise(&learned, 0.2, 2e6, Going::IDENTITY), Some(Arm(1)));
}

/// From one coding to another: by the path, and not for blocks in which nobody finds anything.
#[test]
fn a_message_goes_on_in_another_coding_where_that_gains_much() {
    let learned = Learned::new(Models::new(priors()));
    let revise = |rate_bps: f64, share: f64| {
        let (subject, path) = (xml(1e6), path(rate_bps, 1e-6));
        let objective = Objective::Time;
        let request = Request { subject: &subject, path: &path, objective, allowed: &|_| true };
        let going = Going { arm: Arm(1), share, encode_s: 3.3e-9 };
        learned.revise(&request, &going).map(|(arm, _)| arm)
    };
    assert_eq!([revise(100e6, 0.16), revise(9_600.0, 0.16)], [None, Some(Arm(2))]);
    assert_eq!([revise(9_600.0, 0.95), revise(9_600.0, 0.999)], [None, Some(Arm::IDENTITY)]);
}

#[test]
fn who_chooses_once_for_a_message_does_not_revise_it() {
    let (subject, path) = (xml(1e6), path(2e6, 0.05));
    let objective = Objective::Time;
    let request = Request { subject: &subject, path: &path, objective, allowed: &|_| true };
    for policy in [&Nam::new(3) as &dyn Policy, &Fixed(Arm(1))] {
        assert_eq!(policy.revise(&request, &Going::IDENTITY), None);
    }
}

#[test]
fn what_is_coded_waits_where_the_processor_is_busy() {
    let mut learned = Learned::new(Models::new(priors()));
    let (subject, link) = (xml(50_000.0), path(100e6, 1e-6));
    for (seconds, arm) in [(0.0, Arm(1)), (0.1, Arm::IDENTITY), (0.0, Arm(1))] {
        learned.observe(&Observation::Waits { seconds });
        let decision = ask(&mut learned, &subject, &link, Objective::Time, |_| true);
        assert_eq!(decision.chosen.arm, arm, "{decision:?}");
        let waits = decision.candidates.iter().map(|one| one.wait_s).collect::<Vec<_>>();
        assert_eq!(waits, [0.0, seconds, seconds]);
    }
    // What is wanted is fewer bytes, whatever is waited for them.
    learned.observe(&Observation::Waits { seconds: 0.1 });
    assert_ne!(chosen(&mut learned, &subject, &link, Objective::Bytes), Arm::IDENTITY);
}

/// A message that one before tells nearly all of, again and again: what others of its length leave
/// is as unknown as before, and what they turn out to be is not that one's.
#[test]
fn what_a_base_left_is_expected_of_no_other_encoding() {
    let based = Prior { family: crate::arm::BASED, ..priors()[2] };
    let mut models = Models::new([priors(), vec![based]].concat());
    let subject = xml(50_000.0);
    let before = models.expect(&subject, Arm(1)).unwrap();
    (0..9).for_each(|_| models.observe(&subject, Arm(3), &seen_in(40.0, None, None)));
    let found = models.expect(&subject, Arm(1)).unwrap();
    assert!((found.bytes / before.bytes - 1.0).abs() < 1e-9, "{found:?}, {before:?}");
    assert!((found.unsure / before.unsure - 1.0).abs() < 0.5, "{found:?}, {before:?}");
    assert!(models.expect(&subject, Arm(3)).unwrap().bytes < 80.0);
}
