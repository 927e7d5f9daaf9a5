//! Bodies that are never here as a whole.

#![allow(clippy::cast_possible_truncation)] // Bytes of bodies.

use std::collections::VecDeque;

use super::*;
use crate::coap::machine::{Flow, Of};
use crate::coap::{Kind, Refusal};

/// What a server answers to a message, which may come twice.
type Answer<'a> = &'a mut dyn FnMut(&Content) -> Content;

const REQUEST: u64 = 5;
const ROOM_BYTES: usize = 8 << 10;
const BLOCK_BYTES: usize = 1024;
/// What a client has of bodies at most: three blocks of what it sends.
const MAX_HELD_BYTES: usize = 3 * BLOCK_BYTES;

/// The byte that stands there in a long body.
fn byte_at(offset: usize) -> u8 {
    (offset % 253) as u8 ^ (offset >> 10) as u8
}

fn bytes_at(offset: usize, len: usize) -> Bytes {
    (offset..offset + len).map(byte_at).collect::<Vec<_>>().into()
}

/// A client, a link that loses, and a server that is a function. The application takes and gives
/// when it likes to.
struct Flowed<'a> {
    client: Transfers<u8>,
    answer: Answer<'a>,
    now: Duration,
    chance: Chance,
    /// Of 1000 datagrams so many are lost.
    loss: u64,
    wake_at: Option<Duration>,
    on_the_way: BTreeMap<(Duration, u64), (bool, Bytes)>,
    count: u64,
    /// Bytes that came and that the application has not taken.
    out: VecDeque<usize>,
    came: usize,
    /// Bytes of the request's body that there is room for.
    wanted: usize,
    given: usize,
    most_held: usize,
    ended: Option<Output<u8>>,
    head: Option<Content>,
}

impl<'a> Flowed<'a> {
    fn new(seed: u64, loss: u64, answer: Answer<'a>) -> Self {
        Self {
            client: Transfers::new(&settings(0, seed)),
            answer,
            now: Duration::ZERO,
            chance: Chance::new([seed, 9]),
            loss,
            wake_at: None,
            on_the_way: BTreeMap::new(),
            count: 0,
            out: VecDeque::new(),
            came: 0,
            wanted: 0,
            given: 0,
            most_held: 0,
            ended: None,
            head: None,
        }
    }

    fn open(&mut self, content: Content, has_more: bool) {
        self.input(Input::Open {
            request: REQUEST,
            peer: SERVER,
            content,
            is_confirmable: true,
            has_more,
            room_bytes: ROOM_BYTES,
        });
    }

    fn leave(&mut self, is_ours: bool, bytes: Bytes) {
        self.count += 1;
        let least = Duration::from_millis(20);
        let at = self.now + self.chance.between(least, least * 4);
        if self.chance.next(For::Factor) % 1000 >= self.loss {
            self.on_the_way.insert((at, self.count), (is_ours, bytes));
        }
    }

    fn input(&mut self, input: Input<u8>) {
        self.client.handle_input(self.now, input);
        while let Some(output) = self.client.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => self.leave(true, bytes),
                Output::WakeAt(at) => self.wake_at = Some(at),
                Output::Response { content, is_last, .. } => {
                    assert!(self.head.is_none());
                    self.part(&content.payload, is_last);
                    self.head = Some(content);
                }
                Output::Flow(Flow::Part { of: Of::Request(REQUEST), bytes, is_last }) => {
                    assert!(self.head.is_some());
                    self.part(&bytes, is_last);
                }
                Output::Flow(Flow::Room { of: Of::Request(REQUEST), bytes }) => {
                    self.wanted += bytes;
                }
                output @ Output::Failed { .. } => self.ended = Some(output),
                other => panic!("{other:?}"),
            }
        }
        self.most_held = self.most_held.max(self.client.held_bytes());
    }

    fn part(&mut self, bytes: &Bytes, is_last: bool) {
        assert!(self.ended.is_none());
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == byte_at(self.came + at)));
        self.came += bytes.len();
        self.out.push_back(bytes.len());
        let out: usize = self.out.iter().sum();
        assert!(out < ROOM_BYTES + BLOCK_BYTES, "{out} are out");
        if is_last {
            self.ended = Some(Output::Alive { request: REQUEST });
        }
    }

    /// The application takes a part.
    fn take(&mut self) {
        if let Some(bytes) = self.out.pop_front() {
            self.input(Input::Flow(Flow::Room { of: Of::Request(REQUEST), bytes }));
        }
    }

    /// And gives one, of a body of so many bytes.
    fn give(&mut self, total: usize) {
        let most = self.wanted.min(total - self.given);
        let len = usize::try_from(self.chance.next(For::Factor) % 1500).unwrap().min(most);
        let is_last = self.given + len == total;
        if (len > 0 || is_last) && self.given < total {
            let (of, bytes) = (Of::Request(REQUEST), bytes_at(self.given, len));
            (self.given, self.wanted) = (self.given + len, self.wanted - len);
            self.input(Input::Flow(Flow::Part { of, bytes, is_last }));
        }
    }

    /// The next datagram or deadline; whether there was one.
    fn step(&mut self) -> bool {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let Some(at) = [arrival, self.wake_at].into_iter().flatten().min() else { return false };
        self.now = self.now.max(at);
        if arrival != Some(at) {
            self.wake_at = None;
            self.input(Input::Wake);
            return true;
        }
        let Some((_, (is_ours, bytes))) = self.on_the_way.pop_first() else { return false };
        if !is_ours {
            self.input(Input::Datagram { peer: SERVER, bytes, is_group: false });
            return true;
        }
        let datagram = Datagram::decode(&bytes).unwrap();
        if datagram.message.code.is_request() {
            let answer = (self.answer)(&Content::try_from(&datagram).unwrap());
            let (mid, token) = (datagram.mid, datagram.message.token);
            self.leave(false, answer.encode(Kind::Acknowledgement, mid, token).unwrap());
        }
        true
    }

    /// Until it has ended; the application takes and gives now and then.
    fn run(&mut self, total: usize) {
        while self.ended.is_none() {
            let is_idle = !self.step();
            if is_idle || self.chance.next(For::Factor).is_multiple_of(3) {
                self.take();
                self.give(total);
            }
            assert!(self.count < 200_000, "it ends");
        }
    }

    fn is_whole(&self) -> bool {
        self.ended == Some(Output::Alive { request: REQUEST })
    }
}

fn block_of(request: &Content, number: option::Number) -> Block {
    let value = request.first(number);
    value
        .map_or(Block { num: 0, more: false, szx: 6 }, |value| Block::decode(value, false).unwrap())
}

fn with(content: Content, number: option::Number, block: Block) -> Content {
    content.with(number, block.encode().unwrap().as_slice())
}

/// A server that has a body of so many bytes, with this tag.
fn serve(request: &Content, total: usize, tag: &[u8]) -> Content {
    let asked = block_of(request, option::BLOCK2);
    let (offset, size) = (asked.offset(), asked.size_bytes());
    let len = size.min(total - offset);
    let block = Block { more: offset + len < total, ..asked };
    let content = Content::new(Code::CONTENT).with(option::ETAG, tag);
    with(content, option::BLOCK2, block).with_payload(bytes_at(offset, len))
}

/// A server that takes a body block by block; the answer to the last has no body.
fn store(request: &Content, stored: &mut usize) -> Content {
    let block = block_of(request, option::BLOCK1);
    let (offset, payload) = (block.offset(), &request.payload);
    assert!(payload.iter().enumerate().all(|(at, byte)| *byte == byte_at(offset + at)));
    assert!(block.is_length(payload.len()) && offset <= *stored);
    // One that comes again is answered again.
    *stored = (*stored).max(offset + payload.len());
    let code = if block.more { Code::CONTINUE } else { Code::CHANGED };
    with(Content::new(code), option::BLOCK1, block)
}

const LONG_BODY: usize = (8 << 20) + 300;

/// RFC 7959 §2.4: whatever is lost, and however slowly it is taken, a long answer arrives in its
/// order, and never more of it is here than there was room for.
#[test]
fn a_long_answer_is_given_out_as_it_comes() {
    for seed in 0..4 {
        let mut answer = |request: &Content| serve(request, LONG_BODY, b"tag");
        let mut flowed = Flowed::new(seed, 20, &mut answer);
        flowed.open(get(), false);
        flowed.run(0);
        assert!(flowed.is_whole(), "seed {seed}: {:?}", flowed.ended);
        assert_eq!(flowed.came, LONG_BODY, "seed {seed}");
        // What there is room for is given out at once; then each block as it comes.
        assert!(flowed.most_held < ROOM_BYTES + BLOCK_BYTES, "{} are held", flowed.most_held);
        assert_eq!(flowed.client.held_bytes(), 0, "seed {seed}");
        let head = flowed.head.unwrap();
        assert_eq!((head.code, head.first(option::ETAG)), (Code::CONTENT, Some(&b"tag"[..])));
        assert_eq!(head.first(option::BLOCK2), None);
    }
}

/// RFC 7959 §2.5: the same of a request, whose bytes are asked for.
#[test]
fn a_long_request_is_taken_as_it_is_sent() {
    for seed in 0..4 {
        let mut stored = 0;
        let mut answer = |request: &Content| {
            assert_eq!(request.first(option::SIZE1), None);
            assert_eq!(request.first(option::REQUEST_TAG).map(<[u8]>::len), Some(4));
            store(request, &mut stored)
        };
        let mut flowed = Flowed::new(seed, 20, &mut answer);
        flowed.open(post(0), true);
        flowed.run(LONG_BODY);
        assert!(flowed.is_whole(), "seed {seed}: {:?}", flowed.ended);
        assert!(flowed.most_held <= MAX_HELD_BYTES, "{} are held", flowed.most_held);
        assert_eq!(flowed.head.unwrap().code, Code::CHANGED);
        assert_eq!(stored, LONG_BODY, "seed {seed}");
    }
}

/// What fits a datagram goes in one, however it came.
#[test]
fn a_short_request_needs_no_blocks() {
    for total in [0, 1, 1023, 1024, 1025] {
        let mut seen = Vec::new();
        let mut answer = |request: &Content| {
            seen.push((request.first(option::BLOCK1).is_some(), request.payload.len()));
            assert_eq!(request.first(option::REQUEST_TAG).is_some(), total > 1024);
            if total > 1024 { store(request, &mut 1024) } else { Content::new(Code::CHANGED) }
        };
        let mut flowed = Flowed::new(1, 0, &mut answer);
        flowed.open(post(0), true);
        if total == 0 {
            let part = Flow::Part { of: Of::Request(REQUEST), bytes: Bytes::new(), is_last: true };
            flowed.input(Input::Flow(part));
        }
        flowed.run(total);
        assert!(flowed.is_whole(), "{total}: {:?}", flowed.ended);
        match total {
            1025 => assert_eq!(seen, [(true, 1024), (true, 1)]),
            _ => assert_eq!(seen, [(false, total)]),
        }
    }
}

/// Nobody takes anything: nothing more is asked for, however long that goes on.
#[test]
fn without_room_nothing_is_asked_for() {
    let mut asked = 0;
    let mut answer = |request: &Content| {
        asked += 1;
        serve(request, 1 << 20, b"tag")
    };
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(get(), false);
    while flowed.step() {}
    assert_eq!((flowed.came, flowed.on_the_way.len()), (ROOM_BYTES, 0));
    let far = flowed.now + Duration::from_secs(3600);
    flowed.now = far;
    flowed.input(Input::Wake);
    while flowed.step() {}
    assert_eq!(flowed.came, ROOM_BYTES);
    // Of what was given out as one all is taken.
    flowed.take();
    while flowed.step() {}
    assert_eq!((flowed.came, flowed.out.len()), (2 * ROOM_BYTES, 8));
    flowed.take();
    while flowed.step() {}
    assert_eq!(flowed.came, 2 * ROOM_BYTES + BLOCK_BYTES);
    assert_eq!(asked, 17);
}

/// RFC 7959 §2.4: what became another behind what was given out breaks off, whatever else the
/// server says of it.
#[test]
fn what_changes_on_its_way_breaks_off() {
    const AT: u32 = 10;
    let block = |num| Block { num, more: true, szx: 6 };
    let at = |request: &Content| block_of(request, option::BLOCK2).num;
    let bare = |code| Content::new(code).with(option::ETAG, b"a");
    let whole = |num| with(bare(Code::CONTENT), option::BLOCK2, block(num));
    type Third<'a> = &'a dyn Fn() -> Content;
    let cases: [(Third<'_>, Reason); 7] = [
        (&|| serve(&with(get(), option::BLOCK2, block(AT)), 1 << 20, b"b"), Reason::Changed),
        (&|| Content::new(Code::NOT_FOUND), Reason::Changed),
        (&|| Refusal::Incomplete.response(), Reason::Changed),
        (&|| bare(Code::CONTENT).with_payload("x"), Reason::BadAnswer),
        (&|| whole(AT + 1).with_payload(bytes_at(11 << 10, 1024)), Reason::BadAnswer),
        (&|| whole(AT).with_payload(bytes_at(10 << 10, 1000)), Reason::BadAnswer),
        (&|| whole(AT), Reason::BadAnswer),
    ];
    for (case, (third, reason)) in cases.into_iter().enumerate() {
        let mut count = 0;
        let mut answer = |request: &Content| {
            count += 1;
            if at(request) == AT { third() } else { serve(request, 1 << 20, b"a") }
        };
        let mut flowed = Flowed::new(1, 0, &mut answer);
        flowed.open(get(), false);
        flowed.run(0);
        assert_eq!(flowed.ended, Some(Output::Failed { request: REQUEST, reason }), "{case}");
        assert_eq!((flowed.came, count), (10 << 10, 11), "{case}");
    }
}

/// Of what changes before anything was given out all is asked for anew, and what is short comes
/// whole, with the server's word on what became of it.
#[test]
fn what_changes_before_it_is_given_out_is_asked_for_anew() {
    for changes in [1, 3, 4] {
        let mut count = 0;
        let mut answer = |request: &Content| {
            count += 1;
            // Another one whenever its second block is asked for, until it has changed so often.
            serve(request, 3000, &[u8::try_from(count / 2).unwrap().min(changes)])
        };
        let mut flowed = Flowed::new(1, 0, &mut answer);
        flowed.open(get(), false);
        flowed.run(0);
        if changes == 4 {
            let changed = Output::Failed { request: REQUEST, reason: Reason::Changed };
            assert_eq!((flowed.ended, flowed.came), (Some(changed), 0));
            continue;
        }
        assert!(flowed.is_whole(), "{changes}: {:?}", flowed.ended);
        // One part: the whole.
        assert_eq!((flowed.came, flowed.out.len()), (3000, 1));
        assert_eq!(flowed.head.unwrap().first(option::ETAG), Some(&[changes][..]));
    }
    for code in [Code::INTERNAL_SERVER_ERROR, Code::NOT_FOUND] {
        let mut answer = |request: &Content| match block_of(request, option::BLOCK2).num {
            2 => Content::new(code),
            _ => serve(request, 8000, b"a"),
        };
        let mut flowed = Flowed::new(1, 0, &mut answer);
        flowed.open(get(), false);
        flowed.run(0);
        assert!(flowed.is_whole() && flowed.came == 0, "{:?}", flowed.ended);
        assert_eq!(flowed.head.unwrap().code, code);
    }
}

/// RFC 7959 §2.9.2: a server that has lost what it had gets it anew, as long as all of it is here.
#[test]
fn a_body_that_is_here_is_sent_anew() {
    let mut numbers = Vec::new();
    let mut answer = |request: &Content| {
        let block = block_of(request, option::BLOCK1);
        numbers.push(block.num);
        match numbers.len() {
            3 => Refusal::Incomplete.response(),
            _ => store(request, &mut (block.offset() + 1024)),
        }
    };
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(post(0).with_payload(bytes_at(0, 4000)), false);
    flowed.run(0);
    assert!(flowed.is_whole(), "{:?}", flowed.ended);
    assert_eq!(flowed.head.unwrap().code, Code::CHANGED);
    assert_eq!(numbers, [0, 1, 2, 0, 1, 2, 3]);
    // What has gone on is not here any more.
    let mut answer = |request: &Content| match block_of(request, option::BLOCK1).num {
        0..2 => store(request, &mut 4096),
        _ => Refusal::Incomplete.response(),
    };
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(post(0), true);
    flowed.run(LONG_BODY);
    assert_eq!(flowed.head.unwrap().code, Code::REQUEST_ENTITY_INCOMPLETE);
}

/// RFC 7959 §4: a size is an estimate at best.
#[test]
fn what_is_said_of_sizes_is_not_believed() {
    for size in [0, 1, 5000, u32::MAX] {
        let mut answer =
            |request: &Content| serve(request, 5000, b"a").with_uint(option::SIZE2, size);
        let mut flowed = Flowed::new(1, 0, &mut answer);
        flowed.open(get(), false);
        flowed.run(0);
        assert!(flowed.is_whole() && flowed.came == 5000, "{size}");
    }
}

/// RFC 7959 §2.9.3: a server may refuse a body before its end, and may want smaller blocks.
#[test]
fn a_request_ends_with_the_servers_answer_to_a_part_of_it() {
    let mut answer = |request: &Content| match block_of(request, option::BLOCK1).num {
        0..3 => store(request, &mut 4096),
        _ => Content::new(Code::REQUEST_ENTITY_TOO_LARGE),
    };
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(post(0), true);
    flowed.run(LONG_BODY);
    assert!(flowed.is_whole() && flowed.given < 16 << 10);
    assert_eq!(flowed.head.as_ref().unwrap().code, Code::REQUEST_ENTITY_TOO_LARGE);
    // What comes late is of no use, and does no harm.
    flowed.give(LONG_BODY);

    let (mut stored, mut sizes) = (0, Vec::new());
    let mut answer = |request: &Content| {
        let block = block_of(request, option::BLOCK1);
        sizes.push(request.payload.len());
        let smaller = Block { szx: 4, ..block };
        match (block.num, block.szx) {
            (0, 6) => with(Content::new(Code::REQUEST_ENTITY_TOO_LARGE), option::BLOCK1, smaller),
            _ => store(request, &mut stored),
        }
    };
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(post(0), true);
    flowed.run(3000);
    assert!(flowed.is_whole(), "{:?}", flowed.ended);
    assert_eq!(stored, 3000);
    assert_eq!(sizes[..3], [1024, 256, 256]);
}

#[test]
fn what_breaks_the_rules_ends_it() {
    let misuse = Some(Output::Failed { request: REQUEST, reason: Reason::Misuse });
    let mut never = |_: &Content| panic!("nothing is sent");
    let mut flowed = Flowed::new(1, 0, &mut never);
    flowed.open(get().with(option::OBSERVE, b""), false);
    assert_eq!(flowed.ended, misuse);
    let mut flowed = Flowed::new(1, 0, &mut never);
    flowed.open(post(0), true);
    let bytes = bytes_at(0, flowed.wanted + 1);
    flowed.input(Input::Flow(Flow::Part { of: Of::Request(REQUEST), bytes, is_last: true }));
    assert_eq!(flowed.ended, misuse);
}

/// What nobody wants any more is neither asked for nor told of.
#[test]
fn what_is_cancelled_says_nothing_more() {
    let mut answer = |request: &Content| serve(request, 1 << 20, b"a");
    let mut flowed = Flowed::new(1, 0, &mut answer);
    flowed.open(get(), false);
    while flowed.came < ROOM_BYTES {
        flowed.step();
    }
    flowed.input(Input::Cancel { request: REQUEST });
    let before = flowed.came;
    flowed.take();
    while flowed.step() {}
    assert_eq!((flowed.came, flowed.ended), (before, None));
}
