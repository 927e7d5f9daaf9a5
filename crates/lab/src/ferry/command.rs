//! What the ferry's thread is asked to do, and the way there.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use link::LinkConfig;
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::lane::LaneReport;
use super::pair::{Beginning, FerryLink, Past, Remains};
use super::recorder::Entry;
use super::slots::Ticket;
use crate::error::{Doing, Error, Result};

/// Commands that may wait for the thread; a caller waits for the answer of each.
const MAX_COMMANDS: usize = 64;

/// An answer with nothing in it says that the link is not there any more.
pub(super) enum Command {
    Add { link: Box<FerryLink>, answer: SyncSender<nix::Result<Ticket>> },
    Remove { link: Ticket, answer: SyncSender<Option<Remains>> },
    Renew { link: Ticket, beginning: Box<Beginning>, answer: SyncSender<Option<Past>> },
    Configure { link: Ticket, config: Box<LinkConfig>, done: SyncSender<Option<()>> },
    Report { link: Ticket, answer: SyncSender<Option<[LaneReport; 2]>> },
    Record { link: Ticket, from: usize, piece: Vec<Entry>, answer: SyncSender<Piece> },
    Stop,
}

/// Some entries of a record, and how many packets have none.
pub(super) type Piece = Option<(Vec<Entry>, u64)>;

/// The callers' end.
pub(super) struct Sender {
    /// One sends at a time, so that a command is whole before the bell counts it: the thread, which
    /// keeps everybody else from a processor, never has to wait for a sender.
    commands: Mutex<SyncSender<Command>>,
    bell: Arc<EventFd>,
}

/// The thread's end.
pub(super) struct Inbox {
    commands: Receiver<Command>,
    bell: Arc<EventFd>,
}

pub(super) fn channel() -> nix::Result<(Sender, Inbox)> {
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let bell = Arc::new(EventFd::from_flags(flags)?);
    let (commands, inbox) = mpsc::sync_channel(MAX_COMMANDS);
    let sender = Sender { commands: Mutex::new(commands), bell: Arc::clone(&bell) };
    Ok((sender, Inbox { commands: inbox, bell }))
}

impl Sender {
    pub(super) fn send(&self, command: Command) -> Result<()> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.send(command).map_err(|_| Error::FerryStopped)?;
        self.bell.write(1).doing(|| "wake the ferry".to_string())?;
        Ok(())
    }
}

impl Inbox {
    /// How many commands have come since this was last asked, at most [`MAX_COMMANDS`].
    pub(super) fn count(&self) -> nix::Result<u64> {
        match self.bell.read() {
            Err(Errno::EAGAIN) => Ok(0),
            other => other,
        }
    }

    /// The next command; one that was counted is there.
    pub(super) fn next(&self) -> Command {
        // Nobody can send any more: nobody holds the ferry.
        self.commands.try_recv().unwrap_or(Command::Stop)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
