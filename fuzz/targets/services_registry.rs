//! Any bytes by each face of the registry: taken or refused, and what is taken can be stored.

#![no_main]

use libfuzzer_sys::fuzz_target;
use services::registry::quality::Facts;
use services::registry::trial::{Face, take};

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let at = usize::from(*first) % (Face::ALL.len() + 1);
    match Face::ALL.get(at) {
        Some(face) => drop(take(*face, rest)),
        None => {
            if let Ok(facts) = Facts::parse(&String::from_utf8_lossy(rest)) {
                assert_eq!(Facts::parse(&facts.text()), Ok(facts));
            }
        }
    }
});
