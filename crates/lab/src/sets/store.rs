//! The files of saved links.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use link::LinkConfig;
use toml::{Table, Value};

use super::{MAX_SET_BYTES, MAX_SETS};
use crate::error::{Doing, Error, Result};
use crate::lab::check_name;
use crate::session::read_trace;

/// The layout of the files.
const VERSION: i64 = 1;
const SUFFIX: &str = ".toml";

/// The directory of a user's saved links; it need not exist yet.
pub(super) struct Store {
    path: PathBuf,
}

impl Store {
    /// The calling user's.
    pub(super) fn open() -> Result<Self> {
        place(|name| std::env::var_os(name)).map(Self::at).ok_or_else(|| Error::Machine {
            lack: "there is no place for saved links".to_string(),
            remedy: "set LONGWIRE_HOME to an absolute path",
        })
    }

    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where a link is saved.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{SUFFIX}"))
    }

    /// The names of all files that can be a saved link's, sorted, at most [`MAX_SETS`].
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.doing(|| format!("list {}", self.path.display()))?,
        };
        let name = |entry: io::Result<fs::DirEntry>| {
            let file = entry.ok()?.file_name().into_string().ok()?;
            let name = file.strip_suffix(SUFFIX)?;
            check_name(name).is_ok().then(|| name.to_string())
        };
        let mut names: Vec<String> = entries.filter_map(name).take(MAX_SETS).collect();
        names.sort();
        Ok(names)
    }

    /// Reads a saved link; `None` when there is none of that name.
    pub(super) fn read(&self, name: &str) -> Result<Option<LinkConfig>> {
        let path = self.file(name);
        let doing = || format!("read {}", path.display());
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.doing(doing)?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_SET_BYTES + 1).read_to_end(&mut bytes).doing(doing)?;
        decode(&bytes).map(Some).map_err(|why| {
            Error::Caller(format!(
                "saved link '{name}' cannot be used: {why} (in {}); save it anew with --replace, \
                 or: longwire lab forget {name}",
                path.display()
            ))
        })
    }

    /// Saves a link: written aside first, so that a file is never seen half written.
    pub(super) fn write(&self, name: &str, config: &LinkConfig, replace: bool) -> Result<PathBuf> {
        let path = self.file(name);
        let doing = || format!("save {}", path.display());
        let text = encode(config).map_err(Error::Caller)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path).doing(doing)?;
        if !path.exists() && self.names()?.len() >= MAX_SETS {
            return Err(Error::Caller(format!(
                "{MAX_SETS} links are saved, which is the most: forget one first"
            )));
        }
        let aside = self.path.join(format!(".{name}.{}", std::process::id()));
        let put = || -> io::Result<()> {
            let mut file = File::create(&aside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            // A hard link, unlike a rename, never takes another file's place.
            if replace { fs::rename(&aside, &path) } else { fs::hard_link(&aside, &path) }
        };
        let done = put();
        // Renamed, linked or useless: in each case it is not needed under this name any more.
        let _ = fs::remove_file(&aside);
        match done {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Caller(
                format!("a link '{name}' is saved already: give --replace, or another name"),
            )),
            other => other.doing(doing).map(|()| path.clone()),
        }
    }

    /// Removes a saved link; false when there is none.
    pub(super) fn remove(&self, name: &str) -> Result<bool> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => other.doing(|| format!("remove {}", path.display())).map(|()| true),
        }
    }
}

/// The directory that the environment asks for; a relative path counts as none (XDG Base Directory
/// Specification).
pub(super) fn place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let under = |base: PathBuf, rest: &str| Path::new(&base).join(rest);
    absolute("LONGWIRE_HOME")
        .map(|home| under(home, "links"))
        .or_else(|| absolute("XDG_CONFIG_HOME").map(|base| under(base, "longwire/links")))
        .or_else(|| absolute("HOME").map(|home| under(home, ".config/longwire/links")))
}

fn encode(config: &LinkConfig) -> std::result::Result<String, String> {
    let settings: Table =
        config.settings().into_iter().map(|(key, value)| (key, Value::String(value))).collect();
    let file = Table::from_iter([
        ("version".to_string(), Value::Integer(VERSION)),
        ("settings".to_string(), Value::Table(settings)),
    ]);
    let text = toml::to_string(&file).map_err(|error| format!("cannot be written: {error}"))?;
    let text = format!("# A link of longwire; see: longwire lab sets\n{text}");
    if text.len() as u64 > MAX_SET_BYTES {
        return Err(format!("the link takes {} B, at most {MAX_SET_BYTES} are saved", text.len()));
    }
    Ok(text)
}

/// Reads a file's bytes; on failure what is wrong, in one line.
pub(super) fn decode(bytes: &[u8]) -> std::result::Result<LinkConfig, String> {
    if bytes.len() as u64 > MAX_SET_BYTES {
        return Err(format!("it is longer than {MAX_SET_BYTES} B"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_string())?;
    let file: Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let first = error.message().lines().next().unwrap_or("no TOML").to_string();
        format!("it is no TOML: {first}")
    })?;
    match file.get("version").and_then(Value::as_integer) {
        Some(VERSION) => {}
        Some(other) => return Err(format!("it has version {other}, known is {VERSION}")),
        None => return Err(format!("it lacks 'version = {VERSION}'")),
    }
    if let Some(key) = file.keys().find(|key| !["version", "settings"].contains(&key.as_str())) {
        return Err(format!("the key '{}' is not known", key.escape_debug()));
    }
    let settings = file.get("settings").and_then(Value::as_table);
    let settings = settings.ok_or_else(|| "it lacks the table [settings]".to_string())?;
    let mut config = LinkConfig::default();
    for (key, value) in settings {
        let value = value
            .as_str()
            .ok_or_else(|| format!("the setting '{}' is no text in quotes", key.escape_debug()))?;
        config.set_reading(key, value, read_trace).map_err(|error| error.to_string())?;
    }
    config.check().map_err(|error| error.to_string())?;
    Ok(config)
}
