//! A client of MQTT and a server that sends anything: any packets, bytes, inputs and times in any
//! order. Nothing panics, each message and wish of the caller's has at most one end, no receipt is
//! handed out twice, and what is written can be read.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use proto::mqtt::client::{Client, Input, Output, Settings};
use proto::mqtt::{
    Ack, ConnAck, Connect, Disconnect, Filter, Id, Options, Packet, Properties, Publish, Qos,
    Reason, SubAck, Text, UnsubAck, Value, Version, encode, take,
};

/// Longest packet that either side takes.
const MAX_PACKET_BYTES: usize = 1 << 12;
/// Outputs of one input: what waits is bounded by the input.
const MAX_OUTPUTS: usize = 10_000;

fn settings(first: u8) -> Option<Settings> {
    let version = match first % 3 {
        0 => Version::V31,
        1 => Version::V311,
        _ => Version::V5,
    };
    let mut properties = Properties::NONE;
    for (id, number) in [
        (Id::SESSION_EXPIRY_INTERVAL, u32::from(first >> 4)),
        (Id::RECEIVE_MAXIMUM, 4),
        (Id::TOPIC_ALIAS_MAXIMUM, 3),
    ] {
        properties.push(id, Value::Number(number)).ok()?;
    }
    let connect = Connect {
        version,
        is_bridge: false,
        client_id: Text::try_from("c").ok()?,
        clean_start: first & 8 != 0,
        keep_alive_s: u16::from(first >> 3),
        username: None,
        password: None,
        will: None,
        properties,
    };
    let answer_timeout = Duration::from_secs(5);
    Some(Settings { connect, max_packet_bytes: MAX_PACKET_BYTES, max_in_flight: 5, answer_timeout })
}

fn publish(with: u8, bytes: &[u8]) -> Publish {
    let topic = Text::try_from(["a", "b/c", "long/topic", "#"][usize::from(with % 4)]);
    let qos = Qos::from_bits(with >> 2 & 3).unwrap_or_default();
    let packet_id = (qos != Qos::AtMostOnce).then_some(u16::from(with >> 5) + 1);
    let payload = Bytes::copy_from_slice(bytes);
    let mut publish =
        Publish { qos, packet_id, ..Publish::new(topic.unwrap_or_default(), payload) };
    publish.dup = with & 0x10 != 0 && packet_id.is_some();
    publish
}

/// A packet of a server that chance would hardly find.
fn packet(with: u8, bytes: &[u8]) -> Packet {
    let id = u16::from(with >> 5) + 1;
    let ack = Ack::new(id, Reason(bytes.first().copied().unwrap_or(0)));
    let reasons = vec![Reason::SUCCESS; 1 + usize::from(with >> 4 & 1)];
    match with & 15 {
        0 => Packet::ConnAck(ConnAck { session_present: with & 16 != 0, ..ConnAck::default() }),
        1 => Packet::PubAck(ack),
        2 => Packet::PubRec(ack),
        3 => Packet::PubComp(ack),
        4 => Packet::PubRel(ack),
        5 => Packet::SubAck(SubAck { id, reasons, ..SubAck::default() }),
        6 => Packet::UnsubAck(UnsubAck { id, reasons, ..UnsubAck::default() }),
        7 => Packet::PingResp,
        8 => Packet::Disconnect(Disconnect::default()),
        _ => Packet::Publish(publish(with.rotate_left(2), bytes)),
    }
}

fn input(version: Version, what: u8, with: u8, bytes: &[u8], open: &mut BTreeSet<u64>) -> Input {
    let key = u64::from(with);
    match what % 10 {
        0 => Input::Connected,
        1 => Input::Bytes(Bytes::copy_from_slice(bytes)),
        2..=4 => {
            let mut out = Vec::new();
            let _ = encode(&packet(with, bytes), version, &mut out);
            Input::Bytes(out.into())
        }
        5 if open.insert(key) => Input::Publish { key, publish: publish(with, bytes) },
        6 if open.insert(key) => {
            let filter = Text::try_from(["a/#", "b", "$share/g/a", "a+"][usize::from(with % 4)]);
            let filter = filter.unwrap_or_default();
            let filters = vec![Filter { filter: filter.clone(), options: Options::default() }];
            if what & 0x80 == 0 {
                Input::Subscribe { key, filters, properties: Properties::NONE }
            } else {
                Input::Unsubscribe { key, filters: vec![filter], properties: Properties::NONE }
            }
        }
        7 => Input::Accept { receipt: key, reason: Reason(what & 0x80) },
        8 => Input::Disconnected,
        9 if with == 0 => Input::Disconnect(Disconnect::default()),
        _ => Input::Wake,
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let Some(settings) = settings(first) else { return };
    let version = settings.connect.version;
    let Ok(mut client) = Client::new(settings) else { return };
    let (mut now, mut open, mut receipts) = (Duration::ZERO, BTreeSet::new(), BTreeSet::new());
    let mut written = BytesMut::new();
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(len) * 10);
        let input = input(version, what, with, bytes, &mut open);
        if matches!(input, Input::Connected) {
            written.clear();
        }
        client.handle_input(now, input);
        let mut outputs = 0;
        while let Some(output) = client.poll_output() {
            outputs += 1;
            assert!(outputs < MAX_OUTPUTS);
            match output {
                Output::Transmit(bytes) => written.extend_from_slice(&bytes),
                Output::Published { key, .. }
                | Output::Subscribed { key, .. }
                | Output::Unsubscribed { key, .. }
                | Output::Failed { key, .. } => assert!(open.remove(&key), "{key} is not open"),
                Output::Message { receipt: Some(receipt), .. } => {
                    assert!(receipts.insert(receipt), "{receipt} was there before");
                }
                Output::Message { publish, .. } => {
                    assert!(!publish.properties.has(Id::TOPIC_ALIAS))
                }
                _ => {}
            }
        }
        while take(version, &mut written, usize::MAX).expect("it was written").is_some() {}
        assert!(written.is_empty());
        assert!(client.open_messages() <= open.len());
    }
});
