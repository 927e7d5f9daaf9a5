use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::coap::machine::{Flow, Of};
use crate::coap::{Code, Content, option};

/// One input: what, with which number, and bytes for it.
type Step = (u8, u8, Vec<u8>);

/// The request with this number, where bodies are never here as a whole.
fn opening(request: u64, with: u8, content: Content) -> Input<u8> {
    let (has_more, room_bytes) = (with & 8 != 0, content.payload.len());
    let (peer, is_confirmable) = (with % 4, with & 0x20 != 0);
    Input::Open { request, peer, content, is_confirmable, has_more, room_bytes }
}

/// A step of the body of such a request.
fn step(number: u64, with: u8, bytes: &[u8]) -> Input<u8> {
    // Requests of the first half are no open ones.
    let (of, is_last) = (Of::Request(number | 0x10), with & 0x20 != 0);
    Input::Flow(match with & 1 {
        0 => Flow::Part { of, bytes: Bytes::copy_from_slice(bytes), is_last },
        _ => Flow::Room { of, bytes: bytes.len() * 100 },
    })
}

/// Runs inputs of any kind in any order. Each request that was taken ends at most once, and none
/// that was not.
fn run(steps: &[Step], is_challenging: bool, quick: u8) -> Result<(), TestCaseError> {
    let settings = Settings { seed: [1, 2], is_challenging, rate_bps: None };
    let mut ends = Transfers::<u8>::new(&settings);
    if quick & 1 != 0 {
        ends = ends.answering_q_block([3, 4]);
    }
    if quick & 2 != 0 {
        ends = ends.offering_q_block([5, 6]);
    }
    let (mut now, mut open, mut sent) = (Duration::ZERO, BTreeSet::new(), Vec::new());
    for (what, with, bytes) in steps {
        now += Duration::from_millis(u64::from(*with) * 50);
        let (peer, number, observes) = (with % 4, u64::from(with % 32), with & 0x20 != 0);
        let size = if observes { 3000 } else { bytes.len() };
        let mut content = Content::new(Code(what >> 3)).with_payload(vec![*with; size]);
        if with & 0x40 != 0 {
            content.push(option::OBSERVE, b"");
        }
        let input = match what % 8 {
            0 => Input::Datagram { peer, bytes: bytes.clone().into(), is_group: observes },
            1 => {
                let mut bytes_back: Vec<u8> = sent.pop().unwrap_or_default();
                for pair in bytes.chunks_exact(2) {
                    if let Some(byte) = bytes_back.get_mut(usize::from(pair[0] % 32)) {
                        *byte = pair[1];
                    }
                }
                Input::Datagram { peer, bytes: bytes_back.into(), is_group: false }
            }
            2 if with & 0x10 != 0 => {
                open.insert(number);
                content.code = Code(1 + with % 7);
                opening(number, *with, content)
            }
            2 => {
                open.insert(number);
                content.code = Code(1 + with % 7);
                Input::Request { request: number, peer, content, is_confirmable: observes }
            }
            3 => Input::Respond { exchange: number % 8, content },
            4 => Input::Notify { exchange: number % 8, content },
            5 => {
                open.remove(&number);
                Input::Cancel { request: number }
            }
            6 => {
                open.insert(number);
                Input::Ping { request: number, peer }
            }
            _ if with & 0x40 == 0 => step(number, *with, bytes),
            _ => Input::Wake,
        };
        ends.handle_input(now, input);
        while let Some(output) = ends.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => sent.push(bytes.to_vec()),
                Output::Response { request, is_last: true, .. }
                | Output::Failed { request, .. }
                | Output::Alive { request }
                | Output::Suppressed { request } => prop_assert!(open.remove(&request)),
                Output::Response { request, .. } => prop_assert!(open.contains(&request)),
                Output::Flow(Flow::Part { of: Of::Request(request), is_last, .. }) => {
                    prop_assert!(if is_last {
                        open.remove(&request)
                    } else {
                        open.contains(&request)
                    });
                }
                _ => {}
            }
        }
    }

    Ok(())
}

proptest! {
    #[test]
    fn anything_in_any_order_ends_no_request_twice(
        steps in proptest::collection::vec(
            (any::<u8>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..24)), 0..120),
        is_challenging: bool,
        quick: u8,
    ) {
        run(&steps, is_challenging, quick)?;
    }
}
