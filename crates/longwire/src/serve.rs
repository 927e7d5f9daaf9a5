//! `longwire serve`: the services that the papers put behind the link.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;

use anyhow::Context;
use services::tracks::DEFAULT_SEED;
use services::tracks::server::{Config, Server};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Serve one of the services that the papers put behind the link.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    service: Service,
}

#[derive(clap::Subcommand)]
enum Service {
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

RUST_LOG chooses what is logged (default: info).")]
struct TracksArgs {
    /// Address and port to listen at; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,
    /// Seed of the files: the same seed gives the same files everywhere.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// TCP congestion control of the connections, such as cubic (default: the system's).
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

/// Runs the command until it is told to stop.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Service::Tracks(args) = args.service;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Only fails where the process has a subscriber already, which then logs.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let _ = log.with_ansi(stderr().is_terminal()).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(serve(args))
}

async fn serve(args: TracksArgs) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot await SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot await Ctrl-C")?;
    let config = Config { listen: args.listen, seed: args.seed, congestion: args.congestion };
    let server = match Server::bind(config) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("longwire: {error}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut out = stdout().lock();
    // Whoever started it may have closed stdout; that is no reason not to serve.
    let _ = writeln!(out, "listening on {}", server.address()).and_then(|()| out.flush());
    drop(out);
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    server.run(stop).await;
    Ok(ExitCode::SUCCESS)
}

/// An address with a port; a name is resolved.
fn address(text: &str) -> Result<SocketAddr, String> {
    let remedy = "give one like 127.0.0.1:8080";
    let mut addresses = text.to_socket_addrs().map_err(|error| format!("{error}; {remedy}"))?;
    addresses.next().ok_or_else(|| format!("the name has no address; {remedy}"))
}
