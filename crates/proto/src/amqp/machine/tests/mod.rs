//! A peer made of frames on one side, an application made of a few inputs on the other.

mod client;
mod deliveries;
mod handshake;
mod links;

use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::amqp::frame::Protocol;
use crate::amqp::performative::{
    DeliveryState, Detach, Disposition, Flow, LinkFlow, Open, Role, Source, TargetKind, Transfer,
};
use crate::amqp::sasl;
use crate::amqp::types::{Symbol, Value};

const NOW: Duration = Duration::from_secs(1_000);

fn settings() -> Settings {
    Settings {
        container_id: "broker".to_owned(),
        mechanisms: vec![sasl::Mechanism::Plain, sasl::Mechanism::Anonymous],
        allows_no_sasl: true,
        idle_timeout: Some(Duration::from_secs(60)),
        max_message_bytes: 1 << 20,
        offered_capabilities: vec![Symbol::new("ANONYMOUS-RELAY")],
        properties: vec![(Value::symbol("product"), Value::string("x"))],
    }
}

/// A connection with what it said.
struct Rig {
    connection: Connection,
    now: Duration,
    events: Vec<Output>,
    sent: Vec<Performative>,
    payloads: Vec<Bytes>,
    /// What of the wire is no frame yet.
    reader: frame::Reader,
    headers: Vec<[u8; 8]>,
    sasl: Vec<sasl::Frame>,
    wake_at: Option<Duration>,
    empty_frames: usize,
    transmitted: usize,
}

impl Rig {
    fn new(settings: Settings) -> Self {
        let mut rig = Self {
            connection: Connection::new(settings, NOW),
            now: NOW,
            events: Vec::new(),
            sent: Vec::new(),
            payloads: Vec::new(),
            reader: frame::Reader::default(),
            headers: Vec::new(),
            sasl: Vec::new(),
            wake_at: None,
            empty_frames: 0,
            transmitted: 0,
        };
        rig.drain();
        rig
    }

    /// Open at both sides, without SASL, with session 0.
    fn running() -> Self {
        Self::running_with(&Open::new("client"))
    }

    fn running_with(open: &Open) -> Self {
        Self::running_by(settings(), open)
    }

    fn running_by(settings: Settings, open: &Open) -> Self {
        let mut rig = Self::new(settings);
        rig.bytes(&Protocol::Amqp.header());
        rig.peer(0, Performative::Open(Box::new(open.clone())));
        rig.input(Input::Open);
        rig.begin(0, 2048);
        rig.sent.clear();
        rig.events.clear();
        rig
    }

    fn begin(&mut self, channel: u16, incoming_window: u32) {
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window,
            outgoing_window: 2048,
            handle_max: 255,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        self.peer(channel, Performative::Begin(Box::new(begin)));
    }

    fn drain(&mut self) {
        while let Some(output) = self.connection.poll_output() {
            match output {
                Output::Transmit(bytes) => {
                    self.transmitted += bytes.len();
                    self.reader.receive(&bytes);
                    self.read();
                }
                Output::WakeAt(at) => self.wake_at = Some(at),
                event => self.events.push(event),
            }
        }
    }

    fn read(&mut self) {
        loop {
            let is_header = self.reader.held_bytes() >= 8 && self.reader.is_amqp();
            if is_header {
                self.headers.extend(self.reader.header());
                continue;
            }
            let Some(frame) = self.reader.frame(MAX_FRAME_BYTES).unwrap() else { return };
            if frame.kind == Kind::Sasl {
                self.sasl.push(sasl::Frame::decode(&frame.body).unwrap());
            } else if frame.body.is_empty() {
                self.empty_frames += 1;
            } else {
                let (performative, payload) = Performative::decode(&frame.body).unwrap();
                if matches!(performative, Performative::Transfer(_)) {
                    self.payloads.push(payload);
                }
                self.sent.push(performative);
            }
        }
    }

    fn input(&mut self, input: Input) {
        self.connection.handle_input(self.now, input);
        self.drain();
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.input(Input::Bytes(Bytes::copy_from_slice(bytes)));
    }

    fn peer(&mut self, channel: u16, performative: Performative) {
        self.peer_with(channel, performative, &[]);
    }

    fn peer_with(&mut self, channel: u16, performative: Performative, payload: &[u8]) {
        let mut wire = Vec::new();
        frame::encode(&mut wire, Kind::Amqp, channel, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
        self.bytes(&wire);
    }

    fn peer_sasl(&mut self, sasl: &sasl::Frame) {
        let mut wire = Vec::new();
        frame::encode(&mut wire, Kind::Sasl, 0, |out| sasl.encode(out));
        self.bytes(&wire);
    }

    /// The peer attaches; the link.
    fn attach(&mut self, attach: Attach) -> LinkId {
        self.peer(0, Performative::Attach(Box::new(attach)));
        let last = self.events.iter().rev().find_map(|event| match event {
            Output::Attached { link, .. } => Some(*link),
            _ => None,
        });
        last.expect("a link was attached")
    }

    fn accept(&mut self, link: LinkId, window: u32) {
        let accepted = Accepted {
            link,
            source: Some(Source::default()),
            target: Some(TargetKind::Target(Box::default())),
            window,
            offered_capabilities: Vec::new(),
            properties: Vec::new(),
        };
        self.input(Input::Accept(Box::new(accepted)));
    }

    /// A link of the peer to this side, accepted.
    fn publisher(&mut self, name: &str, handle: u32, window: u32) -> LinkId {
        let link = self.attach(sender(name, handle));
        self.accept(link, window);
        link
    }

    /// A link of this side to the peer, with credit.
    fn subscriber(&mut self, name: &str, handle: u32, credit: u32) -> LinkId {
        let link = self.attach(Attach::new(name, handle, Role::Receiver));
        self.accept(link, 0);
        self.grant(handle, 0, credit, false);
        link
    }

    fn grant(&mut self, handle: u32, count: u32, credit: u32, drain: bool) {
        self.flow(2048, Some((handle, count, credit, drain)));
    }

    fn flow(&mut self, window: u32, link: Option<(u32, u32, u32, bool)>) {
        let link = link.map(|(handle, delivery_count, link_credit, drain)| LinkFlow {
            handle,
            delivery_count: Some(delivery_count),
            link_credit: Some(link_credit),
            available: None,
            drain,
        });
        let next_incoming_id = u32::try_from(self.payloads.len()).unwrap();
        let flow = Flow {
            next_incoming_id: Some(next_incoming_id),
            incoming_window: window,
            next_outgoing_id: 0,
            outgoing_window: 2048,
            link,
            echo: false,
            properties: Vec::new(),
        };
        self.peer(0, Performative::Flow(Box::new(flow)));
    }

    fn transfer(&mut self, handle: u32, delivery: u32, settled: bool, message: &[u8]) {
        self.peer_with(
            0,
            Performative::Transfer(Box::new(first(handle, delivery, settled))),
            message,
        );
    }

    fn deliver(&mut self, link: LinkId, delivery: u64, settled: bool, message: &[u8]) {
        let message = Bytes::copy_from_slice(message);
        self.input(Input::Deliver { link, delivery, settled, message });
    }

    /// What was said since the last time.
    fn said(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.events)
    }

    fn sent(&mut self) -> Vec<Performative> {
        std::mem::take(&mut self.sent)
    }

    /// Transfers among what was sent.
    fn transfers(&mut self) -> Vec<Transfer> {
        let transfer = |it| if let Performative::Transfer(it) = it { Some(*it) } else { None };
        self.sent().into_iter().filter_map(transfer).collect()
    }

    /// The error with which this side has closed, if it has.
    fn closed_with(&self) -> Option<String> {
        self.sent.iter().find_map(|it| match it {
            Performative::Close(close) => Some(close.error.as_ref()?.condition.as_str().to_owned()),
            _ => None,
        })
    }

    fn ended_with(&self) -> Option<String> {
        self.sent.iter().find_map(|it| match it {
            Performative::End(end) => Some(end.error.as_ref()?.condition.as_str().to_owned()),
            _ => None,
        })
    }

    fn detached_with(&self) -> Option<(bool, String)> {
        self.sent.iter().find_map(|it| match it {
            Performative::Detach(it) => {
                Some((it.closed, it.error.as_ref()?.condition.as_str().to_owned()))
            }
            _ => None,
        })
    }
}

fn sender(name: &str, handle: u32) -> Attach {
    let mut attach = Attach::new(name, handle, Role::Sender);
    attach.initial_delivery_count = Some(0);
    attach
}

fn first(handle: u32, delivery: u32, settled: bool) -> Transfer {
    Transfer {
        handle,
        delivery_id: Some(delivery),
        delivery_tag: Some(delivery.to_be_bytes().to_vec().into()),
        message_format: Some(0),
        settled: Some(settled),
        ..Transfer::default()
    }
}

fn disposition(role: Role, first: u32, last: u32, settled: bool) -> Performative {
    let state = Some(DeliveryState::Accepted);
    Performative::Disposition(Disposition {
        role,
        first,
        last: Some(last),
        settled,
        state,
        batchable: false,
    })
}
