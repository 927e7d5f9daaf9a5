//! Answers that are fetched side by side: by calls of one socket, and by many peers.

#![allow(clippy::cast_possible_truncation)] // Bytes of bodies.

use std::collections::VecDeque;

use super::*;
use crate::coap::machine::{EXCHANGE_LIFETIME, Flow, Of};
use crate::coap::{Kind, Token};

const BODY_BYTES: usize = 200 << 10;
/// Whoever asks for nothing for so long may be gone.
const IDLE: Duration = Duration::from_secs(94);

/// The bytes of the body with this number.
fn bytes_of(which: u8, offset: usize, len: usize) -> Bytes {
    let byte = |at: usize| which.wrapping_mul(17) ^ (at % 253) as u8 ^ (at >> 10) as u8;
    (offset..offset + len).map(byte).collect::<Vec<_>>().into()
}

/// Two machines without loss; the server's application gives each request another body.
struct Both {
    client: Transfers<u8>,
    server: Transfers<u8>,
    now: Duration,
    on_the_way: VecDeque<(bool, Bytes)>,
    /// Of each exchange, what was given.
    given: BTreeMap<u64, usize>,
    /// Of each request, what came; and how it ended.
    came: BTreeMap<u64, Vec<u8>>,
    ended: BTreeMap<u64, Option<Reason>>,
}

impl Both {
    fn new() -> Self {
        Self {
            client: Transfers::new(&settings(0, 1)),
            server: Transfers::new(&settings(0, 2)),
            now: Duration::ZERO,
            on_the_way: VecDeque::new(),
            given: BTreeMap::new(),
            came: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn client(&mut self, input: Input<u8>) {
        self.client.handle_input(self.now, input);
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => self.on_the_way.push_back((true, bytes)),
                Output::Response { request, content, is_last } => {
                    self.part(request, &content.payload, is_last);
                }
                Output::Flow(Flow::Part { of: Of::Request(request), bytes, is_last }) => {
                    self.part(request, &bytes, is_last);
                }
                Output::Failed { request, reason } => {
                    self.ended.insert(request, Some(reason));
                }
                Output::WakeAt(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn part(&mut self, request: u64, bytes: &[u8], is_last: bool) {
        self.came.entry(request).or_default().extend_from_slice(bytes);
        if is_last {
            self.ended.insert(request, None);
            return;
        }
        let room = Flow::Room { of: Of::Request(request), bytes: bytes.len() };
        self.client(Input::Flow(room));
    }

    fn server(&mut self, input: Input<u8>) {
        self.server.handle_input(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| self.server.poll_output()).collect();
        for output in outputs {
            match output {
                Output::Datagram { bytes, .. } => self.on_the_way.push_back((false, bytes)),
                Output::Request { exchange, .. } => {
                    self.given.insert(exchange, 5000);
                    let content = Content::new(Code::CONTENT);
                    let content = content.with_payload(bytes_of(exchange as u8, 0, 5000));
                    self.server(Input::Begin { exchange, content });
                }
                Output::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }) => {
                    let offset = self.given[&exchange];
                    let bytes = bytes_of(exchange as u8, offset, bytes.min(BODY_BYTES - offset));
                    let end = offset + bytes.len();
                    self.given.insert(exchange, end);
                    let (of, is_last) = (Of::Exchange(exchange), end == BODY_BYTES);
                    self.server(Input::Flow(Flow::Part { of, bytes, is_last }));
                }
                Output::WakeAt(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn open(&mut self, request: u64) {
        let (peer, is_confirmable, has_more) = (SERVER, true, false);
        let (content, room_bytes) = (get(), 4 << 10);
        let open = Input::Open { request, peer, content, is_confirmable, has_more, room_bytes };
        self.client(open);
    }

    /// The next datagram arrives; whether there was one.
    fn step(&mut self) -> bool {
        self.now += Duration::from_millis(1);
        let Some((is_to_server, bytes)) = self.on_the_way.pop_front() else { return false };
        let peer = if is_to_server { CLIENT } else { SERVER };
        let input = Input::Datagram { peer, bytes, is_group: false };
        match is_to_server {
            true => self.server(input),
            false => self.client(input),
        }
        true
    }
}

/// RFC 9175 §3.5.2: a proxy asks for one resource while another fetches it over the same socket.
#[test]
fn two_calls_for_one_resource_each_get_a_body_of_their_own() {
    let mut both = Both::new();
    both.open(1);
    while both.came.is_empty() {
        both.step();
    }
    both.open(2);
    both.open(3);
    while both.step() {}
    assert_eq!(both.ended, [(1, None), (2, None), (3, None)].into());
    let all = both.given.keys().map(|exchange| bytes_of(*exchange as u8, 0, BODY_BYTES));
    let bodies: BTreeSet<_> = all.collect();
    assert_eq!(bodies.len(), 3);
    let came: BTreeSet<_> = both.came.into_values().map(Bytes::from).collect();
    assert!(came == bodies, "each has come once, as it was");
}

/// A server, asked by hand.
struct ByHand {
    server: Transfers<u8>,
    now: Duration,
    mid: u16,
    given: BTreeMap<u64, usize>,
}

impl ByHand {
    fn new() -> Self {
        let server = Transfers::new(&settings(0, 3));
        Self { server, now: Duration::ZERO, mid: 0, given: BTreeMap::new() }
    }

    fn input(&mut self, input: Input<u8>) -> Vec<Output<u8>> {
        self.server.handle_input(self.now, input);
        let outputs = std::iter::from_fn(|| self.server.poll_output());
        outputs.filter(|it| !matches!(it, Output::WakeAt(_))).collect()
    }

    fn hear(&mut self, peer: u8, content: &Content) -> Vec<Output<u8>> {
        self.mid += 1;
        let token = Token::new(&self.mid.to_be_bytes()).unwrap();
        let bytes = content.encode(Kind::Confirmable, self.mid, token).unwrap();
        self.input(Input::Datagram { peer, bytes, is_group: false })
    }

    fn ask(&mut self, (peer, path): (u8, u8), num: u32) -> Vec<Output<u8>> {
        let value = Block { num, more: false, szx: 6 }.encode().unwrap();
        let content = Content::new(Code::GET).with(option::URI_PATH, &[path]);
        self.hear(peer, &content.with(option::BLOCK2, value.as_slice()))
    }

    /// The number of a request that the application is asked for.
    fn asked(&mut self, of: (u8, u8), num: u32) -> u64 {
        let asked = self.ask(of, num);
        let [Output::Request { exchange, .. }] = asked[..] else { panic!("{asked:?}") };
        exchange
    }

    /// Begins an answer, and gives of it what there is room for.
    fn begin(&mut self, of: (u8, u8), num: u32) -> (u64, Vec<Output<u8>>) {
        let exchange = self.asked(of, num);
        self.given.insert(exchange, 3000);
        let content = Content::new(Code::CONTENT);
        let content = content.with_payload(bytes_of(exchange as u8, 0, 3000));
        let mut said = self.input(Input::Begin { exchange, content });
        self.feed(&mut said);
        (exchange, said)
    }

    /// Gives what these say that there is room for, and what is said then.
    fn feed(&mut self, said: &mut Vec<Output<u8>>) {
        while let Some((exchange, room)) = said.iter().find_map(|output| match output {
            Output::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }) => {
                Some((*exchange, *bytes))
            }
            _ => None,
        }) {
            said.retain(|output| !matches!(output, Output::Flow(Flow::Room { .. })));
            let offset = self.given[&exchange];
            self.given.insert(exchange, offset + room);
            let bytes = bytes_of(exchange as u8, offset, room);
            let (of, is_last) = (Of::Exchange(exchange), false);
            said.extend(self.input(Input::Flow(Flow::Part { of, bytes, is_last })));
        }
    }

    fn respond(&mut self, exchange: u64, content: Content) -> Vec<Output<u8>> {
        self.input(Input::Respond { exchange, content })
    }

    /// The payload of a block that is answered from what is here.
    fn block(&mut self, of: (u8, u8), num: u32) -> Bytes {
        let mut said = self.ask(of, num);
        self.feed(&mut said);
        let [(Code::CONTENT, payload)] = &answers(&said)[..] else { panic!("{num}: {said:?}") };
        payload.clone()
    }
}

fn answers(outputs: &[Output<u8>]) -> Vec<(Code, Bytes)> {
    let read = |output: &Output<u8>| match output {
        Output::Datagram { bytes, .. } => {
            let content = Content::try_from(&Datagram::decode(bytes).unwrap()).unwrap();
            Some((content.code, content.payload.clone()))
        }
        _ => None,
    };
    outputs.iter().filter_map(read).collect()
}

fn broken(outputs: &[Output<u8>]) -> usize {
    outputs.iter().filter(|it| matches!(it, Output::Flow(Flow::Broken { .. }))).count()
}

fn block_of(which: u64, num: u32) -> Bytes {
    bytes_of(which as u8, num as usize * 1024, 1024)
}

const X: (u8, u8) = (CLIENT, b'x');

/// Others that ask so over one socket are told apart by how far they have come.
#[test]
fn an_answer_does_not_end_another_that_is_being_fetched() {
    let mut by_hand = ByHand::new();
    let (first, _) = by_hand.begin(X, 0);
    (1..=10).for_each(|num| assert_eq!(by_hand.block(X, num), block_of(first, num)));
    let (second, said) = by_hand.begin(X, 0);
    assert_eq!(broken(&said), 0);
    assert_eq!(by_hand.block(X, 11), block_of(first, 11));
    assert_eq!(by_hand.block(X, 1), block_of(second, 1));
    for content in [
        Content::new(Code::SERVICE_UNAVAILABLE),
        Content::new(Code::CONTENT).with_payload("short"),
        Content::new(Code::CONTENT).with_payload(bytes_of(99, 0, 5000)),
    ] {
        let exchange = by_hand.asked(X, 0);
        assert_eq!(broken(&by_hand.respond(exchange, content)), 0);
    }
    // The newest of what has come as far; and the others are where they were.
    assert_eq!(by_hand.block(X, 1), block_of(99, 1));
    assert_eq!(by_hand.block(X, 12), block_of(first, 12));
    assert_eq!(by_hand.block(X, 2), block_of(99, 2));
    assert_eq!(by_hand.block(X, 3), block_of(99, 3));
    // Out of order the newest counts that has it.
    assert_eq!(by_hand.block(X, 7), block_of(second, 7));
    // Who has asked for nothing for so long is taken to be gone.
    by_hand.now += IDLE;
    let exchange = by_hand.asked(X, 0);
    let said = by_hand.respond(exchange, Content::new(Code::CONTENT).with_payload("short"));
    assert_eq!(broken(&said), 2);
}

/// Who begins again and again, and asks for nothing more, has a few of them.
#[test]
fn who_begins_anew_leaves_few_answers_behind() {
    let mut by_hand = ByHand::new();
    let mut ended = 0;
    for _ in 0..20 {
        by_hand.now += Duration::from_secs(1);
        ended += broken(&by_hand.begin(X, 0).1);
    }
    assert_eq!(ended, 16);
}

/// RFC 7959 §2.6: blocks of a notification are not those of an older answer.
#[test]
fn a_notification_stands_before_an_older_answer() {
    let mut by_hand = ByHand::new();
    let observe = Content::new(Code::GET).with(option::URI_PATH, b"x");
    let said = by_hand.hear(CLIENT, &observe.with_uint(option::OBSERVE, 0));
    let [Output::Request { exchange: observed, .. }] = said[..] else { panic!("{said:?}") };
    let first = Content::new(Code::CONTENT).with_uint(option::OBSERVE, 0);
    by_hand.respond(observed, first.with_payload("first"));
    let (answer, _) = by_hand.begin(X, 0);
    let content = Content::new(Code::CONTENT).with_payload(bytes_of(99, 0, 3000));
    by_hand.input(Input::Notify { exchange: observed, content });
    assert_eq!(by_hand.block(X, 1), block_of(99, 1));
    assert_eq!(by_hand.block(X, 2), bytes_of(99, 2048, 3000 - 2048));
    // Who goes on with the answer has that.
    assert_eq!(by_hand.block(X, 1), block_of(answer, 1));
    by_hand.now += IDLE;
    let content = Content::new(Code::CONTENT).with_payload(bytes_of(98, 0, 3000));
    let said = by_hand.input(Input::Notify { exchange: observed, content });
    assert!(said.contains(&Output::Flow(Flow::Broken { of: Of::Exchange(answer) })), "{said:?}");
}

/// More bytes than there is room for: of each less is kept, and nobody's answer breaks off.
#[test]
fn many_long_answers_take_no_more_than_there_is_room_for() {
    let mut by_hand = ByHand::new();
    let peers = 1 + (MAX_SERVED_BYTES >> 20) as u8 + 12;
    let mut exchanges = Vec::new();
    for peer in 0..peers {
        let (exchange, said) = by_hand.begin((peer, 1), 1000);
        assert_eq!(broken(&said), 0, "{peer}");
        assert_eq!(answers(&said), [(Code::CONTENT, block_of(exchange, 1000))]);
        assert!(by_hand.server.held_bytes() <= MAX_SERVED_BYTES);
        exchanges.push(exchange);
    }
    for (peer, exchange) in (0..peers).zip(exchanges) {
        assert_eq!(by_hand.block((peer, 1), 1001), block_of(exchange, 1001), "{peer}");
        // Again, as the message was lost.
        assert_eq!(by_hand.block((peer, 1), 1001), block_of(exchange, 1001), "{peer}");
    }
}

/// What is over gives its place before what is not, whoever has it.
#[test]
fn what_has_ended_goes_first() {
    let mut by_hand = ByHand::new();
    let (open, _) = by_hand.begin((200, 1), 0);
    for number in 0..=MAX_FLOWING as u8 {
        by_hand.now += Duration::from_millis(500);
        let (exchange, said) = by_hand.begin((number / 8, number % 8), 0);
        assert_eq!(broken(&said), 0, "{number}");
        by_hand.input(Input::Flow(Flow::Broken { of: Of::Exchange(exchange) }));
    }
    assert_eq!(by_hand.block((200, 1), 1), block_of(open, 1));
}

/// Where all are under way a newcomer hears so, and nobody's answer breaks off for him.
#[test]
fn who_finds_no_place_asks_again() {
    let mut by_hand = ByHand::new();
    let full = |number: u8| (b'a' + number / 16, number % 16);
    for number in 0..MAX_FLOWING as u8 {
        by_hand.now += Duration::from_millis(10);
        assert_eq!(broken(&by_hand.begin(full(number), 0).1), 0, "{number}");
    }
    let (refused, said) = by_hand.begin((200, 1), 0);
    assert_eq!(answers(&said), [(Code::SERVICE_UNAVAILABLE, Bytes::new())]);
    assert_eq!(said[..1], [Output::Flow(Flow::Broken { of: Of::Exchange(refused) })]);
    // Who has asked for nothing for long may be gone.
    by_hand.now += IDLE;
    let (_, said) = by_hand.begin((200, 1), 0);
    assert_eq!((broken(&said), answers(&said)[0].0), (1, Code::CONTENT));
    by_hand.now += EXCHANGE_LIFETIME * 2;
    by_hand.input(Input::Wake);
    assert_eq!(by_hand.server.held_bytes(), 0);
}
