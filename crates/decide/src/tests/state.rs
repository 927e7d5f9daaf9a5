use proptest::prelude::*;

use crate::Arm;
use crate::arm::{Prior, Speed};
use crate::learned::Learned;
use crate::models::{Expected, Models, Seen, Subject};
use crate::nam::Nam;
use crate::network::Path;
use crate::policy::{Decision, Objective, Observation, Policy, Request};
use crate::state::{Error, VERSION};

const ARMS: [&str; 3] = ["identity", "deflate:6", "zstd:3"];
/// Behind the names of arms: version, kind and number of arms; the clock and number of peers; whose
/// it is and when it was used.
const FIRST_PATH: usize = 4 + 8 + 2 + 8 + 8;

fn prior(share: f64, bytes_per_s: f64) -> Prior {
    let speed = Speed { fixed_s: 2e-5, per_byte_s: 1.0 / bytes_per_s };
    Prior {
        size: [share.ln(), 0.9, 0.0, -0.02],
        overhead_bytes: 12.0,
        encode: speed,
        decode: speed,
        family: "",
    }
}

fn fresh() -> Learned {
    Learned::new(Models::new(vec![Prior::IDENTITY, prior(0.7, 50e6), prior(0.6, 200e6)]))
}

fn path() -> Path {
    super::path(2e6, 0.1)
}

/// What one message tells: class, arm, logarithm of its length, share, seconds.
type Message = (u64, usize, f64, f64, f64);

fn message() -> impl Strategy<Value = Message> {
    let class = prop_oneof![0..4_u64, Just(u64::MAX)];
    (class, 0..4_usize, 2.0..18.0_f64, 0.001..1.2_f64, 1e-9..20.0_f64)
}

/// Three peers, and nobody in particular.
fn subject((class, arm, length, share, _): Message) -> Subject {
    let peer = (class.wrapping_add(arm as u64)) % 4;
    Subject { peer, class, bytes: length.exp(), head_share: share.min(1.0) }
}

fn seen((_, _, length, share, seconds): Message) -> Seen {
    let decode_s = (share > 0.3).then_some(seconds / 3.0);
    Seen { bytes: (length.exp() * share).max(1.0), encode_s: Some(seconds), decode_s }
}

fn choose(policy: &mut Learned, message: Message) -> Decision {
    let (subject, path) = (subject(message), path());
    let objective = Objective::Time;
    policy.choose(&Request { subject: &subject, path: &path, objective, allowed: &|_| true })
}

fn teach(policy: &mut Learned, messages: &[Message]) {
    for &message in messages {
        choose(policy, message);
        tell(policy, message);
        let (bytes, seconds) = (message.2.exp(), message.4);
        policy.observe(&Observation::Network { path: &path(), bytes, seconds });
    }
}

fn tell(policy: &mut dyn Policy, message: Message) {
    let (subject, arm, seen) = (subject(message), Arm(message.1), seen(message));
    policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
}

fn saved(policy: &Learned) -> Vec<u8> {
    let mut bytes = Vec::new();
    policy.save(&ARMS, &mut bytes);
    bytes
}

fn taught() -> Learned {
    let mut policy = fresh();
    let messages: Vec<Message> = (0..40_u32)
        .map(|at| {
            let x = f64::from(at);
            (u64::from(at % 3), at as usize % 3, 6.0 + x / 5.0, 0.1 + x / 100.0, 0.01 * x + 1e-3)
        })
        .collect();
    teach(&mut policy, &messages);
    policy
}

const PROBE: Message = (1, 0, 11.0, 0.2, 0.0);

proptest! {
    #[test]
    fn a_restored_policy_decides_as_the_saved_one(
        messages in prop::collection::vec(message(), 0..120),
        probes in prop::collection::vec(message(), 8),
        doubt in any::<bool>(),
    ) {
        let mut policy = fresh();
        teach(&mut policy, &messages);
        if doubt {
            policy.observe(&Observation::PathChanged { peer: 0 });
        }
        let bytes = saved(&policy);
        let mut restored = fresh();
        restored.restore(&ARMS, &bytes).unwrap();
        prop_assert_eq!(saved(&restored), bytes);
        for probe in probes {
            // What is saved up for probes is not a thing learned.
            let (was, is) = (choose(&mut policy, probe), choose(&mut restored, probe));
            prop_assert_eq!((was.chosen, was.candidates), (is.chosen, is.candidates));
        }
    }

    #[test]
    fn nam_comes_back_too(messages in prop::collection::vec(message(), 0..60)) {
        let mut policy = Nam::new(3);
        for &message in &messages {
            tell(&mut policy, message);
        }
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        policy.save(&ARMS, &mut bytes);
        let mut restored = Nam::new(3);
        restored.restore(&ARMS, &bytes).unwrap();
        restored.save(&ARMS, &mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_usable(
        at in any::<prop::sample::Index>(),
        with in prop::collection::vec(any::<u8>(), 1..10),
        messages in prop::collection::vec(message(), 20),
    ) {
        let mut bytes = saved(&taught());
        let at = at.index(bytes.len());
        let end = bytes.len().min(at + with.len());
        bytes[at..end].copy_from_slice(&with[..end - at]);
        let mut policy = fresh();
        if policy.restore(&ARMS, &bytes).is_err() {
            prop_assert_eq!(saved(&policy), saved(&fresh()));
        }
        teach(&mut policy, &messages);
        let chosen = choose(&mut policy, PROBE).chosen;
        prop_assert!(chosen.total_s().is_finite() && chosen.expected.bytes >= 1.0, "{chosen:?}");
    }
}

#[test]
fn arms_are_known_by_their_names() {
    let mut policy = taught();
    let bytes = saved(&policy);
    let expected = policy.models().expect(&subject(PROBE), Arm(2)).unwrap();

    // Another order, one that is new, one that is gone.
    let names = ["identity", "zstd:3", "brotli:5"];
    let priors = vec![Prior::IDENTITY, prior(0.6, 200e6), prior(0.5, 30e6)];
    let elsewhere = Subject { peer: 0, class: u64::MAX, ..subject(PROBE) };
    let unseen = Models::new(priors.clone()).expect(&elsewhere, Arm(2));
    let mut other = Learned::new(Models::new(priors));
    other.restore(&names, &bytes).unwrap();
    // What the one that is gone showed of messages alike goes with it.
    let found = other.models().expect(&subject(PROBE), Arm(1)).unwrap();
    assert!((found.bytes / expected.bytes - 1.0).abs() < 1e-6, "{found:?} {expected:?}");
    let scatter = |expected: &Expected| (expected.deviation, expected.unsure);
    assert_eq!(scatter(&found), scatter(&expected));
    assert_eq!(other.models().classes(), policy.models().classes());
    // The new one knows what its prior says, but of classes that others have taught.
    let new = other.models().expect(&elsewhere, Arm(2)).unwrap();
    assert_eq!(Some(new.bytes), unseen.map(|unseen| unseen.bytes));

    // Fewer arms than names: those beyond are nobody's.
    let mut few = Learned::new(Models::new(vec![Prior::IDENTITY]));
    few.restore(&ARMS, &bytes).unwrap();
    assert_eq!(choose(&mut few, PROBE).chosen.arm, Arm::IDENTITY);
    assert_ne!(choose(&mut policy, PROBE).chosen.arm, Arm::IDENTITY);
}

#[test]
fn what_is_cut_longer_or_of_another_kind_is_refused() {
    let bytes = saved(&taught());
    for length in 0..bytes.len() {
        let mut policy = fresh();
        let error = policy.restore(&ARMS, &bytes[..length]).unwrap_err();
        assert!(matches!(error, Error::Short), "{length}: {error}");
        assert_eq!(saved(&policy), saved(&fresh()), "{length}");
    }
    let refused = |bytes: &[u8]| fresh().restore(&ARMS, bytes).unwrap_err();
    assert_eq!(refused(&[&bytes[..], b"!"].concat()), Error::Trailing(1));
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(refused(&with(0, VERSION + 1)), Error::Version(VERSION + 1));
    assert_eq!(refused(&with(1, 2)), Error::Kind(2));
    let many = refused(&with(3, 200));
    assert!(matches!(many, Error::Range { what: "number of arms", .. }), "{many}");
}

#[test]
fn what_is_no_number_is_refused() {
    let bytes = saved(&taught());
    let head = FIRST_PATH + ARMS.iter().map(|name| 2 + name.len()).sum::<usize>();
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
        let mut bytes = bytes.clone();
        bytes[head..head + 8].copy_from_slice(&value.to_le_bytes());
        let error = fresh().restore(&ARMS, &bytes).unwrap_err();
        assert!(matches!(error, Error::Range { what: "a coefficient", .. }), "{value}: {error}");
    }
}

#[test]
fn what_could_not_be_restored_is_not_saved() {
    let mut bytes = Vec::new();
    taught().save(&["identity", "zstd:3"], &mut bytes);
    let long = "x".repeat(65);
    taught().save(&["identity", "zstd:3", &long], &mut bytes);
    assert!(bytes.is_empty());
}

#[test]
fn a_trial_of_speed_counts_until_messages_tell() {
    let slow = Speed { fixed_s: 0.0, per_byte_s: 1e-5 };
    let mut policy = fresh();
    policy.observe(&Observation::Speed { arm: Arm(1), encode: Some(slow), decode: None });
    let expected = |policy: &Learned| policy.models().expect(&subject(PROBE), Arm(1)).unwrap();
    let before = expected(&fresh());
    let bytes = subject(PROBE).bytes;
    assert!((expected(&policy).encode_s - 1e-5 * bytes).abs() < 1e-9);
    assert_eq!(expected(&policy).decode_s, before.decode_s);

    // A restart on a processor that is busy just now: what messages told still holds.
    let reported = taught();
    let mut restarted = fresh();
    restarted.observe(&Observation::Speed { arm: Arm(1), encode: Some(slow), decode: Some(slow) });
    restarted.restore(&ARMS, &saved(&reported)).unwrap();
    assert_eq!(expected(&restarted), expected(&reported));
    restarted.observe(&Observation::Speed { arm: Arm(1), encode: Some(slow), decode: Some(slow) });
    assert_eq!(expected(&restarted), expected(&reported));
    // Of an arm that does not exist nothing is believed.
    restarted.observe(&Observation::Speed { arm: Arm(9), encode: Some(slow), decode: None });
}

/// Sizes and times that no encoding has, for long: what was learned stays numbers, is taken up
/// again, and no figure is beyond what observations said, but for how far a line leads on.
#[test]
fn whatever_is_taught_for_long_is_taken_up_again() {
    let families = ["", "a", "a", "b"].map(|family| Prior { family, ..prior(0.6, 100e6) });
    let names = ["identity", "a:1", "a:2", "b"];
    let fresh = || Learned::new(Models::new(families.to_vec()));
    let absurd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 0.0, -1.0];
    let (mut policy, mut random) = (fresh(), 1_u32);
    let mut chance = |most: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % most
    };
    for at in 0..100_000_u32 {
        let class = u64::from(chance(4));
        let (arm, length) = match class {
            // One arm alone, all alike; two by turns; stretches of one length; anything.
            0 => (1, 12.0),
            1 => (1 + at as usize % 2, f64::from(chance(20))),
            2 => (1 + at as usize / 3000 % 3, f64::from(at / 500 % 20)),
            _ => (chance(5) as usize, f64::from(chance(40))),
        };
        let ends = |low: f64, high: f64| if at / 700 % 2 == 0 { low } else { high };
        let (share, seconds) = match chance(3) {
            0 => (ends(1e-9, 1.5), ends(1e-9, 600.0)),
            1 => (ends(0.3, 0.1), ends(1e-3, 0.1)),
            _ => (f64::from(chance(1000)) / 900.0, f64::from(chance(1000)) * 1e-4),
        };
        let odd = chance(50) == 0;
        let or = |value: f64, other: u32| if odd { absurd[other as usize] } else { value };
        let bytes = or(length.exp(), chance(6));
        let head_share = or(f64::from(chance(100)) / 100.0, chance(6));
        let subject = Subject { peer: 0, class, bytes, head_share };
        let seen = Seen {
            bytes: or((bytes * share).max(1.0), chance(6)),
            encode_s: Some(or(seconds, chance(6))),
            decode_s: Some(or(seconds / 3.0, chance(6))),
        };
        policy.observe(&Observation::Encoding { subject: &subject, arm: Arm(arm), seen: &seen });
        if at % 10_000 < 9_999 {
            continue;
        }
        let mut bytes = Vec::new();
        policy.save(&names, &mut bytes);
        policy = fresh();
        policy.restore(&names, &bytes).unwrap();
        for (class, arm) in (0..4).flat_map(|class| (1..4).map(move |arm| (class, arm))) {
            let subject = Subject { peer: 0, class, bytes: 20e3, head_share: 0.3 };
            let found = policy.models().expect(&subject, Arm(arm)).unwrap();
            assert!((1.0..1e5).contains(&found.bytes), "{at}, {class}, {arm}: {found:?}");
            assert!((0.0..100.0).contains(&found.unsure), "{at}, {class}, {arm}: {found:?}");
            assert!(found.deviation >= found.unsure && found.deviation < 100.0, "{found:?}");
            assert!((0.0..1e3).contains(&found.encode_s), "{at}, {class}, {arm}: {found:?}");
        }
    }
}

/// Learning with such a covariance would go astray without end.
#[test]
fn a_covariance_with_a_negative_direction_is_refused() {
    let mut once = fresh();
    once.observe(&Observation::Network { path: &path(), bytes: 2e4, seconds: 0.2 });
    let bytes = saved(&once);
    // Behind two coefficients: the upper triangle of two features.
    let triangle = FIRST_PATH + ARMS.iter().map(|name| 2 + name.len()).sum::<usize>() + 16;
    let figure = |at: usize| f64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let most = (figure(triangle) * figure(triangle + 16)).sqrt();
    let with = |together: f64| {
        let mut bytes = bytes.clone();
        bytes[triangle + 8..triangle + 16].copy_from_slice(&together.to_le_bytes());
        fresh().restore(&ARMS, &bytes)
    };
    assert_eq!(with(0.99 * most), Ok(()));
    assert!(matches!(with(1.01 * most), Err(Error::Damaged(_))));
    assert!(matches!(with(-1.01 * most), Err(Error::Damaged(_))));
}
