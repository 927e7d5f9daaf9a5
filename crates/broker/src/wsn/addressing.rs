//! Endpoint references and message addressing properties: WS-Addressing 1.0, and that of August
//! 2004 for peers who still have it.

use codec::xml::Writer;

use super::fault::{Fault, FaultKind};
use super::names::{WSA, WSA_2004, WSA_2004_ANONYMOUS, WSA_ANONYMOUS, WSA_NONE};
use super::soap::raw;
use super::tree::{NodeId, Tree};

/// Longest address in bytes.
pub(crate) const MAX_ADDRESS_BYTES: usize = 2048;
/// Most reference parameters of an endpoint: they come back with every message to it.
pub(crate) const MAX_PARAMETERS: usize = 16;
/// Bytes of all of them.
pub(crate) const MAX_PARAMETER_BYTES: usize = 8 << 10;

/// Which WS-Addressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WsaVersion {
    /// Of August 2004.
    V2004,
    /// 1.0.
    V2005,
}

impl WsaVersion {
    /// Its namespace.
    #[must_use]
    pub(crate) fn uri(self) -> &'static str {
        match self {
            Self::V2004 => WSA_2004,
            Self::V2005 => WSA,
        }
    }

    fn of_uri(uri: &str) -> Option<Self> {
        [Self::V2004, Self::V2005].into_iter().find(|version| version.uri() == uri)
    }
}

/// An endpoint reference (WS-Addressing 1.0 Core §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Where it is.
    pub(crate) address: String,
    /// In which version it was written.
    pub(crate) version: WsaVersion,
    /// Reference parameters, and properties of 2004, each an element of its own.
    pub(crate) parameters: Vec<String>,
}

impl Endpoint {
    /// Reads one from an element of the type `EndpointReferenceType`.
    ///
    /// # Errors
    /// What is missing, or beyond a bound.
    pub(crate) fn read(tree: &Tree<'_>, element: NodeId) -> Result<Self, &'static str> {
        let found = tree.elements(element).find_map(|child| {
            let name = tree.name(child);
            let version = WsaVersion::of_uri(name.uri).filter(|_| name.local == "Address")?;
            Some((child, version))
        });
        let (address, version) = found.ok_or("an endpoint reference without wsa:Address")?;
        let address = tree.text(address).trim().to_owned();
        if address.is_empty() || address.len() > MAX_ADDRESS_BYTES {
            return Err("an address has 1 to 2,048 bytes");
        }
        if !address.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
            return Err("an address is a URI, in ASCII and without white space");
        }
        let mut parameters = Vec::new();
        let mut bytes = 0;
        let lists = tree.elements(element).filter(|child| {
            let name = tree.name(*child);
            name.uri == version.uri()
                && matches!(name.local, "ReferenceParameters" | "ReferenceProperties")
        });
        for parameter in lists.flat_map(|list| tree.elements(list)) {
            let parameter = tree.standalone(parameter);
            bytes += parameter.len();
            if parameters.len() == MAX_PARAMETERS || bytes > MAX_PARAMETER_BYTES {
                return Err("over 16 reference parameters, or over 8 KiB of them");
            }
            parameters.push(parameter);
        }
        Ok(Self { address, version, parameters })
    }

    /// Whether messages can be posted there.
    #[must_use]
    pub(crate) fn is_http(&self) -> bool {
        let has = |scheme: &str| {
            let head = self.address.get(..scheme.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
                && self.address.len() > scheme.len()
        };
        // Addresses in these namespaces stand for something else.
        let is_named = [WSA, WSA_2004].iter().any(|uri| self.address.starts_with(uri));
        (has("http://") || has("https://")) && !is_named
    }
}

/// Writes a reference to an address of ours.
pub(super) fn write_reference(writer: &mut Writer, element: &str, address: &str) {
    writer.start(element);
    writer.start("wsa:Address");
    writer.namespace("wsa", WSA);
    writer.text(address);
    writer.end("wsa:Address");
    writer.end(element);
}

/// What a request says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    /// In which version, if any of the headers was there.
    pub(crate) version: Option<WsaVersion>,
    /// The message's id.
    pub(crate) message_id: Option<String>,
    /// The sender wants no answer.
    pub(crate) no_answer: bool,
}

impl Properties {
    /// Takes a header block if it is one of WS-Addressing; whether it was.
    ///
    /// # Errors
    /// Answers to another address than that of the connection
    /// (WS-Addressing 1.0 SOAP Binding §6.4.1.9).
    pub(super) fn take(&mut self, tree: &Tree<'_>, block: NodeId) -> Result<bool, Fault> {
        let name = tree.name(block);
        let Some(version) = WsaVersion::of_uri(name.uri) else { return Ok(false) };
        self.version.get_or_insert(version);
        match name.local {
            "MessageID" => {
                let id = tree.text(block).trim().to_owned();
                self.message_id = Some(id).filter(|id| id.len() <= MAX_ADDRESS_BYTES);
            }
            "ReplyTo" | "FaultTo" => {
                let endpoint = Endpoint::read(tree, block).map_err(|what| {
                    Fault::new(FaultKind::Addressing("InvalidAddressingHeader"), what)
                })?;
                match &*endpoint.address {
                    WSA_ANONYMOUS | WSA_2004_ANONYMOUS => {}
                    WSA_NONE => self.no_answer |= name.local == "ReplyTo",
                    _ => {
                        let what = "answers go to the anonymous address only";
                        let kind = FaultKind::Addressing("OnlyAnonymousAddressSupported");
                        return Err(Fault::new(kind, what));
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

/// The headers of a message of ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers<'a> {
    pub(super) version: WsaVersion,
    pub(super) action: &'a str,
    pub(super) to: Option<&'a str>,
    pub(super) message_id: Option<&'a str>,
    pub(super) relates_to: Option<&'a str>,
    pub(super) parameters: &'a [String],
}

impl Headers<'_> {
    pub(super) fn write(&self, writer: &mut Writer) {
        let element = |writer: &mut Writer, name: &str, content: &str| {
            writer.start_prefixed("wsa", name);
            writer.namespace("wsa", self.version.uri());
            writer.text(content);
            writer.end_prefixed("wsa", name);
        };
        if let Some(to) = self.to {
            element(writer, "To", to);
        }
        element(writer, "Action", self.action);
        if let Some(id) = self.message_id {
            element(writer, "MessageID", id);
        }
        if let Some(id) = self.relates_to {
            element(writer, "RelatesTo", id);
        }
        for parameter in self.parameters {
            raw(writer, &self.marked(parameter));
        }
    }

    /// A reference parameter with the mark that it is one (WS-Addressing 1.0 SOAP Binding §3.3).
    fn marked(&self, parameter: &str) -> String {
        let is_end = |char: char| char.is_ascii_whitespace() || char == '>' || char == '/';
        if self.version == WsaVersion::V2004
            || parameter.contains("lwa:")
            || parameter.contains(":lwa")
        {
            return parameter.to_owned();
        }
        let at = parameter.find(is_end).unwrap_or(parameter.len());
        let (head, rest) = parameter.split_at(at);
        format!("{head} xmlns:lwa=\"{WSA}\" lwa:IsReferenceParameter=\"true\"{rest}")
    }
}
