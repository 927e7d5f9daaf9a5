//! The simulator checked against the laboratory: the same cells, the same messages in the same
//! order, virtual time beside the kernel's.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use link::LinkConfig;
use longwire_bench::machine;
use longwire_bench::markdown::Table;
use longwire_bench::statistics::median;
use record::campaign::{Campaign, Cell, Network, Run as LabRun, Way};
use sim::decision::{Chooser, Message, Run, Setting, Workload};

use crate::judge::{priors_of, split};
use crate::measure::{ARMS, NAM_ARMS};

/// Runs of a policy in a cell of the simulator.
const SEEDS: u64 = 10;
/// Cells that differ most, shown.
const WORST: usize = 15;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The directory of a campaign, such as results/nam.
    results: PathBuf,
    /// The table of `decision measure`; it must have the answers that the campaign asked for.
    table: PathBuf,
    /// Runs of each policy in each cell of the simulator.
    #[arg(long, default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The report as Markdown; it goes to the standard output too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// A cell that both have.
struct Pair {
    network: String,
    class: String,
    processor: f64,
    policy: String,
    /// Mean over the messages of their mean seconds.
    lab_s: f64,
    sim_s: f64,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.sim_s / self.lab_s
    }

    fn place(&self) -> (&str, &str, String) {
        (&self.network, &self.class, format!("{:>2}", self.processor))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (start, all) = split(crate::read(&arguments.table)?)?;
    let campaign = lab::campaign::load(&arguments.results)?;
    let mut pairs = Vec::new();
    for (at, cell) in campaign.cells.iter().enumerate() {
        eprint!("\rcell {} of {}  ", at + 1, campaign.cells.len());
        pairs.extend(pair(&campaign, cell, (&start, &all), arguments.seeds)?);
    }
    eprintln!();
    ensure!(!pairs.is_empty(), "no cell of the campaign is one of the table's answers");
    let text = report(&pairs, arguments.seeds)?;
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, &text).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The cell in both; none where the table lacks its answers, or nothing was measured.
fn pair(
    campaign: &Campaign,
    cell: &Cell,
    (start, all): (&[Message], &Workload),
    seeds: u64,
) -> Result<Option<Pair>> {
    let networks = &mut campaign.networks.iter();
    let network = networks.find(|one| one.name == cell.network && one.changes.is_empty());
    let run = cell.good_runs().find(|run| run.errors() + run.censored() == 0);
    let (Some(network), Some(run)) = (network, run) else { return Ok(None) };
    let setting = |name: &str| {
        let of_cell = cell.settings.iter().find(|(of, _)| of == name).map(|(_, value)| value);
        let mut defaults = campaign.setting.defaults.iter();
        let of_server = defaults.find(|(server, of, _)| *server == cell.server && of == name);
        of_cell.or(of_server.map(|(_, _, value)| value)).map(String::as_str)
    };
    // What tells a message by others is not in the simulator.
    let alone = cell.settings.iter().all(|(name, _)| name != "encodings");
    let Some(policy) = setting("policy").filter(|_| alone && cell.way == Way::Longwire) else {
        return Ok(None);
    };
    let chooser = match policy {
        "nam" => Some(Chooser::Nam),
        "auto" => Some(Chooser::Ours),
        fixed => ARMS.iter().position(|arm| *arm == fixed).map(Chooser::Fixed),
    };
    let (Some(chooser), Some(class)) = (chooser, class(run, all)) else { return Ok(None) };
    let slower = setting("processor").and_then(|factor| factor.parse().ok()).unwrap_or(1.0);
    let priors = priors_of(start, slower);
    let nam_arms = &NAM_ARMS;
    let setting = Setting { slower, class: &class, profile: all, nam_arms, priors: &priors };
    Ok(Some(Pair {
        network: cell.network.clone(),
        class: cell.service.clone(),
        processor: slower,
        policy: policy.to_owned(),
        lab_s: in_lab(cell),
        sim_s: simulated(&setting, chooser, network, run, seeds)?,
    }))
}

/// The messages of a run in their order, once each; none when the table lacks one.
fn class(run: &LabRun, all: &Workload) -> Option<Workload> {
    let mut messages: Vec<Message> = Vec::new();
    for exchange in run.warm_up.iter().chain(&run.measured).map(|measured| &measured.exchange) {
        let number: u32 = exchange.name.strip_prefix("query ")?.parse().ok()?;
        let prefix = format!("q{number:02}.");
        let is_it = |one: &&Message| {
            one.name.starts_with(&prefix) && one.bytes == exchange.body_bytes as f64
        };
        let message = all.messages.iter().find(is_it)?;
        if messages.first().is_some_and(|first| first.name == message.name) {
            break;
        }
        messages.push(message.clone());
    }
    (!messages.is_empty()).then(|| Workload { arms: all.arms.clone(), messages })
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn in_lab(cell: &Cell) -> f64 {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for measured in cell.good_runs().flat_map(|run| &run.measured) {
        let exchange = &measured.exchange;
        if exchange.succeeded() {
            times.entry(&exchange.name).or_default().push(exchange.elapsed_s);
        }
    }
    mean(times.into_values().map(mean))
}

/// The answers in virtual time, with what the request takes before.
fn simulated(
    setting: &Setting<'_>,
    chooser: Chooser,
    network: &Network,
    run: &LabRun,
    seeds: u64,
) -> Result<f64> {
    let mut link = LinkConfig::default();
    for (key, value) in &network.settings {
        link.set(key, value)?;
    }
    // The least that went up for an exchange: the request, and an acknowledgement.
    let request_bytes = run.measured.iter().map(|measured| measured.up.bytes).min().unwrap_or(0);
    let air_s = link.ab.rate_bps.map_or(0.0, |rate| 8.0 * request_bytes as f64 / rate as f64);
    let request_s = link.ab.delay.as_secs_f64() + air_s;
    let (skipped, count) = (run.warm_up.len(), run.measured.len());
    let messages = setting.class.messages.len();
    let mut times = vec![Vec::new(); messages];
    for seed in 0..seeds {
        let mut run = Run::new(*setting, chooser, &link, seed).pausing(request_s);
        for place in 0..skipped + count {
            // The laboratory begins each pass with the first message.
            let one = run.send(if place < skipped { place } else { place - skipped });
            if place >= skipped {
                times[one.message].push(request_s + one.seconds());
            }
        }
    }
    Ok(mean(times.into_iter().filter(|times| !times.is_empty()).map(mean)))
}

fn report(pairs: &[Pair], seeds: u64) -> Result<String> {
    let mut text = "# The simulator against the laboratory\n\n".to_owned();
    writeln!(
        text,
        "The cells that both have: the same answers in the same order, the same warm-up, back to \
         back. In the laboratory the kernel's TCP in real time, the exchange as the client sees \
         it; in the simulator virtual time, {seeds} seeds, with the request's delay and airtime \
         added. A ratio is the simulator's mean time over the laboratory's, each message counted \
         alike.\n"
    )?;
    writeln!(text, "{}", machine::render(&machine::describe("decision")))?;
    for (title, key) in [
        ("network", (|pair| pair.network.clone()) as fn(&Pair) -> String),
        ("class", |pair| pair.class.clone()),
        ("policy", |pair| pair.policy.clone()),
        ("processor", |pair| format!("{:>2}", pair.processor)),
    ] {
        writeln!(text, "{}", grouped(pairs, title, key))?;
    }
    writeln!(text, "## Would it choose the same?\n\n{}", choices(pairs)?)?;
    writeln!(text, "## Cells that differ most\n\n{}", worst(pairs))?;
    Ok(text)
}

fn grouped(pairs: &[Pair], title: &str, key: fn(&Pair) -> String) -> String {
    let mut groups: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for pair in pairs {
        groups.entry(key(pair)).or_default().push(pair.ratio());
        groups.entry("~ all".to_owned()).or_default().push(pair.ratio());
    }
    let mut table =
        Table::new(&[title, "cells", "median ratio", "least", "most", "within 10 %", "25 %"]);
    for (name, ratios) in groups {
        let within = |off: f64| {
            let count = ratios.iter().filter(|ratio| ratio.ln().abs() <= off.ln_1p()).count();
            format!("{:.0} %", 100.0 * count as f64 / ratios.len() as f64)
        };
        let (least, most) = (
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        );
        table.row([
            name.trim_start_matches("~ ").to_owned(),
            ratios.len().to_string(),
            format!("{:.3}", median(ratios.clone())),
            format!("{least:.2}"),
            format!("{most:.2}"),
            within(0.10),
            within(0.25),
        ]);
    }
    table.render()
}

/// Whether the fastest fixed encoding of a place is the same, and what the simulator's costs in the
/// laboratory.
fn choices(pairs: &[Pair]) -> Result<String> {
    let mut places: BTreeMap<(&str, &str, String), Vec<&Pair>> = BTreeMap::new();
    let is_fixed = |pair: &&Pair| ARMS.contains(&pair.policy.as_str());
    for pair in pairs.iter().filter(is_fixed) {
        places.entry(pair.place()).or_default().push(pair);
    }
    // What encodes nothing is the same on every processor.
    let plain = pairs.iter().filter(|pair| pair.policy == ARMS[0]);
    let plain: Vec<&Pair> = plain.collect();
    for (place, cells) in &mut places {
        let same = |one: &&&Pair| (one.network.as_str(), one.class.as_str()) == (place.0, place.1);
        if cells.iter().all(|one| one.policy != ARMS[0]) {
            cells.extend(plain.iter().filter(same).copied());
        }
    }
    places.retain(|_, cells| cells.len() > 1);
    let (mut same, mut costs) = (0, Vec::new());
    for cells in places.values() {
        let best = |of: fn(&Pair) -> f64| {
            cells.iter().min_by(|one, other| of(one).total_cmp(&of(other))).copied()
        };
        let (lab, sim) = (best(|pair| pair.lab_s), best(|pair| pair.sim_s));
        let (lab, sim) = lab.zip(sim).context("a place without cells")?;
        same += usize::from(lab.policy == sim.policy);
        costs.push(100.0 * (sim.lab_s / lab.lab_s - 1.0));
    }
    if costs.is_empty() {
        return Ok("No place has two fixed encodings.\n".to_owned());
    }
    let most = costs.iter().copied().fold(0.0, f64::max);
    Ok(format!(
        "In {same} of {} places (network, class, processor) the fixed encoding that is the fastest \
         in the simulator is the fastest in the laboratory too. Taking the simulator's there costs \
         {:.1} % on average, {most:.1} % at the most.\n",
        costs.len(),
        mean(costs.iter().copied())
    ))
}

fn worst(pairs: &[Pair]) -> String {
    let mut pairs: Vec<&Pair> = pairs.iter().collect();
    pairs.sort_by(|one, other| other.ratio().ln().abs().total_cmp(&one.ratio().ln().abs()));
    let heads =
        ["network", "class", "slower", "policy", "laboratory, s", "simulator, virtual s", "ratio"];
    let mut table = Table::new(&heads);
    for pair in pairs.into_iter().take(WORST) {
        table.row([
            pair.network.clone(),
            pair.class.clone(),
            pair.processor.to_string(),
            pair.policy.clone(),
            format!("{:.5}", pair.lab_s),
            format!("{:.5}", pair.sim_s),
            format!("{:.2}", pair.ratio()),
        ]);
    }
    table.render()
}
