//! Any bytes as a store of dictionaries: what reads, writes and reads to the same; as a parcel that
//! a peer sent, and as samples.
#![no_main]

use codec::Limits;
use codec::dictionary::{Store, distil, unpack_parcel};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fuzz_target!(|data: &[u8]| {
    let _ = unpack_parcel(data);
    let samples: Vec<_> = data.split(|byte| *byte == 0).collect();
    if let Ok(Some(made)) = distil(&samples, None) {
        let there = unpack_parcel(&made.parcel).expect("its own parcel");
        assert_eq!(there.id(), made.kept.id());
    }
    let Ok(store) = Store::decode(data, &LIMITS) else { return };
    let Ok(bytes) = store.encode() else { panic!("what was read is not written") };
    let Ok(again) = Store::decode(&bytes, &LIMITS) else { panic!("its own store is refused") };
    assert_eq!(again.encode().ok(), Some(bytes));
});
