//! Any bytes as a sealed datagram: what is read is what was written; and any order of numbers: none
//! is read twice.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use proto::sealed::{Granted, Packet, Said, Window};

fuzz_target!(|data: &[u8]| {
    if let Ok((packet, head)) = Packet::decode(data) {
        assert_eq!(packet.head(), &data[..head]);
    }
    if let Ok(said) = Said::decode(data) {
        assert_eq!(said.encode()[..], *data);
    }
    if let Ok(granted) = Granted::decode(data) {
        assert_eq!(granted.encode()[..], *data);
    }
    let (mut window, mut read) = (Window::default(), BTreeSet::new());
    for three in data.chunks_exact(3) {
        let number = window.number(u32::from_be_bytes([0, three[0], three[1], three[2]]));
        if !window.is_read(number) {
            assert!(read.insert(number), "{number} twice");
            window.note(number);
        }
    }
});
