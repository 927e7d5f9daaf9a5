//! The right to make namespaces: root's, or a user namespace of one's own.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::{Doing, Error, Result};

/// Where a process has its right to make namespaces from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Root of the machine, or of the container that it runs in.
    Root,
    /// Root only inside a user namespace that the process made for itself.
    UserNamespace,
}

/// Capabilities by their bits (capabilities(7)).
const CAP_NET_ADMIN: u64 = 1 << 12;
pub(crate) const CAP_IPC_LOCK: u64 = 1 << 14;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// Makes sure that this process may make network namespaces. Unless it may already and `rootless`
/// is not asked for, it moves into a user namespace of its own, where it is root.
///
/// To be called before the process starts a thread: the kernel lets only a process with one thread
/// into a user namespace.
///
/// # Errors
/// [`Error::Caller`] when threads run, [`Error::Machine`] when user namespaces are not permitted.
pub fn acquire(rootless: bool) -> Result<Privilege> {
    if !rootless
        && capabilities()? & (CAP_NET_ADMIN | CAP_SYS_ADMIN) == CAP_NET_ADMIN | CAP_SYS_ADMIN
    {
        return Ok(Privilege::Root);
    }
    let threads = fs::read_dir("/proc/self/task")
        .doing(|| "count this process's threads".to_string())?
        .count();
    if threads != 1 {
        return Err(Error::Caller(format!(
            "{threads} threads run; a process makes a user namespace before it starts threads"
        )));
    }
    let (user, group) = (geteuid(), getegid());
    let refused = |error: io::Error| Error::Machine {
        lack: format!("user namespaces are not permitted here ({error})"),
        remedy: "run as root, or allow them (sysctl user.max_user_namespaces, \
                 kernel.apparmor_restrict_unprivileged_userns)",
    };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| refused(error.into()))?;
    let write = |path: &str, text: String| fs::write(path, text).map_err(refused);
    write("/proc/self/setgroups", "deny".to_string())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// Whether this process lives in a user namespace below the machine's own.
#[must_use]
pub fn in_user_namespace() -> bool {
    // The machine's own maps every user to itself (user_namespaces(7)).
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

/// The capabilities in force, as bits.
pub(crate) fn capabilities() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")
        .doing(|| "read this process's capabilities".to_string())?;
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    Ok(bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0))
}
