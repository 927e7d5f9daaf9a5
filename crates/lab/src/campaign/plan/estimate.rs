//! How long a run may take, before any has been measured.

use record::campaign::Way;
use services::benchmark::Class;
use services::tracks::{Catalogue, DEFAULT_SEED};

use super::{CellPlan, PAIR_SETTINGS, Plan};

/// Time to start and end the processes of a run.
const AROUND_S: f64 = 0.5;
/// What edge and gateway take together, lightly used.
const PAIR_MEMORY_BYTES: u64 = 24_000_000;
/// What a packet carries of an answer, in bytes.
const SEGMENT_BYTES: f64 = 1448.0;
/// What a lost packet costs at least: the kernel's shortest retransmission timeout.
const RECOVERY_S: f64 = 0.2;
/// Server-independent head of an answer and the whole request, in bytes.
const HEADS_BYTES: f64 = 600.0;

/// What the machine bears of all runs together, in packets a second, as the throttle finds it.
const LOAD: f64 = 2_500.0;

/// The share of the machine that a run with so many packets a second takes.
pub(in crate::campaign) fn share(load: f64) -> f64 {
    (load / LOAD).min(1.0)
}

/// What a processor at work weighs: the processes of a pair hand each exchange on, and each of them
/// waits when a processor is not there at once.
const PROCESSOR_LOAD: f64 = 5_000.0;
/// From one start to the next.
const START_S: f64 = 0.06;
/// Processor time to start and end the processes of a run, for a packet, and for a byte through the
/// pair.
const PROCESSES_S: f64 = 0.4;
const PACKET_PROCESSOR_S: f64 = 25e-6;
const BYTE_PROCESSOR_S: f64 = 8e-9;
/// Time for a byte of an answer to be encoded and decoded, roughly, of any encoding.
const CODED_BYTE_S: f64 = 2e-8;
/// What is left of an answer by any encoding, roughly.
const LEFT: f64 = 0.12;

/// What a campaign is expected to take, and why: the runs go side by side as far as the machine
/// keeps up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// All runs one after another, in seconds, as the rest.
    pub serial_s: f64,
    /// The longest piece of work that nothing shortens.
    pub longest_s: f64,
    /// What the machine needs for packets, codecs, the pair, and for starting processes.
    pub load_s: f64,
    /// What starting runs one after another needs.
    pub starts_s: f64,
    /// What runs need that have the memory to themselves.
    pub memory_s: f64,
}

impl Expected {
    /// The time that it takes: the scarcest resource decides, and the longest run may begin last.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        let scarcest = [self.load_s, self.starts_s, self.memory_s];
        let scarcest = scarcest.into_iter().fold(0.0, f64::max);
        (scarcest + self.longest_s).min(self.serial_s)
    }
}

impl Plan {
    /// Expected seconds of one run of a cell: round trip, airtime and a timeout for each lost
    /// packet, for each exchange. Good enough to put runs in order and to name a time beforehand.
    pub(crate) fn estimate_s(&self, cell: &CellPlan) -> f64 {
        let coding = self.coding(cell);
        let codec_s = CODED_BYTE_S * self.mean_bytes(cell) * coding.slower;
        let plain_s = self.exchange_s(cell, 1.0);
        let coded_s = self.exchange_s(cell, LEFT) + codec_s;
        let exchange_s = match coding.policy {
            Policy::Identity => plain_s,
            Policy::Coded => coded_s,
            Policy::Chosen => coded_s.min(plain_s),
        };
        let exchanges = self.exchanges(cell);
        (exchange_s * exchanges).min(cell.client.budget.as_secs_f64()) + AROUND_S
    }

    /// Seconds of an exchange whose answer is left with a share of its bytes.
    fn exchange_s(&self, cell: &CellPlan, left: f64) -> f64 {
        let network = &self.networks[cell.network];
        let (rate, loss) = (network.network.rate_bps, network.network.loss);
        let round_trip_s = 2.0 * network.network.delay_s;
        let bytes = self.mean_bytes(cell) * left;
        let packets = bytes / SEGMENT_BYTES + 2.0;
        let air_s = rate.map_or(0.0, |rate| 8.0 * (bytes + HEADS_BYTES) / rate as f64);
        let recovery_s = packets * loss * (RECOVERY_S + round_trip_s) / (1.0 - loss).max(0.05);
        let setting =
            |name: &str| cell.settings.iter().any(|(of, value)| of == name && value == "close");
        let new_connection =
            cell.way == Way::NewConnection || setting("chunking") || self.is_command(cell);
        let round_trips = if new_connection { 4.0 } else { 1.5 };
        round_trips * round_trip_s + air_s / (1.0 - loss).max(0.05) + recovery_s
    }

    /// Expected packets a second of a run of a cell, both ways, and what weighs as much.
    pub(crate) fn estimate_load(&self, cell: &CellPlan) -> f64 {
        let processors = match cell.way {
            Way::Longwire => PROCESSOR_LOAD * self.processors_s(cell),
            _ => 0.0,
        };
        (self.packets(cell) + processors) / self.estimate_s(cell)
    }

    /// Packets of a run of a cell, both ways.
    fn packets(&self, cell: &CellPlan) -> f64 {
        let left = if self.coding(cell).policy == Policy::Identity { 1.0 } else { LEFT };
        let data = self.mean_bytes(cell) * left / SEGMENT_BYTES;
        // Two segments for an acknowledgement, a request and its acknowledgement.
        self.exchanges(cell) * (1.5 * data + 2.0)
    }

    /// What processors do for a run of a cell; a slower one waits instead.
    fn processors_s(&self, cell: &CellPlan) -> f64 {
        let bytes = self.exchanges(cell) * self.mean_bytes(cell);
        let coded = self.coding(cell).policy != Policy::Identity;
        let codec_s = if coded { CODED_BYTE_S * bytes } else { 0.0 };
        PROCESSES_S + PACKET_PROCESSOR_S * self.packets(cell) + BYTE_PROCESSOR_S * bytes + codec_s
    }

    /// How much the client of a cell asks for; a command is one exchange.
    fn exchanges(&self, cell: &CellPlan) -> f64 {
        let client = &cell.client;
        let measured = match Class::parse(&cell.service) {
            _ if self.is_command(cell) => return 1.0,
            Some(_) => f64::from(client.messages),
            None => client.tracks.len() as f64,
        };
        measured + f64::from(client.warm_up)
    }

    fn is_command(&self, cell: &CellPlan) -> bool {
        self.commands.iter().any(|command| command.name == cell.service)
    }

    /// Mean bytes of an answer in a cell.
    fn mean_bytes(&self, cell: &CellPlan) -> f64 {
        let said = self.servers[cell.server].answer_bytes;
        said.map_or_else(|| mean_bytes(&cell.service), |bytes| bytes as f64)
    }

    /// What is done with answers in a cell.
    fn coding(&self, cell: &CellPlan) -> Coding {
        let defaults = &self.servers[cell.server].defaults;
        let value = |name: &str| {
            let mut all = cell.settings.iter().chain(defaults);
            all.find(|(of, _)| of == name).map(|(_, value)| value.as_str())
        };
        let [policy, processor, ..] = PAIR_SETTINGS.map(value);
        let through_pair = cell.way == Way::Longwire;
        let policy = match policy {
            _ if !through_pair && value("compression") == Some("forced") => Policy::Coded,
            Some("identity") => Policy::Identity,
            None | Some("auto" | "nam") if through_pair => Policy::Chosen,
            Some(_) if through_pair => Policy::Coded,
            _ => Policy::Identity,
        };
        let slower = processor.and_then(|factor| factor.parse().ok()).unwrap_or(1.0);
        Coding { policy, slower }
    }

    /// Memory of the pair, where it is the way.
    pub(crate) fn memory_beside(&self, cell: &CellPlan) -> u64 {
        if cell.way == Way::Longwire { PAIR_MEMORY_BYTES } else { 0 }
    }

    /// Expected time of all runs on a machine with so much memory for them, with at most so many
    /// side by side.
    #[must_use]
    pub fn expected(&self, memory_bytes: u64, parallel: usize) -> Expected {
        let mut all =
            Expected { serial_s: 0.0, longest_s: 0.0, load_s: 0.0, starts_s: 0.0, memory_s: 0.0 };
        let places = 1.0 / parallel.max(1) as f64;
        for cell in &self.cells {
            let (runs, run_s) = (f64::from(cell.repetitions), self.estimate_s(cell));
            let server = &self.servers[cell.server];
            let in_a_row = if server.share { runs } else { 1.0 };
            let memory = (server.memory_bytes + self.memory_beside(cell)) as f64;
            let of_memory = (memory / memory_bytes.max(1) as f64).clamp(places, 1.0);
            all.serial_s += runs * run_s;
            all.longest_s = all.longest_s.max(in_a_row * run_s);
            all.load_s += runs * run_s * share(self.estimate_load(cell));
            all.starts_s += runs * START_S;
            all.memory_s += runs * run_s * of_memory;
        }
        all
    }

    /// All cells: name, repetitions and expected seconds of one run.
    #[must_use]
    pub fn list(&self) -> Vec<(String, u32, f64)> {
        let one = |cell: &CellPlan| (cell.name.clone(), cell.repetitions, self.estimate_s(cell));
        self.cells.iter().map(one).collect()
    }
}

/// What is done with answers in a cell, and how many times slower than here.
struct Coding {
    policy: Policy,
    slower: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Identity,
    Coded,
    /// Whatever is faster.
    Chosen,
}

/// Mean size of an answer of our own services.
fn mean_bytes(service: &str) -> f64 {
    if let Some(class) = Class::parse(service) {
        return class.mean_bytes();
    }
    use std::sync::OnceLock;
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    let catalogue = CATALOGUE.get_or_init(|| Catalogue::new(DEFAULT_SEED));
    let files = 1..=services::tracks::FILE_COUNT;
    let sizes = files.filter_map(|number| match service {
        "rest-json" => catalogue.json(number).map(|document| document.plain().len()),
        _ => catalogue.xml(number).map(|document| document.plain().len()),
    });
    let sizes: Vec<usize> = sizes.collect();
    sizes.iter().sum::<usize>() as f64 / sizes.len().max(1) as f64
}
