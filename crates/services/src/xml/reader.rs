//! A pull reader that accepts namespace-well-formed XML 1.0 and nothing else: no document type, no
//! entity but the five predefined ones, bounded depth.

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

use crate::Error;

/// Deepest nesting of elements that is read.
const MAX_DEPTH: usize = 64;

/// What the reader finds, in document order. Comments are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A start tag (an empty element gives `Start` and `End`).
    Start {
        /// Namespace URI, if the name is in one.
        namespace: Option<String>,
        /// Local name.
        name: String,
        /// Attributes but for namespace declarations.
        attributes: Vec<Attribute>,
    },
    /// Character data with references resolved; adjacent pieces come one by one.
    Text(String),
    /// The end of the innermost open element.
    End,
    /// A processing instruction.
    Instruction,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Namespace URI; none for a name without prefix.
    pub namespace: Option<String>,
    /// Local name.
    pub name: String,
    /// Value, normalized as XML 1.0 §3.3.3 says.
    pub value: String,
}

/// Reads one document.
pub struct Reader<'a> {
    inner: NsReader<&'a [u8]>,
    depth: usize,
    begun: bool,
    root_seen: bool,
}

impl<'a> Reader<'a> {
    /// A reader of `document`; a byte order mark is skipped.
    #[must_use]
    pub fn new(document: &'a str) -> Self {
        let document = document.strip_prefix('\u{feff}').unwrap_or(document);
        let mut inner = NsReader::from_str(document);
        let config = inner.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = true;
        Self { inner, depth: 0, begun: false, root_seen: false }
    }

    /// The next node; `None` after the end of a whole document.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is not namespace-well-formed or has a document type,
    /// [`Error::Limit`] beyond 64 nested elements.
    pub fn next_node(&mut self) -> Result<Option<Node>, Error> {
        loop {
            let offset = self.inner.buffer_position();
            let first = !std::mem::replace(&mut self.begun, true);
            let at = |what: String| Error::Peer(format!("not well-formed XML: {what} at {offset}"));
            let event = self.inner.read_event().map_err(|error| at(error.to_string()))?;
            let node = match event {
                Event::Eof => return self.finish(),
                Event::Decl(_) if first => continue,
                Event::Decl(_) => return Err(at("XML declaration not at the start".into())),
                Event::DocType(_) => {
                    let line = "a document type declaration (DOCTYPE) is refused; send none";
                    return Err(Error::Peer(line.into()));
                }
                Event::Comment(comment) => {
                    check_characters(&comment).map_err(at)?;
                    continue;
                }
                Event::PI(_) => Node::Instruction,
                Event::Start(tag) | Event::Empty(tag) => self.start(&tag)?,
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    Node::End
                }
                Event::Text(text) => {
                    let text = text.xml10_content();
                    if text.contains("]]>") {
                        return Err(at("']]>' in text".into()));
                    }
                    check_characters(&text).map_err(at)?;
                    self.text(text.into_owned())?
                }
                Event::CData(text) => {
                    let text = text.xml10_content();
                    check_characters(&text).map_err(at)?;
                    self.text(text.into_owned())?
                }
                Event::GeneralRef(reference) => {
                    let character = resolve(&reference).map_err(at)?;
                    self.text(character.to_string())?
                }
            };
            match node {
                Node::Text(text) if self.depth == 0 && text.trim().is_empty() => {}
                node => return Ok(Some(node)),
            }
        }
    }

    /// The rest of the document, only checked.
    ///
    /// # Errors
    /// As [`Self::next_node`].
    pub fn check_rest(&mut self) -> Result<(), Error> {
        while self.next_node()?.is_some() {}
        Ok(())
    }

    fn finish(&self) -> Result<Option<Node>, Error> {
        match (self.root_seen, self.depth) {
            (true, 0) => Ok(None),
            (false, _) => Err(Error::Peer("not well-formed XML: no element at all".into())),
            (true, open) => {
                Err(Error::Peer(format!("not well-formed XML: ends with {open} elements open")))
            }
        }
    }

    fn text(&self, text: String) -> Result<Node, Error> {
        if self.depth == 0 && !text.trim().is_empty() {
            return Err(Error::Peer("not well-formed XML: text outside the root element".into()));
        }
        Ok(Node::Text(text))
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<Node, Error> {
        let bad = |what: String| Error::Peer(format!("not well-formed XML: {what}"));
        if self.depth == 0 && self.root_seen {
            return Err(bad("a second root element".into()));
        }
        if self.depth == MAX_DEPTH {
            let line = format!("XML nested deeper than {MAX_DEPTH} elements; nest less");
            return Err(Error::Limit(line));
        }
        self.root_seen = true;
        self.depth += 1;
        check_name(tag.name().as_ref()).map_err(bad)?;
        let (resolved, local) = self.inner.resolver().resolve_element(tag.name());
        let namespace = namespace_of(&resolved).map_err(bad)?;
        let name = local.as_ref().to_owned();
        let mut attributes: Vec<Attribute> = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| bad(error.to_string()))?;
            let value = self.attribute_value(&attribute).map_err(bad)?;
            if attribute.key.as_namespace_binding().is_some() {
                continue;
            }
            check_name(attribute.key.as_ref()).map_err(bad)?;
            let (resolved, local) = self.inner.resolver().resolve_attribute(attribute.key);
            let namespace = namespace_of(&resolved).map_err(bad)?;
            let name = local.as_ref().to_owned();
            if attributes.iter().any(|seen| seen.name == name && seen.namespace == namespace) {
                return Err(bad(format!("attribute '{name}' twice")));
            }
            attributes.push(Attribute { namespace, name, value });
        }
        Ok(Node::Start { namespace, name, attributes })
    }

    fn attribute_value(
        &self,
        attribute: &quick_xml::events::attributes::Attribute<'_>,
    ) -> Result<String, String> {
        if attribute.value.contains('<') {
            return Err("'<' in an attribute's value".into());
        }
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(|error| error.to_string())?;
        check_characters(&value)?;
        Ok(value.into_owned())
    }
}

fn namespace_of(resolved: &ResolveResult<'_>) -> Result<Option<String>, String> {
    match resolved {
        ResolveResult::Unbound => Ok(None),
        ResolveResult::Bound(namespace) => {
            let uri = quick_xml::escape::unescape(namespace.as_ref());
            Ok(Some(uri.map_err(|error| error.to_string())?.into_owned()))
        }
        ResolveResult::Unknown(prefix) => Err(format!("undeclared namespace prefix '{prefix}'")),
    }
}

fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Result<char, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        check_characters(character.encode_utf8(&mut [0; 4]))?;
        return Ok(character);
    }
    match &**reference {
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "amp" => Ok('&'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(format!("undeclared entity '{other}'")),
    }
}

/// XML 1.0 §2.2, production Char.
pub(super) fn is_allowed(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

fn check_characters(text: &str) -> Result<(), String> {
    match text.chars().find(|&character| !is_allowed(character)) {
        None => Ok(()),
        Some(character) => Err(format!("character U+{:04X}", u32::from(character))),
    }
}

/// Namespaces in XML 1.0 §4, production QName, by Unicode's letters rather than XML's table.
fn check_name(name: &str) -> Result<(), String> {
    let part = |part: &str| {
        let mut characters = part.chars();
        characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && characters.all(|other| other.is_alphanumeric() || "._-·".contains(other))
    };
    let whole = match name.split_once(':') {
        None => part(name),
        Some((prefix, local)) => part(prefix) && part(local),
    };
    if whole { Ok(()) } else { Err(format!("'{}' is not a name", name.escape_debug())) }
}
