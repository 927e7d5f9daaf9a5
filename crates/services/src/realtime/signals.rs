//! Being told to stop, in a process of plain threads.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// SIGTERM and SIGINT, held back from all threads so that one can wait for them.
#[derive(Debug)]
pub struct Stop {
    set: libc::sigset_t,
}

impl Stop {
    /// Holds them back from the calling thread and all that it starts: to be called before these.
    #[must_use]
    pub fn hold() -> Self {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is made empty before anything is added to it, and is whole behind that;
        // the signals exist, so that nothing here can fail.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
            let set = set.assume_init();
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            set
        };
        Self { set }
    }

    /// Holds them back no more from the calling thread: the next one ends the process.
    pub fn release(&self) {
        // SAFETY: the set lives behind the call; nothing is written.
        unsafe {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const self.set, std::ptr::null_mut());
        }
    }

    /// Waits for one of them; false where none came in `most`. Without it, it waits for ever.
    #[must_use]
    pub fn wait(&self, most: Option<Duration>) -> bool {
        let end = most.map(|most| Instant::now() + most);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let time = left.map(|left| libc::timespec {
                tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: libc::c_long::from(left.subsec_nanos().cast_signed()),
            });
            let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: the set and the time live behind the call; nothing is written.
            let signal =
                unsafe { libc::sigtimedwait(&raw const self.set, std::ptr::null_mut(), time) };
            if signal > 0 {
                return true;
            }
            let why = std::io::Error::last_os_error().raw_os_error();
            if why == Some(libc::EAGAIN) && left.is_some_and(|left| left.is_zero()) {
                return false;
            }
        }
    }
}
