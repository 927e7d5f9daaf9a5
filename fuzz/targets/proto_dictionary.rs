//! Any bytes as the fields that name dictionaries: a value or an error, and offers that read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::dictionary::{MAX_ID_CHARS, decode_available, decode_id, decode_offer, encode_offer};

fuzz_target!(|data: &[u8]| {
    let _ = (decode_available(data), decode_offer(data));
    if let Ok(id) = decode_id(data) {
        assert!(id.len() <= MAX_ID_CHARS && id.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        if let Some(offer) = encode_offer("/a/*", &id) {
            let (_, name) = offer.split_once("id=").unwrap_or_default();
            assert_eq!(decode_id(name.as_bytes()), Ok(id));
        }
    }
    let text = String::from_utf8_lossy(data);
    if let Some(offer) = encode_offer(&text, "a") {
        assert_eq!(decode_offer(offer.as_bytes()).as_deref(), Ok(&*text));
    }
});
