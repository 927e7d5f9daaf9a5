//! What is believed of each path, for events and metrics.

use decide::estimate::{Estimate, Figure};
use record::decision as facts;

use super::ids::PathId;
use super::path::Path;
use super::reported::rounded;

/// What is believed of a path that this side sends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The path.
    pub path: PathId,
    /// Name of its peer.
    pub peer: String,
    /// The figures, each with what stands behind it.
    pub figures: facts::Link,
    /// How often the path to the peer turned out to be another than before.
    pub jumps: u32,
}

/// What is believed of a path.
pub(crate) fn link(path: &Path) -> Link {
    Link {
        path: path.id,
        peer: path.peer.clone(),
        figures: figures(path.estimate()),
        jumps: path.estimate().jumps(),
    }
}

/// The figures of a path as they are told.
#[must_use]
pub fn figures(estimate: &Estimate) -> facts::Link {
    let figure = |figure: Figure| facts::Figure {
        value: rounded(figure.value),
        weight: rounded(figure.weight),
    };
    facts::Link {
        rate_bps: figure(estimate.rate_bps()),
        rtt_s: figure(estimate.rtt_s()),
        loss: figure(estimate.loss()),
        queueing_s: rounded(estimate.queueing_s()),
        window_packets: rounded(estimate.path().start_window),
    }
}
