//! One end of a stream carrier: parts in and out as frames of a byte pipe.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::blocks::Blocks;
use super::packet::{Frame, Hello};
use crate::Error;
use crate::carrier::{self, Flows, Input, Output, Setup};
use crate::exchange::Part;

/// What a frame has around its content, about.
const FRAME_BYTES: usize = 6;

/// One end of a stream carrier.
#[derive(Debug)]
pub struct Machine {
    flows: Flows,
    blocks: Blocks,
    received: BytesMut,
    transmit: Vec<u8>,
    fault: Option<Error>,
    faulted: bool,
}

impl Machine {
    /// A fresh end of a fresh pipe; its HELLO is the first thing it transmits.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let hello = Frame::Hello(Hello::of(&setup));
        let mut transmit = Vec::new();
        hello.encode(&mut transmit);
        Self {
            flows: Flows::new(setup, 0),
            blocks: Blocks::default(),
            received: BytesMut::new(),
            transmit,
            fault: None,
            faulted: false,
        }
    }

    fn fail(&mut self, error: Error) {
        self.faulted = true;
        self.fault = Some(error);
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

    /// Checks a frame of the peer; `None` for one that says nothing new.
    fn accept(&mut self, frame: Frame) -> Result<Option<Output>, Error> {
        if let Frame::Hello(hello) = frame {
            return self.accept_hello(hello).map(|()| Some(Output::Greeted));
        }
        if self.flows.peer().is_none() {
            return Err(Error::Peer { what: "the first frame must be HELLO", value: 0 });
        }
        Ok(match frame {
            Frame::Hello(_) | Frame::Padding(_) => None,
            Frame::Ping(number) => {
                Frame::Pong(number).encode(&mut self.transmit);
                None
            }
            Frame::Pong(number) => Some(Output::Answered(number)),
            Frame::Part(part) => {
                if let Part::Abort(abort) = &part {
                    self.blocks.forget(abort.exchange);
                }
                self.flows.accept(&part)?.then_some(Output::Received(part))
            }
        })
    }

    fn accept_hello(&mut self, hello: Hello) -> Result<(), Error> {
        hello.check_versions()?;
        self.flows.greet(hello.into_peer())
    }

    /// Checks a part of the relay's and encodes it.
    fn send(&mut self, part: Part) -> Result<(), Error> {
        if !carrier::Machine::may_send(self, &part) {
            return Err(Error::Caller { what: "a part before the peer's HELLO" });
        }
        if !self.flows.send(&part)? {
            return Ok(());
        }
        let padding = self.blocks.sends(&part);
        Frame::Part(part).encode(&mut self.transmit);
        if let Some(bytes) = padding {
            Frame::Padding(bytes).encode(&mut self.transmit);
        }
        Ok(())
    }
}

impl carrier::Machine for Machine {
    fn handle_input(&mut self, _now: Duration, input: Input) {
        if self.faulted {
            return;
        }
        let done = match input {
            // They are held until they are read.
            Input::Bytes(bytes) => {
                self.received.extend_from_slice(&bytes);
                Ok(())
            }
            Input::Send(part, _) => self.send(part),
            Input::Probe(number) if self.flows.peer().is_some() => {
                Frame::Ping(number).encode(&mut self.transmit);
                Ok(())
            }
            Input::Probe(_) => Err(Error::Caller { what: "a probe before the peer's HELLO" }),
            Input::Datagram(_) | Input::Stream { .. } => {
                Err(Error::Caller { what: "a datagram or a stream of many on a byte pipe" })
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
        if self.transmit.is_empty() || self.faulted {
            return None;
        }
        Some(Output::Bytes(Bytes::from(std::mem::take(&mut self.transmit))))
    }

    fn partial_bytes(&self) -> usize {
        self.received.len()
    }

    fn flows(&self) -> &Flows {
        &self.flows
    }

    fn wire_len(&self, part: &Part) -> usize {
        FRAME_BYTES + part.content_len() + self.blocks.padding_of(part)
    }
}
