//! What a side is told at its start: read from a file ([`Settings`]) and flags, then resolved into
//! [`EdgeConfig`] or [`GatewayConfig`], where every value is checked.

mod coap;
mod file;
mod infoset;
mod mistakes;
mod service;
mod standard;
#[cfg(test)]
mod tests;
mod units;
mod value;
mod wsp;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use coap::{CoapListener, CoapsListener, MulticastGroup};
pub use file::{
    EdgeSettings, GatewaySettings, LinkSettings, LogSettings, ServiceSettings, Settings,
};
pub use infoset::read_schema;
pub use mistakes::{Lines, Mistake, Mistakes};
pub use standard::{EdgeGateway, StandardGateway, StandardKind};
pub use units::{Period, Rate, Size};

use codec::wbxml::TokenTable;
use http::HeaderName;
use mistakes::Check;
use proto::kinds::Kind;
pub(crate) use standard::refuse_address;

use crate::Error;
use crate::carrier::Security;
use crate::edge::{Forwarded, Reverse};
use crate::keys::{self, Identity};
use crate::metrics::Build;
use crate::origin::{Resolve, SystemResolver};
use crate::pattern::Pattern;
use crate::socket;
use crate::store::StoreSettings;
use crate::upstream::Upstream;

/// Bound on open exchanges that a setting may ask for.
const MAX_EXCHANGES: usize = 65_536;
/// Client connections at once, unless told otherwise.
const DEFAULT_CONNECTIONS: usize = 1024;
/// Bound on threads that a setting may ask for.
const MAX_THREADS: usize = 256;
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
    /// The gateway; none: everything goes directly.
    pub gateway: Option<EdgeGateway>,
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
    pub store: Option<StoreSettings>,
    /// For the relay; its instance is drawn at the start.
    pub relay: relay::Config,
    /// What the program is built from, for those who ask the process.
    pub build: Build,
}

/// A gateway's listener for clients that have no edge.
#[derive(Clone, Debug)]
pub struct HttpListener {
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
    pub http: Option<HttpListener>,
    /// For clients of CoAP.
    pub coap: Option<CoapListener>,
    /// For clients of CoAP over DTLS.
    pub coaps: Option<CoapsListener>,
    /// Bytes for answers of servers of CoAP that are kept; 0: none are.
    pub coap_cache_bytes: usize,
    /// Address for WAP clients.
    pub wsp: Option<SocketAddr>,
    /// Tables of tokens that they have besides those that all have.
    pub wsp_tokens: Arc<[TokenTable]>,
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
    pub store: Option<StoreSettings>,
    /// For the relay; its instance is drawn at the start.
    pub relay: relay::Config,
    /// What the program is built from, for those who ask the process.
    pub build: Build,
    /// Names to addresses.
    pub resolver: Arc<dyn Resolve>,
}

impl EdgeConfig {
    /// Checks every value and goes on behind what is wrong; a mistake names the value, what is
    /// allowed and the remedy.
    pub fn resolve(
        edge: EdgeSettings,
        link: &LinkSettings,
        services: &[ServiceSettings],
    ) -> Result<Self, Mistakes> {
        let mut check = Check::of("edge");
        let listen = check.take("listen", listen_address(edge.listen.as_deref(), "edge"));
        let (key, peer) = (edge.key.as_deref(), edge.peer.as_deref());
        let security = security(&mut check, key, peer, edge.insecure_plain, keys::Role::Gateway);
        let fallback = check.take("fallback", edge.fallback.as_deref().map(fallback).transpose());
        let gateway = standard::gateway(&mut check, &edge, link, security.as_ref(), fallback);
        check.take("congestion", check_congestion(edge.congestion.as_deref()));
        let mut relay = new_relay(&mut check, relay::Role::Edge)?;
        relay.without_keys = matches!(security, Some(Security::Insecure { .. }));
        relay.urgent_clients = edge.urgent_clients.unwrap_or(false);
        set_kinds(&mut check, &mut relay, edge.carrier.as_deref());
        service::set_encoding(&mut check, &mut relay, edge.encoding.as_deref(), edge.rate_cap);
        set_link(&mut check, &mut relay, link);
        edge.set_times(&mut check, &mut relay);
        let (mut dial_timeout, mut drain_timeout) = (DIAL_TIMEOUT, DRAIN_TIMEOUT);
        check.time(&mut dial_timeout, "dial_timeout", edge.dial_timeout);
        check.time(&mut drain_timeout, "drain_timeout", edge.drain_timeout);
        let (mut max_connections, most) = (DEFAULT_CONNECTIONS, MAX_EXCHANGES);
        check.count(&mut max_connections, "max_connections", edge.max_connections, most);
        check.count(&mut relay.max_exchanges, "max_exchanges", edge.max_exchanges, most);
        check.count(&mut relay.max_waiting, "max_waiting", edge.max_waiting, most);
        let response_timeout = edge.response_timeout.map_or(ANSWER_TIMEOUT, |period| period.0);
        set_bounds(&mut check, &mut relay, edge.max_tunnels, edge.tunnel_timeout, response_timeout);
        set_memory(&mut check, &mut relay, edge.codec_memory, edge.body_memory);
        let admin = check.take("admin", edge.admin.as_deref().map(admin_address).transpose());
        check.apart(&[("listen", listen), ("admin", admin)]);
        let upstream = edge.upstream.as_deref().map(Upstream::parse).transpose();
        let upstream = check.take("upstream", upstream);
        let has_upstream = edge.upstream.is_some();
        let reverse = reverse(&mut check, has_upstream, edge.forwarded.as_deref(), edge.rewrite);
        let idle_timeout = idle_timeout(&mut check, edge.idle_timeout);
        let deny = check.items("deny", &edge.deny.unwrap_or_default(), |text| Pattern::parse(text));
        let direct_allow = edge.direct_allow.unwrap_or_default();
        let direct_allow = check.items("direct_allow", &direct_allow, |text| Pattern::parse(text));
        let codec_threads = threads(&mut check, edge.codec_threads);
        let kept = (edge.store, edge.history_rows, edge.history_size, edge.store_age);
        let store = store(&mut check, kept);
        let services = service::all(&mut check, &mut relay, services);
        standard::check_services(&mut check, gateway.as_ref(), &services);
        let (Some(listen), Some(security), true) = (listen, security, check.mistakes.is_empty())
        else {
            return Err(check.mistakes);
        };
        Ok(Self {
            listen,
            gateway,
            upstream,
            reverse,
            fallback: fallback.unwrap_or(Fallback::None),
            security,
            admin,
            congestion: edge.congestion,
            dial_timeout,
            drain_timeout,
            response_timeout,
            idle_timeout,
            deny,
            direct_allow,
            max_connections,
            codec_threads,
            store,
            services,
            relay,
            build: Build::default(),
        })
    }
}

impl EdgeSettings {
    fn set_times(&self, check: &mut Check, relay: &mut relay::Config) {
        check.time(&mut relay.connect_timeout, "connect_timeout", self.connect_timeout);
        check.time(&mut relay.hello_timeout, "hello_timeout", self.hello_timeout);
        check.time(&mut relay.outcome_timeout, "outcome_timeout", self.outcome_timeout);
        check.time(&mut relay.keepalive, "keepalive", self.keepalive);
        check.time(&mut relay.peer_timeout, "peer_timeout", self.peer_timeout);
        check.time(&mut relay.body_timeout, "body_timeout", self.body_timeout);
    }

    /// What is set in vain without a gateway.
    fn need_gateway(&self, check: &mut Check, fallback: Option<Fallback>) {
        if fallback == Some(Fallback::Direct) {
            let what = "fallback 'direct' needs a gateway to fall back from: give one";
            check.about("fallback", &["gateway"], Err::<(), _>(caller(what)));
        }
        if self.store.is_some() {
            let what = "a store needs a gateway: without one nothing is decided or learned";
            check.about("store", &["gateway"], Err::<(), _>(caller(what)));
        }
    }
}

impl GatewaySettings {
    /// What edges may reach, which is something.
    fn read_allow(&self, check: &mut Check) -> Vec<Pattern> {
        let allowed = self.allow.clone().unwrap_or_default();
        let allow = check.items("allow", &allowed, |text| Pattern::parse(text));
        if allowed.is_empty() {
            let what = "nothing is allowed: name what edges may reach, like --allow \
                        http://127.0.0.1:8080";
            check.take("allow", Err::<(), _>(caller(what)));
        }
        allow
    }

    fn set_counts(&self, check: &mut Check, relay: &mut relay::Config) {
        let most = MAX_EXCHANGES;
        check.count(&mut relay.max_carriers, "max_carriers", self.max_carriers, most);
        check.count(&mut relay.max_exchanges, "max_exchanges", self.max_exchanges, most);
    }

    fn set_times(&self, check: &mut Check, relay: &mut relay::Config) {
        check.time(&mut relay.hello_timeout, "connect_timeout", self.connect_timeout);
        check.time(&mut relay.hello_timeout, "hello_timeout", self.hello_timeout);
        check.time(&mut relay.keepalive, "keepalive", self.keepalive);
        check.time(&mut relay.peer_timeout, "peer_timeout", self.peer_timeout);
        check.time(&mut relay.body_timeout, "body_timeout", self.body_timeout);
    }
}

impl GatewayConfig {
    /// Checks every value and goes on behind what is wrong; a mistake names the value, what is
    /// allowed and the remedy.
    pub fn resolve(
        gateway: GatewaySettings,
        link: &LinkSettings,
        services: &[ServiceSettings],
    ) -> Result<Self, Mistakes> {
        let mut check = Check::of("gateway");
        let listen = check.take("listen", listen_address(gateway.listen.as_deref(), "gateway"));
        let (key, peer) = (gateway.key.as_deref(), gateway.peer.as_deref());
        let security = security(&mut check, key, peer, gateway.insecure_plain, keys::Role::Edge);
        if let (Some(listen), Some(security)) = (listen, &security)
            && !security.permits(listen)
        {
            check.take("listen", Err::<(), _>(security.refusal(listen)));
        }
        check.take("congestion", check_congestion(gateway.congestion.as_deref()));
        let http = http_listener(&mut check, &gateway);
        let (coap, coaps) = coap::listeners(&mut check, &gateway);
        let coap_cache_bytes = coap::cache_bytes(&mut check, &gateway);
        let allow = gateway.read_allow(&mut check);
        let mut relay = new_relay(&mut check, relay::Role::Gateway)?;
        relay.without_keys = matches!(security, Some(Security::Insecure { .. }));
        set_kinds(&mut check, &mut relay, gateway.carrier.as_deref());
        service::set_encoding(
            &mut check,
            &mut relay,
            gateway.encoding.as_deref(),
            gateway.rate_cap,
        );
        set_link(&mut check, &mut relay, link);
        gateway.set_times(&mut check, &mut relay);
        relay.drain_timeout = DRAIN_TIMEOUT;
        check.time(&mut relay.drain_timeout, "drain_timeout", gateway.drain_timeout);
        set_retained(&mut check, &mut relay, gateway.retain, gateway.retain_memory);
        gateway.set_counts(&mut check, &mut relay);
        let response_timeout = gateway.response_timeout.map_or(ORIGIN_TIMEOUT, |period| period.0);
        let (tunnels, timeout) = (gateway.max_tunnels, gateway.tunnel_timeout);
        set_bounds(&mut check, &mut relay, tunnels, timeout, response_timeout);
        set_memory(&mut check, &mut relay, gateway.codec_memory, gateway.body_memory);
        let admin = check.take("admin", gateway.admin.as_deref().map(admin_address).transpose());
        let (wsp, wsp_tokens) = wsp::listener(&mut check, &gateway);
        check.apart(&[
            ("listen", listen),
            ("http_listen", http.as_ref().map(|http| http.listen)),
            ("coap", coap.as_ref().map(|coap| coap.listen)),
            ("coaps", coaps.as_ref().map(|coaps| coaps.listen)),
            ("wsp", wsp),
            ("admin", admin),
        ]);
        let idle_timeout = idle_timeout(&mut check, gateway.idle_timeout);
        let codec_threads = threads(&mut check, gateway.codec_threads);
        let kept = (gateway.store, gateway.history_rows, gateway.history_size, gateway.store_age);
        let store = store(&mut check, kept);
        let services = service::all(&mut check, &mut relay, services);
        let (Some(listen), Some(security), true) = (listen, security, check.mistakes.is_empty())
        else {
            return Err(check.mistakes);
        };
        Ok(Self {
            listen,
            allow,
            http,
            coap,
            coaps,
            coap_cache_bytes,
            wsp,
            wsp_tokens,
            security,
            admin,
            congestion: gateway.congestion,
            drain_timeout: relay.drain_timeout,
            response_timeout,
            idle_timeout,
            codec_threads,
            store,
            services,
            relay,
            build: Build::default(),
            resolver: Arc::new(SystemResolver),
        })
    }
}

fn caller(what: impl Into<String>) -> Error {
    Error::Caller(what.into())
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

fn new_relay(check: &mut Check, role: relay::Role) -> Result<relay::Config, Mistakes> {
    crate::random_instance().map(|instance| relay::Config::new(role, instance)).map_err(|error| {
        check.take("", Err::<(), _>(error));
        std::mem::take(&mut check.mistakes)
    })
}

/// How long what was sent is kept to be sent again, and how many bytes of it.
fn set_retained(
    check: &mut Check,
    relay: &mut relay::Config,
    retain: Option<Period>,
    memory: Option<Size>,
) {
    set(&mut relay.retain, retain.map(|period| period.0));
    let retained = check.take("retain_memory", bytes("retain_memory", memory));
    set(&mut relay.retained_bytes, retained);
}

fn set_memory(
    check: &mut Check,
    relay: &mut relay::Config,
    codec: Option<Size>,
    body: Option<Size>,
) {
    let codec = check.take("codec_memory", bytes("codec_memory", codec));
    set(&mut relay.codec_bytes, codec);
    set(&mut relay.receive_bytes, body.map(|size| size.0));
}

/// What bounds exchanges that stay.
fn set_bounds(
    check: &mut Check,
    relay: &mut relay::Config,
    tunnels: Option<usize>,
    timeout: Option<Period>,
    response_timeout: Duration,
) {
    check.count(&mut relay.max_tunnels, "max_tunnels", tunnels, MAX_EXCHANGES);
    long_enough(check, &mut relay.tunnel_timeout, "tunnel_timeout", timeout);
    // Whoever knows what an exchange waits for has the first word.
    relay.still_timeout = relay.still_timeout.max(response_timeout * 2);
}

fn idle_timeout(check: &mut Check, period: Option<Period>) -> Duration {
    let mut idle_timeout = IDLE_TIMEOUT;
    long_enough(check, &mut idle_timeout, "idle_timeout", period);
    idle_timeout
}

fn long_enough(
    check: &mut Check,
    value: &mut Duration,
    name: &'static str,
    period: Option<Period>,
) {
    match period {
        Some(Period(given)) if given < MIN_IDLE_TIMEOUT => {
            let (given, least) = (given.as_secs_f64(), MIN_IDLE_TIMEOUT.as_secs());
            let what = format!("{name} is {given} s: at least {least} s");
            check.take(name, Err::<(), _>(what));
        }
        period => set(value, period.map(|period| period.0)),
    }
}

fn bytes(name: &str, size: Option<Size>) -> Result<Option<usize>, Error> {
    size.map(|size| usize::try_from(size.0))
        .transpose()
        .map_err(|_| caller(format!("{name} is over what this machine can address")))
}

fn threads(check: &mut Check, value: Option<usize>) -> usize {
    let mut threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    check.count(&mut threads, "codec_threads", value, MAX_THREADS);
    threads
}

/// Where a store is, most rows and bytes of its history, and how long it keeps things.
type Kept = (Option<PathBuf>, Option<u64>, Option<Size>, Option<Period>);

fn store(check: &mut Check, (directory, rows, size, age): Kept) -> Option<StoreSettings> {
    let Some(directory) = directory else {
        let needs = "needs a store to be kept in: give 'store' or --store DIR";
        let given = [
            ("history_rows", rows.is_some()),
            ("history_size", size.is_some()),
            ("store_age", age.is_some()),
        ];
        for (key, given) in given {
            let result = if given { Err(caller(format!("{key} {needs}"))) } else { Ok(()) };
            check.about(key, &["store"], result);
        }
        return None;
    };
    let wrong = if directory.as_os_str().is_empty() {
        Err(caller("store is empty: give a directory, or leave it out"))
    } else if directory.exists() && !directory.is_dir() {
        let shown = directory.display();
        Err(caller(format!("store '{shown}' is a file: give a directory, which is made for it")))
    } else {
        Ok(())
    };
    check.take("store", wrong);
    let history_rows = rows.unwrap_or(StoreSettings::HISTORY_ROWS);
    let history_bytes = size.map_or(StoreSettings::HISTORY_BYTES, |size| size.0);
    let mut kept = StoreSettings::AGE;
    long_enough(check, &mut kept, "store_age", age);
    Some(StoreSettings { directory, history_rows, history_bytes, age: kept })
}

fn listen_address(text: Option<&str>, section: &str) -> Result<Option<SocketAddr>, Error> {
    let text = text.ok_or_else(|| {
        caller(format!("no listen address: give --listen ADDRESS or 'listen' in [{section}]"))
    })?;
    address("listen", text).map(Some)
}

/// An address of this machine: with `:PORT` all of them, with `localhost` its loopback (RFC 6761
/// §6.3).
fn address(name: &str, text: &str) -> Result<SocketAddr, Error> {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let ip: Option<IpAddr> = match host {
        "" => Some(Ipv6Addr::UNSPECIFIED.into()),
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        _ => None,
    };
    let named = ip.zip(port.parse().ok()).map(SocketAddr::from);
    named.or_else(|| text.parse().ok()).ok_or_else(|| {
        let form = "ADDRESS:PORT, like '127.0.0.1:8080', 'localhost:8080', '[::1]:8080', or \
                    ':8080' for all addresses";
        caller(format!("{name} '{text}' is no address of this machine: {form}"))
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

fn http_listener(check: &mut Check, gateway: &GatewaySettings) -> Option<HttpListener> {
    let Some(text) = &gateway.http_listen else {
        let (upstream, anywhere) = (&gateway.http_upstream, gateway.http_anywhere);
        let given = [("http_upstream", upstream.is_some()), ("http_anywhere", anywhere.is_some())];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let what = format!("{key} needs a listener for edgeless clients: give 'http_listen'");
            check.about(key, &["http_listen"], Err::<(), _>(what));
        }
        return None;
    };
    let upstream = gateway.http_upstream.as_deref().map(Upstream::parse).transpose();
    let upstream = check.take("http_upstream", upstream);
    let listen = check.take("http_listen", address("http_listen", text).map(Some))?;
    if !listen.ip().to_canonical().is_loopback() && gateway.http_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may";
        let remedy = "give a loopback address, or 'http_anywhere = true' (--http-anywhere)";
        let what = format!("http_listen '{text}': {what}: {remedy}");
        check.about("http_listen", &["http_anywhere"], Err::<(), _>(what));
    }
    Some(HttpListener { listen, upstream })
}

/// None: something is wrong with the keys.
fn security(
    check: &mut Check,
    key: Option<&Path>,
    peer: Option<&Path>,
    insecure_plain: Option<bool>,
    other: keys::Role,
) -> Option<Security> {
    let anywhere = insecure_plain.unwrap_or(false);
    match (key, peer) {
        (None, None) => Some(Security::Insecure { anywhere }),
        (Some(key), Some(peer)) => {
            if anywhere {
                let what =
                    "keys and insecure_plain (--insecure-plain) exclude each other: give one";
                check.take("insecure_plain", Err::<(), _>(caller(what)));
            }
            let ours = check.take("key", keys::load_private(key).map(Some));
            let peers = check.take("peer", keys::load_peers(peer, other).map(Some));
            let identity = Identity::of((key, ours?), (peer, peers?), other);
            Some(Security::Keys(Arc::new(identity)))
        }
        (key, _) => {
            let what = "--key and --peer go together: give both, or neither";
            let given = if key.is_some() { "key" } else { "peer" };
            check.about(given, &["key", "peer"], Err::<(), _>(caller(what)));
            None
        }
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

/// The kinds of carriers: those that there can be, or the one that is named. One over datagrams is
/// sealed with keys, and without there is none but that of CoAP, as it is, where a stream may go
/// too; QUIC has the stream to fall back to, and CoAP for what it cannot take.
fn set_kinds(check: &mut Check, relay: &mut relay::Config, carrier: Option<&str>) {
    let kinds = match carrier.unwrap_or("auto") {
        "auto" if relay.without_keys => Ok(vec![Kind::STREAM]),
        // A gateway takes what edges come with.
        "auto" if relay.role == relay::Role::Gateway => {
            Ok(vec![Kind::STREAM, Kind::BURST, Kind::QUIC, Kind::COAP, Kind::COAP_TCP])
        }
        "auto" => Ok(vec![Kind::STREAM, Kind::BURST]),
        "stream" => Ok(vec![Kind::STREAM]),
        text @ ("burst" | "quic") if relay.without_keys => Err(caller(format!(
            "carrier '{text}' needs keys: give --key FILE --peer FILE (longwire keygen makes them)"
        ))),
        "burst" => Ok(vec![Kind::BURST]),
        "quic" => {
            relay.prefers_first = true;
            Ok(vec![Kind::QUIC, Kind::STREAM])
        }
        // Where both are expected to be as fast, the first takes it.
        "coap" => Ok(vec![Kind::COAP, Kind::STREAM]),
        "coap+tcp" => Ok(vec![Kind::COAP_TCP, Kind::STREAM]),
        text => Err(caller(format!(
            "carrier '{text}': one of auto, stream, burst, quic, coap, coap+tcp"
        ))),
    };
    let kinds = check.take("carrier", kinds);
    if !kinds.is_empty() {
        relay.kinds = kinds;
    }
}

/// Of a link that nobody shares it is said what it carries: that much leaves, and no more.
fn set_link(check: &mut Check, relay: &mut relay::Config, link: &LinkSettings) {
    if !link.own.unwrap_or(false) {
        return;
    }
    let rate = relay.rate_cap_bps.map(|bps| Duration::from_secs_f64(bps / 8.0).as_secs().max(1));
    if rate.is_none() {
        let what = "own: true says that nobody shares the link, and needs to know what it carries: \
                    give rate_cap, like '9600 bit/s'";
        check.mistakes.add("link", "own", caller(what));
    }
    relay.own_bytes_per_s = rate;
}

fn check_congestion(name: Option<&str>) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    socket::check_congestion(name).map_err(|error| {
        let list = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        caller(format!("congestion '{name}' cannot be had ({error}): one of those in {list}"))
    })
}

/// What a reverse proxy does beyond passing messages on.
fn reverse(
    check: &mut Check,
    has_upstream: bool,
    forwarded: Option<&str>,
    rewrite: Option<Vec<String>>,
) -> Reverse {
    let forwarded = match forwarded {
        None | Some("none") => Ok(Forwarded::None),
        Some("x-forwarded") => Ok(Forwarded::Customary),
        Some("forwarded") => Ok(Forwarded::Standard),
        Some(other) => {
            let known = "one of none, x-forwarded, forwarded";
            Err(caller(format!("forwarded '{other}': {known}")))
        }
    };
    let forwarded = check.take("forwarded", forwarded);
    let mut reverse = Reverse { forwarded, ..Reverse::default() };
    let known = |what: &String| match what.as_str() {
        "location" => Ok(true),
        "wsdl" => Ok(false),
        _ => Err(format!("rewrite '{what}': one of location, wsdl")),
    };
    for is_location in check.items("rewrite", &rewrite.unwrap_or_default(), known) {
        match is_location {
            true => reverse.location = true,
            false => reverse.wsdl = true,
        }
    }
    if reverse != Reverse::default() && !has_upstream {
        let what = "forwarded and rewrite are for a reverse proxy: give 'upstream' too";
        let key = if reverse.forwarded == Forwarded::None { "rewrite" } else { "forwarded" };
        check.about(key, &["upstream"], Err::<(), _>(caller(what)));
    }
    reverse
}
