//! Processes that live in namespaces: found and ended.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;

/// How long processes may take to end by themselves before they are killed.
const TERM_PATIENCE: Duration = Duration::from_secs(1);
/// How long the kernel may take to end what was killed.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How long a process may take to be started by the kernel, and how often that is looked at.
const EXEC_PATIENCE: Duration = Duration::from_secs(1);
const EXEC_STEP: Duration = Duration::from_micros(200);

/// How often processes are looked for: each time only what the last ones started as they were
/// ended is left.
const MAX_ROUNDS: usize = 4;

/// A process that cannot turn into another one while it is held (pidfd_open(2)).
struct Process {
    pid: u32,
    handle: OwnedFd,
}

/// Ends all processes in the given network namespaces (by device and inode) but this one; returns
/// how many there were.
pub(crate) fn end_in(namespaces: &HashSet<(u64, u64)>) -> usize {
    end(|pid| {
        fs::metadata(format!("/proc/{pid}/ns/net"))
            .is_ok_and(|found| namespaces.contains(&(found.dev(), found.ino())))
    })
}

/// Ends all processes whose environment holds `NAME=value`; returns how many there were.
pub(crate) fn end_marked(name: &str, value: &str) -> usize {
    let mark = format!("{name}={value}");
    end(|pid| {
        environment(pid)
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()))
    })
}

/// What a process was started with. Whoever starts one goes on before the kernel has laid this
/// out, so a process that is still being started is waited for.
fn environment(pid: u32) -> io::Result<Vec<u8>> {
    let path = format!("/proc/{pid}/environ");
    let found = fs::read(&path)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let deadline = Instant::now() + EXEC_PATIENCE;
    while is_in_exec(pid)? && Instant::now() < deadline {
        thread::sleep(EXEC_STEP);
    }
    // Also where it was not: it may have been until a moment ago.
    fs::read(&path)
}

/// Whether a process is within execve(2): it has memory, but no place in it for the environment.
fn is_in_exec(pid: u32) -> io::Result<bool> {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat"))?).into_owned();
    // Fields of proc_pid_stat(5); the name before the third may hold anything.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let field = |number: usize| fields.split_whitespace().nth(number - 3);
    let (memory, environment_end) = (field(23), field(51));
    Ok(memory.is_some_and(|bytes| bytes != "0") && environment_end == Some("0"))
}

fn end(belongs: impl Fn(u32) -> bool) -> usize {
    let mut ended = 0;
    // What was being started while the others were found is found the next time.
    for _ in 0..MAX_ROUNDS {
        let found = find(&belongs);
        if found.is_empty() {
            break;
        }
        ended += found.len();
        end_all(&found);
    }
    ended
}

fn end_all(found: &[Process]) {
    for (signal, patience) in [(Signal::SIGTERM, TERM_PATIENCE), (Signal::SIGKILL, KILL_PATIENCE)] {
        let deadline = Instant::now() + patience;
        for process in found {
            // One that has ended meanwhile cannot be signalled, which is well.
            let _ = process.signal(signal);
        }
        if found.iter().all(|process| process.ends_before(deadline)) {
            return;
        }
    }
    for process in found.iter().filter(|process| !process.ends_before(Instant::now())) {
        tracing::warn!(pid = process.pid, "a process of the lab does not end");
    }
}

fn find(belongs: impl Fn(u32) -> bool) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
        // Asked first, since a machine has many processes and most are not the lab's.
        .filter(|pid| belongs(*pid))
        .filter_map(|pid| {
            let process = Process { pid, handle: open(pid).ok()? };
            // Asked again: the number cannot pass to another process from now on.
            belongs(pid).then_some(process)
        })
        .collect()
}

/// A descriptor that is readable once the process has ended.
pub(crate) fn open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two numbers and touches no memory of ours.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just handed this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Process {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let (descriptor, number) = (self.handle.as_raw_fd(), signal as i32);
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: a null siginfo is allowed and means a plain signal.
        let answer =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, descriptor, number, no_info, 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn ends_before(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
        let mut watched = [PollFd::new(self.handle.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut watched, timeout), Ok(1..))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_that_have_only_just_been_started_are_found() {
        const NAME: &str = "LONGWIRE_TEST_STARTED";
        for round in 0..200 {
            let mark = format!("{}-{round}", std::process::id());
            let mut child = Command::new("sleep").arg("60").env(NAME, &mark).spawn().unwrap();
            let ended = end_marked(NAME, &mark);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(ended, 1, "round {round}");
        }
    }
}
