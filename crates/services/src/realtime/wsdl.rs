//! The service's description: what a client's code is made from.

use super::request::{ACTION, NAMESPACE};
use crate::xml::escape;

/// The WSDL 1.1 document of the service at `address` (an `http` URL), with a port for SOAP 1.1 and
/// one for SOAP 1.2.
#[must_use]
pub fn wsdl(address: &str) -> String {
    let mut escaped = String::new();
    escape(address, &mut escaped);
    include_str!("consumer.wsdl")
        .replace("@NAMESPACE@", NAMESPACE)
        .replace("@ACTION@", ACTION)
        .replace("@ADDRESS@", &escaped)
}
