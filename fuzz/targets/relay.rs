//! A relay whose peer is hostile, whose clients are moody and whose carriers break, in any order:
//! no panic, no byte beyond the credit, one head, nothing after the end, nothing forwarded twice,
//! bounded memory.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codec::Options;
use codec::dictionary::Id;
use codec::infoset::SchemaContext;
use coding::job::{Contexts, Job};
use coding::{ExchangeId, Secret, Service, Speeds};
use decide::arm::Speed;
use decide::estimate::Transport;
use libfuzzer_sys::fuzz_target;
use proto::bhttp::{Request, Response};
use proto::control::{Allowed, Drained, Keeping, Processor, Receipt};
use proto::exchange::{Abort, Data, Head as HeadPart, OutcomeState, Part};
use proto::profile::{Decoding, Model, Profile};
use proto::stream::{Frame, Hello};
use proto::urgency::Urgency;
use relay::{
    CarrierId, CarrierKind, Cause, CauseKind, Config, Handling, Head, Input, Known, Output,
    Overflow, Relay, Role,
};

/// Steps of one life; more would only take time.
const MAX_STEPS: usize = 400;
/// What the peer calls itself.
const PEER: u64 = 7;
const MAX_HELD_BYTES: usize = 64 << 20;
/// A long piece of body: how it goes on is decided behind full blocks.
const LONG_BYTES: usize = 64 << 10;
/// What the peer has: some for blocks, the delta, and those that give an infoset back.
const CODECS: [u64; 8] = [0, 1, 2, 10, 11, 5, 6, 7];

/// With a service whose infoset is enough, so that such messages are read.
fn config(role: Role) -> Config {
    let mut config = Config { secret: Some(Secret::new([7; 32])), ..Config::new(role, 1) };
    config.encoding.allow_infoset();
    let infoset = Some(Arc::new(SchemaContext::without_schema()));
    config.services = vec![Service { infoset, ..Service::default() }];
    config.handling = vec![Handling {
        urgency: Urgency::new(1),
        lifetime: Some(Duration::from_secs(5)),
        overflow: Overflow::Superseded,
    }];
    config
}

fuzz_target!(|data: &[u8]| {
    let Some((&role, script)) = data.split_first() else { return };
    let role = if role.is_multiple_of(2) { Role::Edge } else { Role::Gateway };
    let mut life = Life::new(role, script);
    for _ in 0..MAX_STEPS {
        let Some(step) = life.byte() else { break };
        life.step(step);
        assert!(life.relay.load().held_bytes < MAX_HELD_BYTES);
    }
});

/// What may be sent before the peer's HELLO: mostly this side's own.
fn may_go_early(frame: &Frame) -> bool {
    match frame {
        Frame::Part(Part::Head(head)) => head.end && head.codec == 0,
        Frame::Hello(_)
        | Frame::Part(Part::Abort(_))
        | Frame::Part(Part::Control(Keeping::KIND, _)) => true,
        _ => false,
    }
}

/// What the local side knows of an exchange.
#[derive(Default)]
struct Local {
    headed: bool,
    ended: bool,
    /// Bytes that the relay may still hand over.
    credit: u64,
    /// Bytes that may still be handed to the relay.
    allowed: u64,
    answered: bool,
    sent_end: bool,
}

struct Life<'a> {
    relay: Relay,
    role: Role,
    now: Duration,
    wake_at: Option<Duration>,
    script: &'a [u8],
    carrier: CarrierId,
    /// Edge: one that it waits for.
    dialled: Option<CarrierId>,
    /// What the peer has still to say first.
    hello: Option<Hello>,
    /// The peer takes blocks that begin a context anew.
    takes_anew: bool,
    /// What the peer got that is no whole frame yet.
    sent: BytesMut,
    open: BTreeMap<ExchangeId, Local>,
    /// Over for the local side: nothing may come for these.
    gone: BTreeSet<ExchangeId>,
    /// Requests that must not be forwarded again, whatever the peer says.
    forwarded: BTreeSet<ExchangeId>,
    contexts: BTreeMap<ExchangeId, Contexts>,
    todo: Vec<Input>,
}

impl<'a> Life<'a> {
    fn new(role: Role, script: &'a [u8]) -> Self {
        let config = config(role);
        let speed = Speed { fixed_s: 1e-5, per_byte_s: 1e-8 };
        let speeds = |options: &Options| Speeds { options: *options, encode: speed, decode: speed };
        let speeds = config.encoding.arms().iter().map(speeds).collect();
        let mut relay = Relay::new(config);
        relay.handle_input(Duration::ZERO, Input::Speeds(speeds));
        Self {
            relay,
            role,
            now: Duration::ZERO,
            wake_at: None,
            script,
            carrier: CarrierId(1 << 32),
            dialled: None,
            hello: None,
            takes_anew: false,
            sent: BytesMut::new(),
            open: BTreeMap::new(),
            gone: BTreeSet::new(),
            forwarded: BTreeSet::new(),
            contexts: BTreeMap::new(),
            todo: Vec::new(),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.script.split_first()?;
        self.script = rest;
        Some(first)
    }

    fn number(&mut self) -> u64 {
        u64::from(self.byte().unwrap_or(0))
    }

    /// Up to `16 * 255` bytes: a run of the script, over and over.
    fn bytes(&mut self) -> Bytes {
        let len = usize::from(self.byte().unwrap_or(0));
        let (run, rest) = self.script.split_at(len.min(self.script.len()).min(16));
        self.script = rest;
        run.repeat(len.max(1)).into()
    }

    /// The same, or as many as a full block has, of that or of noise.
    fn piece(&mut self, kind: u8) -> Bytes {
        let short = self.bytes();
        match kind % 4 {
            2 => short.iter().copied().cycle().take(LONG_BYTES).collect(),
            3 => {
                let seed =
                    |state: u64, byte: &u8| state.wrapping_mul(31).wrapping_add((*byte).into());
                let mut state = short.iter().take(8).fold(1, seed) | 1;
                let mut noise = || {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state.to_le_bytes()[3]
                };
                (0..LONG_BYTES).map(|_| noise()).collect()
            }
            _ => short,
        }
    }

    /// One of the open exchanges, or one that nobody knows.
    fn exchange(&mut self) -> ExchangeId {
        let pick = usize::from(self.byte().unwrap_or(0));
        let known = self.open.keys().nth(pick % (self.open.len() + 1)).copied();
        known.unwrap_or(ExchangeId { instance: PEER, number: 1 + pick as u64 % 8 })
    }

    fn step(&mut self, step: u8) {
        match step % 12 {
            0 => self.local_head(),
            1 => self.local_data(step / 12),
            2 => self.local_end(),
            3 => self.local_abort(),
            4 => self.local_credit(),
            5 => self.carrier_up(),
            6 => self.input(Input::CarrierDown { carrier: self.carrier, reason: "cut".into() }),
            7 => self.wake(),
            8 => {
                let bytes = self.bytes();
                self.input(Input::Received { carrier: self.carrier, bytes });
            }
            9 if step > 250 => self.input(Input::Shutdown),
            _ => self.peer_frame(),
        }
    }

    fn carrier_up(&mut self) {
        let other = CarrierId((1 << 32) | (self.carrier.0 + 1));
        self.carrier = self.dialled.take().unwrap_or(other);
        self.sent.clear();
        let (initial_credit, max_exchanges) = (1 + 1024 * self.number(), self.number());
        self.takes_anew = !max_exchanges.is_multiple_of(4);
        self.hello = Some(Hello {
            version_min: 1,
            version_max: 1,
            instance: PEER,
            initial_credit,
            max_exchanges,
            codecs: CODECS.to_vec(),
            max_window_log: 20,
            anew: self.takes_anew,
            parallel: self.takes_anew,
            counts: self.takes_anew,
            packs: self.takes_anew,
        });
        self.input(Input::CarrierUp {
            carrier: self.carrier,
            kind: CarrierKind::FIRST,
            peer: "peer".into(),
        });
        // Else with its next word: until then other things happen.
        if max_exchanges.is_multiple_of(2) {
            self.say_hello();
        }
    }

    fn say_hello(&mut self) {
        if let Some(hello) = self.hello.take() {
            self.frame(&Frame::Hello(hello));
        }
    }

    fn wake(&mut self) {
        let late = Duration::from_millis(self.number());
        self.now = self.wake_at.unwrap_or(self.now).max(self.now) + late;
        self.input(Input::Wake);
    }

    fn frame(&mut self, frame: &Frame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.input(Input::Received { carrier: self.carrier, bytes: bytes.into() });
    }

    fn transport(&mut self) -> Transport {
        let mut number = || u32::try_from(self.number()).unwrap_or(0);
        Transport {
            rtt: Duration::from_micros(u64::from(number()) << 12),
            min_rtt: Duration::from_micros(u64::from(number()) << 10),
            delivered_bytes_per_s: u64::from(number()) << 16,
            app_limited: number() % 2 == 0,
            segments_out: number() << 24,
            bytes_out: u64::from(number()) << 30,
            retransmitted: number(),
            timeouts: number() % 9,
            duplicates: number(),
            window_segments: number(),
            threshold_segments: number(),
            receiver_window_bytes: number() << 8,
            segment_bytes: number() << 4,
            backlog_bytes: u64::from(number()) << 8,
            idle: Duration::from_micros(u64::from(number()) << 12),
            repairs: number() % 2 == 1,
            lockstep: number() % 2 == 1,
            incoming_loss_ppm: Some(number() << 8),
        }
    }

    fn peer_frame(&mut self) {
        self.say_hello();
        let (kind, exchange) = (self.number(), self.exchange().number);
        let end = kind >= 128;
        let frame = match kind % 12 {
            0 | 1 => {
                let mut head = Vec::new();
                match self.role {
                    Role::Edge => response(200).encode(&mut head),
                    Role::Gateway => request(end).encode(&mut head),
                }
                let codec = CODECS[usize::from(self.byte().unwrap_or(0)) % CODECS.len()];
                let window_log = if codec == 0 { 0 } else { 15 };
                Frame::Part(Part::Head(HeadPart {
                    exchange,
                    codec,
                    window_log,
                    end,
                    head: head.into(),
                }))
            }
            2..=4 => {
                let block_end = (kind % 12 != 2).then(|| self.number() * 16);
                let coding = self.number();
                let (uncoded, anew) = (coding.is_multiple_of(2), coding % 8 == 7);
                let end = end && block_end.is_some();
                Frame::Part(Part::Data(Data {
                    exchange,
                    block_end,
                    uncoded,
                    anew,
                    end,
                    padding: None,
                    bytes: self.bytes(),
                }))
            }
            5 => Frame::Part(Part::Credit(exchange, self.number() << 8)),
            6 => Frame::Part(Part::Abort(Abort {
                exchange,
                code: self.number(),
                reason: "hostile".into(),
            })),
            7 => Frame::Part(Part::Query(exchange, 1)),
            8 => Frame::Part(Part::Outcome(exchange, outcome(self.number()))),
            9 => Frame::Part(Part::Trailers(exchange, Vec::new())),
            10 => Frame::Part(Part::Interim(exchange, 100)),
            _ => match self.number() % 9 {
                0 => Frame::Part(Part::GoAway),
                1 => Frame::Part(Part::Control(self.number(), self.bytes())),
                2 => {
                    let micros = |number: u64| Duration::from_micros(number << 6);
                    let (bytes, held_up) = (self.number(), end);
                    let spread = micros(self.number());
                    let (decode, tail) = (micros(self.number()), micros(self.number()));
                    Receipt { exchange, bytes, spread, decode, tail, held_up }.part().into()
                }
                3 => Drained { requests: self.number() % 8 }.part().into(),
                7 => {
                    let pattern = "x".repeat(exchange as usize % 64);
                    Allowed::of(vec![pattern; usize::from(end)]).part().into()
                }
                4 => self.keeping(exchange).part().into(),
                5 => Processor::wanted().into(),
                6 => {
                    let encodings = self.encodings();
                    let model = Model { encodings };
                    let mut bytes = Vec::new();
                    model.encode(&mut bytes);
                    let hash = Id::of(&bytes).short();
                    Processor::reported(&Profile { hash, model: Some(model), link: None }).into()
                }
                _ => Frame::Ping(self.number()),
            },
        };
        self.frame(&frame);
    }

    /// How fast the peer decodes, as it says.
    fn encodings(&mut self) -> Vec<Decoding> {
        let codecs = 0..self.number() % 12;
        let time = |bits: u64| f32::from_bits((bits as u32) << 23);
        codecs
            .map(|codec| {
                let (fixed_s, per_byte_s) = (time(self.number()), time(self.number()));
                Decoding { codec, fixed_s, per_byte_s }
            })
            .collect()
    }

    fn keeping(&mut self, exchange: u64) -> Keeping {
        let id = [self.byte().unwrap_or(0); 8];
        match self.number() % 11 {
            0 => Keeping::Principal { exchange, principal: self.number() % 3 },
            1 => Keeping::Keep { exchange, slot: self.number() % Keeping::SLOTS },
            2 => Keeping::Kept { exchange, id },
            3 => Keeping::Missing { exchange },
            4 => Keeping::Offer { id: [id[0]; 32], bytes: self.number() },
            5 => Keeping::Want { id },
            6 => Keeping::Part { id, bytes: self.bytes() },
            7 => Keeping::Held { id },
            8 => Keeping::Name { principal: self.number() % 3, name: self.number() },
            9 => Keeping::Schema { id, bytes: self.number() },
            _ => Keeping::Identity { exchange, bytes: self.bytes() },
        }
    }

    fn local_head(&mut self) {
        let end = self.number() >= 128;
        match self.role {
            Role::Edge => {
                let exchange = self.relay.next_exchange();
                self.open.insert(exchange, Local { sent_end: end, ..Local::default() });
                let client = format!("client {}", self.number() % 3).into();
                let other_way = self.number() >= 192;
                let known = Box::new(Known { client: Some(client), service: None, other_way });
                let request = request(end);
                self.input(Input::Request { exchange, request, end, known });
            }
            Role::Gateway => {
                let exchange = self.exchange();
                let Some(local) = self.open.get_mut(&exchange) else { return };
                if !std::mem::replace(&mut local.answered, true) {
                    local.sent_end = end;
                    let response = response(200);
                    self.input(Input::Response { exchange, response, end });
                }
            }
        }
    }

    fn local_data(&mut self, kind: u8) {
        let (exchange, bytes) = (self.exchange(), self.piece(kind));
        let Some(local) = self.open.get_mut(&exchange) else { return };
        let may = (self.role == Role::Edge || local.answered) && !local.sent_end;
        let len = local.allowed.min(bytes.len() as u64);
        if may && len > 0 {
            local.allowed -= len;
            let bytes = bytes.slice(..usize::try_from(len).unwrap_or(0));
            self.input(Input::Data { exchange, bytes });
        }
    }

    fn local_end(&mut self) {
        let exchange = self.exchange();
        let Some(local) = self.open.get_mut(&exchange) else { return };
        let may = self.role == Role::Edge || local.answered;
        if may && !std::mem::replace(&mut local.sent_end, true) {
            self.input(Input::End { exchange, trailers: Vec::new() });
        }
    }

    fn local_abort(&mut self) {
        let exchange = self.exchange();
        if self.open.remove(&exchange).is_some() {
            self.gone.insert(exchange);
            let cause = Cause { kind: CauseKind::ClientGone, reason: "gone".into() };
            self.input(Input::Abort { exchange, cause });
        }
    }

    fn local_credit(&mut self) {
        let (exchange, bytes) = (self.exchange(), self.number() * 64);
        if let Some(local) = self.open.get_mut(&exchange) {
            local.credit += bytes;
            self.input(Input::Credit { exchange, bytes });
        }
    }

    /// One input and all that follows from it.
    fn input(&mut self, input: Input) {
        self.todo.push(input);
        while let Some(input) = self.todo.pop() {
            self.relay.handle_input(self.now, input);
            while let Some(output) = self.relay.poll_output() {
                self.output(output);
            }
        }
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Transmit { carrier, bytes } => {
                if carrier == self.carrier {
                    self.peer_takes(&bytes);
                }
                self.todo.push(Input::Sent { carrier, bytes: bytes.len() });
            }
            Output::Job(job) => {
                let done = self.runs(&job);
                self.todo.push(done);
            }
            Output::Release { exchange } => {
                self.contexts.remove(&exchange);
            }
            Output::WakeAt(at) => self.wake_at = Some(at),
            Output::Head { exchange, head, end } => self.head(exchange, &head, end),
            Output::Data { exchange, bytes } => {
                let local = self.open.get_mut(&exchange).expect("of an open exchange");
                assert!(local.headed && !local.ended, "data outside head and end");
                let left = local.credit.checked_sub(bytes.len() as u64);
                local.credit = left.expect("no more than the credit");
            }
            Output::End { exchange, .. } => {
                let local = self.open.get_mut(&exchange).expect("of an open exchange");
                assert!(local.headed && !local.ended, "a second end");
                local.ended = true;
            }
            Output::Credit { exchange, bytes } => {
                if let Some(local) = self.open.get_mut(&exchange) {
                    local.allowed += bytes;
                }
            }
            Output::Abort { exchange, .. } => {
                // A gateway may refuse what its local side never heard of.
                let known = self.open.remove(&exchange).is_some();
                assert!(known || self.role == Role::Gateway, "an abort of nothing");
                assert!(self.gone.insert(exchange), "an abort after the end");
            }
            Output::Measure { carrier } => {
                let transport = self.transport();
                self.todo.push(Input::Transport { carrier, transport });
            }
            Output::Dial { carrier, .. } => self.dialled = Some(carrier),
            Output::Client(_) => panic!("no client without an edge asks"),
            Output::Datagram { .. }
            | Output::Stream { .. }
            | Output::Close { .. }
            | Output::Interim { .. }
            | Output::ClientEnded { .. }
            | Output::Allowed(_)
            | Output::Used { .. }
            | Output::Forget { .. }
            | Output::Event(_) => {}
            Output::Store { name, bytes } => {
                // What it gives to keep it takes again.
                Relay::new(Config::new(self.role, 3)).restore_dictionary(name, &bytes).unwrap();
            }
        }
    }

    fn head(&mut self, exchange: ExchangeId, head: &Head, end: bool) {
        let local = match (self.role, head) {
            (Role::Gateway, Head::Request(request)) => {
                let first = self.forwarded.insert(exchange);
                assert!(first || request.method == "GET", "forwarded twice");
                self.gone.remove(&exchange);
                self.open.entry(exchange).or_default()
            }
            (Role::Gateway, Head::Opening(opening)) => {
                let first = self.forwarded.insert(exchange);
                assert!(first || opening.delivery.repeatable, "forwarded twice");
                self.gone.remove(&exchange);
                self.open.entry(exchange).or_default()
            }
            (Role::Edge, Head::Response(_)) => {
                self.open.get_mut(&exchange).expect("of an open exchange")
            }
            _ => panic!("a head of the other role"),
        };
        assert!(!local.headed, "a second head");
        (local.headed, local.ended) = (true, end);
    }

    /// What a peer would not know is not sent to it.
    fn peer_takes(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        while let Some(frame) = Frame::take(&mut self.sent).expect("what a relay sends") {
            assert!(self.hello.is_none() || may_go_early(&frame), "{frame:?} before HELLO");
            let anew = matches!(frame, Frame::Part(Part::Data(data)) if data.anew);
            assert!(self.takes_anew || !anew, "a context that begins anew");
        }
    }

    fn runs(&mut self, job: &Job) -> Input {
        let mut none = Contexts::default();
        let contexts = match job.context_of() {
            Some(exchange) => self.contexts.entry(exchange).or_default(),
            None => &mut none,
        };
        Input::Done(job.run(contexts))
    }
}

fn request(idempotent: bool) -> Request {
    Request {
        method: if idempotent { "GET" } else { "POST" }.into(),
        scheme: "http".into(),
        authority: "origin.example".into(),
        path: "/".into(),
        fields: vec![("content-type".into(), "text/xml".into())],
    }
}

fn response(status: u16) -> Response {
    Response { status, fields: vec![("content-type".into(), "text/xml".into())] }
}

fn outcome(number: u64) -> OutcomeState {
    match number % 6 {
        0 => OutcomeState::NotSeen,
        1 => OutcomeState::Answer,
        2 => OutcomeState::Lost(200),
        3 => OutcomeState::Aborted,
        4 => OutcomeState::Forgotten,
        _ => OutcomeState::Unfinished,
    }
}
