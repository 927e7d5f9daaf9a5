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

/// An end, and what is known of it.
struct Any {
    end: Connection,
    framing: Framing,
    now: Duration,
    is_closed: bool,
    sent: Vec<Bytes>,
    /// Requests of its own that are open.
    open: BTreeSet<u64>,
    /// Requests of the peer that were not answered, those whose bodies go on, and answers that do.
    asked: Vec<u64>,
    opened: BTreeSet<u64>,
    begun: BTreeSet<u64>,
}

impl Any {
    fn new(framing: Framing, takes_bodies: bool) -> Self {
        let settings = Settings { idle: Some(MINUTE), ..settings(1, framing) };
        let mut end = Connection::new(&settings);
        if takes_bodies {
            end = end.taking_bodies();
        }
        let (open, opened, begun) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (now, is_closed, sent, asked) = (Duration::ZERO, false, Vec::new(), Vec::new());
        Self { end, framing, now, is_closed, sent, open, asked, opened, begun }
    }

    /// Blocks of a request of the peer, or requests for blocks of an answer.
    fn blocks(&mut self, with: u8, bytes: &[u8]) -> Result<(), TestCaseError> {
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let (first, count, is_up) = (at(0) % 80, at(1) % 70, with & 0x10 != 0);
        for num in first..first + count {
            let more = is_up && (num + 1 < first + count || at(3) & 1 != 0);
            let value = Block { num: num.into(), more, szx: 6 }.encode().unwrap();
            let (code, number) = match is_up {
                true => (Code::PUT, option::BLOCK1),
                false => (Code::GET, option::BLOCK2),
            };
            let mut content = Content::new(code).with(option::URI_PATH, &[at(4) % 2]);
            content.push(number, value.as_slice());
            if is_up {
                content.payload = vec![num; if more { 1024 } else { 7 }].into();
            }
            let bytes = wire::encode(self.framing, token(num), &content, u64::MAX).unwrap();
            self.input(Input::Bytes(bytes))?;
            if let Some(exchange) = self.opened.last().copied().filter(|_| at(3) & 4 != 0) {
                let room = Flow::Room { of: Of::Exchange(exchange), bytes: 1024 };
                self.input(Input::Flow(room))?;
            }
        }
        Ok(())
    }

    /// What an application says of a body of the peer's request, or of its answer.
    fn serve(&mut self, with: u8, bytes: &[u8]) -> Result<(), TestCaseError> {
        let payload = vec![with; bytes.len() * 200];
        if with & 8 != 0
            && let Some(exchange) = self.asked.pop()
        {
            self.begun.insert(exchange);
            let content = Content::new(Code(2 << 5 | with >> 5)).with_payload(payload);
            return self.input(Input::Begin { exchange, content });
        }
        let all = if with & 0x10 != 0 { &self.begun } else { &self.opened };
        let Some(exchange) = all.iter().nth(usize::from(with % 4)).copied() else { return Ok(()) };
        let (of, bytes) = (Of::Exchange(exchange), Bytes::from(payload));
        let flow = match with >> 6 {
            0 | 1 => Flow::Part { of, bytes, is_last: with & 0x20 != 0 },
            // Of a request that goes on the answer has not begun.
            3 if !self.opened.contains(&exchange) => {
                self.begun.remove(&exchange);
                Flow::Broken { of }
            }
            _ => Flow::Room { of, bytes: bytes.len() },
        };
        self.input(Input::Flow(flow))
    }

    fn input(&mut self, input: Input) -> Result<(), TestCaseError> {
        self.end.handle_input(self.now, input);
        while let Some(output) = self.end.poll_output() {
            prop_assert!(!self.is_closed, "{output:?} behind the end");
            match output {
                Output::Transmit(bytes) => self.sent.push(bytes),
                Output::Response { request, is_last: true, .. }
                | Output::Failed { request, .. }
                | Output::Alive { request }
                | Output::Suppressed { request } => prop_assert!(self.open.remove(&request)),
                Output::Response { request, .. } => prop_assert!(self.open.contains(&request)),
                Output::Request { exchange, .. } => self.asked.push(exchange),
                Output::Opened { exchange, .. } => {
                    self.asked.push(exchange);
                    prop_assert!(self.opened.insert(exchange));
                }
                Output::Flow(Flow::Part { of, is_last, .. }) => {
                    let (open, number) = match of {
                        Of::Request(request) => (&mut self.open, request),
                        Of::Exchange(exchange) => (&mut self.opened, exchange),
                    };
                    prop_assert!(open.contains(&number));
                    if is_last {
                        open.remove(&number);
                    }
                }
                Output::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }) => {
                    prop_assert!(bytes > 0 && self.begun.contains(&exchange));
                }
                Output::Flow(Flow::Broken { of: Of::Exchange(exchange) }) => {
                    let was_begun = self.begun.remove(&exchange);
                    prop_assert!(self.opened.remove(&exchange) || was_begun);
                }
                Output::Closed(_) => {
                    self.is_closed = true;
                    self.open.clear();
                }
                _ => {}
            }
        }
        prop_assert!(self.end.messages.exchanges.len() <= MAX_EXCHANGES);
        prop_assert!(self.end.held_bytes() <= MAX_HELD_BYTES);
        Ok(())
    }
}

/// A message, what is put together, and what is served: whole, and not whole, with the newest.
const MAX_HELD_BYTES: usize =
    MAX_MESSAGE_BYTES as usize + MAX_UPLOAD_BYTES + 2 * (MAX_SERVED_BYTES + (1 << 20));

/// Each request that was taken ends at most once, none that was not, and nothing follows the end;
/// nothing is said of bodies that are not open.
fn run(steps: &[Step], framing: Framing, takes_bodies: bool) -> Result<(), TestCaseError> {
    let mut any = Any::new(framing, takes_bodies);
    let csm = wire::signal(framing, Token::EMPTY, &Content::new(Code::CSM));
    any.input(Input::Bytes(csm))?;
    for (what, with, bytes) in steps {
        any.now += Duration::from_millis(u64::from(*with) * 50);
        let number = u64::from(with % 32);
        let message = content(*with, Code(what >> 3), bytes);
        let input = match what % 10 {
            0 => Input::Bytes(bytes.clone().into()),
            // A message that is well formed, with a token that may be one of ours.
            1 => {
                let all = [Code::CONTENT, Code::GET, Code::PONG, Code::PING, Code::CREATED];
                let token = Token::new(&[with % 8]).unwrap();
                let message = content(*with, all[usize::from(with % 5)], bytes);
                Input::Bytes(wire::encode(framing, token, &message, u64::MAX).unwrap())
            }
            2 if !any.is_closed && with & 0x10 != 0 => {
                any.open.insert(number);
                let content = content(*with, Code(1 + with % 7), bytes);
                let (has_more, room_bytes) = (with & 8 != 0, bytes.len());
                Input::Open { request: number, content, has_more, room_bytes }
            }
            2 if !any.is_closed => {
                any.open.insert(number);
                let content = content(*with, Code(1 + with % 7), bytes);
                Input::Request { request: number, content }
            }
            3 => Input::Respond { exchange: number % 8, content: message },
            4 => Input::Notify { exchange: number % 8, content: message },
            5 => {
                any.open.remove(&number);
                Input::Cancel { request: number }
            }
            6 if !any.is_closed && any.open.insert(number) => Input::Ping { request: number },
            7 if with & 0x40 == 0 => {
                let (of, bytes) = (Of::Request(number | 0x10), bytes.clone().into());
                Input::Flow(match with & 1 {
                    0 => Flow::Part { of, bytes, is_last: with & 2 != 0 },
                    _ => Flow::Room { of, bytes: bytes.len() },
                })
            }
            8 => {
                any.blocks(*with, bytes)?;
                continue;
            }
            9 => {
                any.serve(*with, bytes)?;
                continue;
            }
            _ => Input::Wake,
        };
        any.input(input)?;
    }
    for bytes in any.sent.iter().filter(|_| framing == Framing::Stream) {
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
        takes_bodies: bool,
    ) {
        let framing = if is_websocket { Framing::WebSocket } else { Framing::Stream };
        run(&steps, framing, takes_bodies)?;
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
