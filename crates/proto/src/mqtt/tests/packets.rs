//! Whole packets there and back.

use bytes::{Bytes, BytesMut};

use super::super::*;

#[test]
fn a_publish_shares_the_bytes_that_it_came_in() {
    let bytes = b"\x33\x14\x00\x03a/b\x00\x0a\x05\x01\x01\x23\x00\x07payload".to_vec();
    let mut input = BytesMut::from(&bytes[..]);
    let Ok(Some(packet)) = take(Version::V5, &mut input, 100) else { panic!() };
    assert!(input.is_empty());
    let Packet::Publish(publish) = &packet else { panic!() };
    assert_eq!((publish.topic.as_str(), &publish.payload[..]), ("a/b", &b"payload"[..]));
    assert_eq!(publish.properties.number(Id::TOPIC_ALIAS), Some(7));
    assert_eq!((publish.qos, publish.packet_id), (Qos::AtLeastOnce, Some(10)));
    let mut out = Vec::new();
    assert_eq!(encode(&packet, Version::V5, &mut out), Ok(()));
    assert_eq!(out, bytes);
    assert_eq!(encoded_len(&packet, Version::V5), bytes.len());
}

#[test]
fn a_head_is_patched_for_each_receiver() {
    let mut publish = Publish::new("a/b".parse().unwrap(), Bytes::from_static(b"x"));
    publish.qos = Qos::ExactlyOnce;
    publish.packet_id = Some(1);
    let mut out = vec![9];
    let marks = encode_publish_head(&publish, Version::V311, &mut out).unwrap();
    marks.patch(&mut out, true, 0x1234);
    assert_eq!(out, b"\x09\x3c\x08\x00\x03a/b\x12\x34");
}
