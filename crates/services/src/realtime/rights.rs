//! What real time needs of the system, and what is said where it is not granted.

use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};

use crate::Error;

/// How late the kernel may be on purpose, to save power: by default 50 us (prctl(2)).
const TIMER_SLACK_NS: libc::c_ulong = 1;
/// Stack that a real-time thread touches before it begins, in bytes.
const TOUCHED_STACK_BYTES: usize = 128 * 1024;
/// Bit of `CAP_IPC_LOCK` in a set of capabilities (capabilities(7)).
const CAP_IPC_LOCK: u64 = 1 << 14;

/// Gives the calling thread a real-time priority (SCHED_FIFO, 1 to 99); what it starts is ordinary.
///
/// # Errors
/// [`Error::Caller`] where it is not permitted, with the remedy.
pub fn raise_this_thread(priority: i32) -> Result<(), Error> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads the parameters; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0 {
        return Ok(());
    }
    let why = io::Error::last_os_error();
    let remedy = match budget() {
        Some(Budget { group, runtime_us: 0 }) => format!(
            "control group {group} has no real-time budget: write to its cpu.rt_runtime_us, or \
             start outside of it"
        ),
        _ => "run as root, or grant rtprio (ulimit -r 99, or LimitRTPRIO=99 of systemd)".to_owned(),
    };
    Err(Error::Caller(format!("real-time priority {priority} is not permitted ({why}); {remedy}")))
}

/// Real-time budget of the control group of this process, where the kernel gives each its own
/// (`CONFIG_RT_GROUP_SCHED`, cgroups v1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The group.
    pub group: String,
    /// Microseconds of each period; 0 refuses real-time priority even to root.
    pub runtime_us: i64,
}

/// The budget of this process; `None` where groups have none of their own.
#[must_use]
pub fn budget() -> Option<Budget> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let path = budget_file(&groups, &mounts)?;
    let runtime_us = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
    let group = path.trim_end_matches("/cpu.rt_runtime_us").to_owned();
    Some(Budget { group, runtime_us })
}

/// The file of the budget, of `/proc/self/cgroup` and `/proc/self/mounts`.
fn budget_file(groups: &str, mounts: &str) -> Option<String> {
    let has_cpu = |list: &str| list.split(',').any(|one| one == "cpu");
    let group = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        has_cpu(controllers).then_some(group)
    })?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup" && has_cpu(options)).then_some(place)
    })?;
    Some(format!("{mount}{}/cpu.rt_runtime_us", group.trim_end_matches('/')))
}

/// Keeps the calling thread on one core.
///
/// # Errors
/// [`Error::Caller`] for a core that there is not or that this process may not use.
pub fn pin_this_thread(core: usize) -> Result<(), Error> {
    let refused = |why: String| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Error::Caller(format!("core {core} cannot be used ({why}); there are {cores} from 0 on"))
    };
    if core >= libc::CPU_SETSIZE as usize {
        return Err(refused("no such core".to_owned()));
    }
    // SAFETY: a set of cores is made of integers, so that all zeroes are valid.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is within the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the kernel reads the set, whose size is given; 0 is the calling thread.
    let answer =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    if answer == 0 { Ok(()) } else { Err(refused(io::Error::last_os_error().to_string())) }
}

/// Makes the timers of the calling thread exact.
pub fn sharpen_this_thread() {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) };
}

/// Touches stack of the calling thread, so that no page of it is missing later.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0_u8; TOUCHED_STACK_BYTES];
    for page in pages.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&mut pages);
}

/// Keeps all memory of this process, what it will use included, in RAM, and faults it in.
///
/// # Errors
/// [`Error::Caller`] where it is limited or not permitted, with the remedy.
pub fn lock_memory() -> Result<(), Error> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    let is_unlimited = read == 0 && limit.rlim_cur == libc::RLIM_INFINITY;
    let remedy = "run as root, or raise the limit (ulimit -l unlimited)";
    if !is_unlimited && !may_lock() {
        // Under a limit, later allocations would fail instead of this call.
        let limit = limit.rlim_cur;
        let line = format!("memory cannot be locked beyond a limit of {limit} B; {remedy}");
        return Err(Error::Caller(line));
    }
    // SAFETY: it takes flags, and changes nothing but where pages are.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
        return Ok(());
    }
    let why = io::Error::last_os_error();
    Err(Error::Caller(format!("memory cannot be locked ({why}); {remedy}")))
}

/// Whether this process may lock memory beyond its limit.
fn may_lock() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // In a user namespace it is a capability over that namespace, which memory is not of.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_whole = map.split_whitespace().eq(["0", "0", "4294967295"]);
    set & CAP_IPC_LOCK != 0 && is_whole
}

/// A request that no core sleeps so deep that waking takes time; it holds while this is kept.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Makes the request.
    ///
    /// # Errors
    /// [`Error::Caller`] where it is not permitted or the kernel has no such file.
    pub fn request() -> Result<Self, Error> {
        const PATH: &str = "/dev/cpu_dma_latency";
        let open = OpenOptions::new().write(true).open(PATH);
        // The longest latency in microseconds, as an integer of 32 bits.
        let made = open.and_then(|mut file| file.write_all(&0_i32.to_ne_bytes()).map(|()| file));
        let request = made.map_err(|why| {
            Error::Caller(format!("{PATH} cannot be written ({why}); run as root"))
        })?;
        Ok(Self { _request: request })
    }
}

/// How the calling thread is scheduled, as the kernel says: `SCHED_FIFO 70` or `SCHED_OTHER`.
#[must_use]
pub fn scheduling() -> String {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the kernel writes the parameters.
    let policy: c_int = unsafe {
        libc::sched_getparam(0, &raw mut parameters);
        libc::sched_getscheduler(0)
    };
    match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => format!("SCHED_FIFO {}", parameters.sched_priority),
        libc::SCHED_RR => format!("SCHED_RR {}", parameters.sched_priority),
        libc::SCHED_OTHER => "SCHED_OTHER".to_owned(),
        libc::SCHED_BATCH => "SCHED_BATCH".to_owned(),
        libc::SCHED_IDLE => "SCHED_IDLE".to_owned(),
        other => format!("policy {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_of_the_group_of_the_processor() {
        let mounts = "proc /proc proc rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n";
        let groups = "9:name=systemd:/\n4:cpu,cpuacct:/services/a\n";
        let file = budget_file(groups, mounts).unwrap();
        assert_eq!(file, "/sys/fs/cgroup/cpu,cpuacct/services/a/cpu.rt_runtime_us");
        let root = budget_file("4:cpu,cpuacct:/\n", mounts).unwrap();
        assert_eq!(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us");
        // Version 2 has no such budgets; a set of cores is none.
        assert_eq!(budget_file("0::/a\n", mounts), None);
        assert_eq!(budget_file("3:cpuset:/\n", mounts), None);
    }

    #[test]
    fn a_priority_holds_or_is_refused_in_one_line() {
        std::thread::spawn(|| match raise_this_thread(1) {
            Ok(()) => assert_eq!(scheduling(), "SCHED_FIFO 1"),
            Err(error) => {
                let line = error.to_string();
                assert!(line.contains("not permitted") && !line.contains('\n'), "{line}");
                assert!(!scheduling().contains("FIFO"));
            }
        })
        .join()
        .unwrap();
        let refused = raise_this_thread(1000).unwrap_err().to_string();
        assert!(refused.contains("1000"), "{refused}");
    }

    #[test]
    fn a_core_that_there_is_not_is_refused() {
        for core in [libc::CPU_SETSIZE as usize - 1, usize::MAX] {
            let line = std::thread::spawn(move || pin_this_thread(core)).join().unwrap();
            let line = line.unwrap_err().to_string();
            assert!(line.contains("from 0 on"), "{line}");
        }
        std::thread::spawn(|| pin_this_thread(0)).join().unwrap().unwrap();
    }
}
