//! The clocks that latencies are taken by.

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a host share (clock_gettime(2)).
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time of the calling thread in nanoseconds.
#[must_use]
pub fn thread_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, which `time` is. It cannot fail: the clock exists.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Works for so much processor time of the calling thread: a load, not a wait.
pub fn work_ns(work_ns: u64) {
    let begin = thread_ns();
    while thread_ns() - begin < work_ns {
        std::hint::spin_loop();
    }
}
