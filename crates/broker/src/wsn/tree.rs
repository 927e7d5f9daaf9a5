//! A document of XML as a tree whose nodes know where in the text they stand.

use std::borrow::Cow;

use codec::xml::{Event, Name, NameId, Reader, XML_URI, is_nc_name};
use codec::{Error, Limits};

/// Most nodes of a document: each takes about a hundred bytes.
pub(super) const MAX_NODES: usize = 1 << 17;
/// Open elements: what people exchange has a dozen.
pub(super) const MAX_DEPTH: usize = 100;
/// Declarations in scope at an element: those who write all they know declare some thirty.
pub(super) const MAX_DECLARED: u32 = 64;
/// Bytes of names that a document may bring.
const MAX_TABLE_BYTES: usize = 4 << 20;
/// In errors.
const NAME: &str = "xml";

/// A node of a [`Tree`], in document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The document itself.
    pub const DOCUMENT: Self = Self(0);

    /// For a list with a place for each node.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    /// The document.
    Document,
    /// An element, with the prefix as written.
    Element { name: NameId, prefix: &'a str },
    /// Character data.
    Text(Cow<'a, str>),
    /// A comment.
    Comment(Cow<'a, str>),
    /// A processing instruction.
    Pi { target: &'a str, data: Cow<'a, str> },
}

#[derive(Debug)]
struct Node<'a> {
    kind: Kind<'a>,
    parent: u32,
    /// The number behind its last descendant.
    end: u32,
    /// Its attributes in the table of all.
    attributes: (u32, u32),
    /// The innermost declaration in scope, and one; 0 is none.
    scope: u32,
    /// Where in the text it stands.
    span: (usize, usize),
}

/// An attribute that is no declaration.
#[derive(Debug)]
pub(super) struct Attribute<'a> {
    pub(super) name: NameId,
    pub(super) prefix: &'a str,
    pub(super) value: Cow<'a, str>,
}

/// A namespace declaration.
#[derive(Debug)]
struct Declared<'a> {
    prefix: &'a str,
    uri: String,
    /// The one outside of it, and one; 0 is none.
    outer: u32,
    /// How many there are with those outside of it.
    depth: u32,
}

/// A document that was read whole. It has no document type: one is refused, so nothing in it stands
/// for more than itself.
#[derive(Debug)]
pub struct Tree<'a> {
    text: &'a str,
    reader: Reader<'a>,
    nodes: Vec<Node<'a>>,
    attributes: Vec<Attribute<'a>>,
    declared: Vec<Declared<'a>>,
    root: u32,
}

fn malformed(offset: usize, what: &str) -> Error {
    Error::Malformed { codec: NAME, offset: offset as u64, what: what.to_owned() }
}

/// Numbers of nodes and attributes are below [`MAX_NODES`].
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl<'a> Tree<'a> {
    /// Reads a document.
    ///
    /// # Errors
    /// What is not well-formed, with its offset; document types; more than 100 levels or
    /// 131,072 nodes.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let limits = Limits { depth: MAX_DEPTH, table_bytes: MAX_TABLE_BYTES, ..Limits::default() };
        let document = Node {
            kind: Kind::Document,
            parent: 0,
            end: 0,
            attributes: (0, 0),
            scope: 0,
            span: (0, text.len()),
        };
        let mut tree = Self {
            text,
            reader: Reader::of(text, &limits),
            nodes: vec![document],
            attributes: Vec::new(),
            declared: Vec::new(),
            root: 0,
        };
        tree.read()?;
        Ok(tree)
    }

    fn read(&mut self) -> Result<(), Error> {
        let mut open = vec![0_u32];
        let mut scope = vec![0_u32];
        loop {
            let from = self.reader.offset();
            let event = self.reader.next()?;
            if self.nodes.len() + self.attributes.len() + self.declared.len() >= MAX_NODES {
                let what = format!("a document of over {MAX_NODES} nodes");
                return Err(Error::Limit { codec: NAME, what });
            }
            let to = self.reader.offset();
            let parent = open.last().copied().unwrap_or(0);
            let within = scope.last().copied().unwrap_or(0);
            let kind = match event {
                Event::Declaration(_) => continue,
                Event::Doctype(_) => return Err(malformed(from, "a document type is refused")),
                Event::EntityRef(_) => return Err(malformed(from, "entities are not expanded")),
                Event::Start(start) => {
                    let scope_here = self.open_scope(&start, within)?;
                    let attributes = self.take_attributes(&start);
                    let kind = Kind::Element { name: start.name, prefix: start.prefix };
                    if self.root == 0 {
                        self.root = number(self.nodes.len());
                    }
                    open.push(number(self.nodes.len()));
                    scope.push(scope_here);
                    // White space before the root belongs to no event.
                    let span = (to - start.tag.len().min(to), to);
                    self.nodes.push(Node {
                        kind,
                        parent,
                        end: 0,
                        attributes,
                        scope: scope_here,
                        span,
                    });
                    continue;
                }
                Event::End { .. } => {
                    scope.pop();
                    if let Some(closed) = open.pop() {
                        self.close(closed, to);
                    }
                    continue;
                }
                Event::Text(text) => Kind::Text(text),
                Event::Comment(text) => Kind::Comment(text),
                Event::Pi { target, data } => Kind::Pi { target, data },
                Event::Eof => {
                    self.close(0, self.text.len());
                    return Ok(());
                }
            };
            let end = number(self.nodes.len() + 1);
            let span = (from, to);
            self.nodes.push(Node { kind, parent, end, attributes: (0, 0), scope: within, span });
        }
    }

    fn close(&mut self, node: u32, to: usize) {
        let end = number(self.nodes.len());
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.end = end;
            node.span.1 = to;
        }
    }

    fn open_scope(&mut self, start: &codec::xml::Start<'a>, outer: u32) -> Result<u32, Error> {
        let mut scope = outer;
        let mut depth = self.declaration(outer).map_or(0, |declared| declared.depth);
        for declaration in self.reader.declarations() {
            let uri = self.reader.names().uri(declaration.uri).to_owned();
            depth += 1;
            if depth > MAX_DECLARED {
                let what = format!("over {MAX_DECLARED} declarations of namespaces in scope");
                return Err(Error::Limit { codec: NAME, what });
            }
            let prefix = declaration.prefix(start);
            self.declared.push(Declared { prefix, uri, outer: scope, depth });
            scope = number(self.declared.len());
        }
        Ok(scope)
    }

    /// A declaration by its number and one.
    fn declaration(&self, number: u32) -> Option<&Declared<'a>> {
        self.declared.get((number as usize).checked_sub(1)?)
    }

    fn take_attributes(&mut self, start: &codec::xml::Start<'a>) -> (u32, u32) {
        let from = number(self.attributes.len());
        for attribute in self.reader.attributes() {
            self.attributes.push(Attribute {
                name: attribute.name,
                prefix: attribute.prefix(start),
                value: attribute.value(start),
            });
        }
        (from, number(self.attributes.len()))
    }

    fn node(&self, id: NodeId) -> Option<&Node<'a>> {
        self.nodes.get(id.index())
    }

    /// How many nodes there are: ids are below.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The root element.
    #[must_use]
    pub fn root(&self) -> NodeId {
        NodeId(self.root)
    }

    pub(super) fn kind(&self, id: NodeId) -> &Kind<'a> {
        self.node(id).map_or(&Kind::Document, |node| &node.kind)
    }

    /// What it stands in; `None` for the document.
    #[must_use]
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        (id != NodeId::DOCUMENT).then(|| NodeId(self.node(id).map_or(0, |node| node.parent)))
    }

    /// The first number that is not of a descendant.
    pub(super) fn end(&self, id: NodeId) -> u32 {
        self.node(id).map_or(0, |node| node.end)
    }

    /// The children, text and comments too.
    pub fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.end(id);
        let first = Some(id.0 + 1).filter(|first| *first < end);
        std::iter::successors(first, move |at| {
            Some(self.end(NodeId(*at))).filter(|next| *next > *at && *next < end)
        })
        .map(NodeId)
    }

    /// The children that are elements.
    pub fn elements(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.children(id).filter(|child| matches!(self.kind(*child), Kind::Element { .. }))
    }

    /// The name of an element; an empty one for others.
    #[must_use]
    pub fn name(&self, id: NodeId) -> Name<'_> {
        match self.kind(id) {
            Kind::Element { name, .. } => self.expanded(*name),
            _ => Name { uri_id: codec::xml::UriId::NONE, uri: "", local: "" },
        }
    }

    pub(super) fn expanded(&self, name: NameId) -> Name<'_> {
        self.reader.names().name(name)
    }

    /// Whether it is an element of this name.
    #[must_use]
    pub fn is(&self, id: NodeId, uri: &str, local: &str) -> bool {
        let name = self.name(id);
        name.uri == uri && name.local == local
    }

    /// The first child element of this name.
    #[must_use]
    pub fn child(&self, id: NodeId, uri: &str, local: &str) -> Option<NodeId> {
        self.elements(id).find(|child| self.is(*child, uri, local))
    }

    /// The attributes of an element, declarations apart.
    pub(super) fn attributes(&self, id: NodeId) -> &[Attribute<'a>] {
        let (from, to) = self.node(id).map_or((0, 0), |node| node.attributes);
        self.attributes.get(from as usize..to as usize).unwrap_or(&[])
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, id: NodeId, uri: &str, local: &str) -> Option<&str> {
        let found = self.attributes(id).iter().find(|attribute| {
            let name = self.expanded(attribute.name);
            name.uri == uri && name.local == local
        });
        found.map(|attribute| &*attribute.value)
    }

    /// All character data in it.
    #[must_use]
    pub fn text(&self, id: NodeId) -> Cow<'_, str> {
        let mut parts = (id.0..self.end(id)).filter_map(|at| match self.kind(NodeId(at)) {
            Kind::Text(text) => Some(&**text),
            _ => None,
        });
        let Some(first) = parts.next() else { return Cow::Borrowed("") };
        match parts.next() {
            None => Cow::Borrowed(first),
            Some(second) => {
                let mut text = [first, second].concat();
                parts.for_each(|part| text.push_str(part));
                Cow::Owned(text)
            }
        }
    }

    /// The namespace of a prefix at an element; of none the default.
    #[must_use]
    pub fn namespace(&self, id: NodeId, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(XML_URI);
        }
        self.scope(id).find(|declared| declared.prefix == prefix).map(|it| &*it.uri)
    }

    fn scope(&self, id: NodeId) -> impl Iterator<Item = &Declared<'a>> {
        let mut at = self.node(id).map_or(0, |node| node.scope);
        std::iter::from_fn(move || {
            let found = self.declaration(at)?;
            at = found.outer;
            Some(found)
        })
    }

    /// The namespaces and local part of a QName in content.
    #[must_use]
    pub fn qname<'t>(&'t self, id: NodeId, text: &'t str) -> Option<(&'t str, &'t str)> {
        let text = text.trim();
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let uri = match self.namespace(id, prefix) {
            Some(uri) => uri,
            None if prefix.is_empty() => "",
            None => return None,
        };
        is_nc_name(local).then_some((uri, local))
    }

    /// The element as it stands in the text.
    #[must_use]
    pub fn source(&self, id: NodeId) -> &'a str {
        self.node(id).and_then(|node| self.text.get(node.span.0..node.span.1)).unwrap_or("")
    }

    /// The element as a document of its own: what it says of namespaces from outside of it is
    /// declared on it, where a prefix of it stands in the element's text at all.
    #[must_use]
    pub fn standalone(&self, id: NodeId) -> String {
        let source = self.source(id);
        // Behind the name of the start tag.
        let name_end = source
            .find(|char: char| char.is_ascii_whitespace() || char == '>' || char == '/')
            .unwrap_or(source.len());
        let (head, rest) = source.split_at(name_end);
        let mut out = Vec::with_capacity(source.len() + 64);
        out.extend_from_slice(head.as_bytes());
        let mut seen: Vec<&str> = Vec::new();
        let own = self.own_declarations(id);
        for (at, declared) in self.scope(id).enumerate() {
            if seen.contains(&declared.prefix) {
                continue;
            }
            seen.push(declared.prefix);
            let used = match declared.prefix {
                "" => !declared.uri.is_empty(),
                prefix => uses(source, prefix),
            };
            if at < own || !used {
                continue;
            }
            out.extend_from_slice(b" xmlns");
            if !declared.prefix.is_empty() {
                out.push(b':');
                out.extend_from_slice(declared.prefix.as_bytes());
            }
            out.extend_from_slice(b"=\"");
            codec::xml::escape(&declared.uri, true, &mut out);
            out.push(b'"');
        }
        out.extend_from_slice(rest.as_bytes());
        String::from_utf8(out).unwrap_or_default()
    }

    /// How many of the declarations in scope are the element's.
    fn own_declarations(&self, id: NodeId) -> usize {
        let depth = |id: NodeId| {
            let scope = self.node(id).map_or(0, |node| node.scope);
            self.declaration(scope).map_or(0, |declared| declared.depth)
        };
        let outer = self.parent(id).map_or(0, depth);
        depth(id).saturating_sub(outer) as usize
    }
}

/// Whether a prefix with its colon stands anywhere in the text, in names or in content.
fn uses(text: &str, prefix: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices(prefix).any(|(at, found)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let begins = before.is_none_or(|byte| {
            byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.')
        });
        begins && bytes.get(at + found.len()) == Some(&b':')
    })
}
