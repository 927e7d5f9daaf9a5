//! Two endpoints over a link that loses, doubles and reorders, in virtual time.

use std::collections::BTreeMap;

use super::*;
use crate::coap::chance::{Chance, For};

/// Enough that each kind of trouble meets each message; the whole takes a second.
const SEEDS: u64 = 10_000;
/// Requests of each side.
const REQUESTS: u64 = 4;
/// Long after the last of a request's deadlines.
const MAX_TIME: Duration = s(5000);

struct World {
    chance: Chance,
    loss_of_16: u64,
    ends: [Endpoint<u8>; 2],
    wake_at: [Option<Duration>; 2],
    /// By when it arrives: the end, the bytes.
    on_the_way: BTreeMap<(Duration, u64), (usize, Bytes)>,
    /// Answers that the application makes later.
    to_answer: BTreeMap<(Duration, u64), (usize, u64, Content)>,
    count: u64,
    /// By end and request: how often the other end's application saw it.
    seen: BTreeMap<(usize, Bytes), u32>,
    /// By end and request: how it ended.
    ended: BTreeMap<(usize, u64), Vec<Result<Bytes, Reason>>>,
}

impl World {
    fn new(seed: u64) -> Self {
        let end = |number: u64| {
            Endpoint::new(&Settings {
                is_challenging: seed % 3 == 1,
                rate_bps: (seed % 4 == 2).then_some(2400),
                seed: [seed, number],
            })
        };
        let mut chance = Chance::new([seed, 99]);
        let loss_of_16 = chance.next(For::Factor) % 9;
        Self {
            chance,
            loss_of_16,
            ends: [end(0), end(1)],
            wake_at: [None; 2],
            on_the_way: BTreeMap::new(),
            to_answer: BTreeMap::new(),
            count: 0,
            seen: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    fn is_one_in_16(&mut self, share: u64) -> bool {
        self.chance.next(For::Factor) % 16 < share
    }

    fn input(&mut self, now: Duration, end: usize, input: Input<u8>) {
        self.ends[end].handle_input(now, input);
        while let Some(output) = self.ends[end].poll_output() {
            self.take(now, end, output);
        }
    }

    fn take(&mut self, now: Duration, end: usize, output: Output<u8>) {
        self.count += 1;
        match output {
            Output::Datagram { bytes, .. } => {
                let copies = if self.is_one_in_16(3) { 2 } else { 1 };
                for copy in 0..copies {
                    let longest = if self.is_one_in_16(2) { s(20) } else { ms(400) };
                    let at = now + self.chance.between(ms(20), longest);
                    if !self.is_one_in_16(self.loss_of_16) {
                        let key = (at, self.count * 2 + copy);
                        self.on_the_way.insert(key, (1 - end, bytes.clone()));
                    }
                }
            }
            Output::Request { exchange, content, .. } => {
                *self.seen.entry((1 - end, content.payload.clone())).or_default() += 1;
                let answer = Content::new(Code::CHANGED).with_payload(content.payload);
                let slow = if self.is_one_in_16(6) { s(12) } else { ms(300) };
                let at = now + self.chance.between(ms(0), slow);
                self.to_answer.insert((at, self.count), (end, exchange, answer));
            }
            Output::Response { request, content, is_last } => {
                assert!(is_last);
                self.ended.entry((end, request)).or_default().push(Ok(content.payload));
            }
            Output::Failed { request, reason } => {
                self.ended.entry((end, request)).or_default().push(Err(reason));
            }
            Output::WakeAt(at) => self.wake_at[end] = Some(at),
            other => panic!("{other:?}"),
        }
    }

    /// Whether something happened.
    fn step(&mut self, now: &mut Duration) -> bool {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let answer = self.to_answer.first_key_value().map(|((at, _), _)| *at);
        let times = [arrival, answer, self.wake_at[0], self.wake_at[1]];
        let Some(at) = times.into_iter().flatten().min() else { return false };
        *now = at;
        assert!(at < MAX_TIME, "nothing waits for ever");
        if arrival == Some(at) {
            let (_, (end, bytes)) = self.on_the_way.pop_first().unwrap();
            let peer = if end == 0 { SERVER } else { CLIENT };
            self.input(at, end, datagram(peer, &bytes));
        } else if answer == Some(at) {
            let (_, (end, exchange, content)) = self.to_answer.pop_first().unwrap();
            self.input(at, end, Input::Respond { exchange, content });
        } else {
            let end = usize::from(self.wake_at[0] != Some(at));
            self.wake_at[end] = None;
            self.input(at, end, Input::Wake);
        }
        true
    }
}

/// A request's payload, which tells it from others.
fn payload(end: usize, request: u64) -> Bytes {
    Bytes::from(format!("{end}/{request}"))
}

#[test]
fn each_confirmable_request_is_delivered_at_most_once_and_ends_once() {
    let (mut answered, mut failed) = (0_u32, 0_u32);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for request in 0..REQUESTS {
            for end in [0, 1] {
                let content = Content::new(Code::POST).with_payload(payload(end, request));
                let peer = if end == 0 { SERVER } else { CLIENT };
                let input = Input::Request { request, peer, content, is_confirmable: true };
                world.input(ms(0), end, input);
            }
        }
        let mut now = ms(0);
        while world.step(&mut now) {}
        for (end, request) in
            [0, 1].into_iter().flat_map(|end| (0..REQUESTS).map(move |r| (end, r)))
        {
            let payload = payload(end, request);
            let seen = world.seen.get(&(end, payload.clone())).copied().unwrap_or(0);
            let ended = world.ended.get(&(end, request)).map(Vec::as_slice).unwrap_or_default();
            assert!(seen <= 1, "seed {seed}: {payload:?} came {seen} times");
            match ended {
                [Ok(answer)] => {
                    assert_eq!((answer, seen), (&payload, 1), "seed {seed}");
                    answered += 1;
                }
                [Err(Reason::TimedOut | Reason::NoAnswer)] => failed += 1,
                other => panic!("seed {seed}: {payload:?} ended as {other:?}"),
            }
        }
    }
    assert!(answered > 10 * failed && failed > 0, "{answered} answered, {failed} failed");
}
