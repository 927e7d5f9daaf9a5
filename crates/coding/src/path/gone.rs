//! What is known of paths to peers that are not connected.

use std::collections::VecDeque;

use decide::estimate::Estimate;

/// Most peers whose path's estimate is kept while they are gone.
const MAX_PATHS: usize = 64;

/// Estimates by the name of the peer and the kind of carrier, the longest gone first.
#[derive(Debug, Default)]
pub(crate) struct Gone(VecDeque<(String, &'static str, Estimate)>);

impl Gone {
    /// Takes out what is known of the path to a peer that connects again.
    pub(crate) fn take(&mut self, peer: &str, kind: &str) -> Option<Estimate> {
        let at = self.0.iter().position(|(name, of, _)| name == peer && *of == kind)?;
        self.0.remove(at).map(|(.., estimate)| estimate)
    }

    /// Keeps what is known of the path to a peer that has gone; beyond [`MAX_PATHS`] the longest
    /// gone is forgotten.
    pub(crate) fn keep(&mut self, peer: String, kind: &'static str, estimate: Estimate) {
        self.0.retain(|(name, of, _)| *name != peer || *of != kind);
        if self.0.len() >= MAX_PATHS {
            self.0.pop_front();
        }
        self.0.push_back((peer, kind, estimate));
    }
}
