//! An endpoint of CoAP with whole bodies: any datagrams, inputs and times in any order; nothing
//! panics, and no request of its own ends twice.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use proto::coap::machine::{Input, Output, Settings};
use proto::coap::transfer::Transfers;
use proto::coap::{Code, Content, option};

/// Outputs of one input: each peer and each request has a few.
const MAX_OUTPUTS: usize = 100_000;

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
    let mut now = Duration::ZERO;
    let mut open = BTreeSet::new();
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
        let input = match what % 8 {
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
            _ => Input::Wake,
        };
        endpoint.handle_input(now, input);
        let mut outputs = 0;
        while let Some(output) = endpoint.poll_output() {
            outputs += 1;
            assert!(outputs < MAX_OUTPUTS);
            match output {
                Output::Datagram { bytes, .. } => {
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
                _ => {}
            }
        }
    }
});
