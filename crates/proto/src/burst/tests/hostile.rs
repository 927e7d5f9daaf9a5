//! Peers that lie, and clocks that jump. What others send in a peer's name is not opened
//! (`crate::sealed`): these are of peers.

use super::*;
use crate::Error;
use crate::stream::Frame;

/// A clean link, fast enough for anything.
const CLEAN: Link = Link {
    bits_per_s: 50e6,
    delay: Duration::from_millis(5),
    loss: 0.0,
    doubles: 0.0,
    jitter: Duration::ZERO,
};
/// Numbers of datagrams that the peer has not used.
const LATER: u64 = 5000;
/// Of generations too: there was its HELLO alone.
const NEXT_GENERATION: u64 = FIRST_GENERATION + 1;
/// What one that lies answers after.
const ROUND_TRIP: Duration = Duration::from_millis(10);
/// Most bytes that leave without anything new: twice the first window of `pace`.
const MAX_AT_ONCE: usize = 20 * FULL_BYTES;

/// Both have greeted, and nothing is under way.
fn quiet() -> World {
    let mut world = World::greeted(CLEAN, 1);
    while world.step() {}
    world
}

/// What one end makes of a datagram with these.
fn made_of(end: &mut Machine, now: Duration, number: u64, chunks: &[Chunk]) -> Vec<Output> {
    let mut writer = Writer::new(number, 2 * MAX_DATAGRAM_BYTES);
    chunks.iter().for_each(|chunk| writer.push(chunk));
    end.handle_input(now, Input::Datagram(writer.finish()));
    std::iter::from_fn(|| end.poll_output()).collect()
}

/// The fault that there is, and only one; nothing comes of anything after it.
fn only_fault(end: &mut Machine, now: Duration, outputs: &[Output]) -> Error {
    let faults: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Fault(error) => Some(error.clone()),
            _ => None,
        })
        .collect();
    assert!(matches!(outputs.last(), Some(Output::Fault(_))), "{outputs:?}");
    assert!(made_of(end, now, LATER + 99, &[Chunk::Probe]).is_empty());
    end.handle_input(now + Duration::from_secs(60), Input::Wake);
    assert!(end.poll_output().is_none());
    let [fault] = <[Error; 1]>::try_from(faults).unwrap();
    fault
}

fn ack(ranges: &[(u64, u64)], delay: Duration) -> Chunk {
    Chunk::Ack(Ack { delay, ranges: ranges.to_vec() })
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_the_carrier_in_one_line() {
    for beyond in [0, 1, 1000, 1 << 40] {
        let World { ends: [mut end, _], now, .. } = quiet();
        let probed = made_of(&mut end, now, LATER, &[Chunk::Probe]);
        let Some(Output::Datagram(answer)) = probed.first() else { panic!("{probed:?}") };
        let next = packet::decode(answer).unwrap().0 + 1;
        // With what was sent, or alone.
        for first in [1, next + beyond] {
            let World { ends: [mut other, _], .. } = quiet();
            let ranges = [(first, next + beyond)];
            made_of(&mut other, now, LATER, &[Chunk::Probe]);
            let made = made_of(&mut other, now, LATER + 1, &[ack(&ranges, Duration::ZERO)]);
            let Error::Peer { what, value } = only_fault(&mut other, now, &made) else { panic!() };
            assert_eq!((what, value), ("an acknowledgement of what was not sent", next + beyond));
        }
    }
}

/// What a peer says of those that left since it last said something: ranges, and what it waited.
type Lie = fn(&[u64]) -> Option<(Vec<(u64, u64)>, Duration)>;

/// What one end sends a peer that lies, in a minute: bytes that left, that were acknowledged, and
/// the most that left at once.
fn believed(lie: Lie, at_once: bool) -> (usize, usize, usize) {
    let World { ends: [mut end, _], now: began, .. } = quiet();
    let (mut now, mut number) = (began, LATER);
    for part in message(1, 1_000_000) {
        end.handle_input(now, Input::Send(part, Urgency::DEFAULT));
    }
    let held = end.held_bytes();
    let (mut left, mut acknowledged, mut most) = (0, 0, 0);
    let mut since: BTreeMap<u64, usize> = BTreeMap::new();
    while now < began + Duration::from_secs(60) {
        end.handle_input(now, Input::Wake);
        let (mut wake_at, mut burst) = (Duration::MAX, 0);
        while let Some(output) = end.poll_output() {
            match output {
                Output::Datagram(bytes) => {
                    let (number, _) = packet::decode(&bytes).unwrap();
                    since.insert(number, bytes.len());
                    burst += bytes.len();
                }
                Output::WakeAt(at) => wake_at = at,
                other => panic!("{other:?}"),
            }
        }
        (left, most) = (left + burst, most.max(burst));
        assert!(end.held_bytes() <= held, "{} bytes are held", end.held_bytes());
        if !at_once {
            now = wake_at.min(now + ROUND_TRIP);
        }
        let numbers: Vec<u64> = since.keys().copied().collect();
        if let Some((ranges, delay)) = lie(&numbers).filter(|_| !numbers.is_empty()) {
            let of = |(first, last): &(u64, u64)| -> usize {
                since.range(first..=last).map(|(_, bytes)| bytes).sum()
            };
            acknowledged += ranges.iter().map(of).sum::<usize>();
            since.clear();
            number += 1;
            let mut writer = Writer::new(number, MAX_DATAGRAM_BYTES);
            writer.push(&ack(&ranges, delay));
            end.handle_input(now, Input::Datagram(writer.finish()));
        } else if at_once {
            now += ROUND_TRIP;
        }
        // Nothing goes on by itself at the same moment for ever.
        now += Duration::from_micros(50);
    }
    (left, acknowledged, most)
}

fn all(numbers: &[u64]) -> Vec<(u64, u64)> {
    numbers.first().copied().zip(numbers.last().copied()).into_iter().collect()
}

#[test]
fn feedback_that_lies_makes_an_end_send_no_more_than_its_bounds() {
    const AGES: Duration = Duration::from_secs(1 << 30);
    let last: Lie = |numbers| Some((vec![(*numbers.last()?, *numbers.last()?)], Duration::ZERO));
    let nothing: Lie = |_| None;
    let prompt: Lie = |numbers| Some((all(numbers), Duration::ZERO));
    let late: Lie = |numbers| Some((all(numbers), AGES));
    // All lost for ever: what leaves is to ask, and less often the longer that lasts.
    let (left, _, most) = believed(nothing, false);
    println!("nothing arrives: {left} bytes, {most} at once");
    assert!(left < 60 * FULL_BYTES && most <= MAX_AT_ONCE, "{left} {most}");
    // Nearly all lost: not more than the greatest loss that is believed makes of what arrives.
    let (left, acknowledged, most) = believed(last, false);
    println!("the last arrives: {left} bytes for {acknowledged}, {most} at once");
    assert!(left < 11 * acknowledged && most <= MAX_AT_ONCE, "{left} {most}");
    // A rate without end, by no time at all and by waits longer than the path.
    for (lie, at_once) in [(prompt, true), (late, false), (late, true)] {
        let (left, acknowledged, most) = believed(lie, at_once);
        println!("at once ({at_once}): {left} bytes for {acknowledged}, {most} at once");
        assert!(left < 2_000_000 && most <= MAX_AT_ONCE, "{left} {most}");
    }
}

/// Frames of a peer's message, as parts and in a generation of so many symbols.
fn generation(exchange: u64) -> (Vec<Part>, Shape, Vec<Bytes>) {
    let parts: Vec<Part> = (0..90)
        .map(|at| {
            let head = Bytes::from(vec![at; 20]);
            let exchange = exchange + u64::from(at);
            Part::Head(Head { exchange, codec: 0, window_log: 0, end: true, head })
        })
        .collect();
    let mut bytes = Vec::new();
    parts.iter().for_each(|part| Frame::Part(part.clone()).encode(&mut bytes));
    let shape = Shape::new(bytes.len(), MAX_SYMBOL_BYTES);
    let mut symbols = shape.cut(&bytes.into());
    let repair = shape.repair_of(&symbols);
    symbols.extend(repair);
    (parts, shape, symbols)
}

/// What an end at the gateway makes of symbols, each with its index, of its next generation.
fn restored(symbols: &[(usize, Bytes)], shape: Shape) -> (Vec<Part>, Option<Error>) {
    let World { ends: [_, mut end], now, .. } = quiet();
    let generation = NEXT_GENERATION;
    let (mut parts, mut fault) = (Vec::new(), None);
    for (number, (index, bytes)) in (LATER..).zip(symbols) {
        let (after, index, bytes) = (0, *index, bytes.clone());
        let symbol = Chunk::Symbol(Symbol { generation, after, shape, index, bytes });
        for output in made_of(&mut end, now, number, &[symbol]) {
            assert!(fault.is_none(), "an output behind the fault");
            match output {
                Output::Received(part) => parts.push(part),
                Output::Fault(error) => fault = Some(error),
                _ => {}
            }
        }
    }
    (parts, fault)
}

#[test]
fn symbols_that_are_forged_or_of_another_message_make_no_message_of_it() {
    let (parts, shape, symbols) = generation(100);
    let (_, others_shape, others) = generation(300);
    assert!(shape.count > 1 && shape == others_shape, "{shape:?} {others_shape:?}");
    let count = shape.count;
    let true_ones: Vec<_> = (1..=count).map(|at| (at, symbols[at].clone())).collect();
    assert_eq!(restored(&true_ones, shape), (parts.clone(), None));
    let forged: Bytes = symbols[count].iter().map(|byte| byte ^ 0x55).collect();
    for (what, bad) in [("forged", forged), ("of another", others[count].clone())] {
        let mut mixed = true_ones.clone();
        mixed[count - 1].1 = bad;
        let (read, fault) = restored(&mixed, shape);
        // What is in the symbols that came as they are is what it was.
        let same = read.iter().zip(&parts).filter(|(read, part)| read == part).count();
        assert!(read.len() < parts.len() && fault.is_some(), "{what}: {fault:?}");
        println!("{what}: {same} of {} are as they were, then {fault:?}", read.len());
    }
    // One that says that it is of another shape.
    let shape = Shape { length: shape.length - 2, ..shape };
    let World { ends: [_, mut end], now, .. } = quiet();
    let generation = NEXT_GENERATION;
    let symbol = |shape: Shape, index| {
        let bytes = Bytes::from(vec![0; shape.symbol_bytes()]);
        Chunk::Symbol(Symbol { generation, after: 0, shape, index, bytes })
    };
    let wider = Shape { length: shape.length * 2, count: shape.count };
    assert!(made_of(&mut end, now, LATER, &[symbol(shape, 0)]).len() <= 2);
    let made = made_of(&mut end, now, LATER + 1, &[symbol(wider, 1)]);
    let Error::Peer { what, value } = only_fault(&mut end, now, &made) else { panic!() };
    assert_eq!((what, value), ("two shapes of generation", generation));
}

#[test]
fn generations_that_are_never_whole_take_no_more_than_their_bound() {
    let World { ends: [_, mut end], now, .. } = quiet();
    let first = NEXT_GENERATION;
    let shape = Shape::new(3 * MAX_SYMBOL_BYTES, MAX_SYMBOL_BYTES);
    let bytes = Bytes::from(vec![0; shape.symbol_bytes()]);
    let (mut came, mut made) = (0, Vec::new());
    for (at, number) in (LATER..LATER + 4 * MAX_AHEAD).enumerate() {
        // Two of three symbols each.
        let (generation, index) = (first + at as u64 / 2, at % 2);
        let bytes = bytes.clone();
        let symbol = Symbol { generation, after: 0, shape, index, bytes };
        made = made_of(&mut end, now, number, &[Chunk::Symbol(symbol)]);
        came += shape.symbol_bytes();
        if made.iter().any(|output| matches!(output, Output::Fault(_))) {
            break;
        }
    }
    let Error::Limit { limit, .. } = only_fault(&mut end, now, &made) else { panic!("{made:?}") };
    assert_eq!(limit, MAX_HELD_BYTES as u64);
    assert!(came <= MAX_HELD_BYTES + shape.symbol_bytes(), "{came}");
    // Nor is one kept that is far ahead.
    let World { ends: [_, mut end], now, .. } = quiet();
    let far = NEXT_GENERATION + MAX_AHEAD;
    let symbol = Symbol { generation: far, after: 0, shape, index: 0, bytes };
    let made = made_of(&mut end, now, LATER, &[Chunk::Symbol(symbol)]);
    let Error::Limit { value, .. } = only_fault(&mut end, now, &made) else { panic!("{made:?}") };
    assert_eq!(value, far);
}

/// A machine that stood still, or whose clock was put forward: nothing is lost or doubled, and what
/// waited is not the path's.
#[test]
fn a_clock_that_jumps_loses_and_doubles_nothing_and_is_soon_over() {
    for seed in 0..60 {
        let end = seed as usize % 2;
        let jump = [1, 60, 3600, 30 * 86_400][seed as usize / 2 % 4];
        let link = Link { loss: [0.0, 0.2][seed as usize / 8 % 2], ..WIFI2 };
        let mut world = World::greeted(link, seed);
        let mut wanted = 0;
        for exchange in 1..=3 {
            let parts = message(exchange, 60_000);
            wanted += parts.len();
            world.send(0, parts);
        }
        let at = world.now + Duration::from_millis(300);
        while world.now < at {
            assert!(world.step(), "seed {seed}");
        }
        world.ahead[end] += Duration::from_secs(jump);
        let jumped = world.now;
        // It wakes to find that its time has come.
        world.input(end, Input::Wake);
        let took = world.until(1, wanted) - jumped;
        assert!(took < Duration::from_secs(30), "seed {seed}, {jump} s, end {end}: {took:?}");
        // Short ones, whose loss no later datagram shows.
        for exchange in 4..=14 {
            for from in [0, 1] {
                let (began, parts) = (world.now, message(exchange, 500));
                let all = world.got[1 - from].len() + parts.len();
                world.send(from, parts);
                let took = world.until(1 - from, all) - began;
                let soon = Duration::from_secs(20);
                assert!(took < soon, "seed {seed}, {jump} s, end {end}: {took:?}");
            }
        }
        let before = world.got.each_ref().map(Vec::len);
        let bound = world.now + Duration::from_secs(600);
        while world.step() {
            assert!(world.now < bound, "seed {seed}: never quiet");
        }
        assert_eq!(world.got.each_ref().map(Vec::len), before, "seed {seed}: one came twice");
        assert!(world.ends.iter().all(|end| end.held_bytes() == 0), "seed {seed}");
    }
}
