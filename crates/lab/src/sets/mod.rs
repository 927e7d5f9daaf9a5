//! Links that people have saved by name.
//!
//! A name is a preset's or a saved link's; a preset's name cannot be saved under, and wins where a
//! file of that name was put into the directory by hand. Each saved link is one TOML file in
//! `$LONGWIRE_HOME/links`, or else in `longwire/links` under `$XDG_CONFIG_HOME` or `~/.config`.

mod store;

use std::path::PathBuf;

use link::{LinkConfig, nearest, presets};

use crate::error::{Error, Result};
use crate::lab::check_name;
use store::Store;

/// Most links that are saved: enough for a person to keep in mind, and a bound for listings.
pub const MAX_SETS: usize = 500;
/// Largest file of a saved link: two directions with all the outages that a link may have.
pub const MAX_SET_BYTES: u64 = 256 * 1024;

/// Names that would mean something else in a listing or a plan.
const RESERVED: [&str; 4] = ["index", "all", "none", "default"];

/// A saved link.
#[derive(Debug)]
pub struct Saved {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What it is like, or why it cannot be used.
    pub config: Result<LinkConfig>,
}

/// The link called `name`: a preset, else a saved one.
///
/// # Errors
/// [`Error::Caller`] with the nearest name when there is none, or with what is wrong in its file;
/// [`Error::System`] when the file cannot be read.
pub fn load(name: &str) -> Result<LinkConfig> {
    match LinkConfig::preset(name) {
        Ok(config) => Ok(config),
        Err(_) => load_from(Store::open().ok().as_ref(), name),
    }
}

fn load_from(store: Option<&Store>, name: &str) -> Result<LinkConfig> {
    let Some(store) = store else { return Err(unknown("link", name, &[])) };
    match check_name(name).is_ok().then(|| store.read(name)) {
        Some(Ok(Some(config))) => Ok(config),
        Some(Err(error)) => Err(error),
        _ => Err(unknown("link", name, &store.names().unwrap_or_default())),
    }
}

/// Saves a link under `name`, whole or not at all; returns its file. A link saved before under that
/// name is kept, unless `replace` says otherwise.
///
/// # Errors
/// [`Error::Caller`] for a bad, reserved or taken name, contradicting settings, or when
/// [`MAX_SETS`] are saved; [`Error::Machine`] when there is no place; [`Error::System`].
pub fn save(name: &str, config: &LinkConfig, replace: bool) -> Result<PathBuf> {
    save_to(&Store::open()?, name, config, replace)
}

fn save_to(store: &Store, name: &str, config: &LinkConfig, replace: bool) -> Result<PathBuf> {
    check_name(name)?;
    if is_preset(name) {
        return Err(Error::Caller(format!(
            "'{name}' is a preset, and presets stay as they are: save under another name"
        )));
    }
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err(Error::Caller(format!(
            "'{name}' is reserved ({}): save under another name",
            RESERVED.join(", ")
        )));
    }
    config.check().map_err(|error| Error::Caller(error.to_string()))?;
    store.write(name, config, replace)
}

/// All saved links by name; those that cannot be used say why.
///
/// # Errors
/// When the directory cannot be read.
pub fn list() -> Result<Vec<Saved>> {
    Store::open().map_or_else(|_| Ok(Vec::new()), |store| list_in(&store))
}

fn list_in(store: &Store) -> Result<Vec<Saved>> {
    let one = |name: String| Saved {
        path: store.file(&name),
        config: if is_preset(&name) {
            Err(Error::Caller(format!("the preset '{name}' is used in its place: rename the file")))
        } else {
            store.read(&name).and_then(|config| config.ok_or_else(|| unknown("link", &name, &[])))
        },
        name,
    };
    Ok(store.names()?.into_iter().map(one).collect())
}

/// Removes a saved link, also one that cannot be used.
///
/// # Errors
/// [`Error::Caller`] when there is none of that name or it is a preset; [`Error::System`].
pub fn forget(name: &str) -> Result<()> {
    forget_in(&Store::open()?, name)
}

fn forget_in(store: &Store, name: &str) -> Result<()> {
    check_name(name)?;
    if store.remove(name)? {
        return Ok(());
    }
    if is_preset(name) {
        return Err(Error::Caller(format!("'{name}' is a preset, which cannot be forgotten")));
    }
    Err(unknown("saved link", name, &store.names()?))
}

fn is_preset(name: &str) -> bool {
    presets().iter().any(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// What to say of a name that nothing has.
fn unknown(kind: &str, name: &str, saved: &[String]) -> Error {
    /// Most characters of a name that a message repeats.
    const MAX_SHOWN_CHARS: usize = 60;
    let presets: Vec<&str> = match kind {
        "link" => presets().iter().map(|preset| preset.name).collect(),
        _ => Vec::new(),
    };
    let saved: Vec<&str> = saved.iter().map(String::as_str).collect();
    let known = [presets.as_slice(), saved.as_slice()].concat();
    let meant = nearest(name, &known).map_or(String::new(), |n| format!("did you mean '{n}'? "));
    let shown: String = name.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    let listed = |what: &str, names: &[&str]| match names {
        [] => format!("no {what}"),
        names => format!("{what} {}", names.join(", ")),
    };
    let saved = listed("saved links", &saved);
    let known = match presets.as_slice() {
        [] => saved,
        names => format!("{}; {saved}", listed("presets", names)),
    };
    Error::Caller(format!("unknown {kind} '{shown}': {meant}there are {known}"))
}

#[cfg(test)]
mod tests;
