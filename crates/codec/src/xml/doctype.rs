//! The document type: kept as text, its entities never expanded (XML 1.0 §2.8, §4.2).

use std::collections::BTreeSet;

use super::chars::{is_name, name_end, space_end};
use super::ender::doctype_end;

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

/// Reads a document type at the begin of `text`; `None` if its end is not there.
pub(super) fn parse(text: &str) -> Option<Result<(Doctype<'_>, usize), Refusal>> {
    let end = doctype_end(text.as_bytes())?;
    Some(declaration(&text[..end]).map(|doctype| (doctype, end)))
}

fn declaration(text: &str) -> Result<Doctype<'_>, Refusal> {
    let bytes = text.as_bytes();
    if !text.starts_with("<!DOCTYPE") {
        return Err((0, "markup that is not a comment, a section or DOCTYPE"));
    }
    let mut at = space_end(bytes, 9);
    let end = name_end(bytes, at);
    let name = &text[at..end];
    if at == 9 || !is_name(name) {
        return Err((at, "DOCTYPE without a name"));
    }
    let mut doctype = Doctype { name, ..Doctype::default() };
    at = space_end(bytes, end);
    let rest = &text[at..];
    if rest.starts_with("PUBLIC") {
        (doctype.public, at) = literal(text, at + 6)?;
        if doctype.public.bytes().any(|byte| !is_pubid(byte)) {
            return Err((at, "a character that no public identifier may have"));
        }
        (doctype.system, at) = literal(text, at)?;
    } else if rest.starts_with("SYSTEM") {
        (doctype.system, at) = literal(text, at + 6)?;
    }
    at = space_end(bytes, at);
    if bytes.get(at) == Some(&b'[') {
        let end = subset_end(text, at + 1)?;
        doctype.subset = &text[at + 1..end];
        at = space_end(bytes, end + 1);
    }
    if at + 1 == text.len() && bytes[at] == b'>' { Ok(doctype) } else { Err((at, UNKNOWN)) }
}

const UNKNOWN: &str = "DOCTYPE with something that it may not have";

/// A literal in quotes behind white space, and where it ends.
fn literal(text: &str, at: usize) -> Result<(&str, usize), Refusal> {
    let bytes = text.as_bytes();
    let begin = space_end(bytes, at);
    let quote = bytes.get(begin).filter(|quote| begin > at && matches!(quote, b'"' | b'\''));
    let quote = *quote.ok_or((begin, "an identifier in quotes behind white space is missing"))?;
    let inside = &text[begin + 1..];
    let len = inside.find(char::from(quote)).ok_or((begin, "a quote without its end"))?;
    Ok((&inside[..len], begin + len + 2))
}

/// `PubidChar`, production 13.
fn is_pubid(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(&byte)
}

/// Where the `]` of the internal subset stands (`intSubset`, production 28b). Declarations are
/// told apart and skipped; what they declare is not looked at.
fn subset_end(text: &str, mut at: usize) -> Result<usize, Refusal> {
    let bytes = text.as_bytes();
    loop {
        at = space_end(bytes, at);
        let rest = &text[at..];
        let skipped = match bytes.get(at) {
            Some(b']') => return Ok(at),
            Some(b'%') => match rest.find(';') {
                Some(end) if is_name(&rest[1..end]) => Some(end + 1),
                _ => None,
            },
            Some(b'<') if rest.starts_with("<!--") => rest[4..]
                .find("--")
                .filter(|end| rest[end + 4..].starts_with("-->"))
                .map(|end| end + 7),
            Some(b'<') if rest.starts_with("<?") => rest.find("?>").map(|end| end + 2),
            Some(b'<') if is_declaration(rest) => declaration_len(rest),
            _ => None,
        };
        at += skipped.ok_or((at, "no declaration that an internal subset may have"))?;
    }
}

fn is_declaration(rest: &str) -> bool {
    let kinds = ["<!ELEMENT", "<!ATTLIST", "<!ENTITY", "<!NOTATION"];
    kinds.iter().any(|kind| {
        rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with([' ', '\t', '\n', '\r']))
    })
}

fn declaration_len(rest: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += rest[at..].find(['>', '<', '"', '\''])?;
        match rest.as_bytes()[at] {
            b'>' => return Some(at + 1),
            b'<' => return None,
            quote => at += 2 + rest[at + 1..].find(char::from(quote))?,
        }
    }
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
    /// What a document type allows.
    pub(super) fn of(doctype: &Doctype<'_>) -> Self {
        if !doctype.system.is_empty() || doctype.subset.contains('%') {
            return Self::Any;
        }
        let declarations = doctype.subset.split("<!ENTITY").skip(1);
        Self::Of(
            declarations
                .map(|text| {
                    let name = text.trim_start();
                    name[..name_end(name.as_bytes(), 0)].to_owned()
                })
                .collect(),
        )
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::Of(names) => names.contains(name),
            Self::Any => true,
        }
    }
}
