//! What threads of different priority may share: a lock that lends priority, and a bell.
//!
//! A thread that waits for a lock waits for whoever holds it, and for all that run in that one's
//! place. With priority inheritance (POSIX `PTHREAD_PRIO_INHERIT`, futex(2) `FUTEX_LOCK_PI`) the
//! holder runs with the priority of the most urgent who waits. `std::sync::Mutex` has none.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Error;

/// What becomes of the priority of who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// It is that of the most urgent who waits, while it is higher.
    Inherit,
    /// It stays: for experiments that show why it must not.
    None,
}

/// A mutex whose holder inherits priority.
pub struct PiMutex<T> {
    /// In a place of its own: it must not move once it is made.
    raw: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by who holds the mutex, one thread at a time, so that it needs
// to be `Send` and no more; the mutex itself is made for all threads of a process.
unsafe impl<T: Send> Sync for PiMutex<T> {}
// SAFETY: no thread holds the mutex while it is moved, as a guard borrows it; the raw mutex stays
// where it is.
unsafe impl<T: Send> Send for PiMutex<T> {}

impl<T> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PiMutex")
    }
}

impl<T> PiMutex<T> {
    /// A mutex around `value`.
    ///
    /// # Errors
    /// [`Error::Caller`] where the system has no priority inheritance.
    pub fn new(value: T, inheritance: Inheritance) -> Result<Self, Error> {
        let protocol = match inheritance {
            Inheritance::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Inheritance::None => libc::PTHREAD_PRIO_NONE,
        };
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        // SAFETY: the attributes are made before they are used and ended behind it; the mutex is
        // initialised once, in the place where it stays, before anybody else knows it.
        let answer = unsafe {
            match libc::pthread_mutexattr_init(attributes.as_mut_ptr()) {
                0 => {
                    // Of the usual type, locking twice is undefined; this one waits for ever.
                    let normal = libc::PTHREAD_MUTEX_NORMAL;
                    libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), normal);
                    let set =
                        libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol);
                    let made = match set {
                        0 => libc::pthread_mutex_init(raw.get(), attributes.as_ptr()),
                        refused => refused,
                    };
                    libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
                    made
                }
                refused => refused,
            }
        };
        if answer != 0 {
            let why = std::io::Error::from_raw_os_error(answer);
            let line = format!("no lock with priority inheritance ({why}); use Linux with futexes");
            return Err(Error::Caller(line));
        }
        Ok(Self { raw, value: UnsafeCell::new(value) })
    }

    /// Waits until nobody else holds it. A thread that holds it already waits for ever.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex was initialised and lives as long as `self`.
        let answer = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        if answer != 0 {
            // A guard without the lock would be two owners of one value. It happens only where the
            // system has no memory for the lock, or a thread ended that had leaked its guard.
            std::process::abort();
        }
        Guard { of: self, own: PhantomData }
    }

    /// The value, of a mutex that nobody else has.
    pub fn into_inner(self) -> T {
        // The raw mutex holds nothing that must be given back on Linux, and `raw` frees its place.
        self.value.into_inner()
    }
}

/// Who holds a [`PiMutex`]. It belongs to its thread.
pub struct Guard<'a, T> {
    of: &'a PiMutex<T>,
    /// Neither `Send` nor `Sync`: who locked must unlock, and the value need be `Send` only.
    own: PhantomData<*const ()>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the guard holds the mutex.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: who has the guard holds the mutex, and lends the guard for as long.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread locked it, as a guard is not `Send`.
        unsafe { libc::pthread_mutex_unlock(self.of.raw.get()) };
    }
}

/// Wakes a thread without any lock: a count that one waits to change. A condition variable of the C
/// library has a lock inside, without priority inheritance.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// How often it rang, round 32 bits: taken before one looks whether there is something to do.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Rings, and wakes all who wait.
    pub fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        // SAFETY: FUTEX_WAKE takes an address, which lives as long as `self`, and a count.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                i32::MAX,
            );
        }
    }

    /// Waits until it has rung since `seen`, or for `most`. It may come back early: look again.
    pub fn wait(&self, seen: u32, most: Option<Duration>) {
        let time = most.map(|most| libc::timespec {
            tv_sec: libc::time_t::try_from(most.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(most.subsec_nanos().cast_signed()),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: FUTEX_WAIT reads the count, which lives as long as `self`, compares it with
        // `seen`, and reads a time or none.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                seen,
                time,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn one_at_a_time_holds_it() {
        const ROUNDS: u32 = 20_000;
        for inheritance in [Inheritance::Inherit, Inheritance::None] {
            let count = Arc::new(PiMutex::new(0_u32, inheritance).unwrap());
            let one = || {
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    for _ in 0..ROUNDS {
                        let mut count = count.lock();
                        let seen = *count;
                        std::hint::black_box(());
                        *count = seen + 1;
                    }
                })
            };
            let threads = [one(), one(), one()];
            for thread in threads {
                thread.join().unwrap();
            }
            let count = Arc::into_inner(count).unwrap().into_inner();
            assert_eq!(count, 3 * ROUNDS, "{inheritance:?}");
        }
    }

    #[test]
    fn a_guard_that_a_panic_drops_unlocks() {
        let count = Arc::new(PiMutex::new(0, Inheritance::Inherit).unwrap());
        let other = Arc::clone(&count);
        let ended = thread::spawn(move || {
            let _guard = other.lock();
            std::panic::resume_unwind(Box::new("as a worker may"));
        });
        assert!(ended.join().is_err());
        assert_eq!(*count.lock(), 0);
    }

    #[test]
    fn a_ring_before_the_wait_is_not_missed() {
        let bell = Arc::new(Bell::default());
        let seen = bell.count();
        bell.ring();
        bell.wait(seen, None);
        let (here, there) = (Arc::clone(&bell), bell.count());
        let waiting = thread::spawn(move || {
            while here.count() == there {
                here.wait(there, None);
            }
        });
        bell.ring();
        waiting.join().unwrap();
        bell.wait(bell.count(), Some(Duration::from_millis(1)));
    }
}
