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

/// The callers' end of a channel of commands.
pub(super) struct Sender<C> {
    /// One sends at a time, so that a command is whole before the bell counts it: the thread, which
    /// keeps everybody else from a processor, never has to wait for a sender.
    commands: Mutex<SyncSender<C>>,
    bell: Arc<EventFd>,
}

/// The thread's end.
pub(super) struct Inbox<C> {
    commands: Receiver<C>,
    bell: Arc<EventFd>,
}

pub(super) fn channel<C>() -> nix::Result<(Sender<C>, Inbox<C>)> {
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let bell = Arc::new(EventFd::from_flags(flags)?);
    let (commands, inbox) = mpsc::sync_channel(MAX_COMMANDS);
    let sender = Sender { commands: Mutex::new(commands), bell: Arc::clone(&bell) };
    Ok((sender, Inbox { commands: inbox, bell }))
}

impl<C> Sender<C> {
    pub(super) fn send(&self, command: C) -> Result<()> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.send(command).map_err(|_| Error::FerryStopped)?;
        self.bell.write(1).doing(|| "wake the ferry".to_string())?;
        Ok(())
    }
}

impl<C> Inbox<C> {
    /// How many commands have come since this was last asked, at most [`MAX_COMMANDS`].
    pub(super) fn count(&self) -> nix::Result<u64> {
        match self.bell.read() {
            Err(Errno::EAGAIN) => Ok(0),
            other => other,
        }
    }

    /// The next command; one that was counted is there. None when nobody can send any more, since
    /// nobody holds the ferry.
    pub(super) fn next(&self) -> Option<C> {
        self.commands.try_recv().ok()
    }
}

impl<C> AsFd for Inbox<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
