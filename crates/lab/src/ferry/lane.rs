//! One direction of a link, with its figures.

use std::time::Duration;

use hdrhistogram::Histogram;
use link::{Channel, Count, Direction, Input, LinkConfig, Output, Packet, Stats};

use super::clock::Clock;
use super::frame::Frame;
use super::port::Port;

/// The largest lateness that is told apart, in microseconds.
const LATENESS_MAX_US: u64 = 60_000_000;
/// Significant decimal digits of a lateness.
const LATENESS_DIGITS: u8 = 2;

/// Microseconds that packets were written after they were due.
pub(crate) type LatenessHistogram = Histogram<u32>;

/// Packets move from one port through the channel to the other port.
pub(super) struct Lane {
    channel: Channel<Frame>,
    figures: Figures,
}

/// What a lane has done that its channel does not know.
#[derive(Clone)]
pub(crate) struct Figures {
    /// Written to the receiver.
    pub(crate) written: Count,
    /// Not taken by the receiver's interface.
    pub(crate) refused: u64,
    /// Frames that carry something else than IPv4, not let onto the link.
    pub(crate) ignored: u64,
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

impl Lane {
    pub(super) fn new(
        config: &LinkConfig,
        seed: u64,
        direction: Direction,
    ) -> Result<Self, hdrhistogram::CreationError> {
        let lateness = Histogram::new_with_bounds(1, LATENESS_MAX_US, LATENESS_DIGITS)?;
        Ok(Self {
            channel: Channel::new(config.direction(direction).clone(), seed, direction),
            figures: Figures { written: Count::default(), refused: 0, ignored: 0, lateness },
        })
    }

    /// Hands an input to the channel and writes to `port` what is due. Returns when to wake it.
    pub(super) fn handle_input(
        &mut self,
        clock: &Clock,
        port: &Port,
        input: Input<Frame>,
    ) -> Option<Duration> {
        self.channel.handle_input(clock.now(), input);
        loop {
            match self.channel.poll_output() {
                Output::Deliver { due, packet } => self.write(clock, port, due, &packet),
                // The channel has counted it.
                Output::Drop { .. } => {}
                Output::WakeAt(moment) => return Some(moment),
                Output::Idle => return None,
            }
        }
    }

    /// Counts a frame that the link does not carry.
    pub(super) fn ignore(&mut self) {
        self.figures.ignored += 1;
    }

    pub(super) fn report(&self) -> LaneReport {
        LaneReport { stats: self.channel.stats(), figures: self.figures.clone() }
    }

    fn write(&mut self, clock: &Clock, port: &Port, due: Duration, frame: &Frame) {
        if port.write(frame.as_bytes()).is_err() {
            // The interface is down, gone or full. A real receiver that is not there loses the
            // packet too; waiting would hold up every other link.
            self.figures.refused += 1;
            return;
        }
        let late = clock.now().saturating_sub(due);
        self.figures
            .lateness
            .saturating_record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
        self.figures.written.packets += 1;
        self.figures.written.bytes += frame.len_bytes() as u64;
    }
}
