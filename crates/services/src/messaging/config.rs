//! The configuration of a node: a file in TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::fields::{is_token, of_hex};
use super::forms::Form;
use super::machine::{Retry, Settings};
use super::message::MAX_VALIDITY_S;
use super::refusal::shown;
use super::signing::Keys;
use crate::Error;
use crate::client::Target;

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most other nodes.
const MAX_NODES: usize = 1024;
/// Most groups.
const MAX_GROUPS: usize = 1024;
/// Most requests to one node at once.
const MAX_WINDOW: usize = 64;
/// Most messages in the inbox and in the outbox, each.
const MAX_MESSAGES: usize = 1_000_000;
/// Longest pause, timeout or time of keeping that is taken: 30 days.
const MAX_TIME: Duration = Duration::from_secs(MAX_VALIDITY_S);

/// A whole configuration, as it is written.
// table: one field a key of the file
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    node: String,
    listen: String,
    peers: Option<String>,
    coap: Option<String>,
    coap_listen: Option<String>,
    coap_tcp: Option<String>,
    store: PathBuf,
    proxy: Option<String>,
    form: Option<String>,
    validity: Option<String>,
    retention: Option<String>,
    retry_first: Option<String>,
    retry_longest: Option<String>,
    attempt_timeout: Option<String>,
    resend: Option<String>,
    window: Option<usize>,
    max_messages: Option<usize>,
    #[serde(default)]
    nodes: BTreeMap<String, NodeFile>,
    #[serde(default)]
    groups: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    keys: BTreeMap<String, String>,
}

/// `[nodes.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeFile {
    url: Option<String>,
    via: Option<String>,
    form: Option<String>,
}

/// How a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// HTTP/1.1; its paths are below this URL.
    Http(Target),
    /// CoAP over UDP.
    Coap(SocketAddr),
    /// CoAP over TCP.
    CoapTcp(SocketAddr),
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// How it is reached.
    pub way: Way,
    /// The form that it gets documents in.
    pub form: Form,
}

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients are served.
    pub listen: SocketAddr,
    /// Where other nodes are served, if not there too.
    pub peers: Option<SocketAddr>,
    /// Where other nodes are served over CoAP and UDP, and requests leave to those that are.
    pub coap: Option<SocketAddr>,
    /// Where clients are served over CoAP and UDP.
    pub coap_listen: Option<SocketAddr>,
    /// Where other nodes are served over CoAP and TCP.
    pub coap_tcp: Option<SocketAddr>,
    /// The directory of the store.
    pub store: PathBuf,
    /// A forward proxy, such as an edge, that requests to other nodes go through.
    pub proxy: Option<Target>,
    /// The nodes that are reached themselves.
    pub nodes: BTreeMap<Arc<str>, Peer>,
    /// What the machine is told.
    pub settings: Settings,
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

    /// Reads the text of a file. The error goes on from the file's name.
    fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            format!(", line {line}: {}", error.message().replace('\n', " "))
        })?;
        file.check().map_err(|Wrong { key, what }| {
            format!(", line {}: {key}: {what}", line_of_key(text, &key))
        })
    }
}

/// The line where a key such as `nodes.b1` stands, as a key or as the head of a table.
fn line_of_key(text: &str, key: &str) -> usize {
    let mut table = String::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        let found = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((head, _)) => {
                head.trim().clone_into(&mut table);
                table.clone()
            }
            None => match line.split_once('=') {
                Some((name, _)) if table.is_empty() => name.trim().to_owned(),
                Some((name, _)) => format!("{table}.{}", name.trim()),
                None => continue,
            },
        };
        if found.replace('"', "") == key {
            return at + 1;
        }
    }
    1
}

/// A key that is wrong, and what is.
struct Wrong {
    key: String,
    what: String,
}

fn wrong(key: impl Into<String>, what: impl Into<String>) -> Wrong {
    Wrong { key: key.into(), what: what.into() }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

impl File {
    fn check(self) -> Result<Config, Wrong> {
        check_name("node", &self.node)?;
        let listen = address("listen", &self.listen)?;
        let peers = self.peers.as_deref().map(|text| address("peers", text)).transpose()?;
        let coap = self.coap.as_deref().map(|text| address("coap", text)).transpose()?;
        let coap_tcp =
            self.coap_tcp.as_deref().map(|text| address("coap_tcp", text)).transpose()?;
        let coap_listen =
            self.coap_listen.as_deref().map(|text| address("coap_listen", text)).transpose()?;
        let has_keys = !self.keys.is_empty();
        let is_open = |address: SocketAddr| has_keys && !address.ip().is_loopback();
        if coap_listen.is_some_and(is_open) {
            let what = "anybody who reaches it could write in this node's name in spite of keys; \
                        listen on a loopback address";
            return Err(wrong("coap_listen", what));
        }
        if is_open(listen) {
            let what = "anybody who reaches it could write in this node's name in spite of keys; \
                        listen on a loopback address, and let nodes come to 'peers'";
            return Err(wrong("listen", what));
        }
        if has_keys && peers.is_none() && coap.is_none() && coap_tcp.is_none() {
            let what = "with keys nodes do not come to 'listen', where they could write in this \
                        node's name; give 'peers', 'coap' or 'coap_tcp'";
            return Err(wrong("keys", what));
        }
        let form = form("form", self.form.as_deref(), Form::Json)?;
        let proxy = self.proxy.as_deref().map(|text| target("proxy", text)).transpose()?;
        let (nodes, routes) = self.nodes(form)?;
        let groups = self.groups(&routes)?;
        let keys = self.keys()?;
        let time = |key: &str, text: &Option<String>, usual| period(key, text.as_deref(), usual);
        let usual = Settings::new(&self.node, &[]);
        let retry = Retry {
            first: time("retry_first", &self.retry_first, usual.retry.first)?,
            longest: time("retry_longest", &self.retry_longest, usual.retry.longest)?,
            window: count("window", self.window, usual.retry.window, MAX_WINDOW)?,
        };
        if retry.longest < retry.first {
            return Err(wrong("retry_longest", "is shorter than retry_first"));
        }
        let (timeout, max) = (usual.attempt_timeout, usual.max_messages);
        let settings = Settings {
            routes,
            groups,
            keys,
            retry,
            attempt_timeout: time("attempt_timeout", &self.attempt_timeout, timeout)?,
            resend: time("resend", &self.resend, usual.resend)?,
            retention: time("retention", &self.retention, usual.retention)?,
            validity: whole(time("validity", &self.validity, usual.validity)?)?,
            max_messages: count("max_messages", self.max_messages, max, MAX_MESSAGES)?,
            ..usual
        };
        let store = self.store;
        Ok(Config { listen, peers, coap, coap_listen, coap_tcp, store, proxy, nodes, settings })
    }

    /// The nodes that are reached themselves, and for each the one that leads to it.
    fn nodes(&self, usual: Form) -> Result<(BTreeMap<Arc<str>, Peer>, Routes), Wrong> {
        if self.nodes.len() > MAX_NODES {
            let what = format!("{} are over the limit of {MAX_NODES}", self.nodes.len());
            return Err(wrong("nodes", what));
        }
        let (mut peers, mut routes) = (BTreeMap::new(), BTreeMap::new());
        for (name, node) in &self.nodes {
            let key = format!("nodes.{name}");
            check_name(&key, name)?;
            if *name == self.node {
                return Err(wrong(key, "is this node; leave it out"));
            }
            match (&node.url, &node.via) {
                (Some(url), None) => {
                    let form = form(&key, node.form.as_deref(), usual)?;
                    let way = way(&key, url, self.coap.is_some())?;
                    peers.insert(name.as_str().into(), Peer { way, form });
                }
                (None, Some(_)) if node.form.is_some() => {
                    return Err(wrong(
                        key,
                        "has a form, which is the one of the node that it is via",
                    ));
                }
                (None, Some(_)) => {}
                _ => return Err(wrong(key, "needs one of url and via")),
            }
            routes.insert(name.as_str().into(), self.next(name)?.into());
        }
        Ok((peers, routes))
    }

    /// The node with a URL that leads to one.
    fn next<'a>(&'a self, name: &'a str) -> Result<&'a str, Wrong> {
        let mut seen = BTreeSet::new();
        let mut at = name;
        loop {
            let key = format!("nodes.{name}");
            if !seen.insert(at) {
                return Err(wrong(key, format!("its via goes in a loop at '{}'", shown(at))));
            }
            match self.nodes.get(at).map(|node| node.via.as_deref()) {
                Some(None) => return Ok(at),
                Some(Some(via)) => at = via,
                None => {
                    let what = format!("it is via '{}', which is no node of this file", shown(at));
                    return Err(wrong(key, what));
                }
            }
        }
    }

    fn groups(&self, routes: &Routes) -> Result<BTreeMap<String, Vec<Arc<str>>>, Wrong> {
        if self.groups.len() > MAX_GROUPS {
            let what = format!("{} are over the limit of {MAX_GROUPS}", self.groups.len());
            return Err(wrong("groups", what));
        }
        let mut groups = BTreeMap::new();
        for (name, members) in &self.groups {
            let key = format!("groups.{name}");
            check_name(&key, name)?;
            if self.nodes.contains_key(name) || *name == self.node {
                return Err(wrong(key, "is the name of a node too; give the group another"));
            }
            let member = |member: &String| {
                let known = routes.get_key_value(member.as_str()).map(|(known, _)| known.clone());
                let own = (*member == self.node).then(|| member.as_str().into());
                known.or(own).ok_or_else(|| {
                    wrong(&*key, format!("'{}' is no node of this file", shown(member)))
                })
            };
            let members: Vec<Arc<str>> = members.iter().map(member).collect::<Result<_, _>>()?;
            groups.insert(name.clone(), members);
        }
        Ok(groups)
    }

    fn keys(&self) -> Result<Keys, Wrong> {
        if !self.keys.is_empty() && !self.keys.contains_key(&self.node) {
            let what = format!("has none of this node, '{}', whose messages need one", self.node);
            return Err(wrong("keys", what));
        }
        let mut keys = Vec::new();
        for (node, text) in &self.keys {
            let remedy = "give 32 hexadecimal digits or more";
            let key = of_hex(text)
                .ok_or_else(|| wrong(format!("keys.{node}"), format!("no key; {remedy}")))?;
            keys.push((node.clone(), key));
        }
        Keys::new(keys).map_err(|what| wrong("keys", what))
    }
}

/// For each node the one that leads to it.
type Routes = BTreeMap<Arc<str>, Arc<str>>;

fn check_name(key: &str, name: &str) -> Result<(), Wrong> {
    if is_token(name) {
        return Ok(());
    }
    let rule = "1 to 64 of the letters and digits of ASCII and ._~-, the first no mark";
    Err(wrong(key, format!("'{}' is no name: {rule}", shown(name))))
}

fn address(key: &str, text: &str) -> Result<SocketAddr, Wrong> {
    let remedy = "give one like 127.0.0.1:8090";
    text.parse().map_err(|error| wrong(key, format!("'{}': {error}; {remedy}", shown(text))))
}

fn target(key: &str, text: &str) -> Result<Target, Wrong> {
    Target::parse(text).map_err(|error| wrong(key, error.to_string()))
}

/// The port of CoAP over UDP (RFC 7252 §6.1).
const COAP_PORT: u16 = 5683;

fn way(key: &str, url: &str, has_coap: bool) -> Result<Way, Wrong> {
    let over_udp = url.strip_prefix("coap://");
    let is_udp = over_udp.is_some();
    let Some(place) = over_udp.or_else(|| url.strip_prefix("coap+tcp://")) else {
        return target(key, url).map(Way::Http);
    };
    if is_udp && !has_coap {
        return Err(wrong(key, "is reached over CoAP, for which this node needs the key 'coap'"));
    }
    let place = place.trim_end_matches('/');
    let whole = place.parse::<SocketAddr>().ok();
    let bare = place.trim_matches(['[', ']']).parse().ok();
    let address = whole.or(bare.map(|ip| SocketAddr::new(ip, COAP_PORT)));
    address.map(if is_udp { Way::Coap } else { Way::CoapTcp }).ok_or_else(|| {
        let what = format!("'{}' has no IP address; give one like coap://192.0.2.2", shown(url));
        wrong(key, what)
    })
}

fn form(key: &str, text: Option<&str>, usual: Form) -> Result<Form, Wrong> {
    text.map_or(Ok(usual), |text| Form::parse(text).map_err(|what| wrong(key, what)))
}

fn period(key: &str, text: Option<&str>, usual: Duration) -> Result<Duration, Wrong> {
    let Some(text) = text else { return Ok(usual) };
    let period =
        link::units::parse_duration(text).map_err(|error| wrong(key, error.to_string()))?;
    match (Duration::from_millis(1)..=MAX_TIME).contains(&period) {
        true => Ok(period),
        false => Err(wrong(key, format!("'{}' is not from 1 ms to 30 days", shown(text)))),
    }
}

/// A validity, which is said in whole seconds.
fn whole(validity: Duration) -> Result<Duration, Wrong> {
    match validity.subsec_nanos() {
        0 => Ok(validity),
        _ => Err(wrong("validity", "is said in whole seconds; give a number of them")),
    }
}

fn count(key: &str, given: Option<usize>, usual: usize, max: usize) -> Result<usize, Wrong> {
    match given.unwrap_or(usual) {
        count if (1..=max).contains(&count) => Ok(count),
        count => Err(wrong(key, format!("{count} is not from 1 to {max}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
node = "a1"
listen = "127.0.0.1:8090"
peers = "0.0.0.0:8091"
coap = "0.0.0.0:5683"
store = "a1.store"
proxy = "http://127.0.0.1:8080"
form = "cbor"
validity = "2 h"
retry_longest = "5 s"
window = 8

[nodes]
b1 = { url = "http://10.0.0.2:8091", form = "exi" }
b2 = { via = "b1" }
b3 = { via = "b2" }
b4 = { url = "coap://192.0.2.4", form = "cbor" }
b5 = { url = "coap://[2001:db8::5]:5700/" }
b6 = { url = "coap+tcp://192.0.2.6" }

[groups]
platoon = ["a1", "b2"]

[keys]
a1 = "000102030405060708090a0b0c0d0e0f"
b2 = "101112131415161718191a1b1c1d1e1f"
"#;

    #[test]
    fn a_good_file_is_read() {
        let config = Config::parse(GOOD).unwrap();
        let settings = &config.settings;
        let routes: Vec<(&str, &str)> =
            settings.routes.iter().map(|(to, next)| (&**to, &**next)).collect();
        assert_eq!(
            routes,
            [("b1", "b1"), ("b2", "b1"), ("b3", "b1"), ("b4", "b4"), ("b5", "b5"), ("b6", "b6")]
        );
        let way = |node: &str| config.nodes[node].way.clone();
        assert_eq!(way("b4"), Way::Coap("192.0.2.4:5683".parse().unwrap()));
        assert_eq!(way("b5"), Way::Coap("[2001:db8::5]:5700".parse().unwrap()));
        assert_eq!(way("b6"), Way::CoapTcp("192.0.2.6:5683".parse().unwrap()));
        assert_eq!(config.nodes["b1"].form, Form::Exi);
        assert_eq!(config.nodes.len(), 4);
        assert_eq!(settings.groups["platoon"], ["a1".into(), "b2".into()]);
        assert_eq!((settings.validity, settings.retry.window), (Duration::from_secs(7200), 8));
        assert!(settings.keys.has("b2") && !settings.keys.has("b1"));
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_key() {
        for (from, to, words) in [
            ("window = 8", "windows = 8", ", line 11: unknown field `windows`"),
            ("window = 8", "window = 65", ", line 11: window: 65 is not from 1 to 64"),
            ("window = 8", "window = \"8\"", ", line 11: "),
            ("\"a1\"\nlis", "\"a 1\"\nlis", ", line 2: node: 'a 1' is no name"),
            ("node = \"a1\"\n", "", ", line 1: missing field `node`"),
            ("127.0.0.1:8090", "localhost", ", line 3: listen: 'localhost'"),
            ("http://127.0.0.1:8080", "https://x", ", line 7: proxy: 'https://x' is no http URL"),
            ("\"cbor\"", "\"asn1\"", ", line 8: form: 'asn1' is not one of json, xml, cbor, exi"),
            ("\"2 h\"", "\"2500 ms\"", ", line 9: validity: is said in whole seconds"),
            ("\"2 h\"", "\"31 d\"", ", line 9: validity: "),
            ("\"5 s\"", "\"10 ms\"", ", line 10: retry_longest: is shorter than retry_first"),
            ("via = \"b2\"", "via = \"b3\"", "nodes.b3: its via goes in a loop at 'b3'"),
            ("via = \"b2\"", "via = \"x\"", "nodes.b3: it is via 'x', which is no node"),
            ("via = \"b2\"", "", "nodes.b3: needs one of url and via"),
            ("via = \"b2\"", "via = \"b1\", form = \"xml\"", "nodes.b3: has a form"),
            ("b3 =", "a1 =", "nodes.a1: is this node"),
            (
                "[\"a1\", \"b2\"]",
                "[\"c\"]",
                ", line 22: groups.platoon: 'c' is no node of this file",
            ),
            ("platoon =", "b1 =", "groups.b1: is the name of a node too"),
            ("a1 = \"00", "b1 = \"00", ", line 24: keys: has none of this node, 'a1'"),
            ("b2 = \"10", "b2 = \"1", ", line 26: keys.b2: no key; give 32"),
            ("b2 = \"10111213", "b2 = \"1011", "the key of node 'b2' has 14 bytes; it needs 16"),
            ("coap://192.0.2.4", "coap://b4", "nodes.b4: 'coap://b4' has no IP address"),
            ("coap = \"0.0.0.0:5683\"", "", "nodes.b4: is reached over CoAP, for which"),
            (
                "form = \"cbor\"\nv",
                "coap_listen = \"[::]:1\"\nv",
                "line 8: coap_listen: anybody who",
            ),
            ("form = \"cbor\"\nv", "coap_listen = \"[::1]:1\"\nv", ""),
            ("peers = \"0.0.0.0:8091\"", "", ""),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD);
            match Config::parse(&text) {
                Err(line) => {
                    assert!(line.contains(words) && !words.is_empty(), "{to}: {line}");
                    assert!(!line.contains('\n'), "{line}");
                }
                Ok(_) => assert!(words.is_empty(), "{to} is taken"),
            }
        }
        let open = GOOD.replacen("127.0.0.1:8090", "0.0.0.0:8090", 1);
        let line = Config::parse(&open).unwrap_err();
        assert!(line.contains("listen: anybody who reaches it could write"), "{line}");
        let keys = "node = \"a\"\nlisten = \"127.0.0.1:0\"\nstore = \"s\"\n[keys]\na = \"KEY\"\n";
        let line = Config::parse(&keys.replace("KEY", &"0f".repeat(16))).unwrap_err();
        assert!(line.contains(", line 4: keys: with keys nodes do not come to 'listen'"), "{line}");
    }
}
