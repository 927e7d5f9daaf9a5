//! What a measurement runs on, and what else runs there.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use record::machine::{Busy, Machine};

/// Says what this machine is. The command that repeats the measurement is this process's own, with
/// `program` as the name of the binary.
#[must_use]
pub fn describe(program: &str) -> Machine {
    let mut command = format!("cargo run --release --package longwire-bench --bin {program}");
    for (index, argument) in std::env::args().skip(1).enumerate() {
        command += if index == 0 { " -- " } else { " " };
        command += &argument;
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let processor = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    Machine {
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        processor: processor.to_string(),
        cores: cores().len(),
        revision: revision(),
        date: date(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        command,
    }
}

/// What a measurement ran on and the command that repeats it, in Markdown.
#[must_use]
pub fn render(machine: &Machine) -> String {
    let Machine { kernel, processor, cores, revision, date, profile, command } = machine;
    let revision = revision.as_deref().unwrap_or("unknown");
    format!(
        "Measured on {date}, revision {revision}, {profile} build; {cores} cores, {processor}, \
         {kernel}.\n\n```\n{command}\n```\n"
    )
}

/// The revision of the sources in the working directory.
fn revision() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { commit + "+" })
}

/// Today in UTC, by Howard Hinnant's days-to-civil arithmetic.
fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    civil(since.as_secs() / 86_400)
}

fn civil(days_since_1970: u64) -> String {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March, so that the leap day comes last.
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

/// The cores that this process may use.
#[must_use]
pub fn cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// Keeps the calling thread, and what it starts, on one core. A core that is not there leaves
/// things as they are.
pub fn pin_this_thread(core: usize) {
    let mut set = CpuSet::new();
    let _ = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
}

/// Lets this process open as many files as it may at all.
///
/// # Errors
/// When the limit can be neither read nor set.
pub fn raise_descriptor_limit() -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("raise the limit of open files")
}

/// Busy loops pinned to cores, until dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Loads every core but `spared`, each with one loop at ordinary priority.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(spared: usize) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for core in cores().into_iter().filter(|core| *core != spared) {
            let stop = Arc::clone(&stop);
            let spin = move || {
                pin_this_thread(core);
                let mut sum = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    sum = black_box(sum.wrapping_mul(0x9e37_79b9).wrapping_add(1));
                }
            };
            threads.push(thread::Builder::new().name("load".to_string()).spawn(spin)?);
        }
        Ok(Self { stop, threads })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A busy loop has nothing to panic about.
            let _ = thread.join();
        }
    }
}

/// A moment of the machine's accounts.
pub struct Accounts {
    /// Of all processors together, in units of the kernel's accounting.
    all: u64,
    busy: u64,
    stolen: u64,
    own: Duration,
    wall_minus_monotonic_ns: i128,
}

/// How far the wall clock may move against the monotonic one in a run: far below the errors that
/// are measured, far above what reading two clocks costs.
const CLOCK_SET_NS: u128 = 20_000;

impl Accounts {
    /// Reads them.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
        let line = stat.lines().next().unwrap_or_default();
        let fields: Vec<u64> =
            line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal (proc_stat(5)).
        let [user, nice, system, _idle, _iowait, irq, softirq, stolen] =
            fields.get(..8).and_then(|first| first.try_into().ok()).context("read /proc/stat")?;
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let seconds = |time: nix::sys::time::TimeVal| {
            Duration::new(time.tv_sec().unsigned_abs(), 0)
                + Duration::from_micros(time.tv_usec().unsigned_abs())
        };
        Ok(Self {
            all: fields[..8].iter().sum(),
            busy: user + nice + system + irq + softirq,
            stolen,
            own: seconds(usage.user_time()) + seconds(usage.system_time()),
            wall_minus_monotonic_ns: wall_minus_monotonic_ns()?,
        })
    }

    /// What happened since.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn since(&self) -> Result<Busy> {
        let now = Self::read()?;
        let all = (now.all - self.all).max(1) as f64;
        let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100) as f64;
        let own = (now.own - self.own).as_secs_f64() * ticks;
        let others = (now.busy - self.busy) as f64 - own;
        Ok(Busy {
            stolen_percent: (now.stolen - self.stolen) as f64 / all * 100.0,
            others_percent: others.max(0.0) / all * 100.0,
        })
    }

    /// Whether somebody set the wall clock since: then timestamps do not compare.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn clock_was_set(&self) -> Result<bool> {
        let moved = wall_minus_monotonic_ns()? - self.wall_minus_monotonic_ns;
        Ok(moved.unsigned_abs() > CLOCK_SET_NS)
    }
}

/// The least of some readings: the one that was not interrupted between the two clocks.
fn wall_minus_monotonic_ns() -> Result<i128> {
    let ns = |clock| -> Result<i128> {
        Ok(Duration::from(clock_gettime(clock)?).as_nanos().cast_signed())
    };
    let mut best = (i128::MAX, 0);
    for _ in 0..10 {
        let before = ns(ClockId::CLOCK_MONOTONIC)?;
        let wall = ns(ClockId::CLOCK_REALTIME)?;
        let after = ns(ClockId::CLOCK_MONOTONIC)?;
        best = best.min((after - before, wall - i128::midpoint(before, after)));
    }
    Ok(best.1)
}

/// The ferry's thread, found by its name in this process.
pub struct FerryThread {
    id: i32,
}

impl FerryThread {
    /// Finds it; the process must have one lab only.
    ///
    /// # Errors
    /// When there is no such thread.
    pub fn find() -> Result<Self> {
        for entry in fs::read_dir("/proc/self/task")? {
            let path = entry?.path();
            let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
            if name.trim() == "ferry" {
                let id = path.file_name().and_then(|name| name.to_str()?.parse().ok());
                return Ok(Self { id: id.context("number of the ferry's thread")? });
            }
        }
        anyhow::bail!("this process has no thread named 'ferry'")
    }

    /// The core that it last ran on.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn core(&self) -> Result<usize> {
        // Field 39 of proc_pid_stat(5).
        self.stat_field(39)?.parse().context("the ferry's core")
    }

    /// Processor time that it has used.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn processor_time(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.id))?;
        let ns = text.split_whitespace().next().and_then(|field| field.parse().ok());
        Ok(Duration::from_nanos(ns.context("the ferry's processor time")?))
    }

    /// Takes its real-time priority away.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn demote(&self) -> Result<()> {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel reads the parameters.
        let answer =
            unsafe { libc::sched_setscheduler(self.id, libc::SCHED_OTHER, &raw const parameters) };
        nix::errno::Errno::result(answer).context("take the ferry's priority away")?;
        Ok(())
    }

    /// Its scheduling, as the kernel tells it.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn scheduling(&self) -> Result<String> {
        // Fields 40 and 41 of proc_pid_stat(5): real-time priority and policy.
        let (priority, policy) = (self.stat_field(40)?, self.stat_field(41)?);
        Ok(match policy.parse::<i32>()? {
            libc::SCHED_FIFO => format!("SCHED_FIFO, priority {priority}"),
            libc::SCHED_OTHER => "SCHED_OTHER".to_string(),
            other => format!("policy {other}, priority {priority}"),
        })
    }

    /// A field of its state, counted from 1.
    fn stat_field(&self, number: usize) -> Result<String> {
        let text = fs::read_to_string(format!("/proc/self/task/{}/stat", self.id))?;
        // The name in parentheses is the second field and may hold spaces.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let field = rest.split_whitespace().nth(number - 3);
        Ok(field.context("the state of the ferry's thread")?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), "1970-01-01");
        assert_eq!(civil(19_782), "2024-02-29");
        assert_eq!(civil(20_778), "2026-11-21");
    }

    #[test]
    fn accounts_see_a_busy_core() {
        let before = Accounts::read().unwrap();
        let load = Load::start(usize::MAX).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while getrusage(UsageWho::RUSAGE_SELF).unwrap().user_time().tv_usec() < 300_000
            && Accounts::read().unwrap().own - before.own < Duration::from_millis(300)
        {
            assert!(std::time::Instant::now() < deadline, "no load appears");
            thread::yield_now();
        }
        drop(load);
        let busy = before.since().unwrap();
        assert!(busy.others_percent < 100.0, "{busy:?}");
        assert!(!before.clock_was_set().unwrap());
    }
}
