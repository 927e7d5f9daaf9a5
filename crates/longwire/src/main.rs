//! The command line of longwire: parses, resolves, hands over. One file per command.

mod doctor;
mod fetch;
mod lab;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Middleware that makes ordinary web services work well over bad links, and the laboratory that
/// proves it.
#[derive(Parser)]
#[command(name = "longwire", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One variant per command; each is a file of its own with `run(args) -> anyhow::Result<ExitCode>`.
#[derive(Subcommand)]
enum Command {
    Doctor(doctor::Args),
    Fetch(fetch::Args),
    Lab(lab::Args),
    Serve(serve::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result: anyhow::Result<ExitCode> = match cli.command {
        Command::Doctor(args) => doctor::run(args),
        Command::Fetch(args) => fetch::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Serve(args) => serve::run(args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("longwire: {error:#}");
            ExitCode::FAILURE
        }
    }
}
