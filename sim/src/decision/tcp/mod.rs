//! A TCP connection packet by packet over the project's emulated link: what the decision is judged
//! by, and knows nothing of.
//!
//! One sender as Linux has it: CUBIC with HyStart, selective acknowledgements, loss found by what
//! was sent later (RACK), a probe for the tail, a timeout of 200 ms at least that is taken back
//! where it was needless. The connection is kept alive between messages, so that the window and the
//! smoothed round trip of one are those with which the next begins. Its link is a [`Channel`] each
//! way: loss behind the queue, delay each way.

mod cubic;
mod receiver;
mod sender;

use std::time::Duration;

use decide::estimate::Transport;
use link::{Channel, Direction, Input, LinkConfig, Output, Packet};

use receiver::Receiver;
use sender::Sender;

/// Payload of a full segment.
const SEGMENT_BYTES: u32 = 1448;
/// Headers of a segment, and all of an acknowledgement: IPv4, TCP and its timestamps.
const ACK_BYTES: u32 = 52;

/// What the receiver takes at once: the pair's credit for an exchange grows with what the path
/// holds, from this to that.
const CREDIT_BYTES: (f64, f64) = (131_072.0, 2_097_152.0);

/// What goes over the link.
#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    transmission: u64,
    bytes: u32,
    sent_s: f64,
    /// Of an acknowledgement: arrivals that it tells of.
    received: u64,
}

impl Packet for Segment {
    fn len_bytes(&self) -> usize {
        self.bytes as usize
    }

    fn flip_bit(&mut self, _: usize) {}

    fn duplicate(&self) -> Self {
        *self
    }
}

/// A connection that is kept alive, from host b of the link to host a: the way of answers.
pub struct Connection {
    link: LinkConfig,
    data: Channel<Segment>,
    replies: Channel<Segment>,
    wakes: [Option<Duration>; 2],
    sender: Sender,
    receiver: Receiver,
    now: Duration,
}

/// What a transfer was like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Seconds from the first byte's leaving to the last one's arrival.
    pub seconds: f64,
    /// Seconds between the arrivals of the first packet and of the last.
    pub spread_s: f64,
}

impl Connection {
    /// A connection that was just opened.
    #[must_use]
    pub fn new(link: &LinkConfig, seed: u64) -> Self {
        Self {
            link: link.clone(),
            data: Channel::new(link.ba.clone(), seed, Direction::Ba),
            replies: Channel::new(link.ab.clone(), seed, Direction::Ab),
            wakes: [None; 2],
            sender: Sender::new(rtt_s(link), credit(link)),
            receiver: Receiver::default(),
            now: Duration::ZERO,
        }
    }

    /// The same connection over another link.
    pub fn change(&mut self, link: &LinkConfig) {
        if *link == self.link {
            return;
        }
        self.link = link.clone();
        self.sender.credit = credit(link);
        self.data.handle_input(self.now, Input::Configure(Box::new(link.ba.clone())));
        self.drain_data();
        self.replies.handle_input(self.now, Input::Configure(Box::new(link.ab.clone())));
        self.drain_replies();
    }

    /// What the kernel would tell.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.sender.transport(self.now.as_secs_f64())
    }

    /// Lets time pass.
    pub fn idle(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        while let Some(at) = self.next().filter(|&at| at <= until) {
            self.step(at);
        }
        self.now = until;
    }

    /// Sends so many bytes, and waits for the last to arrive.
    pub fn send(&mut self, bytes: u64) -> Transfer {
        let begin = self.now.as_secs_f64();
        let segments = self.sender.write(begin, bytes);
        self.receiver.expect(segments);
        self.transmit();
        while !self.receiver.complete() {
            let Some(at) = self.next() else { break };
            self.step(at);
        }
        let (first, last) = self.receiver.spread_s;
        Transfer { seconds: last - begin, spread_s: last - first }
    }

    fn next(&self) -> Option<Duration> {
        let timer = self.sender.timer_s().map(|at_s| {
            // Never before the moment, or it would come without end.
            Duration::from_secs_f64(at_s) + Duration::from_nanos(1)
        });
        self.wakes.iter().copied().flatten().chain(timer).min()
    }

    fn step(&mut self, at: Duration) {
        self.now = self.now.max(at);
        if self.wakes[0].is_some_and(|wake| wake <= self.now) {
            self.data.handle_input(self.now, Input::Wake);
            self.drain_data();
        }
        if self.wakes[1].is_some_and(|wake| wake <= self.now) {
            self.replies.handle_input(self.now, Input::Wake);
            self.drain_replies();
        }
        if let Some(probe) = self.sender.wake(self.now.as_secs_f64()) {
            self.data.handle_input(self.now, Input::Packet(probe));
            self.drain_data();
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.sender.poll(self.now.as_secs_f64()) {
            self.data.handle_input(self.now, Input::Packet(segment));
            self.drain_data();
        }
    }

    fn drain_data(&mut self) {
        self.wakes[0] = loop {
            match self.data.poll_output() {
                Output::Deliver { due, packet } => {
                    let Segment { number, transmission, .. } = packet;
                    let due_s = due.as_secs_f64();
                    if let Some(received) = self.receiver.receive(due_s, number, transmission) {
                        let reply = Segment { bytes: ACK_BYTES, received, ..packet };
                        self.replies.handle_input(self.now, Input::Packet(reply));
                        self.drain_replies();
                    }
                }
                Output::Drop { .. } => {}
                Output::WakeAt(at) => break Some(at),
                Output::Idle => break None,
            }
        };
    }

    fn drain_replies(&mut self) {
        self.wakes[1] = loop {
            match self.replies.poll_output() {
                Output::Deliver { packet, .. } => {
                    let news = self.receiver.tell(packet.received);
                    self.sender.acknowledged(self.now.as_secs_f64(), packet.sent_s, news);
                }
                Output::Drop { .. } => {}
                Output::WakeAt(at) => break Some(at),
                Output::Idle => break None,
            }
        };
    }
}

/// Seconds of a handshake.
fn rtt_s(link: &LinkConfig) -> f64 {
    let serialization = |rate_bps: Option<u64>| {
        rate_bps.map_or(0.0, |bps| 8.0 * f64::from(ACK_BYTES + 8) / bps.max(1) as f64)
    };
    let both = serialization(link.ab.rate_bps) + serialization(link.ba.rate_bps);
    (link.ab.delay + link.ba.delay).as_secs_f64() + both
}

fn credit(link: &LinkConfig) -> f64 {
    let rate = link.ba.rate_bps.map_or(f64::INFINITY, |rate| rate as f64);
    let (least, most) = CREDIT_BYTES;
    let bytes = (2.0 * rate / 8.0 * rtt_s(link)).clamp(least, most);
    bytes / f64::from(SEGMENT_BYTES)
}

#[cfg(test)]
mod tests;
