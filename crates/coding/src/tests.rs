//! What two machines do side by side, where a test has to take something away from one of them, or
//! to see into it; what shows from outside is tested with relays around them.

mod bases;
mod dictionaries;
mod memory;
mod recipients;
mod schemas;
mod trial;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use codec::dictionary::{Id, Kept};
use codec::{Options, Table};
use decide::estimate::Estimate;
use record::decision::Direction;
use record::event::Fact;

use super::*;
use api::{Abilities, About, Departed, Input, Message, Output, Piece, Wire};
use job::{Contexts, Job, Prepare};
use path::Path;

pub(crate) const EDGE: usize = 0;
pub(crate) const GATEWAY: usize = 1;
const PATH: PathId = PathId(7);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Settings of the side that sends requests, or of the other one.
fn config(at: usize) -> Config {
    Config {
        sends: if at == EDGE { Direction::Request } else { Direction::Response },
        instance: 1 + at as u64,
        secret: None,
        codecs: Table::default(),
        encoding: Encoding::auto(),
        services: Vec::new(),
        rate_cap_bps: None,
        body_timeout: ms(30_000),
        codec_bytes: 32 << 20,
    }
}

/// What a peer says that decodes all.
fn abilities(coding: &Coding) -> Abilities {
    Abilities {
        codecs: coding.codecs().collect(),
        max_window_log: 22,
        renews: true,
        initial_credit: 128 << 10,
        early: false,
    }
}

/// Runs a job as a thread of a pool would.
fn run(job: &Job, contexts: &mut Contexts) -> Input {
    Input::Done(job.run(contexts).took(Duration::from_micros(50)))
}

/// One of two machines.
struct End {
    coding: Coding,
    contexts: Contexts,
    /// What this side's message goes in, before its head has gone.
    head: Option<Options>,
    facts: Vec<Fact>,
    /// What was not used of what the peer said.
    ignored: Vec<(String, String)>,
    /// The body of the peer's message.
    body: BytesMut,
    received: bool,
    /// What the shell keeps.
    kept: BTreeMap<[u8; 32], Bytes>,
    /// Bytes that crossed to the peer.
    crossed: u64,
}

impl End {
    fn new(config: Config) -> Self {
        Self {
            coding: Coding::new(config),
            contexts: Contexts::default(),
            head: None,
            facts: Vec::new(),
            ignored: Vec::new(),
            body: BytesMut::new(),
            received: false,
            kept: BTreeMap::new(),
            crossed: 0,
        }
    }

    /// The encodings of this side's messages so far.
    fn chosen(&self) -> Vec<&str> {
        let chosen = self.facts.iter().filter_map(|fact| match fact {
            Fact::Chosen { encoding, .. } => Some(encoding.as_str()),
            _ => None,
        });
        chosen.collect()
    }

    fn path(&mut self) -> &mut Path {
        self.coding.paths.get_mut(&PATH).unwrap()
    }
}

/// What is to be done next at one of the ends.
enum Step {
    Take(Input),
    /// A block leaves.
    Leave(ExchangeId, Piece),
}

/// Two of them, with a path between them on which nothing is lost.
struct Pair {
    ends: [End; 2],
    now: Duration,
    /// Of the services that are set the one that counts.
    service: Option<usize>,
    answer: Vec<u8>,
    number: u64,
    todo: VecDeque<(usize, Step)>,
    /// What the gateway sends is held back.
    held: Option<Vec<Input>>,
    /// There is no room left when a message is to be kept.
    full: bool,
}

impl Pair {
    fn new() -> Self {
        Self::with([config(EDGE), config(GATEWAY)], None)
    }

    fn with(configs: [Config; 2], service: Option<usize>) -> Self {
        let mut pair = Self {
            ends: configs.map(End::new),
            now: ms(0),
            service,
            answer: Vec::new(),
            number: 0,
            todo: VecDeque::new(),
            held: None,
            full: false,
        };
        pair.connects();
        pair
    }

    fn connects(&mut self) {
        for at in [EDGE, GATEWAY] {
            let other = &self.ends[1 - at].coding;
            let (abilities, instance) = (abilities(other), other.core.config.instance);
            let up =
                Input::Up { path: PATH, peer: "p".to_owned(), kind: "stream", instance, abilities };
            self.todo.push_back((at, Step::Take(up)));
        }
        self.runs();
    }

    fn tell(&mut self, at: usize, input: Input) {
        self.next(at, input);
        self.runs();
    }

    fn next(&mut self, at: usize, input: Input) {
        self.todo.push_back((at, Step::Take(input)));
    }

    fn runs(&mut self) {
        while let Some((at, step)) = self.todo.pop_front() {
            match step {
                Step::Take(input) => self.takes(at, input),
                Step::Leave(exchange, piece) => self.leaves(at, exchange, piece),
            }
        }
    }

    fn takes(&mut self, at: usize, input: Input) {
        let wire = Wire { transmitted: self.ends[at].crossed, idle: true, ..Wire::default() };
        let coding = &mut self.ends[at].coding;
        coding.handle_input(self.now, Input::Wire { path: PATH, wire });
        coding.handle_input(self.now, input);
        while let Some(output) = self.ends[at].coding.poll_output() {
            self.output(at, output);
        }
    }

    fn crosses(&mut self, at: usize, bytes: usize, input: Input) {
        self.ends[at].crossed += bytes as u64;
        match self.held.as_mut().filter(|_| at == GATEWAY) {
            Some(held) => held.push(input),
            None => self.next(1 - at, input),
        }
    }

    fn output(&mut self, at: usize, output: Output) {
        match output {
            Output::Settled { options, .. } => self.ends[at].head = Some(options),
            Output::Block { exchange, bytes, decoded_len, coded, anew, end } => {
                let piece = Piece {
                    block_end: Some(decoded_len as u64),
                    uncoded: !coded,
                    anew,
                    end,
                    bytes,
                };
                self.todo.push_back((at, Step::Leave(exchange, piece)));
            }
            Output::Body { exchange, bytes } => {
                self.ends[at].body.extend_from_slice(&bytes);
                self.next(at, Input::Delivered { exchange, all: true });
            }
            Output::Received { exchange } => {
                self.ends[at].received = true;
                if at == GATEWAY {
                    self.answers(exchange);
                }
            }
            Output::Control { kind, content, .. } => {
                let bytes = content.len();
                self.crosses(at, bytes, Input::Control { path: PATH, kind, content });
            }
            Output::Job(job) => {
                if self.full && matches!(job, Job::Prepare(Prepare::Base { .. })) {
                    let filler = Arc::new(Kept::new(vec![0; bounds::MAX_BASE_BYTES]));
                    self.ends[at].path().kept.keep(0, 0, filler);
                    self.ends[at].coding.with_peer(ms(0), PATH, |_| {});
                }
                let done = run(&job, &mut self.ends[at].contexts);
                self.next(at, done);
            }
            Output::Ignored { what, reason, .. } => {
                self.ends[at].ignored.push((what.to_owned(), reason));
            }
            Output::Store { name, bytes } => drop(self.ends[at].kept.insert(name, bytes)),
            Output::Dropped { name } => drop(self.ends[at].kept.remove(&name)),
            Output::Event(Fact::Ignored { what, reason }) => {
                self.ends[at].ignored.push((what, reason));
            }
            Output::Event(fact) => self.ends[at].facts.push(fact),
            Output::Anew { .. } | Output::Fault { .. } => panic!("{output:?}"),
            _ => {}
        }
    }

    /// A block leaves, behind the head where that has not gone, and with it what is piggybacked.
    fn leaves(&mut self, at: usize, exchange: ExchangeId, piece: Piece) {
        let (is_empty, end) = (piece.block_end == Some(0), piece.end);
        if let Some(options) = self.ends[at].head.take() {
            if at == EDGE {
                let about = About { service: self.service, ..About::default() };
                self.crosses(at, 20, Input::Open { exchange, about });
                self.crosses(at, 0, Input::Attach { exchange, path: PATH });
            } else {
                self.crosses(at, 20, Input::Answered { exchange, private: false });
            }
            self.crosses(at, 0, Input::Expect { exchange, options, end: is_empty && end });
            self.takes(at, Input::Led { exchange });
        }
        if !is_empty {
            let bytes = piece.bytes.len();
            let received = self.ends[at].crossed + bytes as u64;
            self.crosses(at, bytes, Input::Piece { exchange, piece, received });
        }
        let departed = Departed { body: !is_empty, block: true, more: false, end };
        self.takes(at, Input::Departed { exchange, departed });
        self.takes(at, Input::Leaves { path: PATH });
    }

    /// A message of this side's, whole at once.
    fn sends(&mut self, at: usize, exchange: ExchangeId, body: &[u8]) {
        let message = Message {
            media: Some("text/xml".to_owned()),
            head_bytes: 20,
            end: body.is_empty(),
            ..Message::default()
        };
        self.next(at, Input::Message { exchange, message });
        if !body.is_empty() {
            let bytes = Bytes::copy_from_slice(body);
            self.next(at, Input::Body { exchange, bytes });
            self.next(at, Input::End { exchange, trailers: false });
        }
    }

    fn answers(&mut self, exchange: ExchangeId) {
        self.next(GATEWAY, Input::Answered { exchange, private: false });
        let answer = self.answer.clone();
        self.sends(GATEWAY, exchange, &answer);
    }

    /// A client asks, and is answered; bytes that each side sent for it.
    fn asks(&mut self, client: &str, body: &[u8], answer: &[u8]) -> [u64; 2] {
        self.now += ms(50);
        self.number += 1;
        let before = [EDGE, GATEWAY].map(|at| self.ends[at].crossed);
        for end in &mut self.ends {
            (end.body, end.received) = (BytesMut::new(), false);
        }
        let instance = self.ends[EDGE].coding.core.config.instance;
        let exchange = ExchangeId { instance, number: self.number };
        let (service, requester) = (self.service, Some(Id::of(client.as_bytes())));
        let about = About { service, requester, ..About::default() };
        self.answer = answer.to_vec();
        self.next(EDGE, Input::Open { exchange, about });
        self.sends(EDGE, exchange, body);
        self.next(EDGE, Input::Attach { exchange, path: PATH });
        self.runs();
        assert_eq!((&self.ends[GATEWAY].body[..], &self.ends[EDGE].body[..]), (body, answer));
        for at in [EDGE, GATEWAY] {
            assert!(self.ends[at].received);
            self.tell(at, Input::Forget { exchange });
        }
        [EDGE, GATEWAY].map(|at| self.ends[at].crossed - before[at])
    }

    /// Nothing happens for some seconds; bytes that each side sent meanwhile.
    fn rests(&mut self, seconds: u64) -> [u64; 2] {
        let before = [EDGE, GATEWAY].map(|at| self.ends[at].crossed);
        for _ in 0..seconds {
            self.now += ms(1000);
            self.tell(EDGE, Input::Wake);
            self.tell(GATEWAY, Input::Wake);
        }
        [EDGE, GATEWAY].map(|at| self.ends[at].crossed - before[at])
    }

    fn warms_up(&mut self) {
        for seed in 0..6 {
            self.asks("a", &track(seed, ""), &track(seed, ""));
        }
    }

    /// The encoding of the last message of each side.
    fn last(&self) -> [&str; 2] {
        [EDGE, GATEWAY].map(|at| self.ends[at].chosen().last().copied().unwrap())
    }
}

/// A message of a kind that repeats: `seed` decides what differs.
fn track(seed: u32, extra: &str) -> Vec<u8> {
    let unit = |at: u32| {
        let noise = (seed * 31 + at).wrapping_mul(2_654_435_761) >> 12;
        format!(
            "<track uid='unit-{at}' time='2026-11-22T04:{:02}:{:02}Z'><callsign>Alpha {at}\
             </callsign><point lat='48.{noise:06}' lon='11.{:06}' hae='512'/></track>",
            seed % 60,
            (seed * 7) % 60,
            noise / 3,
        )
    };
    let units: String = (0..6).map(unit).collect();
    format!(
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'>\
         <s:Header>{extra}</s:Header><s:Body><tracks>{units}</tracks></s:Body></s:Envelope>"
    )
    .into_bytes()
}

#[test]
fn an_id_is_short_and_does_not_tell_the_instance() {
    let (instance, number) = (0x0123_4567_89ab_cdef, 42);
    let text = ExchangeId { instance, number }.to_string();
    assert!(text.len() == 16 && text.ends_with("0000002a"), "{text}");
    assert!(!text.contains("0123") && !text.contains("cdef"), "{text}");
    let same = ExchangeId { instance, number: 1 << 40 }.to_string();
    assert_eq!(same[..8], text[..8]);
    let other = ExchangeId { instance: instance + 1, number }.to_string();
    assert_ne!(other[..8], text[..8]);
}
