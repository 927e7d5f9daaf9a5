//! `longwire lab run`, `report`, `export` and `compare`: campaigns and what came of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use lab::campaign::{Choice, Ended, MAX_PARALLEL, Order, Plan, load};
use record::campaign::Campaign;
use report::analysis::{Analysis, Repeatability};
use serde_json::json;

use crate::say;

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// So many different reasons are told when no run can be used.
const MAX_REASONS: usize = 10;

/// Run a campaign: an experiment described in one file, measured in hundreds of runs side by side.
///
/// DIR gets results.sqlite, results.csv, exchanges.csv and report.html. A campaign that was
/// interrupted goes on where it stopped when the same command is given again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab run scenarios/ist118.toml --list
  longwire lab run scenarios/ist118.toml --quick
  longwire lab run scenarios/ist118.toml --cells 'los/tracks/soap/*' --out /tmp/los

docs/campaigns.md explains the file.")]
pub(crate) struct RunArgs {
    /// The plan, in TOML.
    file: PathBuf,
    /// Where the results go (default: results/ and the file's name; -quick for the quick form).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only what the plan's quick form leaves: minutes.
    #[arg(long)]
    quick: bool,
    /// Only print the cells and the expected time.
    #[arg(long)]
    list: bool,
    /// Only cells whose name matches; * stands for anything. May repeat.
    #[arg(long, value_name = "PATTERN")]
    cells: Vec<String>,
    /// Another seed than the plan's.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Another number of repetitions than the plan's.
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Most runs side by side.
    #[arg(long, value_name = "N", default_value_t = MAX_PARALLEL as u64,
        value_parser = clap::value_parser!(u64).range(1..=MAX_PARALLEL as u64))]
    parallel: u64,
    /// Do flagged runs once more; with a smaller --parallel the machine may keep up.
    #[arg(long)]
    again: bool,
    /// Say once a second in FILE how far it is, as JSON, for programs.
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
    /// Print facts as JSON.
    #[arg(long)]
    json: bool,
}

/// Make the report of a campaign again from its stored results.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// The campaign's directory.
    dir: PathBuf,
    /// Print what the analysis found as JSON.
    #[arg(long)]
    json: bool,
}

/// Write a campaign's results as CSV: results.csv, one line a run, exchanges.csv, one an exchange.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The campaign's directory.
    dir: PathBuf,
    /// Where the files go (default: the same directory).
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Compare two campaigns cell by cell: does the 95 % interval of the difference of medians
/// contain 0?
#[derive(clap::Args)]
pub(crate) struct CompareArgs {
    /// The directory of one campaign.
    first: PathBuf,
    /// The directory of the other.
    second: PathBuf,
    /// Print every cell as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs a campaign.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let choice = Choice {
        quick: args.quick,
        cells: args.cells.clone(),
        seed: args.seed,
        repetitions: args.repetitions,
    };
    let plan = Plan::read(&args.file, &choice)?;
    if args.list {
        list(&plan, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    plan.prepare()?;
    // Before anything else that matters: it wants a process with one thread.
    let privilege = lab::acquire(false)?;
    let directory = args.out.clone().unwrap_or_else(|| default_directory(args));
    let order = Order {
        program: std::env::current_exe().context("cannot find this program")?,
        directory: directory.clone(),
        parallel: usize::try_from(args.parallel).ok(),
        again: args.again,
        privilege,
        version: env!("CARGO_PKG_VERSION").to_string(),
        revision: option_env!("LONGWIRE_COMMIT").map(str::to_string),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        command: crate::command_line(),
        progress: args.progress.clone(),
    };
    eprintln!("{}", expected(&plan, args.parallel));
    match lab::campaign::run(&plan, &order)? {
        Ended::Complete => {
            let (campaign, analysis) = finish(&directory, args.json)?;
            Ok(verdict(&campaign, &analysis))
        }
        Ended::Interrupted { done, runs } => {
            eprintln!(
                "longwire: interrupted with {done} of {runs} runs done; the same command goes on"
            );
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// Makes report and tables anew.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    finish(&args.dir, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the tables.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let campaign = load(&args.dir)?;
    let to = args.to.as_ref().unwrap_or(&args.dir);
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    lab::campaign::export(&campaign, to)?;
    say(&format!("{}\n", to.join("results.csv").display()))?;
    say(&format!("{}\n", to.join("exchanges.csv").display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Compares two campaigns.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let (first, second) = (load(&args.first)?, load(&args.second)?);
    let found = report::analysis::compare(&first, &second);
    let text = if args.json { format!("{}\n", found.json()) } else { comparison_table(&found) };
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn comparison_table(found: &Repeatability) -> String {
    let mut text = String::new();
    for cell in found.cells.iter().filter(|cell| !cell.holds) {
        let ((one, other), (least, most)) = (cell.median_s, cell.interval_s);
        text += &format!(
            "differs: {}  {one:.4} s, {other:.4} s, difference {least:+.4} to {most:+.4} s\n",
            cell.name
        );
    }
    let holding = found.cells.iter().filter(|cell| cell.holds).count();
    let share = found.share.map_or("-".to_string(), |share| format!("{:.1} %", 100.0 * share));
    text += &format!(
        "{holding} of {} cells ({share}): the 95 % interval of the difference contains 0\n",
        found.cells.len()
    );
    for (names, why) in [(&found.too_few, "fewer than six runs"), (&found.only_one, "in one only")]
    {
        if !names.is_empty() {
            text += &format!("not counted, {why}: {} cells\n", names.len());
        }
    }
    text
}

fn finish(directory: &Path, json: bool) -> anyhow::Result<(Campaign, Analysis)> {
    let campaign = load(directory)?;
    let analysis = report::analysis::analyse(&campaign);
    let page = directory.join("report.html");
    fs::write(&page, report::campaign::html(&campaign, &analysis))
        .with_context(|| format!("cannot write {}", page.display()))?;
    lab::campaign::export(&campaign, directory)?;
    if json {
        let mut facts = report::campaign::facts(&campaign, &analysis);
        facts["report"] = json!(page);
        say(&format!("{facts}\n"))?;
    } else {
        say(&report::campaign::table(&campaign, &analysis))?;
        say(&format!("report: {}\n", page.display()))?;
    }
    Ok((campaign, analysis))
}

/// Says why nothing came out, when no run can be used.
fn verdict(campaign: &Campaign, analysis: &Analysis) -> ExitCode {
    let counts = &analysis.counts;
    if counts.good > 0 || counts.runs == 0 {
        return ExitCode::SUCCESS;
    }
    let flagged = match counts.flagged {
        0 => String::new(),
        flagged => format!(", {flagged} spoilt by the machine: try a smaller --parallel"),
    };
    eprintln!(
        "longwire: no run can be used: of {} runs {} failed{flagged}",
        counts.runs, counts.failed
    );
    let reasons = report::campaign::reasons(campaign);
    for (reason, runs) in reasons.iter().take(MAX_REASONS) {
        eprintln!("longwire: {runs} runs: {reason}");
    }
    if reasons.len() > MAX_REASONS {
        let more = reasons.len() - MAX_REASONS;
        eprintln!("longwire: and {more} more reasons: see results.csv");
    }
    ExitCode::FAILURE
}

/// How long all runs may take and what holds them up, in a line.
fn expected(plan: &Plan, parallel: u64) -> String {
    let all = plan.expected_here(usize::try_from(parallel).unwrap_or(MAX_PARALLEL));
    let parts = [
        (all.load_s, "load"),
        (all.memory_s, "memory"),
        (all.starts_s, "starting"),
        (all.longest_s, "the longest run"),
    ];
    let parts = parts.map(|(seconds, what)| format!("{what} {}", minutes(seconds)));
    format!(
        "{} cells, {} runs: about {} side by side ({}); one after another {}",
        plan.list().len(),
        plan.runs(),
        minutes(all.total_s()),
        parts.join(", "),
        minutes(all.serial_s)
    )
}

fn list(plan: &Plan, args: &RunArgs) -> std::io::Result<()> {
    let cells = plan.list();
    if args.json {
        let all = plan.expected_here(usize::try_from(args.parallel).unwrap_or(MAX_PARALLEL));
        let (serial_s, expected_s) = (all.serial_s, all.total_s());
        let one = |(name, repetitions, seconds): &(String, u32, f64)| {
            let (name, repetitions) = (name.as_str(), *repetitions);
            json!({"cell": name, "repetitions": repetitions, "expected_s": seconds})
        };
        let cells: Vec<_> = cells.iter().map(one).collect();
        let all = json!({"cells": cells, "serial_s": serial_s, "expected_s": expected_s});
        return say(&format!("{all}\n"));
    }
    let mut text = String::new();
    for (name, repetitions, seconds) in &cells {
        text += &format!("{name}  ×{repetitions}, {seconds:.0} s each\n");
    }
    text += &format!("{}\n", expected(plan, args.parallel));
    say(&text)
}

fn default_directory(args: &RunArgs) -> PathBuf {
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let quick = if args.quick { "-quick" } else { "" };
    Path::new("results").join(format!("{stem}{quick}"))
}

fn minutes(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    match time {
        0..60 => format!("{time} s"),
        60..7200 => format!("{} min", time.div_ceil(60)),
        _ => format!("{:.1} h", time as f64 / 3600.0),
    }
}
