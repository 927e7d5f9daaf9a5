//! Signals that end the demonstration, as something to look at.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Doing, Result};

/// SIGINT, SIGTERM and SIGHUP, caught.
pub(super) struct Interrupt(SignalFd);

impl Interrupt {
    /// Catches them from now on. Threads started before still die of them.
    pub(super) fn catch() -> Result<Self> {
        let signals: SigSet =
            [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        signals.thread_block().doing(|| "block signals".to_string())?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&signals, flags);
        Ok(Self(signals.doing(|| "wait for signals".to_string())?))
    }

    /// Whether one came.
    pub(super) fn came(&self) -> bool {
        matches!(self.0.read_signal(), Ok(Some(_)))
    }
}
