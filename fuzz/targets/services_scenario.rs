//! Any bytes as a scenario with a file that it names: what is read is resolved where that is short,
//! what is not is refused by line.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use link::net::Routes;
use services::scenario::parse;

/// Path losses that one input may cost: pairs of nodes times steps.
const MAX_WORK: u128 = 20_000;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let file = parts.next().unwrap_or_default();
    let read = |_: &str, max_bytes: usize| -> Result<Vec<u8>, String> {
        Ok(file.iter().copied().take(max_bytes).collect())
    };
    match parse("f", &text, &read) {
        Ok(scenario) => {
            let nodes = scenario.nodes.len() as u128;
            let steps = scenario.duration.as_nanos() / scenario.step.as_nanos().max(1) + 1;
            if nodes * nodes * steps > MAX_WORK {
                return;
            }
            if let Ok(resolved) = scenario.resolve() {
                let routes: Routes = resolved.routes(Duration::ZERO);
                assert!(routes.hop_counts().max() < resolved.scenario.nodes.len());
                assert!(!resolved.facts().is_empty());
            }
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems.list() {
                assert_eq!(problem.to_string().lines().count(), 1, "{problem}");
            }
        }
    }
});
