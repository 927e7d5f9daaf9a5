//! Messages encoded against those before: what gets smaller, who never meets whom, and what happens
//! to a message whose base is gone.

mod absurd;
mod dictionaries;
mod lasting;
mod privacy;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use codec::dictionary::Kept;
use decide::policy::Objective;
use proto::control::Keeping;
use record::event::Fact;

use super::*;

/// One of two relays, with what its shell would keep.
struct End {
    relay: Relay,
    contexts: Contexts,
    facts: Vec<Fact>,
    /// What the local side was given.
    body: Vec<u8>,
    ended: bool,
    failed: Option<Cause>,
    /// What its shell keeps, and what of that was used since it started.
    disk: BTreeMap<[u8; 32], Bytes>,
    used: Vec<[u8; 32]>,
}

impl End {
    fn new(config: Config) -> Self {
        // What is counted here are bytes of messages, not signs of life.
        let config = Config { keepalive: Duration::from_secs(86_400), ..config };
        let (relay, facts, body) = (Relay::new(config), Vec::new(), Vec::new());
        let (contexts, ended, failed, used) = (Contexts::default(), false, None, Vec::new());
        Self { relay, contexts, facts, body, ended, failed, disk: BTreeMap::new(), used }
    }

    /// The encodings of this side's messages so far.
    fn chosen(&self) -> Vec<&str> {
        let chosen = self.facts.iter().filter_map(|fact| match fact {
            Fact::Chosen { encoding, .. } => Some(encoding.as_str()),
            _ => None,
        });
        chosen.collect()
    }

    fn ignored(&self) -> usize {
        self.facts.iter().filter(|fact| matches!(fact, Fact::Ignored { .. })).count()
    }
}

/// An edge and a gateway side by side.
struct Pair {
    edge: End,
    gateway: End,
    carrier: CarrierId,
    now: Duration,
    /// Bytes that each side transmitted.
    sent: [usize; 2],
    /// And in how many pieces.
    pieces: [usize; 2],
    /// What the origin answers with.
    answer: Vec<u8>,
    media: &'static str,
    /// Fields of the answer besides its media type.
    says: Vec<(&'static str, &'static str)>,
    todo: VecDeque<(Role, Input)>,
    /// Which service's settings count.
    service: Option<usize>,
    /// The gateway's bytes are held back.
    held: Option<Vec<(Role, Input)>>,
    /// What either side's peer is called.
    peer: &'static str,
}

impl Pair {
    fn new() -> Self {
        Self::with(&Config::new(Role::Edge, 0), None)
    }

    /// A pair of which both ends have these settings.
    fn with(config: &Config, service: Option<usize>) -> Self {
        let end = |role, instance| End::new(Config { role, instance, ..config.clone() });
        let (edge, gateway) = (end(Role::Edge, 1), end(Role::Gateway, 2));
        let (answer, todo) = (Vec::new(), VecDeque::new());
        let (now, carrier, media) = (ms(0), CarrierId(0), "text/xml");
        let (sent, pieces, held) = ([0; 2], [0; 2], None);
        let mut pair = Self {
            edge,
            gateway,
            carrier,
            now,
            sent,
            pieces,
            answer,
            media,
            says: Vec::new(),
            todo,
            held,
            service,
            peer: "p",
        };
        pair.tell(Role::Edge, Input::Wake);
        pair
    }

    fn end(&mut self, role: Role) -> &mut End {
        if role == Role::Edge { &mut self.edge } else { &mut self.gateway }
    }

    fn tell(&mut self, role: Role, input: Input) {
        self.todo.push_back((role, input));
        while let Some((role, input)) = self.todo.pop_front() {
            let now = self.now;
            let end = self.end(role);
            end.relay.handle_input(now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| end.relay.poll_output()).collect();
            outputs.into_iter().for_each(|output| self.output(role, output));
        }
    }

    fn output(&mut self, role: Role, output: Output) {
        let other = if role == Role::Edge { Role::Gateway } else { Role::Edge };
        match output {
            Output::Dial { carrier, .. } => {
                self.carrier = carrier;
                for role in [Role::Edge, Role::Gateway] {
                    self.todo.push_back((
                        role,
                        Input::CarrierUp {
                            carrier,
                            kind: CarrierKind::FIRST,
                            peer: self.peer.into(),
                        },
                    ));
                }
            }
            Output::Transmit { carrier, bytes } => {
                let at = usize::from(role == Role::Gateway);
                (self.sent[at], self.pieces[at]) =
                    (self.sent[at] + bytes.len(), self.pieces[at] + 1);
                let sent = Input::Sent { carrier, bytes: bytes.len() };
                self.todo.push_back((role, sent));
                let received = (other, Input::Received { carrier, bytes });
                match self.held.as_mut().filter(|_| role == Role::Gateway) {
                    Some(held) => held.push(received),
                    None => self.todo.push_back(received),
                }
            }
            Output::Job(job) => {
                let done = job.run(&mut self.end(role).contexts);
                let done = Input::Done(done.took(Duration::from_micros(50)));
                self.todo.push_back((role, done));
            }
            Output::Head { exchange, end, .. } => {
                self.todo.push_back((role, Input::Credit { exchange, bytes: 1 << 20 }));
                if end && role == Role::Gateway {
                    self.answers(exchange);
                }
            }
            Output::Data { bytes, .. } => self.end(role).body.extend_from_slice(&bytes),
            Output::End { exchange, .. } => {
                self.end(role).ended = true;
                if role == Role::Gateway {
                    self.answers(exchange);
                }
            }
            Output::Abort { cause, .. } => self.end(role).failed = Some(cause),
            Output::Event(event) => self.end(role).facts.push(event.fact),
            Output::Store { name, bytes } => drop(self.end(role).disk.insert(name, bytes)),
            Output::Used { name } => self.end(role).used.push(name),
            Output::Forget { name } => drop(self.end(role).disk.remove(&name)),
            _ => {}
        }
    }

    fn answers(&mut self, exchange: ExchangeId) {
        let media = [("content-type", self.media)];
        let fields = media.iter().chain(&self.says);
        let fields = fields.map(|&(name, value)| (name.into(), value.into())).collect();
        let head = Head::Response(bhttp::Response { status: 200, fields });
        let bytes = self.answer.clone().into();
        let role = Role::Gateway;
        self.todo.push_back((role, local(exchange, head, false)));
        if let Some(service) = self.service {
            self.todo.push_back((role, Input::Service { exchange, service }));
        }
        self.todo.push_back((role, Input::Data { exchange, bytes }));
        self.todo.push_back((role, Input::End { exchange, trailers: Vec::new() }));
    }

    /// A client posts, the origin answers; bytes that the edge and the gateway transmitted for it.
    fn asks(
        &mut self,
        client: &str,
        fields: &[(&str, &str)],
        body: &[u8],
        answer: &[u8],
    ) -> [usize; 2] {
        let before = self.sent;
        self.begins(client, fields, body, answer);
        assert_eq!(self.gateway.body, body);
        assert_eq!(self.edge.body, answer);
        assert!(self.edge.ended, "{:?}", self.edge.failed);
        [self.sent[0] - before[0], self.sent[1] - before[1]]
    }

    fn warms_up(&mut self) {
        for seed in 0..6 {
            self.asks("a", &[], &track(seed, ""), &track(seed, ""));
        }
    }

    fn begins(&mut self, client: &str, fields: &[(&str, &str)], body: &[u8], answer: &[u8]) {
        self.now += ms(50);
        self.answer = answer.to_vec();
        for end in [&mut self.edge, &mut self.gateway] {
            (end.body, end.ended, end.failed) = (Vec::new(), false, None);
        }
        let exchange = self.edge.relay.next_exchange();
        let (method, media) = if body.is_empty() { ("GET", "") } else { ("POST", self.media) };
        let fields: Vec<_> = [("content-type", media)].iter().chain(fields).copied().collect();
        let client = (!client.is_empty()).then(|| client.into());
        let (service, end) = (self.service, body.is_empty());
        let known_of = Known { client, service, other_way: false };
        self.tell(Role::Edge, known(exchange, request(method, &fields), end, known_of));
        self.tell(Role::Edge, Input::Credit { exchange, bytes: 1 << 20 });
        if !end {
            let bytes = Bytes::copy_from_slice(body);
            self.tell(Role::Edge, Input::Data { exchange, bytes });
            self.tell(Role::Edge, Input::End { exchange, trailers: Vec::new() });
        }
    }

    /// Nothing happens for some seconds; bytes that each side transmitted meanwhile.
    fn rests(&mut self, seconds: u64) -> [usize; 2] {
        let before = self.sent;
        for _ in 0..seconds {
            self.now += ms(1000);
            self.tell(Role::Edge, Input::Wake);
            self.tell(Role::Gateway, Input::Wake);
        }
        [self.sent[0] - before[0], self.sent[1] - before[1]]
    }

    /// One side's process is another, with these settings and what was kept for it.
    fn restarts(&mut self, role: Role, change: impl FnOnce(&mut Config)) {
        let carrier = self.carrier;
        let mut config = self.end(role).relay.transfer.core.config.clone();
        config.instance += 10;
        change(&mut config);
        let disk = std::mem::take(&mut self.end(role).disk);
        let mut end = End { disk, ..End::new(config) };
        for (name, bytes) in &end.disk {
            end.relay.restore_dictionary(*name, bytes).unwrap();
        }
        *self.end(role) = end;
        let other = if role == Role::Edge { Role::Gateway } else { Role::Edge };
        self.tell(other, Input::CarrierDown { carrier, reason: "cut".into() });
        self.tell(role, Input::Wake);
    }

    /// Messages that an end holds as bases for the carrier.
    fn bases(&self, role: Role) -> impl Iterator<Item = &Kept> {
        let end = if role == Role::Edge { &self.edge } else { &self.gateway };
        end.relay.transfer.coding.bases(path_of(self.carrier))
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
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Header>{extra}</s:Header>\
         <s:Body><tracks>{units}</tracks></s:Body></s:Envelope>"
    )
    .into_bytes()
}

#[test]
fn messages_that_repeat_are_encoded_against_those_before_in_both_directions() {
    let mut pair = Pair::new();
    let mut sizes = Vec::new();
    for seed in 0..12 {
        sizes.push(pair.asks("a", &[], &track(seed, ""), &track(seed + 100, "")));
    }
    let (first, last) = (sizes[0], sizes[11]);
    // With each request but the first goes what is said of the answer before.
    assert!(last[0] * 8 < first[0] * 5 && last[1] * 5 < first[1] * 3, "{sizes:?}");
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"), "{:?}", pair.edge.chosen());
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"), "{:?}", pair.gateway.chosen());
    assert_eq!((pair.edge.ignored(), pair.gateway.ignored()), (0, 0));
    let base = pair.edge.facts.iter().rev().find_map(|fact| match fact {
        Fact::Chosen { decision: Some(decision), .. } => Some(&decision.base),
        _ => None,
    });
    let known = matches!(base, Some(Some(record::decision::Base::Message { .. })));
    assert!(known, "{base:?}");
    // The first of all has nothing to be told by, and says so.
    let Some(Fact::Chosen { decision: Some(decision), .. }) =
        pair.edge.facts.iter().find(|fact| matches!(fact, Fact::Chosen { .. }))
    else {
        panic!("{:?}", pair.edge.facts)
    };
    let why = decision.forbidden.iter().find(|one| one.encoding == "delta").unwrap();
    assert!(why.why.contains("holds nothing"), "{why:?}");
}

/// What tells most of a message by one before says nothing of what is without that: rows of a long
/// answer that comes again, the same but for its first.
#[test]
fn what_a_base_made_short_says_nothing_of_other_encodings() {
    let row = |at: u64| {
        let noise = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
        format!(
            "<row id=\"{at}\"><hash>{noise:x}</hash><place>berth {}</place></row>\n",
            noise % 50
        )
    };
    let rest = (0..600).map(row).collect::<String>();
    let service = Service { objective: Objective::Bytes, ..Service::default() };
    let config = Config { services: vec![service], ..Config::new(Role::Edge, 0) };
    let mut pair = Pair::with(&config, Some(0));
    for seed in 0..30 {
        let body = format!("<rows><asked>{seed}</asked>{rest}</rows>");
        pair.asks("a", &[], body.as_bytes(), b"<ok/>");
    }
    let decisions = pair.edge.facts.iter().filter_map(|fact| match fact {
        Fact::Chosen { decision: Some(decision), .. } => Some(decision),
        _ => None,
    });
    for one in decisions.skip(3).flat_map(|decision| &decision.candidates) {
        // The shortest of them is XMill at 9, with a sixteenth.
        let share = one.expected.bytes as f64 / rest.len() as f64;
        assert!(one.encoding == "delta" || share > 0.05, "{} {share}", one.encoding);
    }
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
}

/// On a link that loses one packet in twenty each packet more is one more that what is behind it
/// may have to wait for.
#[test]
fn what_is_kept_is_reported_in_no_packet_of_its_own() {
    let mut pair = Pair::new();
    pair.warms_up();
    let before = pair.pieces;
    for seed in 10..20 {
        pair.asks("a", &[], &track(seed, ""), &track(seed + 100, ""));
    }
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
    assert_eq!([pair.pieces[0] - before[0], pair.pieces[1] - before[1]], [10, 10]);
}

#[test]
fn what_is_kept_is_reported_after_a_round_trip_even_if_nothing_follows() {
    let mut pair = Pair::new();
    pair.asks("a", &[], &track(0, ""), &track(1, ""));
    let held = |pair: &Pair| pair.bases(Role::Gateway).count();
    let before = pair.pieces;
    let round_trip = pair.edge.relay.transfer.core.config.coding().estimate().rtt_s().value;
    pair.now += Duration::from_secs_f64(round_trip / 2.0);
    pair.tell(Role::Edge, Input::Wake);
    // The answer, and the request that it was to.
    assert_eq!((pair.pieces, held(&pair)), (before, 2));
    pair.now += Duration::from_secs_f64(round_trip);
    pair.tell(Role::Edge, Input::Wake);
    assert_eq!(pair.pieces, [before[0] + 1, before[1]]);
    pair.asks("a", &[], &track(2, ""), &track(3, ""));
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
}

#[test]
fn what_is_kept_is_reported_before_a_gateway_goes() {
    let mut pair = Pair::new();
    pair.asks("a", &[], &track(0, ""), &track(1, ""));
    let before = pair.pieces[0];
    pair.tell(Role::Gateway, Input::Shutdown);
    assert_eq!(pair.pieces[0], before + 1);
}

#[test]
fn answers_to_requests_without_a_body_are_encoded_against_those_before() {
    let mut pair = Pair::new();
    for seed in 0..6 {
        pair.asks("a", &[], &[], &track(seed, ""));
    }
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
}

#[test]
fn nothing_is_encoded_against_what_was_not_acknowledged() {
    let mut pair = Pair::new();
    pair.asks("a", &[], &track(0, ""), &track(1, ""));
    pair.held = Some(Vec::new());
    let before = pair.edge.chosen().len();
    // Its request is kept by the gateway, whose word of it is held back.
    pair.begins("b", &[], &track(2, ""), &track(3, ""));
    pair.begins("b", &[], &track(3, ""), &track(4, ""));
    assert!(!pair.edge.chosen()[before..].contains(&"delta"), "{:?}", pair.edge.chosen());
    for (role, input) in pair.held.take().unwrap() {
        pair.tell(role, input);
    }
    pair.asks("b", &[], &track(4, ""), &track(5, ""));
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
}

#[test]
fn principals_never_share_a_base() {
    let token = "<wsse:Security xmlns:wsse='w'><wsse:UsernameToken><wsse:Username>NAME\
                 </wsse:Username></wsse:UsernameToken></wsse:Security>";
    let named = |name: &str| token.replace("NAME", name);
    let none = String::new();
    // Whoever differs in one of them is another.
    let alice = ("10.0.0.1", vec![("authorization", "Basic YTpi")], named("alice"));
    let others = [
        ("10.0.0.2", alice.1.clone(), alice.2.clone()),
        (alice.0, vec![("authorization", "Basic YTpj")], alice.2.clone()),
        (alice.0, vec![("proxy-authorization", "Basic YTpi")], alice.2.clone()),
        (alice.0, vec![("cookie", "session=1")], alice.2.clone()),
        (alice.0, vec![("x-api-key", "17")], alice.2.clone()),
        (alice.0, Vec::new(), alice.2.clone()),
        (alice.0, alice.1.clone(), named("mallory")),
        (alice.0, alice.1.clone(), none),
    ];
    let mut pair = Pair::new();
    for seed in 0..6 {
        pair.asks(alice.0, &alice.1, &track(seed, &alice.2), &track(seed, ""));
    }
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
    for (client, fields, extra) in others {
        let before = (pair.edge.chosen().len(), pair.gateway.chosen().len());
        pair.asks(client, &fields, &track(50, &extra), &track(51, ""));
        assert_ne!(pair.edge.chosen()[before.0], "delta", "{client} {fields:?} {extra}");
        assert_ne!(pair.gateway.chosen()[before.1], "delta", "{client} {fields:?} {extra}");
    }
    pair.asks(alice.0, &alice.1, &track(60, &alice.2), &track(61, ""));
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
}

#[test]
fn what_a_target_has_to_prove_it_tells_requesters_apart() {
    let requester = |authority: &'static str, path: &'static str| {
        let Head::Request(mut request) = request("GET", &[]) else { unreachable!() };
        (request.authority, request.path) = (authority.into(), path.into());
        requester(&"10.0.0.1".into(), &request)
    };
    let alice = requester("o", "/a?access_token=1&page=1");
    assert_eq!(alice, requester("o", "/b?page=2&access_token=1"));
    let others = [
        requester("o", "/a?access_token=2&page=1"),
        requester("o", "/a?page=1"),
        requester("o", "/a?acc%65ss_token=1"),
        requester("o", "/a?page=1;api-key=1"),
        requester("o", "/a?pwd=1"),
        requester("alice:1@o", "/a"),
        requester("mallory@o", "/a"),
    ];
    for (at, other) in others.iter().enumerate() {
        assert!(alice != *other && !others[..at].contains(other), "{at}");
    }
}

#[test]
fn a_kind_that_cannot_be_kept_ends_nothing_for_others() {
    let mut pair = Pair::new();
    let beside = format!("<a><name>password</name><value>{}</value></a>", "x ".repeat(300));
    pair.media = "application/xml";
    pair.asks("a", &[], &track(0, ""), beside.as_bytes());
    pair.media = "text/xml";
    pair.warms_up();
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
}

#[test]
fn nothing_secret_is_held_on_either_side() {
    let mut pair = Pair::new();
    for (prefix, envelope) in [("wsse:", 1), ("x:", 2)] {
        let declared = prefix.trim_end_matches(':');
        let header = format!(
            "<{prefix}Security xmlns:{declared}='w{envelope}'><{prefix}UsernameToken>\
             <{prefix}Username>alice</{prefix}Username><{prefix}Password>HUSH</{prefix}Password>\
             </{prefix}UsernameToken><{prefix}BinarySecurityToken>HUSH</{prefix}\
             BinarySecurityToken></{prefix}Security>"
        );
        for seed in 0..4 {
            let fields = [("authorization", "HUSH"), ("cookie", "HUSH")];
            pair.asks("a", &fields, &track(seed, &header), &track(seed, &header));
        }
    }
    let mut held = 0;
    for kept in [Role::Edge, Role::Gateway].into_iter().flat_map(|role| pair.bases(role)) {
        held += 1;
        let text = String::from_utf8_lossy(kept.content());
        assert!(text.contains("callsign") && !text.contains("HUSH"), "{text}");
        assert!(!text.contains("alice"), "{text}");
    }
    assert!(held >= 8, "{held}");
}

#[test]
fn who_cannot_be_distinguished_or_read_has_no_bases() {
    let mut pair = Pair::new();
    pair.media = "application/x-www-form-urlencoded";
    let form = b"user=alice&password=hush&text=".repeat(20);
    for _ in 0..4 {
        pair.asks("a", &[], &form, &form);
    }
    pair.media = "text/xml";
    // Signed, by nobody that is named.
    let signed = "<w:Security xmlns:w='w'><Signature>x</Signature></w:Security>";
    for seed in 0..4 {
        pair.asks("a", &[], &track(seed, signed), &track(seed, ""));
    }
    // Nor without the shell's word of who asks.
    for seed in 0..4 {
        pair.asks("", &[], &track(seed, ""), &track(seed, ""));
    }
    assert!(!pair.edge.chosen().contains(&"delta"));
    assert!(!pair.gateway.chosen().contains(&"delta"));
    pair.warms_up();
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
}

#[test]
fn a_carrier_that_breaks_takes_its_bases_along_and_nothing_else() {
    let mut pair = Pair::new();
    pair.warms_up();
    // The answer is on its way as a delta when the carrier breaks.
    pair.held = Some(Vec::new());
    pair.begins("a", &[], &track(7, ""), &track(8, ""));
    assert_eq!(pair.gateway.chosen().last(), Some(&"delta"));
    pair.held = None;
    for role in [Role::Gateway, Role::Edge] {
        let carrier = pair.carrier;
        pair.tell(role, Input::CarrierDown { carrier, reason: "cut".into() });
    }
    let load = pair.edge.relay.load();
    assert_eq!((load.carriers, load.exchanges), (0, 1));
    pair.now += ms(1000);
    pair.tell(Role::Edge, Input::Wake);
    assert!(pair.edge.ended, "{:?}", pair.edge.failed);
    assert_eq!(pair.edge.body, track(8, ""));
    pair.asks("a", &[], &track(9, ""), &track(10, ""));
    assert_ne!(pair.edge.chosen().last(), Some(&"delta"));
    pair.asks("a", &[], &track(9, ""), &track(10, ""));
    assert_eq!(pair.edge.chosen().last(), Some(&"delta"));
}

#[test]
fn an_old_peer_hears_nothing_of_bases() {
    let mut side = decision::Side::new(Config::new(Role::Edge, 1));
    for seed in 0..5 {
        side.client = Some("a".into());
        let (_, frames) = side.posts(&track(seed, ""), None);
        assert!(!frames.iter().any(|frame| matches!(frame, Part::Control(..))), "{frames:?}");
    }
    assert!(side.jobs.iter().all(|job| !matches!(job, Job::Prepare(_))));
}

#[test]
fn what_a_hostile_peer_says_of_bases_harms_nobody() {
    let mut pair = Pair::new();
    pair.asks("a", &[], &track(0, ""), &track(0, ""));
    let all = |exchange: u64| {
        let plain = Bytes::from_static(b"<forged/>");
        [
            Keeping::Principal { exchange, principal: 1 },
            Keeping::Keep { exchange, slot: 63 },
            Keeping::Kept { exchange, id: [9; 8] },
            Keeping::Missing { exchange },
            Keeping::Identity { exchange, bytes: plain },
        ]
    };
    for exchange in [1, 2, 3, 1 << 40] {
        for keeping in all(exchange) {
            let mut bytes = Vec::new();
            Frame::from(keeping.part()).encode(&mut bytes);
            for role in [Role::Edge, Role::Gateway] {
                let (carrier, bytes) = (pair.carrier, bytes.clone().into());
                pair.tell(role, Input::Received { carrier, bytes });
            }
        }
        let body = track(u32::try_from(exchange % 50).unwrap(), "");
        pair.asks("a", &[], &body, &body);
    }
    assert_eq!(pair.edge.relay.load().exchanges, 0);
}
