//! `longwire lab calls`: the WAP study from its file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use lab::Error;
use lab::calls::{MAX_CALLS, MAX_JOBS, Order, Plan};
use report::calls::calls_text;

use super::say;

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// So many reasons are told when runs cannot be done.
const MAX_REASONS: usize = 10;

/// The WAP study: methods called over links and in ways, each call split into t_SOAP and t_call.
#[derive(clap::Args)]
pub(super) struct CallsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Run(RunArgs),
    Report(ReportArgs),
}

/// Call all methods of a study over its links and in its ways, and print the tables.
///
/// Each link and way has hosts and servers of its own; DIR gets a file for each. What is there of
/// the same study is not done again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab calls run scenarios/wap.toml --jobs 8
  longwire lab calls run scenarios/wap.toml --link 'same host' --count 10 --out /tmp/wap

docs/pocket.md explains the figures.")]
struct RunArgs {
    /// The study: a file in TOML.
    study: PathBuf,
    /// Where the runs go (default: results/ and the file's name).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Another number of measured calls than the study's; no more of them warm up.
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CALLS)))]
    count: Option<u32>,
    /// Only the link of this name. May repeat.
    #[arg(long = "link", value_name = "NAME")]
    links: Vec<String>,
    /// Only the way of this name. May repeat.
    #[arg(long = "way", value_name = "NAME")]
    ways: Vec<String>,
    /// Links and ways side by side; those on one host are alone.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=MAX_JOBS as u64))]
    jobs: u64,
}

/// Print the tables of runs that are there.
#[derive(clap::Args)]
struct ReportArgs {
    /// The directory of the runs.
    directory: PathBuf,
}

pub(super) fn run(args: &CallsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Run(args) => measure(args),
        Action::Report(args) => {
            let runs = lab::calls::load(&args.directory)?;
            if runs.is_empty() {
                let shown = args.directory.display();
                let line = format!("{shown} has no runs: make some with lab calls run");
                return Err(Error::Caller(line).into());
            }
            say(calls_text(&runs).trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn measure(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let mut plan = Plan::read(&args.study)?;
    plan.restrict(&args.links, &args.ways)?;
    if let Some(count) = args.count {
        plan.count = count;
        plan.warm_up = plan.warm_up.min(count);
    }
    // Before anything else that matters: it wants a process with one thread.
    lab::acquire(false)?;
    let directory = args.out.clone().unwrap_or_else(|| {
        PathBuf::from("results").join(args.study.file_stem().unwrap_or_default())
    });
    let order = Order {
        program: std::env::current_exe().context("cannot find this program")?,
        directory: directory.clone(),
        jobs: usize::try_from(args.jobs).unwrap_or(MAX_JOBS),
        version: env!("CARGO_PKG_VERSION").to_string(),
        revision: option_env!("LONGWIRE_COMMIT").map(str::to_string),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        command: crate::command_line(),
    };
    let ended = lab::calls::run(&plan, &order)?;
    say(calls_text(&lab::calls::load(&directory)?).trim_end())?;
    for why in ended.failures.iter().take(MAX_REASONS) {
        eprintln!("longwire: {why}");
    }
    if ended.is_interrupted {
        let (done, runs) = (ended.done, ended.runs);
        eprintln!("longwire: interrupted with {done} of {runs} done; the same command goes on");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if ended.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
