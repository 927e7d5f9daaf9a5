use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::carrier::{Input, Output, Setup};
use crate::coap::{Code, Datagram, Header, Kind, Token, Writer, option};
use crate::exchange::{Abort, Data, Head, OutcomeState, Part, Role};
use crate::kinds;
use crate::urgency::Urgency;

const EDGE: usize = 0;
const GATEWAY: usize = 1;
const WAY: Duration = Duration::from_millis(100);

fn setup(role: Role) -> Setup {
    Setup {
        role,
        instance: if role == Role::Edge { 7 } else { 9 },
        initial_credit: 64 << 10,
        max_exchanges: 256,
        codecs: vec![0],
        max_window_log: 20,
        own_bytes_per_s: None,
    }
}

fn head(exchange: u64, end: bool) -> Part {
    let head = Bytes::from_static(b"head");
    Part::Head(Head { exchange, codec: 0, window_log: 0, end, head })
}

fn data(exchange: u64, bytes: impl Into<Bytes>, end: bool) -> Part {
    let bytes = bytes.into();
    let block_end = Some(bytes.len() as u64);
    let (uncoded, anew, padding) = (false, false, None);
    Part::Data(Data { exchange, block_end, uncoded, anew, end, padding, bytes })
}

fn abort(exchange: u64) -> Part {
    Part::Abort(Abort { exchange, code: 1, reason: String::new() })
}

/// What is under way or is to happen.
#[derive(Debug)]
enum What {
    Comes(usize, Input),
    Wakes(usize),
}

/// Both ends, the way between them, and a clock.
struct World {
    ends: [kinds::Carrier; 2],
    agenda: BTreeMap<(Duration, u64), What>,
    last: u64,
    now: Duration,
    random: u64,
    /// Of a hundred datagrams so many are lost, and come twice.
    lost: u64,
    doubled: u64,
    received: [Vec<Part>; 2],
    answered: Vec<u64>,
    faults: [Option<Error>; 2],
    lost_at: [Option<Error>; 2],
    datagrams: [Vec<Bytes>; 2],
}

impl World {
    fn new(kind: kinds::Kind, seed: u64, lost: u64) -> Self {
        let ends = [Role::Edge, Role::Gateway].map(|role| (kind.make)(setup(role)));
        let mut world = Self {
            ends,
            agenda: BTreeMap::new(),
            last: 0,
            now: Duration::ZERO,
            random: seed,
            lost,
            doubled: lost / 2,
            received: Default::default(),
            answered: Vec::new(),
            faults: [None, None],
            lost_at: [None, None],
            datagrams: Default::default(),
        };
        [EDGE, GATEWAY].into_iter().for_each(|end| world.drain(end));
        world
    }

    fn greeted(kind: kinds::Kind) -> Self {
        let mut world = Self::new(kind, 1, 0);
        world.run(WAY * 4);
        assert!(world.ends.iter().all(|end| end.peer().is_some()), "{:?}", world.faults);
        world
    }

    /// Of a hundred.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % 100
    }

    fn at(&mut self, at: Duration, what: What) {
        self.last += 1;
        self.agenda.insert((at, self.last), what);
    }

    fn drain(&mut self, end: usize) {
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                Output::Bytes(bytes) => {
                    self.at(self.now + WAY, What::Comes(1 - end, Input::Bytes(bytes)));
                }
                Output::Datagram(bytes) => {
                    assert!(bytes.len() <= MAX_DATAGRAM_BYTES, "{}", bytes.len());
                    self.datagrams[end].push(bytes.clone());
                    let copies = 1 + u64::from(self.draw() < self.doubled);
                    for _ in 0..copies {
                        let late = Duration::from_millis(self.draw());
                        if self.draw() >= self.lost {
                            let input = Input::Datagram(bytes.clone());
                            self.at(self.now + WAY + late, What::Comes(1 - end, input));
                        }
                    }
                }
                Output::Received(part) => self.received[end].push(part),
                Output::Answered(number) => self.answered.push(number),
                Output::WakeAt(at) => self.at(at.max(self.now), What::Wakes(end)),
                Output::Fault(error) => self.faults[end] = Some(error),
                Output::Lost(error) => self.lost_at[end] = Some(error),
                Output::Greeted => {}
                Output::Stream(_) => panic!("no streams"),
            }
        }
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle_input(self.now, input);
        self.drain(end);
    }

    fn send(&mut self, end: usize, part: Part) {
        self.input(end, Input::Send(part, Urgency::DEFAULT));
    }

    /// The next thing happens, if that is before `until`.
    fn step(&mut self, until: Duration) -> bool {
        let Some((&(at, _), _)) = self.agenda.first_key_value() else { return false };
        if at > until {
            return false;
        }
        self.now = self.now.max(at);
        match self.agenda.pop_first().unwrap().1 {
            What::Comes(end, input) => self.input(end, input),
            What::Wakes(end) => self.input(end, Input::Wake),
        }
        true
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }
}

fn both(test: impl Fn(kinds::Kind)) {
    [kinds::Kind::COAP, kinds::Kind::COAP_TCP].into_iter().for_each(test);
}

#[test]
fn an_exchange_is_a_request_and_its_response() {
    let mut world = World::greeted(kinds::Kind::COAP);
    world.datagrams = Default::default();
    world.send(EDGE, head(1, false));
    world.send(EDGE, data(1, &b"request"[..], true));
    world.run(WAY * 3);
    assert_eq!(world.received[GATEWAY], [head(1, false), data(1, &b"request"[..], true)]);
    assert_eq!(world.datagrams[GATEWAY].len(), 0, "{:?}", world.datagrams);
    world.send(GATEWAY, head(1, false));
    world.send(GATEWAY, data(1, &b"answer"[..], true));
    world.run(WAY * 3);
    assert_eq!(world.received[EDGE], [head(1, false), data(1, &b"answer"[..], true)]);
    assert_eq!([EDGE, GATEWAY].map(|end| world.ends[end].open_exchanges()), [0, 0]);
    // Two datagrams in all: what acknowledges the request is the response.
    assert_eq!(world.datagrams.each_ref().map(Vec::len), [1, 1], "{:?}", world.datagrams);
    let request = Datagram::decode(&world.datagrams[EDGE][0]).unwrap();
    assert_eq!((request.kind, request.message.code), (Kind::Confirmable, Code::POST));
    assert_eq!(request.message.options.first(option::URI_PATH), Some(&b"lw"[..]));
    let response = Datagram::decode(&world.datagrams[GATEWAY][0]).unwrap();
    assert_eq!((response.kind, response.message.code), (Kind::Acknowledgement, Code::CHANGED));
    // What is around a request's frames, and around an answer's.
    let around = |datagram: &Bytes, frames: usize| datagram.len() - frames;
    assert_eq!(around(&world.datagrams[EDGE][0], 8 + 11), 4 + 8 + 3 + 2 + 1);
    assert_eq!(around(&world.datagrams[GATEWAY][0], 8 + 10), 4 + 8 + 2 + 1);
}

#[test]
fn long_messages_go_in_blocks_and_several_at_once_are_not_mixed_up() {
    both(|kind| {
        let mut world = World::greeted(kind);
        let body = |exchange: u64| vec![u8::try_from(exchange).unwrap(); 20_000];
        for exchange in 1..5 {
            world.send(EDGE, head(exchange, false));
            world.send(EDGE, data(exchange, body(exchange), true));
        }
        world.run(Duration::from_secs(40));
        for exchange in 1..5 {
            let came = [head(exchange, false), data(exchange, body(exchange), true)];
            assert!(came.iter().all(|part| world.received[GATEWAY].contains(part)), "{exchange}");
            world.send(GATEWAY, head(exchange, false));
            world.send(GATEWAY, data(exchange, body(exchange + 100), true));
        }
        world.run(Duration::from_secs(60));
        for exchange in 1..5 {
            let answer = data(exchange, body(exchange + 100), true);
            assert!(world.received[EDGE].contains(&answer), "{exchange}: {:?}", world.faults);
        }
        assert_eq!(world.faults, [None, None]);
    });
}

#[test]
fn an_answer_that_takes_long_is_asked_for_again() {
    both(|kind| {
        let mut world = World::greeted(kind);
        world.send(EDGE, head(1, true));
        world.run(Duration::from_secs(700));
        let is_asked = |part: &Part| *part == Part::Credit(1, 0);
        assert_eq!(world.received[GATEWAY][0], head(1, true));
        assert!(world.received[GATEWAY][1..].iter().all(is_asked));
        assert!((10..13).contains(&world.received[GATEWAY].len()));
        world.send(GATEWAY, Part::Interim(1, 102));
        world.send(GATEWAY, head(1, true));
        world.run(WAY * 4);
        assert_eq!(world.received[EDGE], [Part::Interim(1, 102), head(1, true)]);
        assert_eq!(world.faults, [None, None]);
        assert_eq!([EDGE, GATEWAY].map(|end| world.ends[end].open_exchanges()), [0, 0]);
    });
}

/// It comes in order and within the credit, however much there is.
#[test]
fn an_answer_of_any_length_is_fetched_as_it_comes() {
    const PIECE_BYTES: usize = 2000;
    const LAST: u8 = 199;
    both(|kind| {
        let mut world = World::greeted(kind);
        world.send(EDGE, head(1, true));
        world.run(WAY * 3);
        world.send(GATEWAY, head(1, false));
        let (mut next, mut read) = (0, 1);
        for _ in 0..20_000 {
            while next <= LAST && world.ends[GATEWAY].credit(1) > PIECE_BYTES as u64 + 128 {
                world.send(GATEWAY, data(1, vec![next; PIECE_BYTES], next == LAST));
                next += 1;
            }
            world.run(Duration::from_millis(50));
            while let Some(Part::Data(piece)) = world.received[EDGE].get(read) {
                let credit = piece.credit();
                assert_eq!(usize::from(piece.bytes[0]) + 1, read, "in order");
                world.send(EDGE, Part::Credit(1, credit));
                read += 1;
            }
            if read > usize::from(LAST) + 1 {
                break;
            }
        }
        assert_eq!(read, usize::from(LAST) + 2, "{:?}", world.faults);
        world.run(WAY * 4);
        assert_eq!([EDGE, GATEWAY].map(|end| world.ends[end].open_exchanges()), [0, 0]);
    });
}

/// Nobody has to wait for the next.
#[test]
fn an_event_comes_without_the_end_of_its_answer() {
    both(|kind| {
        let mut world = World::greeted(kind);
        world.send(EDGE, head(1, true));
        world.run(WAY * 3);
        world.send(GATEWAY, head(1, false));
        for event in [&b"first"[..], b"second"] {
            world.send(GATEWAY, data(1, event, false));
            world.run(Duration::from_secs(2));
            assert!(world.received[EDGE].contains(&data(1, event, false)));
        }
        world.send(GATEWAY, Part::Trailers(1, Vec::new()));
        world.run(WAY * 4);
        assert_eq!(world.ends[EDGE].open_exchanges(), 0);
    });
}

#[test]
fn what_is_never_asked_for_is_bounded() {
    let mut world = World::greeted(kinds::Kind::COAP);
    world.send(EDGE, head(1, true));
    world.run(WAY * 3);
    world.send(EDGE, Part::Credit(1, 1 << 30));
    world.run(WAY * 3);
    world.send(GATEWAY, head(1, false));
    // The edge is gone.
    world.lost = 100;
    let mut given = 0;
    while world.ends[GATEWAY].credit(1) > 10_128 && given < 1 << 30 {
        world.send(GATEWAY, data(1, vec![0; 10_000], false));
        given += 10_000;
    }
    assert!(given < 400_000, "{given}");
}

#[test]
fn probes_are_answered_and_a_gateway_asks_nothing() {
    both(|kind| {
        let mut world = World::greeted(kind);
        world.input(EDGE, Input::Probe(17));
        world.run(WAY * 4);
        assert_eq!(world.answered, [17]);
        world.input(GATEWAY, Input::Probe(18));
        assert!(matches!(world.faults[GATEWAY], Some(Error::Caller { .. })));
    });
}

#[test]
fn either_side_may_give_an_exchange_up_and_its_number_is_free_again() {
    both(|kind| {
        let mut world = World::greeted(kind);
        // Before anything has left.
        world.send(EDGE, head(1, false));
        world.send(EDGE, abort(1));
        world.run(WAY * 4);
        assert!(world.received[GATEWAY].is_empty());
        // While it is under way, and then it goes once more.
        world.send(EDGE, head(2, true));
        world.run(WAY * 3);
        world.send(EDGE, abort(2));
        world.send(EDGE, Part::Query(2, 1));
        world.run(WAY * 10);
        let came = [head(2, true), abort(2), Part::Query(2, 1)];
        assert_eq!(world.received[GATEWAY], came, "{:?}", world.faults);
        world.send(GATEWAY, Part::Outcome(2, OutcomeState::NotSeen));
        world.run(WAY * 4);
        world.send(EDGE, head(2, true));
        world.run(WAY * 4);
        world.send(GATEWAY, head(2, false));
        world.send(GATEWAY, abort(2));
        world.run(WAY * 4);
        let back = [Part::Outcome(2, OutcomeState::NotSeen), head(2, false), abort(2)];
        assert_eq!(world.received[EDGE], back);
        assert_eq!([EDGE, GATEWAY].map(|end| world.ends[end].open_exchanges()), [0, 0]);
        assert_eq!(world.faults, [None, None]);
    });
}

#[test]
fn what_is_of_no_exchange_does_not_cross_and_a_gateway_gives_no_credit() {
    both(|kind| {
        let mut world = World::greeted(kind);
        world.send(EDGE, Part::Control(1, Bytes::from_static(b"x")));
        world.send(EDGE, head(1, true));
        world.send(EDGE, Part::Credit(1, 1 << 20));
        // It waits for the acknowledgement of what is before it.
        world.run(WAY * 10);
        assert_eq!(world.received[GATEWAY], [head(1, true), Part::Credit(1, 1 << 20)]);
        assert!(world.ends[GATEWAY].credit(1) > 64 << 10);
        world.send(GATEWAY, Part::Credit(1, 1 << 20));
        world.send(GATEWAY, Part::Control(1, Bytes::from_static(b"x")));
        world.run(WAY * 4);
        assert_eq!(world.received[EDGE], []);
    });
}

/// A request as anybody may send one.
fn post(path: &[u8], payload: &[u8]) -> Bytes {
    let token = Token::new(&[1]).unwrap();
    let header = Header { kind: Kind::Confirmable, code: Code::POST, mid: 5, token };
    let mut room = [0; 256];
    let mut writer = Writer::new(&mut room, &header);
    writer.option(option::URI_PATH, path).unwrap();
    writer.payload(payload).unwrap();
    let len = writer.finish().unwrap();
    Bytes::copy_from_slice(&room[..len])
}

#[test]
fn what_is_no_transaction_is_refused_with_an_error_of_the_standard() {
    let mut world = World::new(kinds::Kind::COAP, 1, 0);
    // No HELLO, as where a gateway has started again: the edge hears so and the carrier ends.
    world.input(GATEWAY, Input::Datagram(post(b"lw", &[0x01, 0x01, 0x05])));
    let refused = Datagram::decode(&world.datagrams[GATEWAY][0]).unwrap();
    assert_eq!(refused.message.code, Code::UNAUTHORIZED);
    assert!(matches!(world.faults[GATEWAY], Some(Error::Peer { .. })));
    let mut edge = World::greeted(kinds::Kind::COAP);
    edge.datagrams = Default::default();
    edge.send(EDGE, head(1, true));
    let request = edge.datagrams[EDGE][0].clone();
    let mut world = World::new(kinds::Kind::COAP, 1, 0);
    world.input(GATEWAY, Input::Datagram(request));
    edge.input(EDGE, Input::Datagram(world.datagrams[GATEWAY][0].clone()));
    assert!(edge.lost_at[EDGE].is_some() && edge.faults[EDGE].is_none());
    // Another resource.
    let mut world = World::new(kinds::Kind::COAP, 1, 0);
    world.input(GATEWAY, Input::Datagram(post(b"other", b"")));
    let refused = Datagram::decode(&world.datagrams[GATEWAY][0]).unwrap();
    assert_eq!(refused.message.code, Code::UNAUTHORIZED);
    assert_eq!(world.faults[GATEWAY], None);
}

#[test]
fn a_gateway_that_is_gone_ends_the_carrier() {
    let mut world = World::greeted(kinds::Kind::COAP);
    world.lost = 100;
    world.send(EDGE, head(1, true));
    world.run(Duration::from_secs(200));
    assert!(matches!(world.lost_at[EDGE], Some(Error::Peer { .. })));
    let measured = world.ends[EDGE].measured().unwrap();
    assert!(measured.sent_again >= 3 && measured.round_trip >= WAY, "{measured:?}");
}

#[test]
fn what_waits_for_its_acknowledgement_counts_as_held() {
    let mut world = World::greeted(kinds::Kind::COAP);
    world.send(EDGE, head(1, false));
    assert_eq!(world.ends[EDGE].held_bytes(), 0, "it waits for nothing but its rest");
    world.send(EDGE, data(1, vec![1; 3000], true));
    assert!(world.ends[EDGE].held_bytes() > 3000);
    world.run(Duration::from_secs(3));
    assert_eq!(world.ends[EDGE].held_bytes(), 0);
    assert_eq!(world.received[EDGE], []);
}

/// An origin that answers what is whole.
fn answers(world: &mut World, seen: &mut usize) {
    while let Some(part) = world.received[GATEWAY].get(*seen).cloned() {
        *seen += 1;
        let ends = ends_of(&part);
        if let Some(exchange) = ends.filter(|one| world.ends[GATEWAY].is_open(*one)) {
            let bytes = vec![7; usize::try_from(exchange * 700).unwrap()];
            world.send(GATEWAY, head(exchange, false));
            world.send(GATEWAY, data(exchange, bytes, true));
        }
    }
}

fn ends_of(part: &Part) -> Option<u64> {
    match part {
        Part::Head(head) => head.end.then_some(head.exchange),
        Part::Data(data) => data.end.then_some(data.exchange),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever gets lost, comes late, twice or out of order: each request is there once, whole and
    /// in order, and so is each answer.
    #[test]
    fn each_exchange_is_delivered_once_over_a_lossy_link(
        seed: u64,
        lost in 0..20_u64,
        bodies in prop::collection::vec((0..4000_usize, 0..3000_u64), 1..10),
        given_up in prop::collection::btree_set(1..10_u64, 0..3),
    ) {
        let mut world = World::new(kinds::Kind::COAP, seed, lost);
        let mut seen = 0;
        while world.ends[EDGE].peer().is_none() && world.lost_at[EDGE].is_none() {
            prop_assert!(world.step(Duration::from_secs(200)));
        }
        prop_assume!(world.lost_at[EDGE].is_none());
        let places = world.ends[EDGE].peer().map_or(0, |peer| peer.max_exchanges);
        let until = world.now + Duration::from_secs(600);
        for (at, (bytes, pause)) in bodies.iter().enumerate() {
            let exchange = at as u64 + 1;
            while world.ends[EDGE].open_exchanges() as u64 >= places && world.step(until) {
                answers(&mut world, &mut seen);
            }
            world.send(EDGE, head(exchange, *bytes == 0));
            if *bytes > 0 {
                world.send(EDGE, data(exchange, vec![1; *bytes], true));
            }
            let until = world.now + Duration::from_millis(*pause);
            while world.step(until) {
                answers(&mut world, &mut seen);
            }
            world.now = until;
            if given_up.contains(&exchange) && world.ends[EDGE].is_open(exchange) {
                world.send(EDGE, abort(exchange));
            }
        }
        let until = world.now + Duration::from_secs(600);
        while world.step(until) {
            answers(&mut world, &mut seen);
        }
        prop_assert_eq!(&world.faults, &[None, None]);
        prop_assume!(world.lost_at == [None, None]);
        let heads = |end: usize| {
            let of = |part: &Part| match part {
                Part::Head(head) => Some(head.exchange),
                _ => None,
            };
            world.received[end].iter().filter_map(of).collect::<Vec<_>>()
        };
        for end in [EDGE, GATEWAY] {
            let came = heads(end);
            let once: BTreeSet<u64> = came.iter().copied().collect();
            prop_assert_eq!(once.len(), came.len(), "twice at {}", end);
            for exchange in (1..=bodies.len() as u64).filter(|one| !given_up.contains(one)) {
                prop_assert!(once.contains(&exchange), "{} at {}", exchange, end);
            }
            prop_assert_eq!(world.ends[end].open_exchanges(), 0);
        }
    }

    #[test]
    fn whatever_a_peer_sends_is_taken_or_a_fault(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..20),
        mids: u16,
    ) {
        let mut world = World::greeted(kinds::Kind::COAP);
        for (at, payload) in payloads.into_iter().enumerate() {
            let mut datagram = post(b"lw", &payload).to_vec();
            let mid = mids.wrapping_add(u16::try_from(at).unwrap());
            datagram[2..4].copy_from_slice(&mid.to_be_bytes());
            world.input(GATEWAY, Input::Datagram(datagram.into()));
        }
    }
}
