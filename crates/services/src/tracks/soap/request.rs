//! Reading a request: envelope, mandatory headers, the one operation.

use super::{Code, Fault, Operation, Version};
use crate::Error;
use crate::xml::{Attribute, Node, Reader};

/// Longest `number` that is looked at, in characters: white space around it included.
const MAX_NUMBER_LEN: usize = 64;
/// Most header blocks that a fault lists as not understood.
const MAX_LISTED_BLOCKS: usize = 8;

/// Which version `document` speaks and which number it asks an operation for. `expected` is the
/// version of its media type: what a message of no known version is answered in.
///
/// # Errors
/// The fault to answer with.
pub fn parse(
    document: &str,
    expected: Version,
    operation: &Operation,
) -> Result<(Version, usize), Fault> {
    let mut parser = Parser { reader: Reader::new(document), version: expected, of: *operation };
    parser.open_envelope()?;
    let (mut not_understood, mut child) = (Vec::new(), parser.child()?);
    if child.as_ref().is_some_and(|child| parser.is_soap(child, "Header")) {
        not_understood = parser.header()?;
        child = parser.child()?;
    }
    if !child.as_ref().is_some_and(|child| parser.is_soap(child, "Body")) {
        return Err(parser.sender("the envelope has no Body where it belongs; add one"));
    }
    let outcome = parser.operation();
    if outcome.is_ok() {
        parser.close_envelope()?;
    }
    // Mandatory headers come before anything in the body is processed (SOAP 1.2 part 1 §2.6).
    if let Some((_, name)) = not_understood.first() {
        let reason = format!("header block '{name}' is mandatory but not understood; leave it out");
        return Err(parser.fault(Code::MustUnderstand(not_understood), reason));
    }
    outcome.map(|number| (parser.version, number))
}

/// A start tag.
struct Tag {
    namespace: Option<String>,
    name: String,
    attributes: Vec<Attribute>,
}

struct Parser<'a> {
    reader: Reader<'a>,
    version: Version,
    of: Operation,
}

impl Parser<'_> {
    fn open_envelope(&mut self) -> Result<(), Fault> {
        let root = self.child()?;
        let version = root
            .as_ref()
            .filter(|root| root.name == "Envelope")
            .and_then(|root| Version::of_namespace(root.namespace.as_deref()?));
        match version {
            Some(version) => {
                self.version = version;
                Ok(())
            }
            None => {
                let reason = "the root element is no SOAP 1.1 or 1.2 Envelope; send one of these";
                Err(self.fault(Code::VersionMismatch, reason.into()))
            }
        }
    }

    /// Reads the header; gives the mandatory blocks meant for this node, as it knows none.
    fn header(&mut self) -> Result<Vec<(String, String)>, Fault> {
        let mut blocks = Vec::new();
        while let Some(block) = self.child()? {
            self.skip()?;
            let mandatory = self.is_mandatory(&block)? && self.is_for_us(&block);
            if mandatory && blocks.len() < MAX_LISTED_BLOCKS {
                blocks.push((block.namespace.unwrap_or_default(), block.name));
            }
        }
        Ok(blocks)
    }

    /// SOAP 1.1 §4.2.3, SOAP 1.2 part 1 §5.2.3.
    fn is_mandatory(&self, block: &Tag) -> Result<bool, Fault> {
        match self.attribute(block, "mustUnderstand") {
            None => Ok(false),
            Some(value) => match value.trim() {
                "1" | "true" => Ok(true),
                "0" | "false" => Ok(false),
                _ => Err(self.sender("mustUnderstand is neither true nor false; use 1 or 0")),
            },
        }
    }

    /// Whether a header block is for the ultimate receiver or for whoever is next: SOAP 1.1
    /// §4.2.2, SOAP 1.2 part 1 §2.2.
    fn is_for_us(&self, block: &Tag) -> bool {
        match self.version {
            Version::Soap11 => {
                let actor = self.attribute(block, "actor").map_or("", str::trim);
                matches!(actor, "" | "http://schemas.xmlsoap.org/soap/actor/next")
            }
            Version::Soap12 => {
                let role = self.attribute(block, "role").map_or("", str::trim);
                let ours = role.strip_prefix("http://www.w3.org/2003/05/soap-envelope/role/");
                role.is_empty() || matches!(ours, Some("next" | "ultimateReceiver"))
            }
        }
    }

    /// Reads the body's content and its end.
    fn operation(&mut self) -> Result<usize, Fault> {
        let Some(operation) = self.child()? else {
            let what = format!("the Body is empty; put a {} element there", self.of.name);
            return Err(self.in_body(&what));
        };
        if !self.is_ours(&operation, self.of.name) {
            let (name, ours) = (&operation.name, self.of.name);
            let what = format!("no operation '{name}'; the one that exists is {ours}");
            return Err(self.in_body(&what));
        }
        self.check_encoding(&operation)?;
        let Some(parameter) = self.child()? else {
            let Operation { name, last, .. } = self.of;
            return Err(self.in_body(&format!("{name} has no number; give one from 1 to {last}")));
        };
        if !self.is_ours(&parameter, "number") {
            let (name, ours) = (&parameter.name, self.of.name);
            let what = format!("'{name}' is no parameter of {ours}; give number");
            return Err(self.in_body(&what));
        }
        let number = self.number()?;
        if self.child()?.is_some() {
            let what = format!("{} takes one number and nothing else", self.of.name);
            return Err(self.in_body(&what));
        }
        if self.child()?.is_some() {
            return Err(self.in_body("the Body has more than one element; send one at a time"));
        }
        Ok(number)
    }

    /// Messages are literal. SOAP 1.2 part 1 §5.1.1 and §5.4.6 name what any other encoding gets;
    /// in SOAP 1.1 the attribute binds nobody (§4.1.1).
    fn check_encoding(&self, operation: &Tag) -> Result<(), Fault> {
        let none = "http://www.w3.org/2003/05/soap-envelope/encoding/none";
        match (self.version, self.attribute(operation, "encodingStyle").map_or("", str::trim)) {
            (Version::Soap12, style) if !style.is_empty() && style != none => {
                let reason = "messages are literal; leave encodingStyle out".to_owned();
                Err(self.fault(Code::DataEncodingUnknown, reason))
            }
            _ => Ok(()),
        }
    }

    fn number(&mut self) -> Result<usize, Fault> {
        let Operation { thing, last, .. } = self.of;
        let mut text = String::new();
        loop {
            match self.node()? {
                Some(Node::Text(more)) if text.len() + more.len() <= MAX_NUMBER_LEN => {
                    text.push_str(&more);
                }
                Some(Node::End) => break,
                _ => {
                    let what = format!("number is not a number; give one from 1 to {last}");
                    return Err(self.in_body(&what));
                }
            }
        }
        let number = text.trim().parse().ok().filter(|number| (1..=last).contains(number));
        number.ok_or_else(|| {
            let text = text.trim();
            self.in_body(&format!("no {thing} '{text}'; the numbers are 1 to {last}"))
        })
    }

    /// Nothing may follow the body (SOAP 1.2 part 1 §5.1), nor the envelope.
    fn close_envelope(&mut self) -> Result<(), Fault> {
        if self.child()?.is_some() {
            return Err(self.sender("something follows the Body; leave it out"));
        }
        match self.node()? {
            None => Ok(()),
            Some(_) => Err(self.sender("something follows the Envelope; leave it out")),
        }
    }

    /// The next child of the open element; `None` at the element's end, which it consumes.
    fn child(&mut self) -> Result<Option<Tag>, Fault> {
        loop {
            match self.node()? {
                Some(Node::Start { namespace, name, attributes }) => {
                    return Ok(Some(Tag { namespace, name, attributes }));
                }
                Some(Node::Text(text)) if text.trim().is_empty() => {}
                Some(Node::Text(_)) => {
                    return Err(self.sender("text where only elements may be; leave it out"));
                }
                Some(Node::End) | None => return Ok(None),
                Some(Node::Instruction) => {
                    let what = "a processing instruction, which SOAP forbids; leave it out";
                    return Err(self.sender(what));
                }
            }
        }
    }

    /// Reads on to the end of the element just opened.
    fn skip(&mut self) -> Result<(), Fault> {
        let mut open = 1;
        while open > 0 {
            match self.node()? {
                Some(Node::Start { .. }) => open += 1,
                Some(Node::End) | None => open -= 1,
                Some(Node::Text(_) | Node::Instruction) => {}
            }
        }
        Ok(())
    }

    fn node(&mut self) -> Result<Option<Node>, Fault> {
        self.reader.next_node().map_err(|error| match error {
            Error::Caller(line) | Error::Peer(line) | Error::Limit(line) => self.sender(&line),
        })
    }

    fn is_soap(&self, tag: &Tag, name: &str) -> bool {
        tag.name == name && tag.namespace.as_deref() == Some(self.version.namespace())
    }

    fn attribute<'t>(&self, tag: &'t Tag, name: &str) -> Option<&'t str> {
        let namespace = Some(self.version.namespace());
        let found = |attribute: &&Attribute| {
            attribute.name == name && attribute.namespace.as_deref() == namespace
        };
        tag.attributes.iter().find(found).map(|attribute| attribute.value.as_str())
    }

    fn sender(&self, reason: &str) -> Fault {
        self.fault(Code::Sender { in_body: false }, reason.to_owned())
    }

    fn in_body(&self, reason: &str) -> Fault {
        self.fault(Code::Sender { in_body: true }, reason.to_owned())
    }

    fn fault(&self, code: Code, reason: String) -> Fault {
        Fault { version: self.version, code, reason, service: self.of.namespace }
    }

    fn is_ours(&self, tag: &Tag, name: &str) -> bool {
        tag.name == name && tag.namespace.as_deref() == Some(self.of.namespace)
    }
}
