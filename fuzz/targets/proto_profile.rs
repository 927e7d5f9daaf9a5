//! Any bytes as a profile, as its field and as its header block: what decodes, encodes and decodes
//! to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::profile::soap::{Version, decode_content, encode_block};
use proto::profile::{Packet, decode_field, encode_field};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for packet in [Packet::decode(data), decode_field(data), decode_content(&text)] {
        let Ok(Packet::Profile(profile)) = &packet else { continue };
        let mut again = Vec::new();
        profile.encode(&mut again);
        assert_eq!(Packet::decode(&again), packet);
        assert_eq!(decode_field(encode_field(profile).as_bytes()), packet);
        for version in Version::ALL {
            let block = encode_block(profile, version);
            let content = block.split(['<', '>']).nth(2).unwrap_or_default();
            assert_eq!(decode_content(content), packet);
        }
    }
});
