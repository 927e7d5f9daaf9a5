//! A gateway's listener for clients of CoAP.

use std::net::SocketAddr;

use super::file::GatewaySettings;
use super::mistakes::Check;
use super::{address, bytes, caller};
use crate::pattern::COAP;
use crate::upstream::Upstream;

/// See the module.
#[derive(Clone, Debug)]
pub struct CoapListener {
    /// Its address, for datagrams.
    pub listen: SocketAddr,
    /// Where requests go that name no origin.
    pub upstream: Option<Upstream>,
}

/// Most bytes for answers that are kept.
const MAX_CACHE_BYTES: usize = 1 << 30;

/// What the settings say of CoAP: a listener, and bytes for answers of servers.
pub(super) fn settings(
    check: &mut Check,
    gateway: &GatewaySettings,
) -> (Option<CoapListener>, usize) {
    (listener(check, gateway), cache_bytes(check, gateway))
}

/// Bytes for answers of servers of CoAP.
fn cache_bytes(check: &mut Check, gateway: &GatewaySettings) -> usize {
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

/// The listener, if there is one.
fn listener(check: &mut Check, gateway: &GatewaySettings) -> Option<CoapListener> {
    let Some(text) = &gateway.coap else {
        let (upstream, anywhere) = (&gateway.coap_upstream, gateway.coap_anywhere);
        let given = [("coap_upstream", upstream.is_some()), ("coap_anywhere", anywhere.is_some())];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let what = format!("{key} needs a listener for clients of CoAP: give 'coap'");
            check.about(key, &["coap"], Err::<(), _>(caller(what)));
        }
        return None;
    };
    let upstream = gateway.coap_upstream.as_deref().map(upstream).transpose();
    let upstream = check.take("coap_upstream", upstream);
    let listen = check.take("coap", address("coap", text).map(Some))?;
    if !listen.ip().to_canonical().is_loopback() && gateway.coap_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may";
        let remedy = "give a loopback address, or 'coap_anywhere = true' (--coap-anywhere)";
        let what = caller(format!("coap '{text}': {what}: {remedy}"));
        check.about("coap", &["coap_anywhere"], Err::<(), _>(what));
    }
    Some(CoapListener { listen, upstream })
}
