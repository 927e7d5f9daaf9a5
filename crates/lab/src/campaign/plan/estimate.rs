//! How long a run may take, before any has been measured.

use record::campaign::Way;
use services::benchmark::Class;
use services::tracks::{Catalogue, DEFAULT_SEED};

use super::{CellPlan, ClientPlan, PAIR_SETTINGS, Plan};

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

impl Plan {
    /// Expected seconds of one run of a cell: round trip, airtime and a timeout for each lost
    /// packet, for each exchange. Good enough to put runs in order and to name a time beforehand.
    pub(crate) fn estimate_s(&self, cell: &CellPlan) -> f64 {
        let network = &self.networks[cell.network];
        let (rate, loss) = (network.network.rate_bps, network.network.loss);
        let round_trip_s = 2.0 * network.network.delay_s;
        let bytes = mean_bytes(&cell.service) * compression(cell);
        let packets = bytes / SEGMENT_BYTES + 2.0;
        let air_s = rate.map_or(0.0, |rate| 8.0 * (bytes + HEADS_BYTES) / rate as f64);
        let recovery_s = packets * loss * (RECOVERY_S + round_trip_s) / (1.0 - loss).max(0.05);
        let setting =
            |name: &str| cell.settings.iter().any(|(of, value)| of == name && value == "close");
        let new_connection = cell.way == Way::NewConnection || setting("chunking");
        let round_trips = if new_connection { 4.0 } else { 1.5 };
        let exchange_s = round_trips * round_trip_s + air_s / (1.0 - loss).max(0.05) + recovery_s;
        let exchanges = exchanges(&cell.client, &cell.service);
        (exchange_s * exchanges).min(cell.client.budget.as_secs_f64()) + AROUND_S
    }

    /// Expected packets a second of a run of a cell, both ways.
    pub(crate) fn estimate_load(&self, cell: &CellPlan) -> f64 {
        let exchanges = exchanges(&cell.client, &cell.service);
        let data = mean_bytes(&cell.service) * compression(cell) / SEGMENT_BYTES;
        // Two segments for an acknowledgement, a request and its acknowledgement.
        exchanges * (1.5 * data + 2.0) / self.estimate_s(cell)
    }

    /// Memory of the pair, where it is the way.
    pub(crate) fn memory_beside(&self, cell: &CellPlan) -> u64 {
        if cell.way == Way::Longwire { PAIR_MEMORY_BYTES } else { 0 }
    }

    /// Expected seconds of all runs, one after another.
    #[must_use]
    pub fn serial_s(&self) -> f64 {
        self.cells.iter().map(|cell| self.estimate_s(cell) * f64::from(cell.repetitions)).sum()
    }

    /// Expected seconds with so many runs side by side: the share of each, and never less than the
    /// longest takes.
    #[must_use]
    pub fn expected_s(&self, parallel: usize) -> f64 {
        let longest = self.cells.iter().map(|cell| {
            let server = &self.servers[cell.server];
            let runs = if server.share { f64::from(cell.repetitions) } else { 1.0 };
            self.estimate_s(cell) * runs
        });
        let longest = longest.fold(0.0, f64::max);
        (self.serial_s() / parallel.max(1) as f64).max(longest)
    }

    /// All cells: name, repetitions and expected seconds of one run.
    #[must_use]
    pub fn list(&self) -> Vec<(String, u32, f64)> {
        let one = |cell: &CellPlan| (cell.name.clone(), cell.repetitions, self.estimate_s(cell));
        self.cells.iter().map(one).collect()
    }
}

/// How much a client of a service asks for.
fn exchanges(client: &ClientPlan, service: &str) -> f64 {
    let measured = match Class::parse(service) {
        Some(_) => f64::from(client.messages),
        None => client.tracks.len() as f64,
    };
    measured + f64::from(client.warm_up)
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

/// What is left of an answer, roughly.
fn compression(cell: &CellPlan) -> f64 {
    const LEFT: f64 = 0.12;
    let forced = ("compression".to_string(), "forced".to_string());
    let [policy, _] = PAIR_SETTINGS.map(String::from);
    let left_alone = (policy, "identity".to_string());
    let through_pair = cell.way == Way::Longwire && !cell.settings.contains(&left_alone);
    let is_coded = through_pair || cell.settings.contains(&forced);
    if is_coded { LEFT } else { 1.0 }
}
