//! Client and server over a link that loses, delays, reorders and doubles, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::wsp::client::{self, Client, Failure, MAX_REQUESTS_OF_PEER};
use crate::wsp::packet::{Method, Pdu};
use crate::wsp::server::{self, MAX_KNOWN_OF_HOST, MAX_PENDING_OF_HOST, Server};

const SEEDS: u64 = 2500;
const REQUESTS: u64 = 6;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn bytes_of(pdu: &Pdu<'_>) -> Bytes {
    let mut room = vec![0; 70_000];
    let len = pdu.encode(&mut room).unwrap();
    room.truncate(len);
    room.into()
}

fn post(body: &[u8]) -> Bytes {
    bytes_of(&Pdu::Request { method: Method::Post, uri: b"http://a/", headers: b"\xa8", body })
}

fn get(path: &str) -> Bytes {
    let uri = format!("http://a/{path}");
    bytes_of(&Pdu::Request { method: Method::Get, uri: uri.as_bytes(), headers: b"", body: b"" })
}

fn reply(body: &[u8]) -> Bytes {
    bytes_of(&Pdu::Reply { status: 0x20, headers: b"\xa8", body })
}

/// Chance for the tests (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn outputs(client: &mut Client) -> Vec<client::Output> {
    std::iter::from_fn(|| client.poll_output()).collect()
}

fn server_outputs(server: &mut Server) -> Vec<server::Output> {
    std::iter::from_fn(|| server.poll_output()).collect()
}

fn transmitted(outputs: &[client::Output]) -> Vec<Bytes> {
    let datagram = |output: &client::Output| match output {
        client::Output::Transmit { datagram, .. } => Some(datagram.clone()),
        _ => None,
    };
    outputs.iter().filter_map(datagram).collect()
}

#[derive(Debug)]
enum Event {
    ToServer(Bytes),
    ToClient(Bytes),
    /// The service has answered.
    Answer(u64, Bytes),
    /// The caller makes a request.
    Make(u64),
    Wake,
}

/// Everything that is to happen, by when.
struct World {
    events: BTreeMap<(Duration, u64), Event>,
    count: u64,
    chance: Chance,
    loss_percent: u64,
    max_delay_ms: u64,
    /// How often each request was carried out, by its body.
    carried_out: BTreeMap<Vec<u8>, u32>,
    answered: BTreeMap<u64, Bytes>,
    failed: BTreeSet<u64>,
    sent: BTreeMap<u64, Vec<u8>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let (loss_percent, max_delay_ms) = (chance.below(60), 1 + chance.below(4000));
        Self {
            events: BTreeMap::new(),
            count: 0,
            chance,
            loss_percent,
            max_delay_ms,
            carried_out: BTreeMap::new(),
            answered: BTreeMap::new(),
            failed: BTreeSet::new(),
            sent: BTreeMap::new(),
        }
    }

    fn at(&mut self, at: Duration, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// A datagram goes: it is lost, or comes once or twice, sometimes very late.
    fn carry(&mut self, now: Duration, event: impl Fn() -> Event) {
        let copies = if self.chance.below(10) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            if self.chance.below(100) < self.loss_percent {
                continue;
            }
            let late = if self.chance.below(20) == 0 { 20_000 } else { 0 };
            let delay_ms = self.chance.below(self.max_delay_ms) + late;
            self.at(now + Duration::from_millis(delay_ms), event());
        }
    }

    fn drain_client(&mut self, now: Duration, client: &mut Client) {
        while let Some(output) = client.poll_output() {
            match output {
                client::Output::Transmit { datagram, .. } => {
                    self.carry(now, || Event::ToServer(datagram.clone()));
                }
                client::Output::Reply { key, pdu } => {
                    assert!(!self.failed.contains(&key));
                    assert!(self.answered.insert(key, pdu).is_none(), "answered twice");
                }
                client::Output::Failed { key, failure } => {
                    assert_eq!(failure, Failure::Unanswered);
                    assert!(!self.answered.contains_key(&key));
                    assert!(self.failed.insert(key), "failed twice");
                }
                client::Output::Push { .. } => panic!("nobody pushed"),
                client::Output::WakeAt(at) => {
                    assert!(at >= now);
                    self.at(at, Event::Wake);
                }
            }
        }
    }

    fn drain_server(&mut self, now: Duration, server: &mut Server) {
        while let Some(output) = server.poll_output() {
            match output {
                server::Output::Request { id, pdu, .. } => {
                    let Ok(Pdu::Request { body, .. }) = Pdu::decode(&pdu) else {
                        panic!("no request");
                    };
                    *self.carried_out.entry(body.to_vec()).or_default() += 1;
                    let answer = reply(body);
                    let takes_ms = 1 + self.chance.below(5000);
                    self.at(now + Duration::from_millis(takes_ms), Event::Answer(id, answer));
                }
                server::Output::Transmit { datagram, .. } => {
                    self.carry(now, || Event::ToClient(datagram.clone()));
                }
                server::Output::Expired { .. } => panic!("all are answered"),
                server::Output::WakeAt(at) => self.at(at, Event::Wake),
            }
        }
    }

    fn run(&mut self, seed: u64, requests: u64) {
        let (mut client, mut server) = (Client::new(seed), Server::new());
        for key in 0..requests {
            let at = Duration::from_millis(self.chance.below(60_000));
            self.at(at, Event::Make(key));
        }
        let mut steps = 0;
        while let Some(((now, _), event)) = self.events.pop_first() {
            steps += 1;
            assert!(steps < 40_000, "seed {seed} does not end");
            match event {
                Event::ToServer(datagram) => {
                    let input = server::Input::Datagram { peer: address(1), datagram };
                    server.handle_input(now, input);
                }
                Event::ToClient(datagram) => {
                    let input = client::Input::Datagram { peer: address(9200), datagram };
                    client.handle_input(now, input);
                }
                Event::Answer(id, pdu) => {
                    server.handle_input(now, server::Input::Reply { id, pdu });
                }
                Event::Make(key) => {
                    let body = format!("{seed} {key}").into_bytes();
                    let pdu = post(&body);
                    self.sent.insert(key, body);
                    let peer = address(9200);
                    let input = client::Input::Request { key, peer, pdu, again: true };
                    client.handle_input(now, input);
                }
                Event::Wake => {
                    client.handle_input(now, client::Input::Wake);
                    server.handle_input(now, server::Input::Wake);
                }
            }
            self.drain_client(now, &mut client);
            self.drain_server(now, &mut server);
        }
        assert_eq!(client.open_requests(), 0, "seed {seed}");
        assert_eq!(server.known_requests(), 0, "seed {seed}");
    }

    fn check(&self, seed: u64) {
        for (key, body) in &self.sent {
            let times = self.carried_out.get(body).copied().unwrap_or(0);
            assert!(times <= 1, "seed {seed}: request {key} was carried out {times} times");
            match self.answered.get(key) {
                Some(pdu) => {
                    assert_eq!(*pdu, reply(body), "seed {seed}: the answer of another");
                    assert_eq!(times, 1);
                }
                None => assert!(self.failed.contains(key), "seed {seed}: {key} is forgotten"),
            }
        }
    }
}

#[test]
fn each_request_is_carried_out_at_most_once_and_answered_or_reported() {
    let (mut answered, mut failed) = (0_u64, 0_u64);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        world.run(seed, REQUESTS);
        world.check(seed);
        answered += world.answered.len() as u64;
        failed += world.failed.len() as u64;
    }
    assert_eq!(answered + failed, REQUESTS * SEEDS);
    assert!(failed > 0 && answered > 10 * failed, "{answered} answered, {failed} failed");
}

/// More requests than there are transaction ids: none is given out too early.
#[test]
fn transaction_ids_last() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        (world.loss_percent, world.max_delay_ms) = (5, 300);
        world.run(seed, 200);
        world.check(seed);
        assert!(world.answered.len() > 190);
    }
    let (mut client, peer) = (Client::new(1), address(9200));
    let (mut now, mut key, mut used) = (Duration::ZERO, 0, BTreeMap::new());
    while now < seconds(90) {
        key += 1;
        let pdu = get(&key.to_string());
        client.handle_input(now, client::Input::Request { key, peer, pdu, again: true });
        for datagram in transmitted(&outputs(&mut client)) {
            if let Some(before) = used.insert(datagram[0], now) {
                assert!(now - before >= seconds(30), "{} after {:?}", datagram[0], now - before);
            }
            let datagram = [&datagram[..1], &reply(b"x")[..]].concat().into();
            client.handle_input(now, client::Input::Datagram { peer, datagram });
        }
        outputs(&mut client);
        now += Duration::from_millis(50);
    }
    assert_eq!(used.len(), 256);
}

/// The same request again must not look like a copy of the one before.
#[test]
fn equal_requests_have_different_transaction_ids() {
    let (mut client, peer) = (Client::new(1), address(9200));
    let mut used = BTreeMap::new();
    for key in 0..700 {
        let now = seconds(key);
        let pdu = get("");
        client.handle_input(now, client::Input::Request { key, peer, pdu, again: true });
        for datagram in transmitted(&outputs(&mut client)) {
            if let Some(before) = used.insert(datagram[0], now) {
                assert!(now - before >= seconds(150));
            }
            let datagram = [&datagram[..1], &reply(b"x")[..]].concat().into();
            client.handle_input(now, client::Input::Datagram { peer, datagram });
        }
        outputs(&mut client);
    }
    assert_eq!(client.open_requests(), 0);
}

/// 1200 bytes at 2400 bit/s take four seconds to leave: until then nothing is overdue.
#[test]
fn what_still_leaves_is_not_sent_again() {
    let copies_within = |rate_bps: Option<u64>, within: Duration| {
        let (mut client, peer) = (Client::new(1), address(9200));
        client.handle_input(Duration::ZERO, client::Input::Rate(rate_bps));
        let pdu = post(&[b'a'; 1200]);
        let input = client::Input::Request { key: 1, peer, pdu, again: true };
        client.handle_input(Duration::ZERO, input);
        let mut copies = transmitted(&outputs(&mut client)).len();
        let mut now = Duration::ZERO;
        while now < within {
            now += Duration::from_millis(100);
            client.handle_input(now, client::Input::Wake);
            copies += transmitted(&outputs(&mut client)).len();
        }
        copies
    };
    assert_eq!(copies_within(None, seconds(7)), 2);
    assert_eq!(copies_within(Some(2400), seconds(7)), 1);
    assert_eq!(copies_within(Some(2400), seconds(9)), 2);
    assert_eq!(copies_within(None, seconds(200)), 5);
    assert_eq!(copies_within(Some(100), seconds(1000)), 2);
}

#[test]
fn what_must_not_be_sent_again_is_not() {
    let (mut client, peer) = (Client::new(1), address(9200));
    let input = client::Input::Request { key: 1, peer, pdu: post(b"x"), again: false };
    client.handle_input(Duration::ZERO, input);
    let mut all = outputs(&mut client);
    for now in 1..200 {
        client.handle_input(seconds(now), client::Input::Wake);
        all.extend(outputs(&mut client));
    }
    assert_eq!(transmitted(&all).len(), 1);
    let failed = client::Output::Failed { key: 1, failure: Failure::Unanswered };
    assert_eq!(all.iter().filter(|output| **output == failed).count(), 1);
}

#[test]
fn a_client_takes_what_it_has_room_for() {
    let (mut client, peer) = (Client::new(1), address(9200));
    for key in 0..=MAX_REQUESTS_OF_PEER as u64 {
        let pdu = get(&key.to_string());
        client.handle_input(Duration::ZERO, client::Input::Request { key, peer, pdu, again: true });
    }
    let all = outputs(&mut client);
    assert_eq!(transmitted(&all).len(), 8);
    let key = MAX_REQUESTS_OF_PEER as u64;
    assert!(all.contains(&client::Output::Failed { key, failure: Failure::Full }));
    // Another peer has its share, and what is cancelled makes room.
    let input = client::Input::Request { key, peer: address(2), pdu: get(""), again: true };
    client.handle_input(Duration::ZERO, input);
    assert_eq!(transmitted(&outputs(&mut client)).len(), 1);
    client.handle_input(Duration::ZERO, client::Input::Cancel { key: 0 });
    assert_eq!(transmitted(&outputs(&mut client)).len(), 1);
    assert_eq!(client.open_requests(), MAX_REQUESTS_OF_PEER);
    for wrong in [reply(b""), Bytes::new(), Bytes::from(vec![0x60; 70_000])] {
        let input = client::Input::Request { key: 9999, peer, pdu: wrong, again: true };
        client.handle_input(Duration::ZERO, input);
        let all = outputs(&mut client);
        let is_invalid = |output: &client::Output| {
            matches!(output, client::Output::Failed { failure: Failure::Invalid(_), .. })
        };
        assert!(all.iter().any(is_invalid), "{all:?}");
    }
}

fn datagram(tid: u8, pdu: &[u8]) -> Bytes {
    [&[tid], pdu].concat().into()
}

fn taken(outputs: &[server::Output]) -> Vec<u64> {
    let id = |output: &server::Output| match output {
        server::Output::Request { id, .. } => Some(*id),
        _ => None,
    };
    outputs.iter().filter_map(id).collect()
}

#[test]
fn an_old_answer_is_not_taken_for_a_new_one() {
    let (mut server, peer) = (Server::new(), address(1));
    let hand_in = |server: &mut Server, now, pdu: &[u8]| {
        let input = server::Input::Datagram { peer, datagram: datagram(5, pdu) };
        server.handle_input(seconds(now), input);
        server_outputs(server)
    };
    let first = taken(&hand_in(&mut server, 0, &post(b"a")));
    let second = taken(&hand_in(&mut server, 31, &post(b"b")));
    assert_eq!((first.len(), second.len()), (1, 1));
    // The answer of the first comes when its transaction id has another request.
    let answer = |id, body: &[u8]| server::Input::Reply { id, pdu: reply(body) };
    server.handle_input(seconds(32), answer(first[0], b"a"));
    assert!(!matches!(server_outputs(&mut server)[..], [server::Output::Transmit { .. }, ..]));
    server.handle_input(seconds(33), answer(second[0], b"b"));
    let sent = server::Output::Transmit { peer, datagram: datagram(5, &reply(b"b")) };
    assert!(server_outputs(&mut server).contains(&sent));
    // A late copy of the first is known, and says nothing; one of the second gets its answer.
    assert!(!hand_in(&mut server, 34, &post(b"a")).contains(&sent));
    assert!(hand_in(&mut server, 35, &post(b"b")).contains(&sent));
}

#[test]
fn a_server_takes_what_it_has_room_for() {
    let mut server = Server::new();
    let mut ids = Vec::new();
    for number in 0..MAX_PENDING_OF_HOST + 1 {
        let pdu = get(&number.to_string());
        let peer = address(u16::try_from(number).unwrap());
        let input = server::Input::Datagram { peer, datagram: datagram(0, &pdu) };
        server.handle_input(Duration::ZERO, input);
        ids.extend(taken(&server_outputs(&mut server)));
    }
    assert_eq!(ids.len(), MAX_PENDING_OF_HOST);
    assert_eq!(server.refused_requests(), 1);
    // What the shell cannot answer well is a 500, and what it never answers expires.
    let (first, rest) = ids.split_first().unwrap();
    server.handle_input(Duration::ZERO, server::Input::Reply { id: *first, pdu: get("") });
    let (peer, datagram) = (address(0), datagram(0, b"\x04\x60\x01\x80"));
    assert!(server_outputs(&mut server).contains(&server::Output::Transmit { peer, datagram }));
    server.handle_input(seconds(300), server::Input::Wake);
    let expired = |output: &&server::Output| matches!(output, server::Output::Expired { .. });
    assert_eq!(server_outputs(&mut server).iter().filter(expired).count(), rest.len());
    assert_eq!(server.known_requests(), 0);
}

/// Requests that change something are known for their time; safe ones go for others.
#[test]
fn safe_requests_make_room() {
    for (is_safe, expected) in [(true, 2 * MAX_KNOWN_OF_HOST), (false, MAX_KNOWN_OF_HOST)] {
        let (mut server, mut count) = (Server::new(), 0);
        for number in 0..2 * MAX_KNOWN_OF_HOST {
            let text = number.to_string();
            let pdu = if is_safe { get(&text) } else { post(text.as_bytes()) };
            let input = server::Input::Datagram { peer: address(1), datagram: datagram(0, &pdu) };
            server.handle_input(Duration::ZERO, input);
            for id in taken(&server_outputs(&mut server)) {
                count += 1;
                let pdu = reply(&[0; 5000]);
                server.handle_input(Duration::ZERO, server::Input::Reply { id, pdu });
                server_outputs(&mut server);
            }
        }
        assert_eq!(count, expected);
        assert_eq!(server.known_requests(), MAX_KNOWN_OF_HOST);
    }
}
