//! Clients of MQTT with a store that takes its time.

use std::time::Duration;

use bytes::BytesMut;
use proto::mqtt::{
    Connect, Filter, Id, Options, Packet, Properties, Publish, Qos, Reason, Subscribe, Value,
    Version, encode, take,
};

use crate::broker::{Broker, Input};
use crate::ids::{ConnectionId, Protocol, Ticket};
use crate::mqtt;
use crate::outputs::Output;
use crate::settings::Settings;

const NOW: Duration = Duration::from_secs(1000);

/// A broker whose store writes when it is told to.
struct Node {
    broker: Broker,
    writing: Vec<Ticket>,
}

impl Node {
    fn new() -> Self {
        let settings =
            Settings { sys_interval: Duration::ZERO, durable: true, ..Settings::default() };
        Self { broker: Broker::new(settings, mqtt::Settings::default()), writing: Vec::new() }
    }

    /// A client comes, and says this; what it hears.
    fn says(&mut self, client: u64, packets: &[Packet]) -> Vec<Packet> {
        let connection = ConnectionId(client);
        if matches!(packets, [Packet::Connect(_), ..]) {
            let (protocol, certified) = (Protocol::Mqtt, Some("ann".into()));
            self.does(Input::Connected { connection, protocol, certified });
        }
        let mut bytes = Vec::new();
        for packet in packets {
            encode(packet, Version::V5, &mut bytes).unwrap();
        }
        self.does(Input::Received { connection, bytes: BytesMut::from(&bytes[..]) })
    }

    /// The packets to the clients.
    fn does(&mut self, input: Input) -> Vec<Packet> {
        self.broker.handle_input(NOW, input);
        let mut came = BytesMut::new();
        while let Some(output) = self.broker.poll_output() {
            match output {
                Output::Transmit { bytes, .. } => came.extend_from_slice(&bytes),
                Output::Persist { ticket, .. } => self.writing.push(ticket),
                _ => {}
            }
        }
        std::iter::from_fn(|| take(Version::V5, &mut came, 1 << 20).unwrap()).collect()
    }

    /// The store has written all, and what comes of that; what the clients hear.
    fn commit(&mut self) -> Vec<Packet> {
        let mut heard = Vec::new();
        while let Some(ticket) = self.writing.pop() {
            heard.extend(self.does(Input::Persisted { ticket }));
        }
        heard
    }
}

fn connect(client: &str, expiry_s: u32) -> Packet {
    let mut properties = Properties::NONE;
    properties.push(Id::SESSION_EXPIRY_INTERVAL, Value::Number(expiry_s)).unwrap();
    Packet::Connect(Box::new(Connect {
        version: Version::V5,
        is_bridge: false,
        client_id: client.parse().unwrap(),
        clean_start: false,
        keep_alive_s: 60,
        username: None,
        password: None,
        will: None,
        properties,
    }))
}

fn subscribe() -> Packet {
    let filters =
        vec![Filter { filter: "t".parse().unwrap(), options: Options::new(Qos::AtLeastOnce) }];
    Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() })
}

#[test]
fn a_session_is_granted_when_the_store_has_it() {
    let mut node = Node::new();
    // Nothing comes before the CONNACK, and what was asked before it is answered behind.
    let said = [connect("reader", 3600), Packet::PingReq, subscribe()];
    assert_eq!(node.says(1, &said), []);
    let heard = node.commit();
    let [Packet::ConnAck(granted), Packet::PingResp, Packet::SubAck(_)] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert_eq!((granted.reason, granted.session_present), (Reason::SUCCESS, false));
    // One that ends with its connection has nothing to wait for.
    let heard = node.says(2, &[connect("writer", 0)]);
    assert!(matches!(&heard[..], [Packet::ConnAck(_)]), "{heard:?}");
}

#[test]
fn what_waits_for_a_session_comes_behind_its_connack() {
    let mut node = Node::new();
    node.says(1, &[connect("reader", 3600), subscribe()]);
    node.commit();
    node.does(Input::Lost { connection: ConnectionId(1) });
    node.says(2, &[connect("writer", 0)]);
    let mut publish = Publish::new("t".parse().unwrap(), "x".into());
    (publish.qos, publish.packet_id) = (Qos::AtLeastOnce, Some(7));
    node.says(2, &[Packet::Publish(publish)]);
    node.commit();
    let mut heard = node.says(3, &[connect("reader", 3600)]);
    heard.extend(node.commit());
    let [Packet::ConnAck(granted), Packet::Publish(came)] = &heard[..] else {
        panic!("{heard:?}");
    };
    assert!(granted.session_present && came.payload == "x", "{heard:?}");
}

#[test]
fn whoever_is_displaced_before_its_connack_hears_nothing() {
    let mut node = Node::new();
    assert_eq!(node.says(1, &[connect("reader", 3600)]), []);
    assert_eq!(node.says(2, &[connect("reader", 3600)]), []);
    let heard = node.commit();
    assert!(matches!(&heard[..], [Packet::ConnAck(_)]), "{heard:?}");
}
