//! Documents of a schema and the global components that they define: include, import, redefine
//! (XML Schema Part 1 §4.2).

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Name, Text, Texts};
use super::tree::{Node, Tree};
use super::{CODEC, Document, Resolve, XML, XSD, fault};
use crate::{Error, Limits};

/// What has a name of its own in a schema (XML Schema Part 1 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Type,
    Element,
    Attribute,
    Group,
    AttributeGroup,
}

impl Kind {
    fn of(tag: &str) -> Option<Self> {
        match tag {
            "simpleType" | "complexType" => Some(Self::Type),
            "element" => Some(Self::Element),
            "attribute" => Some(Self::Attribute),
            "group" => Some(Self::Group),
            "attributeGroup" => Some(Self::AttributeGroup),
            _ => None,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Element => "element",
            Self::Attribute => "attribute",
            Self::Group => "group",
            Self::AttributeGroup => "attribute group",
        }
    }
}

/// A document as it was included: one without a namespace may stand for several.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) tree: Tree,
    pub(super) location: Box<str>,
    /// Its target namespace, or that of who includes it.
    pub(super) target: Text,
    /// Whether it took the namespace of who includes it (XML Schema Part 1 §4.2.1).
    chameleon: bool,
    pub(super) qualified_elements: bool,
    pub(super) qualified_attributes: bool,
}

/// A place in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeRef {
    pub(super) source: u32,
    pub(super) node: u32,
    /// The global component that it is part of, if it is.
    pub(super) within: Option<u32>,
}

/// A global component.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) kind: Kind,
    pub(super) name: Name,
    pub(super) place: NodeRef,
    /// What it redefines.
    pub(super) previous: Option<u32>,
}

/// All documents.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) texts: Texts,
    list: Vec<Source>,
    pub(super) definitions: Vec<Definition>,
    globals: BTreeMap<(Kind, Name), u32>,
    seen: BTreeSet<(Box<str>, Text)>,
    bytes_left: usize,
}

/// How a document came in.
#[derive(Clone, Copy)]
enum Relation {
    Main,
    Include(Text),
    Import(Text),
}

impl Sources {
    /// Reads the documents and all that they refer to.
    pub(super) fn read(
        documents: &[Document<'_>],
        resolve: &mut Resolve<'_>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut sources = Self {
            texts: Texts::new(),
            list: Vec::new(),
            definitions: Vec::new(),
            globals: BTreeMap::new(),
            seen: BTreeSet::new(),
            bytes_left: limits.message_bytes,
        };
        let (depth, missing) = (limits.depth, Vec::new());
        let mut loader = Loader { sources: &mut sources, resolve, limits, depth, missing };
        for document in documents {
            loader.load(document.location, document.bytes, Relation::Main)?;
        }
        loader.check_missing()?;
        loader.xml_attributes()?;
        Ok(sources)
    }

    pub(super) fn source(&self, place: NodeRef) -> &Source {
        &self.list[place.source as usize]
    }

    pub(super) fn node(&self, place: NodeRef) -> &Node {
        self.source(place).tree.node(place.node)
    }

    /// The children of a place, in order.
    pub(super) fn children(&self, place: NodeRef) -> Vec<NodeRef> {
        self.node(place).children.iter().map(|&node| NodeRef { node, ..place }).collect()
    }

    /// Target namespaces of all documents.
    pub(super) fn targets(&self) -> BTreeSet<Text> {
        self.list.iter().map(|source| source.target).collect()
    }

    /// All global components of a kind, by name (EXI §8.5.4.3), so that no order of documents
    /// makes a difference.
    pub(super) fn all(&self, kind: Kind) -> Vec<u32> {
        let mut found: Vec<u32> =
            self.globals.iter().filter(|((k, _), _)| *k == kind).map(|(_, &id)| id).collect();
        found.sort_by_key(|&id| self.texts.order(self.definitions[id as usize].name));
        found
    }

    /// A QName in an attribute value.
    pub(super) fn expand(&mut self, place: NodeRef, value: &str) -> Result<Name, Error> {
        let (prefix, local) = value.split_once(':').unwrap_or(("", value));
        let source = &self.list[place.source as usize];
        let Some(uri) = source.tree.namespace(place.node, prefix) else {
            return Err(fault(self, place, format!("the prefix of {value} is not declared")));
        };
        let uri = if uri.is_empty() && source.chameleon {
            source.target
        } else {
            let uri = uri.to_owned();
            self.texts.intern(&uri)
        };
        Ok(Name { uri, local: self.texts.intern(local) })
    }

    /// The component that a reference at a place means: inside a redefinition its own name means
    /// what it redefines.
    pub(super) fn refer(&self, kind: Kind, name: Name, from: NodeRef) -> Option<u32> {
        if let Some(within) = from.within {
            let own = self.definitions[within as usize];
            if (own.kind, own.name) == (kind, name) && own.previous.is_some() {
                return own.previous;
            }
        }
        self.globals.get(&(kind, name)).copied()
    }
}

struct Loader<'a, 'r> {
    sources: &'a mut Sources,
    resolve: &'a mut Resolve<'r>,
    limits: &'a Limits,
    depth: usize,
    /// Imports whose document was not found: where, of which namespace, at which location.
    missing: Vec<(NodeRef, Text, String)>,
}

impl Loader<'_, '_> {
    fn load(&mut self, location: &str, bytes: &[u8], relation: Relation) -> Result<(), Error> {
        let limit = |what: &str| Error::Limit { codec: CODEC, what: what.to_owned() };
        let left = self.sources.bytes_left.checked_sub(bytes.len());
        self.sources.bytes_left =
            left.ok_or_else(|| limit("the schema documents together are over message_bytes"))?;
        let trees = Tree::read(bytes, self.limits).map_err(|error| located(error, location))?;
        let alone = trees.len() == 1;
        for (tree, at) in trees.into_iter().zip(1..) {
            // Of several in one document each has a location of its own.
            let own = format!("{location}#{at}");
            self.add(if alone { location } else { &own }, tree, relation)?;
        }
        Ok(())
    }

    fn add(&mut self, location: &str, tree: Tree, relation: Relation) -> Result<(), Error> {
        let limit = |what: &str| Error::Limit { codec: CODEC, what: what.to_owned() };
        let root = tree.node(0);
        let own = root.attribute("targetNamespace").map(|uri| self.sources.texts.intern(uri));
        let (target, chameleon) = match (relation, own) {
            (Relation::Include(outer), None) => (outer, outer != 0),
            (Relation::Include(outer) | Relation::Import(outer), own)
                if own.unwrap_or(0) != outer =>
            {
                let (found, wanted) = (own.unwrap_or(0), outer);
                let texts = &self.sources.texts;
                let what = format!(
                    "{location} is of namespace \"{}\", not \"{}\"",
                    texts.get(found),
                    texts.get(wanted)
                );
                return Err(Error::Malformed { codec: CODEC, offset: 0, what });
            }
            (_, own) => (own.unwrap_or(0), false),
        };
        if !self.sources.seen.insert((location.into(), target)) {
            return Ok(());
        }
        let form = |name| root.attribute(name) == Some("qualified");
        let source = Source {
            location: location.into(),
            target,
            chameleon,
            qualified_elements: form("elementFormDefault"),
            qualified_attributes: form("attributeFormDefault"),
            tree,
        };
        let index =
            u32::try_from(self.sources.list.len()).map_err(|_| limit("too many documents"))?;
        self.sources.list.push(source);
        self.depth = self
            .depth
            .checked_sub(1)
            .ok_or_else(|| limit("schema documents include each other deeper than limits.depth"))?;
        self.children(NodeRef { source: index, node: 0, within: None })?;
        self.depth += 1;
        Ok(())
    }

    fn children(&mut self, root: NodeRef) -> Result<(), Error> {
        let children = self.sources.children(root);
        for &child in &children {
            match self.sources.node(child).tag {
                "include" => self.include(child)?,
                "import" => self.import(child)?,
                "redefine" => {
                    self.include(child)?;
                    for part in self.sources.children(child) {
                        self.define(part, true)?;
                    }
                }
                _ => {}
            }
        }
        for child in children {
            self.define(child, false)?;
        }
        Ok(())
    }

    fn include(&mut self, place: NodeRef) -> Result<(), Error> {
        let source = self.sources.source(place);
        let Some(location) = self.sources.node(place).attribute("schemaLocation") else {
            return Err(fault(self.sources, place, "schemaLocation is missing".to_owned()));
        };
        let target = source.target;
        let location = join(&source.location, location);
        if self.sources.seen.contains(&(location.as_str().into(), target)) {
            return Ok(());
        }
        let namespace = (target != 0).then(|| self.sources.texts.get(target).to_owned());
        match (self.resolve)(&location, namespace.as_deref()) {
            Some(bytes) => self.load(&location, &bytes, Relation::Include(target)),
            None => Err(fault(self.sources, place, format!("there is no document {location}"))),
        }
    }

    /// An import that names no document is not an error; a reference into it is one. A document
    /// that is named and not there is an error, since the other side may have it, and with it
    /// other string tables; unless the caller gave one of its namespace.
    fn import(&mut self, place: NodeRef) -> Result<(), Error> {
        let node = self.sources.node(place);
        let namespace = node.attribute("namespace").map(str::to_owned);
        let location = node
            .attribute("schemaLocation")
            .map(|at| join(&self.sources.source(place).location, at));
        let uri = namespace.as_deref().unwrap_or("");
        if uri == XSD {
            return Ok(());
        }
        let target = self.sources.texts.intern(uri);
        let at = location.as_deref().unwrap_or(uri);
        if self.sources.seen.contains(&(at.into(), target)) {
            return Ok(());
        }
        if let Some(bytes) = (self.resolve)(at, namespace.as_deref()) {
            return self.load(at, &bytes, Relation::Import(target));
        }
        if let Some(at) = location.filter(|_| uri != XML) {
            self.missing.push((place, target, at));
        }
        Ok(())
    }

    /// All documents are read now: each import that was not found must have come otherwise.
    fn check_missing(&self) -> Result<(), Error> {
        let targets = self.sources.targets();
        match self.missing.iter().find(|(_, target, _)| !targets.contains(target)) {
            Some((place, _, at)) => {
                Err(fault(self.sources, *place, format!("there is no document {at}")))
            }
            None => Ok(()),
        }
    }

    /// Defines the attributes of the prefix `xml` where a document refers to one and none defines
    /// them.
    fn xml_attributes(&mut self) -> Result<(), Error> {
        let known =
            self.sources.list.iter().any(|source| self.sources.texts.get(source.target) == XML);
        let refers = |tree: &Tree| {
            let mut references = tree.nodes().filter_map(|node| node.attribute("ref"));
            references.any(|value| value.starts_with("xml:"))
        };
        if known || !self.sources.list.iter().any(|source| refers(&source.tree)) {
            return Ok(());
        }
        let target = self.sources.texts.intern(XML);
        self.load(XML, super::XML_NAMESPACE.as_bytes(), Relation::Import(target))
    }

    /// Enters a global component. The first of two of one name stays: documents that are reached
    /// by two locations define everything twice.
    fn define(&mut self, place: NodeRef, again: bool) -> Result<(), Error> {
        let node = self.sources.node(place);
        let Some(kind) = Kind::of(node.tag) else { return Ok(()) };
        let Some(local) = node.attribute("name").map(str::to_owned) else {
            let what = format!("a global {} has no name", kind.word());
            return Err(fault(self.sources, place, what));
        };
        let uri = self.sources.source(place).target;
        let name = Name { uri, local: self.sources.texts.intern(&local) };
        let previous = self.sources.globals.get(&(kind, name)).copied();
        if again && previous.is_none() {
            let what = format!("{} {local} is redefined, but not defined", kind.word());
            return Err(fault(self.sources, place, what));
        }
        if !again && previous.is_some() {
            return Ok(());
        }
        let id = u32::try_from(self.sources.definitions.len()).unwrap_or(u32::MAX);
        let place = NodeRef { within: Some(id), ..place };
        self.sources.definitions.push(Definition { kind, name, place, previous });
        self.sources.globals.insert((kind, name), id);
        Ok(())
    }
}

/// Says in which document an error of the XML reader is.
fn located(error: Error, location: &str) -> Error {
    match error {
        Error::Malformed { offset, what, .. } => {
            Error::Malformed { codec: CODEC, offset, what: format!("{location}: {what}") }
        }
        other => other,
    }
}

/// A relative location beside the document that refers to it (RFC 3986 §5.2, paths only).
pub(super) fn join(base: &str, location: &str) -> String {
    let absolute = location.starts_with('/') || location.contains("://");
    let folder = base.rfind('/').map_or("", |end| &base[..=end]);
    if absolute || folder.is_empty() && !location.contains("./") {
        return location.to_owned();
    }
    let (root, folder) = match folder.find("://") {
        Some(scheme) => {
            let path = folder[scheme + 3..].find('/').map_or(folder.len(), |at| scheme + 3 + at);
            folder.split_at(path)
        }
        None => ("", folder),
    };
    let mut parts: Vec<&str> = Vec::new();
    let above = folder.split('/').take(if folder.is_empty() { 0 } else { usize::MAX });
    for part in above.chain(location.split('/')).filter(|part| *part != ".") {
        match (part, parts.last()) {
            ("..", Some(&last)) if last != ".." && !last.is_empty() => {
                parts.pop();
            }
            ("", Some(_)) => {}
            _ => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn locations_beside_others() {
        assert_eq!(join("a.xsd", "b.xsd"), "b.xsd");
        assert_eq!(join("a.xsd", "./b.xsd"), "b.xsd");
        assert_eq!(join("a.xsd", "../b.xsd"), "../b.xsd");
        assert_eq!(join("x/a.xsd", "../b.xsd"), "b.xsd");
        assert_eq!(join("x/a.xsd", "../../y/./b.xsd"), "../y/b.xsd");
        assert_eq!(join("/x/y/a.xsd", "../b.xsd"), "/x/b.xsd");
        assert_eq!(join("/x/a.xsd", "/b.xsd"), "/b.xsd");
        assert_eq!(join("/x/a.xsd", "http://h/b.xsd"), "http://h/b.xsd");
        assert_eq!(join("http://h/x/a.xsd", "../b.xsd"), "http://h/b.xsd");
        assert_eq!(join("http://h/a.xsd", "b.xsd"), "http://h/b.xsd");
    }
}
