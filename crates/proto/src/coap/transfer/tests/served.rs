//! Answers to peers that are never here as a whole: two machines, and peers by hand.

#![allow(clippy::cast_possible_truncation)] // Bytes of bodies.

use super::*;
use crate::coap::Kind;
use crate::coap::machine::{EXCHANGE_LIFETIME, Flow, Of};

const ROOM_BYTES: usize = 8 << 10;
const LONG_BODY: usize = (8 << 20) + 77;
/// What a server has of one body at most: all of one that may end within its bound, and what is
/// read ahead.
const MAX_HELD_BYTES: usize = MAX_BODY_BYTES + (64 << 10);

fn bytes_at(offset: usize, len: usize) -> Bytes {
    (offset..offset + len).map(|at| (at % 253) as u8 ^ (at >> 10) as u8).collect::<Vec<_>>().into()
}

/// Two machines and a link that loses; both applications give and take a little now and then.
struct Ends {
    ends: [Transfers<u8>; 2],
    now: Duration,
    chance: Chance,
    wake_at: [Option<Duration>; 2],
    on_the_way: BTreeMap<(Duration, u64), (usize, Bytes)>,
    count: u64,
    total: usize,
    /// Of the answer: its number, what there is room for, what was given.
    exchange: Option<u64>,
    room: usize,
    given: usize,
    came: usize,
    untaken: usize,
    most_held: [usize; 2],
    is_over: bool,
}

impl Ends {
    fn new(seed: u64, total: usize) -> Self {
        Self {
            ends: [Transfers::new(&settings(0, seed)), Transfers::new(&settings(0, seed + 100))],
            now: Duration::ZERO,
            chance: Chance::new([seed, 5]),
            wake_at: [None; 2],
            on_the_way: BTreeMap::new(),
            count: 0,
            total,
            exchange: None,
            room: 0,
            given: 0,
            came: 0,
            untaken: 0,
            most_held: [0; 2],
            is_over: false,
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
                Output::Request { exchange, .. } => {
                    assert_eq!(self.exchange, None, "it is asked for once");
                    self.exchange = Some(exchange);
                }
                Output::Flow(Flow::Room { of: Of::Exchange(_), bytes }) => self.room += bytes,
                Output::Response { content, is_last, .. } => self.part(&content.payload, is_last),
                Output::Flow(Flow::Part { bytes, is_last, .. }) => self.part(&bytes, is_last),
                other => panic!("{other:?}"),
            }
        }
        self.most_held[end] = self.most_held[end].max(self.ends[end].held_bytes());
    }

    fn part(&mut self, bytes: &Bytes, is_last: bool) {
        assert_eq!(*bytes, bytes_at(self.came, bytes.len()));
        self.came += bytes.len();
        self.untaken += bytes.len();
        assert!(self.untaken < ROOM_BYTES + 1024);
        self.is_over = is_last;
    }

    /// What the applications do.
    fn act(&mut self) {
        if let Some(exchange) = self.exchange {
            let most = 1 + usize::try_from(self.chance.next(For::Factor) % 3000).unwrap();
            if self.given == 0 {
                let content = Content::new(Code::CONTENT).with_payload(bytes_at(0, most));
                self.given = most;
                self.input(1, Input::Begin { exchange, content });
            } else if self.room > 0 && self.given <= self.total {
                let len = most.min(self.room).min(self.total - self.given);
                let (of, bytes) = (Of::Exchange(exchange), bytes_at(self.given, len));
                let is_last = self.given + len == self.total;
                (self.given, self.room) =
                    (self.given + len + usize::from(is_last), self.room - len);
                self.input(1, Input::Flow(Flow::Part { of, bytes, is_last }));
            }
        }
        let bytes = std::mem::take(&mut self.untaken);
        if bytes > 0 && !self.is_over {
            self.input(0, Input::Flow(Flow::Room { of: Of::Request(1), bytes }));
        }
    }

    fn run(&mut self) {
        let content = get();
        self.input(
            0,
            Input::Open {
                request: 1,
                peer: SERVER,
                content,
                is_confirmable: true,
                has_more: false,
                room_bytes: ROOM_BYTES,
            },
        );
        while !self.is_over {
            assert!(self.count < 200_000, "it ends");
            let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
            let next = [arrival, self.wake_at[0], self.wake_at[1]].into_iter().flatten().min();
            // Applications do something now and then, however long machines wait.
            let far = self.now + Duration::from_millis(100);
            let Some(at) = next.filter(|at| *at <= far) else {
                self.now = far;
                self.act();
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
                self.act();
            }
        }
    }
}

/// Whatever is lost, and however slowly either side goes, a long body arrives once and in order,
/// and neither machine has more of it than its bound.
#[test]
fn a_long_body_passes_two_machines_in_bounded_memory() {
    for seed in 0..3 {
        let mut ends = Ends::new(seed, LONG_BODY);
        ends.run();
        assert_eq!(ends.came, LONG_BODY, "seed {seed}");
        assert!(ends.most_held[0] < ROOM_BYTES + 1024, "{:?}", ends.most_held);
        let most = ends.most_held[1];
        assert!(most <= MAX_HELD_BYTES, "seed {seed}: {most} bytes are held");
        // Of a long one no more than a window is left.
        assert!(ends.ends[1].held_bytes() <= 128 << 10);
    }
}

#[test]
fn a_short_body_that_comes_in_parts_is_a_body_as_any() {
    for (seed, total) in (0_u64..).zip([3100, 10_000, 100_000]) {
        let mut ends = Ends::new(seed, total);
        ends.run();
        assert_eq!(ends.came, total);
        assert!(ends.ends[1].held_bytes() >= total, "all of it is kept");
    }
}

/// A server, asked by hand.
struct ByHand {
    server: Transfers<u8>,
    now: Duration,
    mid: u16,
}

impl ByHand {
    fn new() -> Self {
        Self { server: Transfers::new(&settings(0, 3)), now: Duration::ZERO, mid: 0 }
    }

    fn input(&mut self, input: Input<u8>) -> Vec<Output<u8>> {
        self.server.handle_input(self.now, input);
        let outputs = std::iter::from_fn(|| self.server.poll_output());
        outputs.filter(|it| !matches!(it, Output::WakeAt(_))).collect()
    }

    fn ask(&mut self, num: u32) -> Vec<Output<u8>> {
        self.mid += 1;
        let value = Block { num, more: false, szx: 6 }.encode().unwrap();
        let content = get().with(option::BLOCK2, value.as_slice());
        let token = crate::coap::Token::new(&self.mid.to_be_bytes()).unwrap();
        let bytes = content.encode(Kind::Confirmable, self.mid, token).unwrap();
        self.input(Input::Datagram { peer: CLIENT, bytes, is_group: false })
    }

    /// Asks for a block that the application is asked for, and begins its answer.
    fn begin(&mut self, num: u32, payload: Bytes) -> (u64, Vec<Output<u8>>) {
        let asked = self.ask(num);
        let [Output::Request { exchange, .. }] = asked[..] else { panic!("{asked:?}") };
        let content = Content::new(Code::CONTENT).with_payload(payload);
        (exchange, self.input(Input::Begin { exchange, content }))
    }

    fn give(&mut self, exchange: u64, bytes: Bytes, is_last: bool) -> Vec<Output<u8>> {
        self.input(Input::Flow(Flow::Part { of: Of::Exchange(exchange), bytes, is_last }))
    }

    /// As much as there is room for, until `total` bytes were given.
    fn feed(&mut self, exchange: u64, said: &[Output<u8>], given: &mut usize, total: usize) {
        let mut room = room(said);
        while room > 0 && *given < total {
            let len = room.min(total - *given);
            let bytes = bytes_at(*given, len);
            *given += len;
            room = room + self::room(&self.give(exchange, bytes, *given == total)) - len;
        }
    }
}

fn room(outputs: &[Output<u8>]) -> usize {
    let of = |output: &Output<u8>| match output {
        Output::Flow(Flow::Room { bytes, .. }) => *bytes,
        _ => 0,
    };
    outputs.iter().map(of).sum()
}

/// The answers among these: code, block, payload.
fn answers(outputs: &[Output<u8>]) -> Vec<(Code, Option<Block>, Bytes)> {
    let read = |output: &Output<u8>| match output {
        Output::Datagram { bytes, .. } => {
            let datagram = Datagram::decode(bytes).unwrap();
            let content = Content::try_from(&datagram).unwrap();
            let block = content.first(option::BLOCK2);
            let block = block.map(|value| Block::decode(value, false).unwrap());
            Some((content.code, block, content.payload.clone()))
        }
        _ => None,
    };
    outputs.iter().filter_map(read).collect()
}

fn block(num: u32, more: bool) -> Option<Block> {
    Some(Block { num, more, szx: 6 })
}

/// RFC 7959 §2.4: who keeps nothing may ask for any block of a body within the bound, and of a
/// longer one for those that are near what it asked for last.
#[test]
fn blocks_may_be_asked_for_out_of_order() {
    let mut by_hand = ByHand::new();
    let (exchange, said) = by_hand.begin(3, bytes_at(0, 100));
    assert_eq!(answers(&said), []);
    let mut given = 100;
    by_hand.feed(exchange, &said, &mut given, 20_000);
    let ask = |by_hand: &mut ByHand, num| {
        let said = by_hand.ask(num);
        assert!(!said.iter().any(|it| matches!(it, Output::Request { .. })), "{num}");
        answers(&said)
    };
    assert_eq!(given, 20_000);
    for num in [7, 3, 19, 1, 7] {
        let (offset, len) = (num as usize * 1024, 1024.min(20_000 - num as usize * 1024));
        let expected = (Code::CONTENT, block(num, num < 19), bytes_at(offset, len));
        assert_eq!(ask(&mut by_hand, num), [expected]);
    }
    assert_eq!(ask(&mut by_hand, 20), [(Code::BAD_REQUEST, None, Bytes::new())]);
    // It is forgotten in the end.
    by_hand.now += EXCHANGE_LIFETIME + Duration::from_secs(1);
    by_hand.input(Input::Wake);
    assert_eq!(by_hand.server.held_bytes(), 0);
}

#[test]
fn of_a_long_body_what_lies_behind_is_gone() {
    let mut by_hand = ByHand::new();
    let total = 3 << 20;
    let (exchange, said) = by_hand.begin(0, bytes_at(0, 5000));
    let mut given = 5000;
    by_hand.feed(exchange, &said, &mut given, total);
    for num in 1..2500 {
        let said = by_hand.ask(num);
        by_hand.feed(exchange, &said, &mut given, total);
    }
    // Again, and a little behind.
    for num in [2499, 2450] {
        let said = answers(&by_hand.ask(num));
        assert_eq!(said, [(Code::CONTENT, block(num, true), bytes_at(num as usize * 1024, 1024))]);
    }
    // Farther behind the application is asked anew, and who reads this one goes on.
    let asked = by_hand.ask(0);
    let [Output::Request { exchange: again, .. }] = asked[..] else { panic!("{asked:?}") };
    let content = Content::new(Code::CONTENT).with_payload(bytes_at(0, 5000));
    let said = by_hand.input(Input::Begin { exchange: again, content });
    assert!(!said.iter().any(|it| matches!(it, Output::Flow(Flow::Broken { .. }))), "{said:?}");
    assert_eq!(answers(&said), [(Code::CONTENT, block(0, true), bytes_at(0, 1024))]);
    let said = answers(&by_hand.ask(2500));
    assert_eq!(said, [(Code::CONTENT, block(2500, true), bytes_at(2500 * 1024, 1024))]);
    // And what lies far ahead of all that is here is refused: who wants it goes on to it.
    by_hand.now += EXCHANGE_LIFETIME * 2;
    by_hand.input(Input::Wake);
    let (far, said) = by_hand.begin(2000, bytes_at(0, 5000));
    let broken = Flow::Broken { of: Of::Exchange(far) };
    assert!(said.contains(&Output::Flow(broken)), "{said:?}");
    assert_eq!(answers(&said), [(Code::REQUEST_ENTITY_INCOMPLETE, None, Bytes::new())]);
}

/// What nobody asks for any more, and what its application cannot end.
#[test]
fn a_body_ends_where_one_side_has_no_more_of_it() {
    let mut by_hand = ByHand::new();
    let (exchange, _) = by_hand.begin(0, bytes_at(0, 5000));
    by_hand.now += EXCHANGE_LIFETIME + Duration::from_secs(1);
    let said = by_hand.input(Input::Wake);
    assert_eq!(said, [Output::Flow(Flow::Broken { of: Of::Exchange(exchange) })]);
    // The application may not have heard of it yet.
    assert_eq!(by_hand.give(exchange, bytes_at(5000, 10), false), []);

    let (exchange, _) = by_hand.begin(0, bytes_at(0, 1500));
    let said = by_hand.ask(1);
    assert_eq!(answers(&said), []);
    let said = by_hand.input(Input::Flow(Flow::Broken { of: Of::Exchange(exchange) }));
    let refused = [(Code::INTERNAL_SERVER_ERROR, None, Bytes::new())];
    assert_eq!(answers(&said), refused);
    assert_eq!(answers(&by_hand.ask(1)), refused);
    // It gives more than it was asked for.
    let (exchange, said) = by_hand.begin(0, bytes_at(0, 1500));
    let said = by_hand.give(exchange, bytes_at(1500, room(&said) + 1), false);
    assert_eq!(said, [Output::Flow(Flow::Broken { of: Of::Exchange(exchange) })]);
}

/// One peer, however many bodies it begins, has its share.
#[test]
fn bodies_have_their_bounds() {
    let mut by_hand = ByHand::new();
    let mut broken = Vec::new();
    for number in 0..40_u8 {
        by_hand.mid += 1;
        let content = Content::new(Code::GET).with(option::URI_PATH, &[number]);
        let token = crate::coap::Token::EMPTY;
        let bytes = content.encode(Kind::Confirmable, by_hand.mid, token).unwrap();
        let asked = by_hand.input(Input::Datagram { peer: CLIENT, bytes, is_group: false });
        let [Output::Request { exchange, .. }] = asked[..] else { panic!("{asked:?}") };
        let content = Content::new(Code::CONTENT).with_payload(bytes_at(0, 5000));
        let said = by_hand.input(Input::Begin { exchange, content });
        if said.contains(&Output::Flow(Flow::Broken { of: Of::Exchange(exchange) })) {
            broken.push(number);
        }
    }
    // Those that are under way go on.
    let share = u8::try_from(MAX_FLOWING_PER_PEER).unwrap();
    assert_eq!(broken, (share..40).collect::<Vec<_>>());
    assert!(by_hand.server.held_bytes() <= MAX_FLOWING_PER_PEER * 6000);
}
