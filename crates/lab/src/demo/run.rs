//! All cells, from the first host to the last figure.

use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signalfd::SignalFd;
use record::demo::{Cell, Curve, CurvePoint, Demo, Mode, Service, Setting, Urgent};
use record::machine::Machine;
use record::result::Lateness;

use super::cell::{RunningCell, Shared};
use super::gate::Gate;
use super::outside::Outside;
use super::plan::{BULK_CLIENTS, BULK_SERVICE, Link, Plan, URGENT_SERVICE};
use super::tally::{Event, Tally};
use crate::error::{Doing, Error, Result};
use crate::experiment::live::Live;
use crate::experiment::machine;
use crate::experiment::pair::{self, Keys};
use crate::experiment::processes::Processes;
use crate::experiment::scratch::Scratch;
use crate::ferry::RealTime;
use crate::lab::{Lab, LinkSpec, Options};
use crate::namespace::Privilege;
use crate::processor::ProcessorTime;
use crate::signals;

/// From one cell's start to the next one's: starting all in the same instant would add tens of
/// milliseconds to their connects.
const STAGGER: Duration = Duration::from_millis(60);
/// What a client may take beyond its budget to come to an end.
const GRACE: Duration = Duration::from_secs(15);
/// How often the live line is renewed and signals are looked for.
const TICK: Duration = Duration::from_millis(200);
/// What comes before and after the fetches, as it is told beforehand: with it, five minutes.
const AROUND: Duration = Duration::from_secs(70);
/// What a cell may take the second time, as against the first.
const AGAIN: f64 = 1.25;
/// An odd number far from small ones, so that neighbouring cells have unlike seeds.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A network, a service and a way.
#[derive(Clone, Copy)]
struct Index {
    network: usize,
    what: What,
    mode: Mode,
}

/// What is fetched.
#[derive(Clone, Copy)]
enum What {
    /// Everything of this service.
    Service(usize),
    /// Urgent messages, while others fill the link.
    Urgent,
}

/// Runs a demonstration, with progress on stderr. `None` when a signal ended it; nothing of it is
/// left then.
///
/// To be called after [`acquire`](crate::acquire), while no other thread runs: one that does would
/// still die of SIGINT, SIGTERM and SIGHUP, and the process with it.
///
/// # Errors
/// [`Error::Caller`] for a plan that cannot be, and those of [`Lab::build`].
pub fn run(plan: &Plan) -> Result<Option<Demo>> {
    let interrupt = signals::catch()?;
    let mut links = plan.links()?;
    let curve = plan.curve(&links)?;
    let networks = links.len();
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let keys = Keys::make(&plan.program, scratch.path()).map_err(Error::Caller)?;
    let mut indices = indices(networks, plan.services.len());
    let compared = indices.len();
    let curve_of = curve.as_ref().map(|curve| curve.at);
    let by_loss = curve.map_or_else(Vec::new, |curve| curve.by_loss);
    let losses: Vec<f64> = by_loss.iter().map(|(loss, _)| *loss).collect();
    links.extend(by_loss.into_iter().map(|(_, link)| link));
    indices.extend(indices_of_curve(networks..links.len()));
    let urgent_of = plan.urgent(&links);
    let urgent = |mode| urgent_of.map(|network| Index { network, what: What::Urgent, mode });
    indices.extend(COMPARED_MODES.into_iter().filter_map(urgent));
    let (begun, begun_unix_s) = (Instant::now(), unix_s());
    let time_before = ProcessorTime::now();
    let outside = plan.url.as_ref().map(Outside::of);
    let stage = Stage {
        plan,
        links: &links,
        outside: outside.as_ref(),
        keys: &keys,
        scratch: scratch.path(),
        interrupt: &interrupt,
    };
    let first = stage.round(&indices, None)?;
    let Some(Round { mut cells, starting, real_time, device }) = first else { return Ok(None) };
    let until = begun + longest(plan.budget);
    let left = until.saturating_duration_since(Instant::now()).saturating_sub(starting);
    let again = to_repeat(&cells, left);
    if !again.is_empty() {
        let chosen: Vec<Index> = again.iter().map(|at| indices[*at]).collect();
        match stage.round(&chosen, Some(until)) {
            Ok(Some(round)) => take_better(&mut cells, &again, round.cells),
            Ok(None) => return Ok(None),
            // What was measured stays, and is marked.
            Err(error) => eprintln!("longwire: nothing is measured once more: {error}"),
        }
    }
    let stolen = time_before.zip(ProcessorTime::now());
    let setting = Setting {
        stolen: stolen.and_then(|(before, after)| after.stolen_since(&before)),
        elapsed_s: begun.elapsed().as_secs_f64(),
        ..setting(plan, (real_time, device), begun_unix_s)
    };
    let lateness = Lateness::merged(cells.iter().map(|cell| &cell.lateness));
    let mut beside = cells.split_off(compared).into_iter();
    let curve = curve_of.map(|at| Curve {
        network: links[at].network.name.clone(),
        service: plan.services[0].name.clone(),
        points: losses
            .into_iter()
            .map(|loss| CurvePoint {
                loss,
                cells: beside.by_ref().take(COMPARED_MODES.len()).collect(),
            })
            .collect(),
    });
    let urgent = urgent_of.map(|at| Urgent {
        network: links[at].network.name.clone(),
        bulk: BULK_SERVICE.to_string(),
        bulk_clients: BULK_CLIENTS,
        cells: beside.collect(),
    });
    links.truncate(networks);
    let networks = links.into_iter().map(|link| link.network).collect();
    let services = plan.services.clone();
    Ok(Some(Demo { setting, networks, services, cells, curve, urgent, lateness }))
}

/// The ways that are compared by loss, and beside what fills a link.
const COMPARED_MODES: [Mode; 2] = [Mode::Gzip, Mode::Longwire];

/// The first service over each of these networks.
fn indices_of_curve(networks: Range<usize>) -> impl Iterator<Item = Index> {
    let what = What::Service(0);
    networks.flat_map(move |network| COMPARED_MODES.map(|mode| Index { network, what, mode }))
}

/// Network by network, the three ways to a service next to each other.
fn indices(networks: usize, services: usize) -> Vec<Index> {
    let rows = (0..networks).flat_map(|network| (0..services).map(move |at| (network, at)));
    let all = rows.flat_map(|(network, service)| {
        Mode::ALL.map(|mode| Index { network, what: What::Service(service), mode })
    });
    all.collect()
}

/// What all rounds share.
struct Stage<'a> {
    plan: &'a Plan,
    links: &'a [Link],
    outside: Option<&'a Outside>,
    keys: &'a Keys,
    scratch: &'a Path,
    interrupt: &'a SignalFd,
}

/// Cells that ran side by side.
struct Round {
    /// In the order in which they were asked for.
    cells: Vec<Cell>,
    /// What it took until all were ready.
    starting: Duration,
    real_time: RealTime,
    device: &'static str,
}

impl Stage<'_> {
    /// Runs cells on hosts of their own, and ends them at `until`, if that is given; none when a
    /// signal came.
    fn round(&self, indices: &[Index], until: Option<Instant>) -> Result<Option<Round>> {
        let begun = Instant::now();
        let lab = build(self.plan, self.links, indices)?;
        let processes = Processes::new(self.scratch.to_path_buf());
        let shared = Shared {
            plan: self.plan,
            outside: self.outside,
            lab: &lab,
            processes: &processes,
            keys: self.keys,
            scratch: self.scratch,
        };
        let gate = Gate::new(indices.len());
        let cells = run_cells(&shared, self, indices, &gate, until);
        let starting = gate.opened().map_or(Duration::ZERO, |at| at.duration_since(begun));
        let (real_time, device) = (lab.real_time(), lab.device().name());
        Ok(cells.map(|cells| Round { cells, starting, real_time, device }))
    }
}

/// The longest that the whole takes, cells that are repeated included.
fn longest(budget: Duration) -> Duration {
    let announced = budget + AROUND;
    announced + announced / 3
}

/// Which cells the machine has spoilt, of those that can be measured once more in what is left.
fn to_repeat(cells: &[Cell], left: Duration) -> Vec<usize> {
    let fits = |cell: &Cell| Duration::from_secs_f64(cell.elapsed_s()).mul_f64(AGAIN) < left;
    let chosen = cells.iter().enumerate().filter(|(_, cell)| cell.is_spoilt() && fits(cell));
    chosen.map(|(at, _)| at).collect()
}

/// Puts results of a second round in the place of what the machine has spoilt more.
fn take_better(cells: &mut [Cell], places: &[usize], second: Vec<Cell>) {
    for (at, again) in places.iter().zip(second) {
        let first = &mut cells[*at];
        let is_whole = again.failure.is_none() && again.fetch.is_some();
        let rank = |cell: &Cell| (cell.is_spoilt(), cell.lateness.p99_us);
        if is_whole && rank(&again) < rank(first) {
            *first = again;
        }
        first.repeated = true;
    }
}

/// The three ways to a service meet the same chances: packet by packet the same are lost.
fn build(plan: &Plan, links: &[Link], indices: &[Index]) -> Result<Lab> {
    let spec = |(number, index): (usize, &Index)| {
        let config = links[index.network].config.clone();
        LinkSpec::new(format!("cell-{number}"), config, row_seed(plan.seed, index, &plan.services))
    };
    let specs: Vec<LinkSpec> = indices.iter().enumerate().map(spec).collect();
    let id = format!("demo-{}", std::process::id());
    Lab::build_with(&specs, &Options { id, ..Options::default() })
}

fn row_seed(seed: u64, index: &Index, services: &[Service]) -> u64 {
    let column = match index.what {
        What::Service(at) => at,
        What::Urgent => services.len(),
    };
    let row = (index.network * (services.len() + 1) + column) as u64;
    seed.wrapping_add(row.wrapping_mul(SEED_STEP))
}

/// Runs all cells; `None` when a signal came.
fn run_cells(
    shared: &Shared<'_>,
    stage: &Stage<'_>,
    indices: &[Index],
    gate: &Gate,
    until: Option<Instant>,
) -> Option<Vec<Cell>> {
    let links = stage.links;
    // Two events per cell: nobody ever waits for the receiver.
    let (events, inbox) = sync_channel(2 * indices.len());
    thread::scope(|scope| {
        for (link, index) in indices.iter().enumerate() {
            let network = &links[index.network].network;
            let (service, urgent) = match index.what {
                What::Service(at) => (shared.plan.services[at].name.as_str(), false),
                What::Urgent => (URGENT_SERVICE, true),
            };
            let place = RunningCell { shared, link, network, service, mode: index.mode, urgent };
            let events = events.clone();
            scope.spawn(move || run_cell(&place, gate, &events));
        }
        let networks = indices.iter().map(|index| links[index.network].network.name.clone());
        let tally = Tally::new(networks, until.is_some());
        let cells = collect(&inbox, gate, shared, (tally, until), stage.interrupt);
        // Whatever still runs would keep its cell's thread waiting.
        gate.close();
        shared.processes.end_all();
        cells
    })
}

fn run_cell(place: &RunningCell<'_>, gate: &Gate, events: &SyncSender<Event>) {
    let prepared = place.prepare();
    // Whoever receives these has gone only when they do not matter any more.
    let _ = events.send(Event::Prepared(place.link));
    let cell = match (gate.wait(), prepared) {
        (Some(opened), Ok(ready)) => {
            let start = opened + STAGGER.saturating_mul(number(place.link));
            thread::sleep(start.saturating_duration_since(Instant::now()));
            place.measure(ready)
        }
        (None, Ok(_)) => return,
        (_, Err(why)) => place.failed(why),
    };
    let _ = events.send(Event::Done(place.link, Box::new(cell)));
}

/// Waits for all cells, shows how far they are, and ends clients that outstay their budget.
fn collect(
    inbox: &Receiver<Event>,
    gate: &Gate,
    shared: &Shared<'_>,
    (mut tally, until): (Tally, Option<Instant>),
    interrupt: &SignalFd,
) -> Option<Vec<Cell>> {
    let longest = shared.plan.budget + STAGGER.saturating_mul(number(shared.lab.links()));
    let mut progress = Live::new();
    while !tally.is_complete() {
        match inbox.recv_timeout(TICK) {
            Ok(event) => tally.take_in(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if matches!(interrupt.read_signal(), Ok(Some(_))) {
            progress.finish();
            return None;
        }
        let spent = gate.opened().map(|opened| opened.elapsed());
        let is_over = until.is_some_and(|until| Instant::now() > until);
        if is_over || spent.is_some_and(|spent| spent > longest + GRACE) {
            shared.processes.end_all();
        }
        let left = spent.map(|spent| longest.saturating_sub(spent));
        let standing = tally.standing(left);
        progress.show(standing.phase, standing.done, standing.cells, &standing.to_string());
    }
    progress.finish();
    tally.into_results()
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn setting(plan: &Plan, (real_time, device): (RealTime, &str), started_unix_s: u64) -> Setting {
    let about = plan.about.clone();
    Setting {
        version: about.version,
        machine: Machine {
            kernel: machine::kernel(),
            processor: machine::processor(),
            cores: machine::cores(),
            revision: about.revision,
            date: record::calendar::day(started_unix_s),
            profile: about.profile,
            command: about.command,
        },
        device: device.to_string(),
        rootless: plan.privilege == Privilege::UserNamespace,
        real_time: real_time.priority,
        memory_locked: real_time.memory_locked,
        stolen: None,
        seed: plan.seed,
        started_unix_s,
        elapsed_s: 0.0,
        budget_s: plan.budget.as_secs_f64(),
        stagger_ms: u64::try_from(STAGGER.as_millis()).unwrap_or(u64::MAX),
        carrier: pair::CARRIER.to_string(),
        encoding: pair::AUTO.to_string(),
        bound_encoding: about.bound_encoding,
        url: plan.url.as_ref().map(ToString::to_string),
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use record::result::{Exchange, Fetch};

    use super::*;

    /// A cell whose fetches took so long in all, and whose packets were so late.
    fn cell(elapsed_s: f64, late_us: u64) -> Cell {
        let exchange = Exchange {
            name: "track 1".to_string(),
            start_s: 0.0,
            elapsed_s,
            body_bytes: 1,
            status: Some(200),
            error: None,
            censored: false,
            connections: 0,
        };
        let fetch = Fetch { measured: vec![exchange], ..Fetch::default() };
        Cell {
            network: "los".to_string(),
            service: "soap".to_string(),
            mode: Mode::Direct,
            congestion_control: Default::default(),
            fetch: Some(fetch),
            failure: None,
            up: Default::default(),
            down: Default::default(),
            lateness: Lateness { p99_us: late_us, ..Lateness::default() },
            repeated: false,
        }
    }

    #[test]
    fn what_is_spoilt_is_done_once_more_while_there_is_time() {
        let cells = [cell(10.0, 400), cell(10.0, 600), cell(100.0, 9000), cell(1.0, 501)];
        assert_eq!(to_repeat(&cells, Duration::from_secs(200)), [1, 2, 3]);
        assert_eq!(to_repeat(&cells, Duration::from_secs(110)), [1, 3]);
        assert!(to_repeat(&cells, Duration::ZERO).is_empty());
        // Announced as five minutes, it takes six and two thirds at most.
        assert_eq!(longest(Duration::from_secs(230)), Duration::from_secs(400));
    }

    #[test]
    fn of_two_attempts_the_one_that_is_less_spoilt_counts() {
        let mut cells: Vec<Cell> = (0..4).map(|_| cell(10.0, 5000)).collect();
        let broken = Cell { failure: Some("stopped".to_string()), ..cell(8.0, 0) };
        take_better(&mut cells, &[1, 2, 3], vec![cell(9.0, 100), cell(9.0, 7000), broken]);
        let came: Vec<_> =
            cells.iter().map(|one| (one.repeated, one.elapsed_s(), one.is_spoilt())).collect();
        let [kept, better] = [(true, 10.0, true), (true, 9.0, false)];
        assert_eq!(came, [(false, 10.0, true), better, kept, kept]);
    }
}
