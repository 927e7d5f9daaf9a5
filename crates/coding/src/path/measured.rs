//! What is believed of a path, by the counters of its transport and by receipts.

use decide::estimate::{self, Estimate, Transport};
use decide::network;

use super::arriving::Arriving;

/// Messages that arrived and wait for the counters; a peer tells of no more in one packet.
const MAX_TOOK: usize = 32;

/// A message that arrived, until the transport's next counters say whether some of it was sent
/// again:
/// what waited for that came all at once, which is no rate of any link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) bytes: f64,
    pub(crate) seconds: f64,
    /// It was at hand.
    pub(crate) at_once: bool,
    pub(crate) train: estimate::Receipt,
    pub(crate) path: network::Path,
    /// The transport's counters before it.
    pub(crate) before: Transport,
}

impl Took {
    /// Windows that it took, as the counters behind it tell.
    fn windows(&self, now: &Transport) -> f64 {
        let segment_bytes = now.segment_bytes_since(&self.before).min(self.path.segment_bytes);
        network::Path { segment_bytes: segment_bytes.max(1.0), ..self.path }.windows(self.bytes)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) estimate: Estimate,
    /// What messages that came show.
    pub(crate) arriving: Arriving,
    /// [`Estimate::jumps`] that the policy has heard of.
    jumps: u32,
    /// The transport's last counters; none where it never told.
    pub(crate) counters: Option<Transport>,
    /// What the next counters decide about.
    took: Vec<Took>,
}

impl Measured {
    pub(crate) fn new(estimate: Estimate) -> Self {
        Self {
            jumps: estimate.jumps(),
            estimate,
            arriving: Arriving::default(),
            counters: None,
            took: Vec::new(),
        }
    }

    /// The transport's counters.
    pub(crate) fn transport(&mut self, transport: Transport) {
        self.counters = Some(transport);
        self.estimate.transport(transport);
        for took in self.took.drain(..) {
            let whole = took.before.retransmitted == transport.retransmitted;
            let (windows, train) = (took.windows(&transport), took.train);
            let unbroken = train.unbroken && whole;
            let reported = self.estimate.receipt(&estimate::Receipt { unbroken, windows, ..train });
            let at_once = took.at_once && windows <= 1.0;
            self.estimate.took(took.bytes, took.seconds, at_once && whole && !reported);
        }
    }

    /// A message arrived, of which the next counters will tell; whether it is the first of them.
    pub(crate) fn took(&mut self, took: Took) -> bool {
        let is_first = self.took.is_empty();
        if self.took.len() < MAX_TOOK {
            self.took.push(took);
        }
        is_first
    }

    /// Whether the path turned out to be another since this was asked last.
    pub(crate) fn has_jumped(&mut self) -> bool {
        let jumps = self.estimate.jumps();
        std::mem::replace(&mut self.jumps, jumps) != jumps
    }
}
