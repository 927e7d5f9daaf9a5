//! The burst carrier: see `fuzz/datagrams.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::kinds::Kind;

#[path = "../datagrams.rs"]
mod datagrams;

fuzz_target!(|data: &[u8]| datagrams::any(Kind::BURST, data));
