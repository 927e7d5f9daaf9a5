//! A broker with clients that are made of frames.

mod links;
mod mediation;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proto::amqp::frame::{self, Kind, Protocol as Header};
use proto::amqp::performative::{
    Attach, Begin, Close, DeliveryState, Detach, Disposition, Durability, ExpiryPolicy, Flow,
    LinkFlow, Open, Performative, Role, Source, Target, TargetKind, Transfer,
};
use proto::amqp::types::{Symbol, Value};

use crate::broker::{Broker, Input};
use crate::ids::{ConnectionId, Protocol, Ticket};
use crate::outputs::Output;
use crate::settings::Settings;

const NOW: Duration = Duration::from_secs(1_000);

/// What a client has read.
#[derive(Default)]
struct Client {
    reader: frame::Reader,
    sent: Vec<(Performative, Bytes)>,
    is_closed: bool,
}

struct Rig {
    broker: Broker,
    now: Duration,
    clients: BTreeMap<u64, Client>,
    /// Writes that the store has not done yet.
    writes: Vec<Ticket>,
    /// Whether the store writes at once.
    writes_at_once: bool,
    refused: Vec<String>,
}

impl Rig {
    fn new() -> Self {
        Self::with(Settings { durable: true, ..Settings::default() })
    }

    fn with(settings: Settings) -> Self {
        Self {
            broker: Broker::new(settings, crate::mqtt::Settings::default()),
            now: NOW,
            clients: BTreeMap::new(),
            writes: Vec::new(),
            writes_at_once: true,
            refused: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.broker.handle_input(self.now, input);
            while let Some(output) = self.broker.poll_output() {
                match output {
                    Output::Transmit { connection, bytes } => {
                        self.read(connection, &bytes);
                        inputs.push(Input::Sent { connection, bytes: bytes.len() });
                    }
                    Output::Close { connection } => {
                        self.clients.entry(connection.0).or_default().is_closed = true;
                    }
                    Output::Login(login) => {
                        let user = match login.password.as_deref() {
                            Some(b"wrong") => Err(()),
                            _ => Ok(login.user.map(Into::into)),
                        };
                        inputs.push(Input::Known { connection: login.connection, user });
                    }
                    Output::Persist { ticket, .. } if self.writes_at_once => {
                        inputs.push(Input::Persisted { ticket });
                    }
                    Output::Persist { ticket, .. } => self.writes.push(ticket),
                    Output::Event(crate::Event::Refused { why, .. }) => self.refused.push(why),
                    _ => {}
                }
            }
        }
    }

    /// The store has written what it was given.
    fn written(&mut self) {
        for ticket in std::mem::take(&mut self.writes) {
            self.input(Input::Persisted { ticket });
        }
    }

    fn read(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(&connection.0) else { return };
        client.reader.receive(bytes);
        if client.sent.is_empty() && client.reader.is_amqp() {
            client.reader.header();
        }
        while let Ok(Some(frame)) = client.reader.frame(1 << 20) {
            if !frame.body.is_empty() {
                client.sent.push(Performative::decode(&frame.body).unwrap());
            }
        }
    }

    fn bytes(&mut self, client: u64, bytes: &[u8]) {
        let connection = ConnectionId(client);
        self.input(Input::Received { connection, bytes: BytesMut::from(bytes) });
    }

    fn send(&mut self, client: u64, performative: Performative, payload: &[u8]) {
        let mut wire = Vec::new();
        frame::encode(&mut wire, Kind::Amqp, 0, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
        self.bytes(client, &wire);
    }

    /// A client with a session, without SASL.
    fn connect(&mut self, client: u64, container: &str) {
        self.clients.insert(client, Client::default());
        let (connection, protocol) = (ConnectionId(client), Protocol::Amqp);
        self.input(Input::Connected { connection, protocol, certified: None });
        self.bytes(client, &Header::Amqp.header());
        self.send(client, Performative::Open(Box::new(Open::new(container))), b"");
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: 1000,
            outgoing_window: 1000,
            handle_max: 100,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        self.send(client, Performative::Begin(Box::new(begin)), b"");
        self.sent(client);
    }

    fn attach(&mut self, client: u64, attach: Attach) {
        self.send(client, Performative::Attach(Box::new(attach)), b"");
    }

    /// Attaches a link from a node, and grants credit.
    fn subscribe(&mut self, client: u64, handle: u32, source: Source) -> Vec<Performative> {
        let mut attach = Attach::new(&format!("link{handle}"), handle, Role::Receiver);
        attach.source = Some(source);
        self.attach(client, attach);
        self.grant(client, handle, 0, 10);
        self.sent(client).into_iter().map(|(it, _)| it).collect()
    }

    fn grant(&mut self, client: u64, handle: u32, count: u32, credit: u32) {
        let flow = Flow {
            next_incoming_id: None,
            incoming_window: 1000,
            next_outgoing_id: 0,
            outgoing_window: 1000,
            link: Some(LinkFlow {
                handle,
                delivery_count: Some(count),
                link_credit: Some(credit),
                ..LinkFlow::default()
            }),
            echo: false,
            properties: Vec::new(),
        };
        self.send(client, Performative::Flow(Box::new(flow)), b"");
    }

    /// Attaches a link to a node.
    fn publisher(&mut self, client: u64, handle: u32, target: TargetKind) -> Vec<Performative> {
        let mut attach = Attach::new(&format!("to{handle}"), handle, Role::Sender);
        attach.initial_delivery_count = Some(0);
        attach.target = Some(target);
        self.attach(client, attach);
        self.sent(client).into_iter().map(|(it, _)| it).collect()
    }

    fn publish(&mut self, client: u64, handle: u32, delivery: u32, settled: bool, message: &[u8]) {
        let transfer = Transfer {
            handle,
            delivery_id: Some(delivery),
            delivery_tag: Some(delivery.to_be_bytes().to_vec().into()),
            settled: Some(settled),
            ..Transfer::default()
        };
        self.send(client, Performative::Transfer(Box::new(transfer)), message);
    }

    fn settle(&mut self, client: u64, delivery: u32, state: DeliveryState) {
        let disposition = Disposition {
            role: Role::Receiver,
            first: delivery,
            last: None,
            settled: true,
            state: Some(state),
            batchable: false,
        };
        self.send(client, Performative::Disposition(disposition), b"");
    }

    fn sent(&mut self, client: u64) -> Vec<(Performative, Bytes)> {
        std::mem::take(&mut self.clients.get_mut(&client).unwrap().sent)
    }

    /// Messages that a client got.
    fn messages(&mut self, client: u64) -> Vec<(Transfer, Bytes)> {
        let transfer = |(it, payload)| match it {
            Performative::Transfer(transfer) => Some((*transfer, payload)),
            _ => None,
        };
        self.sent(client).into_iter().filter_map(transfer).collect()
    }

    /// Outcomes that a client was told.
    fn outcomes(&mut self, client: u64) -> Vec<DeliveryState> {
        let state = |(it, _)| if let Performative::Disposition(it) = it { it.state } else { None };
        self.sent(client).into_iter().filter_map(state).collect()
    }
}

fn source(address: &str) -> Source {
    Source { address: Some(Value::string(address)), ..Source::default() }
}

fn durable(address: &str) -> Source {
    Source {
        durable: Durability::UnsettledState,
        expiry_policy: ExpiryPolicy::Never,
        ..source(address)
    }
}

fn target(address: &str) -> TargetKind {
    let address = Some(Value::string(address));
    TargetKind::Target(Box::new(Target { address, ..Target::default() }))
}

/// The condition with which a link was refused.
fn refused(sent: &[Performative]) -> Option<String> {
    sent.iter().find_map(|it| match it {
        Performative::Detach(Detach { closed: true, error: Some(error), .. }) => {
            Some(error.condition.as_str().to_owned())
        }
        _ => None,
    })
}

/// A message with one section of data.
fn data(text: &str) -> Vec<u8> {
    let len = u8::try_from(text.len()).unwrap();
    [&b"\x00\x53\x75\xa0"[..], &[len], text.as_bytes()].concat()
}
