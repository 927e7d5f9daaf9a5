//! A small tree of XML elements: what requests of UDDI are read into, and what of an entity is kept
//! as it came.

use super::refusal::{Reason, Refusal};
use crate::xml::{Attribute, Node, Reader, escape};

/// Most elements of a document: a request with the most entities that are taken has fewer.
pub(crate) const MAX_ELEMENTS: usize = 50_000;
/// The namespace of `xml:lang`.
pub(crate) const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// An element with all that is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// Namespace URI, if it is in one.
    pub(crate) namespace: Option<String>,
    /// Local name.
    pub(crate) name: String,
    /// Attributes, without declarations of namespaces.
    pub(crate) attributes: Vec<Attribute>,
    /// Elements in it.
    pub(crate) children: Vec<Element>,
    /// All character data in it, not in its children.
    pub(crate) text: String,
}

impl Element {
    /// Reads a document.
    ///
    /// # Errors
    /// What is no XML, has a document type, or is deeper or has more elements than is taken.
    pub(crate) fn parse(document: &str) -> Result<Self, Refusal> {
        let mut reader = Reader::new(document);
        let mut open: Vec<Self> = Vec::new();
        let mut root = None;
        let mut count = 0;
        loop {
            let node = reader.next_node().map_err(|error| match error {
                crate::Error::Limit(line) => Refusal::new(Reason::MessageTooLarge, line),
                other => Refusal::malformed(other.to_string()),
            })?;
            match node {
                None => break,
                Some(Node::Start { namespace, name, attributes }) => {
                    count += 1;
                    if count > MAX_ELEMENTS {
                        let line = format!("over {MAX_ELEMENTS} elements; send fewer at once");
                        return Err(Refusal::new(Reason::MessageTooLarge, line));
                    }
                    open.push(Self { namespace, name, attributes, ..Self::default() });
                }
                Some(Node::Text(text)) => {
                    if let Some(element) = open.last_mut() {
                        element.text.push_str(&text);
                    }
                }
                Some(Node::End) => {
                    let Some(element) = open.pop() else { continue };
                    match open.last_mut() {
                        Some(parent) => parent.children.push(element),
                        None => root = Some(element),
                    }
                }
                Some(Node::Instruction) => {
                    return Err(Refusal::malformed("a processing instruction; send none"));
                }
            }
        }
        root.ok_or_else(|| Refusal::malformed("no element at all"))
    }

    /// Whether it has this name in this namespace.
    pub(crate) fn is(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref() == Some(namespace)
    }

    /// The value of an attribute without a namespace.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|one| one.namespace.is_none() && one.name == name);
        found.map(|one| one.value.as_str())
    }

    /// The value of `xml:lang`.
    pub(crate) fn lang(&self) -> Option<&str> {
        let is_lang = |one: &&Attribute| {
            one.name == "lang" && one.namespace.as_deref() == Some(XML_NAMESPACE)
        };
        self.attributes.iter().find(is_lang).map(|one| one.value.as_str())
    }

    /// The first child with this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children with this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Appends it as it stands in a document whose default namespace is its own.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('<');
        out.push_str(&self.name);
        for attribute in &self.attributes {
            match attribute.namespace.as_deref() {
                None => out.push(' '),
                Some(XML_NAMESPACE) => out.push_str(" xml:"),
                // Others are refused before anything is kept.
                Some(_) => continue,
            }
            out.push_str(&attribute.name);
            out.push_str("=\"");
            escape(&attribute.value, out);
            out.push('"');
        }
        if self.children.is_empty() && self.text.is_empty() {
            out.push_str("/>");
            return;
        }
        out.push('>');
        escape(&self.text, out);
        for child in &self.children {
            child.write(out);
        }
        out.push_str("</");
        out.push_str(&self.name);
        out.push('>');
    }
}
