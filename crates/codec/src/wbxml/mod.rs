//! WBXML 1.3 (WAP-192-WBXML-20010725-a): XML as tokens.
//!
//! A token table says which names of a type of document are numbers; what it does not know is
//! written as literals, so any document can be encoded. The infoset survives with its namespaces,
//! but for what the standard removes: comments and the internal part of a document type (§6.1).
//! Prefixes survive where the table knows no namespaces.
//!
//! ```
//! use longwire_codec::{Limits, wbxml::{self, Settings}};
//! let (settings, limits) = (Settings::default(), Limits::default());
//! let document = b"<a><item n=\"1\">text</item><item n=\"2\">text</item></a>";
//! let tokens = wbxml::encode(document, &settings, &limits)?;
//! assert!(tokens.len() < document.len());
//! let again = wbxml::decode(&tokens, &settings, &limits)?;
//! assert!(again.ends_with(document));
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod attribute;
mod charset;
mod decode;
mod derive;
mod encode;
mod opaque;
mod strings;
mod table;

pub use charset::Charset;
pub use decode::{decode, number_of};
pub use derive::derive;
pub use encode::{Encoder, encode};
pub use table::{TokenTable, tables};

/// In errors.
const NAME: &str = "wbxml";
/// Namespace declarations in scope at once: they are searched one by one.
const MAX_BINDINGS: usize = 256;

/// How to encode, and what to decode with.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The token table; without one it is chosen by the document type, the namespace of the root,
    /// or the number in the header, and if none is found all names are literals.
    pub table: Option<&'a TokenTable>,
    /// Whether texts that repeat go to the string table. Literal names go there in any case.
    pub string_table: bool,
    /// Whether white space between elements is kept; only the type of a document can say that it
    /// means nothing (§6.1).
    pub keep_white_space: bool,
    /// How to write characters; what a document to decode has, its header says.
    pub charset: Charset,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { table: None, string_table: true, keep_white_space: true, charset: Charset::Utf8 }
    }
}
