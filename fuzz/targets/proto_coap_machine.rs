//! An endpoint of CoAP with bodies that are whole and that are not: any datagrams, inputs and times
//! in any order; nothing panics, no request of its own ends twice, what is held has its bound, and
//! nothing is said of bodies that are not open.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::coap::machine::{Flow, Input, Of, Output, Settings};
use proto::coap::transfer::{MAX_SERVED_BYTES, MAX_UPLOAD_BYTES, Transfers};
use proto::coap::{Block, Code, Content, Kind, MAX_BODY_BYTES, Token, option};

/// Outputs of one input: each peer and each request has a few.
const MAX_OUTPUTS: usize = 100_000;
/// What is put together, and what is served, whole and not, each with its newest.
const MAX_HELD_BYTES: usize = MAX_UPLOAD_BYTES + 2 * (MAX_SERVED_BYTES + MAX_BODY_BYTES);
/// What is sent back to it, and datagrams that a run of blocks has.
const MAX_KEPT: usize = 64;

/// Blocks of a peer's request, or requests for blocks of an answer, one behind the other.
fn blocks(mid: &mut u16, with: u8, bytes: &[u8]) -> Vec<Bytes> {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let (first, count, is_up) = (u32::from(at(0)), u32::from(at(1) % 70), with & 0x10 != 0);
    let numbers = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK1, option::Q_BLOCK2];
    let number = numbers[usize::from(at(2) & 2) + usize::from(!is_up)];
    let mut all = Vec::new();
    for num in first..first + count {
        let more = is_up && (num + 1 < first + count || at(3) & 1 != 0);
        let code = if is_up { Code::PUT } else { Code::GET };
        let mut content = Content::new(code).with(option::URI_PATH, &[at(4) % 2]);
        if let Ok(value) = (Block { num, more, szx: 6 }).encode() {
            content.push(number, value.as_slice());
        }
        if is_up {
            content.payload = vec![at(5); if more { 1024 } else { 7 }].into();
        }
        *mid = mid.wrapping_add(1);
        let kind = if at(3) & 2 != 0 { Kind::Confirmable } else { Kind::NonConfirmable };
        all.extend(content.encode(kind, *mid, Token::EMPTY).ok());
    }
    all
}

/// What an application says of a body, where it says something: of one of these that are open.
fn served(all: &BTreeSet<u64>, with: u8, payload: Vec<u8>) -> Option<Flow> {
    let of = Of::Exchange(*all.iter().nth(usize::from(with % 4))?);
    let bytes = Bytes::from(payload);
    Some(match with >> 6 {
        0 | 1 => Flow::Part { of, bytes, is_last: with & 0x20 != 0 },
        2 => Flow::Room { of, bytes: bytes.len() },
        _ => Flow::Broken { of },
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let settings = Settings {
        seed: [1, 2],
        is_challenging: first & 1 != 0,
        rate_bps: (first & 2 != 0).then_some(9600),
    };
    let mut endpoint = Transfers::<u8>::new(&settings);
    if first & 4 != 0 {
        endpoint = endpoint.answering_q_block([3, 4]);
    }
    if first & 8 != 0 {
        endpoint = endpoint.offering_q_block([5, 6]);
    }
    if first & 16 != 0 {
        endpoint = endpoint.taking_bodies();
    }
    let (mut now, mut mid) = (Duration::ZERO, 0);
    let mut open = BTreeSet::new();
    // Requests of peers that were not answered, those whose bodies go on, and answers that do.
    let (mut asked, mut opened, mut begun) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut sent: Vec<Bytes> = Vec::new();
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(with) * 40);
        let (peer, number) = (with % 8, u64::from(with));
        let observes = with & 0x20 != 0;
        let payload = if what & 0x80 != 0 { vec![with; 3000] } else { bytes.to_vec() };
        let mut content = Content::new(Code(what >> 3)).with_payload(payload);
        if observes && first & 8 == 0 {
            content.push_uint(option::OBSERVE, 0);
        }
        let mut run = Vec::new();
        let input = match what % 12 {
            0 => Input::Datagram { peer, bytes: bytes.to_vec().into(), is_group: observes },
            // What it sent comes back with a few other bytes, so that ids and tokens match.
            1 => {
                let mut echo = sent.pop().unwrap_or_default().to_vec();
                for pair in bytes.chunks_exact(2) {
                    if let Some(byte) = echo.get_mut(usize::from(pair[0])) {
                        *byte = pair[1];
                    }
                }
                Input::Datagram { peer, bytes: echo.into(), is_group: false }
            }
            2 => {
                let is_confirmable = with & 0x10 != 0;
                open.insert(number);
                Input::Request { request: number, peer, content, is_confirmable }
            }
            3 => Input::Respond { exchange: number, content },
            4 => Input::Notify { exchange: number, content },
            5 => {
                open.remove(&number);
                Input::Cancel { request: number }
            }
            6 => {
                open.insert(number);
                Input::Ping { request: number, peer }
            }
            7 => {
                open.insert(number);
                let (is_confirmable, has_more, room_bytes) =
                    (with & 1 != 0, with & 2 != 0, bytes.len());
                content.remove(option::OBSERVE);
                Input::Open { request: number, peer, content, is_confirmable, has_more, room_bytes }
            }
            8 => {
                run = blocks(&mut mid, with, bytes);
                Input::Wake
            }
            9 => match asked.pop() {
                Some(exchange) => {
                    begun.insert(exchange);
                    Input::Begin { exchange, content }
                }
                None => Input::Wake,
            },
            10 => {
                let payload = vec![with; bytes.len() * 100];
                let all = if observes { &begun } else { &opened };
                served(all, with, payload).map_or(Input::Wake, Input::Flow)
            }
            11 => {
                let (of, bytes) = (Of::Request(number), content.payload);
                Input::Flow(match with & 1 {
                    0 => Flow::Part { of, bytes, is_last: with & 2 != 0 },
                    _ => Flow::Room { of, bytes: bytes.len() },
                })
            }
            _ => Input::Wake,
        };
        let run = run.into_iter().map(|bytes| Input::Datagram { peer, bytes, is_group: false });
        let mut outputs = 0;
        for input in [input].into_iter().chain(run) {
            if let Input::Flow(Flow::Broken { of: Of::Exchange(exchange) }) = &input {
                // Of a request that goes on the answer has not begun.
                if opened.contains(exchange) || !begun.remove(exchange) {
                    continue;
                }
            }
            endpoint.handle_input(now, input);
            assert!(endpoint.held_bytes() <= MAX_HELD_BYTES);
            while let Some(output) = endpoint.poll_output() {
                outputs += 1;
                assert!(outputs < MAX_OUTPUTS);
                match output {
                    Output::Datagram { bytes, .. } => {
                        sent.push(bytes);
                        if sent.len() > MAX_KEPT {
                            sent.remove(0);
                        }
                    }
                    Output::Response { request, is_last: true, .. }
                    | Output::Failed { request, .. }
                    | Output::Alive { request }
                    | Output::Suppressed { request } => {
                        assert!(open.remove(&request), "{request} was not open");
                    }
                    Output::Response { request, .. } => assert!(open.contains(&request)),
                    Output::Request { exchange, .. } => asked.push(exchange),
                    Output::Opened { exchange, .. } => {
                        asked.push(exchange);
                        assert!(opened.insert(exchange));
                    }
                    Output::Flow(Flow::Part { of, is_last, .. }) => {
                        let (all, number) = match of {
                            Of::Request(request) => (&mut open, request),
                            Of::Exchange(exchange) => (&mut opened, exchange),
                        };
                        assert!(if is_last { all.remove(&number) } else { all.contains(&number) });
                    }
                    Output::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }) => {
                        assert!(bytes > 0 && begun.contains(&exchange));
                    }
                    Output::Flow(Flow::Broken { of: Of::Exchange(exchange) }) => {
                        let was_begun = begun.remove(&exchange);
                        assert!(opened.remove(&exchange) || was_begun);
                    }
                    _ => {}
                }
            }
        }
    }
});
