//! Efficient XML Interchange (EXI) 1.0, Second Edition (W3C Recommendation, 11 February 2014).

pub mod grammar;
pub mod options;
pub mod schema;

pub use grammar::Grammars;
pub use options::{Alignment, Options, Preserve, Profile, SchemaId};
pub use schema::Schema;
