//! Clients, their connections and brokers fail at any moment: what was acknowledged arrives, of
//! grade 1 at least once, of grade 2 once, in order.

#![allow(clippy::unwrap_used)] // Tests.

mod client;
mod one;
mod two;

use proto::mqtt::Qos;

/// Messages that each run publishes.
const MESSAGES: u64 = 24;
/// Steps after which everything has to have arrived, once nothing fails any more.
const MAX_STEPS: usize = 20_000;

/// What a subscriber has to have got.
fn check(seed: u64, came: &[(Qos, u64)]) {
    let exactly: Vec<u64> = came
        .iter()
        .filter(|(qos, _)| *qos == Qos::ExactlyOnce)
        .map(|(_, number)| *number)
        .collect();
    let mut sorted = exactly.clone();
    sorted.dedup();
    assert_eq!(
        exactly.len() as u64,
        MESSAGES / 2,
        "seed {seed}: each of grade 2 once: {exactly:?}"
    );
    assert!(exactly.is_sorted(), "seed {seed}: in order: {exactly:?}");
    assert_eq!(sorted.len(), exactly.len());
}

/// Each seed is a run: so many as `LONGWIRE_SEEDS` says, 1,000 by default.
fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok());
    0..seeds.unwrap_or(1000)
}

#[test]
fn what_is_acknowledged_arrives_whatever_fails() {
    seeds().for_each(one::run);
}

#[test]
fn what_is_acknowledged_arrives_over_a_bridge_whatever_fails() {
    seeds().for_each(two::run);
}
