//! Documents of elements and texts, in the forms that a body may have.
//!
//! One [`Writer`] and one [`Reader`] for all forms; which one a document has is an argument
//! ([`XML`], [`WBXML`], [`CBOR`]), and only the forms that a program names are linked. Elements are
//! known by namespace and local name; attributes are written, and left out by the reader.

mod cbor;
mod name;
mod reader;
mod scope;
#[cfg(test)]
mod tests;
mod tokens;
mod wbxml;
mod writer;
mod xml;

pub use name::{Found, Name, Space};
pub use reader::{Event, Reader};
pub use tokens::Tokens;
pub use writer::Writer;

use crate::{Content, Error};

/// How deep elements may be nested.
pub const MAX_DEPTH: usize = 16;
/// How many prefixes may be in scope, default namespaces with them.
pub const MAX_PREFIXES: usize = 16;

/// A form of documents, as functions: what no program names is not linked.
#[derive(Debug)]
pub struct Form {
    /// What a body in it is.
    pub content: Content,
    begin: for<'w> fn(&mut Writer<'w>, Name<'w>) -> Result<(), Error>,
    attribute: for<'w> fn(&mut Writer<'w>, &str, &str) -> Result<(), Error>,
    text: for<'w> fn(&mut Writer<'w>, &str) -> Result<(), Error>,
    end: for<'w> fn(&mut Writer<'w>) -> Result<(), Error>,
    finish: for<'w> fn(&mut Writer<'w>) -> Result<usize, Error>,
    next: for<'r> fn(&mut Reader<'r>) -> Result<Event<'r>, Error>,
}

/// XML 1.0 in UTF-8.
pub static XML: Form = Form {
    content: Content::Xml,
    begin: xml::begin,
    attribute: xml::attribute,
    text: xml::text,
    end: xml::end,
    finish: xml::finish,
    next: xml::next,
};

/// WBXML 1.3 (WAP-192), with the tokens of the caller's table and literals for the rest.
pub static WBXML: Form = Form {
    content: Content::Wbxml,
    begin: wbxml::begin,
    attribute: wbxml::attribute,
    text: wbxml::text,
    end: wbxml::end,
    finish: wbxml::finish,
    next: wbxml::next,
};

/// XML in CBOR, as `docs/formats/cbor-xml.md` has it.
pub static CBOR: Form = Form {
    content: Content::Cbor,
    begin: cbor::begin,
    attribute: cbor::attribute,
    text: cbor::text,
    end: cbor::end,
    finish: cbor::finish,
    next: cbor::next,
};
