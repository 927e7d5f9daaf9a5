//! Results of a campaign for those who read only some of them.

use std::path::Path;
use std::time::SystemTime;

use record::campaign::Cell;
use record::figures::{CellFigures, Overview};

use super::store::{FILE_NAME, Store};
use crate::error::Result;

/// Stored results, open.
pub struct Results {
    store: Store,
}

impl Results {
    /// Opens those of a directory, finished or not.
    ///
    /// # Errors
    /// [`Error::Caller`](crate::Error::Caller) when there are none, or of another version.
    pub fn open(directory: &Path) -> Result<Self> {
        Ok(Self { store: Store::open_existing(directory)? })
    }

    /// What the campaign is and how far.
    ///
    /// # Errors
    /// [`Error::Caller`](crate::Error::Caller) for a file that is damaged or has not begun.
    pub fn overview(&self) -> Result<Overview> {
        self.store.overview()
    }

    /// All cells in the order of the plan, each with the figures of its runs.
    ///
    /// # Errors
    /// As [`Results::overview`].
    pub fn figures(&self) -> Result<Vec<CellFigures>> {
        self.store.figures()
    }

    /// The cell at a place of the plan, with its exchanges and packets; decisions are left out.
    ///
    /// # Errors
    /// As [`Results::overview`].
    pub fn cell(&self, place: usize) -> Result<Option<Cell>> {
        self.store.cell(place)
    }
}

/// When the results of a directory were last written; none where there are none. A campaign under
/// way writes beside the file first.
#[must_use]
pub fn has_results(directory: &Path) -> Option<SystemTime> {
    let written = |name: &str| directory.join(name).metadata().and_then(|of| of.modified()).ok();
    let newest = written(&format!("{FILE_NAME}-wal"));
    written(FILE_NAME).map(|file| newest.map_or(file, |aside| file.max(aside)))
}
