//! The directory of a user's labs.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde_json::{Value, json};

use crate::error::{Doing, Error, Result};
use crate::lab::{check_name, namespace_name};
use crate::namespace::{LAB_ID, Namespace, Side, processes};

/// Longest lock file that is read.
const MAX_LOCK_BYTES: u64 = 4096;
/// A lock file may be removed between opening and locking it; more often than this is a fault.
const LOCK_ATTEMPTS: usize = 16;

/// Where a user's labs are found.
pub(super) struct Directory {
    path: PathBuf,
    /// Whether this user's hosts have names for `ip netns`.
    has_names: bool,
}

/// A lab's lock; what it stands for is removed with [`Directory::remove`].
pub(super) struct Lock {
    file: Flock<File>,
    name: String,
}

impl Directory {
    /// The calling user's: /run/longwire for root, else under XDG_RUNTIME_DIR or /tmp. To be called
    /// before the process enters a user namespace, where everybody is root.
    pub(super) fn open() -> Result<Self> {
        let user = geteuid();
        let path = match std::env::var_os("XDG_RUNTIME_DIR") {
            _ if user.is_root() => PathBuf::from("/run/longwire"),
            Some(runtime) if Path::new(&runtime).is_absolute() => {
                Path::new(&runtime).join("longwire")
            }
            _ => PathBuf::from(format!("/tmp/longwire-{user}")),
        };
        Self::at(path, user.is_root())
    }

    fn at(path: PathBuf, has_names: bool) -> Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(error).doing(|| format!("create {}", path.display()))
            }
            _ => Ok(()),
        }?;
        let metadata =
            fs::symlink_metadata(&path).doing(|| format!("look at {}", path.display()))?;
        let is_ours = metadata.is_dir() && metadata.uid() == geteuid().as_raw();
        if !is_ours || metadata.mode() & 0o077 != 0 {
            return Err(Error::Machine {
                lack: format!("{} is not a private directory of this user", path.display()),
                remedy: "remove it, or make it yours with mode 0700",
            });
        }
        Ok(Self { path, has_names })
    }

    /// Where a lab listens for commands.
    pub(super) fn socket(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.sock"))
    }

    fn lock_file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.lock"))
    }

    /// The names of all labs that are up, or were when they were killed.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.path).doing(|| format!("list {}", self.path.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name().into_string().ok()?;
                let name = name.strip_suffix(".lock")?;
                check_name(name).is_ok().then(|| name.to_string())
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// Keeps other processes from taking locks until dropped: who looks whether a lock is held
    /// takes it for a moment, which must not look like a lab to somebody else.
    pub(super) fn guard(&self) -> Result<Flock<File>> {
        let doing = || format!("lock {}", self.path.display());
        let directory = File::open(&self.path).doing(doing)?;
        Flock::lock(directory, FlockArg::LockExclusive).map_err(|(_, error)| error).doing(doing)
    }

    /// Whether a process has a lab's lock: it is up, coming up or going down.
    pub(super) fn is_held(&self, name: &str) -> Result<bool> {
        let _guard = self.guard()?;
        let Ok(file) = File::open(self.lock_file(name)) else { return Ok(false) };
        Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err())
    }

    /// Whether a lab's process was killed. To be called under the guard.
    pub(super) fn is_abandoned(&self, name: &str) -> bool {
        let Ok(file) = File::open(self.lock_file(name)) else { return false };
        // A lock without a file is of a lab that has just ended.
        Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .is_ok_and(|lock| lock.metadata().is_ok_and(|found| found.nlink() > 0))
    }

    /// Takes a lab's lock; `None` when another process holds it. To be called under the guard.
    pub(super) fn lock(&self, name: &str) -> Result<Option<Lock>> {
        let path = self.lock_file(name);
        let doing = || format!("lock {}", path.display());
        for _ in 0..LOCK_ATTEMPTS {
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).truncate(false);
            let file = file.open(&path).doing(doing)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((_, nix::Error::EWOULDBLOCK)) => return Ok(None),
                Err((_, error)) => return Err(error).doing(doing),
            };
            // Its last holder may have removed the file before we had the lock.
            let held = file.metadata().doing(doing)?;
            if fs::metadata(&path).is_ok_and(|found| found.ino() == held.ino()) {
                return Ok(Some(Lock { file, name: name.to_string() }));
            }
        }
        Err(Error::System {
            doing: doing(),
            source: io::Error::other("it keeps being removed meanwhile"),
        })
    }

    /// Removes what killed labs have left: names, processes, files. Returns their names. To be
    /// called under the guard.
    pub(super) fn sweep(&self) -> Result<Vec<String>> {
        let mut removed = Vec::new();
        for name in self.names()? {
            if let Some(lock) = self.lock(&name)? {
                self.remove(lock)?;
                removed.push(name);
            }
        }
        Ok(removed)
    }

    /// Removes a lab's remains: processes and names. Returns how many processes it ended.
    pub(super) fn clear(&self, lock: &mut Lock) -> Result<usize> {
        let mut ended = 0;
        for side in Side::BOTH.into_iter().filter(|_| self.has_names) {
            // Dropped after its processes have ended: the name goes, and the namespace with it.
            if let Some(namespace) = Namespace::find(&namespace_name(&lock.name, side))? {
                ended += processes::end_in(&[namespace.identity()?].into());
            }
        }
        if let Some(id) = lock.read()?["id"].as_str() {
            ended += processes::end_marked(LAB_ID, id);
        }
        Ok(ended)
    }

    /// Removes a lab's remains and then its files. Returns how many processes it ended.
    pub(super) fn remove(&self, mut lock: Lock) -> Result<usize> {
        let ended = self.clear(&mut lock)?;
        for path in [self.socket(&lock.name), self.lock_file(&lock.name)] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(error).doing(|| format!("remove {}", path.display()))
                }
                _ => Ok(()),
            }?;
        }
        Ok(ended)
    }
}

impl Lock {
    /// Notes what a successor needs to clean up after us.
    pub(super) fn write(&mut self, id: &str) -> Result<()> {
        let content = json!({"name": self.name, "pid": std::process::id(), "id": id});
        let write = |file: &mut File| -> io::Result<()> {
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(format!("{content}\n").as_bytes())
        };
        write(&mut self.file).doing(|| format!("write the lock of lab {}", self.name))
    }

    /// What its last holder has noted; null when that was cut short.
    fn read(&mut self) -> Result<Value> {
        let doing = || format!("read the lock of lab {}", self.name);
        let mut content = Vec::new();
        self.file.rewind().doing(doing)?;
        Read::by_ref(&mut *self.file)
            .take(MAX_LOCK_BYTES)
            .read_to_end(&mut content)
            .doing(doing)?;
        Ok(serde_json::from_slice(&content).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> Directory {
        let path =
            std::env::temp_dir().join(format!("longwire-test-{}-{name}", std::process::id()));
        // From an earlier run with the same process id.
        let _ = fs::remove_dir_all(&path);
        Directory::at(path, false).unwrap()
    }

    #[test]
    fn a_lock_is_held_once_and_swept_when_its_holder_is_gone() {
        let directory = directory("lock");
        let mut lock = directory.lock("x").unwrap().unwrap();
        lock.write("some-id").unwrap();
        assert!(directory.lock("x").unwrap().is_none(), "held");
        assert_eq!(directory.sweep().unwrap(), Vec::<String>::new(), "in use");
        assert!(directory.is_held("x").unwrap() && !directory.is_held("y").unwrap());
        assert!(!directory.is_abandoned("x") && !directory.is_abandoned("y"));
        fs::write(directory.socket("x"), "").unwrap();
        drop(lock);
        assert_eq!(directory.names().unwrap(), ["x"]);
        assert!(directory.is_abandoned("x"));
        assert_eq!(directory.sweep().unwrap(), ["x"]);
        assert_eq!(fs::read_dir(&directory.path).unwrap().count(), 0);
        fs::remove_dir(&directory.path).unwrap();
    }

    #[test]
    fn marked_processes_of_a_killed_lab_are_ended() {
        let directory = directory("marked");
        let id = format!("test-{}", std::process::id());
        let mut child =
            std::process::Command::new("sleep").arg("60").env(LAB_ID, &id).spawn().unwrap();
        let mut lock = directory.lock("x").unwrap().unwrap();
        lock.write(&id).unwrap();
        assert_eq!(directory.remove(lock).unwrap(), 1);
        assert!(!child.wait().unwrap().success());
        fs::remove_dir(&directory.path).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let directory = directory("open");
        fs::set_permissions(&directory.path, Permissions::from_mode(0o755)).unwrap();
        let message = Directory::at(directory.path.clone(), false).err().unwrap().to_string();
        assert!(message.contains("not a private directory"), "{message}");
        fs::remove_dir(&directory.path).unwrap();
    }
}
