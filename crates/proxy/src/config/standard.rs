//! A gateway that is asked as anybody's software would ask it: a WAP gateway over WSP, or a forward
//! proxy over CoAP.

use std::net::IpAddr;
use std::time::Duration;

use super::file::{EdgeSettings, LinkSettings};
use super::mistakes::Check;
use super::{Fallback, Service, bytes, caller, check_gateway};
use crate::carrier::Security;
use crate::pattern::split_authority;

/// Most requests that are open at such a gateway, of all clients, and as many unless told
/// otherwise: the machines of both protocols take twice as many of one peer.
const MAX_OPEN: usize = 128;
/// Memory for the bodies of their requests, in bytes, unless told otherwise.
const BODY_BYTES: usize = 8 << 20;
/// Port of connectionless WSP (WAP-259).
const WSP_PORT: u16 = 9200;
/// Port of CoAP over UDP (RFC 7252 §6.1).
const COAP_PORT: u16 = 5683;
/// The forms of a gateway's address.
const FORMS: &str = "one of HOST:PORT, wsp://HOST[:9200], coap://HOST[:5683]";
/// Keys of an edge that count with such a gateway. Others are refused, for what they are
/// about does not exist there.
const APPLICABLE: [&str; 18] = [
    "listen",
    "gateway",
    "wsp_repeat",
    "wsp_wbxml",
    "upstream",
    "forwarded",
    "rewrite",
    "fallback",
    "rate_cap",
    "insecure_plain",
    "admin",
    "drain_timeout",
    "response_timeout",
    "max_connections",
    "max_exchanges",
    "idle_timeout",
    "deny",
    "body_memory",
];

/// By what such a gateway is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardKind {
    /// Connectionless WSP over UDP (WAP-230).
    Wsp {
        /// Copies of any request may leave: the gateway carries none out twice.
        repeats: bool,
        /// XML goes as WBXML, and comes as such.
        wbxml: bool,
    },
    /// CoAP over UDP (RFC 7252).
    Coap,
}

impl StandardKind {
    /// The scheme of its addresses, which is also what logs and metrics call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wsp { .. } => "wsp",
            Self::Coap => "coap",
        }
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandardGateway {
    /// By what it is asked.
    pub kind: StandardKind,
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Addresses other than loopback may be used, though everybody in between can read and change
    /// what passes.
    pub anywhere: bool,
    /// Most requests that are open at once, of all clients.
    pub max_open: usize,
    /// Memory for the bodies of requests, in bytes.
    pub body_bytes: usize,
    /// What the link carries at most, in bit/s, where that is known.
    pub rate_bps: Option<u64>,
}

impl StandardGateway {
    /// Its address as it is shown.
    #[must_use]
    pub fn url(&self) -> String {
        let (scheme, host, port) = (self.kind.name(), &self.host, self.port);
        match host.contains(':') {
            true => format!("{scheme}://[{host}]:{port}"),
            false => format!("{scheme}://{host}:{port}"),
        }
    }
}

/// The gateway of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeGateway {
    /// The other side of the pair, as `HOST:PORT`.
    Pair(String),
    /// One that is asked over WSP or CoAP.
    Standard(StandardGateway),
}

impl EdgeGateway {
    /// Its address as it is shown.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Pair(address) => address.clone(),
            Self::Standard(gateway) => gateway.url(),
        }
    }
}

/// What the settings say of the gateway, checked.
pub(super) fn gateway(
    check: &mut Check,
    edge: &EdgeSettings,
    link: &LinkSettings,
    security: Option<&Security>,
    fallback: Option<Fallback>,
) -> Option<EdgeGateway> {
    let address = edge.gateway.as_deref().filter(|address| address.contains("://"));
    let Some(address) = address else {
        needs_standard(check, edge, "a WAP gateway: give one, like gateway = 'wsp://HOST'");
        match (&edge.gateway, security) {
            (Some(gateway), Some(security)) => {
                check.take("gateway", check_gateway(gateway, security));
            }
            (Some(_), None) => {}
            (None, _) => edge.need_gateway(check, fallback),
        }
        return edge.gateway.clone().map(EdgeGateway::Pair);
    };
    let (kind, host, port) = match parse(address) {
        Ok(parsed) => parsed,
        Err(what) => {
            check.take("gateway", Err::<(), _>(caller(what)));
            return None;
        }
    };
    let kind = match kind {
        StandardKind::Coap => {
            needs_standard(check, edge, "WSP: CoAP has neither, leave it out");
            kind
        }
        StandardKind::Wsp { .. } => StandardKind::Wsp {
            repeats: edge.wsp_repeat.unwrap_or(false),
            wbxml: edge.wsp_wbxml.unwrap_or(false),
        },
    };
    refuse_others(check, edge, link, address, fallback);
    let (mut max_open, anywhere) = (MAX_OPEN, edge.insecure_plain.unwrap_or(false));
    check.count(&mut max_open, "max_exchanges", edge.max_exchanges, MAX_OPEN);
    let body_bytes = check.take("body_memory", bytes("body_memory", edge.body_memory));
    let whole = |bps| Duration::try_from_secs_f64(bps).map_or(u64::MAX, |many| many.as_secs());
    let rate_bps = edge.rate_cap.map(|rate| whole(rate.0)).filter(|rate| *rate > 0);
    let body_bytes = body_bytes.unwrap_or(BODY_BYTES);
    let standard = StandardGateway { kind, host, port, anywhere, max_open, body_bytes, rate_bps };
    if let Ok(ip) = standard.host.parse::<IpAddr>() {
        let wrong = refuse_address(&standard, ip).map_or(Ok(()), |what| Err(caller(what)));
        check.about("gateway", &["insecure_plain"], wrong);
    }
    Some(EdgeGateway::Standard(standard))
}

/// Why an address may not be asked, if it may not.
pub(crate) fn refuse_address(gateway: &StandardGateway, ip: IpAddr) -> Option<String> {
    let (ip, url) = (ip.to_canonical(), gateway.url());
    if ip.is_multicast() || ip.is_unspecified() {
        return Some(format!("gateway '{url}': {ip} is no address of one gateway: give that"));
    }
    if ip.is_loopback() || gateway.anywhere {
        return None;
    }
    let what = "is not loopback, and whoever is in between can read and change what passes by";
    let remedy = "give insecure_plain = true (--insecure-plain) if that is accepted";
    Some(format!("gateway '{url}': {ip} {what} {}: {remedy}", gateway.kind.name()))
}

/// A service may not go directly where the edge as a whole cannot.
pub(super) fn check_services(
    check: &mut Check,
    gateway: Option<&EdgeGateway>,
    services: &[Service],
) {
    let is_standard = matches!(gateway, Some(EdgeGateway::Standard(_)));
    let direct = services.iter().position(|one| one.fallback == Some(Fallback::Direct));
    if let Some(at) = direct.filter(|_| is_standard) {
        check.service(at);
        check.take("fallback", Err::<(), _>(caller(NO_FALLBACK)));
    }
}

/// Why `fallback = 'direct'` is refused.
const NO_FALLBACK: &str = "fallback 'direct' does not go with a gateway by wsp or coap: what \
                           became of a request there is not known, so leave it out";

/// Keys of WSP that are given without it.
fn needs_standard(check: &mut Check, edge: &EdgeSettings, needed: &str) {
    let given = [("wsp_repeat", edge.wsp_repeat), ("wsp_wbxml", edge.wsp_wbxml)];
    for (key, _) in given.into_iter().filter(|(_, given)| *given == Some(true)) {
        let what = format!("{key} is for {needed}");
        check.about(key, &["gateway"], Err::<(), _>(caller(what)));
    }
}

/// Refuses what would do nothing.
fn refuse_others(
    check: &mut Check,
    edge: &EdgeSettings,
    link: &LinkSettings,
    address: &str,
    fallback: Option<Fallback>,
) {
    let applies = |key: &&str| APPLICABLE.contains(key);
    for key in edge.differing(&EdgeSettings::default()).into_iter().filter(|key| !applies(key)) {
        let what = "is for longwire's own pair, or for going directly";
        let what = format!("{key} {what}: leave it out with gateway '{address}'");
        check.about(key, &["gateway"], Err::<(), _>(caller(what)));
    }
    if fallback == Some(Fallback::Direct) {
        check.about("fallback", &["gateway"], Err::<(), _>(caller(NO_FALLBACK)));
    }
    if link.own.unwrap_or(false) {
        let what = format!("own is for longwire's own carriers: leave it out with '{address}'");
        check.mistakes.add("link", "own", caller(what));
    }
}

/// Takes an address with a scheme apart. Another transport of CoAP is one more scheme here, and one
/// more way to open a line to it (`edge::standard::coap`).
fn parse(address: &str) -> Result<(StandardKind, String, u16), String> {
    let wrong = |what: &str| format!("gateway '{address}' {what}: {FORMS}");
    let (scheme, rest) = address.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
    let (kind, standard) = match scheme.to_ascii_lowercase().as_str() {
        "wsp" => (StandardKind::Wsp { repeats: false, wbxml: false }, WSP_PORT),
        "coap" => (StandardKind::Coap, COAP_PORT),
        _ => return Err(wrong("has a scheme that no gateway is asked by")),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@']) {
        return Err(wrong("has a path, a query or a user"));
    }
    let (host, port) = split_authority(authority).ok_or_else(|| wrong("has a wrong port"))?;
    let is_number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port {
        None => standard,
        Some(port) if is_number(port) => {
            port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("has a wrong port"))?
        }
        Some(_) => return Err(wrong("has a wrong port")),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_good = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_of_name),
    };
    match is_good {
        true => Ok((kind, bare.unwrap_or(host).to_owned(), port)),
        false => Err(wrong("has no host")),
    }
}

/// Whether a name or an address of IPv4 may hold this (RFC 1123 §2.1, and the underscore that
/// occurs).
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::super::{EdgeConfig, Settings};
    use super::*;

    fn edge(keys: &str) -> Result<EdgeConfig, Vec<String>> {
        let settings = Settings::parse(&format!("[edge]\nlisten = '127.0.0.1:0'\n{keys}")).unwrap();
        EdgeConfig::resolve(settings.edge, &settings.link, &settings.services)
            .map_err(|all| all.iter().map(|one| one.error().to_string()).collect())
    }

    #[test]
    fn each_form_of_address_has_its_gateway() {
        for (address, url) in [
            ("wsp://localhost", "wsp://localhost:9200"),
            ("WSP://127.0.0.1:9201/", "wsp://127.0.0.1:9201"),
            ("coap://127.0.0.1", "coap://127.0.0.1:5683"),
            ("coap://[::1]:5700", "coap://[::1]:5700"),
        ] {
            let config = edge(&format!("gateway = '{address}'")).unwrap();
            assert_eq!(config.gateway.unwrap().shown(), url);
        }
        let more = "wsp_repeat = true\nwsp_wbxml = true\nmax_exchanges = 3\nbody_memory = '1 MiB'\n\
                    rate_cap = '9600 bit/s'\ninsecure_plain = true";
        let config = edge(&format!("gateway = 'wsp://192.0.2.1'\n{more}")).unwrap();
        let Some(EdgeGateway::Standard(standard)) = config.gateway else { panic!("another") };
        assert_eq!(standard.kind, StandardKind::Wsp { repeats: true, wbxml: true });
        assert_eq!(
            (standard.max_open, standard.body_bytes, standard.rate_bps, standard.anywhere),
            (3, 1 << 20, Some(9600), true)
        );
    }

    #[test]
    fn what_does_not_apply_is_refused_by_name() {
        for (keys, why) in [
            ("gateway = 'http://a'", "has a scheme that no gateway is asked by"),
            ("gateway = 'coap+tcp://a'", "has a scheme that no gateway is asked by"),
            ("gateway = 'wsp://'", "has no host"),
            ("gateway = 'wsp://a b'", "has no host"),
            ("gateway = 'coap://[::1'", "has a wrong port"),
            ("gateway = 'coap://a:0'", "has a wrong port"),
            ("gateway = 'coap://a:+1'", "has a wrong port"),
            ("gateway = 'coap://a/x'", "has a path, a query or a user"),
            ("gateway = 'coap://u@a'", "has a path, a query or a user"),
            ("gateway = 'coap://192.0.2.1'", "192.0.2.1 is not loopback"),
            ("gateway = 'coap://224.0.1.187'\ninsecure_plain = true", "no address of one gateway"),
            ("gateway = 'coap://a'\nwsp_wbxml = true", "wsp_wbxml is for WSP"),
            ("gateway = 'a:1'\nwsp_repeat = true", "wsp_repeat is for a WAP gateway"),
            ("wsp_repeat = true", "wsp_repeat is for a WAP gateway"),
            ("gateway = 'coap://a'\nfallback = 'direct'", "fallback 'direct' does not go"),
            ("gateway = 'coap://a'\nencoding = 'zstd'", "encoding is for longwire's own pair"),
            ("gateway = 'coap://a'\nstore = 'x'", "store is for longwire's own pair"),
            ("gateway = 'wsp://a'\ncarrier = 'stream'", "carrier is for longwire's own pair"),
            ("gateway = 'wsp://a'\nmax_exchanges = 129", "max_exchanges is 129"),
            ("gateway = 'wsp://a'\n[link]\nown = true", "own is for longwire's own carriers"),
            (
                "gateway = 'wsp://a'\n[[service]]\nmatch = 'http://a'\nfallback = 'direct'",
                "fallback 'direct' does not go",
            ),
        ] {
            let lines = edge(keys).unwrap_err();
            assert!(lines.iter().any(|line| line.contains(why)), "{keys}: {lines:?}");
            assert!(lines.iter().all(|line| line.lines().count() == 1), "{lines:?}");
        }
    }
}
