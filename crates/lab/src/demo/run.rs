//! All cells, from the first host to the last figure.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signalfd::SignalFd;
use record::demo::{Cell, Demo, Mode, Service, Setting};
use record::machine::Machine;
use record::result::Lateness;

use super::cell::{Place, Shared};
use super::gate::Gate;
use super::outside::Outside;
use super::plan::{Link, Plan};
use super::tally::{Event, Tally};
use crate::error::{Doing, Error, Result};
use crate::experiment::live::Live;
use crate::experiment::machine;
use crate::experiment::pair::{self, Keys};
use crate::experiment::processes::Processes;
use crate::experiment::scratch::Scratch;
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
/// An odd number far from small ones, so that neighbouring cells have unlike seeds.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A network, a service and a way.
#[derive(Clone, Copy)]
struct Index {
    network: usize,
    service: usize,
    mode: Mode,
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
    let links = plan.links()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let keys = Keys::make(&plan.program, scratch.path()).map_err(Error::Caller)?;
    let indices = indices(links.len(), plan.services.len());
    let (begun, begun_unix_s) = (Instant::now(), unix_s());
    let time_before = ProcessorTime::now();
    let lab = build(plan, &links, &indices)?;
    let processes = Processes::new(scratch.path().to_path_buf());
    let outside = plan.url.as_ref().map(Outside::of);
    let shared = Shared {
        plan,
        outside: outside.as_ref(),
        lab: &lab,
        processes: &processes,
        keys: &keys,
        scratch: scratch.path(),
    };
    let Some(cells) = run_cells(&shared, &links, &indices, &interrupt) else { return Ok(None) };
    let stolen = time_before.zip(ProcessorTime::now());
    let setting = Setting {
        stolen: stolen.and_then(|(before, after)| after.stolen_since(&before)),
        elapsed_s: begun.elapsed().as_secs_f64(),
        ..setting(plan, &lab, begun_unix_s)
    };
    let lateness = Lateness::merged(cells.iter().map(|cell| &cell.lateness));
    let networks = links.into_iter().map(|link| link.network).collect();
    Ok(Some(Demo { setting, networks, services: plan.services.clone(), cells, lateness }))
}

/// Network by network, the three ways to a service next to each other.
fn indices(networks: usize, services: usize) -> Vec<Index> {
    let rows = (0..networks).flat_map(|network| (0..services).map(move |at| (network, at)));
    rows.flat_map(|(network, service)| Mode::ALL.map(|mode| Index { network, service, mode }))
        .collect()
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
    let row = (index.network * services.len() + index.service) as u64;
    seed.wrapping_add(row.wrapping_mul(SEED_STEP))
}

/// Runs all cells; `None` when a signal came.
fn run_cells(
    shared: &Shared<'_>,
    links: &[Link],
    indices: &[Index],
    interrupt: &SignalFd,
) -> Option<Vec<Cell>> {
    let gate = Gate::new(indices.len());
    // Two events per cell: nobody ever waits for the receiver.
    let (events, inbox) = sync_channel(2 * indices.len());
    thread::scope(|scope| {
        for (link, index) in indices.iter().enumerate() {
            let network = &links[index.network].network;
            let service = &shared.plan.services[index.service];
            let place = Place { shared, link, network, service, mode: index.mode };
            let (gate, events) = (&gate, events.clone());
            scope.spawn(move || run_cell(&place, gate, &events));
        }
        let networks = indices.iter().map(|index| links[index.network].network.name.clone());
        let cells = collect(&inbox, &gate, shared, Tally::new(networks), interrupt);
        // Whatever still runs would keep its cell's thread waiting.
        gate.close();
        shared.processes.end_all();
        cells
    })
}

fn run_cell(place: &Place<'_>, gate: &Gate, events: &SyncSender<Event>) {
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
    mut tally: Tally,
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
        if spent.is_some_and(|spent| spent > longest + GRACE) {
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

fn setting(plan: &Plan, lab: &Lab, started_unix_s: u64) -> Setting {
    let real_time = lab.real_time();
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
        device: lab.device().name().to_string(),
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
        encoding: pair::ENCODING.to_string(),
        bound_encoding: about.bound_encoding,
        url: plan.url.as_ref().map(ToString::to_string),
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
