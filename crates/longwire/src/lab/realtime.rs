//! `longwire lab realtime`: what threads with priorities are worth, and what they must be protected
//! from.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use lab::Error;
use lab::realtime::{Order, Plan, Seen, Trap, spring};
use report::realtime::{realtime_page, realtime_text};
use serde_json::json;
use services::realtime::results;

use super::say;

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// The real-time study (RT-SOA).
#[derive(clap::Args)]
pub(super) struct RealtimeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Run(RunArgs),
    Report(ReportArgs),
    Trap(TrapArgs),
}

/// Run the five profiles side by side, phase by phase, and print the table beside the paper's.
///
/// DIR gets a file for each phase. All the time a core of the machine is kept busy, and another in
/// part: measure while nothing else runs. Profiles that are not permitted run as ordinary, marked.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab realtime run scenarios/realtime.toml --quick
  longwire lab realtime run scenarios/realtime.toml --html realtime.html")]
struct RunArgs {
    /// The study: a file in TOML.
    study: PathBuf,
    /// Where the runs go (default: results/ and the file's name).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Phases as short as the file has them for a quick run.
    #[arg(long)]
    quick: bool,
    /// The core of the consumers (default: the last).
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Write a page with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Print the tables of runs that are there.
#[derive(clap::Args)]
struct ReportArgs {
    /// The directory of the runs.
    directory: PathBuf,
    /// Write a page with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Show a trap of priority queues: with its protection, and with that switched off.
///
/// It needs real-time priority; the exit status is 2 where that is not permitted.
#[derive(clap::Args)]
#[command(after_help = "\
Traps:
  inversion   an urgent thread waits for a lock, and for all that run in its holder's place;
              protection: the lock lends priority (PTHREAD_PRIO_INHERIT)
  starvation  a worker with the engine's priority: urgent messages wait before they are handed over,
              and T2-T1 does not show it; protection: the order of priorities
  throttling  real-time threads that fill a core are all stopped for 50 ms of a second;
              protection: 90 % of a core are admitted

Examples:
  longwire lab realtime trap inversion
  longwire lab realtime trap all --duration '10 s' --json")]
struct TrapArgs {
    /// Which: inversion, starvation, throttling or all.
    #[arg(value_parser = traps)]
    trap: Traps,
    /// For how long messages are sent, each time.
    #[arg(long, value_name = "TIME", default_value = "5 s", value_parser = duration)]
    duration: Duration,
    /// The core that it is shown on (default: the last).
    #[arg(long, value_name = "N")]
    core: Option<usize>,
    /// Print an array of {trap, protection, measured, on, off}.
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Traps(Vec<Trap>);

fn traps(text: &str) -> Result<Traps, String> {
    if text == "all" {
        return Ok(Traps(Trap::ALL.to_vec()));
    }
    let found = Trap::ALL.into_iter().find(|trap| trap.name() == text);
    found.map(|trap| Traps(vec![trap])).ok_or_else(|| {
        let names = Trap::ALL.map(Trap::name).join(", ");
        format!("choose one of {names}, or all")
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    let time = link::units::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_secs(1)..=Duration::from_secs(600);
    if range.contains(&time) { Ok(time) } else { Err("choose 1 s to 600 s".to_owned()) }
}

pub(super) fn run(args: &RealtimeArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Run(args) => measure(args),
        Action::Report(args) => tell(&args.directory, args.html.as_ref()),
        Action::Trap(args) => show(args),
    }
}

fn last_core() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) - 1
}

fn measure(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::read(&args.study)?;
    let directory = args.out.clone().unwrap_or_else(|| {
        PathBuf::from("results").join(args.study.file_stem().unwrap_or_default())
    });
    let order = Order {
        program: std::env::current_exe().context("cannot find this program")?,
        directory: directory.clone(),
        is_quick: args.quick,
        core: args.core.unwrap_or_else(last_core),
        version: env!("CARGO_PKG_VERSION").to_string(),
        revision: option_env!("LONGWIRE_COMMIT").map(str::to_string),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        command: crate::command_line(),
    };
    let ended = lab::realtime::run(&plan, &order)?;
    if ended.done > 0 {
        tell(&directory, args.html.as_ref())?;
    }
    if let Some(why) = ended.failure {
        eprintln!("longwire: {why}");
        return Ok(ExitCode::FAILURE);
    }
    if ended.is_interrupted {
        eprintln!("longwire: interrupted with {} of {} phases done", ended.done, ended.phases);
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(directory: &Path, html: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let runs = lab::realtime::load(directory)?;
    if runs.is_empty() {
        let shown = directory.display();
        let line = format!("{shown} has no runs: make some with lab realtime run");
        return Err(Error::Caller(line).into());
    }
    if let Some(path) = html {
        fs::write(path, realtime_page(&runs))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    say(realtime_text(&runs).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn show(args: &TrapArgs) -> anyhow::Result<ExitCode> {
    let core = args.core.unwrap_or_else(last_core);
    let mut all = Vec::new();
    for trap in &args.trap.0 {
        let mut seen = Vec::new();
        for is_protected in [true, false] {
            match spring(*trap, is_protected, core, args.duration) {
                Ok(one) => seen.push(one),
                Err(error) => {
                    eprintln!("longwire: {error}");
                    return Ok(ExitCode::from(super::BAD_USE));
                }
            }
        }
        let [on, off] = seen.as_slice() else { continue };
        if args.json {
            all.push(json!({
                "trap": trap.name(),
                "protection": trap.protection(),
                "measured": trap.measured(),
                "on": figures(on),
                "off": figures(off),
            }));
        } else {
            say(text(*trap, on, off).trim_end())?;
        }
    }
    if args.json {
        say(&serde_json::Value::from(all).to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(seen: &Seen) -> serde_json::Value {
    json!({
        "figure_us": seen.figure_us,
        "accepted": seen.accepted,
        "refused": seen.refused,
        "t2_t1": results::summary(seen.internal.as_ref()),
        "t1_t0": results::summary(seen.before.as_ref()),
        "t2_t0": results::summary(seen.whole.as_ref()),
    })
}

fn text(trap: Trap, on: &Seen, off: &Seen) -> String {
    let mut out = String::new();
    let (name, protection, measured) = (trap.name(), trap.protection(), trap.measured());
    let times = off.figure_us / on.figure_us.max(0.001);
    let _ = writeln!(out, "{name}: {measured}; protection: {protection}");
    for (which, seen) in [("with", on), ("without", off)] {
        let _ = write!(out, "  {which:<8}{:>12.1} us", seen.figure_us);
        if let (Some(internal), Some(before), Some(whole)) =
            (&seen.internal, &seen.before, &seen.whole)
        {
            let _ = write!(
                out,
                "   class 0: T2-T1 p99 {:.0}, T1-T0 p99 {:.0}, T2-T0 max {:.0} us; {} accepted, {} \
                 refused",
                internal.p99_us, before.p99_us, whole.max_us, seen.accepted, seen.refused,
            );
        }
        out.push('\n');
    }
    let _ = writeln!(out, "  {times:.1} times as long without it");
    out
}
