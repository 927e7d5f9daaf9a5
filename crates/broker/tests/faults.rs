//! Clients, their connections and the broker fail at any moment: what was acknowledged arrives, of
//! grade 1 at least once, of grade 2 once, in order.

#![allow(clippy::unwrap_used)] // Tests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use longwire_broker::{
    Broker, Change, ConnectionId, Input, MqttSettings, Output, Protocol, Settings, Ticket,
};
use proto::mqtt::{
    Ack, Connect, Filter, Id, Options, Packet, Properties, Publish, Qos, Reason, Subscribe, Text,
    Value, Version, encode, take,
};

const MAX_PACKET_BYTES: usize = 1 << 16;
/// Messages that each run publishes.
const MESSAGES: u64 = 24;
/// Steps after which everything has to have arrived, once nothing fails any more.
const MAX_STEPS: usize = 20_000;

/// A generator whose numbers a seed decides (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What a client has on its way to the broker and from it; either may be lost with the connection.
#[derive(Default)]
struct Pipe {
    up: VecDeque<Bytes>,
    down: VecDeque<Bytes>,
    input: BytesMut,
}

/// A client that keeps its session.
struct Client {
    name: &'static str,
    version: Version,
    connection: Option<ConnectionId>,
    pipe: Pipe,
    is_up: bool,
    /// Publisher: what is not acknowledged, by number; the flag says that PUBREC came.
    unacked: BTreeMap<u16, (Publish, bool)>,
    next: u64,
    /// Subscriber: numbers of grade 2 that were not released.
    unreleased: BTreeSet<u16>,
    came: Vec<(Qos, u64)>,
    subscribed: bool,
}

impl Client {
    fn new(name: &'static str, version: Version) -> Self {
        Self {
            name,
            version,
            connection: None,
            pipe: Pipe::default(),
            is_up: false,
            unacked: BTreeMap::new(),
            next: 0,
            unreleased: BTreeSet::new(),
            came: Vec::new(),
            subscribed: false,
        }
    }

    fn send(&mut self, packet: &Packet) {
        let mut bytes = Vec::new();
        encode(packet, self.version, &mut bytes).unwrap();
        self.pipe.up.push_back(bytes.into());
    }

    fn connect(&mut self, connection: ConnectionId) {
        self.connection = Some(connection);
        self.pipe = Pipe::default();
        self.is_up = false;
        let mut properties = Properties::NONE;
        if self.version == Version::V5 {
            properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(3600)).unwrap();
        }
        self.send(&Packet::Connect(Box::new(Connect {
            version: self.version,
            client_id: self.name.parse().unwrap(),
            clean_start: false,
            keep_alive_s: 0,
            username: None,
            password: None,
            will: None,
            properties,
        })));
    }

    /// The connection is up: what was not acknowledged goes again (MQTT 5 §4.4).
    fn resume(&mut self) {
        self.is_up = true;
        let again: Vec<Packet> = self
            .unacked
            .iter()
            .map(|(id, (publish, received))| match received {
                true => Packet::PubRel(Ack::new(*id, Reason::SUCCESS)),
                false => Packet::Publish(Publish { dup: true, ..publish.clone() }),
            })
            .collect();
        again.iter().for_each(|packet| self.send(packet));
    }

    fn publish(&mut self) {
        self.next += 1;
        let qos = if self.next.is_multiple_of(2) { Qos::ExactlyOnce } else { Qos::AtLeastOnce };
        let id = u16::try_from(self.next).unwrap();
        let mut publish = Publish::new("t/x".parse().unwrap(), Bytes::from(self.next.to_string()));
        publish.qos = qos;
        publish.packet_id = Some(id);
        self.send(&Packet::Publish(publish.clone()));
        self.unacked.insert(id, (publish, false));
    }

    fn subscribe(&mut self) {
        let filter: Text = "t/+".parse().unwrap();
        let filters = vec![Filter { filter, options: Options::new(Qos::ExactlyOnce) }];
        self.send(&Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() }));
    }

    fn take(&mut self, packet: Packet) {
        match packet {
            Packet::ConnAck(_) => self.resume(),
            Packet::SubAck(_) => self.subscribed = true,
            Packet::PubAck(ack) => {
                self.unacked.remove(&ack.id);
            }
            Packet::PubRec(ack) => {
                if let Some((_, received)) = self.unacked.get_mut(&ack.id) {
                    *received = true;
                }
                self.send(&Packet::PubRel(Ack::new(ack.id, Reason::SUCCESS)));
            }
            Packet::PubComp(ack) => {
                self.unacked.remove(&ack.id);
            }
            Packet::PubRel(ack) => {
                self.unreleased.remove(&ack.id);
                self.send(&Packet::PubComp(Ack::new(ack.id, Reason::SUCCESS)));
            }
            Packet::Publish(publish) => {
                let number = str::from_utf8(&publish.payload).unwrap().parse().unwrap();
                let id = publish.packet_id.unwrap();
                if publish.qos == Qos::AtLeastOnce {
                    self.came.push((publish.qos, number));
                    self.send(&Packet::PubAck(Ack::new(id, Reason::SUCCESS)));
                } else {
                    if self.unreleased.insert(id) {
                        self.came.push((publish.qos, number));
                    }
                    self.send(&Packet::PubRec(Ack::new(id, Reason::SUCCESS)));
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

struct World {
    chance: Chance,
    now: Duration,
    broker: Broker,
    /// What the disk has.
    disk: Vec<Change>,
    writing: Option<(Ticket, Vec<Change>)>,
    clients: [Client; 2],
    last: u64,
}

fn broker() -> Broker {
    let settings = Settings { durable: true, sys_interval: Duration::ZERO, ..Settings::default() };
    Broker::new(settings, MqttSettings::default())
}

impl World {
    fn new(seed: u64) -> Self {
        let version = |odd| if odd { Version::V5 } else { Version::V311 };
        Self {
            chance: Chance(seed),
            now: Duration::from_secs(1_000_000),
            broker: broker(),
            disk: Vec::new(),
            writing: None,
            clients: [
                Client::new("publisher", version(seed.is_multiple_of(2))),
                Client::new("subscriber", version(seed.is_multiple_of(3))),
            ],
            last: 0,
        }
    }

    fn input(&mut self, input: Input) {
        self.broker.handle_input(self.now, input);
        let mut more = VecDeque::new();
        loop {
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        let len = bytes.len();
                        if let Some(client) = self.client(connection) {
                            client.pipe.down.push_back(bytes);
                        }
                        more.push_back(Input::Sent { connection, bytes: len });
                    }
                    Output::Close { connection } => {
                        if let Some(client) = self.client(connection) {
                            client.connection = None;
                        }
                    }
                    Output::Login(login) => {
                        let connection = login.connection;
                        more.push_back(Input::Known { connection, user: Ok(None) });
                    }
                    Output::Persist { ticket, changes } => {
                        assert!(self.writing.is_none(), "one batch at a time");
                        self.writing = Some((ticket, changes));
                    }
                    _ => {}
                }
            }
            let Some(next) = more.pop_front() else { return };
            self.broker.handle_input(self.now, next);
        }
    }

    fn client(&mut self, connection: ConnectionId) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.connection == Some(connection))
    }

    fn dial(&mut self, which: usize) {
        self.last += 1;
        let connection = ConnectionId(self.last);
        self.clients[which].connect(connection);
        let protocol = Protocol::Mqtt;
        self.input(Input::Connected { connection, protocol, certified: None });
    }

    fn drop_connection(&mut self, which: usize, is_known: bool) {
        let Some(connection) = self.clients[which].connection.take() else { return };
        self.clients[which].is_up = false;
        // Otherwise the broker learns of it when the client comes back.
        if is_known {
            self.input(Input::Lost { connection });
        }
    }

    fn crash(&mut self) {
        // What was being written is there as a whole, or not at all.
        if let Some((_, changes)) = self.writing.take()
            && self.chance.one_in(2)
        {
            self.disk.extend(changes);
        }
        self.broker = broker();
        let unknown = self.broker.restore(self.now, self.disk.iter().cloned());
        assert_eq!(unknown, 0);
        for client in &mut self.clients {
            client.connection = None;
            client.is_up = false;
        }
    }

    /// One thing happens. With `calm` nothing fails.
    fn step(&mut self, calm: bool) {
        self.now += Duration::from_millis(self.chance.below(50));
        if !calm && self.chance.one_in(60) {
            return self.crash();
        }
        if self.chance.one_in(6)
            && let Some((ticket, changes)) = self.writing.take()
        {
            self.disk.extend(changes);
            return self.input(Input::Persisted { ticket });
        }
        let which = usize::from(self.chance.one_in(2));
        if self.clients[which].connection.is_none() {
            return self.dial(which);
        }
        if !calm && self.chance.one_in(25) {
            let is_known = self.chance.one_in(2);
            return self.drop_connection(which, is_known);
        }
        let client = &mut self.clients[which];
        match self.chance.below(4) {
            0 if which == 0 && client.is_up && client.next < MESSAGES => client.publish(),
            1 if which == 1 && client.is_up && !client.subscribed => client.subscribe(),
            2 => {
                if let Some(bytes) = client.pipe.down.pop_front() {
                    client.pipe.input.extend_from_slice(&bytes);
                    let mut input = std::mem::take(&mut client.pipe.input);
                    let version = client.version;
                    while let Some(packet) = take(version, &mut input, MAX_PACKET_BYTES).unwrap() {
                        client.take(packet);
                    }
                    client.pipe.input = input;
                }
            }
            _ => {
                if let (Some(bytes), Some(connection)) =
                    (client.pipe.up.pop_front(), client.connection)
                {
                    let bytes = BytesMut::from(&bytes[..]);
                    self.input(Input::Received { connection, bytes });
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        let [publisher, subscriber] = &self.clients;
        let numbers: BTreeSet<u64> = subscriber.came.iter().map(|(_, number)| *number).collect();
        publisher.next == MESSAGES
            && publisher.unacked.is_empty()
            && numbers.len() as u64 == MESSAGES
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    // The subscriber is there before anything is published.
    for _ in 0..MAX_STEPS {
        if world.clients[1].subscribed {
            break;
        }
        world.clients[0].next = MESSAGES;
        world.step(false);
    }
    world.clients[0].next = 0;
    for _ in 0..400 {
        world.step(false);
    }
    for step in 0.. {
        if world.is_done() {
            break;
        }
        assert!(step < MAX_STEPS, "seed {seed}: {:?} of {MESSAGES}", world.clients[1].came);
        world.step(true);
    }
    let came = &world.clients[1].came;
    let exactly: Vec<u64> = came
        .iter()
        .filter(|(qos, _)| *qos == Qos::ExactlyOnce)
        .map(|(_, number)| *number)
        .collect();
    let mut sorted = exactly.clone();
    sorted.dedup();
    assert_eq!(
        exactly.len() as u64,
        MESSAGES / 2,
        "seed {seed}: each of grade 2 once: {exactly:?}"
    );
    assert!(exactly.is_sorted(), "seed {seed}: in order: {exactly:?}");
    assert_eq!(sorted.len(), exactly.len());
}

/// `LONGWIRE_SEEDS` runs, 1,000 by default.
#[test]
fn what_is_acknowledged_arrives_whatever_fails() {
    let seeds = std::env::var("LONGWIRE_SEEDS").ok().and_then(|text| text.parse().ok());
    (0..seeds.unwrap_or(1000)).for_each(run);
}
