//! The ferry's thread: one heap of wake times over the channels of many links.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::Duration;

use link::Input;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::clock::Clock;
use super::command::{Command, Inbox};
use super::frame::{Frame, MAX_FRAME_BYTES, Pool};
use super::pair::{Beginning, FerryLink, Pair, Past, Remains};
use super::slots::{Slots, Ticket};
use crate::error::{Doing, Result};

/// Frames read from one port before the others have their turn.
const READS_PER_TURN: usize = 16;
/// Wake-ups served before commands and new frames have their turn.
const WAKES_PER_TURN: usize = 1024;
/// Events fetched at once.
const EVENTS_PER_TURN: usize = 64;
/// Events that are not of a port. Those of ports carry a [`LaneId`], whose place is never so high.
const TIMER: u64 = u64::MAX;
const COMMANDS: u64 = u64::MAX - 1;

/// A lane, and the port that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LaneId {
    link: Ticket,
    side: usize,
}

impl LaneId {
    /// As an event carries it: generation, place, side.
    fn token(self) -> u64 {
        let place = u64::from(self.link.slot) << 1 | (self.side & 1) as u64;
        u64::from(self.link.generation) << 32 | place & u64::from(u32::MAX)
    }

    fn from_token(token: u64) -> Self {
        // Each part is what the token has room for.
        #[allow(clippy::cast_possible_truncation)]
        let (generation, place) = ((token >> 32) as u32, token as u32);
        Self { link: Ticket { slot: place >> 1, generation }, side: (place & 1) as usize }
    }
}

pub(super) struct Shard {
    pairs: Slots<Box<Pair>>,
    /// When lanes are to be woken, in order of time: one entry per lane at most.
    wakes: BTreeSet<(Duration, LaneId)>,
    clock: Clock,
    epoll: Epoll,
    pool: Pool,
    buffer: Vec<u8>,
    commands: Inbox<Command>,
}

/// Whether to go on.
enum Next {
    Turn,
    Stop,
}

impl Shard {
    /// To be called on the thread that will run it.
    pub(super) fn new(commands: Inbox<Command>) -> Result<Self> {
        let doing = || "set the ferry up".to_string();
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(doing)?;
        let clock = Clock::start().doing(doing)?;
        let watch = |what: &dyn AsFd, token| {
            epoll.add(what, EpollEvent::new(EpollFlags::EPOLLIN, token)).doing(doing)
        };
        watch(&&clock, TIMER)?;
        watch(&&commands, COMMANDS)?;
        Ok(Self {
            pairs: Slots::new(),
            wakes: BTreeSet::new(),
            clock,
            epoll,
            pool: Pool::default(),
            buffer: vec![0; MAX_FRAME_BYTES],
            commands,
        })
    }

    /// Moves packets until told to stop. Links that are left then lose their ports.
    pub(super) fn run(mut self) {
        loop {
            match self.turn() {
                Ok(Next::Turn) => {}
                Ok(Next::Stop) => return,
                Err(error) => return tracing::error!(%error, "the ferry stops"),
            }
        }
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
                token => {
                    self.read(LaneId::from_token(token), event.events());
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

    fn hand_in(&mut self, lane: LaneId, input: Input<Frame>) {
        let Some(pair) = self.pairs.get_mut(lane.link) else { return };
        let wake = pair.handle_input(&self.clock, lane.side, input);
        let before = std::mem::replace(&mut pair.wake_at[lane.side], wake);
        if before != wake {
            if let Some(moment) = before {
                self.wakes.remove(&(moment, lane));
            }
            self.wakes.extend(wake.map(|moment| (moment, lane)));
        }
    }

    /// Takes some frames from a port.
    fn read(&mut self, lane: LaneId, flags: EpollFlags) {
        for turn in 0..READS_PER_TURN {
            // An event may come from a link that was removed after it was fetched.
            let Some(pair) = self.pairs.get_mut(lane.link) else { return };
            let length = match pair.port(lane.side).read(&mut self.buffer) {
                Ok(length) => length,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {
                    // Nothing to read, yet an event: an error that would come back for ever.
                    if turn == 0 && flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                        self.disconnect(lane, Errno::EAGAIN);
                    }
                    return;
                }
                // Told once when somebody takes the interface down; it may come up again.
                Err(Errno::ENETDOWN) => return,
                Err(error) => return self.disconnect(lane, error),
            };
            match self.pool.admit(&self.buffer[..length]) {
                Ok(frame) => self.hand_in(lane, Input::Packet(frame)),
                Err(why) => pair.ignore(lane.side, why),
            }
        }
    }

    /// Stops listening to a port whose interface somebody has removed.
    fn disconnect(&mut self, lane: LaneId, error: Errno) {
        tracing::warn!(?lane, %error, "a host's interface is gone");
        let Some(pair) = self.pairs.get_mut(lane.link) else { return };
        if let Err(error) = self.epoll.delete(pair.port(lane.side)) {
            tracing::warn!(?lane, %error, "cannot stop listening to it");
        }
    }

    fn obey(&mut self) -> nix::Result<Next> {
        for _ in 0..self.commands.count()? {
            // Who no longer waits for an answer needs none.
            match self.commands.next() {
                Some(Command::Add { link, answer }) => {
                    let _ = answer.try_send(self.add(*link));
                }
                Some(Command::Remove { link, answer }) => {
                    let _ = answer.try_send(self.remove(link));
                }
                Some(Command::Renew { link, beginning, answer }) => {
                    let _ = answer.try_send(self.renew(link, *beginning));
                }
                Some(Command::Configure { link, config, done }) => {
                    let known = self.pairs.get_mut(link).map(|_| ());
                    for (side, channel) in [config.ab, config.ba].into_iter().enumerate() {
                        self.hand_in(LaneId { link, side }, Input::Configure(Box::new(channel)));
                    }
                    let _ = done.try_send(known);
                }
                Some(Command::Report { link, answer }) => {
                    let _ = answer.try_send(self.pairs.get_mut(link).map(|pair| pair.report()));
                }
                Some(Command::Record { link, from, piece, answer }) => {
                    let pair = self.pairs.get_mut(link);
                    let _ = answer.try_send(pair.map(|pair| pair.record(from, piece)));
                }
                Some(Command::Stop) | None => return Ok(Next::Stop),
            }
        }
        Ok(Next::Turn)
    }

    fn add(&mut self, link: FerryLink) -> nix::Result<Ticket> {
        let ticket = self.pairs.next();
        let pair = Box::new(Pair::new(link, self.clock.now()));
        for side in [0, 1] {
            let token = LaneId { link: ticket, side }.token();
            // Were the second refused, the port's end would end the watch of the first too.
            self.epoll.add(pair.port(side), EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        }
        Ok(self.pairs.insert(pair))
    }

    fn renew(&mut self, link: Ticket, beginning: Beginning) -> Option<Past> {
        let wakes = self.pairs.get_mut(link)?.wake_at;
        self.forget(link, wakes);
        self.pairs.get_mut(link).map(|pair| pair.renew(beginning, self.clock.now()))
    }

    fn remove(&mut self, link: Ticket) -> Option<Remains> {
        let pair = self.pairs.remove(link)?;
        self.forget(link, pair.wake_at);
        for side in [0, 1] {
            // One whose interface is gone is not watched any more.
            let _ = self.epoll.delete(pair.port(side));
        }
        Some(pair.end())
    }

    /// Takes the wake-ups of a link back.
    fn forget(&mut self, link: Ticket, wakes: [Option<Duration>; 2]) {
        for (side, wake) in wakes.into_iter().enumerate() {
            if let Some(moment) = wake {
                self.wakes.remove(&(moment, LaneId { link, side }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_which_lane() {
        for (slot, generation, side) in [(0, 0, 0), (8191, 7, 1), (1, u32::MAX, 0)] {
            let lane = LaneId { link: Ticket { slot, generation }, side };
            assert_eq!(LaneId::from_token(lane.token()), lane);
            assert!(lane.token() < COMMANDS);
        }
    }
}
