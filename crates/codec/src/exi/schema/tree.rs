//! One schema document as a tree: elements of XML Schema with their attributes without namespace,
//! and what each prefix means there. Annotations and foreign markup are left out.

use super::{CODEC, XSD};
use crate::xml::{Event, Reader, Start};
use crate::{Error, Limits};

/// What XML Schema names its elements, as far as grammars need them; sorted.
const TAGS: [&str; 37] = [
    "all",
    "any",
    "anyAttribute",
    "attribute",
    "attributeGroup",
    "choice",
    "complexContent",
    "complexType",
    "element",
    "enumeration",
    "extension",
    "fractionDigits",
    "group",
    "import",
    "include",
    "key",
    "keyref",
    "length",
    "list",
    "maxExclusive",
    "maxInclusive",
    "maxLength",
    "minExclusive",
    "minInclusive",
    "minLength",
    "notation",
    "pattern",
    "redefine",
    "restriction",
    "schema",
    "sequence",
    "simpleContent",
    "simpleType",
    "totalDigits",
    "union",
    "unique",
    "whiteSpace",
];

/// An element of XML Schema.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Local name, one of [`TAGS`].
    pub(super) tag: &'static str,
    /// Where it begins in its document, in bytes.
    pub(super) offset: u64,
    /// Its children, in order.
    pub(super) children: Vec<u32>,
    attributes: Vec<(Box<str>, Box<str>)>,
    scope: Option<u32>,
}

impl Node {
    /// An attribute, white space at its ends removed.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.raw(name).map(|value| value.trim_matches([' ', '\t', '\n', '\r']))
    }

    /// An attribute as it stands there.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| &**key == name).map(|(_, value)| &**value)
    }
}

/// A declaration of a prefix; the chain of its parents is what is in scope.
#[derive(Clone, Debug)]
struct Scope {
    parent: Option<u32>,
    prefix: Box<str>,
    uri: Box<str>,
}

/// A document; node 0 is `xs:schema`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    scopes: Vec<Scope>,
}

impl Tree {
    /// Reads a document.
    pub(super) fn read(document: &[u8], limits: &Limits) -> Result<Self, Error> {
        if document.len() > limits.message_bytes {
            let what =
                format!("a schema document of {} bytes is over message_bytes", document.len());
            return Err(Error::Limit { codec: CODEC, what });
        }
        let text = crate::xml::to_utf8(document, limits)?;
        let mut reader = Reader::of(&text, limits);
        let mut tree = Self::default();
        let mut open: Vec<u32> = Vec::new();
        let mut skipped = 0_usize;
        loop {
            let offset = reader.offset();
            match reader.next()? {
                Event::Start(_) if skipped > 0 => skipped += 1,
                Event::Start(start) => {
                    match tree.start(&reader, &start, offset, open.last().copied()) {
                        Some(node) => open.push(node),
                        None => skipped = 1,
                    }
                }
                Event::End { .. } if skipped > 0 => skipped -= 1,
                Event::End { .. } => {
                    open.pop();
                }
                Event::Eof => break,
                _ => {}
            }
        }
        match tree.nodes.first() {
            Some(root) if root.tag == "schema" => Ok(tree),
            _ => {
                let what = "the document element is not xs:schema".to_owned();
                Err(Error::Malformed { codec: CODEC, offset: 0, what })
            }
        }
    }

    /// Enters an element; `None` if it says nothing to grammars.
    fn start(
        &mut self,
        reader: &Reader<'_>,
        start: &Start<'_>,
        offset: usize,
        parent: Option<u32>,
    ) -> Option<u32> {
        let name = reader.names().name(start.name);
        let tag = TAGS.iter().find(|&&tag| tag == name.local).filter(|_| name.uri == XSD)?;
        let mut scope = parent.and_then(|parent| self.node(parent).scope);
        for declaration in reader.declarations() {
            let (prefix, uri) = (declaration.prefix(start), reader.names().uri(declaration.uri));
            let made = Scope { parent: scope, prefix: prefix.into(), uri: uri.into() };
            scope = Some(u32::try_from(self.scopes.len()).ok()?);
            self.scopes.push(made);
        }
        let mut attributes = Vec::new();
        for attribute in reader.attributes() {
            let name = reader.names().name(attribute.name);
            if name.uri.is_empty() {
                attributes.push((name.local.into(), attribute.value(start).into()));
            }
        }
        let index = u32::try_from(self.nodes.len()).ok()?;
        let offset = offset as u64;
        self.nodes.push(Node { tag, offset, children: Vec::new(), attributes, scope });
        if let Some(parent) = parent {
            self.nodes[parent as usize].children.push(index);
        }
        Some(index)
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// A node by its index.
    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// What a prefix means at a node; the empty prefix is the default namespace.
    pub(super) fn namespace(&self, node: u32, prefix: &str) -> Option<&str> {
        let mut scope = self.node(node).scope;
        while let Some(at) = scope {
            let found = &self.scopes[at as usize];
            if &*found.prefix == prefix {
                return Some(&found.uri);
            }
            scope = found.parent;
        }
        match prefix {
            "" => Some(""),
            "xml" => Some("http://www.w3.org/XML/1998/namespace"),
            _ => None,
        }
    }
}
