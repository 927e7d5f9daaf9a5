//! SOAP faults: what they mean and how each version writes them.

use super::{Version, envelope};
use crate::xml::escape;

/// Why a message was not processed (SOAP 1.1 §4.4.1, SOAP 1.2 part 1 §5.4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// The envelope is of neither version.
    VersionMismatch,
    /// Mandatory header blocks meant for this node that it does not understand: (namespace, name).
    MustUnderstand(Vec<(String, String)>),
    /// The body is scoped with an encoding that this node does not know (SOAP 1.2 only).
    DataEncodingUnknown,
    /// The message is wrong: `Client` in SOAP 1.1, `Sender` in SOAP 1.2.
    Sender {
        /// The fault is in the body, so SOAP 1.1 demands a `detail`.
        in_body: bool,
    },
}

/// A fault, in the version of the message that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The version to answer in.
    pub version: Version,
    /// What kind.
    pub code: Code,
    /// One line for a person.
    pub reason: String,
    /// Namespace of the service's own elements.
    pub service: &'static str,
}

impl Fault {
    /// The HTTP status that goes with it (SOAP 1.1 §6.2; SOAP 1.2 part 2, table 20).
    #[must_use]
    pub fn status(&self) -> u16 {
        match (self.version, &self.code) {
            (Version::Soap12, Code::Sender { .. }) => 400,
            _ => 500,
        }
    }

    /// The whole message.
    #[must_use]
    pub fn to_xml(&self) -> String {
        match self.version {
            Version::Soap11 => self.to_soap11(),
            Version::Soap12 => self.to_soap12(),
        }
    }

    fn to_soap11(&self) -> String {
        let code = match &self.code {
            Code::VersionMismatch => "VersionMismatch",
            Code::MustUnderstand(_) => "MustUnderstand",
            Code::DataEncodingUnknown | Code::Sender { .. } => "Client",
        };
        let reason = escaped(&self.reason);
        let detail = match self.refusal() {
            Some(refusal) => format!("<detail>{refusal}</detail>"),
            None => String::new(),
        };
        let fault = format!(
            "<soap:Fault><faultcode>soap:{code}</faultcode><faultstring>{reason}</faultstring>\
             {detail}</soap:Fault>"
        );
        envelope(self.version, "", &fault)
    }

    fn to_soap12(&self) -> String {
        let (code, header) = match &self.code {
            Code::VersionMismatch => ("VersionMismatch", upgrade()),
            Code::MustUnderstand(blocks) => ("MustUnderstand", not_understood(blocks)),
            Code::DataEncodingUnknown => ("DataEncodingUnknown", String::new()),
            Code::Sender { .. } => ("Sender", String::new()),
        };
        let reason = escaped(&self.reason);
        let detail = match self.refusal() {
            Some(refusal) => format!("<soap:Detail>{refusal}</soap:Detail>"),
            None => String::new(),
        };
        let fault = format!(
            "<soap:Fault><soap:Code><soap:Value>soap:{code}</soap:Value></soap:Code>\
             <soap:Reason><soap:Text xml:lang=\"en\">{reason}</soap:Text></soap:Reason>\
             {detail}</soap:Fault>"
        );
        envelope(self.version, &header, &fault)
    }

    /// The detail that the WSDL declares, for faults in the body only (SOAP 1.1 §4.4).
    fn refusal(&self) -> Option<String> {
        let Code::Sender { in_body: true } = self.code else { return None };
        let (reason, service) = (escaped(&self.reason), self.service);
        Some(format!("<Refusal xmlns=\"{service}\">{reason}</Refusal>"))
    }
}

/// SOAP 1.2 part 1 §5.4.7: which envelopes this node supports.
fn upgrade() -> String {
    let supported = |version: Version| {
        let namespace = version.namespace();
        format!("<soap:SupportedEnvelope qname=\"e:Envelope\" xmlns:e=\"{namespace}\"/>")
    };
    let both = supported(Version::Soap12) + &supported(Version::Soap11);
    format!("<soap:Upgrade>{both}</soap:Upgrade>")
}

/// SOAP 1.2 part 1 §5.4.8: one block for each that was not understood.
fn not_understood(blocks: &[(String, String)]) -> String {
    let block = |(namespace, name): &(String, String)| {
        let (namespace, name) = (escaped(namespace), escaped(name));
        format!("<soap:NotUnderstood qname=\"h:{name}\" xmlns:h=\"{namespace}\"/>")
    };
    blocks.iter().map(block).collect()
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    escape(text, &mut out);
    out
}
