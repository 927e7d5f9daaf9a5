//! The configuration file: TOML, every key of it, and errors of one line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistakes::{Lines, Mistakes, Spot};
use super::units::{Period, Rate, Size};
use super::value::Value;
use crate::{Error, strict};

/// Largest configuration file read, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most `[[service]]` entries.
const MAX_SERVICES: usize = 1000;

/// Sections of a broker, which may stand in the same file; it checks them itself.
const BROKER: [&str; 10] = [
    "access",
    "bridge",
    "broker",
    "federation",
    "form",
    "mesh",
    "mqtt_sn",
    "mqtt_udp",
    "rule",
    "topic_id",
];

/// Mistakes in a file that are told: whoever has made more has given the wrong file.
const MAX_MISTAKES: usize = 100;

/// A whole file. Each side reads its own section and the services.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `[edge]`.
    pub edge: EdgeSettings,
    /// `[gateway]`.
    pub gateway: GatewaySettings,
    /// `[link]`.
    pub link: LinkSettings,
    /// `[log]`.
    pub log: LogSettings,
    /// `[[service]]`, first match first.
    pub services: Vec<ServiceSettings>,
    /// Where all of that stands.
    pub lines: Lines,
}

/// Something whose keys stand in a table of a file.
trait Section {
    /// Its keys, as they are spelled in a file.
    const KEYS: &'static [&'static str];

    /// Sets a key that is one of them.
    fn put(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String>;
}

/// Declares a section whose keys are all optional, and how one overrides another.
macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$key:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
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

        impl Section for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field),)*];

            fn put(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
                $(if key == stringify!($field) {
                    self.$field = Some(Value::read(value)?);
                })*
                Ok(())
            }
        }
    };
}

section! {
    /// Settings of an edge.
    EdgeSettings {
        /// Address for clients.
        listen: String,
        /// `HOST:PORT` of the gateway, or `wsp://HOST[:PORT]` or `coap://HOST[:PORT]` of a standard
        /// one; none: everything goes directly.
        gateway: String,
        /// Over WSP: the gateway carries no copy of a request out twice: any may be repeated.
        wsp_repeat: bool,
        /// Over WSP: XML goes as WBXML, and comes as such.
        wsp_wbxml: bool,
        /// Reverse proxy: `http://HOST[:PORT][/PATH]` that every request goes to.
        upstream: String,
        /// Reverse proxy: which fields name the client: `none`, `x-forwarded` or `forwarded`.
        forwarded: String,
        /// Reverse proxy: which addresses of the service lead back here: `location`, `wsdl`.
        rewrite: Vec<String>,
        /// What to do while the gateway cannot be reached: `none` or `direct`.
        fallback: String,
        /// Clients may make their own requests more urgent than others'.
        urgent_clients: bool,
        /// `auto`, `nam` or `NAME[:LEVEL]`.
        encoding: String,
        /// Most that the link is believed to carry.
        rate_cap: Rate,
        /// `auto`, `stream` or `burst`.
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
        /// Most requests of each urgency of which nothing has left.
        max_waiting: usize,
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
        /// How long what is made of messages is kept there.
        store_age: Period,
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
        http_listen: String,
        /// For those clients a reverse proxy: as for an edge.
        http_upstream: String,
        /// Lifts the restriction of `http_listen` to loopback addresses.
        http_anywhere: bool,
        /// Address for clients of CoAP; none: there is no such listener.
        coap: String,
        /// For those of their requests that name no origin: a reverse proxy, as for an edge.
        coap_upstream: String,
        /// Lifts the restriction of `coap` to loopback addresses.
        coap_anywhere: bool,
        /// Security contexts of OSCORE, each a file, of clients of CoAP.
        coap_oscore: Vec<PathBuf>,
        /// Addresses of groups that the listener of `coap` belongs to.
        coap_multicast: Vec<String>,
        /// Address for clients of CoAP over DTLS; none: there is no such listener.
        coaps: String,
        /// Their identities and pre-shared keys: a file.
        coaps_psk: PathBuf,
        /// Room for answers of servers of CoAP, kept while they are fresh; none: they are not kept.
        coap_cache: Size,
        /// Address for WAP clients (WSP over UDP); none: there is no such listener.
        wsp: String,
        /// Lifts the restriction of `wsp` to loopback addresses.
        wsp_anywhere: bool,
        /// Tables of tokens for WBXML, each a file, that clients of `wsp` have too.
        wsp_tokens: Vec<PathBuf>,
        /// `auto`, `nam` or `NAME[:LEVEL]`.
        encoding: String,
        /// Most that the link is believed to carry.
        rate_cap: Rate,
        /// `auto`, `stream` or `burst`.
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
        /// How long what is made of messages is kept there.
        store_age: Period,
    }
}

section! {
    /// What is known of the link.
    LinkSettings {
        /// Nobody else's traffic shares it.
        own: bool,
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceSettings {
    /// Pattern of the requests meant.
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
    /// How urgent it is: a precedence, or a number from 0 to 7.
    pub urgency: Option<String>,
    /// Edge: how long after a request came its answer is of use.
    pub lifetime: Option<Period>,
    /// Edge: which request goes where too many wait: `refuse`, `oldest` or `superseded`.
    pub overflow: Option<String>,
    /// Fields that say who asks, besides those that are known to.
    pub principal: Option<Vec<String>>,
    /// Fields that do not say who asks, though nobody else would know.
    pub not_principal: Option<Vec<String>>,
    /// Edge: as in `[edge]`, for this service.
    pub fallback: Option<String>,
    /// Edge: largest body of a request.
    pub max_body: Option<Size>,
}

impl Section for ServiceSettings {
    const KEYS: &'static [&'static str] = &[
        "match",
        "fidelity",
        "schemas",
        "accept_encoding",
        "fields",
        "upgrades",
        "encodings",
        "objective",
        "deadline",
        "urgency",
        "lifetime",
        "overflow",
        "principal",
        "not_principal",
        "fallback",
        "max_body",
    ];

    fn put(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        match key {
            "match" => self.pattern = Value::read(value)?,
            "fidelity" => self.fidelity = Some(Value::read(value)?),
            "schemas" => self.schemas = Some(Value::read(value)?),
            "accept_encoding" => self.accept_encoding = Some(Value::read(value)?),
            "fields" => self.fields = Some(Value::read(value)?),
            "upgrades" => self.upgrades = Some(Value::read(value)?),
            "encodings" => self.encodings = Some(Value::read(value)?),
            "objective" => self.objective = Some(Value::read(value)?),
            "deadline" => self.deadline = Some(Value::read(value)?),
            "urgency" => self.urgency = Some(Value::read(value)?),
            "lifetime" => self.lifetime = Some(Value::read(value)?),
            "overflow" => self.overflow = Some(Value::read(value)?),
            "principal" => self.principal = Some(Value::read(value)?),
            "not_principal" => self.not_principal = Some(Value::read(value)?),
            "fallback" => self.fallback = Some(Value::read(value)?),
            "max_body" => self.max_body = Some(Value::read(value)?),
            _ => {}
        }
        Ok(())
    }
}

impl Settings {
    /// Reads a file: what can be understood of it, and all that is wrong, each one line with its
    /// place. An error: there is nothing to be read.
    pub fn load(path: &Path) -> Result<(Self, Mistakes), Error> {
        let unreadable = |error| strict::unreadable(path, &error);
        let len = fs::metadata(path).map_err(unreadable)?.len();
        if len > MAX_FILE_BYTES {
            return Err(Error::Caller(format!(
                "{} is {len} bytes, over the limit of {MAX_FILE_BYTES}: is it a configuration?",
                path.display()
            )));
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        Ok(Self::read(path, &text))
    }

    /// Reads a file's text; the error is the first thing that is wrong, behind its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (settings, mistakes) = Self::read(Path::new(""), text);
        match mistakes.iter().next() {
            Some(first) => Err(first.to_string().trim_start_matches(':').to_owned()),
            None => Ok(settings),
        }
    }

    pub(super) fn read(path: &Path, text: &str) -> (Self, Mistakes) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let lines = Lines { file: path.to_owned(), ..Lines::default() };
        let mut settings = Self { lines, ..Self::default() };
        let mut reader = Reader {
            text,
            lines: &mut settings.lines,
            mistakes: Vec::new(),
            unreadable: BTreeSet::new(),
        };
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            let line = reader.line(at);
            let key = key_of(text.lines().nth(line - 1).unwrap_or_default());
            reader.wrong(at, Spot { key, ..Spot::default() }, no_toml(error.message()));
            // What else is wrong with the line only follows.
            reader.unreadable.insert(line);
        }
        for (name, value) in table.get_ref() {
            let at = name.span().start;
            match name.get_ref().as_ref() {
                "edge" => reader.section("edge", at, value, &mut settings.edge),
                "gateway" => reader.section("gateway", at, value, &mut settings.gateway),
                "link" => reader.section("link", at, value, &mut settings.link),
                "log" => reader.section("log", at, value, &mut settings.log),
                "service" => settings.services = reader.services(at, value),
                of_broker if BROKER.contains(&of_broker) => {}
                other => {
                    let known = &["edge", "gateway", "link", "log", "service"];
                    let (_, what) = unknown(other, known);
                    reader.wrong(at, Spot::default(), what);
                }
            }
        }
        let mistakes = reader.end();
        (settings, mistakes)
    }
}

/// Takes a file's table apart.
struct Reader<'a> {
    text: &'a str,
    lines: &'a mut Lines,
    mistakes: Vec<(usize, Spot, String)>,
    /// Lines that are no TOML.
    unreadable: BTreeSet<usize>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn wrong(&mut self, at: usize, spot: Spot, what: String) {
        let line = self.line(at);
        if self.mistakes.len() < MAX_MISTAKES && !self.unreadable.contains(&line) {
            self.mistakes.push((line, spot, what));
        }
    }

    fn end(mut self) -> Mistakes {
        let mut mistakes = Mistakes::default();
        self.mistakes.sort_by_key(|(line, ..)| *line);
        for (line, spot, what) in self.mistakes {
            mistakes.at_line(&self.lines.file, line, spot, what);
        }
        mistakes
    }

    fn section<S: Section>(
        &mut self,
        section: &'static str,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        into: &mut S,
    ) {
        let spot = Spot { section, ..Spot::default() };
        self.lines.of.insert(spot.clone(), self.line(at));
        match value.get_ref() {
            DeValue::Table(table) => self.table(&spot, table, into),
            _ => self.wrong(at, spot, format!("'{section}' is a section: write [{section}]")),
        }
    }

    fn services(&mut self, at: usize, value: &Spanned<DeValue<'_>>) -> Vec<ServiceSettings> {
        let form = "'service' is a list of sections: write [[service]] above each";
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong(at, Spot { section: "service", ..Spot::default() }, form.to_owned());
            return Vec::new();
        };
        if array.len() > MAX_SERVICES {
            let what = format!("{} services, over the limit of {MAX_SERVICES}", array.len());
            self.wrong(at, Spot { section: "service", ..Spot::default() }, what);
        }
        let mut all = Vec::new();
        for (service, value) in array.iter().take(MAX_SERVICES).enumerate() {
            let (at, mut settings) = (value.span().start, ServiceSettings::default());
            let spot = Spot { section: "service", service, ..Spot::default() };
            self.lines.of.insert(spot.clone(), self.line(at));
            match value.get_ref() {
                DeValue::Table(table) => {
                    self.table(&spot, table, &mut settings);
                    let meant = Spot { key: "match", ..spot.clone() };
                    let reported = self.mistakes.iter().any(|(_, spot, _)| *spot == meant);
                    if !reported && !table.keys().any(|key| key.get_ref() == "match") {
                        let what = "a service without 'match': say which requests are meant, like \
                                    match = \"http://tracks.example:8080\"";
                        self.wrong(at, meant, what.to_owned());
                    }
                }
                _ => self.wrong(at, spot, form.to_owned()),
            }
            all.push(settings);
        }
        all
    }

    fn table<S: Section>(&mut self, spot: &Spot, table: &DeTable<'_>, into: &mut S) {
        for (name, value) in table {
            let (at, spelled) = (name.span().start, name.get_ref().as_ref());
            let Some(&key) = S::KEYS.iter().find(|key| **key == spelled) else {
                let (nearest, what) = unknown(spelled, S::KEYS);
                // What is missing is then only misspelt.
                let key = nearest.unwrap_or_default();
                self.wrong(at, Spot { key, ..spot.clone() }, what);
                continue;
            };
            let spot = Spot { key, ..spot.clone() };
            self.lines.of.insert(spot.clone(), self.line(at));
            let items = value.get_ref().as_array().map_or(&[][..], |array| &array[..]);
            for (item, value) in items.iter().take(MAX_SERVICES).enumerate() {
                let line = self.line(value.span().start);
                self.lines.of.insert(Spot { item: item + 1, ..spot.clone() }, line);
            }
            if let Err(what) = into.put(key, value.get_ref()) {
                self.wrong(at, spot, format!("{key} {what}"));
            }
        }
    }
}

/// Why a line cannot be read, in plain words.
fn no_toml(message: &str) -> String {
    let why = if message.contains("duplicate key") {
        return "this key or section is there already: leave one of them".to_owned();
    } else if message.contains("string") {
        "a quote is missing, or one too many"
    } else if message.contains("array") {
        "a bracket or a comma is missing"
    } else {
        "it cannot be read"
    };
    let form = "a line is KEY = \"TEXT\", KEY = [\"A\", \"B\"], KEY = NUMBER or [SECTION]";
    format!("this is no TOML: {why}: {form}")
}

/// The key that a line is about, if anybody knows it.
fn key_of(line: &str) -> &'static str {
    let key = line.split('=').next().unwrap_or_default().trim().trim_matches('"');
    let all = [EdgeSettings::KEYS, GatewaySettings::KEYS, LogSettings::KEYS, ServiceSettings::KEYS];
    all.concat().into_iter().find(|known| *known == key).unwrap_or_default()
}

/// Keys by the names that they had, which are refused, and have.
const RENAMED: [(&str, &str); 3] = [
    ("plain", "http_listen"),
    ("plain_upstream", "http_upstream"),
    ("plain_anywhere", "http_anywhere"),
];

/// What is said of a key that nobody knows, and what was meant.
fn unknown(key: &str, known: &[&'static str]) -> (Option<&'static str>, String) {
    let renamed = RENAMED.iter().find(|(old, new)| *old == key && known.contains(new));
    if let Some((_, new)) = renamed {
        return (Some(new), format!("unknown key '{key}': its name is '{new}'"));
    }
    let shown: String = key.chars().take(64).flat_map(char::escape_debug).collect();
    match nearest(key, known) {
        Some(meant) => (Some(meant), format!("unknown key '{shown}': did you mean '{meant}'?")),
        None => (None, format!("unknown key '{shown}': one of {}", known.join(", "))),
    }
}

/// The known word that is fewest edits away, if that is close.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
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
