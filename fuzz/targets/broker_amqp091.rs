//! Any bytes as what clients of AMQP 0.9.1 send a broker, and as what becomes of them: no panic, no
//! growth, whole frames to each client, and a restart from what was to be written.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{
    Broker, Change, ConnectionId, Input, MqttSettings, Output, Overflow, Protocol, Settings,
};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use proto::amqp091::{
    Frame, Method, PROTOCOL_HEADER, Table, TableBuf, Value, encode_content, encode_method,
};

/// Messages of one queue.
const MAX_QUEUED: usize = 8;
/// Names of queues, exchanges, keys and tags.
const NAMES: [&str; 8] = ["", "q", "r", "amq.topic", "amq.fanout", "x", "a.b", "#"];
/// Longest frame.
const FRAME_BYTES: u32 = 128 << 10;

struct World {
    broker: Broker,
    now: Duration,
    changes: Vec<Change>,
    waiting: BTreeMap<u64, usize>,
    is_committing: bool,
}

impl World {
    fn new() -> Self {
        let settings = Settings {
            durable: true,
            max_queued: MAX_QUEUED,
            overflow: Overflow::Newest,
            sys_interval: Duration::ZERO,
            ..Settings::default()
        };
        let broker = Broker::new(settings, MqttSettings::default());
        let (now, changes, waiting) = (Duration::ZERO, Vec::new(), BTreeMap::new());
        Self { broker, now, changes, waiting, is_committing: true }
    }

    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.broker.handle_input(self.now, input);
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        check(&bytes);
                        *self.waiting.entry(connection.0).or_default() += bytes.len();
                    }
                    Output::Login(login) => {
                        let (connection, user) = (login.connection, login.user.map(Into::into));
                        inputs.push(Input::Known { connection, user: Ok(user) });
                    }
                    Output::Persist { ticket, changes } => {
                        self.changes.extend(changes);
                        if self.is_committing {
                            inputs.push(Input::Persisted { ticket });
                        }
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

    fn method(&mut self, client: u64, channel: u16, method: &Method<'_>) {
        let mut out = Vec::new();
        encode_method(channel, method, &mut out).expect("it is short");
        self.send(client, &out);
    }

    fn connect(&mut self, client: u64) {
        let (connection, protocol) = (ConnectionId(client), Protocol::Amqp091);
        self.input(Input::Connected { connection, protocol, certified: None });
        self.send(client, &PROTOCOL_HEADER);
        let start = Method::ConnectionStartOk {
            client_properties: Table::default(),
            mechanism: "PLAIN",
            response: b"\0u\0p",
            locale: "",
        };
        self.method(client, 0, &start);
        let tune = Method::ConnectionTuneOk { channel_max: 0, frame_max: 0, heartbeat: 5 };
        self.method(client, 0, &tune);
        self.method(client, 0, &Method::ConnectionOpen { virtual_host: "/" });
        self.method(client, 1, &Method::ChannelOpen {});
    }
}

/// What a client is sent are frames that it can read.
fn check(mut bytes: &[u8]) {
    while let Ok(Some((_, len))) = Frame::decode(bytes, FRAME_BYTES) {
        bytes = &bytes[len..];
    }
}

fn arguments(which: u8) -> TableBuf {
    let mut table = TableBuf::default();
    let entries = [
        ("x-message-ttl", Value::I32(i32::from(which))),
        ("x-dead-letter-exchange", Value::Text(b"")),
        ("x-dead-letter-routing-key", Value::Text(if which & 32 == 0 { b"q" } else { b"r" })),
        ("x-max-length", Value::U8(which & 3)),
        ("x-retain", Value::Bool(true)),
        ("x-single-active-consumer", Value::Bool(true)),
    ];
    for (at, (name, value)) in entries.iter().enumerate() {
        if which >> at & 1 == 1 {
            table.put(name, value).expect("it is short");
        }
    }
    table
}

/// A method that a client may send, by three bytes.
fn method<'a>(kind: u8, names: u8, flags: u8, arguments: Table<'a>) -> Method<'a> {
    let name = |shift: u8| NAMES[usize::from(names >> shift & 7)];
    let flag = |at: u8| flags >> at & 1 == 1;
    let (queue, other, routing_key) = (name(0), name(3), name(2));
    let (no_wait, exchange, consumer_tag) = (flag(7), other, other);
    let (delivery_tag, multiple, requeue) = (u64::from(names & 15), flag(0), flag(1));
    match kind % 20 {
        0 | 1 => Method::QueueDeclare {
            queue,
            passive: flag(0),
            durable: flag(1),
            exclusive: flag(2),
            auto_delete: flag(3),
            no_wait,
            arguments,
        },
        2 => Method::ExchangeDeclare {
            exchange,
            kind: ["direct", "fanout", "topic", "headers"][usize::from(flags & 3)],
            passive: flag(2),
            durable: flag(3),
            auto_delete: flag(4),
            internal: flag(5),
            no_wait,
            arguments,
        },
        3 | 4 => Method::QueueBind { queue, exchange, routing_key, no_wait, arguments },
        5 => Method::QueueUnbind { queue, exchange, routing_key, arguments },
        6 => Method::ExchangeBind {
            destination: queue,
            source: other,
            routing_key,
            no_wait,
            arguments,
        },
        7 => Method::ExchangeUnbind {
            destination: queue,
            source: other,
            routing_key,
            no_wait,
            arguments,
        },
        8 | 9 => Method::BasicConsume {
            queue,
            consumer_tag,
            no_local: flag(6),
            no_ack: flag(0),
            exclusive: flag(5),
            no_wait,
            arguments,
        },
        10 => Method::BasicCancel { consumer_tag, no_wait },
        11 => Method::BasicGet { queue, no_ack: flag(0) },
        12 => Method::BasicAck { delivery_tag, multiple },
        13 => Method::BasicNack { delivery_tag, multiple, requeue },
        14 => Method::BasicRecover { requeue },
        15 => Method::BasicQos {
            prefetch_size: 0,
            prefetch_count: u16::from(names & 3),
            global: flag(0),
        },
        16 => Method::QueueDelete { queue, if_unused: flag(0), if_empty: flag(1), no_wait },
        17 => Method::ExchangeDelete { exchange, if_unused: flag(0), no_wait },
        18 => Method::QueuePurge { queue, no_wait },
        _ => match flags & 7 {
            0 => Method::TxSelect {},
            1 => Method::TxCommit {},
            2 => Method::TxRollback {},
            3 | 4 => Method::ConfirmSelect { no_wait },
            5 => {
                Method::ChannelClose { reply_code: 200, reply_text: "", class_id: 0, method_id: 0 }
            }
            6 => Method::ChannelCloseOk {},
            _ => Method::ChannelOpen {},
        },
    }
}

fn publish(world: &mut World, client: u64, names: u8, flags: u8, bytes: &[u8]) {
    let publish = Method::BasicPublish {
        exchange: NAMES[usize::from(names & 7)],
        routing_key: NAMES[usize::from(names >> 3 & 7)],
        mandatory: flags & 1 != 0,
        immediate: false,
    };
    // Delivery mode and priority, or what there is.
    let properties: &[u8] = if flags & 2 == 0 { &[0x18, 0, 2, 7] } else { bytes };
    let mut out = Vec::new();
    encode_method(1, &publish, &mut out).expect("it is short");
    encode_content(1, properties, bytes, FRAME_BYTES, &mut out).expect("it is short");
    world.send(client, &out);
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let (mut clients, mut last) = ([1, 2, 3], 3);
    for client in clients {
        world.connect(client);
    }
    for piece in data.chunks(8) {
        let (head, bytes) = piece.split_at(piece.len().min(4));
        let [action, kind, names, flags] =
            [0, 1, 2, 3].map(|at| head.get(at).copied().unwrap_or(0));
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
            4..=8 => publish(&mut world, client, names, flags, bytes),
            _ => {
                let arguments = arguments(bytes.first().copied().unwrap_or(0));
                let method = method(kind, names, flags, arguments.as_table());
                world.method(client, 1, &method);
            }
        }
        // Each client's, and that of the bridge.
        assert!(world.broker.core().sizes().sessions <= clients.len() + 1);
    }
    let mut again = World::new();
    let unknown = again.broker.restore(world.now, world.changes);
    assert_eq!(unknown, 0);
    again.now = world.now;
    again.connect(1);
});
