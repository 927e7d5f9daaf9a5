//! A broker that hears and sends datagrams of MQTT/UDP.

use std::collections::VecDeque;

use proptest::prelude::*;
use proto::mqttudp::{Records, Signer};

use super::*;
use crate::broker::{Broker, Input};
use crate::event::Drop;
use crate::outputs::Output;

const LISTENER: u16 = 3;
const KEY: &[u8] = b"shared";
/// The number of the first datagram that leaves.
const FIRST: u32 = 0x8000_0000;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], port))
}

fn everybody() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 255], 1883))
}

fn listener() -> Listener {
    Listener {
        exit: vec![Exit::new("out/#")],
        targets: vec![everybody()],
        first_number: FIRST,
        ..Listener::default()
    }
}

struct World {
    broker: Broker,
    now: Duration,
    wake_at: Option<Duration>,
    sent: Vec<Bytes>,
    events: Vec<Event>,
    unwritten: VecDeque<Input>,
    writes_at_once: bool,
}

impl World {
    fn new(listener: Listener) -> Self {
        Self::with(listener, false)
    }

    fn with(listener: Listener, durable: bool) -> Self {
        let core =
            crate::Settings { durable, sys_interval: Duration::ZERO, ..crate::Settings::default() };
        let settings = Settings { listeners: [(LISTENER, listener)].into(), ..Settings::default() };
        let broker = Broker::new(core, crate::mqtt::Settings::default()).with_mqtt_udp(settings);
        let mut world = Self {
            broker,
            now: s(1000),
            wake_at: None,
            sent: Vec::new(),
            events: Vec::new(),
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
                        assert_eq!((listener, to), (LISTENER, everybody()));
                        self.sent.push(bytes);
                    }
                    Output::Persist { ticket, .. } => match self.writes_at_once {
                        true => inputs.push_back(Input::Persisted { ticket }),
                        false => self.unwritten.push_back(Input::Persisted { ticket }),
                    },
                    Output::Event(event) => self.events.push(event),
                    Output::WakeAt(at) => self.wake_at = at,
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn waits(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(at) = self.wake_at.filter(|at| *at <= end) {
            self.now = at;
            self.input(Input::Wake);
        }
        self.now = end;
    }

    fn hears(&mut self, port: u16, bytes: impl Into<Bytes>) -> Vec<Bytes> {
        let input =
            Input::Datagram { listener: LISTENER, from: address(port), bytes: bytes.into() };
        self.input(input);
        std::mem::take(&mut self.sent)
    }

    /// How many publications were taken since the last look, and the topics of these.
    fn taken(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let taken = events.into_iter().filter_map(|event| match event {
            Event::Published { topic, .. } => Some(topic.to_string()),
            _ => None,
        });
        taken.collect()
    }
}

fn datagram(packet: &Packet<'_>, number: Option<u32>, signer: &Signer<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let records = Records { number, ..Records::default() };
    packet.encode(&records, signer, &mut out).unwrap();
    out
}

fn value(topic: &str, number: u32) -> Vec<u8> {
    datagram(&Packet::publish(topic, b"x"), Some(number), &Signer::NONE)
}

fn retained(topic: &str, payload: &[u8]) -> Vec<u8> {
    let publish = Publish { topic, payload, qos: 0, retain: true, dup: false };
    datagram(&Packet::Publish(publish), None, &Signer::NONE)
}

fn signer(sha256: bool, md5: bool) -> Signer<'static> {
    Signer { key: KEY, sha256, md5 }
}

#[test]
fn values_are_taken_by_filter_and_number() {
    let mut world = World::new(Listener { entry: vec!["in/#".into()], ..listener() });
    for (port, number, topic, is_taken) in [
        (1, 5, "in/a", true),
        (1, 5, "in/a", false),
        (1, 4, "in/a", false),
        (1, 3, "in/b", true),
        (2, 5, "in/a", true),
        (1, 6, "out/a", false),
        (1, 7, "in/a", true),
        (1, 1, "$SYS/x", false),
    ] {
        assert_eq!(world.hears(port, value(topic, number)), [""; 0]);
        assert_eq!(world.taken().len(), usize::from(is_taken), "{port} {number} {topic}");
    }
    // Those without a number are taken each time.
    let plain = datagram(&Packet::publish("in/a", b"x"), None, &Signer::NONE);
    world.hears(1, plain.clone());
    world.hears(1, plain);
    assert_eq!(world.taken(), ["in/a", "in/a"]);
    world.hears(1, b"\x30\x09\x00\x03in/".to_vec());
    assert_eq!(world.taken(), [""; 0]);
}

#[test]
fn signatures_are_checked_as_the_operator_says() {
    let unsigned = Signer::NONE;
    let wrong = Signer { key: b"another", sha256: false, md5: true };
    for (verification, believed) in [
        (Verification::None, [true, false, true, true]),
        (Verification::Any, [false, false, true, true]),
        (Verification::Sha256, [false, false, false, true]),
    ] {
        let key = Some(Bytes::from_static(KEY));
        let mut world = World::new(Listener { key, verification, ..listener() });
        let signers = [unsigned, wrong, signer(false, true), signer(true, false)];
        for (at, (signer, is_believed)) in (10..).zip(signers.iter().zip(believed)) {
            let packet = Packet::publish("a", b"x");
            let bytes = datagram(&packet, Some(at), signer);
            world.hears(1, bytes.clone());
            assert_eq!(world.taken().len(), usize::from(is_believed), "{verification:?} {at}");
            world.hears(1, bytes);
            assert_eq!(world.taken(), [""; 0], "a copy");
            // Without a number a copy could not be known.
            world.hears(1, datagram(&packet, None, signer));
            let is_strict = verification != Verification::None;
            assert_eq!(world.taken().len(), usize::from(is_believed && !is_strict));
        }
    }
    let mut world = World::new(Listener { verification: Verification::Sha256, ..listener() });
    world.hears(1, value("a", 1));
    assert_eq!(world.taken(), ["a"], "without a key nothing can be checked");
}

#[test]
fn what_leaves_is_signed_and_repeated_under_one_number() {
    let exit = Exit { repeats: 2, repeat_after: s(1), ..Exit::new("out/#") };
    let key = Some(Bytes::from_static(KEY));
    let mut world = World::new(Listener {
        exit: vec![exit, Exit::new("once")],
        key,
        sign_md5: true,
        sign_sha256: true,
        ..listener()
    });
    let publish = |topic: &str| Publication::new(Protocol::Mqtt, topic.to_owned(), "21.5");
    let outside = |world: &mut World, topic| {
        world.broker.core_mut().publish(world.now, publish(topic)).unwrap();
        world.input(Input::Persisted { ticket: Ticket(0) });
        std::mem::take(&mut world.sent)
    };
    let expected = |topic, number| {
        datagram(&Packet::publish(topic, b"21.5"), Some(number), &signer(true, true))
    };
    assert_eq!(outside(&mut world, "out/a"), [expected("out/a", FIRST)]);
    assert_eq!(outside(&mut world, "once"), [expected("once", FIRST + 1)]);
    assert_eq!(outside(&mut world, "elsewhere"), [""; 0]);
    for _ in 0..2 {
        world.waits(s(1));
        assert_eq!(std::mem::take(&mut world.sent), [expected("out/a", FIRST)]);
    }
    world.waits(s(10));
    assert_eq!(world.sent, [""; 0]);
    // What is sent is heard, and is not taken for somebody else's.
    world.taken();
    assert_eq!(world.hears(9, expected("out/a", FIRST)), [""; 0]);
    assert_eq!(world.taken(), [""; 0]);
}

#[test]
fn what_came_over_a_listener_does_not_go_back_there() {
    let mut world = World::new(listener());
    assert_eq!(world.hears(1, value("out/a", 1)), [""; 0]);
    assert_eq!(world.taken(), ["out/a"]);
}

#[test]
fn values_that_may_leave_are_sent_on_request() {
    let mut world = World::new(listener());
    for topic in ["out/a", "in/a"] {
        world.hears(1, retained(topic, b"21.5"));
    }
    let ask = |topic| datagram(&Packet::Subscribe { topic }, None, &Signer::NONE);
    let expected =
        |number| datagram(&Packet::publish("out/a", b"21.5"), Some(number), &Signer::NONE);
    assert_eq!(world.hears(1, ask("out/a")), [expected(FIRST)]);
    assert_eq!(world.hears(2, ask("out/a")), [""; 0], "it was sent just now");
    for topic in ["in/a", "out/b", "out/#", "#", ""] {
        assert_eq!(world.hears(1, ask(topic)), [""; 0], "{topic}");
    }
    world.waits(s(1));
    assert_eq!(world.hears(2, ask("out/a")), [expected(FIRST + 1)]);
    let ping = datagram(&Packet::PingReq, None, &Signer::NONE);
    let pong = datagram(&Packet::PingResp, Some(FIRST + 2), &Signer::NONE);
    assert_eq!(world.hears(1, ping.clone()), [pong]);
    assert_eq!(world.hears(1, ping), [""; 0]);
}

#[test]
fn an_acknowledgement_waits_for_the_store() {
    let mut world = World::with(Listener { acknowledges: true, ..listener() }, true);
    world.writes_at_once = false;
    let publish = Publish { topic: "a", payload: b"x", qos: 2, retain: true, dup: false };
    let bytes = datagram(&Packet::Publish(publish), Some(77), &Signer::NONE);
    assert_eq!(world.hears(1, bytes), [""; 0]);
    let done = world.unwritten.pop_front().unwrap();
    world.input(done);
    let mut expected = Vec::new();
    let records = Records { number: Some(FIRST), reply_to: Some(77), ..Records::default() };
    Packet::PubAck { qos: 1 }.encode(&records, &Signer::NONE, &mut expected).unwrap();
    assert_eq!(std::mem::take(&mut world.sent), [expected]);
    // Who wants no answer gets none, and neither does who cannot be told which.
    world.writes_at_once = true;
    assert_eq!(world.hears(1, value("a", 78)), [""; 0]);
    let without = datagram(&Packet::Publish(publish), None, &Signer::NONE);
    assert_eq!(world.hears(1, without), [""; 0]);
}

#[test]
fn radio_silence_is_kept() {
    let mut world = World::new(Listener { one_way: true, acknowledges: true, ..listener() });
    world.hears(1, retained("out/a", b"x"));
    for packet in [
        Packet::Subscribe { topic: "out/a" },
        Packet::PingReq,
        Packet::Publish(Publish {
            topic: "out/b",
            payload: b"x",
            qos: 1,
            retain: false,
            dup: false,
        }),
    ] {
        assert_eq!(world.hears(1, datagram(&packet, Some(5), &Signer::NONE)), [""; 0]);
    }
    world.waits(s(3600));
    assert_eq!(world.sent, [""; 0]);
    assert_eq!((world.broker.core().sizes().sessions, world.taken().len()), (0, 1));
}

#[test]
fn what_is_too_long_for_a_datagram_does_not_leave() {
    let mut world = World::new(listener());
    for (len, is_sent) in [(1180, true), (1190, false)] {
        let payload = vec![7_u8; len];
        let publication = Publication::new(Protocol::Mqtt, "out/a", payload);
        world.broker.core_mut().publish(world.now, publication).unwrap();
        world.input(Input::Persisted { ticket: Ticket(0) });
        assert_eq!(world.sent.len(), usize::from(is_sent));
        world.sent.clear();
    }
    let dropped = world.events.iter().filter(|event| {
        matches!(event, Event::Dropped { why: Drop::TooLarge, client: Some(_), .. })
    });
    assert_eq!(dropped.count(), 1);
}

#[test]
fn where_a_value_came_from_is_said_if_it_is_known() {
    let key = Some(Bytes::from_static(KEY));
    for (tells_source, signer, is_said) in [
        (false, Signer::NONE, false),
        (true, Signer::NONE, true),
        (false, signer(true, false), true),
    ] {
        let mut world = World::new(Listener { key: key.clone(), tells_source, ..listener() });
        let publish = Publish { topic: "a", payload: b"x", qos: 0, retain: true, dup: false };
        let records = Records { measured_at_ms: Some(1234), ..Records::default() };
        let mut bytes = Vec::new();
        Packet::Publish(publish).encode(&records, &signer, &mut bytes).unwrap();
        world.hears(1, bytes);
        let kept = world.broker.core().retained_at(world.now, "a").unwrap();
        let details = kept.details.as_ref().unwrap();
        assert_eq!(details.created_ms, Some(1234));
        let source = ("source".to_owned(), "10.0.0.1:1".to_owned());
        assert_eq!(details.properties, Vec::from_iter(is_said.then_some(source)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_datagrams_make_it_panic(
        is_signed in any::<bool>(),
        script in proptest::collection::vec(
            (0..7_u8, 0..3_u16, any::<Option<u32>>(), 0..5_u64, "[ab$/#]{0,4}"), 0..60)
    ) {
        let exit = Exit { repeats: 1, ..Exit::new("#") };
        let key = is_signed.then(|| Bytes::from_static(KEY));
        let mut world = World::new(Listener {
            exit: vec![exit],
            key,
            acknowledges: true,
            sign_md5: true,
            ..listener()
        });
        for (kind, port, number, wait_s, topic) in script {
            world.waits(s(wait_s));
            world.sent.clear();
            let (retain, qos) = (kind % 2 == 0, kind % 3);
            let packet = match kind {
                0 => Packet::PingReq,
                1 => Packet::Subscribe { topic: &topic },
                2 => Packet::PubAck { qos: 1 },
                _ => {
                    let payload = b"x";
                    Packet::Publish(Publish { topic: &topic, payload, qos, retain, dup: false })
                }
            };
            let signer = if wait_s % 2 == 0 { Signer::NONE } else { signer(false, true) };
            let sent = world.hears(port, datagram(&packet, number, &signer));
            prop_assert!(sent.len() <= 1);
            prop_assert!(world.wake_at.is_none_or(|at| at > world.now));
        }
    }
}
