//! Formats as rows of the table of codecs: each is one adapter to what a module gives.

pub(crate) mod cbor;
pub(crate) mod dictionary;
pub(crate) mod exi;
mod schema;
pub(crate) mod wbxml;
mod whole;

pub use schema::CompiledSchema;
