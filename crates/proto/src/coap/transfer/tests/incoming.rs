//! Bodies of peers' requests that are given out as they come.

#![allow(clippy::cast_possible_truncation)] // Bytes of bodies.

use super::*;
use crate::coap::machine::{EXCHANGE_LIFETIME, Flow, Of};
use crate::coap::{Kind, Token};

const LONG_BODY: usize = (8 << 20) + 5;
const ROOM_BYTES: usize = 8 << 10;

fn bytes_at(offset: usize, len: usize) -> Bytes {
    (offset..offset + len).map(|at| (at % 249) as u8 ^ (at >> 10) as u8).collect::<Vec<_>>().into()
}

/// Two machines and a link that loses, between an application that sends and one that takes.
struct Ends {
    ends: [Transfers<u8>; 2],
    now: Duration,
    chance: Chance,
    wake_at: [Option<Duration>; 2],
    on_the_way: BTreeMap<(Duration, u64), (usize, Bytes)>,
    count: u64,
    room: usize,
    given: usize,
    exchange: Option<u64>,
    came: usize,
    untaken: usize,
    is_whole: bool,
    most_held: [usize; 2],
    answer: Option<Output<u8>>,
}

impl Ends {
    fn new(seed: u64) -> Self {
        let server = Transfers::new(&settings(0, seed + 100)).taking_bodies();
        Self {
            ends: [Transfers::new(&settings(0, seed)), server],
            now: Duration::ZERO,
            chance: Chance::new([seed, 5]),
            wake_at: [None; 2],
            on_the_way: BTreeMap::new(),
            count: 0,
            room: 0,
            given: 0,
            exchange: None,
            came: 0,
            untaken: 0,
            is_whole: false,
            most_held: [0; 2],
            answer: None,
        }
    }

    fn input(&mut self, end: usize, input: Input<u8>) {
        self.ends[end].handle_input(self.now, input);
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                Output::Datagram { bytes, .. } => {
                    self.count += 1;
                    let least = Duration::from_millis(10);
                    let at = self.now + self.chance.between(least, least * 5);
                    if self.chance.next(For::Factor) % 1000 >= 20 {
                        self.on_the_way.insert((at, self.count), (1 - end, bytes));
                    }
                }
                Output::WakeAt(at) => self.wake_at[end] = Some(at),
                Output::Flow(Flow::Room { of: Of::Request(_), bytes }) => self.room += bytes,
                Output::Opened { exchange, content, .. } => {
                    assert_eq!((self.exchange, content.first(option::BLOCK1)), (None, None));
                    self.exchange = Some(exchange);
                    self.part(&content.payload, false);
                    assert!((MAX_WHOLE_BYTES..MAX_WHOLE_BYTES + 2048).contains(&self.came));
                }
                Output::Flow(Flow::Part { of: Of::Exchange(_), bytes, is_last }) => {
                    self.part(&bytes, is_last);
                }
                output @ Output::Response { .. } => self.answer = Some(output),
                other => panic!("{other:?}"),
            }
        }
        self.most_held[end] = self.most_held[end].max(self.ends[end].held_bytes());
    }

    fn part(&mut self, bytes: &Bytes, is_last: bool) {
        assert_eq!(*bytes, bytes_at(self.came, bytes.len()));
        self.came += bytes.len();
        self.untaken += bytes.len();
        // The first part is what there was before anybody was asked.
        assert!(self.untaken <= MAX_WHOLE_BYTES + ROOM_BYTES + 2048);
        self.is_whole |= is_last;
    }

    fn act(&mut self, total: usize) {
        let most = usize::try_from(self.chance.next(For::Factor) % 4000).unwrap();
        let len = most.min(self.room).min(total - self.given);
        if len > 0 {
            let (of, bytes) = (Of::Request(1), bytes_at(self.given, len));
            (self.given, self.room) = (self.given + len, self.room - len);
            let is_last = self.given == total;
            self.input(0, Input::Flow(Flow::Part { of, bytes, is_last }));
        }
        let Some(exchange) = self.exchange else { return };
        if self.is_whole {
            let content = Content::new(Code::CHANGED).with_payload("all");
            self.input(1, Input::Respond { exchange, content });
            self.exchange = None;
        } else if self.untaken > 0 {
            let bytes = std::mem::take(&mut self.untaken).min(ROOM_BYTES);
            self.input(1, Input::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }));
        }
    }

    fn run(&mut self, total: usize) {
        let (request, peer, content) = (1, SERVER, post(0));
        let (is_confirmable, has_more, room_bytes) = (true, true, ROOM_BYTES);
        let open = Input::Open { request, peer, content, is_confirmable, has_more, room_bytes };
        self.input(0, open);
        while self.answer.is_none() {
            assert!(self.count < 200_000, "it ends");
            let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
            let next = [arrival, self.wake_at[0], self.wake_at[1]].into_iter().flatten().min();
            // Applications do something now and then, however long machines wait.
            let far = self.now + Duration::from_millis(100);
            let Some(at) = next.filter(|at| *at <= far) else {
                self.now = far;
                self.act(total);
                continue;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, (end, bytes)) = self.on_the_way.pop_first().unwrap();
                let peer = if end == 0 { SERVER } else { CLIENT };
                self.input(end, Input::Datagram { peer, bytes, is_group: false });
            } else {
                let end = usize::from(self.wake_at[0] != Some(at));
                self.wake_at[end] = None;
                self.input(end, Input::Wake);
            }
            if self.chance.next(For::Factor).is_multiple_of(3) {
                self.act(total);
            }
        }
    }
}

#[test]
fn a_long_request_passes_two_machines_in_bounded_memory() {
    for seed in 0..3 {
        let mut ends = Ends::new(seed);
        ends.run(LONG_BODY);
        assert!(ends.is_whole && ends.came == LONG_BODY, "seed {seed}: {:?}", ends.answer);
        let Some(Output::Response { content, .. }) = &ends.answer else { panic!("no answer") };
        assert_eq!((content.code, &content.payload[..]), (Code::CHANGED, &b"all"[..]));
        assert!(ends.most_held[0] <= 3 * 1024, "{:?}", ends.most_held);
        assert!(ends.most_held[1] <= MAX_WHOLE_BYTES + 2048, "{:?}", ends.most_held);
        assert_eq!(ends.ends[1].held_bytes(), 0);
    }
}

/// A server that gives bodies out, with a client by hand.
struct ByHand {
    server: Transfers<u8>,
    now: Duration,
    mid: u16,
}

impl ByHand {
    fn new() -> Self {
        let server = Transfers::new(&settings(0, 3)).taking_bodies();
        Self { server, now: Duration::ZERO, mid: 0 }
    }

    fn input(&mut self, input: Input<u8>) -> Vec<Output<u8>> {
        self.server.handle_input(self.now, input);
        let outputs = std::iter::from_fn(|| self.server.poll_output());
        outputs.filter(|it| !matches!(it, Output::WakeAt(_))).collect()
    }

    /// Sends a block; Size1 says what is not so.
    fn send(&mut self, num: u32, more: bool) -> Vec<Output<u8>> {
        self.mid += 1;
        let value = Block { num, more, szx: 6 }.encode().unwrap();
        let len = if more { 1024 } else { 100 };
        let content = post(0).with(option::BLOCK1, value.as_slice());
        let content = content.with_uint(option::SIZE1, u32::MAX);
        let content = content.with_payload(bytes_at(num as usize * 1024, len));
        let bytes = content.encode(Kind::Confirmable, self.mid, Token::EMPTY).unwrap();
        self.input(Input::Datagram { peer: CLIENT, bytes, is_group: false })
    }

    /// Sends blocks until the body is given out, which the block after these would wait for.
    fn open(&mut self) -> u64 {
        for num in 0..64 {
            assert_eq!(codes(&self.send(num, true)), [Code::CONTINUE], "{num}");
        }
        let said = self.send(64, true);
        let [Output::Opened { exchange, content, .. }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(content.payload, bytes_at(0, 65 << 10));
        assert_eq!(content.first(option::SIZE1), None);
        *exchange
    }

    fn grow(&mut self, exchange: u64, bytes: usize) -> Vec<Output<u8>> {
        self.input(Input::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }))
    }

    fn respond(&mut self, exchange: u64) -> Vec<Output<u8>> {
        self.input(Input::Respond { exchange, content: Content::new(Code::CHANGED) })
    }
}

/// The codes of messages among these.
fn codes(outputs: &[Output<u8>]) -> Vec<Code> {
    let code = |output: &Output<u8>| match output {
        Output::Datagram { bytes, .. } => Some(Code(bytes[1])),
        _ => None,
    };
    outputs.iter().filter_map(code).collect()
}

fn part(exchange: u64, num: u32, is_last: bool) -> Output<u8> {
    let len = if is_last { 100 } else { 1024 };
    let (of, bytes) = (Of::Exchange(exchange), bytes_at(num as usize * 1024, len));
    Output::Flow(Flow::Part { of, bytes, is_last })
}

/// RFC 7959 §2.5: the next block is asked for when there is room, and only that is taken.
#[test]
fn a_block_is_asked_for_when_the_last_has_been_taken() {
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    assert_eq!(codes(&by_hand.grow(exchange, 1)), [Code::CONTINUE]);
    // It comes again in another message, as it was not heard.
    assert_eq!(codes(&by_hand.send(64, true)), [Code::CONTINUE]);
    assert_eq!(codes(&by_hand.send(66, true)), [Code::REQUEST_ENTITY_INCOMPLETE]);
    assert_eq!(by_hand.send(65, true), [part(exchange, 65, false)]);
    // And again while it waits: the one before is acknowledged, the newest is answered.
    assert_eq!(codes(&by_hand.send(65, true)), [Code::EMPTY]);
    assert_eq!(codes(&by_hand.grow(exchange, 10_000)), [Code::CONTINUE]);
    let said = by_hand.send(66, true);
    assert_eq!((said[0].clone(), codes(&said)), (part(exchange, 66, false), vec![Code::CONTINUE]));
    assert_eq!(by_hand.send(67, false), [part(exchange, 67, true)]);
    assert_eq!(codes(&by_hand.respond(exchange)), [Code::CHANGED]);
}

/// RFC 7959 §2.9.3: a server may answer before the end.
#[test]
fn an_answer_may_come_before_the_end() {
    let refuse = |by_hand: &mut ByHand, exchange| {
        let content = Content::new(Code::FORBIDDEN);
        by_hand.input(Input::Respond { exchange, content })
    };
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    assert_eq!(codes(&refuse(&mut by_hand, exchange)), [Code::FORBIDDEN]);
    // Between two blocks there is no message that it could answer.
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    by_hand.grow(exchange, 1);
    assert_eq!(refuse(&mut by_hand, exchange), []);
    assert_eq!(codes(&by_hand.send(65, true)), [Code::FORBIDDEN]);
    // A success has to wait for the end; nobody takes what comes before it.
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    assert_eq!(codes(&by_hand.respond(exchange)), [Code::CONTINUE]);
    for num in 65..200 {
        let said = by_hand.send(num, true);
        assert_eq!((codes(&said), said.len()), (vec![Code::CONTINUE], 1));
    }
    assert_eq!(codes(&by_hand.send(200, false)), [Code::CHANGED]);
}

/// And its answer may be a body that goes on.
#[test]
fn an_answer_to_it_may_go_on_too() {
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    by_hand.grow(exchange, 10_000);
    by_hand.send(65, false);
    let content = Content::new(Code::CHANGED).with_payload(bytes_at(0, 2000));
    let said = by_hand.input(Input::Begin { exchange, content });
    assert_eq!(codes(&said), [Code::CHANGED]);
    let room = |it: &Output<u8>| match it {
        Output::Flow(Flow::Room { of, bytes }) => Some((*of, *bytes > 0)),
        _ => None,
    };
    let rooms: Vec<_> = said.iter().filter_map(room).collect();
    assert_eq!(rooms, [(Of::Exchange(exchange), true)]);
}

#[test]
fn what_does_not_go_on_or_begins_anew_is_broken() {
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    let broken = Output::Flow(Flow::Broken { of: Of::Exchange(exchange) });
    let said = by_hand.send(0, true);
    assert!(said.contains(&broken), "{said:?}");
    assert!(codes(&said).contains(&Code::CONTINUE));
    // What it had to say is said to nobody.
    assert_eq!(by_hand.respond(exchange), []);
    // What has come whole is whole, whatever its peer begins.
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    by_hand.grow(exchange, 10_000);
    assert_eq!(by_hand.send(65, false), [part(exchange, 65, true)]);
    let said = by_hand.send(0, true);
    assert!(!said.iter().any(|it| matches!(it, Output::Flow(_))), "{said:?}");
    let mut by_hand = ByHand::new();
    let exchange = by_hand.open();
    by_hand.grow(exchange, 1);
    by_hand.now += EXCHANGE_LIFETIME + Duration::from_secs(1);
    let broken = Output::Flow(Flow::Broken { of: Of::Exchange(exchange) });
    assert_eq!(by_hand.input(Input::Wake), [broken]);
    assert_eq!(by_hand.server.held_bytes(), 0);
}
