//! `longwire doctor`: what this machine can do.

use std::fmt::Write as _;
use std::process::ExitCode;

use lab::doctor::{Finding, can_emulate, examine};

/// Say what this machine offers for emulated links and real-time services, and what would mend what
/// it lacks.
///
/// Measures for a second and a half. The exit status is 0 when links can be emulated here, 1 when
/// not.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire doctor
  longwire doctor --json")]
pub(crate) struct Args {
    /// Print an array of {name, verdict, found, remedy}; verdict is good, weak or missing.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let findings = examine();
    let mut out = String::new();
    if args.json {
        let all: Vec<_> = findings.iter().map(Finding::to_json).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
    } else {
        for finding in &findings {
            let Finding { name, verdict, found, remedy } = finding;
            writeln!(out, "{:<8} {name:<18} {found}", verdict.name())?;
            if !remedy.is_empty() {
                writeln!(out, "{:27} → {remedy}", "")?;
            }
        }
    }
    crate::say(&out)?;
    Ok(if can_emulate(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
