use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::coap::machine::{Flow, Of};
use crate::coap::{Code, Content, Kind, Token, option};

/// One input: what, with which number, and bytes for it.
type Step = (u8, u8, Vec<u8>);

/// What may be held of bodies: what is put together, what is whole and what is not, with the newest
/// of each, and requests of this side.
const MAX_HELD_BYTES: usize = MAX_UPLOAD_BYTES + 2 * (MAX_SERVED_BYTES + MAX_BODY_BYTES);

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

/// An end, and what is known of it.
struct Any {
    end: Transfers<u8>,
    now: Duration,
    /// Requests of its own that are open.
    open: BTreeSet<u64>,
    sent: Vec<Vec<u8>>,
    mid: u16,
    /// Requests of peers that were not answered.
    asked: Vec<u64>,
    /// Those of peers whose bodies go on, and answers to peers that do.
    opened: BTreeSet<u64>,
    begun: BTreeSet<u64>,
}

impl Any {
    fn new(is_challenging: bool, quick: u8) -> Self {
        let settings = Settings { seed: [1, 2], is_challenging, rate_bps: None };
        let mut end = Transfers::<u8>::new(&settings);
        if quick & 1 != 0 {
            end = end.answering_q_block([3, 4]);
        }
        if quick & 2 != 0 {
            end = end.offering_q_block([5, 6]);
        }
        if quick & 4 != 0 {
            end = end.taking_bodies();
        }
        Self {
            end,
            now: Duration::ZERO,
            open: BTreeSet::new(),
            sent: Vec::new(),
            mid: 0,
            asked: Vec::new(),
            opened: BTreeSet::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Blocks of a peer's request, or requests for blocks of an answer, one behind the other.
    fn blocks(&mut self, with: u8, bytes: &[u8]) -> Result<(), TestCaseError> {
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let (peer, first, count) = (with % 4, at(0) % 80, at(1) % 70);
        let is_up = with & 0x10 != 0;
        let numbers = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK1, option::Q_BLOCK2];
        let number = numbers[usize::from(at(2) & 2) + usize::from(!is_up)];
        for num in first..first + count {
            let more = is_up && (num + 1 < first + count || at(3) & 1 != 0);
            let value = Block { num: num.into(), more, szx: 6 }.encode().unwrap();
            let code = if is_up { Code::PUT } else { Code::GET };
            let mut content = Content::new(code).with(option::URI_PATH, &[at(4) % 2]);
            content.push(number, value.as_slice());
            if is_up {
                content.payload = vec![num; if more { 1024 } else { 7 }].into();
            }
            self.mid = self.mid.wrapping_add(1);
            let token = Token::new(&self.mid.to_be_bytes()).unwrap();
            let kind = if at(3) & 2 != 0 { Kind::Confirmable } else { Kind::NonConfirmable };
            let bytes = content.encode(kind, self.mid, token).unwrap();
            self.input(Input::Datagram { peer, bytes, is_group: false })?;
            // An application takes what comes.
            if let Some(exchange) = self.opened.last().copied().filter(|_| at(3) & 4 != 0) {
                let room = Flow::Room { of: Of::Exchange(exchange), bytes: 1024 };
                self.input(Input::Flow(room))?;
            }
        }
        Ok(())
    }

    /// What an application says of a body of a peer's request, or of its answer.
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
        let of = Of::Exchange(exchange);
        let (bytes, is_last) = (payload.into(), with & 0x20 != 0);
        let flow = match with >> 6 {
            0 | 1 => Flow::Part { of, bytes, is_last },
            // Of a request that goes on the answer has not begun.
            3 if !self.opened.contains(&exchange) => {
                // The clock may end it in this very step.
                self.input(Input::Flow(Flow::Broken { of }))?;
                self.begun.remove(&exchange);
                return Ok(());
            }
            _ => Flow::Room { of, bytes: bytes.len() },
        };
        self.input(Input::Flow(flow))
    }

    fn input(&mut self, input: Input<u8>) -> Result<(), TestCaseError> {
        self.end.handle_input(self.now, input);
        while let Some(output) = self.end.poll_output() {
            match output {
                Output::Datagram { bytes, .. } => self.sent.push(bytes.to_vec()),
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
                    let is_open =
                        if is_last { open.remove(&number) } else { open.contains(&number) };
                    prop_assert!(is_open);
                }
                Output::Flow(Flow::Room { of: Of::Exchange(exchange), bytes }) => {
                    prop_assert!(bytes > 0 && self.begun.contains(&exchange));
                }
                // A body that is over is not ended once more.
                Output::Flow(Flow::Broken { of: Of::Exchange(exchange) }) => {
                    let was_begun = self.begun.remove(&exchange);
                    prop_assert!(self.opened.remove(&exchange) || was_begun);
                }
                _ => {}
            }
        }
        prop_assert!(self.end.held_bytes() <= MAX_HELD_BYTES);
        Ok(())
    }
}

/// Runs inputs of any kind in any order. Each request that was taken ends at most once, and none
/// that was not; nothing is said of bodies that are not open.
fn run(steps: &[Step], is_challenging: bool, quick: u8) -> Result<(), TestCaseError> {
    let mut any = Any::new(is_challenging, quick);
    for (what, with, bytes) in steps {
        any.now += Duration::from_millis(u64::from(*with) * 50);
        let (peer, number, observes) = (with % 4, u64::from(with % 32), with & 0x20 != 0);
        let size = if observes { 3000 } else { bytes.len() };
        let mut content = Content::new(Code(what >> 3)).with_payload(vec![*with; size]);
        if with & 0x40 != 0 {
            content.push(option::OBSERVE, b"");
        }
        let input = match what % 10 {
            0 => Input::Datagram { peer, bytes: bytes.clone().into(), is_group: observes },
            1 => {
                let mut bytes_back: Vec<u8> = any.sent.pop().unwrap_or_default();
                for pair in bytes.chunks_exact(2) {
                    if let Some(byte) = bytes_back.get_mut(usize::from(pair[0] % 32)) {
                        *byte = pair[1];
                    }
                }
                Input::Datagram { peer, bytes: bytes_back.into(), is_group: false }
            }
            2 if with & 0x10 != 0 => {
                any.open.insert(number);
                content.code = Code(1 + with % 7);
                opening(number, *with, content)
            }
            2 => {
                any.open.insert(number);
                content.code = Code(1 + with % 7);
                Input::Request { request: number, peer, content, is_confirmable: observes }
            }
            3 => Input::Respond { exchange: number % 8, content },
            4 => Input::Notify { exchange: number % 8, content },
            5 => {
                any.open.remove(&number);
                Input::Cancel { request: number }
            }
            6 => {
                any.open.insert(number);
                Input::Ping { request: number, peer }
            }
            7 if with & 0x40 == 0 => step(number, *with, bytes),
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
