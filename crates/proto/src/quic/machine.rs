//! One end of a carrier over QUIC: parts in and out as frames of its streams.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::{CONTROL_STREAM, MAX_AHEAD};
use crate::Error;
use crate::carrier::{self, Flows, Input, Output, Piece, Setup};
use crate::control;
use crate::exchange::{Part, Role};
use crate::stream::{Blocks, Frame, Hello};
use crate::urgency::Urgency;

/// What a frame has around its content, and a stream around that, about.
const FRAME_BYTES: usize = 8;
/// Most bytes of streams that are held until the peer's HELLO is here: what an edge may send ahead
/// of it is less.
const MAX_HELD_BYTES: usize = 4 << 20;
/// Exchanges that a control part may be about before their first part is sent.
const MAX_ANNOUNCED: usize = 64;

/// A stream, while the peer may still send on it.
#[derive(Debug, Default)]
struct Stream {
    /// The exchange whose it is; `None` for the first stream, and until a frame says it.
    exchange: Option<u64>,
    received: BytesMut,
    fin: bool,
}

/// One end of a carrier over QUIC.
#[derive(Debug)]
pub struct Machine {
    flows: Flows,
    blocks: Blocks,
    streams: BTreeMap<u64, Stream>,
    /// Streams on which this side may still send, by exchange.
    of: BTreeMap<u64, u64>,
    /// Edge: the stream that is opened next. Gateway: one beyond the last that the peer opened.
    next: u64,
    /// Streams with something that was not read.
    unread: BTreeSet<u64>,
    /// Bytes in all that were not read.
    held: usize,
    /// Edge: frames about exchanges that have no stream yet.
    announced: BTreeMap<u64, Vec<u8>>,
    /// What leaves, by urgency and stream.
    transmit: BTreeMap<(Urgency, u64), (Vec<u8>, bool)>,
    fault: Option<Error>,
    faulted: bool,
}

impl Machine {
    /// A fresh end; its HELLO is the first thing that it sends.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let mut hello = Vec::new();
        Frame::Hello(Hello::of(&setup)).encode(&mut hello);
        let mut machine = Self {
            flows: Flows::new(setup, MAX_AHEAD),
            blocks: Blocks::default(),
            streams: BTreeMap::from([(CONTROL_STREAM, Stream::default())]),
            of: BTreeMap::new(),
            next: CONTROL_STREAM + 1,
            unread: BTreeSet::new(),
            held: 0,
            announced: BTreeMap::new(),
            transmit: BTreeMap::new(),
            fault: None,
            faulted: false,
        };
        machine.push(CONTROL_STREAM, Urgency::FIRST, &hello);
        machine
    }

    fn fail(&mut self, error: Error) {
        self.faulted = true;
        self.fault = Some(error);
    }

    fn role(&self) -> Role {
        self.flows.setup().role
    }

    /// Most streams that may be open besides the first.
    fn max_streams(&self) -> u64 {
        self.flows.setup().max_exchanges.saturating_add(MAX_AHEAD)
    }

    /// Bytes leave on a stream.
    fn push(&mut self, stream: u64, urgency: Urgency, bytes: &[u8]) {
        // Bytes of a stream keep their order.
        let before = self.transmit.iter().find(|((_, one), _)| *one == stream);
        if let Some((&(before, _), _)) = before.filter(|((before, _), _)| *before != urgency) {
            let (mut moved, fin) = self.transmit.remove(&(before, stream)).unwrap_or_default();
            moved.extend_from_slice(bytes);
            self.transmit.insert((before.min(urgency), stream), (moved, fin));
            return;
        }
        let (transmit, _) = self.transmit.entry((urgency, stream)).or_default();
        transmit.extend_from_slice(bytes);
    }

    /// Ends this side's direction of the stream of an exchange, if that is over.
    fn end(&mut self, exchange: u64) {
        if self.flows.is_open(exchange) {
            return;
        }
        self.blocks.forget(exchange);
        let Some(&stream) = self.of.get(&exchange) else { return };
        let has_fin = self.streams.get(&stream).is_none_or(|one| one.fin);
        if self.role() == Role::Edge && !has_fin {
            return;
        }
        self.of.remove(&exchange);
        let waits = self.transmit.iter_mut().find(|((_, one), _)| *one == stream);
        match waits {
            Some((_, (_, fin))) => *fin = true,
            None => {
                self.transmit.insert((Urgency::FIRST, stream), (Vec::new(), true));
            }
        }
        self.drop_if_over(stream);
    }

    /// A stream is forgotten once nothing more comes on it, and nothing is sent.
    fn drop_if_over(&mut self, stream: u64) {
        let Some(one) = self.streams.get(&stream) else { return };
        let sends = one.exchange.is_some_and(|exchange| self.of.get(&exchange) == Some(&stream));
        if stream != CONTROL_STREAM && one.fin && one.received.is_empty() && !sends {
            self.streams.remove(&stream);
            self.unread.remove(&stream);
        }
    }

    /// Checks a part of the relay's and encodes it.
    fn send(&mut self, part: Part, urgency: Urgency) -> Result<(), Error> {
        if !carrier::Machine::may_send(self, &part) {
            return Err(Error::Caller { what: "a part before the peer's HELLO" });
        }
        if !self.flows.send(&part)? {
            return Ok(());
        }
        let about = control::order_of(&part);
        let opens = matches!(part, Part::Head(_) | Part::Query(..));
        let padding = self.blocks.sends(&part);
        let is_control = matches!(part, Part::Control(..));
        let mut bytes = Vec::new();
        Frame::Part(part).encode(&mut bytes);
        if let Some(padding) = padding {
            Frame::Padding(padding).encode(&mut bytes);
        }
        let Some(exchange) = about else {
            self.push(CONTROL_STREAM, urgency, &bytes);
            return Ok(());
        };
        let open = self.of.get(&exchange).copied();
        let stream = match open {
            Some(stream) => stream,
            None if self.role() == Role::Edge && opens => self.open(exchange, urgency),
            None if self.role() == Role::Edge && is_control => {
                self.announce(exchange, &bytes);
                return Ok(());
            }
            None => CONTROL_STREAM,
        };
        self.push(stream, urgency, &bytes);
        self.end(exchange);
        Ok(())
    }

    /// Edge: a stream for an exchange, which begins with what was said of it.
    fn open(&mut self, exchange: u64, urgency: Urgency) -> u64 {
        let stream = self.next;
        self.next += 1;
        self.of.insert(exchange, stream);
        self.streams.insert(stream, Stream { exchange: Some(exchange), ..Stream::default() });
        if let Some(announced) = self.announced.remove(&exchange) {
            self.push(stream, urgency, &announced);
        }
        stream
    }

    /// Edge: it is said of an exchange before that has a stream. What is about one that never has
    /// one is of no use.
    fn announce(&mut self, exchange: u64, bytes: &[u8]) {
        self.announced.entry(exchange).or_default().extend_from_slice(bytes);
        if self.announced.len() > MAX_ANNOUNCED {
            self.announced.pop_first();
        }
    }

    /// Bytes came on a stream.
    fn receive(&mut self, stream: u64, bytes: &Bytes, fin: bool) -> Result<(), Error> {
        if !self.streams.contains_key(&stream) {
            if self.role() == Role::Edge {
                // One that was given up on both sides, or that this side never opened.
                return match stream < self.next {
                    true => Ok(()),
                    false => Err(Error::Peer {
                        what: "a stream that the edge has not opened:",
                        value: stream,
                    }),
                };
            }
            let (limit, value) = (self.max_streams(), self.streams.len() as u64);
            if value > limit {
                return Err(Error::Limit { what: "the number of streams", value, limit });
            }
            self.streams.insert(stream, Stream::default());
        }
        let Some(one) = self.streams.get_mut(&stream) else { return Ok(()) };
        if one.fin && !(bytes.is_empty() && fin) {
            return Err(Error::Peer { what: "bytes behind the end of stream", value: stream });
        }
        one.received.extend_from_slice(bytes);
        one.fin |= fin;
        self.held += bytes.len();
        if self.flows.peer().is_none() && self.held > MAX_HELD_BYTES {
            let (what, value) = ("the bytes ahead of HELLO", self.held as u64);
            return Err(Error::Limit { what, value, limit: MAX_HELD_BYTES as u64 });
        }
        self.unread.insert(stream);
        Ok(())
    }

    /// What the next frame says that says something.
    fn next_received(&mut self) -> Result<Option<Output>, Error> {
        loop {
            let Some(&stream) = self.unread.first() else { return Ok(None) };
            if stream != CONTROL_STREAM && self.flows.peer().is_none() {
                return Ok(None);
            }
            let Some(one) = self.streams.get_mut(&stream) else {
                self.unread.remove(&stream);
                continue;
            };
            let before = one.received.len();
            let frame = Frame::take(&mut one.received);
            self.held -= before - one.received.len();
            let Some(frame) = frame? else {
                self.unread.remove(&stream);
                self.read_all(stream)?;
                continue;
            };
            if let Some(output) = self.accept(stream, frame)? {
                return Ok(Some(output));
            }
        }
    }

    /// What came on a stream is read, but for a frame that is not whole.
    fn read_all(&mut self, stream: u64) -> Result<(), Error> {
        let Some(one) = self.streams.get(&stream).filter(|one| one.fin) else { return Ok(()) };
        if !one.received.is_empty() {
            return Err(Error::Truncated { what: "the last frame of a stream" });
        }
        one.exchange.into_iter().for_each(|exchange| self.end(exchange));
        self.drop_if_over(stream);
        Ok(())
    }

    /// Checks a frame of the peer; `None` for one that says nothing new.
    fn accept(&mut self, stream: u64, frame: Frame) -> Result<Option<Output>, Error> {
        if stream == CONTROL_STREAM && self.flows.peer().is_none() {
            let Frame::Hello(hello) = frame else {
                return Err(Error::Peer { what: "the first frame must be HELLO", value: 0 });
            };
            hello.check_versions()?;
            self.flows.greet(hello.into_peer())?;
            return Ok(Some(Output::Greeted));
        }
        Ok(match frame {
            Frame::Hello(_) => return Err(Error::Peer { what: "HELLO on stream", value: stream }),
            Frame::Padding(_) => None,
            Frame::Ping(number) => {
                let mut bytes = Vec::new();
                Frame::Pong(number).encode(&mut bytes);
                self.push(CONTROL_STREAM, Urgency::FIRST, &bytes);
                None
            }
            Frame::Pong(number) => Some(Output::Answered(number)),
            Frame::Part(part) => self.accept_part(stream, part)?.map(Output::Received),
        })
    }

    fn accept_part(&mut self, stream: u64, part: Part) -> Result<Option<Part>, Error> {
        let about = control::order_of(&part);
        if stream != CONTROL_STREAM {
            let Some(exchange) = about else {
                let value = stream;
                return Err(Error::Peer { what: "a part of no exchange on stream", value });
            };
            self.claim(stream, exchange)?;
            // What came late on a stream of before is of what was given up since.
            if self.of.get(&exchange).is_some_and(|now| *now != stream) {
                return Ok(None);
            }
        }
        let is_new = self.flows.accept(&part)?;
        if let Some(exchange) = about {
            // A control part may come ahead of what opens its exchange.
            let ahead = matches!(part, Part::Control(..)) && self.role() == Role::Gateway;
            if !ahead {
                self.end(exchange);
            }
        }
        Ok(is_new.then_some(part))
    }

    /// A stream has frames of an exchange: it is the one that it was, or it becomes that.
    fn claim(&mut self, stream: u64, exchange: u64) -> Result<(), Error> {
        let Some(one) = self.streams.get_mut(&stream) else { return Ok(()) };
        match one.exchange {
            Some(before) if before == exchange => return Ok(()),
            Some(_) => {
                return Err(Error::Peer {
                    what: "another exchange's part on stream",
                    value: stream,
                });
            }
            None => one.exchange = Some(exchange),
        }
        match self.of.insert(exchange, stream) {
            None => Ok(()),
            Some(value) => Err(Error::Peer { what: "a second stream of the exchange of", value }),
        }
    }
}

#[cfg(test)]
impl Machine {
    /// Streams that are not over, with the first.
    pub(super) fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Exchanges of which something was said that have no stream.
    pub(super) fn announced(&self) -> usize {
        self.announced.len()
    }
}

impl carrier::Machine for Machine {
    fn handle_input(&mut self, _now: Duration, input: Input) {
        if self.faulted {
            return;
        }
        let done = match input {
            Input::Stream { stream, bytes, fin } => self.receive(stream, &bytes, fin),
            Input::Send(part, urgency) => self.send(part, urgency),
            Input::Probe(number) if self.flows.peer().is_some() => {
                let mut bytes = Vec::new();
                Frame::Ping(number).encode(&mut bytes);
                self.push(CONTROL_STREAM, Urgency::FIRST, &bytes);
                Ok(())
            }
            Input::Probe(_) => Err(Error::Caller { what: "a probe before the peer's HELLO" }),
            Input::Bytes(_) | Input::Datagram(_) => {
                Err(Error::Caller { what: "bytes of no stream" })
            }
            Input::Wake => Ok(()),
        };
        if let Err(error) = done {
            self.fail(error);
        }
    }

    /// Frames are read as they are asked for, so that what the caller sends in between (an ABORT)
    /// counts at once.
    fn poll_output(&mut self) -> Option<Output> {
        if !self.faulted {
            match self.next_received() {
                Ok(Some(output)) => return Some(output),
                Ok(None) => {}
                Err(error) => self.fail(error),
            }
        }
        if let Some(error) = self.fault.take() {
            return Some(Output::Fault(error));
        }
        if self.faulted {
            return None;
        }
        let ((urgency, stream), (bytes, fin)) = self.transmit.pop_first()?;
        Some(Output::Stream(Piece { stream, urgency, fin, bytes: bytes.into() }))
    }

    fn partial_bytes(&self) -> usize {
        self.held
    }

    fn flows(&self) -> &Flows {
        &self.flows
    }

    fn wire_len(&self, part: &Part) -> usize {
        FRAME_BYTES + part.content_len() + self.blocks.padding_of(part)
    }
}
