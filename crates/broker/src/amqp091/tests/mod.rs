//! The adapter with a broker around it and clients of a few lines.

mod bridge;
mod channels;
mod durable;
mod queues;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::amqp091::{
    ContentHeader, Frame, FrameKind, Method, PROTOCOL_HEADER, Properties, Table, TableBuf, Value,
    encode_content, encode_method,
};

use crate::broker::{Broker, Input};
use crate::change::Change;
use crate::event::Event;
use crate::ids::{ConnectionId, Protocol, Ticket};
use crate::outputs::Output;
use crate::settings::Settings;

/// Frames of clients and of the broker here.
const FRAME_BYTES: u32 = 128 << 10;

/// What a client has got: a method as text, and what it carries.
#[derive(Clone, Debug, Default, PartialEq)]
struct Got {
    channel: u16,
    text: String,
    properties: Vec<u8>,
    body: Vec<u8>,
}

impl Got {
    fn name(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }
}

/// A broker, its clients, and its time.
struct World {
    broker: Broker,
    now: Duration,
    /// What was sent to each connection and has not been looked at.
    sent: BTreeMap<u64, BytesMut>,
    closed: Vec<u64>,
    events: Vec<Event>,
    changes: Vec<Change>,
    /// What is to be written, while the store is held.
    pending: Vec<Ticket>,
    is_store_held: bool,
    /// Bytes leave sockets at once.
    is_socket_open: bool,
}

impl World {
    fn new() -> Self {
        Self::with(Settings { sys_interval: Duration::ZERO, ..Settings::default() })
    }

    fn with(settings: Settings) -> Self {
        Self {
            broker: Broker::new(settings, crate::mqtt::Settings::default()),
            now: Duration::from_secs(1000),
            sent: BTreeMap::new(),
            closed: Vec::new(),
            events: Vec::new(),
            changes: Vec::new(),
            pending: Vec::new(),
            is_store_held: false,
            is_socket_open: true,
        }
    }

    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.broker.handle_input(self.now, input);
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        let sent = bytes.len();
                        self.sent.entry(connection.0).or_default().extend_from_slice(&bytes);
                        if self.is_socket_open {
                            inputs.push(Input::Sent { connection, bytes: sent });
                        }
                    }
                    Output::Close { connection } => self.closed.push(connection.0),
                    Output::Login(login) => {
                        let connection = login.connection;
                        let is_known = login.password.as_deref() == Some(b"p");
                        let user = if is_known { Ok(login.user.map(Into::into)) } else { Err(()) };
                        inputs.push(Input::Known { connection, user });
                    }
                    Output::Persist { ticket, changes } => {
                        self.changes.extend(changes);
                        if self.is_store_held {
                            self.pending.push(ticket);
                        } else {
                            inputs.push(Input::Persisted { ticket });
                        }
                    }
                    Output::Event(event) => self.events.push(event),
                    _ => {}
                }
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.input(Input::Wake);
    }

    fn commit(&mut self) {
        self.is_store_held = false;
        for ticket in std::mem::take(&mut self.pending) {
            self.input(Input::Persisted { ticket });
        }
    }

    /// A connection with channel 1.
    fn connect(&mut self, number: u64) {
        let (connection, protocol) = (ConnectionId(number), Protocol::Amqp091);
        self.input(Input::Connected { connection, protocol, certified: None });
        self.bytes(number, &PROTOCOL_HEADER);
        let mut capabilities = TableBuf::default();
        capabilities.put("consumer_cancel_notify", &Value::Bool(true)).unwrap();
        let mut properties = TableBuf::default();
        properties.put("capabilities", &Value::Table(capabilities.as_table())).unwrap();
        let start = Method::ConnectionStartOk {
            client_properties: properties.as_table(),
            mechanism: "PLAIN",
            response: b"\0u\0p",
            locale: "",
        };
        self.method(number, 0, &start);
        let tune = Method::ConnectionTuneOk { channel_max: 0, frame_max: 0, heartbeat: 0 };
        self.method(number, 0, &tune);
        self.method(number, 0, &Method::ConnectionOpen { virtual_host: "/" });
        self.method(number, 1, &Method::ChannelOpen {});
        let names: Vec<String> = self.got(number).iter().map(|got| got.name().to_owned()).collect();
        let expected = ["ConnectionStart", "ConnectionTune", "ConnectionOpenOk", "ChannelOpenOk"];
        assert_eq!(names, expected);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) {
        let connection = ConnectionId(number);
        self.input(Input::Received { connection, bytes: BytesMut::from(bytes) });
    }

    fn method(&mut self, number: u64, channel: u16, method: &Method<'_>) {
        let mut out = Vec::new();
        encode_method(channel, method, &mut out).unwrap();
        self.bytes(number, &out);
    }

    /// Sends a method on channel 1; what has come since.
    fn call(&mut self, number: u64, method: &Method<'_>) -> Vec<Got> {
        self.method(number, 1, method);
        self.got(number)
    }

    /// The same, where one answer is expected: its text.
    fn ask(&mut self, number: u64, method: &Method<'_>) -> String {
        let got = self.call(number, method);
        assert_eq!(got.len(), 1, "{got:?}");
        got[0].text.clone()
    }

    fn publish_with(
        &mut self,
        number: u64,
        (exchange, routing_key): (&str, &str),
        mandatory: bool,
        properties: &Properties<'_>,
        body: &[u8],
    ) {
        let publish = Method::BasicPublish { exchange, routing_key, mandatory, immediate: false };
        let (mut out, mut flags) = (Vec::new(), Vec::new());
        properties.encode(&mut flags).unwrap();
        encode_method(1, &publish, &mut out).unwrap();
        encode_content(1, &flags, body, FRAME_BYTES, &mut out).unwrap();
        self.bytes(number, &out);
    }

    fn publish(&mut self, number: u64, address: (&str, &str), body: &str) {
        self.publish_with(number, address, false, &Properties::default(), body.as_bytes());
    }

    /// All that has come to a client, with what belongs together in one.
    fn got(&mut self, number: u64) -> Vec<Got> {
        let bytes = self.sent.remove(&number).unwrap_or_default();
        let (mut rest, mut all) = (&bytes[..], Vec::<Got>::new());
        while let Some((frame, len)) = Frame::decode(rest, FRAME_BYTES).unwrap() {
            rest = &rest[len..];
            match frame.kind {
                FrameKind::Method => {
                    let text = format!("{:?}", Method::decode(frame.payload).unwrap());
                    all.push(Got { channel: frame.channel, text, ..Got::default() });
                }
                FrameKind::Header => {
                    let header = ContentHeader::decode(frame.payload).unwrap();
                    all.last_mut().unwrap().properties = header.properties.to_vec();
                }
                FrameKind::Body => all.last_mut().unwrap().body.extend(frame.payload),
                FrameKind::Heartbeat => {}
            }
        }
        assert!(rest.is_empty());
        all
    }

    /// The bodies of the messages that have come to a client.
    fn bodies(&mut self, number: u64) -> Vec<String> {
        let delivered = self.got(number).into_iter().filter(|got| got.name() == "BasicDeliver");
        delivered.map(|got| String::from_utf8(got.body).unwrap()).collect()
    }

    fn get(&mut self, number: u64, queue: &str) -> Option<Got> {
        let got = self.call(number, &Method::BasicGet { queue, no_ack: true });
        assert_eq!(got.len(), 1, "{got:?}");
        got.into_iter().next().filter(|got| got.name() == "BasicGetOk")
    }

    fn refused(&self) -> Vec<String> {
        let why = |event: &Event| match event {
            Event::Refused { why, .. } => Some(why.clone()),
            _ => None,
        };
        self.events.iter().filter_map(why).collect()
    }
}

fn declare<'a>(queue: &'a str, arguments: Table<'a>) -> Method<'a> {
    Method::QueueDeclare {
        queue,
        passive: false,
        durable: false,
        exclusive: false,
        auto_delete: false,
        no_wait: false,
        arguments,
    }
}

fn declare_exchange<'a>(exchange: &'a str, kind: &'a str, arguments: Table<'a>) -> Method<'a> {
    Method::ExchangeDeclare {
        exchange,
        kind,
        passive: false,
        durable: false,
        auto_delete: false,
        internal: false,
        no_wait: false,
        arguments,
    }
}

fn bind<'a>(queue: &'a str, exchange: &'a str, routing_key: &'a str) -> Method<'a> {
    let arguments = Table::default();
    Method::QueueBind { queue, exchange, routing_key, no_wait: false, arguments }
}

fn consume<'a>(queue: &'a str, consumer_tag: &'a str, no_ack: bool) -> Method<'a> {
    Method::BasicConsume {
        queue,
        consumer_tag,
        no_local: false,
        no_ack,
        exclusive: false,
        no_wait: false,
        arguments: Table::default(),
    }
}

fn table(entries: &[(&str, Value<'_>)]) -> TableBuf {
    let mut table = TableBuf::default();
    for (name, value) in entries {
        table.put(name, value).unwrap();
    }
    table
}

/// Flags and properties of a message that is kept.
fn persistent() -> Properties<'static> {
    Properties { delivery_mode: Some(2), ..Properties::default() }
}

fn bytes_of(properties: &Properties<'_>) -> Bytes {
    let mut bytes = Vec::new();
    properties.encode(&mut bytes).unwrap();
    bytes.into()
}
