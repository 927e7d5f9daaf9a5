//! What is believed of each carrier's path, for events and metrics.

use decide::estimate::{Estimate, Figure};
use record::decision as facts;

use crate::Relay;
use crate::api::CarrierId;
use crate::choice::rounded;

/// What is believed of the path that this side sends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The carrier.
    pub carrier: CarrierId,
    /// Name of its peer.
    pub peer: String,
    /// The figures, each with what stands behind it.
    pub figures: facts::Link,
    /// How often the path to the peer turned out to be another than before.
    pub jumps: u32,
}

impl Relay {
    /// What is believed of the paths of all carriers that are connected.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        let link = |(id, carrier): (&CarrierId, &crate::carrier::Carrier)| Link {
            carrier: *id,
            peer: carrier.peer.clone(),
            figures: figures(&carrier.estimate),
            jumps: carrier.estimate.jumps(),
        };
        self.carriers.iter().map(link).collect()
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
