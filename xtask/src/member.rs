//! The members of the workspace.

use crate::manifest::Manifest;

/// A member of the workspace.
pub(crate) struct Crate {
    /// The folder's name, which is the short name in the table and in code.
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) manifest: Manifest,
}

impl Crate {
    /// `fuzz/` is a workspace of its own, as its tool wants it, and what is in `interop/` are
    /// peers: no members.
    pub(crate) fn new(manifest: Manifest) -> Option<Self> {
        let folder = manifest.path.strip_suffix("/Cargo.toml")?.to_owned();
        let name = folder.rsplit('/').next()?.to_owned();
        (name != "fuzz" && !folder.starts_with("interop/")).then_some(Self {
            name,
            folder,
            manifest,
        })
    }
}
