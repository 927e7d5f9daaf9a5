//! Any bytes as what a policy has learned: refused without a trace, or a policy that goes on
//! choosing and learning with numbers.
#![no_main]

use decide::Arm;
use decide::arm::{Prior, Speed};
use decide::learned::Learned;
use decide::models::{Models, Seen, Subject};
use decide::nam::Nam;
use decide::network::Path;
use decide::policy::{Objective, Observation, Policy, Request};
use libfuzzer_sys::fuzz_target;

const ARMS: [&str; 3] = ["identity", "deflate:6", "zstd:3"];

fn path() -> Path {
    let nothing = f64::NAN;
    Path {
        peer: 7,
        jumps: 0,
        rate_bps: 2e6,
        cap_bps: nothing,
        measured: true,
        rtt_s: 0.1,
        loss: 0.01,
        segment_bytes: nothing,
        header_bytes: nothing,
        start_window: nothing,
        threshold: nothing,
        most_window: nothing,
        timeout_s: nothing,
        backlog_bytes: nothing,
        repairs: false,
    }
    .bounded()
}

fn use_it(policy: &mut dyn Policy) {
    let path = path();
    for at in 0..12_u32 {
        let bytes = f64::from(at * at * at + 1) * 400.0;
        let subject =
            Subject { peer: u64::from(at % 3), class: u64::from(at % 2), bytes, head_share: 0.3 };
        let objective = Objective::Time;
        let request = Request { subject: &subject, path: &path, objective, allowed: &|_| true };
        let chosen = policy.choose(&request).chosen;
        assert!(chosen.total_s().is_finite() && chosen.expected.bytes >= 1.0, "{chosen:?}");
        let seconds = bytes * 1e-7;
        let (encode_s, decode_s) = (Some(seconds), Some(seconds));
        let seen = Seen { bytes: bytes * 0.2, encode_s, decode_s };
        let arm = Arm(at as usize % ARMS.len());
        policy.observe(&Observation::Encoding { subject: &subject, arm, seen: &seen });
        policy.observe(&Observation::Network { path: &path, bytes, seconds: 1.0 });
    }
}

fn try_it(policy: &mut dyn Policy, data: &[u8]) {
    let saved = |policy: &dyn Policy| {
        let mut bytes = Vec::new();
        policy.save(&ARMS, &mut bytes);
        bytes
    };
    let before = saved(policy);
    match policy.restore(&ARMS, data) {
        Err(_) => assert_eq!(saved(policy), before),
        Ok(()) => {
            let first = saved(policy);
            policy.restore(&ARMS, &first).unwrap();
            assert_eq!(saved(policy), first);
            use_it(policy);
            assert!(saved(policy).len() <= 8 * policy.state_bytes());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let speed = Speed { fixed_s: 2e-5, per_byte_s: 1e-8 };
    let size = [-0.5, 0.9, 0.0, 0.0];
    let prior = |family| Prior { size, overhead_bytes: 12.0, encode: speed, decode: speed, family };
    let priors = vec![Prior::IDENTITY, prior("deflate"), prior("zstd")];
    try_it(&mut Learned::new(Models::new(priors)), data);
    try_it(&mut Nam::new(ARMS.len()), data);
});
