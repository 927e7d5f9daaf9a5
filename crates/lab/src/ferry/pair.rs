//! One link served: two lanes between two ports.

use std::time::Duration;

use link::{ChannelConfig, Direction, Input, LinkConfig};

use super::clock::Clock;
use super::frame::Frame;
use super::lane::{Figures, Lane, LaneReport, Moment};
use super::port::Port;
use super::recorder::{Entry, Recorder};
use crate::error::{Error, Result};

/// A link to be served, with all the memory that it takes from the beginning: made by the caller,
/// not on the ferry's thread.
pub(crate) struct FerryLink {
    ports: [Port; 2],
    channels: [ChannelConfig; 2],
    seed: u64,
    figures: [Figures; 2],
    recorder: Recorder,
}

impl FerryLink {
    /// A link between `ports` (to host a, to host b) that records up to `record_packets` packets.
    pub(crate) fn new(
        ports: [Port; 2],
        config: LinkConfig,
        seed: u64,
        record_packets: usize,
    ) -> Result<Self> {
        let figures = || {
            Figures::new()
                .map_err(|error| Error::Caller(format!("no lateness histogram: {error:?}")))
        };
        Ok(Self {
            ports,
            channels: [config.ab, config.ba],
            seed,
            figures: [figures()?, figures()?],
            recorder: Recorder::new(record_packets),
        })
    }
}

/// What is left of a link. Closing its ports takes the kernel 10 to 50 ms.
pub(crate) struct Remains {
    ports: [Port; 2],
    // Held so that the caller frees them, not the ferry's thread.
    _figures: [Figures; 2],
    _recorder: Recorder,
}

impl Remains {
    /// Leaves the interfaces to their namespaces, which are about to be removed.
    pub(crate) fn abandon(self) {
        self.ports.into_iter().for_each(Port::abandon);
    }
}

/// A link as the thread holds it. Lane 0 leads from port 0 (host a) to port 1 (host b), lane 1
/// back: a lane has the number of the port that it reads, and writes to the other.
pub(super) struct Pair {
    lanes: [Lane; 2],
    ports: [Port; 2],
    recorder: Recorder,
    /// When the link began: its own time, of outages and traces, counts from there.
    epoch: Duration,
    /// When each lane is to be woken.
    pub(super) wake_at: [Option<Duration>; 2],
}

impl Pair {
    pub(super) fn new(link: FerryLink, epoch: Duration) -> Self {
        let FerryLink { ports, channels: [ab, ba], seed, figures: [of_ab, of_ba], recorder } = link;
        let lanes =
            [Lane::new(ab, seed, Direction::Ab, of_ab), Lane::new(ba, seed, Direction::Ba, of_ba)];
        Self { lanes, ports, recorder, epoch, wake_at: [None; 2] }
    }

    /// The port that lane `side` reads.
    pub(super) fn port(&self, side: usize) -> &Port {
        &self.ports[side & 1]
    }

    /// Hands an input to a lane; returns when to wake it.
    pub(super) fn handle_input(
        &mut self,
        clock: &Clock,
        side: usize,
        input: Input<Frame>,
    ) -> Option<Duration> {
        let moment = Moment { clock, epoch: self.epoch };
        let port = &self.ports[(side & 1) ^ 1];
        self.lanes[side & 1].handle_input(&moment, port, &mut self.recorder, input)
    }

    /// Counts a frame that the link does not carry.
    pub(super) fn ignore(&mut self, side: usize) {
        self.lanes[side & 1].ignore();
    }

    pub(super) fn report(&self) -> [LaneReport; 2] {
        self.lanes.each_ref().map(Lane::report)
    }

    /// Fills `piece` with entries of the record.
    pub(super) fn record(&self, from: usize, mut piece: Vec<Entry>) -> (Vec<Entry>, u64) {
        self.recorder.read(from, &mut piece);
        (piece, self.recorder.unrecorded())
    }

    pub(super) fn end(self) -> Remains {
        let Self { lanes, ports, recorder, .. } = self;
        Remains { ports, _figures: lanes.map(Lane::end), _recorder: recorder }
    }
}
