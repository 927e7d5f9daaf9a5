use crate::Arm;
use crate::arm::{Prior, Speed};
use crate::learned::Learned;
use crate::models::{Models, Seen, Subject};
use crate::network::Path;
use crate::policy::{Decision, Going, Objective, Observation, Policy, Request};

/// Nothing, and one that halves.
fn policy() -> Learned {
    let speed = Speed { fixed_s: 0.0, per_byte_s: 1e-8 };
    let size = [0.5_f64.ln(), 0.9, 0.0, -0.02];
    let half = Prior { size, overhead_bytes: 0.0, encode: speed, decode: speed, family: "" };
    Learned::new(Models::new(vec![Prior::IDENTITY, half]))
}

const LONG: Subject = Subject { class: 7, bytes: 2e6, head_share: 0.2 };
const SHORT: Subject = Subject { class: 7, bytes: 2e3, head_share: 0.2 };
/// So much of a window is left after a pause.
const KEPT: f64 = 0.25;

/// A long fat link, and a window that a coded message left open.
fn path() -> Path {
    Path { start_window: 60.0, kept: KEPT, ..super::path(200e6, 0.1) }
}

/// What the last of so many messages is decided to go in, each of them by a path with that window.
fn last(
    policy: &mut Learned,
    subjects: &[&Subject],
    path: &Path,
    objective: Objective,
) -> Decision {
    let mut last = None;
    for &subject in subjects {
        last = Some(policy.choose(&Request { subject, path, objective, allowed: &|_| true }));
        let (bytes, encode_s) = (subject.bytes / 4.0, Some(subject.bytes * 4e-8));
        let seen = Seen { bytes, encode_s, decode_s: None };
        policy.observe(&Observation::Encoding { subject, arm: Arm(1), seen: &seen });
    }
    last.unwrap()
}

#[test]
fn who_sends_much_each_time_finds_the_window_open() {
    let mut policy = policy();
    let first = last(&mut policy, &[&LONG; 4], &path(), Objective::Time);
    assert_eq!((first.chosen.arm, first.held), (Arm(1), false));
    let then = last(&mut policy, &[&LONG], &path(), Objective::Time);
    assert_eq!((then.chosen.arm, then.held), (Arm(0), true), "{}", then.reason);
    // For this message alone it is not the fastest, which changes nothing on its way.
    assert!(then.candidates[1].total_s() < 0.9 * then.chosen.total_s());
    assert_eq!(policy.again(&then, &path(), &[Arm(0)], LONG.bytes), None);
    let request =
        Request { subject: &LONG, path: &path(), objective: Objective::Time, allowed: &|_| true };
    assert_eq!(policy.turn(&request, &Going::PLAIN), None);
}

#[test]
fn a_window_that_the_pause_closes_anyway_is_not_held_open() {
    let closed = Path { kept: 0.01, ..path() };
    let decision = last(&mut policy(), &[&LONG; 9], &closed, Objective::Time);
    assert_eq!((decision.chosen.arm, decision.held), (Arm(1), false));
}

#[test]
fn a_short_message_between_long_ones_lets_the_window_close() {
    let mut policy = policy();
    let by_turns: Vec<_> = [&LONG, &SHORT].into_iter().cycle().take(13).collect();
    let path = Path { kept: 0.1, ..path() };
    let alone = last(&mut policy.clone(), &[&LONG; 13], &path, Objective::Time);
    assert!(alone.held, "{}", alone.reason);
    let decision = last(&mut policy, &by_turns, &path, Objective::Time);
    assert_eq!((decision.chosen.arm, decision.held), (Arm(1), false));
}

#[test]
fn nobody_holds_a_window_open_to_save_bytes() {
    let decision = last(&mut policy(), &[&LONG; 9], &path(), Objective::Bytes);
    assert_eq!((decision.chosen.arm, decision.held), (Arm(1), false));
}

#[test]
fn what_went_to_others_holds_no_window_open() {
    let mut policy = policy();
    last(&mut policy, &[&LONG; 8], &Path { peer: 2, ..path() }, Objective::Time);
    let decision = last(&mut policy, &[&LONG; 4], &path(), Objective::Time);
    assert!(!decision.held);
}
