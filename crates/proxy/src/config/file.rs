//! The configuration file: TOML, every key of it, and errors of one line.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::units::{Period, Rate, Size};
use crate::Error;

/// Largest configuration file read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most `[[service]]` entries.
const MAX_SERVICES: usize = 1000;

/// A whole file. Each side reads its own section and the services.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `[edge]`.
    #[serde(default)]
    pub edge: EdgeSettings,
    /// `[gateway]`.
    #[serde(default)]
    pub gateway: GatewaySettings,
    /// `[log]`.
    #[serde(default)]
    pub log: LogSettings,
    /// `[[service]]`, first match first.
    #[serde(default, rename = "service")]
    pub services: Vec<ServiceSettings>,
}

/// Declares a section whose keys are all optional, and how one overrides another.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$key:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, Deserialize, PartialEq)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$key])* pub $field: Option<$kind>,)*
        }

        impl $name {
            /// These settings, and `under` where they say nothing.
            #[must_use]
            pub fn over(self, under: Self) -> Self {
                Self { $($field: self.$field.or(under.$field),)* }
            }

            /// The keys whose values are others there.
            #[must_use]
            pub fn differing(&self, other: &Self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if self.$field != other.$field {
                    keys.push(stringify!($field));
                })*
                keys
            }
        }
    };
}

section! {
    /// Settings of an edge.
    EdgeSettings {
        /// Address for clients.
        listen: String,
        /// `HOST:PORT` of the gateway; none: everything goes directly.
        gateway: String,
        /// Reverse proxy: `http://HOST[:PORT][/PATH]` that every request goes to.
        upstream: String,
        /// Reverse proxy: which fields name the client: `none`, `x-forwarded` or `forwarded`.
        forwarded: String,
        /// Reverse proxy: which addresses of the service lead back here: `location`, `wsdl`.
        rewrite: Vec<String>,
        /// What to do while the gateway cannot be reached: `none` or `direct`.
        fallback: String,
        /// `auto`, `nam` or `NAME[:LEVEL]`.
        encoding: String,
        /// Most that the link is believed to carry.
        rate_cap: Rate,
        /// `auto` or `stream`.
        carrier: String,
        /// File of this side's private key.
        key: PathBuf,
        /// File of the gateway's public keys.
        peer: PathBuf,
        /// Lifts the restriction to loopback addresses where there are no keys.
        insecure_plain: bool,
        /// Address for metrics and health.
        admin: String,
        /// Congestion control of carriers.
        congestion: String,
        /// How long a request waits for the gateway.
        connect_timeout: Period,
        /// How long an attempt to reach the gateway may take, and then its handshake.
        dial_timeout: Period,
        /// How long the gateway may take to say HELLO.
        hello_timeout: Period,
        /// How long a request whose carrier broke waits for word of what became of it.
        outcome_timeout: Period,
        /// How long a carrier idles before the gateway is asked for a sign of life.
        keepalive: Period,
        /// A gateway without a sign of life for so long is gone.
        peer_timeout: Period,
        /// How long a body waits for what it takes to decode it.
        body_timeout: Period,
        /// How long a shutdown waits for open exchanges.
        drain_timeout: Period,
        /// How long an answer may take to begin while nothing moves.
        response_timeout: Period,
        /// Most client connections at once.
        max_connections: usize,
        /// Most exchanges open at once, besides tunnels and event streams.
        max_exchanges: usize,
        /// Most tunnels and event streams open at once.
        max_tunnels: usize,
        /// How long nothing may pass through a tunnel or an event stream.
        tunnel_timeout: Period,
        /// How long a client or an origin may stand still amid a body.
        idle_timeout: Period,
        /// What clients may not reach.
        deny: Vec<String>,
        /// What clients may reach directly.
        direct_allow: Vec<String>,
        /// Threads that encode and decode.
        codec_threads: usize,
        /// Memory of codec contexts.
        codec_memory: Size,
        /// Memory for bodies from the gateway.
        body_memory: Size,
        /// Directory of what is learned and of the history; none: nothing is kept.
        store: PathBuf,
        /// Most decisions in the history.
        history_rows: u64,
        /// Most bytes of their facts.
        history_size: Size,
    }
}

section! {
    /// Settings of a gateway.
    GatewaySettings {
        /// Address for edges.
        listen: String,
        /// What edges may reach.
        allow: Vec<String>,
        /// Address for clients that have no edge; none: there is no such listener.
        plain: String,
        /// For those clients a reverse proxy: as for an edge.
        plain_upstream: String,
        /// Lifts the restriction of `plain` to loopback addresses.
        plain_anywhere: bool,
        /// `auto`, `nam` or `NAME[:LEVEL]`.
        encoding: String,
        /// Most that the link is believed to carry.
        rate_cap: Rate,
        /// `auto` or `stream`.
        carrier: String,
        /// File of this side's private key.
        key: PathBuf,
        /// File of the edges' public keys.
        peer: PathBuf,
        /// Lifts the restriction to loopback addresses where there are no keys.
        insecure_plain: bool,
        /// Address for metrics and health.
        admin: String,
        /// Congestion control of carriers.
        congestion: String,
        /// As `hello_timeout`, by its older name.
        connect_timeout: Period,
        /// How long a connected edge may take for its handshake, and then to say HELLO.
        hello_timeout: Period,
        /// How long a carrier idles before the edge is asked for a sign of life.
        keepalive: Period,
        /// An edge without a sign of life for so long is gone.
        peer_timeout: Period,
        /// How long a body waits for what it takes to decode it.
        body_timeout: Period,
        /// How long a shutdown waits for open exchanges.
        drain_timeout: Period,
        /// How long an origin may stay silent.
        response_timeout: Period,
        /// Most edges connected at once.
        max_carriers: usize,
        /// Most exchanges open at once, besides tunnels and event streams.
        max_exchanges: usize,
        /// Most tunnels and event streams open at once.
        max_tunnels: usize,
        /// How long nothing may pass through a tunnel or an event stream.
        tunnel_timeout: Period,
        /// How long a client or an origin may stand still amid a body.
        idle_timeout: Period,
        /// How long an answer is kept whose carrier broke.
        retain: Period,
        /// Memory for such answers.
        retain_memory: Size,
        /// Threads that encode and decode.
        codec_threads: usize,
        /// Memory of codec contexts.
        codec_memory: Size,
        /// Memory for bodies from edges.
        body_memory: Size,
        /// Directory of what is learned and of the history; none: nothing is kept.
        store: PathBuf,
        /// Most decisions in the history.
        history_rows: u64,
        /// Most bytes of their facts.
        history_size: Size,
    }
}

section! {
    /// Settings of the log.
    LogSettings {
        /// `error`, `warn`, `info`, `debug` or `trace`.
        level: String,
        /// `text` or `json`.
        format: String,
    }
}

/// One service: what is different for it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ServiceSettings {
    /// Pattern of the requests meant.
    #[serde(rename = "match")]
    pub pattern: String,
    /// What may be done to its bodies: `bytes`, nothing that shows; `infoset`, what says the same.
    pub fidelity: Option<String>,
    /// With the last: files of its schemas, for EXI.
    pub schemas: Option<Vec<PathBuf>>,
    /// Gateway: `identity` asks the origin not to code bodies itself, `pass` leaves that to it.
    pub accept_encoding: Option<String>,
    /// `names`: field names cross the link in lower case; `exact`: as they were sent, in their
    /// order, and with reason phrases.
    pub fields: Option<String>,
    /// Protocols that clients may change to.
    pub upgrades: Option<Vec<String>>,
    /// The only encodings that its bodies may go in: `NAME` or `NAME:LEVEL`.
    pub encodings: Option<Vec<String>>,
    /// What is wanted of it: `time`, `bytes` or `deadline`.
    pub objective: Option<String>,
    /// With the last: how long a body may take.
    pub deadline: Option<Period>,
    /// Fields that say who asks, besides those that are known to.
    pub principal: Option<Vec<String>>,
    /// Fields that do not say who asks, though nobody else would know.
    pub not_principal: Option<Vec<String>>,
    /// Edge: as in `[edge]`, for this service.
    pub fallback: Option<String>,
    /// Edge: largest body of a request.
    pub max_body: Option<Size>,
}

impl Settings {
    /// Reads a file; an error is one line that names the file, the line, the key and the nearest
    /// known one.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let unreadable = |error| Error::Caller(format!("cannot read {}: {error}", path.display()));
        let len = fs::metadata(path).map_err(unreadable)?.len();
        if len > MAX_FILE_BYTES {
            return Err(Error::Caller(format!(
                "{} is {len} bytes, over the limit of {MAX_FILE_BYTES}: is it a configuration?",
                path.display()
            )));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text).map_err(|what| Error::Caller(format!("{}:{what}", path.display())))
    }

    /// Reads a file's text; the error begins with the line's number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let settings: Self = toml::from_str(text).map_err(|error| one_line(text, &error))?;
        if settings.services.len() > MAX_SERVICES {
            let count = settings.services.len();
            return Err(format!("1: {count} services, over the limit of {MAX_SERVICES}"));
        }
        Ok(settings)
    }
}

fn one_line(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let message = error.message().lines().next().unwrap_or_default();
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return format!("{line}: {message}");
    };
    let (key, known) = rest.split_once('`').unwrap_or((rest, ""));
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    match nearest(key, &known) {
        Some(nearest) => format!("{line}: unknown key '{key}': did you mean '{nearest}'?"),
        None => format!("{line}: unknown key '{key}': one of {}", known.join(", ")),
    }
}

/// The known word that is fewest edits away, if that is close.
fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &str| edits(word, other);
    let best = known.iter().copied().min_by_key(|other| distance(other))?;
    (distance(best) <= 1 + word.len() / 3).then_some(best)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let change = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
