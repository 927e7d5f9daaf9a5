use crate::*;

const AUTO: Policy = Policy::Auto { identity: Arm(0), short: Arm(1), streaming: Arm(2) };

fn soap(first_block_bytes: usize, whole: bool) -> Facts<'static> {
    let content_type = Some("text/xml; charset=utf-8");
    let body_bytes = whole.then_some(first_block_bytes as u64);
    Facts { content_type, first_block_bytes, body_bytes, ..Facts::default() }
}

#[test]
fn what_compresses_and_is_over_a_packet_is_compressed() {
    assert_eq!(AUTO.choose(&soap(1201, true)).arm, Arm(1));
    assert_eq!(AUTO.choose(&soap(65_536, false)).arm, Arm(2));
    assert_eq!(AUTO.choose(&soap(1200, true)).arm, Arm(0));
    assert_eq!(AUTO.choose(&soap(10, false)).arm, Arm(2), "more may follow");
    let long = Facts { body_bytes: Some(SHORT_BODY_BYTES + 1), ..soap(65_536, false) };
    assert_eq!(AUTO.choose(&long).arm, Arm(2));
    let known = Facts { body_bytes: Some(SHORT_BODY_BYTES), ..soap(65_536, false) };
    assert_eq!(AUTO.choose(&known).arm, Arm(1), "long enough for several blocks, yet short");
}

#[test]
fn what_is_compressed_already_is_left_alone() {
    for content_type in ["image/jpeg", "Video/MP4", "application/zip; x=y", "font/woff2"] {
        let facts = Facts { content_type: Some(content_type), ..soap(9000, true) };
        assert_eq!(AUTO.choose(&facts).arm, Arm(0), "{content_type}");
    }
    assert_eq!(AUTO.choose(&Facts { coded: true, ..soap(9000, true) }).arm, Arm(0));
    assert_eq!(AUTO.choose(&Facts { tunnel: true, ..soap(9000, false) }).arm, Arm(0));
    for content_type in ["image/svg+xml", "application/json", "nonsense", ""] {
        let facts = Facts { content_type: Some(content_type), ..soap(9000, true) };
        assert_eq!(AUTO.choose(&facts).arm, Arm(1), "{content_type}");
    }
}

#[test]
fn a_fixed_policy_is_obeyed_whatever_comes() {
    let fixed = Policy::Fixed(Arm(7));
    for facts in [soap(1, true), Facts { coded: true, tunnel: true, ..soap(9000, false) }] {
        assert_eq!(fixed.choose(&facts), Choice { arm: Arm(7), trial: false, reason: "fixed" });
    }
}

#[test]
fn a_trial_that_saves_little_is_given_up() {
    assert!(AUTO.observe(1000, 950));
    assert!(!AUTO.observe(1000, 951));
}
