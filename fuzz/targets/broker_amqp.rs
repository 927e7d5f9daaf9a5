//! Any frames as what clients of AMQP 1.0 send a broker, and any bytes as their messages: no panic,
//! no growth, whole frames to each client, and a restart from what was to be written.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{
    Broker, Change, ConnectionId, Input, MqttSettings, Output, Overflow, Protocol, Settings,
};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use proto::amqp::frame::{self, Kind, Protocol as Header};
use proto::amqp::performative::{
    Attach, Begin, DeliveryState, Detach, Disposition, ExpiryPolicy, Flow, LinkFlow, Open,
    Performative, Role, Source, Target, TargetKind, Transfer,
};
use proto::amqp::types::{Symbol, Value};

/// Messages of one subscription.
const MAX_QUEUED: usize = 8;
/// Sessions: those of subscriptions that are kept, and three of who publishes.
const MAX_SESSIONS: usize = 32;
const ADDRESSES: [&str; 8] =
    ["a", "a/b", "a/+", "#", "topic://a", "/topic/a.*", "$reply/c/1-1", ""];

struct World {
    broker: Broker,
    now: Duration,
    changes: Vec<Change>,
    waiting: BTreeMap<u64, usize>,
}

impl World {
    fn new() -> Self {
        let settings = Settings {
            durable: true,
            max_queued: MAX_QUEUED,
            max_sessions: MAX_SESSIONS,
            overflow: Overflow::Newest,
            sys_interval: Duration::ZERO,
            ..Settings::default()
        };
        let broker = Broker::new(settings, MqttSettings::default());
        Self { broker, now: Duration::ZERO, changes: Vec::new(), waiting: BTreeMap::new() }
    }

    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.broker.handle_input(self.now, input);
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        *self.waiting.entry(connection.0).or_default() += bytes.len();
                    }
                    Output::Login(login) => {
                        let (connection, user) = (login.connection, login.user.map(Into::into));
                        inputs.push(Input::Known { connection, user: Ok(user) });
                    }
                    Output::Persist { ticket, changes } => {
                        self.changes.extend(changes);
                        inputs.push(Input::Persisted { ticket });
                    }
                    _ => {}
                }
            }
        }
    }

    fn send(&mut self, client: u64, bytes: &[u8]) {
        let connection = ConnectionId(client);
        self.input(Input::Received { connection, bytes: BytesMut::from(bytes) });
    }

    fn frame(&mut self, client: u64, performative: &Performative, payload: &[u8]) {
        let mut wire = Vec::new();
        frame::encode(&mut wire, Kind::Amqp, 0, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
        self.send(client, &wire);
    }

    fn connect(&mut self, client: u64) {
        let (connection, protocol) = (ConnectionId(client), Protocol::Amqp);
        self.input(Input::Connected { connection, protocol, certified: None });
        self.send(client, &Header::Amqp.header());
        let container = ["c", "d"][usize::from(client.is_multiple_of(2))];
        self.frame(client, &Performative::Open(Box::new(Open::new(container))), b"");
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: 100,
            outgoing_window: 100,
            handle_max: 7,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        self.frame(client, &Performative::Begin(Box::new(begin)), b"");
    }
}

fn attach(kind: u8, names: u8, bytes: &[u8]) -> Attach {
    let address = ADDRESSES[usize::from(names & 7)];
    let address = (!address.is_empty()).then(|| Value::string(address));
    let role = if kind & 1 == 0 { Role::Sender } else { Role::Receiver };
    let name = ["x", "y", "x|2"][usize::from(names >> 3) % 3];
    let mut attach = Attach::new(name, u32::from(names >> 5), role);
    attach.initial_delivery_count = Some(0);
    if role == Role::Sender {
        let dynamic = kind & 2 != 0;
        attach.target =
            Some(TargetKind::Target(Box::new(Target { address, dynamic, ..Target::default() })));
        return attach;
    }
    if kind & 2 != 0 {
        return attach;
    }
    let all = [(4, "shared"), (8, "global"), (16, "topic")];
    let text = String::from_utf8_lossy(bytes);
    let descriptor = Value::symbol("apache.org:selector-filter:string");
    let selector = Value::described(descriptor, Value::string(&text));
    attach.source = Some(Source {
        address,
        expiry_policy: if kind & 32 == 0 { ExpiryPolicy::Never } else { ExpiryPolicy::LinkDetach },
        dynamic: kind & 64 != 0,
        filter: (kind & 128 != 0).then(|| (Value::symbol("s"), selector)).into_iter().collect(),
        capabilities: all
            .into_iter()
            .filter(|(bit, _)| kind & bit != 0)
            .map(|(_, name)| Symbol::new(name))
            .collect(),
        ..Source::default()
    });
    attach
}

fn act(world: &mut World, client: u64, kind: u8, names: u8, bytes: &[u8]) {
    let handle = u32::from(names >> 5);
    let number = u32::from(names & 15);
    let performative = match kind & 7 {
        0 | 1 => {
            let transfer = Transfer {
                handle,
                delivery_id: Some(number),
                delivery_tag: Some(vec![names].into()),
                settled: Some(kind & 8 != 0),
                more: kind & 16 != 0,
                aborted: kind & 32 != 0,
                ..Transfer::default()
            };
            let head = [&b""[..], b"\x00\x53\x72", b"\x00\x53\x73", b"\x00\x53\x75\xa0\x04"];
            let payload = [head[usize::from(kind >> 6)], bytes].concat();
            return world.frame(client, &Performative::Transfer(Box::new(transfer)), &payload);
        }
        2 | 3 => {
            let state = match kind >> 3 & 7 {
                0 | 1 => Some(DeliveryState::Accepted),
                2 => Some(DeliveryState::Rejected(None)),
                3 | 4 => Some(DeliveryState::Released),
                5 => None,
                bits => Some(DeliveryState::Modified {
                    delivery_failed: true,
                    undeliverable_here: bits == 6,
                    message_annotations: Vec::new(),
                }),
            };
            Performative::Disposition(Disposition {
                role: if kind & 64 == 0 { Role::Receiver } else { Role::Sender },
                first: number,
                last: Some(number + 2),
                settled: kind & 128 == 0,
                state,
                batchable: false,
            })
        }
        4 | 5 => Performative::Flow(Box::new(Flow {
            next_incoming_id: None,
            incoming_window: 100,
            next_outgoing_id: 0,
            outgoing_window: 100,
            link: Some(LinkFlow {
                handle,
                delivery_count: Some(0),
                link_credit: Some(number),
                available: None,
                drain: kind & 8 != 0,
            }),
            echo: kind & 16 != 0,
            properties: Vec::new(),
        })),
        6 => {
            let closed = kind & 8 != 0;
            Performative::Detach(Detach { handle, closed, error: None })
        }
        _ => Performative::Attach(Box::new(attach(names, kind, bytes))),
    };
    world.frame(client, &performative, b"");
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let (mut clients, mut last) = ([1, 2, 3], 3);
    for client in clients {
        world.connect(client);
    }
    for piece in data.chunks(11) {
        let (head, bytes) = piece.split_at(piece.len().min(3));
        let [action, kind, names] = [0, 1, 2].map(|at| head.get(at).copied().unwrap_or(0));
        let place = usize::from(action >> 4) % clients.len();
        let client = clients[place];
        match action & 15 {
            0 => {
                world.now += Duration::from_millis(u64::from(kind) * 4);
                world.input(Input::Wake);
            }
            1 => {
                let connection = ConnectionId(client);
                if let Some(bytes) = world.waiting.remove(&client) {
                    world.input(Input::Sent { connection, bytes });
                }
            }
            2 if kind & 7 == 0 => {
                world.input(Input::Lost { connection: ConnectionId(client) });
                last += 1;
                clients[place] = last;
                world.connect(last);
            }
            3 => world.send(client, bytes),
            4..=7 => {
                let attach = Performative::Attach(Box::new(attach(kind, names, bytes)));
                world.frame(client, &attach, b"");
            }
            _ => act(&mut world, client, kind, names, bytes),
        }
        assert!(world.broker.core().sizes().sessions <= MAX_SESSIONS);
    }
    let mut again = World::new();
    let unknown = again.broker.restore(world.now, world.changes);
    assert_eq!(unknown, 0);
    again.now = world.now;
    again.connect(1);
});
