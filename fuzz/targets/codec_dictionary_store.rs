//! Any bytes as a store of dictionaries: what reads, writes and reads to the same.
#![no_main]

use codec::Limits;
use codec::dictionary::Store;
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fuzz_target!(|data: &[u8]| {
    let Ok(store) = Store::decode(data, &LIMITS) else { return };
    let Ok(bytes) = store.encode() else { panic!("what was read is not written") };
    let Ok(again) = Store::decode(&bytes, &LIMITS) else { panic!("its own store is refused") };
    assert_eq!(again.encode().ok(), Some(bytes));
});
