//! `longwire serve topics`: a client of a broker behind HTTP.

use std::io::{IsTerminal as _, stderr};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use brokerd::client::{Ability, Direction, Wish};
use brokerd::{Error, Local, LocalConfig};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::terminal::say;
use crate::topics::{self, Peer, Use, given};

/// For how long a connection that was lost is made again, unless told otherwise.
const RETRY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// For how long a broker that was not there yet is tried.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a broker for programs that speak none of its protocols: what is posted to it is
/// published, and what comes of its subscriptions is kept to be asked for.
///
/// Prints `listening on ADDRESS` when it is ready. POST /messages takes an object with topic and
/// payload, GET /inbox?after=N gives what came behind number N, GET /status whether the broker has
/// accepted the subscriptions. SIGTERM and Ctrl-C end it.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
Examples:
  longwire serve topics mqtt://broker.example -t 'unit/+/track' -q 1
  curl -d '{\"topic\":\"unit/7/track\",\"payload\":\"59.9 10.7\"}' http://127.0.0.1:8097/messages
  curl 'http://127.0.0.1:8097/inbox?after=0'

RUST_LOG chooses what is logged (default: info)."
)]
pub(super) struct Args {
    #[command(flatten)]
    peer: Peer,
    /// Address and port to listen at, of a loopback interface; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8097",
        value_parser = super::address)]
    listen: SocketAddr,
    /// A filter of topics; may be given several times.
    #[arg(short, long, value_name = "FILTER")]
    topic: Vec<String>,
    /// Quality of service of what is published, and the highest of what comes: 0 to 2, of which
    /// each protocol has some; without it the least.
    #[arg(short, long, value_name = "QOS", value_parser = clap::value_parser!(i8).range(0..=2))]
    qos: Option<i8>,
    /// Where the broker posts messages to, with WS-Notification; without it a port of this
    /// machine's at the address by which it reaches the broker.
    #[arg(long, value_name = "ADDRESS:PORT")]
    consumer: Option<SocketAddr>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Only fails where the process has a subscriber already, which then logs.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let _ = log.with_ansi(stderr().is_terminal()).try_init();
    let done = topics::run(async {
        let publish = args.asked(Direction::Publish);
        let (target, settings, qos) = args.peer.read(publish)?;
        let (_, _, highest) = args.peer.read(args.asked(Direction::Subscribe))?;
        let wish = Wish {
            filters: args.topic.clone(),
            qos: highest.unsigned_abs(),
            listen: args.consumer,
            ..Wish::default()
        };
        let listen = args.listen;
        let config = LocalConfig { listen, target, settings, wish, qos, patience: PATIENCE };
        let local = Local::bind(config).await?;
        let wrong = |error| Error::System(format!("cannot serve: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(wrong)?;
        say(&format!("listening on {}\n", local.address())).map_err(wrong)?;
        let end = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        local.run(end).await
    });
    Ok(done?.map_or_else(ExitCode::from, |()| ExitCode::SUCCESS))
}

impl Args {
    /// What is asked of the protocol in a direction.
    fn asked(&self, direction: Direction) -> Use<'_> {
        let listens = self.consumer.is_some() && direction == Direction::Subscribe;
        let given = given(&[(listens, Ability::Listen)]);
        Use { direction, given, qos: self.qos, exchange: None, retry: RETRY }
    }
}
