//! Any bytes as packets of each version of MQTT: what is read is written again, reads as the same,
//! and has the length that was said; and any bytes as names and filters of topics.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use proto::mqtt::topic::{check_filter, check_name, matches, parts};
use proto::mqtt::{Packet, Version, encode, encoded_len, shorten, take};

/// Longest packet that is taken.
const MAX_PACKET_BYTES: usize = 1 << 16;

fn one(version: Version, packet: &Packet) {
    let mut out = Vec::new();
    encode(packet, version, &mut out).expect("it was read");
    assert_eq!(out.len(), encoded_len(packet, version));
    let mut input = BytesMut::from(&out[..]);
    let again = take(version, &mut input, out.len()).expect("it was written");
    assert_eq!(again.as_ref(), Some(packet));
    assert!(input.is_empty());
    let mut short = packet.clone();
    let fits = shorten(&mut short, version, out.len() / 2);
    assert!(!fits || encoded_len(&short, version) <= out.len() / 2);
    if let Packet::Publish(publish) = packet {
        assert!(publish.topic.is_empty() || check_name(publish.topic.as_bytes()).is_ok());
        assert!(publish.properties.iter().count() <= out.len());
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, bytes)) = data.split_first() else { return };
    let mut version = match first % 3 {
        0 => Version::V31,
        1 => Version::V311,
        _ => Version::V5,
    };
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(packet)) = take(version, &mut input, MAX_PACKET_BYTES) {
        if let Packet::Connect(connect) = &packet {
            version = connect.version;
        }
        one(version, &packet);
    }
    let (filter, name) = bytes.split_at(bytes.len() / 2);
    if let Ok(parts) = parts(filter) {
        check_filter(parts.filter).expect("it is a part of one");
        if check_name(name).is_ok() {
            let _ = matches(parts.filter, name);
        }
    }
    if check_name(name).is_ok() {
        assert!(matches(name, name) && (name[0] == b'$' || matches(b"#", name)));
    }
});
