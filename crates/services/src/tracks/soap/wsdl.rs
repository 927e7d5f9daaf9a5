//! The service's description, with its schemas inside: what a client's code is made from.

use super::ACTION;
use crate::tracks::{NFFI_NAMESPACE, SERVICE_NAMESPACE};
use crate::xml::escape;

/// The WSDL 1.1 document of the service at `address` (an `http` URL), with a port for SOAP 1.1 and
/// one for SOAP 1.2.
#[must_use]
pub fn wsdl(address: &str) -> String {
    let mut escaped = String::new();
    escape(address, &mut escaped);
    include_str!("tracks.wsdl")
        .replace("@SCHEMA@", include_str!("nffi.xsd").trim_end())
        .replace("@SERVICE@", SERVICE_NAMESPACE)
        .replace("@NFFI@", NFFI_NAMESPACE)
        .replace("@ACTION@", ACTION)
        .replace("@ADDRESS@", &escaped)
}
