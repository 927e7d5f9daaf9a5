//! A server that keeps its session while connections break at any byte: messages of QoS 1 come at
//! least once and those of QoS 2 once, in order, both ways.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use proptest::prelude::*;

use super::super::super::decode::take;
use super::super::super::encode::encode;
use super::super::super::id::Id;
use super::super::super::level::{Qos, Version};
use super::super::super::packet::{Ack, ConnAck, Packet, Publish};
use super::super::super::property::{Properties, Value};
use super::super::super::reason::Reason;
use super::super::{Client, Input, MAX_PACKET_BYTES, Output};
use super::{connect, message, settings};

/// Messages each way.
const MESSAGES: u64 = 20;
/// Most messages of QoS 1 and 2 on the way to the client at once.
const WINDOW: u32 = 3;
/// Steps until all must be over.
const MAX_STEPS: usize = 3000;

/// A server with one client, as MQTT 5 §4.3 and §4.4 have it.
#[derive(Default)]
struct Server {
    input: BytesMut,
    output: Vec<u8>,
    has_session: bool,
    is_open: bool,
    /// Most messages of QoS 1 and 2 on the way from the client: another with each connection.
    window: u32,
    /// What came, by payload, in order.
    got: Vec<u64>,
    /// Identifiers of QoS 2 whose PUBREL has not come.
    recorded: BTreeSet<u16>,
    /// Messages on the way to the client: those of QoS 2 without payload are released.
    flights: BTreeMap<u16, Option<Publish>>,
    order: VecDeque<u16>,
    next: u64,
    /// Messages of QoS 1 and 2 of the client that are not answered on this connection.
    unanswered: BTreeSet<u16>,
}

impl Server {
    fn send(&mut self, packet: &Packet) {
        encode(packet, Version::V5, &mut self.output).unwrap();
    }

    fn read(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while let Some(packet) = take(Version::V5, &mut self.input, MAX_PACKET_BYTES).unwrap() {
            self.packet(packet);
        }
    }

    fn packet(&mut self, packet: Packet) {
        match packet {
            Packet::Connect(connect) => {
                if connect.clean_start {
                    // What was on the way is gone, and nothing of the client's has come yet.
                    let input = std::mem::take(&mut self.input);
                    *self = Self { input, ..Self::default() };
                }
                self.is_open = true;
                self.window = self.window % WINDOW + 1;
                let mut properties = Properties::NONE;
                properties.push(Id::RECEIVE_MAXIMUM, Value::Number(self.window)).unwrap();
                properties.push(Id::TOPIC_ALIAS_MAXIMUM, Value::Number(1)).unwrap();
                let session_present = std::mem::replace(&mut self.has_session, true);
                let connack = ConnAck { session_present, reason: Reason::SUCCESS, properties };
                self.send(&Packet::ConnAck(connack));
                for id in self.order.clone() {
                    match self.flights[&id].clone() {
                        Some(publish) => {
                            self.send(&Packet::Publish(Publish { dup: true, ..publish }));
                        }
                        None => self.send(&Packet::PubRel(Ack::new(id, Reason::SUCCESS))),
                    }
                }
            }
            Packet::Publish(publish) => self.publish(&publish),
            Packet::PubRel(ack) => {
                self.recorded.remove(&ack.id);
                self.unanswered.remove(&ack.id);
                self.send(&Packet::PubComp(Ack::new(ack.id, Reason::SUCCESS)));
            }
            Packet::PubAck(ack) | Packet::PubComp(ack) => {
                self.flights.remove(&ack.id);
                self.order.retain(|id| *id != ack.id);
            }
            Packet::PubRec(ack) => {
                self.flights.insert(ack.id, None);
                self.send(&Packet::PubRel(Ack::new(ack.id, Reason::SUCCESS)));
            }
            packet => panic!("{packet:?}"),
        }
    }

    fn publish(&mut self, publish: &Publish) {
        let number = std::str::from_utf8(&publish.payload).unwrap().parse().unwrap();
        let id = publish.packet_id.unwrap();
        self.unanswered.insert(id);
        assert!(self.unanswered.len() <= usize::try_from(self.window).unwrap());
        if publish.qos == Qos::ExactlyOnce {
            if self.recorded.insert(id) {
                self.got.push(number);
            }
            self.send(&Packet::PubRec(Ack::new(id, Reason::SUCCESS)));
        } else {
            self.unanswered.remove(&id);
            self.got.push(number);
            self.send(&Packet::PubAck(Ack::new(id, Reason::SUCCESS)));
        }
    }

    /// Sends the next message where the client has a place for it.
    fn step(&mut self) {
        if self.next == MESSAGES || self.flights.len() >= usize::try_from(WINDOW).unwrap() {
            return;
        }
        let id = (1..).find(|id| !self.flights.contains_key(id)).unwrap();
        let mut publish = numbered(self.next);
        publish.packet_id = Some(id);
        self.next += 1;
        self.send(&Packet::Publish(publish.clone()));
        self.flights.insert(id, Some(publish));
        self.order.push_back(id);
    }
}

/// The message of a number: those of QoS 1 are odd.
fn numbered(number: u64) -> Publish {
    let qos = if number % 2 == 1 { Qos::AtLeastOnce } else { Qos::ExactlyOnce };
    Publish { payload: number.to_string().into(), ..message("topic", qos) }
}

/// Both sides, and the bytes on the way.
struct Run {
    client: Client,
    server: Server,
    now: Duration,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    is_connected: bool,
    got: Vec<u64>,
    published: Vec<u64>,
    unaccepted: VecDeque<u64>,
}

impl Run {
    fn new() -> Self {
        let mut settings = settings(connect(Version::V5));
        let properties = &mut settings.connect.properties;
        properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(600)).unwrap();
        properties.push(Id::RECEIVE_MAXIMUM, Value::Number(WINDOW)).unwrap();
        Self {
            client: Client::new(settings).unwrap(),
            server: Server::default(),
            now: Duration::ZERO,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            is_connected: false,
            got: Vec::new(),
            published: Vec::new(),
            unaccepted: VecDeque::new(),
        }
    }

    fn input(&mut self, input: Input) {
        self.now += Duration::from_millis(1);
        self.client.handle_input(self.now, input);
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Transmit(bytes) => self.to_server.extend(bytes),
                Output::Message { receipt, publish } => {
                    let number = std::str::from_utf8(&publish.payload).unwrap().parse().unwrap();
                    self.got.push(number);
                    self.unaccepted.extend(receipt);
                }
                Output::Published { key, reason } => {
                    assert_eq!(reason, Reason::SUCCESS);
                    self.published.push(key);
                }
                Output::Failed { key, failure } => panic!("{key}: {failure:?}"),
                Output::Closed(why) => assert_eq!(why, super::super::Closed::Broken),
                _ => {}
            }
        }
    }

    /// One thing happens.
    fn step(&mut self, what: u8, count: usize) {
        match what {
            0 if self.is_connected => {
                self.is_connected = false;
                self.to_server.clear();
                self.to_client.clear();
                self.server.input.clear();
                self.server.is_open = false;
                self.server.unanswered.clear();
                self.input(Input::Disconnected);
            }
            _ if !self.is_connected => {
                self.is_connected = true;
                self.server.output.clear();
                self.input(Input::Connected);
            }
            1..=3 => {
                let bytes: Vec<u8> =
                    self.to_server.drain(..count.min(self.to_server.len())).collect();
                self.server.read(&bytes);
            }
            4..=6 => {
                let len = count.min(self.to_client.len());
                let bytes: Vec<u8> = self.to_client.drain(..len).collect();
                self.input(Input::Bytes(bytes.into()));
            }
            7 if self.server.is_open => self.server.step(),
            _ => {
                // Not always the oldest first.
                let at = count % self.unaccepted.len().max(1);
                if let Some(receipt) = self.unaccepted.remove(at) {
                    self.input(Input::Accept { receipt, reason: Reason::SUCCESS });
                }
            }
        }
        if self.is_connected {
            self.to_client.extend(self.server.output.drain(..));
        }
    }

    fn is_over(&self) -> bool {
        self.client.open_messages() == 0
            && self.server.next == MESSAGES
            && self.server.flights.is_empty()
    }
}

/// Each of QoS 2 once, each of QoS 1 at least once, and each quality in order but for repeats.
fn check(got: &[u64]) {
    let mut seen = BTreeSet::new();
    let firsts: Vec<u64> = got.iter().copied().filter(|number| seen.insert(*number)).collect();
    for parity in [0, 1] {
        let numbers = firsts.iter().copied().filter(|number| number % 2 == parity);
        let expected = (0..MESSAGES).filter(|number| number % 2 == parity);
        assert!(numbers.eq(expected), "{got:?}");
    }
    let exact = got.iter().filter(|number| **number % 2 == 0).count();
    assert_eq!(exact as u64, MESSAGES / 2, "{got:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_is_lost_and_qos_2_comes_once(
        steps in prop::collection::vec((0_u8..40, 1_usize..60), 300),
    ) {
        let mut run = Run::new();
        for key in 0..MESSAGES {
            run.input(Input::Publish { key, publish: numbered(key) });
        }
        // A cut in forty at first, and then a calm end.
        for (what, count) in steps {
            run.step(if what == 0 { 0 } else { 1 + what % 8 }, count);
        }
        for count in 0..MAX_STEPS {
            if run.is_over() {
                break;
            }
            run.step(u8::try_from(count % 8).unwrap() + 1, 50);
        }
        prop_assert!(run.is_over(), "{:?} of {:?}", run.published, run.server.flights);
        let mut published = run.published.clone();
        published.sort_unstable();
        prop_assert!(published.iter().copied().eq(0..MESSAGES), "{:?}", run.published);
        check(&run.server.got);
        check(&run.got);
    }
}
