//! Any bytes as frames, methods, tables and properties of AMQP 0.9.1, and as what a client sends a
//! server: no panic, no growth; what is read can be written.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proto::amqp091::machine::{Input, Output, Server, Settings};
use proto::amqp091::{
    Array, ContentHeader, Frame, MIN_FRAME_BYTES, Method, PROTOCOL_HEADER, Properties, ReplyCode,
    Table, TableBuf, encode_method,
};

/// Longest message here.
const MAX_MESSAGE_BYTES: u64 = 4096;

fn codec(data: &[u8]) {
    if let Ok(method) = Method::decode(data) {
        let mut out = Vec::new();
        method.encode(&mut out).expect("it was read");
        assert_eq!(Method::decode(&out), Ok(method));
    }
    if let Ok(properties) = Properties::decode(data) {
        let mut out = Vec::new();
        properties.encode(&mut out).expect("it was read");
        assert!(Properties::decode(&out).is_ok());
    }
    if let Ok(table) = Table::decode(data) {
        let mut again = TableBuf::default();
        for (name, value) in table {
            again.put(name, &value).expect("it was read");
        }
        assert!(Table::decode(again.as_table().as_bytes()).is_ok());
    }
    let _ = Array::decode(data);
    let _ = ContentHeader::decode(data);
    let _ = Frame::decode(data, MIN_FRAME_BYTES);
}

/// The first byte of a piece says how it comes: as it is, in a frame, or as time that passes.
fn connection(begin: &[u8], data: &[u8]) {
    let settings = Settings {
        product: "fuzz".to_owned(),
        version: "0".to_owned(),
        has_external: true,
        channel_max: 7,
        frame_max_bytes: MIN_FRAME_BYTES,
        heartbeat_s: 10,
        max_message_bytes: MAX_MESSAGE_BYTES,
    };
    let mut now = Duration::ZERO;
    let mut server = Server::new(now, settings);
    server.handle_input(now, Input::Bytes(begin));
    for piece in data.chunks(24) {
        let Some((&how, bytes)) = piece.split_first() else { return };
        drain(&mut server, how);
        match how & 3 {
            0 => server.handle_input(now, Input::Bytes(bytes)),
            1 => {
                now += Duration::from_millis(u64::from(how) * 50);
                server.handle_input(now, Input::Wake);
            }
            _ => {
                let len = u8::try_from(bytes.len()).unwrap_or(0);
                let channel = how >> 4 & 1;
                let kind = how >> 2 & 3;
                let head = [kind.max(1), 0, channel, 0, 0, 0, len];
                let frame = [&head[..], bytes, &[0xce]].concat();
                server.handle_input(now, Input::Bytes(&frame));
            }
        }
        drain(&mut server, how);
    }
}

/// Does what there is to do; `how` says how methods are answered.
fn drain(server: &mut Server, how: u8) {
    let mut outputs = 0;
    while let Some(output) = server.poll_output() {
        outputs += 1;
        assert!(outputs <= 64);
        match output {
            Output::Authenticate(_) => server.authenticated(how & 0x80 == 0),
            Output::Open { .. } => server.opened(),
            Output::Method { channel, payload } => {
                let method = Method::decode(&payload).expect("it was read");
                if how & 0x40 != 0 {
                    server.close_channel(channel, ReplyCode::NotFound, "x", method.ids());
                }
            }
            Output::Publish(publish) => {
                assert!(publish.body.len() as u64 <= MAX_MESSAGE_BYTES);
                let (exchange, routing_key) = (&*publish.exchange, &*publish.routing_key);
                let (reply_code, reply_text) = (312, "NO_ROUTE");
                let method = Method::BasicReturn { reply_code, reply_text, exchange, routing_key };
                let (channel, properties) = (publish.channel, &publish.properties);
                let _ = server.send_content(channel, &method, properties, &publish.body);
            }
            Output::WakeAt(_)
            | Output::Transmit(_)
            | Output::ChannelOpened(_)
            | Output::ChannelClosed(_)
            | Output::Closed(_) => {}
        }
    }
}

/// What a client sends until it has two channels.
fn begin() -> Vec<u8> {
    let mut out = PROTOCOL_HEADER.to_vec();
    let client_properties = Table::default();
    for (channel, method) in [
        (
            0,
            Method::ConnectionStartOk {
                client_properties,
                mechanism: "PLAIN",
                response: b"\0u\0p",
                locale: "",
            },
        ),
        (0, Method::ConnectionTuneOk { channel_max: 0, frame_max: 0, heartbeat: 5 }),
        (0, Method::ConnectionOpen { virtual_host: "/" }),
        (1, Method::ChannelOpen {}),
    ] {
        encode_method(channel, &method, &mut out).expect("it is short");
    }
    out
}

fuzz_target!(|data: &[u8]| {
    codec(data);
    connection(&[], data);
    connection(&begin(), data);
});
