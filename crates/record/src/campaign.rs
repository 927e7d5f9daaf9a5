//! Results of a campaign: the same fetches over several networks, in several ways, with the
//! server's settings varied, each several times.
//!
//! A campaign consists of **cells**; a cell is measured in **runs**, each on hosts of its own with
//! a seed of its own; a run consists of **exchanges**. Run `k` of every cell of a network has the
//! same seed, so that cells can be compared pair by pair.

use serde::{Deserialize, Serialize};

use crate::decision::Entry;
use crate::machine::Machine;
use crate::packets::PacketEvent;
use crate::result::{Exchange, Lateness, Traffic};

/// A whole campaign, finished or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Where and how it ran.
    pub setting: Setting,
    /// The links, in the order of the report.
    pub networks: Vec<Network>,
    /// In the order of the plan.
    pub cells: Vec<Cell>,
    /// What others have published for some of the cells.
    pub references: Vec<Reference>,
    /// What others recommend, by network.
    pub advice: Vec<Advice>,
    /// Which cells a picture shows.
    pub figures: Vec<Figure>,
}

/// Where and how a campaign ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// What the plan calls itself.
    pub title: String,
    /// What it is about, in a few sentences.
    pub about: String,
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
    /// Only the cells and runs of the quick form.
    pub quick: bool,
    /// Decides every chance on the links.
    pub seed: u64,
    /// Start of the first session, in seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// Time that all sessions took together.
    pub elapsed_s: f64,
    /// How often the campaign was started: 1 unless it was interrupted.
    pub sessions: u32,
    /// Most runs side by side at any time.
    pub parallel_peak: usize,
    /// Share of processor time that other guests of the machine took meanwhile, 0 to 1.
    pub stolen: Option<f64>,
    /// Longest that one exchange may take.
    pub timeout_s: f64,
    /// A run is repeated when its p99 lateness is above this.
    pub lateness_limit_us: u64,
    /// A run is repeated when its endpoints waited for a processor for more than this share of it.
    #[serde(default = "wait_share_max")]
    pub wait_share_limit: f64,
    /// The settings that cells differ from, by server: (server, setting, value).
    pub defaults: Vec<(String, String, String)>,
}

/// The share of a run that its endpoints may wait for a processor, unless a plan says otherwise.
pub const MAX_WAIT_SHARE: f64 = 0.02;

/// A run or a cell is spoilt when a packet in a hundred was later than this, unless a plan says
/// otherwise.
pub const MAX_LATENESS_US: u64 = 500;
/// What the endpoints may wait for a processor anyway.
pub const MAX_WAIT_S: f64 = 0.010;

fn wait_share_max() -> f64 {
    MAX_WAIT_SHARE
}

/// One emulated link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Name in the plan.
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
    /// What the link is while a client is under way: seconds after its start, and the name; the
    /// first from the start. None where it stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<(f64, String)>,
}

/// The way from client to service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Straight, keep-alive, without compression.
    Direct,
    /// Straight, the client offering `Accept-Encoding: gzip`.
    Gzip,
    /// Straight, a new connection for each exchange.
    NewConnection,
    /// Through an edge and a gateway.
    Longwire,
}

impl Way {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Gzip, Self::NewConnection, Self::Longwire];

    /// The name in plans and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Gzip => "gzip",
            Self::NewConnection => "new-connection",
            Self::Longwire => "longwire",
        }
    }

    /// The way of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

/// Settings of the pair: what `--encoding` gets, how many times slower than this machine's the
/// processors seem when they encode and decode, what `auto` may choose among, and what `--carrier`
/// gets. All others are the server's or its host's.
pub const PAIR_SETTINGS: [&str; 4] = ["policy", "processor", "encodings", "carrier"];

/// One combination of network, server, service, way and settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique in the campaign, such as `satcom/tracks/soap/direct/chunking=on`; the last part is
    /// `default` when no setting differs.
    pub name: String,
    /// Name of the network.
    pub network: String,
    /// Name of the server: `tracks` is longwire's own.
    pub server: String,
    /// `soap`, `rest-xml`, `rest-json`, or what the server's own client is called.
    pub service: String,
    /// The way to it.
    pub way: Way,
    /// Settings that differ from the server's defaults, sorted by name.
    pub settings: Vec<(String, String)>,
    /// Groups of the plan that it belongs to.
    pub groups: Vec<String>,
    /// In order of repetition; only the last attempt of each.
    pub runs: Vec<Run>,
}

/// One measurement of a cell on hosts of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// From 1.
    pub repetition: u32,
    /// From 1; above 1 when earlier ones were spoilt by the machine.
    pub attempt: u32,
    /// Decided every chance on the link.
    pub seed: u64,
    /// Start, in seconds since 1970 (UTC).
    pub started_unix_s: f64,
    /// From the client's start to its end.
    pub elapsed_s: f64,
    /// Other runs that were under way at its start.
    pub parallel: usize,
    /// The pass that is not counted.
    pub warm_up: Vec<Measured>,
    /// The pass that is.
    pub measured: Vec<Measured>,
    /// From client to service.
    pub up: Traffic,
    /// From service to client.
    pub down: Traffic,
    /// Of the packets in both directions.
    pub lateness: Lateness,
    /// Time that the client, the server and the pair waited for a processor: of each process the
    /// thread that waited longest, summed over the processes.
    pub processor_wait_s: f64,
    /// Congestion control read back: of the client's socket and of the far end's on the link.
    pub congestion_control: [String; 2],
    /// What was wrong with the machine at the last attempt, in one line: the figures are not to be
    /// trusted.
    pub flagged: Option<String>,
    /// Why there is no result, in one line.
    pub failure: Option<String>,
    /// Packets of one exchange, the one whose time is the median of its run's; only of the first
    /// repetition.
    pub flight: Option<Flight>,
    /// What the gateway decided of the answers, in order, where the plan says something of the
    /// pair; encodings that were not chosen are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Entry>,
}

/// One exchange with what the link carried for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// What the client saw.
    pub exchange: Exchange,
    /// From client to service, from its start to the next one's.
    pub up: Share,
    /// From service to client.
    pub down: Share,
    /// How many bursts of content came towards the client: the round trips that it took.
    pub flights: u32,
}

/// What one direction carried during an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Packets offered to the link.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// Segments with data that had been offered before.
    pub retransmitted: u64,
}

/// The packets of one exchange.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// Name of the exchange.
    pub exchange: String,
    /// Start of the exchange on the clock of the packets, in seconds.
    pub start_s: f64,
    /// Its time.
    pub elapsed_s: f64,
    /// In the order in which they were offered.
    pub packets: Vec<PacketEvent>,
}

/// A figure that others have published for a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Name of the cell.
    pub cell: String,
    /// Their mean time.
    pub seconds: f64,
    /// Where, and what to know of it.
    pub note: String,
}

/// What others recommend for a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Name of the network.
    pub network: String,
    /// In their words.
    pub text: String,
}

/// A picture: cells of a network and groups side by side, service by service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What stands above it.
    pub title: String,
    /// Name of the network.
    pub network: String,
    /// Groups whose cells it shows, besides the default.
    pub groups: Vec<String>,
}

impl Cell {
    /// The settings in one word: `default`, or `name=value` joined by commas.
    #[must_use]
    pub fn variant(&self) -> String {
        if self.settings.is_empty() {
            return "default".to_string();
        }
        let one = |(name, value): &(String, String)| format!("{name}={value}");
        self.settings.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// All runs, each with its cell.
    pub fn runs_with(&self) -> impl Iterator<Item = (&Self, &Run)> {
        self.runs.iter().map(move |run| (self, run))
    }

    /// Runs whose figures can be used: neither failed nor flagged.
    pub fn good_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.failure.is_none() && run.flagged.is_none())
    }
}

impl Run {
    /// The mean time of the measured exchanges that did not fail, as the paper has it. One that was
    /// cut off counts with the time that it had, so that the mean is a lower bound then; one that
    /// never began because the budget was spent says nothing. None when all failed.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        let times: Vec<f64> = self
            .measured
            .iter()
            .map(|measured| &measured.exchange)
            .filter(|of| of.error.is_none() && !(of.censored && of.elapsed_s == 0.0))
            .map(|of| of.elapsed_s)
            .collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }

    /// Measured exchanges that failed: files that could not be read.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.measured.iter().filter(|measured| measured.exchange.error.is_some()).count()
    }

    /// Measured exchanges that a limit of time cut off.
    #[must_use]
    pub fn censored(&self) -> usize {
        self.measured.iter().filter(|measured| measured.exchange.censored).count()
    }
}
