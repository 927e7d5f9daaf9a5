//! The processes of a demonstration: started together, ended together.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Longest first line of a server.
const LINE_BYTES_MAX: usize = 200;
/// Of what a failed process has logged, so much of the last line is shown.
const REASON_CHARS_MAX: usize = 300;
/// What every server prints first.
const READY: &str = "listening on ";

/// All processes that are under way, and the directory that holds what they log.
pub(super) struct Processes {
    state: Mutex<State>,
    logs: PathBuf,
}

#[derive(Default)]
struct State {
    children: Vec<Option<Child>>,
    stopped: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle(usize);

/// A process that has just started.
pub(super) struct Started {
    pub(super) handle: Handle,
    pub(super) output: ChildStdout,
    log: PathBuf,
}

impl Processes {
    /// None yet; each will log to a file of its own in `logs`.
    pub(super) fn new(logs: PathBuf) -> Self {
        Self { state: Mutex::default(), logs }
    }

    /// Starts a program. The error is one line.
    pub(super) fn start(&self, mut command: Command) -> Result<Started, String> {
        let failed = |error: io::Error| format!("cannot start a process: {error}");
        let mut state = self.state();
        if state.stopped {
            return Err("stopped".to_string());
        }
        let log = self.logs.join(format!("{}.log", state.children.len()));
        let file = File::create(&log).map_err(failed)?;
        // A terminal's Ctrl-C goes to its foreground group: these are ended by us, in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        end_with_parent(&mut command);
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().ok_or("a process without output")?;
        state.children.push(Some(child));
        Ok(Started { handle: Handle(state.children.len() - 1), output, log })
    }

    /// Ends some processes at once and waits until they are gone.
    pub(super) fn end(&self, handles: &[Handle]) {
        for handle in handles {
            let child = self.state().children.get_mut(handle.0).and_then(Option::take);
            if let Some(child) = child {
                end(child);
            }
        }
    }

    /// Ends all processes; from now on none can be started.
    pub(super) fn end_all(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.children.iter_mut().filter_map(Option::take).for_each(end);
    }

    pub(super) fn are_stopped(&self) -> bool {
        self.state().stopped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Started {
    /// Waits for a server's line; the error is one line with what it logged last.
    pub(super) fn await_ready(&mut self, deadline: Instant) -> Result<(), String> {
        match first_line(&mut self.output, deadline) {
            Ok(line) if line.starts_with(READY) => Ok(()),
            Ok(line) => Err(format!("a server that is not ready says '{line}'")),
            Err(error) => Err(self.reason().unwrap_or_else(|| error.to_string())),
        }
    }

    /// Everything that the process prints until it ends.
    pub(super) fn read_all(&mut self) -> Result<String, String> {
        let mut text = String::new();
        self.output.read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// The last line that the process logged.
    pub(super) fn reason(&self) -> Option<String> {
        last_line(&self.log)
    }
}

fn last_line(log: &Path) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim_start_matches("longwire: ").chars().take(REASON_CHARS_MAX).collect())
}

fn end(mut child: Child) {
    // Either it is gone already or the signal cannot fail: it is our child.
    let _ = child.kill();
    let _ = child.wait();
}

/// Has the kernel end the program when the thread that starts it ends, so that a demonstration that
/// is killed leaves nothing behind.
fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec one system call is made, which takes two numbers.
    unsafe {
        command.pre_exec(|| {
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
                .map_err(io::Error::from)
        });
    }
}

/// Reads up to the first line's end; fails at the end of the output, at `deadline`, and for a line
/// that is too long.
fn first_line(output: &mut ChildStdout, deadline: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < LINE_BYTES_MAX {
        await_input(output, deadline)?;
        let mut byte = [0];
        match output.read(&mut byte)? {
            0 => return Err(io::Error::other("it ended before it was ready")),
            _ if byte == *b"\n" => return Ok(String::from_utf8_lossy(&line).into_owned()),
            _ => line.extend(byte),
        }
    }
    Err(io::Error::other("its first line is too long"))
}

fn await_input(output: &ChildStdout, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up: a wait of no time at all would spin.
        let left = left + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(output.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) if Instant::now() >= deadline => {
                return Err(io::Error::other("it was not ready in time"));
            }
            Ok(0) | Err(nix::Error::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes() -> (Processes, super::super::scratch::Scratch) {
        let scratch = super::super::scratch::Scratch::new().unwrap();
        (Processes::new(scratch.path().to_path_buf()), scratch)
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_server_is_ready_when_it_says_so() {
        let (processes, _scratch) = processes();
        let mut server =
            processes.start(shell("echo listening on 1.2.3.4:5; exec sleep 60")).unwrap();
        assert_eq!(server.await_ready(soon()), Ok(()));
        processes.end(&[server.handle]);
        assert_eq!(server.read_all(), Ok(String::new()));
    }

    #[test]
    fn a_server_that_fails_is_quoted() {
        let (processes, _scratch) = processes();
        let script = "echo first >&2; echo 'longwire: port 5 is in use' >&2; exit 2";
        let mut server = processes.start(shell(script)).unwrap();
        assert_eq!(server.await_ready(soon()), Err("port 5 is in use".to_string()));
        let mut other = processes.start(shell("echo hello")).unwrap();
        assert!(other.await_ready(soon()).unwrap_err().contains("'hello'"));
    }

    #[test]
    fn a_server_that_says_nothing_is_not_awaited_for_ever() {
        let (processes, _scratch) = processes();
        let mut server = processes.start(shell("exec sleep 60")).unwrap();
        let deadline = Instant::now() + Duration::from_millis(30);
        assert!(server.await_ready(deadline).unwrap_err().contains("in time"));
    }

    #[test]
    fn after_the_end_of_all_nothing_starts_any_more() {
        let (processes, _scratch) = processes();
        let mut endless = processes.start(shell("exec sleep 60")).unwrap();
        processes.end_all();
        assert_eq!(endless.read_all(), Ok(String::new()));
        assert!(processes.are_stopped());
        assert!(processes.start(shell("true")).is_err());
    }
}
