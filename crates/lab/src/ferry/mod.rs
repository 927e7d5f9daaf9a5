//! The ferry moves packets between hosts through the links of the `link` crate, in real time.
//!
//! One thread serves all links of a lab. It sleeps until the earliest moment at which a packet is
//! due or a frame arrives, never blocks on a port, and allocates nothing per packet once its
//! buffers have grown. How late it wrote each packet against its due time is part of every result.

mod clock;
mod frame;
mod lane;
mod port;
mod realtime;
mod shard;

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use link::LinkConfig;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::{Doing, Error, Result};
pub(crate) use lane::{LaneReport, LatenessHistogram};
pub(crate) use port::{Port, frames_lost_by_socket};
pub(crate) use realtime::{lock_memory, raise_this_thread};
use shard::Shard;

/// Commands that may wait for the thread; a caller waits for the answer of each.
const COMMANDS_MAX: usize = 64;

/// One link to be served.
pub(crate) struct FerryLink {
    /// To host a, to host b.
    pub(crate) ports: [Port; 2],
    pub(crate) config: LinkConfig,
    pub(crate) seed: u64,
}

/// What the thread is asked to do. Links are numbered as they were given to [`Ferry::start`].
enum Command {
    Configure { link: usize, config: Box<LinkConfig>, done: SyncSender<()> },
    Report { link: usize, answer: SyncSender<[LaneReport; 2]> },
    Stop,
}

/// How the thread runs: part of every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// With real-time priority.
    pub priority: bool,
    /// With its memory locked.
    pub memory_locked: bool,
}

/// A running ferry; stops when dropped.
pub(crate) struct Ferry {
    commands: SyncSender<Command>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    real_time: RealTime,
}

impl Ferry {
    /// Starts to serve links.
    pub(crate) fn start(links: Vec<FerryLink>) -> Result<Self> {
        let doing = || "start the ferry's thread".to_string();
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let bell = Arc::new(EventFd::from_flags(flags).doing(doing)?);
        let (commands, inbox) = mpsc::sync_channel(COMMANDS_MAX);
        let (started, start) = mpsc::sync_channel(1);
        let thread_bell = Arc::clone(&bell);
        let work = move || {
            let priority = raise_this_thread();
            match Shard::new(links, inbox, thread_bell) {
                Ok(shard) => {
                    // Received below, before anything can drop it.
                    let _ = started.send(Ok(priority.is_ok()));
                    shard.run();
                }
                Err(error) => {
                    let _ = started.send(Err(error));
                }
            }
        };
        let memory_locked = lock_memory();
        let thread = thread::Builder::new().name("ferry".to_string()).spawn(work).doing(doing)?;
        let priority = start.recv().map_err(|_| Error::FerryStopped)??;
        let real_time = RealTime { priority, memory_locked };
        Ok(Self { commands, bell, thread: Some(thread), real_time })
    }

    /// How the thread runs.
    pub(crate) fn real_time(&self) -> RealTime {
        self.real_time
    }

    /// Changes a link from now on; what is queued stays queued.
    pub(crate) fn configure(&self, link: usize, config: LinkConfig) -> Result<()> {
        let config = Box::new(config);
        self.ask(|done| Command::Configure { link, config, done })
    }

    /// What a link has carried, from a to b and from b to a.
    pub(crate) fn report(&self, link: usize) -> Result<[LaneReport; 2]> {
        self.ask(|answer| Command::Report { link, answer })
    }

    fn ask<T>(&self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T> {
        let (answer, inbox) = mpsc::sync_channel(1);
        self.send(command(answer))?;
        inbox.recv().map_err(|_| Error::FerryStopped)
    }

    fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).map_err(|_| Error::FerryStopped)?;
        self.bell.write(1).doing(|| "wake the ferry".to_string())?;
        Ok(())
    }
}

impl Drop for Ferry {
    fn drop(&mut self) {
        let stopped = self.send(Command::Stop);
        let Some(thread) = self.thread.take() else { return };
        // A thread that cannot be told to stop has stopped already: joining does not wait.
        if (stopped.is_ok() || thread.is_finished()) && thread.join().is_err() {
            tracing::error!("the ferry's thread panicked");
        }
    }
}
