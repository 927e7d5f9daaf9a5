//! Keys for tests.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Generated, Identity, Role, generate};

/// An edge and a gateway that know each other.
pub(crate) struct Pair {
    dir: PathBuf,
    pub(crate) edge: Arc<Identity>,
    pub(crate) gateway: Arc<Identity>,
}

impl Pair {
    /// With keys of their own; `name` is the test's.
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-keys-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let key = |name: &str| generate(&dir.join(name), name, None).unwrap();
        let (edge, gateway) = (key("edge"), key("gateway"));
        let load = |ours: &Generated, theirs: &Generated, other| {
            Arc::new(Identity::load(&ours.private, &theirs.public, other).unwrap())
        };
        let of_edge = load(&edge, &gateway, Role::Gateway);
        Self { dir, edge: of_edge, gateway: load(&gateway, &edge, Role::Edge) }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
