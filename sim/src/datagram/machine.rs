//! One end of a datagram carrier.

use std::time::Duration;

use bytes::BytesMut;
use proto::Error;
use proto::carrier::{self, Flows, Input, Measured, Output, Setup};
use proto::control;
use proto::exchange::Part;
use proto::stream::{Blocks, Frame, Hello};

use super::MAX_AHEAD;
use super::packet::{MAX_ACKS, Packet};
use super::receiving::Receiving;
use super::sending::Sending;

/// What a part has around it on the way, about.
const AROUND_BYTES: usize = 40;

/// See the module.
#[derive(Debug)]
pub(super) struct Machine {
    flows: Flows,
    sending: Sending,
    receiving: Receiving,
    /// Fragments to acknowledge.
    acks: Vec<(u64, u64)>,
    blocks: Blocks,
    /// What is left of a message that is being read.
    frames: BytesMut,
    now: Duration,
    announced_wake_at: Option<Duration>,
    fault: Option<Error>,
    faulted: bool,
}

impl Machine {
    /// A fresh end; its greeting is the first thing it sends.
    pub(super) fn new(setup: Setup) -> Self {
        let hello = Frame::Hello(Hello::of(&setup));
        let mut machine = Self {
            flows: Flows::new(setup, MAX_AHEAD),
            sending: Sending::new(),
            receiving: Receiving::new(),
            acks: Vec::new(),
            blocks: Blocks::default(),
            frames: BytesMut::new(),
            now: Duration::ZERO,
            announced_wake_at: None,
            fault: None,
            faulted: false,
        };
        machine.push(None, &[hello]);
        machine
    }

    /// Frames go as one message, behind those of the same key.
    fn push(&mut self, key: Option<u64>, frames: &[Frame]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        self.sending.push(key, &bytes.into());
    }

    fn send(&mut self, part: Part) -> Result<(), Error> {
        if !carrier::Machine::may_send(self, &part) {
            return Err(Error::Caller { what: "a part before the peer's greeting" });
        }
        if !self.flows.send(&part)? {
            return Ok(());
        }
        let key = control::order_of(&part);
        let padding = self.blocks.sends(&part).map(Frame::Padding);
        let frames: Vec<Frame> = [Frame::Part(part)].into_iter().chain(padding).collect();
        self.push(key, &frames);
        Ok(())
    }

    fn datagram(&mut self, packet: Packet) -> Result<(), Error> {
        match packet {
            Packet::Ack(acks) => self.sending.acknowledged(self.now, &acks),
            Packet::Fragment { message, after, place, count, bytes } => {
                self.receiving.push((message, after), (place, count), bytes)?;
                self.acks.push((message, place));
            }
        }
        Ok(())
    }

    /// What the next frame says that says something.
    fn next_received(&mut self) -> Result<Option<Output>, Error> {
        loop {
            while let Some(frame) = Frame::take(&mut self.frames)? {
                if let Some(output) = self.accept(frame)? {
                    return Ok(Some(output));
                }
            }
            let Some(message) = self.receiving.next() else { return Ok(None) };
            self.frames = message;
        }
    }

    fn accept(&mut self, frame: Frame) -> Result<Option<Output>, Error> {
        if self.flows.peer().is_none() && !matches!(frame, Frame::Hello(_)) {
            return Err(Error::Peer { what: "the first frame must be a greeting", value: 0 });
        }
        Ok(match frame {
            Frame::Hello(hello) => {
                self.flows.greet(hello.into_peer())?;
                Some(Output::Greeted)
            }
            Frame::Padding(_) => None,
            Frame::Ping(number) => {
                self.push(None, &[Frame::Pong(number)]);
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

    fn next_datagram(&mut self) -> Option<Packet> {
        if self.acks.is_empty() {
            return self.sending.next(self.now);
        }
        let most = self.acks.len().min(MAX_ACKS);
        Some(Packet::Ack(self.acks.drain(..most).collect()))
    }
}

impl carrier::Machine for Machine {
    fn handle_input(&mut self, now: Duration, input: Input) {
        if self.faulted {
            return;
        }
        self.now = now;
        // One that has come may be wanted once more at the same instant.
        self.announced_wake_at = self.announced_wake_at.filter(|at| now < *at);
        let done = match input {
            Input::Datagram(datagram) => {
                Packet::decode(&datagram).and_then(|packet| self.datagram(packet))
            }
            Input::Send(part, _) => self.send(part),
            Input::Probe(number) => {
                self.push(None, &[Frame::Ping(number)]);
                Ok(())
            }
            Input::Bytes(_) | Input::Stream { .. } => {
                Err(Error::Caller { what: "bytes without a datagram" })
            }
            Input::Wake => Ok(()),
        };
        if let Err(error) = done {
            self.faulted = true;
            self.fault = Some(error);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        if !self.faulted {
            match self.next_received() {
                Ok(Some(output)) => return Some(output),
                Ok(None) => {}
                Err(error) => {
                    self.faulted = true;
                    self.fault = Some(error);
                }
            }
        }
        if let Some(error) = self.fault.take() {
            return Some(Output::Fault(error));
        }
        if self.faulted {
            return None;
        }
        if let Some(packet) = self.next_datagram() {
            return Some(Output::Datagram(packet.encode()));
        }
        let wake_at = self.sending.wake_at().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at))
    }

    fn flows(&self) -> &Flows {
        &self.flows
    }

    fn may_send(&self, _: &Part) -> bool {
        self.flows.peer().is_some()
    }

    fn wire_len(&self, part: &Part) -> usize {
        AROUND_BYTES + part.content_len() + self.blocks.padding_of(part)
    }

    fn held_bytes(&self) -> usize {
        self.sending.held_bytes()
    }

    fn measured(&self) -> Option<Measured> {
        let sending = &self.sending;
        Some(Measured {
            round_trip: sending.round_trip(),
            min_round_trip: sending.min_round_trip.min(sending.round_trip()),
            bytes_per_s: 0,
            sent: sending.left,
            sent_again: sending.left_again,
            timeouts: sending.timeouts,
            incoming_loss_ppm: None,
        })
    }
}
