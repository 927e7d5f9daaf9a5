//! The ferry moves packets between hosts through the links of the `link` crate, in real time.
//!
//! One thread serves all links of a lab, which come and go while it runs. It sleeps until the
//! earliest moment at which a packet is due or a frame arrives, never blocks on a port, and
//! allocates nothing per packet once its buffers have grown. What takes time, as making and closing
//! ports, is done by those who ask for it. How late it wrote each packet against its due time is
//! part of every result.

mod clock;
mod command;
mod frame;
mod ipv6;
mod lane;
pub(crate) mod net;
mod pair;
mod port;
mod realtime;
mod recorder;
mod shard;
mod slots;
mod tcp;

use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use link::LinkConfig;
use record::packets::PacketRecord;

use crate::error::{Doing, Error, Result};
use command::{Command, Sender};
pub(crate) use lane::{LaneReport, LatenessHistogram};
pub(crate) use pair::{Beginning, FerryLink, Remains};
pub(crate) use port::{Port, frames_lost_by_socket};
pub(crate) use realtime::{lock_memory, raise_this_thread};
pub(crate) use slots::Ticket;

use shard::Shard;

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
    commands: Sender<Command>,
    thread: Option<JoinHandle<()>>,
    real_time: RealTime,
}

impl Ferry {
    /// Starts, without links.
    pub(crate) fn start() -> Result<Self> {
        let doing = || "start the ferry's thread".to_string();
        let (commands, inbox) = command::channel().doing(doing)?;
        let (started, start) = mpsc::sync_channel(1);
        let work = move || {
            let priority = raise_this_thread();
            match Shard::new(inbox) {
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
        Ok(Self { commands, thread: Some(thread), real_time })
    }

    /// How the thread runs.
    pub(crate) fn real_time(&self) -> RealTime {
        self.real_time
    }

    /// Serves one more link from now on; its time begins now.
    pub(crate) fn add(&self, link: FerryLink) -> Result<Ticket> {
        let link = Box::new(link);
        self.ask(|answer| Command::Add { link, answer })?.doing(|| "watch a port".to_string())
    }

    /// Serves a link no longer. What travels on it is lost; what is left is for the caller to
    /// close, which takes time.
    pub(crate) fn remove(&self, link: Ticket) -> Result<Remains> {
        gone(self.ask(|answer| Command::Remove { link, answer })?)
    }

    /// Begins a link anew; what travels on it is lost.
    pub(crate) fn renew(&self, link: Ticket, beginning: Beginning) -> Result<()> {
        let beginning = Box::new(beginning);
        gone(self.ask(|answer| Command::Renew { link, beginning, answer })?).map(drop)
    }

    /// Changes a link from now on; what is queued stays queued.
    pub(crate) fn configure(&self, link: Ticket, config: LinkConfig) -> Result<()> {
        let config = Box::new(config);
        gone(self.ask(|done| Command::Configure { link, config, done })?)
    }

    /// What a link has carried, from a to b and from b to a.
    pub(crate) fn report(&self, link: Ticket) -> Result<[LaneReport; 2]> {
        gone(self.ask(|answer| Command::Report { link, answer })?)
    }

    /// The packets of a link. They are fetched in pieces, so that no link waits while many are
    /// copied.
    pub(crate) fn record(&self, link: Ticket) -> Result<PacketRecord> {
        let mut record = PacketRecord::default();
        let mut piece = recorder::piece();
        loop {
            let from = record.packets.len();
            let (fetched, unrecorded) =
                gone(self.ask(|answer| Command::Record { link, from, piece, answer })?)?;
            record.packets.extend(fetched.iter().map(|entry| entry.event()));
            record.unrecorded = unrecorded;
            if fetched.is_empty() {
                return Ok(record);
            }
            piece = fetched;
        }
    }

    fn ask<T>(&self, command: impl FnOnce(mpsc::SyncSender<T>) -> Command) -> Result<T> {
        let (answer, inbox): (_, Receiver<T>) = mpsc::sync_channel(1);
        self.commands.send(command(answer))?;
        inbox.recv().map_err(|_| Error::FerryStopped)
    }
}

fn gone<T>(answer: Option<T>) -> Result<T> {
    answer.ok_or_else(|| Error::Caller("the link is removed: add it again".to_string()))
}

impl Drop for Ferry {
    fn drop(&mut self) {
        let stopped = self.commands.send(Command::Stop);
        let Some(thread) = self.thread.take() else { return };
        // A thread that cannot be told to stop has stopped already: joining does not wait.
        if (stopped.is_ok() || thread.is_finished()) && thread.join().is_err() {
            tracing::error!("the ferry's thread panicked");
        }
    }
}
