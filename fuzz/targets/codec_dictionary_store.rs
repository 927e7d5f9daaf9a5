//! Any bytes as a store of dictionaries: what reads, writes and reads to the same; as a parcel that
//! a peer sent, and as samples.
#![no_main]

use codec::Limits;
use codec::dictionary::{Store, distil, distilled, unpack_parcel};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 1 << 20, depth: 64, table_bytes: 1 << 20, message_bytes: 1 << 20 };

fuzz_target!(|data: &[u8]| {
    let _ = unpack_parcel(data);
    if let Ok(made) = distil(data, None) {
        assert_eq!(made.is_empty(), distilled(&made).is_none());
    }
    let Ok(store) = Store::decode(data, &LIMITS) else { return };
    let Ok(bytes) = store.encode() else { panic!("what was read is not written") };
    let Ok(again) = Store::decode(&bytes, &LIMITS) else { panic!("its own store is refused") };
    assert_eq!(again.encode().ok(), Some(bytes));
});
