//! A gateway's listener for WAP clients.

use std::net::SocketAddr;

use super::caller;
use super::file::GatewaySettings;
use super::mistakes::Check;

/// What the settings say of it.
pub(super) fn address(check: &mut Check, gateway: &GatewaySettings) -> Option<SocketAddr> {
    let Some(text) = &gateway.wsp else {
        if gateway.wsp_anywhere.is_some() {
            let what = "wsp_anywhere needs a listener for WAP clients: give 'wsp'";
            check.about("wsp_anywhere", &["wsp"], Err::<(), _>(caller(what)));
        }
        return None;
    };
    let listen = check.take("wsp", super::address("wsp", text).map(Some))?;
    if !listen.ip().to_canonical().is_loopback() && gateway.wsp_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may, in anybody's name";
        let remedy = "give a loopback address, or 'wsp_anywhere = true' (--wsp-anywhere)";
        let what = format!("wsp '{text}': {what}: {remedy}");
        check.about("wsp", &["wsp_anywhere"], Err::<(), _>(caller(what)));
    }
    Some(listen)
}
