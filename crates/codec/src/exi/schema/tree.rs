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

/// A schema in a document; node 0 is `xs:schema`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    scopes: Vec<Scope>,
    /// What is declared around it.
    outer: Option<u32>,
}

/// Most declarations of prefixes in one document, with those repeated, and bytes of the longest
/// namespace: both are looked through for each name that refers to something.
const MAX_DECLARATIONS: usize = 8192;
const MAX_NAMESPACE_BYTES: usize = 4096;
/// Most schemas in one document; each repeats what is declared around it.
const MAX_SCHEMAS: usize = 1000;

fn check_declarations(reader: &Reader<'_>, declared: usize) -> Result<(), Error> {
    let uris = reader.declarations().iter().map(|one| reader.names().uri(one.uri).len());
    let longest = uris.max().unwrap_or(0);
    let what = if declared > MAX_DECLARATIONS {
        format!("a schema document declares over {MAX_DECLARATIONS} prefixes")
    } else if longest > MAX_NAMESPACE_BYTES {
        format!("a namespace of {longest} bytes is over {MAX_NAMESPACE_BYTES}")
    } else {
        return Ok(());
    };
    Err(Error::Limit { codec: CODEC, what })
}

fn is_schema(reader: &Reader<'_>, start: &Start<'_>) -> bool {
    let name = reader.names().name(start.name);
    name.uri == XSD && name.local == "schema"
}

impl Tree {
    /// Reads a document: a schema, or the schemas that it holds, as the types of a WSDL do.
    pub(super) fn read(document: &[u8], limits: &Limits) -> Result<Vec<Self>, Error> {
        let limit = |what: String| Error::Limit { codec: CODEC, what };
        if document.len() > limits.message_bytes {
            let bytes = document.len();
            return Err(limit(format!("a schema document of {bytes} bytes is over message_bytes")));
        }
        let text = crate::xml::to_utf8(document, limits)?;
        let mut reader = Reader::of(&text, limits);
        let mut trees: Vec<Self> = Vec::new();
        // What is around schemas: its declarations, and the innermost of each open element.
        let (mut around, mut above) = (Self::default(), Vec::new());
        let mut open: Vec<u32> = Vec::new();
        let (mut skipped, mut declared) = (0_usize, 0_usize);
        loop {
            let offset = reader.offset();
            let event = reader.next()?;
            if matches!(event, Event::Start(_)) {
                declared += reader.declarations().len();
                check_declarations(&reader, declared)?;
            }
            match event {
                Event::Start(_) if skipped > 0 => skipped += 1,
                Event::Start(start) if open.is_empty() && !is_schema(&reader, &start) => {
                    let scope = above.last().copied().flatten();
                    above.push(around.declare(&reader, &start, scope));
                }
                Event::Start(start) => {
                    if open.is_empty() {
                        if trees.len() == MAX_SCHEMAS {
                            return Err(limit(format!("over {MAX_SCHEMAS} schemas in a document")));
                        }
                        let tree = around.within(above.last().copied().flatten());
                        declared += tree.scopes.len();
                        check_declarations(&reader, declared)?;
                        trees.push(tree);
                    }
                    let Some(tree) = trees.last_mut() else { continue };
                    match tree.start(&reader, &start, offset, open.last().copied()) {
                        Some(node) => open.push(node),
                        None => skipped = 1,
                    }
                }
                Event::End { .. } if skipped > 0 => skipped -= 1,
                Event::End { .. } if open.is_empty() => {
                    above.pop();
                }
                Event::End { .. } => {
                    open.pop();
                }
                Event::Eof if trees.is_empty() => {
                    let what = "there is no xs:schema in the document".to_owned();
                    return Err(Error::Malformed { codec: CODEC, offset: 0, what });
                }
                Event::Eof => return Ok(trees),
                _ => {}
            }
        }
    }

    /// A tree with the declarations that are in scope.
    fn within(&self, scope: Option<u32>) -> Self {
        let mut chain = Vec::new();
        let mut at = scope;
        while let Some(found) = at.and_then(|at| self.scopes.get(at as usize)) {
            chain.push(found);
            at = found.parent;
        }
        let mut tree = Self::default();
        for found in chain.into_iter().rev() {
            tree.outer = tree.scope(tree.outer, &found.prefix, &found.uri);
        }
        tree
    }

    fn scope(&mut self, parent: Option<u32>, prefix: &str, uri: &str) -> Option<u32> {
        let index = u32::try_from(self.scopes.len()).ok()?;
        self.scopes.push(Scope { parent, prefix: prefix.into(), uri: uri.into() });
        Some(index)
    }

    /// Adds the declarations of an element; the scope inside.
    fn declare(
        &mut self,
        reader: &Reader<'_>,
        start: &Start<'_>,
        mut scope: Option<u32>,
    ) -> Option<u32> {
        for declaration in reader.declarations() {
            let (prefix, uri) = (declaration.prefix(start), reader.names().uri(declaration.uri));
            scope = self.scope(scope, prefix, uri);
        }
        scope
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
        let scope = parent.map_or(self.outer, |parent| self.node(parent).scope);
        let scope = self.declare(reader, start, scope);
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
