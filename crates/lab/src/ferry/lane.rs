//! One direction of a link, with its figures.

use std::time::Duration;

use hdrhistogram::{CreationError, Histogram};
use link::{Channel, ChannelConfig, Count, Direction, Input, Output, Packet, Stats};

use super::clock::Clock;
use super::frame::{Frame, Unfit};
use super::port::Port;
use super::recorder::{Fate, Recorder};

/// The largest lateness that is told apart, in microseconds.
const MAX_LATENESS_US: u64 = 60_000_000;
/// Significant decimal digits of a lateness.
const LATENESS_DIGITS: u8 = 2;

/// Microseconds that packets were written after they were due.
pub(crate) type LatenessHistogram = Histogram<u32>;

/// One without a packet.
pub(super) fn lateness_histogram() -> Result<LatenessHistogram, CreationError> {
    Histogram::new_with_bounds(1, MAX_LATENESS_US, LATENESS_DIGITS)
}

/// Packets move from one port through the channel to the other port.
pub(super) struct Lane {
    direction: Direction,
    channel: Channel<Frame>,
    figures: Figures,
}

/// The time, as the machine and as a link counts it.
pub(super) struct Moment<'a> {
    pub(super) clock: &'a Clock,
    pub(super) epoch: Duration,
}

impl Moment<'_> {
    /// Since the link began.
    fn now(&self) -> Duration {
        self.clock.now().saturating_sub(self.epoch)
    }

    /// A moment of the link on the machine's clock.
    fn absolute(&self, of_link: Duration) -> Duration {
        self.epoch.saturating_add(of_link)
    }
}

/// What a lane has done that its channel does not know.
#[derive(Clone)]
pub(crate) struct Figures {
    /// Written to the receiver.
    pub(crate) written: Count,
    /// Not taken by the receiver's interface.
    pub(crate) refused: u64,
    /// Frames that carry something else than IP, not let onto the link.
    pub(crate) ignored: u64,
    /// The kernel's reports of the groups of its own IPv6 addresses, not let onto the link either.
    pub(crate) own_reports: u64,
    /// Of every packet written.
    pub(crate) lateness: LatenessHistogram,
}

/// What a lane has carried up to now.
pub(crate) struct LaneReport {
    /// What went through the channel.
    pub(crate) stats: Stats,
    /// What went through the ports.
    pub(crate) figures: Figures,
}

impl Figures {
    pub(super) fn new() -> Result<Self, CreationError> {
        let lateness = lateness_histogram()?;
        Ok(Self { written: Count::default(), refused: 0, ignored: 0, own_reports: 0, lateness })
    }
}

impl Lane {
    pub(super) fn new(
        config: ChannelConfig,
        seed: u64,
        direction: Direction,
        figures: Figures,
    ) -> Self {
        Self { direction, channel: Channel::new(config, seed, direction), figures }
    }

    /// Hands an input to the channel and writes to `port` what is due. Returns when to wake it, on
    /// the machine's clock.
    pub(super) fn handle_input(
        &mut self,
        moment: &Moment<'_>,
        port: &Port,
        recorder: &mut Recorder,
        mut input: Input<Frame>,
    ) -> Option<Duration> {
        let now = moment.now();
        if let Input::Packet(frame) = &mut input {
            frame.entry = recorder.offer(self.direction, moment.absolute(now), frame.packet());
        }
        self.channel.handle_input(now, input);
        loop {
            match self.channel.poll_output() {
                Output::Deliver { due, packet } => {
                    let fate = self.write(moment, port, due, &packet);
                    recorder.end(packet.entry, Some(moment.absolute(due)), fate);
                }
                // The channel has counted it.
                Output::Drop { packet, reason } => {
                    recorder.end(packet.entry, None, Fate::Dropped(reason));
                }
                Output::WakeAt(at) => return Some(moment.absolute(at)),
                Output::Idle => return None,
            }
        }
    }

    /// Counts a frame that the link does not carry.
    pub(super) fn ignore(&mut self, why: Unfit) {
        match why {
            Unfit::Foreign => self.figures.ignored += 1,
            Unfit::OwnReport => self.figures.own_reports += 1,
        }
    }

    pub(super) fn report(&self) -> LaneReport {
        LaneReport { stats: self.channel.stats(), figures: self.figures.clone() }
    }

    /// Frees what travels, for the buffers.
    pub(super) fn end(self) -> Figures {
        self.figures
    }

    fn write(&mut self, moment: &Moment<'_>, port: &Port, due: Duration, frame: &Frame) -> Fate {
        if port.write(frame.as_bytes()).is_err() {
            // The interface is down, gone or full. A real receiver that is not there loses the
            // packet too; waiting would hold up every other link.
            self.figures.refused += 1;
            return Fate::Refused;
        }
        let now = moment.now();
        let late = now.saturating_sub(due);
        self.figures
            .lateness
            .saturating_record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
        self.figures.written.packets += 1;
        self.figures.written.bytes += frame.len_bytes() as u64;
        Fate::Delivered(moment.absolute(now))
    }
}
