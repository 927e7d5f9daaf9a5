//! A broker whose clients speak MQTT-SN: message by message, and with clients over a lossy link.

mod any;
mod bounds;
mod lossy;
mod resending;
mod scenes;
mod sleeping;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use proto::mqttsn::{Code, Filter, PROTOCOL_ID, Packet, Publish, Qos, Topic, WillTopic};

use super::{Listener, Settings};
use crate::broker::{Broker, Input};
use crate::change::Change;
use crate::event::{Drop, Event};
use crate::outputs::Output;

/// The listeners of these tests: one that answers, one that never does.
const LISTENER: u16 = 7;
const ONE_WAY: u16 = 8;
const ACCEPTED: Code = Code::ACCEPTED;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Clients are told apart by their ports.
fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn message(packet: &Packet<'_>) -> Bytes {
    super::source::encode(packet).expect("no test has one that is too long")
}

fn settings() -> Settings {
    let one_way = Listener { one_way: true, ..Listener::default() };
    let mut settings = Settings::default();
    settings.listeners.insert(LISTENER, Listener::default());
    settings.listeners.insert(ONE_WAY, one_way);
    settings.predefined.all.insert(3, "pre/all".into());
    settings.predefined.clients.insert("own".into(), [(4, "pre/own".into())].into());
    settings
}

fn core_settings(durable: bool) -> crate::Settings {
    crate::Settings { durable, sys_interval: Duration::ZERO, ..crate::Settings::default() }
}

/// A broker in virtual time.
struct World {
    broker: Broker,
    now: Duration,
    wake_at: Option<Duration>,
    /// What was sent and not looked at.
    sent: VecDeque<(u16, SocketAddr, Bytes)>,
    events: Vec<Event>,
    /// What a store has.
    stored: Vec<Change>,
    /// What it is asked to write, and has not.
    unwritten: VecDeque<Input>,
    writes_at_once: bool,
}

impl World {
    fn new(settings: Settings) -> Self {
        Self::with(settings, false)
    }

    fn with(settings: Settings, durable: bool) -> Self {
        let mqtt = crate::mqtt::Settings::default();
        let broker = Broker::new(core_settings(durable), mqtt).with_mqtt_sn(settings);
        let mut world = Self {
            broker,
            now: s(1000),
            wake_at: None,
            sent: VecDeque::new(),
            events: Vec::new(),
            stored: Vec::new(),
            unwritten: VecDeque::new(),
            writes_at_once: true,
        };
        world.input(Input::Wake);
        world
    }

    fn input(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.broker.handle_input(self.now, input);
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Datagram { listener, to, bytes } => {
                        self.sent.push_back((listener, to, bytes));
                    }
                    Output::Persist { ticket, changes } => {
                        self.stored.extend(changes);
                        let done = Input::Persisted { ticket };
                        match self.writes_at_once {
                            true => inputs.push_back(done),
                            false => self.unwritten.push_back(done),
                        }
                    }
                    Output::Event(event) => self.events.push(event),
                    Output::WakeAt(at) => self.wake_at = at,
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    /// What was asked is written.
    fn write(&mut self) {
        while let Some(done) = self.unwritten.pop_front() {
            self.input(done);
        }
    }

    fn hears_at(&mut self, listener: u16, port: u16, bytes: Bytes) {
        self.input(Input::Datagram { listener, from: address(port), bytes });
    }

    /// A client sends something; what it gets at once.
    fn hears(&mut self, port: u16, packet: &Packet<'_>) -> Vec<Bytes> {
        self.hears_at(LISTENER, port, message(packet));
        self.got(port)
    }

    /// What a client has got.
    fn got(&mut self, port: u16) -> Vec<Bytes> {
        let (own, others): (VecDeque<_>, _) =
            self.sent.drain(..).partition(|(_, to, _)| *to == address(port));
        self.sent = others;
        own.into_iter().map(|(_, _, bytes)| bytes).collect()
    }

    /// Time passes until something is due.
    fn wakes(&mut self) {
        self.now = self.wake_at.expect("something is due");
        self.input(Input::Wake);
    }

    /// Time passes.
    fn waits(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.wake_at.is_some_and(|at| at <= end) {
            self.wakes();
        }
        self.now = end;
    }

    /// A client is connected.
    fn connects(&mut self, port: u16, name: &str, clean: bool) {
        let got = self.hears(port, &connect(name, clean, false));
        assert_eq!(got.first(), Some(&message(&Packet::ConnAck { code: ACCEPTED })), "{name}");
        self.sent.extend(got.into_iter().skip(1).map(|bytes| (LISTENER, address(port), bytes)));
    }

    /// A client subscribes; the id of the topic.
    fn subscribes(&mut self, port: u16, filter: &str, qos: Qos) -> u16 {
        let filter = Filter::Name(filter);
        let subscribe = Packet::Subscribe { dup: false, qos, msg_id: 99, filter };
        let got = self.hears(port, &subscribe);
        let Ok(Packet::SubAck { qos: granted, topic_id, msg_id, code }) = Packet::decode(&got[0])
        else {
            panic!("{got:?}");
        };
        assert_eq!((granted, msg_id, code), (qos, 99, ACCEPTED));
        self.sent.extend(got.into_iter().skip(1).map(|bytes| (LISTENER, address(port), bytes)));
        topic_id
    }

    /// A client registers a topic; its id.
    fn registers(&mut self, port: u16, name: &str) -> u16 {
        let got = self.hears(port, &Packet::Register { topic_id: 0, msg_id: 98, name });
        match Packet::decode(&got[0]) {
            Ok(Packet::RegAck { topic_id, msg_id: 98, code: ACCEPTED }) => topic_id,
            other => panic!("{other:?}"),
        }
    }

    /// A client says that it is there; what else it got waits.
    fn stays(&mut self, port: u16) {
        self.hears_at(LISTENER, port, message(&PINGREQ));
        let (_, to, bytes) = self.sent.pop_back().expect("a PINGREQ has an answer");
        assert_eq!((to, bytes), (address(port), message(&Packet::PingResp)));
    }

    fn drops(&self) -> Vec<Drop> {
        let drops = self.events.iter().filter_map(|event| match event {
            Event::Dropped { why, .. } => Some(*why),
            _ => None,
        });
        drops.collect()
    }

    fn sessions(&self) -> usize {
        self.broker.core().sizes().sessions
    }
}

fn connect(name: &str, clean_session: bool, will: bool) -> Packet<'_> {
    let protocol_id = PROTOCOL_ID;
    Packet::Connect { will, clean_session, protocol_id, duration_s: 60, client_id: name }
}

fn publish(topic: Topic, msg_id: u16, data: &'static [u8], qos: Qos) -> Packet<'static> {
    Packet::Publish(Publish { topic, msg_id, data, qos, retain: false, dup: false })
}

/// The same, sent once more.
fn again(packet: &Packet<'_>) -> Bytes {
    let mut bytes = message(packet).to_vec();
    proto::mqttsn::set_dup(&mut bytes);
    bytes.into()
}

fn puback(topic: Topic, msg_id: u16, code: Code) -> Packet<'static> {
    Packet::PubAck { topic_id: topic.value(), msg_id, code }
}

fn regack(topic_id: u16, msg_id: u16) -> Packet<'static> {
    Packet::RegAck { topic_id, msg_id, code: ACCEPTED }
}

fn will_topic(topic: &str) -> Packet<'_> {
    Packet::WillTopic(Some(WillTopic { topic, qos: Qos::One, retain: true }))
}

const PINGREQ: Packet<'static> = Packet::PingReq { client_id: "" };
const DISCONNECT: Packet<'static> = Packet::Disconnect { duration_s: None };

fn messages(packets: &[Packet<'_>]) -> Vec<Bytes> {
    packets.iter().map(message).collect()
}
