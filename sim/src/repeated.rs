//! Messages that repeat, through two relays over a virtual link: how many bytes they take, and how
//! long.
//!
//! The carrier is what a warm TCP connection is for messages within its window: segments in order
//! at the link's rate and delay, each with its headers. So links without loss only. Codecs take a
//! time by the length of what they work on, as on the processor of [`decide::prior`].

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use coding::job::{Contexts, Job, Prepare};
use coding::{Encoding, ExchangeId, Secret, Service};
use decide::policy::Objective;
use link::{Channel, Direction, LinkConfig};
use proto::bhttp;
use record::decision::Direction as Of;
use record::event::Fact;
use relay::{CarrierId, CarrierKind, Config, Input, Known, Output, Relay, Role};

use crate::segment::Segment;

/// What the queue before the link holds: a window paces what would not fit.
const QUEUE_BYTES: u64 = 8 << 20;
/// The same in packets.
const QUEUE_PACKETS: u32 = 1 << 16;
/// Seconds that a codec takes whatever the length, and for each byte: zstd 19 encodes, and anything
/// decodes.
const ENCODE_S: (f64, f64) = (150e-6, 2e-7);
const DECODE_S: (f64, f64) = (30e-6, 2e-9);
/// Between the end of an exchange and the next: acknowledgements come across.
const PAUSE: Duration = Duration::from_secs(5);

/// A request and its answer. Without bytes a request has no body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Path of the request.
    pub path: String,
    /// Body of the request.
    pub request: Vec<u8>,
    /// Body of the answer.
    pub answer: Vec<u8>,
}

/// What an exchange took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Took {
    /// Seconds from the client's last byte to the answer's last.
    pub seconds: f64,
    /// Bytes of the bodies on the carrier.
    pub request_bytes: u64,
    /// See `request_bytes`.
    pub answer_bytes: u64,
    /// Bytes on the carrier for all that belongs to it, heads and receipts too: towards the
    /// gateway, towards the edge.
    pub carried: [u64; 2],
    /// The same towards the edge, until the answer was there.
    pub answered: u64,
    /// What the messages went in.
    pub encodings: [String; 2],
    /// Seconds of encoding what was sent or tried before it.
    pub encode_s: f64,
    /// How often the answer went on otherwise than before.
    pub revisions: usize,
}

struct End {
    config: Config,
    relay: Relay,
    /// Dictionaries that its shell keeps.
    kept: BTreeMap<[u8; 32], Bytes>,
    contexts: BTreeMap<ExchangeId, Contexts>,
    wake: Option<Duration>,
    /// Towards the other end.
    channel: Channel<Segment>,
    due: Option<Duration>,
    sent: u64,
    body: Vec<u8>,
}

impl End {
    fn new(config: Config, channel: Channel<Segment>) -> Self {
        let (relay, kept) = (Relay::new(config.clone()), BTreeMap::new());
        let contexts = BTreeMap::new();
        let (wake, due, sent, body) = (None, None, 0, Vec::new());
        Self { config, relay, kept, contexts, wake, channel, due, sent, body }
    }

    /// Another process goes on, with what the one before had given its shell to keep or without.
    fn restart(&mut self, disk: bool) {
        self.config.instance += 1;
        let before = std::mem::replace(&mut self.relay, Relay::new(self.config.clone()));
        if disk {
            self.relay.restore(&before.learned()).expect("what a relay of ours learned");
        } else {
            self.kept.clear();
        }
        for (name, bytes) in &self.kept {
            self.relay.restore_dictionary(*name, bytes).expect("what a relay of ours gave");
        }
        self.contexts.clear();
        self.wake = None;
    }
}

/// The two relays, their link and their clock.
pub struct Pair {
    ends: [End; 2],
    now: Duration,
    carrier: CarrierId,
    /// Jobs that are done at an instant.
    agenda: BTreeMap<(Duration, u64), (usize, Input)>,
    count: u64,
    todo: VecDeque<(usize, Input)>,
    media: &'static str,
    answer: Vec<u8>,
    took: Took,
    finished: Option<Duration>,
}

const EDGE: usize = 0;
const GATEWAY: usize = 1;

impl Pair {
    /// A pair that is connected and has learned nothing, for messages of a media type of which this
    /// is wanted.
    #[must_use]
    pub fn new(link: &LinkConfig, media: &'static str, objective: Objective) -> Self {
        Self::with(link, media, objective, &Encoding::auto())
    }

    /// The same where the encodings, and who chooses among them, are others.
    #[must_use]
    pub fn with(
        link: &LinkConfig,
        media: &'static str,
        objective: Objective,
        encoding: &Encoding,
    ) -> Self {
        Self::of(
            link,
            media,
            objective,
            [Role::Edge, Role::Gateway].map(|role| {
                let encoding = encoding.clone();
                Config { encoding, ..Config::new(role, 1) }
            }),
        )
    }

    /// The same of an edge and a gateway with these settings; their services are set here.
    #[must_use]
    pub fn of(
        link: &LinkConfig,
        media: &'static str,
        objective: Objective,
        [edge, gateway]: [Config; 2],
    ) -> Self {
        let channel = |direction: Direction| {
            let way = if direction == Direction::Ab { &link.ab } else { &link.ba };
            let mut way = way.clone();
            way.queue_bytes = QUEUE_BYTES;
            way.queue_packets = QUEUE_PACKETS;
            Channel::new(way, 1, direction)
        };
        let services = vec![Service { objective, ..Service::default() }];
        let end = |config, direction| {
            let (services, secret) = (services.clone(), Some(Secret::new([1; 32])));
            End::new(Config { services, secret, ..config }, channel(direction))
        };
        let ends = [end(edge, Direction::Ab), end(gateway, Direction::Ba)];
        let mut pair = Self {
            ends,
            now: Duration::ZERO,
            carrier: CarrierId(0),
            agenda: BTreeMap::new(),
            count: 0,
            todo: VecDeque::new(),
            media,
            answer: Vec::new(),
            took: Took::default(),
            finished: None,
        };
        pair.tell(EDGE, Input::Wake);
        pair.run(|_| false, PAUSE);
        pair
    }

    /// A client asks, its answer comes, and all that follows from it.
    pub fn exchange(&mut self, messages: &Messages) -> Took {
        self.exchange_of(&[], messages)
    }

    /// The same of a client whose request has these fields.
    pub fn exchange_of(&mut self, fields: &[(&'static str, &str)], messages: &Messages) -> Took {
        self.took = Took::default();
        self.finished = None;
        let before = [self.ends[0].sent, self.ends[1].sent];
        self.answer.clone_from(&messages.answer);
        self.ends.iter_mut().for_each(|end| end.body.clear());
        let exchange = self.ends[EDGE].relay.next_exchange();
        let end = messages.request.is_empty();
        let request = bhttp::Request {
            method: if end { "GET" } else { "POST" }.into(),
            scheme: "http".into(),
            authority: "service".into(),
            path: messages.path.clone().into(),
            fields: [("content-type", self.media)]
                .iter()
                .chain(fields)
                .map(|(name, value)| (name.to_string().into(), value.to_string().into()))
                .collect(),
        };
        let began = self.now;
        let client = Some("client".into());
        let known = Box::new(Known { client, service: Some(0), other_way: false });
        self.tell(EDGE, Input::Request { exchange, request, end, known });
        self.tell(EDGE, Input::Credit { exchange, bytes: 1 << 30 });
        if !end {
            let bytes = Bytes::copy_from_slice(&messages.request);
            self.tell(EDGE, Input::Data { exchange, bytes });
            self.tell(EDGE, Input::End { exchange, trailers: Vec::new() });
        }
        self.run(|pair| pair.finished.is_some(), Duration::from_secs(3600));
        let finished = self.finished.unwrap_or(self.now);
        let answered = self.ends[GATEWAY].sent - before[1];
        assert!(self.ends[EDGE].body == messages.answer, "another answer than was sent");
        assert!(self.ends[GATEWAY].body == messages.request, "another request than was sent");
        self.run(|_| false, PAUSE);
        let mut took = std::mem::take(&mut self.took);
        took.answered = answered;
        took.seconds = (finished - began).as_secs_f64();
        took.carried = [self.ends[0].sent - before[0], self.ends[1].sent - before[1]];
        if took.request_bytes == 0 {
            took.request_bytes = messages.request.len() as u64;
        }
        if took.answer_bytes == 0 {
            took.answer_bytes = messages.answer.len() as u64;
        }
        took
    }

    /// One side is killed and starts again, and connects. Without its `disk` it knows nothing.
    pub fn restart(&mut self, role: Role, disk: bool) {
        let at = if role == Role::Edge { EDGE } else { GATEWAY };
        self.agenda.retain(|_, (end, _)| *end != at);
        self.ends[at].restart(disk);
        let (carrier, reason) = (self.carrier, "the other side is gone".to_owned());
        self.tell(1 - at, Input::CarrierDown { carrier, reason });
        self.tell(at, Input::Wake);
        self.run(|_| false, PAUSE);
    }

    fn tell(&mut self, end: usize, input: Input) {
        self.todo.push_back((end, input));
        while let Some((end, input)) = self.todo.pop_front() {
            let now = self.now;
            let relay = &mut self.ends[end].relay;
            relay.handle_input(now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| relay.poll_output()).collect();
            outputs.into_iter().for_each(|output| self.output(end, output));
        }
    }

    /// Lets time pass until it is enough, or for so long.
    fn run(&mut self, enough: impl Fn(&Self) -> bool, most: Duration) {
        let until = self.now + most;
        while !enough(self) {
            let work = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let links = self.ends.iter().filter_map(|end| end.due);
            let wakes = self.ends.iter().filter_map(|end| end.wake);
            let next = work.into_iter().chain(links).chain(wakes).min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.step();
        }
        if !enough(self) {
            self.now = until;
        }
    }

    fn step(&mut self) {
        while let Some(entry) = self.agenda.first_entry().filter(|first| first.key().0 <= self.now)
        {
            let (end, input) = entry.remove();
            self.tell(end, input);
        }
        for end in [EDGE, GATEWAY] {
            if self.ends[end].due.is_some_and(|due| due <= self.now) {
                self.ends[end].channel.handle_input(self.now, link::Input::Wake);
                self.drain(end);
            }
            if self.ends[end].wake.is_some_and(|wake| wake <= self.now) {
                self.ends[end].wake = None;
                self.tell(end, Input::Wake);
            }
        }
    }

    fn drain(&mut self, end: usize) {
        let mut arrived = Vec::new();
        self.ends[end].due = loop {
            match self.ends[end].channel.poll_output() {
                link::Output::Deliver { packet, .. } => arrived.push(packet.0),
                link::Output::Drop { .. } => panic!("a link without loss loses nothing"),
                link::Output::WakeAt(at) => break Some(at),
                link::Output::Idle => break None,
            }
        };
        let carrier = self.carrier;
        for bytes in arrived {
            self.tell(1 - end, Input::Received { carrier, bytes });
        }
    }

    fn output(&mut self, end: usize, output: Output) {
        match output {
            Output::Dial { carrier, .. } => {
                self.carrier = carrier;
                for end in [EDGE, GATEWAY] {
                    let peer = "peer".to_owned();
                    self.todo.push_back((
                        end,
                        Input::CarrierUp { carrier, kind: CarrierKind::FIRST, peer },
                    ));
                }
            }
            Output::Transmit { carrier, bytes } => {
                self.ends[end].sent += bytes.len() as u64;
                for segment in Segment::of(&bytes) {
                    let packet = link::Input::Packet(segment);
                    self.ends[end].channel.handle_input(self.now, packet);
                    self.drain(end);
                }
                let sent = Input::Sent { carrier, bytes: bytes.len() };
                self.todo.push_back((end, sent));
            }
            Output::Job(job) => self.runs(end, &job),
            Output::Release { exchange } => {
                self.ends[end].contexts.remove(&exchange);
            }
            Output::Head { exchange, end: over, .. } => {
                self.todo.push_back((end, Input::Credit { exchange, bytes: 1 << 30 }));
                if end == GATEWAY && over {
                    self.answers(exchange);
                }
            }
            Output::Data { bytes, .. } => self.ends[end].body.extend_from_slice(&bytes),
            Output::End { exchange, .. } if end == GATEWAY => self.answers(exchange),
            Output::End { .. } => self.finished = Some(self.now),
            Output::Abort { cause, .. } => panic!("{cause:?}"),
            Output::WakeAt(at) => self.ends[end].wake = Some(at),
            Output::Event(event) => self.fact(event.fact),
            Output::Store { name, bytes } => drop(self.ends[end].kept.insert(name, bytes)),
            Output::Forget { name } => drop(self.ends[end].kept.remove(&name)),
            _ => {}
        }
    }

    fn fact(&mut self, fact: Fact) {
        let took = &mut self.took;
        match fact {
            Fact::Outcome { direction: Of::Request, outcome, .. } => {
                took.request_bytes = outcome.actual.bytes;
            }
            Fact::Outcome { direction: Of::Response, outcome, .. } => {
                took.answer_bytes = outcome.actual.bytes;
                took.revisions = outcome.revisions.len();
            }
            Fact::Chosen { direction, encoding, .. } => {
                took.encodings[usize::from(direction == Of::Response)] = encoding;
            }
            _ => {}
        }
    }

    fn answers(&mut self, exchange: ExchangeId) {
        let fields = vec![("content-type".into(), self.media.into())];
        let response = bhttp::Response { status: 200, fields };
        let bytes = self.answer.clone().into();
        for input in [
            Input::Response { exchange, response, end: false },
            Input::Service { exchange, service: 0 },
            Input::Data { exchange, bytes },
            Input::End { exchange, trailers: Vec::new() },
        ] {
            self.todo.push_back((GATEWAY, input));
        }
    }

    fn runs(&mut self, end: usize, job: &Job) {
        let mut none = Contexts::default();
        let contexts = match job.context_of() {
            Some(exchange) => self.ends[end].contexts.entry(exchange).or_default(),
            None => &mut none,
        };
        let done = job.run(contexts);
        let (fixed_s, per_byte_s) = match job {
            Job::Decode(_) => DECODE_S,
            Job::Encode(_) | Job::Try(_) | Job::Prepare(Prepare::Dictionary { .. }) => ENCODE_S,
            Job::Prepare(_) => DECODE_S,
        };
        let cpu = Duration::from_secs_f64(fixed_s + per_byte_s * job.decoded_len() as f64);
        if matches!(job, Job::Encode(_)) {
            self.took.encode_s += cpu.as_secs_f64();
        }
        let done = Input::Done(done.took(cpu));
        self.count += 1;
        self.agenda.insert((self.now + cpu, self.count), (end, done));
    }
}

/// The least that anything could take over a link: half of the round trip each way, the bytes of
/// both bodies in packets of 1200 with headers of 36, and an acknowledgement.
#[must_use]
pub fn bound_s(link: &LinkConfig, request_bytes: usize, answer_bytes: usize) -> f64 {
    let rate_bps = link.ba.rate_bps.map_or(f64::INFINITY, |rate| rate as f64);
    let delay_s = (link.ab.delay + link.ba.delay).as_secs_f64();
    let packets = answer_bytes.div_ceil(1200);
    let bytes = answer_bytes + 36 * packets + request_bytes + 36;
    delay_s + 8.0 * bytes as f64 / (rate_bps * (1.0 - link.ba.loss))
}

/// The smallest encoding known of a message after another: of all codecs, with and without it.
#[must_use]
pub fn smallest(message: &[u8], before: Option<&[u8]>) -> usize {
    let alone = ["zstd", "brotli", "xmill"].map(|name| (name, None));
    let on = ["delta", "mix-dictionary", "brotli-dictionary"].map(|name| (name, before));
    let all = alone.into_iter().chain(on.into_iter().filter(|(_, before)| before.is_some()));
    let coded = all.filter_map(|(name, before)| {
        let dictionary = before.map(|before| codec::dictionary::Kept::new(before).into());
        let level = match name {
            "zstd" => Some(19),
            "brotli" => Some(11),
            "xmill" => Some(9),
            _ => None,
        };
        let settings = codec::Settings { level, dictionary, ..codec::Settings::default() };
        settings.encode(name, message).ok()
    });
    // What names its dictionary and checks itself has 14 bytes for it that the bound knows nothing
    // of; they count all the same.
    coded.map(|coded| coded.len()).min().unwrap_or(message.len()).min(message.len())
}
