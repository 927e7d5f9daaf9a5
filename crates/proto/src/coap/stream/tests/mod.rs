//! Two connections in virtual time over a pipe that cuts the stream anywhere, and peers by hand.

#![allow(clippy::cast_possible_truncation)] // Small numbers.

mod any;
mod bodies;
mod flowing;
mod incoming;
mod observe;
mod signals;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::coap::chance::{Chance, For};
use crate::coap::framed::{self, signal};
use crate::coap::{Block, Code, option};

const MINUTE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(2000);

fn body(bytes: usize, first: u8) -> Bytes {
    let byte = |at: usize| first.wrapping_add(u8::try_from(at % 251).unwrap());
    (0..bytes).map(byte).collect::<Vec<_>>().into()
}

fn settings(seed: u64, framing: Framing) -> Settings {
    Settings { seed: [seed, 9], framing, idle: None }
}

fn get(path: &str) -> Content {
    Content::new(Code::GET).with(option::URI_PATH, path.as_bytes())
}

/// Bytes or messages on their way to one end, each with the time at which it is there.
type Pipe = VecDeque<(Duration, Bytes)>;

/// A client and a server. What the server is asked is answered by `answer`, after up to a second
/// where the seed says so.
struct Pair {
    ends: [Connection; 2],
    framing: Framing,
    now: Duration,
    chance: Chance,
    wake_at: [Option<Duration>; 2],
    pipes: [Pipe; 2],
    /// Answers of the server's application that take their time.
    answers: BTreeMap<(Duration, u64), Content>,
    is_slow: bool,
    /// Requests that the server's application saw.
    requests: Vec<(u64, Content)>,
    /// Everything else, with its end.
    others: Vec<(usize, Output)>,
    sent_bytes: usize,
    answer: fn(&Content) -> Option<Content>,
}

impl Pair {
    fn new(seed: u64, framing: Framing, answer: fn(&Content) -> Option<Content>) -> Self {
        let mut pair = Self {
            ends: [0, 1].map(|end| Connection::new(&settings(seed * 2 + end, framing))),
            framing,
            now: Duration::ZERO,
            chance: Chance::new([seed, 3]),
            wake_at: [None; 2],
            pipes: [Pipe::new(), Pipe::new()],
            answers: BTreeMap::new(),
            is_slow: seed % 2 == 1,
            requests: Vec::new(),
            others: Vec::new(),
            sent_bytes: 0,
            answer,
        };
        pair.outputs(0);
        pair.outputs(1);
        pair
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle_input(self.now, input);
        self.outputs(end);
    }

    fn outputs(&mut self, end: usize) {
        let outputs: Vec<_> = std::iter::from_fn(|| self.ends[end].poll_output()).collect();
        for output in outputs {
            match output {
                Output::Transmit(bytes) => self.transmit(1 - end, bytes),
                Output::Request { exchange, content } if end == 1 => {
                    if let Some(answer) = (self.answer)(&content) {
                        let least = Duration::from_millis(if self.is_slow { 1 } else { 0 });
                        let at = self.now + self.chance.between(least, least * 1000);
                        self.answers.insert((at, exchange), answer);
                    }
                    self.requests.push((exchange, content));
                }
                Output::WakeAt(at) => self.wake_at[end] = Some(at),
                other => self.others.push((end, other)),
            }
        }
    }

    /// Sends a message in pieces, behind what is on its way already.
    fn transmit(&mut self, to: usize, mut bytes: Bytes) {
        self.sent_bytes += bytes.len();
        while !bytes.is_empty() {
            let most = match self.framing {
                Framing::WebSocket => bytes.len(),
                // Few bytes now and then, so that heads are cut too.
                Framing::Stream => match self.chance.next(For::Factor) % 3 {
                    0 => 1 + self.chance.next(For::Factor) as usize % 4,
                    1 => 1 + self.chance.next(For::Factor) as usize % 1500,
                    _ => bytes.len(),
                },
            };
            let piece = bytes.split_to(most.min(bytes.len()));
            let latency = Duration::from_millis(1 + self.chance.next(For::Factor) % 50);
            let last = self.pipes[to].back().map_or(Duration::ZERO, |(at, _)| *at);
            let at = last.max(self.now + latency);
            match self.pipes[to].back_mut() {
                // As a socket joins them.
                Some((other, before)) if *other == at && self.framing == Framing::Stream => {
                    *before = [&before[..], &piece[..]].concat().into();
                }
                _ => self.pipes[to].push_back((at, piece)),
            }
        }
    }

    /// Runs until nothing happens any more, or for `long`.
    fn run(&mut self, long: Duration) {
        let until = self.now + long;
        loop {
            let arrivals = [0, 1].map(|end| self.pipes[end].front().map(|(at, _)| *at));
            let answer = self.answers.first_key_value().map(|((at, _), _)| *at);
            let all = [arrivals[0], arrivals[1], answer, self.wake_at[0], self.wake_at[1]];
            let next = all.into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = at.max(self.now);
            if let Some(end) = [0, 1].into_iter().find(|end| arrivals[*end] == Some(at)) {
                let (_, bytes) = self.pipes[end].pop_front().unwrap();
                self.input(end, Input::Bytes(bytes));
            } else if answer == Some(at) {
                let ((_, exchange), content) = self.answers.pop_first().unwrap();
                self.input(1, Input::Respond { exchange, content });
            } else {
                let end = usize::from(self.wake_at[0] != Some(at));
                self.wake_at[end] = None;
                self.input(end, Input::Wake);
            }
        }
        self.now = until;
    }

    fn request(&mut self, request: u64, content: Content) {
        self.input(0, Input::Request { request, content });
    }

    /// The client's responses so far: number, code, body.
    fn responses(&self) -> Vec<(u64, Code, Bytes)> {
        let response = |(end, output): &(usize, Output)| match output {
            Output::Response { request, content, .. } if *end == 0 => {
                Some((*request, content.code, content.payload.clone()))
            }
            _ => None,
        };
        self.others.iter().filter_map(response).collect()
    }

    /// What one end said, taken out.
    fn said(&mut self, end: usize) -> Vec<Output> {
        let all = std::mem::take(&mut self.others);
        let (of, others) = all.into_iter().partition(|(other, _)| *other == end);
        self.others = others;
        let of: Vec<(usize, Output)> = of;
        of.into_iter().map(|(_, output)| output).collect()
    }
}

/// One end, with a peer whose messages are written by hand.
struct ByHand {
    end: Connection,
    now: Duration,
}

impl ByHand {
    /// The connection, whose CSM is read already.
    fn new(idle: Option<Duration>) -> Self {
        let end = Connection::new(&Settings { idle, ..settings(7, Framing::Stream) });
        let mut by_hand = Self { end, now: Duration::ZERO };
        let first = by_hand.outputs();
        let [Output::Transmit(csm), Output::WakeAt(CSM_TIMEOUT)] = &first[..] else {
            panic!("{first:?}")
        };
        let (csm, _) = framed::decode(csm, 1152).unwrap().unwrap();
        assert_eq!(csm.code, Code::CSM);
        assert_eq!(csm.options.uint(signal::MAX_MESSAGE_SIZE), Some(MAX_MESSAGE_BYTES));
        assert!(csm.options.first(signal::BLOCK_WISE_TRANSFER).is_some());
        by_hand
    }

    /// The same behind the peer's CSM.
    fn established(idle: Option<Duration>, max_message_bytes: u32) -> Self {
        let mut by_hand = Self::new(idle);
        let csm = Content::new(Code::CSM)
            .with_uint(signal::MAX_MESSAGE_SIZE, max_message_bytes)
            .with(signal::BLOCK_WISE_TRANSFER, b"");
        let said = by_hand.send(Token::EMPTY, &csm);
        assert!(said.iter().all(|output| matches!(output, Output::WakeAt(_))), "{said:?}");
        assert!(by_hand.end.is_established());
        by_hand
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.end.poll_output()).collect()
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.end.handle_input(self.now, input);
        self.outputs()
    }

    fn bytes(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.input(Input::Bytes(Bytes::copy_from_slice(bytes)))
    }

    fn send(&mut self, token: Token, content: &Content) -> Vec<Output> {
        let bytes = wire::encode(Framing::Stream, token, content, u64::MAX).unwrap();
        self.input(Input::Bytes(bytes))
    }

    /// Lets time pass with nothing but wakes; what is said on the way.
    fn wait(&mut self, long: Duration) -> Vec<Output> {
        let until = self.now + long;
        let mut said = Vec::new();
        let mut wake_at = Some(self.now);
        while let Some(at) = wake_at.filter(|at| *at <= until) {
            self.now = at;
            let outputs = self.input(Input::Wake);
            wake_at = self.end.messages.timers.next().filter(|next| *next > at);
            said.extend(outputs.into_iter().filter(|it| !matches!(it, Output::WakeAt(_))));
        }
        self.now = until;
        said
    }
}

/// The messages among these, read: code, token, content.
fn sent(outputs: &[Output]) -> Vec<(Token, Content)> {
    let read = |output: &Output| match output {
        Output::Transmit(bytes) => {
            let (message, used) = framed::decode(bytes, u32::MAX).unwrap().unwrap();
            assert_eq!(used, bytes.len());
            let mut content = Content::new(message.code).with_payload(message.payload.to_vec());
            message.options.for_each(|(number, value)| content.push(number, value));
            Some((message.token, content))
        }
        _ => None,
    };
    outputs.iter().filter_map(read).collect()
}

fn token(byte: u8) -> Token {
    Token::new(&[byte]).unwrap()
}
