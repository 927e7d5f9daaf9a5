//! A thread that runs when it must.

use std::ffi::c_int;
use std::io;

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::namespace::{CAP_IPC_LOCK, capabilities, in_user_namespace};

/// Above ordinary threads, below those of the kernel (sched(7)); the least is tried where a limit
/// (RLIMIT_RTPRIO) forbids more.
const PRIORITIES: [c_int; 2] = [50, 1];
/// How late the kernel may be on purpose, to save power: by default 50 µs.
const TIMER_SLACK_NS: libc::c_ulong = 1;

/// Gives the calling thread real-time priority and exact timers.
///
/// # Errors
/// When real-time priority is not permitted; timers are exact all the same.
pub(crate) fn raise_this_thread() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) };
    for priority in PRIORITIES {
        let parameters = libc::sched_param { sched_priority: priority };
        // SAFETY: the kernel reads the parameters; 0 is the calling thread.
        let answer =
            unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        if answer == 0 {
            return Ok(());
        }
    }
    Err(io::Error::last_os_error())
}

/// Keeps this process's memory from being paged out, what it will use included. Returns whether
/// the machine permits it without a limit: under one, later allocations would fail instead.
pub(crate) fn lock_memory() -> bool {
    let unlimited =
        getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    let entitled = !in_user_namespace() && capabilities().is_ok_and(|all| all & CAP_IPC_LOCK != 0);
    // On fault: pages that are never touched, as those of large stacks, cost nothing.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let flags = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault;
    (unlimited || entitled) && mlockall(flags).is_ok()
}
