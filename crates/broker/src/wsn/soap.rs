//! Envelopes of SOAP 1.1 and 1.2, read and written.

use codec::xml::{Writer, is_text};

use super::addressing::{Headers, Properties};
use super::fault::{Fault, FaultKind, text};
use super::names::{LW, SOAP11, SOAP12, WSA};
use super::tree::{NodeId, Tree};

/// Most properties that `lw:Properties` brings.
pub(crate) const MAX_PROPERTIES: usize = 64;
/// Bytes of their names and values together.
pub(crate) const MAX_PROPERTY_BYTES: usize = 16 << 10;

/// Which SOAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SoapVersion {
    /// 1.1.
    #[default]
    V11,
    /// 1.2.
    V12,
}

impl SoapVersion {
    /// The namespace of its envelopes.
    #[must_use]
    pub(crate) fn uri(self) -> &'static str {
        match self {
            Self::V11 => SOAP11,
            Self::V12 => SOAP12,
        }
    }

    /// The media type of its messages; in 1.2 with the action (SOAP 1.2 Part 2 appendix A).
    #[must_use]
    pub(crate) fn content_type(self, action: Option<&str>) -> String {
        match (self, action) {
            (Self::V11, _) => "text/xml; charset=utf-8".to_owned(),
            (Self::V12, None) => "application/soap+xml; charset=utf-8".to_owned(),
            (Self::V12, Some(action)) => {
                format!("application/soap+xml; charset=utf-8; action=\"{action}\"")
            }
        }
    }

    /// The field SOAPAction of its requests: the bindings of the standards name none, and what is
    /// not empty is refused by some (SOAP 1.1 §6.1.1).
    pub(super) fn soap_action(self) -> Option<String> {
        (self == Self::V11).then(|| "\"\"".to_owned())
    }

    /// Whether a role is one that the last recipient plays (SOAP 1.2 Part 1 §2.2).
    fn is_role_of_ours(self, role: Option<&str>) -> bool {
        match (self, role.map(str::trim)) {
            (_, None | Some("")) => true,
            (Self::V11, Some(role)) => role == "http://schemas.xmlsoap.org/soap/actor/next",
            (Self::V12, Some(role)) => {
                role == "http://www.w3.org/2003/05/soap-envelope/role/next"
                    || role == "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver"
            }
        }
    }
}

/// A request that was read.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    /// In which version.
    pub(crate) soap: SoapVersion,
    /// What it says of itself.
    pub(crate) addressing: Properties,
    /// What `lw:Properties` says.
    pub(crate) properties: Vec<(String, String)>,
    /// What the body holds; `None` if nothing.
    pub(crate) body: Option<NodeId>,
}

/// A fault and what the answer to it is written in.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The fault.
    pub(crate) fault: Fault,
    /// The version of the request, as far as it is known.
    pub(crate) soap: SoapVersion,
    /// What the request said of itself.
    pub(crate) addressing: Properties,
}

impl Envelope {
    /// Reads an envelope.
    ///
    /// # Errors
    /// What is none of the two, has other than one element in its body, or demands that something
    /// is understood that is not.
    pub(crate) fn read(tree: &Tree<'_>) -> Result<Self, Box<Refusal>> {
        let mut envelope = Self {
            soap: SoapVersion::V11,
            addressing: Properties::default(),
            properties: Vec::new(),
            body: None,
        };
        match envelope.fill(tree) {
            Ok(()) => Ok(envelope),
            Err(fault) => {
                let Self { soap, addressing, .. } = envelope;
                Err(Box::new(Refusal { fault, soap, addressing }))
            }
        }
    }

    fn fill(&mut self, tree: &Tree<'_>) -> Result<(), Fault> {
        let root = tree.root();
        let name = tree.name(root);
        if name.local != "Envelope" {
            return Err(Fault::new(FaultKind::Sender, "not an envelope of SOAP"));
        }
        self.soap = match name.uri {
            SOAP11 => SoapVersion::V11,
            SOAP12 => SoapVersion::V12,
            _ => return Err(Fault::new(FaultKind::VersionMismatch, "neither SOAP 1.1 nor 1.2")),
        };
        let uri = self.soap.uri();
        let Some(body) = tree.child(root, uri, "Body") else {
            return Err(Fault::new(FaultKind::Sender, "an envelope without Body"));
        };
        let mut unknown = Vec::new();
        if let Some(header) = tree.child(root, uri, "Header") {
            for block in tree.elements(header) {
                self.header(tree, block, &mut unknown)?;
            }
        }
        if !unknown.is_empty() {
            let what = "a header that must be understood is not";
            return Err(Fault::new(FaultKind::MustUnderstand, what).of_names(unknown));
        }
        let mut content = tree.elements(body);
        self.body = content.next();
        if content.next().is_some() {
            return Err(Fault::new(FaultKind::Sender, "a body of several elements"));
        }
        Ok(())
    }

    fn header(
        &mut self,
        tree: &Tree<'_>,
        block: NodeId,
        unknown: &mut Vec<(String, String)>,
    ) -> Result<(), Fault> {
        let uri = self.soap.uri();
        let role = if self.soap == SoapVersion::V11 { "actor" } else { "role" };
        if !self.soap.is_role_of_ours(tree.attribute(block, uri, role)) {
            return Ok(());
        }
        if self.addressing.take(tree, block)? {
            return Ok(());
        }
        if tree.is(block, LW, "Properties") {
            return self.take_properties(tree, block);
        }
        // Reference parameters of addresses that we gave have none; others mean nothing to us.
        let must = tree.attribute(block, uri, "mustUnderstand").map(str::trim);
        if matches!(must, Some("1" | "true")) && unknown.len() < MAX_PROPERTIES {
            let name = tree.name(block);
            unknown.push((name.uri.to_owned(), name.local.to_owned()));
        }
        Ok(())
    }

    fn take_properties(&mut self, tree: &Tree<'_>, block: NodeId) -> Result<(), Fault> {
        let mut bytes = 0;
        for property in tree.elements(block).filter(|it| tree.is(*it, LW, "Property")) {
            let name = tree.attribute(property, "", "name").unwrap_or("").to_owned();
            let value = tree.text(property).into_owned();
            bytes += name.len() + value.len();
            if self.properties.len() == MAX_PROPERTIES || bytes > MAX_PROPERTY_BYTES {
                return Err(Fault::new(FaultKind::Sender, "over 64 properties, or over 16 KiB"));
            }
            self.properties.push((name, value));
        }
        Ok(())
    }
}

/// Appends XML that is well-formed as it stands.
pub(super) fn raw(writer: &mut Writer, xml: &str) {
    // Ends a start tag that is open.
    writer.text("");
    let mut out = writer.take();
    out.extend_from_slice(xml.as_bytes());
    *writer = Writer::onto(out);
}

/// An envelope with what `body` writes; headers and further blocks as they are given.
pub(super) fn envelope(
    soap: SoapVersion,
    headers: Option<&Headers<'_>>,
    blocks: impl FnOnce(&mut Writer),
    body: impl FnOnce(&mut Writer),
) -> Vec<u8> {
    let mut header = Writer::new();
    if let Some(headers) = headers {
        headers.write(&mut header);
    }
    blocks(&mut header);
    let mut writer = Writer::new();
    writer.start("s:Envelope");
    writer.namespace("s", soap.uri());
    if !header.is_empty() {
        writer.start("s:Header");
        raw(&mut writer, &String::from_utf8(header.finish()).unwrap_or_default());
        writer.end("s:Header");
    }
    writer.start("s:Body");
    body(&mut writer);
    writer.end("s:Body");
    writer.end("s:Envelope");
    writer.finish()
}

/// Writes the blocks that say what was not understood (SOAP 1.2 Part 1 §5.4.8).
pub(super) fn write_not_understood(writer: &mut Writer, soap: SoapVersion, fault: &Fault) {
    if soap != SoapVersion::V12 || fault.kind != FaultKind::MustUnderstand {
        return;
    }
    for (uri, local) in &fault.names {
        writer.start("s:NotUnderstood");
        writer.namespace("s", SOAP12);
        if uri.is_empty() {
            writer.attribute("qname", local);
        } else {
            writer.namespace("q", uri);
            writer.attribute("qname", &format!("q:{local}"));
        }
        writer.end("s:NotUnderstood");
    }
}

/// Writes a fault as the content of the body (SOAP 1.1 §4.4, SOAP 1.2 Part 1 §5.4).
pub(super) fn write_fault(writer: &mut Writer, soap: SoapVersion, fault: &Fault, now_ms: i64) {
    let reason = if is_text(&fault.reason) { &*fault.reason } else { "" };
    writer.start("s:Fault");
    let code = match (soap, fault.kind) {
        (_, FaultKind::VersionMismatch) => "s:VersionMismatch",
        (_, FaultKind::MustUnderstand) => "s:MustUnderstand",
        (SoapVersion::V11, kind) if kind.is_sender() => "s:Client",
        (SoapVersion::V11, _) => "s:Server",
        (SoapVersion::V12, kind) if kind.is_sender() => "s:Sender",
        (SoapVersion::V12, _) => "s:Receiver",
    };
    let has_detail = matches!(fault.kind, FaultKind::Base(..));
    match soap {
        SoapVersion::V11 => {
            // WS-Addressing 1.0 SOAP Binding §6.2: its own code is all there is.
            if let Some((uri, name)) = fault.kind.subcode() {
                writer.start("faultcode");
                writer.namespace("wsa", uri);
                writer.text(&format!("wsa:{name}"));
                writer.end("faultcode");
            } else {
                text(writer, "faultcode", code);
            }
            text(writer, "faultstring", reason);
            if has_detail {
                writer.start("detail");
                fault.write_detail(writer, now_ms);
                writer.end("detail");
            }
        }
        SoapVersion::V12 => {
            writer.start("s:Code");
            text(writer, "s:Value", code);
            if let Some((_, name)) = fault.kind.subcode() {
                writer.start("s:Subcode");
                writer.start("s:Value");
                writer.namespace("wsa", WSA);
                writer.text(&format!("wsa:{name}"));
                writer.end("s:Value");
                writer.end("s:Subcode");
            }
            writer.end("s:Code");
            writer.start("s:Reason");
            writer.start("s:Text");
            writer.attribute("xml:lang", "en");
            writer.text(reason);
            writer.end("s:Text");
            writer.end("s:Reason");
            if has_detail {
                writer.start("s:Detail");
                fault.write_detail(writer, now_ms);
                writer.end("s:Detail");
            }
        }
    }
    writer.end("s:Fault");
}

/// The status of HTTP that a fault has: 500 with SOAP 1.1 (SOAP 1.1 §6.2), in 1.2 400 where the
/// sender is at fault (SOAP 1.2 Part 2 §7.5.2.2).
pub(super) fn status(soap: SoapVersion, fault: &Fault) -> u16 {
    if soap == SoapVersion::V12 && fault.kind.is_sender() { 400 } else { 500 }
}
