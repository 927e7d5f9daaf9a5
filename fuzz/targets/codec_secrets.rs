//! Any message: what is secret in it is cut out, and nothing else is added or moved.
#![no_main]

use codec::secrets::{claims, cut, says_so};
use libfuzzer_sys::fuzz_target;

/// Whether all of `part` is in `whole`, in its order.
fn is_in_order(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|other| other == byte))
}

fuzz_target!(|data: &[u8]| {
    if let Ok(name) = std::str::from_utf8(data) {
        let _ = says_so(name);
    }
    let (kept, whose) = (cut(data), claims(data));
    if let Ok(kept) = kept {
        assert!(is_in_order(&kept, data));
    } else {
        // What cannot be read for its secrets names nobody either.
        assert!(whose.is_err());
    }
});
