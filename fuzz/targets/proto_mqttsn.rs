//! Any bytes as a datagram of MQTT-SN, with a forwarder's head and without: what is read is written
//! and read again. The first byte stands for a length that chance would not find.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::mqttsn::{Forwarded, Packet, is_forwarded};

fn packet(bytes: &[u8]) {
    if let Ok(packet) = Packet::decode(bytes) {
        let mut room = vec![0; bytes.len()];
        let len = packet.encode(&mut room).expect("the shortest form is no longer");
        assert_eq!(len, packet.encoded_len());
        assert_eq!(Packet::decode(&room[..len]), Ok(packet));
    }
}

fuzz_target!(|data: &[u8]| {
    packet(data);
    if is_forwarded(data)
        && let Ok(forwarded) = Forwarded::decode(data)
    {
        let mut room = vec![0; data.len()];
        let len = forwarded.encode(&mut room).expect("it was read");
        assert_eq!(Forwarded::decode(&room[..len]), Ok(forwarded));
        packet(forwarded.message);
    }
    let Some((_, body)) = data.split_first() else { return };
    match (u8::try_from(data.len()), u16::try_from(data.len() + 2)) {
        (Ok(len), _) => packet(&[&[len], body].concat()),
        (_, Ok(len)) => {
            let [high, low] = len.to_be_bytes();
            packet(&[&[1, high, low], body].concat());
        }
        _ => {}
    }
});
