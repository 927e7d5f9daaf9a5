//! XML 1.0 (fifth edition) with namespaces, read and written: what the codecs of XML stand on.
//!
//! The reader checks well-formedness as a processor that does not validate: it reads no external
//! entity, supplies no default from a DTD, and never expands an entity but the five and references
//! to characters. Declarations of an internal subset are checked for their form and kept as text.
//!
//! ```
//! use longwire_codec::{Limits, xml::{Event, Reader}};
//! let mut reader = Reader::new(b"<a x='1'>text</a>", &Limits::default())?;
//! let Event::Start(start) = reader.next()? else { unreachable!() };
//! assert_eq!(reader.names().name(start.name).local, "a");
//! assert_eq!(reader.attributes()[0].value(&start), "1");
//! assert_eq!(reader.next()?, Event::Text("text".into()));
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod chars;
mod charset;
mod doctype;
mod ender;
mod guess;
pub(crate) mod names;
mod reader;
mod scanner;
mod subset;
mod tag;
#[cfg(test)]
mod tests;
mod text;
mod writer;

use std::borrow::Cow;

pub(crate) use chars::is_space;
pub use chars::{is_nc_name, is_qname, is_text};
pub use charset::to_utf8;
pub use doctype::Doctype;
pub use names::{Name, NameId, Names, UriId};
pub use reader::{Reader, Stream};
pub(crate) use scanner::Kind;
pub use scanner::Scanner;
pub(crate) use subset::has_defaults;
pub use tag::{Attribute, Declaration};
pub use writer::{Writer, escape};

/// In errors.
const NAME: &str = "xml";

/// The namespace of the prefix `xml`.
pub const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of the prefix `xmlns`.
pub const XMLNS_URI: &str = "http://www.w3.org/2000/xmlns/";

/// What a document says, a piece at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// `<?xml …?>`
    Declaration(Box<XmlDeclaration<'a>>),
    /// The document type.
    Doctype(Box<Doctype<'a>>),
    /// A start tag; its attributes and declarations are the scanner's until the next event.
    Start(Start<'a>),
    /// The end of an element; one follows each start, that of an empty-element tag too.
    End {
        /// Which element; [`Scanner::written`] says how it was written.
        name: NameId,
    },
    /// Character data, never empty: all that stands between two other events, with references
    /// resolved and CDATA sections merged.
    Text(Cow<'a, str>),
    /// A reference to an entity that the document type may declare.
    EntityRef(&'a str),
    /// A comment.
    Comment(Cow<'a, str>),
    /// A processing instruction.
    Pi {
        /// For whom.
        target: &'a str,
        /// The rest without the white space before it.
        data: Cow<'a, str>,
    },
    /// The document is over.
    Eof,
}

/// The XML declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XmlDeclaration<'a> {
    /// The version, of the form `1.x`.
    pub version: &'a str,
    /// The declared character set.
    pub encoding: Option<&'a str>,
    /// Whether nothing outside the document matters.
    pub standalone: Option<bool>,
}

/// A start tag or empty-element tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'a> {
    /// Which element.
    pub name: NameId,
    /// The prefix as written, empty for none.
    pub prefix: &'a str,
    /// The whole tag, which spans of attributes and declarations refer to.
    pub tag: &'a str,
}

impl Start<'_> {
    /// Whether it is an empty-element tag. An end follows all the same.
    #[must_use]
    pub fn is_empty_tag(&self) -> bool {
        self.tag.ends_with("/>")
    }
}
