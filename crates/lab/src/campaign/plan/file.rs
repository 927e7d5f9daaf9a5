//! The file of a plan: TOML, every key of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A whole plan as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) title: String,
    #[serde(default)]
    pub(super) about: String,
    #[serde(default = "default_seed")]
    pub(super) seed: u64,
    #[serde(default = "default_repetitions")]
    pub(super) repetitions: u32,
    #[serde(default)]
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) client: Client,
    pub(super) quick: Option<Quick>,
    #[serde(rename = "network")]
    pub(super) networks: Vec<Network>,
    #[serde(default, rename = "server")]
    pub(super) servers: Vec<Server>,
    #[serde(default, rename = "command")]
    pub(super) commands: Vec<ClientCommand>,
    #[serde(rename = "group")]
    pub(super) groups: Vec<Group>,
    #[serde(default, rename = "figure")]
    pub(super) figures: Vec<Figure>,
    #[serde(default, rename = "reference")]
    pub(super) references: Vec<Reference>,
    #[serde(default)]
    pub(super) advice: BTreeMap<String, String>,
}

/// What the machine may add to a run before it is done again.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) lateness: Option<Time>,
    /// A share.
    pub(super) wait: Option<f64>,
}

/// How the measuring client asks; a network may say otherwise, and a group more than that.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Client {
    pub(super) tracks: Option<String>,
    pub(super) messages: Option<u32>,
    pub(super) warm_up: Option<u32>,
    pub(super) timeout: Option<Time>,
    pub(super) budget: Option<Time>,
}

impl Client {
    /// This one's word, and another's where it says nothing.
    pub(super) fn over(&self, under: &Self) -> Self {
        Self {
            tracks: self.tracks.clone().or_else(|| under.tracks.clone()),
            messages: self.messages.or(under.messages),
            warm_up: self.warm_up.or(under.warm_up),
            timeout: self.timeout.or(under.timeout),
            budget: self.budget.or(under.budget),
        }
    }
}

/// What `--quick` leaves of the plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub(super) networks: Option<Vec<String>>,
    pub(super) services: Option<Vec<String>>,
    pub(super) groups: Option<Vec<String>>,
    pub(super) repetitions: Option<u32>,
    #[serde(default)]
    pub(super) client: Client,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) link: Option<String>,
    #[serde(default)]
    pub(super) set: Vec<String>,
    /// The link becomes others while a client is under way.
    #[serde(default)]
    pub(super) then: Vec<Change>,
    pub(super) repetitions: Option<u32>,
    #[serde(default)]
    pub(super) client: Client,
}

/// From a time after the client's start on the link is another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) after: Time,
    pub(super) link: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) command: Option<Vec<String>>,
    pub(super) prepare: Option<Vec<String>>,
    #[serde(default)]
    pub(super) ready: Ready,
    pub(super) ready_timeout: Option<Time>,
    pub(super) port: Option<u16>,
    pub(super) services: Vec<String>,
    #[serde(default)]
    pub(super) share: bool,
    pub(super) memory: Option<Size>,
    pub(super) answers: Option<Size>,
    #[serde(default)]
    pub(super) defaults: BTreeMap<String, String>,
}

/// How a server tells that it serves.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Ready {
    /// Its first line on standard output begins so.
    Line(String),
    /// A GET of this path on its port answers with a status below 400.
    Http(String),
}

impl Default for Ready {
    fn default() -> Self {
        Self::Line("listening on ".to_string())
    }
}

/// A client that is not longwire's own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientCommand {
    pub(super) name: String,
    pub(super) command: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    #[serde(default = "default_server")]
    pub(super) server: String,
    pub(super) networks: Option<Vec<String>>,
    pub(super) services: Option<Vec<String>>,
    pub(super) ways: Option<Vec<String>>,
    pub(super) repetitions: Option<u32>,
    #[serde(default)]
    pub(super) client: Client,
    #[serde(default)]
    pub(super) vary: Vary,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, Vec<String>>,
}

/// How the values of several settings are put together.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Vary {
    /// One setting at a time, the others at their defaults; the default itself is part of it.
    #[default]
    One,
    /// Every combination of the values given.
    All,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) network: String,
    pub(super) groups: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reference {
    pub(super) network: String,
    #[serde(default = "default_server")]
    pub(super) server: String,
    pub(super) service: String,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
    pub(super) time: Time,
    #[serde(default)]
    pub(super) note: String,
}

/// A time with its unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time(pub(super) Duration);

/// Bytes with their unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) u64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Unit(link::units::parse_duration)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Unit(link::units::parse_size)).map(Self)
    }
}

/// A text with a unit, by the function that reads it.
struct Unit<T>(fn(&str) -> Result<T, link::Error>);

impl<T> Visitor<'_> for Unit<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text with a unit such as \"200 s\" or \"300 MB\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

fn default_seed() -> u64 {
    1
}

/// As many as an interval needs.
fn default_repetitions() -> u32 {
    6
}

fn default_server() -> String {
    super::BUILT_IN.to_string()
}
