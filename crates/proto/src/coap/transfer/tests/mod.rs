mod any;
mod beside;
mod flowing;
mod guarded;
mod incoming;
mod q_block;
mod served;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::coap::chance::{Chance, For};
use crate::coap::machine::Reason;
use crate::coap::{Block, Code, Content, Datagram, MAX_BODY_BYTES, option};

const CLIENT: u8 = 1;
const SERVER: u8 = 2;

fn body(bytes: usize, first: u8) -> Bytes {
    (0..bytes)
        .map(|at| first.wrapping_add(u8::try_from(at % 251).unwrap()))
        .collect::<Vec<_>>()
        .into()
}

fn settings(seed: u64, number: u64) -> Settings {
    Settings { seed: [seed, number], is_challenging: seed % 2 == 1, rate_bps: None }
}

/// A client and a server with a link between; what the server is asked is answered by `answer`.
struct Pair {
    ends: [Transfers<u8>; 2],
    now: Duration,
    chance: Chance,
    /// Of 16 datagrams, how many are lost.
    loss: u64,
    wake_at: [Option<Duration>; 2],
    on_the_way: BTreeMap<(Duration, u64), (usize, Bytes)>,
    count: u64,
    /// Requests that the server's application saw.
    requests: Vec<(u64, Content)>,
    /// Everything else, and when the last of it came.
    others: Vec<Output<u8>>,
    ended_at: Duration,
    answer: fn(u64, &Content) -> Option<Content>,
}

impl Pair {
    fn new(seed: u64, loss: u64, answer: fn(u64, &Content) -> Option<Content>) -> Self {
        Self {
            ends: [Transfers::new(&settings(seed, 1)), Transfers::new(&settings(seed, 2))],
            now: Duration::ZERO,
            chance: Chance::new([seed, 3]),
            loss,
            wake_at: [None; 2],
            on_the_way: BTreeMap::new(),
            count: 0,
            requests: Vec::new(),
            others: Vec::new(),
            ended_at: Duration::ZERO,
            answer,
        }
    }

    fn input(&mut self, end: usize, input: Input<u8>) {
        self.ends[end].handle_input(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| self.ends[end].poll_output()).collect();
        for output in outputs {
            match output {
                Output::Datagram { bytes, .. } => {
                    assert!(bytes.len() <= 1152);
                    self.count += 1;
                    let least = Duration::from_millis(20);
                    let at = self.now + self.chance.between(least, least * 4);
                    if self.chance.next(For::Factor) % 16 >= self.loss {
                        self.on_the_way.insert((at, self.count), (1 - end, bytes));
                    }
                }
                Output::Request { exchange, content, .. } => {
                    let answer = (self.answer)(self.requests.len() as u64, &content);
                    self.requests.push((exchange, content));
                    if let Some(content) = answer {
                        self.input(end, Input::Respond { exchange, content });
                    }
                }
                Output::WakeAt(at) => self.wake_at[end] = Some(at),
                other => {
                    self.others.push(other);
                    self.ended_at = self.now;
                }
            }
        }
    }

    /// Runs until nothing is on the way, or for `long`.
    fn run(&mut self, long: Duration) {
        let until = self.now + long;
        loop {
            let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
            let next = [arrival, self.wake_at[0], self.wake_at[1]].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = at;
            if arrival == Some(at) {
                let (_, (end, bytes)) = self.on_the_way.pop_first().unwrap();
                let peer = if end == 0 { SERVER } else { CLIENT };
                self.input(end, Input::Datagram { peer, bytes, is_group: false });
            } else {
                let end = usize::from(self.wake_at[0] != Some(at));
                self.wake_at[end] = None;
                self.input(end, Input::Wake);
            }
        }
        self.now = until;
    }

    fn request(&mut self, request: u64, content: Content) {
        self.input(0, Input::Request { request, peer: SERVER, content, is_confirmable: true });
    }

    /// The responses so far: number, code, body.
    fn responses(&self) -> Vec<(u64, Code, Bytes)> {
        let response = |output: &Output<u8>| match output {
            Output::Response { request, content, .. } => {
                Some((*request, content.code, content.payload.clone()))
            }
            _ => None,
        };
        self.others.iter().filter_map(response).collect()
    }
}

fn get() -> Content {
    Content::new(Code::GET).with(option::URI_PATH, b"large")
}

fn post(bytes: usize) -> Content {
    let post = Content::new(Code::POST).with(option::URI_PATH, b"large");
    post.with_payload(body(bytes, 0))
}

const LONG: Duration = Duration::from_secs(2000);

#[test]
fn bodies_of_any_size_go_and_come() {
    for seed in [0, 1] {
        for (up, down) in [(0, 1025), (1024, 1024), (1025, 0), (5000, 70_000), (100_000, 1)] {
            let mut pair = Pair::new(seed, 0, |_, request| {
                let down = request.uint(option::SIZE2).unwrap();
                let answer = Content::new(Code::CHANGED).with_uint(option::CONTENT_FORMAT, 42);
                Some(answer.with_payload(body(down as usize, 7)))
            });
            pair.request(5, post(up).with_uint(option::SIZE2, down).with(option::IF_MATCH, b"e"));
            pair.run(LONG);
            let down = body(down as usize, 7);
            assert_eq!(pair.responses(), [(5, Code::CHANGED, down)], "{seed} {up}");
            assert_eq!(pair.requests.len(), 1);
            let request = &pair.requests[0].1;
            assert_eq!(request.payload, body(up, 0));
            assert_eq!(request.first(option::IF_MATCH), Some(&b"e"[..]));
            assert_eq!(request.first(option::BLOCK1), None);
        }
    }
}

#[test]
fn bodies_pass_a_link_that_loses() {
    let mut answered = 0;
    let seeds = 40;
    for seed in 0..seeds {
        let mut pair = Pair::new(seed, seed % 5, |_, request| {
            let code = if request.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
            Some(Content::new(code).with_payload(body(9000, request.code.0)))
        });
        pair.request(1, post(7000));
        pair.request(2, get());
        pair.request(3, post(3000));
        pair.run(LONG);
        for (request, code, payload) in pair.responses() {
            let method = if request == 2 { Code::GET } else { Code::POST };
            assert!(code != Code::CONTENT || request == 2);
            assert_eq!(payload, body(9000, method.0), "seed {seed}, request {request}");
            answered += 1;
        }
        let ended: BTreeSet<u64> = pair
            .others
            .iter()
            .map(|output| match output {
                Output::Response { request, .. } | Output::Failed { request, .. } => *request,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((ended.len(), pair.others.len()), (3, 3), "seed {seed}: {:?}", pair.others);
        let posts = pair.requests.iter().filter(|(_, content)| content.code == Code::POST);
        assert!(posts.count() <= 2, "seed {seed}");
    }
    assert!(answered > 3 * seeds * 9 / 10, "{answered}");
}

/// RFC 7959 §2.9.3.
#[test]
fn a_body_that_is_too_large_is_refused_at_its_first_block() {
    let mut pair = Pair::new(0, 0, |_, _| panic!("the application sees nothing of it"));
    pair.request(5, post(MAX_BODY_BYTES + 1));
    pair.run(LONG);
    assert_eq!(pair.count, 2);
    let [Output::Response { content, .. }] = &pair.others[..] else { panic!("{:?}", pair.others) };
    assert_eq!(content.code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(content.uint(option::SIZE1), u32::try_from(MAX_BODY_BYTES).ok());
}

/// A server at which blocks are answered as `answer` says, by hand.
fn by_hand(answer: impl FnMut(&Content, usize) -> Content) -> Vec<Output<u8>> {
    by_hand_to(get(), answer)
}

fn by_hand_to(
    content: Content,
    mut answer: impl FnMut(&Content, usize) -> Content,
) -> Vec<Output<u8>> {
    let mut client = Transfers::<u8>::new(&settings(0, 1));
    let input = Input::Request { request: 5, peer: SERVER, content, is_confirmable: true };
    client.handle_input(Duration::ZERO, input);
    let (mut others, mut count) = (Vec::new(), 0);
    loop {
        let mut sent = None;
        while let Some(output) = client.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => sent = Some(bytes),
                Output::WakeAt(_) => {}
                other => others.push(other),
            }
        }
        let Some(bytes) = sent else { return others };
        let datagram = Datagram::decode(&bytes).unwrap();
        let content = answer(&Content::try_from(&datagram).unwrap(), count);
        count += 1;
        assert!(count < 1000, "it ends");
        let kind = crate::coap::Kind::Acknowledgement;
        let bytes = content.encode(kind, datagram.mid, datagram.message.token).unwrap();
        let input = Input::Datagram { peer: SERVER, bytes, is_group: false };
        client.handle_input(Duration::ZERO, input);
    }
}

fn block2(num: u32, more: bool) -> Content {
    let value = Block { num, more, szx: 0 }.encode().unwrap();
    Content::new(Code::CONTENT).with(option::BLOCK2, value.as_slice()).with_payload(vec![1; 16])
}

fn asked(request: &Content) -> u32 {
    let value = request.first(option::BLOCK2);
    value.map_or(0, |value| Block::decode(value, false).unwrap().num)
}

/// RFC 7959 §2.4.
#[test]
fn a_body_that_changes_is_begun_anew_but_not_for_ever() {
    let outputs = by_hand(|request, count| {
        let tag = if count < 3 { b"a" } else { b"b" };
        block2(asked(request), asked(request) < 4).with(option::ETAG, tag)
    });
    let [Output::Response { content, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(content.payload.len(), 80);
    let changed = [Output::Failed { request: 5, reason: Reason::Changed }];
    let outputs = by_hand(|request, count| {
        block2(asked(request), true).with(option::ETAG, &count.to_be_bytes())
    });
    assert_eq!(outputs, changed);
}

#[test]
fn blocks_that_are_not_those_asked_for_end_it() {
    let bad = [Output::Failed { request: 5, reason: Reason::BadAnswer }];
    assert_eq!(by_hand(|_, _| block2(0, true)), bad);
    assert_eq!(by_hand(|request, _| block2(asked(request) + 1, true)), bad);
    assert_eq!(by_hand(|request, _| block2(asked(request), true).with_payload("x")), bad);
    assert_eq!(by_hand(|_, _| Content::new(Code::CONTENT).with(option::BLOCK2, &[0xf])), bad);
    let lies =
        |request: &Content, _| block2(asked(request), true).with_uint(option::SIZE2, 1 << 30);
    assert_eq!(by_hand(lies), [Output::Failed { request: 5, reason: Reason::TooLarge }]);
}

/// RFC 7959 §2.3, §2.9.2, §2.9.3, figures 8 to 10: the server wants smaller blocks, and may lose
/// what it has.
#[test]
fn a_client_sends_blocks_as_small_as_they_are_wanted() {
    let block1 =
        |request: &Content| Block::decode(request.first(option::BLOCK1).unwrap(), false).unwrap();
    let with = |code, block: Block| {
        Content::new(code).with(option::BLOCK1, block.encode().unwrap().as_slice())
    };
    let mut seen = Vec::new();
    let outputs = by_hand_to(post(2500), |request, count| {
        let block = block1(request);
        seen.push((block.num, block.more, block.size_bytes(), request.payload.len()));
        assert_eq!(request.first(option::SIZE1).is_some(), block.num == 0);
        let smaller = Block { szx: block.szx - 1, ..block };
        match count {
            0 => with(Code::REQUEST_ENTITY_TOO_LARGE, smaller),
            1 => with(Code::CONTINUE, smaller),
            3 => with(Code::REQUEST_ENTITY_INCOMPLETE, block),
            _ if block.more => with(Code::CONTINUE, block),
            _ => with(Code::CHANGED, block),
        }
    });
    let [Output::Response { content, is_last: true, .. }] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    assert_eq!(content.code, Code::CHANGED);
    let first = [
        (0, true, 1024, 1024),
        (0, true, 512, 512),
        (2, true, 256, 256),
        (3, true, 256, 256),
        (0, true, 256, 256),
    ];
    assert_eq!(seen[..5], first);
    assert_eq!((seen.len(), seen.last()), (4 + 10, Some(&(9, false, 256, 196))));
    // Who never has what came before is asked no more.
    let mut count = 0;
    let outputs = by_hand_to(post(2500), |request, _| {
        count += 1;
        with(Code::REQUEST_ENTITY_INCOMPLETE, block1(request))
    });
    let [Output::Response { content, .. }] = &outputs[..] else { panic!("{outputs:?}") };
    assert_eq!(content.code, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(count, 1 + u32::from(MAX_RESTARTS));
    // A final success before the body is whole would be to another request.
    let outputs = by_hand_to(post(2500), |_, _| Content::new(Code::CHANGED));
    assert_eq!(outputs, [Output::Failed { request: 5, reason: Reason::BadAnswer }]);
}

/// RFC 7959 §2.5, §2.9.2, RFC 9175 §3: from the server's side.
#[test]
fn blocks_out_of_order_are_refused_and_tags_tell_bodies_apart() {
    let mut server = Transfers::<u8>::new(&settings(0, 2));
    let mut mid = 0;
    let mut send = |peer: u8, tag: &[u8], num: u32, more: bool| {
        mid += 1;
        let value = Block { num, more, szx: 0 }.encode().unwrap();
        let content = post(0).with(option::BLOCK1, value.as_slice()).with(option::REQUEST_TAG, tag);
        let content = content.with_payload(vec![tag[0]; 16]);
        let token = crate::coap::Token::EMPTY;
        let bytes = content.encode(crate::coap::Kind::Confirmable, mid, token).unwrap();
        server.handle_input(Duration::ZERO, Input::Datagram { peer, bytes, is_group: false });
        loop {
            match server.poll_output().unwrap() {
                Output::Datagram { bytes, .. } => break Ok(Code(bytes[1])),
                Output::Request { content, .. } => break Err(content.payload),
                _ => {}
            }
        }
    };
    assert_eq!(send(1, b"a", 1, true), Ok(Code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(send(1, b"a", 0, true), Ok(Code::CONTINUE));
    assert_eq!(send(1, b"b", 0, true), Ok(Code::CONTINUE));
    assert_eq!(send(2, b"a", 0, true), Ok(Code::CONTINUE));
    assert_eq!(send(1, b"a", 2, true), Ok(Code::REQUEST_ENTITY_INCOMPLETE));
    assert_eq!(send(1, b"a", 1, true), Ok(Code::CONTINUE));
    assert_eq!(send(1, b"a", 1, true), Ok(Code::CONTINUE));
    assert_eq!(send(1, b"b", 1, false), Err(Bytes::from(vec![b'b'; 32])));
    assert_eq!(send(1, b"a", 2, false), Err(Bytes::from(vec![b'a'; 48])));
    assert_eq!(send(2, b"a", 1, false), Err(Bytes::from(vec![b'a'; 32])));
}

/// RFC 7959 §2.6.
#[test]
fn notifications_have_bodies_of_any_size() {
    let mut pair = Pair::new(0, 0, |_, _| {
        let first = Content::new(Code::CONTENT).with(option::OBSERVE, b"");
        Some(first.with_payload(body(3000, 1)))
    });
    pair.request(5, get().with(option::OBSERVE, b""));
    pair.run(Duration::from_secs(10));
    let exchange = pair.requests[0].0;
    for first in 2..5 {
        let content = Content::new(Code::CONTENT).with_payload(body(5000, first));
        pair.input(1, Input::Notify { exchange, content });
        pair.run(Duration::from_secs(10));
    }
    let expected = [(3000, 1), (5000, 2), (5000, 3), (5000, 4)];
    let expected = expected.map(|(len, first)| (5, Code::CONTENT, body(len, first)));
    assert_eq!(pair.responses(), expected);
    assert_eq!(pair.requests.len(), 1);
    pair.input(0, Input::Cancel { request: 5 });
    pair.others.clear();
    let content = Content::new(Code::CONTENT).with_payload("x");
    pair.input(1, Input::Notify { exchange, content });
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.others, [Output::Ended { exchange }]);
}

/// RFC 7641 §1.2, §3.3.1: whatever is lost, in the end the client knows the last state, or that it
/// knows it no more.
#[test]
fn who_observes_learns_the_last_state() {
    let mut consistent = 0;
    let seeds = 60;
    for seed in 0..seeds {
        let mut pair = Pair::new(seed, seed % 6, |index, _| {
            let text = if index == 0 { &b"first"[..] } else { b"last" };
            let content = Content::new(Code::CONTENT).with(option::OBSERVE, b"");
            Some(content.with_payload(Bytes::from(text)))
        });
        pair.request(5, get().with(option::OBSERVE, b""));
        pair.run(Duration::from_secs(3));
        for at in 0..10 {
            // Where the first request was lost, nobody observes yet.
            let Some((exchange, _)) = pair.requests.last() else { break };
            let text = if at == 9 { &b"last"[..] } else { b"between" };
            let content = Content::new(Code::CONTENT).with_payload(Bytes::from(text));
            pair.input(1, Input::Notify { exchange: *exchange, content });
            pair.run(Duration::from_secs(5));
        }
        pair.run(Duration::from_secs(600));
        let is_failed = |output: &Output<u8>| matches!(output, Output::Failed { .. });
        let failures = pair.others.iter().filter(|output| is_failed(output)).count();
        match pair.responses().last() {
            _ if failures > 0 => assert_eq!(failures, 1),
            Some((5, Code::CONTENT, text)) => {
                assert_eq!(&text[..], b"last", "seed {seed}");
                consistent += 1;
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(consistent > seeds * 8 / 10, "{consistent}");
}

/// What an end has to say about an input, but for when to wake.
fn said(end: &mut Transfers<u8>, input: Input<u8>) -> Vec<Output<u8>> {
    end.handle_input(Duration::from_secs(1), input);
    let outputs = std::iter::from_fn(|| end.poll_output());
    outputs.filter(|output| !matches!(output, Output::WakeAt(_))).collect()
}

/// RFC 9175 §2.4: whoever answers may ask for a sign of the address first.
#[test]
fn who_is_challenged_asks_again_and_is_known_then() {
    let mut ends = [Transfers::new(&settings(2, 1)), Transfers::new(&settings(1, 2))];
    let content = Content::new(Code::GET).with(option::URI_PATH, b"x");
    let request = Input::Request { request: 1, peer: SERVER, content, is_confirmable: true };
    let mut came = said(&mut ends[0], request);
    for is_known in [false, true] {
        let [Output::Datagram { bytes, .. }] = &came[..] else { panic!("{came:?}") };
        let datagram = Input::Datagram { peer: CLIENT, bytes: bytes.clone(), is_group: false };
        let asked = said(&mut ends[1], datagram);
        let [Output::Request { exchange, .. }] = asked[..] else { panic!("{asked:?}") };
        assert_eq!(ends[1].is_trusted(CLIENT), is_known);
        let answer = match is_known {
            false => Input::Challenge { exchange },
            true => Input::Respond { exchange, content: Content::new(Code::CONTENT) },
        };
        let answer = said(&mut ends[1], answer);
        let [Output::Datagram { bytes, .. }] = &answer[..] else { panic!("{answer:?}") };
        let datagram = Input::Datagram { peer: SERVER, bytes: bytes.clone(), is_group: false };
        came = said(&mut ends[0], datagram);
    }
    assert!(
        matches!(&came[..], [Output::Response { content, .. }] if content.code == Code::CONTENT)
    );
}

/// RFC 7959 §2.3, §2.4: who asks may want smaller blocks than there can be.
#[test]
fn a_callers_block_options_say_how_large_blocks_are() {
    let mut client = Transfers::new(&settings(2, 1));
    let block = Block { num: 0, more: false, szx: 2 }.encode().unwrap();
    let content = Content::new(Code::PUT)
        .with(option::BLOCK1, block.as_slice())
        .with(option::BLOCK2, block.as_slice())
        .with_payload(body(100, 0));
    let request = Input::Request { request: 1, peer: SERVER, content, is_confirmable: true };
    let sent = said(&mut client, request);
    let [Output::Datagram { bytes, .. }] = &sent[..] else { panic!("{sent:?}") };
    let datagram = Datagram::decode(bytes).unwrap();
    let first = Block { num: 0, more: true, szx: 2 }.encode().unwrap();
    assert_eq!(datagram.message.options.first(option::BLOCK1), Some(first.as_slice()));
    assert_eq!(datagram.message.options.first(option::BLOCK2), None);
    assert_eq!(datagram.message.payload.len(), 64);
}

/// One that is lost keeps no other waiting, and its number is the caller's: parts of other
/// requests have numbers of their own.
#[test]
fn a_request_without_a_pace_that_is_lost_holds_up_nothing() {
    let mut pair = Pair::new(0, 0, |_, _| Some(Content::new(Code::CHANGED)));
    pair.loss = 16;
    for request in 1..=3 {
        pair.input(0, Input::Unpaced { request, peer: SERVER, content: post(1000) });
    }
    pair.loss = 0;
    pair.request(7, post(3000));
    pair.input(0, Input::Unpaced { request: 8, peer: SERVER, content: post(10) });
    pair.run(Duration::from_secs(2));
    let numbers = |pair: &Pair| -> BTreeSet<u64> {
        pair.responses().into_iter().map(|(request, ..)| request).collect()
    };
    assert_eq!(numbers(&pair), [7, 8].into());
    // A body that goes in blocks waits as any other.
    pair.input(0, Input::Unpaced { request: 9, peer: SERVER, content: post(3000) });
    pair.run(Duration::from_secs(20));
    assert_eq!(numbers(&pair), [7, 8, 9].into());
    assert_eq!(pair.requests.len(), 3);
}
