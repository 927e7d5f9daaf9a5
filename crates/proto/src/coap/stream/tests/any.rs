//! Any inputs in any order.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::coap::machine::{Flow, Of};

/// One input: what, with which number, and bytes for it.
type Step = (u8, u8, Vec<u8>);

fn content(with: u8, code: Code, bytes: &[u8]) -> Content {
    let size = if with & 0x20 != 0 { 3000 } else { bytes.len() };
    let content = Content::new(code).with_payload(vec![with; size]);
    if with & 0x40 != 0 { content.with(option::OBSERVE, b"") } else { content }
}

/// Each request that was taken ends at most once, none that was not, and nothing follows the end.
fn run(steps: &[Step], framing: Framing) -> Result<(), TestCaseError> {
    let mut end = Connection::new(&Settings { idle: Some(MINUTE), ..settings(1, framing) });
    let (mut now, mut open, mut sent) = (Duration::ZERO, BTreeSet::new(), Vec::new());
    let mut is_closed = false;
    let csm = wire::signal(framing, Token::EMPTY, &Content::new(Code::CSM));
    end.handle_input(now, Input::Bytes(csm));
    for (what, with, bytes) in steps {
        now += Duration::from_millis(u64::from(*with) * 50);
        let number = u64::from(with % 32);
        let message = content(*with, Code(what >> 3), bytes);
        let input = match what % 8 {
            0 => Input::Bytes(bytes.clone().into()),
            // A message that is well formed, with a token that may be one of ours.
            1 => {
                let all = [Code::CONTENT, Code::GET, Code::PONG, Code::PING, Code::CREATED];
                let token = Token::new(&[with % 8]).unwrap();
                let message = content(*with, all[usize::from(with % 5)], bytes);
                Input::Bytes(wire::encode(framing, token, &message, u64::MAX).unwrap())
            }
            2 if !is_closed && with & 0x10 != 0 => {
                open.insert(number);
                let content = content(*with, Code(1 + with % 7), bytes);
                let (has_more, room_bytes) = (with & 8 != 0, bytes.len());
                Input::Open { request: number, content, has_more, room_bytes }
            }
            2 if !is_closed => {
                open.insert(number);
                let content = content(*with, Code(1 + with % 7), bytes);
                Input::Request { request: number, content }
            }
            3 => Input::Respond { exchange: number % 8, content: message },
            4 => Input::Notify { exchange: number % 8, content: message },
            5 => {
                open.remove(&number);
                Input::Cancel { request: number }
            }
            6 if !is_closed && open.insert(number) => Input::Ping { request: number },
            _ if with & 0x40 == 0 => {
                let (of, bytes) = (Of::Request(number | 0x10), bytes.clone().into());
                Input::Flow(match with & 1 {
                    0 => Flow::Part { of, bytes, is_last: with & 2 != 0 },
                    _ => Flow::Room { of, bytes: bytes.len() },
                })
            }
            _ => Input::Wake,
        };
        end.handle_input(now, input);
        while let Some(output) = end.poll_output() {
            prop_assert!(!is_closed, "{output:?} behind the end");
            match output {
                Output::Transmit(bytes) => sent.push(bytes),
                Output::Response { request, is_last: true, .. }
                | Output::Failed { request, .. }
                | Output::Alive { request }
                | Output::Suppressed { request } => prop_assert!(open.remove(&request)),
                Output::Response { request, .. } => prop_assert!(open.contains(&request)),
                Output::Flow(Flow::Part { of: Of::Request(request), is_last, .. }) => {
                    prop_assert!(open.contains(&request));
                    if is_last {
                        open.remove(&request);
                    }
                }
                Output::Closed(_) => {
                    is_closed = true;
                    open.clear();
                }
                _ => {}
            }
        }
        prop_assert!(end.messages.exchanges.len() <= MAX_EXCHANGES);
        prop_assert!(end.held_bytes() <= MAX_MESSAGE_BYTES as usize + MAX_UPLOAD_BYTES);
    }
    for bytes in sent.iter().filter(|_| framing == Framing::Stream) {
        let read = framed::decode(bytes, u32::MAX);
        prop_assert!(matches!(read, Ok(Some((_, used))) if used == bytes.len()));
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_inputs_leave_it_in_order(
        steps in prop::collection::vec(
            (any::<u8>(), any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..60),
        is_websocket: bool,
    ) {
        run(&steps, if is_websocket { Framing::WebSocket } else { Framing::Stream })?;
    }

    /// Wherever a stream is cut, the same comes of it.
    #[test]
    fn cuts_mean_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(0_usize..300, 0..8),
    ) {
        let csm = wire::signal(Framing::Stream, Token::EMPTY, &Content::new(Code::CSM));
        let bytes: Bytes = [&csm[..], &bytes[..]].concat().into();
        let outputs = |cuts: &[usize]| {
            let mut end = Connection::new(&settings(1, Framing::Stream));
            let mut at = 0;
            for cut in cuts.iter().copied().chain([bytes.len()]) {
                let cut = cut.clamp(at, bytes.len());
                end.handle_input(Duration::ZERO, Input::Bytes(bytes.slice(at..cut)));
                at = cut;
            }
            let outputs = std::iter::from_fn(|| end.poll_output());
            outputs.filter(|it| !matches!(it, Output::WakeAt(_))).collect::<Vec<_>>()
        };
        let mut cuts = cuts;
        cuts.sort_unstable();
        prop_assert_eq!(outputs(&[]), outputs(&cuts));
    }
}
