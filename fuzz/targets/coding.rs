//! The form of messages, with a peer that is hostile and a caller that does all that it may, in any
//! order: no panic, one head for a message, nothing behind its end, bounded memory.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use codec::Table;
use codec::infoset::SchemaContext;
use coding::api::{Abilities, About, Departed, Input, Message, Output, Piece, Wire};
use coding::job::{Contexts, Job};
use coding::{Coding, Config, Encoding, ExchangeId, PathId, Secret, Service};
use libfuzzer_sys::fuzz_target;
use proto::control::{Keeping, Processor, Receipt};
use proto::exchange::MAX_BLOCK_BYTES;
use record::decision::Direction;

/// Steps of one life; more would only take time.
const MAX_STEPS: usize = 300;
const MAX_HELD_BYTES: usize = 64 << 20;
const CODEC_BYTES: usize = 8 << 20;
/// Exchanges at once, and paths.
const MAX_EXCHANGES: u64 = 6;
const MAX_PATHS: u64 = 2;
const CODECS: [u64; 8] = [0, 1, 2, 10, 11, 5, 6, 7];
const KINDS: [u64; 4] = [Receipt::KIND, Keeping::KIND, Processor::KIND, 99];

fuzz_target!(|data: &[u8]| {
    let Some((&sends, script)) = data.split_first() else { return };
    let mut life = Life::new(sends.is_multiple_of(2), script);
    for _ in 0..MAX_STEPS {
        let Some(step) = life.byte() else { break };
        life.step(step);
        let held: usize = life.open.keys().map(|id| life.coding.held_bytes(*id)).sum();
        assert!(held < MAX_HELD_BYTES && life.coding.codec_bytes() < 8 * CODEC_BYTES);
    }
});

/// What is known of an exchange.
#[derive(Default)]
struct One {
    begun: bool,
    ended: bool,
    settled: bool,
    sent_all: bool,
    expected: bool,
    came: bool,
    decoded: bool,
    faulted: bool,
    contexts: Contexts,
}

struct Life<'a> {
    coding: Coding,
    asks: bool,
    now: Duration,
    script: &'a [u8],
    open: BTreeMap<ExchangeId, One>,
    paths: u64,
    todo: Vec<Input>,
}

impl<'a> Life<'a> {
    fn new(asks: bool, script: &'a [u8]) -> Self {
        let mut encoding = Encoding::auto();
        encoding.allow_infoset();
        let infoset = Some(Arc::new(SchemaContext::without_schema()));
        let config = Config {
            sends: if asks { Direction::Request } else { Direction::Response },
            instance: 1,
            secret: Some(Secret::new([7; 32])),
            encoding,
            services: vec![Service { infoset, ..Service::default() }],
            rate_cap_bps: None,
            body_timeout: Duration::from_secs(30),
            codecs: Table::default(),
            codec_bytes: CODEC_BYTES,
        };
        let (coding, now, open) = (Coding::new(config), Duration::ZERO, BTreeMap::new());
        Self { coding, asks, now, script, open, paths: 0, todo: Vec::new() }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.script.split_first()?;
        self.script = rest;
        Some(first)
    }

    fn number(&mut self) -> u64 {
        u64::from(self.byte().unwrap_or(0))
    }

    /// A run of the script, over and over, up to the length of a block.
    fn bytes(&mut self) -> Bytes {
        let times = usize::from(self.byte().unwrap_or(0));
        let (run, rest) = self.script.split_at(times.min(self.script.len()).min(32));
        self.script = rest;
        let times = if times > 200 { MAX_BLOCK_BYTES } else { times.max(1) };
        let mut bytes = run.repeat(times.min(1 + MAX_BLOCK_BYTES / run.len().max(1)));
        bytes.truncate(MAX_BLOCK_BYTES);
        bytes.into()
    }

    fn exchange(&mut self) -> ExchangeId {
        ExchangeId { instance: 1, number: 1 + self.number() % MAX_EXCHANGES }
    }

    /// One of the paths of late.
    fn path(&mut self) -> PathId {
        PathId(self.paths.saturating_sub(self.number() % MAX_PATHS))
    }

    fn step(&mut self, step: u8) {
        self.now += Duration::from_micros(u64::from(step) << 8);
        let exchange = self.exchange();
        match step % 16 {
            0 => self.opens(exchange),
            1 | 2 => self.body(exchange),
            3 => self.message(exchange),
            4 | 5 => self.peer_body(exchange),
            6 => self.expects(exchange),
            7 => self.path_up(),
            8 => {
                let path = self.path();
                self.input(Input::Down { path });
            }
            9 => {
                let path = self.path();
                self.input(Input::Attach { exchange, path });
            }
            10 => self.input(Input::Detach { exchange, waits: step > 127 }),
            11 => self.input(Input::Forget { exchange }),
            12 => {
                let late = Duration::from_millis(50 * self.number());
                self.now += late;
                self.input(Input::Wake);
            }
            13 => {
                let path = self.path();
                self.input(if step > 127 { Input::Leaves { path } } else { Input::Flush { path } });
            }
            _ => self.control(),
        }
    }

    fn opens(&mut self, exchange: ExchangeId) {
        if self.open.contains_key(&exchange) {
            return self.input(Input::Answered { exchange, private: self.asks });
        }
        self.open.insert(exchange, One::default());
        let kind = self.number();
        let about = About {
            target: "http://origin".to_owned(),
            operation: "GET /".to_owned(),
            service: kind.is_multiple_of(2).then_some(0),
            tunnel: kind % 8 == 7,
            requester: Some(codec::dictionary::Id::of(&[u8::from(kind > 127)])),
            cross_site: kind % 16 == 5,
            private: kind % 16 == 6,
        };
        self.input(Input::Open { exchange, about });
        let path = self.path();
        self.input(Input::Attach { exchange, path });
    }

    fn message(&mut self, exchange: ExchangeId) {
        let kind = self.number();
        let Some(one) = self.open.get_mut(&exchange) else { return };
        if std::mem::replace(&mut one.begun, true) {
            return;
        }
        one.ended = kind > 200;
        let media = ["text/xml", "application/json", "image/png"][kind as usize % 3];
        let message = Message {
            media: Some(media.to_owned()),
            coded: kind % 16 == 1,
            length: None,
            exact: (kind % 16 == 2).then_some("signed"),
            head_bytes: 20,
            urgent: kind % 16 == 3,
            end: one.ended,
            recipient: None,
        };
        self.input(Input::Message { exchange, message });
    }

    fn body(&mut self, exchange: ExchangeId) {
        let (kind, bytes) = (self.number(), self.bytes());
        let Some(one) = self.open.get_mut(&exchange).filter(|one| one.begun && !one.ended) else {
            return;
        };
        if self.coding.held_bytes(exchange) < 4 * MAX_BLOCK_BYTES {
            one.ended = kind > 127;
            let ended = one.ended;
            self.input(Input::Body { exchange, bytes });
            if ended {
                self.input(Input::End { exchange, trailers: kind.is_multiple_of(2) });
            }
        }
    }

    fn expects(&mut self, exchange: ExchangeId) {
        let (kind, codec) = (self.number(), CODECS[self.number() as usize % CODECS.len()]);
        let Some(one) = self.open.get_mut(&exchange) else { return };
        if std::mem::replace(&mut one.expected, true) {
            return;
        }
        one.came = kind > 200;
        let window_log = if codec == 0 { 0 } else { 15 };
        let Ok(options) = Table::default().options(codec, window_log) else { return };
        self.input(Input::Expect { exchange, options, end: kind > 200 });
    }

    fn peer_body(&mut self, exchange: ExchangeId) {
        let (kind, len, bytes) = (self.number(), self.number() << 4, self.bytes());
        let Some(one) = self.open.get_mut(&exchange).filter(|one| one.expected && !one.came) else {
            return;
        };
        if self.coding.held_bytes(exchange) > 4 * MAX_BLOCK_BYTES {
            return;
        }
        let block_end = (!kind.is_multiple_of(8)).then_some(len);
        let end = kind > 200 && block_end.is_some();
        one.came = end;
        let piece = Piece { block_end, uncoded: kind % 4 == 1, anew: kind % 4 == 2, end, bytes };
        self.input(Input::Piece { exchange, piece, received: 0 });
        if let Some(one) = self.open.get_mut(&exchange).filter(|_| kind == 127) {
            one.came = true;
            self.input(Input::PeerEnd { exchange });
        }
    }

    fn path_up(&mut self) {
        self.paths += 1;
        let kind = self.number();
        let abilities = Abilities {
            codecs: CODECS.to_vec(),
            max_window_log: 20,
            renews: kind.is_multiple_of(2),
            initial_credit: 1 + kind * 1024,
            early: kind % 8 == 1,
        };
        let (path, peer) = (PathId(self.paths), "peer".to_owned());
        self.input(Input::Up { path, peer, kind: "stream", instance: 7, abilities });
        let wire = Wire { idle: kind > 64, ..Wire::default() };
        self.input(Input::Wire { path, wire });
    }

    fn control(&mut self) {
        let (path, kind) = (self.path(), KINDS[self.number() as usize % KINDS.len()]);
        let content = self.bytes();
        self.input(Input::Control { path, kind, content });
    }

    /// One input and all that follows from it.
    fn input(&mut self, input: Input) {
        self.todo.push(input);
        while let Some(input) = self.todo.pop() {
            if let Input::Forget { exchange } = &input {
                self.open.remove(exchange);
            }
            self.coding.handle_input(self.now, input);
            while let Some(output) = self.coding.poll_output() {
                self.output(output);
            }
        }
    }

    /// An exchange that is open; of one that cannot go on what still comes counts for nothing.
    fn one(&mut self, exchange: ExchangeId) -> Option<&mut One> {
        let one = self.open.get_mut(&exchange).expect("of an open exchange");
        Some(one).filter(|one| !one.faulted)
    }

    fn output(&mut self, output: Output) {
        match output {
            Output::Settled { exchange, .. } => {
                let Some(one) = self.one(exchange) else { return };
                assert!(one.begun && !std::mem::replace(&mut one.settled, true), "a second head");
                self.todo.push(Input::Led { exchange });
            }
            Output::Block { exchange, end, .. } => {
                let Some(one) = self.one(exchange) else { return };
                assert!(one.settled && !one.sent_all, "a block outside head and end");
                one.sent_all = end;
                let departed = Departed { body: true, block: true, more: false, end };
                self.todo.push(Input::Departed { exchange, departed });
            }
            Output::Anew { exchange, .. } => {
                let Some(one) = self.one(exchange) else { return };
                (one.settled, one.sent_all) = (true, true);
            }
            Output::Body { exchange, .. } => {
                let Some(one) = self.one(exchange) else { return };
                assert!(one.expected && !one.decoded, "a body outside head and end");
                self.todo.push(Input::Delivered { exchange, all: true });
            }
            Output::Received { exchange } => {
                let Some(one) = self.one(exchange) else { return };
                assert!(!std::mem::replace(&mut one.decoded, true), "a second end");
            }
            Output::Fault { exchange, .. } => {
                self.open.get_mut(&exchange).expect("of an open exchange").faulted = true;
                self.todo.push(Input::Forget { exchange });
            }
            Output::Job(job) => {
                let done = self.runs(&job);
                self.todo.push(done);
            }
            _ => {}
        }
    }

    fn runs(&mut self, job: &Job) -> Input {
        let mut none = Contexts::default();
        let one = job.context_of().and_then(|exchange| self.open.get_mut(&exchange));
        let done = job.run(one.map_or(&mut none, |one| &mut one.contexts));
        Input::Done(done.took(Duration::from_micros(50)))
    }
}
