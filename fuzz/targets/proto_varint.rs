//! Any bytes as variable-length integers: what decodes, encodes to the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::varint;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    if let Ok(value) = varint::decode(&mut rest, "input") {
        assert!(value <= varint::MAX);
        let mut shortest = Vec::new();
        varint::encode(value, &mut shortest);
        assert_eq!(shortest.len(), varint::encoded_len(value));
        assert!(shortest.len() <= data.len() - rest.len());
        assert_eq!(varint::decode(&mut shortest.as_slice(), "shortest"), Ok(value));
    }
    let mut rest = data;
    if let Ok(bytes) = varint::decode_bytes(&mut rest, "input") {
        assert!(data.ends_with(&[bytes, rest].concat()));
    }
});
