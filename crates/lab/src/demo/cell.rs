//! One cell: a network, a service and a way to it, on a pair of hosts of its own.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use record::demo::{Cell, Mode, Network, Service};
use record::result::{Fetch, Lateness};
use services::client::Target;

use super::forward::Forwarder;
use super::pair::{self, Keys};
use super::plan::Plan;
use super::processes::{Handle, Processes, Started};
use crate::lab::{Lab, LinkReport};
use crate::namespace::{CONGESTION_CONTROL, Host, Side};

/// How long the servers of a cell may take to be ready, all cells starting at once.
pub(super) const READY_PATIENCE: Duration = Duration::from_secs(60);
/// Where the tracks are served on host b.
const SERVICE_PORT: u16 = 8080;

/// What a cell is made of; the link has the cell's own number in the lab.
pub(super) struct CellPlan<'a> {
    pub(super) link: usize,
    pub(super) network: &'a Network,
    pub(super) service: &'a Service,
    pub(super) mode: Mode,
}

/// What all cells share.
pub(super) struct Shared<'a> {
    pub(super) plan: &'a Plan,
    pub(super) lab: &'a Lab,
    pub(super) processes: &'a Processes,
    pub(super) keys: &'a Keys,
    pub(super) scratch: &'a Path,
}

/// A cell whose servers are ready and whose pair is connected.
pub(super) struct Ready<'a> {
    cell: CellPlan<'a>,
    shared: &'a Shared<'a>,
    fetch: Command,
    handles: Vec<Handle>,
    // Held for what it does.
    _forwarder: Option<Forwarder>,
}

impl<'a> CellPlan<'a> {
    /// Starts the cell's servers and waits until they can be used. The error is one line.
    pub(super) fn prepare(self, shared: &'a Shared<'a>) -> Result<Ready<'a>, String> {
        let deadline = Instant::now() + READY_PATIENCE;
        let mut handles = Vec::new();
        let prepared = self.start_servers(shared, deadline, &mut handles);
        let (fetch, forwarder) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => {
                shared.processes.end(&handles);
                return Err(why);
            }
        };
        Ok(Ready { cell: self, shared, fetch, handles, _forwarder: forwarder })
    }

    fn start_servers(
        &self,
        shared: &Shared<'_>,
        deadline: Instant,
        handles: &mut Vec<Handle>,
    ) -> Result<(Command, Option<Forwarder>), String> {
        let mut start = |command: Command| -> Result<Started, String> {
            let mut started = shared.processes.start(command)?;
            handles.push(started.handle);
            started.await_ready(deadline)?;
            Ok(started)
        };
        let (origin, forwarder) = match &shared.plan.url {
            None => {
                let mut command = self.command(shared, Side::B)?;
                command.args(["serve", "tracks", "--listen"]);
                command.arg(format!("0.0.0.0:{SERVICE_PORT}"));
                start(command.args(["--congestion", CONGESTION_CONTROL]).into_command())?;
                (format!("http://b:{SERVICE_PORT}"), None)
            }
            Some(url) => {
                let b = shared.lab.host(self.link, Side::B);
                let to = (url.host().to_string(), url.port());
                let forwarder = Forwarder::start(b, url.port(), to);
                let inside = Outside::of(url).inside;
                (inside, Some(forwarder.map_err(|error| error.to_string())?))
            }
        };
        let proxy = match self.mode {
            Mode::Direct | Mode::Gzip => None,
            Mode::Longwire => {
                let [a, b] = Side::BOTH.map(|side| shared.lab.host(self.link, side));
                let gateway = self.command(shared, Side::B)?;
                start(pair::gateway(gateway, shared.keys, b, &origin))?;
                let edge = self.command(shared, Side::A)?;
                start(pair::edge(edge, shared.keys, b))?;
                pair::await_carrier(a, shared.processes, deadline)?;
                Some(pair::PROXY_URL)
            }
        };
        Ok((self.fetch(shared, &origin, proxy)?, forwarder))
    }

    /// The measuring client, ready to be started.
    fn fetch(
        &self,
        shared: &Shared<'_>,
        origin: &str,
        proxy: Option<&str>,
    ) -> Result<Command, String> {
        let mut fetch = self.command(shared, Side::A)?;
        let items = &self.network.items;
        match &shared.plan.url {
            None => {
                let numbers = items.iter().filter_map(|name| name.strip_prefix("track "));
                let numbers = numbers.collect::<Vec<_>>().join(",");
                fetch.args(["fetch", "tracks", "--api", &self.service.name, "--tracks", &numbers]);
            }
            Some(_) => {
                fetch.args(["fetch", "url", "--count", &items.len().to_string()]);
            }
        }
        let budget = format!("{} ms", shared.plan.budget.as_millis());
        fetch.args(["--url", origin, "--budget", &budget, "--timeout", &budget, "--json"]);
        fetch.args(["--congestion", CONGESTION_CONTROL]);
        fetch.args(self.network.cold.then_some("--cold"));
        fetch.args((self.mode == Mode::Gzip).then_some("--gzip"));
        fetch.args(proxy.into_iter().flat_map(|proxy| ["--proxy", proxy]));
        Ok(fetch)
    }

    /// The binary on a host of this cell.
    fn command(&self, shared: &Shared<'_>, side: Side) -> Result<Command, String> {
        let host = shared.lab.host(self.link, side);
        let command = host.command(&shared.plan.program).map_err(|error| error.to_string())?;
        let b = shared.lab.host(self.link, Side::B).address();
        let name = shared.plan.url.as_ref().and_then(|url| Outside::of(url).name);
        let mut command = match name {
            Some(name) => with_name(command, &name, b),
            None => command,
        };
        command.env("RUST_LOG", "warn").current_dir(shared.scratch);
        Ok(command)
    }

    /// The result when there is nothing to show.
    pub(super) fn failed(&self, lab: &Lab, why: String) -> Cell {
        Cell { failure: Some(why), ..self.empty(lab) }
    }

    fn empty(&self, lab: &Lab) -> Cell {
        let control = |side| lab.host(self.link, side).congestion_control().to_string();
        Cell {
            network: self.network.name.clone(),
            service: self.service.name.clone(),
            mode: self.mode,
            congestion_control: Side::BOTH.map(control),
            fetch: None,
            failure: None,
            up: Default::default(),
            down: Default::default(),
            lateness: Lateness::default(),
        }
    }
}
