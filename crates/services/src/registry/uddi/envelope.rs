//! Envelopes of SOAP 1.1 and what is in them.

use super::super::element::Element;
use super::super::refusal::{Reason, Refusal};
use super::schema::{self, NAMESPACE};
use super::write::Writer;
use crate::messaging::shown;
use crate::xml::escape;

/// The namespace of SOAP 1.1.
pub(super) const SOAP: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// Who is meant by a header block: whoever is next, which is this node.
const NEXT: &str = "http://schemas.xmlsoap.org/soap/actor/next";

/// A fault of SOAP 1.1 (§4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The part behind the prefix.
    code: &'static str,
    refusal: Refusal,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.reason {
            Reason::Busy | Reason::Fatal => "Server",
            _ => "Client",
        };
        Self { code, refusal }
    }
}

impl Fault {
    /// What HTTP alone says: what was sent is no message of SOAP.
    pub(crate) fn http_only(&self) -> Option<&Refusal> {
        matches!(self.refusal.reason, Reason::MediaType | Reason::Late).then_some(&self.refusal)
    }
}

/// The message in an envelope, checked.
///
/// # Errors
/// What is no envelope of SOAP 1.1, has a header block that must be understood, or no message of
/// UDDI v3 in its body.
pub(crate) fn request(document: &str) -> Result<Element, Fault> {
    let mut envelope = Element::parse(document)?;
    if envelope.name == "Envelope" && envelope.namespace.as_deref() != Some(SOAP) {
        let line = format!("an envelope of SOAP 1.1 has the namespace {SOAP}");
        return Err(Fault { code: "VersionMismatch", refusal: Refusal::malformed(line) });
    }
    if !envelope.is(SOAP, "Envelope") {
        let line = format!("'{}' is no envelope of SOAP 1.1", shown(&envelope.name));
        return Err(Refusal::malformed(line).into());
    }
    let mut parts = std::mem::take(&mut envelope.children).into_iter();
    let mut part = parts.next();
    if let Some(header) = part.as_ref().filter(|part| part.is(SOAP, "Header")) {
        understand(header)?;
        part = parts.next();
    }
    let body = part.filter(|part| part.is(SOAP, "Body") && part.children.len() == 1);
    let mut body = body.ok_or_else(|| Refusal::malformed("one Body with one message is needed"))?;
    let Some(mut message) = body.children.pop() else {
        return Err(Refusal::malformed("the Body is empty").into());
    };
    let is_other = |of: &str| of.starts_with("urn:uddi-org:api") && of != NAMESPACE;
    if message.namespace.as_deref().is_some_and(is_other) {
        let of = shown(message.namespace.as_deref().unwrap_or_default());
        let line = format!("version '{of}' is not served; {NAMESPACE} is");
        return Err(Refusal::new(Reason::UnrecognizedVersion, line).into());
    }
    schema::check(&mut message)?;
    Ok(message)
}

/// SOAP 1.1 §4.2.3: a block for this node that must be understood, and none is.
fn understand(header: &Element) -> Result<(), Fault> {
    let is_needed = |block: &&Element| {
        let of = |name: &str| {
            let found = block
                .attributes
                .iter()
                .find(|one| one.name == name && one.namespace.as_deref() == Some(SOAP));
            found.map(|one| one.value.as_str())
        };
        of("mustUnderstand") == Some("1") && of("actor").is_none_or(|who| matches!(who, "" | NEXT))
    };
    match header.children.iter().find(is_needed) {
        None => Ok(()),
        Some(block) => {
            let line = format!("the header block '{}' is not understood", shown(&block.name));
            Err(Fault { code: "MustUnderstand", refusal: Refusal::malformed(line) })
        }
    }
}

/// An envelope around a message.
pub(crate) fn response(message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <soap:Envelope xmlns:soap=\"{SOAP}\"><soap:Body>{message}</soap:Body></soap:Envelope>"
    )
}

/// An envelope with a fault, and in its detail the disposition report (UDDI v3.0.2 §4.8), where
/// the refusal has a number.
pub(crate) fn fault(fault: &Fault) -> String {
    let mut out = format!("<soap:Fault><faultcode>soap:{}</faultcode><faultstring>", fault.code);
    let disposition = fault.refusal.reason.disposition();
    match disposition {
        Some((_, code)) => out.push_str(code),
        None => escape(&fault.refusal.line, &mut out),
    }
    out.push_str("</faultstring>");
    if let Some((number, code)) = disposition {
        let mut writer = Writer::default();
        writer.root("dispositionReport", &[]);
        writer.start("result", &[("errno", &number.to_string())]);
        writer.text("errInfo", &[("errCode", code)], &fault.refusal.line);
        writer.end("result");
        writer.end("dispositionReport");
        out.push_str(&format!("<detail>{}</detail>", writer.out));
    }
    out.push_str("</soap:Fault>");
    response(&out)
}
