//! Priority inversion on one core: how long an urgent thread waits for a lock that another holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use services::Error;
use services::realtime::clock::{monotonic_ns, work_ns};
use services::realtime::lock::{Bell, Inheritance, PiMutex};
use services::realtime::rights::{pin_this_thread, raise_this_thread};

/// What the holder does while it holds the lock.
const HELD_NS: u64 = 2_000_000;
/// What a thread of middle priority does, which wants no lock at all.
const MIDDLE_NS: u64 = 50_000_000;
/// Priorities of the three.
const LOW: i32 = 10;
const MIDDLE: i32 = 20;
const HIGH: i32 = 30;

/// What the three threads share.
struct Shared {
    lock: PiMutex<u64>,
    high: Bell,
    middle: Bell,
    waited_ns: AtomicU64,
}

/// How long the urgent thread waited for the lock, once, in nanoseconds.
///
/// # Errors
/// [`Error::Caller`] where real-time priority is not permitted.
pub(super) fn wait_ns(core: usize, inheritance: Inheritance) -> Result<u64, Error> {
    let shared = Arc::new(Shared {
        lock: PiMutex::new(0, inheritance)?,
        high: Bell::default(),
        middle: Bell::default(),
        waited_ns: AtomicU64::new(0),
    });
    // What rings later is seen by who took the count before.
    let (of_high, of_middle) = (shared.high.count(), shared.middle.count());
    let (ready, came) = sync_channel(2);
    let high = begin(&shared, (core, HIGH), ready.clone(), move |shared| {
        await_ring(&shared.high, of_high);
        let from_ns = monotonic_ns();
        *shared.lock.lock() += 1;
        shared.waited_ns.store(monotonic_ns() - from_ns, Ordering::Release);
    });
    let middle = begin(&shared, (core, MIDDLE), ready.clone(), move |shared| {
        await_ring(&shared.middle, of_middle);
        work_ns(MIDDLE_NS);
    });
    let both: Result<Vec<()>, Error> = (0..2)
        .map(|_| came.recv().unwrap_or_else(|_| Err(Error::Peer("a thread ended".to_owned()))))
        .collect();
    let low = match both {
        Ok(_) => begin(&shared, (core, LOW), ready, |shared| {
            let mut held = shared.lock.lock();
            // The urgent one runs at once, and waits for the lock; then the middle one is ready.
            shared.high.ring();
            shared.middle.ring();
            work_ns(HELD_NS);
            *held += 1;
        }),
        Err(error) => {
            shared.high.ring();
            shared.middle.ring();
            let _ = (high.join(), middle.join());
            return Err(error);
        }
    };
    let last = came.recv().unwrap_or_else(|_| Err(Error::Peer("a thread ended".to_owned())));
    if last.is_err() {
        shared.high.ring();
        shared.middle.ring();
    }
    let ended = [low.join(), high.join(), middle.join()];
    last?;
    if ended.iter().any(Result::is_err) {
        return Err(Error::Peer("a thread of the experiment ended by a panic".to_owned()));
    }
    Ok(shared.waited_ns.load(Ordering::Acquire))
}

fn await_ring(bell: &Bell, seen: u32) {
    while bell.count() == seen {
        bell.wait(seen, None);
    }
}

/// Starts a thread on a core with a priority, which says when it is so.
fn begin(
    shared: &Arc<Shared>,
    (core, priority): (usize, i32),
    ready: SyncSender<Result<(), Error>>,
    run: impl FnOnce(&Shared) + Send + 'static,
) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let set = pin_this_thread(core).and_then(|()| raise_this_thread(priority));
        let is_set = set.is_ok();
        // Who started it waits for this.
        let _ = ready.send(set);
        if is_set {
            run(&shared);
        }
    })
}
