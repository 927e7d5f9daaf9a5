//! Benchmarks of the pair on one machine over loopback.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use longwire_bench::machine::{describe, raise_descriptor_limit};
use longwire_bench::markdown::Document;
use longwire_bench::pair::{Options, Part, render, run};

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "pair";
/// Exit status when the command itself is wrong.
const BAD_USE: u8 = 2;
const MEGABYTE: u64 = 1_000_000;

/// Measure edge and gateway on this machine: large bodies, small answers.
///
/// Both run as processes of the binary `longwire`; everything goes over loopback. The exit status
/// is 1 when a byte differs or a bound of memory is missed, 2 on bad use.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  cargo build --release --package longwire
  pair                                      everything, about 10 minutes
  pair --quick                              a minute, to see that it works
  pair --only bodies --megabytes 500 --at-once 16
  pair --markdown docs/benchmarks.md        put the tables into the document"
)]
struct Cli {
    /// The binary to measure [default: longwire beside this program].
    #[arg(long, value_name = "FILE")]
    longwire: Option<PathBuf>,
    /// Measure only bodies or small; may repeat.
    #[arg(long, value_name = "PART", value_parser = part)]
    only: Vec<Part>,
    /// Small bodies and short rounds: shows that it works, proves nothing.
    #[arg(long)]
    quick: bool,
    /// Length of large bodies, 1 to 100000 MB [default: 500, with --quick 20].
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    megabytes: Option<u32>,
    /// Large bodies at once, besides one alone, 2 to 1000.
    #[arg(long, value_name = "N", default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(2..=1000))]
    at_once: u16,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Put the tables into this document too, between `<!-- pair: begin -->` and
    /// `<!-- pair: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
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
    let prepare = || Ok((cli.markdown.clone().map(open).transpose()?, options(&cli)?));
    let outcome = match prepare() {
        Ok((document, options)) => measure(&cli, document, &options),
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
    let _ = writeln!(stderr(), "pair: {error:#}");
    ExitCode::from(status)
}

/// Answers whether nothing failed and every bound was kept.
fn measure(cli: &Cli, document: Option<Document>, options: &Options) -> Result<bool> {
    raise_descriptor_limit()?;
    let result = run(options, describe("pair"))?;
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
    Ok(result.missed.is_empty())
}

fn options(cli: &Cli) -> Result<Options> {
    let binary = match &cli.longwire {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("longwire"),
    };
    if !binary.is_file() {
        bail!(
            "no program at {}; build it (cargo build --release --package longwire) or name it \
             (--longwire)",
            binary.display()
        );
    }
    let megabytes = cli.megabytes.unwrap_or(if cli.quick { 20 } else { 500 });
    Ok(Options {
        binary,
        parts: if cli.only.is_empty() { Part::ALL.to_vec() } else { cli.only.clone() },
        body_bytes: u64::from(megabytes) * MEGABYTE,
        bodies_at_once: usize::from(cli.at_once),
        quick: cli.quick,
    })
}
