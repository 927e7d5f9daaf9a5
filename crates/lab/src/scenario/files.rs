//! The files that a scenario names: beside it, or else under `$LONGWIRE_DATA`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::error::{Doing, Error, Result};

/// Reads files for a scenario and remembers those beside it.
pub(super) struct Files {
    directory: PathBuf,
    data: Option<PathBuf>,
    /// Contents by name.
    beside: RefCell<BTreeMap<String, Vec<u8>>>,
}

impl Files {
    /// Of a scenario's file.
    pub(super) fn beside(scenario: &Path) -> Self {
        let directory = scenario.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let data = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
        Self { directory, data, beside: RefCell::default() }
    }

    /// The scenario itself, its beginning where it is too long: that is refused by who reads it.
    pub(super) fn text(&self, path: &Path, max_bytes: usize) -> Result<String> {
        let doing = || format!("read {}", path.display());
        let file = File::open(path).doing(doing)?;
        let mut bytes = Vec::new();
        file.take(max_bytes as u64 + 1).read_to_end(&mut bytes).doing(doing)?;
        String::from_utf8(bytes)
            .map_err(|_| Error::Caller(format!("{} is no UTF-8 text", path.display())))
    }

    /// A file that the scenario names; on failure one line.
    pub(super) fn read(
        &self,
        name: &str,
        max_bytes: usize,
    ) -> std::result::Result<Vec<u8>, String> {
        let beside = self.directory.join(name);
        let in_data = self.data.as_ref().map(|data| data.join(name));
        let is_beside = beside.is_file();
        let path = match in_data {
            Some(path) if !is_beside && path.is_file() => path,
            _ => beside,
        };
        let file = File::open(&path).map_err(|error| {
            let hint = "it is looked for beside the scenario and under $LONGWIRE_DATA";
            format!("cannot read {}: {error}; {hint}", path.display())
        })?;
        let mut bytes = Vec::new();
        file.take(max_bytes as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if bytes.len() > max_bytes {
            return Err(format!("{} has more than {max_bytes} bytes; split it", path.display()));
        }
        if is_beside {
            self.beside.borrow_mut().insert(name.to_owned(), bytes.clone());
        }
        Ok(bytes)
    }

    /// The files beside the scenario that were read, by names below its directory.
    pub(super) fn into_beside(self) -> Result<BTreeMap<String, Vec<u8>>> {
        let files = self.beside.into_inner();
        let is_below = |name: &str| {
            let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            Path::new(name).components().all(is_inside)
        };
        match files.keys().find(|name| !is_below(name)) {
            Some(name) => Err(Error::Caller(format!(
                "the scenario names {name}, which is not below its own directory: put the file \
                 there before it is kept"
            ))),
            None => Ok(files),
        }
    }
}
