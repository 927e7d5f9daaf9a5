//! What links are and have done.

use std::collections::BTreeMap;

use link::{ChannelConfig, DropReason};
use record::result::{Lateness, Traffic};

use crate::ferry::{LaneReport, LatenessHistogram};

/// What a link is and has done.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// As given.
    pub name: String,
    /// As given.
    pub seed: u64,
    /// From a to b.
    pub ab: DirectionReport,
    /// From b to a.
    pub ba: DirectionReport,
}

/// What one direction of a link is and has carried.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// What is in force.
    pub config: ChannelConfig,
    /// What was carried. `dropped` also knows `intake`, packets that the ferry did not fetch in
    /// time (not part of `packets_in`), and `refused`, packets that the receiver's interface did
    /// not take: both are zero, so left out, unless the machine is overloaded or a host broken.
    pub traffic: Traffic,
    /// How truly.
    pub lateness: Lateness,
    /// Packets that arrived a second time.
    pub duplicated: u64,
    /// Packets in which a bit was flipped.
    pub corrupted: u64,
    /// Packets that skipped the delay.
    pub reordered: u64,
    /// Bytes waiting now.
    pub queued_bytes: u64,
    /// Frames that carry something else than IP; they never get onto the link.
    pub ignored: u64,
    /// The kernel's reports of the groups of its own IPv6 addresses; nor do these.
    pub own_reports: u64,
}

impl DirectionReport {
    pub(super) fn new(config: ChannelConfig, lane: &LaneReport, lost_on_intake: u64) -> Self {
        let LaneReport { stats, figures } = lane;
        let drops = DropReason::ALL.map(|reason| (reason.name(), stats.dropped(reason).packets));
        let own = [("intake", lost_on_intake), ("refused", figures.refused)];
        let dropped: BTreeMap<String, u64> = drops
            .into_iter()
            .chain(own)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.to_string(), count))
            .collect();
        Self {
            config,
            traffic: Traffic {
                packets_in: stats.offered.packets,
                bytes_in: stats.offered.bytes,
                packets_out: figures.written.packets,
                bytes_out: figures.written.bytes,
                dropped,
                queue_peak_bytes: stats.queue_peak.bytes,
            },
            lateness: lateness(&figures.lateness),
            duplicated: stats.duplicated.packets,
            corrupted: stats.corrupted,
            reordered: stats.reordered,
            queued_bytes: stats.queued.bytes,
            ignored: figures.ignored,
            own_reports: figures.own_reports,
        }
    }
}

/// As results have it.
pub(crate) fn lateness(histogram: &LatenessHistogram) -> Lateness {
    let bins = histogram.iter_recorded();
    Lateness {
        count: histogram.len(),
        p50_us: histogram.value_at_quantile(0.5),
        p99_us: histogram.value_at_quantile(0.99),
        p999_us: histogram.value_at_quantile(0.999),
        max_us: histogram.max(),
        bins: bins.map(|bin| (bin.value_iterated_to(), u64::from(bin.count_at_value()))).collect(),
    }
}
