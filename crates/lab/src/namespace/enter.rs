//! Starting programs on a host.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
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

use crate::error::{Doing, Result};

/// Names the lab that a process runs in, so that what a killed lab left behind is found again.
pub(crate) const LAB_ID: &str = "LONGWIRE_LAB_ID";

/// Largest file that a program of an experiment may write, its log among them.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What a program needs to run on a host: its network, and files that say where a and b are.
pub(crate) struct Entrance {
    /// The user namespace that owns the network, when the caller is outside of it.
    pub(crate) user: Option<OwnedFd>,
    pub(crate) network: OwnedFd,
    hosts: String,
}

impl Entrance {
    /// To a network where `a` and `b` have these addresses.
    pub(crate) fn new(user: Option<OwnedFd>, network: OwnedFd, a: Ipv4Addr, b: Ipv4Addr) -> Self {
        Self { user, network, hosts: format!("127.0.0.1 localhost\n{a} a\n{b} b\n") }
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
        put(c"/tmp/hosts", self.hosts.as_bytes(), c"/etc/hosts")?;
        match put(c"/tmp/resolv.conf", b"", c"/etc/resolv.conf") {
            // No name servers configured at all is as good.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
        umount2(PLACE, MntFlags::MNT_DETACH)
    }
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
pub fn enter(network: &Path, a: Ipv4Addr, b: Ipv4Addr) -> Result<()> {
    let doing = || format!("enter {}", network.display());
    // Asked for first: whoever has started this may end meanwhile.
    set_pdeathsig(Signal::SIGKILL).doing(doing)?;
    setrlimit(Resource::RLIMIT_FSIZE, FILE_BYTES_MAX, FILE_BYTES_MAX).doing(doing)?;
    let namespace = File::open(network).doing(doing)?;
    Entrance::new(None, namespace.into(), a, b).enter().doing(doing)
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
