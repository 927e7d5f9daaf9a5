//! The world: clock, agenda, and the relays in it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use coding::job::{Contexts, Job};
use coding::{Encoding, ExchangeId};
use decide::estimate::Transport;
use proto::kinds::Kind;
use record::event::Fact;
use relay::{CarrierId, CarrierKind, Config, Input, Output, Relay, Role};

use crate::carriers::Link;
use crate::party::Parties;
use crate::{Random, datagram};

/// Virtual time by which everything must be over: some readers take a byte each 0.3 s.
const END_OF_TIME: Duration = Duration::from_secs(48 * 3600);
/// Longest outage: TCP takes up to twice as long to notice its end, and all that is within the
/// patience of [`relay::Config::connect_timeout`].
const LONGEST_OUTAGE_MS: u64 = 12_000;
/// Steps after which a world that does not come to rest has a livelock.
const MAX_STEPS: u64 = 3_000_000;

/// Which troubles a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moods {
    /// Carriers break.
    pub breaks: bool,
    /// The gateway restarts and forgets.
    pub restarts: bool,
    /// It does so again and again between two carriers, which break early.
    pub swaps: bool,
    /// The gateway shuts down in good order while another takes over.
    pub shutdowns: bool,
    /// Clients leave, origins break off.
    pub aborts: bool,
    /// Readers are slow, and so are some writers.
    pub slow: bool,
    /// Every edge has a carrier over datagrams beside its stream, or in its place: they are lost,
    /// come out of order and twice.
    pub datagrams: bool,
    /// Nothing gets over the links for a while, or the gateway's process hangs; not for so long
    /// that anybody's patience ends.
    pub outages: bool,
    /// From some time on, which may be the beginning, no datagram passes, as where UDP is blocked;
    /// in some worlds they do later. Every edge has a stream too.
    pub blocked: bool,
}

/// What came of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests made.
    pub requests: u64,
    /// Answered in full.
    pub answered: u64,
    /// Failed, by cause.
    pub failed: BTreeMap<&'static str, u64>,
    /// Left by their clients.
    pub left: u64,
    /// Answered while their request was still on its way.
    pub early: u64,
    /// Tunnels that carried everything both ways.
    pub tunnels: u64,
    /// Requests that left before anything had come over their carrier.
    pub ahead: u64,
    /// Datagrams that were carried.
    pub datagrams: u64,
    /// Messages that went by a carrier chosen among several, by its kind.
    pub routed: BTreeMap<String, u64>,
    /// Virtual time at the end.
    pub took: Duration,
}

/// An edge's or a gateway's place in the world; never used twice.
pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) enum What {
    Tell { node: NodeId, input: Input },
    DialDone { edge: NodeId, carrier: CarrierId, kind: CarrierKind },
    Datagram { link: usize, to: Role, bytes: Bytes },
    Bytes { link: usize, to: Role, bytes: Bytes },
    Piece { link: usize, to: Role, stream: u64, bytes: Bytes, fin: bool },
    ClientStarts { edge: NodeId },
    ClientBegins(ExchangeId),
    ClientLeaves(ExchangeId),
    ClientSips(ExchangeId),
    OriginSips { gateway: NodeId, exchange: ExchangeId },
    OriginAnswers { gateway: NodeId, exchange: ExchangeId },
    LinksGoDown,
    DatagramsAreBlocked { until: Duration },
    GatewayHangs,
    LinkBreaks { link: usize },
    GatewayHearsOfBreak { link: usize },
    GatewayRestarts,
    GatewayShutsDown,
}

/// A relay with what its shell would keep.
pub(crate) struct Node {
    pub(crate) relay: Relay,
    pub(crate) role: Role,
    pub(crate) contexts: BTreeMap<ExchangeId, Contexts>,
    pub(crate) alive: bool,
    pub(crate) shutting_down: bool,
    /// It does nothing until then; what happens to it waits.
    hangs_until: Duration,
    wake: Option<Duration>,
}

/// No datagram gets through between these.
#[derive(Clone, Copy)]
pub(crate) struct Blocked {
    from: Duration,
    until: Duration,
}

impl Blocked {
    fn new(random: &mut Random) -> Self {
        let is_at_once = random.once_in(3);
        let from = Duration::from_millis(if is_at_once { 0 } else { random.below(20_000) });
        let lasts = Duration::from_millis(random.below(60_000));
        let is_for_good = random.once_in(2);
        Self { from, until: if is_for_good { END_OF_TIME } else { from + lasts } }
    }

    /// Where no datagram gets through now: until when.
    pub(crate) fn until(self, now: Duration) -> Option<Duration> {
        (self.from..self.until).contains(&now).then_some(self.until)
    }
}

/// See the crate's page.
pub struct World {
    pub(crate) random: Random,
    pub(crate) moods: Moods,
    pub(crate) now: Duration,
    sequence: u64,
    agenda: BTreeMap<(Duration, u64), What>,
    pub(crate) nodes: Vec<Node>,
    /// The gateway that dials reach.
    pub(crate) gateway: NodeId,
    pub(crate) links: Vec<Link>,
    pub(crate) parties: Parties,
    pub(crate) to_start: u64,
    /// A gateway went, in whichever way.
    pub(crate) replaced: bool,
    /// See [`Report`].
    pub(crate) ahead: u64,
    pub(crate) datagrams: u64,
    pub(crate) routed: BTreeMap<String, u64>,
    /// Nothing gets through between these.
    pub(crate) outage: Option<(Duration, Duration)>,
    pub(crate) blocked: Option<Blocked>,
    /// Memory for codecs is short.
    pub(crate) tight: bool,
    encoding: Encoding,
    /// The kinds of carriers that every relay has.
    pub(crate) kinds: Vec<Kind>,
}

impl World {
    /// A world that follows from its seed.
    #[must_use]
    pub fn new(seed: u64, moods: Moods) -> Self {
        let mut random = Random::new(seed);
        let encodings = ["auto", "auto", "auto", "nam", "identity", "deflate", "zstd:1", "xmill:5"];
        let at = usize::try_from(random.below(8)).unwrap_or(0);
        let mut world = Self {
            moods,
            now: Duration::ZERO,
            sequence: 0,
            agenda: BTreeMap::new(),
            nodes: Vec::new(),
            gateway: 0,
            links: Vec::new(),
            parties: Parties::default(),
            to_start: 3 + random.below(8),
            replaced: false,
            ahead: 0,
            datagrams: 0,
            routed: BTreeMap::new(),
            outage: None,
            blocked: None,
            tight: random.once_in(4),
            encoding: Encoding::of(encodings[at]).unwrap_or_else(|_| Encoding::auto()),
            kinds: match seed % 8 {
                _ if !moods.datagrams => vec![Kind::STREAM],
                0 if moods.blocked => vec![Kind::STREAM, Kind::BURST],
                4 if moods.blocked => vec![Kind::STREAM, Kind::QUIC],
                0 => vec![Kind::BURST],
                1 | 2 => vec![Kind::STREAM, Kind::BURST],
                3 => vec![Kind::STREAM, datagram::KIND],
                4 => vec![Kind::QUIC],
                6 => vec![Kind::COAP, Kind::STREAM],
                7 => vec![Kind::COAP_TCP, Kind::STREAM],
                _ => vec![Kind::STREAM, Kind::QUIC],
            },
            random,
        };
        let edges = if world.random.once_in(3) { 2 + world.random.below(2) } else { 1 };
        for _ in 0..edges {
            let edge = world.add(Role::Edge);
            world.at(Duration::ZERO, What::Tell { node: edge, input: Input::Wake });
        }
        world.gateway = world.add(Role::Gateway);
        for _ in 0..world.to_start {
            let start = world.some_time(20_000);
            let edge = usize::try_from(world.random.below(edges)).unwrap_or(0);
            world.at(start, What::ClientStarts { edge });
        }
        if moods.outages {
            let when = world.some_time(20_000);
            world.at(when, What::LinksGoDown);
            let when = world.some_time(40_000);
            world.at(when, What::GatewayHangs);
        }
        if moods.blocked {
            let blocked = Blocked::new(&mut world.random);
            world.at(blocked.from, What::DatagramsAreBlocked { until: blocked.until });
            world.blocked = Some(blocked);
        }
        if moods.restarts && world.random.once_in(2) {
            let when = world.some_time(30_000);
            world.at(when, What::GatewayRestarts);
        }
        if moods.shutdowns && world.random.once_in(2) {
            let when = world.some_time(30_000);
            world.at(when, What::GatewayShutsDown);
        }
        world
    }

    /// A new relay.
    pub(crate) fn add(&mut self, role: Role) -> NodeId {
        let config = Config {
            encoding: self.encoding.clone(),
            codec_bytes: if self.tight { 1 << 20 } else { 24 << 20 },
            // An outage may begin between a connection and its HELLO.
            hello_timeout: Duration::from_secs(30),
            // Some origins take a body in sips for hours.
            still_timeout: END_OF_TIME,
            max_exchanges: if self.random.once_in(5) { 2 } else { 256 },
            kinds: self.kinds.clone(),
            ..Config::new(role, self.random.bits())
        };
        let (contexts, wake) = (BTreeMap::new(), None);
        let relay = Relay::new(config);
        let (alive, shutting_down, hangs_until) = (true, false, Duration::ZERO);
        self.nodes.push(Node { relay, role, contexts, alive, shutting_down, hangs_until, wake });
        self.nodes.len() - 1
    }

    /// Lives until nothing is left to happen, then judges. Panics where the pair did wrong.
    #[must_use]
    pub fn live(mut self) -> Report {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < MAX_STEPS && self.now < END_OF_TIME, "no rest at {:?}", self.now);
        }
        self.verdict()
    }

    /// The next thing happens; `false` when only idle dialling is left.
    fn step(&mut self) -> bool {
        let all_settled = self.to_start == 0
            && self.parties.clients.values().all(|client| client.fate.is_some())
            && self.nodes.iter().all(|node| !node.alive || node.relay.is_idle());
        // What is encoded only to learn from may outlast all exchanges.
        let is_done = |what: &What| matches!(what, What::Tell { input: Input::Done { .. }, .. });
        if all_settled && !self.agenda.values().any(is_done) {
            return false;
        }
        let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let wakes = self.nodes.iter().enumerate().filter(|(_, node)| node.alive);
        let wake = wakes.filter_map(|(id, node)| Some((node.wake?, id))).min();
        match (next, wake) {
            (Some(at), wake) if wake.is_none_or(|(wake, _)| at <= wake) => {
                self.now = at;
                if let Some((_, what)) = self.agenda.pop_first() {
                    self.happen(what);
                }
            }
            (_, Some((wake, node))) => {
                self.now = self.now.max(wake);
                self.nodes[node].wake = None;
                self.tell(node, Input::Wake);
            }
            _ => panic!("requests hang at {:?}: {:?}", self.now, self.parties.clients),
        }
        true
    }

    pub(crate) fn at(&mut self, at: Duration, what: What) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), what);
    }

    /// How long an outage takes.
    pub(crate) fn for_a_while(&mut self) -> Duration {
        Duration::from_millis(self.random.below(LONGEST_OUTAGE_MS))
    }

    pub(crate) fn some_time(&mut self, within_ms: u64) -> Duration {
        self.now + Duration::from_millis(self.random.below(within_ms))
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Tell { node, input } => self.tell(node, input),
            What::DialDone { edge, carrier, kind } => self.dial_done(edge, carrier, kind),
            What::Datagram { link, to, bytes } => self.datagram_arrives(link, to, bytes),
            What::Bytes { link, to, bytes } => self.bytes_arrive(link, to, &bytes),
            What::Piece { link, to, stream, bytes, fin } => {
                self.piece_arrives(link, to, (stream, bytes, fin));
            }
            What::ClientStarts { edge } => self.client_starts(edge),
            What::ClientBegins(exchange) => self.client_begins(exchange),
            What::ClientLeaves(exchange) => self.client_leaves(exchange),
            What::ClientSips(exchange) => self.client_sips(exchange),
            What::OriginSips { gateway, exchange } => self.origin_sips(gateway, exchange),
            What::OriginAnswers { gateway, exchange } => self.origin_answers(gateway, exchange),
            What::LinksGoDown => self.links_go_down(),
            What::DatagramsAreBlocked { until } => {
                for (at, link) in Link::silenced(&mut self.links, self.now, until) {
                    self.at(at, What::LinkBreaks { link });
                }
            }
            What::GatewayHangs => {
                self.nodes[self.gateway].hangs_until = self.now + self.for_a_while();
            }
            What::LinkBreaks { link } => self.link_breaks(link),
            What::GatewayHearsOfBreak { link } => self.gateway_hears(link),
            What::GatewayRestarts => self.gateway_restarts(),
            What::GatewayShutsDown => self.gateway_shuts_down(),
        }
    }

    /// An input for a relay that is alive, and all that it wants then.
    pub(crate) fn tell(&mut self, node: NodeId, input: Input) {
        if !self.nodes[node].alive {
            return;
        }
        let hangs_until = self.nodes[node].hangs_until;
        if self.now < hangs_until {
            return self.at(hangs_until, What::Tell { node, input });
        }
        self.nodes[node].relay.handle_input(self.now, input);
        while let Some(output) = self.nodes[node].relay.poll_output() {
            self.wants(node, output);
        }
        if self.nodes[node].shutting_down && self.nodes[node].relay.is_idle() {
            self.process_ends(node);
        }
    }

    fn wants(&mut self, node: NodeId, output: Output) {
        let role = self.nodes[node].role;
        match output {
            Output::Dial { carrier, kind } => {
                assert_eq!(role, Role::Edge);
                let done = self.some_time(2000);
                self.at(done, What::DialDone { edge: node, carrier, kind });
            }
            Output::Transmit { carrier, bytes } => self.transmit(node, carrier, bytes),
            Output::Stream { carrier, piece } => self.send_piece(node, carrier, &piece),
            Output::Datagram { carrier, bytes } => self.send_datagram(node, carrier, &bytes),
            Output::Close { carrier, .. } => self.closes(node, carrier),
            Output::Job(job) => self.runs(node, &job),
            Output::Release { exchange } => {
                self.nodes[node].contexts.remove(&exchange);
            }
            Output::WakeAt(at) => self.nodes[node].wake = Some(at),
            Output::Event(event) => self.note_route(&event.fact),
            Output::Store { .. } | Output::Used { .. } | Output::Forget { .. } => {}
            Output::Measure { carrier } => self.measure(node, carrier),
            output if role == Role::Edge => self.client_hears(output),
            output => self.origin_hears(node, output),
        }
    }

    /// Counts messages whose carrier was chosen among several.
    fn note_route(&mut self, fact: &Fact) {
        let Fact::Chosen { decision: Some(decision), .. } = fact else { return };
        if let Some(route) = &decision.route {
            *self.routed.entry(route.carrier.clone()).or_default() += 1;
        }
    }

    /// The transport's counters, as moody as all else but for what is under way.
    fn measure(&mut self, node: NodeId, carrier: CarrierId) {
        let backlog_bytes = self.under_way(node, carrier);
        let random = &mut self.random;
        if random.once_in(3) {
            return;
        }
        let number = |random: &mut Random, bits: u64| {
            u32::try_from(random.magnitude(bits)).unwrap_or(u32::MAX)
        };
        let transport = Transport {
            rtt: Duration::from_micros(random.magnitude(22)),
            min_rtt: Duration::from_micros(random.magnitude(20)),
            delivered_bytes_per_s: random.magnitude(40),
            app_limited: random.once_in(2),
            segments_out: number(random, 20),
            // A kernel that does not tell.
            bytes_out: 0,
            retransmitted: number(random, 10),
            timeouts: 0,
            duplicates: number(random, 6),
            window_segments: number(random, 12),
            threshold_segments: 0,
            receiver_window_bytes: number(random, 22),
            segment_bytes: number(random, 14),
            backlog_bytes,
            idle: Duration::from_micros(random.magnitude(24)),
            repairs: random.once_in(4),
            lockstep: random.once_in(4),
            incoming_loss_ppm: random.once_in(4).then(|| number(random, 24)),
        };
        let input = Input::Transport { carrier, transport };
        self.at(self.now, What::Tell { node, input });
    }

    fn runs(&mut self, node: NodeId, job: &Job) {
        let mut none = Contexts::default();
        let contexts = match job.context_of() {
            Some(exchange) => self.nodes[node].contexts.entry(exchange).or_default(),
            None => &mut none,
        };
        let cpu = Duration::from_micros(self.random.below(3000));
        let input = Input::Done(job.run(contexts).took(cpu));
        self.at(self.now + cpu, What::Tell { node, input });
    }
}
