//! `cargo xtask tidy`: reads the table of crates in ARCHITECTURE.md and checks the rules of the
//! house against the tree. One line per finding, exit status 1 if there is one, 2 on bad use.
//! `cargo xtask house` measures the crates, so that two states can be compared; `cargo xtask
//! pocket` builds the client for devices and measures that.

mod cycle;
mod elf;
mod exceptions;
mod finding;
mod house;
mod items;
mod manifest;
mod mask;
mod measure;
mod member;
mod paths;
mod pocket;
mod rules;
mod sbom;
mod source;
mod table;
mod tree;
mod unit;
mod units;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::house::House;
use crate::rules::RULES;

const HELP: &str = "\
Checks the rules of the house against the tree.

Usage: cargo xtask tidy [--root DIR]    check; one line `path:line: rule: what; remedy` a finding
       cargo xtask rules                list the rules and what each demands
       cargo xtask house [--root DIR] [--json]
                                        measure each crate: lines of product and of tests, top
                                        modules beside the root, the longest import cycle, the
                                        types with most methods and most fields

       cargo xtask pocket [--library | --device]
                                        build the client for devices and its library for C, and
                                        print how large its parts are and how deep its stack gets;
                                        --library: only build; --device: fail without the target of
                                        a microcontroller
       cargo xtask sbom                 print what the program is made of (CycloneDX, JSON)

Two states are compared so: git worktree add ../before REVISION, then
cargo xtask house --root ../before, and without --root for the present one.

The tree is what git tracks or would track (`git ls-files`); without git, every file but target/.
";

enum Task {
    Help,
    Rules,
    Tidy { root: PathBuf },
    House { root: PathBuf, is_json: bool },
    Pocket(pocket::Options),
    Sbom,
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
        ["pocket"] => Ok(Task::Pocket(pocket::Options::default())),
        ["pocket", "--library"] => {
            Ok(Task::Pocket(pocket::Options { only_builds: true, needs_device: false }))
        }
        ["pocket", "--device"] => {
            Ok(Task::Pocket(pocket::Options { only_builds: false, needs_device: true }))
        }
        ["sbom"] => Ok(Task::Sbom),
        ["house", options @ ..] => house_task(options, &args[1..]),
        _ => bail!("`{}` is not a task; see `cargo xtask help`", words.join(" ")),
    }
}

fn house_task(words: &[&str], args: &[OsString]) -> anyhow::Result<Task> {
    let (mut root, mut is_json) = (default_root(), false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match (*word, args.get(at + 1)) {
            ("--json", _) => is_json = true,
            ("--root", Some(folder)) => {
                root = PathBuf::from(folder);
                at += 1;
            }
            _ => {
                bail!("`{word}` is no option of `house`, or lacks a folder; see `cargo xtask help`")
            }
        }
        at += 1;
    }
    Ok(Task::House { root, is_json })
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
            let findings = rules::check(&read(&root)?);
            for finding in &findings {
                writeln!(out, "{finding}")?;
            }
            if !findings.is_empty() {
                eprintln!("tidy: {} findings; `cargo xtask rules` lists the rules", findings.len());
                return Ok(ExitCode::FAILURE);
            }
            eprintln!("tidy: {} rules hold", RULES.len());
        }
        Task::Pocket(options) => {
            drop(out);
            let is_good = pocket::run(&default_root(), options)?;
            return Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Task::Sbom => out.write_all(sbom::run(&default_root())?.as_bytes())?,
        Task::House { root, is_json } => {
            let measures = measure::measure(&read(&root)?);
            let print = if is_json { measure::json } else { measure::table };
            out.write_all(print(&measures).as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(root: &Path) -> anyhow::Result<House> {
    let files =
        tree::read(root).with_context(|| format!("cannot read the tree at {}", root.display()))?;
    Ok(House::new(files))
}
