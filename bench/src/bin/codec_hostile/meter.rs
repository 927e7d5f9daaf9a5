//! Processor time, and memory twice: what is asked for through Rust, and what becomes resident.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use codec::Error;
use nix::time::{ClockId, clock_gettime};

/// Counts what is allocated through Rust.
struct Counting;

static HELD_BYTES: AtomicIsize = AtomicIsize::new(0);
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    let held = HELD_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK_BYTES.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator as it came; counting changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps `realloc`'s contract.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory of one run beyond what was there before, in bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Asked for through Rust: buffers and tables, used or not.
    pub(crate) allocated: usize,
    /// Resident: what libraries in C take is in it too.
    pub(crate) resident: usize,
}

/// How long it took, and what came of it.
pub(crate) struct Timed {
    /// Of the processor, the least of some runs.
    pub(crate) seconds: f64,
    /// Bytes that came out.
    pub(crate) made: usize,
    pub(crate) result: Result<(), Error>,
}

/// Runs that are worth it: until so much time has gone, and so many at most.
const ENOUGH_S: f64 = 0.03;
const MAX_RUNS: usize = 5;

/// Measures the time of `run`, which answers how much it made.
pub(crate) fn timed(run: impl Fn() -> (usize, Result<(), Error>)) -> Timed {
    let mut least = f64::INFINITY;
    let mut sum = 0.0;
    let mut last = (0, Ok(()));
    for _ in 0..MAX_RUNS {
        let before = processor_time();
        last = run();
        let seconds = (processor_time() - before).as_secs_f64();
        least = least.min(seconds);
        sum += seconds;
        if sum > ENOUGH_S {
            break;
        }
    }
    Timed { seconds: least, made: last.0, result: last.1 }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Measures the memory of `run`.
pub(crate) fn memory(run: impl Fn() -> (usize, Result<(), Error>)) -> Figures {
    // SAFETY: gives free memory back, no more.
    unsafe { libc::malloc_trim(0) };
    // From here on the kernel counts the greatest resident set anew (proc_pid_clear_refs(5)). Where
    // it does not, the figure is too great, never too small.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let resident = status_bytes("VmRSS:");
    let held = HELD_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(held, Ordering::Relaxed);
    // What is made counts: it is dropped behind this.
    let _ = run();
    let allocated = PEAK_BYTES.load(Ordering::Relaxed) - held;
    Figures {
        allocated: allocated.unsigned_abs(),
        resident: status_bytes("VmHWM:").saturating_sub(resident),
    }
}

fn status_bytes(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let kib = line.trim().split(' ').next().and_then(|kib| kib.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}
