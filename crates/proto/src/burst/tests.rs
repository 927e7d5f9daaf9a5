//! Two ends over links that lose, delay, double and reorder, in virtual time.

#![allow(clippy::cast_possible_truncation)] // Small numbers.

mod hostile;
mod lengths;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::code::{Shape, repairs};
use super::packet::{self, Ack, Chunk, Symbol, Writer};
use super::*;
use crate::carrier::{Input, Machine as _, Output, Setup};
use crate::exchange::{Data, Head, Part, Role};
use crate::urgency::Urgency;

/// Messages of which the times are taken.
const TIMES: u64 = 60;
/// Seeds of each property that is tried on many.
const SEEDS: u64 = 300;

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    fn is(&mut self, share: f64) -> bool {
        (self.below(1 << 40) as f64) < share * (1_u64 << 40) as f64
    }
}

/// What a direction of a link does to datagrams.
#[derive(Clone, Copy)]
struct Link {
    bits_per_s: f64,
    delay: Duration,
    loss: f64,
    doubles: f64,
    /// By so much one may be later than it should be.
    jitter: Duration,
}

const WIFI2: Link = Link {
    bits_per_s: 2e6,
    delay: Duration::from_millis(100),
    loss: 0.2,
    doubles: 0.0,
    jitter: Duration::ZERO,
};

const CNR: Link = Link {
    bits_per_s: 9_600.0,
    delay: Duration::from_millis(100),
    loss: 0.01,
    doubles: 0.0,
    jitter: Duration::ZERO,
};

struct World {
    now: Duration,
    ends: [Machine; 2],
    link: Link,
    busy: [Duration; 2],
    wakes: [Option<Duration>; 2],
    /// What is on its way, by when it comes.
    coming: BTreeMap<(Duration, u64), (usize, Bytes)>,
    sequence: u64,
    random: Random,
    got: [Vec<Part>; 2],
    /// Bytes of datagrams that each end sent.
    sent: [usize; 2],
    /// The longest that a datagram of each end waited for the link.
    longest: [Duration; 2],
    /// None overtakes another; when the latest of each end comes.
    in_order: bool,
    latest: [Duration; 2],
    /// By so much each end's clock is ahead.
    ahead: [Duration; 2],
    /// Longer datagrams are swallowed.
    passes: usize,
    /// The longest datagram that each end sent.
    longest_bytes: [usize; 2],
}

fn setup(role: Role) -> Setup {
    let instance = if role == Role::Edge { 1 } else { 9 };
    let (initial_credit, max_exchanges, max_window_log) = (1 << 30, 256, 20);
    let (codecs, own_bytes_per_s) = (vec![0], None);
    Setup { role, instance, initial_credit, max_exchanges, codecs, max_window_log, own_bytes_per_s }
}

impl World {
    fn new(link: Link, seed: u64) -> Self {
        Self::with(link, seed, None)
    }

    /// `own_bytes_per_s`: of the ends' setups.
    fn with(link: Link, seed: u64, own_bytes_per_s: Option<u64>) -> Self {
        let end = |role| Machine::new(Setup { own_bytes_per_s, ..setup(role) });
        let mut world = Self {
            now: Duration::ZERO,
            ends: [Role::Edge, Role::Gateway].map(end),
            link,
            busy: [Duration::ZERO; 2],
            wakes: [None; 2],
            coming: BTreeMap::new(),
            sequence: 0,
            random: Random::new(seed),
            got: [Vec::new(), Vec::new()],
            sent: [0; 2],
            longest: [Duration::ZERO; 2],
            in_order: false,
            latest: [Duration::ZERO; 2],
            ahead: [Duration::ZERO; 2],
            passes: usize::MAX,
            longest_bytes: [0; 2],
        };
        (0..2).for_each(|end| world.input(end, Input::Wake));
        world
    }

    fn input(&mut self, end: usize, input: Input) {
        self.ends[end].handle_input(self.now + self.ahead[end], input);
        while let Some(output) = self.ends[end].poll_output() {
            match output {
                Output::Received(part) => self.got[end].push(part),
                Output::Datagram(bytes) => self.leaves(end, &bytes),
                Output::WakeAt(at) => self.wakes[end] = Some(at.saturating_sub(self.ahead[end])),
                Output::Greeted | Output::Answered(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn leaves(&mut self, end: usize, bytes: &Bytes) {
        assert!(bytes.len() <= MAX_DATAGRAM_BYTES);
        self.sent[end] += bytes.len() + 28;
        let waits = self.busy[end].saturating_sub(self.now);
        self.longest[end] = self.longest[end].max(waits);
        let bits = ((bytes.len() + 28) * 8) as f64;
        let out =
            self.busy[end].max(self.now) + Duration::from_secs_f64(bits / self.link.bits_per_s);
        self.busy[end] = out;
        self.longest_bytes[end] = self.longest_bytes[end].max(bytes.len());
        let is_lost = self.random.is(self.link.loss) || bytes.len() > self.passes;
        let times = usize::from(!is_lost);
        let times = times + usize::from(self.random.is(self.link.doubles));
        for _ in 0..times {
            let jitter = self.link.jitter.mul_f64(self.random.below(1000) as f64 / 1000.0);
            self.sequence += 1;
            let at = out + self.link.delay + jitter;
            let at = if self.in_order { at.max(self.latest[end]) } else { at };
            self.latest[end] = at;
            let at = (at, self.sequence);
            self.coming.insert(at, (1 - end, bytes.clone()));
        }
    }

    /// The next thing that happens; `false` where nothing does any more.
    fn step(&mut self) -> bool {
        let coming = self.coming.first_key_value().map(|((at, _), _)| *at);
        let wakes = self.wakes.map(|at| at.unwrap_or(Duration::MAX));
        let wake = usize::from(wakes[1] < wakes[0]);
        match coming {
            Some(at) if at <= wakes[wake] => {
                let Some((_, (end, bytes))) = self.coming.pop_first() else { return false };
                self.now = self.now.max(at);
                self.input(end, Input::Datagram(bytes));
            }
            _ if wakes[wake] < Duration::MAX => {
                self.now = self.now.max(wakes[wake]);
                self.wakes[wake] = None;
                self.input(wake, Input::Wake);
            }
            _ => return false,
        }
        true
    }

    /// Until an end has so many parts; when that is.
    fn until(&mut self, end: usize, parts: usize) -> Duration {
        let bound = self.now + Duration::from_secs(600);
        while self.got[end].len() < parts {
            assert!(self.step(), "nothing happens any more");
            assert!(self.now < bound, "{} of {parts} after 600 s", self.got[end].len());
        }
        self.now
    }

    /// Both ends have said HELLO, and all of that is over.
    fn greeted(link: Link, seed: u64) -> Self {
        let mut world = Self::new(link, seed);
        world.greet();
        world
    }

    fn greet(&mut self) {
        while self.ends.iter().any(|end| end.peer().is_none()) {
            assert!(self.step());
        }
    }

    fn send(&mut self, end: usize, parts: Vec<Part>) {
        self.send_as(end, parts, Urgency::DEFAULT);
    }

    fn send_as(&mut self, end: usize, parts: Vec<Part>, urgency: Urgency) {
        let input = |part| Input::Send(part, urgency);
        let now = self.now + self.ahead[end];
        parts.into_iter().for_each(|part| self.ends[end].handle_input(now, input(part)));
        self.input(end, Input::Wake);
    }
}

/// A message of an exchange with a body of so many bytes.
fn message(exchange: u64, bytes: usize) -> Vec<Part> {
    let head = Bytes::from_static(b"a head of thirty bytes or so..");
    let (codec, window_log) = (0, 0);
    let mut parts = vec![Part::Head(Head { exchange, codec, window_log, end: bytes == 0, head })];
    let mut left = bytes;
    while left > 0 {
        let len = left.min(16 << 10);
        left -= len;
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + left + len * 3) as u8).collect();
        let (block_end, uncoded, anew, padding) = (Some(len as u64), true, false, None);
        let bytes = bytes.into();
        let end = left == 0;
        parts.push(Part::Data(Data { exchange, block_end, uncoded, anew, end, padding, bytes }));
    }
    parts
}

#[test]
fn any_symbols_that_are_enough_restore_a_generation() {
    let mut random = Random::new(1);
    for length in [1, 2, 7, 1160, 1161, 5000, 33_333, MAX_GENERATION_BYTES] {
        let bytes: Bytes = (0..length).map(|at| (at * 31 + 7) as u8).collect();
        let shape = Shape::new(length, MAX_SYMBOL_BYTES);
        assert_eq!(Shape::of_peer(length as u64, shape.count as u64), Ok(shape));
        let mut symbols = shape.cut(&bytes);
        let repair = shape.repair_of(&symbols);
        symbols.extend(repair);
        assert_eq!(symbols.len(), shape.symbols());
        assert!(symbols.iter().all(|one| one.len() == shape.symbol_bytes()));
        for _ in 0..20 {
            let mut chosen = BTreeMap::new();
            while chosen.len() < shape.count {
                let index = random.below(symbols.len() as u64) as usize;
                chosen.insert(index, symbols[index].clone());
            }
            let chosen = chosen.iter().map(|(index, bytes)| (*index, bytes));
            assert_eq!(shape.restore(chosen).unwrap(), bytes, "{length}");
        }
    }
}

#[test]
fn repair_is_sent_where_it_is_cheaper_than_to_wait() {
    // A loss that costs a second, and symbols of a millisecond.
    assert_eq!(repairs(20, 48, 0.0, 0.001, 1.0), 0);
    let few = repairs(20, 48, 0.01, 0.001, 1.0);
    let many = repairs(20, 48, 0.2, 0.001, 1.0);
    assert!(few > 0 && many > few && many < 30, "{few} {many}");
    // Where a symbol takes as long as a round trip, and where nobody waits, there is none.
    assert_eq!(repairs(20, 48, 0.2, 1.0, 1.0), 0);
    assert_eq!(repairs(20, 48, 0.2, 0.001, 0.0), 0);
}

#[test]
fn datagrams_read_as_they_were_written() {
    let shape = Shape::new(3000, MAX_SYMBOL_BYTES);
    let bytes = Bytes::from(vec![7; shape.symbol_bytes()]);
    let symbol = Symbol { generation: 300, after: 7, shape, index: 5, bytes };
    let alone = Shape::new(3, MAX_SYMBOL_BYTES);
    let bytes = Bytes::from_static(b"abc");
    let single = Symbol { generation: 1, after: 0, shape: alone, index: 0, bytes };
    let ranges = vec![(90, 100), (80, 80), (0, 78)];
    let ack = Ack { delay: Duration::from_micros(6400), ranges };
    let chunks = vec![
        Chunk::Ack(ack),
        Chunk::Symbol(symbol.clone()),
        Chunk::Probe,
        Chunk::Symbol(single.clone()),
    ];
    let mut writer = Writer::new(77, 2 * MAX_DATAGRAM_BYTES);
    chunks.iter().for_each(|chunk| writer.push(chunk));
    let before = writer.room_bytes();
    writer.push(&Chunk::Symbol(single.clone()));
    assert_eq!(before - writer.room_bytes(), single.wire_len());
    let mut all = chunks;
    all.push(Chunk::Symbol(single));
    let datagram = writer.finish();
    assert_eq!(packet::decode(&datagram), Ok((77, all)));
    for cut in 0..datagram.len() {
        // Never a panic, and what is cut off is missed or what is left of it is read.
        let _ = packet::decode(&datagram.slice(..cut));
    }
}

#[test]
fn a_link_of_ones_own_is_filled_at_once_and_has_no_queue() {
    for (bits_per_s, bytes, loss) in
        [(2e6, 200_000, 0.0), (2e6, 200_000, 0.2), (9_600.0, 8_000, 0.0)]
    {
        let link = Link { bits_per_s, loss, ..WIFI2 };
        let own_bytes_per_s = Some(bits_per_s as u64 / 8);
        let took = |own_bytes_per_s: Option<u64>| {
            let mut world = World::with(link, 3, own_bytes_per_s);
            world.greet();
            let began = world.now;
            world.send(0, message(1, bytes));
            let parts = message(1, bytes).len();
            (world.until(1, parts) - began, world.longest[0])
        };
        let (own, longest) = took(own_bytes_per_s);
        let full = Duration::from_secs_f64(FULL_BYTES as f64 * 8.0 / bits_per_s);
        // One that only acknowledges may leave beside.
        assert!(longest <= 2 * full, "{bits_per_s} bit/s, loss {loss}: waits {longest:?}");
        let least = bytes as f64 * 8.0 / bits_per_s / (1.0 - loss);
        let most = Duration::from_secs_f64(least * 1.15) + 2 * link.delay + 2 * full;
        let found = took(None).0;
        assert!(own < found.max(most) && own < most.mul_f64(1.0 + loss), "{own:?} {found:?}");
    }
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_the_link_does() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed + 1000);
        let link = Link {
            bits_per_s: [9_600.0, 256e3, 2e6, 50e6][random.below(4) as usize],
            delay: Duration::from_millis(random.below(600)),
            loss: [0.0, 0.01, 0.1, 0.3][random.below(4) as usize],
            doubles: [0.0, 0.1][random.below(2) as usize],
            jitter: Duration::from_millis([0, 5, 80][random.below(3) as usize]),
        };
        let mut world = World::greeted(link, seed);
        let most = if link.bits_per_s < 1e5 { 4_000 } else { 120_000 };
        let mut wanted = Vec::new();
        for exchange in 1..=4 {
            let parts = message(exchange, random.below(most) as usize);
            wanted.extend(parts.iter().cloned());
            world.send(0, parts);
        }
        world.until(1, wanted.len());
        for exchange in 1..=4 {
            let of = |parts: &[Part]| {
                let its = parts.iter().filter(|part| part.exchange() == Some(exchange));
                its.cloned().collect::<Vec<_>>()
            };
            assert!(of(&world.got[1]) == of(&wanted), "seed {seed}, exchange {exchange}");
        }
        // What the peer has is let go, and nothing is said any more.
        let bound = world.now + Duration::from_secs(600);
        while world.step() {
            assert!(world.now < bound, "seed {seed}: never quiet");
        }
        assert_eq!(world.got[1].len(), wanted.len(), "seed {seed}");
        assert!(world.ends.iter().all(|end| end.held_bytes() == 0), "seed {seed}");
    }
}

/// The median and the 95th percentile of what a message takes one way, and the mean of the bytes
/// sent for it.
fn times(link: Link, bytes: usize) -> (f64, f64, f64) {
    let (mut took, mut spent) = (Vec::new(), 0);
    for seed in 0..TIMES {
        let mut world = World::greeted(link, seed);
        // The path has been seen.
        for exchange in 1..=5 {
            let parts = message(exchange, 20_000);
            let all = world.got[1].len() + parts.len();
            world.send(0, parts);
            world.until(1, all);
            let pause = world.now + Duration::from_secs(1);
            while world.now < pause && world.step() {}
        }
        let (began, sent) = (world.now, world.sent[0]);
        let parts = message(9, bytes);
        let all = world.got[1].len() + parts.len();
        world.send(0, parts);
        took.push((world.until(1, all) - began).as_secs_f64());
        spent += world.sent[0] - sent;
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[(TIMES as f64 * share) as usize];
    (at(0.5), at(0.95), spent as f64 / TIMES as f64)
}

#[test]
fn a_fifth_lost_costs_a_fraction_of_the_time() {
    for bytes in [2_000, 20_000, 200_000] {
        let (median, p95, spent) = times(WIFI2, bytes);
        let (clean, ..) = times(Link { loss: 0.0, ..WIFI2 }, bytes);
        println!("{bytes} bytes: {clean:.3} s, lossy {median:.3}, p95 {p95:.3}, {spent:.0} bytes");
        assert!(median <= 1.4 * clean && p95 <= 1.7 * clean, "{bytes}: {clean} {median} {p95}");
        assert!(spent <= 2.5 * bytes as f64 + 3000.0, "{bytes}: {spent}");
    }
}

/// What urgent messages take one way, from the least to the longest, while bulk of the usual
/// urgency fills the link for so long; and the share of the link that the bulk had.
fn beside_bulk(link: Link, urgency: Urgency, lasts: Duration, seed: u64) -> (Vec<f64>, f64) {
    const PIECE_BYTES: usize = 2048;
    let mut world = World::greeted(link, seed);
    let mut random = Random::new(seed + 77);
    let (mut began, mut took, mut bulk) = (BTreeMap::new(), Vec::new(), 0);
    world.send(0, message(1, PIECE_BYTES)[..1].to_vec());
    world.until(1, 1);
    world.send(1, vec![Part::Credit(1, 1 << 30)]);
    world.until(0, 1);
    let (from, mut next, mut exchange, mut seen) = (world.now, world.now, 2, 0);
    while world.now < from + lasts {
        while world.ends[0].unsent_bytes(Urgency::DEFAULT) < PIECE_BYTES {
            let piece = message(1, 2 * PIECE_BYTES).remove(1);
            let Part::Data(piece) = piece else { panic!("a piece of the body") };
            let bytes = piece.bytes.slice(..PIECE_BYTES);
            let block_end = Some(PIECE_BYTES as u64);
            world.send(0, vec![Part::Data(Data { bytes, block_end, end: false, ..piece })]);
        }
        if world.now >= next && world.now > from + Duration::from_secs(120) {
            next = world.now + Duration::from_millis(2000 + random.below(2000));
            began.insert(exchange, world.now);
            world.send_as(0, message(exchange, 200), urgency);
            exchange += 1;
        }
        assert!(world.step());
        let new = world.got[1][seen..].to_vec();
        seen += new.len();
        for part in new {
            match part {
                Part::Data(data) if data.exchange == 1 => bulk += data.bytes.len(),
                Part::Data(data) => {
                    took.push((world.now - began[&data.exchange]).as_secs_f64());
                    world.send_as(1, message(data.exchange, 0), urgency);
                }
                _ => {}
            }
        }
    }
    took.sort_by(f64::total_cmp);
    let share = bulk as f64 * 8.0 / link.bits_per_s / (world.now - from).as_secs_f64();
    (took, share)
}

#[test]
fn what_is_urgent_passes_what_fills_a_slow_link() {
    for urgency in [Urgency::FIRST, Urgency::DEFAULT] {
        let (took, share) = beside_bulk(CNR, urgency, Duration::from_secs(1200), 1);
        let at = |share: f64| took[(took.len() as f64 * share) as usize];
        let (median, p99) = (at(0.5), at(0.99));
        println!("{} of {urgency}: {median:.3} p99 {p99:.3}, bulk {share:.3}", took.len());
        // A full datagram takes a second, and half of one is on its way as a rule.
        let (most, longest) = if urgency == Urgency::FIRST { (1.4, 2.0) } else { (4.0, 9.0) };
        assert!(median < most && p99 < longest, "{urgency}: {median} {p99}");
        assert!(share > 0.75, "{urgency}: {share}");
    }
}

#[test]
fn round_trips_that_vary_do_not_slow_a_slow_link_down() {
    for (bits_per_s, jitter) in [(256e3, 40), (256e3, 60), (64e3, 200)] {
        let (delay, jitter) = (Duration::from_millis(100), Duration::from_millis(jitter));
        let link = Link { bits_per_s, delay, loss: 0.0, doubles: 0.0, jitter };
        let (_, share) = beside_bulk(link, Urgency::DEFAULT, Duration::from_secs(240), 3);
        println!("{bits_per_s} bit/s, {jitter:?}: bulk {share:.3}");
        assert!(share > 0.7, "{bits_per_s} {jitter:?}: {share}");
    }
}

/// What a datagram of an end that answers waits for the link at most, from two minutes on, where
/// so many ask again as soon as they have their answers; and the share of the link that these have.
/// Of the answers, little is given to the machine ahead of what leaves.
fn answers_in_turn(link: Link, clients: u64, answer_bytes: usize, seed: u64) -> (Duration, f64) {
    const AHEAD_BYTES: usize = 2048;
    let mut world = World::greeted(link, seed);
    let (mut next, mut bytes) = (1, 0);
    let mut pieces = VecDeque::new();
    let (warm, ends) = (Duration::from_secs(120), Duration::from_secs(600));
    let mut ask = |world: &mut World| {
        world.send(0, message(next, 200));
        next += 1;
    };
    (0..clients).for_each(|_| ask(&mut world));
    while world.now < ends {
        let is_warm = world.now < warm;
        assert!(world.step());
        if is_warm {
            (world.longest[1], bytes) = (Duration::ZERO, 0);
        }
        let requests = world.got[1].split_off(0);
        for part in requests {
            let Part::Data(Data { exchange, end: true, .. }) = part else { continue };
            let [head, body] = <[Part; 2]>::try_from(message(exchange, answer_bytes)).unwrap();
            let Part::Data(body) = body else { panic!("a body") };
            pieces.push_back(head);
            for at in (0..answer_bytes).step_by(AHEAD_BYTES) {
                let piece = body.bytes.slice(at..(at + AHEAD_BYTES).min(answer_bytes));
                let (block_end, end) = (Some(piece.len() as u64), at + AHEAD_BYTES >= answer_bytes);
                pieces.push_back(Part::Data(Data { bytes: piece, block_end, end, ..body.clone() }));
            }
        }
        while world.ends[1].unsent_bytes(Urgency::DEFAULT) < AHEAD_BYTES
            && let Some(piece) = pieces.pop_front()
        {
            world.send(1, vec![piece]);
        }
        for part in world.got[0].split_off(0) {
            let Part::Data(data) = part else { continue };
            bytes += data.bytes.len();
            if data.end {
                ask(&mut world);
            }
        }
    }
    let share = bytes as f64 * 8.0 / link.bits_per_s / (world.now - warm).as_secs_f64();
    (world.longest[1], share)
}

#[test]
fn short_answers_in_turn_leave_no_queue_on_a_slow_link() {
    let full = Duration::from_secs_f64(FULL_BYTES as f64 * 8.0 / CNR.bits_per_s);
    for (clients, answer_bytes) in [(4, 5_000), (1, 5_000), (4, 1_500), (4, 12_000)] {
        for seed in 0..5 {
            let (longest, share) = answers_in_turn(CNR, clients, answer_bytes, seed);
            println!("{clients} of {answer_bytes}: waits {longest:?}, {share:.3} of the link");
            let most = if clients == 1 { 3.5 } else { 2.0 };
            assert!(longest <= full.mul_f64(most), "{clients} of {answer_bytes}: {longest:?}");
            assert!(share > 0.7, "{clients} of {answer_bytes}: {share:.3}");
        }
    }
}

/// Of a path that is only late, little may not be taken for slow.
#[test]
fn little_over_a_fast_link_that_varies_does_not_make_it_slow() {
    let (mut at_once, mut later) = (0.0, 0.0);
    for seed in 0..40 {
        let jitter = Duration::from_millis([200, 400, 600][seed as usize % 3]);
        let link = Link { loss: 0.0, jitter, ..WIFI2 };
        let took = |before: u64| {
            let mut world = World::greeted(link, seed);
            world.in_order = true;
            let mut parts = 0;
            for exchange in 0..before {
                world.send(0, message(exchange + 2, 1_500));
                parts += 2;
                // Several are under way at a time.
                if exchange % 4 == 3 {
                    world.until(1, parts);
                }
            }
            let began = world.until(1, parts);
            let bulk = message(1, 200_000);
            parts += bulk.len();
            world.send(0, bulk);
            (world.until(1, parts) - began).as_secs_f64()
        };
        at_once += took(0);
        later += took(100);
    }
    println!("{at_once:.3} s, {later:.3} s");
    assert!(later < at_once * 1.3, "{at_once:.3} s, {later:.3} s");
}
