//! All links and ways of a study: those on one host one after another, the rest side by side.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use record::calls::CallsRun;
use record::machine::Machine;

use super::cell::Cell;
use super::plan::{LinkPlan, Plan, WayPlan, plain};
use crate::error::{Doing, Error, Result};
use crate::experiment::live::{Live, clock};
use crate::experiment::machine;
use crate::experiment::pair::Keys;
use crate::experiment::processes::Processes;
use crate::experiment::scratch::Scratch;
use crate::lab::{Lab, LinkSpec, Options};
use crate::signals;

/// Most links and ways side by side.
pub const MAX_JOBS: usize = 64;
/// Largest file of a run that is read back, and most files of a directory.
const MAX_RUN_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 10_000;
/// Decides every chance on a link.
const SEED: u64 = 1;
/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(200);
/// What makes two studies' numbers differ where their texts do (FNV-1a of 64 bits).
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x100_0000_01b3);

/// A study to be made.
#[derive(Clone, Debug)]
pub struct Order {
    /// The binary that is started on the hosts.
    pub program: PathBuf,
    /// Where the runs are, or go: a file for each link and way.
    pub directory: PathBuf,
    /// Most links and ways side by side, 1 to [`MAX_JOBS`]; those on one host are alone.
    pub jobs: usize,
    /// Version of longwire.
    pub version: String,
    /// Revision of the sources, where known.
    pub revision: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
}

/// How a study ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Links and ways that are there now, of those asked for.
    pub done: usize,
    /// Links and ways asked for.
    pub runs: usize,
    /// Why some could not be done.
    pub failures: Vec<String>,
    /// A signal ended it; the same command goes on.
    pub is_interrupted: bool,
}

/// A link and a way.
type Pair<'a> = (&'a LinkPlan, &'a WayPlan);

/// What all runs share.
struct Study<'a> {
    plan: &'a Plan,
    order: &'a Order,
    lab: &'a Lab,
    keys: &'a Keys,
    processes: &'a Processes,
    scratch: &'a Path,
}

/// Makes the runs of a study that are not there yet, with progress on stderr.
///
/// To be called after [`acquire`](crate::acquire), while no other thread runs.
///
/// # Errors
/// [`Error::Machine`] for what is not permitted here, [`Error::System`] when results cannot be
/// kept.
pub fn run(plan: &Plan, order: &Order) -> Result<Ended> {
    let directory = &order.directory;
    fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
    let interrupt = signals::catch()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let keys = Keys::make(&order.program, scratch.path()).map_err(Error::Caller)?;
    let id = format!("calls-{}", std::process::id());
    let options = Options { id, links_max: order.jobs, ..Options::default() };
    let lab = Lab::build_with(&[], &options)?;
    let processes = Processes::new(scratch.path().to_path_buf());
    let study = Study {
        plan,
        order,
        lab: &lab,
        keys: &keys,
        processes: &processes,
        scratch: scratch.path(),
    };
    let all = plan.links.iter().flat_map(|link| plan.ways.iter().map(move |way| (link, way)));
    let (alone, beside): (Vec<Pair<'_>>, _) = all.partition(|(link, _)| link.config.is_none());
    let mut ended = Ended { runs: alone.len() + beside.len(), ..Ended::default() };
    for (pairs, jobs) in [(alone, 1), (beside, order.jobs.clamp(1, MAX_JOBS))] {
        if !ended.is_interrupted {
            study.drive(&pairs, jobs, &interrupt, &mut ended);
        }
    }
    processes.end_all();
    Ok(ended)
}

impl Study<'_> {
    fn drive(&self, pairs: &[Pair<'_>], jobs: usize, interrupt: &SignalFd, ended: &mut Ended) {
        let next = AtomicUsize::new(0);
        let (sender, inbox) = sync_channel(jobs);
        let (mut live, begun) = (Live::new(), Instant::now());
        thread::scope(|scope| {
            for _ in 0..jobs.min(pairs.len()) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || self.work(pairs, next, &sender));
            }
            drop(sender);
            loop {
                let past = ended.done + ended.failures.len();
                let elapsed = clock(begun.elapsed());
                let text = format!("{past} of {} links and ways, {elapsed} elapsed", ended.runs);
                live.show("calls", past, ended.runs, &text);
                match inbox.recv_timeout(TICK) {
                    Ok(Ok(())) => ended.done += 1,
                    Ok(Err(why)) => ended.failures.push(why),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if matches!(interrupt.read_signal(), Ok(Some(_))) {
                    ended.is_interrupted = true;
                    next.store(usize::MAX / 2, Ordering::Relaxed);
                    self.processes.end_all();
                }
            }
        });
        live.finish();
    }

    fn work(
        &self,
        pairs: &[Pair<'_>],
        next: &AtomicUsize,
        tell: &SyncSender<std::result::Result<(), String>>,
    ) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(pair) = pairs.get(number) else { return };
            let done = if self.is_there(*pair) { Ok(()) } else { self.measure(number, *pair) };
            let (link, way) = pair;
            // Who watches outlives the workers.
            let _ = tell.send(done.map_err(|why| format!("{}, {}: {why}", link.name, way.name)));
        }
    }

    fn measure(&self, number: usize, (link, way): Pair<'_>) -> std::result::Result<(), String> {
        let is_one_host = link.config.is_none();
        // On one host it is there for its two ends alone.
        let config = link.config.clone().unwrap_or_default();
        let mut settings = if is_one_host { Vec::new() } else { config.settings() };
        if link.slowdown > 1 {
            settings.push(("slowdown".to_owned(), link.slowdown.to_string()));
        }
        let spec = LinkSpec::new(format!("calls-{number}"), config, SEED);
        let added = self.lab.add(&spec).map_err(|error| error.to_string())?;
        let cell = Cell {
            plan: self.plan,
            way,
            link: &added,
            is_one_host,
            slowdown: link.slowdown,
            program: &self.order.program,
            processes: self.processes,
            keys: self.keys,
            scratch: self.scratch,
        };
        let (cells, lateness) = cell.measure()?;
        if self.processes.are_stopped() {
            return Err("stopped".to_owned());
        }
        let run = CallsRun {
            study: self.plan.name.clone(),
            fingerprint: fingerprint(self.plan),
            link: link.name.clone(),
            settings,
            way: way.name.clone(),
            version: self.order.version.clone(),
            machine: self.machine(),
            cells,
            lateness,
        };
        keep(&self.path((link, way)), &run).map_err(|error| error.to_string())?;
        let failed = run.cells.iter().find_map(|cell| {
            cell.failure.as_ref().map(|why| format!("{} {:?}: {why}", cell.method, cell.size))
        });
        failed.map_or(Ok(()), Err)
    }

    fn machine(&self) -> Machine {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Machine {
            kernel: machine::kernel(),
            processor: machine::processor(),
            cores: machine::cores(),
            revision: self.order.revision.clone(),
            date: record::calendar::day(since.unwrap_or_default().as_secs()),
            profile: self.order.profile.clone(),
            command: self.order.command.clone(),
        }
    }

    /// Whether a run of this very study is there already, and whole.
    fn is_there(&self, pair: Pair<'_>) -> bool {
        read(&self.path(pair)).is_ok_and(|run| {
            run.fingerprint == fingerprint(self.plan)
                && run.cells.iter().all(|cell| cell.failure.is_none())
        })
    }

    fn path(&self, (link, way): Pair<'_>) -> PathBuf {
        let (link, way) = (plain(&link.name), plain(&way.name));
        self.order.directory.join(format!("{link}--{way}.json"))
    }
}

/// A number of all that the study says, and of how many calls there are.
fn fingerprint(plan: &Plan) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(FNV.1);
    let counts = format!("{} {}", plan.count, plan.warm_up);
    format!("{:016x}", plan.text.bytes().chain(counts.bytes()).fold(FNV.0, step))
}

/// Writes a run; it is there whole or not at all.
pub(super) fn keep(path: &Path, run: &CallsRun) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let text = serde_json::to_vec(run).map_err(std::io::Error::other).doing(doing)?;
    let part = path.with_extension("part");
    let mut file = File::create(&part).doing(doing)?;
    file.write_all(&text).doing(doing)?;
    file.sync_all().doing(doing)?;
    fs::rename(&part, path).doing(doing)
}

fn read(path: &Path) -> Result<CallsRun> {
    let doing = || format!("read {}", path.display());
    let mut text = Vec::new();
    File::open(path).doing(doing)?.take(MAX_RUN_BYTES).read_to_end(&mut text).doing(doing)?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Caller(format!("{} is no run of calls: {error}", path.display())))
}

/// All runs of a directory.
///
/// # Errors
/// [`Error::Caller`] for a file that is no run, [`Error::System`] when it cannot be read.
pub fn load(directory: &Path) -> Result<Vec<CallsRun>> {
    let doing = || format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).doing(doing)?.take(MAX_FILES) {
        let path = entry.doing(doing)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}
