//! What a side is told at its start: read from a file ([`Settings`]) and flags, then resolved into
//! [`EdgeConfig`] or [`GatewayConfig`], where every value is checked.

mod file;
mod infoset;
#[cfg(test)]
mod tests;
mod units;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use file::{EdgeSettings, GatewaySettings, LogSettings, ServiceSettings, Settings};
pub use infoset::read_schema;
pub use units::{Period, Rate, Size};

use decide::policy::Objective;
use http::HeaderName;

use crate::Error;
use crate::carrier::Security;
use crate::edge::{Forwarded, Reverse};
use crate::keys::{self, Identity};
use crate::metrics::Build;
use crate::origin::{Resolve, SystemResolver};
use crate::pattern::Pattern;
use crate::socket;
use crate::store::Place;
use crate::upstream::Upstream;

/// Bound on open exchanges that a setting may ask for.
const MAX_EXCHANGES: usize = 65_536;
/// Most protocols that a service may change to.
const MAX_UPGRADES: usize = 16;
/// Bound on threads that a setting may ask for.
const MAX_THREADS: usize = 256;
/// Names of fields that a list of a service may have: no proxy sets more.
const MAX_FIELDS: usize = 64;
/// Silence of an origin that a gateway takes for failure, unless told otherwise.
const ORIGIN_TIMEOUT: Duration = Duration::from_secs(120);
/// The same at an edge: longer, so that the gateway's word comes first over any link.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a client or an origin may stand still amid a body, unless told otherwise: as long as
/// other proxies let it (nginx, send_timeout, client_body_timeout and proxy_read_timeout).
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Least of such times that a setting may ask for: a packet lost takes a second to come again.
const MIN_IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an attempt to reach the gateway may take, and then its handshake, if nothing is set.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a shutdown waits for open exchanges, unless told otherwise.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Times of carriers are at least this: less is over before anything can come.
const MIN_TIME: Duration = Duration::from_millis(1);

/// What to do while the gateway cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The client gets 504.
    None,
    /// The request goes straight to the origin.
    Direct,
}

impl Fallback {
    /// As settings and health name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Direct => "direct",
        }
    }
}

/// What is different for one service.
#[derive(Clone, Debug)]
pub struct Service {
    /// The requests meant.
    pub pattern: Pattern,
    /// The origin may code bodies as the client asks; else it is asked not to.
    pub pass_accept_encoding: bool,
    /// As for the edge as a whole, where none.
    pub fallback: Option<Fallback>,
    /// Largest body of a request, in bytes.
    pub max_body: Option<u64>,
    /// What messages say is enough: their bytes, and so their lengths, may be others.
    pub infoset: bool,
    /// Fields that say who asks, besides those that are known to.
    pub principal: Vec<HeaderName>,
    /// Fields that do not say who asks, though nobody else would know.
    pub not_principal: Vec<HeaderName>,
    /// The case and the order of field names, and reason phrases, cross the link too.
    pub exact_fields: bool,
    /// Protocols, in lower case, that clients may change to (RFC 9110 §7.8), also where the allow
    /// list has a path; none: any but HTTP and TLS, where it has none.
    pub upgrades: Option<Vec<String>>,
}

/// An edge, resolved.
#[derive(Clone, Debug)]
pub struct EdgeConfig {
    /// Address for clients.
    pub listen: SocketAddr,
    /// `HOST:PORT` of the gateway.
    pub gateway: Option<String>,
    /// Where every request goes, for a reverse proxy.
    pub upstream: Option<Upstream>,
    /// What a reverse proxy does beyond that.
    pub reverse: Reverse,
    /// While the gateway cannot be reached.
    pub fallback: Fallback,
    /// How the gateway is known.
    pub security: Security,
    /// Address for metrics and health.
    pub admin: Option<SocketAddr>,
    /// Congestion control of carriers.
    pub congestion: Option<String>,
    /// How long an attempt to reach the gateway may take, and then its handshake.
    pub dial_timeout: Duration,
    /// How long a shutdown waits for open exchanges.
    pub drain_timeout: Duration,
    /// Silence before an answer that is taken for failure.
    pub response_timeout: Duration,
    /// How long a client or an origin may stand still amid a body.
    pub idle_timeout: Duration,
    /// What clients may not reach, whatever the gateway lets through.
    pub deny: Vec<Pattern>,
    /// What clients may reach directly; empty: what they could reach without an edge.
    pub direct_allow: Vec<Pattern>,
    /// Most client connections at once.
    pub max_connections: usize,
    /// Threads that encode and decode.
    pub codec_threads: usize,
    /// First match first.
    pub services: Vec<Service>,
    /// Where what is learned is kept, and the history.
    pub store: Option<Place>,
    /// For the relay; its instance is drawn at the start.
    pub relay: relay::Config,
    /// What the program is built from, for those who ask the process.
    pub build: Build,
}

/// A gateway's listener for clients that have no edge.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its address.
    pub listen: SocketAddr,
    /// Where every request goes, for a reverse proxy.
    pub upstream: Option<Upstream>,
}

/// A gateway, resolved.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Address for edges.
    pub listen: SocketAddr,
    /// What edges may reach.
    pub allow: Vec<Pattern>,
    /// For clients that have no edge.
    pub plain: Option<Plain>,
    /// How edges are known.
    pub security: Security,
    /// Address for metrics and health.
    pub admin: Option<SocketAddr>,
    /// Congestion control of carriers.
    pub congestion: Option<String>,
    /// How long a shutdown waits for open exchanges.
    pub drain_timeout: Duration,
    /// Silence of an origin that is taken for failure.
    pub response_timeout: Duration,
    /// How long a client or an origin may stand still amid a body.
    pub idle_timeout: Duration,
    /// Threads that encode and decode.
    pub codec_threads: usize,
    /// First match first.
    pub services: Vec<Service>,
    /// Where what is learned is kept, and the history.
    pub store: Option<Place>,
    /// For the relay; its instance is drawn at the start.
    pub relay: relay::Config,
    /// What the program is built from, for those who ask the process.
    pub build: Build,
    /// Names to addresses.
    pub resolver: Arc<dyn Resolve>,
}

impl EdgeConfig {
    /// Checks every value; an error names the value, what is allowed and the remedy.
    pub fn resolve(edge: EdgeSettings, services: &[ServiceSettings]) -> Result<Self, Error> {
        let listen = required(edge.listen.as_deref(), "edge", "listen")?;
        let listen = address("listen", listen)?;
        let (key, peer) = (edge.key.as_deref(), edge.peer.as_deref());
        let security = security(key, peer, edge.insecure_plain, keys::Role::Gateway)?;
        if let Some(gateway) = &edge.gateway {
            check_gateway(gateway, &security)?;
        }
        let fallback = edge.fallback.as_deref().map(fallback).transpose()?;
        if fallback == Some(Fallback::Direct) && edge.gateway.is_none() {
            return Err(caller("fallback 'direct' needs a gateway to fall back from: give one"));
        }
        if edge.store.is_some() && edge.gateway.is_none() {
            return Err(caller(
                "a store needs a gateway: without one nothing is decided or learned",
            ));
        }
        check_carrier(edge.carrier.as_deref())?;
        check_congestion(edge.congestion.as_deref())?;
        let mut relay = relay::Config::new(relay::Role::Edge, crate::random_instance()?);
        set_decision(&mut relay, edge.encoding.as_deref(), edge.rate_cap, services)?;
        set_time(&mut relay.connect_timeout, "connect_timeout", edge.connect_timeout)?;
        set_time(&mut relay.hello_timeout, "hello_timeout", edge.hello_timeout)?;
        set_time(&mut relay.outcome_timeout, "outcome_timeout", edge.outcome_timeout)?;
        set_time(&mut relay.keepalive, "keepalive", edge.keepalive)?;
        set_time(&mut relay.peer_timeout, "peer_timeout", edge.peer_timeout)?;
        set_time(&mut relay.body_timeout, "body_timeout", edge.body_timeout)?;
        let (mut dial_timeout, mut drain_timeout) = (DIAL_TIMEOUT, DRAIN_TIMEOUT);
        set_time(&mut dial_timeout, "dial_timeout", edge.dial_timeout)?;
        set_time(&mut drain_timeout, "drain_timeout", edge.drain_timeout)?;
        set(&mut relay.max_exchanges, count("max_exchanges", edge.max_exchanges, MAX_EXCHANGES)?);
        let response_timeout = edge.response_timeout.map_or(ANSWER_TIMEOUT, |period| period.0);
        set_bounds(&mut relay, edge.max_tunnels, edge.tunnel_timeout, response_timeout)?;
        set_memory(&mut relay, edge.codec_memory, edge.body_memory)?;
        Ok(Self {
            listen,
            gateway: edge.gateway,
            upstream: edge.upstream.as_deref().map(Upstream::parse).transpose().map_err(caller)?,
            reverse: reverse(edge.upstream.is_some(), edge.forwarded.as_deref(), edge.rewrite)?,
            fallback: fallback.unwrap_or(Fallback::None),
            security,
            admin: edge.admin.as_deref().map(admin_address).transpose()?,
            congestion: edge.congestion,
            dial_timeout,
            drain_timeout,
            response_timeout,
            idle_timeout: idle_timeout(edge.idle_timeout)?,
            deny: patterns(edge.deny)?,
            direct_allow: patterns(edge.direct_allow)?,
            max_connections: count("max_connections", edge.max_connections, MAX_EXCHANGES)?
                .unwrap_or(1024),
            codec_threads: threads(edge.codec_threads)?,
            store: store(edge.store, edge.history_rows, edge.history_size)?,
            services: services.iter().map(service).collect::<Result<_, _>>()?,
            relay,
            build: Build::default(),
        })
    }
}

impl GatewayConfig {
    /// Checks every value; an error names the value, what is allowed and the remedy.
    pub fn resolve(gateway: GatewaySettings, services: &[ServiceSettings]) -> Result<Self, Error> {
        let listen = required(gateway.listen.as_deref(), "gateway", "listen")?;
        let listen = address("listen", listen)?;
        let (key, peer) = (gateway.key.as_deref(), gateway.peer.as_deref());
        let security = security(key, peer, gateway.insecure_plain, keys::Role::Edge)?;
        if !security.permits(listen) {
            return Err(caller(security.refusal(listen)));
        }
        check_carrier(gateway.carrier.as_deref())?;
        check_congestion(gateway.congestion.as_deref())?;
        let plain = plain(&gateway)?;
        let allow = patterns(gateway.allow)?;
        if allow.is_empty() {
            return Err(caller(
                "nothing is allowed: name what edges may reach, like --allow http://127.0.0.1:8080",
            ));
        }
        let mut relay = relay::Config::new(relay::Role::Gateway, crate::random_instance()?);
        relay.without_keys = matches!(security, Security::Plain { .. });
        set_decision(&mut relay, gateway.encoding.as_deref(), gateway.rate_cap, services)?;
        let hello_timeout = gateway.hello_timeout.or(gateway.connect_timeout);
        set_time(&mut relay.hello_timeout, "hello_timeout", hello_timeout)?;
        set_time(&mut relay.keepalive, "keepalive", gateway.keepalive)?;
        set_time(&mut relay.peer_timeout, "peer_timeout", gateway.peer_timeout)?;
        set_time(&mut relay.body_timeout, "body_timeout", gateway.body_timeout)?;
        let mut drain_timeout = DRAIN_TIMEOUT;
        set_time(&mut drain_timeout, "drain_timeout", gateway.drain_timeout)?;
        relay.goodbye_timeout = drain_timeout;
        set(&mut relay.retain, gateway.retain.map(|period| period.0));
        set(&mut relay.retained_bytes, bytes("retain_memory", gateway.retain_memory)?);
        let carriers = count("max_carriers", gateway.max_carriers, MAX_EXCHANGES)?;
        set(&mut relay.max_carriers, carriers);
        let exchanges = count("max_exchanges", gateway.max_exchanges, MAX_EXCHANGES)?;
        set(&mut relay.max_exchanges, exchanges);
        let response_timeout = gateway.response_timeout.map_or(ORIGIN_TIMEOUT, |period| period.0);
        set_bounds(&mut relay, gateway.max_tunnels, gateway.tunnel_timeout, response_timeout)?;
        set_memory(&mut relay, gateway.codec_memory, gateway.body_memory)?;
        Ok(Self {
            listen,
            allow,
            plain,
            security,
            admin: gateway.admin.as_deref().map(admin_address).transpose()?,
            congestion: gateway.congestion,
            drain_timeout,
            response_timeout,
            idle_timeout: idle_timeout(gateway.idle_timeout)?,
            codec_threads: threads(gateway.codec_threads)?,
            store: store(gateway.store, gateway.history_rows, gateway.history_size)?,
            services: services.iter().map(service).collect::<Result<_, _>>()?,
            relay,
            build: Build::default(),
            resolver: Arc::new(SystemResolver),
        })
    }
}

fn caller(what: impl Into<String>) -> Error {
    Error::Caller(what.into())
}

fn required<'a>(value: Option<&'a str>, section: &str, name: &str) -> Result<&'a str, Error> {
    value.ok_or_else(|| {
        caller(format!("no {name} address: give --{name} ADDRESS or '{name}' in [{section}]"))
    })
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

fn set_time(value: &mut Duration, name: &str, given: Option<Period>) -> Result<(), Error> {
    match given {
        Some(Period(given)) if given < MIN_TIME => {
            Err(caller(format!("{name} is less than 1 ms: give more, like '10 s'")))
        }
        given => {
            set(value, given.map(|period| period.0));
            Ok(())
        }
    }
}

fn set_memory(
    relay: &mut relay::Config,
    codec: Option<Size>,
    body: Option<Size>,
) -> Result<(), Error> {
    set(&mut relay.codec_bytes, bytes("codec_memory", codec)?);
    set(&mut relay.receive_bytes, body.map(|size| size.0));
    Ok(())
}

/// What bounds exchanges that stay.
fn set_bounds(
    relay: &mut relay::Config,
    tunnels: Option<usize>,
    timeout: Option<Period>,
    response_timeout: Duration,
) -> Result<(), Error> {
    set(&mut relay.max_tunnels, count("max_tunnels", tunnels, MAX_EXCHANGES)?);
    relay.tunnel_timeout = long_enough("tunnel_timeout", timeout, relay.tunnel_timeout)?;
    // Whoever knows what an exchange waits for has the first word.
    relay.still_timeout = relay.still_timeout.max(response_timeout * 2);
    Ok(())
}

fn idle_timeout(period: Option<Period>) -> Result<Duration, Error> {
    long_enough("idle_timeout", period, IDLE_TIMEOUT)
}

fn long_enough(name: &str, period: Option<Period>, or: Duration) -> Result<Duration, Error> {
    let given = period.map_or(or, |period| period.0);
    if given < MIN_IDLE_TIMEOUT {
        let (given, least) = (given.as_secs_f64(), MIN_IDLE_TIMEOUT.as_secs());
        return Err(caller(format!("{name} is {given} s: at least {least} s")));
    }
    Ok(given)
}

fn patterns(texts: Option<Vec<String>>) -> Result<Vec<Pattern>, Error> {
    let texts = texts.unwrap_or_default();
    texts.iter().map(|text| Pattern::parse(text)).collect::<Result<_, _>>().map_err(caller)
}

fn bytes(name: &str, size: Option<Size>) -> Result<Option<usize>, Error> {
    size.map(|size| usize::try_from(size.0))
        .transpose()
        .map_err(|_| caller(format!("{name} is over what this machine can address")))
}

fn count(name: &str, value: Option<usize>, most: usize) -> Result<Option<usize>, Error> {
    match value {
        Some(value) if !(1..=most).contains(&value) => {
            Err(caller(format!("{name} is {value}: a number from 1 to {most}")))
        }
        value => Ok(value),
    }
}

fn threads(value: Option<usize>) -> Result<usize, Error> {
    let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Ok(count("codec_threads", value, MAX_THREADS)?.unwrap_or(available))
}

fn store(
    directory: Option<PathBuf>,
    rows: Option<u64>,
    size: Option<Size>,
) -> Result<Option<Place>, Error> {
    let Some(directory) = directory else {
        let needs = "needs a store to be kept in: give 'store' or --store DIR";
        return match (rows, size) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(caller(format!("history_rows {needs}"))),
            (None, Some(_)) => Err(caller(format!("history_size {needs}"))),
        };
    };
    if directory.as_os_str().is_empty() {
        return Err(caller("store is empty: give a directory, or leave it out"));
    }
    let history_rows = rows.unwrap_or(Place::HISTORY_ROWS);
    let history_bytes = size.map_or(Place::HISTORY_BYTES, |size| size.0);
    Ok(Some(Place { directory, history_rows, history_bytes }))
}

fn address(name: &str, text: &str) -> Result<SocketAddr, Error> {
    text.parse().map_err(|_| {
        caller(format!("{name} '{text}' is no address: ADDRESS:PORT, like '127.0.0.1:8080'"))
    })
}

fn admin_address(text: &str) -> Result<SocketAddr, Error> {
    let admin = address("admin", text)?;
    if !admin.ip().to_canonical().is_loopback() {
        let what = "the admin interface has no access control";
        return Err(caller(format!("admin '{text}': {what}: give a loopback address")));
    }
    Ok(admin)
}

fn plain(gateway: &GatewaySettings) -> Result<Option<Plain>, Error> {
    let Some(text) = &gateway.plain else {
        return match (&gateway.plain_upstream, gateway.plain_anywhere) {
            (None, None) => Ok(None),
            _ => Err(caller("plain_upstream and plain_anywhere need a listener: give 'plain'")),
        };
    };
    let listen = address("plain", text)?;
    if !listen.ip().to_canonical().is_loopback() && gateway.plain_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may";
        let remedy = "give a loopback address, or 'plain_anywhere = true' (--plain-anywhere)";
        return Err(caller(format!("plain '{text}': {what}: {remedy}")));
    }
    let upstream = gateway.plain_upstream.as_deref().map(Upstream::parse).transpose();
    Ok(Some(Plain { listen, upstream: upstream.map_err(caller)? }))
}

fn security(
    key: Option<&Path>,
    peer: Option<&Path>,
    insecure_plain: Option<bool>,
    other: keys::Role,
) -> Result<Security, Error> {
    let anywhere = insecure_plain.unwrap_or(false);
    match (key, peer) {
        (None, None) => Ok(Security::Plain { anywhere }),
        (Some(_), Some(_)) if anywhere => {
            Err(caller("keys and --insecure-plain exclude each other: give one"))
        }
        (Some(key), Some(peer)) => Ok(Security::Keys(Arc::new(Identity::load(key, peer, other)?))),
        _ => Err(caller("--key and --peer go together: give both, or neither")),
    }
}

/// A literal address is checked here, a name's addresses when it is dialled.
fn check_gateway(gateway: &str, security: &Security) -> Result<(), Error> {
    let port = crate::pattern::split_authority(gateway).and_then(|(_, port)| port);
    if !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
        let form = "HOST:PORT, like 'gateway.example:4300'";
        return Err(caller(format!("gateway '{gateway}' is no address: {form}")));
    }
    match gateway.parse() {
        Ok(address) if !security.permits(address) => Err(caller(security.refusal(address))),
        _ => Ok(()),
    }
}

fn fallback(text: &str) -> Result<Fallback, Error> {
    match text {
        "none" => Ok(Fallback::None),
        "direct" => Ok(Fallback::Direct),
        _ => Err(caller(format!("fallback '{text}': one of none, direct"))),
    }
}

/// What bodies may go in, and what is wanted of each service.
fn set_decision(
    relay: &mut relay::Config,
    encoding: Option<&str>,
    rate_cap: Option<Rate>,
    services: &[ServiceSettings],
) -> Result<(), Error> {
    relay.encoding = relay::Encoding::of(encoding.unwrap_or("auto"))
        .map_err(|error| caller(format!("encoding: {error}")))?;
    relay.rate_cap_bps = rate_cap.map(|rate| rate.0);
    if services.iter().any(infoset::is_allowed) {
        relay.encoding.allow_infoset();
    }
    for settings in services {
        let wrong = |what: String| caller(format!("service '{}': {what}", settings.pattern));
        let encodings = settings.encodings.as_ref().map(|names| relay.encoding.meant_by(names));
        let encodings =
            encodings.transpose().map_err(|error| wrong(format!("encodings: {error}")))?;
        let objective = objective(settings).map_err(wrong)?;
        let infoset = infoset::vocabulary(settings).map_err(wrong)?;
        infoset::check(encodings.as_deref(), infoset.as_deref()).map_err(wrong)?;
        let infoset = infoset.map(|infoset| infoset::shared(&relay.services, infoset));
        let name = settings.pattern.clone();
        relay.services.push(relay::Service { name, objective, encodings, infoset });
    }
    Ok(())
}

fn objective(settings: &ServiceSettings) -> Result<Objective, String> {
    let deadline = settings.deadline.map(|period| period.0);
    match (settings.objective.as_deref(), deadline) {
        (None | Some("time"), None) => Ok(Objective::Time),
        (Some("bytes"), None) => Ok(Objective::Bytes),
        (None | Some("deadline"), Some(deadline)) => {
            Ok(Objective::Deadline(deadline.as_secs_f64()))
        }
        (Some("deadline"), None) => {
            Err("objective 'deadline' needs a deadline, like '2 s': give one".to_owned())
        }
        (Some(objective @ ("time" | "bytes")), Some(_)) => {
            Err(format!("a deadline with objective '{objective}': give one of them"))
        }
        (Some(objective), _) => {
            Err(format!("objective '{objective}': one of time, bytes, deadline"))
        }
    }
}

fn check_carrier(text: Option<&str>) -> Result<(), Error> {
    match text {
        None | Some("auto" | "stream") => Ok(()),
        Some(text) => Err(caller(format!("carrier '{text}': one of auto, stream"))),
    }
}

fn check_congestion(name: Option<&str>) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    socket::check_congestion(name).map_err(|error| {
        let list = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        caller(format!("congestion '{name}' cannot be had ({error}): one of those in {list}"))
    })
}

/// Names of fields.
fn names(key: &str, list: Option<&[String]>) -> Result<Vec<HeaderName>, String> {
    let list = list.unwrap_or_default();
    if list.len() > MAX_FIELDS {
        return Err(format!("{key} names {} fields: at most {MAX_FIELDS}", list.len()));
    }
    let names = list.iter().map(|name| {
        let name = HeaderName::from_bytes(name.as_bytes());
        name.map_err(|_| format!("{key}: no name of a field: give one like 'X-My-User'"))
    });
    names.collect()
}

fn service(settings: &ServiceSettings) -> Result<Service, Error> {
    let wrong = |what: String| caller(format!("service '{}': {what}", settings.pattern));
    let pass_accept_encoding = match settings.accept_encoding.as_deref() {
        None | Some("identity") => false,
        Some("pass") => true,
        Some(other) => {
            return Err(wrong(format!("accept_encoding '{other}': one of identity, pass")));
        }
    };
    let exact_fields = match settings.fields.as_deref() {
        None | Some("names") => false,
        Some("exact") => true,
        Some(other) => return Err(wrong(format!("fields '{other}': one of names, exact"))),
    };
    let upgrades = settings.upgrades.as_ref().map(|names| upgrades(names)).transpose();
    Ok(Service {
        exact_fields,
        upgrades: upgrades.map_err(wrong)?,
        pattern: Pattern::parse(&settings.pattern).map_err(caller)?,
        pass_accept_encoding,
        fallback: settings.fallback.as_deref().map(fallback).transpose()?,
        max_body: settings.max_body.map(|size| size.0),
        infoset: infoset::is_allowed(settings),
        principal: names("principal", settings.principal.as_deref()).map_err(wrong)?,
        not_principal: names("not_principal", settings.not_principal.as_deref()).map_err(wrong)?,
    })
}

/// Names of protocols to change to, in lower case.
fn upgrades(names: &[String]) -> Result<Vec<String>, String> {
    if names.len() > MAX_UPGRADES {
        return Err(format!("upgrades: {} names: {MAX_UPGRADES} at most", names.len()));
    }
    let is_token = |name: &&String| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/".contains(&b))
    };
    match names.iter().find(|name| !is_token(name)) {
        Some(wrong) => Err(format!("upgrades: '{wrong}' is no name of a protocol, like websocket")),
        None => Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

/// What a reverse proxy does beyond passing messages on.
fn reverse(
    has_upstream: bool,
    forwarded: Option<&str>,
    rewrite: Option<Vec<String>>,
) -> Result<Reverse, Error> {
    let forwarded = match forwarded {
        None | Some("none") => Forwarded::None,
        Some("x-forwarded") => Forwarded::Customary,
        Some("forwarded") => Forwarded::Standard,
        Some(other) => {
            let known = "one of none, x-forwarded, forwarded";
            return Err(caller(format!("forwarded '{other}': {known}")));
        }
    };
    let mut reverse = Reverse { forwarded, ..Reverse::default() };
    for what in rewrite.unwrap_or_default() {
        match what.as_str() {
            "location" => reverse.location = true,
            "wsdl" => reverse.wsdl = true,
            _ => return Err(caller(format!("rewrite '{what}': one of location, wsdl"))),
        }
    }
    let does_something = reverse != Reverse::default();
    if does_something && !has_upstream {
        return Err(caller("forwarded and rewrite are for a reverse proxy: give 'upstream' too"));
    }
    Ok(reverse)
}
