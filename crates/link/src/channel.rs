//! One direction of a link: the machine.

use crate::delay_line::DelayLine;
use crate::jitter::JitterProcess;
use crate::loss::LossProcess;
use crate::queue::{InService, Numbered, Queue};
use crate::random::{Dice, Purpose, Subject};
use crate::serializer::Serializer;
use crate::stats::Count;
use crate::{ChannelConfig, Direction, DropReason, Packet, Stats};
use std::collections::VecDeque;
use std::time::Duration;

/// Most dropped packets kept for [`Output::Drop`] until the caller takes them. A caller that obeys
/// the drain rule never gets near; beyond it the oldest are forgotten, though counted.
pub const MAX_DROP_REPORTS: usize = 131_072;

/// What a channel is told.
#[derive(Clone, Debug)]
pub enum Input<P> {
    /// A packet from the sender.
    Packet(P),
    /// The time that [`Output::WakeAt`] asked for has come.
    Wake,
    /// From now on the link is like this. What is queued and what travels is kept, also where it
    /// passes the new limits; the packet being sent ends at the old rate, those behind it go at
    /// the new one.
    Configure(Box<ChannelConfig>),
}

/// What a channel says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A packet has arrived.
    Deliver {
        /// The exact scheduled instant, not after the time of the last input.
        due: Duration,
        /// The packet, perhaps with a bit flipped.
        packet: P,
    },
    /// A packet will not arrive.
    Drop {
        /// The packet, for its buffer.
        packet: P,
        /// Why.
        reason: DropReason,
    },
    /// Nothing more now: hand in [`Input::Wake`] at this time or after.
    WakeAt(Duration),
    /// Nothing more until the next input.
    Idle,
}

/// One direction of an emulated link. The crate's page says what happens to a packet in it.
pub struct Channel<P> {
    config: ChannelConfig,
    dice: Dice,
    now: Duration,
    loss: LossProcess,
    jitter: JitterProcess,
    queue: Queue<P>,
    serializer: Serializer,
    in_service: Option<InService<P>>,
    /// The latest time for which a packet that keeps its place is due.
    latest_due: Duration,
    delay_line: DelayLine<P>,
    dropped: VecDeque<(P, DropReason)>,
    stats: Stats,
}

impl<P: Packet> Channel<P> {
    /// An empty channel at the caller's epoch. Different seeds and directions decide differently.
    #[must_use]
    pub fn new(config: ChannelConfig, seed: u64, direction: Direction) -> Self {
        Self {
            config,
            dice: Dice::new(seed, direction),
            now: Duration::ZERO,
            loss: LossProcess::default(),
            jitter: JitterProcess::default(),
            queue: Queue::new(),
            serializer: Serializer::default(),
            in_service: None,
            latest_due: Duration::ZERO,
            delay_line: DelayLine::new(),
            dropped: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Tells the channel what happened at `now`, which never runs backwards (an earlier time
    /// counts as the latest so far). Then [`Channel::poll_output`] is to be drained.
    pub fn handle_input(&mut self, now: Duration, input: Input<P>) {
        self.now = self.now.max(now);
        self.advance();
        match input {
            Input::Packet(packet) => {
                self.admit(packet);
                self.advance();
            }
            Input::Wake => {}
            Input::Configure(config) => {
                self.config = *config;
                self.serializer.reconfigure();
            }
        }
    }

    /// What there is to do, to be called until it says [`Output::WakeAt`] or [`Output::Idle`].
    pub fn poll_output(&mut self) -> Output<P> {
        if let Some((packet, reason)) = self.dropped.pop_front() {
            return Output::Drop { packet, reason };
        }
        if let Some((due, packet)) = self.delay_line.pop_due(self.now) {
            self.stats.delivered.add(&packet);
            return Output::Deliver { due, packet };
        }
        let finish = self.in_service.as_ref().map(|service| service.finish);
        match finish.into_iter().chain(self.delay_line.next_due()).min() {
            Some(at) => Output::WakeAt(at),
            None => Output::Idle,
        }
    }

    /// What the link is like now.
    #[must_use]
    pub fn config(&self) -> &ChannelConfig {
        &self.config
    }

    /// What it has carried and holds, as of the last input.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let in_service = self.in_service.as_ref();
        Stats {
            queued: self.queue.now(),
            queue_peak: self.queue.peak(),
            in_service: in_service
                .map_or(Count::default(), |service| Count::default().with(&service.entry.packet)),
            in_flight: self.delay_line.held(),
            ..self.stats
        }
    }

    /// A packet comes to the transmitter: sent at once if that is free, else queued.
    fn admit(&mut self, packet: P) {
        let number = self.stats.offered.packets;
        self.stats.offered.add(&packet);
        if self.config.mtu.is_some_and(|mtu| packet.len_bytes() as u64 > u64::from(mtu)) {
            return self.drop(packet, DropReason::Mtu);
        }
        let spared = self.config.loss_first;
        if spared && self.loses(number) {
            return self.drop(packet, DropReason::Loss);
        }
        let entry = Numbered { number, spared, packet };
        if self.in_service.is_none() {
            self.send(entry, self.now);
        } else if let Err(entry) =
            self.queue.push(entry, self.config.queue_packets, self.config.queue_bytes)
        {
            self.drop(entry.packet, DropReason::Queue);
        }
    }

    /// Everything that the transmitter does up to now.
    fn advance(&mut self) {
        while let Some(sent) = self.in_service.take_if(|service| service.finish <= self.now) {
            if let Some(next) = self.queue.pop() {
                self.send(next, sent.finish);
            }
            self.travel(sent);
        }
    }

    fn send(&mut self, entry: Numbered<P>, start: Duration) {
        let finish = self.serializer.send(&self.config, start, entry.packet.len_bytes());
        self.in_service = Some(InService { entry, start, finish });
    }

    /// A packet has left the transmitter: it is lost, or travels, perhaps with a copy.
    fn travel(&mut self, sent: InService<P>) {
        let InService { entry: Numbered { number, spared, packet }, start, finish } = sent;
        if !spared && self.loses(number) {
            return self.drop(packet, DropReason::Loss);
        }
        if self.config.outages.meet(start, finish) {
            return self.drop(packet, DropReason::Outage);
        }
        let subject = Subject { number, is_copy: false };
        if self.dice.chance(subject, Purpose::Duplicate, self.config.duplicate) {
            let copy = packet.duplicate();
            self.stats.duplicated.add(&copy);
            self.fly(subject, packet, finish);
            self.fly(Subject { number, is_copy: true }, copy, finish);
        } else {
            self.fly(subject, packet, finish);
        }
    }

    fn fly(&mut self, subject: Subject, mut packet: P, finish: Duration) {
        if self.dice.chance(subject, Purpose::Corrupt, self.config.corrupt) {
            self.corrupt(subject, &mut packet);
        }
        let due = self.due(subject, finish);
        if let Err(packet) = self.delay_line.push(due, packet) {
            self.drop(packet, DropReason::Overflow);
        }
    }

    fn corrupt(&mut self, subject: Subject, packet: &mut P) {
        let bits = packet.len_bytes().saturating_mul(8);
        if bits > 0 {
            let bit = self.dice.below(subject, Purpose::CorruptBit, bits as u64);
            packet.flip_bit(usize::try_from(bit).unwrap_or(0));
            self.stats.corrupted += 1;
        }
    }

    /// When a packet that left at `finish` arrives.
    fn due(&mut self, subject: Subject, finish: Duration) -> Duration {
        let config = &self.config;
        if self.dice.chance(subject, Purpose::Reorder, config.reorder) {
            self.stats.reordered += 1;
            return finish;
        }
        let delay = self.jitter.delay(config, &self.dice, subject);
        let mut due = finish.saturating_add(delay);
        if config.reorder <= 0.0 {
            due = due.max(self.latest_due);
        }
        self.latest_due = self.latest_due.max(due);
        due
    }

    fn loses(&mut self, number: u64) -> bool {
        self.loss.loses(&self.config, &self.dice, Subject { number, is_copy: false })
    }

    fn drop(&mut self, packet: P, reason: DropReason) {
        self.stats.dropped[reason as usize].add(&packet);
        if self.dropped.len() == MAX_DROP_REPORTS {
            self.dropped.pop_front();
        }
        self.dropped.push_back((packet, reason));
    }
}

#[cfg(test)]
mod tests;
