//! A gateway's listener for clients of CoAP.

use std::net::SocketAddr;

use super::file::GatewaySettings;
use super::mistakes::Check;
use super::{address, caller};
use crate::upstream::Upstream;

/// See the module.
#[derive(Clone, Debug)]
pub struct CoapListener {
    /// Its address, for datagrams.
    pub listen: SocketAddr,
    /// Where requests go that name no origin.
    pub upstream: Option<Upstream>,
}

/// What the settings say of it.
pub(super) fn listener(check: &mut Check, gateway: &GatewaySettings) -> Option<CoapListener> {
    let Some(text) = &gateway.coap else {
        let (upstream, anywhere) = (&gateway.coap_upstream, gateway.coap_anywhere);
        let given = [("coap_upstream", upstream.is_some()), ("coap_anywhere", anywhere.is_some())];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let what = format!("{key} needs a listener for clients of CoAP: give 'coap'");
            check.about(key, &["coap"], Err::<(), _>(caller(what)));
        }
        return None;
    };
    let upstream = gateway.coap_upstream.as_deref().map(Upstream::parse).transpose();
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
