//! The carrier over datagrams of `sim`: see `fuzz/datagrams.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::datagram::KIND;

#[path = "../datagrams.rs"]
mod datagrams;

fuzz_target!(|data: &[u8]| datagrams::any(KIND, data));
