//! A program of ours beside the study: started, asked to end, read.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::experiment::processes::READY;

/// Longest first line.
const MAX_LINE_BYTES: u64 = 200;
/// Longest output.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// A process; it is killed where nobody waited for its end.
pub(super) struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it. The error is one line.
    pub(super) fn start(program: &Path, arguments: &[String]) -> Result<Self, String> {
        let mut command = Command::new(program);
        // A terminal's Ctrl-C goes to its foreground group: these are ended by us, in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.stderr(Stdio::null()).args(arguments).spawn();
        let mut child = child.map_err(|error| format!("cannot start a process: {error}"))?;
        let output = child.stdout.take().ok_or("a process without output")?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    /// Waits for a server's line; its address.
    pub(super) fn address(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let mut output = (&mut self.output).take(MAX_LINE_BYTES);
        output.read_line(&mut line).map_err(|error| error.to_string())?;
        let address = line.trim_end().strip_prefix(READY);
        address.map(str::to_owned).ok_or_else(|| "a consumer did not start".to_owned())
    }

    /// Asks it to end.
    pub(super) fn ask_to_end(&self) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // It is our child, so that its number is its own until it is waited for.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// What it printed in the end: one value of JSON.
    pub(super) fn figures(mut self) -> Result<Value, String> {
        let mut text = String::new();
        let mut output = (&mut self.output).take(MAX_OUTPUT_BYTES);
        output.read_to_string(&mut text).map_err(|error: io::Error| error.to_string())?;
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|_| format!("a program ended with {ended}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Either it has ended and was waited for, or it is our child still.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
