//! `longwire lab net report`: the tables of a study from its runs.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use lab::Error;
use lab::net::study;
use report::net::{SizeRow, Study, study_json, study_page, study_text};

use super::say;

/// Make tables of the runs that `lab net run` has left: what was lost, how long messages took, who
/// was in the air; IST-150's figures beside ours.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab net report results/ist150-platoons
  longwire lab net report results/ist150-platoons --html study.html")]
pub(super) struct ReportArgs {
    /// The directory of the runs.
    directory: PathBuf,
    /// Write a page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one object with all figures.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let runs = study::load(&args.directory)?;
    if runs.is_empty() {
        let shown = args.directory.display();
        anyhow::bail!(Error::Caller(format!("{shown} has no runs: make some with lab net run")));
    }
    let study = Study::of(&runs, sizes()?);
    if let Some(path) = &args.html {
        fs::write(path, study_page(&study))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        say(&serde_json::to_string_pretty(&study_json(&study))?)?;
    } else {
        say(study_text(&study).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Table I, by the code that sends messages.
fn sizes() -> anyhow::Result<Vec<SizeRow>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let sizes = runtime.block_on(services::messaging::sizes())?;
    let row = |size: services::messaging::Size| SizeRow {
        case: size.case,
        message_bytes: size.message_bytes,
        ip_bytes: size.ip_bytes,
    };
    Ok(sizes.into_iter().map(row).collect())
}
