//! What publishers and the registry tell each other of a service in JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::quality::Facts;
use crate::messaging::{shown, time};

/// A service as it is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Publishing {
    /// Its name, 1 to 255 characters.
    pub name: String,
    /// Its kind, such as `consumer`.
    pub kind: String,
    /// Where it is.
    pub url: String,
    /// More addresses of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_urls: Vec<String>,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names and values of the publisher's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// How long it is kept, in seconds; an hour when none is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u64>,
    /// What was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
}

/// What was measured, as [`Facts`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// Mean, in microseconds.
    pub mean_us: u64,
    /// What 99 of 100 samples took at most.
    pub p99_us: u64,
    /// What 999 of 1,000 took at most.
    pub p999_us: u64,
    /// What 9,999 of 10,000 took at most.
    pub p9999_us: u64,
    /// The greatest.
    pub max_us: u64,
    /// How many samples.
    pub samples: u64,
    /// Over how many seconds.
    pub window_s: u64,
    /// When the window ended (RFC 3339).
    pub measured_at: String,
}

impl Quality {
    /// As it is kept.
    ///
    /// # Errors
    /// A line that says what contradicts what.
    pub fn facts(&self) -> Result<Facts, String> {
        let at = time::parse(&self.measured_at);
        let at = at.ok_or_else(|| format!("measured_at: '{}'", shown(&self.measured_at)))?;
        let facts = Facts {
            mean_us: self.mean_us,
            p99_us: self.p99_us,
            p999_us: self.p999_us,
            p9999_us: self.p9999_us,
            max_us: self.max_us,
            samples: self.samples,
            window: Duration::from_secs(self.window_s),
            at,
        };
        facts.check().map(|()| facts)
    }

    /// Of what is kept.
    #[must_use]
    pub fn of(facts: &Facts) -> Self {
        Self {
            mean_us: facts.mean_us,
            p99_us: facts.p99_us,
            p999_us: facts.p999_us,
            p9999_us: facts.p9999_us,
            max_us: facts.max_us,
            samples: facts.samples,
            window_s: facts.window.as_secs(),
            measured_at: time::format(facts.at),
        }
    }
}
