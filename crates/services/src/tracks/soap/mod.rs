//! An operation that takes a number, as SOAP 1.1 and SOAP 1.2, document/literal wrapped: `GetTrack`
//! and its like.

mod fault;
mod request;
#[cfg(test)]
mod tests;
mod wsdl;

pub use fault::{Code, Fault};
pub use request::parse;
pub use wsdl::wsdl;

use super::{FILE_COUNT, SERVICE_NAMESPACE};

/// The one operation of a service: it takes an element `number`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Of the service's own elements.
    pub namespace: &'static str,
    /// The element in the body.
    pub name: &'static str,
    /// `SOAPAction` in SOAP 1.1, `action` in SOAP 1.2.
    pub action: &'static str,
    /// What is numbered, for a person.
    pub thing: &'static str,
    /// The greatest number; 1 is the least.
    pub last: usize,
}

/// The action of `GetTrack`.
pub const ACTION: &str = "urn:longwire:tracks:1#GetTrack";

/// The operation of the tracks service.
pub const GET_TRACK: Operation = Operation {
    namespace: SERVICE_NAMESPACE,
    name: "GetTrack",
    action: ACTION,
    thing: "track",
    last: FILE_COUNT,
};

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

impl Operation {
    /// A whole request, as a measuring client sends it.
    #[must_use]
    pub fn request(&self, version: Version, number: usize) -> String {
        let Self { namespace, name, .. } = self;
        let element = format!("<{name} xmlns=\"{namespace}\"><number>{number}</number></{name}>");
        envelope(version, "", &element)
    }
}

/// A whole request for file `number` of the tracks.
#[must_use]
pub fn request(version: Version, number: usize) -> String {
    GET_TRACK.request(version, number)
}

/// A whole answer that carries the `NFFIMessage` element given.
#[must_use]
pub fn answer(version: Version, message: &str) -> String {
    let response =
        format!("<GetTrackResponse xmlns=\"{SERVICE_NAMESPACE}\">{message}</GetTrackResponse>");
    envelope(version, "", &response)
}

/// An envelope around header blocks (none: no header) and the content of the body.
pub(crate) fn envelope(version: Version, header: &str, body: &str) -> String {
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
