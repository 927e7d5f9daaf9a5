//! A lab's process without a terminal.

use std::fs::File;

use nix::unistd::{dup2_stderr, dup2_stdout, setsid};

use crate::error::{Doing, Result};

/// Leaves the session of the terminal, whose end then ends this process no more.
///
/// # Errors
/// When this process leads a group of its own already.
pub fn leave_terminal() -> Result<()> {
    setsid().map(drop).doing(|| "leave the terminal's session".to_string())
}

/// Writes nothing to stdout and stderr from now on: who waits for their end goes on.
///
/// # Errors
/// When there is no /dev/null.
pub fn fall_silent() -> Result<()> {
    const NOWHERE: &str = "/dev/null";
    let doing = || format!("write to {NOWHERE}");
    let nowhere = File::options().write(true).open(NOWHERE).doing(doing)?;
    dup2_stdout(&nowhere).doing(doing)?;
    dup2_stderr(&nowhere).doing(doing)
}
