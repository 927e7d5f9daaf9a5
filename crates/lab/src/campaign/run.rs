//! A campaign from the first host to the last figure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signalfd::SignalFd;
use record::campaign::{Run, Setting};
use record::machine::Machine;

use super::job::{Job, RunningJob, Shared, Turn};
use super::order::{self, Planned};
use super::plan::{Expected, Plan, share};
use super::progress::{Ended as Said, Progress, Reporter};
use super::store::{Frame, RunKey, Store};
use super::throttle::Throttle;
use super::verdict;
use crate::error::{Doing, Error, Result};
use crate::experiment::live::{Live, clock};
use crate::experiment::machine;
use crate::experiment::pair::Keys;
use crate::experiment::processes::Processes;
use crate::experiment::scratch::Scratch;
use crate::lab::{Lab, Options};
use crate::namespace::Privilege;
use crate::processor::ProcessorTime;
use crate::signals;

/// Most runs side by side, whatever the machine; each has up to five processes.
pub const MAX_PARALLEL: usize = 700;
/// A run that takes longer is done again at once: waiting for it would hold up the end.
const LONG_S: f64 = 200.0;
/// How often the processors are looked at, and how often the loop looks around.
const BUSY_INTERVAL: Duration = Duration::from_millis(300);
/// How much is expected of the machine counts as much as what was seen in so many seconds.
const EXPECTED_FOR_S: f64 = 60.0;
const TICK: Duration = Duration::from_millis(10);
/// The share of the memory that is free at the start which runs may take.
const MEMORY_SHARE: f64 = 0.7;
/// Stack of a job's thread.
const STACK_BYTES: usize = 512 * 1024;

/// A campaign to be run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The binary that is started on the hosts.
    pub program: PathBuf,
    /// Where the results are, or go.
    pub directory: PathBuf,
    /// Most runs side by side; [`MAX_PARALLEL`] when none.
    pub parallel: Option<usize>,
    /// Do flagged runs once more: with fewer side by side the machine may keep up.
    pub again: bool,
    /// Where the right to make hosts comes from: what [`acquire`](crate::acquire) gave.
    pub privilege: Privilege,
    /// Version of longwire.
    pub version: String,
    /// Revision of the sources, where known.
    pub revision: Option<String>,
    /// `release` or `debug`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
    /// A file that says once a second how far it is, for programs; see [`Progress`].
    pub progress: Option<PathBuf>,
}

/// How a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every run is done.
    Complete,
    /// By a signal; the same command goes on where it stopped.
    Interrupted {
        /// Runs done so far.
        done: usize,
        /// All runs.
        runs: usize,
    },
}

/// Runs a plan, or what is left of it, with progress on stderr.
///
/// To be called after [`acquire`](crate::acquire), while no other thread runs.
///
/// # Errors
/// [`Error::Caller`] for results of another plan or version, [`Error::Machine`] for what is not
/// permitted here, [`Error::System`] when results cannot be kept: what is finished is kept.
pub fn run(plan: &Plan, order: &Order) -> Result<Ended> {
    let mut store = Store::open(&order.directory, plan, &order.version)?;
    let interrupt = signals::catch()?;
    let scratch = Scratch::new().doing(|| "make a directory for temporary files".to_string())?;
    let keys = Keys::make(&order.program, scratch.path()).map_err(Error::Caller)?;
    let most = order.parallel.unwrap_or(MAX_PARALLEL).clamp(1, MAX_PARALLEL);
    let id = format!("run-{}", std::process::id());
    let options = Options { id, links_max: most, ..Options::default() };
    let lab = Lab::build_with(&[], &options)?;
    let processes = Processes::new(scratch.path().to_path_buf());
    let (program, scratch) = (order.program.as_path(), scratch.path());
    let (lab, processes, keys) = (&lab, &processes, &keys);
    let shared = Shared { plan, program, lab, processes, keys, scratch };
    let session = Session::begin(&shared, order, &mut store)?;
    thread::scope(|scope| {
        let finished = store.finished(order.again)?;
        let mut driver = Driver::new(&shared, &mut store, session, (most, finished))?;
        driver.reporter = order.progress.clone().map(Reporter::new);
        let ended = driver.drive(scope, &interrupt);
        // Whatever still runs would keep its thread waiting.
        processes.end_all();
        driver.finish()?;
        ended
    })
}

/// What one start of the campaign adds to its setting.
struct Session {
    setting: Setting,
    begun: Instant,
    elapsed_before_s: f64,
    time_before: Option<ProcessorTime>,
}

impl Session {
    fn begin(shared: &Shared<'_>, order: &Order, store: &mut Store) -> Result<Self> {
        let earlier = store.setting()?;
        let elapsed_before_s = earlier.as_ref().map_or(0.0, |setting| setting.elapsed_s);
        let setting = setting(shared, order, earlier);
        store.put_frame(&frame(shared.plan, setting.clone()))?;
        let (begun, time_before) = (Instant::now(), ProcessorTime::now());
        Ok(Self { setting, begun, elapsed_before_s, time_before })
    }

    /// The setting as it is now.
    fn setting(&self, parallel_peak: usize) -> Setting {
        let stolen = self.time_before.as_ref().zip(ProcessorTime::now());
        Setting {
            elapsed_s: self.elapsed_before_s + self.begun.elapsed().as_secs_f64(),
            stolen: stolen.and_then(|(before, after)| after.stolen_since(before)),
            parallel_peak: parallel_peak.max(self.setting.parallel_peak),
            ..self.setting.clone()
        }
    }
}

/// Something that a job reports.
enum Event {
    Run(Box<Measured>),
    Over { number: u64, expected_s: f64, memory_bytes: u64, took_s: f64 },
}

/// A run that has ended.
struct Measured {
    cell: usize,
    turn: Turn,
    run: Run,
}

/// Starts jobs, takes in what comes of them.
struct Driver<'a> {
    shared: &'a Shared<'a>,
    store: &'a mut Store,
    session: Session,
    queue: VecDeque<Planned>,
    throttle: Throttle,
    events: SyncSender<Event>,
    inbox: Receiver<Event>,
    tally: Tally,
    memory_left_bytes: u64,
    reporter: Option<Reporter>,
}

/// How far the campaign is.
#[derive(Default)]
struct Tally {
    runs: usize,
    done: usize,
    active: usize,
    peak: usize,
    jobs: u64,
    repeated: usize,
    flagged: usize,
    failed: usize,
    /// The greatest p99 of the runs that ended.
    late_us: u64,
    /// Shares of the machine that jobs under way at once are expected to take, on the mean.
    pace: f64,
    /// Expected and true seconds of jobs that ended: what the estimate is worth.
    expected_s: f64,
    took_s: f64,
    /// The true ones times the share of the machine that each took.
    worked_s: f64,
    /// When jobs under way began, their expected seconds and packets a second.
    under_way: BTreeMap<u64, (Duration, f64, f64)>,
}

impl<'a> Driver<'a> {
    fn new(
        shared: &'a Shared<'a>,
        store: &'a mut Store,
        session: Session,
        (most, finished): (usize, BTreeSet<RunKey>),
    ) -> Result<Self> {
        let horizon_s = shared.plan.expected_here(most).total_s();
        let queue = VecDeque::from(order::jobs(shared.plan, &finished, horizon_s));
        // Each job has few events under way: the loop takes them in all the time.
        let (events, inbox) = sync_channel(4 * MAX_PARALLEL);
        let memory_left_bytes = memory_bytes();
        let all_s: f64 = queue.iter().map(|one| one.expected_s * weight(one.load)).sum();
        let pace = all_s / horizon_s.max(1.0);
        let (runs, done) = (shared.plan.runs(), finished.len());
        let tally = Tally { runs, done, pace, ..Tally::default() };
        let throttle = Throttle::new(most);
        Ok(Self {
            shared,
            store,
            session,
            queue,
            throttle,
            events,
            inbox,
            tally,
            memory_left_bytes,
            reporter: None,
        })
    }

    fn drive<'s>(&mut self, scope: &'s thread::Scope<'s, '_>, interrupt: &SignalFd) -> Result<Ended>
    where
        'a: 's,
    {
        let mut live = Live::new();
        let mut busy = BusyMeter::new();
        let ended = loop {
            if matches!(interrupt.read_signal(), Ok(Some(_))) {
                let Tally { done, runs, .. } = self.tally;
                break Ok(Ended::Interrupted { done, runs });
            }
            if let Some(busy) = busy.read() {
                self.throttle.observe_busy(busy);
            }
            if let Err(error) = self.start_what_may(scope).and_then(|()| self.take_in()) {
                break Err(error);
            }
            if self.queue.is_empty() && self.tally.active == 0 {
                break Ok(Ended::Complete);
            }
            live.show("measuring", self.tally.done, self.tally.runs, &self.standing());
            self.report(None);
        };
        live.finish();
        self.report(Some(match &ended {
            Ok(Ended::Complete) => Said::Complete,
            Ok(Ended::Interrupted { .. }) => Said::Interrupted,
            Err(_) => Said::Failed,
        }));
        ended
    }

    /// Says how far it is to whoever reads the file of progress.
    fn report(&mut self, ended: Option<Said>) {
        let Some(mut reporter) = self.reporter.take() else { return };
        let now = self.session.begun.elapsed();
        if reporter.is_due(now, ended.is_some()) {
            let Tally { runs, done, active, repeated, flagged, failed, late_us, .. } = self.tally;
            let progress = Progress {
                pid: std::process::id(),
                runs,
                done,
                active,
                repeated,
                flagged,
                failed,
                left_s: self.left_s(),
                elapsed_s: now.as_secs_f64(),
                lateness_p99_us: late_us,
                ended,
                latest: reporter.latest().to_vec(),
            };
            reporter.write(&progress);
        }
        self.reporter = Some(reporter);
    }

    fn start_what_may<'s>(&mut self, scope: &'s thread::Scope<'s, '_>) -> Result<()>
    where
        'a: 's,
    {
        let now = self.session.begun.elapsed();
        // Whoever needs more memory than there is waits; the next may need less.
        while let Some(place) = self.queue.iter().position(|planned| {
            planned.memory_bytes <= self.memory_left_bytes || self.tally.active == 0
        }) {
            let active = (self.tally.active, self.tally.load());
            if !self.throttle.may_start(now, self.queue[place].load, active) {
                break;
            }
            let Some(planned) = self.queue.remove(place) else { break };
            self.start(scope, planned, now)?;
            self.throttle.started(now);
        }
        Ok(())
    }

    fn start<'s>(
        &mut self,
        scope: &'s thread::Scope<'s, '_>,
        planned: Planned,
        now: Duration,
    ) -> Result<()>
    where
        'a: 's,
    {
        let Planned { job, expected_s, memory_bytes, load } = planned;
        let number = self.tally.jobs;
        let parallel = self.tally.active;
        self.tally.begin(number, (now, expected_s, load));
        self.memory_left_bytes = self.memory_left_bytes.saturating_sub(memory_bytes);
        let (shared, events) = (self.shared, self.events.clone());
        let work =
            move || work(shared, &job, number, parallel, &events, (expected_s, memory_bytes));
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        builder.spawn_scoped(scope, work).doing(|| "start a thread".to_string())?;
        Ok(())
    }

    /// Takes in everything that jobs have told, waiting a moment for the first.
    fn take_in(&mut self) -> Result<()> {
        let mut event = self.inbox.recv_timeout(TICK).ok();
        while let Some(measured) = event {
            match measured {
                Event::Run(measured) => self.keep(*measured)?,
                Event::Over { number, expected_s, memory_bytes, took_s } => {
                    self.memory_left_bytes += memory_bytes;
                    self.tally.end(number, expected_s, took_s);
                }
            }
            event = self.inbox.try_recv().ok();
        }
        Ok(())
    }

    /// Stores a run, or puts it in the queue again when the machine has spoilt it.
    fn keep(&mut self, measured: Measured) -> Result<()> {
        let Measured { cell, turn, mut run } = measured;
        let limits = self.shared.plan.limits;
        let spoilt = verdict::spoilt(&run, limits);
        self.throttle.observe_end(self.session.begun.elapsed(), spoilt.is_some());
        if verdict::is_to_be_repeated(&run, limits) {
            let name = &self.shared.plan.cells[cell].name;
            let why = spoilt.or(run.failure);
            tracing::info!(cell = name, attempt = turn.attempt, why, "a run is done again");
            self.tally.repeated += 1;
            if !self.shared.plan.is_shared(cell) {
                self.again(cell, turn);
            }
            return Ok(());
        }
        if run.failure.is_none() {
            run.flagged = spoilt;
        }
        self.tally.done += 1;
        self.tally.flagged += usize::from(run.flagged.is_some());
        self.tally.failed += usize::from(run.failure.is_some());
        self.tally.late_us = self.tally.late_us.max(run.lateness.p99_us);
        if let Some(reporter) = &mut self.reporter {
            reporter.note(&self.shared.plan.cells[cell].name, &run);
        }
        self.store.put_run(cell, &run)
    }

    /// Puts a run in the queue once more: a short one at the end, where the machine has least to
    /// do.
    fn again(&mut self, cell: usize, turn: Turn) {
        let turn = Turn { attempt: turn.attempt + 1, ..turn };
        let planned = order::planned(self.shared.plan, Job { cell, runs: vec![turn] });
        if planned.expected_s > LONG_S {
            self.queue.push_front(planned);
        } else {
            self.queue.push_back(planned);
        }
    }

    fn finish(&mut self) -> Result<()> {
        let setting = self.session.setting(self.tally.peak);
        self.store.put_frame(&frame(self.shared.plan, setting))
    }

    /// About how many seconds are left.
    fn left_s(&self) -> f64 {
        let queued = self.queue.iter().map(|planned| (planned.expected_s, planned.load));
        self.tally.left_s(self.session.begun.elapsed(), queued)
    }

    fn standing(&self) -> String {
        let Tally { runs, done, active, repeated, flagged, failed, .. } = &self.tally;
        let left = clock(Duration::try_from_secs_f64(self.left_s()).unwrap_or_default());
        let mut text = format!("{done} of {runs} runs, {active} under way, about {left} left");
        for (count, what) in [(repeated, "repeated"), (flagged, "flagged"), (failed, "failed")] {
            if *count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

impl Tally {
    fn begin(&mut self, number: u64, job: (Duration, f64, f64)) {
        self.jobs += 1;
        self.active += 1;
        self.peak = self.peak.max(self.active);
        self.under_way.insert(number, job);
    }

    fn end(&mut self, number: u64, expected_s: f64, took_s: f64) {
        self.active -= 1;
        self.expected_s += expected_s;
        self.took_s += took_s;
        let load = self.under_way.remove(&number).map_or(0.0, |(_, _, load)| load);
        self.worked_s += took_s * weight(load);
    }

    /// Packets a second of all jobs under way.
    fn load(&self) -> f64 {
        self.under_way.values().map(|(_, _, load)| load).sum()
    }

    /// What is left, by the estimates corrected by what they were worth so far. A job counts for as
    /// much of the machine as it takes: hundreds of some are side by side, others alone.
    fn left_s(&self, now: Duration, queued: impl Iterator<Item = (f64, f64)>) -> f64 {
        let worth = if self.expected_s > 0.0 { self.took_s / self.expected_s } else { 1.0 };
        let so_far = |began: &Duration| now.saturating_sub(*began).as_secs_f64();
        let going = self.under_way.values().map(|(began, expected_s, load)| {
            ((expected_s * worth - so_far(began)).max(0.0), *load)
        });
        let under_way =
            self.under_way.values().map(|(began, _, load)| so_far(began) * weight(*load));
        let worked_s = self.worked_s + under_way.sum::<f64>();
        let pace = (self.pace * EXPECTED_FOR_S + worked_s) / (EXPECTED_FOR_S + now.as_secs_f64());
        let (mut sum, mut longest) = (0.0_f64, 0.0_f64);
        let queued = queued.map(|(expected_s, load)| (expected_s * worth, load));
        for (left_s, load) in going.chain(queued) {
            sum += left_s * weight(load);
            longest = longest.max(left_s);
        }
        let repeated = self.repeated as f64 / self.done.max(1) as f64;
        longest.max((1.0 + repeated) * sum / pace.max(1.0 / MAX_PARALLEL as f64))
    }
}

/// The share of the machine that a job takes, which has a place at least.
fn weight(load: f64) -> f64 {
    share(load).max(1.0 / MAX_PARALLEL as f64)
}

/// Memory that runs may take on this machine.
fn memory_bytes() -> u64 {
    let memory = machine::memory_available_bytes().unwrap_or(4_000_000_000) as f64;
    // A share of a number of bytes is one.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let share = (MEMORY_SHARE * memory) as u64;
    share
}

impl Plan {
    /// What all runs are expected to take on this machine, with at most so many side by side.
    #[must_use]
    pub fn expected_here(&self, parallel: usize) -> Expected {
        self.expected(memory_bytes(), parallel.clamp(1, MAX_PARALLEL))
    }
}

fn work(
    shared: &Shared<'_>,
    job: &Job,
    number: u64,
    parallel: usize,
    events: &SyncSender<Event>,
    (expected_s, memory_bytes): (f64, u64),
) {
    let begun = Instant::now();
    let place = RunningJob { shared, job, number, parallel };
    // Whoever receives these has gone only when they do not matter any more.
    place.work(|turn, run| {
        let _ = events.send(Event::Run(Box::new(Measured { cell: job.cell, turn, run })));
    });
    let took_s = begun.elapsed().as_secs_f64();
    let _ = events.send(Event::Over { number, expected_s, memory_bytes, took_s });
}

/// How busy the processors are, now and then.
struct BusyMeter {
    last: Option<(Instant, ProcessorTime)>,
}

impl BusyMeter {
    fn new() -> Self {
        Self { last: None }
    }

    /// The share of the time since the last reading; none before it is time.
    fn read(&mut self) -> Option<f64> {
        let is_time = self.last.as_ref().is_none_or(|(at, _)| at.elapsed() >= BUSY_INTERVAL);
        if !is_time {
            return None;
        }
        let now = ProcessorTime::now()?;
        let busy = self.last.as_ref().and_then(|(_, before)| now.busy_since(before));
        self.last = Some((Instant::now(), now));
        busy
    }
}

fn frame(plan: &Plan, setting: Setting) -> Frame {
    Frame {
        setting,
        networks: plan.networks.iter().map(|of| of.network.clone()).collect(),
        references: plan.references.clone(),
        advice: plan.advice.clone(),
        figures: plan.figures.clone(),
    }
}

fn setting(shared: &Shared<'_>, order: &Order, earlier: Option<Setting>) -> Setting {
    let (plan, real_time) = (shared.plan, shared.lab.real_time());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let started_unix_s = earlier.as_ref().map_or(now, |setting| setting.started_unix_s);
    let timeouts = plan.cells.iter().map(|cell| cell.client.timeout.as_secs_f64());
    let defaults = plan.servers.iter().flat_map(|server| {
        let one =
            |(name, value): &(String, String)| (server.name.clone(), name.clone(), value.clone());
        server.defaults.iter().map(one)
    });
    Setting {
        title: plan.title.clone(),
        about: plan.about.clone(),
        version: order.version.clone(),
        machine: Machine {
            kernel: machine::kernel(),
            processor: machine::processor(),
            cores: machine::cores(),
            revision: order.revision.clone(),
            date: record::calendar::day(now),
            profile: order.profile.clone(),
            command: order.command.clone(),
        },
        device: shared.lab.device().name().to_string(),
        rootless: order.privilege == Privilege::UserNamespace,
        real_time: real_time.priority,
        quick: plan.quick,
        seed: plan.seed,
        started_unix_s,
        elapsed_s: earlier.as_ref().map_or(0.0, |setting| setting.elapsed_s),
        sessions: earlier.as_ref().map_or(0, |setting| setting.sessions) + 1,
        parallel_peak: earlier.as_ref().map_or(0, |setting| setting.parallel_peak),
        stolen: None,
        timeout_s: timeouts.fold(0.0, f64::max),
        lateness_limit_us: plan.limits.lateness_us,
        wait_share_limit: plan.limits.wait_share,
        defaults: defaults.collect(),
    }
}

/// Everything stored in a campaign's directory.
///
/// # Errors
/// [`Error::Caller`] when there is nothing, or of another version.
pub fn load(directory: &Path) -> Result<record::campaign::Campaign> {
    Store::open_existing(directory)?.campaign()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Eight jobs of 100 s each are side by side for 1,000 s, then one that wants the machine to
    /// itself.
    #[test]
    fn what_is_left_does_not_leap_while_one_job_is_alone() {
        let load = 250.0;
        let mut tally = Tally { pace: 8.0 * weight(load), ..Tally::default() };
        let queued = |jobs: usize| std::iter::repeat_n((100.0, load), jobs);
        assert!((tally.left_s(seconds(0), queued(160)) - 2000.0).abs() < 1.0);
        for round in 0..10 {
            (0..8).for_each(|number| tally.begin(number, (seconds(100 * round), 100.0, load)));
            (0..8).for_each(|number| tally.end(number, 100.0, 100.0));
        }
        tally.begin(9, (seconds(1000), 100.0, load));
        let left_s = tally.left_s(seconds(1001), queued(79));
        assert!((left_s - 1000.0).abs() < 30.0, "{left_s}");
        // Never less than the longest that is left.
        tally.begin(10, (seconds(1000), 5000.0, load));
        assert!(tally.left_s(seconds(1000), queued(0)) >= 5000.0);
    }

    /// A hundred at a time of jobs that send little, then twenty that want all of the machine.
    #[test]
    fn what_is_left_knows_that_the_rest_goes_alone() {
        let mut tally = Tally { pace: 1.0, ..Tally::default() };
        for round in 0..10 {
            (0..100).for_each(|number| tally.begin(number, (seconds(40 * round), 40.0, 25.0)));
            (0..100).for_each(|number| tally.end(number, 40.0, 40.0));
        }
        let rest = || std::iter::repeat_n((60.0, 9000.0), 20);
        let left_s = tally.left_s(seconds(400), rest());
        assert!((left_s - 1200.0).abs() < 30.0, "{left_s}");
        // Where one in ten is done again, so will it be.
        (tally.done, tally.repeated) = (1000, 100);
        let left_s = tally.left_s(seconds(400), rest());
        assert!((left_s - 1320.0).abs() < 30.0, "{left_s}");
    }
}
