//! A directory that is gone when its owner is.

use std::fs::{DirBuilder, remove_dir_all};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory for this process alone, removed with what it holds when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("longwire-demo-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self(path)),
            // A killed process of the same number left it. Others cannot have put a link there:
            // what is removed is the entry itself, and creating it anew must then succeed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove_dir_all(&path)?;
                DirBuilder::new().mode(0o700).create(&path)?;
                Ok(Self(path))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Only a directory in the place for temporary files would remain.
        let _ = remove_dir_all(&self.0);
    }
}
