//! What `longwire edge` and `longwire gateway` do alike: settings from file and flags, log,
//! runtime, the ready line, signals.

use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use proxy::config::{
    LinkSettings, LogSettings, Mistakes, Period, Rate, ServiceSettings, Settings, Size,
};
use proxy::{News, Pulse, Renewal, Renewed};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::service;

/// Options of both sides.
// table: one field an option of the command line
#[derive(Clone, clap::Args)]
pub(crate) struct Common {
    /// How bodies cross the link: auto (what is learned decides), nam (the paper's policy), or
    /// always identity, deflate[:1-9], zstd[:-7..19], brotli[:0-11] or xmill[:1-9].
    #[arg(long, value_name = "NAME[:LEVEL]")]
    pub(crate) encoding: Option<String>,
    /// Most that the link is believed to carry, like '250 kbit/s': measurements may say less.
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    pub(crate) rate_cap: Option<Rate>,
    /// How messages cross the link: stream (TCP), burst (sealed datagrams over UDP, with repair for
    /// what gets lost), quic (and TCP where UDP does not pass), or coap and coap+tcp (requests of
    /// CoAP, and TCP for what they do not take); burst and quic need keys. By default (auto) an
    /// edge with keys has stream and burst and sends each message by the one whose answer is
    /// expected first, and a gateway with keys takes all.
    #[arg(long, value_name = "NAME")]
    pub(crate) carrier: Option<String>,
    /// This side's private key, as `longwire keygen` makes it.
    #[arg(long, value_name = "FILE", requires = "peer")]
    pub(crate) key: Option<PathBuf>,
    /// The other side's public keys: lines 'NAME ed25519:HEX [edge|gateway]'.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) peer: Option<PathBuf>,
    /// Without keys, use addresses other than loopback: everyone in between can read and change
    /// what passes.
    #[arg(long, conflicts_with = "key")]
    pub(crate) insecure_plain: bool,
    /// Settings in TOML; flags override them (see docs/configuration.md).
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Loopback address for /metrics and /health; port 0 takes any free one, told in the log.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// TCP congestion control of carriers, such as cubic (default: the system's).
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Exchanges open at once, at most; one client (at a gateway, one edge) gets no more than 7
    /// times what is free [default: 256].
    #[arg(long, value_name = "N")]
    pub(crate) max_exchanges: Option<usize>,
    /// Tunnels and event streams open at once, at most; they take no exchange of others
    /// [default: 1024].
    #[arg(long, value_name = "N")]
    pub(crate) max_tunnels: Option<usize>,
    /// How long nothing may pass through a tunnel or an event stream [default: 30 min].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) tunnel_timeout: Option<Period>,
    /// How long a client or an origin may stand still amid a body [default: 60 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) idle_timeout: Option<Period>,
    /// Threads that encode and decode (default: one per core).
    #[arg(long, value_name = "N")]
    pub(crate) codec_threads: Option<usize>,
    /// How long the other side may take to say HELLO once it is connected [default: 10 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) hello_timeout: Option<Period>,
    /// How long a carrier idles before the other side is asked for a sign of life [default: 60 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) keepalive: Option<Period>,
    /// A side that gives no sign of life for so long, though it was asked, is gone [default: 60 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) peer_timeout: Option<Period>,
    /// How long a body waits for what it takes to decode it [default: 30 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) body_timeout: Option<Period>,
    /// How long a shutdown waits for what is open; 2 s for tunnels, event streams [default: 30 s].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) drain_timeout: Option<Period>,
    /// How long an answer may take to begin while nothing moves [default: 300 s for an edge, 120 s
    /// for a gateway, whose word is clearer].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) response_timeout: Option<Period>,
    /// Memory of all codecs, like '32 MiB'.
    #[arg(long, value_name = "SIZE", value_parser = Size::parse)]
    pub(crate) codec_memory: Option<Size>,
    /// Memory for bodies from the other side, like '8 MiB'.
    #[arg(long, value_name = "SIZE", value_parser = Size::parse)]
    pub(crate) body_memory: Option<Size>,
    /// Directory to keep what is learned in, and the history of decisions (see longwire history).
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// How long what is made of messages is kept there [default: 90 d].
    #[arg(long, value_name = "TIME", value_parser = Period::parse)]
    pub(crate) store_age: Option<Period>,
    /// What is logged: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// How it is logged: text or json.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
    /// Only read the configuration, with the files that it names, and list all mistakes, each with
    /// its line; the exit status is 2 if there are any. Nothing is bound, dialled or opened to
    /// write.
    #[arg(long)]
    pub(crate) check: bool,
    /// With --check: print an object.
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
}

impl Common {
    /// The file's settings, or none, and what is wrong with it.
    fn file(&self) -> Result<(Settings, Mistakes), proxy::Error> {
        self.config.as_deref().map_or_else(|| Ok(Default::default()), Settings::load)
    }

    /// What is said of the log, flags over the file.
    pub(crate) fn log(&self, file: LogSettings) -> LogSettings {
        LogSettings { level: self.log.clone(), format: self.log_format.clone() }.over(file)
    }
}

/// All that a side is told, flags over the file.
pub(crate) struct Plan<S> {
    /// Its section.
    pub(crate) section: S,
    pub(crate) link: LinkSettings,
    pub(crate) services: Vec<ServiceSettings>,
    pub(crate) log: LogSettings,
}

/// A side that can be told anew while it runs.
pub(crate) trait Side {
    /// Its section's name.
    const NAME: &'static str;
    /// Its section of the file.
    type Section;
    /// What comes of it.
    type Config;

    fn common(&self) -> &Common;
    /// What flags and the file's section say together, and the keys that flags give.
    fn section(&self, file: &Settings) -> (Self::Section, Vec<&'static str>);
    fn resolve(plan: &Plan<Self::Section>) -> Result<Self::Config, Mistakes>;
    /// What a running side can take of a new configuration.
    fn news(config: Self::Config, new: &Plan<Self::Section>, running: &Plan<Self::Section>)
    -> News;
    /// Notes what was taken, and names what differs still.
    fn adopt(running: &mut Self::Section, new: Self::Section) -> Vec<&'static str>;
}

/// What file and flags say now, or all that is wrong with it; with `log`, the log begins as soon as
/// it is known how, for what is found on the way.
pub(crate) fn configure<S: Side>(
    side: &S,
    log: bool,
) -> Result<(Plan<S::Section>, S::Config), Mistakes> {
    let common = side.common();
    let alone = |error: proxy::Error| {
        let mut mistakes = Mistakes::default();
        mistakes.add("", "", error);
        mistakes
    };
    let (file, mut mistakes) = common.file().map_err(alone)?;
    let (section, given) = side.section(&file);
    let Settings { link, services, log: of_log, lines, .. } = file;
    let plan = Plan { section, link, services, log: common.log(of_log) };
    let mut of_log = Mistakes::default();
    for (key, error) in crate::log::check(&plan.log) {
        of_log.add("log", key, error);
    }
    if log && of_log.is_empty() {
        crate::log::start(&plan.log).map_err(alone)?;
    }
    mistakes.and(of_log);
    match S::resolve(&plan) {
        Ok(config) if mistakes.is_empty() => return Ok((plan, config)),
        Ok(_) => {}
        Err(more) => mistakes.and(more),
    }
    let mut given: Vec<_> = given.into_iter().map(|key| (S::NAME, key)).collect();
    given.extend(common.log.is_some().then_some(("log", "level")));
    given.extend(common.log_format.is_some().then_some(("log", "format")));
    mistakes.locate(&lines, &given);
    Err(mistakes)
}

/// Tells what is wrong with a configuration, or that nothing is.
pub(crate) fn check<S: Side>(side: &S) -> anyhow::Result<ExitCode> {
    let common = side.common();
    let (mistakes, services) = match configure(side, true) {
        Ok((plan, _)) => (Mistakes::default(), plan.services.len()),
        Err(mistakes) => (mistakes, 0),
    };
    let file = common.config.as_ref().map(|file| file.display().to_string());
    let good = mistakes.is_empty();
    let mut text = String::new();
    if common.json {
        let one = |mistake: &proxy::config::Mistake| {
            serde_json::json!({
                "file": mistake.place().map(|(file, _)| file.display().to_string()),
                "line": mistake.place().map(|(_, line)| line),
                "key": mistake.key(),
                "what": mistake.error().to_string(),
            })
        };
        let mistakes: Vec<_> = mistakes.iter().map(one).collect();
        let all = serde_json::json!({
            "side": S::NAME, "good": good, "file": file, "mistakes": mistakes,
        });
        writeln!(text, "{all}")?;
    } else if good {
        let read = file.map_or_else(
            || "no file".to_owned(),
            |file| {
                let noun = if services == 1 { "service" } else { "services" };
                format!("{file} with {services} {noun}")
            },
        );
        let name = S::NAME;
        writeln!(
            text,
            "the configuration of this {name} is good: read were {read}, the flags, and \
                        the files that these name"
        )?;
    }
    for mistake in mistakes.iter().filter(|_| !common.json) {
        writeln!(text, "{mistake}")?;
    }
    crate::say(&text)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(crate::BAD_USE) })
}

/// Reads files again at each SIGHUP, for ever. What does not parse leaves all as it was.
pub(crate) async fn renew<S: Side>(
    side: S,
    mut running: Plan<S::Section>,
    renewal: Renewal,
    mut hangup: Signal,
) {
    while hangup.recv().await.is_some() {
        service::reloading();
        let status = match renewed(&side, &mut running, &renewal).await {
            Ok(Renewed { taken, left }) => {
                let said = |what: &str, list: &[String]| match list {
                    [] => String::new(),
                    list => format!("; {what} {}", list.join(", ")),
                };
                let (taken, left) = (said("taken:", &taken), said("needs a restart:", &left));
                let none = if taken.is_empty() && left.is_empty() { "; nothing new" } else { "" };
                let status = format!("settings were read again{taken}{left}{none}");
                if left.is_empty() {
                    tracing::info!("{status}");
                } else {
                    tracing::warn!("{status}");
                }
                status
            }
            Err(error) => {
                let status = format!("settings were read again and are not taken: {error}");
                tracing::error!("{status}");
                status
            }
        };
        service::ready(&status);
    }
}

async fn renewed<S: Side>(
    side: &S,
    running: &mut Plan<S::Section>,
    renewal: &Renewal,
) -> Result<Renewed, proxy::Error> {
    let (new, config) = configure(side, false)?;
    let mut renewed = renewal.take(S::news(config, &new, running)).await?;
    let Plan { section, link, services, log } = new;
    let level = crate::log::level(&log);
    if level != crate::log::level(&running.log) {
        crate::log::set_level(level);
        renewed.taken.push(format!("log level ({level})"));
        running.log.level = log.level;
    }
    if log.format != running.log.format {
        renewed.left.push("log format".to_owned());
    }
    if link != running.link {
        renewed.left.push("link".to_owned());
    }
    if !renewed.left.iter().any(|what| what.starts_with("services")) {
        running.services = services;
    }
    renewed.left.extend(S::adopt(&mut running.section, section).into_iter().map(str::to_owned));
    Ok(renewed)
}

/// Awaits SIGHUP, which else would end the process.
pub(crate) fn hangup() -> anyhow::Result<Signal> {
    signal(SignalKind::hangup()).context("cannot await SIGHUP")
}

/// Tells how a side ended: bad use is 2, failure at work 1.
pub(crate) fn finish(result: Result<(), proxy::Error>) -> anyhow::Result<ExitCode> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(proxy::Error::Caller(what)) => {
            crate::tell(&what);
            Ok(ExitCode::from(crate::BAD_USE))
        }
        Err(error) => Err(error.into()),
    }
}

/// A runtime for one side of the pair: with threads for half the processors, since the relay is one
/// task, and each step of a message that goes to a task on another thread costs a wake-up there. On
/// two processors a thread for each took a sixth more of them and carried a sixth fewer requests.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    proxy::limit_arenas();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads((processors / 2).max(1)).enable_all().build();
    runtime.context("cannot start the runtime")
}

/// What this program is built from.
pub(crate) const BUILD: proxy::Build =
    proxy::Build { version: env!("CARGO_PKG_VERSION"), commit: option_env!("LONGWIRE_COMMIT") };

/// Warns where others than this machine reach the clients' listener.
pub(crate) fn warn_of_reach(listen: SocketAddr) {
    if !listen.ip().to_canonical().is_loopback() {
        let what = "this address is not loopback: whoever reaches it is served, and nobody is \
                    asked who he is";
        tracing::warn!(%listen, "{what}");
    }
}

/// Prints the ready line, and tells the service manager, from now on also that the side works.
pub(crate) fn announce(address: SocketAddr, admin: Option<SocketAddr>, pulse: Pulse) {
    if let Some(admin) = admin {
        tracing::info!(%admin, "admin interface");
    }
    let mut out = stdout().lock();
    // Whoever started it may have closed stdout; that is no reason not to serve.
    let line = format!("listening on {address}");
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    service::ready(&line);
    tokio::spawn(service::watch(move || {
        let pulse = pulse.clone();
        async move { pulse.beats().await }
    }));
}

/// SIGTERM and Ctrl-C: the first asks for a shutdown, the second for an end at once.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot await SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot await Ctrl-C")?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// The same, and the service manager is told.
    pub(crate) async fn stop(&mut self) {
        self.next().await;
        service::stopping();
    }
}
