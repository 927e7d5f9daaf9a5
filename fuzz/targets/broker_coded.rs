//! Any bytes behind the CONNECT of a node whose connection is compressed: no panic, and no more
//! memory than the packets that they stand for may take.
#![no_main]

use std::time::Duration;

use broker::{Broker, ConnectionId, Input, MqttSettings, Output, Protocol, Settings};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use proto::mqtt::{Connect, Id, Packet, Properties, Value, Version, encode};

/// Inputs that the bytes come in.
const MAX_PIECES: usize = 16;

fuzz_target!(|data: &[u8]| {
    let Some((&pieces, data)) = data.split_first() else { return };
    let settings = Settings { max_queued: 32, max_retained: 16, ..Settings::default() };
    let mqtt = MqttSettings { max_packet_bytes: 4096, ..MqttSettings::default() };
    let mut broker = Broker::new(settings, mqtt);
    let (now, connection) = (Duration::from_secs(1 << 30), ConnectionId(1));
    let mut properties = Properties::NONE;
    for pair in [("lw-node", "a:1"), ("lw-coding", "deflate-runs")] {
        properties.push(Id::USER_PROPERTY, Value::Pair(pair.0, pair.1)).unwrap();
    }
    let connect = Connect {
        version: Version::V5,
        is_bridge: false,
        client_id: "a".parse().unwrap(),
        clean_start: true,
        keep_alive_s: 0,
        username: None,
        password: None,
        will: None,
        properties,
    };
    let mut greeting = Vec::new();
    encode(&Packet::Connect(Box::new(connect)), Version::V5, &mut greeting).unwrap();
    let protocol = Protocol::Mqtt;
    broker.handle_input(now, Input::Connected { connection, protocol, certified: None });
    let greeting = BytesMut::from(&greeting[..]);
    broker.handle_input(now, Input::Received { connection, bytes: greeting });
    broker.handle_input(now, Input::Known { connection, user: Ok(None) });
    let mut granted = false;
    while let Some(output) = broker.poll_output() {
        if let Output::Transmit { bytes, .. } = output {
            granted |= bytes.windows(12).any(|window| window == b"deflate-runs");
        }
    }
    assert!(granted, "the connection is not compressed");
    let len = data.len().div_ceil(usize::from(pieces) % MAX_PIECES + 1).max(1);
    for piece in data.chunks(len) {
        let bytes = BytesMut::from(piece);
        broker.handle_input(now, Input::Received { connection, bytes });
        while let Some(output) = broker.poll_output() {
            match output {
                Output::Transmit { connection, bytes } => {
                    broker.handle_input(now, Input::Sent { connection, bytes: bytes.len() });
                }
                Output::Persist { ticket, .. } => {
                    broker.handle_input(now, Input::Persisted { ticket });
                }
                Output::Close { .. } => return,
                _ => {}
            }
        }
    }
});
