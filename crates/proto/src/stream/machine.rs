//! One end of a stream carrier: parts in and out, each exchange's two halves and their credit.
//!
//! The machine keeps the peer to the protocol (order of frames, credit, number of exchanges) and
//! the caller too. What to send when, and on which exchange, is the relay's.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::packet::{Frame, Hello, MAX_VERSION, MIN_PADDING_BYTES, MIN_VERSION, data_len};
use crate::Error;
use crate::carrier::{Input, MAX_EARLY_EXCHANGES, Output, Peer, Setup};
use crate::control::Keeping;
use crate::exchange::{Data, OutcomeState, Part, Role};

/// Greatest credit that may be outstanding on an exchange, in bytes; more is a peer's fault.
const MAX_CREDIT: u64 = 1 << 40;
/// What a frame has around its content, about.
const FRAME_BYTES: usize = 6;
/// One direction of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    /// The edge sent a QUERY: first comes the OUTCOME.
    Asked,
    Idle,
    Headed,
    Ended,
}

#[derive(Debug)]
struct Flow {
    sending: Half,
    receiving: Half,
    send_credit: u64,
    receive_credit: u64,
    /// Bytes on the pipe of the block that is being sent.
    block_bytes: usize,
}

/// One end of a stream carrier.
#[derive(Debug)]
pub struct Machine {
    setup: Setup,
    peer: Option<Peer>,
    flows: BTreeMap<u64, Flow>,
    received: BytesMut,
    transmit: Vec<u8>,
    fault: Option<Error>,
    faulted: bool,
}

impl Machine {
    /// A fresh end of a fresh pipe; its HELLO is the first thing it transmits.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let hello = Frame::Hello(Hello {
            version_min: MIN_VERSION,
            version_max: MAX_VERSION,
            instance: setup.instance,
            initial_credit: setup.initial_credit,
            max_exchanges: setup.max_exchanges,
            codecs: setup.codecs.clone(),
            max_window_log: setup.max_window_log,
            anew: true,
            beside: true,
        });
        let mut transmit = Vec::new();
        hello.encode(&mut transmit);
        Self {
            setup,
            peer: None,
            flows: BTreeMap::new(),
            received: BytesMut::new(),
            transmit,
            fault: None,
            faulted: false,
        }
    }

    /// Takes one input; drain [`Machine::poll_output`] afterwards.
    pub fn handle_input(&mut self, _now: Duration, input: Input) {
        if self.faulted {
            return;
        }
        match input {
            Input::Bytes(bytes) => self.received.extend_from_slice(&bytes),
            Input::Send(part) => {
                if let Err(error) = self.send(part) {
                    self.fail(error);
                }
            }
            Input::Probe(number) if self.peer.is_some() => {
                Frame::Ping(number).encode(&mut self.transmit);
            }
            Input::Probe(_) => self.fail(Error::Caller { what: "a probe before the peer's HELLO" }),
        }
    }

    /// What there is to do, one thing at a time; `None` until the next input. Frames are read as
    /// they are asked for, so that what the caller sends in between (an ABORT) counts at once.
    pub fn poll_output(&mut self) -> Option<Output> {
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
        if self.transmit.is_empty() || self.faulted {
            return None;
        }
        Some(Output::Bytes(Bytes::from(std::mem::take(&mut self.transmit))))
    }

    fn fail(&mut self, error: Error) {
        self.faulted = true;
        self.fault = Some(error);
    }

    /// What the peer said of itself, once it has.
    #[must_use]
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// Credit left to send DATA on an exchange ([`Data::credit`]); 0 for one that is not open.
    #[must_use]
    pub fn credit(&self, exchange: u64) -> u64 {
        self.flows.get(&exchange).map_or(0, |flow| flow.send_credit)
    }

    /// Exchanges with a half open.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        self.flows.len()
    }

    /// Whether a part may be sent already. Before the peer's HELLO only an edge sends any: heads of
    /// whole requests that name no codec, on whose behalf those are, and that they are given up.
    #[must_use]
    pub fn may_send(&self, part: &Part) -> bool {
        if self.peer.is_some() || self.setup.role == Role::Gateway {
            return self.peer.is_some();
        }
        match part {
            Part::Head(head) => head.end && head.codec == 0,
            Part::Abort(_) | Part::Control(Keeping::KIND, _) => true,
            _ => false,
        }
    }

    /// Bytes that a part would take now, within a few.
    #[must_use]
    pub fn wire_len(&self, part: &Part) -> usize {
        let padding = match part {
            Part::Data(data) => self.padding(data).unwrap_or(0),
            _ => 0,
        };
        FRAME_BYTES + part.content_len() + padding
    }

    /// Bytes of padding that follow a piece.
    fn padding(&self, data: &Data) -> Option<usize> {
        let flow = self.flows.get(&data.exchange)?;
        let bytes = flow.block_bytes + data_len(data);
        data.padding.map(|padding| padding.behind(bytes, MIN_PADDING_BYTES))
    }

    /// What the next frame says that says something.
    fn next_received(&mut self) -> Result<Option<Output>, Error> {
        while let Some(frame) = Frame::take(&mut self.received)? {
            if let Some(output) = self.accept(frame)? {
                return Ok(Some(output));
            }
        }
        Ok(None)
    }

    /// Checks a frame of the peer and keeps the books; `None` for one that says nothing new.
    fn accept(&mut self, frame: Frame) -> Result<Option<Output>, Error> {
        if let Frame::Hello(hello) = frame {
            return self.accept_hello(hello).map(|()| Some(Output::Greeted));
        }
        if self.peer.is_none() {
            return Err(Error::Peer { what: "the first frame must be HELLO", value: 0 });
        }
        Ok(match frame {
            Frame::Hello(_) | Frame::Padding(_) => None,
            Frame::Ping(number) => {
                Frame::Pong(number).encode(&mut self.transmit);
                None
            }
            Frame::Pong(number) => Some(Output::Answered(number)),
            Frame::Part(part) => self.accept_part(&part)?.then_some(Output::Received(part)),
        })
    }

    fn accept_part(&mut self, part: &Part) -> Result<bool, Error> {
        match part {
            Part::GoAway | Part::Control(..) => Ok(true),
            Part::Head(head) => self.accept_head(head.exchange, head.end),
            Part::Query(exchange) => self.accept_query(*exchange),
            Part::Data(data) => {
                // Free of credit, so a peer could send them for ever.
                if data.bytes.is_empty() && !data.end {
                    let value = data.exchange;
                    return Err(Error::Peer { what: "an empty DATA that ends nothing", value });
                }
                self.accept_data(data.exchange, data.credit(), data.end)
            }
            Part::Trailers(exchange, _) => self.accept_data(*exchange, 0, true),
            Part::Credit(exchange, bytes) => self.accept_credit(*exchange, *bytes),
            Part::Abort(abort) => Ok(self.flows.remove(&abort.exchange).is_some()),
            Part::Interim(exchange, _) => self.accept_interim(*exchange),
            Part::Outcome(exchange, state) => self.accept_outcome(*exchange, *state),
        }
    }

    fn accept_hello(&mut self, hello: Hello) -> Result<(), Error> {
        if self.peer.is_some() {
            return Err(Error::Peer { what: "a second HELLO", value: 0 });
        }
        if hello.version_max < MIN_VERSION || hello.version_min > MAX_VERSION {
            let value = hello.version_max;
            return Err(Error::Limit { what: "the peer's version", value, limit: MAX_VERSION });
        }
        self.peer = Some(Peer {
            version: hello.version_max.min(MAX_VERSION),
            instance: hello.instance,
            initial_credit: hello.initial_credit.min(MAX_CREDIT),
            max_exchanges: hello.max_exchanges,
            codecs: hello.codecs,
            max_window_log: hello.max_window_log,
            anew: hello.anew,
            beside: hello.beside,
        });
        Ok(())
    }

    fn accept_head(&mut self, exchange: u64, end: bool) -> Result<bool, Error> {
        let next = if end { Half::Ended } else { Half::Headed };
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Gateway, None) => {
                self.open(exchange, Half::Idle, next)?;
                Ok(true)
            }
            (Role::Edge, Some(flow)) if flow.receiving == Half::Idle => {
                flow.receiving = next;
                self.close_if_done(exchange);
                Ok(true)
            }
            // A response to something given up meanwhile.
            (Role::Edge, None) => Ok(false),
            _ => Err(Error::Peer { what: "a HEAD out of turn on exchange", value: exchange }),
        }
    }

    fn accept_interim(&self, exchange: u64) -> Result<bool, Error> {
        match (self.setup.role, self.flows.get(&exchange)) {
            (Role::Edge, None) => Ok(false),
            (Role::Edge, Some(flow)) if flow.receiving == Half::Idle => Ok(true),
            _ => Err(Error::Peer { what: "an INTERIM out of turn on exchange", value: exchange }),
        }
    }

    fn accept_query(&mut self, exchange: u64) -> Result<bool, Error> {
        if self.setup.role == Role::Edge || self.flows.contains_key(&exchange) {
            return Err(Error::Peer { what: "a QUERY for an open exchange", value: exchange });
        }
        self.open(exchange, Half::Idle, Half::Ended)?;
        Ok(true)
    }

    fn accept_outcome(&mut self, exchange: u64, state: OutcomeState) -> Result<bool, Error> {
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Edge, None) => Ok(false),
            (Role::Edge, Some(flow)) if flow.receiving == Half::Asked => {
                flow.receiving = Half::Idle;
                if state != OutcomeState::Answer {
                    self.flows.remove(&exchange);
                }
                Ok(true)
            }
            _ => Err(Error::Peer { what: "an OUTCOME nobody asked for", value: exchange }),
        }
    }

    fn accept_data(&mut self, exchange: u64, value: u64, end: bool) -> Result<bool, Error> {
        let Some(flow) = self.flows.get_mut(&exchange) else { return Ok(false) };
        if flow.receiving != Half::Headed {
            return Err(Error::Peer { what: "DATA outside head and end", value: exchange });
        }
        let limit = flow.receive_credit;
        flow.receive_credit = limit.checked_sub(value).ok_or(Error::Limit {
            what: "the credit that DATA uses",
            value,
            limit,
        })?;
        if end {
            flow.receiving = Half::Ended;
            self.close_if_done(exchange);
        }
        Ok(true)
    }

    fn accept_credit(&mut self, exchange: u64, value: u64) -> Result<bool, Error> {
        let Some(flow) = self.flows.get_mut(&exchange) else { return Ok(false) };
        flow.send_credit = flow.send_credit.saturating_add(value);
        if flow.send_credit > MAX_CREDIT {
            return Err(Error::Limit { what: "the credit", value, limit: MAX_CREDIT });
        }
        Ok(true)
    }

    fn open(&mut self, exchange: u64, sending: Half, receiving: Half) -> Result<(), Error> {
        let limit = match (self.setup.role, &self.peer) {
            (Role::Edge, Some(peer)) => peer.max_exchanges,
            (Role::Edge, None) => MAX_EARLY_EXCHANGES,
            (Role::Gateway, _) => self.setup.max_exchanges,
        };
        if self.flows.len() as u64 >= limit {
            let value = self.flows.len() as u64 + 1;
            return Err(Error::Limit { what: "the number of open exchanges", value, limit });
        }
        let send_credit = self.peer.as_ref().map_or(0, |peer| peer.initial_credit);
        let receive_credit = self.setup.initial_credit;
        let block_bytes = 0;
        let flow = Flow { sending, receiving, send_credit, receive_credit, block_bytes };
        self.flows.insert(exchange, flow);
        Ok(())
    }

    fn close_if_done(&mut self, exchange: u64) {
        if let Some(flow) = self.flows.get(&exchange)
            && flow.sending == Half::Ended
            && flow.receiving == Half::Ended
        {
            self.flows.remove(&exchange);
        }
    }

    /// Checks a part of the relay's, keeps the books and encodes it.
    fn send(&mut self, part: Part) -> Result<(), Error> {
        if !self.may_send(&part) {
            return Err(Error::Caller { what: "a part before the peer's HELLO" });
        }
        let mut padding = None;
        match &part {
            Part::Head(head) => self.send_head(head.exchange, head.end)?,
            Part::Query(exchange) => self.open(*exchange, Half::Ended, Half::Asked)?,
            Part::Data(data) => {
                padding = self.padding(data);
                self.send_data(data)?;
            }
            Part::Trailers(exchange, _) => self.send_piece(*exchange, 0, true)?,
            Part::Credit(exchange, bytes) => {
                // The half may have ended while the relay was still consuming it.
                let Some(flow) = self.flows.get_mut(exchange) else { return Ok(()) };
                if flow.receiving == Half::Ended {
                    return Ok(());
                }
                flow.receive_credit = flow.receive_credit.saturating_add(*bytes);
            }
            Part::Abort(abort) if self.flows.remove(&abort.exchange).is_none() => return Ok(()),
            Part::Interim(exchange, _) if !self.may_send_interim(*exchange) => return Ok(()),
            Part::Outcome(exchange, state) if *state != OutcomeState::Answer => {
                self.flows.remove(exchange);
            }
            _ => {}
        }
        Frame::Part(part).encode(&mut self.transmit);
        if let Some(bytes) = padding {
            Frame::Padding(bytes).encode(&mut self.transmit);
        }
        Ok(())
    }

    fn send_head(&mut self, exchange: u64, end: bool) -> Result<(), Error> {
        let next = if end { Half::Ended } else { Half::Headed };
        match (self.setup.role, self.flows.get_mut(&exchange)) {
            (Role::Edge, None) => self.open(exchange, next, Half::Idle),
            (Role::Gateway, Some(flow)) if flow.sending == Half::Idle => {
                flow.sending = next;
                self.close_if_done(exchange);
                Ok(())
            }
            _ => Err(Error::Caller { what: "a HEAD on an exchange that is not waiting for one" }),
        }
    }

    /// Not behind the final head: the origin's word came too late.
    fn may_send_interim(&self, exchange: u64) -> bool {
        self.flows.get(&exchange).is_some_and(|flow| flow.sending == Half::Idle)
    }

    fn send_data(&mut self, data: &Data) -> Result<(), Error> {
        if data.bytes.is_empty() && !data.end {
            return Err(Error::Caller { what: "an empty DATA that ends nothing" });
        }
        if let Some(flow) = self.flows.get_mut(&data.exchange) {
            let so_far = flow.block_bytes + data_len(data);
            flow.block_bytes = if data.block_end.is_some() { 0 } else { so_far };
        }
        self.send_piece(data.exchange, data.credit(), data.end)
    }

    fn send_piece(&mut self, exchange: u64, credit: u64, end: bool) -> Result<(), Error> {
        let flow = self
            .flows
            .get_mut(&exchange)
            .filter(|flow| flow.sending == Half::Headed)
            .ok_or(Error::Caller { what: "DATA outside head and end" })?;
        flow.send_credit = flow
            .send_credit
            .checked_sub(credit)
            .ok_or(Error::Caller { what: "DATA beyond the peer's credit" })?;
        if end {
            flow.sending = Half::Ended;
            self.close_if_done(exchange);
        }
        Ok(())
    }
}
