//! The pair in a cell: an edge on host a, a gateway on host b, TLS with keys made for the run.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::processes::Processes;
use crate::namespace::{CONGESTION_CONTROL, Host};

/// Where the measuring client finds the edge.
pub(crate) const PROXY_URL: &str = "http://127.0.0.1:3128";
/// How the sides speak with each other, for the report.
pub(crate) const CARRIER: &str = "stream over TCP with TLS 1.3, keys made for this run; connected \
                                  before the first fetch, as it is in use";
/// What is left to the pair, unless a plan says otherwise.
pub(crate) const AUTO: &str = "auto";
/// The carriers that a plan may name.
pub(crate) const CARRIERS: [&str; 6] = [AUTO, "stream", "burst", "quic", "coap", "coap+tcp"];
/// How many times slower than this machine's the processors of both sides are to seem when they
/// encode and decode: the proxy reads it.
const SLOWDOWN_VARIABLE: &str = "LONGWIRE_CODEC_SLOWDOWN";
const EDGE_PORT: u16 = 3128;
const EDGE_ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3129);
/// Where the gateway waits for its edge, on host b.
pub(crate) const GATEWAY_PORT: u16 = 4300;
/// How often an edge is asked whether its carrier is up.
const QUESTION_INTERVAL: Duration = Duration::from_millis(100);
/// How long it may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// Keys of both sides, as files.
pub(crate) struct Keys {
    edge: PathBuf,
    gateway: PathBuf,
}

/// What a plan says of the pair.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// What `--encoding` gets.
    pub(crate) encoding: String,
    /// How many times slower the processors are.
    pub(crate) slowdown: Option<String>,
    /// Where the gateway keeps its history.
    pub(crate) store: Option<PathBuf>,
    /// What is different for a service.
    pub(crate) services: Option<ServiceLines>,
    /// What `--carrier` gets.
    pub(crate) carrier: String,
}

/// What is different for one service, and the file that says so to the pair.
#[derive(Clone, Debug)]
pub(crate) struct ServiceLines {
    file: PathBuf,
    /// The pair's settings in TOML.
    text: String,
}

impl Default for Choices {
    fn default() -> Self {
        let auto = AUTO.to_string();
        Self { encoding: auto.clone(), slowdown: None, store: None, services: None, carrier: auto }
    }
}

impl Keys {
    /// Makes them with the binary, in directories below `scratch`.
    pub(crate) fn make(program: &Path, scratch: &Path) -> Result<Self, String> {
        let keys = Self { edge: scratch.join("edge"), gateway: scratch.join("gateway") };
        for (name, directory) in [("edge", &keys.edge), ("gateway", &keys.gateway)] {
            let mut keygen = Command::new(program);
            let made = keygen.arg("keygen").arg(directory).args(["--name", name]).output();
            let made = made.map_err(|error| format!("cannot make keys: {error}"))?;
            if !made.status.success() {
                let said = String::from_utf8_lossy(&made.stderr);
                return Err(format!("cannot make keys: {}", said.trim()));
            }
        }
        Ok(keys)
    }
}

impl Keys {
    /// Tells an edge that is started by `command` whose it is.
    pub(crate) fn tell_edge(&self, command: &mut Command) {
        with_keys(command, &self.edge, &self.gateway);
    }

    /// The same of a gateway.
    pub(crate) fn tell_gateway(&self, command: &mut Command) {
        with_keys(command, &self.gateway, &self.edge);
    }
}

/// The gateway on `host`, for one service.
pub(crate) fn gateway(
    mut command: Command,
    keys: &Keys,
    (host, origin): (&Host, &str),
    choices: &Choices,
) -> Command {
    let listen = SocketAddr::from((host.address(), GATEWAY_PORT)).to_string();
    command.args(["gateway", "--listen", &listen, "--allow", origin]);
    keys.tell_gateway(&mut command);
    if let Some(store) = &choices.store {
        command.arg("--store").arg(store);
    }
    choices.tell(&mut command);
    command
}

/// The edge on `host`, of the gateway on the other.
pub(crate) fn edge(mut command: Command, host: &Host, keys: &Keys, choices: &Choices) -> Command {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, EDGE_PORT)).to_string();
    // By number: the gateway listens for IPv4 alone.
    let gateway = SocketAddr::from((host.peer(), GATEWAY_PORT)).to_string();
    command.args(["edge", "--listen", &listen, "--gateway", &gateway]);
    command.args(["--admin", &EDGE_ADMIN.to_string()]);
    keys.tell_edge(&mut command);
    choices.tell(&mut command);
    command
}

fn with_keys(command: &mut Command, own: &Path, other: &Path) {
    command.arg("--key").arg(own.join("longwire.key"));
    command.arg("--peer").arg(other.join("longwire.pub"));
    command.args(["--congestion", CONGESTION_CONTROL, "--log", "warn"]);
}

impl Choices {
    /// Writes what the pair has no option for, before it is started.
    pub(crate) fn write(&self) -> io::Result<()> {
        let Some(services) = &self.services else { return Ok(()) };
        std::fs::write(&services.file, &services.text)
    }

    fn tell(&self, command: &mut Command) {
        command.args(["--encoding", &self.encoding, "--carrier", &self.carrier]);
        if let Some(services) = &self.services {
            command.arg("--config").arg(&services.file);
        }
        if let Some(factor) = &self.slowdown {
            command.env(SLOWDOWN_VARIABLE, factor);
        }
    }
}

impl ServiceLines {
    /// The only encodings that may be chosen for what fits a pattern.
    pub(crate) fn only(file: PathBuf, pattern: &str, names: Vec<String>) -> Self {
        let names = names.into_iter().map(toml::Value::String).collect();
        Self::with(file, pattern, ("encodings", toml::Value::Array(names)))
    }

    /// How urgent is what fits a pattern.
    pub(crate) fn urgent(file: PathBuf, pattern: &str, urgency: &str) -> Self {
        Self::with(file, pattern, ("urgency", urgency.into()))
    }

    fn with(file: PathBuf, pattern: &str, (key, value): (&str, toml::Value)) -> Self {
        let pattern = toml::Value::from(pattern);
        Self { file, text: format!("[[service]]\nmatch = {pattern}\n{key} = {value}\n") }
    }
}

/// Waits until the edge on `host` says that its gateway is connected.
pub(crate) fn await_carrier(
    host: &Host,
    processes: &Processes,
    deadline: Instant,
) -> Result<(), String> {
    let wait = || loop {
        match is_ready() {
            Ok(true) => return Ok(()),
            Ok(false) if Instant::now() < deadline && !processes.are_stopped() => {
                thread::sleep(QUESTION_INTERVAL);
            }
            Ok(false) => return Err("edge and gateway did not connect in time".to_string()),
            Err(error) => return Err(format!("the edge does not say how it is: {error}")),
        }
    };
    host.within(wait).map_err(|error| error.to_string())?
}

fn is_ready() -> io::Result<bool> {
    let mut stream = TcpStream::connect(EDGE_ADMIN)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    write!(stream, "GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match line.split(' ').nth(1) {
        Some("200") => Ok(true),
        Some("503") => Ok(false),
        _ => Err(io::Error::other(format!("it answers '{}'", line.trim_end()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_gets_what_it_may_choose_among() {
        let names = vec!["zstd".to_string(), "xmill:5".to_string()];
        let only = ServiceLines::only(PathBuf::new(), "http://b:80\"80", names);
        let read: toml::Table = toml::from_str(&only.text).unwrap();
        let service = &read["service"][0];
        assert_eq!(service["match"].as_str(), Some("http://b:80\"80"));
        let names: Vec<_> = service["encodings"].as_array().unwrap().iter().collect();
        assert_eq!(names, [&toml::Value::from("zstd"), &toml::Value::from("xmill:5")]);
    }
}
