//! The world: clock, events, the two relays and what connects them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proto::bhttp;
use relay::{
    CarrierId, Cause, CauseKind, Config, Encoding, ExchangeId, Head, Input, Output, Relay, Role,
    Work, WorkDirection,
};

use crate::Random;
use crate::party::{Body, Client, Fate, Origin, Parties, Receiver, Sender};
use crate::pipe::Pipe;

/// Virtual time by which everything must be over.
const END_OF_TIME: Duration = Duration::from_secs(4 * 3600);
/// Steps after which a world that does not come to rest has a livelock.
const MAX_STEPS: u64 = 3_000_000;

/// Which troubles a world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moods {
    /// Carriers break.
    pub breaks: bool,
    /// The gateway restarts and forgets.
    pub restarts: bool,
    /// Clients leave, origins break off.
    pub aborts: bool,
    /// Readers are slow.
    pub slow: bool,
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
    /// Virtual time at the end.
    pub took: Duration,
}

#[derive(Debug)]
enum What {
    Edge(Input),
    Gateway { life: u32, input: Input },
    DialDone { carrier: CarrierId },
    Bytes { link: u64, to: Role, bytes: Bytes },
    ClientStarts,
    ClientLeaves(ExchangeId),
    ClientSips(ExchangeId),
    OriginSips { life: u32, exchange: ExchangeId },
    OriginAnswers { life: u32, exchange: ExchangeId },
    LinkBreaks { link: u64 },
    GatewayHearsOfBreak { link: u64 },
    GatewayRestarts,
}

struct Link {
    number: u64,
    edge: CarrierId,
    edge_up: bool,
    gateway_up: bool,
    ab: Pipe,
    ba: Pipe,
}

#[derive(Default)]
struct Contexts {
    encoders: BTreeMap<ExchangeId, Box<dyn codec::Encoder>>,
    decoders: BTreeMap<ExchangeId, Box<dyn codec::Decoder>>,
}

/// See the crate's page.
pub struct World {
    random: Random,
    moods: Moods,
    now: Duration,
    sequence: u64,
    agenda: BTreeMap<(Duration, u64), What>,
    edge: Relay,
    gateway: Relay,
    gateway_life: u32,
    edge_wake: Option<Duration>,
    gateway_wake: Option<Duration>,
    contexts: [Contexts; 2],
    links: Vec<Link>,
    parties: Parties,
    to_start: u64,
    restarted: bool,
    /// Memory for codecs is short.
    tight: bool,
}

impl World {
    /// A world that follows from its seed.
    #[must_use]
    pub fn new(seed: u64, moods: Moods) -> Self {
        let mut random = Random::new(seed);
        let encodings = ["auto", "auto", "identity", "deflate", "zstd:1"];
        let at = usize::try_from(random.below(5)).unwrap_or(0);
        let tight = random.once_in(4);
        let config = |role, instance| Config {
            encoding: Encoding::of(encodings[at]).unwrap_or_else(|_| Encoding::auto()),
            codec_bytes: if tight { 1 << 20 } else { 24 << 20 },
            max_exchanges: if instance % 5 == 0 { 2 } else { 256 },
            ..Config::new(role, instance)
        };
        let mut world = Self {
            edge: Relay::new(config(Role::Edge, random.bits())),
            gateway: Relay::new(config(Role::Gateway, random.bits())),
            moods,
            now: Duration::ZERO,
            sequence: 0,
            agenda: BTreeMap::new(),
            gateway_life: 0,
            edge_wake: None,
            gateway_wake: None,
            contexts: [Contexts::default(), Contexts::default()],
            links: Vec::new(),
            parties: Parties::default(),
            to_start: 3 + random.below(8),
            restarted: false,
            tight,
            random,
        };
        world.at(Duration::ZERO, What::Edge(Input::Wake));
        for _ in 0..world.to_start {
            let start = world.some_time(20_000);
            world.at(start, What::ClientStarts);
        }
        if moods.restarts && world.random.once_in(2) {
            let when = world.some_time(30_000);
            world.at(when, What::GatewayRestarts);
        }
        world
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
        let all_told = self.to_start == 0
            && self.parties.clients.values().all(|client| client.fate.is_some())
            && self.edge.is_idle()
            && self.gateway.is_idle();
        if all_told {
            return false;
        }
        let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
        let wake = [self.edge_wake, self.gateway_wake].into_iter().flatten().min();
        match (next, wake) {
            (Some(at), wake) if wake.is_none_or(|wake| at <= wake) => {
                self.now = at;
                if let Some((_, what)) = self.agenda.pop_first() {
                    self.happen(what);
                }
            }
            (_, Some(wake)) => {
                self.now = self.now.max(wake);
                if self.edge_wake == Some(wake) {
                    self.edge_wake = None;
                    self.tell_edge(Input::Wake);
                } else {
                    self.gateway_wake = None;
                    self.tell_gateway(Input::Wake);
                }
            }
            _ => panic!("requests hang at {:?}: {:?}", self.now, self.parties.clients),
        }
        true
    }

    fn at(&mut self, at: Duration, what: What) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), what);
    }

    fn some_time(&mut self, within_ms: u64) -> Duration {
        self.now + Duration::from_millis(self.random.below(within_ms))
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Edge(input) => self.tell_edge(input),
            What::Gateway { life, input } if life == self.gateway_life => self.tell_gateway(input),
            What::DialDone { carrier } => self.dial_done(carrier),
            What::Bytes { link, to, bytes } => self.bytes_arrive(link, to, bytes),
            What::ClientStarts => self.client_starts(),
            What::ClientLeaves(exchange) => self.client_leaves(exchange),
            What::ClientSips(exchange) => self.client_sips(exchange),
            What::OriginSips { life, exchange } if life == self.gateway_life => {
                self.origin_sips(exchange);
            }
            What::OriginAnswers { life, exchange } if life == self.gateway_life => {
                self.origin_answers(exchange);
            }
            What::LinkBreaks { link } => self.link_breaks(link),
            What::GatewayHearsOfBreak { link } => self.gateway_hears(link),
            What::GatewayRestarts => self.gateway_restarts(),
            What::Gateway { .. } | What::OriginSips { .. } | What::OriginAnswers { .. } => {}
        }
    }

    fn tell_edge(&mut self, input: Input) {
        self.edge.handle_input(self.now, input);
        while let Some(output) = self.edge.poll_output() {
            self.edge_wants(output);
        }
    }

    fn tell_gateway(&mut self, input: Input) {
        self.gateway.handle_input(self.now, input);
        while let Some(output) = self.gateway.poll_output() {
            self.gateway_wants(output);
        }
    }

    fn edge_wants(&mut self, output: Output) {
        match output {
            Output::Dial { carrier } => {
                let done = self.some_time(2000);
                self.at(done, What::DialDone { carrier });
            }
            Output::Transmit { carrier, bytes } => self.transmit(Role::Edge, carrier, bytes),
            Output::Close { carrier, .. } => {
                if let Some(link) = self.links.iter_mut().find(|link| link.edge == carrier) {
                    link.edge_up = false;
                    let (number, hears) = (link.number, self.some_time(5000));
                    self.at(hears, What::GatewayHearsOfBreak { link: number });
                }
            }
            Output::Work(work) => self.work(Role::Edge, work),
            Output::Release { exchange } => self.release(Role::Edge, exchange),
            Output::Head { exchange, head, end } => self.client_head(exchange, &head, end),
            Output::Data { exchange, bytes } => self.client_data(exchange, &bytes),
            Output::End { exchange, trailers } => {
                let client = self.client(exchange);
                let expected = self.parties.origins[&exchange].sender.trailers;
                let client = self.parties.clients.get_mut(&client).expect("known");
                client.receiver.end(&trailers, expected);
                client.fate = Some(Fate::Answered);
            }
            Output::Abort { exchange, cause, untouched } => {
                self.client_aborted(exchange, cause, untouched);
            }
            Output::Credit { exchange, bytes } => {
                let client = self.parties.clients.get_mut(&exchange).expect("known");
                assert!(!client.expects_continue, "body asked for before the origin's 100");
                client.sender.credit += bytes;
                self.client_sends(exchange);
            }
            Output::Interim { exchange, .. } => {
                let client = self.parties.clients.get_mut(&exchange).expect("known");
                client.expects_continue = false;
            }
            Output::WakeAt(at) => self.edge_wake = Some(at),
            Output::Event(_) => {}
        }
    }

    fn client(&self, exchange: ExchangeId) -> ExchangeId {
        let client = &self.parties.clients[&exchange];
        assert!(client.fate.is_none(), "told twice: {:?}", client.fate);
        exchange
    }

    fn gateway_wants(&mut self, output: Output) {
        let life = self.gateway_life;
        match output {
            Output::Transmit { carrier, bytes } => self.transmit(Role::Gateway, carrier, bytes),
            Output::Close { carrier, .. } => {
                if let Some(link) = self.links.iter_mut().find(|link| link.number == carrier.0) {
                    link.gateway_up = false;
                    let (number, breaks) = (link.number, self.some_time(3000));
                    self.at(breaks, What::LinkBreaks { link: number });
                }
            }
            Output::Work(work) => self.work(Role::Gateway, work),
            Output::Release { exchange } => self.release(Role::Gateway, exchange),
            Output::Head { exchange, head, end } => self.origin_head(exchange, &head, end),
            Output::Data { exchange, bytes } => {
                let Some(origin) = self.parties.origins.get_mut(&exchange) else { return };
                origin.receiver.take(&bytes);
                let sips = self.now + origin.receiver.pause;
                self.at(sips, What::OriginSips { life, exchange });
            }
            Output::End { exchange, trailers } => {
                let expected = self.parties.clients[&exchange].sender.trailers;
                let Some(origin) = self.parties.origins.get_mut(&exchange) else { return };
                origin.receiver.end(&trailers, expected);
                let answers = self.now + origin.thinks;
                self.at(answers, What::OriginAnswers { life, exchange });
            }
            Output::Abort { exchange, .. } => {
                self.parties.origins.entry(exchange).and_modify(|origin| origin.responded = true);
                if let Some(origin) = self.parties.origins.get_mut(&exchange) {
                    origin.sender.ended = true;
                }
            }
            Output::Credit { exchange, bytes } => {
                let origin = self.parties.origins.get_mut(&exchange).expect("known");
                origin.sender.credit += bytes;
                self.origin_sends(exchange);
            }
            Output::WakeAt(at) => self.gateway_wake = Some(at),
            Output::Event(_) => {}
            Output::Dial { .. } | Output::Interim { .. } => panic!("not a gateway's"),
        }
    }

    // Carriers.

    fn dial_done(&mut self, carrier: CarrierId) {
        if self.moods.breaks && self.random.once_in(4) {
            let reason = "refused".to_owned();
            return self.tell_edge(Input::CarrierDown { carrier, reason });
        }
        let number = self.links.len() as u64;
        let (ab, ba) = (Pipe::new(&mut self.random), Pipe::new(&mut self.random));
        self.links.push(Link { number, edge: carrier, edge_up: true, gateway_up: true, ab, ba });
        if self.moods.breaks && self.links.len() < 12 {
            let breaks = self.some_time(40_000);
            self.at(breaks, What::LinkBreaks { link: number });
        }
        self.tell_gateway(Input::CarrierUp { carrier: CarrierId(number), peer: "edge".into() });
        self.tell_edge(Input::CarrierUp { carrier, peer: "gateway".into() });
    }

    fn transmit(&mut self, from: Role, carrier: CarrierId, bytes: Bytes) {
        let len = bytes.len();
        let random = &mut self.random;
        let found = self.links.iter_mut().find(|link| match from {
            Role::Edge => link.edge == carrier,
            Role::Gateway => link.number == carrier.0,
        });
        let Some(link) = found else { return };
        let (pipe, to) = match from {
            Role::Edge => (&mut link.ab, Role::Gateway),
            Role::Gateway => (&mut link.ba, Role::Edge),
        };
        let (left, arrives) = pipe.carry(self.now, len, random);
        let number = link.number;
        self.at(arrives, What::Bytes { link: number, to, bytes });
        let sent = Input::Sent { carrier, bytes: len };
        match from {
            Role::Edge => self.at(left, What::Edge(sent)),
            Role::Gateway => {
                let life = self.gateway_life;
                self.at(left, What::Gateway { life, input: sent });
            }
        }
    }

    fn bytes_arrive(&mut self, link: u64, to: Role, bytes: Bytes) {
        let link = &self.links[usize::try_from(link).expect("small")];
        let (number, edge, edge_up, gateway_up) =
            (link.number, link.edge, link.edge_up, link.gateway_up);
        // Bytes come in other portions than they were sent in.
        let cut = usize::try_from(self.random.below(bytes.len() as u64 + 1)).expect("small");
        for part in [bytes.slice(..cut), bytes.slice(cut..)] {
            match to {
                Role::Edge if edge_up => {
                    self.tell_edge(Input::Received { carrier: edge, bytes: part });
                }
                Role::Gateway if gateway_up => {
                    let carrier = CarrierId(number);
                    self.tell_gateway(Input::Received { carrier, bytes: part });
                }
                _ => {}
            }
        }
    }

    /// The edge sees the break; what is on its way to the gateway still arrives for a while.
    fn link_breaks(&mut self, number: u64) {
        let link = &mut self.links[usize::try_from(number).expect("small")];
        if std::mem::replace(&mut link.edge_up, false) {
            let (carrier, reason) = (link.edge, "reset".to_owned());
            let hears = self.some_time(5000);
            self.at(hears, What::GatewayHearsOfBreak { link: number });
            self.tell_edge(Input::CarrierDown { carrier, reason });
        }
    }

    fn gateway_hears(&mut self, number: u64) {
        let link = &mut self.links[usize::try_from(number).expect("small")];
        if std::mem::replace(&mut link.gateway_up, false) {
            let (carrier, reason) = (CarrierId(number), "reset".to_owned());
            self.tell_gateway(Input::CarrierDown { carrier, reason });
        }
    }

    fn gateway_restarts(&mut self) {
        self.restarted = true;
        self.gateway_life += 1;
        self.gateway = Relay::new(Config::new(Role::Gateway, self.random.bits()));
        self.gateway_wake = None;
        self.contexts[1] = Contexts::default();
        for number in 0..self.links.len() {
            self.links[number].gateway_up = false;
            let breaks = self.some_time(1000);
            self.at(breaks, What::LinkBreaks { link: number as u64 });
        }
    }

    // Work.

    fn work(&mut self, role: Role, work: Work) {
        let contexts = &mut self.contexts[usize::from(role == Role::Gateway)];
        let mut out = Vec::new();
        let result = match work.direction {
            WorkDirection::Encode => contexts
                .encoders
                .entry(work.exchange)
                .or_insert_with(|| work.options.encoder().expect("options of ours"))
                .encode(&work.bytes, work.last, &mut out),
            WorkDirection::Decode => contexts
                .decoders
                .entry(work.exchange)
                .or_insert_with(|| work.options.decoder().expect("checked by the relay"))
                .decode(&work.bytes, work.decoded_len, work.last, &mut out),
        };
        let cpu = Duration::from_micros(self.random.below(3000));
        let done = Input::Done {
            exchange: work.exchange,
            direction: work.direction,
            block: work.block,
            result: result.map(|()| out.into()),
            cpu,
        };
        let life = self.gateway_life;
        let what = match role {
            Role::Edge => What::Edge(done),
            Role::Gateway => What::Gateway { life, input: done },
        };
        self.at(self.now + cpu, what);
    }

    fn release(&mut self, role: Role, exchange: ExchangeId) {
        let contexts = &mut self.contexts[usize::from(role == Role::Gateway)];
        contexts.encoders.remove(&exchange);
        contexts.decoders.remove(&exchange);
    }

    // Clients.

    fn client_starts(&mut self) {
        self.to_start -= 1;
        let exchange = self.edge.next_exchange();
        let slow = self.moods.slow && self.random.once_in(3);
        let method = if self.random.once_in(2) { "GET" } else { "POST" };
        let mut body = Body::new(&mut self.random);
        if method == "GET" {
            body.len = 0;
        }
        let expects_continue = body.len > 0 && self.random.once_in(5);
        let trailers = body.len > 0 && self.random.once_in(6);
        let sender =
            Sender { body, credit: 0, at: 0, ended: body.len == 0, trailers, busy_until: self.now };
        let receiver = Receiver::new(Body::new(&mut self.random), slow, &mut self.random);
        let credit = receiver.sip;
        let client = Client { method, sender, receiver, expects_continue, fate: None };
        self.parties.clients.insert(exchange, client);
        if self.moods.aborts && self.random.once_in(6) {
            let leaves = self.some_time(20_000);
            self.at(leaves, What::ClientLeaves(exchange));
        }
        let mut fields = vec![("content-type".into(), "text/xml".into())];
        if expects_continue {
            fields.push(("expect".into(), "100-continue".into()));
        }
        let head = Head::Request(bhttp::Request {
            method: method.into(),
            scheme: "http".into(),
            authority: "origin".into(),
            path: "/".into(),
            fields,
        });
        self.tell_edge(Input::Head { exchange, head, end: body.len == 0 });
        if self.parties.clients[&exchange].fate.is_none() {
            self.client_may_take(exchange, credit);
        }
    }

    fn client_may_take(&mut self, exchange: ExchangeId, bytes: u64) {
        let client = self.parties.clients.get_mut(&exchange).expect("known");
        client.receiver.credit += bytes;
        self.tell_edge(Input::Credit { exchange, bytes });
    }

    fn client_sends(&mut self, exchange: ExchangeId) {
        let client = self.parties.clients.get_mut(&exchange).expect("known");
        if client.fate.is_some() {
            return;
        }
        for (at, input) in
            inputs(&mut client.sender, exchange, u64::MAX, self.now, &mut self.random)
        {
            self.at(at, What::Edge(input));
        }
    }

    fn client_head(&mut self, exchange: ExchangeId, head: &Head, end: bool) {
        let id = self.client(exchange);
        let client = self.parties.clients.get_mut(&id).expect("known");
        assert!(matches!(head, Head::Response(response) if response.status == 200));
        assert!(!std::mem::replace(&mut client.receiver.headed, true), "a second head");
        assert!(!end || client.receiver.body.len == 0, "the head says that no body comes");
        if end {
            client.receiver.ended = true;
            client.fate = Some(Fate::Answered);
        }
    }

    fn client_data(&mut self, exchange: ExchangeId, bytes: &Bytes) {
        let id = self.client(exchange);
        let client = self.parties.clients.get_mut(&id).expect("known");
        client.receiver.take(bytes);
        let sips = self.now + client.receiver.pause;
        self.at(sips, What::ClientSips(exchange));
    }

    fn client_sips(&mut self, exchange: ExchangeId) {
        let client = &self.parties.clients[&exchange];
        if client.fate.is_none() && client.receiver.credit < client.receiver.sip {
            let room = client.receiver.sip - client.receiver.credit;
            self.client_may_take(exchange, room);
        }
    }

    fn client_leaves(&mut self, exchange: ExchangeId) {
        let client = self.parties.clients.get_mut(&exchange).expect("known");
        if client.fate.is_none() {
            client.fate = Some(Fate::LeftByClient);
            let cause = Cause { kind: CauseKind::ClientGone, reason: "left".into() };
            self.tell_edge(Input::Abort { exchange, cause });
        }
    }

    fn client_aborted(&mut self, exchange: ExchangeId, cause: Cause, untouched: bool) {
        let id = self.client(exchange);
        let client = self.parties.clients.get_mut(&id).expect("known");
        assert!(!untouched || client.sender.at == 0, "untouched, yet body was taken");
        let headed = client.receiver.headed;
        client.fate = Some(Fate::Failed { cause, headed });
    }

    // Origins.

    fn origin_head(&mut self, exchange: ExchangeId, head: &Head, end: bool) {
        *self.parties.forwarded.entry(exchange).or_default() += 1;
        let Head::Request(request) = head else { panic!("a response for an origin") };
        let client = &self.parties.clients[&exchange];
        let (request_body, answer) = (client.sender.body, client.receiver.body);
        let slow = self.moods.slow && self.random.once_in(3);
        let mut receiver = Receiver::new(request_body, slow, &mut self.random);
        receiver.headed = true;
        let breaks = self.moods.aborts && self.random.once_in(8);
        let early = request_body.len > 0 && self.random.once_in(10);
        let trailers = answer.len > 0 && client.receiver.sip.is_multiple_of(3);
        let origin = Origin {
            receiver,
            sender: Sender {
                body: answer,
                credit: 0,
                at: 0,
                ended: false,
                trailers,
                busy_until: self.now,
            },
            responded: false,
            breaks_at: breaks.then(|| self.random.below(answer.len + 1)),
            thinks: Duration::from_millis(self.random.magnitude(14)),
        };
        let (sip, thinks) = (origin.receiver.sip, origin.thinks);
        self.parties.origins.insert(exchange, origin);
        let life = self.gateway_life;
        let expects = request.fields.iter().any(|(name, _)| name == "expect");
        let input = Input::Credit { exchange, bytes: sip };
        self.parties.origins.get_mut(&exchange).expect("just put").receiver.credit += sip;
        self.at(self.now, What::Gateway { life, input });
        if expects && !early {
            let input = Input::Interim { exchange, status: 100 };
            self.at(self.now + thinks, What::Gateway { life, input });
        }
        if early || end {
            self.at(self.now + thinks, What::OriginAnswers { life, exchange });
        }
    }

    fn origin_sips(&mut self, exchange: ExchangeId) {
        let Some(origin) = self.parties.origins.get_mut(&exchange) else { return };
        let receiver = &mut origin.receiver;
        if receiver.credit < receiver.sip {
            let bytes = receiver.sip - receiver.credit;
            receiver.credit += bytes;
            self.tell_gateway(Input::Credit { exchange, bytes });
        }
    }

    fn origin_answers(&mut self, exchange: ExchangeId) {
        let Some(origin) = self.parties.origins.get_mut(&exchange) else { return };
        if std::mem::replace(&mut origin.responded, true) {
            return;
        }
        let end = origin.sender.body.len == 0 && origin.breaks_at.is_none();
        origin.sender.ended = end;
        let fields = vec![("content-type".into(), "text/xml".into())];
        let head = Head::Response(bhttp::Response { status: 200, fields });
        self.tell_gateway(Input::Head { exchange, head, end });
        self.origin_sends(exchange);
    }

    fn origin_sends(&mut self, exchange: ExchangeId) {
        let Some(origin) = self.parties.origins.get_mut(&exchange) else { return };
        if !origin.responded || origin.sender.ended {
            return;
        }
        let most = origin.breaks_at.unwrap_or(u64::MAX);
        let mut inputs = inputs(&mut origin.sender, exchange, most, self.now, &mut self.random);
        if origin.breaks_at == Some(origin.sender.at) {
            origin.sender.ended = true;
            let cause = Cause { kind: CauseKind::OriginFailed, reason: "reset".into() };
            let at = origin.sender.busy_until.max(self.now);
            inputs.push((at, Input::Abort { exchange, cause }));
        }
        let life = self.gateway_life;
        for (at, input) in inputs {
            self.at(at, What::Gateway { life, input });
        }
    }

    /// Whether everybody was treated right.
    fn verdict(self) -> Report {
        let mut report = Report { took: self.now, ..Report::default() };
        assert_eq!(self.edge.load().codec_bytes, 0, "codec memory leaked at the edge");
        assert_eq!(self.gateway.load().codec_bytes, 0, "codec memory leaked at the gateway");
        for contexts in &self.contexts {
            let left = contexts.encoders.len() + contexts.decoders.len();
            assert_eq!(left, 0, "codec contexts were not released");
        }
        for (exchange, client) in &self.parties.clients {
            report.requests += 1;
            let forwarded = self.parties.forwarded.get(exchange).copied().unwrap_or(0);
            assert!(
                forwarded <= 1 || (client.is_idempotent() && self.restarted),
                "forwarded {forwarded} times: {client:?}"
            );
            match client.fate.as_ref().expect("the world waited for it") {
                Fate::Answered => {
                    assert!(client.receiver.ended && forwarded >= 1);
                    report.answered += 1;
                }
                Fate::LeftByClient => report.left += 1,
                Fate::Failed { cause, headed } => {
                    self.judge_failure(client, cause, *headed, forwarded);
                    *report.failed.entry(cause.kind.name()).or_default() += 1;
                }
            }
        }
        report
    }

    fn judge_failure(&self, client: &Client, cause: &Cause, headed: bool, forwarded: u32) {
        let Moods { breaks, restarts, aborts, .. } = self.moods;
        let possible = match cause.kind {
            CauseKind::OriginFailed => aborts,
            CauseKind::GatewayUnreachable | CauseKind::NotForwarded => {
                (breaks || restarts) && forwarded == 0
            }
            CauseKind::OutcomeUnknown | CauseKind::AnswerLost => (breaks || restarts) && !headed,
            CauseKind::CarrierLost => (breaks || restarts) && headed,
            CauseKind::Limit => forwarded == 0 || self.tight,
            _ => false,
        };
        assert!(possible, "{cause:?}, headed {headed}, forwarded {forwarded}: {client:?}");
    }
}

/// As much of a body as its sender may hand over, in portions, and its end.
fn inputs(
    sender: &mut Sender,
    exchange: ExchangeId,
    most: u64,
    now: Duration,
    random: &mut Random,
) -> Vec<(Duration, Input)> {
    let mut inputs = Vec::new();
    sender.busy_until = sender.busy_until.max(now);
    let last = sender.body.len.min(most);
    while sender.credit > 0 && sender.at < last {
        let len = (1 + random.below(40_000)).min(sender.credit).min(last - sender.at);
        sender.busy_until += Duration::from_millis(random.magnitude(6));
        let bytes = sender.body.slice(sender.at, len);
        inputs.push((sender.busy_until, Input::Data { exchange, bytes }));
        sender.at += len;
        sender.credit -= len;
    }
    if sender.at == sender.body.len && sender.at == last && most == u64::MAX && !sender.ended {
        sender.ended = true;
        let trailer = ("checksum".into(), "1".into());
        let trailers = if sender.trailers { vec![trailer] } else { Vec::new() };
        if random.once_in(3) {
            sender.busy_until += Duration::from_millis(random.below(100));
        }
        inputs.push((sender.busy_until, Input::End { exchange, trailers }));
    }
    inputs
}
