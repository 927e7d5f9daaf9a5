//! One link served: two lanes between two ports.

use std::time::Duration;

use link::{ChannelConfig, Direction, Input, LinkConfig};

use super::clock::Clock;
use super::frame::{Frame, Unfit};
use super::lane::{Figures, Lane, LaneReport, Moment};
use super::port::Port;
use super::recorder::{Entry, Recorder};
use crate::error::{Error, Result};

/// What a link begins with, and all the memory that it takes from then on: made by the caller, not
/// on the ferry's thread.
pub(crate) struct Beginning {
    channels: [ChannelConfig; 2],
    seed: u64,
    figures: [Figures; 2],
    recorder: Recorder,
}

impl Beginning {
    /// Of a link that records up to `record_packets` packets.
    pub(crate) fn new(config: LinkConfig, seed: u64, record_packets: usize) -> Result<Self> {
        let figures = || {
            Figures::new()
                .map_err(|error| Error::Caller(format!("no lateness histogram: {error:?}")))
        };
        Ok(Self {
            channels: [config.ab, config.ba],
            seed,
            figures: [figures()?, figures()?],
            recorder: Recorder::new(record_packets),
        })
    }
}

/// A link to be served.
pub(crate) struct FerryLink {
    /// To host a, to host b.
    pub(crate) ports: [Port; 2],
    pub(crate) beginning: Beginning,
}

/// Memory that a link no longer needs: held so that the caller frees it, not the ferry's thread.
pub(crate) struct Past {
    _figures: [Figures; 2],
    _recorder: Recorder,
}

/// What is left of a link. Closing its ports takes the kernel 10 to 50 ms.
pub(crate) struct Remains {
    ports: [Port; 2],
    _past: Past,
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
    course: Course,
    ports: [Port; 2],
    /// When each lane is to be woken.
    pub(super) wake_at: [Option<Duration>; 2],
}

/// What goes on over a link from a beginning to the next.
struct Course {
    lanes: [Lane; 2],
    recorder: Recorder,
    /// When it began: the link's own time, of outages and traces, counts from there.
    epoch: Duration,
}

impl Course {
    fn new(beginning: Beginning, epoch: Duration) -> Self {
        let Beginning { channels: [ab, ba], seed, figures: [of_ab, of_ba], recorder } = beginning;
        let lanes =
            [Lane::new(ab, seed, Direction::Ab, of_ab), Lane::new(ba, seed, Direction::Ba, of_ba)];
        Self { lanes, recorder, epoch }
    }

    fn end(self) -> Past {
        Past { _figures: self.lanes.map(Lane::end), _recorder: self.recorder }
    }
}

impl Pair {
    pub(super) fn new(link: FerryLink, now: Duration) -> Self {
        let FerryLink { ports, beginning } = link;
        Self { course: Course::new(beginning, now), ports, wake_at: [None; 2] }
    }

    /// Begins anew: what travels is lost, nothing is to be woken.
    pub(super) fn renew(&mut self, beginning: Beginning, now: Duration) -> Past {
        self.wake_at = [None; 2];
        std::mem::replace(&mut self.course, Course::new(beginning, now)).end()
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
        let moment = Moment { clock, epoch: self.course.epoch };
        let port = &self.ports[(side & 1) ^ 1];
        let Course { lanes, recorder, .. } = &mut self.course;
        lanes[side & 1].handle_input(&moment, port, recorder, input)
    }

    /// Counts a frame that the link does not carry.
    pub(super) fn ignore(&mut self, side: usize, why: Unfit) {
        self.course.lanes[side & 1].ignore(why);
    }

    pub(super) fn report(&self) -> [LaneReport; 2] {
        self.course.lanes.each_ref().map(Lane::report)
    }

    /// Fills `piece` with entries of the record.
    pub(super) fn record(&self, from: usize, mut piece: Vec<Entry>) -> (Vec<Entry>, u64) {
        self.course.recorder.read(from, &mut piece);
        (piece, self.course.recorder.unrecorded())
    }

    pub(super) fn end(self) -> Remains {
        Remains { ports: self.ports, _past: self.course.end() }
    }
}
