//! The carrier over QUIC: any bytes on the streams of one end, and a pair of ends whose streams
//! arrive in any order. Each ends in a fault or goes on, and what comes of an exchange is what was
//! sent, in order.
#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::carrier::{Input, Machine as _, Output, Piece, Setup};
use proto::exchange::{Abort, Data, Head, Part, Role};
use proto::quic::Machine;
use proto::urgency::Urgency;

/// Exchanges that a script opens at most.
const MAX_EXCHANGES: u64 = 12;

fn end(role: Role) -> Machine {
    Machine::new(Setup {
        role,
        instance: 1,
        initial_credit: 64 * 1024,
        max_exchanges: 8,
        codecs: vec![0, 1, 2],
        max_window_log: 20,
        own_bytes_per_s: None,
    })
}

/// Each step has the stream, whether it ends there, and how many bytes go.
fn hostile(role: Role, data: &[u8]) {
    let (mut machine, mut faulted, mut rest) = (end(role), false, data);
    while let Some((&[stream, bytes], behind)) = rest.split_first_chunk() {
        let (piece, behind) = behind.split_at(usize::from(bytes).min(behind.len()));
        rest = behind;
        let (stream, fin) = (u64::from(stream % 8), stream >= 0xf0);
        let bytes = Bytes::copy_from_slice(piece);
        machine.handle_input(Duration::ZERO, Input::Stream { stream, bytes, fin });
        while let Some(output) = machine.poll_output() {
            assert!(!faulted, "an output after the fault");
            faulted = matches!(output, Output::Fault(_));
        }
    }
}

/// What is under way on each stream.
type Way = BTreeMap<u64, VecDeque<(Bytes, bool)>>;

fn drain(machine: &mut Machine, way: &mut Way) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some(output) = machine.poll_output() {
        match output {
            Output::Stream(Piece { stream, fin, bytes, .. }) => {
                way.entry(stream).or_default().push_back((bytes, fin));
            }
            Output::Received(part) => parts.push(part),
            Output::Fault(error) => panic!("{error}"),
            _ => {}
        }
    }
    parts
}

fn head(exchange: u64, end: bool) -> Part {
    let head = Bytes::from_static(b"head");
    Part::Head(Head { exchange, codec: 0, window_log: 0, end, head })
}

fn piece(exchange: u64, at: u8, end: bool) -> Part {
    let bytes = Bytes::from(vec![at; 1 + usize::from(at)]);
    let block_end = Some(bytes.len() as u64);
    let (uncoded, anew, padding) = (false, false, None);
    Part::Data(Data { exchange, block_end, uncoded, anew, end, padding, bytes })
}

fn pair(script: &[u8]) {
    let mut ends = [end(Role::Edge), end(Role::Gateway)];
    let mut ways = [Way::new(), Way::new()];
    let (mut sent, mut came): ([Vec<Part>; 2], [Vec<Part>; 2]) = Default::default();
    // At the end all arrives.
    for step in script.iter().copied().chain((0..4000).map(|at| (at % 256) as u8)) {
        let side = usize::from(step & 1);
        let exchange = 1 + u64::from(step >> 4) % MAX_EXCHANGES;
        let machine = &mut ends[side];
        let part = match (step >> 1) & 7 {
            1 if sent[side].len() < 200 => Some(head(exchange, step & 0x80 != 0)),
            2 if sent[side].len() < 200 => Some(piece(exchange, step, step & 0x40 != 0)),
            3 if machine.is_open(exchange) => {
                Some(Part::Abort(Abort { exchange, code: 1, reason: String::new() }))
            }
            _ => None,
        };
        let of_it = |one: &&Part| one.exchange() == Some(exchange);
        let may_follow = |part: &Part| match (part, sent[side].iter().rev().find(of_it)) {
            (Part::Head(_), before) => side == 0 && before.is_none(),
            (Part::Data(_), Some(Part::Head(before))) => !before.end,
            (Part::Data(_), Some(Part::Data(before))) => !before.end,
            (Part::Abort(_), _) => true,
            _ => false,
        };
        let is_over = |part: &Part| !matches!(part, Part::Head(_)) && !machine.is_open(exchange);
        let part = part.filter(|part| machine.may_send(part) && may_follow(part) && !is_over(part));
        if let Some(part) = part.filter(|_| machine.open_exchanges() < 8) {
            sent[side].push(part.clone());
            machine.handle_input(Duration::ZERO, Input::Send(part, Urgency::DEFAULT));
        }
        let stream = u64::from(step >> 2) % 16;
        for from in [0, 1] {
            let waits = ways[from].get_mut(&stream).and_then(VecDeque::pop_front);
            if let Some((bytes, fin)) = waits {
                ends[1 - from].handle_input(Duration::ZERO, Input::Stream { stream, bytes, fin });
            }
        }
        for side in [0, 1] {
            came[side].extend(drain(&mut ends[side], &mut ways[side]));
        }
    }
    for exchange in 1..=MAX_EXCHANGES {
        let of = |part: &&Part| part.exchange() == Some(exchange);
        let sent: Vec<&Part> = sent[0].iter().filter(of).collect();
        let came: Vec<&Part> = came[1].iter().filter(of).collect();
        // What an ABORT of the other side ended is left out.
        let mut rest = sent.iter();
        assert!(came.iter().all(|part| rest.any(|one| one == part)), "out of order, or changed");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    match first % 3 {
        0 => hostile(Role::Edge, rest),
        1 => hostile(Role::Gateway, rest),
        _ => pair(rest),
    }
});
