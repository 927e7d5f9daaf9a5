use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::Error;
use crate::carrier::{Input, Machine as _, Output, Piece, Setup};
use crate::exchange::{Abort, Data, Head, OutcomeState, Part, Role};
use crate::stream::{Frame, Hello};
use crate::urgency::Urgency;

const EDGE: usize = 0;
const GATEWAY: usize = 1;

fn setup(role: Role) -> Setup {
    Setup {
        role,
        instance: 7,
        initial_credit: 1 << 20,
        max_exchanges: 8,
        codecs: vec![0],
        max_window_log: 20,
        own_bytes_per_s: None,
    }
}

fn head(exchange: u64, end: bool) -> Part {
    let head = Bytes::from_static(b"head");
    Part::Head(Head { exchange, codec: 0, window_log: 0, end, head })
}

fn data(exchange: u64, bytes: &'static [u8], end: bool) -> Part {
    let bytes = Bytes::from_static(bytes);
    let block_end = Some(bytes.len() as u64);
    let (uncoded, anew, padding) = (false, false, None);
    Part::Data(Data { exchange, block_end, uncoded, anew, end, padding, bytes })
}

/// Both ends, and what is under way by stream.
struct World {
    ends: [Machine; 2],
    under_way: [BTreeMap<u64, VecDeque<(Bytes, bool)>>; 2],
    received: [Vec<Part>; 2],
    fault: [Option<Error>; 2],
    finished: [Vec<u64>; 2],
}

impl World {
    fn new() -> Self {
        let ends = [Role::Edge, Role::Gateway].map(|role| Machine::new(setup(role)));
        let mut world = Self {
            ends,
            under_way: Default::default(),
            received: Default::default(),
            fault: [None, None],
            finished: Default::default(),
        };
        [EDGE, GATEWAY].into_iter().for_each(|end| world.drain(end));
        world
    }

    fn greeted() -> Self {
        let mut world = Self::new();
        world.settle();
        assert!(world.ends.iter().all(|end| end.peer().is_some()));
        world
    }

    fn drain(&mut self, end: usize) {
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                Output::Stream(Piece { stream, fin, bytes, .. }) => {
                    if fin {
                        assert!(!self.finished[end].contains(&stream), "stream {stream} twice");
                        self.finished[end].push(stream);
                    }
                    self.under_way[end].entry(stream).or_default().push_back((bytes, fin));
                }
                Output::Received(part) => self.received[end].push(part),
                Output::Fault(error) => self.fault[end] = Some(error),
                Output::Greeted | Output::Answered(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle_input(Duration::ZERO, input);
        self.drain(end);
    }

    fn send(&mut self, end: usize, part: Part) {
        self.input(end, Input::Send(part, Urgency::DEFAULT));
    }

    /// The next bytes of a stream arrive.
    fn deliver(&mut self, from: usize, stream: u64) {
        let waits = self.under_way[from].get_mut(&stream);
        let Some((bytes, fin)) = waits.and_then(VecDeque::pop_front) else { return };
        self.input(1 - from, Input::Stream { stream, bytes, fin });
    }

    /// All that is under way arrives, the latest stream first.
    fn settle(&mut self) {
        loop {
            let waits = |from: usize| {
                let all = self.under_way[from].iter().rev();
                all.filter(|(_, queue)| !queue.is_empty()).map(|(stream, _)| *stream).next()
            };
            match (waits(EDGE), waits(GATEWAY)) {
                (Some(stream), _) => self.deliver(EDGE, stream),
                (None, Some(stream)) => self.deliver(GATEWAY, stream),
                (None, None) => return,
            }
        }
    }

    fn open_streams(&self, end: usize) -> usize {
        self.ends[end].open_streams()
    }
}

#[test]
fn an_exchange_has_a_stream_that_ends_with_it() {
    let mut world = World::greeted();
    world.send(EDGE, head(1, true));
    world.send(EDGE, head(2, true));
    assert_eq!(world.under_way[EDGE].keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    world.settle();
    assert_eq!(world.received[GATEWAY], [head(2, true), head(1, true)]);
    world.send(GATEWAY, head(1, false));
    world.send(GATEWAY, data(1, b"body", true));
    world.settle();
    assert_eq!(world.received[EDGE], [head(1, false), data(1, b"body", true)]);
    assert_eq!(world.finished, [vec![1], vec![1]]);
    assert_eq!((world.open_streams(EDGE), world.open_streams(GATEWAY)), (2, 2));
    assert_eq!(world.ends[EDGE].open_exchanges(), 1);
}

#[test]
fn what_comes_ahead_of_the_greeting_waits_for_it() {
    let mut world = World::new();
    world.send(EDGE, head(1, true));
    world.deliver(EDGE, 1);
    assert!(world.received[GATEWAY].is_empty() && world.fault[GATEWAY].is_none());
    world.deliver(EDGE, 0);
    assert_eq!(world.received[GATEWAY], [head(1, true)]);
}

#[test]
fn what_is_given_up_ends_its_stream_and_the_number_may_be_used_again() {
    let mut world = World::greeted();
    world.send(EDGE, Part::Query(4, 1));
    world.settle();
    world.send(GATEWAY, Part::Outcome(4, OutcomeState::NotSeen));
    world.settle();
    assert_eq!(world.finished, [vec![1], vec![1]]);
    world.send(EDGE, head(4, false));
    world.settle();
    let abort = Part::Abort(Abort { exchange: 4, code: 1, reason: "enough".to_owned() });
    world.send(EDGE, abort.clone());
    assert_eq!(world.finished[EDGE], [1], "the gateway ends it first");
    world.settle();
    assert_eq!(world.received[GATEWAY], [Part::Query(4, 1), head(4, false), abort]);
    assert_eq!(world.finished, [vec![1, 2], vec![1, 2]]);
    assert_eq!((world.open_streams(EDGE), world.open_streams(GATEWAY)), (1, 1));
}

#[test]
fn what_is_said_of_an_exchange_goes_ahead_of_it_on_its_stream() {
    use crate::control::Keeping;
    let mut world = World::greeted();
    let said = Keeping::Principal { exchange: 9, principal: 3 }.part();
    world.send(EDGE, said.clone());
    assert!(!world.under_way[EDGE].contains_key(&1));
    world.send(EDGE, head(9, true));
    world.settle();
    assert_eq!(world.received[GATEWAY], [said, head(9, true)]);
    // What no exchange follows has no stream, and does not wait for ever.
    for exchange in 100..1000 {
        world.send(EDGE, Keeping::Principal { exchange, principal: 3 }.part());
    }
    assert!(world.ends[EDGE].announced() <= 64);
    assert_eq!(world.open_streams(EDGE), 2);
}

#[test]
fn peers_that_break_the_rules_are_faulty() {
    let frame = |frame: Frame| {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        Bytes::from(bytes)
    };
    let hello = || frame(Frame::Hello(Hello::of(&setup(Role::Edge))));
    let stream = |stream, bytes, fin| Input::Stream { stream, bytes, fin };
    let cases: Vec<(&str, Vec<Input>)> = vec![
        ("no HELLO", vec![stream(0, frame(Frame::Ping(1)), false)]),
        ("HELLO twice", vec![stream(0, hello(), false), stream(0, hello(), false)]),
        ("HELLO elsewhere", vec![stream(0, hello(), false), stream(1, hello(), false)]),
        (
            "two exchanges on a stream",
            vec![
                stream(0, hello(), false),
                stream(1, frame(head(1, true).into()), false),
                stream(1, frame(head(2, true).into()), false),
            ],
        ),
        (
            "two streams of an exchange",
            vec![
                stream(0, hello(), false),
                stream(1, frame(head(1, false).into()), false),
                stream(2, frame(data(1, b"x", true).into()), false),
            ],
        ),
        (
            "no exchange's part on a stream",
            vec![stream(0, hello(), false), stream(1, frame(Frame::Part(Part::GoAway)), false)],
        ),
        (
            "half a frame",
            vec![stream(0, hello(), false), stream(1, Bytes::from_static(&[0x10]), true)],
        ),
        (
            "bytes behind the end",
            vec![
                stream(0, hello(), false),
                stream(1, frame(head(1, false).into()), true),
                stream(1, frame(data(1, b"x", true).into()), false),
            ],
        ),
    ];
    for (what, inputs) in cases {
        let mut world = World::new();
        inputs.into_iter().for_each(|input| world.input(GATEWAY, input));
        assert!(world.fault[GATEWAY].is_some(), "{what}");
    }
}

#[test]
fn a_peer_that_opens_streams_without_end_is_stopped() {
    let mut world = World::greeted();
    let most = 8 + MAX_AHEAD;
    for stream in 1..=most + 2 {
        world.input(GATEWAY, Input::Stream { stream, bytes: Bytes::new(), fin: false });
    }
    assert!(matches!(world.fault[GATEWAY], Some(Error::Limit { limit, .. }) if limit == most));
    let mut world = World::new();
    let junk = Bytes::from(vec![0x20; 1 << 20]);
    for stream in 1..=5 {
        let bytes = junk.clone();
        world.input(GATEWAY, Input::Stream { stream, bytes, fin: false });
    }
    assert!(matches!(world.fault[GATEWAY], Some(Error::Limit { .. })), "held without a HELLO");
}

proptest! {
    /// Whatever order the streams arrive in, each exchange's parts come in theirs, and nothing is
    /// left once all is over.
    #[test]
    fn streams_in_any_order_bring_each_exchange_in_its_own(
        picks in prop::collection::vec((0..2_usize, 0..12_u64, any::<bool>()), 0..300),
        reversed: bool,
    ) {
        let mut world = World::new();
        if reversed {
            world.send(EDGE, head(1, true));
            world.settle();
        } else {
            world.settle();
            world.send(EDGE, head(1, true));
        }
        for exchange in 2..6 {
            world.send(EDGE, head(exchange, false));
            world.send(EDGE, data(exchange, b"first", false));
            world.send(EDGE, data(exchange, b"second", true));
        }
        let mut answered = 0;
        for (from, stream, gives_up) in picks {
            world.deliver(from, stream);
            if gives_up && stream > 4 && world.ends[EDGE].is_open(5) {
                let (code, reason) = (1, String::new());
                world.send(EDGE, Part::Abort(Abort { exchange: 5, code, reason }));
            }
            while let Some(part) = world.received[GATEWAY].get(answered).cloned() {
                answered += 1;
                let ends = match &part {
                    Part::Head(head) => head.end,
                    Part::Data(data) => data.end,
                    _ => false,
                };
                if let Some(exchange) = part.exchange().filter(|one| {
                    ends && world.ends[GATEWAY].is_open(*one)
                }) {
                    world.send(GATEWAY, head(exchange, false));
                    world.send(GATEWAY, data(exchange, b"answer", true));
                }
            }
        }
        world.settle();
        prop_assert_eq!(&world.fault, &[None, None]);
        for exchange in 2..5 {
            let of = |part: &&Part| part.exchange() == Some(exchange);
            let came: Vec<_> = world.received[GATEWAY].iter().filter(of).cloned().collect();
            let body = [data(exchange, b"first", false), data(exchange, b"second", true)];
            let sent: Vec<_> = [head(exchange, false)].into_iter().chain(body).collect();
            prop_assert_eq!(came, sent);
        }
    }

    #[test]
    fn whatever_a_peer_sends_is_taken_or_a_fault(
        pieces in prop::collection::vec(
            (0..4_u64, prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..20),
        edge: bool,
    ) {
        let end = if edge { EDGE } else { GATEWAY };
        let mut world = World::greeted();
        for (stream, bytes, fin) in pieces {
            world.input(end, Input::Stream { stream, bytes: bytes.into(), fin });
        }
    }
}
