//! Keys of peers for tests.

use std::path::{Path, PathBuf};

use longwire_proxy::keys::{self, Generated};

/// A directory of keys that goes with the test.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-keys-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }

    /// A pair of keys under a name.
    pub(crate) fn key(&self, name: &str) -> Generated {
        keys::generate(&self.0.join(name), name, None).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Settings of a side that has a key and knows the peers of a file.
pub(crate) fn with(key: &Generated, peer: &Path) -> String {
    format!("key = '{}'\npeer = '{}'\n", key.private.display(), peer.display())
}
