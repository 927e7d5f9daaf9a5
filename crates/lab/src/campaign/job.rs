//! One job: hosts, a server, and one or more runs of a cell's client against it.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use record::campaign::{Run, Way};
use record::decision::Entry;
use record::result::{Fetch, Lateness};

use super::facts::{self, Reading};
use super::plan::{
    ALL_ENCODINGS, CellPlan, HOST_SETTINGS, NetworkPlan, PAIR_SETTINGS, Plan, Ready, ServerPlan,
};
use super::server;
use super::verdict;
use crate::experiment::pair::{self, Choices, Keys, ServiceLines};
use crate::experiment::processes::{self, Handle, Processes, READY, Started};
use crate::lab::{Lab, Link, LinkReport, LinkSpec};
use crate::namespace::{CONGESTION_CONTROL, Side, TcpSettings};
use services::benchmark::Class;

/// Packets recorded of one run; a run of the whole study has up to 30,000.
const RECORD_PACKETS: usize = 100_000;
/// How often a client under way is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// What a client may take beyond its budget to come to an end.
const GRACE: Duration = Duration::from_secs(20);
/// What a client may take to end once it has closed its output.
const ENDING_PATIENCE: Duration = Duration::from_secs(2);
/// How long the connections of one run may take to be gone before the next on the same hosts.
const QUIET_PATIENCE: Duration = Duration::from_secs(60);

/// What all jobs share.
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) program: &'a Path,
    pub(super) lab: &'a Lab,
    pub(super) processes: &'a Processes,
    pub(super) keys: &'a Keys,
    pub(super) scratch: &'a Path,
}

/// Runs of one cell that one server serves, one after another.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Index of the cell.
    pub(super) cell: usize,
    pub(super) runs: Vec<Turn>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) repetition: u32,
    /// From 1.
    pub(super) attempt: u32,
}

/// A job under way.
pub(super) struct RunningJob<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) job: &'a Job,
    pub(super) number: u64,
    pub(super) parallel: usize,
}

/// Hosts with the servers that a run needs.
struct Ground {
    link: Link,
    servers: Vec<Started>,
    scratch: PathBuf,
}

impl RunningJob<'_> {
    /// Does all runs and hands each to `done`. One that cannot be prepared is a run with a failure.
    pub(super) fn work(&self, mut done: impl FnMut(Turn, Run)) {
        let mut ground = None;
        let mut turns: VecDeque<Turn> = self.job.runs.iter().copied().collect();
        while let Some(turn) = turns.pop_front() {
            let made = match ground.take() {
                Some(ground) => self.renew(ground, turn),
                None => self.prepare(turn),
            };
            let run = match made {
                Ok(ready) => {
                    let run = self.measure(&ready, turn);
                    ground = Some(ready);
                    run
                }
                Err(why) => Run { failure: Some(why), ..self.empty(turn) },
            };
            if self.shared.processes.are_stopped() {
                break;
            }
            // Here and not in another job: the server has warmed up meanwhile.
            if self.server().share && verdict::is_to_be_repeated(&run, self.shared.plan.limits) {
                turns.push_back(Turn { attempt: turn.attempt + 1, ..turn });
            }
            done(turn, run);
        }
        if let Some(ground) = ground {
            self.leave(ground);
        }
    }

    fn cell(&self) -> &CellPlan {
        &self.shared.plan.cells[self.job.cell]
    }

    fn network(&self) -> &NetworkPlan {
        &self.shared.plan.networks[self.cell().network]
    }

    fn server(&self) -> &ServerPlan {
        &self.shared.plan.servers[self.cell().server]
    }

    /// Hosts, link, server and, if it is the way, the pair. The error is one line.
    fn prepare(&self, turn: Turn) -> Result<Ground, String> {
        let link = self.shared.lab.add(&self.spec(turn)?).map_err(|error| error.to_string())?;
        let scratch = self.shared.scratch.join(format!("job-{}", self.number));
        std::fs::create_dir(&scratch)
            .map_err(|error| format!("cannot make a directory: {error}"))?;
        let mut ground = Ground { link, servers: Vec::new(), scratch };
        match self.start_servers(&mut ground) {
            Ok(()) => Ok(ground),
            Err(why) => {
                self.leave(ground);
                Err(why)
            }
        }
    }

    /// The same server over a link with the chances of the next run.
    fn renew(&self, ground: Ground, turn: Turn) -> Result<Ground, String> {
        let host = ground.link.host(Side::B);
        server::await_quiet(host, self.server().port, Instant::now() + QUIET_PATIENCE)?;
        let seed = self.shared.plan.run_seed(self.cell().network, turn.repetition);
        let config = self.network().config.clone();
        let renewed = ground.link.configure(config).and_then(|()| ground.link.renew(seed));
        let renewed = renewed.map_err(|error| error.to_string());
        // What the link became in the run before may have cost the pair its carrier.
        let connected = renewed.and_then(|()| match self.cell().way {
            Way::Longwire => {
                let deadline = Instant::now() + self.server().ready_timeout;
                pair::await_carrier(ground.link.host(Side::A), self.shared.processes, deadline)
            }
            _ => Ok(()),
        });
        match connected {
            Ok(()) => Ok(ground),
            Err(why) => {
                self.leave(ground);
                Err(why)
            }
        }
    }

    fn leave(&self, ground: Ground) {
        let Ground { link, servers, scratch } = ground;
        self.shared.processes.end(&handles(&servers));
        drop(servers);
        drop(link);
        // Only a directory in the place for temporary files would remain, gone with the campaign's.
        let _ = std::fs::remove_dir_all(scratch);
    }

    fn spec(&self, turn: Turn) -> Result<LinkSpec, String> {
        let setting = |name: &str| self.cell().settings.iter().find(|(of, _)| of == name);
        let control = setting(HOST_SETTINGS[0]).map_or(CONGESTION_CONTROL, |(_, value)| value);
        let window = setting(HOST_SETTINGS[1]).map(|(_, value)| value.parse::<u32>());
        let window = window.transpose().map_err(|_| "initial_window is no number of segments")?;
        let service =
            TcpSettings { congestion_control: control.to_string(), initial_window: window };
        Ok(LinkSpec {
            name: format!("job-{}", self.number),
            config: self.network().config.clone(),
            seed: self.shared.plan.run_seed(self.cell().network, turn.repetition),
            tcp: [TcpSettings::default(), service],
            record_packets: RECORD_PACKETS,
        })
    }

    fn start_servers(&self, ground: &mut Ground) -> Result<(), String> {
        let deadline = Instant::now() + self.server().ready_timeout;
        let command = self.server_command(ground)?;
        let mut started = self.shared.processes.start(command)?;
        let ready = match &self.server().ready {
            Ready::Line(begin) => started.await_ready(deadline, begin),
            Ready::Http(path) => server::await_http(
                ground.link.host(Side::B),
                (self.server().port, path),
                || self.shared.processes.status(started.handle).is_some(),
                deadline,
            )
            .map_err(|why| started.reason().unwrap_or(why)),
        };
        ground.servers.push(started);
        ready.map_err(|why| format!("server '{}': {why}", self.server().name))?;
        if self.cell().way == Way::Longwire {
            self.start_pair(ground, deadline)?;
        }
        Ok(())
    }

    fn server_command(&self, ground: &Ground) -> Result<Command, String> {
        let server = self.server();
        let fill = |word: &str| self.fill(word, &ground.scratch);
        let mut command = match &server.command {
            None => {
                let mut own = self.command(&ground.link, Side::B, self.shared.program);
                own.args(["serve", &server.name, "--listen", &self.listen()]);
                own
            }
            Some(words) => {
                let mut command = self.command(&ground.link, Side::B, fill(&words[0]));
                command.args(words[1..].iter().map(|word| fill(word)));
                command
            }
        };
        command.env("TMPDIR", &ground.scratch);
        for (name, value) in self.flags() {
            command.arg(format!("--{}", name.replace('_', "-"))).arg(value);
        }
        Ok(command)
    }

    /// The server's settings, defaults included; what the hosts set themselves is no flag, but our
    /// own server is told of the congestion control too.
    fn flags(&self) -> Vec<(String, String)> {
        let mut all = self.settings();
        PAIR_SETTINGS.iter().for_each(|name| drop(all.remove(*name)));
        if self.server().command.is_none() {
            all.entry(HOST_SETTINGS[0].to_string()).or_insert(CONGESTION_CONTROL.to_string());
            all.remove(HOST_SETTINGS[1]);
        } else {
            HOST_SETTINGS.iter().for_each(|name| drop(all.remove(*name)));
        }
        all.into_iter().collect()
    }

    /// Everything in force that the plan names.
    fn settings(&self) -> BTreeMap<String, String> {
        let all = self.server().defaults.iter().chain(&self.cell().settings);
        all.cloned().collect()
    }

    /// What the plan says of the pair. Its history is kept where a plan says anything.
    fn choices(&self, scratch: &Path) -> Choices {
        let mut settings = self.settings();
        let [policy, processor, encodings, carrier] =
            PAIR_SETTINGS.map(|name| settings.remove(name));
        let store = (policy.is_some() || processor.is_some()).then(|| scratch.join("store"));
        let encoding = policy.unwrap_or_else(|| pair::AUTO.to_string());
        // Other policies have none but their own.
        let names = encodings.filter(|names| encoding == pair::AUTO && names != ALL_ENCODINGS);
        let names = names.map(|names| names.split_whitespace().map(str::to_string).collect());
        let file = scratch.join("pair.toml");
        let services = names.map(|names| ServiceLines::only(file, &self.origin(), names));
        let carrier = carrier.unwrap_or_else(|| pair::AUTO.to_string());
        Choices { encoding, slowdown: processor, store, services, carrier }
    }

    fn start_pair(&self, ground: &mut Ground, deadline: Instant) -> Result<(), String> {
        let Shared { keys, processes, program, .. } = self.shared;
        let (choices, origin) = (self.choices(&ground.scratch), self.origin());
        choices.write().map_err(|error| format!("cannot write the pair's settings: {error}"))?;
        let host = ground.link.host(Side::B);
        let command = self.command(&ground.link, Side::B, program);
        let mut gateway =
            processes.start(pair::gateway(command, keys, (host, &origin), &choices))?;
        let ready = gateway.await_ready(deadline, READY);
        ground.servers.push(gateway);
        ready?;
        let command = self.command(&ground.link, Side::A, program);
        let mut edge =
            processes.start(pair::edge(command, ground.link.host(Side::A), keys, &choices))?;
        let ready = edge.await_ready(deadline, READY);
        ground.servers.push(edge);
        ready?;
        pair::await_carrier(ground.link.host(Side::A), processes, deadline)
    }

    /// One run. What the link carried meanwhile is part of it.
    fn measure(&self, ground: &Ground, turn: Turn) -> Run {
        let mut run = self.empty(turn);
        if let Err(why) = self.fetch(ground, &mut run) {
            run.failure = Some(why);
        }
        run
    }

    fn fetch(&self, ground: &Ground, run: &mut Run) -> Result<(), String> {
        let processes = self.shared.processes;
        let handles = handles(&ground.servers);
        let waits_before = processes.waits(&handles);
        let (begin, began_s) = (Instant::now(), monotonic_s());
        let mut client = processes.start(self.client_command(ground)?)?;
        let printed = self.watch(ground, &mut client, run);
        let elapsed_s = begin.elapsed().as_secs_f64();
        let status = processes.status_by(client.handle, Instant::now() + ENDING_PATIENCE);
        let waited = processes::waited(&waits_before, &processes.waits(&handles));
        run.processor_wait_s = waited.as_secs_f64();
        processes.end(&[client.handle]);
        let report = ground.link.stats().map_err(|error| error.to_string())?;
        record_link(run, &report);
        let read = serde_json::from_str::<Fetch>(&printed?);
        // Through the pair TCP brings what was made of the answer, not the answer.
        let content_of_link = read.is_err() && self.cell().way != Way::Longwire;
        let fetch = match read {
            Ok(fetch) => fetch,
            Err(_) if self.is_own_client() => {
                let unfinished = "the client did not come to an end".to_string();
                return Err(client.reason().unwrap_or(unfinished));
            }
            Err(_) => facts::of_command(&self.cell().service, began_s, elapsed_s, status),
        };
        run.elapsed_s = elapsed_s;
        run.processor_wait_s += fetch.processor_wait_s.unwrap_or(0.0);
        run.congestion_control[0] = fetch.congestion_control.clone().unwrap_or_default();
        let record = ground.link.record().map_err(|error| error.to_string())?;
        let round_trip = Duration::from_secs_f64(2.0 * self.network().network.delay_s);
        let keep_flight = run.repetition == 1;
        let reading = Reading { round_trip, keep_flight, content_of_link };
        facts::fill(run, fetch, &record, reading);
        run.decisions = self.decisions(ground, run.measured.len() + run.warm_up.len())?;
        Ok(())
    }

    /// What the gateway decided of the answers, in their order, without what it did not choose.
    fn decisions(&self, ground: &Ground, most: usize) -> Result<Vec<Entry>, String> {
        let Some(store) = self.choices(&ground.scratch).store else { return Ok(Vec::new()) };
        if self.cell().way != Way::Longwire {
            return Ok(Vec::new());
        }
        let mut history = self.command(&ground.link, Side::B, self.shared.program);
        history.args(["history", "--json", "--limit", &most.max(1).to_string(), "--store"]);
        history.arg(store);
        let mut history = self.shared.processes.start(history)?;
        let printed = history.read_all_looking(LOOK_INTERVAL, || ());
        self.shared.processes.end(&[history.handle]);
        let lines = printed?;
        let entries = lines.lines().map(|line| {
            let mut entry: Entry = serde_json::from_str(line)
                .map_err(|error| format!("the gateway's history: {error}"))?;
            if let Some(decision) = &mut entry.decision {
                decision.candidates.clear();
                decision.forbidden.clear();
            }
            Ok(entry)
        });
        entries.collect()
    }

    /// Reads what the client prints until it ends or outstays its budget, and meanwhile reads back
    /// the congestion control of the far end and changes the link where the plan says so.
    fn watch(
        &self,
        ground: &Ground,
        client: &mut Started,
        run: &mut Run,
    ) -> Result<String, String> {
        let port = match self.cell().way {
            Way::Longwire => pair::GATEWAY_PORT,
            _ => self.server().port,
        };
        let handle = client.handle;
        let limit = self.cell().client.budget + GRACE;
        let begin = Instant::now();
        let mut changes = self.network().changes.iter().peekable();
        let mut refused = None;
        let printed = client.read_all_looking(LOOK_INTERVAL, || {
            if run.congestion_control[1].is_empty() {
                let found = server::congestion(ground.link.host(Side::B), port);
                run.congestion_control[1] = found.unwrap_or_default();
            }
            if let Some((_, config)) = changes.next_if(|(after, _)| begin.elapsed() >= *after) {
                refused = refused.take().or(ground.link.configure(config.clone()).err());
            }
            if begin.elapsed() > limit {
                self.shared.processes.end(&[handle]);
            }
        })?;
        refused.map_or(Ok(printed), |error| Err(error.to_string()))
    }

    fn is_own_client(&self) -> bool {
        !self.shared.plan.commands.iter().any(|command| command.name == self.cell().service)
    }

    /// The measuring client, ready to be started.
    fn client_command(&self, ground: &Ground) -> Result<Command, String> {
        let of_plan = self.shared.plan.commands.iter();
        let of_plan = of_plan.clone().find(|command| command.name == self.cell().service);
        if let Some(client) = of_plan {
            let fill = |word: &String| self.fill(word, &ground.scratch);
            let mut words = client.command.iter().map(fill);
            let program = words.next().unwrap_or_default();
            let mut command = self.command(&ground.link, Side::A, program);
            command.args(words);
            if self.cell().way == Way::Longwire {
                command.env("http_proxy", pair::PROXY_URL);
            }
            return Ok(command);
        }
        let client = &self.cell().client;
        let mut command = self.command(&ground.link, Side::A, self.shared.program);
        let service = &self.cell().service;
        if Class::parse(service).is_some() {
            command.args(["fetch", "benchmark", "--json", "--class", service]);
            command.args(["--count", &client.messages.to_string()]);
        } else {
            let numbers: Vec<String> = client.tracks.iter().map(ToString::to_string).collect();
            command.args(["fetch", "tracks", "--json", "--api", service]);
            command.args(["--tracks", &numbers.join(",")]);
        }
        command.args(["--url", &self.origin(), "--warm-up", &client.warm_up.to_string()]);
        command.args(["--congestion", CONGESTION_CONTROL]);
        let milliseconds = |time: Duration| format!("{} ms", time.as_millis());
        command.args(["--timeout", &milliseconds(client.timeout)]);
        command.args(["--budget", &milliseconds(client.budget)]);
        match self.cell().way {
            Way::Direct => &mut command,
            Way::Gzip => command.arg("--gzip"),
            Way::NewConnection => command.arg("--new-connection"),
            Way::Longwire => command.args(["--proxy", pair::PROXY_URL]),
        };
        Ok(command)
    }

    /// A word of a plan's command with what only the run knows.
    fn fill(&self, word: &str, scratch: &Path) -> String {
        word.replace("{longwire}", &self.shared.program.to_string_lossy())
            .replace("{listen}", &self.listen())
            .replace("{url}", &self.origin())
            .replace("{scratch}", &scratch.to_string_lossy())
    }

    fn listen(&self) -> String {
        format!("0.0.0.0:{}", self.server().port)
    }

    /// Scheme and authority of the service as the hosts find it.
    fn origin(&self) -> String {
        format!("http://b:{}", self.server().port)
    }

    fn command(&self, link: &Link, side: Side, program: impl AsRef<OsStr>) -> Command {
        let mut command = link.host(side).launch(self.shared.program, program);
        command.env("RUST_LOG", "warn");
        command
    }

    fn empty(&self, turn: Turn) -> Run {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Run {
            repetition: turn.repetition,
            attempt: turn.attempt,
            seed: self.shared.plan.run_seed(self.cell().network, turn.repetition),
            started_unix_s: now.as_secs_f64(),
            parallel: self.parallel,
            ..Run::default()
        }
    }
}

/// The lateness of a link's whole time: what came before the client is little.
fn record_link(run: &mut Run, report: &LinkReport) {
    run.up = report.ab.traffic.clone();
    run.down = report.ba.traffic.clone();
    run.lateness = Lateness::merged([&report.ab.lateness, &report.ba.lateness]);
}

fn handles(servers: &[Started]) -> Vec<Handle> {
    servers.iter().map(|server| server.handle).collect()
}

/// The clock of packets and clients.
fn monotonic_s() -> f64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from);
    now.unwrap_or_default().as_secs_f64()
}
