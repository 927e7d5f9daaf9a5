//! Any bytes as CBOR: items up to an error or the end, none behind it, and none that takes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::cbor::{Decoder, check, check_deterministic};

const DEPTH: usize = 32;

fuzz_target!(|data: &[u8]| {
    let mut items = Decoder::<DEPTH>::new(data);
    let mut before = 0;
    while let Some(Ok(_)) = items.next() {
        assert!(items.offset() > before && items.offset() <= data.len());
        before = items.offset();
    }
    // What is deterministic is well-formed.
    if check_deterministic::<DEPTH>(data).is_ok() {
        assert!(check::<DEPTH>(data).is_ok());
    }
});
