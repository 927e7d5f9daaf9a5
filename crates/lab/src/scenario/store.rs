//! The directory of kept scenarios.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use link::nearest;

use super::MAX_SCENARIOS;
use crate::error::{Doing, Error, Result};
use crate::lab::check_name;

/// The scenario in its directory.
const FILE: &str = "scenario.toml";

/// The directory of a user's kept scenarios; it need not exist yet.
pub(super) struct Store {
    path: PathBuf,
}

impl Store {
    /// The calling user's.
    pub(super) fn open() -> Result<Self> {
        place(|name| std::env::var_os(name)).map(Self::at).ok_or_else(|| Error::Machine {
            lack: "there is no place for scenarios".to_string(),
            remedy: "set LONGWIRE_HOME to an absolute path",
        })
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where a scenario of that name is kept.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name).join(FILE)
    }

    pub(super) fn find(&self, name: &str) -> Result<PathBuf> {
        let file = self.file(name);
        if check_name(name).is_ok() && file.is_file() {
            return Ok(file);
        }
        Err(unknown(name, &self.names().unwrap_or_default()))
    }

    /// The names of all that are kept, sorted, at most [`MAX_SCENARIOS`].
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.doing(|| format!("list {}", self.path.display()))?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            (check_name(&name).is_ok() && self.file(&name).is_file()).then_some(name)
        };
        let mut names: Vec<String> = entries.filter_map(name).take(MAX_SCENARIOS).collect();
        names.sort();
        Ok(names)
    }

    /// Keeps a scenario: written aside first, so that it is never seen in part.
    pub(super) fn write(
        &self,
        name: &str,
        text: &str,
        files: &BTreeMap<String, Vec<u8>>,
        replace: bool,
    ) -> Result<PathBuf> {
        check_name(name)?;
        let target = self.path.join(name);
        let doing = || format!("keep {}", target.display());
        if target.exists() && !replace {
            return Err(Error::Caller(format!(
                "a scenario '{name}' is kept already: give --replace, or another name"
            )));
        }
        if !target.exists() && self.names()?.len() >= MAX_SCENARIOS {
            return Err(Error::Caller(format!(
                "{MAX_SCENARIOS} scenarios are kept, which is the most: forget one first"
            )));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path).doing(doing)?;
        let aside = self.path.join(format!(".{name}.{}", std::process::id()));
        let old = self.path.join(format!(".{name}.{}.old", std::process::id()));
        let put = || -> io::Result<()> {
            write_all(&aside, text, files)?;
            if target.exists() {
                fs::rename(&target, &old)?;
            }
            fs::rename(&aside, &target)
        };
        let done = put();
        if done.is_err() && old.exists() && !target.exists() {
            let _ = fs::rename(&old, &target);
        }
        // What was replaced, or could not be put in its place.
        let _ = fs::remove_dir_all(&old);
        let _ = fs::remove_dir_all(&aside);
        done.doing(doing)?;
        Ok(self.file(name))
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let file = self.find(name)?;
        let directory = file.parent().unwrap_or(&file);
        fs::remove_dir_all(directory).doing(|| format!("remove {}", directory.display()))
    }
}

fn write_all(directory: &Path, text: &str, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let all = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    for (name, bytes) in all.chain([(FILE, text.as_bytes())]) {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    Ok(())
}

/// The directory that the environment asks for; a relative path counts as none (XDG Base Directory
/// Specification).
pub(super) fn place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("LONGWIRE_HOME")
        .map(|home| home.join("scenarios"))
        .or_else(|| absolute("XDG_CONFIG_HOME").map(|base| base.join("longwire/scenarios")))
        .or_else(|| absolute("HOME").map(|home| home.join(".config/longwire/scenarios")))
}

/// What to say of a name that nothing has.
pub(super) fn unknown(name: &str, known: &[String]) -> Error {
    /// Most characters of a name that a message repeats.
    const MAX_SHOWN_CHARS: usize = 60;
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let meant = nearest(name, &known).map_or(String::new(), |n| format!("did you mean '{n}'? "));
    let shown: String = name.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    let kept = match known.as_slice() {
        [] => "no scenario is kept".to_owned(),
        names => format!("kept are {}", names.join(", ")),
    };
    Error::Caller(format!("unknown scenario '{shown}': {meant}{kept}; a file's name ends in .toml"))
}
