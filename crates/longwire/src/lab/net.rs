//! `longwire lab net`: nets of many hosts from a scenario's file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use lab::Error;
use lab::net::HostCommand;
use lab::net::study::{self, Ended, MAX_JOBS, MAX_RUNS, Order};
use record::net::NetRun;
use record::result::Lateness;
use report::net::{Study, study_json, study_text};
use serde_json::{Value, json};

use super::{net_report, say};

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// So many different reasons are told when runs cannot be done.
const MAX_REASONS: usize = 10;

/// Nets of many hosts: nodes that move over ground and share radio channels.
#[derive(clap::Args)]
pub(super) struct NetArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Run(RunArgs),
    Exec(ExecArgs),
    Report(net_report::ReportArgs),
}

/// Run a scenario: the messaging service on every node, its script of messages, in all its cases.
///
/// Each node is a host with an interface for each of its channels; packets go over hops by routes
/// that follow from the path losses, as nodes move. DIR gets a file for each run; what is there of
/// the same scenario is not done again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab net run scenarios/ist150-platoons.toml --out results/platoons
  longwire lab net run scenarios/ist150-messaging.toml --runs 20 --jobs 10 --case HTTP/JSON

docs/scenarios.md explains the file.")]
struct RunArgs {
    /// The scenario: a file in TOML, or the name of a kept one (lab scenario).
    scenario: String,
    /// Where the runs go (default: results/ and the file's name).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Another seed than the scenario's, for the first run of each case; the next has the next
    /// number.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Runs of each case.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    runs: u32,
    /// Runs side by side.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=MAX_JOBS as u64))]
    jobs: u64,
    /// Only the case of this name. May repeat.
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Print an object with all figures.
    #[arg(long)]
    json: bool,
}

/// Run a command on a node of a scenario while nodes move. The names of all nodes resolve there.
///
/// The net is gone when the command ends, or the scenario does. The command's exit status is passed
/// on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab net exec scenarios/ist150-platoons.toml a1 -- ping -c 3 b1")]
struct ExecArgs {
    /// The scenario: a file in TOML, or the name of a kept one (lab scenario).
    scenario: String,
    /// The node.
    node: String,
    /// Another seed than the scenario's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// When the command starts, in seconds of the scenario's time.
    #[arg(long, value_name = "S", default_value_t = 0)]
    at: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(super) fn run(args: &NetArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Run(args) => run_scenario(args),
        Action::Exec(args) => exec(args),
        Action::Report(args) => net_report::run(args),
    }
}

fn run_scenario(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let resolved = lab::scenario::load(&args.scenario)?;
    // Before anything else that matters: it wants a process with one thread.
    lab::acquire(false)?;
    let directory = args.out.clone().unwrap_or_else(|| default_directory(&args.scenario));
    let order = Order {
        program: std::env::current_exe().context("cannot find this program")?,
        directory: directory.clone(),
        seed: args.seed,
        runs: args.runs,
        jobs: usize::try_from(args.jobs).unwrap_or(MAX_JOBS),
        cases: args.cases.clone(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        revision: option_env!("LONGWIRE_COMMIT").map(str::to_string),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        command: crate::command_line(),
    };
    let ended = study::run(&resolved, &order)?;
    let runs = study::load(&directory)?;
    let fingerprint = format!("{:016x}", resolved.fingerprint());
    let runs: Vec<NetRun> = runs.into_iter().filter(|run| run.fingerprint == fingerprint).collect();
    let study = Study::of(&runs, Vec::new());
    if args.json {
        let effort = effort(&runs).map(|(name, value)| (name.to_owned(), json!(value)));
        let mut value = study_json(&study);
        value["effort"] = Value::Object(effort.into_iter().collect());
        say(&serde_json::to_string_pretty(&value)?)?;
    } else {
        say(&format!("{}\n{}", study_text(&study), effort_lines(&runs)))?;
    }
    Ok(verdict(&ended, &runs))
}

fn verdict(ended: &Ended, runs: &[NetRun]) -> ExitCode {
    for why in ended.failures.iter().take(MAX_REASONS) {
        eprintln!("longwire: {why}");
    }
    let broken = runs.iter().flat_map(|run| {
        let broken = run.checks.iter().filter(|check| !check.holds);
        broken.map(move |check| {
            format!("{}, seed {}: not so: {} ({})", run.case, run.seed, check.name, check.found)
        })
    });
    let broken: Vec<String> = broken.collect();
    for line in broken.iter().take(MAX_REASONS) {
        eprintln!("longwire: {line}");
    }
    if ended.is_interrupted {
        let Ended { done, runs, .. } = ended;
        eprintln!(
            "longwire: interrupted with {done} of {runs} runs done; the same command goes on"
        );
        return ExitCode::from(INTERRUPTED);
    }
    match ended.failures.is_empty() && broken.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn exec(args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let resolved = lab::scenario::load(&args.scenario)?;
    let scenario = &resolved.scenario;
    let Some(id) = scenario.node_named(&args.node) else {
        let names: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
        let node = args.node.escape_debug();
        let known = names.join(", ");
        return Err(Error::Caller(format!("there is no node '{node}': there are {known}")).into());
    };
    let (at, end) = (Duration::from_secs(args.at), scenario.duration);
    if at >= end {
        let line = format!(
            "--at {} is not before the end of the scenario, which is at {} s: give an earlier time",
            args.at,
            end.as_secs_f64()
        );
        return Err(Error::Caller(line).into());
    }
    lab::acquire(false)?;
    let command = HostCommand { host: usize::from(id) - 1, at, command: args.command.clone() };
    let program = std::env::current_exe().context("cannot find this program")?;
    let seed = args.seed.unwrap_or(scenario.seed);
    let (status, run) = study::execute(&resolved, &[command], &program, seed)?;
    eprintln!("in the air:\n{}", airtime(&run));
    Ok(u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn default_directory(scenario: &str) -> PathBuf {
    Path::new("results").join(Path::new(scenario).file_stem().unwrap_or_default())
}

/// What runs asked of the machine, each figure the greatest of all runs.
fn effort(runs: &[NetRun]) -> [(&'static str, f64); 8] {
    let greatest = |value: &dyn Fn(&NetRun) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let lateness = |us: fn(&Lateness) -> u64| {
        greatest(&|run| run.lateness.as_ref().map_or(0.0, |lateness| us(lateness) as f64))
    };
    [
        ("lateness_p50_us", lateness(|lateness| lateness.p50_us)),
        ("lateness_p99_us", lateness(|lateness| lateness.p99_us)),
        ("memory_bytes", greatest(&|run| run.effort.memory_bytes as f64)),
        ("processors_busy", greatest(&|run| run.effort.processors_busy.unwrap_or(0.0))),
        ("ferry_busy", greatest(&|run| run.effort.ferry_busy)),
        ("routes_changed", greatest(&|run| run.effort.routes_changed as f64)),
        ("route_steps", greatest(&|run| f64::from(run.effort.route_steps))),
        ("step_late_s", greatest(&|run| run.effort.step_late_s)),
    ]
}

fn effort_lines(runs: &[NetRun]) -> String {
    let effort = effort(runs);
    let value =
        |name: &str| effort.iter().find(|(one, _)| *one == name).map_or(0.0, |(_, value)| *value);
    format!(
        "At most, of all runs: the ferry late by {:.0} us at p99 ({:.0} at p50), {:.1} % of a core \
         for it,\nmemory {:.0} MB, processors {:.0} % busy; {:.0} routes changed at {:.0} steps, \
         which were late by {:.0} ms.",
        value("lateness_p99_us"),
        value("lateness_p50_us"),
        100.0 * value("ferry_busy"),
        value("memory_bytes") / 1e6,
        100.0 * value("processors_busy"),
        value("routes_changed"),
        value("route_steps"),
        1e3 * value("step_late_s")
    )
}

/// What was sent over each channel for each protocol, on all nodes together.
fn airtime(run: &NetRun) -> String {
    let mut sums: BTreeMap<(usize, &str), (u64, f64)> = BTreeMap::new();
    for sum in &run.airtime {
        let of = sums.entry((sum.medium, sum.protocol.as_str())).or_default();
        *of = (of.0 + sum.transmissions, of.1 + sum.airtime_s);
    }
    let line = |((medium, protocol), (count, seconds)): ((usize, &str), (u64, f64))| {
        let medium = run.media.get(medium).map_or("?", String::as_str);
        format!("{medium}: {protocol} {count} times, {seconds:.3} s")
    };
    sums.into_iter().map(line).collect::<Vec<_>>().join("\n")
}
