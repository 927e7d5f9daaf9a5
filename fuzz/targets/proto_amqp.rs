//! Any bytes as a value, a frame, a performative, a message and a frame of SASL of AMQP 1.0: what
//! is read is written as something that says the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::amqp::frame;
use proto::amqp::message::{Message, encode_message};
use proto::amqp::performative::Performative;
use proto::amqp::sasl;
use proto::amqp::types::{Reader, encode};

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    let reader = &mut Reader::new(data);
    if let Ok(value) = reader.value() {
        let read = data.len() - reader.rest().len();
        assert_eq!(Reader::new(data).skip().map(<[u8]>::len), Ok(read));
        let mut out = Vec::new();
        encode(&value, &mut out);
        let again = Reader::new(&out).value().expect("what was written is read");
        let mut third = Vec::new();
        encode(&again, &mut third);
        assert_eq!(out, third);
    }
    if let Ok((performative, payload)) = Performative::decode(&bytes) {
        let mut out = Vec::new();
        performative.encode(&mut out);
        out.extend_from_slice(&payload);
        let out = Bytes::from(out);
        let (again, same) = Performative::decode(&out).expect("what was written is read");
        assert_eq!(same, payload);
        let mut third = Vec::new();
        again.encode(&mut third);
        third.extend_from_slice(&same);
        assert_eq!(out, third);
    }
    if let Ok(message) = Message::decode(&bytes) {
        let Message { header, message_annotations, bare, .. } = &message;
        let again = encode_message(header, message_annotations, bare);
        let again = Message::decode(&again).expect("what was written is read");
        assert_eq!(again.bare, message.bare);
        assert_eq!(again.header, message.header);
    }
    if let Ok(frame) = sasl::Frame::decode(data) {
        if let sasl::Frame::Init { mechanism, initial_response, .. } = &frame {
            let _ = sasl::credentials(mechanism, initial_response.as_deref().unwrap_or_default());
        }
        let mut out = Vec::new();
        frame.encode(&mut out);
        assert_eq!(sasl::Frame::decode(&out), Ok(frame));
    }
    let mut reader = frame::Reader::default();
    reader.receive(data);
    while let Ok(Some(frame)) = reader.frame(1 << 16) {
        assert!(frame.body.len() < data.len());
    }
});
