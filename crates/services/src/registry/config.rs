//! The configuration of a registry: a file in TOML.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::core::Limits;
use crate::Error;
use crate::messaging::shown;

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// How long a token is good that nothing else is said of.
const USUAL_LIFE: Duration = Duration::from_secs(3600);
/// Shortest and longest life of a token.
const LIVES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));
/// Most entries that may be allowed.
const MAX_ENTRIES: usize = 10_000_000;

/// A configuration as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: String,
    coap: Option<String>,
    store: PathBuf,
    users: Option<PathBuf>,
    coap_publisher: Option<String>,
    token_life: Option<String>,
    max_lease: Option<String>,
    max_entries: Option<usize>,
    max_entries_of_publisher: Option<usize>,
}

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens for HTTP.
    pub listen: SocketAddr,
    /// Where it listens for CoAP over UDP, if it does.
    pub coap: Option<SocketAddr>,
    /// The directory of the store.
    pub store: PathBuf,
    /// The file of users; nobody may publish where there is none.
    pub users: Option<PathBuf>,
    /// The user that registrations over CoAP belong to; there are none where it is not said.
    pub coap_publisher: Option<String>,
    /// How long a token is good.
    pub token_life: Duration,
    /// Longest lease.
    pub max_lease: Duration,
    /// Most entries of all publishers.
    pub max_entries: usize,
    /// Most entries of one.
    pub max_entries_of_publisher: usize,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Caller`] with the file, the line and the key.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let unreadable = |error| Error::Caller(format!("cannot read {shown}: {error}"));
        let len = fs::metadata(path).map_err(unreadable)?.len();
        if len > MAX_FILE_BYTES {
            return Err(Error::Caller(format!(
                "{shown} has {len} bytes, over the limit of {MAX_FILE_BYTES}"
            )));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text).map_err(|what| Error::Caller(format!("{shown}{what}")))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(""));
            let line = before.matches('\n').count() + 1;
            format!(", line {line}: {}", error.message().replace('\n', " "))
        })?;
        let wrong = |key: &str, what: String| {
            let is_it = |line: &str| line.split('=').next().is_some_and(|one| one.trim() == key);
            let line = text.lines().position(is_it).map_or(1, |at| at + 1);
            format!(", line {line}: {key}: {what}")
        };
        let address = |key: &str, text: &str| {
            text.parse::<SocketAddr>().map_err(|error| {
                wrong(key, format!("'{}': {error}; give one like 127.0.0.1:8095", shown(text)))
            })
        };
        let time = |key: &str, text: &Option<String>, usual: Duration, (least, most)| {
            let Some(text) = text else { return Ok(usual) };
            let time = link::units::parse_duration(text);
            let time = time.map_err(|error| wrong(key, error.to_string()))?;
            match (least..=most).contains(&time) {
                true => Ok(time),
                false => {
                    Err(wrong(key, format!("{time:?}; choose one from {least:?} to {most:?}")))
                }
            }
        };
        let count = |key: &str, count: Option<usize>, usual: usize| match count {
            None => Ok(usual),
            Some(count) if (1..=MAX_ENTRIES).contains(&count) => Ok(count),
            Some(count) => Err(wrong(key, format!("{count}; choose one from 1 to {MAX_ENTRIES}"))),
        };
        if file.coap_publisher.is_some() && (file.coap.is_none() || file.users.is_none()) {
            let what = "it needs coap, and users in whose file it is".to_owned();
            return Err(wrong("coap_publisher", what));
        }
        let usual = Limits::default();
        Ok(Self {
            listen: address("listen", &file.listen)?,
            coap: file.coap.as_deref().map(|text| address("coap", text)).transpose()?,
            store: file.store.clone(),
            users: file.users.clone(),
            coap_publisher: file.coap_publisher.clone(),
            token_life: time("token_life", &file.token_life, USUAL_LIFE, LIVES)?,
            max_lease: time("max_lease", &file.max_lease, usual.leases.1, usual.leases)?,
            max_entries: count("max_entries", file.max_entries, usual.entries)?,
            max_entries_of_publisher: count(
                "max_entries_of_publisher",
                file.max_entries_of_publisher,
                usual.entries_of_publisher,
            )?,
        })
    }

    /// What the core is told.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            entries: self.max_entries,
            entries_of_publisher: self.max_entries_of_publisher,
            leases: (Limits::default().leases.0, self.max_lease),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "listen = \"127.0.0.1:0\"\nstore = \"s\"\n";

    #[test]
    fn what_is_not_said_is_as_usual() {
        let config = Config::parse(LEAST).unwrap();
        assert_eq!((config.coap, config.users, config.token_life), (None, None, USUAL_LIFE));
        assert_eq!(config.max_lease, Limits::default().leases.1);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (more, expected) in [
            ("token_life = \"2 days\"", "line 3: token_life: "),
            ("token_life = \"25 h\"", "line 3: token_life: "),
            ("max_lease = \"1 ms\"", "line 3: max_lease: "),
            ("max_entries = 0", "line 3: max_entries: 0; choose one from 1"),
            ("coap = \"x\"", "line 3: coap: 'x'"),
            ("coap_publisher = \"bob\"", "line 3: coap_publisher: it needs coap"),
            ("lisen = 1", "line 3: "),
        ] {
            let error = Config::parse(&format!("{LEAST}{more}\n")).unwrap_err();
            assert!(error.contains(expected), "{more}: {error}");
        }
    }
}
