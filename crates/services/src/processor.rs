//! What the machine tells of time: its monotonic clock, and how long we waited for a processor.

use std::fs;

/// Most threads that are looked at; a client has one or two.
const MAX_THREADS: usize = 1024;

/// Seconds on `CLOCK_MONOTONIC`, which all processes of a machine share.
pub(crate) fn monotonic_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, which `time` is. It cannot fail: the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds that the threads of this process, ready to run, have waited for a processor since each
/// began; `None` where the kernel does not tell. Threads that have ended are not in it.
pub(crate) fn wait_s() -> Option<f64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let mut waited_ns = None;
    for task in tasks.take(MAX_THREADS).flatten() {
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        // Time on a processor, time waited for one, both in ns, and how often it ran.
        let waited: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
        *waited_ns.get_or_insert(0) += waited;
    }
    Some(waited_ns? as f64 / 1e9)
}
