//! A scenario in all its cases, each several times with seeds of its own, side by side.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use link::net::{Case, Format, Resolved, Scenario, Transport};
use nix::sys::signalfd::SignalFd;
use record::machine::Machine;
use record::net::NetRun;

use super::movement::Movement;
use super::run::{Shared, Turn};
use super::workload::Workload;
use super::workload::command::{Commands, HostCommand};
use super::workload::message::Messages;
use super::workload::topics::Publications;
use crate::error::{Doing, Error, Result};
use crate::experiment::live::{Live, clock};
use crate::experiment::machine;
use crate::experiment::processes::Processes;
use crate::experiment::scratch::Scratch;
use crate::lab::raise_descriptor_limit;
use crate::signals;

/// Most runs side by side.
pub const MAX_JOBS: usize = 64;
/// Most runs of a case.
pub const MAX_RUNS: u32 = 10_000;
/// Largest file of a run that is read back.
const MAX_RUN_BYTES: u64 = 512 * 1024 * 1024;
/// Most files of runs in a directory.
const MAX_FILES: usize = 100_000;
/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(200);
/// What a run takes besides its scenario's time, for the time that is left.
const SET_UP: Duration = Duration::from_secs(3);

/// A study to be made.
#[derive(Clone, Debug)]
pub struct Order {
    /// The binary that is started on the hosts.
    pub program: PathBuf,
    /// Where the runs are, or go: a file each.
    pub directory: PathBuf,
    /// The seed of the first run of each case; the next one has the next number. The scenario's own
    /// when none.
    pub seed: Option<u64>,
    /// Runs of each case, 1 to [`MAX_RUNS`].
    pub runs: u32,
    /// Most runs side by side, 1 to [`MAX_JOBS`].
    pub jobs: usize,
    /// Only cases whose names are among these; all when none is given.
    pub cases: Vec<String>,
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
    /// Runs that are there now, of those asked for.
    pub done: usize,
    /// Runs asked for.
    pub runs: usize,
    /// Why runs could not be done.
    pub failures: Vec<String>,
    /// A signal ended it; the same command goes on.
    pub is_interrupted: bool,
}

/// A run to be done.
#[derive(Clone, Copy)]
struct Planned<'a> {
    case: &'a Case,
    seed: u64,
    number: usize,
}

/// Makes the runs of a scenario that are not there yet, with progress on stderr.
///
/// To be called after [`acquire`](crate::acquire), while no other thread runs.
///
/// # Errors
/// [`Error::Caller`] for a case that there is not or that no workload can do, [`Error::Machine`]
/// for what is not permitted here, [`Error::System`] when results cannot be kept.
pub fn run(resolved: &Resolved, order: &Order) -> Result<Ended> {
    let cases = possible(resolved, cases(resolved, &order.cases)?, &order.cases)?;
    let directory = &order.directory;
    fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
    let interrupt = signals::catch()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let processes = Processes::new(scratch.path().to_path_buf());
    let stop = AtomicBool::new(false);
    let movement = Movement::of(resolved);
    let fingerprint = resolved.fingerprint();
    raise_descriptor_limit(resolved.scenario.nodes.len() * order.jobs)?;
    let shared = Shared {
        resolved,
        movement: &movement,
        fingerprint,
        program: &order.program,
        processes: &processes,
        scratch: scratch.path(),
        stop: &stop,
    };
    let planned = planned(resolved, &cases, order);
    let study = Study { shared: &shared, order, planned: &planned, next: AtomicUsize::new(0) };
    let ended = study.drive(&interrupt);
    processes.end_all();
    ended
}

/// Runs commands on hosts of a scenario, with the output of this program, until all have ended or
/// the scenario has. Returns the first exit status that is not 0.
///
/// # Errors
/// As [`run`].
pub fn execute(
    resolved: &Resolved,
    commands: &[HostCommand],
    program: &Path,
    seed: u64,
) -> Result<(i32, NetRun)> {
    let interrupt = signals::catch()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let processes = Processes::new(scratch.path().to_path_buf());
    let stop = AtomicBool::new(false);
    let shared = Shared {
        resolved,
        movement: &Movement::of(resolved),
        fingerprint: resolved.fingerprint(),
        program,
        processes: &processes,
        scratch: scratch.path(),
        stop: &stop,
    };
    let workload = Commands::new(commands);
    let turn = Turn { shared: &shared, name: "net".to_owned(), seed, workload: &workload };
    let (sender, inbox) = sync_channel(1);
    thread::scope(|scope| {
        let work = move || {
            // Received below.
            let _ = sender.send(turn.work());
        };
        scope.spawn(work);
        loop {
            match inbox.recv_timeout(TICK) {
                Ok(run) => return run,
                Err(RecvTimeoutError::Timeout) => {
                    if matches!(interrupt.read_signal(), Ok(Some(_))) {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Caller("the run broke off".to_owned()));
                }
            }
        }
    })
    .map(|run| (workload.status(), run))
}

/// The cases asked for; a scenario without any has HTTP with JSON.
fn cases(resolved: &Resolved, names: &[String]) -> Result<Vec<Case>> {
    let mut cases = resolved.scenario.cases.clone();
    if cases.is_empty() {
        let (transport, format) = (Transport::Http, Format::Json);
        let name = "HTTP/JSON".to_owned();
        cases.push(Case { name, transport, format, topics: None, service: Vec::new() });
    }
    if let Some(missing) = names.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        let known: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let meant = link::nearest(missing, &known)
            .map_or(String::new(), |one| format!("did you mean '{one}'? "));
        let missing: String = missing.chars().take(60).flat_map(char::escape_debug).collect();
        return Err(Error::Caller(format!(
            "the scenario has no case '{missing}': {meant}it has {}",
            known.join(", ")
        )));
    }
    cases.retain(|case| names.is_empty() || names.contains(&case.name));
    Ok(cases)
}

/// Those of the cases that can be done. One that was asked for by name must be; others are left
/// out with a line that says why.
fn possible(resolved: &Resolved, cases: Vec<Case>, asked: &[String]) -> Result<Vec<Case>> {
    let mut possible = Vec::new();
    for case in cases {
        match workload(&resolved.scenario, &case).map(drop) {
            Ok(()) => possible.push(case),
            Err(why) if asked.contains(&case.name) => return Err(Error::Caller(why)),
            Err(why) => eprintln!("left out: {why}"),
        }
    }
    if possible.is_empty() {
        return Err(Error::Caller("no case of the scenario can be done".to_owned()));
    }
    Ok(possible)
}

/// What runs on the nodes in a case: publications, or the messaging service.
///
/// # Errors
/// One line for a case that cannot be done.
fn workload<'a>(
    scenario: &'a Scenario,
    case: &'a Case,
) -> std::result::Result<Box<dyn Workload + 'a>, String> {
    Ok(match case.topics {
        Some(_) => Box::new(Publications::new(scenario, case)?),
        None => Box::new(Messages::new(scenario, case)?),
    })
}

/// All runs asked for: the first of each case, then the second.
fn planned<'a>(resolved: &Resolved, cases: &'a [Case], order: &Order) -> Vec<Planned<'a>> {
    let first = order.seed.unwrap_or(resolved.scenario.seed);
    let seeds = (0..u64::from(order.runs)).map(|run| first.wrapping_add(run));
    let all = seeds.flat_map(|seed| cases.iter().map(move |case| (case, seed)));
    all.enumerate().map(|(number, (case, seed))| Planned { case, seed, number }).collect()
}

struct Study<'a> {
    shared: &'a Shared<'a>,
    order: &'a Order,
    planned: &'a [Planned<'a>],
    next: AtomicUsize,
}

/// What a worker says of a run: why it was not done, if it was not.
type Reported = (usize, std::result::Result<(), String>);

impl Study<'_> {
    fn drive(&self, interrupt: &SignalFd) -> Result<Ended> {
        let jobs = self.order.jobs.clamp(1, MAX_JOBS).min(self.planned.len().max(1));
        let (sender, inbox) = sync_channel(jobs);
        thread::scope(|scope| {
            for _ in 0..jobs {
                let sender = sender.clone();
                scope.spawn(move || self.work(jobs, &sender));
            }
            drop(sender);
            self.watch(jobs, &inbox, interrupt)
        })
    }

    /// Takes what workers say, and shows it.
    fn watch(
        &self,
        jobs: usize,
        inbox: &Receiver<Reported>,
        interrupt: &SignalFd,
    ) -> Result<Ended> {
        let mut live = Live::new();
        let mut ended = Ended { runs: self.planned.len(), ..Ended::default() };
        let begun = Instant::now();
        loop {
            let text = self.text(&ended, jobs, begun);
            live.show("runs", ended.done + ended.failures.len(), ended.runs, &text);
            match inbox.recv_timeout(TICK) {
                Ok((_, Ok(()))) => ended.done += 1,
                Ok((number, Err(why))) => {
                    let name =
                        self.planned.get(number).map_or_else(String::new, |one| self.name(one));
                    ended.failures.push(format!("{name}: {why}"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if matches!(interrupt.read_signal(), Ok(Some(_))) {
                ended.is_interrupted = true;
                self.shared.stop.store(true, Ordering::Relaxed);
            }
        }
        live.finish();
        Ok(ended)
    }

    fn text(&self, ended: &Ended, jobs: usize, begun: Instant) -> String {
        let (past, all) = (ended.done + ended.failures.len(), ended.runs);
        let one = self.shared.resolved.scenario.duration + SET_UP;
        let rounds = u32::try_from((all - past.min(all)).div_ceil(jobs)).unwrap_or(u32::MAX);
        let failed = match ended.failures.len() {
            0 => String::new(),
            count => format!(", {count} failed"),
        };
        format!(
            "{past} of {all} runs{failed}, {} elapsed, about {} left",
            clock(begun.elapsed()),
            clock(one.saturating_mul(rounds))
        )
    }

    /// Does runs until none is left.
    fn work(&self, jobs: usize, tell: &SyncSender<Reported>) {
        while let Some(one) = self.planned.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.shared.stop.load(Ordering::Relaxed) {
                return;
            }
            let result = match self.is_there(one) {
                true => Ok(()),
                false => self.measure(one, jobs).map_err(|error| error.to_string()),
            };
            if self.shared.stop.load(Ordering::Relaxed) && result.is_err() {
                return;
            }
            // Who watches outlives the workers.
            let _ = tell.send((one.number, result));
        }
    }

    fn measure(&self, one: &Planned<'_>, jobs: usize) -> Result<()> {
        let scenario = &self.shared.resolved.scenario;
        let workload = workload(scenario, one.case).map_err(Error::Caller)?;
        let name = format!("run-{}", one.number);
        let turn = Turn { shared: self.shared, name, seed: one.seed, workload: &*workload };
        let mut run = turn.work()?;
        run.case.clone_from(&one.case.name);
        run.transport = one.case.transport.name().to_owned();
        run.format = one.case.format.name().to_owned();
        run.version.clone_from(&self.order.version);
        run.machine = Machine {
            kernel: machine::kernel(),
            processor: machine::processor(),
            cores: machine::cores(),
            revision: self.order.revision.clone(),
            date: record::calendar::day(run.started_unix_s),
            profile: self.order.profile.clone(),
            command: self.order.command.clone(),
        };
        run.effort.parallel = u32::try_from(jobs).unwrap_or(u32::MAX);
        keep(&self.path(one), &run)
    }

    /// Whether a run of this very scenario by this program is there already.
    fn is_there(&self, one: &Planned<'_>) -> bool {
        let fingerprint = format!("{:016x}", self.shared.fingerprint);
        read(&self.path(one)).is_ok_and(|run| {
            let is_it =
                run.fingerprint == fingerprint && run.seed == one.seed && run.case == one.case.name;
            // One of another program would be a figure of that.
            let order = self.order;
            is_it && run.version == order.version && run.machine.revision == order.revision
        })
    }

    fn path(&self, one: &Planned<'_>) -> PathBuf {
        self.order.directory.join(format!("{}.json", self.name(one)))
    }

    /// The case in the characters of a file's name, and the seed.
    fn name(&self, one: &Planned<'_>) -> String {
        format!("{}-{}", one.case.file_name(), one.seed)
    }
}

/// Writes a run; it is there whole or not at all.
fn keep(path: &Path, run: &NetRun) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let text = serde_json::to_vec(run).map_err(std::io::Error::other).doing(doing)?;
    let part = path.with_extension("part");
    let mut file = File::create(&part).doing(doing)?;
    file.write_all(&text).doing(doing)?;
    file.sync_all().doing(doing)?;
    fs::rename(&part, path).doing(doing)
}

fn read(path: &Path) -> Result<NetRun> {
    let doing = || format!("read {}", path.display());
    let mut text = Vec::new();
    let file = File::open(path).doing(doing)?;
    file.take(MAX_RUN_BYTES).read_to_end(&mut text).doing(doing)?;
    serde_json::from_slice(&text).map_err(|error| {
        Error::Caller(format!("{} is no run of a scenario: {error}", path.display()))
    })
}

/// All runs of a directory, by case and seed.
///
/// What is no run is left out, with a line on stderr that says so; of each run the sums of what was
/// in the air are there, and not the transmissions one by one.
///
/// # Errors
/// [`Error::System`] when the directory or a file cannot be read.
pub fn load(directory: &Path) -> Result<Vec<NetRun>> {
    let doing = || format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).doing(doing)?.take(MAX_FILES) {
        let path = entry.doing(doing)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut runs = Vec::new();
    for path in paths {
        match read(&path) {
            // What was in the air one by one is for the eyes of others, and long.
            Ok(run) => runs.push(NetRun { transmissions: Vec::new(), ..run }),
            Err(Error::Caller(why)) => eprintln!("left out: {why}"),
            Err(error) => return Err(error),
        }
    }
    runs.sort_by(|one, other| (&one.case, one.seed).cmp(&(&other.case, other.seed)));
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_kept_whole_and_read_back() {
        let scratch = Scratch::new().unwrap();
        let run = |case: &str, seed| NetRun { case: case.to_owned(), seed, ..NetRun::default() };
        for (name, one) in [("b.json", run("b", 1)), ("a.json", run("a", 2))] {
            keep(&scratch.path().join(name), &one).unwrap();
        }
        fs::write(scratch.path().join("notes.txt"), "no run").unwrap();
        let cases: Vec<String> =
            load(scratch.path()).unwrap().into_iter().map(|run| run.case).collect();
        assert_eq!(cases, ["a", "b"]);
        fs::write(scratch.path().join("c.json"), "{").unwrap();
        let line = read(&scratch.path().join("c.json")).unwrap_err().to_string();
        assert!(line.contains("c.json is no run") && !line.contains('\n'), "{line}");
        assert_eq!(load(scratch.path()).unwrap().len(), 2);
    }
}
