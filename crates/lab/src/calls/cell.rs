//! A link and a way on hosts of their own: the servers, and the client method by method.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use record::calls::CallsCell;
use record::result::{Calls, Lateness};

use super::plan::{MethodPlan, Plan, WayPlan};
use crate::experiment::pair::{self, Choices, Keys};
use crate::experiment::processes::{Handle, Processes, READY};
use crate::lab::Link;
use crate::namespace::{CONGESTION_CONTROL, Host, Side};

/// How long servers may take to be ready.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// Where the methods are served on host b.
const SERVICE_PORT: u16 = 8080;
const ORIGIN: &str = "http://b:8080";
const WSP_PORT: u16 = 9200;
const COAP_PORT: u16 = 5683;

/// A link and a way.
pub(super) struct Cell<'a> {
    pub(super) plan: &'a Plan,
    pub(super) way: &'a WayPlan,
    pub(super) link: &'a Link,
    /// The client is on the service's host, and the link is idle.
    pub(super) is_one_host: bool,
    /// How many times slower the client's processor seems.
    pub(super) slowdown: u32,
    pub(super) program: &'a Path,
    pub(super) processes: &'a Processes,
    pub(super) keys: &'a Keys,
    pub(super) scratch: &'a Path,
}

impl Cell<'_> {
    /// Starts the servers, calls all methods, and ends the servers. The error is one line.
    pub(super) fn measure(&self) -> Result<(Vec<CallsCell>, Lateness), String> {
        let mut servers = Vec::new();
        let started = self.start(&mut servers);
        let measured = started.map(|()| {
            let cells: Vec<_> = self.plan.methods.iter().map(|method| self.call(method)).collect();
            let stats = self.link.stats();
            (cells, stats.map(|stats| Lateness::merged([&stats.ab.lateness, &stats.ba.lateness])))
        });
        self.processes.end(&servers);
        let (cells, lateness) = measured?;
        Ok((cells, lateness.map_err(|error| error.to_string())?))
    }

    fn start(&self, servers: &mut Vec<Handle>) -> Result<(), String> {
        let deadline = Instant::now() + READY_PATIENCE;
        let mut ready = |command: Command| {
            let mut started = self.processes.start(command)?;
            servers.push(started.handle);
            started.await_ready(deadline, READY)
        };
        let mut serve = self.command(Side::B);
        let listen = format!("0.0.0.0:{SERVICE_PORT}");
        serve.args(["serve", "benchmark", "--listen", &listen]);
        serve.args(["--congestion", CONGESTION_CONTROL]);
        ready(serve)?;
        if self.way.over == "http" && !self.way.is_pair {
            return Ok(());
        }
        let choices = Choices::default();
        let to = (self.host(Side::B), ORIGIN);
        let mut gateway = pair::gateway(self.command(Side::B), self.keys, to, &choices);
        if let Some(address) = self.gateway() {
            let over = format!("--{}", self.way.over);
            gateway.args([&over, &address.to_string(), &format!("{over}-anywhere")]);
        }
        ready(gateway)?;
        if self.way.is_pair {
            // Host a says where its peer is, whichever host the edge is on.
            let edge = self.command(self.client());
            ready(pair::edge(edge, self.host(Side::A), self.keys, &choices))?;
            pair::await_carrier(self.host(self.client()), self.processes, deadline)?;
        }
        Ok(())
    }

    /// Calls a method over and over; what the link carried meanwhile is part of the result.
    fn call(&self, method: &MethodPlan) -> CallsCell {
        let (count, warm_up) = (self.plan.count, self.plan.warm_up);
        let mut cell = CallsCell {
            method: method.name.clone(),
            size: method.size,
            made: count + warm_up + u32::from(method.size.is_some()),
            ..CallsCell::default()
        };
        let stats = || self.link.stats().map_err(|error| error.to_string());
        let measured = stats().and_then(|before| {
            let calls = self.fetch(method)?;
            let after = stats()?;
            cell.up = after.ab.traffic.since(&before.ab.traffic);
            cell.down = after.ba.traffic.since(&before.ba.traffic);
            Ok(calls)
        });
        match measured {
            Ok(calls) => {
                cell.made -= u32::try_from(calls.not_made).unwrap_or(0).min(cell.made);
                cell.calls = Some(calls);
            }
            Err(why) => cell.failure = Some(why),
        }
        cell
    }

    fn fetch(&self, method: &MethodPlan) -> Result<Calls, String> {
        let Plan { count, warm_up, timeout_s, .. } = self.plan;
        let mut fetch = self.command(self.client());
        fetch.args(["fetch", "methods", "--json", "--url", ORIGIN, "--method", &method.name]);
        fetch.args(["--count", &count.to_string(), "--warm-up", &warm_up.to_string()]);
        fetch.args(["--timeout", &format!("{timeout_s} s")]);
        fetch.args(["--slowdown", &self.slowdown.to_string()]);
        fetch.args(["--over", &self.way.over, "--form", &self.way.form]);
        if let Some(size) = method.size {
            fetch.args(["--size", &size.to_string()]);
        }
        match self.gateway() {
            Some(address) => fetch.args(["--gateway", &address.to_string()]),
            None => fetch.args(["--congestion", CONGESTION_CONTROL]),
        };
        fetch.args(self.way.is_new_connection.then_some("--new-connection"));
        if self.way.is_pair {
            fetch.args(["--proxy", pair::PROXY_URL]);
        }
        let mut client = self.processes.start(fetch)?;
        let printed = client.read_all();
        let reason = client.reason();
        self.processes.end(&[client.handle]);
        serde_json::from_str(&printed?)
            .map_err(|_| reason.unwrap_or_else(|| "the client did not come to an end".to_owned()))
    }

    /// Where clients of WSP and CoAP find the gateway.
    fn gateway(&self) -> Option<SocketAddr> {
        let port = match &*self.way.over {
            "wsp" => WSP_PORT,
            "coap" => COAP_PORT,
            _ => return None,
        };
        let host =
            if self.is_one_host { Ipv4Addr::LOCALHOST } else { self.host(Side::B).address() };
        Some(SocketAddr::from((host, port)))
    }

    /// The host that the client is on.
    fn client(&self) -> Side {
        if self.is_one_host { Side::B } else { Side::A }
    }

    fn host(&self, side: Side) -> &Host {
        self.link.host(side)
    }

    /// The binary on a host.
    fn command(&self, side: Side) -> Command {
        let mut command = self.host(side).launch(self.program, self.program);
        command.env("RUST_LOG", "warn").current_dir(self.scratch);
        command
    }
}
