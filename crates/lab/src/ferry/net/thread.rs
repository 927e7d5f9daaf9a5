//! The thread of a net's ferry.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::time::Duration;

use hdrhistogram::Histogram;
use link::medium::PortId;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::time::{ClockId, clock_gettime};

use super::meta::PacketMeta;
use super::record::AirRecorder;
use super::segment::{Event, Segment, charge};
use super::{Charge, LossChange, MAX_SEGMENTS, NetCommand, NetFigures, NetPlan, SegmentPlan};
use crate::error::{Doing, Error, Result};
use crate::ferry::clock::Clock;
use crate::ferry::command::Inbox;
use crate::ferry::frame::{Frame, MAX_FRAME_BYTES, Pool};
use crate::ferry::lane::{LatenessHistogram, lateness_histogram};
use crate::ferry::port::Port;

/// Frames read from one port before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Wake-ups served before commands and new frames have their turn.
const WAKES_PER_TURN: usize = 1024;
/// Events fetched at once.
const EVENTS_PER_TURN: usize = 64;
/// Events that are not of a port, whose token is its place.
const TIMER: u64 = u64::MAX;
const COMMANDS: u64 = u64::MAX - 1;
/// Places the seeds of segments apart: the golden ratio's fraction in 64 bits.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where the port of a socket is.
#[derive(Clone, Copy, Debug, Default)]
struct SocketPlace {
    segment: usize,
    port: PortId,
}

/// See the module.
pub(super) struct NetThread {
    clock: Clock,
    epoll: Epoll,
    pool: Pool,
    buffer: Vec<u8>,
    commands: Inbox<NetCommand>,
    plans: Vec<SegmentPlan>,
    seed: u64,
    places: Vec<SocketPlace>,
    works: Works,
    events: Vec<Event>,
}

/// What changes as the net runs, and begins anew with it.
struct Works {
    sockets: Vec<Port>,
    segments: Vec<Segment>,
    wake_at: Vec<Option<Duration>>,
    /// When which port of which segment is charged next; one entry for each that is.
    charges: BTreeSet<(Duration, usize, PortId)>,
    /// When the net began, on the machine's clock.
    epoch: Duration,
    busy_before: Duration,
    dropped: BTreeMap<&'static str, u64>,
    ignored: u64,
    written: u64,
    lateness: LatenessHistogram,
    air: AirRecorder,
}

/// Whether to go on.
enum Next {
    Turn,
    Stop,
}

impl NetThread {
    /// To be called on the thread that will run it.
    pub(super) fn new(plan: NetPlan, commands: Inbox<NetCommand>) -> Result<Self> {
        let doing = || "set a net's ferry up".to_string();
        let NetPlan { sockets, segments: plans, seed } = plan;
        let places = places(&plans, sockets.len())?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let clock = Clock::start().doing(doing)?;
        let watch = |what: &dyn AsFd, token| {
            epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, token)).doing(doing)
        };
        watch(&clock, TIMER)?;
        watch(&commands, COMMANDS)?;
        for (place, socket) in (0..).zip(&sockets) {
            watch(socket, place)?;
        }
        let works = Works::begin(sockets, &plans, seed, clock.now())?;
        Ok(Self {
            clock,
            epoll,
            pool: Pool::default(),
            buffer: vec![0; MAX_FRAME_BYTES],
            commands,
            plans,
            seed,
            places,
            works,
            events: Vec::new(),
        })
    }

    /// Moves packets until asked to stop; gives the ports back.
    pub(super) fn run(mut self) -> Vec<Port> {
        loop {
            match self.turn() {
                Ok(Next::Turn) => {}
                Ok(Next::Stop) => return self.works.sockets,
                Err(error) => {
                    tracing::error!(%error, "a net's ferry stops");
                    return self.works.sockets;
                }
            }
        }
    }

    fn turn(&mut self) -> nix::Result<Next> {
        self.clock.set_alarm(self.works.next_wake())?;
        let mut events = [EpollEvent::empty(); EVENTS_PER_TURN];
        let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        // What is due goes before what is new.
        self.wake();
        for event in &events[..count] {
            match event.data() {
                TIMER => {}
                COMMANDS => {
                    if let Next::Stop = self.obey()? {
                        return Ok(Next::Stop);
                    }
                }
                socket => {
                    self.read(usize::try_from(socket).unwrap_or(usize::MAX), event.events());
                    self.wake();
                }
            }
        }
        Ok(Next::Turn)
    }

    /// Wakes the segments whose time has come, the longest due first.
    fn wake(&mut self) {
        for _ in 0..WAKES_PER_TURN {
            let due = self.works.next_wake().filter(|moment| *moment <= self.clock.now());
            let Some(moment) = due else { return };
            if let Some(charge) = self.works.charges.first().copied()
                && self.works.epoch.saturating_add(charge.0) <= moment
            {
                self.charge(charge);
                continue;
            }
            let segments = &self.works.wake_at;
            let Some(segment) = segments.iter().position(|at| *at == Some(moment)) else { return };
            self.with(segment, |one, now, events| one.wake(now, events));
        }
    }

    /// A port sends what a protocol of routing would.
    fn charge(&mut self, (at, segment, port): (Duration, usize, PortId)) {
        self.works.charges.remove(&(at, segment, port));
        let Some((Charge { bytes, interval }, _)) = self.plans.get(segment).and_then(charge) else {
            return;
        };
        self.works.charges.insert((at.saturating_add(interval), segment, port));
        let frame = self.pool.filler(bytes as usize);
        let Some(meta) = PacketMeta::of(&frame, 0) else { return };
        self.with(segment, |one, now, events| one.offer(now, port, (frame, meta), events));
    }

    /// Does something with a segment, then what follows from it.
    fn with(
        &mut self,
        segment: usize,
        work: impl FnOnce(&mut Segment, Duration, &mut Vec<Event>) -> Option<Duration>,
    ) {
        let now = self.clock.now().saturating_sub(self.works.epoch);
        let Some(one) = self.works.segments.get_mut(segment) else { return };
        let wake = work(one, now, &mut self.events);
        let epoch = self.works.epoch;
        if let Some(slot) = self.works.wake_at.get_mut(segment) {
            *slot = wake.map(|at| epoch.saturating_add(at));
        }
        for event in self.events.drain(..) {
            match event {
                Event::Deliver { due, socket, frame } => {
                    self.works.write(&self.clock, due, socket, &frame);
                }
                Event::Dropped(reason) => self.works.drop(reason),
                Event::Air(entry) => self.works.air.push(entry),
            }
        }
    }

    /// Takes some frames from a port.
    fn read(&mut self, socket: usize, flags: EpollFlags) {
        for turn in 0..READS_PER_TURN {
            let Some(port) = self.works.sockets.get(socket) else { return };
            let length = match port.read(&mut self.buffer) {
                Ok(length) => length,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {
                    // Nothing to read, yet an event: an error that would come back for ever.
                    if turn == 0 && flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                        self.disconnect(socket, Errno::EAGAIN);
                    }
                    return;
                }
                // Told once when somebody takes the interface down; it may come up again.
                Err(Errno::ENETDOWN) => return,
                Err(error) => return self.disconnect(socket, error),
            };
            let SocketPlace { segment, port } =
                self.places.get(socket).copied().unwrap_or_default();
            let number = u16::try_from(segment).unwrap_or(u16::MAX);
            let frame = self.pool.admit(&self.buffer[..length]).ok();
            let frame = frame.and_then(|frame| {
                let meta = PacketMeta::of(&frame, number).filter(|meta| !meta.is_igmp())?;
                Some((frame, meta))
            });
            match frame {
                Some(frame) => {
                    self.with(segment, |one, now, events| one.offer(now, port, frame, events));
                }
                None => self.works.ignored += 1,
            }
        }
    }

    /// Stops listening to a port whose interface somebody has removed.
    fn disconnect(&mut self, socket: usize, error: Errno) {
        tracing::warn!(socket, %error, "a host's interface is gone");
        let Some(port) = self.works.sockets.get(socket) else { return };
        if let Err(error) = self.epoll.delete(port) {
            tracing::warn!(socket, %error, "cannot stop listening to it");
        }
    }

    fn obey(&mut self) -> nix::Result<Next> {
        for _ in 0..self.commands.count()? {
            // Who no longer waits for an answer needs none.
            match self.commands.next() {
                Some(NetCommand::Begin { losses, done }) => {
                    self.begin();
                    self.lose(losses);
                    let _ = done.try_send(());
                }
                Some(NetCommand::Losses { changes, done }) => {
                    self.lose(changes);
                    let _ = done.try_send(());
                }
                Some(NetCommand::Power { medium, port, power_dbm, done }) => {
                    self.with(medium, |one, now, events| one.power(now, (port, power_dbm), events));
                    let _ = done.try_send(());
                }
                Some(NetCommand::Report { answer }) => {
                    let _ = answer.try_send(self.works.figures(self.clock.now()));
                }
                Some(NetCommand::Take { answer }) => {
                    let _ = answer.try_send(self.works.air.take());
                }
                Some(NetCommand::Stop) | None => return Ok(Next::Stop),
            }
        }
        Ok(Next::Turn)
    }

    fn begin(&mut self) {
        let sockets = std::mem::take(&mut self.works.sockets);
        match Works::begin(sockets, &self.plans, self.seed, self.clock.now()) {
            Ok(works) => self.works = works,
            // The same plans were good before.
            Err(error) => tracing::error!(%error, "a net cannot begin anew"),
        }
    }

    fn lose(&mut self, changes: Vec<LossChange>) {
        for LossChange { medium, from, to, loss_db } in changes {
            self.with(medium, |one, now, events| one.lose(now, (from, to, loss_db), events));
        }
    }
}

impl Works {
    fn begin(
        sockets: Vec<Port>,
        plans: &[SegmentPlan],
        seed: u64,
        epoch: Duration,
    ) -> Result<Self> {
        let make = |(place, plan): (usize, &SegmentPlan)| {
            Segment::new(plan, place, seed.wrapping_add(SEED_STEP.wrapping_mul(place as u64)))
        };
        let segments: Vec<Segment> = plans.iter().enumerate().map(make).collect::<Result<_>>()?;
        let charges = plans.iter().enumerate().filter_map(|(place, plan)| {
            let (charge, ports) = charge(plan)?;
            // Each in its turn, spread over the interval.
            Some((0..ports).map(move |port| {
                (charge.interval * u32::from(port) / u32::from(ports.max(1)), place, port)
            }))
        });
        Ok(Self {
            sockets,
            wake_at: vec![None; segments.len()],
            segments,
            charges: charges.flatten().collect(),
            epoch,
            busy_before: thread_time(),
            dropped: BTreeMap::new(),
            ignored: 0,
            written: 0,
            lateness: histogram()?,
            air: AirRecorder::default(),
        })
    }

    /// The earliest moment at which something is due.
    fn next_wake(&self) -> Option<Duration> {
        let charge = self.charges.first().map(|(at, ..)| self.epoch.saturating_add(*at));
        self.wake_at.iter().flatten().copied().chain(charge).min()
    }

    fn write(&mut self, clock: &Clock, due: Duration, socket: usize, frame: &Frame) {
        let Some(port) = self.sockets.get(socket) else { return };
        if port.write(frame.as_bytes()).is_err() {
            // The interface is down, gone or full. A real receiver that is not there loses the
            // packet too; waiting would hold up all others.
            return self.drop("refused");
        }
        let late = clock.now().saturating_sub(self.epoch.saturating_add(due));
        self.lateness.saturating_record(u64::try_from(late.as_micros()).unwrap_or(u64::MAX));
        self.written += 1;
    }

    fn drop(&mut self, reason: &'static str) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    fn figures(&self, now: Duration) -> NetFigures {
        NetFigures {
            dropped: self.dropped.clone(),
            ignored: self.ignored,
            written: self.written,
            lateness: self.lateness.clone(),
            unrecorded: self.air.unrecorded(),
            elapsed: now.saturating_sub(self.epoch),
            busy: thread_time().saturating_sub(self.busy_before),
        }
    }
}

fn histogram() -> Result<Histogram<u32>> {
    lateness_histogram().map_err(|error| Error::Caller(format!("no lateness histogram: {error:?}")))
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Where the port of each socket is.
fn places(plans: &[SegmentPlan], sockets: usize) -> Result<Vec<SocketPlace>> {
    let wrong = |what: &str| Err(Error::Caller(format!("a net {what}: correct its topology")));
    if plans.len() > MAX_SEGMENTS {
        return wrong(&format!("of {} media and links, over {MAX_SEGMENTS}", plans.len()));
    }
    let mut places = vec![None; sockets];
    for (segment, plan) in plans.iter().enumerate() {
        let of = match plan {
            SegmentPlan::Medium { sockets, .. } => sockets.as_slice(),
            SegmentPlan::Link { sockets, .. } => sockets.as_slice(),
        };
        for (port, socket) in of.iter().enumerate() {
            let port = PortId::try_from(port).unwrap_or(PortId::MAX);
            match places.get_mut(*socket) {
                Some(place @ None) => *place = Some(SocketPlace { segment, port }),
                Some(Some(_)) => return wrong("has an interface on two segments"),
                None => return wrong("has a segment with an interface that there is not"),
            }
        }
    }
    match places.into_iter().collect() {
        Some(places) => Ok(places),
        None => wrong("has an interface on no segment"),
    }
}
