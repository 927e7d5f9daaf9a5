//! The processes of an experiment: started together, ended together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::namespace;

/// Longest first line of a server.
const MAX_LINE_BYTES: usize = 200;
/// Of what a failed process has logged, so much of the last line is shown.
const MAX_REASON_CHARS: usize = 300;
/// What our own servers print first.
pub(crate) const READY: &str = "listening on ";
/// Most that a client's output may be.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;
/// Most processes that one has started whose waiting is counted.
const MAX_DESCENDANTS: usize = 256;

/// All processes that are under way, and the directory that holds what they log.
pub(crate) struct Processes {
    state: Mutex<ChildrenState>,
    logs: PathBuf,
}

#[derive(Default)]
struct ChildrenState {
    children: BTreeMap<u64, Child>,
    started: u64,
    stopped: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle(u64);

/// What each thread of a process, by its directory in /proc, waited for a processor
/// (proc_pid_schedstat).
pub(crate) type Waits = BTreeMap<PathBuf, Duration>;

/// A process that has just started.
pub(crate) struct Started {
    pub(crate) handle: Handle,
    pub(crate) output: ChildStdout,
    log: PathBuf,
}

impl Processes {
    /// None yet; each will log to a file of its own in `logs`.
    pub(crate) fn new(logs: PathBuf) -> Self {
        Self { state: Mutex::default(), logs }
    }

    /// Starts a program. The error is one line.
    pub(crate) fn start(&self, mut command: Command) -> Result<Started, String> {
        let failed = |error: io::Error| format!("cannot start a process: {error}");
        let mut state = self.state();
        if state.stopped {
            return Err("stopped".to_string());
        }
        let number = state.started;
        state.started += 1;
        let log = self.logs.join(format!("{number}.log"));
        let file = File::create(&log).map_err(failed)?;
        // A terminal's Ctrl-C goes to its foreground group: these are ended by us, in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().ok_or("a process without output")?;
        state.children.insert(number, child);
        Ok(Started { handle: Handle(number), output, log })
    }

    /// Ends some processes at once and waits until they are gone.
    pub(crate) fn end(&self, handles: &[Handle]) {
        for handle in handles {
            let child = self.state().children.remove(&handle.0);
            if let Some(child) = child {
                end(child);
            }
        }
    }

    /// Ends all processes; from now on none can be started.
    pub(crate) fn end_all(&self) {
        let mut state = self.state();
        state.stopped = true;
        std::mem::take(&mut state.children).into_values().for_each(end);
    }

    /// What each of the processes, with all that it has started, waited for a processor so far;
    /// nothing of threads and processes that have ended.
    pub(crate) fn waits(&self, handles: &[Handle]) -> Vec<Waits> {
        let ids: Vec<Option<u32>> = {
            let state = self.state();
            handles.iter().map(|handle| Some(state.children.get(&handle.0)?.id())).collect()
        };
        let of_family = |id| family(id).into_iter().flat_map(thread_waits).collect();
        ids.into_iter().map(|id| id.map(of_family).unwrap_or_default()).collect()
    }

    /// Memory of the processes, with all that they have started, and of this one, in bytes: of what
    /// several share each has its part (proc_pid_smaps_rollup).
    pub(crate) fn memory_bytes(&self, handles: &[Handle]) -> u64 {
        let ids: Vec<u32> = {
            let state = self.state();
            let ids = handles.iter().filter_map(|handle| Some(state.children.get(&handle.0)?.id()));
            ids.collect()
        };
        let all = ids.into_iter().flat_map(family).chain([std::process::id()]);
        all.map(memory_bytes).sum()
    }

    /// Whether a process has ended, with which status.
    pub(crate) fn status(&self, handle: Handle) -> Option<std::process::ExitStatus> {
        self.state().children.get_mut(&handle.0)?.try_wait().ok()?
    }

    /// The same, when it is about to end: what has closed its output ends a moment later.
    pub(crate) fn status_by(
        &self,
        handle: Handle,
        deadline: Instant,
    ) -> Option<std::process::ExitStatus> {
        let id = self.state().children.get(&handle.0)?.id();
        // Until we have asked for its status its number stays its own.
        let process = namespace::processes::open(id).ok()?;
        // Whether it has ended or not is asked next.
        let _ = await_input(&process, deadline);
        self.status(handle)
    }

    pub(crate) fn are_stopped(&self) -> bool {
        self.state().stopped
    }

    fn state(&self) -> MutexGuard<'_, ChildrenState> {
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
    pub(crate) fn await_ready(&mut self, deadline: Instant, begin: &str) -> Result<(), String> {
        match first_line(&mut self.output, deadline) {
            Ok(line) if line.starts_with(begin) => Ok(()),
            Ok(line) => Err(format!("a server that is not ready says '{line}'")),
            Err(error) => Err(self.reason().unwrap_or_else(|| error.to_string())),
        }
    }

    /// Everything that the process prints until it ends.
    pub(crate) fn read_all(&mut self) -> Result<String, String> {
        let mut text = Vec::new();
        let mut output = (&mut self.output).take(MAX_OUTPUT_BYTES);
        output.read_to_end(&mut text).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The same; `look` is called every `interval` until then.
    pub(crate) fn read_all_looking(
        &mut self,
        interval: Duration,
        mut look: impl FnMut(),
    ) -> Result<String, String> {
        loop {
            match await_input(&self.output, Instant::now() + interval) {
                Ok(()) => return self.read_all(),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => look(),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// The last line that the process logged.
    pub(crate) fn reason(&self) -> Option<String> {
        last_line(&self.log)
    }
}

fn last_line(log: &Path) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim_start_matches("longwire: ").chars().take(MAX_REASON_CHARS).collect())
}

impl Drop for Started {
    fn drop(&mut self) {
        // Only a file in the place for temporary files would remain.
        let _ = fs::remove_file(&self.log);
    }
}

fn end(mut child: Child) {
    // With what it has started: it leads a group of its own. Either they are gone already or the
    // signals cannot fail: they are our children.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn memory_bytes(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    1024 * kib.unwrap_or_default()
}

/// A process and its descendants.
fn family(id: u32) -> Vec<u32> {
    let mut all = vec![id];
    let mut next = 0;
    while next < all.len() && all.len() < MAX_DESCENDANTS {
        for task in tasks(all[next]) {
            let children = fs::read_to_string(task.join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
        next += 1;
    }
    all.truncate(MAX_DESCENDANTS);
    all
}

/// What the threads of a process waited for a processor: second field of schedstat, in ns. Those
/// that give way on purpose do what no exchange waits for.
fn thread_waits(id: u32) -> Vec<(PathBuf, Duration)> {
    let waits = tasks(id).into_iter().filter(|task| !gives_way(task)).filter_map(|task| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        let waited_ns = text.split(' ').nth(1)?.parse().ok()?;
        Some((task, Duration::from_nanos(waited_ns)))
    });
    waits.collect()
}

/// Whether a thread has asked for less than the usual priority: the 19th field of proc_pid_stat(5).
fn gives_way(task: &Path) -> bool {
    let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
    is_nice(&stat)
}

fn is_nice(stat: &str) -> bool {
    // Behind the name, which may hold anything, come the third field and the rest.
    const NICE: usize = 19 - 3;
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let nice = rest.split(' ').nth(NICE).and_then(|nice| nice.parse::<i32>().ok());
    nice.is_some_and(|nice| nice > 0)
}

/// Time that endpoints lost to others between two looks: of each the thread that waited longest,
/// summed over the endpoints. An exchange goes from one to the next, but the threads of one wait at
/// the same time.
pub(crate) fn waited(before: &[Waits], after: &[Waits]) -> Duration {
    let longest = |(before, after): (&Waits, &Waits)| {
        let since = |(thread, waited): (&PathBuf, &Duration)| {
            waited.saturating_sub(before.get(thread).copied().unwrap_or_default())
        };
        after.iter().map(since).max().unwrap_or_default()
    };
    before.iter().zip(after).map(longest).sum()
}

fn tasks(id: u32) -> Vec<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{id}/task"));
    tasks.into_iter().flatten().filter_map(|task| Some(task.ok()?.path())).collect()
}

/// Reads up to the first line's end; fails at the end of the output, at `deadline`, and for a line
/// that is too long.
pub(crate) fn first_line(output: &mut ChildStdout, deadline: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < MAX_LINE_BYTES {
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

pub(crate) fn await_input(output: &impl AsFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up: a wait of no time at all would spin.
        let left = left + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(output.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it was not ready in time"));
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
        assert_eq!(server.await_ready(soon(), READY), Ok(()));
        processes.end(&[server.handle]);
        assert_eq!(server.read_all(), Ok(String::new()));
    }

    #[test]
    fn a_server_that_fails_is_quoted() {
        let (processes, _scratch) = processes();
        let script = "echo first >&2; echo 'longwire: port 5 is in use' >&2; exit 2";
        let mut server = processes.start(shell(script)).unwrap();
        assert_eq!(server.await_ready(soon(), READY), Err("port 5 is in use".to_string()));
        let mut other = processes.start(shell("echo hello")).unwrap();
        assert!(other.await_ready(soon(), READY).unwrap_err().contains("'hello'"));
    }

    #[test]
    fn threads_that_give_way_are_known_by_their_priority() {
        let stat = |nice: i32| {
            format!("7 (a) 19 (b) S 1 7 7 0 -1 64 0 0 0 0 1 1 0 0 20 {nice} 4 0 99 0 0")
        };
        assert!(is_nice(&stat(19)) && !is_nice(&stat(0)) && !is_nice(&stat(-5)));
        assert!(!is_nice("") && !is_nice("7 (x) S 1"));
    }

    #[test]
    fn endpoints_wait_one_after_another_and_threads_at_the_same_time() {
        let waits = |all: &[(&str, u64)]| -> Waits {
            all.iter().map(|(name, ms)| (name.into(), Duration::from_millis(*ms))).collect()
        };
        let before = [waits(&[("a", 10), ("b", 10)]), waits(&[("c", 5)])];
        let after = [waits(&[("a", 12), ("b", 17), ("new", 3)]), waits(&[("c", 6)])];
        assert_eq!(waited(&before, &after), Duration::from_millis(8));
        assert_eq!(waited(&before, &[Waits::new(), Waits::new()]), Duration::ZERO);
    }

    #[test]
    fn a_server_that_says_nothing_is_not_awaited_for_ever() {
        let (processes, _scratch) = processes();
        let mut server = processes.start(shell("exec sleep 60")).unwrap();
        let deadline = Instant::now() + Duration::from_millis(30);
        assert!(server.await_ready(deadline, READY).unwrap_err().contains("in time"));
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
