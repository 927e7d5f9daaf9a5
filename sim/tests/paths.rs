//! One gateway, two edges, each over a link of its own: what is learned of one path is not held
//! against the other, and is known again after a restart.

#![allow(clippy::unwrap_used)] // Helpers of tests fail as tests do.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use coding::job::{Contexts, Job};
use coding::{ExchangeId, Service};
use decide::estimate::Transport;
use link::{Channel, ChannelConfig, Direction};
use longwire_sim::{Random, Segment};
use proto::bhttp;
use record::decision::Outcome;
use record::event::Fact;
use relay::{CarrierId, CarrierKind, Config, Input, Output, Relay, Role};

/// After an exchange its receipt comes across.
const PAUSE: Duration = Duration::from_secs(10);
/// Encoding and decoding take so long.
const CODEC: Duration = Duration::from_micros(300);

const LAN: usize = 0;
const SATCOM: usize = 1;
const GATEWAY: usize = 2;
const NAMES: [&str; 2] = ["lan", "satcom"];
/// Bit/s and delay of each way.
const RATES: [u64; 2] = [10_000_000, 512_000];
const DELAYS: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(275)];
/// Segments that may be under way, as the gateway's kernel says. Nothing here keeps to it: so over
/// satcom messages are there long before the model alone expects them.
const WINDOWS: [u32; 2] = [1000, 4];
/// Expectations are that good where a path is known: the window's rounds are not smooth.
const KNOWN: f64 = 0.2;

/// Of each edge the ways to the gateway and back.
type Ways = [Channel<Segment>; 2];

struct World {
    /// The edges, then the gateway.
    relays: [Relay; 3],
    wakes: [Option<Duration>; 3],
    links: [Ways; 2],
    dialled: [CarrierId; 2],
    /// Segments and bytes to each edge.
    sent: [(u32, u64); 2],
    due: [[Option<Duration>; 2]; 2],
    contexts: BTreeMap<(usize, ExchangeId), Contexts>,
    todo: VecDeque<(usize, Input)>,
    now: Duration,
    answer: Vec<u8>,
    finished: bool,
    /// The gateway's last.
    outcome: Option<Outcome>,
    random: Random,
}

fn way(rate_bps: u64, delay: Duration) -> ChannelConfig {
    let (queue_bytes, queue_packets) = (8 << 20, 1 << 16);
    let rate_bps = Some(rate_bps);
    ChannelConfig { rate_bps, delay, queue_bytes, queue_packets, ..ChannelConfig::default() }
}

fn gateway() -> Relay {
    let mut config = Config::new(Role::Gateway, 9);
    // One that is told by nothing before it: what varies is the time on the way.
    let encodings = config.encoding.meant_by(&["zstd:3".to_owned()]).unwrap();
    config.services = vec![Service { encodings: Some(encodings), ..Service::default() }];
    Relay::new(config)
}

impl World {
    fn new() -> Self {
        let link = |at: usize| {
            [Direction::Ab, Direction::Ba].map(|to| Channel::new(way(RATES[at], DELAYS[at]), 1, to))
        };
        let edge = |instance| Relay::new(Config::new(Role::Edge, instance));
        let mut world = Self {
            relays: [edge(1), edge(2), gateway()],
            wakes: [None; 3],
            links: [link(LAN), link(SATCOM)],
            due: [[None; 2]; 2],
            dialled: [CarrierId(0); 2],
            sent: [(0, 0); 2],
            contexts: BTreeMap::new(),
            todo: VecDeque::new(),
            now: Duration::ZERO,
            answer: Vec::new(),
            finished: false,
            outcome: None,
            random: Random::new(1),
        };
        world.tell(LAN, Input::Wake);
        world.tell(SATCOM, Input::Wake);
        world.pass(PAUSE);
        world
    }

    /// An edge's client asks; what the answer's way was expected to take, and took, in seconds.
    fn asks(&mut self, edge: usize) -> (f64, f64) {
        let digits = 20_000 + self.random.below(5) * 10_000;
        let digit = |random: &mut Random| {
            b"0123456789abcdef"[usize::from(random.bits().to_le_bytes()[0] % 16)]
        };
        self.answer = (0..digits).map(|_| digit(&mut self.random)).collect();
        (self.finished, self.outcome) = (false, None);
        let exchange = self.relays[edge].next_exchange();
        let request = bhttp::Request {
            method: "GET".into(),
            scheme: "http".into(),
            authority: "service".into(),
            path: "/".into(),
            fields: Vec::new(),
        };
        let known = Box::default();
        self.tell(edge, Input::Request { exchange, request, end: true, known });
        self.tell(edge, Input::Credit { exchange, bytes: 1 << 30 });
        self.pass(PAUSE);
        assert!(self.finished, "the answer came");
        let outcome = self.outcome.take().unwrap();
        let took = outcome.actual.network_s;
        (took - outcome.split.network_s, took)
    }

    fn tell(&mut self, node: usize, input: Input) {
        self.todo.push_back((node, input));
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((node, input)) = self.todo.pop_front() {
            let relay = &mut self.relays[node];
            relay.handle_input(self.now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
            outputs.into_iter().for_each(|output| self.output(node, output));
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let all = self.wakes.iter().chain(self.due.as_flattened());
            let Some(at) = all.copied().flatten().min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            for node in 0..self.relays.len() {
                if self.wakes[node].is_some_and(|wake| wake <= self.now) {
                    self.wakes[node] = None;
                    self.tell(node, Input::Wake);
                }
            }
            for (edge, back) in [(LAN, 0), (LAN, 1), (SATCOM, 0), (SATCOM, 1)] {
                if self.due[edge][back].is_some_and(|due| due <= self.now) {
                    self.links[edge][back].handle_input(self.now, link::Input::Wake);
                    self.drain(edge, back);
                    self.settle();
                }
            }
        }
        self.now = until;
    }

    fn drain(&mut self, edge: usize, back: usize) {
        self.due[edge][back] = loop {
            match self.links[edge][back].poll_output() {
                link::Output::Deliver { packet, .. } => {
                    let to = if back == 1 { edge } else { GATEWAY };
                    let carrier = self.carrier(to, edge);
                    self.todo.push_back((to, Input::Received { carrier, bytes: packet.0 }));
                }
                link::Output::Drop { .. } => panic!("a link without loss loses nothing"),
                link::Output::WakeAt(at) => break Some(at),
                link::Output::Idle => break None,
            }
        };
    }

    /// By which number a node knows the carrier of an edge.
    fn carrier(&self, node: usize, edge: usize) -> CarrierId {
        if node == GATEWAY { CarrierId(edge as u64) } else { self.dialled[edge] }
    }

    fn output(&mut self, node: usize, output: Output) {
        match output {
            Output::Dial { carrier, .. } => {
                self.dialled[node] = carrier;
                for (to, peer) in [(node, "gateway"), (GATEWAY, NAMES[node])] {
                    let carrier = self.carrier(to, node);
                    self.todo.push_back((
                        to,
                        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer: peer.into() },
                    ));
                }
            }
            Output::Transmit { carrier, bytes } => {
                let sent = Input::Sent { carrier, bytes: bytes.len() };
                self.todo.push_back((node, sent));
                let of = usize::from(carrier == CarrierId(SATCOM as u64));
                let (edge, back) = if node == GATEWAY { (of, 1) } else { (node, 0) };
                for segment in Segment::of(&bytes) {
                    if back == 1 {
                        self.sent[edge].0 += 1;
                        self.sent[edge].1 += segment.0.len() as u64;
                    }
                    let packet = link::Input::Packet(segment);
                    self.links[edge][back].handle_input(self.now, packet);
                }
                self.drain(edge, back);
            }
            Output::Measure { carrier } if node == GATEWAY => {
                let transport = self.transport(usize::from(carrier == CarrierId(SATCOM as u64)));
                self.todo.push_back((node, Input::Transport { carrier, transport }));
            }
            Output::Job(job) => self.runs(node, &job),
            Output::Head { exchange, .. } if node == GATEWAY => self.answers(exchange),
            Output::Abort { cause, .. } => panic!("{cause:?}"),
            Output::End { .. } if node != GATEWAY => self.finished = true,
            Output::WakeAt(at) => self.wakes[node] = Some(at),
            Output::Event(event) => match event.fact {
                Fact::Outcome { outcome, .. } if node == GATEWAY => self.outcome = Some(outcome),
                _ => {}
            },
            _ => {}
        }
    }

    /// What the gateway's kernel says.
    fn transport(&self, edge: usize) -> Transport {
        let (rtt, (segments_out, bytes_out)) = (2 * DELAYS[edge], self.sent[edge]);
        Transport {
            rtt,
            min_rtt: rtt,
            app_limited: true,
            segments_out,
            bytes_out,
            window_segments: WINDOWS[edge],
            segment_bytes: 1448,
            ..Transport::default()
        }
    }

    fn answers(&mut self, exchange: ExchangeId) {
        let fields = vec![("content-type".into(), "text/plain".into())];
        let response = bhttp::Response { status: 200, fields };
        let bytes = self.answer.clone().into();
        for input in [
            Input::Service { exchange, service: 0 },
            Input::Response { exchange, response, end: false },
            Input::Data { exchange, bytes },
            Input::End { exchange, trailers: Vec::new() },
        ] {
            self.todo.push_back((GATEWAY, input));
        }
    }

    fn runs(&mut self, node: usize, job: &Job) {
        let mut none = Contexts::default();
        let contexts = match job.context_of() {
            Some(exchange) => self.contexts.entry((node, exchange)).or_default(),
            None => &mut none,
        };
        let done = Input::Done(job.run(contexts).took(CODEC));
        self.todo.push_back((node, done));
    }

    /// The gateway's process ends and another takes up what it had learned, or nothing.
    fn gateway_restarts(&mut self, learned: bool) {
        let before = std::mem::replace(&mut self.relays[GATEWAY], gateway());
        if learned {
            self.relays[GATEWAY].restore(&before.learned()).unwrap();
        }
        self.wakes[GATEWAY] = None;
        for edge in [LAN, SATCOM] {
            let reason = "reset".to_owned();
            let carrier = self.dialled[edge];
            self.tell(edge, Input::CarrierDown { carrier, reason });
        }
        self.pass(Duration::from_secs(60));
    }
}

/// How far off the expectation was, as a share of what it took.
fn off((expected_s, took_s): (f64, f64)) -> f64 {
    (expected_s / took_s - 1.0).abs()
}

/// A world whose gateway has measured both paths and learned of both.
fn taught() -> World {
    let mut world = World::new();
    for _ in 0..12 {
        world.asks(LAN);
        world.asks(SATCOM);
    }
    for edge in [LAN, SATCOM] {
        let found = world.asks(edge);
        assert!(off(found) < KNOWN, "{}: {found:?}", NAMES[edge]);
    }
    world
}

#[test]
fn one_edges_changing_path_leaves_what_is_known_of_anothers() {
    let mut world = taught();
    let slower = Box::new(way(RATES[LAN] / 20, DELAYS[LAN]));
    world.links[LAN][1].handle_input(world.now, link::Input::Configure(slower));
    for _ in 0..8 {
        world.asks(LAN);
        let found = world.asks(SATCOM);
        assert!(off(found) < KNOWN, "{found:?}");
    }
    let links = world.relays[GATEWAY].links();
    assert!(links[LAN].jumps > 0 && links[SATCOM].jumps == 0, "{links:?}");
    let found = world.asks(LAN);
    assert!(off(found) < KNOWN, "{found:?}");
}

#[test]
fn after_a_restart_each_path_is_known_as_it_was() {
    let off_after = |learned: bool| {
        let mut world = taught();
        world.gateway_restarts(learned);
        [LAN, SATCOM].map(|edge| {
            // The rate is measured anew.
            let unmeasured =
                |world: &World| world.relays[GATEWAY].links()[edge].figures.rate_bps.weight == 0.0;
            let mut asked = 0;
            while unmeasured(&world) {
                asked += 1;
                assert!(asked < 20, "the rate is not measured");
                world.asks(edge);
            }
            off(world.asks(edge))
        })
    };
    let (with, without) = (off_after(true), off_after(false));
    assert!(with.iter().all(|off| *off < KNOWN), "{with:?}");
    assert!(without[SATCOM] > 2.0 * KNOWN, "{without:?}");
}
