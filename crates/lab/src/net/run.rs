//! One run: hosts that move, with a workload on them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use link::medium::PortId;
use link::net::{Resolved, Scenario};
use record::net::{NetCheck, NetEffort, NetNode, NetRun, NetTransmission};

use super::air::{To, Transmission};
use super::movement::{Movement, Step};
use super::topology::{HostSpec, SegmentKind, SegmentSpec, Topology, TopologySpec};
use super::workload::{Begun, Ground, Outcome, Workload};
use crate::error::{Doing, Error, Result};
use crate::experiment::processes::{Handle, Processes, Started};
use crate::ferry::net::{Charge, NetFigures};
use crate::lab::lateness;
use crate::namespace::TcpSettings;
use crate::processor::ProcessorTime;

/// How long programs may take to be ready.
const READY_PATIENCE: Duration = Duration::from_secs(120);
/// How often a run looks whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// How often what was in the air is taken over, so that the ferry keeps little of it.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);
/// Most things done at once; more wait for these, and are late.
const MAX_ACTING: usize = 256;
/// Stack of a thread that does one thing.
const STACK_BYTES: usize = 256 * 1024;

/// What all runs of a scenario share.
pub(super) struct Shared<'a> {
    pub(super) resolved: &'a Resolved,
    pub(super) movement: &'a Movement,
    pub(super) fingerprint: u64,
    pub(super) program: &'a Path,
    pub(super) processes: &'a Processes,
    pub(super) scratch: &'a Path,
    /// Ends all runs.
    pub(super) stop: &'a AtomicBool,
}

/// One of them.
pub(super) struct Turn<'a> {
    pub(super) shared: &'a Shared<'a>,
    /// Of no other run at the same time.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) workload: &'a dyn Workload,
}

/// What was done, as it ends.
type Done = (usize, std::result::Result<(), String>);

/// A net as the laboratory builds it. Nodes are hosts in their order, and channels segments.
pub(super) fn topology(scenario: &Scenario, name: &str, seed: u64) -> TopologySpec {
    let host = |node: &link::net::Node| HostSpec {
        name: node.name.clone(),
        interfaces: node.radios.iter().map(|radio| radio.medium).collect(),
    };
    let segment = |net: &link::net::NetMedium| SegmentSpec {
        name: net.name.clone(),
        kind: SegmentKind::Medium(
            Box::new(net.config.clone()),
            net.routing.map(|routing| Charge { bytes: routing.bytes, interval: routing.interval }),
        ),
    };
    TopologySpec {
        name: name.to_owned(),
        hosts: scenario.nodes.iter().map(host).collect(),
        segments: scenario.media.iter().map(segment).collect(),
        seed,
        tcp: TcpSettings::default(),
    }
}

fn dropped(figures: &NetFigures) -> BTreeMap<String, u64> {
    let dropped = figures.dropped.iter().map(|(reason, count)| (*reason, *count));
    // What is no packet of IPv4, and reports of group membership.
    let foreign = [("foreign", figures.ignored)].into_iter().filter(|(_, count)| *count > 0);
    dropped.chain(foreign).map(|(reason, count)| (reason.to_owned(), count)).collect()
}

impl Turn<'_> {
    /// Does the run. What is in the result of case, version and machine is left to the caller.
    pub(super) fn work(&self) -> Result<NetRun> {
        let scenario = &self.shared.resolved.scenario;
        let scratch = self.shared.scratch.join(&self.name);
        std::fs::create_dir(&scratch).map_err(|source| Error::System {
            doing: format!("make {}", scratch.display()),
            source,
        })?;
        let spec = topology(scenario, &self.name, self.seed);
        let topology = Topology::build(spec, &scratch)?;
        let ground = Ground {
            topology: &topology,
            resolved: self.shared.resolved,
            movement: self.shared.movement,
            program: self.shared.program,
            scratch: &scratch,
        };
        let mut programs = Vec::new();
        let run = self.on(&ground, &mut programs);
        let handles: Vec<Handle> = programs.iter().map(|one: &Started| one.handle).collect();
        self.shared.processes.end(&handles);
        drop(programs);
        topology.close();
        // Only a directory in the place for temporary files would remain.
        let _ = std::fs::remove_dir_all(scratch);
        run
    }

    fn on(&self, ground: &Ground<'_>, programs: &mut Vec<Started>) -> Result<NetRun> {
        let steps = &self.shared.movement.steps;
        self.begin(ground, steps.first())?;
        if let Some(first) = steps.first() {
            ground.topology.change_routes(&first.routes)?;
        }
        self.start(ground, programs).map_err(Error::Caller)?;
        let handles: Vec<Handle> = programs.iter().map(|one| one.handle).collect();
        self.begin(ground, steps.first())?;
        let (begun, time_before) = (Begun::now(), ProcessorTime::now());
        let mut air = self.empty(Outcome::default(), 0, &[]);
        let (failed, moved) = self.pass(ground, begun, &mut air)?;
        let elapsed_s = begun.at.elapsed().as_secs_f64();
        let busy = time_before
            .zip(ProcessorTime::now())
            .and_then(|(before, after)| after.busy_since(&before));
        let figures = ground.topology.figures()?;
        self.note_air(ground, &mut air)?;
        let memory_bytes = self.shared.processes.memory_bytes(&handles);
        let ended = handles.iter().filter(|one| self.shared.processes.status(**one).is_some());
        let ended = ended.count();
        if self.shared.stop.load(Ordering::Relaxed) {
            return Err(Error::Caller("stopped".to_owned()));
        }
        let outcome = self.workload.collect(ground, &begun, &failed).map_err(Error::Caller)?;
        let mut run = self.empty(outcome, ended, programs);
        run.started_unix_s = begun.unix.as_secs();
        run.elapsed_s = elapsed_s;
        run.lateness = Some(lateness(&figures.lateness));
        run.dropped = dropped(&figures);
        run.effort = NetEffort {
            real_time: ground.topology.real_time()?.priority,
            parallel: 1,
            memory_bytes,
            processors_busy: busy,
            ferry_busy: figures.busy.as_secs_f64() / figures.elapsed.as_secs_f64().max(1e-9),
            packets: figures.written,
            routes_changed: moved.routes,
            route_steps: moved.steps,
            step_late_s: moved.latest.as_secs_f64(),
        };
        (run.airtime, run.transmissions) = (air.airtime, air.transmissions);
        run.unrecorded = air.unrecorded;
        // Those that the ferry had no room for, within a second of taking.
        if figures.unrecorded > 0 {
            run.checks.push(NetCheck {
                name: "all that was in the air is in the sums".to_owned(),
                holds: false,
                found: format!("{} transmissions are not", figures.unrecorded),
            });
        }
        Ok(run)
    }

    /// Takes over what was in the air since the last time.
    fn note_air(&self, ground: &Ground<'_>, run: &mut NetRun) -> Result<()> {
        let (air, ports) = (ground.topology.take_air()?, self.ports());
        for transmission in air.transmissions() {
            run.transmitted(self.transmission(&ports, transmission));
        }
        Ok(())
    }

    /// Begins the net's time, with the path losses and powers of the start.
    fn begin(&self, ground: &Ground<'_>, first: Option<&Step>) -> Result<()> {
        let losses = first.map_or(Vec::new(), |step| step.losses.clone());
        ground.topology.begin(losses)?;
        for (host, node) in self.shared.resolved.scenario.nodes.iter().enumerate() {
            for radio in &node.radios {
                ground.topology.change_power(radio.medium, host, radio.power_dbm)?;
            }
        }
        Ok(())
    }

    /// Starts all programs, then waits until each is ready.
    fn start(
        &self,
        ground: &Ground<'_>,
        programs: &mut Vec<Started>,
    ) -> std::result::Result<(), String> {
        let deadline = Instant::now() + READY_PATIENCE;
        let mut awaited = Vec::new();
        for program in self.workload.programs(ground)? {
            programs.push(self.shared.processes.start(program.command)?);
            awaited.push((program.host, program.ready));
        }
        for (started, (host, ready)) in programs.iter_mut().zip(awaited) {
            if self.shared.stop.load(Ordering::Relaxed) {
                return Err("stopped".to_owned());
            }
            started.await_ready(deadline, ready).map_err(|why| {
                let nodes = &self.shared.resolved.scenario.nodes;
                format!("{}: {why}", nodes.get(host).map_or("", |node| &node.name))
            })?;
        }
        self.workload.await_ready(ground, self.shared.stop)
    }

    /// Lets the scenario pass: what moves is moved, what is to be done is done.
    fn pass(
        &self,
        ground: &Ground<'_>,
        begun: Begun,
        air: &mut NetRun,
    ) -> Result<(Vec<(usize, String)>, Moved)> {
        let times = self.workload.times();
        // Each thread says once how it ended.
        let (sender, inbox) = sync_channel(times.len().max(1));
        let mut passing = Passing::new(self, ground, begun, &times, air);
        thread::scope(|scope| {
            let start = |number: usize| {
                let sender = sender.clone();
                let act = move || {
                    let result = self.workload.act(ground, number);
                    // The receiver outlives all threads.
                    let _ = sender.send((number, result));
                };
                let name = format!("act-{number}");
                let builder = thread::Builder::new().name(name).stack_size(STACK_BYTES);
                builder.spawn_scoped(scope, act).map(drop).doing(|| "start a thread".to_owned())
            };
            let passed = passing.run(&inbox, start);
            // What goes on would keep its thread waiting; a command may be just about to begin.
            while passing.acting() > 0 && self.workload.ends_with_its_acts() {
                ground.topology.end_processes();
                passing.take_in(inbox.recv_timeout(LOOK_INTERVAL));
            }
            passed
        })?;
        passing.take_in(inbox.try_iter());
        Ok((passing.failed, passing.moved))
    }

    /// What a run is before anything is known of it but its workload's outcome.
    fn empty(&self, outcome: Outcome, ended: usize, programs: &[Started]) -> NetRun {
        let scenario = &self.shared.resolved.scenario;
        let node = |node: &link::net::Node| NetNode {
            name: node.name.clone(),
            group: scenario.group_of(node.id).map_or_else(String::new, |group| group.name.clone()),
        };
        let Outcome { messages, mut checks } = outcome;
        let mut reasons = programs.iter().filter_map(Started::reason);
        let found = match reasons.next_back() {
            Some(reason) if ended > 0 => format!("{ended} ended; a log ends with '{reason}'"),
            _ => format!("{ended} ended"),
        };
        let name = "no program ended before the end".to_owned();
        checks.push(NetCheck { name, holds: ended == 0, found });
        NetRun {
            scenario: scenario.title.clone(),
            fingerprint: format!("{:016x}", self.shared.fingerprint),
            seed: self.seed,
            media: scenario.media.iter().map(|net| net.name.clone()).collect(),
            nodes: scenario.nodes.iter().map(node).collect(),
            messages,
            checks,
            ..NetRun::default()
        }
    }

    /// A transmission with the places of nodes in place of ports.
    fn transmission(&self, ports: &[Vec<usize>], one: Transmission) -> NetTransmission {
        let members = ports.get(one.segment).map_or(&[][..], Vec::as_slice);
        let node = |port: PortId| members.get(usize::from(port)).copied();
        let cast = match one.to {
            To::One => "one",
            To::Group(_) => "group",
            To::All => "all",
        };
        NetTransmission {
            medium: one.segment,
            node: node(one.from).unwrap_or_default(),
            protocol: one.protocol.to_owned(),
            start_s: one.start.as_secs_f64(),
            airtime_s: one.airtime.as_secs_f64(),
            bytes: one.bytes,
            rate_bps: one.rate_bps,
            attempt: one.attempt,
            cast: cast.to_owned(),
            received: one.received.iter().filter_map(|port| node(*port)).collect(),
            missed: u32::try_from(one.missed.len()).unwrap_or(u32::MAX),
        }
    }

    /// The nodes of each channel's ports, by their places.
    fn ports(&self) -> Vec<Vec<usize>> {
        let scenario = &self.shared.resolved.scenario;
        let members = |medium| {
            let nodes = scenario.members(medium).map(|(node, _)| node.id);
            nodes.map(|id| usize::from(id).saturating_sub(1)).collect()
        };
        (0..scenario.media.len()).map(members).collect()
    }
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    routes: u64,
    steps: u32,
    /// How late the latest step was.
    latest: Duration,
}

/// A scenario as it passes.
struct Passing<'a> {
    turn: &'a Turn<'a>,
    ground: &'a Ground<'a>,
    begun: Begun,
    times: &'a [Duration],
    moved: Moved,
    next_step: usize,
    next_act: usize,
    done: usize,
    failed: Vec<(usize, String)>,
    /// What was in the air, and when it was noted last.
    air: &'a mut NetRun,
    noted_at: Duration,
}

impl<'a> Passing<'a> {
    fn new(
        turn: &'a Turn<'a>,
        ground: &'a Ground<'a>,
        begun: Begun,
        times: &'a [Duration],
        air: &'a mut NetRun,
    ) -> Self {
        let moved = Moved::default();
        // The first step holds from the beginning on.
        let (next_step, next_act, done, failed) = (1, 0, 0, Vec::new());
        let noted_at = Duration::ZERO;
        Self { turn, ground, begun, times, moved, next_step, next_act, done, failed, air, noted_at }
    }

    /// Until the scenario's end, or until all is done where that ends it, or until stopped.
    fn run(&mut self, inbox: &Receiver<Done>, start: impl Fn(usize) -> Result<()>) -> Result<()> {
        let shared = self.turn.shared;
        let end = shared.resolved.scenario.duration;
        loop {
            let now = self.begun.at.elapsed();
            while let Some(step) = shared.movement.steps.get(self.next_step)
                && step.at <= now
            {
                self.step(step)?;
            }
            while self.times.get(self.next_act).is_some_and(|at| *at <= now)
                && self.acting() < MAX_ACTING
            {
                start(self.next_act)?;
                self.next_act += 1;
            }
            if now >= self.noted_at + NOTE_INTERVAL {
                self.turn.note_air(self.ground, self.air)?;
                self.noted_at = now;
            }
            let is_done = self.turn.workload.ends_with_its_acts() && self.done == self.times.len();
            if now >= end || is_done || shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let step = shared.movement.steps.get(self.next_step).map(|step| step.at);
            let act = self.times.get(self.next_act).copied();
            let next = step.into_iter().chain(act).chain([end]).min().unwrap_or(end);
            // What waits for room is looked at again when something has ended.
            let wait = next.saturating_sub(self.begun.at.elapsed()).min(LOOK_INTERVAL);
            match inbox.recv_timeout(wait.max(Duration::from_micros(100))) {
                Ok(one) => self.take_in([one]),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Things that are being done.
    fn acting(&self) -> usize {
        self.next_act - self.done
    }

    fn take_in(&mut self, ended: impl IntoIterator<Item = Done>) {
        for (number, result) in ended {
            self.done += 1;
            if let Err(why) = result {
                self.failed.push((number, why));
            }
        }
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        self.next_step += 1;
        let topology = self.ground.topology;
        if !step.losses.is_empty() {
            topology.change_losses(step.losses.clone())?;
        }
        if !step.routes.is_empty() {
            topology.change_routes(&step.routes)?;
            self.moved.routes += step.routes.len() as u64;
            self.moved.steps += 1;
        }
        let late = self.begun.at.elapsed().saturating_sub(step.at);
        self.moved.latest = self.moved.latest.max(late);
        Ok(())
    }
}
