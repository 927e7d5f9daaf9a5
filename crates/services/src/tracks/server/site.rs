//! What all connections of a server share.

use crate::server::Settings;
use crate::tracks::Catalogue;

/// The files and how to serve them.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) catalogue: Catalogue,
    pub(super) settings: Settings,
}

impl Site {
    pub(super) fn new(seed: u64, settings: Settings) -> Self {
        Self { catalogue: Catalogue::new(seed), settings }
    }
}
