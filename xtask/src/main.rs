//! `cargo xtask tidy`: reads the table of crates in ARCHITECTURE.md and checks the rules of the
//! house against the tree. One line per finding, exit status 1 if there is one, 2 on bad use.

mod finding;
mod house;
mod manifest;
mod mask;
mod paths;
mod rules;
mod source;
mod table;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::house::House;
use crate::rules::RULES;

const HELP: &str = "\
Checks the rules of the house against the tree.

Usage: cargo xtask tidy [--root DIR]    check; one line `path:line: rule: what; remedy` a finding
       cargo xtask rules                list the rules and what each demands

The tree is what git tracks or would track (`git ls-files`); without git, every file but target/.
";

enum Task {
    Help,
    Rules,
    Tidy { root: PathBuf },
}

fn main() -> ExitCode {
    let task = match parse(std::env::args_os().skip(1).collect()) {
        Ok(task) => task,
        Err(error) => return fail(&error, 2),
    };
    match run(task) {
        Ok(code) => code,
        Err(error) => fail(&error, 2),
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    eprintln!("xtask: {error:#}");
    ExitCode::from(status)
}

fn parse(args: Vec<OsString>) -> anyhow::Result<Task> {
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        [] | ["help" | "--help" | "-h"] | [_, "--help" | "-h"] => Ok(Task::Help),
        ["rules"] => Ok(Task::Rules),
        ["tidy"] => Ok(Task::Tidy { root: default_root() }),
        ["tidy", "--root", _] => Ok(Task::Tidy { root: PathBuf::from(&args[2]) }),
        _ => bail!("`{}` is not a task; see `cargo xtask help`", words.join(" ")),
    }
}

/// Cargo runs this with its own folder named; the workspace is one above.
fn default_root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(
        || PathBuf::from("."),
        |folder| {
            let folder = PathBuf::from(folder);
            folder.parent().map_or(folder.clone(), PathBuf::from)
        },
    )
}

fn run(task: Task) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match task {
        Task::Help => out.write_all(HELP.as_bytes())?,
        Task::Rules => {
            for rule in RULES {
                writeln!(out, "{:<13} {}", rule.name, rule.demand)?;
            }
        }
        Task::Tidy { root } => {
            let files = tree::read(&root)
                .with_context(|| format!("cannot read the tree at {}", root.display()))?;
            let findings = rules::check(&House::new(files));
            for finding in &findings {
                writeln!(out, "{finding}")?;
            }
            if !findings.is_empty() {
                eprintln!("tidy: {} findings; `cargo xtask rules` lists the rules", findings.len());
                return Ok(ExitCode::FAILURE);
            }
            eprintln!("tidy: {} rules hold", RULES.len());
        }
    }
    Ok(ExitCode::SUCCESS)
}
