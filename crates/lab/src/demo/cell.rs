//! One cell: a network, a service and a way to it, on a pair of hosts of its own.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use record::demo::{Cell, Mode, Network};
use record::result::{Fetch, Lateness, Traffic};

use super::forward::Forwarder;
use super::outside::Outside;
use super::plan::{BULK_CLIENTS, BULK_SERVICE, Plan, URGENT_MESSAGES, URGENT_PATH, track_number};
use crate::experiment::pair::{self, Choices, Keys, ServiceLines};
use crate::experiment::processes::{Handle, Processes, READY};
use crate::lab::{Lab, LinkReport};
use crate::namespace::{CONGESTION_CONTROL, Host, Side};

/// How long the servers of a cell may take to be ready, all cells starting at once.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// How long a pair that was connected may take to be so still, or again.
const CARRIER_PATIENCE: Duration = Duration::from_secs(10);
/// A link is full of others' answers once it has carried so many bytes of them: what follows them
/// waits behind more.
const FULL_BYTES: u64 = 10_000;
/// How long that may take, and how often it is looked.
const FILL_PATIENCE: Duration = Duration::from_secs(60);
const FILL_INTERVAL: Duration = Duration::from_millis(50);
/// Where the tracks are served on host b.
const SERVICE_PORT: u16 = 8080;

/// What all cells share.
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) outside: Option<&'a Outside>,
    pub(super) lab: &'a Lab,
    pub(super) processes: &'a Processes,
    pub(super) keys: &'a Keys,
    pub(super) scratch: &'a Path,
}

/// One of them. The link has the cell's own number in the lab.
pub(super) struct RunningCell<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) link: usize,
    pub(super) network: &'a Network,
    /// Its name.
    pub(super) service: &'a str,
    pub(super) mode: Mode,
    /// What is fetched is urgent, and others fill the link meanwhile.
    pub(super) urgent: bool,
}

/// A cell whose servers are ready and whose pair is connected.
pub(super) struct Ready {
    fetch: Command,
    bulk: Vec<Command>,
    servers: Vec<Handle>,
    // Held for what it does.
    _forwarder: Option<Forwarder>,
}

impl RunningCell<'_> {
    /// Starts the cell's servers and waits until they can be used. The error is one line.
    pub(super) fn prepare(&self) -> Result<Ready, String> {
        let deadline = Instant::now() + READY_PATIENCE;
        let mut servers = Vec::new();
        let prepared = self.start_service(deadline, &mut servers).and_then(|forwarder| {
            if self.mode == Mode::Longwire {
                self.start_pair(deadline, &mut servers)?;
            }
            let clients = if self.urgent { BULK_CLIENTS } else { 0 };
            let bulk = (0..clients).map(|_| self.bulk()).collect::<Result<_, _>>()?;
            Ok((self.fetch()?, bulk, forwarder))
        });
        match prepared {
            Ok((fetch, bulk, _forwarder)) => Ok(Ready { fetch, bulk, servers, _forwarder }),
            Err(why) => {
                self.shared.processes.end(&servers);
                Err(why)
            }
        }
    }

    /// Fetches everything; what the link carried meanwhile is part of the result.
    pub(super) fn measure(&self, ready: Ready) -> Cell {
        let mut cell = self.empty();
        // It waited for the other cells since it was ready.
        let connected = match self.mode {
            Mode::Longwire => {
                let deadline = Instant::now() + CARRIER_PATIENCE;
                pair::await_carrier(self.host(Side::A), self.shared.processes, deadline)
            }
            _ => Ok(()),
        };
        let mut bulk = Vec::new();
        let filled = connected.and_then(|()| self.fill(ready.bulk, &mut bulk));
        let measured = filled.and_then(|()| self.fetch_all(ready.fetch, &mut cell));
        self.shared.processes.end(&bulk);
        self.shared.processes.end(&ready.servers);
        cell.failure = measured.err();
        cell
    }

    /// The result of a cell that could not be prepared.
    pub(super) fn failed(&self, why: String) -> Cell {
        Cell { failure: Some(why), ..self.empty() }
    }

    /// Starts the clients that fill the link, and waits until it is full.
    fn fill(&self, bulk: Vec<Command>, started: &mut Vec<Handle>) -> Result<(), String> {
        let Shared { lab, processes, .. } = self.shared;
        let carried = || lab.stats(self.link).map_err(|error| error.to_string());
        let before = carried()?.ba.traffic.bytes_in;
        let wanted = if bulk.is_empty() { 0 } else { FULL_BYTES };
        for command in bulk {
            started.push(processes.start(command)?.handle);
        }
        let deadline = Instant::now() + FILL_PATIENCE;
        while carried()?.ba.traffic.bytes_in < before + wanted {
            if Instant::now() > deadline || processes.are_stopped() {
                return Err("what was to fill the link did not".to_string());
            }
            // sleep: between two readings of the link's counters.
            thread::sleep(FILL_INTERVAL);
        }
        Ok(())
    }

    fn fetch_all(&self, fetch: Command, cell: &mut Cell) -> Result<(), String> {
        let Shared { lab, processes, .. } = self.shared;
        let stats = || lab.stats(self.link).map_err(|error| error.to_string());
        let before = stats()?;
        let mut client = processes.start(fetch)?;
        let printed = client.read_all();
        processes.end(&[client.handle]);
        let after = stats()?;
        record_link(cell, &before, &after);
        let result: Result<Fetch, _> = serde_json::from_str(&printed?);
        cell.fetch = Some(result.map_err(|_| {
            let unfinished = "the client did not come to an end".to_string();
            client.reason().unwrap_or(unfinished)
        })?);
        Ok(())
    }

    fn start(
        &self,
        command: Command,
        deadline: Instant,
        servers: &mut Vec<Handle>,
    ) -> Result<(), String> {
        let mut started = self.shared.processes.start(command)?;
        servers.push(started.handle);
        started.await_ready(deadline, READY)
    }

    fn start_service(
        &self,
        deadline: Instant,
        servers: &mut Vec<Handle>,
    ) -> Result<Option<Forwarder>, String> {
        if let Some(url) = &self.shared.plan.url {
            let to = (url.host().to_string(), url.port());
            let forwarder = Forwarder::start(self.host(Side::B), url.port(), to);
            return forwarder.map(Some).map_err(|error| error.to_string());
        }
        let mut command = self.command(Side::B)?;
        let listen = format!("0.0.0.0:{SERVICE_PORT}");
        command.args(["serve", "tracks", "--listen", &listen]);
        command.args(["--congestion", CONGESTION_CONTROL]);
        self.start(command, deadline, servers)?;
        Ok(None)
    }

    fn start_pair(&self, deadline: Instant, servers: &mut Vec<Handle>) -> Result<(), String> {
        let Shared { keys, processes, .. } = self.shared;
        let origin = self.origin();
        let choices = Choices { services: self.services(&origin), ..Choices::default() };
        let cannot = |error| format!("cannot write the pair's settings: {error}");
        choices.write().map_err(cannot)?;
        let to = (self.host(Side::B), origin.as_str());
        let gateway = pair::gateway(self.command(Side::B)?, keys, to, &choices);
        self.start(gateway, deadline, servers)?;
        let edge = pair::edge(self.command(Side::A)?, self.host(Side::A), keys, &choices);
        self.start(edge, deadline, servers)?;
        pair::await_carrier(self.host(Side::A), processes, deadline)
    }

    /// What the pair hears of the messages that are urgent.
    fn services(&self, origin: &str) -> Option<ServiceLines> {
        let file = self.shared.scratch.join(format!("cell-{}.toml", self.link));
        self.urgent.then(|| ServiceLines::urgent(file, &format!("{origin}{URGENT_PATH}"), "flash"))
    }

    /// A client that fills the link.
    fn bulk(&self) -> Result<Command, String> {
        let mut fetch = self.command(Side::A)?;
        fetch.args(["fetch", "tracks", "--api", BULK_SERVICE, "--url", &self.origin(), "--cold"]);
        self.set_way(&mut fetch);
        Ok(fetch)
    }

    /// The measuring client, ready to be started.
    fn fetch(&self) -> Result<Command, String> {
        let mut fetch = self.command(Side::A)?;
        let items = &self.network.items;
        match self.shared.outside {
            None if self.urgent => {
                fetch.args(["fetch", "url", "--url", &format!("{}{URGENT_PATH}", self.origin())]);
                fetch.args(["--count", &URGENT_MESSAGES.to_string()]);
            }
            None => {
                let numbers = items.iter().filter_map(|name| track_number(name));
                let numbers = numbers.map(|number| number.to_string()).collect::<Vec<_>>();
                fetch.args(["fetch", "tracks", "--api", self.service]);
                fetch.args(["--url", &self.origin(), "--tracks", &numbers.join(",")]);
            }
            Some(outside) => {
                fetch.args(["fetch", "url", "--url", &outside.url]);
                fetch.args(["--count", &items.len().to_string()]);
            }
        }
        fetch.args((self.network.cold || self.urgent).then_some("--cold"));
        self.set_way(&mut fetch);
        Ok(fetch)
    }

    /// What all clients of the cell have in common.
    fn set_way(&self, fetch: &mut Command) {
        let budget = format!("{} ms", self.shared.plan.budget.as_millis());
        fetch.args(["--budget", &budget, "--timeout", &budget, "--json"]);
        fetch.args(["--congestion", CONGESTION_CONTROL]);
        match self.mode {
            Mode::Direct => fetch,
            Mode::Gzip => fetch.arg("--gzip"),
            Mode::Longwire => fetch.args(["--proxy", pair::PROXY_URL]),
        };
    }

    /// Scheme and authority of the service as the hosts find it.
    fn origin(&self) -> String {
        let inside = || format!("http://b:{SERVICE_PORT}");
        self.shared.outside.map_or_else(inside, |outside| outside.origin.clone())
    }

    /// The binary on a host of this cell.
    fn command(&self, side: Side) -> Result<Command, String> {
        let program = &self.shared.plan.program;
        let mut command = self.host(side).launch(program, program);
        if let Some(outside) = self.shared.outside {
            outside.introduce(&mut command, self.host(Side::B).address());
        }
        command.env("RUST_LOG", "warn").current_dir(self.shared.scratch);
        Ok(command)
    }

    fn host(&self, side: Side) -> &Host {
        self.shared.lab.host(self.link, side)
    }

    fn empty(&self) -> Cell {
        Cell {
            network: self.network.name.clone(),
            service: self.service.to_string(),
            mode: self.mode,
            congestion_control: Side::BOTH.map(|side| self.host(side).congestion_control().into()),
            fetch: None,
            failure: None,
            up: Traffic::default(),
            down: Traffic::default(),
            lateness: Lateness::default(),
            repeated: false,
        }
    }
}

/// Lateness is that of the cell's whole time: what came before is little.
fn record_link(cell: &mut Cell, before: &LinkReport, after: &LinkReport) {
    cell.up = after.ab.traffic.since(&before.ab.traffic);
    cell.down = after.ba.traffic.since(&before.ba.traffic);
    cell.lateness = Lateness::merged([&after.ab.lateness, &after.ba.lateness]);
}
