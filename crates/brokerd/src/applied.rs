//! Which profile of a federation a broker applies, kept in its store: after a restart no older
//! version takes its place, though all partners have signed that as well.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use federation::Profile;

use crate::error::Error;
use crate::federation::read_text;

/// Name of the file in the store's directory, and of the one that takes its place.
const FILE: &str = "broker.federation";
const NEW_FILE: &str = "broker.federation.new";
/// Largest such file, in bytes.
const MAX_BYTES: usize = 4096;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    profile: String,
    version: u64,
    /// Of the canonical form, hexadecimal.
    digest: String,
}

impl Applied {
    pub(crate) fn of(profile: &Profile) -> Self {
        let Profile { name, version, .. } = profile;
        Self { profile: name.clone(), version: *version, digest: profile.digest() }
    }

    /// Keeps that this profile is applied.
    ///
    /// # Errors
    /// [`Error::Caller`] where another was applied that it does not follow: a newer version,
    /// another text of the same one, or one of another name; and where the file cannot be read.
    /// [`Error::System`] where it cannot be written.
    pub(crate) fn keep(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(FILE);
        let shown = path.display();
        match Self::read(&path)? {
            Some(before) if before == *self => return Ok(()),
            Some(before) => self.follows(&before).map_err(|what| {
                let Self { profile, version, .. } = self;
                Error::Caller(format!(
                    "[federation] profile {profile} version {version} {what}, which this broker \
                     has applied: take the newer file, or remove {shown} if it is to go back"
                ))
            })?,
            None => {}
        }
        let broken = |error| Error::System(format!("cannot keep {shown}: {error}"));
        let Self { profile, version, digest } = self;
        let text = format!("{version} {digest} {profile}\n");
        let new = directory.join(NEW_FILE);
        fs::create_dir_all(directory).map_err(broken)?;
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(broken)?;
        file.write_all(text.as_bytes()).map_err(broken)?;
        file.sync_all().map_err(broken)?;
        fs::rename(&new, &path).map_err(broken)?;
        fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(broken)
    }

    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let is_missing = fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if is_missing {
            return Ok(None);
        }
        let text = read_text(path, MAX_BYTES)?;
        let mut parts = text.trim_end().splitn(3, ' ');
        let version = parts.next().and_then(|version| version.parse().ok());
        let (digest, profile) = (parts.next().map(str::to_owned), parts.next().map(str::to_owned));
        match (version, digest, profile) {
            (Some(version), Some(digest), Some(profile)) => {
                Ok(Some(Self { profile, version, digest }))
            }
            _ => Err(Error::Caller(format!(
                "{} does not say which profile is applied: remove it if the profile that is named \
                 now is the newest",
                path.display()
            ))),
        }
    }

    /// Whether it may take another's place; if not, what it is against that.
    fn follows(&self, before: &Self) -> Result<(), String> {
        let Self { profile, version, .. } = before;
        if self.profile != *profile {
            return Err(format!("is of another agreement than profile {profile}"));
        }
        if self.version < *version {
            return Err(format!("is older than version {version}"));
        }
        if self.version == *version {
            return Err("is another text than that of the same version".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_profile_takes_the_place_of_a_newer_one_after_a_restart() {
        let directory = std::env::temp_dir().join(format!("longwire-app-{}", std::process::id()));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/federation.toml");
        let mut profile = crate::federation::read_profile(path.as_ref()).unwrap();
        let keep = |profile: &Profile| {
            Applied::of(profile).keep(&directory).map_err(|error| error.to_string())
        };
        assert_eq!(keep(&profile), Ok(()));
        assert_eq!(keep(&profile), Ok(()), "a restart");
        let one = profile.clone();
        profile.version += 1;
        assert_eq!(keep(&profile), Ok(()));
        let older = keep(&one).unwrap_err();
        assert!(older.contains("is older than version 2"), "{older}");
        assert!(older.contains("broker.federation if it is to go back"), "{older}");
        let two = profile.clone();
        profile.about.push('!');
        assert!(keep(&profile).unwrap_err().contains("is another text"));
        profile.version += 1;
        profile.name.push('x');
        assert!(keep(&profile).unwrap_err().contains("is of another agreement"));
        assert_eq!(keep(&two), Ok(()), "what was refused is not kept");
        fs::write(directory.join(FILE), "2 ").unwrap();
        assert!(keep(&two).unwrap_err().contains("does not say which profile"));
        fs::remove_file(directory.join(FILE)).unwrap();
        assert_eq!(keep(&one), Ok(()));
        fs::remove_dir_all(&directory).unwrap();
    }
}
