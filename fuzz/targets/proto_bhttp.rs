//! Any bytes as heads and field sections: what decodes, encodes and decodes to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::bhttp::{Request, Response, decode_fields, encode_fields};

fuzz_target!(|data: &[u8]| {
    let mut again = Vec::new();
    if let Ok(head) = Request::decode(data) {
        head.encode(&mut again);
        assert_eq!(Request::decode(&again), Ok(head));
    }
    again.clear();
    if let Ok(head) = Response::decode(data) {
        head.encode(&mut again);
        assert_eq!(Response::decode(&again), Ok(head));
    }
    again.clear();
    if let Ok(fields) = decode_fields(data) {
        encode_fields(&fields, &mut again);
        assert_eq!(decode_fields(&again), Ok(fields));
    }
});
