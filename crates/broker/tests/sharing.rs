//! What several clients get of one publication, what is kept of what was read, and what need not be
//! written.

#![allow(clippy::unwrap_used)] // Tests.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use longwire_broker::{
    Broker, Change, ConnectionId, Input, MqttSettings, Output, Protocol, Settings, Ticket,
};
use proto::mqtt::{
    Ack, Connect, Filter, Id, Options, Packet, Properties, Publish, Qos, Reason, Subscribe, Value,
    Version, encode, take,
};

const NOW: Duration = Duration::from_secs(100);
const MAX_PACKET_BYTES: usize = 1 << 16;

/// A broker, and what has come of it.
struct Bench {
    broker: Broker,
    sent: BTreeMap<u64, BytesMut>,
    versions: BTreeMap<u64, Version>,
    persists: Vec<(Ticket, Vec<Change>)>,
}

impl Bench {
    fn new(durable: bool) -> Self {
        let sys_interval = Duration::ZERO;
        let settings = Settings { durable, sys_interval, ..Settings::default() };
        let broker = Broker::new(settings, MqttSettings::default());
        let (sent, versions) = (BTreeMap::new(), BTreeMap::new());
        Self { broker, sent, versions, persists: Vec::new() }
    }

    fn input(&mut self, input: Input) {
        self.broker.handle_input(NOW, input);
        while let Some(output) = self.broker.poll_output() {
            match output {
                Output::Transmit { connection, bytes } => {
                    self.sent.entry(connection.0).or_default().extend_from_slice(&bytes);
                    let bytes = bytes.len();
                    self.broker.handle_input(NOW, Input::Sent { connection, bytes });
                }
                Output::Login(login) => {
                    let (connection, user) = (login.connection, Ok(None));
                    self.broker.handle_input(NOW, Input::Known { connection, user });
                }
                Output::Persist { ticket, changes } => self.persists.push((ticket, changes)),
                _ => {}
            }
        }
    }

    fn send(&mut self, client: u64, packet: &Packet) {
        let mut bytes = Vec::new();
        encode(packet, self.versions[&client], &mut bytes).unwrap();
        let connection = ConnectionId(client);
        self.input(Input::Received { connection, bytes: bytes.as_slice().into() });
    }

    /// What a client has got since it was asked last.
    fn got(&mut self, client: u64) -> Vec<Packet> {
        let version = self.versions[&client];
        let input = self.sent.entry(client).or_default();
        std::iter::from_fn(|| take(version, input, MAX_PACKET_BYTES).unwrap()).collect()
    }

    fn published(&mut self, client: u64) -> Vec<Publish> {
        let publish = |packet| match packet {
            Packet::Publish(publish) => Some(publish),
            _ => None,
        };
        self.got(client).into_iter().filter_map(publish).collect()
    }

    fn connect(&mut self, client: u64, version: Version, clean_start: bool) {
        self.versions.insert(client, version);
        let connection = ConnectionId(client);
        let protocol = Protocol::Mqtt;
        self.input(Input::Connected { connection, protocol, certified: None });
        let mut properties = Properties::NONE;
        if version == Version::V5 && !clean_start {
            properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(60)).unwrap();
        }
        self.send(
            client,
            &Packet::Connect(Box::new(Connect {
                version,
                is_bridge: false,
                client_id: format!("c{client}").parse().unwrap(),
                clean_start,
                keep_alive_s: 0,
                username: None,
                password: None,
                will: None,
                properties,
            })),
        );
    }

    fn subscribe(&mut self, client: u64, qos: Qos, identifier: u32) {
        let filters = vec![Filter { filter: "t/+".parse().unwrap(), options: Options::new(qos) }];
        let mut subscribe = Subscribe { id: 1, filters, ..Subscribe::default() };
        if identifier > 0 {
            let value = Value::Number(identifier);
            subscribe.properties.push(Id::SUBSCRIPTION_IDENTIFIER, value).unwrap();
        }
        self.send(client, &Packet::Subscribe(subscribe));
    }

    fn publish(&mut self, client: u64, id: u16, payload: &str) {
        let mut publish = Publish::new("t/x".parse().unwrap(), Bytes::from(payload.to_owned()));
        publish.qos = Qos::AtLeastOnce;
        publish.packet_id = Some(id);
        self.send(client, &Packet::Publish(publish));
    }
}

#[test]
fn each_gets_its_own_packet_of_a_publication_that_many_get() {
    let mut bench = Bench::new(false);
    let kinds = [
        (Version::V311, Qos::AtLeastOnce, 0),
        (Version::V311, Qos::AtMostOnce, 0),
        (Version::V311, Qos::AtLeastOnce, 0),
        (Version::V5, Qos::AtLeastOnce, 0),
        (Version::V5, Qos::AtLeastOnce, 7),
        (Version::V5, Qos::AtLeastOnce, 0),
    ];
    for (client, (version, qos, identifier)) in (1..).zip(kinds) {
        bench.connect(client, version, true);
        bench.subscribe(client, qos, identifier);
    }
    // One of them has had others before, and is at another number.
    bench.connect(9, Version::V311, true);
    bench.publish(9, 1, "first");
    bench.send(3, &Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
    for client in 1..=6 {
        assert_eq!(bench.published(client).len(), 1, "{client}");
    }
    bench.publish(9, 2, "second");
    for (client, (_, qos, identifier)) in (1..).zip(kinds) {
        let all = bench.published(client);
        let [one] = &all[..] else { panic!("{client}: {all:?}") };
        assert_eq!((&*one.payload, one.topic.as_str()), (b"second".as_slice(), "t/x"));
        assert_eq!((one.qos, one.dup, one.retain), (qos, false, false), "{client}");
        let number = if qos == Qos::AtMostOnce { None } else { Some(2) };
        assert_eq!(one.packet_id, number, "{client}");
        let said = one.properties.number(Id::SUBSCRIPTION_IDENTIFIER).unwrap_or(0);
        assert_eq!(said, identifier, "{client}");
    }
}

#[test]
fn the_rest_of_a_reading_does_not_keep_its_memory() {
    const ROOM: usize = 16 << 10;
    let mut bench = Bench::new(false);
    bench.connect(1, Version::V311, true);
    let mut packet = Vec::new();
    let publish = Publish::new("t/x".parse().unwrap(), Bytes::from(vec![b'x'; 500]));
    encode(&Packet::Publish(publish), Version::V311, &mut packet).unwrap();
    bench.subscribe(1, Qos::AtMostOnce, 0);
    let mut room = BytesMut::with_capacity(ROOM);
    let place = room.as_ptr();
    for part in [&packet[..], &packet[..100], &packet[100..200], &packet[200..]] {
        room.extend_from_slice(part);
        let bytes = room.split();
        bench.input(Input::Received { connection: ConnectionId(1), bytes });
        room.reserve(ROOM);
        assert_eq!(room.as_ptr(), place, "somebody keeps what was read");
    }
    assert_eq!(bench.published(1).len(), 2);
}

#[test]
fn what_is_done_with_before_it_is_written_is_not_written() {
    let mut bench = Bench::new(true);
    bench.connect(1, Version::V311, false);
    // CONNACK waits for the session.
    let (ticket, _) = bench.persists.pop().unwrap();
    bench.input(Input::Persisted { ticket });
    bench.subscribe(1, Qos::AtLeastOnce, 0);
    bench.connect(2, Version::V311, true);
    // The subscription; the disk is slow.
    let (ticket, _) = bench.persists.pop().unwrap();
    bench.publish(2, 1, "a");
    bench.publish(2, 2, "b");
    assert_eq!(bench.published(1).len(), 2);
    bench.send(1, &Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
    bench.got(2);
    bench.input(Input::Persisted { ticket });
    let (ticket, changes) = bench.persists.pop().unwrap();
    let waits = |change: &Change| matches!(change, Change::Queued { number: 2, .. });
    assert!(changes.iter().any(waits), "{changes:?}");
    let messages = changes.iter().filter(|change| matches!(change, Change::Message(_)));
    assert_eq!(messages.count(), 1, "{changes:?}");
    assert!(bench.got(2).is_empty(), "nothing is acknowledged before the store has it");
    bench.input(Input::Persisted { ticket });
    assert_eq!(bench.got(2).len(), 2);
}
