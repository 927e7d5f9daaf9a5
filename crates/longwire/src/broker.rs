//! `longwire broker`: publish/subscribe.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use brokerd::{Bound, Config, Error, Handed, MqttSnConfig, Order};
use proxy::config::LogSettings;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{BAD_USE, say, service, side, tell};

/// Longest password, in bytes.
const MAX_PASSWORD_BYTES: u64 = 4096;

/// Run a broker: clients publish, and clients get what they have subscribed to.
///
/// Prints one line 'listening on ADDRESS (NAME)' for each listener when it is ready; logs go to
/// stderr. SIGTERM and Ctrl-C end it after clients have been told; on SIGHUP it reads the file
/// again.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without --store what is retained and what waits for clients is forgotten when the process ends.

Examples:
  longwire broker --mqtt 127.0.0.1:1883
  longwire broker passwd users.txt ann < password.txt
  longwire broker --mqtts 0.0.0.0:8883 --certificate b.pem --private-key b.key --users users.txt
  longwire broker --config broker.toml --store /var/lib/longwire --check"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(clap::Subcommand)]
enum What {
    /// Put a user with a password, read from stdin, into a file of users.
    Passwd(PasswdArgs),
}

#[derive(clap::Args)]
struct PasswdArgs {
    /// The file; made if it is not there.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The user; one of that name is replaced.
    #[arg(value_name = "USER")]
    user: String,
}

// table: one field an option of the command line
#[derive(clap::Args)]
struct RunArgs {
    /// Address for MQTT 3.1, 3.1.1 and 5 over TCP; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS")]
    mqtt: Option<String>,
    /// Address for MQTT over TLS.
    #[arg(long, value_name = "ADDRESS")]
    mqtts: Option<String>,
    /// Address for MQTT over WebSocket.
    #[arg(long, value_name = "ADDRESS")]
    ws: Option<String>,
    /// Address for MQTT over WebSocket over TLS.
    #[arg(long, value_name = "ADDRESS")]
    wss: Option<String>,
    /// Address for AMQP 1.0.
    #[arg(long, value_name = "ADDRESS")]
    amqp: Option<String>,
    /// Address for AMQP 1.0 over TLS.
    #[arg(long, value_name = "ADDRESS")]
    amqps: Option<String>,
    /// Address for AMQP 0.9.1.
    #[arg(long, value_name = "ADDRESS")]
    amqp091: Option<String>,
    /// Address for AMQP 0.9.1 over TLS.
    #[arg(long, value_name = "ADDRESS")]
    amqps091: Option<String>,
    /// Address for WS-Notification over HTTP.
    #[arg(long, value_name = "ADDRESS")]
    wsn: Option<String>,
    /// Address for WS-Notification over HTTPS.
    #[arg(long, value_name = "ADDRESS")]
    wsns: Option<String>,
    /// Address for MQTT-SN over UDP.
    #[arg(long, value_name = "ADDRESS")]
    mqtt_sn: Option<String>,
    /// Certificates of this broker, in PEM.
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE")]
    private_key: Option<PathBuf>,
    /// Authorities in PEM, of one of which clients must show a certificate over TLS; its common
    /// name is then the user.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Users and their passwords, as 'longwire broker passwd' writes them.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Let in clients that give no name, also where there are users or where others than this
    /// machine can connect.
    #[arg(long)]
    anonymous: bool,
    /// Address for metrics and health, on loopback: /metrics, /health/live.
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// Directory of sessions, what waits for them, and retained messages.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Settings in TOML; flags override them (see docs/broker.md).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only read the configuration and the files that it names; the exit status is 2 if anything is
    /// wrong. Nothing is bound or opened to write.
    #[arg(long)]
    check: bool,
    /// With --check: print an object.
    #[arg(long, requires = "check")]
    json: bool,
    /// What is logged: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// How it is logged: text or json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

/// Runs a broker until it is told to end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(What::Passwd(args)) = &args.what {
        return finish(passwd(args)?);
    }
    let handed = match service::handed() {
        Ok(handed) => handed,
        Err(error) => return finish(Err(Error::Caller(error.to_string()))),
    };
    let mut args = args.run;
    args.config = args.config.take().or_else(service::default_file);
    let log = LogSettings { level: args.log.clone(), format: args.log_format.clone() };
    if let Some((_, error)) = crate::log::check(&log).into_iter().next() {
        tell(&error.to_string());
        return Ok(ExitCode::from(BAD_USE));
    }
    let config = configure(&args);
    if args.check {
        return check(&args, config.and_then(|config| brokerd::check(&config)));
    }
    let config = match config {
        Ok(config) => config,
        Err(error) => return finish(Err(error)),
    };
    crate::log::start(&log)?;
    let (version, commit) = (side::BUILD.version, side::BUILD.commit);
    let file = args.config.as_ref().map(|file| file.display().to_string());
    tracing::info!(version, commit, file, "broker starts");
    if config.broker.store.is_none() {
        tracing::info!("no --store: what is retained and queued ends with this process");
    }
    finish(serve(&config, handed, &args))
}

/// The file's settings, and what flags say over them.
fn configure(args: &RunArgs) -> Result<Config, Error> {
    let mut config = args.config.as_deref().map_or_else(|| Ok(Config::default()), Config::load)?;
    let broker = &mut config.broker;
    let texts = [
        (&mut broker.mqtt, &args.mqtt),
        (&mut broker.mqtts, &args.mqtts),
        (&mut broker.ws, &args.ws),
        (&mut broker.wss, &args.wss),
        (&mut broker.amqp, &args.amqp),
        (&mut broker.amqps, &args.amqps),
        (&mut broker.amqp091, &args.amqp091),
        (&mut broker.amqps091, &args.amqps091),
        (&mut broker.wsn, &args.wsn),
        (&mut broker.wsns, &args.wsns),
        (&mut broker.admin, &args.admin),
    ];
    for (to, from) in texts {
        *to = from.clone().or(to.take());
    }
    let paths = [
        (&mut broker.certificate, &args.certificate),
        (&mut broker.private_key, &args.private_key),
        (&mut broker.client_ca, &args.client_ca),
        (&mut broker.users, &args.users),
        (&mut broker.store, &args.store),
    ];
    for (to, from) in paths {
        *to = from.clone().or(to.take());
    }
    broker.anonymous |= args.anonymous;
    config.mqtt_sn.extend(args.mqtt_sn.clone().map(MqttSnConfig::at));
    Ok(config)
}

fn check(args: &RunArgs, result: Result<(), Error>) -> anyhow::Result<ExitCode> {
    let what = result.err().map(|error| error.to_string());
    if args.json {
        let file = args.config.as_ref().map(|file| file.display().to_string());
        let object = serde_json::json!({
            "side": "broker", "good": what.is_none(), "file": file, "what": what,
        });
        say(&format!("{object}\n"))?;
    } else {
        let good = "the configuration of this broker is good".to_owned();
        say(&format!("{}\n", what.clone().unwrap_or(good)))?;
    }
    Ok(if what.is_none() { ExitCode::SUCCESS } else { ExitCode::from(BAD_USE) })
}

fn announce(listeners: &[Bound]) {
    let mut text = String::new();
    for Bound { name, address } in listeners {
        let _ = writeln!(text, "listening on {address} ({name})");
    }
    // Nobody may read it.
    let _ = say(&text);
    service::ready(text.trim_end());
    // All of a broker is in one thread: where this is run, it works.
    tokio::task::spawn_local(service::watch(|| async { true }));
}

/// The signals that say something to a broker.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// The last order was to read the file again.
    is_reloading: bool,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            is_reloading: false,
        })
    }

    /// What the next one orders; SIGHUP to read the file again, under the same flags.
    async fn order(&mut self, args: &RunArgs) -> Order {
        if std::mem::take(&mut self.is_reloading) {
            service::ready("the file was read again: the log says what came of it");
        }
        let is_over = tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.interrupt.recv() => true,
            _ = self.hangup.recv() => false,
        };
        if is_over {
            service::stopping();
            return Order::End;
        }
        service::reloading();
        self.is_reloading = true;
        Order::Reload(Box::new(configure(args)))
    }
}

/// Serves until a signal says to end.
fn serve(config: &Config, handed: Handed, args: &RunArgs) -> Result<(), Error> {
    let awaited = Cell::new(None);
    let ready = |listeners: &[Bound]| {
        // Who hears that it is ready may send a signal at once: one that is not awaited ends the
        // process.
        awaited.set(Signals::new().ok());
        announce(listeners);
    };
    let mut signals = None;
    brokerd::serve(config, handed, ready, async || {
        if signals.is_none() {
            signals = awaited.take();
        }
        match &mut signals {
            Some(signals) => signals.order(args).await,
            None => Order::End,
        }
    })
}

fn passwd(args: &PasswdArgs) -> anyhow::Result<Result<(), Error>> {
    let mut password = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_PASSWORD_BYTES + 1);
    input.read_to_end(&mut password).context("cannot read the password from stdin")?;
    while password.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        password.pop();
    }
    if password.len() as u64 > MAX_PASSWORD_BYTES {
        let text = format!("the password is over the limit of {MAX_PASSWORD_BYTES} bytes");
        return Ok(Err(Error::Caller(text)));
    }
    Ok(brokerd::set_password(&args.file, &args.user, &password))
}

fn finish(result: Result<(), Error>) -> anyhow::Result<ExitCode> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Error::Caller(what)) => {
            tell(&what);
            Ok(ExitCode::from(BAD_USE))
        }
        Err(error) => Err(error.into()),
    }
}
