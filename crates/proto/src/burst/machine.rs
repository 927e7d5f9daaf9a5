//! One end of a burst carrier.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::lengths::Lengths;
use super::pace::Pace;
use super::packet::{self, Chunk, Writer};
use super::receiving::Receiving;
use super::sending::{Key, Path, Sending};
use super::sent::{Datagram, Feedback, Sent, Which};
use super::{AROUND_DATAGRAM_BYTES, BESIDE_BYTES, FULL_BYTES, MAX_AHEAD, MAX_DATAGRAM_BYTES};
use crate::Error;
use crate::carrier::{self, Flows, Input, Measured, Output, Setup};
use crate::control;
use crate::exchange::Part;
use crate::stream::{Blocks, Frame, Hello};
use crate::urgency::Urgency;

/// What a part has around it on the way, about.
const AROUND_BYTES: usize = 24;
/// What a datagram has that only acknowledges, about.
const ACK_BYTES: usize = 10;
/// The rate of a path of which nothing is known, in bytes a second.
const FIRST_RATE: f64 = 125_000.0;
/// Beyond, nothing helps.
const MAX_LOSS: f64 = 0.9;
/// Signs of life that are answered at once; of more the oldest are not.
const MAX_PONGS: usize = 8;
/// Until a loss shows and what mends it arrives, in round trips.
const ROUNDS_TO_MEND: f64 = 1.5;

/// Whoever is woken by so much too late has stood still, or has a clock that was put forward.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// Share of a datagram's own bytes in what it takes on the path.
const DATAGRAM_SHARE: f64 = MAX_DATAGRAM_BYTES as f64 / FULL_BYTES as f64;

/// A rate as a whole number.
fn whole(rate: f64) -> u64 {
    Duration::try_from_secs_f64(rate).map_or(u64::MAX, |rate| rate.as_secs())
}

/// Of a million.
fn ppm(share: f64) -> u32 {
    u32::try_from(whole(share * 1e6)).unwrap_or(1_000_000)
}

/// One end of a burst carrier.
#[derive(Debug)]
pub struct Machine {
    flows: Flows,
    sending: Sending,
    receiving: Receiving,
    sent: Sent,
    lengths: Lengths,
    pace: Pace,
    blocks: Blocks,
    /// What is left of a generation that is being read.
    frames: BytesMut,
    /// A datagram is to leave whatever is under way, so that the peer acknowledges something; and
    /// a short one behind it, where long ones may be swallowed for their length.
    probe: bool,
    short_probe: bool,
    /// Signs of life that the peer has asked for.
    pongs: VecDeque<u64>,
    /// The time, but for that in which this end stood still: no round trip takes that, nor is
    /// anything lost for it.
    now: Duration,
    stood_still: Duration,
    announced_wake_at: Option<Duration>,
    fault: Option<Error>,
    faulted: bool,
}

impl Machine {
    /// A fresh end; its HELLO is the first thing it sends.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let hello = Frame::Hello(Hello::of(&setup));
        let pace = Pace::new(setup.own_bytes_per_s);
        let mut machine = Self {
            flows: Flows::new(setup, MAX_AHEAD),
            sending: Sending::new(),
            receiving: Receiving::new(),
            sent: Sent::new(),
            lengths: Lengths::new(),
            pace,
            blocks: Blocks::default(),
            frames: BytesMut::new(),
            probe: false,
            short_probe: false,
            pongs: VecDeque::new(),
            now: Duration::ZERO,
            stood_still: Duration::ZERO,
            announced_wake_at: None,
            fault: None,
            faulted: false,
        };
        machine.push((Key::None, Urgency::FIRST), &[hello], true);
        machine
    }

    fn fail(&mut self, error: Error) {
        self.faulted = true;
        self.fault = Some(error);
    }

    /// Most bytes of a datagram now.
    fn datagram_bytes(&self) -> usize {
        self.lengths.most(self.now, self.is_first())
    }

    /// Whether what makes both ends known to each other goes with a datagram.
    fn is_first(&self) -> bool {
        self.sent.round_trip.smoothed().is_none()
    }

    /// What is believed of the rate of the path, in bytes a second.
    fn rate(&self) -> f64 {
        self.pace.rate().or_else(|| self.receiving.fastest()).unwrap_or(FIRST_RATE).max(1.0)
    }

    /// What is believed of the path.
    fn path(&self) -> Path {
        let loss = self.sent.loss().clamp(0.0, MAX_LOSS);
        let chance_loss = self.sent.chance_loss().clamp(0.0, MAX_LOSS);
        let rate = self.rate() / (1.0 - chance_loss);
        let round_trip = self.sent.round_trip.expected().as_secs_f64();
        Path {
            symbol_bytes: self.datagram_bytes() - BESIDE_BYTES,
            loss,
            symbol_s: FULL_BYTES as f64 / rate,
            round_s: round_trip * ROUNDS_TO_MEND,
        }
    }

    /// Frames go behind those of the same key; `ends`: nothing follows them soon.
    fn push(&mut self, key: (Key, Urgency), frames: &[Frame], ends: bool) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let path = self.path();
        self.sending.push(key, &bytes, ends, &path);
    }

    fn send(&mut self, part: Part, urgency: Urgency) -> Result<(), Error> {
        if !carrier::Machine::may_send(self, &part) {
            return Err(Error::Caller { what: "a part before the peer's HELLO" });
        }
        if !self.flows.send(&part)? {
            return Ok(());
        }
        let key = control::order_of(&part);
        let key = key.map_or(Key::None, Key::Exchange);
        let padding = self.blocks.sends(&part).map(Frame::Padding);
        let ends = match &part {
            Part::Head(head) => head.end,
            Part::Data(data) => data.end,
            _ => true,
        };
        let frames: Vec<Frame> = [Frame::Part(part)].into_iter().chain(padding).collect();
        self.push((key, urgency), &frames, ends);
        Ok(())
    }

    fn datagram(&mut self, datagram: &Bytes) -> Result<(), Error> {
        let (number, chunks) = packet::decode(datagram)?;
        let mut wants_ack = None;
        for chunk in chunks {
            match chunk {
                Chunk::Symbol(symbol) => {
                    self.receiving.push(symbol)?;
                    wants_ack = Some(wants_ack.unwrap_or(false));
                }
                Chunk::Probe => wants_ack = Some(true),
                Chunk::Ack(ack) => {
                    let unsent = |(_, last): &&(u64, u64)| !self.sent.was_sent(*last);
                    if let Some((_, value)) = ack.ranges.iter().find(unsent) {
                        let what = "an acknowledgement of what was not sent";
                        return Err(Error::Peer { what, value: *value });
                    }
                    let feedback = self.sent.acknowledged(self.now, &ack);
                    self.heed(&feedback);
                }
            }
        }
        self.receiving.came(self.now, number, datagram.len() + AROUND_DATAGRAM_BYTES);
        if let Some(at_once) = wants_ack {
            let takes = (ACK_BYTES + AROUND_DATAGRAM_BYTES) as f64 / self.rate();
            let takes = Duration::try_from_secs_f64(takes).unwrap_or(Duration::MAX);
            self.receiving.wants_ack(self.now, at_once, takes);
        }
        Ok(())
    }

    fn heed(&mut self, feedback: &Feedback) {
        let Feedback { arrived, greatest, .. } = feedback;
        let may_fall = !self.lengths.is_suspicious();
        self.pace.arrived(self.now, arrived, *greatest, may_fall, &self.sent);
        self.lengths.arrived(arrived);
        let is_shorter = self.lengths.lost(self.now, &feedback.lost);
        let path = self.path();
        for datagram in arrived {
            datagram.acknowledged.iter().for_each(|number| self.receiving.confirmed(*number));
            datagram.symbols.iter().for_each(|symbol| self.sending.arrived(*symbol, &path));
        }
        for datagram in &feedback.lost {
            datagram.symbols.iter().for_each(|symbol| self.sending.lost(*symbol, &path));
        }
        if is_shorter {
            self.sending.shorten(&path);
        }
    }

    /// Looks whether something is lost, or overdue.
    fn look(&mut self) {
        let lost = self.sent.find_lost(self.now);
        if !lost.is_empty() {
            self.heed(&Feedback { lost, ..Feedback::default() });
        }
        if self.sent.is_overdue(self.now) {
            self.sending.probe();
            self.probe = true;
            self.short_probe = self.lengths.is_suspicious() || self.sent.timeouts > 1;
        }
    }

    /// Takes note of the time.
    fn awakes(&mut self, now: Duration) {
        let now = now.saturating_sub(self.stood_still);
        let due_at = self.announced_wake_at.filter(|at| now > *at + STOOD_STILL);
        self.now = due_at.unwrap_or(now);
        self.stood_still += now.saturating_sub(self.now);
        self.announced_wake_at = self.announced_wake_at.filter(|at| self.now < *at);
    }

    /// What the next frame says that says something.
    fn next_received(&mut self) -> Result<Option<Output>, Error> {
        loop {
            while let Some(frame) = Frame::take(&mut self.frames)? {
                if let Some(output) = self.accept(frame)? {
                    return Ok(Some(output));
                }
            }
            if !self.frames.is_empty() {
                return Err(Error::Truncated { what: "the last frame of a generation" });
            }
            let Some(generation) = self.receiving.next()? else { return Ok(None) };
            self.frames = generation;
        }
    }

    fn accept(&mut self, frame: Frame) -> Result<Option<Output>, Error> {
        if let Frame::Hello(hello) = frame {
            hello.check_versions()?;
            self.flows.greet(hello.into_peer())?;
            return Ok(Some(Output::Greeted));
        }
        if self.flows.peer().is_none() {
            return Err(Error::Peer { what: "the first frame must be HELLO", value: 0 });
        }
        Ok(match frame {
            Frame::Hello(_) | Frame::Padding(_) => None,
            Frame::Ping(number) => {
                self.pongs.push_back(number);
                if self.pongs.len() > MAX_PONGS {
                    self.pongs.pop_front();
                }
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

    /// The next datagram that may leave now.
    fn next_datagram(&mut self) -> Option<Bytes> {
        if !self.pongs.is_empty() {
            let pongs: Vec<Frame> = self.pongs.drain(..).map(Frame::Pong).collect();
            self.push((Key::Free, Urgency::FIRST), &pongs, true);
        }
        let path = self.path();
        let is_short = !self.probe && std::mem::take(&mut self.short_probe);
        let may_send = self.probe
            || is_short
            || (self.sending.is_ready() && self.pace.may_leave(self.now, &self.sent));
        let ack_is_due = self.receiving.ack_at().is_some_and(|at| at <= self.now);
        if !may_send && !ack_is_due {
            return None;
        }
        let number = self.sent.number();
        let mut writer = Writer::new(number, self.datagram_bytes());
        let ack = self.receiving.take_ack(self.now);
        let acknowledged = ack.as_ref().and_then(|ack| ack.ranges.first()).map(|(_, last)| *last);
        ack.into_iter().for_each(|ack| writer.push(&Chunk::Ack(ack)));
        let mut symbols = Vec::new();
        while may_send
            && !is_short
            && let Some(symbol) = self.sending.next(writer.room_bytes(), &symbols, &path)
        {
            let (generation, count, index) = (symbol.generation, symbol.shape.count, symbol.index);
            symbols.push(Which { generation, count, index });
            writer.push(&Chunk::Symbol(symbol));
        }
        if may_send && symbols.is_empty() {
            writer.push(&Chunk::Probe);
        }
        let bytes = writer.finish();
        if may_send {
            self.probe = false;
            self.leaves(number, bytes.len(), symbols, acknowledged);
        }
        let len = bytes.len() + AROUND_DATAGRAM_BYTES;
        let chance_loss = self.sent.chance_loss().clamp(0.0, MAX_LOSS);
        match may_send {
            true => self.pace.left(self.now, len, chance_loss),
            false => self.pace.acknowledged(self.now, len, chance_loss),
        }
        Some(bytes)
    }

    /// A datagram of so many bytes leaves that is to be acknowledged.
    fn leaves(&mut self, number: u64, len: usize, symbols: Vec<Which>, acknowledged: Option<u64>) {
        let (delivered, first_at) = self.pace.delivered(self.now, &self.sent);
        self.sent.leaves(Datagram {
            number,
            at: self.now,
            bytes: len + AROUND_DATAGRAM_BYTES,
            long: Lengths::is_long(len, self.is_first()),
            symbols,
            acknowledged,
            delivered,
            first_at,
            app_limited: self.pace.is_limited() || self.lengths.is_suspicious(),
            pauses: self.sent.pauses,
            quiet: self.pace.is_quiet(&self.sent),
        });
        if !self.sending.is_ready() {
            self.sent.pauses += 1;
            self.pace.runs_dry(&self.sent);
        }
    }

    fn wake_at(&mut self) -> Option<Duration> {
        let may_leave = match self.sending.is_ready() {
            true => self.pace.next_at(self.now, &self.sent),
            false => None,
        };
        let all = [self.sent.wake_at(), self.receiving.ack_at(), may_leave];
        all.into_iter().flatten().min()
    }
}

impl carrier::Machine for Machine {
    fn handle_input(&mut self, now: Duration, input: Input) {
        if self.faulted {
            return;
        }
        self.awakes(now);
        let done = match input {
            Input::Datagram(datagram) => self.datagram(&datagram),
            Input::Send(part, urgency) => self.send(part, urgency),
            Input::Probe(number) => {
                self.push((Key::Free, Urgency::FIRST), &[Frame::Ping(number)], true);
                Ok(())
            }
            Input::Bytes(_) | Input::Stream { .. } => {
                Err(Error::Caller { what: "bytes without a datagram" })
            }
            Input::Wake => Ok(()),
        };
        if let Err(error) = done {
            return self.fail(error);
        }
        self.look();
    }

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
        if let Some(datagram) = self.next_datagram() {
            return Some(Output::Datagram(datagram));
        }
        let wake_at = self.wake_at().filter(|at| self.announced_wake_at != Some(*at))?;
        self.announced_wake_at = Some(wake_at);
        Some(Output::WakeAt(wake_at + self.stood_still))
    }

    fn flows(&self) -> &Flows {
        &self.flows
    }

    fn wire_len(&self, part: &Part) -> usize {
        AROUND_BYTES + part.content_len() + self.blocks.padding_of(part)
    }

    fn held_bytes(&self) -> usize {
        self.sending.held_bytes()
    }

    fn unsent_bytes(&self, urgency: Urgency) -> usize {
        self.sending.unsent_bytes(urgency)
    }

    fn measured(&self) -> Option<Measured> {
        let round_trip = &self.sent.round_trip;
        Some(Measured {
            round_trip: round_trip.smoothed().unwrap_or_default(),
            min_round_trip: round_trip.least().unwrap_or_default(),
            bytes_per_s: self.pace.rate().map_or(0, |rate| whole(rate * DATAGRAM_SHARE)),
            sent: self.sent.left,
            sent_again: self.sent.lost_ones,
            timeouts: self.sent.timeouts,
            incoming_loss_ppm: self.receiving.loss().map(ppm),
        })
    }
}
