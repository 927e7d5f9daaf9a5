//! A gateway's listener for clients of CoAP.

use std::net::{IpAddr, SocketAddr};

use super::file::GatewaySettings;
use super::mistakes::Check;
use super::{address, bytes, caller};
use crate::coap::dtls::keys::Keys;
use crate::coap::oscore::{self, ContextFile};
use crate::pattern::COAP;
use crate::upstream::Upstream;

/// See the module.
#[derive(Clone, Debug)]
pub struct CoapListener {
    /// Its address, for datagrams.
    pub listen: SocketAddr,
    /// Where requests go that name no origin.
    pub upstream: Option<Upstream>,
    /// The security contexts of its clients.
    pub oscore: Vec<ContextFile>,
    /// Whether who protects nothing is answered all the same.
    pub is_open: bool,
    /// Groups that it belongs to (RFC 7252 §12.8).
    pub groups: Vec<MulticastGroup>,
}

/// A group that a listener belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// Its address.
    pub address: IpAddr,
    /// The name of the interface on which it is heard; without, that which has the listener's
    /// address, or which the kernel chooses.
    pub interface: Option<String>,
}

/// A gateway's listener for clients of CoAP over DTLS.
#[derive(Clone, Debug)]
pub struct CoapsListener {
    /// Its address, for datagrams.
    pub listen: SocketAddr,
    /// Where requests go that name no origin.
    pub upstream: Option<Upstream>,
    /// The keys of its clients.
    pub keys: Keys,
}

/// What the settings say of that over DTLS. Only who has a key reaches anything there, so that its
/// address may be any.
fn secure_listener(check: &mut Check, gateway: &GatewaySettings) -> Option<CoapsListener> {
    let wrong = match (&gateway.coaps, &gateway.coaps_psk) {
        (Some(_), Some(_)) => None,
        (None, None) => return None,
        (Some(_), None) => Some(("coaps", "coaps needs the keys of its clients: give 'coaps_psk'")),
        (None, Some(_)) => Some(("coaps_psk", "coaps_psk needs a listener: give 'coaps'")),
    };
    if let Some((key, what)) = wrong {
        check.about(key, &["coaps", "coaps_psk"], Err::<(), _>(caller(what)));
    }
    let (text, path) = (gateway.coaps.as_ref()?, gateway.coaps_psk.as_ref()?);
    let listen = check.take("coaps", address("coaps", text).map(Some))?;
    let keys = check.take("coaps_psk", Keys::read(path));
    // What is wrong with it is said where 'coap' is read, or here if there is none.
    let upstream = gateway.coap_upstream.as_deref().map(upstream).transpose();
    let upstream = match &gateway.coap {
        Some(_) => upstream.unwrap_or_default(),
        None => check.take("coap_upstream", upstream),
    };
    Some(CoapsListener { listen, upstream, keys })
}

/// What the settings say of both.
pub(super) fn listeners(
    check: &mut Check,
    gateway: &GatewaySettings,
) -> (Option<CoapListener>, Option<CoapsListener>) {
    (listener(check, gateway), secure_listener(check, gateway))
}

/// Most bytes for answers that are kept.
const MAX_CACHE_BYTES: usize = 1 << 30;

/// Bytes for answers of servers of CoAP.
pub(super) fn cache_bytes(check: &mut Check, gateway: &GatewaySettings) -> usize {
    let most = |size: Option<usize>| match size {
        Some(size) if size > MAX_CACHE_BYTES => {
            Err(caller(format!("coap_cache of {size} bytes: at most {MAX_CACHE_BYTES}")))
        }
        size => Ok(size),
    };
    let size = bytes("coap_cache", gateway.coap_cache).and_then(most);
    check.take("coap_cache", size).unwrap_or(0)
}

/// Where requests of CoAP go that name no origin: to a service of HTTP.
fn upstream(text: &str) -> Result<Upstream, String> {
    let upstream = Upstream::parse(text)?;
    match upstream.scheme == COAP {
        true => Err(format!("upstream '{text}' is of CoAP, which its clients can ask themselves")),
        false => Ok(upstream),
    }
}

/// Longest name of an interface, in bytes.
const MAX_INTERFACE_BYTES: usize = 15;

/// An address that all hear who belong to a group, with an interface behind % if one is named.
fn group(text: &str) -> Result<MulticastGroup, String> {
    let form = "one of a group, like '224.0.1.187', 'ff02::fd' or 'ff05::fd' (All CoAP Nodes), or \
                one on an interface, like 'ff02::fd%eth0'";
    let wrong = || format!("coap_multicast '{text}' is no address: {form}");
    let (address, interface) = match text.split_once('%') {
        Some((address, interface)) => (address, Some(interface)),
        None => (text, None),
    };
    let is_name = |name: &str| {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        is_plain && (1..=MAX_INTERFACE_BYTES).contains(&name.len())
    };
    let address = address.parse().ok().filter(IpAddr::is_multicast).ok_or_else(wrong)?;
    match interface {
        Some(name) if !is_name(name) => Err(wrong()),
        interface => Ok(MulticastGroup { address, interface: interface.map(str::to_owned) }),
    }
}

/// What the settings say of it.
fn listener(check: &mut Check, gateway: &GatewaySettings) -> Option<CoapListener> {
    let Some(text) = &gateway.coap else {
        let (upstream, anywhere) = (&gateway.coap_upstream, gateway.coap_anywhere);
        let given = [
            ("coap_upstream", upstream.is_some() && gateway.coaps.is_none()),
            ("coap_anywhere", anywhere.is_some()),
            ("coap_oscore", gateway.coap_oscore.is_some()),
            ("coap_multicast", gateway.coap_multicast.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let what = format!("{key} needs a listener for clients of CoAP: give 'coap'");
            check.about(key, &["coap"], Err::<(), _>(caller(what)));
        }
        return None;
    };
    let upstream = gateway.coap_upstream.as_deref().map(upstream).transpose();
    let upstream = check.take("coap_upstream", upstream);
    let listen = check.take("coap", address("coap", text).map(Some))?;
    let contexts = gateway.coap_oscore.as_deref().unwrap_or_default();
    let oscore = check.take("coap_oscore", oscore::read_all(contexts));
    let is_open = contexts.is_empty() || gateway.coap_anywhere == Some(true);
    if !contexts.is_empty() && gateway.coap_upstream.is_none() {
        let what = "what OSCORE protects is for this gateway, and not for an origin behind it";
        let remedy = "name the service that answers with 'coap_upstream'";
        let what = caller(format!("coap_oscore: {what}: {remedy}"));
        check.about("coap_oscore", &["coap_upstream"], Err::<(), _>(what));
    }
    let is_near = listen.ip().to_canonical().is_loopback();
    if !is_near && is_open && gateway.coap_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may";
        let remedy = "give a loopback address, security contexts ('coap_oscore'), or \
                      'coap_anywhere = true' (--coap-anywhere)";
        let what = caller(format!("coap '{text}': {what}: {remedy}"));
        check.about("coap", &["coap_anywhere"], Err::<(), _>(what));
    }
    let groups = gateway.coap_multicast.as_deref().unwrap_or_default();
    let groups = check.items("coap_multicast", groups, |text| group(text));
    Some(CoapListener { listen, upstream, oscore, is_open, groups })
}
