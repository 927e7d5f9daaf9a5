//! Campaigns that were read last, in memory until their files change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use record::figures::{CellFigures, Overview};

/// Most campaigns whose figures are kept.
const MAX_KEPT: usize = 8;

/// A campaign with the figures of all its runs.
pub(crate) struct Figures {
    pub(crate) overview: Overview,
    pub(crate) cells: Vec<CellFigures>,
}

/// What was read last, until its file changes.
#[derive(Default)]
pub(crate) struct Kept(Mutex<BTreeMap<String, (SystemTime, Arc<Figures>)>>);

impl Kept {
    pub(crate) fn find(&self, name: &str, written: SystemTime) -> Option<Arc<Figures>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(name).filter(|(at, _)| *at == written).map(|(_, figures)| Arc::clone(figures))
    }

    pub(crate) fn put(&self, name: String, written: SystemTime, figures: &Arc<Figures>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT && !kept.contains_key(&name) {
            kept.pop_first();
        }
        kept.insert(name, (written, Arc::clone(figures)));
    }
}
