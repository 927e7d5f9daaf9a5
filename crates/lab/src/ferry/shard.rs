//! The ferry's thread: one heap of wake times over the channels of many links.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use link::{Direction, Input};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;

use super::clock::Clock;
use super::frame::{FRAME_BYTES_MAX, Pool};
use super::lane::Lane;
use super::port::Port;
use super::{Command, FerryLink};
use crate::error::{Doing, Error, Result};

/// Frames read from one port before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Wake-ups served before commands and new frames have their turn.
const WAKES_PER_TURN: usize = 1024;
/// Events fetched at once.
const EVENTS_PER_TURN: usize = 64;
/// Events that are not of a port; those of ports carry the port's index.
const TIMER: u64 = u64::MAX;
const COMMANDS: u64 = u64::MAX - 1;

/// Lane `2n` leads from port `2n` (host a of link n) to port `2n + 1` (host b), lane `2n + 1` back:
/// a lane has the index of the port that it reads, and writes to its neighbour.
pub(super) struct Shard {
    lanes: Vec<Lane>,
    ports: Vec<Port>,
    /// When each lane is to be woken, and the same in order of time: one entry per lane at most.
    wake_at: Vec<Option<Duration>>,
    wakes: BTreeSet<(Duration, usize)>,
    clock: Clock,
    epoll: Epoll,
    pool: Pool,
    buffer: Vec<u8>,
    commands: Receiver<Command>,
    bell: Arc<EventFd>,
}

/// Whether to go on.
enum Next {
    Turn,
    Stop,
}

impl Shard {
    /// To be called on the thread that will run it.
    pub(super) fn new(
        links: Vec<FerryLink>,
        commands: Receiver<Command>,
        bell: Arc<EventFd>,
    ) -> Result<Self> {
        let doing = || "set the ferry up".to_string();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let clock = Clock::start().doing(doing)?;
        let watch = |what: &dyn AsFd, token| {
            epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, token)).doing(doing)
        };
        watch(&&clock, TIMER)?;
        watch(&&*bell, COMMANDS)?;
        let (mut lanes, mut ports) = (Vec::new(), Vec::new());
        for link in links {
            for (direction, port) in Direction::BOTH.into_iter().zip(link.ports) {
                let lane = Lane::new(&link.config, link.seed, direction)
                    .map_err(|error| Error::Caller(format!("no lateness histogram: {error:?}")))?;
                watch(&&port, ports.len() as u64)?;
                lanes.push(lane);
                ports.push(port);
            }
        }
        Ok(Self {
            wake_at: vec![None; lanes.len()],
            wakes: BTreeSet::new(),
            lanes,
            ports,
            clock,
            epoll,
            pool: Pool::default(),
            buffer: vec![0; FRAME_BYTES_MAX],
            commands,
            bell,
        })
    }

    /// Moves packets until told to stop.
    pub(super) fn run(mut self) {
        loop {
            match self.turn() {
                Ok(Next::Turn) => {}
                Ok(Next::Stop) => break,
                Err(error) => {
                    tracing::error!(%error, "the ferry stops");
                    break;
                }
            }
        }
        abandon(self.ports);
    }

    fn turn(&mut self) -> nix::Result<Next> {
        let next_wake = self.wakes.first().map(|(moment, _)| *moment);
        self.clock.set_alarm(next_wake)?;
        let mut events = [EpollEvent::empty(); EVENTS_PER_TURN];
        let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        // What is due goes before what is new.
        self.wake_lanes();
        for event in &events[..count] {
            match event.data() {
                TIMER => {}
                COMMANDS => {
                    if let Next::Stop = self.obey()? {
                        return Ok(Next::Stop);
                    }
                }
                port => {
                    self.read(usize::try_from(port).unwrap_or(usize::MAX), event.events());
                    self.wake_lanes();
                }
            }
        }
        Ok(Next::Turn)
    }

    /// Wakes the lanes whose time has come, the longest due first.
    fn wake_lanes(&mut self) {
        for _ in 0..WAKES_PER_TURN {
            match self.wakes.first() {
                Some((moment, lane)) if *moment <= self.clock.now() => {
                    self.hand_in(*lane, Input::Wake);
                }
                _ => break,
            }
        }
    }

    fn hand_in(&mut self, lane: usize, input: Input<super::frame::Frame>) {
        let wake = self.lanes[lane].handle_input(&self.clock, &self.ports[lane ^ 1], input);
        let before = std::mem::replace(&mut self.wake_at[lane], wake);
        if before != wake {
            if let Some(moment) = before {
                self.wakes.remove(&(moment, lane));
            }
            self.wakes.extend(wake.map(|moment| (moment, lane)));
        }
    }

    /// Takes some frames from a port.
    fn read(&mut self, port: usize, flags: EpollFlags) {
        for turn in 0..READS_PER_TURN {
            let length = match self.ports[port].read(&mut self.buffer) {
                Ok(length) => length,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {
                    // Nothing to read, yet an event: an error that would come back for ever.
                    if turn == 0 && flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                        self.disconnect(port, Errno::EAGAIN);
                    }
                    return;
                }
                // Told once when somebody takes the interface down; it may come up again.
                Err(Errno::ENETDOWN) => return,
                Err(error) => return self.disconnect(port, error),
            };
            match self.pool.admit(&self.buffer[..length]) {
                Some(frame) => self.hand_in(port, Input::Packet(frame)),
                None => self.lanes[port].ignore(),
            }
        }
    }

    /// Stops listening to a port whose interface somebody has removed.
    fn disconnect(&self, port: usize, error: Errno) {
        tracing::warn!(port, %error, "a host's interface is gone");
        if let Err(error) = self.epoll.delete(&self.ports[port]) {
            tracing::warn!(port, %error, "cannot stop listening to it");
        }
    }

    fn obey(&mut self) -> nix::Result<Next> {
        match self.bell.read() {
            Ok(_) | Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error),
        }
        loop {
            match self.commands.try_recv() {
                Ok(Command::Configure { link, config, done }) => {
                    let lanes = [2 * link, 2 * link + 1];
                    for (lane, channel) in lanes.into_iter().zip([config.ab, config.ba]) {
                        self.hand_in(lane, Input::Configure(Box::new(channel)));
                    }
                    // Who no longer waits for the answer needs none.
                    let _ = done.try_send(());
                }
                Ok(Command::Report { link, answer }) => {
                    let report = [2 * link, 2 * link + 1].map(|lane| self.lanes[lane].report());
                    let _ = answer.try_send(report);
                }
                Err(TryRecvError::Empty) => return Ok(Next::Turn),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return Ok(Next::Stop),
            }
        }
    }
}

/// Threads that close ports: the kernel lets each wait for a grace period of its own, 14 ms per
/// packet socket, and those of several threads pass together.
const CLOSERS: usize = 32;

fn abandon(mut ports: Vec<Port>) {
    let share = ports.len().div_ceil(CLOSERS).max(1);
    thread::scope(|scope| {
        while !ports.is_empty() {
            let some = ports.split_off(ports.len().saturating_sub(share));
            scope.spawn(move || some.into_iter().for_each(Port::abandon));
        }
    });
}
