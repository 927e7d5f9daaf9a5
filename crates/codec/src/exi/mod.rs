//! Efficient XML Interchange (EXI) 1.0, Second Edition (W3C Recommendation, 11 February 2014).

pub mod grammar;
pub mod options;

pub use options::{Alignment, Options, Preserve, Profile, SchemaId};
