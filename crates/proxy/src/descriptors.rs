//! File descriptors: as many as the system lets this process have, and some that clients cannot
//! take, so that an edge can always dial its gateway and a gateway always let an edge in.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::OnceLock;
use std::time::Instant;

use crate::metrics::Metrics;
use crate::rarely::Rarely;
use crate::run;

/// Descriptors that clients leave to carriers, the store, the log and the admin page.
const RESERVED: u64 = 64;
/// Where there are few in all, no more than this share of them.
const RESERVED_SHARE: u64 = 4;
/// A client's connection has two (the second resets it), and its request one to an origin.
const PER_CLIENT: u64 = 3;
/// How metrics call it.
const LIMIT: &str = "descriptors";

/// Raises the bound on descriptors to what the system permits; gives what it is then.
pub(crate) fn raise() -> io::Result<u64> {
    let mut limits = limits()?;
    if limits.rlim_cur < limits.rlim_max {
        limits.rlim_cur = limits.rlim_max;
        // SAFETY: the pointer is to an rlimit of ours that outlives the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limits.rlim_cur)
}

fn limits() -> io::Result<libc::rlimit> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to an rlimit of ours that outlives the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) } {
        0 => Ok(limits),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Raises the bound, and says so where `connections` clients at once do not fit.
pub(crate) fn prepare(name: &str, connections: usize) {
    let limit = match raise() {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the bound on open files");
            return;
        }
    };
    let wanted = (connections as u64).saturating_mul(PER_CLIENT).saturating_add(reserved(limit));
    if wanted > limit {
        tracing::warn!(
            limit,
            wanted,
            "{name} = {connections} does not fit the bound on open files: later clients wait; \
             raise it (ulimit -Hn, LimitNOFILE=) or lower {name}"
        );
    }
}

/// How many clients leave to others.
fn reserved(limit: u64) -> u64 {
    RESERVED.min(limit / RESERVED_SHARE)
}

/// Whether a client may have descriptors: the lowest free one is no reserved one. `any` is one that
/// is open.
pub(crate) fn has_room(any: &impl AsFd) -> bool {
    let Ok(limits) = limits() else { return true };
    let limit = limits.rlim_cur;
    // Numbers are given out from the lowest.
    let Ok(next) = any.as_fd().try_clone_to_owned() else { return false };
    let next = u64::try_from(next.as_raw_fd()).unwrap_or(u64::MAX);
    next.saturating_add(PER_CLIENT) <= limit.saturating_sub(reserved(limit))
}

/// Waits until a client may have descriptors; `drop_one` gives some back. That clients wait is told
/// now and then, and counted.
pub(crate) async fn wait_for_room(any: &impl AsFd, metrics: &Metrics, drop_one: impl Fn()) {
    static REPORTED: OnceLock<Rarely> = OnceLock::new();
    let mut waited = false;
    while !has_room(any) {
        drop_one();
        if !waited {
            waited = true;
            metrics.count_limit(LIMIT);
            if let Some(times) = REPORTED.get_or_init(Rarely::default).note(Instant::now()) {
                let what = "clients wait: nearly all file descriptors are in use, and those that \
                            are left are for carriers";
                tracing::warn!(times, "{what}");
            }
        }
        // sleep: the system tells nobody when a descriptor comes free.
        tokio::time::sleep(run::ACCEPT_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_reserved_and_never_most() {
        for (limit, kept) in [(1024, 64), (1 << 20, 64), (64, 16), (0, 0)] {
            assert_eq!(reserved(limit), kept);
        }
    }

    #[test]
    fn the_bound_is_raised_to_what_is_permitted() {
        let limit = raise().unwrap();
        let limits = limits().unwrap();
        assert_eq!((limit, limits.rlim_cur), (limits.rlim_max, limits.rlim_max));
        assert!(has_room(&io::stdin()));
    }
}
