//! What a campaign measures: the plan's file, checked and crossed into cells.

mod cross;
mod estimate;
mod file;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use link::{ChannelConfig, LinkConfig};
pub(crate) use record::campaign::PAIR_SETTINGS;
use record::campaign::{Advice, Figure, Network, Reference, Way};

use services::benchmark::Class;
use services::tracks::client::Api;

use super::verdict::Limits;
use crate::error::{Error, Result};
pub use estimate::Expected;
pub(super) use estimate::share;
pub(crate) use file::Ready;
use file::{Client as ClientFile, File};

/// The server that is meant where none is named.
pub(crate) const BUILT_IN: &str = "tracks";
/// The servers that need no command: `longwire serve NAME`.
const OWN_SERVERS: [&str; 2] = [BUILT_IN, "benchmark"];
/// Settings that the laboratory sets on the far host, whatever the server.
pub(crate) const HOST_SETTINGS: [&str; 2] = ["congestion", "initial_window"];
/// What `encodings` says when `auto` may choose among all that it has.
pub(crate) const ALL_ENCODINGS: &str = "all";
/// Slowest processor.
const MAX_SLOWDOWN: f64 = 1_000.0;
/// Most messages of a pass.
const MAX_MESSAGES: u32 = 100_000;
/// Largest file read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most cells of one campaign, and most repetitions of a cell.
const MAX_CELLS: usize = 20_000;
const MAX_REPETITIONS: u32 = 1_000;
/// The greatest share of a run that its endpoints may wait: with more, waiting is what is measured.
const MAX_WAIT: f64 = 0.25;
/// Most links that a network becomes one after another.
const MAX_CHANGES: usize = 100;
/// How long a server may take to be ready where the plan does not say.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time of one exchange where the plan does not say.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(200);
/// Memory that the processes of one run are reckoned with where the plan does not say.
const RUN_MEMORY_BYTES: u64 = 12_000_000;
/// Where the server of a run listens where the plan does not say.
const PORT: u16 = 8080;

/// A plan, ready to be run.
#[derive(Debug)]
pub struct Plan {
    pub(crate) title: String,
    pub(crate) about: String,
    /// The file as it was read: two plans are the same when this is.
    pub(crate) text: String,
    pub(crate) seed: u64,
    pub(crate) quick: bool,
    pub(crate) limits: Limits,
    pub(crate) networks: Vec<NetworkPlan>,
    pub(crate) servers: Vec<ServerPlan>,
    pub(crate) commands: Vec<CommandPlan>,
    pub(crate) cells: Vec<CellPlan>,
    pub(crate) references: Vec<Reference>,
    pub(crate) advice: Vec<Advice>,
    pub(crate) figures: Vec<Figure>,
}

/// A network with what the ferry needs to emulate it.
#[derive(Debug)]
pub(crate) struct NetworkPlan {
    pub(crate) network: Network,
    pub(crate) config: LinkConfig,
    /// What the link becomes, and when after the client's start; in order.
    pub(crate) changes: Vec<(Duration, LinkConfig)>,
    pub(crate) repetitions: u32,
    /// How it is asked over it, where a group does not say otherwise.
    client: ClientFile,
}

/// How the measuring client asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientPlan {
    /// Numbers of the tracks, in order.
    pub(crate) tracks: Vec<usize>,
    /// How many messages of a benchmark a pass has.
    pub(crate) messages: u32,
    /// How many tracks or messages the first pass fetches.
    pub(crate) warm_up: u32,
    pub(crate) timeout: Duration,
    pub(crate) budget: Duration,
}

/// A server that is measured.
#[derive(Debug)]
pub(crate) struct ServerPlan {
    pub(crate) name: String,
    /// None for our own.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) prepare: Option<Vec<String>>,
    pub(crate) ready: Ready,
    pub(crate) ready_timeout: Duration,
    pub(crate) port: u16,
    pub(crate) services: Vec<String>,
    /// One process serves all runs of a cell, one after another.
    pub(crate) share: bool,
    pub(crate) memory_bytes: u64,
    /// Mean length of its answers, where that is not its services' own.
    pub(crate) answer_bytes: Option<u64>,
    pub(crate) defaults: Vec<(String, String)>,
}

/// A client that is not longwire's own.
#[derive(Debug)]
pub(crate) struct CommandPlan {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
}

/// One cell: what a run needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellPlan {
    pub(crate) name: String,
    /// Index of the network.
    pub(crate) network: usize,
    /// Index of the server.
    pub(crate) server: usize,
    pub(crate) service: String,
    pub(crate) way: Way,
    /// Settings that differ from the server's defaults, sorted by name.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) groups: Vec<String>,
    pub(crate) repetitions: u32,
    pub(crate) client: ClientPlan,
}

/// What the command line changes of a plan.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only what the quick form leaves.
    pub quick: bool,
    /// Only cells whose name matches one of these patterns, in which `*` stands for anything.
    pub cells: Vec<String>,
    /// Another seed.
    pub seed: Option<u64>,
    /// Another number of repetitions, for all networks.
    pub repetitions: Option<u32>,
}

impl Plan {
    /// What it calls itself.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Reads and checks a plan's file.
    ///
    /// # Errors
    /// [`Error::Caller`] in one line with the file's name and, where there is one, the line.
    pub fn read(path: &Path, choice: &Choice) -> Result<Self> {
        let shown = path.display();
        let caller = |what: String| Error::Caller(format!("{shown}: {what}"));
        let size = std::fs::metadata(path).map_err(|error| caller(error.to_string()))?.len();
        if size > MAX_FILE_BYTES {
            return Err(caller(format!("{size} bytes, over the limit of {MAX_FILE_BYTES}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| caller(error.to_string()))?;
        Self::parse(text, choice).map_err(|what| Error::Caller(format!("{shown}:{what}")))
    }

    /// Checks a plan's text. The error is one line.
    pub(crate) fn parse(text: String, choice: &Choice) -> std::result::Result<Self, String> {
        let file: File = toml::from_str(&text).map_err(|error| one_line(&text, &error))?;
        let plan = Self::resolve(file, text, choice).map_err(|what| format!(" {what}"))?;
        Ok(plan)
    }

    fn resolve(mut file: File, text: String, choice: &Choice) -> std::result::Result<Self, String> {
        if choice.quick {
            cross::restrict(&mut file)?;
        }
        let networks = networks(&file, choice)?;
        let servers = servers(&file)?;
        let commands = commands(&file)?;
        check_services(&servers, &commands)?;
        let crossed =
            cross::Crossing { networks: &networks, servers: &servers, commands: &commands };
        let cells = crossed.cells(&file, choice)?;
        let references = crossed.references(&file)?;
        let figures = crossed.figures(&file, &cells)?;
        let advice = file
            .advice
            .iter()
            .map(|(network, text)| Advice { network: network.clone(), text: text.clone() });
        let advice = advice.collect();
        let limits = limits(&file.limits)?;
        let seed = choice.seed.unwrap_or(file.seed);
        let (title, about, quick) = (file.title, file.about.trim().to_string(), choice.quick);
        Ok(Self {
            title,
            about,
            text,
            seed,
            quick,
            limits,
            networks,
            servers,
            commands,
            cells,
            references,
            advice,
            figures,
        })
    }

    /// Runs what servers that are measured want done before: building them, say. To be called
    /// before anything else, while the process has all its rights and one thread.
    ///
    /// # Errors
    /// [`Error::Caller`] naming the command that failed.
    pub fn prepare(&self) -> Result<()> {
        let is_used = |at: usize| self.cells.iter().any(|cell| cell.server == at);
        for (at, server) in self.servers.iter().enumerate() {
            let Some(words) = server.prepare.as_ref().filter(|_| is_used(at)) else { continue };
            let failed = |why: String| {
                let command = words.join(" ");
                Error::Caller(format!("server '{}': '{command}' {why}", server.name))
            };
            eprintln!("preparing server '{}': {}", server.name, words.join(" "));
            let mut command = std::process::Command::new(&words[0]);
            if let Ok(program) = std::env::current_exe() {
                command.env("LONGWIRE", program);
            }
            let status = command.args(&words[1..]).stdin(std::process::Stdio::null()).status();
            let status = status.map_err(|error| failed(format!("cannot be run: {error}")))?;
            if !status.success() {
                return Err(failed(format!("ended with {status}; run it by hand to see why")));
            }
        }
        Ok(())
    }

    /// Runs in all.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.cells.iter().map(|cell| cell.repetitions as usize).sum()
    }

    /// Whether one server serves all runs of a cell.
    pub(crate) fn is_shared(&self, cell: usize) -> bool {
        self.servers[self.cells[cell].server].share
    }

    /// The seed of a repetition: the same for all cells of a network, so that they meet the same
    /// chances.
    pub(crate) fn run_seed(&self, network: usize, repetition: u32) -> u64 {
        // Odd numbers far from small ones, so that neighbours have unlike seeds.
        const NETWORK_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        const REPETITION_STEP: u64 = 0xbf58_476d_1ce4_e5b9;
        let network = (network as u64 + 1).wrapping_mul(NETWORK_STEP);
        let repetition = u64::from(repetition).wrapping_mul(REPETITION_STEP);
        self.seed.wrapping_add(network).wrapping_add(repetition)
    }
}

fn limits(of: &file::Limits) -> std::result::Result<Limits, String> {
    let usual = Limits::default();
    let lateness_us = of.lateness.map(|time| time.0.as_micros());
    let lateness_us = lateness_us.map_or(usual.lateness_us, |us| us.try_into().unwrap_or(u64::MAX));
    let wait_share = of.wait.unwrap_or(usual.wait_share);
    if !(0.0..=MAX_WAIT).contains(&wait_share) {
        return Err(format!("limits: wait = {wait_share}: give a share of 0 to {MAX_WAIT}"));
    }
    Ok(Limits { lateness_us, wait_share })
}

fn networks(file: &File, choice: &Choice) -> std::result::Result<Vec<NetworkPlan>, String> {
    if file.networks.is_empty() {
        return Err("no [[network]]: name at least one".to_string());
    }
    unique("network", file.networks.iter().map(|network| network.name.as_str()))?;
    file.networks.iter().map(|network| self::network(file, network, choice)).collect()
}

fn network(
    file: &File,
    of: &file::Network,
    choice: &Choice,
) -> std::result::Result<NetworkPlan, String> {
    let at = |what: String| format!("network '{}': {what}", of.name);
    let link = of.link.as_ref().unwrap_or(&of.name);
    let mut config = crate::sets::load(link).map_err(|error| at(error.to_string()))?;
    config.apply(&of.set, crate::session::read_trace).map_err(|error| at(error.to_string()))?;
    let changes = changes(of).map_err(at)?;
    let preset = link::presets().iter().find(|preset| preset.name == link);
    let repetitions = choice.repetitions.or(of.repetitions).unwrap_or(file.repetitions);
    if !(1..=MAX_REPETITIONS).contains(&repetitions) {
        return Err(at(format!("{repetitions} repetitions: give 1 to {MAX_REPETITIONS}")));
    }
    let client = of.client.over(&file.client);
    let client = match file.quick.as_ref().filter(|_| choice.quick) {
        Some(quick) => quick.client.over(&client),
        None => client,
    };
    self::client(&client).map_err(at)?;
    let ChannelConfig { rate_bps, loss, .. } = config.ba;
    let network = Network {
        name: of.name.clone(),
        source: preset.map_or("the plan", |preset| preset.source).to_string(),
        settings: config.settings(),
        rate_bps,
        delay_s: config.ab.delay.max(config.ba.delay).as_secs_f64(),
        loss,
        changes: names(of, link),
    };
    Ok(NetworkPlan { network, config, changes, repetitions, client })
}

/// Each link that a network is, with the seconds from which on; none of one that stays.
fn names(of: &file::Network, first: &str) -> Vec<(f64, String)> {
    if of.then.is_empty() {
        return Vec::new();
    }
    let later = of.then.iter().map(|then| (then.after.0.as_secs_f64(), then.link.clone()));
    std::iter::once((0.0, first.to_string())).chain(later).collect()
}

fn changes(of: &file::Network) -> std::result::Result<Vec<(Duration, LinkConfig)>, String> {
    if of.then.len() > MAX_CHANGES {
        return Err(format!(
            "{} links one after another: give at most {MAX_CHANGES}",
            of.then.len()
        ));
    }
    if !of.then.is_sorted_by_key(|then| then.after.0) {
        return Err("then: give the links in the order of their times".to_string());
    }
    let change = |then: &file::Change| {
        let config = crate::sets::load(&then.link).map_err(|error| error.to_string())?;
        Ok((then.after.0, config))
    };
    of.then.iter().map(change).collect()
}

fn client(of: &ClientFile) -> std::result::Result<ClientPlan, String> {
    let tracks = of.tracks.as_deref().unwrap_or("1-22");
    let tracks = services::tracks::client::parse_numbers(tracks, "track")
        .map_err(|error| error.to_string())?;
    let all = u32::try_from(tracks.len()).unwrap_or(u32::MAX);
    if of.messages.is_some_and(|messages| !(1..=MAX_MESSAGES).contains(&messages)) {
        return Err(format!("messages: give 1 to {MAX_MESSAGES}"));
    }
    let (all, noun) = of.messages.map_or((all, "tracks"), |messages| (messages, "messages"));
    let warm_up = of.warm_up.unwrap_or(all);
    if warm_up > all {
        return Err(format!("warm_up = {warm_up}: give at most {all}, the number of {noun}"));
    }
    let timeout = of.timeout.map_or(EXCHANGE_TIMEOUT, |time| time.0);
    let exchanges = all + warm_up;
    let budget = of.budget.map_or(timeout * exchanges, |time| time.0);
    if timeout.is_zero() || budget.is_zero() {
        return Err("a time limit of nothing: give timeout and budget above 0 s".to_string());
    }
    Ok(ClientPlan { tracks, messages: all, warm_up, timeout, budget })
}

fn servers(file: &File) -> std::result::Result<Vec<ServerPlan>, String> {
    unique("server", file.servers.iter().map(|server| server.name.as_str()))?;
    let own = || ServerPlan {
        name: BUILT_IN.to_string(),
        command: None,
        prepare: None,
        ready: Ready::default(),
        ready_timeout: READY_TIMEOUT,
        port: PORT,
        services: ["soap", "rest-xml", "rest-json"].map(str::to_string).to_vec(),
        share: false,
        memory_bytes: RUN_MEMORY_BYTES,
        answer_bytes: None,
        defaults: Vec::new(),
    };
    let mut servers =
        file.servers.iter().map(server).collect::<std::result::Result<Vec<_>, _>>()?;
    if !servers.iter().any(|server| server.name == BUILT_IN) {
        servers.push(own());
    }
    Ok(servers)
}

fn server(of: &file::Server) -> std::result::Result<ServerPlan, String> {
    let at = |what: &str| format!("server '{}': {what}", of.name);
    match &of.command {
        None if !OWN_SERVERS.contains(&of.name.as_str()) => {
            return Err(at("no command: give the one that starts it"));
        }
        Some(command) if command.is_empty() => return Err(at("command is empty")),
        _ => {}
    }
    if of.services.is_empty() {
        return Err(at("no services: name at least one"));
    }
    Ok(ServerPlan {
        name: of.name.clone(),
        command: of.command.clone(),
        prepare: of.prepare.clone().filter(|prepare| !prepare.is_empty()),
        ready: of.ready.clone(),
        ready_timeout: of.ready_timeout.map_or(READY_TIMEOUT, |time| time.0),
        port: of.port.unwrap_or(PORT),
        services: of.services.clone(),
        share: of.share,
        memory_bytes: of.memory.map_or(RUN_MEMORY_BYTES, |size| size.0),
        answer_bytes: of.answers.map(|size| size.0),
        defaults: of.defaults.clone().into_iter().collect(),
    })
}

fn commands(file: &File) -> std::result::Result<Vec<CommandPlan>, String> {
    unique("command", file.commands.iter().map(|command| command.name.as_str()))?;
    file.commands
        .iter()
        .map(|of| match of.command.is_empty() {
            true => Err(format!("command '{}' is empty: give program and arguments", of.name)),
            false => Ok(CommandPlan { name: of.name.clone(), command: of.command.clone() }),
        })
        .collect()
}

/// Refuses services that no client asks for: each is one of our own client's, or a command. What a
/// server of our own does not serve is refused too.
fn check_services(
    servers: &[ServerPlan],
    commands: &[CommandPlan],
) -> std::result::Result<(), String> {
    let tracks: Vec<&str> = Api::ALL.iter().map(|api| api.name()).collect();
    let benchmark: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
    let own = commands.iter().map(|command| command.name.as_str());
    for server in servers {
        let of_server = match (&server.command, server.name.as_str()) {
            (None, BUILT_IN) => tracks.clone(),
            (None, _) => benchmark.clone(),
            (Some(_), _) => [tracks.as_slice(), &benchmark].concat(),
        };
        let known: Vec<&str> = own.clone().chain(of_server).collect();
        cross::known("services", &server.services, known.iter().copied())
            .map_err(|what| format!("server '{}': {what}", server.name))?;
    }
    Ok(())
}

/// Names are part of file names, patterns and cell names.
fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> std::result::Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        crate::lab::check_name(name).map_err(|error| format!("{kind}: {error}"))?;
        if !seen.insert(name) {
            return Err(format!("{kind} '{name}' is there twice: rename one"));
        }
    }
    Ok(())
}

/// An error of the parser: `LINE: what`.
fn one_line(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let message = error.message().lines().next().unwrap_or_default();
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return format!("{line}: {message}");
    };
    let (key, known) = rest.split_once('`').unwrap_or((rest, ""));
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    match link::nearest(key, &known) {
        Some(nearest) => format!("{line}: unknown key '{key}': did you mean '{nearest}'?"),
        None => format!("{line}: unknown key '{key}': one of {}", known.join(", ")),
    }
}
