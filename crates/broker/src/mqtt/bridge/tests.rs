//! Brokers with bridges among them, without a link that fails.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::BytesMut;
use proto::mqtt::{
    ConnAck, Connect, Filter, Id, Options, Packet, Properties, Publish, Reason, SubAck, Subscribe,
    Value, Version, encode, take,
};

use super::{Bridge, Route, VIA};
use crate::broker::{Broker, Input};
use crate::core::{Next, Opening};
use crate::event::{Drop, Event};
use crate::ids::{ClientKey, ConnectionId, Protocol, SessionId};
use crate::mqtt;
use crate::outputs::Output;
use crate::publication::{Grade, Publication};
use crate::session::Subscription;
use crate::settings::Settings;

/// Rounds after which a publication that goes in circles has shown it.
const MAX_ROUNDS: usize = 200;

fn both(filter: &str) -> Route {
    Route {
        filter: filter.to_owned(),
        comes: true,
        goes: true,
        max_grade: Grade::ExactlyOnce,
        local: String::new(),
        remote: String::new(),
    }
}

fn bridge(name: &str, routes: Vec<Route>) -> Bridge {
    Bridge {
        name: name.into(),
        version: Version::V5,
        client_id: name.to_owned(),
        user: None,
        password: None,
        keep_alive: Duration::from_secs(60),
        expiry: Duration::from_secs(3600),
        max_inflight: 20,
        batch: Duration::ZERO,
        compress: false,
        routes,
    }
}

/// Brokers; the bridge of each goes to the next that it names.
struct Net {
    now: Duration,
    nodes: Vec<Broker>,
    /// To which node a node's bridge goes.
    targets: Vec<usize>,
    /// Connections by node and number, and where their other end is.
    ends: BTreeMap<(usize, u64), (usize, u64)>,
    dials: VecDeque<usize>,
    /// Pieces of bytes that crossed, and how many bytes.
    crossed: usize,
    bytes: usize,
    last: u64,
    events: Vec<(usize, Event)>,
}

impl Net {
    fn new(bridges: Vec<(Option<Bridge>, usize)>) -> Self {
        let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
        let node = |(at, (bridge, _)): (usize, &(Option<Bridge>, usize))| {
            let mqtt = mqtt::Settings {
                node: format!("n{at}").into(),
                bridges: bridge.clone().into_iter().collect(),
                ..mqtt::Settings::default()
            };
            Broker::new(settings.clone(), mqtt)
        };
        let mut net = Self {
            now: Duration::from_secs(1000),
            nodes: bridges.iter().enumerate().map(node).collect(),
            targets: bridges.iter().map(|(_, target)| *target).collect(),
            ends: BTreeMap::new(),
            dials: VecDeque::new(),
            crossed: 0,
            bytes: 0,
            last: 0,
            events: Vec::new(),
        };
        net.wake();
        net
    }

    fn wake(&mut self) {
        for at in 0..self.nodes.len() {
            self.input(at, Input::Wake);
        }
        self.settle();
    }

    fn later(&mut self, time: Duration) {
        self.now += time;
        self.wake();
    }

    fn input(&mut self, at: usize, input: Input) {
        self.nodes[at].handle_input(self.now, input);
    }

    /// Until nothing is to be done any more.
    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let mut is_quiet = true;
            for at in 0..self.nodes.len() {
                while let Some(output) = self.nodes[at].poll_output() {
                    is_quiet &= matches!(output, Output::WakeAt(_) | Output::Event(_));
                    self.act(at, output);
                }
            }
            if is_quiet {
                return;
            }
        }
        panic!("it goes on for ever");
    }

    fn act(&mut self, at: usize, output: Output) {
        match output {
            Output::Transmit { connection, bytes } => {
                self.crossed += 1;
                self.bytes += bytes.len();
                self.input(at, Input::Sent { connection, bytes: bytes.len() });
                if let Some((other, number)) = self.ends.get(&(at, connection.0)).copied() {
                    let bytes = BytesMut::from(&bytes[..]);
                    let connection = ConnectionId(number);
                    self.input(other, Input::Received { connection, bytes });
                }
            }
            Output::Dial { .. } => self.dials.push_back(at),
            Output::Login(login) => {
                self.input(at, Input::Known { connection: login.connection, user: Ok(None) });
            }
            Output::Persist { ticket, .. } => self.input(at, Input::Persisted { ticket }),
            Output::Event(event) => self.events.push((at, event)),
            _ => {}
        }
    }

    /// The connections that are wanted are made.
    fn connect(&mut self) {
        while let Some(at) = self.dials.pop_front() {
            let to = self.targets[at];
            self.last += 2;
            let (near, far) = (self.last - 1, self.last);
            self.ends.insert((at, near), (to, far));
            self.ends.insert((to, far), (at, near));
            let (connection, protocol) = (ConnectionId(far), Protocol::Mqtt);
            self.input(to, Input::Connected { connection, protocol, certified: None });
            self.input(at, Input::Dialled { bridge: 0, result: Ok(ConnectionId(near)) });
            self.settle();
        }
    }

    fn cut(&mut self) {
        for (at, number) in std::mem::take(&mut self.ends).into_keys() {
            self.input(at, Input::Lost { connection: ConnectionId(number) });
        }
        self.settle();
    }

    /// A client of a node, with a user.
    fn log_in(&mut self, at: usize, user: &str) -> SessionId {
        self.last += 1;
        let opening = Opening {
            client: ClientKey { protocol: Protocol::Amqp, name: user.into() },
            connection: ConnectionId(self.last),
            user: Some(user.into()),
            clean: false,
            expiry: Duration::from_secs(60),
            window: 1000,
            will: None,
        };
        self.nodes[at].core_mut().open(self.now, opening).unwrap().session
    }

    /// How many bytes cross all bridges when a client says something.
    fn says(&mut self, at: usize, publisher: SessionId, topic: &str, payload: &str) -> usize {
        let before = self.bytes;
        let mut publication = said(topic, payload, Grade::AtMostOnce, false);
        publication.publisher = Some(publisher);
        self.publish(at, publication);
        self.bytes - before
    }

    /// A client of a node that has subscribed.
    fn join(&mut self, at: usize, filter: &str) -> SessionId {
        self.last += 1;
        let opening = Opening {
            client: ClientKey {
                protocol: Protocol::Broker,
                name: format!("c{}", self.last).into(),
            },
            connection: ConnectionId(self.last),
            user: None,
            clean: false,
            expiry: Duration::from_secs(60),
            window: 1000,
            will: None,
        };
        let core = self.nodes[at].core_mut();
        let session = core.open(self.now, opening).unwrap().session;
        let wanted =
            Subscription { as_published: true, ..Subscription::new(filter, Grade::AtMostOnce) };
        core.subscribe(self.now, session, wanted).unwrap();
        session
    }

    fn came(&mut self, at: usize, session: SessionId) -> Vec<(String, bool)> {
        let (now, core) = (self.now, self.nodes[at].core_mut());
        let mut all = Vec::new();
        while let Some(Next::Publish(delivery)) = core.take(now, session) {
            let payload = String::from_utf8(delivery.publication.payload.to_vec()).unwrap();
            all.push((payload, delivery.retain));
        }
        all
    }

    fn publish(&mut self, at: usize, publication: Publication) {
        self.nodes[at].core_mut().publish(self.now, publication).unwrap();
        self.input(at, Input::Wake);
        self.settle();
    }
}

fn said(topic: &str, payload: &str, grade: Grade, retain: bool) -> Publication {
    let mut publication = Publication::new(Protocol::Mqtt, topic, payload.to_owned());
    (publication.grade, publication.retain) = (grade, retain);
    publication
}

/// Each node of a ring is bridged to the next, all topics both ways.
fn ring(nodes: usize) -> Net {
    let name = |at| Some(bridge(&format!("b{at}"), vec![both("#")]));
    let mut net = Net::new((0..nodes).map(|at| (name(at), (at + 1) % nodes)).collect());
    net.connect();
    net
}

#[test]
fn in_a_ring_each_message_is_once_at_each_node() {
    for nodes in [2, 3, 5] {
        let mut net = ring(nodes);
        let probes: Vec<SessionId> = (0..nodes).map(|at| net.join(at, "#")).collect();
        net.publish(0, said("a/b", "x", Grade::AtLeastOnce, false));
        for (at, probe) in probes.into_iter().enumerate() {
            let came = net.came(at, probe);
            assert_eq!(came.len(), 1, "{nodes} nodes, at {at}: {came:?}");
        }
    }
}

#[test]
fn before_mqtt_5_nothing_comes_back_either() {
    let old = Bridge { version: Version::V311, ..bridge("b", vec![both("#")]) };
    let mut net = Net::new(vec![(Some(old), 1), (None, 0)]);
    net.connect();
    let (here, there) = (net.join(0, "#"), net.join(1, "#"));
    assert_eq!((net.came(0, here).len(), net.came(1, there).len()), (0, 0));
    net.publish(0, said("a", "north", Grade::AtLeastOnce, true));
    net.publish(1, said("b", "south", Grade::AtLeastOnce, true));
    for (at, probe) in [(0, here), (1, there)] {
        let came = net.came(at, probe);
        assert_eq!(came, [("north".to_owned(), true), ("south".to_owned(), true)], "at {at}");
    }
}

/// Three nodes in a row, whose bridges are compressed or not.
fn row(compress: bool) -> Net {
    let to = |name: &str| Some(Bridge { compress, ..bridge(name, vec![both("#")]) });
    let mut net = Net::new(vec![(to("b0"), 1), (to("b1"), 2), (None, 0)]);
    net.connect();
    net
}

fn report(track: usize, step: usize) -> String {
    let (lat, lon) = (59_913_000 + track * 371 + step * 13, 10_752_000 + track * 211 + step * 7);
    format!("{{\"track\":\"{track:03}\",\"lat\":{lat},\"lon\":{lon},\"speed\":{}}}", step % 17)
}

#[test]
fn a_compressed_bridge_carries_the_same_in_fewer_bytes() {
    let mut taken = Vec::new();
    for compress in [false, true] {
        let mut net = row(compress);
        let probe = net.join(2, "#");
        let client = net.log_in(0, "ann");
        let (mut wanted, mut bytes) = (Vec::new(), 0);
        for step in 0..100 {
            let payload = report(step % 10, step);
            bytes += net.says(0, client, "unit/track", &payload);
            wanted.push((payload, false));
        }
        assert_eq!(net.came(2, probe), wanted, "compressed: {compress}");
        taken.push(bytes);
        // Contexts begin anew with a connection.
        net.cut();
        net.later(Duration::from_secs(60));
        net.connect();
        net.says(0, client, "unit/track", "again");
        assert_eq!(net.came(2, probe), [("again".to_owned(), false)]);
        let back = net.join(0, "#");
        net.publish(2, said("order", "south", Grade::ExactlyOnce, false));
        assert_eq!(net.came(0, back), [("south".to_owned(), false)], "compressed: {compress}");
        let refused = net.events.iter().any(|(_, event)| matches!(event, Event::Refused { .. }));
        assert!(!refused);
    }
    assert!(taken[1] * 2 < taken[0], "{taken:?}");
}

#[test]
fn lengths_over_a_row_of_bridges_tell_nothing_of_other_users() {
    let secret = "the patrol leaves at 0430 by the northern road";
    let other = "XQmKzWvYpLrTnBsGfHdJcRaEuIoOiUeAqSwDxFzCkVgBhN";
    let length = |of_ann: &str, topic: &str| {
        let mut net = row(true);
        let (ann, bob) = (net.log_in(0, "ann"), net.log_in(0, "bob"));
        net.says(0, bob, "unit/track", "to begin with");
        net.says(0, ann, topic, of_ann);
        (net.says(0, bob, "ops/north", secret), net.says(0, ann, "ops/north", secret))
    };
    let (alike, different) = (length(secret, "ops/north"), length(other, "zZ/17/kLm"));
    assert_eq!(alike.0, different.0, "what bob sends is as long whatever ann has said");
    assert!(alike.1 + 40 < different.1, "ann's own words shorten hers: {alike:?} {different:?}");
}

/// A node whose bridge goes to a peer that the test plays.
struct Played {
    node: Broker,
    now: Duration,
    connection: ConnectionId,
}

impl Played {
    fn new(bridge: Bridge) -> Self {
        let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
        let mqtt = mqtt::Settings { bridges: vec![bridge], ..mqtt::Settings::default() };
        let node = Broker::new(settings, mqtt);
        Self { node, now: Duration::from_secs(1000), connection: ConnectionId(0) }
    }

    /// What it sends until it has nothing more to do.
    fn sent(&mut self) -> Vec<Packet> {
        let mut came = BytesMut::new();
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Transmit { connection, bytes } if connection == self.connection => {
                    came.extend_from_slice(&bytes);
                    let bytes = bytes.len();
                    self.node.handle_input(self.now, Input::Sent { connection, bytes });
                }
                Output::Persist { ticket, .. } => {
                    self.node.handle_input(self.now, Input::Persisted { ticket });
                }
                _ => {}
            }
        }
        let take = || take(Version::V5, &mut came, usize::MAX).unwrap();
        std::iter::from_fn(take).collect()
    }

    /// Connects it once it wants that, and answers; what it sends then.
    fn connect(&mut self, session_present: bool, receive_maximum: u32) -> Vec<Packet> {
        self.later(Duration::from_secs(60));
        self.connection = ConnectionId(self.connection.0 + 1);
        let result = Ok(self.connection);
        self.node.handle_input(self.now, Input::Dialled { bridge: 0, result });
        assert!(matches!(&self.sent()[..], [Packet::Connect(_)]));
        let mut properties = Properties::NONE;
        let maximum = Value::Number(receive_maximum);
        properties.push(Id::RECEIVE_MAXIMUM, maximum).unwrap();
        self.say(&Packet::ConnAck(ConnAck { session_present, properties, ..ConnAck::default() }))
    }

    fn say(&mut self, packet: &Packet) -> Vec<Packet> {
        let mut bytes = Vec::new();
        encode(packet, Version::V5, &mut bytes).unwrap();
        let (connection, bytes) = (self.connection, BytesMut::from(&bytes[..]));
        self.node.handle_input(self.now, Input::Received { connection, bytes });
        self.sent()
    }

    fn later(&mut self, time: Duration) -> Vec<Packet> {
        self.now += time;
        self.node.handle_input(self.now, Input::Wake);
        self.sent()
    }

    fn cut(&mut self) {
        self.node.handle_input(self.now, Input::Lost { connection: self.connection });
        self.sent();
    }
}

fn is_subscribe(packet: &Packet) -> bool {
    matches!(packet, Packet::Subscribe(_))
}

#[test]
fn a_subscription_that_may_not_have_arrived_is_made_again() {
    let mut played = Played::new(bridge("b", vec![both("#")]));
    assert!(played.connect(false, 100).iter().any(is_subscribe));
    played.cut();
    let sent = played.connect(true, 100);
    let Some(Packet::Subscribe(subscribe)) = sent.into_iter().find(is_subscribe) else {
        panic!("nobody knows whether the first arrived");
    };
    let reasons = vec![Reason::SUCCESS];
    played.say(&Packet::SubAck(SubAck { id: subscribe.id, reasons, ..SubAck::default() }));
    played.cut();
    assert!(!played.connect(true, 100).iter().any(is_subscribe), "the other broker has it");
}

/// The topics of what was published.
fn topics(packets: Vec<Packet>) -> Vec<String> {
    let topic = |packet| match packet {
        Packet::Publish(publish) => Some(publish.topic.as_str().to_owned()),
        _ => None,
    };
    packets.into_iter().filter_map(topic).collect()
}

/// A node that has the state of ten topics, and their names.
fn with_state() -> (Played, Vec<String>) {
    let mut played = Played::new(bridge("b", vec![both("#")]));
    let names: Vec<String> = (0..10).map(|number| format!("state/{number}")).collect();
    for name in &names {
        let publication = said(name, "on", Grade::AtLeastOnce, true);
        played.node.core_mut().publish(played.now, publication).unwrap();
    }
    (played, names)
}

#[test]
fn the_state_leaves_to_its_end_though_the_connection_breaks() {
    let (mut played, names) = with_state();
    let first = topics(played.connect(false, 1));
    assert_eq!(first, names[..1]);
    played.cut();
    assert_eq!(topics(played.connect(true, 100)), names, "the first is not acknowledged");
}

#[test]
fn what_is_sent_again_keeps_to_the_window_of_the_new_connection() {
    let (mut played, names) = with_state();
    assert_eq!(topics(played.connect(false, 100)), names);
    played.cut();
    assert_eq!(topics(played.connect(true, 1)), names[..1]);
}

#[test]
fn signs_of_life_are_sent_though_others_are_heard_and_wait_for_no_batch() {
    let batch = Duration::from_secs(60);
    let mut played = Played::new(Bridge { batch, ..bridge("b", vec![both("#")]) });
    played.connect(false, 100);
    played.later(batch);
    let (mut last, mut longest) = (played.now, Duration::ZERO);
    let publish = Packet::Publish(Publish::new("t".parse().unwrap(), "x".into()));
    for _ in 0..600 {
        let mut sent = played.later(Duration::from_secs(1));
        sent.extend(played.say(&publish));
        if !sent.is_empty() {
            longest = longest.max(played.now - last);
            last = played.now;
        }
        if sent.contains(&Packet::PingReq) {
            played.say(&Packet::PingResp);
        }
    }
    assert!(longest <= Duration::from_secs(60), "{longest:?} without a packet");
}

/// What a client of MQTT 5 gets for its packets.
fn answers(node: &mut Broker, now: Duration, client: u64, packets: &[Packet]) -> Vec<Packet> {
    let connection = ConnectionId(client);
    for packet in packets {
        let mut bytes = Vec::new();
        encode(packet, Version::V5, &mut bytes).unwrap();
        node.handle_input(now, Input::Received { connection, bytes: BytesMut::from(&bytes[..]) });
    }
    let mut came = BytesMut::new();
    while let Some(output) = node.poll_output() {
        match output {
            Output::Transmit { connection: ConnectionId(to), bytes } if to == client => {
                came.extend_from_slice(&bytes);
            }
            Output::Login(login) => {
                node.handle_input(
                    now,
                    Input::Known { connection: login.connection, user: Ok(None) },
                );
            }
            Output::Persist { ticket, .. } => node.handle_input(now, Input::Persisted { ticket }),
            _ => {}
        }
    }
    let take = || take(Version::V5, &mut came, usize::MAX).unwrap();
    std::iter::from_fn(take).collect()
}

/// A client's CONNECT.
fn hello(client: &str, properties: Properties) -> Packet {
    Packet::Connect(Box::new(Connect {
        version: Version::V5,
        is_bridge: false,
        client_id: client.parse().unwrap(),
        clean_start: true,
        keep_alive_s: 0,
        username: None,
        password: None,
        will: None,
        properties,
    }))
}

#[test]
fn who_may_be_no_bridge_is_not_let_in_as_one() {
    for (bridge_users, may) in [(None, true), (Some(["hq".to_owned()].into()), false)] {
        let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
        let mqtt = mqtt::Settings { bridge_users, ..mqtt::Settings::default() };
        let mut node = Broker::new(settings, mqtt);
        let (now, connection) = (Duration::from_secs(1000), ConnectionId(1));
        let protocol = Protocol::Mqtt;
        node.handle_input(now, Input::Connected { connection, protocol, certified: None });
        let mut properties = Properties::NONE;
        properties.push(Id::USER_PROPERTY, Value::Pair("lw-node", "a:10")).unwrap();
        let mut came = answers(&mut node, now, 1, &[hello("mallory", properties)]);
        came.extend(answers(&mut node, now, 1, &[]));
        let [Packet::ConnAck(answer)] = &came[..] else { panic!("{came:?}") };
        let wanted = if may { Reason::SUCCESS } else { Reason::NOT_AUTHORIZED };
        assert_eq!(answer.reason, wanted);
    }
}

#[test]
fn one_user_does_not_take_all_places_of_those_that_are_compressed() {
    let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
    let mut node = Broker::new(settings, mqtt::Settings::default());
    let now = Duration::from_secs(1000);
    let granted = (1..40).filter(|client| {
        let (connection, protocol) = (ConnectionId(*client), Protocol::Mqtt);
        node.handle_input(now, Input::Connected { connection, protocol, certified: None });
        let mut properties = Properties::NONE;
        for (name, value) in [("lw-node", "a:10"), ("lw-coding", "deflate-runs")] {
            properties.push(Id::USER_PROPERTY, Value::Pair(name, value)).unwrap();
        }
        let hello = hello(&format!("m{client}"), properties);
        let mut came = answers(&mut node, now, *client, &[hello]);
        came.extend(answers(&mut node, now, *client, &[]));
        let Some(Packet::ConnAck(answer)) = came.first() else { panic!("{came:?}") };
        answer.properties.user().any(|(name, _)| name == "lw-coding")
    });
    assert_eq!(granted.count(), 16);
}

#[test]
fn what_comes_back_over_the_bridge_of_another_make_goes_no_further() {
    let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
    let mut node = Broker::new(settings, mqtt::Settings::default());
    let now = Duration::from_secs(1000);
    let connect = |client: &str| hello(client, Properties::NONE);
    let subscribe = |options| {
        let filters = vec![Filter { filter: "#".parse().unwrap(), options }];
        Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() })
    };
    // As Mosquitto's bridge subscribes.
    let options = Options { no_local: true, retain_as_published: true, ..Options::default() };
    for client in [1, 2] {
        let (connection, protocol) = (ConnectionId(client), Protocol::Mqtt);
        node.handle_input(now, Input::Connected { connection, protocol, certified: None });
    }
    answers(&mut node, now, 1, &[connect("bridge"), subscribe(options)]);
    answers(&mut node, now, 2, &[connect("client"), subscribe(Options::default())]);
    let publish = Publish::new("t".parse().unwrap(), "x".into());
    let connection = ConnectionId(2);
    let mut bytes = Vec::new();
    encode(&Packet::Publish(publish), Version::V5, &mut bytes).unwrap();
    node.handle_input(now, Input::Received { connection, bytes: BytesMut::from(&bytes[..]) });
    let came = answers(&mut node, now, 1, &[]);
    let [Packet::Publish(publish)] = &came[..] else { panic!("{came:?}") };
    let via: Vec<_> = publish.properties.user().filter(|(name, _)| *name == VIA).collect();
    assert_eq!(via.len(), 1, "{publish:?}");
    // The other broker hands it to its other bridge.
    answers(&mut node, now, 1, &[Packet::Publish(publish.clone())]);
    assert_eq!(answers(&mut node, now, 2, &[]), []);
    // A client's own says nothing.
    let mut forged = Publish::new("t".parse().unwrap(), "z".into());
    forged.properties.push(Id::USER_PROPERTY, Value::Pair(VIA, "node:1.2")).unwrap();
    let mut bytes = Vec::new();
    encode(&Packet::Publish(forged), Version::V5, &mut bytes).unwrap();
    let bytes = BytesMut::from(&bytes[..]);
    node.handle_input(now, Input::Received { connection: ConnectionId(2), bytes });
    let came = answers(&mut node, now, 1, &[]);
    let [Packet::Publish(publish)] = &came[..] else { panic!("{came:?}") };
    let mut via = publish.properties.user().filter(|(name, _)| *name == VIA);
    assert_ne!(via.next(), Some((VIA, "node:1.2")));
    assert_eq!(via.next(), None);
    // What that broker's clients publish comes.
    let other = Publish::new("u".parse().unwrap(), "y".into());
    let mut both = Vec::new();
    encode(&Packet::Publish(other), Version::V5, &mut both).unwrap();
    let bytes = BytesMut::from(&both[..]);
    node.handle_input(now, Input::Received { connection: ConnectionId(1), bytes });
    let came = answers(&mut node, now, 2, &[]);
    assert!(matches!(&came[..], [Packet::Publish(it)] if it.topic.as_str() == "u"), "{came:?}");
}

#[test]
fn a_client_that_is_no_bridge_is_not_believed_where_it_subscribes_as_one() {
    let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
    let users = std::collections::BTreeSet::from(["ship".to_owned()]);
    let mut node = Broker::new(
        settings,
        mqtt::Settings { bridge_users: Some(users), ..mqtt::Settings::default() },
    );
    let now = Duration::from_secs(1000);
    let options = Options { no_local: true, retain_as_published: true, ..Options::default() };
    let filters = vec![Filter { filter: "#".parse().unwrap(), options }];
    let subscribe = Packet::Subscribe(Subscribe { id: 1, filters, ..Subscribe::default() });
    let protocol = Protocol::Mqtt;
    for (client, user) in [(1, "ann"), (2, "ship"), (3, "ship")] {
        let (connection, certified) = (ConnectionId(client), Some(user.into()));
        node.handle_input(now, Input::Connected { connection, protocol, certified });
        let name = format!("c{client}");
        let hello = hello(&name, Properties::NONE);
        answers(&mut node, now, client, &[hello, subscribe.clone()]);
    }
    let mut said = |from: u64, via: &str| -> Vec<String> {
        let mut publish = Publish::new("t".parse().unwrap(), "z".into());
        publish.properties.push(Id::USER_PROPERTY, Value::Pair(VIA, via)).unwrap();
        let (connection, mut bytes) = (ConnectionId(from), Vec::new());
        encode(&Packet::Publish(publish), Version::V5, &mut bytes).unwrap();
        node.handle_input(now, Input::Received { connection, bytes: BytesMut::from(&bytes[..]) });
        let came = answers(&mut node, now, 3, &[]);
        let vias = came.iter().flat_map(|packet| match packet {
            Packet::Publish(publish) => publish.properties.user().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        });
        vias.filter(|(name, _)| *name == VIA).map(|(_, via)| via.to_owned()).collect()
    };
    // Where it came in, ann cannot say; that it has been here, anybody can.
    let own = said(1, "other:1.2");
    assert!(matches!(&own[..], [via] if via.starts_with("node:")), "{own:?}");
    assert!(said(1, "node:1.2").is_empty());
    assert_eq!(said(2, "other:1.2"), ["other:1.2,node"]);
}

/// The level in the CONNECT of a bridge whose connection is made.
fn level(node: &mut Broker, now: Duration, connection: ConnectionId) -> u8 {
    node.handle_input(now, Input::Wake);
    let outputs: Vec<Output> = std::iter::from_fn(|| node.poll_output()).collect();
    assert!(outputs.iter().any(|output| matches!(output, Output::Dial { .. })), "{outputs:?}");
    node.handle_input(now, Input::Dialled { bridge: 0, result: Ok(connection) });
    let sent = std::iter::from_fn(|| node.poll_output()).find_map(|output| match output {
        Output::Transmit { bytes, .. } => Some(bytes),
        _ => None,
    });
    // The first octet, the length, the name of the protocol with its length.
    sent.expect("a CONNECT")[8]
}

#[test]
fn a_peer_that_knows_no_bridges_is_connected_to_as_by_others() {
    let old = Bridge { version: Version::V311, ..bridge("b", vec![both("#")]) };
    let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
    let mqtt = mqtt::Settings { bridges: vec![old], ..mqtt::Settings::default() };
    // It says so, or only closes the connection.
    for answer in [Some(b"\x20\x02\x00\x01"), None] {
        let mut node = Broker::new(settings.clone(), mqtt.clone());
        let now = Duration::from_secs(1000);
        let (first, second) = (ConnectionId(1), ConnectionId(2));
        assert_eq!(level(&mut node, now, first), 0x84);
        if let Some(answer) = answer {
            let bytes = BytesMut::from(&answer[..]);
            node.handle_input(now, Input::Received { connection: first, bytes });
        }
        node.handle_input(now, Input::Lost { connection: first });
        assert_eq!(level(&mut node, now + Duration::from_secs(60), second), 4);
    }
}

#[test]
fn topics_cross_under_the_names_of_the_other_side() {
    let route = Route { local: "unit/".into(), remote: "nato/nor/".into(), ..both("+/track") };
    let mut net = Net::new(vec![(Some(bridge("b", vec![route])), 1), (None, 0)]);
    net.connect();
    let (here, there) = (net.join(0, "unit/#"), net.join(1, "nato/#"));
    net.publish(0, said("unit/7/track", "north", Grade::ExactlyOnce, false));
    net.publish(0, said("unit/7/other", "no route", Grade::ExactlyOnce, false));
    assert_eq!(net.came(1, there), [("north".to_owned(), false)]);
    assert_eq!(net.came(0, here).len(), 2, "and not back again");
    net.publish(1, said("nato/nor/8/track", "south", Grade::AtMostOnce, false));
    assert_eq!(net.came(0, here), [("south".to_owned(), false)]);
}

#[test]
fn what_is_retained_is_so_at_the_other_side_and_its_end_too() {
    let mut net = Net::new(vec![(Some(bridge("b", vec![both("#")])), 1), (None, 0)]);
    net.publish(0, said("before", "1", Grade::AtMostOnce, true));
    net.connect();
    assert!(net.nodes[1].core().retained_at(net.now, "before").is_some());
    let probe = net.join(1, "#");
    assert_eq!(net.came(1, probe), [("1".to_owned(), true)]);
    net.publish(0, said("state", "on", Grade::AtMostOnce, true));
    assert_eq!(net.came(1, probe), [("on".to_owned(), true)]);
    net.cut();
    // The end of a state, of grade 0, while there is no connection; and many of another.
    net.publish(0, said("state", "", Grade::AtMostOnce, true));
    for number in 0..100 {
        net.publish(0, said("before", &number.to_string(), Grade::AtLeastOnce, true));
    }
    net.later(Duration::from_secs(60));
    net.connect();
    assert!(net.nodes[1].core().retained_at(net.now, "state").is_none());
    let came = net.came(1, probe);
    assert_eq!(came, [(String::new(), true), ("99".to_owned(), true)], "a state leaves once");
}

#[test]
fn a_peer_that_has_lost_its_session_gets_the_state_again() {
    let mut net = Net::new(vec![(Some(bridge("b", vec![both("#")])), 1), (None, 0)]);
    net.connect();
    net.publish(0, said("state", "on", Grade::AtLeastOnce, true));
    net.cut();
    let settings = Settings { sys_interval: Duration::ZERO, ..Settings::default() };
    net.nodes[1] = Broker::new(settings, mqtt::Settings::default());
    net.later(Duration::from_secs(60));
    net.connect();
    assert!(net.nodes[1].core().retained_at(net.now, "state").is_some());
    net.publish(1, said("from/there", "x", Grade::AtLeastOnce, true));
    assert!(net.nodes[0].core().retained_at(net.now, "from/there").is_some(), "subscribed again");
}

#[test]
fn what_waits_for_more_leaves_together_and_what_is_urgent_at_once() {
    let batch = Duration::from_secs(2);
    let with = Bridge { batch, ..bridge("b", vec![both("#")]) };
    let mut net = Net::new(vec![(Some(with), 1), (None, 0)]);
    net.connect();
    net.later(batch);
    let probe = net.join(1, "#");
    let before = net.crossed;
    for number in 0..10 {
        net.publish(0, said("t", &number.to_string(), Grade::AtMostOnce, false));
    }
    assert_eq!(net.crossed, before);
    net.later(batch);
    assert_eq!((net.crossed, net.came(1, probe).len()), (before + 1, 10));
    let mut urgent = said("t", "urgent", Grade::AtMostOnce, false);
    urgent.urgency = proto::urgency::Urgency::FIRST;
    net.publish(0, said("t", "routine", Grade::AtMostOnce, false));
    net.publish(0, urgent);
    assert_eq!(net.came(1, probe).len(), 2);
}

#[test]
fn a_bridge_that_is_silent_asks_and_then_gives_up() {
    let mut net = Net::new(vec![(Some(bridge("b", vec![both("#")])), 1), (None, 0)]);
    net.connect();
    let crossed = net.crossed;
    net.later(Duration::from_secs(46));
    assert_eq!(net.crossed, crossed + 2, "PINGREQ and PINGRESP");
    // Nothing crosses any more, and nobody says so.
    net.ends.clear();
    net.later(Duration::from_secs(46));
    net.later(Duration::from_secs(46));
    let gave_up = |(at, event): &(usize, Event)| {
        *at == 0
            && matches!(event, Event::Closed { client, .. } if client.protocol == Protocol::Bridge)
    };
    assert!(net.events.iter().any(gave_up));
    net.later(Duration::from_secs(2));
    assert_eq!(net.dials, [0], "and connects again");
}

#[test]
fn what_no_route_has_is_dropped_and_said() {
    let route = Route { goes: false, ..both("wanted") };
    let mut net = Net::new(vec![(Some(bridge("b", vec![route])), 1), (None, 0)]);
    net.connect();
    let probe = net.join(0, "#");
    net.publish(1, said("wanted", "x", Grade::AtLeastOnce, false));
    net.publish(0, said("wanted", "back", Grade::AtLeastOnce, false));
    assert_eq!(net.came(0, probe).len(), 2);
    let looped = |(_, event): &(usize, Event)| {
        matches!(event, Event::Dropped { why: Drop::Loop | Drop::Unmappable, .. })
    };
    assert!(!net.events.iter().any(looped), "{:?}", net.events);
}
