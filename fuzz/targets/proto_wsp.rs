//! Any bytes as PDUs of WSP and WTP and as headers: what is read can be written, and is bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::wsp::headers::{
    Encoder, EncodingVersion, Headers, MAX_DECODED_BYTES, Rules, decode, decode_with_content_type,
};
use proto::wsp::packet;
use proto::wsp::sar::{Progress, Reassembly, Segment};
use proto::wsp::session::{Capabilities, SessionPdu};
use proto::wsp::wtp::{Kind, Packet, Packets};

/// Most bytes of a message in packets here.
const MAX_MESSAGE_BYTES: usize = 4096;

fn headers(data: &[u8]) {
    assert!(Headers::new(data).count() <= data.len());
    let rules = Rules { version: EncodingVersion::V1_4, body_bytes: Some(data.len() as u64) };
    for decoded in
        [decode(rules, data), decode_with_content_type(rules, data)].into_iter().flatten()
    {
        let (mut len, mut out) = (0, Vec::new());
        let mut encoder = Encoder::new(rules, &mut out);
        for field in &decoded.fields {
            len += field.name.len() + field.value.len();
            if encoder.put(&field.name, &field.value).is_err() {
                return;
            }
        }
        assert!(len <= MAX_DECODED_BYTES + data.len());
        assert_eq!(decode(rules, &out).map(|decoded| decoded.skipped), Ok(0));
    }
}

fuzz_target!(|data: &[u8]| {
    let mut room = vec![0; data.len() + 16];
    if let Ok((tid, pdu)) = packet::decode(data) {
        let len = packet::encode(tid, &pdu, &mut room).expect("it was read");
        assert_eq!(packet::decode(&room[..len]), Ok((tid, pdu)));
    }
    if let Ok(pdu) = SessionPdu::decode(data)
        && let Ok(len) = pdu.encode(&mut room)
    {
        assert_eq!(SessionPdu::decode(&room[..len]), Ok(pdu));
    }
    assert!(Capabilities::new(data).count() <= data.len());
    let mut reassembly = Reassembly::new(MAX_MESSAGE_BYTES);
    for bytes in Packets::new(data).flatten() {
        let Ok(packet) = Packet::decode(bytes) else { continue };
        let len = packet.encode(&mut room).expect("it was read");
        assert_eq!(Packet::decode(&room[..len]), Ok(packet));
        if let Kind::Segment { psn, trailer, data, .. } = packet.kind
            && let Ok(Progress::Whole { message, .. }) =
                reassembly.push(Segment { psn, trailer, data })
        {
            assert!(message.len() <= MAX_MESSAGE_BYTES);
        }
        assert!(reassembly.held_bytes() <= MAX_MESSAGE_BYTES);
    }
    headers(data);
});
