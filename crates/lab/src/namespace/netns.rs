//! A network namespace and what is done inside it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Doing, Error, Result};

/// Where `ip netns` looks for names.
const NAMES: &str = "/run/netns";

/// A network namespace, held open: it lives as long as this value, its name or a process inside.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    /// Under /run/netns, removed with this value.
    name: Option<String>,
}

impl Namespace {
    /// Moves the calling thread into a new, empty network namespace and returns that.
    pub(crate) fn enter_new() -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET).doing(|| "make a network namespace".to_string())?;
        Self::current()
    }

    /// The calling thread's network namespace.
    pub(crate) fn current() -> Result<Self> {
        let file = File::open("/proc/thread-self/ns/net")
            .doing(|| "open this thread's network namespace".to_string())?;
        Ok(Self { file, name: None })
    }

    /// Gives the namespace a name that `ip netns` knows too.
    pub(crate) fn publish(&mut self, name: &str) -> Result<()> {
        prepare_names()?;
        let path = path_of(name);
        File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .doing(|| format!("create {}", path.display()))?;
        let source = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let none = None::<&str>;
        let mounted = mount(Some(source.as_str()), &path, none, MsFlags::MS_BIND, none)
            .doing(|| format!("bind a namespace to {}", path.display()));
        if mounted.is_err() {
            // The mount's failure is what matters.
            let _ = fs::remove_file(&path);
        }
        mounted?;
        self.name = Some(name.to_string());
        Ok(())
    }

    /// Opens a namespace by its name under /run/netns; `None` when there is none.
    pub(crate) fn find(name: &str) -> Result<Option<Self>> {
        match File::open(path_of(name)) {
            Ok(file) => Ok(Some(Self { file, name: Some(name.to_string()) })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::System { doing: format!("open namespace {name}"), source }),
        }
    }

    /// Moves the calling thread into the namespace.
    pub(crate) fn enter(&self) -> Result<()> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .doing(|| "enter a network namespace".to_string())
    }

    /// Tells namespaces apart.
    pub(crate) fn identity(&self) -> Result<(u64, u64)> {
        let metadata = self.file.metadata().doing(|| "look at a namespace".to_string())?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// Its name for `ip netns`, when it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// A path by which other processes of the same user reach the namespace (`nsenter --net=…`).
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => path_of(name),
            None => format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into(),
        }
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Namespace {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let path = path_of(name);
            for result in [
                umount2(&path, MntFlags::MNT_DETACH).map_err(io::Error::from),
                fs::remove_file(&path),
            ] {
                if let Err(error) = result {
                    tracing::warn!(path = %path.display(), %error, "a namespace's name remains");
                }
            }
        }
    }
}

/// Runs `work` on a thread of its own inside a namespace: the sockets that it opens belong there,
/// also when they are used from elsewhere later. A panic of `work` goes on in the caller.
///
/// # Errors
/// When the namespace cannot be entered.
pub fn within<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> Result<T> {
    on_fresh_thread(|| {
        namespace.enter()?;
        Ok(work())
    })
}

/// Runs `work` on a thread of its own, which may end in any namespace.
pub(crate) fn on_fresh_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Makes /run/netns as `ip netns` does: a mount whose changes other mount namespaces see, so that a
/// name removed here is removed everywhere.
fn prepare_names() -> Result<()> {
    fs::create_dir_all(NAMES).doing(|| format!("create {NAMES}"))?;
    let none = None::<&str>;
    let share = || mount(none, NAMES, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    if share().is_ok() {
        return Ok(());
    }
    // Not a mount yet.
    mount(Some(NAMES), NAMES, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
        .and_then(|()| share())
        .doing(|| format!("make {NAMES} a shared mount"))
}
