//! The file of a study: TOML, which is checked whole before anything is started.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use link::LinkConfig;
use services::benchmark::methods::client::MAX_SLOWDOWN;
use toml::{Table, Value};

use crate::error::{Doing, Error, Result};

/// Longest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most links, ways and methods with their sizes.
const MAX_ROWS: usize = 64;
/// Most calls of each method.
pub const MAX_CALLS: u32 = 100_000;
/// Longest that a call may take, in seconds.
const MAX_TIMEOUT_S: u32 = 3600;

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The study's name.
    pub name: String,
    /// Calls of each method that are measured, and how many before.
    pub count: u32,
    /// Calls that warm up.
    pub warm_up: u32,
    pub(super) timeout_s: u32,
    pub(super) links: Vec<LinkPlan>,
    pub(super) ways: Vec<WayPlan>,
    pub(super) methods: Vec<MethodPlan>,
    /// The text that it was read from, which tells studies apart.
    pub(super) text: String,
}

/// A link, and the processor of the client on it; on one host there is none.
#[derive(Clone, Debug)]
pub(super) struct LinkPlan {
    pub(super) name: String,
    pub(super) config: Option<LinkConfig>,
    /// How many times slower the client's processor seems.
    pub(super) slowdown: u32,
}

/// How calls are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WayPlan {
    pub(super) name: String,
    /// `http`, `wsp` or `coap`, and the form of messages, as `fetch methods` has them.
    pub(super) over: String,
    pub(super) form: String,
    /// A connection of its own for each call.
    pub(super) is_new_connection: bool,
    /// Through an edge and a gateway.
    pub(super) is_pair: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MethodPlan {
    pub(super) name: String,
    pub(super) size: Option<u32>,
}

impl Plan {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::System`] where it cannot be read, [`Error::Caller`] with what is wrong in it.
    pub fn read(path: &Path) -> Result<Self> {
        let doing = || format!("read {}", path.display());
        let mut text = String::new();
        let file = File::open(path).doing(doing)?;
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).doing(doing)?;
        let parsed = if text.len() as u64 > MAX_FILE_BYTES {
            Err(format!("it is longer than {MAX_FILE_BYTES} bytes"))
        } else {
            Self::parse(&text)
        };
        parsed.map_err(|what| Error::Caller(format!("{}: {what}", path.display())))
    }

    pub(super) fn parse(text: &str) -> std::result::Result<Self, String> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            format!("line {line}: {}", error.message())
        })?;
        let top = Keys { of: "the study", table: &table };
        top.only(&["name", "count", "warm_up", "timeout_s", "link", "way", "method"])?;
        let plan = Self {
            name: top.name("name")?,
            count: top.number("count", 1..=MAX_CALLS)?.unwrap_or(100),
            warm_up: top.number("warm_up", 0..=MAX_CALLS)?.unwrap_or(0),
            timeout_s: top.number("timeout_s", 1..=MAX_TIMEOUT_S)?.unwrap_or(60),
            links: top.rows("link")?.iter().map(link_of).collect::<std::result::Result<_, _>>()?,
            ways: top.rows("way")?.iter().map(way_of).collect::<std::result::Result<_, _>>()?,
            methods: {
                let all: std::result::Result<Vec<_>, String> =
                    top.rows("method")?.iter().map(methods_of).collect();
                all?.concat()
            },
            text: text.to_owned(),
        };
        if plan.warm_up > plan.count {
            return Err(format!("warm_up is {}; choose 0 to {}", plan.warm_up, plan.count));
        }
        if plan.methods.len() > MAX_ROWS {
            let rows = plan.methods.len();
            return Err(format!("{rows} sizes of methods; choose at most {MAX_ROWS}"));
        }
        unique("link", plan.links.iter().map(|link| &link.name))?;
        unique("way", plan.ways.iter().map(|way| &way.name))?;
        Ok(plan)
    }

    /// Leaves the links and ways of these names; all where there is none.
    ///
    /// # Errors
    /// [`Error::Caller`] for a name that there is not.
    pub fn restrict(&mut self, links: &[String], ways: &[String]) -> Result<()> {
        let known = |what, names: &[String], all: Vec<&str>| {
            let missing = names.iter().find(|name| !all.contains(&name.as_str()));
            missing.map_or(Ok(()), |name| {
                let (name, all) = (name.escape_debug(), all.join(", "));
                Err(Error::Caller(format!("no {what} '{name}': the study has {all}")))
            })
        };
        known("link", links, self.links.iter().map(|link| &*link.name).collect())?;
        known("way", ways, self.ways.iter().map(|way| &*way.name).collect())?;
        self.links.retain(|link| links.is_empty() || links.contains(&link.name));
        self.ways.retain(|way| ways.is_empty() || ways.contains(&way.name));
        Ok(())
    }
}

/// A name in the characters of files' names.
pub(super) fn plain(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.to_lowercase().chars().map(letter).collect()
}

fn unique<'a>(
    what: &str,
    mut names: impl Iterator<Item = &'a String>,
) -> std::result::Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    match names.find(|name| !seen.insert(plain(name))) {
        Some(name) => Err(format!("two of {what} are called '{name}', or so in a file's name")),
        None => Ok(()),
    }
}

fn link_of(keys: &Keys<'_>) -> std::result::Result<LinkPlan, String> {
    keys.only(&["name", "preset", "set", "slowdown"])?;
    let name = keys.name("name")?;
    let preset = keys.text("preset")?;
    let changes = keys.texts("set")?;
    let slowdown = keys.number("slowdown", 1..=MAX_SLOWDOWN)?.unwrap_or(1);
    let Some(preset) = preset else {
        return match changes.is_empty() {
            true => Ok(LinkPlan { name, config: None, slowdown }),
            false => Err(format!("link '{name}' is one host: 'set' needs a 'preset'")),
        };
    };
    let wrong = |error: link::Error| format!("link '{name}': {error}");
    let mut config = LinkConfig::preset(&preset).map_err(wrong)?;
    for change in &changes {
        let (key, value) = change
            .split_once('=')
            .ok_or_else(|| format!("link '{name}': '{change}' is no KEY=VALUE"))?;
        config.set(key.trim(), value).map_err(wrong)?;
    }
    config.check().map_err(wrong)?;
    Ok(LinkPlan { name, config: Some(config), slowdown })
}

fn way_of(keys: &Keys<'_>) -> std::result::Result<WayPlan, String> {
    keys.only(&["name", "over", "form", "new_connection", "pair"])?;
    let way = WayPlan {
        name: keys.name("name")?,
        over: keys.choice("over", &["http", "wsp", "coap"])?,
        form: keys.choice("form", &["xml", "wbxml", "cbor", "exi"])?,
        is_new_connection: keys.flag("new_connection")?,
        is_pair: keys.flag("pair")?,
    };
    if way.over != "http" && (way.is_new_connection || way.is_pair) {
        let WayPlan { name, over, .. } = way;
        return Err(format!("way '{name}': new_connection and pair are of http, not of {over}"));
    }
    if way.over == "coap" && way.form == "wbxml" {
        return Err(format!("way '{}': WBXML has no content format of CoAP", way.name));
    }
    Ok(way)
}

fn methods_of(keys: &Keys<'_>) -> std::result::Result<Vec<MethodPlan>, String> {
    keys.only(&["name", "sizes"])?;
    let name = keys.choice("name", &["nop", "getString", "getIntArray"])?;
    let sizes = match keys.table.get("sizes") {
        None => Vec::new(),
        Some(Value::Array(sizes)) => {
            let size = |value: &Value| {
                let size = value.as_integer().and_then(|size| u32::try_from(size).ok());
                size.ok_or_else(|| format!("method '{name}': a size is a number from 0 on"))
            };
            sizes.iter().map(size).collect::<std::result::Result<Vec<_>, _>>()?
        }
        Some(_) => return Err(format!("method '{name}': 'sizes' is a list of numbers")),
    };
    match (&*name, sizes.is_empty()) {
        ("nop", true) => Ok(vec![MethodPlan { name, size: None }]),
        ("nop", false) => Err("method 'nop' has no sizes".to_owned()),
        (_, true) => Err(format!("method '{name}' needs 'sizes', such as [10, 100]")),
        (_, false) => {
            let one = |size| MethodPlan { name: name.clone(), size: Some(size) };
            Ok(sizes.into_iter().map(one).collect())
        }
    }
}

/// A table of the file.
struct Keys<'a> {
    of: &'static str,
    table: &'a Table,
}

impl<'a> Keys<'a> {
    fn only(&self, known: &[&str]) -> std::result::Result<(), String> {
        match self.table.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let (key, of, known) = (key.escape_debug(), self.of, known.join(", "));
                Err(format!("{of} has no key '{key}'; there are {known}"))
            }
            None => Ok(()),
        }
    }

    fn rows(&self, key: &'static str) -> std::result::Result<Vec<Keys<'a>>, String> {
        let rows = self.table.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if rows.is_empty() || rows.len() > MAX_ROWS {
            let len = rows.len();
            return Err(format!("{len} of [[{key}]]; choose 1 to {MAX_ROWS}"));
        }
        let row = |value: &'a Value| -> std::result::Result<Keys<'a>, String> {
            let table = value.as_table().ok_or_else(|| format!("write [[{key}]]"))?;
            Ok(Keys { of: key, table })
        };
        rows.iter().map(row).collect()
    }

    fn text(&self, key: &str) -> std::result::Result<Option<String>, String> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("'{key}' of {} is a text", self.of)),
        }
    }

    fn texts(&self, key: &str) -> std::result::Result<Vec<String>, String> {
        let wrong = || format!("'{key}' of {} is a list of texts", self.of);
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(all)) => {
                let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
                all.iter().map(text).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A name, which becomes a part of a file's.
    fn name(&self, key: &str) -> std::result::Result<String, String> {
        let name = self.text(key)?.ok_or_else(|| format!("{} needs '{key}'", self.of))?;
        let is_good = |letter: char| letter.is_ascii_alphanumeric() || " -+_".contains(letter);
        match (1..=32).contains(&name.len()) && name.chars().all(is_good) {
            true => Ok(name),
            false => {
                let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
                Err(format!("'{shown}' is no name: 1 to 32 letters, digits, ' ', '-', '+', '_'"))
            }
        }
    }

    fn choice(&self, key: &str, all: &[&str]) -> std::result::Result<String, String> {
        let found = self.text(key)?.ok_or_else(|| format!("{} needs '{key}'", self.of))?;
        match all.contains(&found.as_str()) {
            true => Ok(found),
            false => {
                let (found, all) = (found.escape_debug(), all.join(", "));
                Err(format!("'{key}' of {} is '{found}'; choose one of {all}", self.of))
            }
        }
    }

    fn flag(&self, key: &str) -> std::result::Result<bool, String> {
        let wrong = || format!("'{key}' of {} is true or false", self.of);
        self.table.get(key).map_or(Ok(false), |value| value.as_bool().ok_or_else(wrong))
    }

    fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u32>,
    ) -> std::result::Result<Option<u32>, String> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let number = value.as_integer().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("'{key}' is {value}; choose {} to {}", range.start(), range.end())),
        }
    }
}
