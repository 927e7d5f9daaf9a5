//! What is told of publications over MQTT, and in which form their payloads leave.

#![allow(clippy::unwrap_used)] // Tests.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use longwire_broker::{
    Broker, ConnectionId, ExplainQuery, FormRule, Input, MqttSettings, Output, PayloadForm,
    Protocol, Settings,
};
use proto::mqtt::{
    Ack, Connect, Filter, Id, Options, Packet, Properties, Publish, Qos, Reason, Subscribe, Value,
    Version, encode, take,
};
use record::publication::{Progress, Publication, Receiver};

const NOW: Duration = Duration::from_secs(100);
const MAX_PACKET_BYTES: usize = 1 << 17;

/// A broker, and what its clients have got.
struct Bench {
    broker: Broker,
    sent: BTreeMap<u64, BytesMut>,
    versions: BTreeMap<u64, Version>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let settings = Settings { sys_interval: Duration::ZERO, ..settings };
        let mqtt = MqttSettings { node: "n".into(), ..MqttSettings::default() };
        let broker = Broker::new(settings, mqtt);
        Self { broker, sent: BTreeMap::new(), versions: BTreeMap::new() }
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

    /// A client comes, with what it says besides in MQTT 5; `name` so that it may come again.
    fn connect(&mut self, client: u64, name: &str, version: Version, said: &[(Id, Value<'_>)]) {
        self.versions.insert(client, version);
        let (connection, protocol) = (ConnectionId(client), Protocol::Mqtt);
        self.input(Input::Connected { connection, protocol, certified: None });
        let mut properties = Properties::NONE;
        said.iter().for_each(|(id, value)| properties.push(*id, *value).unwrap());
        let connect = Connect {
            version,
            is_bridge: false,
            client_id: name.parse().unwrap(),
            clean_start: false,
            keep_alive_s: 0,
            username: None,
            password: None,
            will: None,
            properties,
        };
        self.send(client, &Packet::Connect(Box::new(connect)));
    }

    fn subscribe(&mut self, client: u64, qos: Qos) {
        let filters = vec![Filter { filter: "#".parse().unwrap(), options: Options::new(qos) }];
        self.send(client, &Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() }));
        self.sent.remove(&client);
    }

    fn publish(&mut self, client: u64, topic: &str, payload: &[u8], said: &[(Id, Value<'_>)]) {
        let payload = Bytes::copy_from_slice(payload);
        let mut publish = Publish::new(topic.parse().unwrap(), payload);
        said.iter().for_each(|(id, value)| publish.properties.push(*id, *value).unwrap());
        (publish.qos, publish.packet_id) = (Qos::AtLeastOnce, Some(1));
        self.send(client, &Packet::Publish(publish));
    }

    fn published(&mut self, client: u64) -> Vec<Publish> {
        let version = self.versions[&client];
        let input = self.sent.entry(client).or_default();
        let all = std::iter::from_fn(|| take(version, input, MAX_PACKET_BYTES).unwrap());
        let publish = |packet| match packet {
            Packet::Publish(publish) => Some(publish),
            _ => None,
        };
        all.filter_map(publish).collect()
    }

    fn last(&self) -> Publication {
        let query = ExplainQuery { id: None, origin: None, topic: None, last: 1 };
        self.broker.explain(&query).pop().unwrap()
    }
}

fn of<'a>(facts: &'a Publication, client: &str) -> &'a Receiver {
    facts.receivers.iter().find(|receiver| receiver.client == client).unwrap()
}

const JSON: Value<'_> = Value::Text("application/json");

#[test]
fn everybody_is_reported_with_the_packet_that_he_got() {
    let mut bench = Bench::new(Settings::default());
    bench.connect(1, "old", Version::V311, &[]);
    bench.connect(2, "new", Version::V5, &[]);
    bench.connect(3, "small", Version::V5, &[(Id::MAXIMUM_PACKET_SIZE, Value::Number(30))]);
    bench.connect(4, "same", Version::V311, &[]);
    for client in 1..=4 {
        bench.subscribe(client, Qos::AtLeastOnce);
    }
    bench.connect(9, "publisher", Version::V5, &[]);
    bench.publish(9, "unit/7", b"{\"lat\":59.9}", &[(Id::CONTENT_TYPE, JSON)]);
    let facts = bench.last();
    assert_eq!((&*facts.topic, facts.publisher.as_deref()), ("unit/7", Some("mqtt:publisher")));
    assert_eq!((facts.bytes, facts.content_type.as_deref()), (12, Some("application/json")));
    assert_eq!(facts.receivers.len(), 4);
    for (client, name, protocol) in
        [(1, "mqtt:old", "MQTT 3.1.1"), (2, "mqtt:new", "MQTT 5"), (4, "mqtt:same", "MQTT 3.1.1")]
    {
        let receiver = of(&facts, name);
        let sent = receiver.sent.as_ref().unwrap();
        assert_eq!(
            (receiver.progress, receiver.qos, &*sent.protocol),
            (Progress::Sent, 1, protocol)
        );
        assert_eq!(sent.message_bytes, Some(bench.sent[&client].len() as u64), "{name}");
        assert_eq!((sent.payload_bytes, &sent.to, &sent.form), (12, &None, &None));
    }
    let ended = of(&facts, "mqtt:small").ended.as_ref().unwrap();
    let bytes = bench.sent[&2].len();
    assert_eq!(ended.why, "too-large");
    assert_eq!(ended.detail, Some(format!("{bytes} bytes, the client takes 30")));
    bench.send(1, &Packet::PubAck(Ack::new(1, Reason::SUCCESS)));
    assert_eq!(of(&bench.last(), "mqtt:old").progress, Progress::Acknowledged);
}

#[test]
fn the_nodes_that_a_publication_passes_are_reported() {
    let mut bench = Bench::new(Settings::default());
    let node = |mark| (Id::USER_PROPERTY, Value::Pair("lw-node", mark));
    bench.connect(1, "from-a", Version::V5, &[node("a:10")]);
    bench.connect(2, "to-b", Version::V5, &[node("b:20")]);
    bench.subscribe(2, Qos::AtLeastOnce);
    let via = |list| (Id::USER_PROPERTY, Value::Pair("lw-via", list));
    bench.publish(1, "t", b"x", &[via(":ff")]);
    let facts = bench.last();
    assert_eq!(facts.hops, ["a:10.ff"]);
    assert_eq!(of(&facts, "mqtt:to-b").sent.as_ref().unwrap().hops, ["a:10.ff", "n"]);
    let origin = Some("a:10.ff".to_owned());
    let query = ExplainQuery { id: None, origin, topic: None, last: 9 };
    assert_eq!(bench.broker.explain(&query).len(), 1);
    bench.publish(1, "u", b"x", &[via("n:1.1,m")]);
    assert_eq!(bench.last().ended.unwrap().why, "loop");
    bench.publish(1, "v", b"x", &[via("b:20.1")]);
    let ended = of(&bench.last(), "mqtt:to-b").ended.clone().unwrap();
    assert_eq!(ended.why, "loop");
}

fn form(client: &str, form: PayloadForm) -> FormRule {
    let client = Some(client.to_owned());
    FormRule { filter: "#".to_owned(), protocol: None, user: None, client, form }
}

#[test]
fn each_gets_the_payload_in_his_form() {
    let forms = vec![
        form("cbor", PayloadForm::Cbor),
        form("cbor-too", PayloadForm::Cbor),
        form("exi", PayloadForm::Exi),
    ];
    let mut bench = Bench::new(Settings { forms, ..Settings::default() });
    let names = ["plain", "cbor", "cbor-too", "exi", "plain-too"];
    for (client, name) in (1..).zip(names) {
        bench.connect(client, name, Version::V5, &[]);
        bench.subscribe(client, Qos::AtLeastOnce);
    }
    bench.connect(9, "publisher", Version::V5, &[]);
    let json = b"{\"lat\":59.9,\"id\":7}";
    bench.publish(9, "unit/7", json, &[(Id::CONTENT_TYPE, JSON)]);
    for (client, name) in (1..).zip(names) {
        let got = bench.published(client).pop().unwrap();
        let content_type = got.properties.text(Id::CONTENT_TYPE).unwrap();
        match name {
            "cbor" | "cbor-too" => {
                assert_eq!(&got.payload[..], b"\xa2\x63lat\xc4\x82\x20\x19\x02\x57\x62id\x07");
                assert_eq!(content_type, "application/cbor");
            }
            _ => assert_eq!((&got.payload[..], content_type), (&json[..], "application/json")),
        }
    }
    let facts = bench.last();
    let sent = of(&facts, "mqtt:cbor").sent.clone().unwrap();
    assert_eq!((sent.form.as_deref(), sent.payload_bytes), (Some("cbor"), 15));
    assert_eq!(sent.content_type.as_deref(), Some("application/cbor"));
    let sent = of(&facts, "mqtt:exi").sent.clone().unwrap();
    assert_eq!((sent.form, sent.payload_bytes), (None, 19));
    assert_eq!(sent.unchanged.unwrap(), "what is written in json cannot be in exi");
    assert_eq!(of(&facts, "mqtt:plain").sent.as_ref().unwrap().unchanged, None);
}

#[test]
fn what_is_sent_again_is_sent_in_the_same_form() {
    let forms = vec![form("a", PayloadForm::Exi)];
    let mut bench = Bench::new(Settings { forms, ..Settings::default() });
    let kept = (Id::SESSION_EXPIRY_INTERVAL, Value::Number(60));
    bench.connect(1, "a", Version::V5, &[kept]);
    bench.subscribe(1, Qos::AtLeastOnce);
    bench.connect(9, "publisher", Version::V5, &[]);
    bench.publish(9, "t", b"<a x='1'>t</a>", &[]);
    let first = bench.published(1).pop().unwrap();
    assert_eq!(first.properties.text(Id::CONTENT_TYPE), Some("application/exi"));
    bench.input(Input::Lost { connection: ConnectionId(1) });
    bench.connect(2, "a", Version::V5, &[kept]);
    let second = bench.published(2).pop().unwrap();
    assert!(second.dup && !first.dup);
    assert_eq!((second.payload, second.properties), (first.payload, first.properties));
    assert_eq!(of(&bench.last(), "mqtt:a").times, 2);
}

#[test]
fn hostile_payloads_leave_as_they_came() {
    let forms = vec![form("xml", PayloadForm::Xml), form("json", PayloadForm::Json)];
    let mut bench = Bench::new(Settings { forms, ..Settings::default() });
    for (client, name) in [(1, "xml"), (2, "json")] {
        bench.connect(client, name, Version::V5, &[]);
        bench.subscribe(client, Qos::AtLeastOnce);
    }
    bench.connect(9, "publisher", Version::V5, &[]);
    let deep = [vec![0x81; 60_000], vec![0]].concat();
    for (payload, content_type) in [
        (&deep[..], "application/cbor"),
        (b"\x9f\x9f", "application/cbor"),
        (b"\xff\xff\xff", "application/exi"),
        (b"\xa0\x00", "application/exi"),
        (b"\x82\x01", "application/x.longwire.xml+cbor"),
    ] {
        bench.publish(9, "t", payload, &[(Id::CONTENT_TYPE, Value::Text(content_type))]);
        for client in [1, 2] {
            let got = bench.published(client).pop().unwrap();
            assert_eq!(got.payload, payload, "{content_type}");
            assert_eq!(got.properties.text(Id::CONTENT_TYPE), Some(content_type));
            bench.send(client, &Packet::PubAck(Ack::new(got.packet_id.unwrap(), Reason::SUCCESS)));
        }
        assert!(of(&bench.last(), "mqtt:xml").sent.as_ref().unwrap().unchanged.is_some());
    }
}
