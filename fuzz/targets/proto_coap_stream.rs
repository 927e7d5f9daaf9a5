//! A connection of CoAP over a reliable transport: any bytes, inputs and times in any order;
//! nothing panics, no request of its own ends twice, and nothing follows the end.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::coap::stream::{
    Connection, Framing, Input, MAX_MESSAGE_BYTES, MAX_SERVED_BYTES, MAX_UPLOAD_BYTES, Output,
    Settings,
};
use proto::coap::{Code, Content, option};

/// Outputs of one input: each message and each request has a few.
const MAX_OUTPUTS: usize = 100_000;
/// An empty CSM, over TCP and over a WebSocket.
const CSM: [u8; 2] = [0x00, 0xe1];

fuzz_target!(|data: &[u8]| {
    let Some((&[first, ..], mut rest)) = data.split_first_chunk::<1>() else { return };
    let framing = if first & 1 != 0 { Framing::WebSocket } else { Framing::Stream };
    let idle = (first & 2 != 0).then_some(Duration::from_secs(20));
    let mut end = Connection::new(&Settings { seed: [1, 2], framing, idle });
    let mut now = Duration::ZERO;
    let mut open = BTreeSet::new();
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
        let input = match what % 8 {
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
            _ => Input::Wake,
        };
        end.handle_input(now, input);
        let held = MAX_MESSAGE_BYTES as usize + MAX_UPLOAD_BYTES + MAX_SERVED_BYTES;
        assert!(end.held_bytes() <= held);
        let mut outputs = 0;
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
                Output::Closed(_) => {
                    is_closed = true;
                    open.clear();
                }
                _ => {}
            }
        }
    }
});
