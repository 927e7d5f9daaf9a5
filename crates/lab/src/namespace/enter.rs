//! Starting programs on a host.

use std::ffi::{CStr, OsStr};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::write;

use super::address::Reach;
use crate::error::{Doing, Result};

/// Names the lab that a process runs in, so that what a killed lab left behind is found again.
pub(crate) const LAB_ID: &str = "LONGWIRE_LAB_ID";

/// Largest file that a program of an experiment may write, its log among them.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Longest text of names: the files put over those of the system have 64 KiB together.
const MAX_NAMES_BYTES: u64 = 48 * 1024;

/// Addresses of IPv4 before those of IPv6 (gai.conf(5)): most services listen for IPv4 only, and
/// over a slow link a client that tries IPv6 first waits a round trip to learn it.
const ADDRESS_ORDER: &[u8] = b"precedence ::ffff:0:0/96 100\n";

/// What a program needs to run on a host: its network, and files that say where a and b are.
pub(crate) struct Entrance {
    /// The user namespace that owns the network, when the caller is outside of it.
    pub(crate) user: Option<OwnedFd>,
    pub(crate) network: OwnedFd,
    /// Where the order of addresses can be told, and where it cannot.
    hosts: [String; 2],
}

impl Entrance {
    /// To a network where `a` and `b` have these addresses.
    pub(crate) fn new(user: Option<OwnedFd>, network: OwnedFd, a: Reach, b: Reach) -> Self {
        Self { user, network, hosts: [true, false].map(|is_ordered| hosts_file(a, b, is_ordered)) }
    }

    /// To a network where names have the addresses that a text in the form of /etc/hosts says.
    pub(crate) fn with_names(network: OwnedFd, names: &str) -> Self {
        Self { user: None, network, hosts: [names.to_owned(), names.to_owned()] }
    }

    /// A program that will run on the host. There the names `a` and `b` resolve, and no other name
    /// is looked up over a network.
    #[must_use]
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        // SAFETY: between fork and exec `enter` only makes system calls; it allocates nothing and
        // takes no lock.
        unsafe { command.pre_exec(move || self.enter()) };
        command
    }

    /// Moves the calling thread to the host. A user namespace is entered only by a process with
    /// one thread, and the files are put only where no other thread shares the file system.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if let Some(user) = &self.user {
            setns(user, CloneFlags::CLONE_NEWUSER)?;
        }
        setns(&self.network, CloneFlags::CLONE_NEWNET)?;
        unshare(CloneFlags::CLONE_NEWNS)?;
        self.mount_files()?;
        Ok(())
    }

    /// Puts files of our own over /etc/hosts and /etc/resolv.conf, for this program and its
    /// children only. They live in a file system in memory which is gone with the last of them.
    fn mount_files(&self) -> nix::Result<()> {
        const NONE: Option<&CStr> = None;
        const PLACE: &CStr = c"/tmp";
        mount(NONE, c"/", NONE, MsFlags::MS_SLAVE | MsFlags::MS_REC, NONE)?;
        let tmpfs = Some(c"tmpfs");
        mount(tmpfs, PLACE, tmpfs, MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(c"size=64k"))?;
        let hosts = match put(c"/tmp/gai.conf", ADDRESS_ORDER, c"/etc/gai.conf") {
            Ok(()) => &self.hosts[0],
            // The system's library knows no such file, or it is left out: it cannot be told.
            Err(Errno::ENOENT) => &self.hosts[1],
            Err(error) => return Err(error),
        };
        put(c"/tmp/hosts", hosts.as_bytes(), c"/etc/hosts")?;
        match put(c"/tmp/resolv.conf", b"", c"/etc/resolv.conf") {
            // No name servers configured at all is as good.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
        umount2(PLACE, MntFlags::MNT_DETACH)
    }
}

/// The names of a lab's hosts. Where libraries cannot be told to take IPv4 first, a and b have but
/// their IPv4 addresses; a6 and b6 always have those of IPv6 alone.
fn hosts_file(a: Reach, b: Reach, is_ordered: bool) -> String {
    let mut file = format!("127.0.0.1 localhost\n{} a\n{} b\n", a.v4, b.v4);
    file += "::1 localhost ip6-localhost ip6-loopback\n";
    for (name, host) in [("a", a), ("b", b)] {
        let Some(v6) = host.v6 else { continue };
        let names = if is_ordered { format!("{name} {name}6") } else { format!("{name}6") };
        let _ = writeln!(file, "{v6} {names}");
    }
    file
}

fn put(source: &CStr, content: &[u8], target: &CStr) -> nix::Result<()> {
    const NONE: Option<&CStr> = None;
    let flags = OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP | Mode::S_IROTH;
    let file = open(source, flags, mode)?;
    if write(&file, content)? != content.len() {
        return Err(Errno::ENOSPC);
    }
    mount(Some(source), target, NONE, MsFlags::MS_BIND, NONE)
}

/// Moves this process to a host and leaves it there, ready to become a program: the second half of
/// `Host::launch`. `network` is the path of a namespace. To be called with one thread.
///
/// # Errors
/// [`Error::System`](crate::Error::System) when the namespace cannot be entered.
pub fn enter(network: &Path, a: Reach, b: Reach) -> Result<()> {
    enter_by(network, |namespace| Entrance::new(None, namespace, a, b))
}

/// As [`enter`], to a host of a net: the names that resolve there are those of a file in the form
/// of /etc/hosts.
///
/// # Errors
/// As [`enter`], and when the file cannot be read or is too long.
pub fn enter_net(network: &Path, names: &Path) -> Result<()> {
    let doing = || format!("read the names in {}", names.display());
    let mut text = String::new();
    let file = File::open(names).doing(doing)?;
    file.take(MAX_NAMES_BYTES).read_to_string(&mut text).doing(doing)?;
    enter_by(network, |namespace| Entrance::with_names(namespace, &text))
}

fn enter_by(network: &Path, entrance: impl FnOnce(OwnedFd) -> Entrance) -> Result<()> {
    let doing = || format!("enter {}", network.display());
    // Asked for first: whoever has started this may end meanwhile.
    set_pdeathsig(Signal::SIGKILL).doing(doing)?;
    setrlimit(Resource::RLIMIT_FSIZE, MAX_FILE_BYTES, MAX_FILE_BYTES).doing(doing)?;
    let namespace = File::open(network).doing(doing)?;
    entrance(namespace.into()).enter().doing(doing)
}

/// Another descriptor of the same namespace, closed in programs that are started.
pub(crate) fn duplicate(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    descriptor.as_fd().try_clone_to_owned()
}

impl std::fmt::Debug for Entrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entrance(network {})", self.network.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_resolve_for_both_versions_where_the_order_is_ours() {
        let reach = |text: &str| text.parse::<Reach>().unwrap();
        let (a, b) = (reach("10.66.0.1,fd6c::1"), reach("10.66.0.2,fd6c::2"));
        let ordered = hosts_file(a, b, true);
        assert!(ordered.contains("\n10.66.0.1 a\n10.66.0.2 b\n"), "{ordered}");
        assert!(ordered.ends_with("\nfd6c::1 a a6\nfd6c::2 b b6\n"), "{ordered}");
        assert!(ordered.contains("::1 localhost"), "{ordered}");
        let unordered = hosts_file(a, b, false);
        assert!(unordered.ends_with("\nfd6c::1 a6\nfd6c::2 b6\n"), "{unordered}");
        let without = hosts_file(reach("10.66.0.1"), reach("10.66.0.2"), true);
        assert!(!without.contains("fd6c"), "{without}");
    }
}
