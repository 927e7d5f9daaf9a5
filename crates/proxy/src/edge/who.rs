//! Who asks, as far as the shell can tell: the relay reads the rest from the head.

use http::header::HeaderMap;
use proto::bhttp;

use crate::config::Service;
use crate::front::Connection;

/// Whose request has these fields: an address, with what the operator has named of the fields that
/// a proxy in front sets.
pub(crate) fn asks(
    headers: &HeaderMap,
    service: Option<&Service>,
    connection: &Connection,
) -> relay::Client {
    let mut name = connection.client.clone();
    let named = service.map_or(&[][..], |service| &service.principal);
    for field in named {
        for value in headers.get_all(field) {
            name.push_str(&format!("\n{field}: {:?}", value.as_bytes()));
        }
    }
    let impersonal = service.map_or(&[][..], |service| &service.not_principal);
    let impersonal = impersonal.iter().map(|field| field.as_str().to_owned()).collect();
    relay::Client { name, impersonal }
}

/// Says in the head which host was asked, where the request goes to another, and where that shows
/// that it is the target's own page which asks.
pub(crate) fn tell_host(head: &mut bhttp::Request, asked: Option<&[u8]>) {
    let Some(host) = asked.filter(|host| **host != head.authority[..]) else { return };
    if !relay::is_cross_site(head) {
        return;
    }
    head.fields.push((relay::HOST_FIELD.into(), bytes::Bytes::copy_from_slice(host)));
    if relay::is_cross_site(head) {
        head.fields.pop();
    }
}
