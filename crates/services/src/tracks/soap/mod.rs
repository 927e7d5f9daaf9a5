//! The service's operation `GetTrack` as SOAP 1.1 and SOAP 1.2, document/literal wrapped.

mod fault;
mod request;
#[cfg(test)]
mod tests;
mod wsdl;

pub use fault::{Code, Fault};
pub use request::parse;
pub use wsdl::wsdl;

use super::SERVICE_NAMESPACE;

/// The action of the one operation: `SOAPAction` in SOAP 1.1, `action` in SOAP 1.2.
pub const ACTION: &str = "urn:longwire:tracks:1#GetTrack";

/// Which SOAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// SOAP 1.1 (W3C note of 8 May 2000).
    Soap11,
    /// SOAP 1.2 (W3C recommendation, second edition).
    Soap12,
}

impl Version {
    /// Namespace of the envelope.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Soap11 => "http://schemas.xmlsoap.org/soap/envelope/",
            Self::Soap12 => "http://www.w3.org/2003/05/soap-envelope",
        }
    }

    /// The version that a namespace names.
    #[must_use]
    pub fn of_namespace(namespace: &str) -> Option<Self> {
        [Self::Soap11, Self::Soap12].into_iter().find(|version| version.namespace() == namespace)
    }

    /// Media type of a message (SOAP 1.1 §6, SOAP 1.2 part 2 §7.1.4), without parameters.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Soap11 => "text/xml",
            Self::Soap12 => "application/soap+xml",
        }
    }
}

/// A whole request for file `number`, as a measuring client sends it.
#[must_use]
pub fn request(version: Version, number: usize) -> String {
    let operation =
        format!("<GetTrack xmlns=\"{SERVICE_NAMESPACE}\"><number>{number}</number></GetTrack>");
    envelope(version, "", &operation)
}

/// A whole answer that carries the `NFFIMessage` element given.
#[must_use]
pub fn answer(version: Version, message: &str) -> String {
    let response =
        format!("<GetTrackResponse xmlns=\"{SERVICE_NAMESPACE}\">{message}</GetTrackResponse>");
    envelope(version, "", &response)
}

/// An envelope around header blocks (none: no header) and the content of the body.
fn envelope(version: Version, header: &str, body: &str) -> String {
    let namespace = version.namespace();
    let header = match header {
        "" => String::new(),
        blocks => format!("<soap:Header>{blocks}</soap:Header>"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><soap:Envelope xmlns:soap=\"{namespace}\">\
         {header}<soap:Body>{body}</soap:Body></soap:Envelope>"
    )
}
