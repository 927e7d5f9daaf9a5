//! The client against servers that are written down, and against one that loses connections.

mod cuts;
mod scripted;

use std::time::Duration;

use bytes::BytesMut;

use super::super::decode::take;
use super::super::encode::encode;
use super::super::level::{Qos, Version};
use super::super::packet::{ConnAck, Connect, Packet, Publish};
use super::super::property::Properties;
use super::super::text::Text;
use super::{Client, Input, MAX_PACKET_BYTES, Output, Settings};

fn text(text: &str) -> Text {
    text.parse().unwrap()
}

fn connect(version: Version) -> Connect {
    Connect {
        version,
        is_bridge: false,
        client_id: text("c"),
        clean_start: true,
        keep_alive_s: 60,
        username: None,
        password: None,
        will: None,
        properties: Properties::NONE,
    }
}

fn settings(connect: Connect) -> Settings {
    Settings {
        connect,
        max_packet_bytes: MAX_PACKET_BYTES,
        max_in_flight: 100,
        answer_timeout: Duration::from_secs(10),
    }
}

fn message(topic: &str, qos: Qos) -> Publish {
    Publish { qos, ..Publish::new(text(topic), "x".into()) }
}

/// A client and what it does.
struct Bench {
    client: Client,
    now: Duration,
    version: Version,
    written: BytesMut,
    wake_at: Option<Duration>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let version = settings.connect.version;
        let client = Client::new(settings).unwrap();
        Self { client, now: Duration::ZERO, version, written: BytesMut::new(), wake_at: None }
    }

    /// One that a server let in with this; what it reported is not looked at.
    fn open(settings: Settings, connack: ConnAck) -> Self {
        let mut bench = Self::new(settings);
        bench.reopen(connack);
        bench
    }

    /// What it does with an input: packets that it writes, and what it reports.
    fn input(&mut self, input: Input) -> (Vec<Packet>, Vec<Output>) {
        self.client.handle_input(self.now, input);
        let mut reports = Vec::new();
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Transmit(bytes) => self.written.extend_from_slice(&bytes),
                Output::WakeAt(at) => self.wake_at = Some(at),
                output => reports.push(output),
            }
        }
        let mut packets = Vec::new();
        while let Some(packet) = take(self.version, &mut self.written, MAX_PACKET_BYTES).unwrap() {
            packets.push(packet);
        }
        assert!(self.written.is_empty());
        (packets, reports)
    }

    fn packet(&mut self, packet: &Packet) -> (Vec<Packet>, Vec<Output>) {
        let mut bytes = Vec::new();
        encode(packet, self.version, &mut bytes).unwrap();
        self.input(Input::Bytes(bytes.into()))
    }

    /// A new connection; what the client does when the server lets it in.
    fn reopen(&mut self, connack: ConnAck) -> (Vec<Packet>, Vec<Output>) {
        let (packets, _) = self.input(Input::Connected);
        assert!(matches!(packets[..], [Packet::Connect(_)]), "{packets:?}");
        self.packet(&Packet::ConnAck(connack))
    }
}
