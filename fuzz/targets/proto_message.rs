//! Any bytes as the envelope of a message that is no HTTP: what is read is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::message::{Message, Opening};

fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    if let Ok(opening) = Opening::decode(data) {
        opening.encode(&mut out);
        assert_eq!(Opening::decode(&out).ok(), Some(opening));
    } else if let Ok(message) = Message::decode(data) {
        message.encode(&mut out);
        assert_eq!(Message::decode(&out).ok(), Some(message));
    }
});
