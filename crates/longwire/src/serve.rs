//! `longwire serve`: the services that the papers put behind the link.

mod consumer;
mod topics;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use services::server::{Chunking, Compression, Server, Settings, Timeouts};
use services::{benchmark, messaging, registry, tracks};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Threads that serve: one for each processor would be many where hundreds of servers run at once.
const WORKERS: usize = 2;

/// Serve one of the services of the papers: those behind the link, and messages between nodes.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    service: Service,
}

#[derive(clap::Subcommand)]
enum Service {
    Benchmark(BenchmarkArgs),
    Consumer(Box<consumer::Args>),
    Messaging(MessagingArgs),
    Registry(RegistryArgs),
    Topics(Box<topics::Args>),
    Tracks(TracksArgs),
}

/// Friendly-force tracks (IST-118): 22 NFFI 1.3 messages as SOAP, REST XML and REST JSON.
///
/// Prints one line, `listening on ADDRESS`, when it is ready; logs go to stderr. SIGTERM and Ctrl-C
/// end it after the exchanges under way.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire serve tracks --listen 127.0.0.1:8080
  curl http://127.0.0.1:8080/rest/xml/7
  curl --compressed http://127.0.0.1:8080/rest/json/7
  python3 -m zeep 'http://127.0.0.1:8080/soap?wsdl'
  longwire serve tracks --chunking on --send-buffer '8192 B' --nodelay off

docs/parameters.md defines each parameter from --keep-alive-timeout on.

RUST_LOG chooses what is logged (default: info).")]
struct TracksArgs {
    /// Address and port to listen at; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    /// Seed of the files: the same seed gives the same files everywhere.
    #[arg(long, value_name = "N", default_value_t = tracks::DEFAULT_SEED)]
    seed: u64,
    /// TCP congestion control of the connections, such as cubic (default: the system's).
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
}

/// Answers of the 22 TPC-H queries (NAM) as XML and as SOAP 1.1: files of yours, or tables of
/// chance with the same shapes.
///
/// Prints one line, `listening on ADDRESS`, when it is ready; logs go to stderr. SIGTERM and Ctrl-C
/// end it after the exchanges under way.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire serve benchmark --listen 127.0.0.1:8080
  curl http://127.0.0.1:8080/q/12/soap
  interop/tpch-files tpch && longwire serve benchmark --files tpch

docs/parameters.md defines each parameter from --keep-alive-timeout on.

RUST_LOG chooses what is logged (default: info).")]
struct BenchmarkArgs {
    /// Address and port to listen at; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    /// Directory with the answers, each q01.soap.xml or the like (default: generated ones).
    #[arg(long, value_name = "DIR", conflicts_with = "seed")]
    files: Option<PathBuf>,
    /// Seed of generated answers: the same seed gives the same everywhere.
    #[arg(long, value_name = "N", default_value_t = benchmark::DEFAULT_SEED)]
    seed: u64,
    /// TCP congestion control of the connections, such as cubic (default: the system's).
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    #[command(flatten)]
    parameters: Parameters,
}

/// Military messages (IST-150): an instance on every node takes messages of its clients and
/// delivers them to the nodes of their addressees, which keep them.
///
/// Prints `listening on ADDRESS` when it is ready: a line for clients, with `peers` one for nodes,
/// with `coap` one for nodes over CoAP. Logs go to stderr. SIGTERM and Ctrl-C end it; nothing that
/// was accepted is lost, nor is it by a kill.
#[derive(clap::Args)]
#[command(after_help = "\
The file, in TOML (docs/messaging.md has all keys):
  node = \"a1\"
  listen = \"127.0.0.1:8090\"   # for clients
  peers = \"0.0.0.0:8091\"      # for other nodes
  store = \"/var/lib/longwire/a1\"
  [nodes]
  b1 = { url = \"http://192.0.2.2:8091\", form = \"cbor\" }
  b2 = { via = \"b1\" }
  [groups]
  platoon-b = [\"b1\", \"b2\"]

Examples:
  longwire serve messaging --config a1.toml
  longwire message send --to platoon-b --precedence flash --text 'Contact north'

RUST_LOG chooses what is logged (default: info).")]
struct MessagingArgs {
    /// Settings of the node, in TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only read the configuration; the exit status is 2 if anything is wrong.
    #[arg(long)]
    check: bool,
}

/// A registry of services by kind and measured quality: UDDI v3 over SOAP, the resource directory
/// of CoRE (RFC 9176) over CoAP and HTTP, and JSON over HTTP, of one store with leases.
///
/// Prints `listening on ADDRESS` when it is ready: a line for HTTP, with `coap` one for CoAP. Logs
/// go to stderr. SIGTERM and Ctrl-C end it; nothing that was published is lost, nor by a kill.
#[derive(clap::Args)]
#[command(after_help = "\
The file, in TOML (docs/registry.md has all keys):
  listen = \"127.0.0.1:8095\"
  coap = \"127.0.0.1:5683\"
  store = \"/var/lib/longwire/registry\"
  users = \"/etc/longwire/users\"   # longwire broker passwd makes it; without it nobody may publish

Examples:
  longwire broker passwd users alice
  longwire serve registry --config registry.toml
  longwire find --kind consumer --max-latency '3 ms' --determinism hard

RUST_LOG chooses what is logged (default: info).")]
struct RegistryArgs {
    /// Settings of the registry, in TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only read the configuration; the exit status is 2 if anything is wrong.
    #[arg(long)]
    check: bool,
}

/// The parameters of IST-118's Table III; timeouts from 1 ms to 24 h, buffers from 256 B to 16 MiB.
#[derive(clap::Args)]
struct Parameters {
    /// Longest pause between requests.
    #[arg(long, value_name = "TIME", default_value = "180 s", value_parser = duration)]
    keep_alive_timeout: Duration,
    /// When answers are compressed with gzip.
    #[arg(long, value_name = "WHEN", default_value = "on")]
    compression: CompressionName,
    /// How the end of an answer is told.
    #[arg(long, value_name = "HOW", default_value = "off")]
    chunking: ChunkingName,
    /// Content of an answer that goes out with one write.
    #[arg(long, value_name = "SIZE", default_value = "32768 B", value_parser = size)]
    send_buffer: usize,
    /// Largest head of a request; a larger one is answered with 431.
    #[arg(long, value_name = "SIZE", default_value = "32768 B", value_parser = size)]
    header_buffer: usize,
    /// Longest time without a byte in either direction.
    #[arg(long, value_name = "TIME", default_value = "120 s", value_parser = duration)]
    idle_timeout: Duration,
    /// Longest time without a byte of a request that has begun.
    #[arg(long, value_name = "TIME", default_value = "120 s", value_parser = duration)]
    read_timeout: Duration,
    /// Longest time without the client taking a byte of an answer.
    #[arg(long, value_name = "TIME", default_value = "120 s", value_parser = duration)]
    write_timeout: Duration,
    /// Longest time until the three timeouts before are looked at although nothing happened.
    #[arg(long, value_name = "TIME", default_value = "120 s", value_parser = duration)]
    poll_timeout: Duration,
    /// Most that one read takes from a connection.
    #[arg(long, value_name = "SIZE", default_value = "32768 B", value_parser = size)]
    tcp_buffer: usize,
    /// Send small segments at once (TCP_NODELAY); off: batch them (Nagle's algorithm).
    #[arg(long, value_name = "SWITCH", default_value = "on")]
    nodelay: Switch,
}

#[derive(Clone, Copy, ValueEnum)]
enum CompressionName {
    /// Never
    Off,
    /// When the client asks for it
    On,
    /// Always, even unasked
    Forced,
}

#[derive(Clone, Copy, ValueEnum)]
enum ChunkingName {
    /// Content-Length
    Off,
    /// Chunks, each with one send buffer
    On,
    /// Neither: the end of the connection
    Close,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl From<Parameters> for Settings {
    fn from(of: Parameters) -> Self {
        Self {
            timeouts: Timeouts {
                keep_alive: of.keep_alive_timeout,
                idle: of.idle_timeout,
                read: of.read_timeout,
                write: of.write_timeout,
                poll: of.poll_timeout,
            },
            compression: match of.compression {
                CompressionName::Off => Compression::Off,
                CompressionName::On => Compression::ByRequest,
                CompressionName::Forced => Compression::Forced,
            },
            chunking: match of.chunking {
                ChunkingName::Off => Chunking::Off,
                ChunkingName::On => Chunking::On,
                ChunkingName::Close => Chunking::Close,
            },
            send_buffer_bytes: of.send_buffer,
            header_buffer_bytes: of.header_buffer,
            tcp_buffer_bytes: of.tcp_buffer,
            nodelay: of.nodelay == Switch::On,
        }
    }
}

/// Runs the command until it is told to stop.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Its threads are its own, and nothing on them logs.
    if let Service::Consumer(args) = &args.service {
        return consumer::run(args);
    }
    // All that it does is on one thread.
    if let Service::Topics(args) = &args.service {
        return topics::run(args);
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Only fails where the process has a subscriber already, which then logs.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let _ = log.with_ansi(stderr().is_terminal()).try_init();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(serve(args.service))
}

/// A service that listens.
enum Bound {
    Files(Server),
    Messaging(Box<messaging::Server>),
    Registry(Box<registry::Server>),
    /// There is nothing to serve.
    Checked,
}

/// Must be called within a runtime.
async fn bind(service: Service) -> Result<Bound, services::Error> {
    Ok(match service {
        Service::Tracks(args) => {
            let TracksArgs { listen, seed, congestion, parameters } = args;
            let settings = parameters.into();
            let config = tracks::server::Config { listen, seed, congestion, settings };
            Bound::Files(config.bind()?)
        }
        Service::Benchmark(args) => {
            let BenchmarkArgs { listen, files, seed, congestion, parameters } = args;
            let answers = match files {
                Some(directory) => benchmark::Answers::of_files(&directory)?,
                None => benchmark::Answers::generated(seed),
            };
            let settings = parameters.into();
            let config = benchmark::server::Config { listen, answers, congestion, settings };
            Bound::Files(config.bind()?)
        }
        // These have a runtime of their own or none, and were run before.
        Service::Consumer(_) | Service::Topics(_) => Bound::Checked,
        Service::Messaging(args) => {
            let config = messaging::Config::load(&args.config)?;
            match args.check {
                true => Bound::Checked,
                false => Bound::Messaging(Box::new(messaging::Server::bind(&config).await?)),
            }
        }
        Service::Registry(args) => {
            let config = registry::Config::load(&args.config)?;
            match args.check {
                true => Bound::Checked,
                false => Bound::Registry(Box::new(registry::Server::bind(&config).await?)),
            }
        }
    })
}

async fn serve(service: Service) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot await SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot await Ctrl-C")?;
    let bound = match bind(service).await {
        Ok(bound) => bound,
        Err(error) => {
            eprintln!("longwire: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let addresses = match &bound {
        Bound::Files(server) => vec![server.address()],
        Bound::Messaging(server) => server.addresses(),
        Bound::Registry(server) => server.addresses(),
        Bound::Checked => {
            crate::say("the configuration is good\n")?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut out = stdout().lock();
    for address in addresses {
        // Whoever started it may have closed stdout; that is no reason not to serve.
        let _ = writeln!(out, "listening on {address}").and_then(|()| out.flush());
    }
    drop(out);
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    match bound {
        Bound::Files(server) => server.run(stop).await,
        Bound::Messaging(server) => server.run(stop).await,
        Bound::Registry(server) => server.run(stop).await,
        Bound::Checked => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// An address with a port; a name is resolved.
fn address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "give one like 127.0.0.1:8080";
    let mut addresses = text.to_socket_addrs().map_err(|error| format!("{error}; {remedy}"))?;
    addresses.next().ok_or_else(|| format!("the name has no address; {remedy}"))
}

/// A timeout; the server refuses what is out of range.
fn duration(text: &str) -> Result<Duration, link::Error> {
    link::units::parse_duration(text)
}

/// The size of a buffer; the server refuses what is out of range.
fn size(text: &str) -> Result<usize, link::Error> {
    link::units::parse_size(text).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}
