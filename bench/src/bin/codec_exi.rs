//! Benchmark of our EXI against the reference implementation.

use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use longwire_bench::codec_exi::{Measured, Options, render, run};
use longwire_bench::machine::describe;
use longwire_bench::markdown::Document;
use serde_json::json;

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "codec_exi";
/// Exit status when the command itself is wrong.
const BAD_USE: u8 = 2;

/// Measure our EXI against EXIficient: XML text to EXI, EXI to XML text, EXI to events, and sizes.
///
/// Builds the peer with Maven the first time. Documents of others are taken from $LONGWIRE_DATA
/// where it is. The exit status is 1 when a figure misses what is wanted, 2 on bad use.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  codec_exi                                 everything, about 10 minutes
  codec_exi --quick                         a minute, to see that it works
  codec_exi --only TPC-H
  codec_exi --markdown docs/benchmarks.md   put the tables into the document"
)]
struct Cli {
    /// Measure only documents whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Short turns: shows that it works, proves nothing.
    #[arg(long)]
    quick: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Put the tables into this document too, between `<!-- codec_exi: begin -->` and
    /// `<!-- codec_exi: end -->`.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let fail = |error: anyhow::Error, status: u8| {
        // The status tells it too.
        let _ = writeln!(stderr(), "codec_exi: {error:#}");
        ExitCode::from(status)
    };
    let open = |path| Document::open(path, SECTION);
    let document = match cli.markdown.clone().map(open).transpose() {
        Ok(document) => document,
        Err(error) => return fail(error, BAD_USE),
    };
    match measure(&cli, document) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(error, 1),
    }
}

/// Answers whether everything is as fast and as short as it has to be.
fn measure(cli: &Cli, document: Option<Document>) -> Result<bool> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let options = Options {
        peer: workspace.join("interop/exificient"),
        data: data.unwrap_or_else(|| workspace.join("../shared/data")),
        folder: std::env::current_exe()?.with_file_name("codec_exi-files"),
        quick: cli.quick,
        only: cli.only.clone(),
    };
    let machine = describe(SECTION);
    let all = run(&options)?;
    let tables = render(&machine, &all);
    let mut out = stdout().lock();
    if cli.json {
        let measured: Vec<_> = all.iter().map(Measured::to_json).collect();
        let result = json!({ "machine": machine, "measured": measured });
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        write!(out, "{tables}")?;
    }
    if let Some(document) = document {
        document.update(&tables)?;
    }
    Ok(all.iter().all(Measured::met))
}
