//! Results of a demonstration: the same fetches over several links, direct and through the pair.

use serde::{Deserialize, Serialize};

use crate::campaign::{MAX_LATENESS_US, MAX_WAIT_S, MAX_WAIT_SHARE};
use crate::machine::Machine;
use crate::result::{Exchange, Fetch, Lateness, Traffic};

/// How a client reaches its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Straight, without compression.
    Direct,
    /// Straight, the client offering `Accept-Encoding: gzip`.
    Gzip,
    /// Through an edge and a gateway.
    Longwire,
}

impl Mode {
    /// All, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Gzip, Self::Longwire];

    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Gzip => "gzip",
            Self::Longwire => "longwire",
        }
    }
}

/// A whole demonstration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Demo {
    /// Where and how it ran.
    pub setting: Setting,
    /// The links, in the order of the report.
    pub networks: Vec<Network>,
    /// What was fetched, per service in the order of the report.
    pub services: Vec<Service>,
    /// One per network, service and mode.
    pub cells: Vec<Cell>,
    /// The same with other losses, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Curve>,
    /// Messages beside others that fill a link, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgent: Option<Urgent>,
    /// Of all packets on all links.
    pub lateness: Lateness,
}

/// One service over one of the networks, by what its link loses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the network.
    pub network: String,
    /// Name of the service.
    pub service: String,
    /// By loss, beside what the network itself loses.
    pub points: Vec<CurvePoint>,
}

/// What messages take, one after another, while clients of another service fill the link; through
/// the pair they are as urgent as flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Urgent {
    /// Name of the network.
    pub network: String,
    /// Name of the service whose answers fill the link.
    pub bulk: String,
    /// How many clients ask it.
    pub bulk_clients: usize,
    /// One per mode that was measured; a cell's service is that of the messages.
    pub cells: Vec<Cell>,
}

/// A loss, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Share of packets lost in each direction, 0 to 1.
    pub loss: f64,
    /// One per mode that was measured.
    pub cells: Vec<Cell>,
}

/// Where and how a demonstration ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Version of longwire.
    pub version: String,
    /// Where, and the command that repeats it.
    pub machine: Machine,
    /// What joined the hosts to the ferry: `tap` or `veth`.
    pub device: String,
    /// The hosts lived in a user namespace, without root's rights.
    pub rootless: bool,
    /// The ferry had real-time priority.
    pub real_time: bool,
    /// The ferry's memory was locked.
    pub memory_locked: bool,
    /// Share of processor time that other guests of the machine took meanwhile, 0 to 1.
    pub stolen: Option<f64>,
    /// Decides every chance on the links.
    pub seed: u64,
    /// Start, in seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long the whole took.
    pub elapsed_s: f64,
    /// Longest that one cell's fetches might take.
    pub budget_s: f64,
    /// Time from one cell's start to the next one's.
    pub stagger_ms: u64,
    /// How edge and gateway spoke with each other, in words.
    pub carrier: String,
    /// What the pair encodes bodies with, as given to `--encoding`.
    pub encoding: String,
    /// The encoding that the bound counts with.
    pub bound_encoding: String,
    /// The user's own service, when that was fetched.
    pub url: Option<String>,
}

/// One emulated link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Name of the preset.
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// All settings, the queue limits among them.
    pub settings: Vec<(String, String)>,
    /// Rate towards the client in bit/s; none for no limit.
    pub rate_bps: Option<u64>,
    /// Delay in one direction, of the slower one.
    pub delay_s: f64,
    /// Share of packets lost towards the client, 0 to 1.
    pub loss: f64,
    /// Measured at once, without a first pass to warm up.
    pub cold: bool,
    /// Names of the things fetched, in order.
    pub items: Vec<String>,
}

/// One interface of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// `soap`, `rest-xml`, `rest-json` or `url`.
    pub name: String,
    /// Everything that is fetched from it on some network.
    pub items: Vec<Item>,
}

/// One thing that is fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// As in [`Exchange::name`].
    pub name: String,
    /// Content of the answer.
    pub body_bytes: u64,
    /// The same in the best encoding so far.
    pub encoded_body_bytes: u64,
    /// Content of the request in the best encoding so far; 0 when it has none.
    pub encoded_request_bytes: u64,
}

/// One network, service and mode, on a pair of hosts of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the network.
    pub network: String,
    /// Name of the service.
    pub service: String,
    /// The way to it.
    pub mode: Mode,
    /// Congestion control over the link as read back from the hosts a and b: with the pair, that
    /// of its carrier.
    pub congestion_control: [String; 2],
    /// What the client saw; none when it could not be started or did not end.
    pub fetch: Option<Fetch>,
    /// Why there is no result, in one line.
    pub failure: Option<String>,
    /// From client to service while fetching.
    pub up: Traffic,
    /// From service to client while fetching.
    pub down: Traffic,
    /// Of the packets in both directions.
    pub lateness: Lateness,
    /// The machine had spoilt it, so it was done once more; this is the better of both.
    #[serde(default)]
    pub repeated: bool,
}

/// What is known of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// So many seconds.
    Seconds(f64),
    /// More than so many seconds: it was cut off.
    MoreThan(f64),
    /// Nothing: what was timed failed.
    Never,
}

impl Time {
    /// The time of one exchange. One that never began because the budget was spent is censored at
    /// 0: of it nothing is known but that it takes time.
    #[must_use]
    pub fn of(exchange: &Exchange) -> Self {
        match (&exchange.error, exchange.censored) {
            (Some(_), _) => Self::Never,
            (None, true) => Self::MoreThan(exchange.elapsed_s),
            (None, false) => Self::Seconds(exchange.elapsed_s),
        }
    }

    /// The seconds that it took, or that it surely took.
    #[must_use]
    pub fn at_least_s(self) -> Option<f64> {
        match self {
            Self::Seconds(seconds) | Self::MoreThan(seconds) => Some(seconds),
            Self::Never => None,
        }
    }

    /// The median; see [`Time::percentile`].
    #[must_use]
    pub fn median(times: &[Self]) -> Option<Self> {
        Self::percentile(times, 50)
    }

    /// The time that so many of a hundred do not exceed, by the nearest-rank method, of every time:
    /// a failure counts as endless, one that was cut off by what is sure of it. The result is exact
    /// when no time that was cut off could have changed it. `None` for no times at all.
    #[must_use]
    pub fn percentile(times: &[Self], per_cent: usize) -> Option<Self> {
        let rank = (times.len() * per_cent).div_ceil(100).checked_sub(1)?;
        let rank = rank.min(times.len() - 1);
        let lower = |time: &Self| time.at_least_s().unwrap_or(f64::INFINITY);
        let upper = |time: &Self| match time {
            Self::Seconds(seconds) => *seconds,
            Self::MoreThan(_) | Self::Never => f64::INFINITY,
        };
        let at_rank = |mut bounds: Vec<f64>| {
            bounds.sort_by(f64::total_cmp);
            bounds[rank]
        };
        let least = at_rank(times.iter().map(lower).collect());
        let most = at_rank(times.iter().map(upper).collect());
        Some(match (least.is_finite(), least == most) {
            (false, _) => Self::Never,
            (true, true) => Self::Seconds(least),
            (true, false) => Self::MoreThan(least),
        })
    }
}

impl Time {
    /// The mean, of every time: at least so much where one was cut off, nothing where one failed.
    /// `None` for no times at all.
    #[must_use]
    pub fn mean(times: &[Self]) -> Option<Self> {
        let Some(known) = times.iter().map(|time| time.at_least_s()).collect::<Option<Vec<_>>>()
        else {
            return Some(Self::Never);
        };
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let is_exact = times.iter().all(|time| matches!(time, Self::Seconds(_)));
        let of = if is_exact { Self::Seconds } else { Self::MoreThan };
        (!known.is_empty()).then(|| of(mean))
    }
}

impl Cell {
    /// The measured exchanges; none when the cell failed.
    #[must_use]
    pub fn measured(&self) -> &[Exchange] {
        self.fetch.as_ref().map_or(&[], |fetch| &fetch.measured)
    }

    /// What its fetches took in all, in seconds.
    #[must_use]
    pub fn elapsed_s(&self) -> f64 {
        let all = self.fetch.iter().flat_map(|fetch| fetch.warm_up.iter().chain(&fetch.measured));
        all.map(|exchange| exchange.elapsed_s).sum()
    }

    /// Whether the machine did not keep up with it, by the measure of campaigns.
    #[must_use]
    pub fn is_spoilt(&self) -> bool {
        let limit_s = (MAX_WAIT_SHARE * self.elapsed_s()).max(MAX_WAIT_S);
        let waited_s = self.fetch.as_ref().and_then(|fetch| fetch.processor_wait_s);
        self.lateness.p99_us > MAX_LATENESS_US || waited_s.is_some_and(|waited| waited > limit_s)
    }

    /// Every measured time.
    #[must_use]
    pub fn times(&self) -> Vec<Time> {
        self.measured().iter().map(Time::of).collect()
    }

    /// The median of the measured times; see [`Time::median`].
    #[must_use]
    pub fn median(&self) -> Time {
        Time::median(&self.times()).unwrap_or(Time::Never)
    }

    /// The mean of the measured times; see [`Time::mean`].
    #[must_use]
    pub fn mean(&self) -> Time {
        Time::mean(&self.times()).unwrap_or(Time::Never)
    }

    /// The 95th percentile of the measured times; see [`Time::percentile`].
    #[must_use]
    pub fn p95(&self) -> Time {
        Time::percentile(&self.times(), 95).unwrap_or(Time::Never)
    }

    /// IP bytes in both directions per exchange that came to a good end, both passes counted;
    /// none without such an exchange. What was sent for others is part of the sum.
    #[must_use]
    pub fn wire_bytes_per_exchange(&self) -> Option<f64> {
        let fetch = self.fetch.as_ref()?;
        let passed = fetch.warm_up.iter().chain(&fetch.measured);
        let count = passed.filter(|exchange| exchange.succeeded()).count();
        let bytes = self.up.bytes_in + self.down.bytes_in;
        (count > 0).then(|| bytes as f64 / count as f64)
    }
}

impl Demo {
    /// The cell of a network, service and mode.
    #[must_use]
    pub fn cell(&self, network: &str, service: &str, mode: Mode) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.network.as_str(), cell.service.as_str(), cell.mode) == (network, service, mode)
        })
    }
}

impl Traffic {
    /// What came since `earlier`, a reading of the same direction. The greatest queue is that of
    /// the whole time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |reason: &str| earlier.dropped.get(reason).copied().unwrap_or(0);
        let dropped = self
            .dropped
            .iter()
            .map(|(reason, &count)| (reason.clone(), count.saturating_sub(before(reason))));
        Self {
            packets_in: self.packets_in.saturating_sub(earlier.packets_in),
            bytes_in: self.bytes_in.saturating_sub(earlier.bytes_in),
            packets_out: self.packets_out.saturating_sub(earlier.packets_out),
            bytes_out: self.bytes_out.saturating_sub(earlier.bytes_out),
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
            queue_peak_bytes: self.queue_peak_bytes,
        }
    }
}

impl Lateness {
    /// All packets of several histograms with the same bins, in one.
    #[must_use]
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let (mut bins, mut max_us) = (std::collections::BTreeMap::new(), 0);
        for one in all {
            max_us = one.max_us.max(max_us);
            for (edge_us, packets) in &one.bins {
                *bins.entry(*edge_us).or_insert(0) += packets;
            }
        }
        let bins: Vec<(u64, u64)> = bins.into_iter().collect();
        let count: u64 = bins.iter().map(|(_, packets)| packets).sum();
        let at = |per_mille: u64| {
            let rank = (count * per_mille).div_ceil(1000).max(1);
            let mut seen = 0;
            let found = bins.iter().find(|(_, packets)| {
                seen += packets;
                seen >= rank
            });
            found.map_or(0, |(edge_us, _)| *edge_us)
        };
        Self { count, p50_us: at(500), p99_us: at(990), p999_us: at(999), max_us, bins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Time::{MoreThan, Never, Seconds};

    #[test]
    fn the_median_is_exact_as_long_as_no_cut_could_change_it() {
        assert_eq!(Time::median(&[]), None);
        assert_eq!(Time::median(&[Seconds(3.0), Seconds(1.0), Seconds(2.0)]), Some(Seconds(2.0)));
        assert_eq!(Time::median(&[Seconds(2.0), Seconds(1.0)]), Some(Seconds(1.0)));
        // The cut one is above the median already.
        let cut = [Seconds(1.0), Seconds(2.0), MoreThan(9.0)];
        assert_eq!(Time::median(&cut), Some(Seconds(2.0)));
        // It may be anything from 1.5 s on.
        let cut = [Seconds(1.0), MoreThan(1.5), Seconds(3.0)];
        assert_eq!(Time::median(&cut), Some(MoreThan(1.5)));
        // Never begun: all that is sure is that half took at least the second least.
        let cut = [Seconds(1.0), Seconds(2.0), MoreThan(0.0)];
        assert_eq!(Time::median(&cut), Some(MoreThan(1.0)));
        assert_eq!(Time::median(&[MoreThan(5.0)]), Some(MoreThan(5.0)));
    }

    #[test]
    fn failures_count_as_endless() {
        assert_eq!(Time::median(&[Seconds(1.0), Seconds(2.0), Never]), Some(Seconds(2.0)));
        assert_eq!(Time::median(&[Seconds(1.0), Never, Never]), Some(Never));
    }

    #[test]
    fn histograms_merge_packet_by_packet() {
        let one = |bins: Vec<(u64, u64)>, max_us| Lateness { bins, max_us, ..Lateness::default() };
        let merged = Lateness::merged([
            &one(vec![(10, 900), (20, 89)], 19),
            &one(vec![(20, 1), (500, 10)], 480),
        ]);
        assert_eq!(merged.count, 1000);
        assert_eq!(merged.bins, [(10, 900), (20, 90), (500, 10)]);
        assert_eq!((merged.p50_us, merged.p99_us, merged.p999_us), (10, 20, 500));
        assert_eq!(merged.max_us, 480);
        assert_eq!(Lateness::merged([]), Lateness::default());
    }

    #[test]
    fn traffic_since_a_reading_leaves_out_what_was_before() {
        let reading = |packets_in, queue: u64, loss| Traffic {
            packets_in,
            dropped: [("queue".to_string(), queue), ("loss".to_string(), loss)].into(),
            ..Traffic::default()
        };
        let since = reading(10, 3, 5).since(&reading(4, 3, 1));
        assert_eq!(since.packets_in, 6);
        assert_eq!(since.dropped, [("loss".to_string(), 4)].into());
    }
}
