//! The document type: kept as text, its entities never expanded (XML 1.0 §2.8, §4.2).

use std::collections::BTreeSet;

use super::ender::doctype_end;
use super::subset::Cursor;

/// A document type declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doctype<'a> {
    /// The root element's name.
    pub name: &'a str,
    /// The public identifier, empty if there is none.
    pub public: &'a str,
    /// The system identifier, empty if there is none.
    pub system: &'a str,
    /// What stands between `[` and `]`, as it stands there.
    pub subset: &'a str,
}

/// Why a document type is refused: where, from its begin, and what.
pub(super) type Refusal = (usize, &'static str);

/// A document type, the entities that it allows, and its length.
pub(super) type Parsed<'a> = (Doctype<'a>, Entities, usize);

/// Reads a document type at the begin of `text`; `None` if its end is not there.
pub(super) fn parse(text: &str) -> Option<Result<Parsed<'_>, Refusal>> {
    let end = doctype_end(text.as_bytes())?;
    Some(declaration(&text[..end]).map(|(doctype, entities)| (doctype, entities, end)))
}

/// The document type that `text` is, which [`parse`] has taken before.
pub(super) fn parsed(text: &str) -> Option<Doctype<'_>> {
    let mut cursor = Cursor::new(text);
    let mut doctype = head(&mut cursor).ok()?;
    if cursor.eat("[") {
        // Behind the subset stands white space at most.
        doctype.subset = text.get(cursor.at()..text.rfind(']')?)?;
    }
    Some(doctype)
}

/// A document type up to its subset.
fn head<'a>(cursor: &mut Cursor<'a>) -> Result<Doctype<'a>, Refusal> {
    if !cursor.eat("<!DOCTYPE") {
        return Err((0, "markup that is not a comment, a section or DOCTYPE"));
    }
    let unnamed = |(at, _)| (at, "DOCTYPE without a name");
    cursor.need_space().map_err(unnamed)?;
    let name = cursor.qname().map_err(unnamed)?;
    let mut doctype = Doctype { name, ..Doctype::default() };
    if cursor.space() && !matches!(cursor.peek(), Some(b'[' | b'>')) {
        (doctype.public, doctype.system) = cursor.external_id(false)?;
        cursor.space();
    }
    Ok(doctype)
}

/// `doctypedecl`, production 28.
fn declaration(text: &str) -> Result<(Doctype<'_>, Entities), Refusal> {
    let mut cursor = Cursor::new(text);
    let mut doctype = head(&mut cursor)?;
    let mut entities = Entities::None;
    if cursor.eat("[") {
        let begin = cursor.at();
        entities = cursor.subset()?;
        doctype.subset = &text[begin..cursor.at()];
        cursor.need("]")?;
        cursor.space();
    }
    cursor.need(">")?;
    if cursor.at() < text.len() {
        return Err((cursor.at(), "something behind DOCTYPE"));
    }
    // What is declared there is not read.
    let entities = if doctype.system.is_empty() { entities } else { Entities::Any };
    Ok((doctype, entities))
}

/// Which entities a reference may name (XML 1.0 §4.1, "Entity Declared").
#[derive(Clone, Debug, Default)]
pub(super) enum Entities {
    /// Only the five.
    #[default]
    None,
    /// Those of the internal subset.
    Of(BTreeSet<String>),
    /// Any: declarations may stand where they are not read.
    Any,
}

impl Entities {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(names) => names.contains(name),
            Self::Any => true,
        }
    }
}
