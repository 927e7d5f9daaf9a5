//! What contends for a core: ordinary threads that compute, fault pages in, copy through a pipe.
//! Beside them one watches for holes in what the core gives.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use record::realtime::Holes;
use services::realtime::clock::monotonic_ns;
use services::realtime::rights::pin_this_thread;

/// Pages that are made and given back at a time, in bytes.
const PAGES_BYTES: usize = 4 << 20;
/// What is copied at a time, in bytes.
const COPIED_BYTES: usize = 32 * 1024;
/// Shortest step between two readings of the clock that is looked into.
const STEP_NS: u64 = 50_000;
/// How often a load looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(5);

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Computes.
    Spin,
    /// Makes pages, touches them, gives them back.
    Faults,
    /// Copies through a pipe to itself.
    Pipes,
}

impl Load {
    pub(super) const ALL: [Self; 3] = [Self::Spin, Self::Faults, Self::Pipes];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Faults => "faults",
            Self::Pipes => "pipes",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|load| load.name() == name)
    }

    /// Loads the core for a few milliseconds.
    fn work(self, room: &mut [u8], pipe: &mut Option<(UnixStream, UnixStream)>) {
        let end = Instant::now() + LOOK;
        match self {
            Self::Spin => {
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Faults => {
                while Instant::now() < end {
                    fault();
                }
            }
            Self::Pipes => {
                while Instant::now() < end {
                    let Some((from, to)) = pipe else { return thread::sleep(LOOK) };
                    // What fits in is read back whole, so that neither waits for ever.
                    let both = from.write_all(room).and_then(|()| to.read_exact(room));
                    if both.is_err() {
                        *pipe = None;
                    }
                }
            }
        }
    }
}

/// Maps memory, touches each page, and unmaps it.
fn fault() {
    // SAFETY: a new private mapping, of which nobody else knows.
    let place = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGES_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if place == libc::MAP_FAILED {
        return thread::sleep(LOOK);
    }
    // SAFETY: the mapping has so many bytes, is writable, and is given back behind the last touch.
    unsafe {
        for at in (0..PAGES_BYTES).step_by(4096) {
            place.cast::<u8>().add(at).write_volatile(1);
        }
        libc::munmap(place, PAGES_BYTES);
    }
}

/// Loads on a core until this is dropped or ended.
pub(super) struct Loads {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    watch: JoinHandle<Option<Holes>>,
}

impl Loads {
    /// Starts a thread for each load, on for so long and then off, and one that watches.
    pub(super) fn start(core: usize, loads: &[Load], (on, off): (Duration, Duration)) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let begun = Instant::now();
        let thread = |load: &Load| {
            let (load, is_over) = (*load, Arc::clone(&is_over));
            thread::spawn(move || {
                if pin_this_thread(core).is_err() {
                    return;
                }
                let mut room = vec![0; COPIED_BYTES];
                let mut pipe = UnixStream::pair().ok();
                while !is_over.load(Ordering::Relaxed) {
                    if is_on(begun.elapsed(), on, off) {
                        load.work(&mut room, &mut pipe);
                    } else {
                        thread::sleep(LOOK);
                    }
                }
            })
        };
        let threads = loads.iter().map(thread).collect();
        let over = Arc::clone(&is_over);
        let watch = thread::spawn(move || watch(core, &over));
        Self { is_over, threads, watch }
    }

    /// Ends them; what was seen of holes.
    pub(super) fn end(self) -> Option<Holes> {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // One that ended before loaded less; the run says what was seen.
            let _ = thread.join();
        }
        self.watch.join().ok().flatten()
    }
}

/// Whether loads are on: they begin so, and come and go.
fn is_on(elapsed: Duration, on: Duration, off: Duration) -> bool {
    let round_ns = (on + off).as_nanos().max(1);
    elapsed.as_nanos() % round_ns < on.as_nanos()
}

/// Reads the clock on a core whenever nothing else wants it (SCHED_IDLE). A step between two
/// readings in which the thread was not switched out was taken by interrupts or by the host.
fn watch(core: usize, is_over: &AtomicBool) -> Option<Holes> {
    pin_this_thread(core).ok()?;
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel reads the parameters; 0 is the calling thread.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    if set != 0 {
        return None;
    }
    let mut holes = Holes::default();
    // Counts that were read behind the last time and the one before it: a switch anywhere between
    // two times is one between the count before the first and the count behind the second.
    let mut counts = [switches(); 2];
    let (mut watched_ns, mut last_ns) = (0, monotonic_ns());
    while !is_over.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns();
        let count = switches();
        let step_ns = now_ns.saturating_sub(last_ns);
        let was_switched = counts[0] != count;
        (counts, last_ns) = ([counts[1], count], now_ns);
        if was_switched {
            continue;
        }
        watched_ns += step_ns;
        if step_ns > STEP_NS {
            holes.over_50_us += 1;
            holes.over_300_us += u64::from(step_ns > 6 * STEP_NS);
            holes.max_us = holes.max_us.max(step_ns as f64 / 1000.0);
        }
    }
    holes.watched_s = watched_ns as f64 / 1e9;
    Some(holes)
}

/// How often the calling thread was switched out (getrusage(2)).
fn switches() -> i64 {
    // SAFETY: a usage is made of integers, so that all zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one `rusage`.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nvcsw + usage.ru_nivcsw
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_come_and_go() {
        let on = |at: u64| {
            is_on(Duration::from_secs(at), Duration::from_secs(18), Duration::from_secs(2))
        };
        assert!(on(0) && on(17) && !on(18) && !on(19) && on(20));
        assert!(is_on(Duration::from_secs(9), Duration::from_secs(1), Duration::ZERO));
    }

    #[test]
    fn each_load_runs_and_ends() {
        let on = (Duration::from_secs(1), Duration::ZERO);
        let loads = Loads::start(0, &Load::ALL, on);
        assert_eq!(loads.threads.len(), 3);
        let mut pipe = UnixStream::pair().ok();
        for load in Load::ALL {
            load.work(&mut [0; COPIED_BYTES], &mut pipe);
            assert_eq!(Load::parse(load.name()), Some(load));
        }
        assert!(pipe.is_some(), "the copies came through");
        assert!(loads.end().is_some());
    }
}
