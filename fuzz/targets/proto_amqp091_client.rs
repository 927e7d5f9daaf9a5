//! A client of AMQP 0.9.1 and a server that sends anything: any frames, bytes and times in any
//! order; nothing panics, nothing grows, nothing follows the end, and what it sends can be read.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proto::amqp091::client::{Client, Input, Output, Settings};
use proto::amqp091::machine::Credentials;
use proto::amqp091::{Frame, FrameKind, Method, PROTOCOL_HEADER, Table, encode_method};

/// Longest frame of either side.
const MAX_FRAME_BYTES: u32 = 128 << 10;
const MAX_MESSAGE_BYTES: u64 = 10_000;

/// A method of a server that chance would hardly find, on its channel.
fn method(with: u8) -> (u16, Method<'static>) {
    let channel = u16::from(with >> 7);
    let deliver = Method::BasicDeliver {
        consumer_tag: "c",
        delivery_tag: 1,
        redelivered: false,
        exchange: "e",
        routing_key: "k",
    };
    match with & 15 {
        0 | 1 => {
            let server_properties = Table::default();
            let (mechanisms, locales): (&[u8], &[u8]) = (b"PLAIN", b"en_US");
            let (version_major, version_minor) = (0, 9);
            let start = Method::ConnectionStart {
                version_major,
                version_minor,
                server_properties,
                mechanisms,
                locales,
            };
            (0, start)
        }
        2 | 3 => (0, Method::ConnectionTune { channel_max: 1, frame_max: 4096, heartbeat: 1 }),
        4 | 5 => (0, Method::ConnectionOpenOk {}),
        6 | 7 => (1, Method::ChannelOpenOk {}),
        8 => {
            let (reply_code, reply_text, class_id, method_id) = (404, "no", 60, 40);
            (1, Method::ChannelClose { reply_code, reply_text, class_id, method_id })
        }
        9 if with & 0x70 == 0 => (0, Method::ConnectionCloseOk {}),
        10 => (channel, Method::BasicAck { delivery_tag: 1, multiple: true }),
        _ => (1, deliver),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let settings = Settings {
        name: "n".to_owned(),
        credentials: Credentials::Password { user: "u".to_owned(), password: b"p".to_vec() },
        virtual_host: "/".to_owned(),
        heartbeat_s: u16::from(first & 3),
        max_message_bytes: MAX_MESSAGE_BYTES,
    };
    let mut client = Client::new(Duration::ZERO, settings);
    let mut now = Duration::ZERO;
    let (mut sent, mut has_ended) = (Vec::new(), false);
    let mut wires: Vec<Vec<u8>> = Vec::new();
    if first & 4 == 0 {
        for with in [0, 2, 4, 6] {
            let mut wire = Vec::new();
            let (channel, method) = method(with);
            encode_method(channel, &method, &mut wire).expect("it fits");
            wires.push(wire);
        }
    }
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(usize::from(len % 60)));
        rest = more;
        let mut wire = Vec::new();
        match what % 6 {
            0 => wire.extend_from_slice(bytes),
            1 => {
                let kind = if with & 1 == 0 { FrameKind::Header } else { FrameKind::Body };
                let _ = Frame { kind, channel: 1, payload: bytes }.encode(&mut wire);
            }
            2 => {
                // A header that is one, of a body that may be.
                let body_bytes = u64::from(with);
                let payload = [&[0, 60, 0, 0][..], &body_bytes.to_be_bytes(), &[0, 0]].concat();
                let frame = Frame { kind: FrameKind::Header, channel: 1, payload: &payload };
                let _ = frame.encode(&mut wire);
            }
            3 if with == 0 => client.close(),
            3 if with == 1 => client.reopen(),
            3 => {
                let ack = Method::BasicAck { delivery_tag: 1, multiple: false };
                let _ = client.send(&ack);
                let publish = Method::BasicPublish {
                    exchange: "",
                    routing_key: "k",
                    mandatory: false,
                    immediate: false,
                };
                let _ = client.send_content(&publish, &[0, 0], bytes);
            }
            4 => now += Duration::from_millis(u64::from(with) * 20),
            _ => {
                let (channel, method) = method(with);
                encode_method(channel, &method, &mut wire).expect("it fits");
            }
        }
        wires.push(wire);
    }
    for wire in wires {
        match wire.is_empty() {
            true => client.handle_input(now, Input::Wake),
            false => client.handle_input(now, Input::Bytes(&wire)),
        }
        while let Some(output) = client.poll_output() {
            assert!(!has_ended);
            match output {
                Output::Transmit(bytes) => sent.extend_from_slice(&bytes),
                Output::Closed(_) => has_ended = true,
                _ => {}
            }
        }
        assert!(client.held_bytes() < 1 << 20);
    }
    let mut rest = sent.strip_prefix(&PROTOCOL_HEADER).expect("it begins so");
    while !rest.is_empty() {
        let (frame, len) =
            Frame::decode(rest, MAX_FRAME_BYTES).expect("it is a frame").expect("it is whole");
        if frame.kind == FrameKind::Method {
            Method::decode(frame.payload).expect("it is read");
        }
        rest = rest.get(len..).unwrap_or_default();
    }
});
