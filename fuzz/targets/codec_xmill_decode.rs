//! Any bytes as a stream of the codec `xmill`, with settings from the first two.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../through.rs"]
mod through;

fuzz_target!(|data: &[u8]| through::decode("xmill", data));
