//! The cells, run side by side, and the bounds that they are held to.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use decide::arm::{Prior, Speed};
use link::LinkConfig;
use longwire_bench::progress::Progress;
use sim::Random;
use sim::decision::{
    Changes, Chooser, Extent, FixedRuns, Message, Regret, Setting, Workload, drift, judge,
    judge_fixed, whole,
};

use crate::measure::{ARMS, NAM_ARMS};
use crate::report::{self, BACK_REGRET, CELL_REGRET};

/// The papers' networks: NAM's five and a modem, and IST-118's six.
const NETWORKS: [&str; 12] = [
    "nam-lan",
    "nam-sc",
    "nam-us",
    "nam-transatlantic",
    "nam-t1",
    "modem56",
    "satcom",
    "los",
    "wifi1",
    "wifi3",
    "wifi2",
    "cnr",
];
/// How many times slower than here codecs run.
const SLOWER: [f64; 4] = [1.0, 4.0, 16.0, 64.0];
/// Links by chance.
const RANDOM_CELLS: u64 = 50;
/// Where the seeds cannot say whether a bound is kept, so many times as many begin anew.
const MORE_SEEDS: [u64; 2] = [8, 64];
/// What scenarios/nam.toml leaves to the simulator: what takes longer uncompressed, and networks
/// that it measures only for them to be there.
const LONGEST_IN_LABORATORY_S: f64 = 10.0;
const STARRED: [&str; 2] = ["nam-lan", "wifi2"];
/// Where a link changes: the order, and messages on each.
const DRIFT: [&str; 4] = ["wifi1", "wifi2", "los", "satcom"];
const DRIFT_MESSAGES: usize = 25;
/// Messages after a change that the policy has to come back.
pub(crate) const BACK_MESSAGES: usize = 10;
/// Messages that the table has for the start alone; see [`priors_of`].
const START: &str = "start";
/// Messages from here on are huge.
pub(crate) const HUGE_BYTES: f64 = 10e6;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The table of `decision measure`.
    table: PathBuf,
    /// Classes whose names begin so; all without it.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    classes: Vec<String>,
    /// Presets of links; those of the papers without it.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    networks: Vec<String>,
    /// Seeds of each policy in a cell.
    #[arg(long, default_value_t = 30)]
    seeds: u64,
    /// Messages of a run, of which the first 20 are not judged.
    #[arg(long, default_value_t = 40)]
    messages: usize,
    /// Leave out links by chance and links that change.
    #[arg(long)]
    grid_only: bool,
    /// All cells as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The report as Markdown; it goes to the standard output too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// A cell with what came of it.
pub(crate) struct Cell {
    pub(crate) class: String,
    pub(crate) bytes: f64,
    pub(crate) network: String,
    pub(crate) slower: f64,
    pub(crate) ours: Regret,
    pub(crate) nam: Regret,
    pub(crate) ours_of_nam: Regret,
    /// None, Zip, XMill.
    pub(crate) fixed: [f64; 3],
}

/// Mean relative regret by message while the link changes.
pub(crate) struct Drift {
    pub(crate) class: String,
    pub(crate) slower: f64,
    pub(crate) relative: Vec<f64>,
    /// By link, the lower 95 % limit of its mean after [`BACK_MESSAGES`].
    pub(crate) low: Vec<f64>,
}

impl Cell {
    /// Whether the simulator alone can judge it: the laboratory leaves out what takes too long as
    /// it is, and stars what loses too much or takes no longer than its own error.
    pub(crate) fn is_judged_here(&self) -> bool {
        self.ours.identity_s > LONGEST_IN_LABORATORY_S || STARRED.contains(&self.network.as_str())
    }

    /// Whether its seeds are too few to say that it is over the bound.
    fn is_undecided(&self) -> bool {
        self.ours.relative > CELL_REGRET && self.ours.relative_low <= CELL_REGRET
    }
}

impl Drift {
    /// Whether its seeds are too few to say of a link that it is over the bound.
    fn is_undecided(&self) -> bool {
        let mut all = self.after(BACK_MESSAGES).into_iter().zip(&self.low);
        all.any(|(mean, low)| mean > BACK_REGRET && *low <= BACK_REGRET)
    }

    /// By link, the mean from so many messages after the change on.
    pub(crate) fn after(&self, messages: usize) -> Vec<f64> {
        let parts = self.relative.chunks(DRIFT_MESSAGES);
        parts.map(|part| mean(part.get(messages..).unwrap_or_default())).collect()
    }

    /// By link, the mean of so many messages after the change.
    pub(crate) fn first(&self, messages: usize) -> Vec<f64> {
        let parts = self.relative.chunks(DRIFT_MESSAGES);
        parts.map(|part| mean(part.get(..messages).unwrap_or_default())).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// All that came of it.
pub(crate) struct Findings {
    pub(crate) grid: Vec<Cell>,
    pub(crate) random: Vec<Cell>,
    pub(crate) drift: Vec<Drift>,
    pub(crate) decision_us: f64,
    pub(crate) extent: Extent,
}

/// One piece of work: a class on a link, with some processors.
struct Unit<'a> {
    class: &'a (String, Workload),
    network: String,
    link: LinkConfig,
    slower: Vec<f64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (start, judged) = split(crate::read(&arguments.table)?)?;
    let profile = judged.clone();
    let wanted = |class: &str| {
        let mut names = arguments.classes.iter();
        arguments.classes.is_empty() || names.any(|name| class.starts_with(name.as_str()))
    };
    let mut classes = judged.classes();
    classes.retain(|(class, _)| wanted(class));
    ensure!(!classes.is_empty(), "no such class");
    let extent = Extent { seeds: arguments.seeds, messages: arguments.messages, warm_up: 20 };
    let bench = Bench { start, profile, extent };
    let grid = bench.cells("grid", grid(arguments, &classes)?);
    let more = !arguments.grid_only;
    let random = if more { bench.cells("links by chance", by_chance(&classes)?) } else { vec![] };
    let drift = if more { bench.drift(&classes)? } else { vec![] };
    let decision_us = bench.decision_us(&classes[0].1);
    let findings = Findings { grid, random, drift, decision_us, extent };
    let kept = report::write(&findings, arguments.json.as_deref(), arguments.markdown.as_deref())?;
    Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The messages that are there for the start alone, and those to judge by.
pub(crate) fn split(mut all: Workload) -> Result<(Vec<Message>, Workload)> {
    ensure!(all.arms == ARMS, "the table's encodings are not {}", ARMS.join(", "));
    let of_start = |message: &Message| message.name.starts_with(START);
    let start: Vec<Message> = all.messages.iter().filter(|one| of_start(one)).cloned().collect();
    ensure!(start.len() >= 2, "the table has no two messages {START}.*");
    all.messages.retain(|message| !of_start(message));
    Ok((start, all))
}

fn grid<'a>(arguments: &Arguments, classes: &'a [(String, Workload)]) -> Result<Vec<Unit<'a>>> {
    let names: Vec<String> = match arguments.networks.as_slice() {
        [] => NETWORKS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let mut units = Vec::new();
    for network in &names {
        let link = LinkConfig::preset(network)?;
        for class in classes {
            let (network, link) = (network.clone(), link.clone());
            units.push(Unit { class, network, link, slower: SLOWER.to_vec() });
        }
    }
    Ok(units)
}

/// Rates, delays, losses and processors by chance, of all orders of magnitude.
fn by_chance(classes: &[(String, Workload)]) -> Result<Vec<Unit<'_>>> {
    let (mut random, mut which) = (Random::new(118), Random::new(119));
    let mut between = |low: f64, high: f64| {
        let share = random.below(1 << 20) as f64 / f64::from(1 << 20);
        low * (high / low).powf(share)
    };
    (0..RANDOM_CELLS)
        .map(|at| {
            let (rate, rtt_s) = (between(9600.0, 4e8), between(3e-4, 1.2));
            let loss = if at % 2 == 0 { 0.0 } else { between(1e-3, 0.1) };
            let slower = between(1.0, 64.0);
            let class = &classes[usize::try_from(which.below(classes.len() as u64))?];
            let rate = whole(rate);
            let mut link = LinkConfig::preset("los")?;
            for channel in [&mut link.ab, &mut link.ba] {
                channel.rate_bps = Some(rate);
                channel.delay = Duration::from_secs_f64(rtt_s / 2.0);
                channel.loss = loss;
            }
            let (rate, rtt) = (link::units::format_rate(rate), rtt_s * 1e3);
            let network = format!("{rate}, {rtt:.3} ms, {:.2} %", loss * 100.0);
            Ok(Unit { class, network, link, slower: vec![slower] })
        })
        .collect()
}

struct Bench {
    start: Vec<Message>,
    profile: Workload,
    extent: Extent,
}

impl Bench {
    fn setting<'a>(&'a self, class: &'a Workload, slower: f64, priors: &'a [Prior]) -> Setting<'a> {
        Setting { slower, class, profile: &self.profile, nam_arms: &NAM_ARMS, priors }
    }

    /// Runs units on all processors, with progress.
    fn cells(&self, what: &str, units: Vec<Unit<'_>>) -> Vec<Cell> {
        let done = side_by_side(what, &units, |unit| self.unit(unit));
        done.into_iter().flatten().collect()
    }

    /// Judged again with more seeds where these cannot say.
    fn unit(&self, unit: &Unit<'_>) -> Vec<Cell> {
        let mut cells = self.judged(unit, self.extent, &unit.slower);
        for times in MORE_SEEDS {
            let undecided = cells.iter().filter(|cell| cell.is_undecided());
            let slower: Vec<f64> = undecided.map(|cell| cell.slower).collect();
            if !slower.is_empty() {
                let extent = Extent { seeds: times * self.extent.seeds, ..self.extent };
                cells.retain(|cell| !cell.is_undecided());
                cells.extend(self.judged(unit, extent, &slower));
            }
        }
        cells.sort_by(|a, b| a.slower.total_cmp(&b.slower));
        cells
    }

    fn judged(&self, unit: &Unit<'_>, extent: Extent, slower: &[f64]) -> Vec<Cell> {
        let (name, class) = unit.class;
        let priors = priors_of(&self.start, 1.0);
        let plain = self.setting(class, 1.0, &priors);
        let fixed = FixedRuns::new(plain, &unit.link, extent, slower);
        let cell = |&slower: &f64| {
            let priors = priors_of(&self.start, slower);
            let setting = self.setting(class, slower, &priors);
            let judged = |chooser| judge(&setting, &unit.link, &fixed, chooser);
            let bytes = class.messages.iter().map(|message| message.bytes);
            Cell {
                class: name.clone(),
                bytes: bytes.fold(0.0, f64::max),
                network: unit.network.clone(),
                slower,
                ours: judged(Chooser::Ours),
                nam: judged(Chooser::Nam),
                ours_of_nam: judged(Chooser::OursOfNam),
                fixed: NAM_ARMS.map(|arm| judge_fixed(&setting, &fixed, arm)),
            }
        };
        slower.iter().map(cell).collect()
    }

    fn drift(&self, classes: &[(String, Workload)]) -> Result<Vec<Drift>> {
        let links: Vec<LinkConfig> =
            DRIFT.iter().map(|name| LinkConfig::preset(name)).collect::<Result<_, _>>()?;
        let links: Vec<&LinkConfig> = links.iter().collect();
        // Large ones take hours of virtual time at 20 % loss.
        let small = |class: &&(String, Workload)| {
            class.1.messages.iter().all(|message| message.bytes <= 300e3)
        };
        let cells: Vec<_> =
            classes.iter().filter(small).flat_map(|class| [(class, 1.0), (class, 16.0)]).collect();
        Ok(side_by_side("links that change", &cells, |&((name, class), slower)| {
            let priors = priors_of(&self.start, slower);
            let setting = self.setting(class, slower, &priors);
            let extent = (DRIFT_MESSAGES, BACK_MESSAGES);
            let judged = |seeds: u64| {
                let Changes { relative, low } =
                    drift(&setting, &links, extent, seeds, Chooser::Ours);
                Drift { class: name.clone(), slower, relative, low }
            };
            let mut found = judged(self.extent.seeds);
            for times in MORE_SEEDS {
                if found.is_undecided() {
                    found = judged(times * self.extent.seeds);
                }
            }
            found
        }))
    }

    /// Processor time of a decision with all arms, once all were seen.
    fn decision_us(&self, class: &Workload) -> f64 {
        let priors = priors_of(&self.start, 1.0);
        let setting = self.setting(class, 1.0, &priors);
        const TIMES: u32 = 20_000;
        let seconds = sim::decision::choosing(&setting, TIMES, crate::measure::now);
        seconds * 1e6 / f64::from(TIMES)
    }
}

/// Does work on all processors, in the order of the work.
fn side_by_side<W: Sync, R: Send>(what: &str, work: &[W], run: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, begin) = (AtomicUsize::new(0), Instant::now());
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let lock = || results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = work.get(at) else { break };
                    let result = run(piece);
                    lock().push((at, result));
                }
            });
        }
        let mut progress = Progress::new(Duration::ZERO);
        let mut shown = 0;
        loop {
            let done = lock().len();
            if done == work.len() {
                break;
            }
            if done * 20 / work.len() > shown {
                shown = done * 20 / work.len();
                let left = begin.elapsed().mul_f64((work.len() - done) as f64 / done as f64);
                progress = Progress::new(left);
                progress.step(&format!("{what}: {done} of {}", work.len()), Duration::ZERO);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        progress.finish();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What a process knows at its start: the sizes' priors of the program, and codecs' speeds measured
/// with two messages that are not judged.
pub(crate) fn priors_of(start: &[Message], slower: f64) -> Vec<Prior> {
    let speed = |arm: usize, time: fn(&sim::decision::Coded) -> f64| {
        let at = |message: &Message| (message.bytes, time(&message.coded[arm]) * slower);
        let (small, large) = (at(&start[0]), at(&start[1]));
        let (small, large) = if small.0 < large.0 { (small, large) } else { (large, small) };
        let per_byte_s = ((large.1 - small.1) / (large.0 - small.0)).max(1e-12);
        Speed { fixed_s: (small.1 - per_byte_s * small.0).max(1e-7), per_byte_s }
    };
    let prior = |(arm, name): (usize, &&str)| match decide::prior::of(name) {
        Some(prior) if arm > 0 => Prior {
            encode: speed(arm, |coded| coded.encode_s),
            decode: speed(arm, |coded| coded.decode_s),
            ..prior
        },
        _ => Prior::IDENTITY,
    };
    ARMS.iter().enumerate().map(prior).collect()
}
