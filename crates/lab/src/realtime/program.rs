//! A program of ours beside the study: started, asked to end, read.

use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::experiment::processes::{READY, await_input, first_line};
use crate::namespace;

/// Longest output.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How long a consumer may take to listen, and any to end and to print what it found: it may have
/// to read and write the samples of a day.
const READY_PATIENCE: Duration = Duration::from_secs(30);
const END_PATIENCE: Duration = Duration::from_secs(120);

/// A process; it is killed where nobody waited for its end.
pub(super) struct Program {
    child: Child,
    output: ChildStdout,
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
        Ok(Self { child, output })
    }

    /// Waits for a server's line, for a while; its address.
    pub(super) fn address(&mut self) -> Result<String, String> {
        let line = first_line(&mut self.output, Instant::now() + READY_PATIENCE);
        let line = line.map_err(|error| format!("a consumer did not start: {error}"))?;
        let address = line.trim_end().strip_prefix(READY);
        address.map(str::to_owned).ok_or_else(|| format!("a consumer did not start: '{line}'"))
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

    /// What it printed in the end, for which it has a while: one value of JSON.
    pub(super) fn figures(self) -> Result<Value, String> {
        self.figures_by(Instant::now() + END_PATIENCE)
    }

    fn figures_by(mut self, deadline: Instant) -> Result<Value, String> {
        let failed = |error: io::Error| format!("a program did not end: {error}");
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        while text.len() < MAX_OUTPUT_BYTES {
            await_input(&self.output, deadline).map_err(failed)?;
            match self.output.read(&mut piece).map_err(failed)? {
                0 => break,
                count => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            }
        }
        // Until we have asked for its status its number stays its own.
        let process =
            namespace::processes::open(self.child.id()).map_err(|error| error.to_string());
        await_input(&process?, deadline).map_err(failed)?;
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|_| format!("a program ended with {ended}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Either it has ended and was waited for, or it is our child still.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::start(Path::new("sh"), &["-c".to_owned(), script.to_owned()]).unwrap()
    }

    #[test]
    fn a_program_is_read_to_its_end() {
        let mut program = shell("echo listening on 1.2.3.4:5; echo '{\"due\": 7}'");
        assert_eq!(program.address(), Ok("1.2.3.4:5".to_owned()));
        assert_eq!(program.figures().unwrap()["due"], 7);
        let line = shell("echo no; exit 3").figures().unwrap_err();
        assert!(line.contains("exit status: 3"), "{line}");
        assert!(shell("exit 2").address().unwrap_err().contains("did not start"));
    }

    #[test]
    fn one_that_does_not_end_is_not_awaited_for_ever() {
        for script in ["exec sleep 60", "exec >&-; exec sleep 60"] {
            let deadline = Instant::now() + Duration::from_millis(50);
            let line = shell(script).figures_by(deadline).unwrap_err();
            assert!(line.contains("did not end"), "{line}");
        }
    }
}
