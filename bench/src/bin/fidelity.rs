//! Shows how true emulated links are, by kernel timestamps outside of the ferry.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use lab::Privilege;
use longwire_bench::fidelity::{Options, Part, Way, render, run};
use longwire_bench::machine::{describe, raise_descriptor_limit};
use longwire_bench::markdown::Document;
use longwire_bench::progress::Progress;
use record::fidelity::{Fidelity, WayResult};

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "fidelity";
/// Exit status when the command itself is wrong.
const BAD_USE: u8 = 2;

/// Show how true emulated links are, by kernel timestamps outside of the ferry.
///
/// Everything runs on hosts of its own; nothing leaves this machine. The exit status is 1 when a
/// bound is missed (only the way 'root' has bounds) and 2 on bad use.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  fidelity                                  all ways, about 9 minutes, as root
  fidelity --way root --quick               half a minute, to see that it works
  fidelity --only pairs --pairs 200 --seconds 60 --rate 2000
  fidelity --markdown docs/fidelity.md      put the tables into the document
  fidelity --way rootless --json            one way, as JSON"
)]
struct Cli {
    /// Way of running the ferry, may repeat: root (TAP, real-time priority), veth (packet sockets,
    /// real-time priority), no-priority (TAP), rootless (packet sockets in a user namespace)
    /// [default: all].
    #[arg(long = "way", value_name = "NAME", value_parser = way)]
    ways: Vec<Way>,
    /// Measure only delay, rate, share or pairs; may repeat.
    #[arg(long, value_name = "PART", value_parser = part)]
    only: Vec<Part>,
    /// Few packets and two runs: shows that it works, proves nothing.
    #[arg(long)]
    quick: bool,
    /// Host pairs at once, 1 to 1000 [default: 200, with --quick 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pairs: Option<u16>,
    /// How long the pairs are probed, 1 to 3600 s [default: 60, with --quick 5].
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: Option<u16>,
    /// Packets per second over all pairs together, 1 to 20000 [default: 2000].
    #[arg(long = "rate", value_name = "PPS",
        value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate_pps: Option<u32>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Put the tables into this document too, between `<!-- fidelity: begin -->` and
    /// `<!-- fidelity: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// What will still be measured after this, for the time that is left.
    #[arg(long, value_name = "S", hide = true, default_value_t = 0)]
    followed_by_s: u64,
}

fn way(name: &str) -> Result<Way, String> {
    let names = Way::ALL.map(Way::name).join(", ");
    Way::ALL
        .into_iter()
        .find(|way| way.name() == name)
        .ok_or_else(|| format!("no such way; choose one of {names}"))
}

fn part(name: &str) -> Result<Part, String> {
    let names = Part::ALL.map(Part::name).join(", ");
    Part::ALL
        .into_iter()
        .find(|part| part.name() == name)
        .ok_or_else(|| format!("no such part; choose one of {names}"))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let open = |path| Document::open(path, SECTION);
    let outcome = match cli.markdown.clone().map(open).transpose() {
        Ok(document) => measure(&cli, document),
        Err(error) => return fail(&error, BAD_USE),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error, 1),
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    // The status tells it too.
    let _ = writeln!(stderr(), "fidelity: {error:#}");
    ExitCode::from(status)
}

/// Answers whether every bound was kept.
fn measure(cli: &Cli, document: Option<Document>) -> Result<bool> {
    let options = options(cli);
    let ways = match cli.ways.as_slice() {
        [one] => vec![in_this_process(*one, &options, cli.followed_by_s)?],
        [] => in_processes(&Way::ALL, &options, cli)?,
        several => in_processes(several, &options, cli)?,
    };
    let result = Fidelity { machine: describe("fidelity"), ways };
    let tables = render(&result);
    let mut out = stdout().lock();
    if cli.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        write!(out, "{tables}")?;
    }
    if let Some(document) = document {
        document.update(&tables)?;
    }
    Ok(result.ways.iter().all(|way| way.missed.is_empty()))
}

fn options(cli: &Cli) -> Options {
    let (pairs, seconds) = if cli.quick { (20, 5) } else { (200, 60) };
    Options {
        parts: if cli.only.is_empty() { Part::ALL.to_vec() } else { cli.only.clone() },
        quick: cli.quick,
        pairs: usize::from(cli.pairs.unwrap_or(pairs)),
        pairs_for: Duration::from_secs(u64::from(cli.seconds.unwrap_or(seconds))),
        pairs_packets_per_s: cli.rate_pps.unwrap_or(2_000),
    }
}

fn in_this_process(way: Way, options: &Options, followed_by_s: u64) -> Result<WayResult> {
    let privilege = lab::acquire(way == Way::Rootless)?;
    if way != Way::Rootless && privilege != Privilege::Root {
        bail!("the way '{}' needs root; run as root, or choose --way rootless", way.name());
    }
    raise_descriptor_limit()?;
    let total = options.planned(way) + Duration::from_secs(followed_by_s);
    run(way, options, Progress::new(total))
}

/// Each way in a process of its own: a user namespace cannot be left again.
fn in_processes(ways: &[Way], options: &Options, cli: &Cli) -> Result<Vec<WayResult>> {
    let mut results = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        let later: Duration = ways[index + 1..].iter().map(|way| options.planned(*way)).sum();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--json", "--way", way.name()]);
        command.args(["--followed-by-s", &later.as_secs().to_string()]);
        command.args(["--pairs", &options.pairs.to_string()]);
        command.args(["--seconds", &options.pairs_for.as_secs().to_string()]);
        command.args(["--rate", &options.pairs_packets_per_s.to_string()]);
        command.args(cli.quick.then_some("--quick"));
        command.args(cli.only.iter().flat_map(|part| ["--only", part.name()]));
        let output = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).output()?;
        let measured: Fidelity = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the way '{}' was not measured", way.name()))?;
        results.extend(measured.ways);
    }
    Ok(results)
}
