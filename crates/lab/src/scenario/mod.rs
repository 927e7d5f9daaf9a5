//! Scenarios of radio nets: files that people write, and those that they have kept by name.
//!
//! What is asked for is a file where it has a `/` or ends in `.toml`, else the name of a kept one.
//! Kept scenarios are in `$LONGWIRE_HOME/scenarios`, or else in `longwire/scenarios` under
//! `$XDG_CONFIG_HOME` or `~/.config`: a directory each, with the scenario and the files that it
//! names.

mod files;
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use link::net::{Problems, Resolved, Scenario};
use services::scenario::{MAX_SCENARIO_BYTES, parse};

use crate::error::{Error, Result};
use files::Files;
use store::Store;

/// Most scenarios that are kept.
pub const MAX_SCENARIOS: usize = 500;

/// A scenario that was read: what it is, or what is wrong with it.
pub type Checked = std::result::Result<Scenario, Problems>;

/// A kept scenario.
#[derive(Debug)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What it is, or what is wrong with it.
    pub scenario: Result<Checked>,
}

/// The file of a scenario: of a path itself, of a name that of the one that is kept under it.
///
/// # Errors
/// [`Error::Caller`] with the nearest name where there is none.
pub fn find(which: &str) -> Result<PathBuf> {
    find_in(Store::open().ok().as_ref(), which)
}

fn find_in(store: Option<&Store>, which: &str) -> Result<PathBuf> {
    if which.contains('/') || which.ends_with(".toml") {
        return Ok(PathBuf::from(which));
    }
    match store {
        Some(store) => store.find(which),
        None => Err(store::unknown(which, &[])),
    }
}

/// Reads a scenario and says all that is wrong with it, paths of radio waves not counted.
///
/// # Errors
/// [`Error::Caller`] where there is none, [`Error::System`] where it cannot be read.
pub fn check(which: &str) -> Result<Checked> {
    check_file(&find(which)?)
}

fn check_file(path: &Path) -> Result<Checked> {
    let files = Files::beside(path);
    let text = files.text(path, MAX_SCENARIO_BYTES)?;
    let read = |name: &str, max_bytes: usize| files.read(name, max_bytes);
    Ok(parse(&path.to_string_lossy(), &text, &read))
}

/// Reads a scenario and calculates its path losses.
///
/// # Errors
/// Those of [`check`], and [`Error::Caller`] in one line for the first thing that is wrong, or for
/// a way of radio waves that comes off the map or past a hole.
pub fn load(which: &str) -> Result<Resolved> {
    let scenario = check(which)?.map_err(|problems| {
        let first = problems.list().first().map_or(String::new(), ToString::to_string);
        let others = problems.list().len().saturating_sub(1) + problems.more();
        let others = match others {
            0 => String::new(),
            more => format!(" (and {more} more: longwire lab scenario check {which})"),
        };
        Error::Caller(format!("{first}{others}"))
    })?;
    scenario.resolve().map_err(|error| Error::Caller(format!("{which}: {error}")))
}

/// All kept scenarios by name.
///
/// # Errors
/// When the directory cannot be read.
pub fn list() -> Result<Vec<Kept>> {
    Store::open().map_or_else(|_| Ok(Vec::new()), |store| list_in(&store))
}

fn list_in(store: &Store) -> Result<Vec<Kept>> {
    let one = |name: String| {
        let path = store.file(&name);
        Kept { scenario: check_file(&path), path, name }
    };
    Ok(store.names()?.into_iter().map(one).collect())
}

/// Keeps a scenario under a name, with the files beside it that it names; returns its file. Files
/// that are found under `$LONGWIRE_DATA` stay there. One that was kept before under that name stays
/// as it is, unless `replace` says otherwise.
///
/// # Errors
/// Those of [`check`], and [`Error::Caller`] for a scenario with problems, a bad or taken name, or
/// when [`MAX_SCENARIOS`] are kept; [`Error::Machine`] when there is no place; [`Error::System`].
pub fn copy(which: &str, name: &str, replace: bool) -> Result<PathBuf> {
    copy_to(&Store::open()?, &find(which)?, name, replace)
}

fn copy_to(store: &Store, path: &Path, name: &str, replace: bool) -> Result<PathBuf> {
    let files = Files::beside(path);
    let text = files.text(path, MAX_SCENARIO_BYTES)?;
    let read = |name: &str, max_bytes: usize| files.read(name, max_bytes);
    if let Err(problems) = parse(&path.to_string_lossy(), &text, &read) {
        let first = problems.list().first().map_or(String::new(), ToString::to_string);
        return Err(Error::Caller(format!("only scenarios without problems are kept: {first}")));
    }
    store.write(name, &text, &files.into_beside()?, replace)
}

/// Removes a kept scenario.
///
/// # Errors
/// [`Error::Caller`] when there is none of that name; [`Error::System`].
pub fn forget(name: &str) -> Result<()> {
    Store::open()?.remove(name)
}
