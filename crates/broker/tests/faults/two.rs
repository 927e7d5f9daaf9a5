//! Two brokers with a bridge between them: the publisher at one, the subscriber at the other.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use longwire_broker::{
    Bridge, BridgeRoute, Broker, Change, ConnectionId, Grade, Input, MqttSettings, Output,
    Protocol, Settings, Ticket,
};
use proto::mqtt::Version;

use super::client::{Chance, Client};
use super::{MAX_STEPS, MESSAGES, check};

/// A broker with its disk, and its client.
struct Node {
    broker: Broker,
    disk: Vec<Change>,
    writing: Option<(Ticket, Vec<Change>)>,
    client: Client,
    wake_at: Option<Duration>,
    /// Its end of the bridge's connection, and what is on its way to it.
    link: Option<ConnectionId>,
    comes: VecDeque<Bytes>,
}

struct World {
    chance: Chance,
    now: Duration,
    nodes: [Node; 2],
    /// Which has the bridge.
    dialler: usize,
    dials: bool,
    version: Version,
    last: u64,
}

/// The bridge is at the publisher's broker or at the subscriber's.
fn broker(which: usize, dialler: usize, version: Version) -> Broker {
    let settings = Settings { durable: true, sys_interval: Duration::ZERO, ..Settings::default() };
    let goes = dialler == 0;
    let prefixes = if goes { ("t/", "far/") } else { ("far/", "t/") };
    let bridge = Bridge {
        name: "b".into(),
        version,
        client_id: "bridge".to_owned(),
        user: None,
        password: None,
        keep_alive: Duration::from_secs(60),
        expiry: Duration::from_secs(86_400),
        max_inflight: 10,
        compress: true,
        batch: Duration::from_millis(if goes { 0 } else { 40 }),
        routes: vec![BridgeRoute {
            filter: "#".to_owned(),
            comes: !goes,
            goes,
            max_grade: Grade::ExactlyOnce,
            local: prefixes.0.to_owned(),
            remote: prefixes.1.to_owned(),
        }],
    };
    let mqtt = MqttSettings {
        node: format!("n{which}").into(),
        bridges: if which == dialler { vec![bridge] } else { Vec::new() },
        ..MqttSettings::default()
    };
    Broker::new(settings, mqtt)
}

impl World {
    fn new(seed: u64) -> Self {
        let version = |odd| if odd { Version::V5 } else { Version::V311 };
        let dialler = usize::from(seed.is_multiple_of(5));
        let bridge_version = version(!seed.is_multiple_of(4));
        let node = |which: usize, name| Node {
            broker: broker(which, dialler, bridge_version),
            disk: Vec::new(),
            writing: None,
            client: Client::new(name, version(seed.is_multiple_of(2 + which as u64))),
            wake_at: None,
            link: None,
            comes: VecDeque::new(),
        };
        let mut world = Self {
            chance: Chance(seed),
            now: Duration::from_secs(1_000_000),
            nodes: [node(0, "publisher"), node(1, "subscriber")],
            dialler,
            dials: false,
            version: bridge_version,
            last: 0,
        };
        world.input(0, Input::Wake);
        world.input(1, Input::Wake);
        world
    }

    fn input(&mut self, which: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.nodes[which].broker.handle_input(self.now, input);
            while let Some(output) = self.nodes[which].broker.poll_output() {
                self.act(which, output, &mut inputs);
            }
        }
    }

    fn act(&mut self, which: usize, output: Output, inputs: &mut VecDeque<Input>) {
        let node = &mut self.nodes[which];
        match output {
            Output::Transmit { connection, bytes } => {
                inputs.push_back(Input::Sent { connection, bytes: bytes.len() });
                if node.client.connection == Some(connection) {
                    node.client.pipe.down.push_back(bytes);
                } else if node.link == Some(connection) {
                    self.nodes[1 - which].comes.push_back(bytes);
                }
            }
            Output::Close { connection } => {
                if node.client.connection == Some(connection) {
                    node.client.connection = None;
                }
                if node.link == Some(connection) {
                    node.link = None;
                }
            }
            Output::Login(login) => {
                inputs.push_back(Input::Known { connection: login.connection, user: Ok(None) });
            }
            Output::Persist { ticket, changes } => {
                assert!(node.writing.is_none(), "one batch at a time");
                node.writing = Some((ticket, changes));
            }
            Output::WakeAt(at) => node.wake_at = at,
            Output::Dial { .. } => self.dials = true,
            _ => {}
        }
    }

    fn number(&mut self) -> ConnectionId {
        self.last += 1;
        ConnectionId(self.last)
    }

    /// The connection of the bridge is made.
    fn connect(&mut self) {
        self.dials = false;
        if self.chance.one_in(4) {
            let result = Err("nobody is there".to_owned());
            return self.input(self.dialler, Input::Dialled { bridge: 0, result });
        }
        self.nodes.iter_mut().for_each(|node| node.comes.clear());
        let (near, far) = (self.number(), self.number());
        let (dialler, server) = (self.dialler, 1 - self.dialler);
        if let Some(old) = self.nodes[server].link.replace(far)
            && self.chance.one_in(2)
        {
            // It may learn of the old one's end only by the session being taken over.
            self.input(server, Input::Lost { connection: old });
        }
        let protocol = Protocol::Mqtt;
        self.input(server, Input::Connected { connection: far, protocol, certified: None });
        self.nodes[dialler].link = Some(near);
        self.input(dialler, Input::Dialled { bridge: 0, result: Ok(near) });
    }

    fn cut(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.comes.clear());
        if let Some(connection) = self.nodes[self.dialler].link.take() {
            self.input(self.dialler, Input::Lost { connection });
        }
        let server = 1 - self.dialler;
        if self.chance.one_in(2)
            && let Some(connection) = self.nodes[server].link.take()
        {
            self.input(server, Input::Lost { connection });
        }
    }

    fn crash(&mut self, which: usize) {
        self.cut();
        let (dialler, version) = (self.dialler, self.version);
        let keeps = self.chance.one_in(2);
        let node = &mut self.nodes[which];
        if let Some((_, changes)) = node.writing.take()
            && keeps
        {
            node.disk.extend(changes);
        }
        node.broker = broker(which, dialler, version);
        let unknown = node.broker.restore(self.now, node.disk.iter().cloned());
        assert_eq!(unknown, 0);
        (node.link, node.client.connection, node.client.is_up) = (None, None, false);
        if which == dialler {
            self.dials = false;
        }
        self.input(which, Input::Wake);
    }

    /// One thing happens. With `calm` nothing fails.
    fn step(&mut self, calm: bool) {
        let far = self.chance.one_in(30);
        self.now += Duration::from_millis(self.chance.below(if far { 4000 } else { 50 }));
        for which in 0..2 {
            if self.nodes[which].wake_at.is_some_and(|at| at <= self.now) {
                self.input(which, Input::Wake);
            }
        }
        let which = usize::from(self.chance.one_in(2));
        if !calm && self.chance.one_in(80) {
            return self.crash(which);
        }
        if !calm && self.chance.one_in(25) {
            return self.cut();
        }
        if self.chance.one_in(4)
            && let Some((ticket, changes)) = self.nodes[which].writing.take()
        {
            self.nodes[which].disk.extend(changes);
            return self.input(which, Input::Persisted { ticket });
        }
        if self.dials && self.chance.one_in(3) {
            return self.connect();
        }
        if self.chance.one_in(2)
            && let (Some(connection), Some(bytes)) =
                (self.nodes[which].link, self.nodes[which].comes.pop_front())
        {
            let bytes = BytesMut::from(&bytes[..]);
            return self.input(which, Input::Received { connection, bytes });
        }
        self.client_step(which, calm);
    }

    fn client_step(&mut self, which: usize, calm: bool) {
        if self.nodes[which].client.connection.is_none() {
            let connection = self.number();
            self.nodes[which].client.connect(connection);
            let protocol = Protocol::Mqtt;
            return self.input(which, Input::Connected { connection, protocol, certified: None });
        }
        let lost = !calm && self.chance.one_in(40);
        let client = &mut self.nodes[which].client;
        if lost {
            client.is_up = false;
            let connection = client.connection.take().unwrap();
            return self.input(which, Input::Lost { connection });
        }
        match self.chance.below(4) {
            0 if which == 0 && client.is_up && client.next < MESSAGES => client.publish(),
            1 if which == 1 && client.is_up && !client.subscribed => client.subscribe("far/+"),
            2 => client.read(),
            _ => {
                if let (Some(bytes), Some(connection)) =
                    (client.pipe.up.pop_front(), client.connection)
                {
                    let bytes = BytesMut::from(&bytes[..]);
                    self.input(which, Input::Received { connection, bytes });
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        let [publisher, subscriber] = &self.nodes;
        let numbers = subscriber.client.came.iter().map(|(_, number)| *number);
        publisher.client.next == MESSAGES
            && publisher.client.unacked.is_empty()
            && numbers.collect::<BTreeSet<u64>>().len() as u64 == MESSAGES
    }

    /// Everybody has subscribed, and that is written: the subscriber, and the bridge.
    fn is_ready(&self) -> bool {
        let subscriptions = self.nodes.iter().map(|node| node.broker.core().sizes().subscriptions);
        self.nodes[1].client.subscribed
            && subscriptions.sum::<usize>() == 2
            && self.nodes.iter().all(|node| node.writing.is_none())
    }
}

pub(crate) fn run(seed: u64) {
    let mut world = World::new(seed);
    world.nodes[0].client.next = MESSAGES;
    for step in 0.. {
        if world.is_ready() {
            break;
        }
        assert!(step < MAX_STEPS, "seed {seed}: no bridge");
        world.step(false);
    }
    world.nodes[0].client.next = 0;
    for _ in 0..600 {
        world.step(false);
    }
    for step in 0.. {
        if world.is_done() {
            break;
        }
        assert!(step < MAX_STEPS, "seed {seed}: {:?} of {MESSAGES}", world.nodes[1].client.came);
        world.step(true);
    }
    check(seed, &world.nodes[1].client.came);
}
