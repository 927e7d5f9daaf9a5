//! Signals that end a program, as something to wait for or look at.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Doing, Result};

/// Catches SIGINT, SIGTERM and SIGHUP from now on, for this thread and those that it starts; one
/// started before still lets the process die of them. Reading does not block.
pub(crate) fn catch() -> Result<SignalFd> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    signals.thread_block().doing(|| "block signals".to_string())?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&signals, flags).doing(|| "wait for signals".to_string())
}
