//! A client that keeps its session, and what decides.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use longwire_broker::ConnectionId;
use proto::mqtt::{
    Ack, Connect, Filter, Id, Options, Packet, Properties, Publish, Qos, Reason, Subscribe, Text,
    Value, Version, encode, take,
};

const MAX_PACKET_BYTES: usize = 1 << 16;

/// A generator whose numbers a seed decides (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What a client has on its way to the broker and from it; either may be lost with the connection.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) up: VecDeque<Bytes>,
    pub(crate) down: VecDeque<Bytes>,
    pub(crate) input: BytesMut,
}

/// A client that keeps its session.
pub(crate) struct Client {
    pub(crate) name: &'static str,
    pub(crate) version: Version,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) pipe: Pipe,
    pub(crate) is_up: bool,
    /// Publisher: what is not acknowledged, by number; the flag says that PUBREC came.
    pub(crate) unacked: BTreeMap<u16, (Publish, bool)>,
    pub(crate) next: u64,
    /// Subscriber: numbers of grade 2 that were not released.
    pub(crate) unreleased: BTreeSet<u16>,
    pub(crate) came: Vec<(Qos, u64)>,
    pub(crate) subscribed: bool,
}

impl Client {
    pub(crate) fn new(name: &'static str, version: Version) -> Self {
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

    pub(crate) fn send(&mut self, packet: &Packet) {
        let mut bytes = Vec::new();
        encode(packet, self.version, &mut bytes).unwrap();
        self.pipe.up.push_back(bytes.into());
    }

    pub(crate) fn connect(&mut self, connection: ConnectionId) {
        self.connection = Some(connection);
        self.pipe = Pipe::default();
        self.is_up = false;
        let mut properties = Properties::NONE;
        if self.version == Version::V5 {
            properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(3600)).unwrap();
        }
        self.send(&Packet::Connect(Box::new(Connect {
            version: self.version,
            is_bridge: false,
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
    pub(crate) fn resume(&mut self) {
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

    pub(crate) fn publish(&mut self) {
        self.next += 1;
        let qos = if self.next.is_multiple_of(2) { Qos::ExactlyOnce } else { Qos::AtLeastOnce };
        let id = u16::try_from(self.next).unwrap();
        let mut publish = Publish::new("t/x".parse().unwrap(), Bytes::from(self.next.to_string()));
        publish.qos = qos;
        publish.packet_id = Some(id);
        self.send(&Packet::Publish(publish.clone()));
        self.unacked.insert(id, (publish, false));
    }

    pub(crate) fn subscribe(&mut self, filter: &str) {
        let filter: Text = filter.parse().unwrap();
        let filters = vec![Filter { filter, options: Options::new(Qos::ExactlyOnce) }];
        self.send(&Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() }));
    }

    /// Takes the next bytes that came.
    pub(crate) fn read(&mut self) {
        let Some(bytes) = self.pipe.down.pop_front() else { return };
        self.pipe.input.extend_from_slice(&bytes);
        let mut input = std::mem::take(&mut self.pipe.input);
        while let Some(packet) = take(self.version, &mut input, MAX_PACKET_BYTES).unwrap() {
            self.take(packet);
        }
        self.pipe.input = input;
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
