//! The decision judged: what encodings make of messages, measured; and policies in virtual time
//! against the oracle, over the networks of the papers, other links, and links that change; the
//! simulator checked against the laboratory.

mod compare;
mod judge;
mod measure;
mod repeat;
mod report;
mod trace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::{Parser, Subcommand};
use sim::decision::Workload;

#[derive(Parser)]
#[command(about = "Judges the choice of encodings in virtual time")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures what each encoding makes of each message of a folder.
    ///
    /// Example: decision measure answers/ --out table.tsv
    Measure {
        /// Messages; a file's class is its name up to the first dot.
        folder: PathBuf,
        /// Where the table goes.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Runs the grid, links that change, links by chance; status 1 when a bound is missed.
    ///
    /// Example: decision judge table.tsv --json cells.json --markdown docs/studies/nam/simulated.md
    Judge(judge::Arguments),
    /// Runs the cells of a campaign in virtual time too, and says how far the two differ.
    ///
    /// Example: decision compare results/nam table.tsv --markdown docs/studies/nam/disagreement.md
    Compare(compare::Arguments),
    /// Runs messages that repeat through two relays over a virtual link, and prints their bytes
    /// against gzip and their time against the least that it could be.
    ///
    /// Example: decision repeat onvif=soap/onvif tracks=cot/captures --networks satcom,los
    Repeat(repeat::Arguments),
    /// Prints each message of a run of ours: what was chosen, expected and took, and what the path
    /// looked like; with several networks the link changes after `--each` messages.
    ///
    /// Example: decision trace table.tsv --class q20 --networks wifi1,satcom
    Trace(trace::Arguments),
}

fn main() -> Result<ExitCode> {
    match Cli::parse().command {
        Command::Measure { folder, out } => {
            let table = measure::measure(&folder)?.write();
            std::fs::write(&out, table).with_context(|| out.display().to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Judge(arguments) => judge::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Repeat(arguments) => repeat::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
    }
}

/// Reads a table.
fn read(path: &std::path::Path) -> Result<Workload> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Workload::read(&text).map_err(|wrong| anyhow!("{}: {wrong}", path.display()))
}
