//! What was learned outlives a relay.

use decide::arm::Speed;
use record::decision::{Decision, Link, Outcome, Parts, Split};

use super::*;

fn relay() -> Relay {
    Relay::new(Config::new(Role::Gateway, 7))
}

fn decision(class: &str) -> Decision {
    Decision {
        service: "http://a.example".to_owned(),
        peer: None,
        class: class.to_owned(),
        content_type: None,
        body_bytes: 100_000,
        head_share: 0.25,
        objective: "time".to_owned(),
        expected: Parts::default(),
        candidates: Vec::new(),
        forbidden: Vec::new(),
        link: Link::default(),
        probe: None,
        base: None,
        edgeless: false,
        route: None,
    }
}

fn outcome(encoding: &str, bytes: u64) -> Outcome {
    let actual = Parts { bytes, encode_s: 0.004, network_s: 0.2, decode_s: 0.001, wait_s: 0.0 };
    Outcome {
        encoding: encoding.to_owned(),
        body_bytes: 100_000,
        expected: Parts::default(),
        actual,
        split: Split::default(),
        revisions: Vec::new(),
    }
}

#[test]
fn a_new_relay_takes_up_what_another_learned() {
    let mut first = relay();
    for at in 0..20 {
        first.learn_from(&decision("00000000000000aa"), &outcome("zstd:3", 9000 + at));
    }
    let learned = first.learned();
    assert_ne!(learned, relay().learned());
    let mut second = relay();
    second.restore(&learned).unwrap();
    assert_eq!(second.learned(), learned);

    // What came after it was saved is learned from the history.
    let (last, class) = (outcome("zstd:9", 8000), decision("00000000000000aa"));
    first.learn_from(&class, &last);
    second.learn_from(&class, &last);
    assert_eq!(second.learned(), first.learned());
}

#[test]
fn facts_that_fit_nothing_teach_nothing() {
    let mut relay = relay();
    let fresh = relay.learned();
    for class in ["no class", "", "-1", "11112222333344445"] {
        relay.learn_from(&decision(class), &outcome("zstd:3", 9000));
    }
    for head_share in [f64::NAN, f64::INFINITY, -1.0] {
        let absurd = Decision { head_share, ..decision("aa") };
        relay.learn_from(&absurd, &outcome("zstd:3", 9000));
    }
    assert_eq!(relay.learned(), fresh);
    assert!(relay.restore(&fresh[1..]).is_err() && relay.learned() == fresh);

    // Of encodings that there are not, only the lengths of messages are learned.
    for encoding in ["identity", "lzma:5", ""] {
        relay.learn_from(&decision("aa"), &outcome(encoding, 9000));
    }
    assert_eq!(relay.learned().len(), fresh.len() + 24);
    let policy = fresh.len() - 4;
    assert_eq!(relay.learned()[..policy], fresh[..policy]);
}

#[test]
fn bytes_that_are_no_state_leave_everything_as_it_was() {
    let mut taught = relay();
    for (class, encoding) in [("aa", "zstd:3"), ("ab", "deflate:6"), ("ab", "xmill:5")] {
        taught.learn_from(&decision(class), &outcome(encoding, 9000));
    }
    let learned = taught.learned();
    let fresh = relay().learned();
    let mut other = relay();
    for length in 0..learned.len() {
        assert!(other.restore(&learned[..length]).is_err(), "{length}");
    }
    assert!(other.restore(&[&learned[..], &[0; 24]].concat()).is_err());
    for (at, value) in [(0, 9), (1, 0xff), (4, 0xff), (5, 77)] {
        let mut bytes = learned.clone();
        bytes[at] = value;
        assert!(other.restore(&bytes).is_err(), "{at}");
    }
    for value in [f64::NAN, -1.0, 2.0, f64::INFINITY] {
        let mut bytes = learned.clone();
        let last = bytes.len() - 8;
        bytes[last..].copy_from_slice(&value.to_le_bytes());
        assert!(other.restore(&bytes).is_err(), "{value}");
    }
    assert_eq!(other.learned(), fresh);
    other.restore(&learned).unwrap();
    assert_eq!(other.learned(), learned);
}

#[test]
fn speeds_measured_here_are_believed_of_encodings_that_there_are() {
    let mut relay = relay();
    let fresh = relay.learned();
    let speed = Speed { fixed_s: 1e-3, per_byte_s: 1e-6 };
    let reported = |options| Input::Speeds(vec![Speeds { options, encode: speed, decode: speed }]);
    let strange = codec::Options { level: -6, ..codec::Options::of("zstd:3").unwrap() };
    relay.handle_input(Duration::ZERO, reported(strange));
    assert_eq!(relay.learned(), fresh);
    relay.handle_input(Duration::ZERO, reported(codec::Options::of("zstd:3").unwrap()));
    assert_ne!(relay.learned(), fresh);
}

#[test]
fn a_fixed_choice_has_nothing_to_keep() {
    let mut config = Config::new(Role::Gateway, 7);
    config.encoding = Encoding::of("zstd:3").unwrap();
    let mut relay = Relay::new(config);
    assert!(relay.learned().is_empty());
    assert!(relay.restore(b"").is_err());
}
