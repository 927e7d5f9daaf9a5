//! A connection of CoAP over a reliable transport: any bytes, inputs and times in any order;
//! nothing panics, no request of its own ends twice, nothing follows the end, and nothing is said
//! of bodies that are not open.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::coap::machine::{Flow, Of};
use proto::coap::stream::{
    Connection, Framing, Input, MAX_MESSAGE_BYTES, MAX_SERVED_BYTES, MAX_UPLOAD_BYTES, Output,
    Settings,
};
use proto::coap::{Block, Code, Content, MAX_BODY_BYTES, option};

/// Outputs of one input: each message and each request has a few.
const MAX_OUTPUTS: usize = 100_000;
/// An empty CSM, over TCP and over a WebSocket.
const CSM: [u8; 2] = [0x00, 0xe1];

/// A block of the peer's request, or a request for one of an answer, as a message over TCP.
fn block(is_up: bool, num: u32, more: bool) -> Bytes {
    let value = Block { num, more, szx: 6 }.encode();
    let value = value.as_ref().map_or(&[][..], |value| value.as_slice());
    let (code, option) = if is_up { (Code::PUT, 27_u8) } else { (Code::GET, 23) };
    // Block1 and Block2 (RFC 7959 §2.1), of whose numbers what is over 13 stands in a byte.
    let mut rest = vec![0xd0 | u8::try_from(value.len()).unwrap_or(0), option - 13];
    rest.extend_from_slice(value);
    if is_up {
        rest.push(0xff);
        rest.extend_from_slice(&vec![7; if more { 1024 } else { 7 }]);
    }
    let len = rest.len();
    // RFC 8323 §3.2.
    let mut bytes = match len {
        0..13 => vec![u8::try_from(len << 4).unwrap_or(0)],
        13..269 => vec![13 << 4, u8::try_from(len - 13).unwrap_or(0)],
        _ => {
            let [high, low] = u16::try_from(len - 269).unwrap_or(0).to_be_bytes();
            vec![14 << 4, high, low]
        }
    };
    bytes.push(code.0);
    bytes.extend(rest);
    bytes.into()
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let framing = if first & 1 != 0 { Framing::WebSocket } else { Framing::Stream };
    let idle = (first & 2 != 0).then_some(Duration::from_secs(20));
    let mut end = Connection::new(&Settings { seed: [1, 2], framing, idle });
    if first & 8 != 0 {
        end = end.taking_bodies();
    }
    let mut now = Duration::ZERO;
    let mut open = BTreeSet::new();
    // Requests of the peer that were not answered, those whose bodies go on, and answers that do.
    let (mut asked, mut opened, mut begun) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut sent: Vec<Bytes> = Vec::new();
    let mut is_closed = false;
    if first & 4 == 0 {
        end.handle_input(now, Input::Bytes(Bytes::from_static(&CSM)));
    }
    while let Some((&[what, with, len], more)) = rest.split_first_chunk::<3>() {
        let (bytes, more) = more.split_at(more.len().min(len.into()));
        rest = more;
        now += Duration::from_millis(u64::from(with) * 40);
        let number = u64::from(with);
        let payload = if what & 0x80 != 0 { vec![with; 3000] } else { bytes.to_vec() };
        let mut content = Content::new(Code(what >> 3)).with_payload(payload);
        if with & 0x20 != 0 {
            content.push_uint(option::OBSERVE, 0);
        }
        let mut run = Vec::new();
        let input = match what % 12 {
            0 => Input::Bytes(bytes.to_vec().into()),
            // What it sent comes back with a few other bytes, so that tokens match.
            1 => {
                let mut echo = sent.pop().unwrap_or_default().to_vec();
                for pair in bytes.chunks_exact(2) {
                    if let Some(byte) = echo.get_mut(usize::from(pair[0])) {
                        *byte = pair[1];
                    }
                }
                Input::Bytes(echo.into())
            }
            2 if !is_closed => {
                open.insert(number);
                Input::Request { request: number, content }
            }
            3 => Input::Respond { exchange: number, content },
            4 => Input::Notify { exchange: number, content },
            5 => {
                open.remove(&number);
                Input::Cancel { request: number }
            }
            6 if !is_closed && open.insert(number) => Input::Ping { request: number },
            7 if with & 0x40 != 0 => Input::Release { hold_off_s: Some(with.into()) },
            7 if with & 0x80 != 0 => Input::Eof,
            7 if with & 0x10 != 0 => Input::Abort { why: "fuzz" },
            8 => {
                let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
                let (from, is_up) = (u32::from(at(0)), with & 0x10 != 0);
                let until = from + u32::from(at(1) % 70);
                let more = |num| is_up && (num + 1 < until || at(2) & 1 != 0);
                run = (from..until).map(|num| block(is_up, num, more(num))).collect();
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
                let all = if with & 0x20 != 0 { &begun } else { &opened };
                let bytes = Bytes::from(vec![with; bytes.len() * 100]);
                let of = all.iter().nth(usize::from(with % 4)).map(|it| Of::Exchange(*it));
                of.map_or(Input::Wake, |of| {
                    Input::Flow(match with >> 6 {
                        0 | 1 => Flow::Part { of, bytes, is_last: with & 0x10 != 0 },
                        2 => Flow::Room { of, bytes: bytes.len() },
                        _ => Flow::Broken { of },
                    })
                })
            }
            11 if !is_closed && with & 1 != 0 => {
                open.insert(number);
                let (has_more, room_bytes) = (with & 2 != 0, bytes.len());
                content.remove(option::OBSERVE);
                Input::Open { request: number, content, has_more, room_bytes }
            }
            11 => {
                let (of, bytes) = (Of::Request(number), content.payload);
                Input::Flow(match with & 2 {
                    0 => Flow::Part { of, bytes, is_last: with & 4 != 0 },
                    _ => Flow::Room { of, bytes: bytes.len() },
                })
            }
            _ => Input::Wake,
        };
        let mut outputs = 0;
        for input in [input].into_iter().chain(run.into_iter().map(Input::Bytes)) {
            if let Input::Flow(Flow::Broken { of: Of::Exchange(exchange) }) = &input {
                // Of a request that goes on the answer has not begun.
                if opened.contains(exchange) || !begun.remove(exchange) {
                    continue;
                }
            }
            end.handle_input(now, input);
            let served = 2 * (MAX_SERVED_BYTES + MAX_BODY_BYTES);
            assert!(end.held_bytes() <= MAX_MESSAGE_BYTES as usize + MAX_UPLOAD_BYTES + served);
            while let Some(output) = end.poll_output() {
                outputs += 1;
                assert!(outputs < MAX_OUTPUTS);
                assert!(!is_closed, "{output:?} behind the end");
                match output {
                    Output::Transmit(bytes) => {
                        sent.push(bytes);
                        if sent.len() > 64 {
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
                    Output::Closed(_) => {
                        is_closed = true;
                        open.clear();
                    }
                    _ => {}
                }
            }
        }
    }
});
