//! Efficient XML Interchange (EXI) 1.0, Second Edition (W3C Recommendation, 11 February 2014).
//!
//! [`encode`] and [`decode`] take whole documents, [`DocumentEncoder`] many of them, [`Encoder`]
//! and [`Decoder`] blocks of one; with a schema they walk the [`Grammars`] that [`Schema`] makes.
//!
//! ```
//! use longwire_codec::{Limits, exi};
//! let (options, limits) = (exi::Options::default(), Limits::default());
//! let stream = exi::encode(b"<a><b>x</b><b>x</b></a>", &options, None, &limits)?;
//! assert_eq!(exi::decode(&stream, &options, None, &limits)?, b"<a><b>x</b><b>x</b></a>");
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod bits;
mod blocks;
mod built_in;
mod canonical;
mod channels;
mod codes;
mod datatype;
mod decoder;
mod encoder;
pub mod grammar;
mod header;
mod index;
mod lexical;
mod mapping;
pub mod options;
mod options_document;
mod read_tables;
mod reading;
pub mod schema;
mod stream;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod to_xml;
mod walk;

pub use encoder::{DocumentEncoder, Encoder, encode};
pub use grammar::Grammars;
pub use options::{Alignment, Options, Preserve, Profile, SchemaId};
pub use schema::Schema;
pub use stream::{Decoder, Event, Resolve, decode, decode_with};

/// In errors.
const NAME: &str = "exi";
